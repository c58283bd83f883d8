//! Refuses compiler options that change the kind of INTEGER or REAL.
//!
//! The library has the default kinds: with another kind, a program would pass numbers of the wrong width. Each compiler
//! has its own options for this.

use std::ffi::OsString;

/// The beginnings of options that change a kind: of gfortran and flang, of Intel's, NVIDIA's and NAG's compilers, of
/// IBM's, and of Cray's.
const BEGINNINGS: [&str; 18] = [
    "-fdefault-integer-",
    "-fdefault-real-",
    "-fdefault-double-",
    "-finteger-4-integer-",
    "-freal-",
    "-i2",
    "-i8",
    "-r8",
    "-r16",
    "-autodouble",
    "-Mi8",
    "-Mr8",
    "-qautodbl",
    "-qintsize",
    "-qrealsize",
    "-sdefault64",
    "-sinteger64",
    "-sreal64",
];

/// Options with a value, which follows `=`, a blank or nothing, and the value that changes no kind.
const WITH_VALUE: [(&str, &str); 3] =
    [("-integer-size", "32"), ("-real-size", "32"), ("-double-size", "64")];

/// The values of Cray's option `-s`. Other compilers have an option `-s` without a value.
const CRAYS: [&str; 3] = ["default64", "integer64", "real64"];

/// Refuses options that change the kind of INTEGER or REAL.
///
/// # Errors
///
/// Returns a one-line message about the first such option.
pub fn refuse(arguments: &[OsString]) -> Result<(), String> {
    let text = |argument: Option<&OsString>| {
        argument.and_then(|word| word.to_str()).unwrap_or_default().to_owned()
    };
    for at in 0..arguments.len() {
        let (option, next) = (text(arguments.get(at)), text(arguments.get(at + 1)));
        // flang takes two dashes, too.
        let plain = if option.starts_with("--") { &option[1..] } else { &*option };
        let shown = if plain == "-double"
            || BEGINNINGS.iter().any(|beginning| plain.starts_with(beginning))
        {
            option
        } else if let Some((value, apart)) = value(plain, &next) {
            if value {
                continue;
            }
            if apart { format!("{option} {next}") } else { option }
        } else if plain == "-s" && CRAYS.contains(&&*next) {
            format!("{option} {next}")
        } else {
            continue;
        };
        return Err(format!(
            "{shown}: the MPI library has the default kinds of INTEGER and REAL; declare the kinds in the program"
        ));
    }
    Ok(())
}

/// Looks for an option with a value. Returns whether the value changes no kind, and whether it is the next word.
fn value(option: &str, next: &str) -> Option<(bool, bool)> {
    WITH_VALUE.iter().find_map(|(name, harmless)| {
        let rest = option.strip_prefix(name)?;
        match rest.strip_prefix('=').unwrap_or(rest) {
            "" => Some((next == *harmless, true)),
            value => Some((value == *harmless, false)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> Result<(), String> {
        refuse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_that_change_kinds_are_refused() {
        for option in [
            "-fdefault-integer-8",
            "-fdefault-real-8",
            "-freal-4-real-8",
            "-i8",
            "-integer-size 64",
            "-integer-size=16",
            "-real-size 64",
            "-real-size128",
            "-double-size=128",
            "-autodouble",
            "-Mr8",
            "-Mr8intrinsics",
            "-Mi8",
            "-double",
            "-s default64",
            "-qintsize=8",
        ] {
            let error = answer(&format!("-O2 {option} -c a.f90")).expect_err(option);
            assert!(error.starts_with(&format!("{option}: ")), "{error}");
        }
        for line in [
            "-O2 -fdefault-x -ffree-form",
            "-integer-size 32 -real-size=32 -double-size 64",
            "-s a.o -o integer64",
            "-i4 -r4 -Minline",
            "",
        ] {
            assert_eq!(answer(line), Ok(()), "{line}");
        }
    }
}
