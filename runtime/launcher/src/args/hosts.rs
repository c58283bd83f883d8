//! Checks the names of machines on the command line or in a host file: only this machine is allowed.
//!
//! `mod.rs` uses this file. A script that was written for a cluster may pass `-host localhost`, or a
//! scheduler's host file that contains the name of this machine, so mpiexec must accept both. The name of any
//! other machine must be an error.

/// Checks `list`, the list of names given to `-host`, such as `localhost:4,this-machine`. `here` is the name
/// of this machine.
///
/// # Errors
///
/// Returns a one-line message that begins with `flag` if the list is empty or names another machine.
pub fn check_list(flag: &str, list: &str, here: &str) -> Result<(), String> {
    let mut names = list.split(',').map(str::trim).filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return Err(format!("{flag}: '{list}' contains no host name"));
    }
    names.try_for_each(|name| check(flag, name, here))
}

/// Checks the text of a host file. The first word of each line is the name of a machine; other words such as
/// `slots=…` may follow. `#` begins a comment.
///
/// # Errors
///
/// Returns a one-line message that begins with `flag` if the file names no machine or another machine.
pub fn check_file(flag: &str, text: &str, here: &str) -> Result<(), String> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.split('#').next()?.split_whitespace().next())
        .peekable();
    if lines.peek().is_none() {
        return Err(format!("{flag}: the file contains no host name"));
    }
    lines.try_for_each(|name| check(flag, name, here))
}

fn check(flag: &str, name: &str, here: &str) -> Result<(), String> {
    // A colon and a number of slots may follow the name. Do not cut off a part of the name `::1`, which
    // itself contains colons.
    let bare = match name.rsplit_once(':') {
        Some((bare, slots)) if slots == "*" || slots.parse::<u32>().is_ok() && bare != ":" => bare,
        _ => name,
    };
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let known = ["localhost", "127.0.0.1", "::1"].contains(&bare)
        || bare.eq_ignore_ascii_case(here)
        // Compare only the parts before the first dot, because each of the two names may or may not include a
        // domain.
        || !here.is_empty() && bare.parse::<std::net::Ipv4Addr>().is_err()
            && short(bare) == short(here);
    if known {
        return Ok(());
    }
    Err(format!(
        "{flag}: '{bare}' is not this machine, '{here}'; a typepack job runs on one machine"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine() {
        for list in [
            "localhost",
            "localhost:4",
            "127.0.0.1,::1",
            "::1:2",
            "node7",
            "NODE7:*,localhost",
            "node7.example.org",
        ] {
            assert_eq!(check_list("-host", list, "node7"), Ok(()), "{list}");
        }
        assert_eq!(check_list("-host", "node7", "node7.example.org"), Ok(()));
    }

    #[test]
    fn names_of_others() {
        for list in ["node8", "localhost,node8", "node8:2", "10.0.0.1", "localhost:x"] {
            let error = check_list("-host", list, "node7").expect_err(list);
            assert!(error.starts_with("-host: '") && error.contains("not this machine"), "{error}");
        }
        assert_eq!(
            check_list("-H", " , ", "a").expect_err("none"),
            "-H: ' , ' contains no host name"
        );
    }

    #[test]
    fn host_files() {
        let file = "# made by a scheduler\nlocalhost slots=4\n\nnode7:2   # here\n";
        assert_eq!(check_file("-f", file, "node7"), Ok(()));
        let error = check_file("-f", "localhost\nnode8 slots=4\n", "node7").expect_err("another");
        assert!(error.starts_with("-f: 'node8' is not this machine"), "{error}");
        assert_eq!(
            check_file("-f", "# none\n", "x"),
            Err("-f: the file contains no host name".into())
        );
    }
}
