//! Decides whether a byte of memory occurs twice in a layout.
//!
//! The input is a loop program and its summaries (`facts.rs`). The program is viewed as a hierarchy
//! of *nests*. A nest is a chain of loops and tables, called levels, above a leaf; the leaf is a
//! block, a sequence or a list. The position of a copy of the leaf is a sum of one offset per level,
//! so the order of the levels does not matter. The gap of a level is the least distance between two
//! of its iterations. The levels are sorted by gap. A level cannot cause an overlap if its gap is at
//! least the span of the leaf together with all levels of smaller gap. This rule suffices as a proof
//! for vectors, subarrays and darrays in any storage order, transposed columns, and tables without
//! duplicates. If the parts of a sequence or the entries of a list have disjoint spans, only the
//! inside of each part or entry must be examined. Records that are read column by column are loops
//! with one common stride; for them, the spans are compared modulo that stride.
//!
//! In the remaining cases, runs are sorted: as many runs of the nest as the budget allows. The budget
//! (`RUNS` runs, and `WORDS` words of tables and lists) covers one call of `overlaps` with all its nests.
//! If two sorted runs overlap, the layout overlaps. If no two do, this is a proof only if all runs were
//! sorted. No function here recurses, and a node is examined once, no matter how many other nodes use it.

use super::facts::{Answer, Summary, summarize};
use super::runs::RunWalk;
use crate::ir::{Edge, NodeId, Op, Part, Program, RaggedList, Run, edges};
use typepack_leaf::Table;

/// Maximum number of runs that one call of `overlaps` may sort. This many runs take 16 MiB.
const RUNS: u64 = 1 << 20;

/// Maximum number of 8-byte words that one call of `overlaps` may sort for tables and lists: 64 MiB in all.
/// This is enough for a list of 1.3 million entries.
const WORDS: usize = 1 << 23;

/// Returns whether a byte of memory occurs twice in `count` elements.
pub(super) fn overlaps(program: &Program, count: u64) -> Answer {
    let Some(body) = program.body.filter(|_| count > 0 && !program.is_one_run()) else {
        return Answer::No;
    };
    let Some(iterations) = program.factor.checked_mul(count) else { return Answer::Unknown };
    let mut question = Question {
        program,
        summaries: summarize(program),
        answers: vec![Answer::Unknown; program.nodes().len()],
        gaps: vec![None; program.nodes().len()],
        runs: 0,
        words: WORDS,
    };
    // If there are at most `RUNS` runs, the proofs are tried first with a run budget of 0, that is, without
    // sorting runs; if the proofs fail, all runs are sorted together. If there are more runs, the budget is
    // spent on sorting the runs of one nest, sequence or list at a time.
    let runs = u128::from(question.summaries[body.node.index()].runs) * u128::from(iterations);
    let few = runs <= u128::from(RUNS);
    question.runs = if few { 0 } else { RUNS };
    let (inner, leaf) = question.levels(body.node);
    for id in question.heads(leaf) {
        question.answers[id.index()] = question.node(id);
    }
    let mut levels = vec![Dimension::Loop { count: iterations, stride: program.stride }];
    levels.extend(inner);
    match question.nest(levels.clone(), leaf) {
        Answer::Unknown if few => {
            question.runs = RUNS;
            question.sort(&levels, leaf)
        }
        answer => answer,
    }
}

struct Question<'a> {
    program: &'a Program,
    summaries: Vec<Summary>,
    /// One answer per node. Only the answers for the heads (outermost nodes) and the leaves of nests
    /// are ever set.
    answers: Vec<Answer>,
    /// For each node that is a table: `None` if the table has not been examined yet; otherwise the
    /// least and the greatest distance between two entries, not yet multiplied by the table's scale.
    /// The inner option is `None` if the budget did not suffice.
    gaps: Vec<Option<Option<(u128, u128)>>>,
    runs: u64,
    words: usize,
}

/// A level of a nest that has more than one iteration.
#[derive(Clone, Copy)]
enum Dimension<'a> {
    Loop { count: u64, stride: i64 },
    Table { node: NodeId, entries: &'a Table, scale: i64 },
}

