//! Error classes and error codes of the standard and of the user (MPI-5.0 sections 9.4 and 9.5).
//!
//! For the errors that the library itself finds, it returns only error classes as error codes. The user can
//! add classes, codes and strings, and can remove them again. `handler.rs` and `last.rs` read the
//! texts.

use super::{Failure, Result, last};
use crate::abi;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::argument::{Output, Text, TextOutput};

/// An error class or error code that the user added.
#[derive(Clone, Debug)]
struct Added {
    /// The class to which the error code belongs. For an error class, this is the class itself.
    class: c_int,
    /// For an error class, the number of error codes of the class that have been added; otherwise 0.
    codes: usize,
    /// The string, which may be empty; `None` until the user adds one.
    text: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Codes {
    added: BTreeMap<c_int, Added>,
    /// The number of the class or code that was added last; `MPI_ERR_LASTCODE` if none has been added.
    last: c_int,
}

static CODES: Mutex<Codes> = Mutex::new(Codes { added: BTreeMap::new(), last: abi::ERR_LASTCODE });

/// The value of the attribute `MPI_LASTUSEDCODE`.
static LAST_USED: std::sync::atomic::AtomicI32 =
    std::sync::atomic::AtomicI32::new(abi::ERR_LASTCODE);

fn codes() -> MutexGuard<'static, Codes> {
    // The codes may be used after a panic poisoned the lock. No call under the lock can panic between two
    // changes that belong together, so the codes are consistent.
    CODES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the address of the value of the attribute `MPI_LASTUSEDCODE`, the number of the class or code that
/// was added last.
pub fn last_used() -> *mut c_int {
    LAST_USED.as_ptr()
}

/// Returns a phrase that describes an error class of the standard.
fn meaning(class: c_int) -> Option<&'static str> {
    Some(match class {
        abi::SUCCESS => "no error",
        abi::ERR_BUFFER => "invalid buffer",
        abi::ERR_COUNT => "invalid count",
        abi::ERR_TYPE => "invalid datatype",
        abi::ERR_TAG => "invalid tag",
        abi::ERR_COMM => "invalid communicator",
        abi::ERR_RANK => "invalid rank",
        abi::ERR_REQUEST => "invalid request",
        abi::ERR_ROOT => "invalid root",
        abi::ERR_GROUP => "invalid group",
        abi::ERR_OP => "invalid operation",
        abi::ERR_TOPOLOGY => "invalid topology",
        abi::ERR_DIMS => "invalid dimensions",
        abi::ERR_ARG => "invalid argument",
        abi::ERR_UNKNOWN => "unknown error",
        abi::ERR_TRUNCATE => "message longer than the receive",
        abi::ERR_OTHER => "other error",
        abi::ERR_INTERN => "internal error",
        abi::ERR_PENDING => "operation still pending",
        abi::ERR_IN_STATUS => "the error code is in the status",
        abi::ERR_ACCESS => "permission denied",
        abi::ERR_AMODE => "invalid access mode",
        abi::ERR_ASSERT => "invalid assertion",
        abi::ERR_BAD_FILE => "invalid file name",
        abi::ERR_BASE => "invalid base",
        abi::ERR_CONVERSION => "data conversion failed",
        abi::ERR_DISP => "invalid displacement",
        abi::ERR_DUP_DATAREP => "data representation is already defined",
        abi::ERR_FILE_EXISTS => "file exists",
        abi::ERR_FILE_IN_USE => "file in use",
        abi::ERR_FILE => "invalid file handle",
        abi::ERR_INFO_KEY => "invalid info key",
        abi::ERR_INFO_NOKEY => "no such info key",
        abi::ERR_INFO_VALUE => "invalid info value",
        abi::ERR_INFO => "invalid info object",
        abi::ERR_IO => "input or output failed",
        abi::ERR_KEYVAL => "invalid attribute key",
        abi::ERR_LOCKTYPE => "invalid lock type",
        abi::ERR_NAME => "service name not published",
        abi::ERR_NO_MEM => "out of memory",
        abi::ERR_NOT_SAME => "arguments differ between the ranks",
        abi::ERR_NO_SPACE => "no space left",
        abi::ERR_NO_SUCH_FILE => "no such file",
        abi::ERR_PORT => "invalid port name",
        abi::ERR_QUOTA => "quota exceeded",
        abi::ERR_READ_ONLY => "read-only file or file system",
        abi::ERR_RMA_CONFLICT => "conflicting accesses to a window",
        abi::ERR_RMA_SYNC => "wrong synchronization of a window",
        abi::ERR_SERVICE => "service name not found",
        abi::ERR_SIZE => "invalid size",
        abi::ERR_SPAWN => "spawning failed",
        abi::ERR_UNSUPPORTED_DATAREP => "data representation not supported",
        abi::ERR_UNSUPPORTED_OPERATION => "not supported",
        abi::ERR_WIN => "invalid window",
        abi::ERR_RMA_RANGE => "target memory is not in the window",
        abi::ERR_RMA_ATTACH => "memory cannot be attached",
        abi::ERR_RMA_FLAVOR => "wrong flavor of window",
        abi::ERR_RMA_SHARED => "memory cannot be shared",
        abi::ERR_SESSION => "invalid session",
        abi::ERR_PROC_ABORTED => "a process has ended",
        abi::ERR_VALUE_TOO_LARGE => "value too large for its type",
        abi::ERR_ERRHANDLER => "invalid error handler",
        abi::ERR_ABI => "not allowed by the ABI",
        abi::T_ERR_CANNOT_INIT => "the tool interface cannot start",
        abi::T_ERR_INVALID => "invalid use of the tool interface",
        abi::T_ERR_INVALID_HANDLE => "invalid tool handle",
        abi::T_ERR_INVALID_INDEX => "invalid index",
        abi::T_ERR_INVALID_NAME => "invalid name",
        abi::T_ERR_INVALID_SESSION => "invalid tool session",
        abi::T_ERR_MEMORY => "out of memory",
        abi::T_ERR_NOT_ACCESSIBLE => "not accessible",
        abi::T_ERR_NOT_INITIALIZED => "tool interface not initialized",
        abi::T_ERR_NOT_SUPPORTED => "not supported",
        abi::T_ERR_INVALID_ITEM => "invalid item",
        abi::T_ERR_OUT_OF_HANDLES => "no handle left",
        abi::T_ERR_OUT_OF_SESSIONS => "no tool session left",
        abi::T_ERR_CVAR_SET_NOT_NOW => "the control variable cannot be set now",
        abi::T_ERR_CVAR_SET_NEVER => "the control variable can never be set",
        abi::T_ERR_PVAR_NO_WRITE => "the performance variable cannot be written",
        abi::T_ERR_PVAR_NO_STARTSTOP => "the performance variable cannot be started or stopped",
        abi::T_ERR_PVAR_NO_ATOMIC => {
            "the performance variable cannot be read and written atomically"
        }
        abi::ERR_LASTCODE => "the last code of the library",
        _ => return None,
    })
}

