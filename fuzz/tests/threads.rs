//! Tests that several threads can use one plan at once while the lazy JIT compiles its kernels.

use std::sync::{Arc, Barrier};
use typepack_engine::{Settings, Strategy, typemap};
use typepack_fuzz::{Case, Stream};
use typepack_jit::{Jit, Mode};

#[test]
fn threads_share_a_plan_while_it_compiles() {
    let lines = [
        "3 * vector(500, 1, 3, double)",
        "2 * indexed_block(1, [0, 3, 4, 9, 11, 17, 18, 25, 31, 40], vector(20, 1, 2, int))",
        "400 * struct([1@0 char, 1@4 int, 1@8 double])",
        "1 * subarray(c, [12, 12, 12], double)",
    ];
    for line in lines.map(|l| l.replace("[12, 12, 12]", "[12:10@1, 12:10@1, 12:1@1]")) {
        let case: Case = line.parse().expect("a case");
        let ty = case.recipe.build().expect("a type");
        // One of the threads reaches the threshold during the loop below, while the others use the
        // plan.
        let threshold = 5 * ty.size() as u64 * case.count;
        let jit =
            Jit::new(typepack_jit::Settings { mode: Mode::Lazy, threshold, ..Default::default() });
        let compiler = Some(Arc::new(jit.clone()) as _);
        let strategy = Some(Strategy::Kernel);
        let settings = Settings { compiler, strategy, ..Settings::default() };
        let plan = ty.commit_with(&settings).expect("a plan");

        let length = (ty.extent() * case.count as i64).max(ty.true_ub()) as usize;
        let memory = Stream::new(4, 0).bytes(length);
        let packed = typemap::pack(&ty, case.count, &memory, 0);
        let mut unpacked = vec![0u8; length];
        typemap::unpack(&ty, case.count, &packed, &mut unpacked, 0);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (plan, memory, packed, unpacked) = (&plan, &memory, &packed, &unpacked);
                let (start, line) = (&start, &line);
                scope.spawn(move || {
                    let mut out = vec![0u8; packed.len()];
                    let mut back = vec![0u8; length];
                    start.wait();
                    for round in 0..60 {
                        out.fill(0);
                        typepack_engine::pack(plan, case.count, memory, &mut out).expect("pack");
                        assert!(out == *packed, "{line}: thread {thread}, round {round}: pack");
                        back.fill(0);
                        typepack_engine::unpack(plan, case.count, packed, &mut back)
                            .expect("unpack");
                        assert!(
                            back == *unpacked,
                            "{line}: thread {thread}, round {round}: unpack"
                        );
                    }
                });
            }
        });
        let counters = jit.counters();
        assert!(counters.kernels >= 2, "{line}: no kernels were compiled: {counters:?}");
    }
}
