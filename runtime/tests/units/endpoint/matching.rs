//! Compares `Matching` with a simple implementation that searches linear lists, on random sequences of all
//! calls.

use super::*;
use typepack_test_support::random::Random;

/// The simple implementation: a list of receives and a list of messages, each from the oldest to the newest.
#[derive(Default)]
struct Linear {
    posted: Vec<(u64, Sender, Tag, u64)>,
    messages: Vec<(u64, Process, i32, u64)>,
}

fn accepts(source: Sender, tag: Tag, from: Process, with: i32) -> bool {
    (source == Sender::Any || source == Sender::Process(from)) && tag.accepts(with)
}

impl Linear {
    fn arrive(&mut self, context: u64, from: Process, with: i32) -> Option<u64> {
        let matches =
            |&(posted, source, tag, _): &_| posted == context && accepts(source, tag, from, with);
        self.posted.iter().position(matches).map(|at| self.posted.remove(at).3)
    }

    fn look(&self, context: u64, source: Sender, tag: Tag) -> Option<usize> {
        let matches =
            |&(sent, from, with, _): &_| sent == context && accepts(source, tag, from, with);
        self.messages.iter().position(matches)
    }

    fn cancel(&mut self, id: u64) -> bool {
        let at = self.posted.iter().position(|posted| posted.3 == id);
        at.map(|at| self.posted.remove(at)).is_some()
    }
}

fn pick<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

const CONTEXTS: [u64; 4] = [0, 1, 1 << 48, u64::MAX];
const SOURCES: [usize; 3] = [0, 1, 1 << 20];
const TAGS: [i32; 4] = [0, 1, 77, i32::MAX];

fn label(context: u64, tag: i32) -> Label {
    Label { context, tag, bytes: 8, types: 0 }
}

/// Returns the source, the tag and the number of a message. The test chose the number and stored it as the
/// request id of `Arrived::Own`.
fn number((slot, message): (Process, Unexpected)) -> (Process, i32, u64) {
    match message.what {
        Arrived::Own(number) => (slot, message.tag, number),
        other => panic!("{other:?}"),
    }
}

/// Makes the same random calls on both implementations and compares the results. A request id is built as in
/// `Requests`: the low 32 bits are an index that is reused after the request has ended, and the high 32 bits
/// are a generation.
fn compare(seed: u64, calls: usize, forms: usize) {
    let mut random = Random(seed);
    let (mut matching, mut linear) = (Matching::default(), Linear::default());
    let (mut free, mut ended, mut next): (Vec<u64>, Vec<u64>, u64) = (Vec::new(), Vec::new(), 0);
    for call in 0..calls as u64 {
        // Alternate between 400 calls that may add to the queues and 400 calls that may not, so that the
        // queues grow and shrink.
        let growing = call / 400 % 2 == 0;
        let (context, from) =
            (pick(&mut random, &CONTEXTS), Process::new(pick(&mut random, &SOURCES)));
        let with = pick(&mut random, &TAGS);
        let form = random.below(forms as u64) as usize;
        let source = if form & 1 == 0 { Sender::Process(from) } else { Sender::Any };
        let tag = if form & 2 == 0 { Tag::Is(with) } else { Tag::Any };
        match random.below(12) {
            // A message arrives. If it matches no receive, it is kept while the queues may grow.
            0..5 => {
                let expected = linear.arrive(context, from, with);
                assert_eq!(matching.arrive(from, &label(context, with)), expected);
                match expected {
                    Some(id) => {
                        free.push(id + (1 << 32));
                        ended.push(id);
                    }
                    None if growing => {
                        linear.messages.push((context, from, with, call));
                        matching.keep(from, label(context, with), Arrived::Own(call));
                    }
                    None => {}
                }
            }
            // A receive or a matched probe (kind 8) takes a message. A receive that finds no message is
            // posted while the queues may grow.
            kind @ 5..9 => {
                let expected = linear.look(context, source, tag).map(|at| {
                    let (_, from, tag, number) = linear.messages.remove(at);
                    (from, tag, number)
                });
                assert_eq!(matching.take(context, source, tag).map(number), expected);
                if expected.is_none() && kind != 8 && growing {
                    let id = free.pop().unwrap_or_else(|| {
                        next += 1;
                        1 << 32 | (next - 1)
                    });
                    linear.posted.push((context, source, tag, id));
                    matching.post(context, source, tag, id);
                }
            }
            9 => {
                // Where there is no memory for the lists, a search finds the same message.
                let key = lists::Key::asked(context, source, tag);
                assert_eq!(matching.messages.search(key), matching.messages.find(key));
                let expected = linear.look(context, source, tag);
                let found = matching.look(context, source, tag);
                let found = found.map(|(slot, message)| match message.what {
                    Arrived::Own(number) => (slot, message.tag, number),
                    _ => panic!("{message:?}"),
                });
                let expected = expected.map(|at| linear.messages[at]);
                assert_eq!(found, expected.map(|(_, from, tag, number)| (from, tag, number)));
            }
            _ => {
                let ids: Vec<u64> = linear.posted.iter().map(|posted| posted.3).collect();
                let id = match ids.is_empty() || random.below(4) == 0 {
                    true if ended.is_empty() => 99,
                    true => pick(&mut random, &ended),
                    false => pick(&mut random, &ids),
                };
                let expected = linear.cancel(id);
                assert_eq!(matching.cancel_receive(id), expected);
                if expected {
                    free.push(id + (1 << 32));
                    ended.push(id);
                }
            }
        }
    }
    for (context, source, tag, id) in linear.posted.drain(..) {
        assert!(matching.cancel_receive(id), "{context} {source:?} {tag:?}");
    }
    for (context, from, tag, sent) in linear.messages.drain(..) {
        let taken = matching.take(context, Sender::Process(from), Tag::Is(tag));
        assert_eq!(taken.map(number), Some((from, tag, sent)));
    }
    assert!(matching.posted.is_empty() && matching.messages.is_empty());
}

