//! Tests of the ways and of the choices of long messages.

use super::*;
use typepack_engine::choice::Remembered;

const SITUATION: Situation = Situation {
    place: Some(Space::Heap),
    shape: Shape::Contiguous,
    contiguous: true,
    shared: true,
    far: false,
    busy: false,
};

fn terms(forced: Forced) -> Terms {
    Terms { eager_limit: 8 << 10, forced, copy: None }
}

#[test]
fn every_situation_has_a_key_and_ways() {
    let mut seen = std::collections::BTreeSet::new();
    for place in [None, Some(Space::Heap), Some(Space::Private)] {
        for shape in [Shape::Contiguous, Shape::Dense, Shape::Sparse] {
            for bits in 0..16 {
                let [contiguous, shared, far, busy] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
                let situation = Situation { place, shape, contiguous, shared, far, busy };
                let key = key(situation, 1 << 16);
                assert!(key.number() < FORM.keys());
                seen.insert(key.kind());
                for forced in [Forced::Nothing, Forced::Packed, Forced::Heap, Forced::Cma] {
                    for bytes in [1, STREAMING] {
                        let ways = situation.ways(bytes, terms(forced), None);
                        assert!(!ways.is_empty() && ways.len() <= WAYS);
                        for way in ways {
                            let (_, name) = FORM.ways[usize::from(way.number(key))];
                            assert!(name.contains(way.method().name()), "{way:?}: {name}");
                        }
                    }
                }
            }
        }
    }
    // Of the heap, the other two places, and the load: only the heap can be shared, and the load is no part of a key.
    assert_eq!(seen.len(), 3 * 2 * 2 * (2 + 1 + 1));
    let dense = Situation { shape: Shape::Dense, ..SITUATION };
    let said = "from 64 KiB, dense in heap to contiguous in a heap, near";
    assert_eq!(key(dense, 1 << 16).to_string(), said);
}

#[test]
fn forced_protocols_and_methods_leave_no_other_way() {
    let ways = |forced, copy| SITUATION.ways(1 << 20, terms(forced), copy);
    let is_packed = |way: &LongProtocol| {
        matches!(way, LongProtocol::Packed(_) | LongProtocol::PackedStreamed(_))
    };
    assert!(ways(Forced::Packed, None).iter().all(is_packed));
    assert!(!ways(Forced::Heap, None).iter().any(is_packed));
    let vector = Some(Method::Vector);
    assert_eq!(ways(Forced::Nothing, vector), [LongProtocol::InPlace(Method::Vector)]);
    let alone = Situation { shared: false, ..SITUATION };
    let both = [LongProtocol::InPlace(Method::Vector), LongProtocol::Packed(Method::Vector)];
    assert_eq!(alone.ways(1 << 20, terms(Forced::Nothing), vector), both);
}

/// Checks that a size class begins with the way that a neighbour has found better, even if the neighbour has not
/// tried all of its ways.
#[test]
fn a_better_way_is_passed_on_early() {
    let mut tuning = Tuning::default();
    let situation = Situation { place: None, shared: false, ..SITUATION };
    let ways = situation.ways(1 << 20, terms(Forced::Nothing), None);
    if ways.len() < 3 {
        return;
    }
    let begin = |tuning: &mut Tuning, bytes| {
        let way = tuning.begin(situation, bytes, terms(Forced::Nothing), || false);
        tuning.complete(bytes);
        way
    };
    let first = begin(&mut tuning, 1 << 20);
    let better = ways.iter().position(|way| *way != first).expect("another way");
    let entry = tuning.entries[key(situation, 1 << 20).number()].as_mut().expect("an entry");
    let start = entry.choice.best();
    for _ in 0..2 * typepack_engine::choice::SAMPLES {
        entry.choice.report(start, 1000);
        entry.choice.report(better as u8, 100);
    }
    assert!(!entry.choice.is_settled() && entry.choice.is_measured());
    assert_eq!(begin(&mut tuning, 1 << 22), ways[better]);
}