/// Returns the name and the description of an error class of the standard, for example
/// `MPI_ERR_RANK: invalid rank`.
fn predefined(class: c_int) -> Option<String> {
    let name = abi::ERROR_CLASSES.iter().find(|(value, _)| *value == class)?.1;
    Some(format!("{name}: {}", meaning(class)?))
}

/// Returns the text of an error class or code; `None` if there is no such class or code. If the user added
/// the class or code without a string, the text is empty.
pub fn string(code: c_int) -> Option<Vec<u8>> {
    if let Some(text) = predefined(code) {
        return Some(text.into_bytes());
    }
    codes().added.get(&code).map(|added| added.text.clone().unwrap_or_default())
}

/// Returns the class of an error class or code; `None` if there is no such class or code.
pub fn class(code: c_int) -> Option<c_int> {
    if predefined(code).is_some() {
        return Some(code);
    }
    codes().added.get(&code).map(|added| added.class)
}

fn unknown(argument: &str, code: c_int) -> Failure {
    Failure::new(abi::ERR_ARG, argument, format!("{code} is not an error code or class"))
}

/// `MPI_Error_class`.
pub fn error_class(errorcode: c_int, errorclass: Output<c_int>) -> Result {
    let out = errorclass.required("errorclass")?;
    out.set(class(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?);
    Ok(())
}

/// `MPI_Error_string`.
pub fn error_string(
    errorcode: c_int,
    target: TextOutput<{ abi::MAX_ERROR_STRING }>,
    len: Output<c_int>,
) -> Result {
    let len = len.required("resultlen")?;
    let bytes = last::string(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    len.set(target.required("string")?.write(&bytes));
    Ok(())
}

/// Makes the failure for removing a class or code that still has a string.
fn has_string(argument: &str, code: c_int) -> Failure {
    Failure::new(
        abi::ERR_ARG,
        argument,
        format!("{code} still has an error string; remove the string first"),
    )
}

impl Codes {
    fn add(&mut self, class: Option<c_int>) -> Result<c_int> {
        let number = self.last.checked_add(1).ok_or_else(|| {
            Failure::new(
                abi::ERR_OTHER,
                "errorcode",
                "all numbers of error classes and codes have been used",
            )
        })?;
        self.last = number;
        if let Some(class) = class.and_then(|class| self.added.get_mut(&class)) {
            class.codes += 1;
        }
        let class = class.unwrap_or(number);
        self.added.insert(number, Added { class, codes: 0, text: None });
        LAST_USED.store(number, std::sync::atomic::Ordering::Relaxed);
        Ok(number)
    }

    fn user(&mut self, number: c_int, argument: &str) -> Result<&mut Added> {
        let Some(added) = self.added.get_mut(&number) else {
            let detail = match predefined(number) {
                Some(_) => format!("{number} is predefined and cannot be changed"),
                None => format!("{number} is not an error code or class"),
            };
            return Err(Failure::new(abi::ERR_ARG, argument, detail));
        };
        Ok(added)
    }
}

/// `MPI_Add_error_class`.
pub fn add_class(errorclass: Output<c_int>) -> Result {
    let out = errorclass.required("errorclass")?;
    out.set(codes().add(None)?);
    Ok(())
}

/// `MPI_Add_error_code`.
pub fn add_code(errorclass: c_int, errorcode: Output<c_int>) -> Result {
    let out = errorcode.required("errorcode")?;
    if class(errorclass) != Some(errorclass) {
        let detail = format!("{errorclass} is not an error class");
        return Err(Failure::new(abi::ERR_ARG, "errorclass", detail));
    }
    out.set(codes().add(Some(errorclass))?);
    Ok(())
}

/// `MPI_Add_error_string`.
pub fn add_string(errorcode: c_int, string: Text) -> Result {
    let bytes = string.read(abi::MAX_ERROR_STRING, "string", abi::ERR_ARG)?;
    codes().user(errorcode, "errorcode")?.text = Some(bytes);
    Ok(())
}

/// `MPI_Remove_error_class`.
pub fn remove_class(errorclass: c_int) -> Result {
    let mut codes = codes();
    if codes.user(errorclass, "errorclass")?.class != errorclass {
        let detail = format!("{errorclass} is an error code; it must be an error class");
        return Err(Failure::new(abi::ERR_ARG, "errorclass", detail));
    }
    if codes.user(errorclass, "errorclass")?.codes > 0 {
        let detail =
            format!("the error class {errorclass} still has error codes; remove them first");
        return Err(Failure::new(abi::ERR_ARG, "errorclass", detail));
    }
    if codes.user(errorclass, "errorclass")?.text.is_some() {
        return Err(has_string("errorclass", errorclass));
    }
    codes.added.remove(&errorclass);
    Ok(())
}

/// `MPI_Remove_error_code`.
pub fn remove_code(errorcode: c_int) -> Result {
    let mut codes = codes();
    let added = codes.user(errorcode, "errorcode")?;
    if added.class == errorcode {
        let detail = format!("{errorcode} is an error class; it must be an error code");
        return Err(Failure::new(abi::ERR_ARG, "errorcode", detail));
    }
    if added.text.is_some() {
        return Err(has_string("errorcode", errorcode));
    }
    let class = added.class;
    codes.added.remove(&errorcode);
    if let Some(class) = codes.added.get_mut(&class) {
        class.codes -= 1;
    }
    Ok(())
}

/// `MPI_Remove_error_string`.
pub fn remove_string(errorcode: c_int) -> Result {
    let mut codes = codes();
    let added = codes.user(errorcode, "errorcode")?;
    if added.text.take().is_none() {
        let detail = format!("{errorcode} has no error string");
        return Err(Failure::new(abi::ERR_ARG, "errorcode", detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_the_table_has_a_text() {
        for (class, name) in abi::ERROR_CLASSES {
            assert!(meaning(*class).is_some(), "{name} has no text");
        }
    }
}
