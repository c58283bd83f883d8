//! Tests of the decisions of several ranks, with a false clock: one thread makes the calls of all ranks in a random
//! order that the rules permit.

use super::*;
use std::collections::HashMap;
use typepack_engine::choice::Remembered;

struct Memory {
    entries: Vec<AtomicU64>,
    times: Vec<AtomicU64>,
}

impl Memory {
    fn new(size: usize) -> Self {
        let words = |len: usize| (0..len).map(|_| AtomicU64::new(0)).collect();
        Self { entries: words(KEYS * ENTRIES), times: words(size * TIMES * 3) }
    }
}

impl DecisionMemory for Memory {
    fn entry(&self, key: usize, entry: usize) -> &AtomicU64 {
        &self.entries[key * ENTRIES + entry]
    }

    fn time(&self, rank: usize, place: usize, word: usize) -> &AtomicU64 {
        &self.times[(rank * TIMES + place) * 3 + word]
    }
}

const SITE: Site = Site { far: false, share_cpus: false };

fn remembered(key: Key, size: usize, way: Algorithm) -> Remembered {
    let key = key.at(size, SITE);
    Remembered { key, way: way.number(key) }
}

/// Returns a store of its own for a job: tests run at the same time.
fn empty_store() -> &'static Store {
    Box::leak(Box::default())
}

struct Job {
    memory: Memory,
    ranks: Vec<Choices>,
    /// The last call that each rank has ended.
    ended: Vec<u64>,
    lead: u64,
    random: u64,
    /// The choices of the calls that some rank has made, and some has not.
    choices: HashMap<u64, Choice>,
    /// The sum of the costs of the calls of rank 0.
    spent: f64,
}

impl Job {
    fn new(size: usize, lead: u64, seed: u64) -> Self {
        Self::with_store(size, lead, seed, empty_store())
    }

