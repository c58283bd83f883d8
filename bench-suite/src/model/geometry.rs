//! The halo of a rank, the grid of ranks, and the faces that leave a host.

/// The halo of a cube: six faces of `width` layers of `edge` times `edge` elements, of all fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Halo {
    /// Number of elements along one edge of the cube of a rank.
    pub(super) edge: u64,
    pub(super) width: u64,
    /// Number of bytes of an element.
    pub(super) element: u64,
    /// Number of arrays whose faces travel in one message.
    pub(super) fields: u64,
}

impl Halo {
    /// Returns the number of bytes of a face, which is one message.
    pub(super) fn face(&self) -> f64 {
        let edge = real(self.edge);
        real(self.width) * edge * edge * real(self.element) * real(self.fields)
    }
}

/// Where the ranks of one host stand, and what that means for the rank with the most crossing faces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// The grid of all ranks, the longest dimension first. The grid is periodic.
    pub(super) grid: [u64; 3],
    /// The block of the ranks of a host.
    pub(super) block: [u64; 3],
    /// For each dimension, how many of the two faces of the rank cross the network.
    pub(super) crossing: [u64; 3],
    /// The number of crossing faces of all ranks of the host divided by that of the rank; 1 if none crosses.
    pub(super) share: f64,
}

impl Place {
    /// Places `ranks` ranks with at most `per_host` ranks on each host.
    pub(super) fn new(ranks: u64, per_host: u64) -> Self {
        let grid = cuboid(ranks);
        let block = if per_host >= ranks { grid } else { cuboid(per_host) };
        let mut crossing = [0; 3];
        let (mut all, volume) = (0, block.iter().product::<u64>());
        for d in 0..3 {
            // A block that is as long as the grid is its own neighbour. A rank in a block of one layer has both
            // neighbours outside; the rank at the corner of a longer block has one.
            if block[d] < grid[d] {
                crossing[d] = if block[d] == 1 { 2 } else { 1 };
                all += 2 * volume / block[d];
            }
        }
        let own: u64 = crossing.iter().sum();
        let share = if own == 0 { 1.0 } else { real(all) / real(own) };
        Self { grid, block, crossing, share }
    }
}

/// Returns three factors of `number` with the least sum, the greatest factor first.
pub(super) fn cuboid(number: u64) -> [u64; 3] {
    let mut best = [number, 1, 1];
    let divisors =
        |n: u64| (1..).take_while(move |d| d * d <= n).filter(move |d| n.is_multiple_of(*d));
    for short in divisors(number).take_while(|d| d * d * d <= number) {
        let rest = number / short;
        if let Some(middle) = divisors(rest).last() {
            let mut found = [rest / middle, middle, short];
            found.sort_unstable_by(|a, b| b.cmp(a));
            if found.iter().sum::<u64>() < best.iter().sum() {
                best = found;
            }
        }
    }
    best
}

/// Converts a count. All counts of the model are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "the arguments bound all counts to less than 2^53")]
pub(super) fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{Halo, Place, cuboid};

    #[test]
    fn grids_are_near_to_cubes() {
        assert_eq!(cuboid(1), [1, 1, 1]);
        assert_eq!(cuboid(7), [7, 1, 1]);
        assert_eq!(cuboid(8), [2, 2, 2]);
        assert_eq!(cuboid(1000), [10, 10, 10]);
        assert_eq!(cuboid(4096), [16, 16, 16]);
        assert_eq!(cuboid(100_000), [50, 50, 40]);
    }

    #[test]
    fn a_face_has_all_fields() {
        let halo = Halo { edge: 128, width: 2, element: 8, fields: 3 };
        assert_eq!(halo.face(), 128.0 * 128.0 * 2.0 * 8.0 * 3.0);
    }

    #[test]
    fn the_faces_of_a_block_share_the_host() {
        // Alone on its host, a rank sends six faces over its own link.
        let place = Place::new(1000, 1);
        assert_eq!((place.crossing, place.share), ([2, 2, 2], 1.0));
        // 2 x 2 x 2: every rank has three crossing faces, and the host 24.
        let place = Place::new(1000, 8);
        assert_eq!((place.crossing, place.share), ([1, 1, 1], 8.0));
        // 4 x 4 x 4: the corner has three crossing faces, and the host 6 * 16.
        let place = Place::new(4096, 64);
        assert_eq!((place.block, place.crossing, place.share), ([4, 4, 4], [1, 1, 1], 32.0));
        // One host has all ranks, or the one rank: nothing crosses.
        assert_eq!(Place::new(8, 64).crossing, [0, 0, 0]);
        let place = Place::new(1, 1);
        assert_eq!((place.crossing, place.share), ([0, 0, 0], 1.0));
    }
}
