//! What a panic of ours becomes: a failure that says where it was.

use super::Failure;
use crate::abi;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the last panic was; what `catch_unwind` returns does not say.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Counts the panics of this crate, so that the hook is installed once and stays out of the way of
/// panics of others in the process (a Rust program above us).
static HOOKED: AtomicUsize = AtomicUsize::new(0);

/// The failure that a panic becomes.
pub fn bug(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    let place = PLACE.lock().map(|place| place.clone()).unwrap_or_default();
    Failure::new(abi::ERR_INTERN, "typepack bug", format!("{text} {place}"))
}

/// Makes panics of this process remember their place, and print nothing more than the one line that
/// the error handler prints.
pub fn watch() {
    if HOOKED.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        if let (Some(at), Ok(mut place)) = (info.location(), PLACE.lock()) {
            *place = format!("({}:{})", at.file(), at.line());
        }
    }));
}
