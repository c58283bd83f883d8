//! Splits text at a byte. The texts are arguments of the command and answers of other programs.

use memchr::{memchr, memchr_iter};

/// Splits `text` at the first `byte`, which must be an ASCII character. Returns the texts before and after
/// this byte; `None` if `text` does not contain the byte.
pub fn once(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = memchr(byte, text.as_bytes())?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Splits `list` at every comma. Returns the texts between the commas.
pub fn commas(list: &str) -> impl Iterator<Item = &str> {
    let commas = memchr_iter(b',', list.as_bytes()).chain([list.len()]);
    let mut start = 0;
    commas.map(move |end| &list[std::mem::replace(&mut start, end + 1)..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_divided_as_the_standard_library_divides_them() {
        for text in ["", "=", "a", "a=", "=b", "a=b=c", "ä=ö", ","] {
            assert_eq!(once(text, b'='), text.split_once('='), "{text:?}");
        }
        for text in ["", ",", "a", "a,", ",b", "a,b,,c", "ä,ö"] {
            assert!(commas(text).eq(text.split(',')), "{text:?}");
        }
    }
}
