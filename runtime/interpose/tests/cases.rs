//! Single cases that the random types of `interpose.rs` do not reach, each a regression test. The programs are
//! `c/cases.c` and `c/threads.c`.

mod support;

use std::path::Path;
use support::{Variables, alone, compiled, counted, good, job, library, mpich};

/// The calls that the library must have done in a case, on rank 0.
#[derive(Clone, Copy)]
enum Calls {
    /// At least as many.
    AtLeast(u64),
    /// None: the library passes at least as many to the host.
    Passed(u64),
    /// None: the library stands aside, and prints nothing.
    Nothing,
}

/// Runs a case of a program on two ranks, plain and with the library. The plain job shows that the case itself is right.
#[track_caller]
fn case(source: &str, word: &str, variables: Variables, calls: Calls) {
    on_both(source, word, variables, calls, true);
}

/// Runs a case of `cases.c` only with the library, because MPICH 5.0.2 alone gives wrong data in this case.
#[track_caller]
fn better(word: &str, variables: Variables, calls: Calls) {
    on_both("cases.c", word, variables, calls, false);
}

#[track_caller]
fn on_both(source: &str, word: &str, variables: Variables, calls: Calls, plain: bool) {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let name = source.trim_end_matches(".c");
    let program = compiled(&mpich, "mpicc_abi", source, &format!("{name}-{word}"), &["-pthread"]);
    let words = [program.to_str().expect("UTF-8"), word];
    let wanted = format!("{word}: no difference\n").repeat(2);
    if plain {
        let [out, err] = good(&mut job(&mpich, &[&[], &[]], &words));
        assert_eq!(out, wanted, "without the library: {err}");
    }
    let on = [&[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1")], variables].concat();
    let [out, err] = good(&mut job(&mpich, &[&on, &on], &words));
    assert_eq!(out, wanted, "{err}");
    match calls {
        Calls::AtLeast(least) => {
            assert!(counted(&err, "calls done by typepack") >= least, "{err}");
        }
        Calls::Passed(least) => {
            assert_eq!(counted(&err, "calls done by typepack"), 0, "{err}");
            assert!(counted(&err, "calls passed to the host") >= least, "{err}");
        }
        Calls::Nothing => assert_eq!(err, ""),
    }
}

const ALL: Variables<'static> = &[("TYPEPACK_INTERPOSE", "all")];

/// `PMPI_Wait` on a request that `MPI_Irecv` had made once left the data in the library's buffer, and `PMPI_Start` once
/// sent the data of the start before.
#[test]
fn requests_are_completed_by_both_names() {
    case("cases.c", "profiled", &[], Calls::AtLeast(25));
}

/// The data of a receive that the program had freed were once lost if they came during `MPI_Finalize`. MPICH 5.0.2 alone
/// loses them too.
#[test]
fn finalize_waits_for_freed_receives() {
    better("freed", &[], Calls::AtLeast(2));
}

#[test]
fn types_with_absolute_addresses_are_packed() {
    case("cases.c", "bottom", &[("TYPEPACK_TUNE", "off")], Calls::AtLeast(8));
    case("cases.c", "bottom", ALL, Calls::AtLeast(8));
}

#[test]
fn cancelled_receives_deliver_nothing() {
    case("cases.c", "cancel", &[], Calls::AtLeast(9));
}

/// Long messages of several basic types, which the sender packs, once failed with `MPI_ERR_TYPE` if the receiver's type
/// was a predefined pair type. (`MPI_Isendrecv_replace` of MPICH 5.0.2 alone replaces such pairs by wrong data.)
#[test]
fn long_packed_messages_arrive_in_pair_types() {
    better("pairs", ALL, Calls::AtLeast(20));
}

/// The same messages once failed if the receiver's type could not be rebuilt.
#[test]
fn long_packed_messages_arrive_in_types_that_only_the_host_knows() {
    better("left", ALL, Calls::AtLeast(20));
}

/// A type whose levels each have the level below twice once took time that doubled with each level.
#[test]
fn the_levels_of_a_deep_type_are_rebuilt_once() {
    case("cases.c", "deep", &[("TYPEPACK_TUNE", "off")], Calls::AtLeast(2));
}

/// With MPICH 5.0.2, the packed sends of a rank were once not complete before the other rank called MPI again, if that
/// rank sent other messages of the exchange unpacked. This library had asked MPICH for the status of each send.
#[test]
fn sends_are_complete_while_the_receiver_is_not_in_mpi() {
    case("cases.c", "apart", ALL, Calls::AtLeast(100));
}

/// Messages of long blocks were once packed. With blocks of 4 KiB they took twice as long as with MPICH alone.
#[test]
fn messages_of_long_blocks_go_to_the_host() {
    case("cases.c", "long", &[], Calls::Passed(60));
    case("cases.c", "long", ALL, Calls::Passed(60));
    case("cases.c", "long", &[("TYPEPACK_TUNE", "off")], Calls::AtLeast(30));
}

#[test]
fn threads_exchange_messages_at_once() {
    case("threads.c", "many", &[], Calls::AtLeast(100));
    case("threads.c", "many", ALL, Calls::AtLeast(100));
}

/// Types that a program makes before `MPI_Init` in a session stay with the host.
#[test]
fn sessions_pass_through() {
    case("threads.c", "session", &[], Calls::Nothing);
    case("threads.c", "session", ALL, Calls::Nothing);
    case("threads.c", "both", &[("TYPEPACK_TUNE", "off")], Calls::AtLeast(50));
    case("threads.c", "both", ALL, Calls::AtLeast(10));
}

/// The library's own copy of a type once kept the program's type alive until finalize, so that the functions of its
/// attributes were not called. A thread that ended could free the copy.
#[test]
fn the_copy_of_a_type_is_freed_with_the_type() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let shared = ["-shared", "-fPIC", "-DCOUNT"];
    let tool = compiled(&mpich, "mpicc_abi", "tool.c", "libtool-count.so", &shared);
    let program = compiled(&mpich, "mpicc_abi", "threads.c", "threads-end", &["-pthread"]);
    let mut command = support::limited(60, Path::new(&program));
    command.env("LD_PRELOAD", format!("{} {}", library().display(), tool.display()));
    let [out, err] = good(command.arg("end"));
    assert_eq!(out, "end: no difference\n", "{err}");
}
