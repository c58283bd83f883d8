//! Finds out with which version of the modules (or of `mpif.h`) the program was compiled.
//!
//! The modules declare a COMMON block whose name ends in their version. A compiler puts every block that a program
//! declares into the program, also if the program never uses it. So a block with the name of a version lies in the
//! program, or, if the program does not have it, in this library.
//!
//! The linker's addresses are known when this library is loaded. So the check is made then, and it does not matter which
//! language initialises MPI.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;

/// The version of the modules in `include/`.
const VERSION: &str = env!("MODULES_VERSION");

/// One of the blocks.
#[repr(C, align(16))]
pub struct Block(UnsafeCell<c_int>);

// SAFETY: only the address of a block is used, never its bytes.
unsafe impl Sync for Block {}

macro_rules! blocks {
    ($($name:ident $version:literal;)*) => {
        $(
            #[doc = concat!("The block of the modules of version ", $version, ".")]
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static $name: Block = Block(UnsafeCell::new(0));
        )*
        /// The versions that are known, those to come included, and their blocks.
        const BLOCKS: &[(&str, &Block)] = &[$(($version, &$name)),*];
    };
}
blocks! {
    typepackmodules1_ "1";
    typepackmodules2_ "2";
    typepackmodules3_ "3";
    typepackmodules4_ "4";
    typepackmodules5_ "5";
    typepackmodules6_ "6";
    typepackmodules7_ "7";
    typepackmodules8_ "8";
    typepackmodules9_ "9";
}

/// `Dl_info`.
#[repr(C)]
struct Information {
    file: *const c_char,
    base: *const c_void,
    name: *const c_char,
    address: *const c_void,
}

/// Returns where the file is loaded that contains an address.
fn file(address: *const c_void) -> *const c_void {
    unsafe extern "C" {
        fn dladdr(address: *const c_void, information: *mut Information) -> c_int;
    }
    let null = std::ptr::null::<c_void>();
    let mut found = Information { file: null.cast(), base: null, name: null.cast(), address: null };
    // SAFETY: the function takes any address, and writes only to `found`, which is as large as it should be.
    unsafe { dladdr(address, &raw mut found) };
    found.base
}

/// Variables in which launchers tell a process its rank.
const RANKS: [&str; 5] =
    ["TYPEPACK_RANK", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

/// The dynamic linker calls the functions of this section when it has loaded the library.
// SAFETY: the section consists of addresses of C functions; those arguments that the linker passes may be ignored.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = check;

/// Says in one line if the program was compiled with modules of another version. `TYPEPACK_QUIET=1` hides the line; of
/// several ranks, rank 0 prints it, as far as the launcher tells the rank.
extern "C" fn check() {
    let own = file(check as *const c_void);
    let is_others = |(version, block): &&(&str, &Block)| {
        *version != VERSION && file(std::ptr::from_ref(*block).cast()) != own
    };
    let Some((version, _)) = BLOCKS.iter().find(is_others) else { return };
    let quiet = std::env::var_os("TYPEPACK_QUIET").is_some_and(|value| value == "1");
    let rank = RANKS.iter().find_map(std::env::var_os);
    if quiet || rank.is_some_and(|rank| rank != "0") {
        return;
    }
    // If standard error is closed, there is nobody to tell.
    let _unseen = writeln!(
        std::io::stderr(),
        "typepack: the program was compiled with Fortran modules of version {version}, but libmpifort_abi.so.1 has \
         version {VERSION}; compile it anew, or set TYPEPACK_QUIET=1 to silence this line"
    );
}
