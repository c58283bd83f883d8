//! Turns a panic into a text that says where it happened.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// The file and line of the last panic, which the hook notes.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Lets panics print nothing.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            if let Some(at) = info.location() {
                let place = format!("({}:{})", at.file(), at.line());
                *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
            }
        }));
    });
}

/// Runs a function.
///
/// # Errors
/// Returns the text of a panic.
#[inline(always)]
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| said(panic.as_ref()))
}

#[cold]
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    format!("{text} {place}")
}
