//! The text of a prediction.

use super::geometry::{Place, real};
use super::predict::{Case, MATTERS, Overlap, gain};
use std::fmt::Write;

/// Returns the text for the terminal. Each case stands beside its number of ranks.
pub(super) fn text(cases: &[(u64, Case)], sources: &str) -> String {
    let Some((first_ranks, first)) = cases.first() else { return String::new() };
    let (halo, network) = (&first.halo, &first.network);
    let mut text = format!(
        "Halo of {} layer(s), {} field(s) of elements of {} byte(s), one message per face.\n",
        halo.width, halo.fields, halo.element
    );
    let overlap = match first.overlap {
        Overlap::Faces => "the network moves a face while the rank packs or unpacks another one",
        Overlap::None => "packing, network and unpacking do not overlap",
    };
    let _ = write!(
        text,
        "Network: {} Gbit/s per host, latency {} us, overhead {} us; at most {} rank(s) per host, with {} GB/s and \
         {} us among them.\nOverlap: {overlap}.\nPacking: {sources}.\n\n",
        8.0 * network.bandwidth,
        network.latency / 1e3,
        network.overhead / 1e3,
        first.per_host,
        network.local_bandwidth,
        network.local_latency / 1e3
    );
    let _ = writeln!(
        text,
        "{:>8}{:>14}{:>7}{:>11} | {:^32} | {:^32} | {:>8} | packing matters from",
        "ranks", "grid", "edge", "face", "exchange in us", "iteration in us", "pieces"
    );
    for (ranks, case) in cases {
        let prediction = case.predict(*ranks);
        let [x, y, z] = Place::new(*ranks, case.per_host).grid;
        let pair = |times: [f64; 2]| {
            let [host, ours] = times.map(|time| time / 1e3);
            format!("{host:.1} / {ours:.1} = {:.3}", gain(times))
        };
        let _ = writeln!(
            text,
            "{ranks:>8}{:>14}{:>7}{:>11} | {:>32} | {:>32} | {:>8.3} | {}",
            format!("{x}x{y}x{z}"),
            case.halo.edge,
            bytes(case.halo.face()),
            pair(prediction.exchange),
            pair(prediction.iteration),
            prediction.exchange[1] / prediction.pieces,
            threshold(case, *ranks)
        );
    }
    let _ = write!(
        text,
        "\nhost alone / behind typepack = gain. pieces: how many times shorter typepack's exchange could be at most if \
         messages\nwere sent in pieces. Packing matters from the bandwidth of a host at which the gain of the exchange \
         reaches {MATTERS}.\n"
    );
    text.push_str(&match first.least_edge(*first_ranks) {
        Some(edge) if edge == halo.width => {
            format!("On {first_ranks} ranks, packing matters at every edge up to {}.\n", halo.edge)
        }
        Some(edge) => format!(
            "On {first_ranks} ranks, packing stops mattering at edges below {edge} (faces of {}).\n",
            bytes(super::geometry::Halo { edge, ..*halo }.face())
        ),
        None => format!(
            "On {first_ranks} ranks, packing does not matter at edge {} on this network.\n",
            halo.edge
        ),
    });
    text.push_str("A face, in us, packing + unpacking:\n");
    for (rates, name) in first.rates.iter().zip(["host", "typepack"]) {
        let _ = write!(text, "  {name:<9}");
        for (d, face) in ["x", "y", "z"].into_iter().enumerate() {
            let [pack, unpack] = rates.face(halo, d).map(|time| time / 1e3);
            let _ = write!(text, "  {face} {pack:.2} + {unpack:.2}");
        }
        text.push('\n');
    }
    text
}

/// Says from which bandwidth on packing matters.
fn threshold(case: &Case, ranks: u64) -> String {
    match 8.0 * case.least_bandwidth(ranks) {
        f64::INFINITY => "no bandwidth on".to_owned(),
        0.0 => "any bandwidth on".to_owned(),
        gigabits => format!("{gigabits:.3} Gbit/s"),
    }
}

/// Returns a number of bytes with a unit.
fn bytes(count: f64) -> String {
    let mut value = count;
    for unit in ["B", "KiB", "MiB"] {
        if value < real(1024) {
            return format!("{} {unit}", (value * 10.0).round() / 10.0);
        }
        value /= 1024.0;
    }
    format!("{} GiB", (value * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(1000.0), "1000 B");
        assert_eq!(bytes(131_072.0), "128 KiB");
        assert_eq!(bytes(1536.0 * 1024.0), "1.5 MiB");
    }
}
