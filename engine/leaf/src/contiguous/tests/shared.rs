//! Tests of what several threads share: the requested method (`ASKED` in `mod.rs`). Loom runs two threads in every
//! interleaving.

use super::super::{Asked, Method, NOTHING, asking};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, Ordering};

impl Asked for AtomicU8 {
    fn get(&self) -> u8 {
        self.load(Ordering::Relaxed)
    }
    fn set(&self, code: u8) {
        self.store(code, Ordering::Relaxed);
    }
}

/// Checks in every interleaving of two requests that each thread reads one of the two methods or none, and
/// that no method is asked for after both requests have ended.
#[test]
fn loom_requests_of_two_threads() {
    loom::model(|| {
        let asked = Arc::new(AtomicU8::new(NOTHING));
        let theirs = asked.clone();
        let known = |code| code == NOTHING || Method::from_code(code).is_some();
        let other = loom::thread::spawn(move || {
            asking(&*theirs, Method::Repeat, || assert!(known(theirs.get())));
        });
        asking(&*asked, Method::Streaming, || assert!(known(asked.get())));
        other.join().expect("the other thread has not panicked");
        assert_eq!(asked.get(), NOTHING);
    });
}
