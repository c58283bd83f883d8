//! The layouts of the host's datatypes.
//!
//! `layout.rs` has the layout of one type. `decode.rs` rebuilds a datatype from what the host says about it. `calls.rs`
//! has the calls that make committed types; `pairs.rs` has the predefined types that are not contiguous. `choice.rs`
//! chooses, for a layout and a number of bytes, between the host's packing and ours.
//!
//! A layout is forgotten when the host frees its type: an attribute of the type, whose delete function is in this
//! file, tells when. So a new type that gets the same handle never has the layout of an older one, even if a library
//! freed the older type by `PMPI_Type_free`.

pub mod calls;
pub mod choice;
mod decode;
mod layout;
mod pairs;

pub use layout::{Layout, Twin, free_twins};

use crate::host::{Next, has_devices};
use crate::report::{COUNTS, add};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use typepack_capi_datatype::{abi, raw};
use typepack_engine::{Datatype, Plan};

/// The largest number that the ABI reserves for predefined handles.
const LAST_PREDEFINED: usize = 0x1fff;

/// A hash of a handle: one multiplication. Handles are addresses or counters, so no program chooses them freely.
#[derive(Default)]
pub struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }
    fn write_usize(&mut self, value: usize) {
        let product = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// A map from handles.
pub type HandleMap<T> = HashMap<usize, T, BuildHasherDefault<HandleHasher>>;

static LAYOUTS: RwLock<HandleMap<Arc<Layout>>> =
    RwLock::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// The committed types that are contiguous for our plans too: their packed bytes are their bytes in memory, in order.
/// Only collective calls ask, so types are kept here only if all ranks take part.
static CONTIGUOUS: RwLock<HandleMap<()>> =
    RwLock::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// Returns whether the packed bytes of a type are its bytes in memory, in order: it is predefined, or it was found
/// contiguous when it was committed. Size and extent do not tell: two integers in reverse order have the same.
pub fn is_in_order(datatype: raw::Datatype) -> bool {
    if datatype.0 <= LAST_PREDEFINED {
        return !pairs::is_pair(datatype) || pairs::is_in_order(datatype);
    }
    CONTIGUOUS.read().unwrap_or_else(PoisonError::into_inner).contains_key(&datatype.0)
}

/// Remembers that a committed type is contiguous.
fn remember_order(next: &'static Next, datatype: raw::Datatype) {
    if !crate::settings::settings().all {
        return;
    }
    let Some(keyval) = keyval(next) else { return };
    let types = || CONTIGUOUS.write().unwrap_or_else(PoisonError::into_inner);
    types().insert(datatype.0, ());
    // SAFETY: as in `remember`.
    let code = unsafe { next.PMPI_Type_set_attr(datatype, keyval, std::ptr::null_mut()) };
    if code != abi::SUCCESS {
        types().remove(&datatype.0);
    }
}

/// Number of entries of `LAYOUTS`, so that a program without such types takes no lock.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout of a type; `None` if the host does this type.
#[inline(always)]
pub fn find(datatype: raw::Datatype) -> Option<Arc<Layout>> {
    if datatype.0 <= LAST_PREDEFINED {
        return if pairs::is_pair(datatype) {
            pairs::find(datatype).and_then(|pair| checked(datatype, pair))
        } else {
            None
        };
    }
    if KNOWN.load(Ordering::Relaxed) == 0 { None } else { look_up(datatype) }
}

/// Counts the changes of `LAYOUTS`. What a thread remembers from before a change does not hold after it.
static CHANGES: AtomicU64 = AtomicU64::new(1);

/// The answer to an earlier question of this thread. Types without a layout are remembered too.
struct Answer {
    change: u64,
    datatype: usize,
    layout: Option<Arc<Layout>>,
}

/// The number of answers that a thread remembers.
const ANSWERS: usize = 8;

thread_local! {
    static RECENT: RefCell<[Answer; ANSWERS]> =
        const { RefCell::new([const { Answer { change: 0, datatype: 0, layout: None } }; ANSWERS]) };
}

#[inline(never)]
fn look_up(datatype: raw::Datatype) -> Option<Arc<Layout>> {
    checked(datatype, known(datatype)?)
}

/// Returns the layout with which a call may work. The memory of a device cannot be read by ordinary loads, and the host
/// knows it. So from the moment at which a process has loaded a device runtime, no layout has kernels.
fn checked(datatype: raw::Datatype, layout: Arc<Layout>) -> Option<Arc<Layout>> {
    if layout.plan().is_none() || !has_devices() {
        return Some(layout);
    }
    add(&COUNTS.passed, 1);
    // Another rank, without devices, may have packed the message.
    if layout.must_be_packed() { layout.plain(datatype) } else { None }
}

fn known(datatype: raw::Datatype) -> Option<Arc<Layout>> {
    let ask = || LAYOUTS.read().unwrap_or_else(PoisonError::into_inner).get(&datatype.0).cloned();
    let change = CHANGES.load(Ordering::Acquire);
    let found = RECENT.try_with(|recent| {
        let Ok(mut recent) = recent.try_borrow_mut() else { return (ask(), None) };
        // Handles are numbers or addresses; their lowest bits are often equal.
        let answer = &mut recent[(datatype.0 ^ datatype.0 >> 3 ^ datatype.0 >> 6) % ANSWERS];
        if answer.change == change && answer.datatype == datatype.0 {
            return (answer.layout.clone(), None);
        }
        let layout = ask();
        let new = Answer { change, datatype: datatype.0, layout: layout.clone() };
        (layout, Some(std::mem::replace(answer, new)))
    });
    // The older answer is dropped here, where nothing is borrowed.
    found.map_or_else(|_| ask(), |(layout, _older)| layout)
}

/// Remembers the layout of a committed type. If the host cannot keep the attribute that tells when the type is freed,
/// the type stays with the host.
fn remember(next: &'static Next, datatype: raw::Datatype, layout: Arc<Layout>) {
    let rebuilt = u64::from(layout.plan().is_some());
    let Some(keyval) = keyval(next) else { return };
    insert(datatype, Some(layout));
    // SAFETY: the type is valid and the keyval is ours. The attribute's value is never followed.
    let code = unsafe { next.PMPI_Type_set_attr(datatype, keyval, std::ptr::null_mut()) };
    if code == abi::SUCCESS {
        add(&COUNTS.types, rebuilt);
    } else {
        insert(datatype, None);
    }
}

/// Sets or removes the layout of a type.
fn insert(datatype: raw::Datatype, layout: Option<Arc<Layout>>) {
    let before = {
        let mut layouts = LAYOUTS.write().unwrap_or_else(PoisonError::into_inner);
        let before = match layout {
            Some(layout) => layouts.insert(datatype.0, layout),
            None => layouts.remove(&datatype.0),
        };
        KNOWN.store(layouts.len(), Ordering::Relaxed);
        CHANGES.fetch_add(1, Ordering::AcqRel);
        before
    };
    // Dropped without the lock, because dropping a layout takes another one.
    drop(before);
}

/// The host calls this function when it frees a type of `remember` or of `remember_order`.
unsafe extern "C" fn forget(
    datatype: raw::Datatype,
    _keyval: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    let work = || {
        CONTIGUOUS.write().unwrap_or_else(PoisonError::into_inner).remove(&datatype.0);
        insert(datatype, None);
        Some(abi::SUCCESS)
    };
    crate::entry::always("MPI_Type_free", work).unwrap_or(abi::SUCCESS)
}

/// Returns the keyval of our attribute; `None` if the host cannot make it.
fn keyval(next: &Next) -> Option<c_int> {
    /// -1: not made yet.
    static KEYVAL: AtomicI32 = AtomicI32::new(-1);
    static MAKING: Mutex<()> = Mutex::new(());
    let known = || Some(KEYVAL.load(Ordering::Acquire)).filter(|&keyval| keyval != -1);
    if let Some(keyval) = known() {
        return Some(keyval);
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    known().or_else(|| {
        let mut made = 0;
        // The null copy function (0): a duplicate of the type does not get the attribute.
        // SAFETY: `forget` has the type of a delete function, and `made` is writable.
        let code = unsafe {
            next.PMPI_Type_create_keyval(
                std::ptr::null(),
                forget as *const c_void,
                &mut made,
                std::ptr::null_mut(),
            )
        };
        KEYVAL.store(if code == abi::SUCCESS { made } else { -1 }, Ordering::Release);
        known()
    })
}

/// Forgets all layouts, and frees their twins. Only in finalize.
pub fn clear(next: &Next) {
    pairs::release();
    let all = std::mem::take(&mut *LAYOUTS.write().unwrap_or_else(PoisonError::into_inner));
    CONTIGUOUS.write().unwrap_or_else(PoisonError::into_inner).clear();
    KNOWN.store(0, Ordering::Relaxed);
    CHANGES.fetch_add(1, Ordering::AcqRel);
    all.values().for_each(|layout| layout.release());
    drop(all);
    free_twins(next);
}

/// Commits a tree.
fn plan(tree: &Datatype) -> Option<Plan> {
    tree.commit_with(crate::settings::engine()).ok()
}
