//! Which choosers measure: the value of `TYPEPACK_TUNE`.
//!
//! The runtime and the interposer read the variable and ask [`Tune::measures`] when they make a chooser. A chooser that
//! does not measure keeps the static order.

/// The names of all choosers. Those with a [`Form`](super::Form) have its name.
pub const CHOOSERS: [&str; 10] =
    ["messages", "parts", SHORT, "collective", "pieces", "files", "copies", KERNELS, WAITS, HOST];

/// The chooser of the copies of short messages.
pub const SHORT: &str = "short";
/// The chooser between leaf kernels and compiled kernels.
pub const KERNELS: &str = "kernels";
/// The chooser of the pauses of a wait.
pub const WAITS: &str = "waits";
/// The interposer's chooser between its own kernels and the host's.
pub const HOST: &str = "host";

/// Which choosers measure. By default all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tune {
    /// A bit for each chooser in [`CHOOSERS`] that is off.
    off: u16,
}

impl Tune {
    /// No chooser measures.
    pub const OFF: Self = Self { off: (1 << CHOOSERS.len()) - 1 };

    /// Reads `on`, `off`, or `off:` with the names of choosers, separated by commas.
    ///
    /// # Errors
    /// Returns the values that are allowed, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "on" => return Ok(Self::default()),
            "off" => return Ok(Self::OFF),
            _ => {}
        }
        let names = text.strip_prefix("off:").map(|names| names.split(','));
        let bit = |name: &str| Some(1 << CHOOSERS.iter().position(|other| *other == name)?);
        let off: Option<u16> =
            names.and_then(|mut names| names.try_fold(0, |off, name| Some(off | bit(name)?)));
        off.map(|off| Self { off }).ok_or_else(|| {
            let names = CHOOSERS.join(", ");
            format!(
                "on, off, or off:LIST; LIST has the names of choosers, separated by commas: {names}"
            )
        })
    }

    /// Returns whether the chooser `name` measures.
    pub fn measures(self, name: &str) -> bool {
        CHOOSERS.iter().position(|other| *other == name).is_none_or(|at| self.off & (1 << at) == 0)
    }

    /// Returns whether any chooser measures.
    pub fn measures_any(self) -> bool {
        self != Self::OFF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_choosers_are_off() {
        assert_eq!(Tune::parse("on"), Ok(Tune::default()));
        assert_eq!(Tune::parse("off"), Ok(Tune::OFF));
        assert_eq!(Tune::parse(&format!("off:{}", CHOOSERS.join(","))), Ok(Tune::OFF));
        let tune = Tune::parse("off:messages,host").expect("a list");
        let off: Vec<&str> = CHOOSERS.into_iter().filter(|name| !tune.measures(name)).collect();
        assert_eq!(off, ["messages", HOST]);
        assert!(tune.measures_any() && !Tune::OFF.measures_any());
    }

    #[test]
    fn other_values_name_the_choosers() {
        for text in ["", "1", "Off", "off:", "off:copy", "off:copies,", "on:copies", "off: copies"]
        {
            let said = Tune::parse(text).expect_err(text);
            assert!(CHOOSERS.iter().all(|name| said.contains(name)), "{said}");
        }
    }
}
