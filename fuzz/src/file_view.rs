//! Checks file views: which types can be views, where in the file the view bytes lie (the bytes that the view
//! shows), where a file ends in a view, and copies between memory and a file. A copy may begin at any position of
//! either side.
//!
//! Two cases from `generate.rs` make a check: one is the layout of memory, the other the filetype. The
//! displacements of a filetype must not decrease, but those of random filetypes usually do. So, if a
//! filetype is refused, the check also takes a second filetype: the same bytes in ascending order.
//! `model.rs` computes where every byte lies. After every copy, all bytes of memory and file are compared, gaps
//! included.

use crate::check::{Executors, Scene, difference};
use crate::generate::Case;
use crate::model::Model;
use crate::stream::Stream;
use typepack_engine::{Datatype, Elements, FileView, Named, Plan, Settings};

/// Checks pairs of cases one after another, and uses the same compilers for all of them.
pub struct ViewChecker {
    settings: Vec<(&'static str, Settings)>,
    /// Three numbers: the views that were made, the filetypes that were refused, and the copies.
    pub counts: [u64; 3],
}

/// Maximum number of view bytes whose offsets a check lists.
const MOST: u64 = 1 << 16;

impl ViewChecker {
    /// Makes a checker for `executors`, with a JIT of its own if `executors` include the JIT.
    pub fn new(executors: Executors) -> Self {
        Self { settings: executors.settings().0, counts: [0; 3] }
    }

    /// Checks the view whose filetype is `file`, with `copies` random copies per executor between the view and
    /// `memory`.
    pub fn check(
        &mut self,
        memory: &Case,
        file: &Case,
        stream: &mut Stream,
        copies: u64,
    ) -> Result<(), String> {
        let (model, target) = (memory.bounded()?, file.bounded()?);
        let refused = |e| format!("constructor refused: {e}");
        let layout = memory.recipe.build().map_err(refused)?;
        let filetype = file.recipe.build().map_err(refused)?;
        let offsets = offsets(&target, target.extent());
        if !self.view((&filetype, &offsets), (memory, &layout, &model), stream, copies)? {
            // The bytes of the filetype in ascending order, each only once, without those at negative
            // displacements.
            let mut sorted = offsets[0].clone();
            sorted.retain(|&at| at >= 0);
            sorted.sort_unstable();
            sorted.dedup();
            let ones = vec![1; sorted.len()];
            let byte = Datatype::named(Named::BYTE);
            let ordered = Datatype::hindexed(&ones, &sorted, &byte).map_err(refused)?;
            let extent = ordered.true_ub().max(1);
            let ordered = Datatype::resized(0, extent, &ordered).map_err(refused)?;
            let second = sorted.iter().map(|at| at + extent).collect();
            let offsets = [sorted, second];
            if !self.view((&ordered, &offsets), (memory, &layout, &model), stream, copies)? {
                return Err(format!("the ordered type {ordered:?} was refused"));
            }
        }
        Ok(())
    }