/// Checks busy periods with messages of two keys: one key has the trial, and all its messages go the
/// same way.
#[test]
fn one_key_is_on_trial_at_a_time() {
    let mut tuning = Tuning::default();
    let free = terms(Forced::Nothing);
    let alone = Situation { shared: false, ..SITUATION };
    for _ in 0..2000 {
        let best = |tuning: &Tuning, bytes| {
            let entry = tuning.entries.get(key(alone, bytes).number()).and_then(Option::as_ref);
            entry.map(|entry| entry.choice.way())
        };
        let before = [1 << 20, 1 << 16].map(|bytes| best(&tuning, bytes));
        let one = tuning.begin(alone, 1 << 20, free, || true);
        let other = tuning.begin(alone, 1 << 16, free, || true);
        assert_eq!(one, tuning.begin(alone, 1 << 20, free, || true));
        let tried = before.iter().zip([one, other]);
        assert!(tried.filter(|(best, way)| best.is_some_and(|best| best != *way)).count() <= 1);
        for bytes in [1 << 20, 1 << 16, 1 << 20] {
            tuning.complete(bytes);
        }
        assert!(tuning.trial.is_none() && tuning.under_way == 0);
    }
}

fn compared(tuning: &Tuning) -> usize {
    tuning.choices().filter(|choice| choice.is_compared()).count()
}

/// Checks that each key compares its ways even if messages of several keys always overlap, in the
/// same order.
#[test]
fn every_key_has_its_turn() {
    let mut tuning = Tuning::default();
    let alone = Situation { place: None, shared: false, ..SITUATION };
    let keys = [Shape::Sparse, Shape::Dense, Shape::Contiguous, Shape::Sparse];
    for round in 0..100_000 {
        for (at, shape) in keys.into_iter().enumerate() {
            let situation = Situation { shape, ..alone };
            tuning.begin(situation, 1 << (14 + at), terms(Forced::Nothing), || true);
        }
        for at in 0..keys.len() {
            tuning.complete(1 << (14 + at));
        }
        if compared(&tuning) == keys.len() {
            return;
        }
        assert!(round < 99_999 || contiguous::available().count() == 1);
    }
}

/// Checks that both keys compare their ways if messages of two keys alternate, one at a time.
#[test]
fn keys_that_alternate_have_their_turns() {
    let mut tuning = Tuning::default();
    let situation = Situation { place: None, shared: false, ..SITUATION };
    for round in 0..100_000 {
        for bytes in [1 << 16, 1 << 19] {
            tuning.begin(situation, bytes, terms(Forced::Nothing), || true);
            tuning.complete(bytes);
        }
        if compared(&tuning) == 2 {
            return;
        }
        assert!(round < 99_999 || contiguous::available().count() == 1);
    }
}

#[test]
fn without_measuring_the_static_rule_decides() {
    let mut tuning = Tuning::default();
    tuning.set(Tune::OFF, None, None);
    for fused in [true, false] {
        tuning.set(Tune::OFF, None, None);
        for _ in 0..100 {
            let alone = Situation { shared: false, ..SITUATION };
            let way = tuning.begin(alone, 1 << 16, terms(Forced::Nothing), || fused);
            assert_eq!(matches!(way, LongProtocol::InPlace(_)), fused);
            assert_eq!(way.method(), Method::Vector);
            tuning.complete(1 << 16);
        }
    }
    assert_eq!(tuning.report(), Vec::<String>::new());
}

/// Checks that a look ends also if a message is always on its way, and that the ways are compared.
#[test]
fn a_look_ends_though_messages_never_pause() {
    let mut tuning = Tuning::default();
    let situation = Situation { place: None, shared: false, ..SITUATION };
    let bytes = 1 << 16;
    let begin =
        |tuning: &mut Tuning| tuning.begin(situation, bytes, terms(Forced::Nothing), || true);
    for _ in 0..3 {
        begin(&mut tuning);
    }
    let (mut same, mut last, mut was_settled) = (0, None, false);
    for _ in 0..100_000 {
        let way = begin(&mut tuning);
        tuning.complete(bytes);
        if let Some(Trial { way: number, .. }) = tuning.trial {
            let entry = tuning.entries[key(situation, bytes).number()].as_ref().expect("an entry");
            let is_look = number != entry.choice.best();
            same = if last == Some(way) && is_look { same + 1 } else { 0 };
            assert!(same <= 10 * MOST_MESSAGES, "{way:?}");
        }
        last = Some(way);
        // The test measures real time. If the machine becomes slower, the comparison begins anew.
        was_settled |= compared(&tuning) == 1;
    }
    assert_eq!(tuning.under_way, 3);
    if contiguous::available().count() == 1 {
        return;
    }
    assert!(was_settled);
    // The chooser is still asked, so that it notices if another way becomes the best.
    let at = key(situation, bytes).number();
    let turns = |tuning: &Tuning| tuning.entries[at].as_ref().expect("an entry").turns;
    let before = turns(&tuning);
    for _ in 0..100 * MOST_MESSAGES {
        begin(&mut tuning);
        tuning.complete(bytes);
    }
    assert!(turns(&tuning) >= before + 10);
}

