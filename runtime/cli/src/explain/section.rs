//! `typepack explain --section`: a section of an array in Fortran, as the text of a datatype.
//!
//! `mod.rs` calls [`check`] and [`read`] in place of its own way to read a type. [`datatype`] makes the text. The
//! origin of the type is the first element of the array, and its extent is the size of the array. So the drawing shows
//! the whole array.

use typepack::engine::{Datatype, text};

use super::Options;

/// The largest rank of an array in Fortran.
const RANK_MAX: usize = 15;

/// The types with kinds: the name, the kinds, and the default kind. A kind is the number of bytes of an element, or of
/// one half of a complex number.
const KINDS: [(&str, &[i64], i64); 4] = [
    ("integer", &[1, 2, 4, 8, 16], 4),
    ("real", &[2, 4, 8, 16], 4),
    ("complex", &[2, 4, 8, 16], 4),
    ("logical", &[1, 2, 4, 8, 16], 4),
];

/// The names of kinds in `iso_fortran_env` and `iso_c_binding`, and the kinds.
const NAMED_KINDS: [(&str, i64); 12] = [
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("real32", 4),
    ("real64", 8),
    ("real128", 16),
    ("c_int", 4),
    ("c_float", 4),
    ("c_double", 8),
    ("c_float_complex", 4),
    ("c_double_complex", 8),
];

/// The type of the elements.
struct Element {
    /// The text of the datatype.
    text: String,
    bytes: i64,
}

/// One dimension of the array.
struct Dimension {
    lower: i64,
    /// The number of elements.
    extent: i64,
}

/// The subscripts of the section in one dimension. There are `count` of them, and each is `step` above the one before.
struct Triplet {
    /// The first subscript minus the lower bound.
    first: i64,
    count: i64,
    step: i64,
}

/// Refuses options that `--section` does not go with.
pub fn check(options: &Options) -> Result<(), String> {
    match options.section && options.file.is_some() {
        true => Err("--section: cannot be combined with --file".to_owned()),
        false => Ok(()),
    }
}

/// Returns the datatype that [`datatype`] describes.
pub fn read(section: &str) -> Result<Datatype, String> {
    let made = datatype(section)?;
    text::parse(&made).map_err(|error| format!("--section: {}", error.render(&made)))
}

/// Returns the text of the datatype of `text`: a declaration such as `real(8) a(64,64)`, and a section such as
/// `(1:63:2, 3:40)`. A declaration without a section means the whole array.
///
/// # Errors
///
/// Returns a message of one line. It names the wrong part and says what is allowed.
fn datatype(text: &str) -> Result<String, String> {
    parse(text).map_err(|why| format!("--section: {why}"))
}

fn parse(text: &str) -> Result<String, String> {
    let lower = text.to_lowercase();
    let mut rest = Rest(lower.trim());
    let element = rest.element()?;
    let declared = rest.0.trim_start();
    rest.0 = declared.strip_prefix("::").unwrap_or(declared);
    let name = rest.word();
    if name.is_empty() {
        return Err(format!("expected the name of an array before '{}'", rest.0.trim()));
    }
    let bounds = rest.list()?.ok_or_else(|| {
        format!("the bounds of '{name}' are missing: write them as in '{name}(64, 0:9)'")
    })?;
    let section = rest.list()?;
    if !rest.0.trim().is_empty() {
        return Err(format!("'{}' is left over after the section", rest.0.trim()));
    }
    let dimensions: Vec<Dimension> =
        bounds.iter().map(|part| dimension(part)).collect::<Result<_, _>>()?;
    if dimensions.len() > RANK_MAX {
        let rank = dimensions.len();
        return Err(format!("'{name}' has {rank} dimensions; at most {RANK_MAX} are allowed"));
    }
    let subscripts = section.unwrap_or_else(|| vec![":"; dimensions.len()]);
    if subscripts.len() != dimensions.len() {
        return Err(format!(
            "the section has {} subscripts, but '{name}' has {} dimensions",
            subscripts.len(),
            dimensions.len()
        ));
    }
    let triplets: Vec<Triplet> = subscripts
        .iter()
        .zip(&dimensions)
        .map(|(subscript, dimension)| triplet(subscript, dimension))
        .collect::<Result<_, _>>()?;
    layout(&element, &dimensions, &triplets)
        .ok_or_else(|| format!("'{name}' is larger than 2^63 - 1 bytes"))
}

