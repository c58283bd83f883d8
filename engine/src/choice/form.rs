//! Keys: what a choice depends on, in words and as a number.
//!
//! A user of choosers describes its keys and its ways once, as a [`Form`]: the words of each field, the size classes
//! and the ways. All else follows from the form: the number of a key, its line in a tune file, and its description for
//! people.

use std::cmp::Ordering;
use std::fmt;

/// A value of a field, or a way: the word in a tune file, and the words for people.
pub type Word = (&'static str, &'static str);

/// Size classes. Class `n` begins at `first << (step * n)` bytes; the first class also has all shorter jobs, and the
/// last one all longer jobs.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The first length of the first class, in bytes: a power of two.
    pub first: u64,
    /// Each class begins at 2 to the power of `step` times the first length of the class before it.
    pub step: u32,
    /// Number of classes.
    pub count: usize,
}

impl Sizes {
    /// Returns the class of a job of `bytes` bytes.
    #[inline]
    pub const fn class(&self, bytes: u64) -> usize {
        if bytes <= self.first {
            return 0;
        }
        let class = ((bytes.ilog2() - self.first.ilog2()) / self.step) as usize;
        if class < self.count { class } else { self.count - 1 }
    }

    /// Returns the first length of a class, in bytes.
    pub const fn least(&self, class: usize) -> u64 {
        self.first << (self.step * class as u32)
    }
}

/// What the choices of one kind depend on, and among which ways they choose.
#[derive(Debug)]
pub struct Form {
    /// The first word of the lines in a tune file. No two forms have the same.
    pub name: &'static str,
    /// The first words for people.
    pub title: &'static str,
    /// The fields of a key, each with the words of its values. For people, they follow the title without blanks.
    pub fields: &'static [&'static [Word]],
    /// The size classes.
    pub sizes: Sizes,
    /// All ways. A single call may have fewer candidates.
    pub ways: &'static [Word],
}

impl Form {
    /// Returns the number of keys.
    pub fn keys(&self) -> usize {
        self.fields.iter().map(|words| words.len()).product::<usize>() * self.sizes.count
    }

    /// Returns the key with these values of the fields, for jobs of `bytes` bytes.
    #[inline]
    pub fn key<const N: usize>(&'static self, values: [usize; N], bytes: u64) -> Key {
        let digits = values.iter().zip(self.fields);
        let row = digits.fold(0, |row, (value, words)| row * words.len() + value);
        Key { form: self, number: row * self.sizes.count + self.sizes.class(bytes) }
    }
}

/// What one choice depends on: the value of each field of a form, and a size class.
#[derive(Clone, Copy)]
pub struct Key {
    form: &'static Form,
    number: usize,
}

impl Key {
    /// Returns the form of the key.
    pub fn form(self) -> &'static Form {
        self.form
    }

    /// Returns the number of the key, less than [`Form::keys`].
    #[inline]
    pub fn number(self) -> usize {
        self.number
    }

    /// Returns the first length of the size class, in bytes.
    pub fn bytes(self) -> u64 {
        self.form.sizes.least(self.number % self.form.sizes.count)
    }

    /// Returns the keys with the same values and other size classes, the nearest first.
    pub fn neighbours(self) -> impl Iterator<Item = Self> {
        let Self { form, number } = self;
        let first = number - number % form.sizes.count;
        let row = first..first + form.sizes.count;
        (1..form.sizes.count)
            .flat_map(move |far| [number.checked_sub(far), Some(number + far)])
            .flatten()
            .filter(move |number| row.contains(number))
            .map(move |number| Self { form, number })
    }

    /// Returns the values of the fields.
    fn values(self) -> Vec<usize> {
        let mut rest = self.number / self.form.sizes.count;
        let mut values: Vec<usize> = Vec::new();
        for words in self.form.fields.iter().rev() {
            values.push(rest % words.len());
            rest /= words.len();
        }
        values.reverse();
        values
    }

    fn words(self) -> impl Iterator<Item = Word> {
        self.form.fields.iter().zip(self.values()).map(|(words, value)| words[value])
    }

    /// Returns a description without the number of bytes, for people.
    pub fn kind(self) -> String {
        let words = self.words().map(|(_, words)| words);
        [self.form.title].into_iter().chain(words).collect()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.form.name, self.number).cmp(&(other.form.name, other.number))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} KiB, {}", self.bytes() as f64 / 1024.0, self.kind())
    }
}

/// The best way of the jobs with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The key.
    pub key: Key,
    /// The number of the way in [`Form::ways`].
    pub way: u8,
}

