//! The prediction: the time of one exchange, the gain, and where the gain becomes too small to matter.

use super::geometry::{Halo, Place, real};
use super::rates::{Rates, Times};
use clap::ValueEnum;

/// Below this gain of the exchange, packing does not matter.
pub(super) const MATTERS: f64 = 1.05;

/// What happens at the same time (see the module's text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Overlap {
    /// The network moves a face while the rank packs or unpacks another one.
    Faces,
    /// The rank packs all faces, then the network moves them, then the rank unpacks them.
    None,
}

/// The network and the memory of a host. Times are in nanoseconds, bandwidths in bytes per nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Network {
    /// Bandwidth of a host, in each direction.
    pub(super) bandwidth: f64,
    pub(super) latency: f64,
    /// Time of the CPU for a message at one end, without packing.
    pub(super) overhead: f64,
    /// Bandwidth and latency of messages between two ranks of a host.
    pub(super) local_bandwidth: f64,
    pub(super) local_latency: f64,
}

/// A message of the rank: a face, with the times of packing and unpacking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) bytes: f64,
    pub(super) times: Times,
    pub(super) crosses: bool,
}

/// Returns the messages of the rank in the order in which the rank sends them. In each dimension, the crossing ones are
/// first.
pub(super) fn messages(halo: &Halo, place: &Place, rates: &Rates) -> Vec<Message> {
    let bytes = halo.face();
    let faces = (0..3).flat_map(|d| (0..2).map(move |side| (d, side)));
    faces
        .map(|(d, side)| {
            let times = rates.face(halo, d);
            Message { bytes, times, crosses: side < place.crossing[d] }
        })
        .collect()
}

/// Returns the time of one exchange of `messages`, of which the crossing ones take `share` times as long as if the rank
/// had its host's network for itself.
pub(super) fn exchange(
    messages: &[Message],
    network: &Network,
    share: f64,
    overlap: Overlap,
) -> f64 {
    let (mut cpu, mut wire) = (0.0_f64, 0.0_f64);
    let mut arrivals: Vec<(f64, f64)> = Vec::with_capacity(messages.len());
    let all_packed: f64 = messages.iter().map(|m| start(m, network)).sum();
    for message in messages {
        cpu += start(message, network);
        let arrival = if message.crosses {
            let ready = if overlap == Overlap::None { all_packed } else { cpu };
            wire = wire.max(ready) + message.bytes * share / network.bandwidth;
            wire + network.latency
        } else {
            cpu + network.local_latency
        };
        arrivals.push((arrival, end(message, network)));
    }
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    if overlap == Overlap::None {
        let last = arrivals.last().map_or(cpu, |(arrival, _)| arrival.max(cpu));
        return last + arrivals.iter().map(|(_, end)| end).sum::<f64>();
    }
    arrivals.iter().fold(cpu, |cpu, (arrival, end)| cpu.max(*arrival) + end)
}

/// Returns the least time that an exchange could take if messages were sent and received in pieces of any size.
pub(super) fn bound(messages: &[Message], network: &Network, share: f64) -> f64 {
    let cpu: f64 = messages.iter().map(|m| start(m, network) + end(m, network)).sum();
    let crossing = messages.iter().filter(|m| m.crosses);
    let wire: f64 = crossing.map(|m| m.bytes * share / network.bandwidth).sum();
    if wire > 0.0 { cpu.max(wire + network.latency) } else { cpu }
}

/// The time of the sender's CPU for a message.
fn start(message: &Message, network: &Network) -> f64 {
    let copied = if message.crosses { 0.0 } else { message.bytes / network.local_bandwidth };
    network.overhead + message.times[0] + copied
}

/// The time of the receiver's CPU for a message.
fn end(message: &Message, network: &Network) -> f64 {
    network.overhead + message.times[1]
}

/// Everything that a prediction needs besides the number of ranks.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) halo: Halo,
    pub(super) network: Network,
    pub(super) per_host: u64,
    pub(super) overlap: Overlap,
    /// The host library alone, and behind the interposer.
    pub(super) rates: [Rates; 2],
    /// Time of computing per iteration, in nanoseconds.
    pub(super) compute: f64,
    /// Number of small reductions per iteration.
    pub(super) reductions: f64,
}

