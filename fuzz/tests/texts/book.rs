//! Tests that the guide is a book: `runtime/guide/SUMMARY.md` lists every page, and mdBook renders
//! the guide without dead links.
//!
//! The second test, the rendering, needs a pinned version of mdBook. `scripts/clients` builds it,
//! because the build needs a network, and runs this test. Without this mdBook the test is skipped; if
//! `TEST_MDBOOK=required` is set (as in `scripts/clients`), it fails instead.

use super::programs::mdbook;
use super::{GUIDE, files, markdown, none, repository, text};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use typepack_test_support::skipped::skipped;

#[test]
fn the_summary_lists_every_page() {
    let listed: BTreeSet<String> = markdown::read(&text(&format!("{GUIDE}/SUMMARY.md")))
        .links
        .into_iter()
        .map(|(_, link)| format!("{GUIDE}/{link}"))
        .collect();
    let summary = format!("{GUIDE}/SUMMARY.md");
    let pages: BTreeSet<String> =
        files(GUIDE, ".md").into_iter().filter(|page| *page != summary).collect();
    let faults: Vec<String> = pages.symmetric_difference(&listed).cloned().collect();
    none("pages either not in SUMMARY.md or only there", &faults);
}

/// Returns the targets of the links in a rendered page.
fn targets(html: &str) -> impl Iterator<Item = &str> {
    ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|mark| html.split(mark).skip(1).filter_map(|after| after.split('"').next()))
}

#[test]
fn the_guide_renders() {
    let mdbook = mdbook();
    if !mdbook.exists() {
        assert!(std::env::var_os("TEST_MDBOOK").is_none(), "{}: no program", mdbook.display());
        skipped(
            "mdBook is not in target/clients/tools; scripts/clients builds it and runs this test",
        );
        return;
    }
    let mut command = Command::new(&mdbook);
    command.arg("build").arg(GUIDE).current_dir(repository());
    let done = command.output().unwrap_or_else(|error| panic!("{}: {error}", mdbook.display()));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "mdbook build {GUIDE}: {}\n{said}", done.status);
    assert!(!said.contains("WARN") && !said.contains("ERROR"), "mdbook build {GUIDE}:\n{said}");
    // The output folder that `book.toml` sets.
    let book = repository().join("target/book");
    let mut faults = Vec::new();
    let mut pages = 0;
    for page in files(GUIDE, ".md").iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let page = page.strip_prefix(GUIDE).expect("a page of the guide").trim_start_matches('/');
        let path = book.join(page).with_extension("html");
        let Ok(html) = std::fs::read_to_string(&path) else {
            faults.push(format!("{} is missing", path.display()));
            continue;
        };
        pages += 1;
        let folder = path.parent().expect("a folder");
        for target in targets(&html) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains(':') {
                continue;
            }
            let file = if file.is_empty() { path.clone() } else { folder.join(Path::new(file)) };
            if !file.exists() {
                faults.push(format!("{page}: {target} does not exist"));
            } else if !anchor.is_empty() && file.extension().is_some_and(|e| e == "html") {
                let other = std::fs::read_to_string(&file).unwrap_or_default();
                if !other.contains(&format!("id=\"{anchor}\"")) {
                    faults.push(format!("{page}: {target} names no heading"));
                }
            }
        }
    }
    assert!(pages > 15, "{pages} pages were rendered");
    none("faults of the rendered guide", &faults);
}
