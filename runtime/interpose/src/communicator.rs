//! The communicators in whose collective calls the library takes part.
//!
//! A collective call is converted on all ranks or on none. With `TYPEPACK_INTERPOSE=all`, the ranks of the world
//! agree at the end of init that all are interposed (`lifecycle.rs`). An attribute marks the world then. Duplicates
//! get the attribute from the host, and communicators that are made from the ranks of a marked one get it here. So
//! all ranks of a communicator know the same without a message. Intercommunicators, and what is made from them, are
//! never marked: a program that was spawned or connected may not be interposed.

use crate::entry::{is_agreed, is_mixed, set_mixed};
use crate::host::Next;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use typepack_capi_datatype::{abi, raw};

static KEYVAL: OnceLock<c_int> = OnceLock::new();

/// Marks the world, after the ranks have agreed.
pub fn begin(next: &Next) {
    let mut keyval = 0;
    // Duplicates of a marked communicator are marked. The delete function is the null one.
    let dup = abi::COMM_DUP_FN as *const c_void;
    // SAFETY: the sentinels of the ABI stand for functions, and `keyval` is writable.
    let code = unsafe {
        next.PMPI_Comm_create_keyval(dup, std::ptr::null(), &mut keyval, std::ptr::null_mut())
    };
    if code == abi::SUCCESS {
        KEYVAL.get_or_init(|| keyval);
        mark(next, raw::Comm(abi::COMM_WORLD));
    }
}

fn mark(next: &Next, comm: raw::Comm) {
    if let Some(&keyval) = KEYVAL.get() {
        // SAFETY: the communicator is valid, and the keyval is ours. The value of the attribute is never followed.
        unsafe { next.PMPI_Comm_set_attr(comm, keyval, std::ptr::null_mut()) };
    }
}

/// Returns whether all ranks of a communicator take part.
///
/// # Errors
/// Returns the error code of the host, which the host has raised, if the communicator is not valid. The call must
/// return it, so that the error is raised once.
pub fn is_marked(next: &Next, comm: raw::Comm) -> Result<bool, c_int> {
    let Some(&keyval) = KEYVAL.get().filter(|_| is_agreed()) else { return Ok(false) };
    /// No value of a flag.
    const NOT_WRITTEN: c_int = -1;
    let (mut value, mut flag) = (std::ptr::null_mut::<c_void>(), NOT_WRITTEN);
    // SAFETY: the results are writable. The host checks the handle.
    match unsafe { next.PMPI_Comm_get_attr(comm, keyval, (&raw mut value).cast(), &mut flag) } {
        // MPICH 5.0.2 returns no error if an error handler of the program has returned.
        abi::SUCCESS if flag != NOT_WRITTEN => Ok(flag != 0),
        code => Err(code),
    }
}

/// Calls of the program that make a communicator from the ranks of another.
macro_rules! makers {
    ($($(#[$doc:meta])* $name:ident: $function:ident($parent:ident, $($argument:ident: $kind:ty),*);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - The arguments are those of a call of this function.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn $name(
                next: &'static Next,
                $parent: raw::Comm,
                $($argument: $kind,)*
                made: *mut raw::Comm,
            ) -> Option<c_int> {
                if made.is_null() || !is_agreed() {
                    return None;
                }
                // SAFETY: the program's arguments of `$name`, unchanged. The handle is writable. A call that fails may
                // leave it, and return no error after an error handler of the program.
                let code = unsafe {
                    *made = raw::Comm::NULL;
                    next.$function($parent, $($argument,)* made)
                };
                // SAFETY: the host has written the handle.
                let made = if code == abi::SUCCESS { unsafe { *made } } else { raw::Comm::NULL };
                if made != raw::Comm::NULL && is_marked(next, $parent) == Ok(true) {
                    mark(next, made);
                }
                Some(code)
            }
        )*
    };
}

makers! {
    /// `MPI_Comm_split`.
    split: MPI_Comm_split(comm, color: c_int, key: c_int);
    /// `MPI_Comm_split_type`.
    split_type: MPI_Comm_split_type(comm, kind: c_int, key: c_int, info: raw::Info);
    /// `MPI_Comm_create`.
    create: MPI_Comm_create(comm, group: raw::Group);
    /// `MPI_Comm_create_group`.
    create_group: MPI_Comm_create_group(comm, group: raw::Group, tag: c_int);
    /// `MPI_Cart_create`.
    cart_create: MPI_Cart_create(comm, n: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int);
    /// `MPI_Cart_sub`.
    cart_sub: MPI_Cart_sub(comm, remain: *const c_int);
    /// `MPI_Graph_create`.
    graph_create: MPI_Graph_create(comm, n: c_int, index: *const c_int, edges: *const c_int, reorder: c_int);
    /// `MPI_Dist_graph_create`.
    dist_graph_create: MPI_Dist_graph_create(
        comm, n: c_int, sources: *const c_int, degrees: *const c_int, destinations: *const c_int,
        weights: *const c_int, info: raw::Info, reorder: c_int);
    /// `MPI_Dist_graph_create_adjacent`.
    dist_graph_create_adjacent: MPI_Dist_graph_create_adjacent(
        comm, indegree: c_int, sources: *const c_int, source_weights: *const c_int, outdegree: c_int,
        destinations: *const c_int, destination_weights: *const c_int, info: raw::Info, reorder: c_int);
}

/// `MPI_Intercomm_create`. One rank may have met processes of another job, which lead the remote group. The other ranks
/// of the local group learn here that they may not be interposed.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Intercomm_create`.
pub unsafe fn intercomm_create(
    next: &'static Next,
    local_comm: raw::Comm,
    local_leader: c_int,
    peer_comm: raw::Comm,
    remote_leader: c_int,
    tag: c_int,
    made: *mut raw::Comm,
) -> Option<c_int> {
    if made.is_null() || !is_agreed() || is_mixed() {
        return None;
    }
    // SAFETY: the program's arguments of `intercomm_create`, unchanged. The handle is writable.
    let code = unsafe {
        *made = raw::Comm::NULL;
        next.MPI_Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, made)
    };
    // SAFETY: the handle was written above.
    let made = unsafe { *made };
    if code == abi::SUCCESS && made != raw::Comm::NULL && strangers(next, made) != Some(0) {
        set_mixed(true);
    }
    Some(code)
}

/// Returns how many processes of the remote group of an intercommunicator are not in the world of this process; `None`
/// if the host fails.
fn strangers(next: &Next, inter: raw::Comm) -> Option<c_int> {
    let ok = |code: c_int| (code == abi::SUCCESS).then_some(());
    let mut groups = [raw::Group::NULL; 3];
    let [remote, world, others] = &mut groups;
    let mut count = 0;
    // SAFETY: the communicators are valid, and all results are writable.
    let counted = unsafe {
        let world_comm = raw::Comm(abi::COMM_WORLD);
        ok(next.PMPI_Comm_remote_group(inter, remote))
            .and_then(|()| ok(next.PMPI_Comm_group(world_comm, world)))
            .and_then(|()| ok(next.PMPI_Group_difference(*remote, *world, others)))
            .and_then(|()| ok(next.PMPI_Group_size(*others, &mut count)))
    };
    for group in &mut groups {
        if *group != raw::Group::NULL && group.0 != abi::GROUP_EMPTY {
            // SAFETY: the host has made the group above, and nothing else knows it.
            unsafe { next.PMPI_Group_free(group) };
        }
    }
    counted.map(|()| count)
}