/// Returns the text of the datatype, or `None` if a number of bytes is too large.
fn layout(element: &Element, dimensions: &[Dimension], triplets: &[Triplet]) -> Option<String> {
    let mut text = element.text.clone();
    // `stride` is the number of bytes between two elements of this dimension. `place` is the position of the section's
    // first element in bytes. `dense` is the size of `text` in bytes if `text` has no gap.
    let (mut stride, mut place, mut dense) = (element.bytes, 0_i64, Some(element.bytes));
    // `vector` counts its stride in extents. So it fits only while `text` is one element; then `step` is a multiple of
    // its size.
    let mut is_element = true;
    for (dimension, part) in dimensions.iter().zip(triplets) {
        let step = stride.checked_mul(part.step)?;
        place = place.checked_add(stride.checked_mul(part.first)?)?;
        if part.count != 1 {
            text = if dense == Some(step) {
                format!("contiguous({}, {text})", part.count)
            } else if is_element {
                format!("vector({}, 1, {}, {text})", part.count, step / element.bytes)
            } else {
                format!("hvector({}, 1, {step}, {text})", part.count)
            };
            dense = dense.filter(|bytes| *bytes == step);
            dense = dense.and_then(|bytes| bytes.checked_mul(part.count));
            is_element = false;
        }
        stride = stride.checked_mul(dimension.extent)?;
    }
    if triplets.iter().any(|part| part.count == 0) {
        return Some(format!("contiguous(0, {})", element.text));
    }
    if place != 0 {
        text = format!("hindexed([1], [{place}], {text})");
    }
    // The type of the whole array has the extent of the array. Every other section needs `resized`.
    Some(if place == 0 && dense == Some(stride) {
        text
    } else {
        format!("resized(0, {stride}, {text})")
    })
}

/// What is left of the text.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Takes a name or a number from the beginning. Returns an empty text if there is none.
    fn word(&mut self) -> &'a str {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        word
    }

    /// Takes a list in parentheses, if there is one.
    fn list(&mut self) -> Result<Option<Vec<&'a str>>, String> {
        let Some(inside) = self.0.trim_start().strip_prefix('(') else { return Ok(None) };
        let Some((inside, rest)) = inside.split_once(')') else {
            return Err(format!("'({inside}' has no ')'"));
        };
        self.0 = rest;
        Ok(Some(inside.split(',').map(str::trim).collect()))
    }

    /// Takes the type of the elements.
    fn element(&mut self) -> Result<Element, String> {
        let name = self.word();
        if name == "double" {
            return match self.word() {
                "precision" => Ok(Element { text: "double_precision".into(), bytes: 8 }),
                "complex" => Ok(Element { text: "double_complex".into(), bytes: 16 }),
                other => Err(format!("'double {other}' is not a type; write 'double precision'")),
            };
        }
        let own = KINDS.iter().find(|(own, ..)| *own == name);
        if own.is_none() && name != "character" {
            return Err(format!(
                "'{name}' is not a type; write integer, real, double precision, complex, logical or character"
            ));
        }
        let given = self.parameter(name)?;
        let Some((_, kinds, default)) = own else {
            let length = given.as_deref().map_or(Ok(1), |given| {
                given.parse().ok().filter(|length| *length > 0_i64).ok_or_else(|| {
                    format!("'{given}' is not a length of characters; it must be a whole number from 1 on")
                })
            })?;
            let one = "character".to_owned();
            let text = if length == 1 { one } else { format!("contiguous({length}, {one})") };
            return Ok(Element { text, bytes: length });
        };
        let kind = given.as_deref().map_or(Some(*default), |given| {
            let named = NAMED_KINDS.iter().find(|(named, _)| *named == given);
            named.map(|(_, kind)| *kind).or_else(|| given.parse().ok())
        });
        let Some(kind) = kind.filter(|kind| kinds.contains(kind)) else {
            let allowed = kinds.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let given = given.unwrap_or_default();
            return Err(format!("'{given}' is not a kind of {name}; the kinds are {allowed}"));
        };
        let bytes = if name == "complex" { 2 * kind } else { kind };
        Ok(Element { text: format!("{name}{bytes}"), bytes })
    }

    /// Takes the kind or the length after the type `name`: `(8)`, `(kind=8)`, `(len=8)` or `*8`. The number after a
    /// star is the size of the element. So `complex*16` has kind 8.
    fn parameter(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(after) = self.0.trim_start().strip_prefix('*') else {
            let Some(list) = self.list()? else { return Ok(None) };
            let [one] = list[..] else {
                return Err(format!("'{name}({})': one number is allowed", list.join(", ")));
            };
            let given = one.split_once('=').map_or(Ok(one), |(word, value)| match word.trim() {
                "kind" if name != "character" => Ok(value.trim()),
                "len" if name == "character" => Ok(value.trim()),
                other => Err(format!("'{name}({other}=…)' is not understood")),
            })?;
            return Ok(Some(given.to_owned()));
        };
        self.0 = after;
        let word = self.word();
        let halved = word.parse::<i64>().ok().filter(|bytes| name == "complex" && bytes % 2 == 0);
        Ok(Some(halved.map_or_else(|| word.to_owned(), |bytes| (bytes / 2).to_string())))
    }
}