/// The prediction for one number of ranks. Pairs hold the host's time and typepack's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    pub(super) exchange: [f64; 2],
    pub(super) iteration: [f64; 2],
    /// The bound of typepack's exchange in pieces.
    pub(super) pieces: f64,
}

/// Returns the ratio of the first time to the second.
pub(super) fn gain(times: [f64; 2]) -> f64 {
    times[0] / times[1]
}

impl Case {
    /// Predicts an exchange and an iteration on `ranks` ranks.
    pub(super) fn predict(&self, ranks: u64) -> Prediction {
        let place = Place::new(ranks, self.per_host);
        let all = self.rates.each_ref().map(|rates| messages(&self.halo, &place, rates));
        let time = |m: &Vec<Message>| exchange(m, &self.network, place.share, self.overlap);
        let exchange = all.each_ref().map(time);
        let rounds = f64::from(ranks.next_power_of_two().trailing_zeros());
        let round = self.network.latency + 2.0 * self.network.overhead;
        let rest = self.compute + self.reductions * rounds * round;
        let pieces = bound(&all[1], &self.network, place.share);
        Prediction { exchange, iteration: exchange.map(|time| time + rest), pieces }
    }

    /// Returns the least bandwidth, in bytes per nanosecond, at which the gain of the exchange on `ranks` ranks is
    /// [`MATTERS`] or more. Returns infinity if no bandwidth is enough, and 0 if the gain is that large without a
    /// network.
    pub(super) fn least_bandwidth(&self, ranks: u64) -> f64 {
        let enough = |bandwidth: f64| {
            let network = Network { bandwidth, ..self.network };
            gain(Self { network, ..self.clone() }.predict(ranks).exchange) >= MATTERS
        };
        // From 8 kbit/s to 8 Pbit/s: the least power of ten, and then the place between two of them.
        let (mut low, mut high) = (1e-6, 1e-6);
        while !enough(high) {
            (low, high) = (high, high * 10.0);
            if high > 1e6 {
                return f64::INFINITY;
            }
        }
        if low == high {
            return 0.0;
        }
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if enough(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// Returns the least edge, up to the case's own, from which on the gain of the exchange on `ranks` ranks is
    /// [`MATTERS`] or more. Returns `None` if the gain is smaller at the case's own edge.
    pub(super) fn least_edge(&self, ranks: u64) -> Option<u64> {
        let enough = |edge: u64| {
            let halo = Halo { edge, ..self.halo };
            gain(Self { halo, ..self.clone() }.predict(ranks).exchange) >= MATTERS
        };
        let edges = (self.halo.width..=self.halo.edge).rev();
        edges.take_while(|edge| enough(*edge)).last()
    }
}

/// Returns the edge of a rank's cube if `ranks` ranks share a cube of `total`^3 elements.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is at most `total`"
)]
pub(super) fn strong_edge(total: u64, ranks: u64) -> u64 {
    (real(total) / real(ranks).cbrt()).round().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::{Case, Message, Network, Overlap, Rates, bound, exchange, gain, strong_edge};
    use crate::model::geometry::Halo;

    const NETWORK: Network = Network {
        bandwidth: 1.0,
        latency: 1000.0,
        overhead: 10.0,
        local_bandwidth: 5.0,
        local_latency: 100.0,
    };
    const FREE: Network = Network {
        bandwidth: f64::INFINITY,
        latency: 0.0,
        overhead: 0.0,
        local_bandwidth: f64::INFINITY,
        local_latency: 0.0,
    };
    const BOTH: [Overlap; 2] = [Overlap::Faces, Overlap::None];

    fn case(host: f64, ours: f64, network: Network) -> Case {
        Case {
            halo: Halo { edge: 128, width: 1, element: 8, fields: 1 },
            network,
            per_host: 1,
            overlap: Overlap::Faces,
            rates: [Rates::Given([host, 2.0 * host, 4.0 * host]), Rates::Given([ours; 3])],
            compute: 0.0,
            reductions: 0.0,
        }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn two_messages_by_hand() {
        // The rank packs until 110 and 220. The network moves 110..1110 and 1110..2110, and the messages arrive at
        // 2110 and 3110. The rank unpacks 2110..2320 and 3110..3320.
        let message = Message { bytes: 1000.0, times: [100.0, 200.0], crosses: true };
        near(exchange(&[message; 2], &NETWORK, 1.0, Overlap::Faces), 3320.0);
        // Without overlap, the network begins at 220.
        near(exchange(&[message; 2], &NETWORK, 1.0, Overlap::None), 220.0 + 3000.0 + 420.0);
        // Two ranks share the host's network.
        near(
            exchange(&[message; 2], &NETWORK, 2.0, Overlap::Faces),
            110.0 + 4000.0 + 1000.0 + 210.0,
        );
        near(bound(&[message; 2], &NETWORK, 1.0), 3000.0);
        // The CPU copies a local message in 200, and it arrives 100 later.
        let local = Message { crosses: false, ..message };
        near(exchange(&[local], &NETWORK, 1.0, Overlap::Faces), 310.0 + 100.0 + 210.0);
    }

    #[test]
    fn with_a_free_network_only_packing_is_left() {
        for overlap in BOTH {
            let case = Case { overlap, ..case(1.0, 4.0, FREE) };
            let [host, ours] = case.predict(1000).exchange;
            let face = case.halo.face();
            near(host, 4.0 * face * (1.0 + 0.5 + 0.25));
            near(ours, 12.0 * face / 4.0);
        }
    }

    #[test]
    fn without_a_cost_of_packing_only_the_network_is_left() {
        for overlap in BOTH {
            let case = Case { overlap, ..case(f64::INFINITY, f64::INFINITY, NETWORK) };
            let prediction = case.predict(1000);
            assert_eq!(gain(prediction.exchange), 1.0);
            let overheads = if overlap == Overlap::None { 12.0 } else { 2.0 };
            near(prediction.exchange[0], 6.0 * case.halo.face() + 1000.0 + 10.0 * overheads);
            assert_eq!(case.least_bandwidth(1000), f64::INFINITY);
            assert_eq!(case.least_edge(1000), None);
        }
    }

    #[test]
    fn one_rank_has_no_network() {
        let slow = Network { bandwidth: 1e-6, latency: 1e12, ..NETWORK };
        let prediction = case(1.0, 4.0, slow).predict(1);
        assert_eq!(prediction, case(1.0, 4.0, NETWORK).predict(1));
        assert!(gain(prediction.exchange) > 1.5);
        assert_eq!(case(1.0, 4.0, slow).least_bandwidth(1), 0.0);
    }

    #[test]
    fn on_a_slow_network_packing_does_not_matter() {
        let gain_at = |bandwidth| {
            gain(case(1.0, 4.0, Network { bandwidth, ..NETWORK }).predict(1000).exchange)
        };
        assert!(gain_at(1e-4) < 1.001 && gain_at(1e-4) >= 1.0);
        let case = case(1.0, 4.0, NETWORK);
        let least = case.least_bandwidth(1000);
        assert!(gain_at(least) >= 1.05 && gain_at(0.999 * least) < 1.05, "{least}");
        let edge = case.least_edge(1000).expect("an edge");
        assert!(edge > 1 && edge < 128, "{edge}");
    }

    #[test]
    fn more_overlap_is_not_slower() {
        for bandwidth in [0.01, 0.1, 1.0, 10.0, 100.0] {
            for per_host in [1, 2, 8, 64] {
                let network = Network { bandwidth, ..NETWORK };
                let faces = Case { per_host, ..case(1.0, 4.0, network) };
                let none = Case { overlap: Overlap::None, ..faces.clone() };
                let (faces, none) = (faces.predict(1000), none.predict(1000));
                assert!(faces.exchange[0] <= none.exchange[0] * (1.0 + 1e-12));
                assert!(faces.exchange[1] <= none.exchange[1] * (1.0 + 1e-12));
                assert!(faces.pieces <= faces.exchange[1] * (1.0 + 1e-12));
            }
        }
    }

    #[test]
    fn the_rest_of_an_iteration_dilutes_the_gain() {
        let case = Case { compute: 1e6, reductions: 2.0, ..case(1.0, 4.0, NETWORK) };
        let prediction = case.predict(1000);
        near(prediction.iteration[0] - prediction.exchange[0], 1e6 + 2.0 * 10.0 * 1020.0);
        assert!(gain(prediction.iteration) < gain(prediction.exchange));
        // The exchange of a rank does not depend on the number of ranks while its cube stays the same.
        assert_eq!(case.predict(100_000).exchange, prediction.exchange);
        assert_eq!(strong_edge(1280, 1000), 128);
        assert_eq!(strong_edge(4, 1_000_000), 1);
    }
}
