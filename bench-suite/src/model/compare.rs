//! Sets predictions beside measured exchanges: jobs of `model/halo.c` over a network, alone and behind the interposer.
//!
//! There are two predictions. The first one takes the times of `MPI_Pack` and `MPI_Unpack`, as the predictions for
//! other numbers of ranks do. But a host need not pack a message as its `MPI_Pack` does, and may send contiguous data
//! in a faster way than packed data. So the second prediction takes what one message of a face takes longer than a
//! contiguous message of the same size. No prediction takes anything from the exchange itself.

use super::geometry::{Halo, Place};
use super::measure::{Exchanges, Sheet};
use super::predict::{Message, Network, Overlap, bound, exchange, gain, messages};
use super::rates::{Point, Rates};
use std::fmt::Write;

/// A job of the host alone, and one behind the interposer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    name: String,
    sheets: [Sheet; 2],
    networks: [Exchanges; 2],
}

/// From where a prediction has the times of packing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Calls,
    Messages,
}

impl Pair {
    /// Reads the outputs of two jobs. Returns a one-line message if an output is wrong, or if the outputs do not belong
    /// together.
    pub(super) fn new(name: &str, [host, behind]: [&str; 2]) -> Result<Self, String> {
        let read = |text: &str, which: &str| -> Result<(Sheet, Exchanges), String> {
            let sheet = Sheet::parse(text).map_err(|line| format!("the {which} output: {line}"))?;
            let network = sheet.network.ok_or_else(|| {
                format!("the {which} output has no line `exchange`; the job needs two ranks")
            })?;
            Ok((sheet, network))
        };
        let (host, behind) = (read(host, "first")?, read(behind, "second")?);
        if host.0.halo != behind.0.halo {
            return Err("the two outputs are about different halos".to_owned());
        }
        let (sheets, networks) = ([host.0, behind.0], [host.1, behind.1]);
        Ok(Self { name: name.to_owned(), sheets, networks })
    }

    /// Returns the mean of a figure of both jobs. Contiguous messages do not depend on the interposer.
    fn mean(&self, figure: fn(&Exchanges) -> f64) -> f64 {
        self.networks.iter().map(figure).sum::<f64>() / 2.0
    }

    /// Returns the network of the jobs. Its bandwidth and latency come from contiguous messages only.
    fn network(&self) -> Network {
        let latency = self.mean(|n| n.latency);
        // If the six messages take no longer than the latency, the network is free.
        let moved = (self.mean(|n| n.contiguous) - latency).max(1e-3);
        Network {
            bandwidth: 6.0 * self.sheets[0].halo.face() / moved,
            latency,
            // The overhead is part of both measured times.
            overhead: 0.0,
            local_bandwidth: f64::INFINITY,
            local_latency: 0.0,
        }
    }

    /// Returns the halo of both jobs.
    pub(super) fn halo(&self) -> Halo {
        self.sheets[0].halo
    }

    /// Returns the times of packing that a message of a face shows: what it takes longer than a contiguous message of
    /// the same job. Half of the difference belongs to each end.
    pub(super) fn rates(&self) -> [Rates; 2] {
        [0, 1].map(|job| {
            let (sheet, network) = (&self.sheets[job], &self.networks[job]);
            let times = network.faces.map(|face| [(face - network.message).max(0.0) / 2.0; 2]);
            Rates::Measured(vec![Point { times, ..sheet.point }])
        })
    }

    /// Returns the messages of job `job`.
    fn messages(&self, job: usize, source: Source) -> Vec<Message> {
        let sheet = &self.sheets[job];
        let rates = match source {
            Source::Calls => &Rates::Measured(vec![sheet.point]),
            Source::Messages => &self.rates()[job],
        };
        messages(&sheet.halo, &place(), rates)
    }

    /// Returns the predicted times of the two jobs.
    fn predict(&self, source: Source, overlap: Overlap) -> [f64; 2] {
        let time = |job| exchange(&self.messages(job, source), &self.network(), 1.0, overlap);
        [time(0), time(1)]
    }

    /// Returns the parts of the pair in the table: the texts of its columns.
    fn columns(&self) -> Vec<String> {
        let network = self.network();
        let micro = |time: f64| format!("{:.1}", time / 1e3);
        let pair = |times: [f64; 2]| {
            format!("{} / {} = {:.3}", micro(times[0]), micro(times[1]), gain(times))
        };
        let mut columns = vec![
            self.name.clone(),
            format!("{:.2}", 8.0 * network.bandwidth),
            micro(network.latency),
            micro(self.mean(|n| n.contiguous)),
            pair(self.networks.map(|n| n.exchange)),
        ];
        for source in [Source::Calls, Source::Messages] {
            for overlap in [Overlap::Faces, Overlap::None] {
                columns.push(pair(self.predict(source, overlap)));
            }
        }
        let faces = self.predict(Source::Calls, Overlap::Faces)[1];
        let least = bound(&self.messages(1, Source::Calls), &network, 1.0);
        columns.push(format!("{:.3}", faces / least));
        columns
    }
}