impl Remembered {
    fn word(&self) -> Word {
        self.key.form.ways.get(usize::from(self.way)).copied().unwrap_or_default()
    }

    /// Returns the line of a tune file: the name of the form, the words of the fields, the number of bytes, and the
    /// way.
    pub fn line(&self) -> String {
        let mut line = self.key.form.name.to_owned();
        for (word, _) in self.key.words() {
            line.push(' ');
            line += word;
        }
        format!("{line} {} {}", self.key.bytes(), self.word().0)
    }

    /// Reads a line of a tune file. Returns `None` if it is not a line about a key of `forms`.
    pub fn parse(forms: &[&'static Form], line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let name = words.next()?;
        let form = *forms.iter().find(|form| form.name == name)?;
        let mut row = 0;
        for values in form.fields {
            let word = words.next()?;
            row = row * values.len() + values.iter().position(|(value, _)| *value == word)?;
        }
        let bytes: u64 = words.next()?.parse().ok()?;
        let class = (0..form.sizes.count).find(|class| form.sizes.least(*class) == bytes)?;
        let way = words.next()?;
        let way = form.ways.iter().position(|(word, _)| *word == way)? as u8;
        let key = Key { form, number: row * form.sizes.count + class };
        words.next().is_none().then_some(Self { key, way })
    }
}

/// Says for people what was remembered.
impl fmt::Display for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.word().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static FORM: Form = Form {
        name: "jobs",
        title: "jobs",
        fields: &[
            &[("near", ""), ("far", ", far")],
            &[("own", " in own memory"), ("shared", " in a heap"), ("file", " in a file")],
        ],
        sizes: Sizes { first: 512, step: 2, count: 4 },
        ways: &[("a", "a"), ("b-c", "b, c")],
    };
    static OTHER: Form = Form { name: "other", ..FORM };

    #[test]
    fn classes_begin_where_they_say() {
        let Form { sizes, .. } = FORM;
        for class in 0..sizes.count {
            assert_eq!(sizes.class(sizes.least(class)), class);
            assert!(class == 0 || sizes.class(sizes.least(class) - 1) == class - 1);
        }
        assert_eq!([0, u64::MAX].map(|bytes| sizes.class(bytes)), [0, sizes.count - 1]);
    }

    #[test]
    fn every_key_has_a_number_and_a_line() {
        let mut number = 0;
        for distance in 0..2 {
            for memory in 0..3 {
                for class in 0..FORM.sizes.count {
                    let key = FORM.key([distance, memory], FORM.sizes.least(class));
                    assert_eq!((key.number(), key.values()), (number, vec![distance, memory]));
                    number += 1;
                    for way in 0..2 {
                        let remembered = Remembered { key, way };
                        let found = Remembered::parse(&[&OTHER, &FORM], &remembered.line());
                        assert_eq!(found, Some(remembered), "{remembered}");
                    }
                }
            }
        }
        assert_eq!(number, FORM.keys());
        let remembered = Remembered { key: FORM.key([1, 2], 512), way: 1 };
        assert_eq!(remembered.line(), "jobs far file 512 b-c");
        assert_eq!(remembered.to_string(), "from 0.5 KiB, jobs, far in a file: b, c");
        assert_ne!(remembered.key, OTHER.key([1, 2], 512));
    }

    #[test]
    fn neighbours_differ_in_the_size_class_only() {
        let key = FORM.key([1, 0], 2048);
        let numbers: Vec<usize> = key.neighbours().map(|other| other.number()).collect();
        let at = key.number();
        assert_eq!(numbers, [at - 1, at + 1, at + 2]);
        assert!(key.neighbours().all(|other| other.kind() == key.kind()));
    }

    #[test]
    fn other_lines_are_no_lines() {
        let good = "jobs far own 2048 b-c";
        assert!(Remembered::parse(&[&FORM], good).is_some());
        for (old, new) in [
            ("jobs", "Jobs"),
            ("jobs", "other"),
            ("far", "farther"),
            ("far ", ""),
            ("own", "heap"),
            ("2048", "2049"),
            ("2048", "-1"),
            ("2048", "99999999999999999999"),
            ("b-c", "b"),
            (" b-c", ""),
            ("b-c", "b-c more"),
            ("b-c", "b-c "),
        ] {
            let damaged = good.replacen(old, new, 1);
            assert_ne!(damaged, good);
            assert_eq!(Remembered::parse(&[&FORM], &damaged), None, "{damaged}");
        }
    }
}
