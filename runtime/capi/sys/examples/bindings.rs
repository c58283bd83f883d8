//! Each rank sends its number to the next one, and all check the sum: the calls, a status, a handle, a callback.

use std::ffi::{c_int, c_void};
use typepack_mpi_sys::*;

/// Adds `len` numbers to others.
unsafe extern "C" fn add(
    from: *mut c_void,
    to: *mut c_void,
    len: *mut c_int,
    _: *mut MPI_Datatype,
) {
    // SAFETY: MPI passes the addresses of `len` integers each, and `len` itself.
    let (from, to) = unsafe {
        let len = *len as usize;
        (
            std::slice::from_raw_parts(from.cast::<c_int>(), len),
            std::slice::from_raw_parts_mut(to.cast::<c_int>(), len),
        )
    };
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

fn main() {
    let (mut rank, mut size, mut from, mut sum, mut count) = (0, 0, -1, 0, 0);
    let mut op = MPI_OP_NULL;
    let mut status = MPI_Status { MPI_SOURCE: 0, MPI_TAG: 0, MPI_ERROR: 0, MPI_internal: [0; 5] };
    // SAFETY: the addresses are those of variables that live longer than the calls, and each buffer has one integer.
    unsafe {
        MPI_Init(std::ptr::null_mut(), std::ptr::null_mut());
        MPI_Comm_rank(MPI_COMM_WORLD, &mut rank);
        MPI_Comm_size(MPI_COMM_WORLD, &mut size);
        let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
        let (out, into) = ((&raw const rank).cast(), (&raw mut from).cast());
        MPI_Sendrecv(
            out,
            1,
            MPI_INT,
            next,
            7,
            into,
            1,
            MPI_INT,
            last,
            RSMPI_ANY_TAG,
            MPI_COMM_WORLD,
            &mut status,
        );
        MPI_Get_count(&status, MPI_INT, &mut count);
        assert_eq!((from, status.MPI_SOURCE, status.MPI_TAG, count), (last, last, 7, 1));
        MPI_Op_create(Some(add), 1, &mut op);
        MPI_Allreduce(out, (&raw mut sum).cast(), 1, MPI_INT, op, MPI_COMM_WORLD);
        assert_eq!(sum, size * (size - 1) / 2);
        MPI_Op_free(&mut op);
        assert_eq!(op, MPI_OP_NULL);
        let world = RSMPI_Comm_f2c(RSMPI_Comm_c2f(MPI_COMM_WORLD));
        assert_eq!(world, RSMPI_COMM_WORLD);
        println!("rank {rank} of {size}: the ring is closed");
        MPI_Finalize();
    }
}
