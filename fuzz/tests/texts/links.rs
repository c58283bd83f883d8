//! Tests that no relative link of a Markdown file is dead: the file or folder must exist, and so must
//! the heading.

use super::{GUIDE, files, markdown, none, repository, text};
use std::path::{Component, Path, PathBuf};

/// Returns `path` without `.` and `..`; `None` if the path leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// Returns what is wrong with a link from `page`; `None` if the link is right.
fn fault(page: &str, link: &str) -> Option<String> {
    if link.starts_with("https://") || link.starts_with("http://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { PathBuf::from(page) } else { folder.join(file) };
    let Some(target) = normal(&target) else {
        return Some("leaves the repository".into());
    };
    let path = repository().join(&target);
    if !path.exists() {
        return Some(format!("{} does not exist", target.display()));
    }
    // mdBook turns a link to `x.md` into a link to `x.html`, which exists only for pages of the guide.
    let is_page = target.extension().is_some_and(|ending| ending == "md");
    if page.starts_with(GUIDE) && is_page && !target.starts_with(GUIDE) {
        return Some("is no page of the book; link to the folder".into());
    }
    if anchor.is_empty() {
        return None;
    }
    let page = markdown::read(&std::fs::read_to_string(path).unwrap_or_default());
    (!page.anchors.iter().any(|known| known == anchor))
        .then(|| format!("{} has no heading #{anchor}", target.display()))
}

#[test]
fn no_link_is_dead() {
    let mut faults = Vec::new();
    for page in files("", ".md") {
        for (line, link) in markdown::read(&text(&page)).links {
            if let Some(fault) = fault(&page, &link) {
                faults.push(format!("{page}:{line}: ({link}): {fault}"));
            }
        }
    }
    none("dead links", &faults);
}

#[test]
fn dead_links_are_found() {
    assert_eq!(fault("README.md", "engine/README.md"), None);
    assert_eq!(fault("engine/README.md", "../jit/README.md#tests"), None);
    assert_eq!(fault("engine/README.md", "#typepack-engine"), None);
    assert_eq!(fault("engine/README.md", "tests/"), None);
    assert_eq!(fault("engine/README.md", "https://example.org/x"), None);
    for dead in ["gone.md", "../jit/README.md#gone", "#gone", "../../outside.md", "/etc/passwd"] {
        assert!(fault("engine/README.md", dead).is_some(), "{dead}");
    }
    assert_eq!(fault("runtime/guide/README.md", "../../engine/"), None);
    assert!(fault("runtime/guide/README.md", "../../engine/README.md").is_some());
}