impl Dimension<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Loop { count, .. } => *count,
            Self::Table { entries, .. } => entries.len() as u64,
        }
    }

    fn offset(&self, index: u64) -> i64 {
        match self {
            Self::Loop { stride, .. } => stride.wrapping_mul(index as i64),
            Self::Table { entries, scale, .. } => entries.get(index as usize).wrapping_mul(*scale),
        }
    }
}

impl<'a> Question<'a> {
    /// Returns the levels and the leaf of the nest whose outermost node is `head`.
    ///
    /// At most 63 levels have more than one iteration, because the number of packed bytes fits in 63
    /// bits.
    fn levels(&self, head: NodeId) -> (Vec<Dimension<'a>>, NodeId) {
        let (mut levels, mut at) = (Vec::new(), head);
        loop {
            let body = match &self.program.node(at).op {
                Op::Loop { count, stride, body } => {
                    levels.push(Dimension::Loop { count: *count, stride: *stride });
                    body
                }
                Op::Table { entries, scale, body } => {
                    levels.push(Dimension::Table { node: at, entries, scale: *scale });
                    body
                }
                Op::Block | Op::Ragged { .. } | Op::Seq { .. } => break,
            };
            at = body.node;
        }
        levels.retain(|level| level.count() > 1);
        (levels, at)
    }

