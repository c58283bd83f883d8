//! Converts every constant in both directions, and values that are no constants.

use crate::handle::Handle;
use crate::number::{
    Pairs, bits_to_ours, bits_to_theirs, displacement, strange, to_ours, to_theirs,
};
use crate::status::{At, In, Theirs, make_ours, make_theirs};
use crate::{array, buffer, code, handle, panics, raw, shown, text, values};
use std::ffi::c_int;

const KINDS: [&Pairs; 24] = [
    &values::RANK,
    &values::TAG,
    &values::THREAD,
    &values::AMODE,
    &values::ASSERT,
    &values::LOCK,
    &values::SEEK,
    &values::SPLIT,
    &values::ORDER,
    &values::DISTRIBUTION,
    &values::DARG,
    &values::COMBINER,
    &values::TYPECLASS,
    &values::COMPARISON,
    &values::TOPOLOGY,
    &values::KEYVAL,
    &values::FLAVOR,
    &values::MODEL,
    &values::VERBOSITY,
    &values::BIND,
    &values::SCOPE,
    &values::VAR_CLASS,
    &values::SAFETY,
    &values::ORDERING,
];

#[test]
fn every_constant_returns_from_the_other_abi() {
    for pairs in KINDS {
        assert!(!pairs.0.is_empty());
        for (ours, theirs) in pairs.0 {
            assert_eq!((to_ours(pairs, *theirs), to_theirs(pairs, *ours)), (*ours, *theirs));
        }
        for number in [-32766, 7_777_777] {
            assert_eq!((to_ours(pairs, number), to_theirs(pairs, number)), (number, number));
        }
        // A number that only the ABI has for a constant is wrong.
        for (ours, _) in pairs.0 {
            if pairs.0.iter().all(|(_, theirs)| theirs != ours) {
                let wrong = to_ours(pairs, *ours);
                assert!(wrong < -99_000_000);
                assert_eq!(strange(wrong), Some(*ours));
            }
        }
    }
    for pairs in [&values::AMODE, &values::ASSERT] {
        let all = 1 << pairs.0.len();
        for set in 0..all {
            let chosen = pairs.0.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            let (ours, theirs) =
                chosen.fold((0, 0), |(a, b), (_, (ours, theirs))| (a | ours, b | theirs));
            assert_eq!((bits_to_ours(pairs, theirs), bits_to_theirs(pairs, ours)), (ours, theirs));
        }
        let wrong = bits_to_ours(pairs, 1 << 20);
        assert!(wrong & 1 << 30 != 0 && bits_to_theirs(pairs, wrong) == 1 << 20);
    }
    let to_ours = |number| displacement(number, values::DISPLACEMENT_CURRENT);
    assert_eq!(to_ours(-54_278_278), -1);
    // -1 is a wrong displacement in MPICH.
    assert_eq!(strange(to_ours(-1) as c_int), Some(-1));
    assert_eq!((to_ours(-2), to_ours(0), to_ours(1 << 40)), (-2, 0, 1 << 40));
}

#[test]
fn error_codes_return_from_the_other_abi() {
    for (ours, theirs) in values::CODE.0 {
        assert_eq!((code::to_ours(*theirs), code::to_theirs(*ours)), (*ours, *theirs));
    }
    // Codes that the program has added, and numbers that are no codes of MPICH, keep their identity.
    for number in (16384..16500).chain([i32::MAX - 0x3fff_ffff]) {
        assert!(code::to_theirs(number) > 0x3fff_ffff);
        assert_eq!(code::to_ours(code::to_theirs(number)), number);
    }
    for number in (1..20_000).chain([-1, -77, 0x3fff_fffe, 0x4000_0001]) {
        assert_eq!(code::to_theirs(code::to_ours(number)), number, "{number}");
    }
    let used: Vec<c_int> = (1..20_000).map(code::to_ours).collect();
    let distinct: std::collections::BTreeSet<c_int> = used.iter().copied().collect();
    assert_eq!(distinct.len(), used.len());
    assert_eq!((code::outcome(0), code::outcome(15)), (0, 14));
}

fn check_kind<H: Handle<Theirs = c_int> + std::fmt::Debug>(
    pairs: &[(usize, u32)],
    kind: u32,
    make: fn(usize) -> H,
) {
    assert!(!pairs.is_empty());
    for (ours, theirs) in pairs {
        assert_eq!(H::to_ours(*theirs as c_int), make(*ours));
        assert_eq!(make(*ours).to_theirs(), *theirs as c_int);
        assert_eq!(handle::shown(*ours), *theirs as usize);
    }
    // Handles of a user's objects are the same number. None of them is a predefined handle in MPICH.
    for low in [0_u32, 1, 0xff, 0x101, 0x00c0_ffee, 0x0fff_ffff] {
        let user = (kind << 28) | low;
        assert_eq!(H::to_ours(user as c_int), make(user as usize));
        assert_eq!(make(user as usize).to_theirs(), user as c_int);
        assert!(pairs.iter().all(|(_, theirs)| theirs >> 28 != kind));
    }
    // Handles of the ABI are no handles of MPICH.
    for wrong in [0, 1, 0x20, 0x101, 0x102, 0x209, 0x180, 0x1fff] {
        assert_eq!(H::to_ours(wrong), H::NOTHING);
    }
    assert_eq!(H::NOTHING.to_theirs(), 0);
}

