//! The `TYPEPACK_*` variables that this library reads, once per process. The names are those of the runtime
//! (`runtime/src/settings.rs`), which this library does not contain.

use std::sync::{Arc, OnceLock};
use std::time::Duration;
use typepack_engine::choice::{HOST, Tune};
use typepack_engine::{Settings as EngineSettings, Strategy};
use typepack_jit::Jit;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// True if the library takes part (`TYPEPACK_INTERPOSE`).
    pub on: bool,
    /// The table at the end of the job (`TYPEPACK_REPORT`).
    pub report: bool,
    /// True if the user says that all ranks of the job are interposed (`TYPEPACK_INTERPOSE=all`).
    pub all: bool,
    /// True if the library measures which way is faster (`TYPEPACK_TUNE`; the chooser is `host`).
    pub tune: bool,
    /// True if the library prints no line (`TYPEPACK_QUIET`).
    pub quiet: bool,
    /// How long a call waits for other ranks before one line says so (`TYPEPACK_WATCHDOG`); `None` without end.
    pub watchdog: Option<Duration>,
    /// Which variable has a value that is not allowed. Then the library does not take part.
    pub wrong: Option<String>,
    jit: typepack_jit::Settings,
    verify: bool,
    strategy: Option<Strategy>,
}

/// How long a call waits for other ranks before one line says so, if `TYPEPACK_WATCHDOG` is not set.
const WATCHDOG: Duration = Duration::from_secs(10);

/// Reads the variables with `read`.
///
/// # Errors
/// Returns a text that names the variable, its value and the allowed values.
fn from(read: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
    let word = |name: &str, allowed: &[&str]| match read(name) {
        None => Ok(0),
        Some(value) => allowed
            .iter()
            .position(|&word| word == value)
            .ok_or_else(|| format!("{name}: \"{value}\" is not one of {}", allowed.join(", "))),
    };
    let interpose = word("TYPEPACK_INTERPOSE", &["on", "off", "all"])?;
    let mut jit = typepack_jit::Settings::default();
    if let Some(mode) = read("TYPEPACK_JIT") {
        jit.mode = mode.parse().map_err(|error| format!("TYPEPACK_JIT: {error}"))?;
    }
    let watchdog = match read("TYPEPACK_WATCHDOG") {
        None => Some(WATCHDOG),
        Some(value) => match value.parse::<u32>() {
            Ok(0) => None,
            Ok(seconds) => Some(Duration::from_secs(seconds.into())),
            Err(_) => {
                return Err(format!("TYPEPACK_WATCHDOG: \"{value}\" is not a number of seconds"));
            }
        },
    };
    let strategies =
        [None, Some(Strategy::Leaf), Some(Strategy::Kernel), Some(Strategy::Interpreter)];
    Ok(Settings {
        on: interpose != 1,
        all: interpose == 2,
        tune: match read("TYPEPACK_TUNE") {
            None => true,
            Some(value) => Tune::parse(&value)
                .map_err(|wanted| format!("TYPEPACK_TUNE: \"{value}\" is not {wanted}"))?
                .measures(HOST),
        },
        report: word("TYPEPACK_REPORT", &["0", "1", "types"])? != 0,
        quiet: read("TYPEPACK_QUIET").is_some_and(|value| value == "1"),
        watchdog,
        wrong: None,
        verify: word("TYPEPACK_VERIFY", &["0", "1"])? == 1,
        strategy: strategies[word("TYPEPACK_KERNEL", &["auto", "leaf", "kernel", "interpreter"])?],
        jit,
    })
}

/// Returns the settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let value = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
        let is = |name: &str, word: &str| value(name).is_some_and(|value| value == word);
        from(value).unwrap_or_else(|error| Settings {
            on: false,
            report: false,
            // The other ranks wait for this one if all are said to have the library.
            all: is("TYPEPACK_INTERPOSE", "all"),
            tune: true,
            quiet: is("TYPEPACK_QUIET", "1"),
            watchdog: Some(WATCHDOG),
            wrong: Some(error),
            jit: typepack_jit::Settings::default(),
            verify: false,
            strategy: None,
        })
    })
}

/// Returns the code generator of this process.
pub fn jit() -> &'static Jit {
    static JIT: OnceLock<Jit> = OnceLock::new();
    JIT.get_or_init(|| Jit::new(settings().jit.clone()))
}

/// Returns the settings with which datatypes are committed.
pub fn engine() -> &'static EngineSettings {
    static ENGINE: OnceLock<EngineSettings> = OnceLock::new();
    ENGINE.get_or_init(|| EngineSettings {
        compiler: Some(Arc::new(jit().clone())),
        verify: settings().verify,
        strategy: settings().strategy,
        ..EngineSettings::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_defaults_and_wrong_values_are_named() {
        let read = |pairs: &'static [(&str, &str)]| {
            from(|name| {
                pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let plain = read(&[]).unwrap();
        assert!(plain.on && !plain.report && !plain.all && plain.tune && !plain.verify);
        assert!(!read(&[("TYPEPACK_INTERPOSE", "off")]).unwrap().on);
        let all = read(&[("TYPEPACK_INTERPOSE", "all"), ("TYPEPACK_REPORT", "1")]).unwrap();
        assert!(all.on && all.all && all.report);
        assert!(!read(&[("TYPEPACK_TUNE", "off")]).unwrap().tune);
        assert!(!read(&[("TYPEPACK_TUNE", "off:copies,host")]).unwrap().tune);
        assert!(read(&[("TYPEPACK_TUNE", "off:messages")]).unwrap().tune);
        let error = read(&[("TYPEPACK_TUNE", "off:hosts")]).unwrap_err();
        assert!(
            error.starts_with("TYPEPACK_TUNE: \"off:hosts\" is not on, off, or off:LIST"),
            "{error}"
        );
        assert_eq!(all.watchdog, Some(WATCHDOG));
        assert_eq!(read(&[("TYPEPACK_WATCHDOG", "0")]).unwrap().watchdog, None);
        let error = read(&[("TYPEPACK_WATCHDOG", "soon")]).unwrap_err();
        assert_eq!(error, "TYPEPACK_WATCHDOG: \"soon\" is not a number of seconds");
        let error = read(&[("TYPEPACK_INTERPOSE", "yes")]).unwrap_err();
        assert_eq!(error, "TYPEPACK_INTERPOSE: \"yes\" is not one of on, off, all");
        assert!(read(&[("TYPEPACK_JIT", "fast")]).unwrap_err().starts_with("TYPEPACK_JIT: "));
    }
}