    /// Returns the heads (outermost nodes) and the leaves of all nests inside `leaf`, and `leaf`
    /// itself. In the result, a node comes after the nodes that it uses.
    fn heads(&self, leaf: NodeId) -> Vec<NodeId> {
        let mut seen = vec![false; self.program.nodes().len()];
        let (mut found, mut pending) = (Vec::new(), vec![leaf]);
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            found.push(id);
            match &self.program.node(id).op {
                Op::Loop { .. } | Op::Table { .. } => pending.push(self.levels(id).1),
                op => pending.extend(edges(op).map(|edge| edge.node)),
            }
        }
        found.sort_unstable();
        found
    }

    fn summary(&self, edge: &Edge) -> Summary {
        self.summaries[edge.node.index()].moved(edge.offset)
    }

    /// Computes the answer for a head or a leaf of a nest. The answers for the heads and leaves that it
    /// uses must exist already.
    fn node(&mut self, id: NodeId) -> Answer {
        if self.summaries[id.index()].monotone {
            return Answer::No;
        }
        match &self.program.node(id).op {
            Op::Block => Answer::No,
            Op::Loop { .. } | Op::Table { .. } => {
                let (levels, leaf) = self.levels(id);
                self.nest(levels, leaf)
            }
            Op::Seq { parts } => self.sequence(id, parts),
            Op::Ragged { list, scale, stride, body } => {
                self.ragged(id, list, *scale, *stride, body)
            }
        }
    }

    /// Computes the answer for a nest: copies of `leaf` at all sums of one offset per level.
    fn nest(&mut self, levels: Vec<Dimension<'a>>, leaf: NodeId) -> Answer {
        let inside = self.answers[leaf.index()];
        if inside == Answer::Yes {
            return Answer::Yes;
        }
        let width = self.summaries[leaf.index()].span().unsigned_abs();
        let mut sorted: Vec<(u128, u128, Dimension)> = Vec::with_capacity(levels.len());
        for level in levels.into_iter().filter(|level| level.count() > 1) {
            match self.gap(&level) {
                Some((0, _)) => return Answer::Yes,
                Some((gap, span)) => sorted.push((gap, span, level)),
                // An unknown gap counts as 0 and an unknown span as the maximum, so that this level
                // proves nothing.
                None => sorted.push((0, u128::MAX, level)),
            }
        }
        sorted.sort_by_key(|(gap, ..)| *gap);
        // The levels from index `cut` on cannot cause an overlap.
        let (mut cut, mut reach, mut copies) = (0, width, 1u128);
        for (i, (gap, span, level)) in sorted.iter().enumerate() {
            if *gap < reach {
                cut = i + 1;
            }
            reach = reach.saturating_add(*span);
            copies = copies.saturating_mul(u128::from(level.count()));
        }
        sorted.truncate(cut);
        if cut == 0 {
            return inside;
        }
        let node = self.program.node(leaf);
        // By the pigeonhole principle there is an overlap if the copies have more bytes than the
        // range that contains them. Two copies of a block also overlap if they lie closer together
        // than the block's length.
        let full = copies.saturating_mul(u128::from(node.bytes)) > reach;
        let close = sorted.iter().any(|(gap, ..)| (1..width).contains(gap));
        if full || (close && node.op == Op::Block) {
            return Answer::Yes;
        }
        let levels: Vec<Dimension> = sorted.into_iter().map(|(.., level)| level).collect();
        self.sort(&levels, leaf)
    }

    /// Returns the least and the greatest distance between two iterations of `level`, in bytes.
    /// Returns `None` if the budget does not suffice.
    fn gap(&mut self, level: &Dimension<'a>) -> Option<(u128, u128)> {
        match level {
            Dimension::Loop { count, stride } => {
                let stride = u128::from(stride.unsigned_abs());
                Some((stride, u128::from(count - 1) * stride))
            }
            Dimension::Table { node, entries, scale } => {
                let known = match self.gaps[node.index()] {
                    Some(known) => known,
                    None => {
                        let found = distances(entries, &mut self.words);
                        self.gaps[node.index()] = Some(found);
                        found
                    }
                };
                let scale = u128::from(scale.unsigned_abs());
                known.map(|(least, most)| (least * scale, most * scale))
            }
        }
    }

    fn sequence(&mut self, id: NodeId, parts: &[Part]) -> Answer {
        let mut spans = Vec::with_capacity(parts.len());
        let mut inside = Answer::No;
        for part in parts {
            inside = worse(inside, self.answers[part.edge.node.index()]);
            let summary = self.summary(&part.edge);
            let block = self.program.node(part.edge.node).op == Op::Block;
            spans.push(Span { low: summary.low, high: summary.high, solid: block });
        }
        if inside == Answer::Yes {
            return Answer::Yes;
        }
        match meet(&mut spans) {
            Answer::Yes => Answer::Yes,
            Answer::No => inside,
            Answer::Unknown if self.columns(parts) => inside,
            Answer::Unknown => self.sort(&[], id),
        }
    }

    /// Returns true if all parts are loops with one common stride and the spans of their bodies are
    /// disjoint modulo that stride.
    fn columns(&self, parts: &[Part]) -> bool {
        let mut stride = None;
        let mut spans = Vec::with_capacity(parts.len());
        for part in parts {
            let Op::Loop { stride: step, body, .. } = &self.program.node(part.edge.node).op else {
                return false;
            };
            let step = i128::from(step.unsigned_abs());
            if step == 0 || *stride.get_or_insert(step) != step {
                return false;
            }
            let body = self.summary(body).moved(part.edge.offset);
            let low = body.low.rem_euclid(step);
            spans.push(Span { low, high: low.saturating_add(body.span()), solid: false });
        }
        let (Some(stride), Some(least)) = (stride, spans.iter().map(|span| span.low).min()) else {
            return false;
        };
        let apart = meet(&mut spans) == Answer::No;
        // The spans repeat with period `stride`. So no span may reach into the first span of the next
        // period.
        apart && spans.iter().all(|span| span.high <= least + stride)
    }

    fn ragged(
        &mut self,
        id: NodeId,
        list: &RaggedList,
        scale: i64,
        stride: i64,
        body: &Edge,
    ) -> Answer {
        let inside = self.answers[body.node.index()];
        if inside == Answer::Yes {
            return Answer::Yes;
        }
        let copy = self.summary(body);
        let block = self.program.node(body.node).op == Op::Block;
        let close = i128::from(stride).abs() < copy.span();
        let mut interleaved = false;
        if close && list.lengths.iter().any(|length| length > 1) {
            if block {
                return Answer::Yes;
            }
            interleaved = true;
        }
        let words = list.len().saturating_mul(size_of::<Span>() / 8);
        if !interleaved && words <= self.words {
            self.words -= words;
            let solid = block && i128::from(stride) == copy.span();
            let mut spans: Vec<Span> = list
                .lengths
                .iter()
                .zip(list.entries.iter())
                .filter(|(length, _)| *length > 0)
                .map(|(length, at)| {
                    let all = copy.repeated(length as u64, stride).moved(at.wrapping_mul(scale));
                    Span { low: all.low, high: all.high, solid: solid || (block && length == 1) }
                })
                .collect();
            match meet(&mut spans) {
                Answer::Yes => return Answer::Yes,
                Answer::No => return inside,
                Answer::Unknown => {}
            }
        }
        self.sort(&[], id)
    }

    /// Returns all runs of a leaf if the budget suffices, and some of the runs otherwise. If the leaf
    /// is a sequence, these are the first runs of every part, because overlaps arise between parts.
    fn first_runs(&self, leaf: NodeId) -> Vec<Run> {
        let each = self.summaries[leaf.index()].runs;
        match &self.program.node(leaf).op {
            Op::Seq { parts } if each > self.runs => {
                let share = (self.runs / parts.len() as u64) as usize;
                let runs = parts.iter().flat_map(|Part { edge, .. }| {
                    let inner = runs_of(self.program, edge.node).take(share);
                    inner.map(|run| Run { offset: run.offset.wrapping_add(edge.offset), ..run })
                });
                runs.collect()
            }
            _ => runs_of(self.program, leaf).take(self.runs.min(each) as usize).collect(),
        }
    }

    /// Sorts the runs of the copies of `leaf`, as many as the budget allows, and looks for two that
    /// overlap. One copy lies at each sum of one offset per level.
    fn sort(&mut self, levels: &[Dimension<'_>], leaf: NodeId) -> Answer {
        let each = self.summaries[leaf.index()].runs;
        let mut runs = self.first_runs(leaf);
        let mut all = runs.len() as u64 == each;
        for level in levels {
            let copies = runs.len();
            let count = level.count().min(self.runs / (copies as u64).max(1));
            all &= count == level.count();
            for index in 1..count {
                let offset = level.offset(index).wrapping_sub(level.offset(0));
                for i in 0..copies {
                    let run = runs[i];
                    runs.push(Run { offset: run.offset.wrapping_add(offset), ..run });
                }
            }
        }
        self.runs -= runs.len() as u64;
        runs.sort_unstable_by_key(|run| run.offset);
        let end = |run: &Run| i128::from(run.offset) + i128::from(run.bytes);
        if runs.windows(2).any(|pair| end(&pair[0]) > i128::from(pair[1].offset)) {
            Answer::Yes
        } else if all {
            Answer::No
        } else {
            Answer::Unknown
        }
    }
}

