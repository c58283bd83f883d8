//! Tests of the Rust API of files: accesses in the background that borrow their buffers for a scope, and arrays
//! of any layout.

use crate::job::ranks;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;
use typepack::io::{Access, File, Mode, Whence};
use typepack::{Communicator, Datatype, ErrorKind, Named, Request, Result, Scope, commit};
use typepack_job::sys::files::{self, Table};
use typepack_test_support::random::Random;

fn open(world: &Communicator, name: &str) -> (File, PathBuf) {
    let mut pid = [std::process::id()];
    world.broadcast(&mut pid, 0).expect("a number");
    let path = std::env::temp_dir().join(format!("typepack-{name}-{}", pid[0]));
    let mode = Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE;
    (File::open(world, &path, mode).expect("a file"), path)
}

/// A call that starts a write, and a call that starts a read. Calls with an explicit offset use the third argument as
/// the offset; the other calls ignore it.
type Calls = (
    for<'s, 'e> fn(&'s Scope<'s, 'e>, &File, u64, &'e [u16]) -> Result<Request<'s>>,
    for<'s, 'e> fn(&'s Scope<'s, 'e>, &File, u64, &'e mut [u16]) -> Result<Request<'s>>,
);

/// Tests each pair of calls. Each rank writes every `size`-th block of 10 values, and reads these blocks back. A
/// request that the program leaks must be complete at the end of the scope.
fn every_call(size: usize, name: &str) {
    ranks(size, name, |world| {
        let calls: [Calls; 4] = [
            (|s, f, at, b| s.iwrite_at(f, at, b), |s, f, at, b| s.iread_at(f, at, b)),
            (|s, f, at, b| s.iwrite_at_all(f, at, b), |s, f, at, b| s.iread_at_all(f, at, b)),
            (|s, f, _, b| s.iwrite(f, b), |s, f, _, b| s.iread(f, b)),
            (|s, f, _, b| s.iwrite_all(f, b), |s, f, _, b| s.iread_all(f, b)),
        ];
        let (rank, size) = (world.rank(), world.size());
        for (number, (write, read)) in calls.into_iter().enumerate() {
            let (file, path) = open(world, name);
            let value = Datatype::named(Named::U16);
            let block = Datatype::contiguous(10, &value).expect("a type");
            let filetype = Datatype::resized(0, 20 * size as i64, &block).expect("a type");
            file.set_view(Some(20 * rank as i64), &value, &filetype, "native").expect("a view");
            let data: Vec<u16> = (0..100).map(|i| (1000 * rank + i + number) as u16).collect();
            let (first, second) = data.split_at(40);
            file.scope(|scope| {
                let _leaked = Box::leak(Box::new(write(scope, &file, 0, first).expect("started")));
                let request = write(scope, &file, 40, second).expect("started");
                assert_eq!(scope.wait(request).expect("written").bytes, 120);
            })
            .expect("all are written");
            world.barrier().expect("a barrier");
            let found = std::fs::read(&path).expect("the file");
            let (values, _) = found.as_chunks::<2>();
            assert_eq!(values.len(), 100 * size);
            for (at, value) in values.iter().enumerate() {
                let (block, place) = (at / 10, at % 10);
                let wanted = 1000 * (block % size) + block / size * 10 + place + number;
                assert_eq!(u16::from_ne_bytes(*value), wanted as u16, "value {at}");
            }
            let mut back = [0u16; 110];
            file.seek(0, Whence::Set).expect("a position");
            let read = file.scope(|scope| {
                let mut request = read(scope, &file, 0, &mut back).expect("started");
                loop {
                    if let Some(status) = scope.test(&mut request).expect("no error") {
                        break status;
                    }
                }
            });
            // The file ends after 100 values of this rank's view.
            assert_eq!(read.expect("read").bytes, 200);
            assert_eq!(back[..100], data);
            assert_eq!(back[100..], [0; 10]);
            file.close().expect("closed");
        }
    });
}