#[test]
fn after_a_setting_the_next_message_begins_a_period() {
    let mut tuning = Tuning::default();
    tuning.begin(SITUATION, 1 << 20, terms(Forced::Nothing), || true);
    tuning.set(Tune::default(), None, None);
    assert!(tuning.trial.is_none());
    tuning.begin(SITUATION, 1 << 20, terms(Forced::Nothing), || true);
    assert!(tuning.trial.is_some() && tuning.under_way == 1);
    tuning.complete(1 << 20);
    assert!(tuning.trial.is_none());
    tuning.complete(1 << 20);
    assert_eq!(tuning.under_way, 0);
}

#[test]
fn without_measurements_each_message_goes_by_the_static_rule() {
    let mut tuning = Tuning::default();
    tuning.set(Tune::OFF, None, None);
    let situation = Situation { shared: false, ..SITUATION };
    for fused in [true, false, false, true, true] {
        let way = tuning.begin(situation, 1 << 20, terms(Forced::Nothing), || fused);
        tuning.complete(1 << 20);
        assert_eq!(matches!(way, LongProtocol::InPlace(_)), fused);
        assert_eq!(tuning.settled_way(situation, 1 << 20), Some(way));
        // Other size classes do not take the way over.
        let way = tuning.begin(situation, 1 << 16, terms(Forced::Nothing), || !fused);
        tuning.complete(1 << 16);
        assert_eq!(matches!(way, LongProtocol::InPlace(_)), !fused);
    }
}

/// One chooser is off: it neither measures nor begins with what earlier jobs have found, and the others do both.
#[test]
fn a_single_chooser_can_be_off() {
    let store: &'static Store = Box::leak(Box::default());
    let situation = Situation { shared: false, ..SITUATION };
    let way = LongProtocol::InPlace(Method::Vector);
    let known = |key: Key| Remembered { key, way: way.number(key) };
    store.know(&[known(key(situation, 1 << 20))]);
    for (tune, off) in [("off:messages", true), ("off:parts,short", false)] {
        let tune = Tune::parse(tune).expect("a list");
        let mut tuning = Tuning::default();
        tuning.set(tune, None, Some(store));
        let way = tuning.begin(situation, 1 << 20, terms(Forced::Nothing), || false);
        assert_eq!(tuning.trial.is_some(), !off);
        assert!(!off || !matches!(way, LongProtocol::InPlace(_)));
        let best = tuning.entries[key(situation, 1 << 20).number()].as_ref().expect("an entry");
        assert_eq!(matches!(best.choice.way(), LongProtocol::InPlace(_)), !off);
        assert_eq!((tuning.chooses(), tuning.fragments.measures()), (off, off));
    }
}

#[test]
fn what_is_remembered_comes_first_and_is_kept() {
    let store: &'static Store = Box::leak(Box::default());
    let mut tuning = Tuning::default();
    tuning.set(Tune::default(), None, Some(store));
    let streaming = LongProtocol::InPlace(Method::Streaming);
    let remembered = |bytes, way: LongProtocol| {
        let key = key(SITUATION, bytes);
        Remembered { key, way: way.number(key) }
    };
    // The situation does not have the second way.
    let known =
        [remembered(1 << 20, streaming), remembered(1 << 16, LongProtocol::Packed(Method::Vector))];
    store.know(&known);
    let streams = contiguous::available().any(|method| method == Method::Streaming);
    let way = tuning.begin(SITUATION, 3 << 19, terms(Forced::Nothing), || true);
    assert_eq!(way == streaming, streams);
    let way = tuning.begin(SITUATION, 1 << 16, terms(Forced::Nothing), || true);
    assert_eq!(way, LongProtocol::InPlace(Method::Vector));
    assert_eq!(store.remembered(), [known[1], known[0]]);
}

/// Checks that a completion without a beginning, which a protocol error could cause, changes nothing.
#[test]
fn a_stray_completion_is_harmless() {
    let mut tuning = Tuning::default();
    tuning.complete(5);
    tuning.declined();
    assert_eq!(tuning.under_way, 0);
}
