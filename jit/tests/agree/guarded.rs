//! Allocates memory between guard pages, which are pages without access.

use super::{block, random, reference};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use typepack_engine::kernel::{Compiler, Direction, Level};
use typepack_jit::Jit;

/// Selects the end of the memory that touches a guard page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Start,
    End,
}

/// Bytes with a guard page directly before ([`Edge::Start`]) or after ([`Edge::End`]) them.
pub struct Guarded {
    map: *mut u8,
    map_bytes: usize,
    at: *mut u8,
    bytes: usize,
}

impl Guarded {
    pub fn new(bytes: usize, edge: Edge) -> Self {
        let page = rustix::param::page_size();
        let inside = bytes.next_multiple_of(page);
        let map_bytes = inside + 2 * page;
        // SAFETY: the system chooses the address of the new mapping, so the mapping overlaps no other
        // memory. The mapping has `inside + 2 * page` bytes, so the `inside` bytes from `map + page`
        // on, whose access `mprotect` changes, lie within it.
        let map = unsafe {
            let map = rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                map_bytes,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )
            .expect("the system gives memory")
            .cast::<u8>();
            if inside != 0 {
                let flags = MprotectFlags::READ | MprotectFlags::WRITE;
                rustix::mm::mprotect(map.add(page).cast(), inside, flags)
                    .expect("the system gives memory");
            }
            map
        };
        let skip = if edge == Edge::Start { page } else { page + inside - bytes };
        Self { map, map_bytes, at: map.wrapping_add(skip), bytes }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `at` points to `bytes` accessible bytes of the mapping. These bytes are
        // initialised, because the system fills a new mapping with 0.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `at` points to `bytes` accessible bytes of the mapping; `self` is borrowed
        // mutably, so no other reference to them exists.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping of `map_bytes` bytes, and no reference into it is left.
        unsafe {
            rustix::mm::munmap(self.map.cast(), self.map_bytes).expect("the memory is unmapped")
        };
    }
}

/// Packs and unpacks `count` blocks, and compares the results with the reference. Each block lies
/// at the start or the end of its own page, and a guard page lies between any two of these pages.
pub fn fenced_runs(jit: &Jit, bytes: u64, count: u64, edge: Edge) {
    let page = rustix::param::page_size();
    let stride = 2 * page;
    let mut mem = Guarded::new(stride * count as usize, Edge::Start);
    random::seeded(bytes).fill(mem.bytes_mut());
    let before = mem.bytes().to_vec();
    let first = if edge == Edge::Start { 0 } else { page - bytes as usize };
    let levels = vec![Level::Loop { count, stride: stride as i64 }];
    let mut nest = block(levels, bytes);
    nest.base = first as i64;
    let part = [(0, count)];
    let runs = reference::runs(&nest, &part);
    let mut packed = Guarded::new((bytes * count) as usize, edge);
    let mut expected = vec![0; (bytes * count) as usize];
    reference::pack(&runs, 0, &before, &mut expected);

    let fence = |mem: &mut Guarded, flags| {
        for i in 0..count as usize {
            let at = mem.bytes_mut()[stride * i + page..].as_mut_ptr();
            // SAFETY: `at` is the start of a whole page of `mem`, to which no reference exists now.
            unsafe { rustix::mm::mprotect(at.cast(), page, flags).expect("the page is protected") };
        }
    };
    let (params, base) = reference::parameters(&nest, &part);
    for direction in [Direction::Pack, Direction::Unpack] {
        let kernel = jit.kernel(&nest.shape(direction)).expect("the shape has a kernel");
        if direction == Direction::Unpack {
            random::seeded(bytes + 1).fill(packed.bytes_mut());
        }
        let base = mem.bytes_mut()[base as usize..].as_mut_ptr();
        fence(&mut mem, MprotectFlags::empty());
        // SAFETY: `params` belongs to `nest`, whose shape the kernel has; the runs lie in
        // accessible pages of `mem`, and `packed` has all their bytes.
        unsafe { kernel.entry()(params.as_ptr(), base, packed.bytes_mut().as_mut_ptr()) };
        fence(&mut mem, MprotectFlags::READ | MprotectFlags::WRITE);
        match direction {
            Direction::Pack => assert!(packed.bytes() == expected, "pack {bytes} x {count}"),
            Direction::Unpack => {
                let mut expected = before.clone();
                reference::unpack(&runs, 0, packed.bytes(), &mut expected);
                assert!(mem.bytes() == expected, "unpack {bytes} x {count}");
            }
        }
    }
}
