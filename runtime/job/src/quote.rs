//! Words for a shell.
//!
//! The compiler wrappers print command lines, and `typepack doctor` prints cures, which a user or a build system gives to
//! a shell.

use std::ffi::OsStr;

/// Quotes a word for a shell, if necessary.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let text = word.as_ref().to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,=:@%^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;
    use std::process::Command;

    #[test]
    fn a_shell_reads_the_word_back() {
        for word in ["", "plain/path", "a b", "it's", "$HOME`id`\\", "*", "~/x", "a\nb"] {
            let line = format!("printf %s {}", quoted(word));
            let output = Command::new("sh").arg("-c").arg(&line).output().unwrap();
            assert_eq!(output.stdout, word.as_bytes(), "{line}");
        }
        assert_eq!(quoted("/opt/typepack/bin"), "/opt/typepack/bin");
    }
}
