//! Single cases that the random types of `interpose.rs` do not reach, each a regression test. The programs are
//! `c/cases.c`, `c/errors.c` and `c/threads.c`.

use crate::support::{Variables, alone, compiled, counted, good, job, library, mpich};
use std::path::Path;

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

/// Runs a case of a program on two ranks, plain, and with the library and each of the given lists of variables. The plain
/// job shows that the case itself is right.
#[track_caller]
fn case(source: &str, word: &str, runs: &[(Variables, Calls)]) {
    on_both(source, word, runs, true);
}

/// Runs a case of `cases.c` only with the library, because MPICH 5.0.2 alone gives wrong data in this case.
#[track_caller]
fn better(word: &str, variables: Variables, calls: Calls) {
    on_both("cases.c", word, &[(variables, calls)], false);
}

#[track_caller]
fn on_both(source: &str, word: &str, runs: &[(Variables, Calls)], plain: bool) {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let name = source.trim_end_matches(".c");
    let program = compiled(&mpich, "mpicc_abi", source, name, &["-pthread"]);
    let words = [program.to_str().expect("UTF-8"), word];
    let wanted = format!("{word}: no difference\n").repeat(2);
    if plain {
        let [out, err] = good(&mut job(&mpich, &[&[], &[]], &words));
        assert_eq!(out, wanted, "without the library: {err}");
    }
    for (variables, calls) in runs {
        let on = [&[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1")], *variables].concat();
        let [out, err] = good(&mut job(&mpich, &[&on, &on], &words));
        assert_eq!(out, wanted, "{variables:?}: {err}");
        match *calls {
            Calls::AtLeast(least) => {
                assert!(counted(&err, "calls done by typepack") >= least, "{variables:?}: {err}");
            }
            Calls::Passed(least) => {
                assert_eq!(counted(&err, "calls done by typepack"), 0, "{variables:?}: {err}");
                let passed = counted(&err, "calls passed to the host");
                assert!(passed >= least, "{variables:?}: {err}");
            }
            Calls::Nothing => assert_eq!(err, "", "{variables:?}"),
        }
    }
}

const ALL: Variables<'static> = &[("TYPEPACK_INTERPOSE", "all")];
const OFF: Variables<'static> = &[("TYPEPACK_TUNE", "off")];
const ALL_OFF: Variables<'static> = &[("TYPEPACK_INTERPOSE", "all"), ("TYPEPACK_TUNE", "off")];

/// `PMPI_Wait` on a request that `MPI_Irecv` had made once left the data in the library's buffer, and `PMPI_Start` once
/// sent the data of the start before.
#[test]
fn requests_are_completed_by_both_names() {
    case("cases.c", "profiled", &[(&[], Calls::AtLeast(25))]);
}

/// The data of a receive that the program had freed were once lost if they came during `MPI_Finalize`. MPICH 5.0.2
/// alone loses them too.
#[test]
fn finalize_waits_for_freed_receives() {
    better("freed", &[], Calls::AtLeast(3));
}

/// The library keeps the requests that a program has freed. MPICH waits in `MPI_Comm_disconnect` until no request uses
/// the communicator, so such a program once hung there.
#[test]
fn freed_requests_do_not_keep_a_communicator() {
    case("errors.c", "disconnect", &[(OFF, Calls::AtLeast(10)), (ALL_OFF, Calls::AtLeast(10))]);
}

/// The library once took no part in finalize, where MPI calls the functions on `MPI_COMM_SELF`: the data of a receive
/// that such a function completed were lost, and a persistent send sent old data.
#[test]
fn messages_end_in_functions_that_finalize_calls() {
    case("cases.c", "callbacks", &[(OFF, Calls::AtLeast(3)), (ALL_OFF, Calls::AtLeast(3))]);
}

#[test]
fn types_with_absolute_addresses_are_packed() {
    case("cases.c", "bottom", &[(OFF, Calls::AtLeast(8)), (ALL, Calls::AtLeast(8))]);
}

#[test]
fn cancelled_messages_deliver_nothing() {
    case("cases.c", "cancel", &[(&[], Calls::AtLeast(9))]);
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

/// `MPI_Alltoallw` with a receive that must be packed once went to the host if another block had a contiguous pair
/// type, a type of Fortran, or a type whose commit the library had not seen. MPICH then failed with `MPI_ERR_TYPE`.
#[test]
fn contiguous_blocks_do_not_keep_others_from_being_packed() {
    case("cases.c", "wide", &[(ALL, Calls::AtLeast(6))]);
}

/// MPICH gives one request for several collective calls that are complete. The data of the first one were once lost,
/// and its buffer was never returned, so that the host did the calls after some hundreds.
#[test]
fn calls_that_share_a_request_return_their_buffers() {
    case("cases.c", "shared", &[(ALL_OFF, Calls::AtLeast(1200))]);
}

/// With a wrong communicator, the program's error handler was once called twice. `MPI_Request_free` of a collective
/// call once succeeded. A receive that failed once wrote what a buffer of the library had from an earlier message.
#[test]
fn wrong_calls_fail_as_with_the_host() {
    case("errors.c", "wrong", &[(OFF, Calls::AtLeast(0)), (ALL_OFF, Calls::AtLeast(2))]);
}

/// Programs may have error handlers of their own, after which MPICH returns no error.
#[test]
fn truncated_receives_write_no_other_data() {
    case("errors.c", "truncated", &[(OFF, Calls::AtLeast(50)), (ALL_OFF, Calls::AtLeast(50))]);
}

#[test]
fn buffers_for_more_than_two_gigabytes_are_received_into() {
    case("errors.c", "huge", &[(ALL_OFF, Calls::AtLeast(5))]);
}

#[test]
fn children_of_a_rank_end_without_harm() {
    case("errors.c", "fork", &[(OFF, Calls::AtLeast(3)), (ALL_OFF, Calls::AtLeast(3))]);
}

/// A rank met processes of another job, and the other ranks, which met them later, still packed long messages of
/// several basic types for them. So did ranks that met them by functions whose names begin with `PMPI_`.
#[test]
fn all_ranks_know_of_processes_that_one_rank_has_met() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let program = compiled(&mpich, "mpicc_abi", "errors.c", "errors", &["-pthread"]);
    let shared = ["-shared", "-fPIC"];
    let tool = compiled(&mpich, "mpicc_abi", "tool.c", "libtool-met.so", &shared);
    let both = format!("{} {}", library().display(), tool.display());
    let all: Variables =
        &[("LD_PRELOAD", &both), ("TYPEPACK_INTERPOSE", "all"), ("TYPEPACK_TUNE", "off")];
    for word in ["outsider", "foreign", "insider"] {
        for variables in [&[] as Variables, all] {
            let words = [program.to_str().expect("UTF-8"), word];
            let [out, err] = good(&mut job(&mpich, &[variables; 2], &words));
            assert_eq!(out, format!("{word}: no difference\n").repeat(2), "{err}");
        }
    }
}

#[test]
fn an_aborted_job_ends_with_its_code() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let program = compiled(&mpich, "mpicc_abi", "errors.c", "errors", &["-pthread"]);
    let words = [program.to_str().expect("UTF-8"), "abort"];
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let all: Variables = &[("LD_PRELOAD", library), ("TYPEPACK_INTERPOSE", "all")];
    for variables in [&[] as Variables, &[("LD_PRELOAD", library)], all] {
        let done =
            crate::support::run(&mut crate::support::long_job(60, &mpich, &[variables; 2], &words));
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{variables:?}: {err}");
        assert!(!err.contains("typepack"), "{err}");
    }
}

/// A type whose levels each have the level below twice once took time that doubled with each level.
#[test]
fn the_levels_of_a_deep_type_are_rebuilt_once() {
    case("cases.c", "deep", &[(&[("TYPEPACK_TUNE", "off")], Calls::AtLeast(2))]);
}

/// With MPICH 5.0.2, the packed sends of a rank were once not complete before the other rank called MPI again, if that
/// rank sent other messages of the exchange unpacked. This library had asked MPICH for the status of each send.
#[test]
fn sends_are_complete_while_the_receiver_is_not_in_mpi() {
    case("cases.c", "apart", &[(ALL, Calls::AtLeast(100))]);
}

/// Messages of long blocks were once packed. With blocks of 4 KiB they took twice as long as with MPICH alone.
#[test]
fn messages_of_long_blocks_go_to_the_host() {
    case(
        "cases.c",
        "long",
        &[
            (&[], Calls::Passed(60)),
            (ALL, Calls::Passed(60)),
            (&[("TYPEPACK_TUNE", "off")], Calls::AtLeast(30)),
        ],
    );
}

#[test]
fn threads_exchange_messages_at_once() {
    case("threads.c", "many", &[(&[], Calls::AtLeast(100)), (ALL, Calls::AtLeast(100))]);
}

/// Types that a program makes before `MPI_Init` in a session stay with the host.
#[test]
fn sessions_pass_through() {
    case("threads.c", "session", &[(&[], Calls::Nothing), (ALL, Calls::Nothing)]);
    case(
        "threads.c",
        "both",
        &[(&[("TYPEPACK_TUNE", "off")], Calls::AtLeast(50)), (ALL, Calls::AtLeast(10))],
    );
}

/// The library's own copy of a type once kept the program's type alive until finalize, so that the functions of its
/// attributes were not called. A thread that ended could free the copy.
#[test]
fn the_copy_of_a_type_is_freed_with_the_type() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let shared = ["-shared", "-fPIC", "-DCOUNT"];
    let tool = compiled(&mpich, "mpicc_abi", "tool.c", "libtool-count.so", &shared);
    let program = compiled(&mpich, "mpicc_abi", "threads.c", "threads", &["-pthread"]);
    let mut command = crate::support::limited(Path::new(&program));
    command.env("LD_PRELOAD", format!("{} {}", library().display(), tool.display()));
    let [out, err] = good(command.arg("end"));
    assert_eq!(out, "end: no difference\n", "{err}");
}
