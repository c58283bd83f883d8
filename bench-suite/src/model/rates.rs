//! The times of packing and unpacking a face, given as rates or measured at several edges.

use super::geometry::{Halo, real};

/// The times of a face in nanoseconds: `[pack, unpack]`.
pub(super) type Times = [f64; 2];

/// The times that one library was measured to take for the faces of a cube, in the order x, y, z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) edge: u64,
    pub(super) times: [Times; 3],
}

/// How fast a library packs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rates {
    /// Bytes per nanosecond of packing and of unpacking the faces in x, y and z.
    Given([f64; 3]),
    /// Measured times, one point at least, with increasing edges.
    Measured(Vec<Point>),
}

impl Rates {
    /// Returns the times of a face in dimension `d`. Between two measured edges, the times lie on a power law. Beyond
    /// the measured edges, they grow as the number of bytes does.
    pub(super) fn face(&self, halo: &Halo, d: usize) -> Times {
        let points = match self {
            Self::Given(rates) => return [halo.face() / rates[d]; 2],
            Self::Measured(points) => points,
        };
        let edge = real(halo.edge);
        let above = points.iter().position(|point| point.edge >= halo.edge);
        match above {
            Some(place) if points[place].edge == halo.edge => points[place].times[d],
            Some(place) if place > 0 => {
                let (low, high) = (&points[place - 1], &points[place]);
                let part = (edge / real(low.edge)).ln() / (real(high.edge) / real(low.edge)).ln();
                let between = |way: usize| {
                    let (from, to) = (low.times[d][way], high.times[d][way]);
                    from * (to / from).powf(part)
                };
                [between(0), between(1)]
            }
            _ => {
                let nearest = if above.is_some() { &points[0] } else { &points[points.len() - 1] };
                let ratio = edge / real(nearest.edge);
                nearest.times[d].map(|time| time * ratio * ratio)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Halo, Point, Rates};

    #[test]
    fn rates_are_bytes_per_nanosecond() {
        let halo = Halo { edge: 10, width: 1, element: 8, fields: 1 };
        assert_eq!(Rates::Given([2.0, 4.0, 8.0]).face(&halo, 1), [200.0, 200.0]);
    }

    #[test]
    fn times_between_and_beyond_the_points() {
        let point = |edge, pack| Point { edge, times: [[pack, 2.0 * pack]; 3] };
        let rates = Rates::Measured(vec![point(16, 100.0), point(64, 1600.0)]);
        let at = |edge| rates.face(&Halo { edge, width: 1, element: 8, fields: 1 }, 0);
        assert_eq!(at(16), [100.0, 200.0]);
        assert!((at(32)[0] - 400.0).abs() < 1e-9 && (at(32)[1] - 800.0).abs() < 1e-9);
        assert_eq!(at(8), [25.0, 50.0]);
        assert_eq!(at(128), [6400.0, 12800.0]);
    }
}
