//! Finds the parts of a Markdown page that the tests need: fenced blocks, links, and the anchors of
//! headings.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of the opening fence, counted from 1.
    pub line: usize,
    /// The words after the fence: `sh`, `rust`, …
    pub language: String,
    /// The lines between the fences.
    pub text: String,
}

/// The parts of a page.
#[derive(Debug, Default)]
pub struct Page {
    /// Fenced blocks, in order.
    pub blocks: Vec<Block>,
    /// The targets of links and images outside of blocks and inline code, each with its line.
    pub links: Vec<(usize, String)>,
    /// The anchors of the headings: the names that a link may have after `#`.
    pub anchors: Vec<String>,
}

/// Returns the parts of a page.
pub fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut open: Option<(Block, String)> = None;
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let trimmed = line.trim_start();
        if let Some((mut block, fence)) = open.take() {
            if trimmed.starts_with(&fence) && trimmed.trim_matches(['`', '~', ' ']).is_empty() {
                page.blocks.push(block);
            } else {
                block.text += line;
                block.text.push('\n');
                open = Some((block, fence));
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            let language = trimmed.trim_start_matches(['`', '~']).trim().to_owned();
            let block = Block { line: number, language, text: String::new() };
            open = Some((block, mark.to_owned()));
            continue;
        }
        if let Some(title) = heading(line) {
            let anchor = anchor(title);
            let twins = page.anchors.iter().filter(|known| **known == anchor).count();
            page.anchors.push(if twins == 0 { anchor } else { format!("{anchor}-{twins}") });
        }
        page.links.extend(links(line).into_iter().map(|link| (number, link)));
    }
    page
}

/// Returns the title in a heading line; `None` for any other line.
fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    (1..=6).contains(&level).then(|| title.strip_prefix(' ')).flatten().map(str::trim)
}

/// Returns the anchor that GitHub and mdBook give a heading.
fn anchor(title: &str) -> String {
    // If the title contains a link, only the words of the link belong to the anchor, not its target.
    let mut shown = String::new();
    let mut rest = title;
    while let Some(at) = rest.find("](") {
        shown += &rest[..at];
        rest = rest[at..].split_once(')').map_or("", |(_, after)| after);
    }
    shown += rest;
    shown
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ if letter.is_alphanumeric() => letter.to_lowercase().next(),
            _ => None,
        })
        .collect()
}

/// Returns the targets of the links in a line: `[words](target)`, `![words](target)` and `[name]:
/// target`.
fn links(line: &str) -> Vec<String> {
    // Inline code has no links.
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let target = |after: &str| after.split([')', ' ']).next().unwrap_or_default().to_owned();
    let mut found: Vec<String> = plain.split("](").skip(1).map(target).collect();
    if let Some((name, after)) = plain.split_once("]: ")
        && name.trim_start().starts_with('[')
    {
        found.push(target(after));
    }
    found
}

#[test]
fn a_page_is_taken_apart() {
    let page = read(
        "# A `b` c-d_e, [f](g.md)!\n[x](a/b.md#c) and ![y](z.svg), `[n](o)`\n\n```sh\nls [q](r)\n```\n\n\
         ```text\na\n```\nword\n~~~c\nint;\n~~~\n## Same\n## Same\n[name]: far.md\n",
    );
    assert_eq!(page.anchors, ["a-b-c-d_e-f", "same", "same-1"]);
    let links: Vec<(usize, &str)> = page.links.iter().map(|(l, t)| (*l, t.as_str())).collect();
    assert_eq!(links, [(1, "g.md"), (2, "a/b.md#c"), (2, "z.svg"), (17, "far.md")]);
    let blocks: Vec<(usize, &str, &str)> =
        page.blocks.iter().map(|b| (b.line, &*b.language, &*b.text)).collect();
    let wanted = [(4, "sh", "ls [q](r)\n"), (8, "text", "a\n"), (12, "c", "int;\n")];
    assert_eq!(blocks, wanted);
}
