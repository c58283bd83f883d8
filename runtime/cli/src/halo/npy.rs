//! Reads .npy files of doubles, a file format of NumPy. Checks every byte of the header.
//!
//! The functions here read versions 1, 2 and 3 of the format, with `<f8` values in C or Fortran order. The
//! header is a Python dictionary literal of three entries. Inside the dictionary, the parser accepts only the
//! three kinds of literals that such a header contains: strings, booleans, and tuples of whole numbers. It
//! accepts the entries in any order and with any spacing.
//!
//! A size in the header is not trusted: `initial.rs` compares it with the real length of the file before it
//! allocates memory for the values. Every error text is one clause.

/// The first bytes of a .npy file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The size, in bytes, of the largest header that the parser accepts. NumPy has the same limit by default.
const HEADER_MAX: usize = 10_000;

/// A parsed header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The extent of each dimension.
    pub shape: Vec<usize>,
    /// True if the first index varies fastest in the file (Fortran order); false if the last one does (C
    /// order).
    pub fortran: bool,
    /// The offset of the values from the beginning of the file, in bytes.
    pub data: usize,
}

/// Parses the header. `file` contains at least the header at the beginning of the file, and may contain any
/// number of bytes after it.
pub fn header(file: &[u8]) -> Result<Header, String> {
    if file.len() < 10 || !file.starts_with(MAGIC) {
        return Err("not a .npy file".into());
    }
    let (len, start) = match file[6] {
        1 => (usize::from(u16::from_le_bytes([file[8], file[9]])), 10),
        2 | 3 => {
            let word: [u8; 4] =
                file[8..].first_chunk().copied().ok_or("the file ends inside its .npy header")?;
            (u32::from_le_bytes(word) as usize, 12)
        }
        version => return Err(format!("the .npy version is {version}; it must be 1, 2 or 3")),
    };
    if len > HEADER_MAX {
        return Err(format!("the .npy header has {len} bytes; it may have at most {HEADER_MAX}"));
    }
    let text = file.get(start..start + len).ok_or("the file ends inside its .npy header")?;
    let text = std::str::from_utf8(text).map_err(|_| "the .npy header is not text")?;
    let mut parser = Parser { rest: text };
    let (descr, fortran, shape) =
        parser.dictionary().map_err(|what| format!("bad .npy header: {what}"))?;
    if descr != "<f8" {
        let descr: String = descr.chars().take(20).collect();
        return Err(format!("the values have type '{descr}'; the type must be '<f8'"));
    }
    Ok(Header { shape, fortran, data: start + len })
}

struct Parser<'a> {
    rest: &'a str,
}

type Entries = (String, bool, Vec<usize>);

impl<'a> Parser<'a> {
    fn dictionary(&mut self) -> Result<Entries, String> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            let known = match key {
                "descr" => descr.replace(self.string()?.to_owned()).is_none(),
                "fortran_order" => fortran.replace(self.boolean()?).is_none(),
                "shape" => shape.replace(self.tuple()?).is_none(),
                key => {
                    let key: String = key.chars().take(20).collect();
                    return Err(format!("unknown key '{key}'"));
                }
            };
            if !known {
                return Err(format!("key '{key}' appears twice"));
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim_start().is_empty() {
            let rest: String = self.rest.trim().chars().take(20).collect();
            return Err(format!("'{rest}' follows the dictionary; only white space may follow it"));
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Ok((descr, fortran, shape)),
            _ => {
                Err("at least one of the keys 'descr', 'fortran_order' and 'shape' is missing"
                    .into())
            }
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let trimmed = self.rest.trim_start();
        match trimmed.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(format!("'{wanted}' is missing")) }
    }

    /// Parses a quoted string. The strings of a valid header have no escape sequences, so the parser treats a
    /// backslash as an ordinary character.
    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.take('\'') {
            b'\''
        } else if self.take('"') {
            b'"'
        } else {
            return Err("a string is missing".into());
        };
        let end = memchr::memchr(quote, self.rest.as_bytes()).ok_or("a string does not end")?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        let trimmed = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = trimmed.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("True or False is missing".into())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut values = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            let trimmed = self.rest.trim_start();
            let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = trimmed.split_at(digits);
            values.push(number.parse().map_err(|_| "the shape must be a tuple of whole numbers")?);
            self.rest = rest;
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(values)
    }
}

