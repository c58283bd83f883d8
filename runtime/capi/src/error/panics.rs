//! Turns a panic of this library into a failure that says where the panic happened.

use super::Failure;
use crate::abi;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The file and line of the last panic. The hook of [`watch`] records them, because the value that
/// `catch_unwind` returns does not contain them.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Number of calls of [`watch`] so far. Only the first call installs the hook.
static HOOKED: AtomicUsize = AtomicUsize::new(0);

/// Returns the failure for a panic, given the value that `catch_unwind` returned.
pub fn bug(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned());
    let place = PLACE.lock().map(|place| place.clone()).unwrap_or_default();
    Failure::new(abi::ERR_INTERN, "typepack bug", format!("{text} {place}"))
}

/// Installs a panic hook that records the file and line of a panic and prints nothing. The failure that [`bug`]
/// makes contains both, so an error handler that ends the job prints them.
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