#[test]
fn handles_return_from_the_other_abi() {
    check_kind(values::DATATYPE, 1, raw::Datatype);
    check_kind(values::COMM, 2, raw::Comm);
    check_kind(values::GROUP, 3, raw::Group);
    check_kind(values::REQUEST, 4, raw::Request);
    check_kind(values::REQUEST, 12, raw::Request);
    check_kind(values::MESSAGE, 5, raw::Message);
    check_kind(values::ERRHANDLER, 6, raw::Errhandler);
    check_kind(values::INFO, 7, raw::Info);
    check_kind(values::OP, 8, raw::Op);
    check_kind(values::WIN, 9, raw::Win);
    check_kind(values::SESSION, 11, raw::Session);
    // A file's handle is as wide as an address, and null is the null handle.
    assert_eq!(raw::File::to_ours(raw::File(0)), raw::File(0x118));
    assert_eq!(raw::File(0x118).to_theirs(), raw::File(0));
    assert_eq!(raw::File::to_ours(raw::File(0xa000_0001)), raw::File(0xa000_0001));
    assert_eq!(raw::File::to_ours(raw::File(0x118)), raw::File(0));
    assert_eq!(handle::shown(0xa000_0001), 0xa000_0001);
}

#[test]
fn statuses_keep_their_fields() {
    let theirs = |ours: raw::Status| {
        let mut memory = ours;
        // SAFETY: the address is that of a status.
        unsafe { make_theirs(&raw mut memory) };
        // SAFETY: the memory begins with a status of MPICH.
        unsafe { (&raw const memory).cast::<Theirs>().read() }
    };
    for (source, tag, error, bytes, cancelled) in [
        (3, 9, 0, 0_u64, 0),
        (-1, -2, 15, 1 << 31, 1),
        (-3, 0, 0, (1 << 62) - 1, 0),
        (0, -2, 20_000, 0x1234_5678_9abc, 1),
    ] {
        let ours = raw::Status {
            source,
            tag,
            error,
            internal: [bytes as u32 as c_int, (bytes >> 32) as c_int, cancelled, 0, 0],
        };
        let mut back = theirs(ours);
        // SAFETY: the address is that of a status.
        let read = unsafe { In::new(&raw const back) };
        // SAFETY: the status is there.
        let read = unsafe { *read.place() };
        let fields = |s: &raw::Status| (s.source, s.tag, s.error, s.internal);
        assert_eq!(fields(&read), fields(&ours));
        // A call that writes nothing leaves the program's status alone, and one that writes no error leaves the error.
        let before = format!("{back:?}");
        // SAFETY: the address is that of a status.
        unsafe { At::new(&raw mut back).store() };
        assert_eq!(format!("{back:?}"), before);
        let mut at = At::new(&raw mut back);
        // SAFETY: the place has a status.
        unsafe {
            (*at.place()).source = 5;
            (*at.place()).tag = 6;
            at.store();
        }
        // SAFETY: the address is that of a status.
        let read = unsafe { *In::new(&raw const back).place() };
        assert_eq!((read.source, read.tag, read.error), (5, 6, error));
    }
    let mut at = At::new(std::ptr::without_provenance_mut(1));
    assert!(at.place().is_null());
    // SAFETY: the status is ignored.
    unsafe { at.store() };
    let mut memory = [0_u64; 4];
    // SAFETY: there is room for a status of either ABI.
    unsafe { make_ours(memory.as_mut_ptr().cast()) };
    assert_eq!(memory, [0; 4]);
}

#[test]
fn sentinels_of_buffers_and_short_texts() {
    let sentinel = |address: usize| buffer::to_ours(std::ptr::without_provenance(address)) as usize;
    assert_eq!((sentinel(0), sentinel(usize::MAX), sentinel(usize::MAX - 1)), (0, 1, 2));
    assert_eq!(sentinel(0x7000_0000), 0x7000_0000);
    let mut place = 2_usize;
    // SAFETY: the address is that of an address.
    unsafe { buffer::detached((&raw mut place).cast()) };
    assert_eq!(place, usize::MAX - 1);
    let (long, mut room) = ([b'x'; 200], [1_u8; 128]);
    let mut out = text::Out::new(room.as_mut_ptr().cast(), values::MAX_PROCESSOR_NAME);
    // SAFETY: the place has room for the ABI's longest text, and the program's room is as long as MPICH says.
    unsafe {
        out.place().cast::<u8>().copy_from_nonoverlapping(long.as_ptr(), long.len());
        out.store(1);
        assert_eq!(room, [1; 128]);
        out.store(0);
    }
    assert!(room[..127].iter().all(|byte| *byte == b'x') && room[127] == 0);
    let mut length = 200;
    // SAFETY: the address is that of a number.
    unsafe { text::clip(&raw mut length, values::MAX_PROCESSOR_NAME) };
    assert_eq!(length, 127);
}