#[test]
fn matching_equals_a_linear_list() {
    for seed in 0..100 {
        for forms in 1..=4 {
            compare(seed, 4000, forms);
        }
    }
}

fn slot(source: usize) -> Sender {
    Sender::Process(Process::new(source))
}

#[test]
fn receives_match_in_posting_order_across_forms() {
    let mut m = Matching::default();
    m.post(7, Sender::Any, Tag::Is(5), 1);
    m.post(7, slot(2), Tag::Any, 2);
    m.post(7, slot(2), Tag::Is(5), 3);
    m.post(7, Sender::Any, Tag::Any, 4);
    assert_eq!(m.arrive(Process::new(2), &label(6, 5)), None);
    for (source, tag, id) in [(2, 7, Some(2)), (2, 5, Some(1)), (2, 5, Some(3)), (1, 5, Some(4))] {
        assert_eq!(m.arrive(Process::new(source), &label(7, tag)), id);
    }
    assert_eq!(m.arrive(Process::new(1), &label(7, 5)), None);
    assert!(m.posted.is_empty());
}

/// Checks that a negative tag, which no rank may send, is not mistaken for `Tag::Any`.
#[test]
fn a_negative_tag_is_not_any_tag() {
    let mut m = Matching::default();
    m.post(7, slot(2), Tag::Any, 1);
    m.keep(Process::new(1), label(7, -1), Arrived::Own(1));
    assert!(m.look(7, slot(1), Tag::Is(0)).is_none());
    assert!(m.look(7, slot(1), Tag::Is(-1)).is_some());
    assert_eq!(m.arrive(Process::new(2), &label(7, -1)), Some(1));
}

/// Checks queues of many messages, and queues of many receives, with different tags. They are emptied in the
/// order of arrival and in the reverse order. The next round must fit in the memory that the tables already
/// have.
#[test]
fn many_wait() {
    const COUNT: i32 = 20_000;
    let mut m = Matching::default();
    let forms = [(slot(0), 0), (Sender::Any, 0), (slot(0), 1), (Sender::Any, 1)];
    let mut room = None;
    for round in 0..3 {
        for (source, any_tag) in forms {
            for reverse in [false, true] {
                let wanted = |tag| if any_tag == 1 { Tag::Any } else { Tag::Is(tag) };
                let at = |n: i32| if reverse { COUNT - 1 - n } else { n };
                (0..COUNT).for_each(|n| m.keep(Process::new(0), label(0, n), Arrived::Own(0)));
                for n in 0..COUNT {
                    let (_, message) = m.take(0, source, wanted(at(n))).expect("a message");
                    assert_eq!(message.tag, if any_tag == 1 { n } else { at(n) });
                }
                (0..COUNT).for_each(|n| m.post(0, source, wanted(n), n as u64));
                for n in 0..COUNT {
                    let id = m.arrive(Process::new(0), &label(0, at(n))).expect("a receive");
                    assert_eq!(id, if any_tag == 1 { n } else { at(n) } as u64);
                }
                (0..COUNT).for_each(|n| m.post(0, source, wanted(n), n as u64));
                assert!((0..COUNT).all(|n| m.cancel_receive(at(n) as u64)));
            }
        }
        assert!(m.posted.is_empty() && m.messages.is_empty());
        let now = [m.posted.room(), m.messages.room()];
        assert!(round == 0 || room.as_ref() == Some(&now), "{room:?}, then {now:?}");
        room = Some(now);
    }
}

/// Checks that the tables shrink again after a flood of receives and messages, of which a few stay.
#[test]
fn the_tables_shrink_after_a_flood() {
    const FLOOD: usize = 50_000;
    const KEPT: usize = 10;
    let from = Process::new(3);
    let mut m = Matching::default();
    for n in 0..FLOOD {
        m.post(1, Sender::Any, Tag::Is(n as i32), n as u64);
        m.keep(from, label(2, n as i32), Arrived::Own(n as u64));
    }
    // A search in another form makes the table of messages keep further lists.
    assert!(m.look(2, Sender::Any, Tag::Any).is_some());
    let all = [m.posted.room(), m.messages.room()].concat();
    assert!(all.iter().filter(|room| **room > FLOOD).count() > 4, "{all:?}");
    for n in KEPT..FLOOD {
        assert_eq!(m.arrive(from, &label(1, n as i32)), Some(n as u64));
        let (source, message) = m.take(2, Sender::Any, Tag::Is(n as i32)).expect("a message");
        assert!(source == from && matches!(message.what, Arrived::Own(id) if id == n as u64));
    }
    // The table of receives tries to shrink only when the number of removals has reached half of its length.
    for n in 0..FLOOD {
        m.post(1, Sender::Any, Tag::Any, KEPT as u64);
        assert_eq!(m.arrive(from, &label(1, (FLOOD + n) as i32)), Some(KEPT as u64));
    }
    let all = [m.posted.room(), m.messages.room()].concat();
    assert!(all.iter().all(|room| *room <= 4096), "{all:?}");
    // The receives and messages that are left are found in the right order.
    for n in 0..KEPT {
        assert_eq!(m.arrive(from, &label(1, n as i32)), Some(n as u64));
        let (_, message) = m.take(2, Sender::Process(from), Tag::Any).expect("a message");
        assert!(matches!(message.what, Arrived::Own(id) if id == n as u64));
    }
    assert!(m.posted.is_empty() && m.messages.is_empty());
}
