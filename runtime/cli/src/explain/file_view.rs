//! `typepack explain --file-view`: where the bytes of several ranks lie in a file.
//!
//! The type and the displacement may have a list in braces, such as `{0|3}`: one alternative for each rank. So
//! one text stands for the filetypes of all ranks. `mod.rs` parses the filetype of each rank like any other type.

use typepack_explain::FileRanks;

use super::options::Options;

/// Checks that the options about file views may be combined with the other options.
pub fn check(options: &Options) -> Result<(), String> {
    match (options.file_view, &options.displacement) {
        (false, Some(_)) => Err("--displacement: needs --file-view".to_owned()),
        (true, _) if options.clif || options.asm => {
            Err("--file-view: cannot be combined with --clif or --asm".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the number of alternatives in the lists of `text`, or `None` if there is no list.
fn ranks(argument: &str, text: &str) -> Result<Option<usize>, String> {
    let mut found = None;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((list, after)) = after.split_once('}') else {
            return Err(format!("{argument}: '{{' has no '}}' in '{text}'"));
        };
        let count = list.split('|').count();
        if *found.get_or_insert(count) != count {
            return Err(format!(
                "{argument}: '{{{list}}}' has {count} alternatives; the list before it has {}",
                found.unwrap_or(0)
            ));
        }
        rest = after;
    }
    Ok(found)
}

/// Returns `text` with the alternative of `rank` in place of each list.
fn chosen(text: &str, rank: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, list, after)) = rest.split_once('{').and_then(|(before, after)| {
        let (list, after) = after.split_once('}')?;
        Some((before, list, after))
    }) {
        out.push_str(before);
        out.push_str(list.split('|').nth(rank).unwrap_or_default().trim());
        rest = after;
    }
    out + rest
}

/// Returns the displacement and the text of the filetype of each rank.
pub fn views(options: &Options) -> Result<Vec<(u64, String)>, String> {
    let displacement = options.displacement.as_deref().unwrap_or("0");
    let count = match (ranks("TYPE", &options.ty)?, ranks("--displacement", displacement)?) {
        (Some(types), Some(displacements)) if types != displacements => {
            return Err(format!(
                "--displacement: the list has {displacements} alternatives; the lists of the type have \
                 {types}"
            ));
        }
        (types, displacements) => types.or(displacements).unwrap_or(1),
    };
    if count > FileRanks::MOST {
        return Err(format!(
            "TYPE: {count} ranks are too many; a drawing shows at most {}",
            FileRanks::MOST
        ));
    }
    let view = |rank| {
        let text = chosen(displacement, rank);
        let place = text.parse::<u64>().ok().filter(|&place| place <= i64::MAX as u64);
        let place = place.ok_or_else(|| {
            format!(
                "--displacement: '{text}' is not a position in a file; it must be a whole number from 0 to \
                 2^63 - 1"
            )
        })?;
        Ok((place, chosen(&options.ty, rank)))
    };
    (0..count).map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_gets_its_alternative() {
        let text = "subarray([4, 6], [2, 3], [{0|0|2|2}, { 0 | 3 | 0 | 3 }], C, double)";
        assert_eq!(ranks("TYPE", text), Ok(Some(4)));
        assert_eq!(chosen(text, 2), "subarray([4, 6], [2, 3], [2, 0], C, double)");
        assert_eq!(ranks("TYPE", "int"), Ok(None));
        assert_eq!(chosen("int", 3), "int");
        let uneven = ranks("TYPE", "{1|2}{1|2|3}").expect_err("uneven lists");
        assert_eq!(uneven, "TYPE: '{1|2|3}' has 3 alternatives; the list before it has 2");
        assert_eq!(ranks("TYPE", "a{b"), Err("TYPE: '{' has no '}' in 'a{b'".to_owned()));
    }
}
