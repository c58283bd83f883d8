//! Tests that the hints which a file returns have an effect.

use crate::job::ranks_with;
use std::sync::atomic::{AtomicU64, Ordering};
use typepack::io::{File, Mode};
use typepack::{Datatype, Named};
use typepack_job::sys::files::{self, Order, Table};

static READS: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);
/// The last advice: 1 for none, 2 for sequential, 3 for random.
static ADVICE: AtomicU64 = AtomicU64::new(0);

const COUNTING: Table = Table {
    pread: |fd, memory, bytes, at| {
        READS.fetch_add(1, Ordering::Relaxed);
        LONGEST.fetch_max(bytes as u64, Ordering::Relaxed);
        // SAFETY: the real call gets the caller's memory.
        unsafe { (Table::SYSTEM.pread)(fd, memory, bytes, at) }
    },
    advise: |fd, order| {
        let number = match order {
            Order::Unknown => 1,
            Order::Sequential => 2,
            Order::Random => 3,
        };
        ADVICE.store(number, Ordering::Relaxed);
        (Table::SYSTEM.advise)(fd, order)
    },
    ..Table::SYSTEM
};

fn hints(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn hints_that_are_returned_have_an_effect() {
    let name = "hints_that_are_returned_have_an_effect";
    ranks_with(1, name, &[("TYPEPACK_IO", "pwrite")], |world| {
        let path = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
        // SAFETY: the functions of `COUNTING` pass the caller's memory to the system calls.
        unsafe { files::replace(COUNTING) };
        let mode = Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE;
        let given = hints(&[("access_style", "write_once, sequential"), ("cb_nodes", "3")]);
        let file = File::open_with(world, &path, mode, &given).expect("a file");
        assert_eq!(ADVICE.swap(0, Ordering::Relaxed), 2);
        let all = [
            ("access_style", "write_once,sequential"),
            ("ind_rd_buffer_size", "1048576"),
            ("romio_ds_read", "automatic"),
        ];
        assert_eq!(file.hints(), hints(&all));
        // 64 pieces of 8 bytes, 64 bytes apart.
        let byte = Datatype::named(Named::U8);
        let piece = Datatype::contiguous(8, &byte).expect("a type");
        let filetype = Datatype::resized(0, 64, &piece).expect("a type");
        file.set_view(Some(0), &byte, &filetype, "native").expect("a view");
        let data: Vec<u8> = (0..512).map(|at| (at * 7 % 251) as u8).collect();
        file.write_at(0, &data).expect("written");
        let reads = |given: &[(&str, &str)]| {
            file.set_hints(&hints(given)).expect("hints");
            READS.store(0, Ordering::Relaxed);
            LONGEST.store(0, Ordering::Relaxed);
            let mut back = [0u8; 512];
            assert_eq!(file.read_at(0, &mut back).expect("read"), 512);
            assert_eq!(back[..], data[..]);
            (READS.load(Ordering::Relaxed), LONGEST.load(Ordering::Relaxed))
        };
        assert_eq!(reads(&[]), (1, 63 * 64 + 8));
        assert_eq!(reads(&[("romio_ds_read", "disable")]), (64, 8));
        let small = [("romio_ds_read", "enable"), ("ind_rd_buffer_size", "256")];
        assert_eq!(reads(&small), (16, 200));
        // A window that is shorter than a piece, and one of a single byte.
        assert_eq!(reads(&[("ind_rd_buffer_size", "5")]), (128, 5));
        assert_eq!(reads(&[("ind_rd_buffer_size", "1")]), (512, 1));
        assert_eq!(ADVICE.load(Ordering::Relaxed), 2);
        // Pieces that are far apart are read together only if a hint says so.
        let far = Datatype::resized(0, 1 << 17, &piece).expect("a type");
        file.set_view(Some(0), &byte, &far, "native").expect("a view");
        file.write_at(0, &data).expect("written");
        assert_eq!(
            reads(&[("romio_ds_read", "automatic"), ("ind_rd_buffer_size", "1048576")]).0,
            64
        );
        assert_eq!(reads(&[("romio_ds_read", "enable"), ("access_style", "random")]).0, 8);
        assert_eq!(ADVICE.load(Ordering::Relaxed), 3);
        file.close().expect("closed");
    });
}