#[test]
fn every_call_of_one_rank() {
    every_call(1, "every_call_of_one_rank");
}

#[test]
fn every_call_of_three_ranks() {
    every_call(3, "every_call_of_three_ranks");
}

#[test]
fn shared_accesses_take_all_places() {
    ranks(3, "shared_accesses_take_all_places", |world| {
        let (file, path) = open(world, "shared_accesses");
        let data: Vec<[u8; 5]> = (0..20).map(|i| [(20 * world.rank() + i) as u8; 5]).collect();
        file.scope(|scope| {
            for block in &data {
                scope.iwrite_shared(&file, block).expect("started");
            }
        })
        .expect("all are written");
        world.barrier().expect("a barrier");
        let found = std::fs::read(&path).expect("the file");
        let mut blocks: Vec<u8> = found.chunks(5).map(|block| block[0]).collect();
        assert!(found.chunks(5).all(|block| *block == [block[0]; 5]));
        blocks.sort_unstable();
        assert_eq!(blocks, (0..60).collect::<Vec<u8>>());
        file.close().expect("closed");
    });
}

/// True while the writes of `GATED` may go on.
static OPEN: AtomicBool = AtomicBool::new(true);
/// `BEGUN` counts the writes that have begun, and `ENDED` counts the writes that have ended.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);

fn fail() {
    panic!("the program panics while the access is under way");
}

fn pass() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
    while !OPEN.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(1));
    }
}

const GATED: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        pass();
        // SAFETY: the caller of this function guarantees what the system call needs: the memory is readable.
        let result = unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) };
        ENDED.fetch_add(1, Ordering::SeqCst);
        result
    },
    ..Table::SYSTEM
};

#[test]
fn a_pending_access_keeps_the_view_and_a_panic_waits_for_it() {
    ranks(2, "a_pending_access_keeps_the_view_and_a_panic_waits_for_it", |world| {
        let (file, path) = open(world, "pending");
        // SAFETY: the functions of `GATED` pass the caller's memory to the system calls.
        unsafe { files::replace(GATED) };
        let byte = Datatype::named(Named::U8);
        let data = Random(world.rank() as u64).bytes(1000);
        let at = 1000 * world.rank() as u64;
        OPEN.store(false, Ordering::SeqCst);
        file.scope(|scope| {
            let mut request = scope.iwrite_at(&file, at, &data).expect("started");
            assert!(scope.test(&mut request).expect("no error").is_none());
            let changed = file.set_view(Some(0), &byte, &byte, "native");
            assert_eq!(changed.expect_err("an access is under way").kind(), ErrorKind::Request);
            OPEN.store(true, Ordering::SeqCst);
            assert_eq!(scope.wait(request).expect("written").bytes, 1000);
            // The access is complete, so the view can change, although the scope goes on.
            file.set_view(Some(0), &byte, &byte, "native").expect("a view");
        })
        .expect("all are written");

        OPEN.store(false, Ordering::SeqCst);
        let mut data = [7u8; 1000];
        let (begun, ended) = (BEGUN.load(Ordering::SeqCst), ENDED.load(Ordering::SeqCst));
        let opener = std::thread::spawn(|| {
            sleep(Duration::from_millis(100));
            OPEN.store(true, Ordering::SeqCst);
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            file.scope(|scope| {
                scope.iwrite_at(&file, at, &data).expect("started");
                while BEGUN.load(Ordering::SeqCst) == begun {
                    sleep(Duration::from_millis(1));
                }
                fail();
            })
        }));
        assert!(panicked.is_err());
        // The write has ended, so the I/O thread no longer uses the buffer.
        assert_eq!(ENDED.load(Ordering::SeqCst), ended + 1);
        data.fill(9);
        opener.join().expect("the gate is open");
        world.barrier().expect("a barrier");
        assert_eq!(std::fs::read(&path).expect("the file"), [7; 2000]);
        // SAFETY: `SYSTEM` has the system calls that `GATED` calls.
        unsafe { files::replace(Table::SYSTEM) };
        file.close().expect("closed");
    });
}

