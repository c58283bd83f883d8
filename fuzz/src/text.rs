//! Checks the text form of datatypes, and gives arbitrary text to the parser of that form.
//!
//! The case comes from `generate.rs`. The printed text of a type must parse as a type that agrees with
//! the model and that prints as the same text. The parser must either refuse a mutated text, or return
//! a type whose printed text parses as an equal type.

use crate::check::same_bounds;
use crate::generate::Case;
use crate::stream::Stream;
use typepack_engine::text::{parse, print};
use typepack_engine::{Datatype, typemap};

/// Checks the text of one case, and `mutations` mutated copies of that text. `stream` selects the
/// mutations. Returns the number of mutated texts that parsed as types.
pub fn check(case: &Case, stream: &mut Stream, mutations: u64) -> Result<u64, String> {
    let model = case.bounded()?;
    let ty = case.recipe.build().map_err(|e| format!("constructor refused: {e}"))?;
    let text = print(&ty);
    let back = parse(&text).map_err(|e| format!("{text}\n{e}"))?;
    same_bounds(&back, &model).map_err(|e| format!("{text}\nread back: {e}"))?;
    again(&back, &text)?;
    let mut types = 0;
    for _ in 0..mutations {
        types += u64::from(check_text(&mutate(&text, stream))?);
    }
    Ok(types)
}

/// Checks that the parser handles arbitrary text. Returns true if the text parses as a type.
pub fn check_text(text: &str) -> Result<bool, String> {
    match parse(text) {
        Err(error) => {
            // Formats the error, because formatting must work for the errors of any text.
            if error.to_string().is_empty() {
                Err(format!("the error for {text:?} has no message"))
            } else {
                Ok(false)
            }
        }
        Ok(ty) => {
            let printed = print(&ty);
            let back = parse(&printed).map_err(|e| format!("{text}\nprints {printed}\n{e}"))?;
            let same = (back.size(), back.lb(), back.ub(), back.true_lb(), back.true_ub())
                == (ty.size(), ty.lb(), ty.ub(), ty.true_lb(), ty.true_ub());
            // Compares typemaps only for small types: a mutated count can make a type whose typemap
            // does not fit in memory.
            let small = ty.size() < 1 << 12 && printed.len() < 1 << 9 && few(&ty);
            if !same || small && typemap::typemap(&back) != typemap::typemap(&ty) {
                return Err(format!("{text}\nprints {printed}\nwhich is another type"));
            }
            again(&back, &printed)?;
            Ok(true)
        }
    }
}

/// Returns true if a walk over the typemap is sure to end soon. The size of the type does not show
/// this, because the type may repeat an empty type very often.
fn few(ty: &Datatype) -> bool {
    let text = print(ty);
    !text.split(|c: char| !c.is_ascii_digit()).any(|number| number.len() > 2)
        && text.matches('(').count() < 4
}

fn again(back: &Datatype, text: &str) -> Result<(), String> {
    let printed = print(back);
    if printed == text { Ok(()) } else { Err(format!("{text}\nprints again as {printed}")) }
}

/// Makes one to three changes. Each change replaces a character, removes or repeats a piece, inserts a
/// word, or replaces a piece by a word.
fn mutate(text: &str, stream: &mut Stream) -> String {
    let mut bytes: Vec<u8> = text.bytes().collect();
    let words = [
        "(",
        ")",
        "[",
        "]",
        ",",
        "-",
        "0",
        "1",
        "7",
        "3 x ",
        "0..4",
        "step 2",
        "double",
        "char",
        "lb",
        "=",
        ";",
        "t1",
        "vector(",
        "none",
        "default",
        "*",
        "+",
        "#",
        "\n",
        " ",
        "_",
        "9223372036854775807",
        "\u{e9}",
        "dup(",
    ];
    for _ in 0..=stream.below(3) {
        let at = stream.below(bytes.len() as u64 + 1) as usize;
        let to = (at + stream.below(9) as usize).min(bytes.len());
        match stream.below(5) {
            0 => drop(bytes.drain(at..to)),
            1 => {
                let part = bytes[at..to].to_vec();
                bytes.splice(at..at, part);
            }
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = b' ' + stream.below(95) as u8;
                }
            }
            kind => {
                let word = words[stream.below(words.len() as u64) as usize];
                let end = if kind == 3 { at } else { to };
                bytes.splice(at..end, word.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
