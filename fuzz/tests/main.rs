//! The tests of the fuzzer's generators and oracles, and of the repository as a whole (`layers`, `paths`, `rooms`, `texts`):
//! one program, so that it is linked once. Tests that count allocations (`transport.rs`) or what all kernels of the process
//! do (`catches.rs`) have programs of their own.

#[path = "../../runtime/tests/job/mod.rs"]
#[expect(dead_code, reason = "the tests of the runtime use the rest")]
mod job;

mod choices;
mod layers;
mod paths;
mod properties;
mod regressions;
mod rooms;
mod texts;
mod threads;