/// A range that contains data. `solid` is true if every byte of the range is data.
struct Span {
    low: i128,
    high: i128,
    solid: bool,
}

/// Decides whether bytes of data in two different spans coincide. The answer is no if no two spans
/// intersect, yes if two solid spans intersect, and unknown otherwise.
fn meet(spans: &mut [Span]) -> Answer {
    if !spans.is_sorted_by_key(|span| span.low) {
        spans.sort_unstable_by_key(|span| span.low);
    }
    let mut answer = Answer::No;
    // `end` is the greatest end of all spans so far; `solid_end` is the greatest end of the solid
    // spans so far.
    let (mut end, mut solid_end) = (i128::MIN, i128::MIN);
    for span in spans {
        if span.solid && span.low < solid_end {
            return Answer::Yes;
        }
        if span.low < end {
            answer = Answer::Unknown;
        }
        end = end.max(span.high);
        if span.solid {
            solid_end = solid_end.max(span.high);
        }
    }
    answer
}

/// Combines the answers for two parts that do not overlap each other.
fn worse(a: Answer, b: Answer) -> Answer {
    match (a, b) {
        (Answer::Yes, _) | (_, Answer::Yes) => Answer::Yes,
        (Answer::No, Answer::No) => Answer::No,
        _ => Answer::Unknown,
    }
}