/// Checks that the other ranks do not wait for a rank whose buffer is too short for its elements.
#[test]
fn a_short_buffer_of_one_rank_stops_no_other_rank() {
    ranks(3, "a_short_buffer_of_one_rank_stops_no_other_rank", |world| {
        let (file, _) = open(world, "short_buffer");
        let plan = commit(&Datatype::named(Named::U32)).expect("a plan");
        let count = if world.rank() == 1 { 5 } else { 4 };
        let mut buffer = [0u32; 4];
        let all = Access::at(0).together();
        file.write_as(all, &buffer, &plan, count).expect_err("a wrong buffer");
        file.read_as(all, &mut buffer, &plan, count).expect_err("a wrong buffer");
        let written =
            file.scope(|scope| scope.iwrite_as(&file, all, &buffer, &plan, count).map(drop));
        assert!(written.is_err() || written.is_ok_and(|started| started.is_err()));
        let read =
            file.scope(|scope| scope.iread_as(&file, all, &mut buffer, &plan, count).map(drop));
        assert!(read.is_err() || read.is_ok_and(|started| started.is_err()));
        file.write_as(all, &buffer, &plan, 4).expect("written");
        file.close().expect("closed");
    });
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_any_layout_are_written_and_read() {
    use ndarray::{Array, ArrayView3, ArrayViewMut3, s};
    /// Two functions that select the same part of an array, in some order: from a view, and from a mutable view.
    type Select = (
        for<'a> fn(ArrayView3<'a, i32>) -> ArrayView3<'a, i32>,
        for<'a> fn(ArrayViewMut3<'a, i32>) -> ArrayViewMut3<'a, i32>,
    );
    let selections: [Select; 6] = [
        (|a| a, |a| a),
        (|a| a.reversed_axes(), |a| a.reversed_axes()),
        (|a| a.slice_move(s![.., ..;-1, ..;2]), |a| a.slice_move(s![.., ..;-1, ..;2])),
        (|a| a.slice_move(s![1..;-2, 2..3, 1..]), |a| a.slice_move(s![1..;-2, 2..3, 1..])),
        (|a| a.permuted_axes([1, 2, 0]), |a| a.permuted_axes([1, 2, 0])),
        (|a| a.slice_move(s![.., 3..3, ..]), |a| a.slice_move(s![.., 3..3, ..])),
    ];
    ranks(2, "arrays_of_any_layout_are_written_and_read", |world| {
        let (file, path) = open(world, "arrays");
        let mut random = Random(world.rank() as u64);
        let whole = Array::from_shape_fn((4, 5, 6), |_| random.below(1 << 31) as i32);
        for representation in ["native", "external32"] {
            for (number, (view, view_mut)) in selections.into_iter().enumerate() {
                let part = view(whole.view());
                let int = Datatype::named(Named::I32);
                let start = 1000 * world.rank() as i64;
                file.set_size(0).expect("an empty file");
                file.set_view(Some(start), &int, &int, representation).expect("a view");
                file.write_array(Access::next().together(), part).expect("written");
                world.barrier().expect("a barrier");
                let found = std::fs::read(&path).expect("the file");
                let wanted = part.iter().flat_map(|value| match representation {
                    "native" => value.to_ne_bytes(),
                    _ => value.to_be_bytes(),
                });
                let wanted: Vec<u8> = wanted.collect();
                let own = found.get(start as usize..).unwrap_or_default();
                assert_eq!(own[..wanted.len()], wanted, "selection {number}");
                let mut other = Array::from_elem((4, 5, 6), -1);
                let read = file.read_array(Access::at(0), view_mut(other.view_mut()));
                assert_eq!(read.expect("read"), 4 * part.len());
                // The selected elements have their values, and no other element has changed.
                let mut model = Array::from_elem((4, 5, 6), -1);
                view_mut(model.view_mut()).assign(&part);
                assert_eq!(other, model, "selection {number}");
            }
        }
        file.close().expect("closed");
    });
}