#[test]
fn arrays_of_any_length() {
    for number in [-1, 0, 1, 16, 17, 1000] {
        let theirs: Vec<c_int> = (0..number.max(0)).map(|at| 0x4c00_0405 - (at & 1)).collect();
        // SAFETY: the array has so many handles.
        let all = unsafe { array::handles::<raw::Datatype>(theirs.as_ptr(), number.into()) };
        let all = all.expect("memory");
        assert_eq!(all.entries().len(), theirs.len());
        let mut back = vec![0; theirs.len()];
        // SAFETY: the array has so many handles.
        unsafe { array::store(back.as_mut_ptr(), &all) };
        assert_eq!(back, theirs);
    }
    // SAFETY: there is no array.
    let none = unsafe { array::handles::<raw::Comm>(std::ptr::null(), 5) }.expect("memory");
    assert!(none.as_ptr().is_null());
    // More than the memory of the machine is no panic.
    assert!(array::handle_room::<raw::Comm>(&0, i64::MAX).is_none());
}

#[test]
fn a_call_writes_only_handles_that_it_has_changed() {
    for number in [0, 3, 40] {
        let mut theirs: Vec<c_int> = (0..number).map(|at| 0x4000_1000 + at).collect();
        // SAFETY: the array has so many handles.
        let all = unsafe { array::both::<raw::Request>(theirs.as_ptr(), number.into()) };
        let mut all = all.expect("memory");
        if number > 0 {
            // The call completes one; another thread puts a request of its own into an entry that the call leaves alone.
            // SAFETY: the array has more than one handle.
            unsafe { all.as_mut_ptr().add(1).write(raw::Request(values::REQUEST[0].0)) };
            theirs[2] = 0x4000_2222;
        }
        // SAFETY: the array has so many handles.
        unsafe { array::store_changed(theirs.as_mut_ptr(), &all) };
        for (at, handle) in theirs.into_iter().enumerate() {
            let wanted = match at {
                1 => values::REQUEST[0].1 as c_int,
                2 => 0x4000_2222,
                _ => 0x4000_1000 + at as c_int,
            };
            assert_eq!(handle, wanted, "{at} of {number}");
        }
    }
}

#[test]
fn error_texts_show_the_values_of_the_program() {
    let wrong = |pairs, number| to_ours(pairs, number);
    for (function, text, wanted) in [
        // MPI_ANY_SOURCE is -1 here and -2 there.
        (
            "MPI_Send",
            "dest: -1 is not a rank; the communicator has 3 ranks".into(),
            "dest: -2 is not a rank; the communicator has 3 ranks",
        ),
        (
            "MPI_Send",
            format!("dest: {} is not a rank", wrong(&values::RANK, -3)),
            "dest: -3 is not a rank",
        ),
        ("MPI_Send", "dest: 7 is not a rank".into(), "dest: 7 is not a rank"),
        // Here the argument is no rank that may be a constant.
        ("MPI_Graph_neighbors", "rank: -1 is not a rank".into(), "rank: -1 is not a rank"),
        ("MPI_Win_lock", "rank: -1 is not a rank".into(), "rank: -2 is not a rank"),
        (
            "MPI_File_set_view",
            format!("disp: {} is negative", -1_000_000_001_i64),
            "disp: -1 is negative",
        ),
        (
            "MPI_File_open",
            format!("amode: {:#x} has bits", bits_to_ours(&values::AMODE, 1 << 20)),
            "amode: 0x100000 has bits",
        ),
        (
            "MPI_File_open",
            format!("amode: {:#x} has bits", bits_to_ours(&values::AMODE, -1)),
            "amode: 0xffffffff has bits",
        ),
        (
            "MPI_Send",
            format!("count: {} is negative", c_int::MIN),
            "count: -2147483648 is negative",
        ),
        ("MPI_Error_class", format!("errorcode: {}", code::to_ours(17_000)), "errorcode: 17000"),
        (
            "MPI_Send",
            "count: x-1 1.5 0x10 1e3 2k is odd".into(),
            "count: x-1 1.5 0x10 1e3 2k is odd",
        ),
        ("MPI_Send", "".into(), ""),
        ("MPI_Send", "\u{e9}: -".into(), "\u{e9}: -"),
    ] {
        assert_eq!(shown::text(function, &text), wanted);
    }
}

#[test]
fn a_panic_is_a_text() {
    panics::watch();
    assert_eq!(panics::caught(|| 5), Ok(5));
    let text = panics::caught(|| -> c_int { panic!("a {}", "fault") }).unwrap_err();
    assert!(text.starts_with("a fault (") && text.contains("conversions.rs:"), "{text}");
}