/// Returns the least and the greatest distance between two entries; there must be at least two
/// entries. If the entries are neither ascending nor descending, and no two neighbours are equal, the
/// function sorts a copy of them. It returns `None` if `budget` has too few words for this copy.
fn distances(entries: &Table, budget: &mut usize) -> Option<(u128, u128)> {
    let (mut up, mut down, mut least) = (true, true, u64::MAX);
    for i in 1..entries.len() {
        let (a, b) = (entries.get(i - 1), entries.get(i));
        up &= a <= b;
        down &= a >= b;
        least = least.min(a.abs_diff(b));
    }
    let (first, last) = (entries.get(0), entries.get(entries.len() - 1));
    if up || down || least == 0 {
        let most = entries.iter().fold((first, last), |(a, b), e| (a.min(e), b.max(e)));
        return Some((u128::from(least), u128::from(most.0.abs_diff(most.1))));
    }
    *budget = budget.checked_sub(entries.len())?;
    let mut sorted: Vec<i64> = entries.iter().collect();
    sorted.sort_unstable();
    let least = sorted.windows(2).map(|pair| pair[0].abs_diff(pair[1])).min()?;
    Some((u128::from(least), u128::from(sorted[0].abs_diff(sorted[sorted.len() - 1]))))
}

/// Returns the runs of `node` placed at displacement 0.
fn runs_of(program: &Program, node: NodeId) -> impl Iterator<Item = Run> {
    let mut runs = RunWalk::of_node(program, node);
    std::iter::from_fn(move || runs.next().map(|found| found.run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_entries() {
        let ask = |entries: &[i64], mut budget| distances(&Table::new(entries), &mut budget);
        assert_eq!(ask(&[3, 5, 9], 0), Some((2, 6)));
        assert_eq!(ask(&[9, 5, 4], 0), Some((1, 5)));
        assert_eq!(ask(&[9, 0, 5], 0), None);
        assert_eq!(ask(&[9, 0, 5], 3), Some((4, 9)));
        assert_eq!(ask(&[9, 0, 9], 3), Some((0, 9)));
        assert_eq!(ask(&[9, 0, 0, 2], 0), Some((0, 9)));
        assert_eq!(ask(&[i64::MIN, i64::MAX], 0), Some((u128::from(u64::MAX), u64::MAX.into())));
    }

    #[test]
    fn spans_meet() {
        let ask = |spans: &[(i128, i128, bool)]| {
            let span = |&(low, high, solid)| Span { low, high, solid };
            meet(&mut spans.iter().map(span).collect::<Vec<_>>())
        };
        assert_eq!(ask(&[]), Answer::No);
        assert_eq!(ask(&[(8, 12, true), (0, 8, false), (12, 13, true)]), Answer::No);
        assert_eq!(ask(&[(8, 12, true), (0, 9, false)]), Answer::Unknown);
        assert_eq!(ask(&[(8, 12, true), (0, 9, true)]), Answer::Yes);
        assert_eq!(ask(&[(0, 100, true), (10, 20, false), (50, 60, true)]), Answer::Yes);
        assert_eq!(ask(&[(0, 20, true), (10, 100, false), (50, 60, true)]), Answer::Unknown);
    }

    /// Checks that the answer is "unknown", rather than wrong, if the budget has too few words to
    /// sort a table.
    #[test]
    fn without_words_a_table_proves_nothing() {
        let double = crate::Datatype::named(crate::Named::DOUBLE);
        let entries: Vec<i64> = (0..1000).map(|i| i * 7 % 1000 * 8).collect();
        let plan = crate::Datatype::hindexed_block(1, &entries, &double).unwrap().commit().unwrap();
        let program = plan.program();
        let mut question = Question {
            program,
            summaries: summarize(program),
            answers: vec![Answer::No; program.nodes().len()],
            gaps: vec![None; program.nodes().len()],
            runs: 0,
            words: 999,
        };
        let body = program.body.unwrap();
        let (levels, leaf) = question.levels(body.node);
        assert_eq!(question.nest(levels.clone(), leaf), Answer::Unknown);
        question.runs = 1000;
        assert_eq!(question.nest(levels, leaf), Answer::No);
    }
}
