//! Finds a program that needs the libraries of both ABIs by their names. Each function would come from one of them, and
//! get the other one's values.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;

/// A segment of an object in memory (`Elf64_Phdr`).
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    rest: [u64; 4],
}

/// An object in memory (the beginning of `struct dl_phdr_info`).
#[repr(C)]
struct Object {
    base: usize,
    name: *const c_char,
    segments: *const Segment,
    number: u16,
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        call: unsafe extern "C" fn(*const Object, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: usize = 1;
const DT_STRTAB: usize = 5;
const DT_SONAME: usize = 14;

/// Returns the names of the entries `wanted` in the dynamic section of an object.
///
/// # Safety
///
/// - The object is loaded.
unsafe fn names(object: &Object, wanted: usize) -> Vec<&CStr> {
    // SAFETY: the segments of a loaded object lie in memory. Its dynamic section ends with a zero, and its names lie in
    // its table of strings, whose address the loader has completed on most machines.
    unsafe {
        let mut segments = (0..usize::from(object.number)).map(|at| &*object.segments.add(at));
        let Some(dynamic) = segments.find(|segment| segment.kind == PT_DYNAMIC) else {
            return Vec::new();
        };
        let first = (object.base + dynamic.address as usize) as *const [usize; 2];
        let all = (0..).map(|at| first.add(at).read()).take_while(|[tag, _]| *tag != 0);
        let all: Vec<[usize; 2]> = all.collect();
        let Some([_, table]) = all.iter().find(|[tag, _]| *tag == DT_STRTAB) else {
            return Vec::new();
        };
        let table = if *table < object.base { object.base + table } else { *table };
        let found = all.iter().filter(|[tag, _]| *tag == wanted);
        found.map(|[_, offset]| CStr::from_ptr((table + offset) as *const c_char)).collect()
    }
}

unsafe extern "C" fn look(object: *const Object, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader passes a loaded object, and `check` an address of its list.
    unsafe {
        let (object, found) = (&*object, &mut *found.cast::<Option<String>>());
        let needs = names(object, DT_NEEDED).contains(&c"libmpi_abi.so.1");
        if needs && !names(object, DT_SONAME).contains(&c"libmpi.so.12") {
            let name = CStr::from_ptr(object.name).to_string_lossy().into_owned();
            let name = if name.is_empty() { "the program".to_owned() } else { name };
            found.get_or_insert(name);
        }
    }
    0
}

/// Ends the process with one line if an object other than this library needs `libmpi_abi.so.1`.
#[cold]
pub fn check() {
    let mut found: Option<String> = None;
    // SAFETY: the function has this form, and gets the address of `found`.
    unsafe { dl_iterate_phdr(look, (&raw mut found).cast()) };
    if let Some(name) = found {
        // If standard error is closed, there is nobody to tell.
        let _unseen = writeln!(
            std::io::stderr(),
            "typepack: {name} needs libmpi_abi.so.1, and another part of this program libmpi.so.12; compile all of it \
             for the same of the two ABIs"
        );
        std::process::abort();
    }
}
