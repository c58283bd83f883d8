//! The text that rank 0 prints at the end of a run.
//!
//! `job.rs` gathers the data of all ranks. The code here only formats the text, and does not communicate.

use std::fmt::{self, Write};
use std::time::Duration;

use typepack::Counters;
use typepack::engine::stats::Bytes;
use typepack::halo::FaceReport;

use super::measure::{Measurement, PHASES};

/// The data for the text.
pub struct Report<'a> {
    /// The measured times of all ranks.
    pub measurement: &'a Measurement,
    /// The faces of the block of rank 0.
    pub faces: &'a [FaceReport<3>],
    /// Number of bytes that all ranks together send to other ranks in one exchange. (A rank may also be its
    /// own neighbour.)
    pub bytes_to_others: u64,
    /// The counters of the JIT on rank 0.
    pub jit: Counters,
    /// The numbers of bytes that each executor (kernels, memcpy, interpreter, ...) has moved on rank 0.
    pub moved: Bytes,
    /// The checksum of the result. It does not depend on the decomposition.
    pub checksum: u64,
    /// The time of the serial solution and the number of compared values; `None` if the result was not
    /// verified.
    pub verified: Option<(Duration, usize)>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = self.measurement;
        writeln!(f, "typepack halo: {}; {} steps; jit {}", m.setup, m.steps, m.jit)?;
        writeln!(f)?;
        writeln!(f, "phase        calls    total ms     us/call   (slowest rank)")?;
        let slowest = m.slowest();
        for (phase, name) in PHASES.into_iter().enumerate() {
            let calls = m.calls(phase);
            if calls > 0 {
                let seconds = slowest[phase];
                let each = seconds / calls as f64 * 1e6;
                writeln!(f, "{name:<10} {calls:>7} {:>11.3} {each:>11.2}", seconds * 1e3)?;
            }
        }
        writeln!(f)?;
        let [low, median, high] = m.exchange.map(|seconds| seconds * 1e6);
        writeln!(
            f,
            "exchange without computation: median {median:.2} us (10 % {low:.2}, 90 % {high:.2}, {} samples), \
             {:.2} GB/s",
            m.samples,
            m.bytes as f64 / median / 1e3
        )?;
        writeln!(
            f,
            "bytes per exchange: {} from all ranks, including {} to other ranks; total: {} bytes \
             (exchanges: {})",
            m.bytes,
            self.bytes_to_others,
            u128::from(m.bytes) * u128::from(m.exchanges),
            m.exchanges
        )?;
        writeln!(f)?;
        self.write_faces(f)?;
        let j = &self.jit;
        writeln!(
            f,
            "jit of rank 0: {} kernels, {} hits, {} refusals, {} bytes of code, compiled in {:.2} ms",
            j.kernels,
            j.hits,
            j.refusals,
            j.code_bytes,
            j.compile_ns as f64 / 1e6
        )?;
        writeln!(f, "bytes moved on rank 0: {}", self.moved)?;
        writeln!(f, "checksum: {:016x}", self.checksum)?;
        if let Some((serial, values)) = self.verified {
            writeln!(
                f,
                "verified: bit for bit equal to a serial solution ({values} values, {:.2} s)",
                serial.as_secs_f64()
            )?;
        }
        Ok(())
    }
}

impl Report<'_> {
    fn write_faces(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.faces.is_empty() {
            return writeln!(f, "rank 0 has no neighbours\n");
        }
        let width = |text: fn(&FaceReport<3>) -> &str, least: usize| {
            self.faces.iter().map(|face| text(face).len()).max().unwrap_or(0).max(least)
        };
        let pack = width(|face| &face.pack, 4);
        let mut header = String::new();
        write!(header, "face     rank       bytes  {:<pack$}  unpack", "pack")?;
        writeln!(f, "{header}   (rank 0)")?;
        for face in self.faces {
            writeln!(
                f,
                "{:<7} {:>5} {:>11}  {:<pack$}  {}",
                face.side.to_string(),
                face.neighbour,
                face.bytes,
                face.pack,
                face.unpack
            )?;
        }
        writeln!(f)
    }
}
