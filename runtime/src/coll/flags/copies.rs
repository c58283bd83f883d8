//! How a rank copies pieces of data into its ring: the method, chosen by measurement.
//!
//! `turn.rs` writes and reads the pieces. The method that the writer takes (`typepack_engine::contiguous`) also changes
//! the time of the reader. Measured on a Zen 4 with a C program of two threads, 256 KiB in pieces of 32 KiB, in us:
//!
//! | cores | vector moves | streaming stores |
//! |---|---|---|
//! | 45 ns apart | 8.2 | 28 |
//! | 320 ns apart | 120 | 20 |
//!
//! So the cost of a method is the time of the writer plus the time of a reader. The writer asks one reader to measure
//! a piece: it names that reader in its cell ([`Request`]). The reader measures the time of its copy and leaves it in
//! its part of the block (`block.rs`), where the writer looks when it next writes a long piece. Neither rank waits
//! for the other. In a reduction, the reader measures the combination of the elements of all ranks. If a user's
//! function combines them, nobody measures, because its time may be anything. Nor does anybody measure if ranks share
//! CPUs, or sleep at once for another reason (`TYPEPACK_SPIN_US=0`): the times then have the time slices of other
//! ranks, and decide nothing (8 ranks on 2 CPUs of a Zen 4: the choice lost 8 % over 14 rows, and gained 4 % over 14
//! rows of 2 ranks).

use super::block::Block;
use super::choices::{DISTANCE, Site};
use crate::settings::Settings;
use crate::shm::cells::Seat;
use std::time::Duration;
use std::time::Instant;
use typepack_engine::choice::{Choice, Form, Pick, Sizes, Store};
use typepack_engine::contiguous::{self, METHODS, Method};

/// Length in bytes of the shortest piece whose method is chosen. Two readings of the clock take about 50 ns.
pub(super) const MEASURED: u64 = 4 << 10;

/// Number of size classes.
const CLASSES: usize = 7;

/// What the choice of a method depends on, and the methods.
pub(crate) static FORM: Form = Form {
    name: "pieces",
    title: "pieces of collective calls",
    fields: &[DISTANCE],
    sizes: Sizes { first: MEASURED, step: 1, count: CLASSES },
    ways: &METHODS,
};

/// What a writer publishes about a long piece, beside its place: which rank measures its copy, if any, and whether the
/// readers copy two pages by turns. Bits 0..32 have 0, or 1 plus the rank; bit 32 is set for copies of two pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request(u64);

/// The bit of a [`Request`] that says how the readers copy.
const PAGES: u64 = 1 << 32;

impl Request {
    /// Returns the request that a cell has in this word.
    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Returns the form of the request in a cell.
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Returns the request for a piece that was written with `method`. `reader` is the rank that measures its copy.
    fn of(reader: Option<usize>, method: Method) -> Self {
        let pages = if method == Method::Pages { PAGES } else { 0 };
        Self(reader.map_or(0, |reader| reader as u64 + 1) | pages)
    }

    /// Returns whether rank `rank` is asked to measure.
    #[inline]
    pub(super) fn asks(self, rank: usize) -> bool {
        self.0 & (PAGES - 1) == rank as u64 + 1
    }

    /// Returns the method with which the readers copy the piece. `rep movsb` and streaming stores are of use to the
    /// writer only.
    #[inline]
    fn reading(self) -> Method {
        if self.0 & PAGES != 0 { Method::Pages } else { Method::Vector }
    }
}

/// A piece that a reader measures.
#[derive(Clone, Copy, Debug)]
struct Trial {
    number: u64,
    reader: usize,
    class: usize,
    way: u8,
    bytes: u64,
    /// The time of the writer in nanoseconds.
    time: u64,
}

/// The choices of one rank.
pub(super) struct Copies {
    methods: Vec<Method>,
    choices: Vec<Choice<Method>>,
    trial: Option<Trial>,
    measures: bool,
    /// The method that `TYPEPACK_COPY` forces.
    forced: Option<Method>,
}