/// All faces of a rank of such a job cross the network.
fn place() -> Place {
    Place { crossing: [2; 3], ..Place::new(1, 1) }
}

/// Returns the table of all pairs.
pub(super) fn text(pairs: &[Pair]) -> String {
    let heads = [
        "job",
        "Gbit/s",
        "latency",
        "contiguous",
        "exchange measured",
        "predicted by calls, faces",
        "by calls, none",
        "by messages, faces",
        "by messages, none",
        "pieces",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(pairs.iter().map(Pair::columns));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let mut text = "Host alone / behind typepack = gain; times in us.\n\n".to_owned();
    for row in &rows {
        let cells = row.iter().enumerate();
        let cells: Vec<String> =
            cells.map(|(place, cell)| format!("{cell:>wide$}", wide = width(place))).collect();
        text += &format!("{}\n", cells.join("  "));
    }
    text += "\nBandwidth and latency are those of contiguous messages; `contiguous` is an exchange of packed faces. \
        Predictions\ntake the times of MPI_Pack and MPI_Unpack (calls), or what a message of a face takes longer than \
        a contiguous one\n(messages), and overlap as --overlap says. pieces: how many times shorter typepack's \
        exchange by calls could be at\nmost if messages were sent in pieces.\n\nOne face, in us:\n";
    for pair in pairs {
        let _ =
            write!(text, "{}: contiguous message {:.1}", pair.name, pair.mean(|n| n.message) / 1e3);
        for ((sheet, network), name) in
            pair.sheets.iter().zip(&pair.networks).zip(["host", "typepack"])
        {
            let _ = write!(text, "\n  {name:<9}");
            for (d, face) in ["x", "y", "z"].into_iter().enumerate() {
                let [pack, unpack] = sheet.point.times[d].map(|time| time / 1e3);
                let message = network.faces[d] / 1e3;
                let _ =
                    write!(text, "  {face} pack {pack:.1} unpack {unpack:.1} message {message:.1}");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Overlap, Pair, Source, text};

    /// Faces of 16 bytes. Packing and unpacking of all faces take 12 * `pack`, and in messages three times as long.
    fn output(pack: f64, exchange: f64) -> String {
        let mut text = "edge 4\nwidth 1\nelement 1\nfields 1\n".to_owned();
        for face in ["x", "y", "z"] {
            text += &format!("pack-{face} {pack}\nunpack-{face} {pack}\n");
            text += &format!("message-{face} {}\n", 116.0 + 6.0 * pack);
        }
        text + &format!("latency 100\nmessage 116\ncontiguous 196\nexchange {exchange}\n")
    }

    #[test]
    fn the_network_is_that_of_contiguous_messages() {
        let pair = Pair::new("a", [&output(10.0, 300.0), &output(5.0, 250.0)]).expect("a pair");
        assert_eq!(pair.network().bandwidth, 1.0);
        // 6 * (10 + 10) + 96 + 100 without overlap. With it, the network waits 10 for the first face, and only the
        // last face is unpacked after the network has moved all.
        assert_eq!(pair.predict(Source::Calls, Overlap::None), [316.0, 256.0]);
        assert_eq!(pair.predict(Source::Calls, Overlap::Faces), [216.0, 206.0]);
        assert_eq!(pair.predict(Source::Messages, Overlap::None), [556.0, 376.0]);
        assert_eq!(pair.rates()[1].face(&pair.halo(), 2), [15.0, 15.0]);
        let text = text(&[pair]);
        assert!(text.contains("0.3 / 0.2 = 1.200") && text.contains("= 1.234"), "{text}");
    }

    #[test]
    fn outputs_that_do_not_belong_together_are_refused() {
        let good = output(1.0, 1.0);
        let fails =
            |first: &str, second: &str| Pair::new("a", [first, second]).expect_err("an error");
        assert!(fails("", &good).contains("first"));
        assert!(fails(&good, &good.replace("exchange", "x")).contains("second"));
        assert!(fails(&good, &good.replace("fields 1", "fields 2")).contains("different"));
    }
}