    fn with_store(size: usize, lead: u64, seed: u64, store: &'static Store) -> Self {
        let rank = |rank| Choices::new((rank, size), lead, true, (SITE, store));
        Self {
            memory: Memory::new(size),
            ranks: (0..size).map(rank).collect(),
            ended: vec![0; size],
            lead,
            random: seed * 2 + 1,
            choices: HashMap::new(),
            spent: 0.0,
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Lets a random rank make its next call if the rules permit it. `competition` returns what the ranks know about a
    /// call, and `cost` its time in seconds.
    fn turn(
        &mut self,
        competition: impl Fn(u64) -> Option<Competition>,
        cost: impl Fn(u64, Algorithm) -> f64,
    ) {
        let rank = (self.random() >> 20) as usize % self.ranks.len();
        let call = self.ended[rank] + 1;
        let least = *self.ended.iter().min().unwrap();
        let Some(competition) = competition(call) else {
            // A call without a key does not wait for other ranks. This one may be far ahead of them.
            if least + 3 * self.lead > call {
                self.ended[rank] = call;
            }
            return;
        };
        let awaited = self.ranks[rank].awaited(call);
        assert!(awaited < call);
        if least < awaited {
            return;
        }
        let ended = self.ended.clone();
        let others =
            move |call| (0..ended.len()).all(|other| other == rank || ended[other] >= call);
        let choice = self.ranks[rank].choose(&self.memory, &competition, others);
        let first = *self.choices.entry(call).or_insert(choice);
        assert_eq!(choice, first, "call {call} of rank {rank}");
        let time = cost(call, choice.way);
        if choice.is_timed {
            // The ranks begin at different times.
            let begin = call as f64 - 0.01 * rank as f64;
            self.ranks[rank].store(&self.memory, call, begin, call as f64 + time);
        }
        if rank == 0 {
            self.spent += time;
        }
        self.ended[rank] = call;
        let least = *self.ended.iter().min().unwrap();
        self.choices.retain(|call, _| *call > least);
    }

    /// Lets all ranks make calls until each has ended call `last`.
    fn run_until(
        &mut self,
        last: u64,
        competition: impl Fn(u64) -> Option<Competition>,
        cost: impl Fn(u64, Algorithm) -> f64,
    ) {
        while self.ended.iter().any(|ended| *ended < last) {
            self.turn(&competition, &cost);
        }
    }
}

fn allreduce(call: u64, bytes: u64) -> Competition {
    let key = Key::new((CollectiveName::Allreduce, By::Library), bytes, 3).expect("enough bytes");
    Competition { key, call, bytes }
}

const BYTES: u64 = 256 << 10;

/// Every way has its own cost, so that `fastest` has the lowest one.
fn cost_if(fastest: Algorithm) -> impl Fn(u64, Algorithm) -> f64 {
    move |call, way| {
        // Noise of some percent.
        let noise = 1.0 + (call * 7919 % 13) as f64 / 400.0;
        if way == fastest { 1e-4 * noise } else { 1.5e-4 * noise }
    }
}

#[test]
fn all_ranks_go_the_same_way_and_find_the_fastest() {
    for (size, lead, seed) in [(3, 16, 1), (3, 64, 2), (5, 16, 3), (3, 1, 4), (2, 16, 5)] {
        let (list, len) = ways(allreduce(1, BYTES).key, size);
        for fastest in &list[..usize::from(len)] {
            let mut job = Job::new(size, lead, seed);
            let cost = cost_if(*fastest);
            job.run_until(6000, |call| Some(allreduce(call, BYTES)), &cost);
            // Rank 0 has announced the fastest way, and all later calls go this way.
            let state = job.ranks[0].leader.as_ref().unwrap().keys.iter().flatten().next();
            let state = state.expect("a key");
            assert_eq!(list[usize::from(state.present)], *fastest, "{size} ranks, lead {lead}");
            let before = job.spent;
            job.run_until(12_000, |call| Some(allreduce(call, BYTES)), &cost);
            let best = 6000.0 * 1e-4 * (1.0 + 6.0 / 400.0);
            let regret = (job.spent - before) / best;
            assert!(regret < 1.05, "{size} ranks, lead {lead}: {regret}");
            assert!(job.ranks[0].report()[0].starts_with("from 256 KiB, collective allreduce of "));
            assert!(job.ranks[1].report().is_empty());
        }
    }
}

#[test]
fn another_way_is_found_when_the_costs_change() {
    let mut job = Job::new(3, 16, 9);
    let (list, _) = ways(allreduce(1, BYTES).key, 3);
    let cost = |call: u64, way: Algorithm| {
        let fastest = if call < 4000 { list[0] } else { list[1] };
        let cost = if way == fastest { 1e-4 } else { 2e-4 };
        // The clock shows an outlier now and then.
        if call.is_multiple_of(97) { 30.0 * cost } else { cost }
    };
    job.run_until(4000, |call| Some(allreduce(call, BYTES)), cost);
    let present = |job: &Job| {
        job.ranks[0].leader.as_ref().unwrap().keys.iter().flatten().next().unwrap().present
    };
    assert_eq!(present(&job), 0);
    job.run_until(8000, |call| Some(allreduce(call, BYTES)), cost);
    assert_eq!(present(&job), 1);
}

/// Only one call in 50 has a key, the others have none or another one, and the ranks without a key do not wait.
#[test]
fn rare_calls_are_compared_too() {
    let mut job = Job::new(4, 16, 11);
    let (list, _) = ways(allreduce(1, BYTES).key, 4);
    let competition = |call: u64| match call % 50 {
        0 => Some(allreduce(call, BYTES)),
        17 => Some(allreduce(call, 1 << 16)),
        _ => None,
    };
    job.run_until(400_000, competition, cost_if(list[1]));
    let leader = job.ranks[0].leader.as_ref().unwrap();
    let states: Vec<_> = leader.keys.iter().flatten().collect();
    assert_eq!(states.len(), 2);
    assert!(states.iter().all(|state| state.present == 1 && state.choice.is_settled()));
}

/// The calls come in bursts with long pauses, and one way is very slow. The looks at it must stay short.
#[test]
fn a_very_slow_way_costs_little() {
    for pause in [0, 300, 3000] {
        let mut job = Job::new(3, 16, 17 + pause);
        let competition = |call: u64| match call % (30 + pause) {
            0..30 => Some(allreduce(call, BYTES)),
            _ => None,
        };
        let cost = |_call, way: Algorithm| if way.messages { 2e-3 } else { 1e-4 };
        let calls = 10_000;
        job.run_until(calls / 30 * (30 + pause), competition, cost);
        let regret = job.spent / (calls as f64 * 1e-4);
        assert!(regret < 1.12, "pauses of {pause} calls: {regret}");
    }
}

/// A rank whose call fails stores no times, and skips calls without asking. The other ranks still agree.
#[test]
fn missing_times_are_left_out() {
    let mut job = Job::new(3, 16, 13);
    let cost = cost_if(Algorithm::default());
    job.run_until(300, |call| Some(allreduce(call, BYTES)), &cost);
    // Rank 2 makes no call with a key any more: it only ends the calls.
    for call in 301..2000 {
        job.ended[2] = call;
        for rank in 0..2 {
            let others = |_| true;
            let competition = allreduce(call, BYTES);
            let choice = job.ranks[rank].choose(&job.memory, &competition, others);
            assert_eq!(*job.choices.entry(call).or_insert(choice), choice);
            job.ended[rank] = call;
        }
    }
    assert!(job.ranks[0].leader.as_ref().unwrap().samples.len() <= TIMES);
}

/// Checks that a job notes the best way, and that the next job goes this way from the call on for which rank 0 can
/// first announce it.
#[test]
fn the_next_job_begins_with_the_best_way() {
    let (size, lead) = (3, 16);
    let (list, len) = ways(allreduce(1, BYTES).key, size);
    for fastest in &list[..usize::from(len)] {
        let store = empty_store();
        let cost = cost_if(*fastest);
        let competition = |call| Some(allreduce(call, BYTES));
        Job::with_store(size, lead, 6, store).run_until(6000, competition, &cost);
        let key = allreduce(1, BYTES).key;
        let way = remembered(key, size, *fastest);
        assert_eq!(store.remembered(), [way]);
        assert!(store.earlier().is_empty());

        let next = empty_store();
        next.know(&[way]);
        let job = &mut Job::with_store(size, lead, 7, next);
        // The chooser takes some times of its present way before it looks at another one.
        for call in 1..=lead + 1 {
            let first = if call > lead { *fastest } else { list[0] };
            for rank in 0..size {
                let competition = allreduce(call, BYTES);
                let choice = job.ranks[rank].choose(&job.memory, &competition, |_| true);
                assert_eq!(choice.way, first, "call {call}");
            }
        }
        assert_eq!(next.remembered(), [way]);
        assert_eq!(next.earlier(), [way]);
    }
}

/// Checks that a job whose file names a slow way finds the fastest way.
#[test]
fn a_wrong_way_of_an_earlier_job_is_corrected() {
    let (size, lead) = (3, 16);
    let key = allreduce(1, BYTES).key;
    let (list, len) = ways(key, size);
    for fastest in &list[..usize::from(len)] {
        for wrong in list[..usize::from(len)].iter().filter(|way| *way != fastest) {
            let store = empty_store();
            store.know(&[remembered(key, size, *wrong)]);
            let mut job = Job::with_store(size, lead, 8, store);
            let competition = |call| Some(allreduce(call, BYTES));
            job.run_until(600, competition, cost_if(*fastest));
            let best = remembered(key, size, *fastest);
            assert_eq!(store.remembered(), [best], "{wrong:?}");
        }
    }
}

#[test]
fn false_times_are_no_times() {
    let memory = Memory::new(2);
    let store = empty_store();
    let ranks: Vec<Choices> =
        (0..2).map(|rank| Choices::new((rank, 2), 16, true, (SITE, store))).collect();
    for (begin, end, valid) in [
        (1.0, 2.0, true),
        (1.0, 1.0, true),
        (2.0, 1.0, false),
        (1.0, f64::INFINITY, false),
        (f64::NEG_INFINITY, 1.0, true),
        (1.0, 1e300, false),
    ] {
        ranks[0].store(&memory, 5, 1.0, 1.5);
        ranks[1].store(&memory, 5, begin, end);
        assert_eq!(seconds(&memory, 2, 5).is_some(), valid, "{begin} to {end}");
    }
    assert!(seconds(&memory, 2, 5 + TIMES as u64).is_none());
}

#[test]
fn calls_at_regular_distances_are_timed() {
    for distance in 1..200 {
        let timed = (0..800).filter(|at| is_often_timed(1000 + at * distance)).count();
        assert!((50..200).contains(&timed), "{timed} of 800 calls at distance {distance}");
    }
}

#[test]
fn keys_have_classes_and_ways() {
    let key = |bytes, size| Key::new((CollectiveName::Bcast, By::Library), bytes, size);
    assert!(key(LEAST / 2 - 1, 2).is_none() && key(LEAST / 2, 2).is_some());
    assert!(key(LEAST / 32, 32).is_some() && key(0, 32).is_none());
    assert!(Key::new((CollectiveName::Barrier, By::Library), u64::MAX, 2).is_none());
    assert_eq!(key(u64::MAX, 2).unwrap().bytes(), 4 << 20);
    assert_eq!(key(LEAST / MOST as u64, MOST).unwrap().bytes(), LEAST / MOST as u64);
    let mut indices: Vec<usize> = Vec::new();
    for ((name, by), (_, said)) in OPERATIONS.into_iter().zip(FORM.fields[0]) {
        for class in 0..CLASSES {
            let key = Key::new((name, by), FORM.sizes.least(class), MOST).unwrap();
            indices.push(key.index());
            let (list, len) = ways(key, MOST);
            let list = &list[..usize::from(len)];
            let site = Site { far: true, share_cpus: true };
            let kind = format!("collective{said} of 32 ranks, far, CPUs shared");
            assert_eq!(
                (key.at(MOST, site).kind(), key.at(MOST, site).bytes()),
                (kind, key.bytes())
            );
            let name = |way: &Algorithm| FORM.ways[usize::from(way.number(key.at(MOST, site)))].0;
            let words: Vec<_> = list.iter().map(name).collect();
            assert!(
                words
                    .iter()
                    .all(|word| *word == "messages" || word.starts_with("cells") != key.reduces())
            );
            assert!((list.len() >= 2 || by == By::User) && u64::from(len) <= LOOK);
            assert!(list.iter().enumerate().all(|(at, way)| !list[..at].contains(way)));
        }
    }
    assert_eq!(indices, (0..KEYS).collect::<Vec<_>>());
}
