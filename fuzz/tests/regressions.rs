//! Checks the cases in `regressions/*.txt`: cases that once failed, and cases chosen by hand.

use std::path::Path;
use typepack_fuzz::{Case, Checker, Effort, Executors};

#[test]
fn all_regressions_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut checker = Checker::new(Executors::All);
    let mut cases = 0;
    for entry in std::fs::read_dir(&folder).expect("regressions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text file");
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{}:{}", path.display(), i + 1);
            let case: Case = line.parse().unwrap_or_else(|e| panic!("{place}: {e}"));
            if let Err(reason) = checker.check(&case, Effort::Thorough) {
                panic!("{place}: {case}\n  {reason}");
            }
            cases += 1;
        }
    }
    assert!(cases > 20, "only {cases} cases found");
    // The JIT accepts every shape for which the engine requests a kernel, because the JIT and the engine
    // have the same limits.
    let refusals = checker.jit().map(|jit| jit.counters().refusals);
    assert_eq!(refusals, Some(0), "a shape of these cases was refused");
}