fn number(text: &str) -> Result<i64, String> {
    let text = text.trim();
    text.parse().map_err(|_| format!("'{text}' is not a whole number"))
}

/// Reads the bounds of one dimension: `64` or `0:63`.
fn dimension(text: &str) -> Result<Dimension, String> {
    let (lower, upper) = match text.split_once(':') {
        Some((lower, upper)) => (number(lower)?, upper),
        None => (1, text),
    };
    if upper.trim() == "*" || upper.trim().is_empty() {
        return Err(format!("'{text}': the upper bound must be a whole number"));
    }
    let upper = number(upper)?;
    let extent = upper.checked_sub(lower).and_then(|distance| distance.checked_add(1));
    let extent = extent.ok_or_else(|| format!("'{text}' has more than 2^63 - 1 elements"))?;
    Ok(Dimension { lower, extent: extent.max(0) })
}

/// Reads one subscript: `5`, or `first:last:step`. The user may leave out each part: `first` is then the lower bound,
/// `last` the upper bound (also with a negative step, as in Fortran), and `step` is 1.
fn triplet(text: &str, dimension: &Dimension) -> Result<Triplet, String> {
    let Dimension { lower, extent } = *dimension;
    // The sum overflows only for an empty dimension at the least lower bound.
    let upper = lower.saturating_add(extent - 1);
    let outside = |place: i64| {
        format!("'{text}': {place} is outside of the bounds {lower}:{upper} of the array")
    };
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    let place = |part: Option<&str>, otherwise: i64| match part.map(str::trim) {
        None | Some("") => Ok(otherwise),
        Some(part) => number(part),
    };
    let Some(last) = parts.next() else {
        let first = number(first)?;
        if first < lower || first > upper {
            return Err(outside(first));
        }
        return Ok(Triplet { first: first - lower, count: 1, step: 1 });
    };
    let (first, last) = (place(Some(first), lower)?, place(Some(last), upper)?);
    let step = place(parts.next(), 1)?;
    if parts.next().is_some() {
        return Err(format!("'{text}' has too many colons; write first:last:step"));
    }
    if step == 0 {
        return Err(format!("'{text}': the step must not be 0"));
    }
    let (from, to) = (i128::from(first), i128::from(last));
    let count = ((to - from) / i128::from(step) + 1).max(0);
    // The division rounds towards 0, so a short way in the wrong direction counts as 0 steps.
    let is_empty = count == 0 || (step > 0 && last < first) || (step < 0 && last > first);
    if is_empty {
        return Ok(Triplet { first: 0, count: 0, step: 1 });
    }
    if first < lower || first > upper {
        return Err(outside(first));
    }
    let end = from + (count - 1) * i128::from(step);
    let end = i64::try_from(end).ok().filter(|end| (lower..=upper).contains(end));
    if end.is_none() {
        return Err(outside(last));
    }
    let count = i64::try_from(count).map_err(|_| outside(last))?;
    Ok(Triplet { first: first - lower, count, step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_datatypes() {
        for (section, wanted) in [
            (
                "real(8) a(64,64) (1:63:2, 3:40)",
                "resized(0, 32768, hindexed([1], [1024], hvector(38, 1, 512, vector(32, 1, 2, real8))))",
            ),
            ("double precision :: a(4, 5)", "contiguous(5, contiguous(4, double_precision))"),
            ("INTEGER A(10)(3)", "resized(0, 40, hindexed([1], [8], integer4))"),
            (
                "integer(kind=8) a(0:9)(9:0:-1)",
                "resized(0, 80, hindexed([1], [72], vector(10, 1, -1, integer8)))",
            ),
            ("integer a(10)(::-1)", "contiguous(0, integer4)"),
            ("integer a(10)(5:4)", "contiguous(0, integer4)"),
            ("integer a(0)", "contiguous(0, integer4)"),
            (
                "complex*16 a(2,-1:1)(2,:)",
                "resized(0, 96, hindexed([1], [16], vector(3, 1, 2, complex16)))",
            ),
            ("complex(8) a(2)", "contiguous(2, complex16)"),
            (
                "logical(1) a(3,3)(:,2)",
                "resized(0, 9, hindexed([1], [3], contiguous(3, logical1)))",
            ),
            (
                "real(real64) a(2,3,4)(:,:,2:3)",
                "resized(0, 192, hindexed([1], [48], contiguous(2, contiguous(3, contiguous(2, real8)))))",
            ),
            (
                "character(len=5) a(4)(1:3:2)",
                "resized(0, 20, vector(2, 1, 2, contiguous(5, character)))",
            ),
            ("character a(4)", "contiguous(4, character)"),
            (
                "real a(4,4)(2::2, :)",
                "resized(0, 64, hindexed([1], [4], hvector(4, 1, 16, vector(2, 1, 2, real4))))",
            ),
        ] {
            assert_eq!(datatype(section).as_deref(), Ok(wanted), "{section}");
        }
    }

    #[test]
    fn bad_sections_are_refused() {
        for (section, wanted) in [
            (
                "",
                "'' is not a type; write integer, real, double precision, complex, logical or character",
            ),
            ("real(3) a(4)", "'3' is not a kind of real; the kinds are 2, 4, 8, 16"),
            ("complex*9 a(4)", "'9' is not a kind of complex; the kinds are 2, 4, 8, 16"),
            ("double a(4)", "'double a' is not a type; write 'double precision'"),
            ("real", "expected the name of an array before ''"),
            ("real a", "the bounds of 'a' are missing: write them as in 'a(64, 0:9)'"),
            ("real a(4", "'(4' has no ')'"),
            ("real a(*)", "'*': the upper bound must be a whole number"),
            ("real a(n)", "'n' is not a whole number"),
            ("real a(4)(1:2)(3)", "'(3)' is left over after the section"),
            ("real a(4,4)(1)", "the section has 1 subscripts, but 'a' has 2 dimensions"),
            ("real a(4)(0:3)", "'0:3': 0 is outside of the bounds 1:4 of the array"),
            ("real a(4)(2:5)", "'2:5': 5 is outside of the bounds 1:4 of the array"),
            ("real a(4)(5)", "'5': 5 is outside of the bounds 1:4 of the array"),
            ("real a(4)(1:4:0)", "'1:4:0': the step must not be 0"),
            ("real a(4)(1:2:3:4)", "'1:2:3:4' has too many colons; write first:last:step"),
            ("real a(4)([1])", "'[1]' is not a whole number"),
            (
                "character(0) a(4)",
                "'0' is not a length of characters; it must be a whole number from 1 on",
            ),
            ("real a(9223372036854775807, 2)", "'a' is larger than 2^63 - 1 bytes"),
            (
                "real a(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
                "'a' has 16 dimensions; at most 15 are allowed",
            ),
        ] {
            assert_eq!(datatype(section), Err(format!("--section: {wanted}")), "{section}");
        }
        let far = "real a(-9223372036854775808:9223372036854775807)";
        assert!(datatype(far).is_err_and(|why| why.contains("more than 2^63 - 1 elements")));
        let edges =
            "logical(1) a(9223372036854775806:9223372036854775807)(9223372036854775807::-3)";
        assert_eq!(datatype(edges).as_deref(), Ok("resized(0, 2, hindexed([1], [1], logical1))"));
    }
}