    /// Checks one filetype, whose first and second copy have their bytes at `offsets`. Returns false if
    /// the filetype was rightly refused.
    fn view(
        &mut self,
        (filetype, offsets): (&Datatype, &[Vec<i64>; 2]),
        (memory, layout, model): (&Case, &Datatype, &Model),
        stream: &mut Stream,
        copies: u64,
    ) -> Result<bool, String> {
        let [first, second] = offsets;
        let scene = Scene::new(memory, model);
        for (name, settings) in &self.settings {
            let made = FileView::new(&Datatype::named(Named::BYTE), filetype, settings);
            let view = match made {
                Ok(view) => view,
                Err(_) if !is_ordered(filetype) => {
                    self.counts[1] += 1;
                    return Ok(false);
                }
                Err(error) => {
                    return Err(format!("{name}: an ordered filetype was refused: {error}"));
                }
            };
            if !is_ordered(filetype) {
                return Err(format!("{name}: a filetype that is not ordered made a view"));
            }
            self.counts[0] += 1;
            if first.is_empty() {
                continue;
            }
            let step = second[0] - first[0];
            let each = first.len() as u64;
            let tiles = (MOST / each).clamp(1, 3);
            // Filetypes with a negative extent may begin before the view. No position reaches those.
            let low = first[0];
            let all: Vec<i64> = (0..tiles as i64)
                .take_while(|i| low + i * step >= 0)
                .flat_map(|i| first.iter().map(move |at| at + i * step))
                .collect();
            let wrong = |e| format!("{name}: {e}");
            positions(&view, &all, first.len(), stream).map_err(wrong)?;
            let plan = layout.commit_with(settings).map_err(|e| format!("{name}: commit: {e}"))?;
            for _ in 0..copies {
                let most = (scene.packed.len()).min(all.len()) as u64;
                let bytes = stream.below(most + 1);
                let at = stream.below(scene.packed.len() as u64 - bytes + 1);
                let position = match stream.below(2) {
                    0 => stream.below(all.len() as u64 - bytes + 1),
                    _ => at.min(all.len() as u64 - bytes),
                };
                let numbers = (at as usize, position as usize, bytes as usize);
                self.counts[2] += 1;
                copy(&plan, memory.count, &scene, &view, &all, numbers).map_err(|e| {
                    format!("{name}: memory {at}, view {position}, {bytes} bytes: {e}")
                })?;
            }
        }
        Ok(true)
    }
}

/// Returns the displacement of every byte of the first and the second copy of a type.
fn offsets(model: &Model, extent: i64) -> [Vec<i64>; 2] {
    let one = model.addresses(1);
    let two = one.iter().map(|at| at + extent).collect();
    [one, two]
}

/// Returns true if a filetype may have this type: its displacements are not negative and do not decrease.
fn is_ordered(ty: &Datatype) -> bool {
    let entries = typepack_engine::typemap::typemap(ty);
    let all: Vec<i64> = entries.iter().map(|entry| entry.offset).collect();
    all.is_empty() || (all[0] >= 0 && all.is_sorted())
}

/// Compares the offsets, pieces, spans and ends of file that the view computes with `all`, which holds the offset
/// of each view byte. Each copy of the filetype has `each` view bytes.
fn positions(view: &FileView, all: &[i64], each: usize, stream: &mut Stream) -> Result<(), String> {
    let writable = view.check_writable().is_ok();
    for _ in 0..8 {
        let from = stream.below(all.len() as u64) as usize;
        let length = 1 + stream.below((all.len() - from) as u64) as usize;
        let (position, part) = (from as u64, &all[from..from + length]);
        let failed = |e| format!("view byte {from}, {length} bytes: {e}");
        let offset = view.offset(position).map_err(failed)?;
        if offset as i64 != part[0] {
            return Err(format!("view byte {from} is at {offset}; expected {}", part[0]));
        }
        let pieces = view.pieces(position, length as u64).map_err(failed)?;
        let met = pieces.flat_map(|piece| piece.offset..piece.offset + piece.bytes as i64);
        if !met.eq(part.iter().copied()) {
            return Err(format!("the pieces of {length} view bytes from {from} on are wrong"));
        }
        let span = view.span(position, length as u64).map_err(failed)?;
        let low = part.iter().min().map_or(0, |&low| low as u64);
        let high = part.iter().max().map_or(0, |&high| high as u64 + 1);
        if span.start > low || span.end < high || (writable && span != (low..high)) {
            return Err(format!(
                "{length} view bytes from {from} on have the span {span:?}; expected {low}..{high}"
            ));
        }
        // If no listed view byte lies at or after the offset, one of a later copy of the filetype may.
        let end = stream.below(all.iter().max().map_or(0, |&last| last as u64) + 2);
        let listed = all.iter().position(|&at| at as u64 >= end);
        let first = listed.unwrap_or(all.len()) as u64;
        let found = view.position_at(end);
        if found < first || (listed.is_some() && found > first) {
            return Err(format!(
                "the first view byte at or after offset {end} is {found}; expected {first} (a copy of \
                 the filetype has {each} view bytes)"
            ));
        }
        let read = part.iter().take_while(|&&at| (at as u64) < end).count() as u64;
        let found = view.readable(position, length as u64, end).map_err(failed)?;
        if found != read {
            return Err(format!(
                "of {length} view bytes from {from} on, {found} lie before offset {end}; expected {read}"
            ));
        }
    }
    Ok(())
}

/// Copies `bytes` bytes in both directions between memory, from its packed byte `at` on, and the file, from the view
/// byte `position` on. Compares file and memory with the model. `all` holds the offset of each view byte.
fn copy(
    plan: &Plan,
    count: u64,
    scene: &Scene,
    view: &FileView,
    all: &[i64],
    (at, position, bytes): (usize, usize, usize),
) -> Result<(), String> {
    let length = all.iter().max().map_or(0, |&last| last as usize + 1);
    let disk: Vec<u8> = (0..length).map(|i| (i * 11 + i / 241) as u8).collect();
    let numbers = (at as u64, position as u64, bytes as u64);
    let low = scene.low as isize;

    let (mut file, mut expected) = (disk.clone(), disk.clone());
    for i in 0..bytes {
        expected[all[position + i] as usize] = scene.packed[at + i];
    }
    let memory = scene.source.as_ptr().wrapping_offset(-low);
    let side = Elements::new(memory, plan, count);
    // SAFETY:
    // - the copied bytes lie within the packed bytes of the memory, because the caller has chosen `at` so;
    // - `scene.source` holds every byte that the elements touch according to the model, and its first byte
    //   has the displacement `low`;
    // - `file` is writable and holds every view byte in `all`, which contains the copied ones;
    // - `scene.source` and `file` are two allocations, so no byte is both read and written.
    unsafe { view.write_raw(side, numbers.0, file.as_mut_ptr(), numbers.1, numbers.2) }
        .map_err(|e| format!("write: {e}"))?;
    difference("file after writing", &file, &expected)?;

    let (mut ram, mut expected) = (scene.canary.clone(), scene.canary.clone());
    for i in 0..bytes {
        expected[scene.addresses[at + i]] = disk[all[position + i] as usize];
    }
    let memory = ram.as_mut_ptr().wrapping_offset(-low);
    let side = Elements::new(memory, plan, count);
    // SAFETY: the copied bytes lie within the packed bytes of the memory, because the caller has chosen `at` so.
    // `ram` is writable and holds every byte that the elements touch; its first byte has the displacement `low`.
    // `disk` holds every view byte in `all`. `ram` and `disk` are two allocations, so no byte is both read and
    // written.
    unsafe { view.read_raw(side, numbers.0, disk.as_ptr(), numbers.1, numbers.2) }
        .map_err(|e| format!("read: {e}"))?;
    difference("memory after reading", &ram, &expected)
}
