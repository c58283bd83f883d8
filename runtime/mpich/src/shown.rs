//! Error texts. The C library prints the values that it has got, and the program has given others.

use crate::arguments::ARGUMENTS;
use crate::number::{Kind, strange};
use std::ffi::{c_char, c_int};

/// Returns how an argument of a function is converted. The rows without a function are for all others.
fn kind(function: &str, argument: &str) -> Kind {
    let find = |function: &str| {
        ARGUMENTS.iter().find(|(name, other, _)| *name == function && *other == argument)
    };
    find(function).or_else(|| find("")).map_or(Kind::Same, |(_, _, kind)| *kind)
}

/// Returns a text with the program's values. It begins with the name of an argument, if it is about one.
pub fn text(function: &str, text: &str) -> String {
    let argument = text.split_once(':').map_or("", |(argument, _)| argument);
    let mut kind = kind(function, argument);
    // Only such arguments have numbers that stand for others.
    let mut is_converted = !matches!(kind, Kind::Same) || ["disp", "errorcode"].contains(&argument);
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, ' ');
    while let Some(first) = rest.chars().next() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        if let (Kind::Bits(_), Some(digits)) = (kind, rest.strip_prefix("0x"))
            && !is_word(before)
        {
            let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
            if let Ok(bits) = u32::from_str_radix(&digits[..length], 16) {
                out += &format!("{:#x}", kind.to_theirs(bits.cast_signed()));
                (kind, is_converted) = (Kind::Same, false);
                (rest, before) = (&digits[length..], '0');
                continue;
            }
        }
        let sign = usize::from(first == '-');
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(sign + digits);
        let ends = !after.starts_with(is_word) || after == "." || after.starts_with(". ");
        if digits > 0
            && ends
            && !is_word(before)
            && let Ok(value) = number.parse::<c_int>()
        {
            let stands_for = if is_converted { strange(value) } else { None };
            out += &stands_for.unwrap_or_else(|| kind.to_theirs(value)).to_string();
            // The first number is the argument's. Others in the text are counts and the like.
            (kind, is_converted) = (Kind::Same, false);
            (rest, before) = (after, '0');
        } else {
            out.push(first);
            (rest, before) = (&rest[first.len_utf8()..], first);
        }
    }
    out
}

/// Writes a text with the program's values to `to`, as much as has room there, and returns its length.
///
/// # Safety
///
/// - `function` and `from` are the addresses of texts of these lengths, and `to` has room for `room` bytes.
pub unsafe extern "C" fn convert(
    function: *const c_char,
    function_length: usize,
    from: *const c_char,
    from_length: usize,
    to: *mut c_char,
    room: usize,
) -> usize {
    // SAFETY: the addresses are those of so many bytes (`# Safety`).
    let (function, from) = unsafe {
        let function = std::slice::from_raw_parts(function.cast::<u8>(), function_length);
        (function, std::slice::from_raw_parts(from.cast::<u8>(), from_length))
    };
    let shown = text(&String::from_utf8_lossy(function), &String::from_utf8_lossy(from));
    let length = shown.floor_char_boundary(room);
    // SAFETY: there is room for so many bytes (`# Safety`).
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(shown.as_ptr(), length) };
    length
}
