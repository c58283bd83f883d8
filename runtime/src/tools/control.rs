//! Control variables: the settings of `variables.rs` as tools read and write them (MPI-5.0 section 15.3.6).
//!
//! A setting has the name of its environment variable. Before the library reads the settings, a tool can change each
//! setting that belongs to this process; the value then takes the place of that of the environment. Afterwards, it can
//! change the few settings that the library asks for at every use.

use super::{Fault, Result, endpoint, new_number};
use crate::settings::{self, Settings};
use crate::variables::{Audience, Scope, Topic, variables};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use typepack_engine::Isa;

/// The room for the value of a setting that is a text, in bytes, with the zero byte at its end.
pub const TEXT_MAX: usize = 4096;

/// What the value of a setting is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// 0 or 1.
    Flag,
    /// One of these words. Its value is its place in the list.
    Choice(Vec<&'static str>),
    /// A text of at most [`TEXT_MAX`] bytes.
    Text,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A flag, or the place of a word.
    Choice(i32),
    /// A text, without a zero byte.
    Text(Vec<u8>),
}

/// A setting.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Control {
    /// The name of the environment variable.
    pub name: &'static str,
    /// What the setting does.
    pub meaning: &'static str,
    /// What the value is.
    pub form: Form,
    /// What the setting is about.
    pub topic: Topic,
    /// For whom it is meant.
    pub audience: Audience,
    /// Who can change it.
    pub scope: Scope,
    /// The value if nobody has given one.
    default: String,
}

/// Returns the form of a setting with this domain.
fn form(domain: &'static str) -> Form {
    match domain {
        "0, 1" => Form::Flag,
        "bytes" | "microseconds" | "seconds" => Form::Number,
        _ if domain.starts_with("threads") => Form::Number,
        _ if domain.starts_with("a ") || domain.starts_with("an ") || domain.contains("LIST") => {
            Form::Text
        }
        _ => Form::Choice(domain.split(", ").collect()),
    }
}

/// Returns all settings. The place of a setting in the list is its index.
#[doc(alias = "MPI_T_cvar_get_info")]
pub fn controls() -> &'static [Control] {
    static CONTROLS: LazyLock<Vec<Control>> = LazyLock::new(|| {
        let of = |variable: crate::variables::Variable| {
            let default = match variable.name {
                "TYPEPACK_ISA" => Isa::best().to_string(),
                "TYPEPACK_TUNE_FILE" => String::new(),
                // The text after the first blank is an explanation.
                _ => variable.default.split(' ').next().unwrap_or_default().to_owned(),
            };
            Control {
                name: variable.name,
                meaning: variable.meaning(),
                form: form(variable.domain),
                topic: variable.topic,
                audience: variable.audience,
                scope: variable.scope,
                default,
            }
        };
        variables().into_iter().map(of).collect()
    });
    &CONTROLS
}

/// The handles, and the index of the setting of each.
static HANDLES: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

fn handles() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all handles.
pub(super) fn end() {
    handles().clear();
}

/// Makes a handle of the setting with this index.
///
/// # Errors
/// Returns [`Fault::Index`] if there is none.
#[doc(alias = "MPI_T_cvar_handle_alloc")]
pub fn allocate(index: usize) -> Result<u64> {
    controls().get(index).ok_or(Fault::Index)?;
    let number = new_number();
    handles().insert(number, index);
    Ok(number)
}

/// Ends a handle.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such handle.
#[doc(alias = "MPI_T_cvar_handle_free")]
pub fn free(handle: u64) -> Result {
    handles().remove(&handle).map(drop).ok_or(Fault::Handle)
}

/// Returns the setting of a handle.
fn of_handle(handle: u64) -> Result<&'static Control> {
    let index = handles().get(&handle).copied().ok_or(Fault::Handle)?;
    controls().get(index).ok_or(Fault::Handle)
}

/// Returns the form of the value that [`read`] returns and [`write()`] takes for a handle.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such handle.
pub fn form_of(handle: u64) -> Result<Form> {
    Ok(of_handle(handle)?.form.clone())
}

/// Returns the value of the setting of a handle.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such handle, and [`Fault::NotAccessible`] if the environment has a value
/// that is outside the domain of the setting.
#[doc(alias = "MPI_T_cvar_read")]
pub fn read(handle: u64) -> Result<Value> {
    let control = of_handle(handle)?;
    let text = settings::given(control.name).unwrap_or_else(|| control.default.clone());
    let value = match &control.form {
        Form::Number => text.parse().ok().map(Value::Number),
        Form::Flag => match text.as_str() {
            "" | "0" => Some(Value::Choice(0)),
            "1" => Some(Value::Choice(1)),
            _ => None,
        },
        Form::Choice(words) => {
            let text = if text.is_empty() { &control.default } else { &text };
            words.iter().position(|word| word == text).map(|at| Value::Choice(at as i32))
        }
        Form::Text => {
            let mut text = text.into_bytes();
            text.truncate(TEXT_MAX - 1);
            Some(Value::Text(text))
        }
    };
    value.ok_or(Fault::NotAccessible)
}

/// Gives the setting of a handle another value.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such handle, [`Fault::Never`] if the process cannot change the setting,
/// [`Fault::Invalid`] if the value is outside its domain, and [`Fault::NotNow`] if the library has read the setting
/// already.
#[doc(alias = "MPI_T_cvar_write")]
pub fn write(handle: u64, value: &Value) -> Result {
    let control = of_handle(handle)?;
    if control.scope == Scope::Constant {
        return Err(Fault::Never);
    }
    let text = match (&control.form, value) {
        (Form::Number, Value::Number(number)) => number.to_string(),
        (Form::Flag, Value::Choice(flag @ (0 | 1))) => flag.to_string(),
        (Form::Choice(words), Value::Choice(at)) => {
            let word = usize::try_from(*at).ok().and_then(|at| words.get(at));
            word.ok_or(Fault::Invalid)?.to_string()
        }
        (Form::Text, Value::Text(bytes)) if bytes.len() < TEXT_MAX && !bytes.contains(&0) => {
            String::from_utf8(bytes.clone()).map_err(|_| Fault::Invalid)?
        }
        _ => return Err(Fault::Invalid),
    };
    let change = |settings: &Settings| match control.name {
        "TYPEPACK_EAGER_LIMIT" => endpoint().is_some_and(|endpoint| {
            let set = endpoint.change(|engine| engine.set_eager_limit(settings.eager_limit));
            set.is_ok_and(|done| done)
        }),
        "TYPEPACK_UNEXPECTED_MAX" => {
            endpoint().is_some_and(|endpoint| endpoint.bound(settings.unexpected_max).is_ok())
        }
        "TYPEPACK_ERRORS" => true,
        _ => false,
    };
    match settings::assign(control.name, &text, change) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::NotNow),
        Err(_) => Err(Fault::Invalid),
    }
}
