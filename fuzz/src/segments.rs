//! Checks packing and unpacking in parts: every partition of the packed bytes must give the result of
//! one call.
//!
//! The case comes from `generate.rs`. Parts are packed in ascending order or in random order. Parts are
//! unpacked in ascending order, into memory that holds a canary pattern at the start, and the check
//! compares all of the memory with the model's after every part.

use crate::check::{Executors, Scene, difference};
use crate::generate::Case;
use crate::stream::Stream;
use std::ops::Range;
use typepack_engine::{Cursor, Settings, pack_range, unpack_range};

/// Checks cases one after another, and uses the same compilers for all of them.
pub struct SegmentChecker {
    settings: Vec<(&'static str, Settings)>,
}

impl SegmentChecker {
    /// Makes a checker for `executors`, with a JIT of its own if `executors` include the JIT.
    pub fn new(executors: Executors) -> Self {
        Self { settings: executors.settings().0 }
    }

    /// Checks `partitions` random partitions per executor. Returns the number of parts in all
    /// partitions.
    pub fn check(&self, case: &Case, stream: &mut Stream, partitions: u64) -> Result<u64, String> {
        let model = case.bounded()?;
        let ty = case.recipe.build().map_err(|e| format!("constructor refused: {e}"))?;
        let scene = Scene::new(case, &model);
        let mut tried = 0;
        for (name, settings) in &self.settings {
            let plan = ty.commit_with(settings).map_err(|e| format!("{name}: commit: {e}"))?;
            let wrong = |e| format!("{name}: {e}");
            cursor(&plan, case.count, &scene, stream).map_err(wrong)?;
            for _ in 0..partitions {
                let parts = partition(scene.packed.len(), stream);
                tried += parts.len() as u64;
                pack_parts(&plan, case.count, &scene, &parts, stream)
                    .and_then(|()| unpack_parts(&plan, case.count, &scene, &parts))
                    .map_err(|e| format!("{name}: parts {parts:?}: {e}"))?;
            }
        }
        Ok(tried)
    }
}

/// Returns consecutive ranges that cover `0..total`. Either all ranges but the last have the same
/// length, or their lengths are random. Random lengths can be 0.
fn partition(total: usize, stream: &mut Stream) -> Vec<Range<usize>> {
    let most = 1 + stream.below((total as u64).clamp(1, 4096)) as usize;
    // The check compares all of the memory after every part. A minimum for `most`, the maximum length
    // of a part, keeps the number of parts low.
    let most = most.max(total / 40);
    let equal = stream.below(2) == 0;
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < total {
        let length = if equal { most } else { stream.below(most as u64 + 1) as usize };
        let end = total.min(at + length);
        parts.push(at..end);
        at = end;
    }
    parts
}

fn wide(part: &Range<usize>) -> Range<u64> {
    part.start as u64..part.end as u64
}

fn pack_parts(
    plan: &typepack_engine::Plan,
    count: u64,
    scene: &Scene,
    parts: &[Range<usize>],
    stream: &mut Stream,
) -> Result<(), String> {
    let (memory, origin) = scene.with_origin(&scene.source);
    let mut order: Vec<usize> = (0..parts.len()).collect();
    if stream.below(2) == 0 {
        for i in (1..order.len()).rev() {
            order.swap(i, stream.below(i as u64 + 1) as usize);
        }
    }
    let mut packed = vec![0; scene.packed.len()];
    for part in order.into_iter().map(|i| &parts[i]) {
        let dst = &mut packed[part.clone()];
        pack_range(plan, count, &memory, origin, wide(part), dst)
            .map_err(|e| format!("pack_range {part:?}: {e}"))?;
    }
    difference("packing in parts", &packed, &scene.packed)
}

fn unpack_parts(
    plan: &typepack_engine::Plan,
    count: u64,
    scene: &Scene,
    parts: &[Range<usize>],
) -> Result<(), String> {
    let (mut memory, origin) = scene.with_origin(&scene.canary);
    let (mut expected, _) = scene.with_origin(&scene.canary);
    let before = scene.low.max(0) as usize;
    for part in parts {
        let src = &scene.data[part.clone()];
        unpack_range(plan, count, src, wide(part), &mut memory, origin)
            .map_err(|e| format!("unpack_range {part:?}: {e}"))?;
        for k in part.clone() {
            expected[before + scene.addresses[k]] = scene.data[k];
        }
        difference("unpacking in parts", &memory, &expected)
            .map_err(|e| format!("after {part:?}: {e}"))?;
    }
    Ok(())
}

/// Moves a cursor to several random positions, and checks that the next runs have the expected
/// addresses.
fn cursor(
    plan: &typepack_engine::Plan,
    count: u64,
    scene: &Scene,
    stream: &mut Stream,
) -> Result<(), String> {
    let total = scene.packed.len();
    let mut cursor = Cursor::new(plan, count).map_err(|e| format!("cursor: {e}"))?;
    for _ in 0..4 {
        let mut at = stream.below(total as u64 + 1) as usize;
        cursor.seek(at as u64).map_err(|e| format!("seek {at}: {e}"))?;
        for _ in 0..20 {
            let Some(run) = cursor.run() else { break };
            for k in 0..(run.bytes as usize).min(total - at) {
                let address = scene.addresses[at + k] as i64 + scene.low;
                if run.offset + k as i64 != address {
                    return Err(format!(
                        "cursor at byte {at}: byte {k} of {run:?} must be at offset {address}"
                    ));
                }
            }
            at += run.bytes as usize;
            cursor.advance(run.bytes);
            if at > total {
                return Err(format!(
                    "{run:?} ends at byte {at}, beyond the end of the {total} packed bytes"
                ));
            }
            if cursor.tell() != at as u64 {
                return Err(format!("the cursor is at byte {}; expected byte {at}", cursor.tell()));
            }
        }
        if cursor.run().is_none() && at != total {
            return Err(format!("the cursor ended at byte {at}; expected byte {total}"));
        }
    }
    Ok(())
}