impl Copies {
    /// Returns choices that begin with the methods in `store`, and note the best methods there. If ranks share CPUs,
    /// nothing is measured, and `store` is not used.
    pub(super) fn new(site: Site, store: &'static Store) -> Self {
        let settings = Settings::get();
        let copy = settings.as_ref().ok().and_then(|settings| settings.copy);
        let methods: Vec<Method> = match copy {
            Some(method) => vec![method],
            None => contiguous::available().collect(),
        };
        let measures =
            !site.share_cpus && settings.is_ok_and(|settings| settings.tune.measures(FORM.name));
        let choice = |class| {
            let key = FORM.key([usize::from(site.far)], FORM.sizes.least(class));
            Choice::new(key, methods.clone(), || None, measures.then_some(store))
        };
        Self {
            choices: (0..CLASSES).map(choice).collect(),
            methods,
            trial: None,
            forced: copy,
            measures,
        }
    }

    /// Returns one line for each size class whose method has been compared with all others.
    pub(super) fn report(&self) -> Vec<String> {
        self.choices.iter().filter(|choice| choice.is_compared()).map(Choice::line).collect()
    }

    /// Returns the method with which this rank reads a piece whose writer has published `request`.
    #[inline]
    pub(super) fn reading(&self, request: Request) -> Method {
        self.forced.unwrap_or(request.reading())
    }

    /// Calls `copy` with the method for a piece of `bytes` bytes, at least [`MEASURED`], that nobody measures. Returns
    /// what to publish about the piece.
    pub(super) fn write_unmeasured(&self, bytes: u64, copy: impl FnOnce(Method)) -> Request {
        let method = match &*self.methods {
            [only] => *only,
            _ => self.choices[FORM.sizes.class(bytes)].way(),
        };
        copy(method);
        Request::of(None, method)
    }

    /// Calls `copy` with the method for the next piece, which has `bytes` bytes, at least [`MEASURED`], and which this
    /// rank will publish in step `number`. Rank `reader` will read the piece. Returns what to publish about the piece.
    pub(super) fn write(
        &mut self,
        seat: &Seat,
        block: &Block,
        (number, reader): (u64, usize),
        bytes: u64,
        copy: impl FnOnce(Method),
    ) -> Request {
        if !self.measures || self.methods.len() < 2 {
            copy(self.methods[0]);
            return Request::of(None, self.methods[0]);
        }
        self.settle(seat, block);
        let class = FORM.sizes.class(bytes);
        let choice = &mut self.choices[class];
        // There is one trial at a time. Meanwhile all pieces go the best way so far.
        let pick = match self.trial {
            Some(_) => Pick { way: choice.best(), timed: false },
            None => choice.pick(),
        };
        let Pick { way, timed } = pick;
        let method = choice.at(way);
        if !timed {
            copy(method);
            return Request::of(None, method);
        }
        let start = Instant::now();
        copy(method);
        let time = nanoseconds(start);
        self.trial = Some(Trial { number, reader, class, way, bytes, time });
        Request::of(Some(reader), method)
    }

    /// Reports the cost of the trial, if the reader has measured its copy. Forgets the trial if the reader has not
    /// measured the copy and will not do so any more.
    fn settle(&mut self, seat: &Seat, block: &Block) {
        let Some(Trial { number, reader, class, way, bytes, time }) = self.trial else { return };
        let over = seat.has_ended(block, reader, number);
        match block.measured(seat.rank(), reader, number) {
            Some(theirs) => {
                let time = Duration::from_nanos(time.saturating_add(theirs));
                self.choices[class].took(way, time, bytes);
                self.trial = None;
            }
            None if over => self.trial = None,
            None => {}
        }
    }
}

/// Returns the time since `start` in nanoseconds.
pub(super) fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that ranks that share CPUs copy in the static way: times with the time slices of others decide nothing.
    #[test]
    fn ranks_that_share_cpus_measure_no_pieces() {
        let store = typepack_engine::choice::store();
        let copies = Copies::new(Site { far: true, share_cpus: true }, store);
        assert!(!copies.measures);
        let request = copies.write_unmeasured(MEASURED, |method| {
            assert_eq!(method, copies.forced.unwrap_or(copies.methods[0]));
        });
        assert!((0..8).all(|rank| !request.asks(rank)));
    }

    #[test]
    fn a_request_names_one_rank() {
        assert!(!Request::default().asks(0));
        for method in Method::ALL {
            let request = Request::from_word(Request::of(Some(3), method).word());
            assert!(request.asks(3) && !request.asks(2) && !request.asks(4));
            let pages = method == Method::Pages;
            assert_eq!(request.reading(), if pages { Method::Pages } else { Method::Vector });
            let request = Request::from_word(Request::of(None, method).word());
            assert!((0..8).all(|rank| !request.asks(rank)));
        }
        assert!(!Request::from_word(u64::MAX).asks(0));
    }
}
