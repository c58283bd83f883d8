//! Compares the speed of external32 with the speed of the native representation of the same layout, in both
//! directions. The ratio (external32 speed divided by native speed) shows the cost of converting the byte
//! order. The native kernels are compiled.
//!
//! A row stands for a layout of `definitions/reference.toml` and a direction. Its value is the least ratio
//! over the sizes, and its details list the ratios at all sizes. Every byte of the answers is compared with
//! an answer that is computed from the typemap.

use super::{Limit, Numbers, Row, Scale, line, settings};
use crate::buffer::Buffer;
use crate::definition::{Definitions, REFERENCE};
use crate::layout::Layout;
use crate::measure::{Time, take_turns};
use typepack_engine::{
    External32, Named, Plan, pack, pack_external, typemap, unpack, unpack_external,
};
use typepack_jit::Mode;

/// The least allowed ratio of the external32 speed to the native speed.
const BAR: Limit = Limit::AtLeast(0.7);

/// The names of the layouts. A layout that does not exist at any of [`SIZES`] is measured at one size of
/// its own.
const LAYOUTS: [&str; 15] = [
    "contig",
    "d1s2",
    "d1s8",
    "d3s7",
    "d4s8",
    "d64s128",
    "f1s2",
    "face-x128",
    "face-y128",
    "struct",
    "particle",
    "indexed",
    "list",
    "cols64",
    "transf1024",
];

/// The sizes at which the layouts are measured, in packed bytes. Sizes above [`Scale::bytes`] are left out.
const SIZES: [u64; 4] = [1 << 10, 16 << 10, 256 << 10, 1 << 20];

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let definitions = Definitions::parse(REFERENCE).map_err(line)?;
    let mut rows = Vec::new();
    for name in LAYOUTS {
        let find = definitions.layouts.iter().find(|layout| layout.name == name);
        let definition =
            find.ok_or_else(|| format!("external32: the reference layouts have no layout {name}"))?;
        let mut ratios: [Vec<(u64, f64)>; 2] = [Vec::new(), Vec::new()];
        let mut steady = true;
        let mut layouts: Vec<Layout> =
            SIZES.iter().filter_map(|&size| Layout::new(definition, size).ok()).collect();
        if layouts.is_empty() {
            // The layout exists at none of `SIZES`, so it is measured at the smallest power of two from
            // 2^7 to 2^23 at which it exists.
            let sizes = (7..=23).map(|log| 1 << log);
            layouts.extend(sizes.filter_map(|size| Layout::new(definition, size).ok()).take(1));
        }
        layouts.dedup_by_key(|layout| layout.payload);
        for layout in layouts.iter().filter(|layout| layout.payload <= scale.bytes as u64) {
            let times = measure(layout, scale.rounds)?;
            for (all, [native, external]) in ratios.iter_mut().zip(times) {
                all.push((layout.payload, native.ns / external.ns));
                steady &= native.is_steady() && external.is_steady();
            }
        }
        for (direction, all) in ["pack", "unpack"].into_iter().zip(ratios) {
            let Some(worst) = all.iter().map(|&(_, ratio)| ratio).min_by(f64::total_cmp) else {
                continue;
            };
            let each: Vec<String> =
                all.iter().map(|(bytes, ratio)| format!("{ratio:.2} at {bytes}")).collect();
            let what = format!("external32, {name}, {direction}, against native");
            let row = Row::new(what, worst, "x", BAR).steady(steady);
            rows.push(row.detail(each.join(", ")));
        }
    }
    Ok(rows)
}

/// Verifies and measures `layout`. Returns the times of packing and then of unpacking. Each is a pair:
/// the native time and the external32 time.
fn measure(layout: &Layout, rounds: usize) -> Result<[[Time; 2]; 2], String> {
    let (ty, count) = (&layout.datatype, layout.count);
    let plan = ty.commit_with(&settings(Mode::Eager)).map_err(line)?;
    let external = External32::new(ty).map_err(line)?;
    let mut memory = Buffer::new(layout.memory)?;
    let mut numbers = Numbers(0x7777_1111_3333_0001);
    memory.bytes_mut().fill_with(|| numbers.below(251) as u8);
    let bytes = layout.payload as usize;
    let (mut native, mut canonical) = (Buffer::new(bytes)?, Buffer::new(bytes)?);
    let (native, canonical) = (native.bytes_mut(), canonical.bytes_mut());
    pack(&plan, count, memory.bytes(), native).map_err(line)?;
    pack_external(&external, count, memory.bytes(), canonical, &mut 0).map_err(line)?;
    if *canonical != *swapped(&plan, native) {
        let swapped = swapped(&plan, native);
        let at = canonical.iter().zip(&swapped).take_while(|(a, b)| a == b).count();
        return Err(format!(
            "external32 of {}: packed byte {at} is {:#04x}; expected {:#04x}",
            layout.name, canonical[at], swapped[at]
        ));
    }
    let before = memory.bytes().to_vec();
    memory.bytes_mut().fill(0x5a);
    unpack_external(&external, count, canonical, &mut 0, memory.bytes_mut()).map_err(line)?;
    pack(&plan, count, memory.bytes(), native).map_err(line)?;
    if *canonical != *swapped(&plan, native) {
        let swapped = swapped(&plan, native);
        let at = canonical.iter().zip(&swapped).take_while(|(a, b)| a == b).count();
        return Err(format!(
            "external32 of {}: after unpacking, byte {at} in packed order is {:#04x}; expected \
             {:#04x}",
            layout.name, swapped[at], canonical[at]
        ));
    }
    memory.bytes_mut().copy_from_slice(&before);
    // The calls above have succeeded with these arguments. So the timed calls succeed, too, and their
    // results can be dropped.
    let data = memory.bytes();
    let packing = take_turns(
        rounds,
        [&mut || drop(pack(&plan, count, data, native)), &mut || {
            drop(pack_external(&external, count, data, canonical, &mut 0))
        }],
    );
    // Both competitors write to the same memory, so that the placement of pages is the same for both.
    let data = std::cell::RefCell::new(memory.bytes_mut());
    let unpacking = take_turns(
        rounds,
        [&mut || drop(unpack(&plan, count, native, &mut data.borrow_mut())), &mut || {
            drop(unpack_external(&external, count, canonical, &mut 0, &mut data.borrow_mut()))
        }],
    );
    Ok([packing, unpacking])
}

/// Computes the external32 form of the packed bytes `native` from the typemap: reverses the bytes of each
/// entry on a little-endian machine.
fn swapped(plan: &Plan, native: &[u8]) -> Vec<u8> {
    let mut external = native.to_vec();
    let widths: Vec<usize> = plan.datatype().map_or_else(Vec::new, |ty| {
        let width = |named: Named| named.size() as usize;
        typemap::typemap(ty).iter().map(|entry| width(entry.named)).collect()
    });
    let (mut at, mut widths) = (0, widths.iter().cycle());
    while cfg!(target_endian = "little") && at < external.len() {
        let Some(width) = widths.next() else { break };
        external[at..at + width].reverse();
        at += width;
    }
    external
}