/// Returns the values in C order. `bytes` has the values after the header, in the order that the header
/// states.
///
/// The caller passes as many doubles as the product of the extents in `header.shape`.
pub fn values(header: &Header, bytes: &[u8]) -> Vec<f64> {
    let double = |chunk: &[u8; 8]| f64::from_le_bytes(*chunk);
    let (words, _) = bytes.as_chunks::<8>();
    if !header.fortran {
        return words.iter().map(double).collect();
    }
    // The loop below visits the values in C order. In C order the last index varies fastest, so the loop
    // increments the last index first.
    let mut strides = vec![1; header.shape.len()];
    for d in 1..strides.len() {
        strides[d] = strides[d - 1] * header.shape[d - 1];
    }
    let mut index = vec![0; header.shape.len()];
    let mut position = 0;
    (0..words.len())
        .map(|_| {
            let value = double(&words[position]);
            for d in (0..index.len()).rev() {
                index[d] += 1;
                position += strides[d];
                if index[d] < header.shape[d] {
                    break;
                }
                position -= strides[d] * header.shape[d];
                index[d] = 0;
            }
            value
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, dictionary: &str) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([version, 0]);
        let len = dictionary.len();
        if version == 1 {
            file.extend(u16::try_from(len).expect("a short header").to_le_bytes());
        } else {
            file.extend(u32::try_from(len).expect("a short header").to_le_bytes());
        }
        file.extend(dictionary.as_bytes());
        file
    }

    const GOOD: &str = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }    \n";

    #[test]
    fn all_three_versions_are_read() {
        for (version, data) in [(1, 10), (2, 12), (3, 12)] {
            let header = header(&file(version, GOOD)).expect("a good header");
            assert_eq!(header.shape, [2, 3, 4]);
            assert!(!header.fortran);
            assert_eq!(header.data, data + GOOD.len());
        }
    }

    #[test]
    fn spacing_order_and_quotes_are_free() {
        let text = "{\"shape\":(5,),\"fortran_order\" : True,'descr':'<f8'}";
        let header = header(&file(1, text)).expect("a good header");
        assert_eq!((header.shape, header.fortran), (vec![5], true));
    }

    #[test]
    fn hostile_headers_are_refused_in_one_clause() {
        let long = format!("{{'descr': '<f8', {}", " ".repeat(20_000));
        let cases: &[(&str, &str)] = &[
            ("", "'{' is missing"),
            ("{", "a string is missing"),
            ("{'descr", "a string does not end"),
            ("{'descr': '<f8'}", "is missing"),
            ("{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,)}", "True or False"),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': (-1,)}", "whole numbers"),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': (1 2)}", "')' is missing"),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': ((1,),)}", "whole numbers"),
            (
                "{'descr': '<f8', 'fortran_order': True, 'shape': (99999999999999999999,)}",
                "whole numbers",
            ),
            ("{'descr': '<f8', 'descr': '<f8', 'shape': (1,)}", "'descr' appears twice"),
            ("{'evil': '<f8'}", "unknown key 'evil'"),
            ("{'descr': '>f8', 'fortran_order': True, 'shape': (1,)}", "'>f8'"),
            (
                "{'descr': '<f8', 'fortran_order': True, 'shape': (1,)} x",
                "'x' follows the dictionary",
            ),
            ("{'descr': [('a', '<f8')], 'fortran_order': True, 'shape': (1,)}", "a string"),
            (&long, "at most 10000"),
        ];
        for (text, wanted) in cases {
            let error = header(&file(2, text)).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn every_cut_off_file_is_refused() {
        for version in 1..=3 {
            let file = file(version, GOOD);
            for len in 0..file.len() {
                header(&file[..len]).expect_err("a header that is cut off");
            }
        }
        let error = header(b"\x93NUMPY\x07\x00\x00\x00\x00\x00").expect_err("version 7");
        assert!(error.contains("version is 7"));
        header(b"\x93NUMPY\x01\x00\x02\x00\xff\xfe").expect_err("not text");
    }

    #[test]
    fn fortran_order_is_turned_into_c_order() {
        let shape = [2, 3, 4];
        let mut bytes = vec![0; 24 * 8];
        for (a, b, c) in (0..24).map(|i| (i / 12, i / 4 % 3, i % 4)) {
            let position = a + 2 * (b + 3 * c);
            let value = (a * 100 + b * 10 + c) as f64;
            bytes[position * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let header = Header { shape: shape.to_vec(), fortran: true, data: 0 };
        let wanted: Vec<f64> =
            (0..24).map(|i| (i / 12 * 100 + i / 4 % 3 * 10 + i % 4) as f64).collect();
        assert_eq!(values(&header, &bytes), wanted);
    }
}
