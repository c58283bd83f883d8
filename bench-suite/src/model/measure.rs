//! Runs `model/halo.c` under a host library, and reads the program's output.

use super::geometry::Halo;
use super::rates::{Point, Rates};
use crate::message::library::{Library, Scratch};
use crate::split;
use std::fs::File;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../../model/halo.c");
const FLAGS: [&str; 5] = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"];
/// A job must end within this time. It measures for some 2 s, after its memory has been touched.
const PATIENCE: Duration = Duration::from_secs(120);
/// No cube larger than this is measured: its times are those of this edge, scaled by the bytes of a face.
const LARGEST: u64 = 256;
/// The smallest edge that is measured.
const SMALLEST: u64 = 8;

/// The output of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sheet {
    pub(super) halo: Halo,
    pub(super) point: Point,
    /// What jobs of more than one rank measure.
    pub(super) network: Option<Exchanges>,
}

/// Times of messages between ranks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exchanges {
    /// Half a round trip of one byte.
    pub(super) latency: f64,
    /// Half a round trip of a contiguous message of the size of a face.
    pub(super) message: f64,
    /// Half a round trip of the face in x, y and z.
    pub(super) faces: [f64; 3],
    /// Six contiguous messages of this size to neighbours and from them.
    pub(super) contiguous: f64,
    /// The halo exchange.
    pub(super) exchange: f64,
}

impl Sheet {
    /// Reads the output of the program. Returns a one-line message if a number is missing or not positive.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let find = |name: &str| -> Option<f64> {
            let mut pairs = text.lines().filter_map(|line| split::once(line.trim(), b' '));
            let value = pairs.find(|(word, _)| *word == name)?.1.trim().parse::<f64>().ok()?;
            (value.is_finite() && value > 0.0).then_some(value)
        };
        let number = |name: &str| {
            find(name).ok_or_else(|| format!("there is no line `{name}` with a number above 0"))
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 4096")]
        let count = |name: &str| match number(name)? {
            value if value <= 4096.0 && value.fract() == 0.0 => Ok(value as u64),
            value => Err(format!("`{name}` is {value}; it must be a whole number up to 4096")),
        };
        let edge = count("edge")?;
        let halo = Halo {
            edge,
            width: count("width")?,
            element: count("element")?,
            fields: count("fields")?,
        };
        let mut times = [[0.0; 2]; 3];
        for (times, name) in times.iter_mut().zip(["x", "y", "z"]) {
            *times = [number(&format!("pack-{name}"))?, number(&format!("unpack-{name}"))?];
        }
        let network = match find("exchange") {
            None => None,
            Some(exchange) => Some(Exchanges {
                latency: number("latency")?,
                message: number("message")?,
                faces: [number("message-x")?, number("message-y")?, number("message-z")?],
                contiguous: number("contiguous")?,
                exchange,
            }),
        };
        Ok(Self { halo, point: Point { edge, times }, network })
    }
}

/// Returns the edges at which packing is measured for cubes of `least` to `greatest`: powers of two, and `greatest`.
pub(super) fn edges(width: u64, least: u64, greatest: u64) -> Vec<u64> {
    let greatest = greatest.min(LARGEST.max(width));
    let from = least.max(width).max(SMALLEST).min(greatest);
    let mut all: Vec<u64> = (0..63).map(|power| 1 << power).collect();
    // One power below the least edge, so that the least edge lies between two measured ones.
    all.retain(|edge| *edge * 2 > from && *edge < greatest && *edge >= width);
    all.push(greatest);
    all
}

/// Measures the rates of `host` and of the same host behind the interposer, at all `edges`.
pub(super) fn measure(
    [host, behind]: [&Library; 2],
    standard: &Library,
    halo: &Halo,
    edges: &[u64],
    mut progress: impl FnMut(usize, usize),
) -> Result<[Rates; 2], String> {
    let named = |line: String| format!("{}: {line}", host.name);
    let scratch = Scratch::new()?;
    let (source, program) = (scratch.path().join("halo.c"), scratch.path().join("halo"));
    std::fs::write(&source, SOURCE).map_err(|e| format!("{}: {e}", source.display()))?;
    let compiler = host.compiler(Some(standard)).map_err(named)?;
    let mut command = std::process::Command::new(&compiler);
    let made = command.args(FLAGS).arg(&program).arg(&source).stdin(Stdio::null()).output();
    let made = made.map_err(|e| format!("{}: {e}", compiler.display()))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        let line = said.lines().find(|line| line.contains("error")).or(said.lines().last());
        return Err(named(format!("mpicc failed: {}", line.unwrap_or("it said nothing"))));
    }
    let mut points = [Vec::new(), Vec::new()];
    for (row, edge) in edges.iter().enumerate() {
        progress(row + 1, edges.len());
        for (library, points) in [host, behind].into_iter().zip(&mut points) {
            let halo = Halo { edge: *edge, ..*halo };
            let sheet = job(library, &program, &halo, scratch.path());
            points.push(sheet.map_err(|line| format!("{}: {line}", library.name))?.point);
        }
    }
    Ok(points.map(Rates::Measured))
}

/// Runs the program on one rank.
fn job(library: &Library, program: &Path, halo: &Halo, folder: &Path) -> Result<Sheet, String> {
    let files = ["output", "errors"].map(|name| folder.join(name));
    let open = |path: &Path| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
    let mut command = library.launcher(1, true);
    command.arg(program);
    command.args([halo.edge, halo.width, halo.element, halo.fields].map(|n| n.to_string()));
    command.stdin(Stdio::null()).stdout(open(&files[0])?).stderr(open(&files[1])?);
    let mut child = command.spawn().map_err(|e| format!("mpiexec does not start: {e}"))?;
    let status = wait(&mut child)?;
    let [output, errors] = files.map(|path| std::fs::read(path).unwrap_or_default());
    let errors = String::from_utf8_lossy(&errors);
    // The interposer says one line if it does not take part. Such times are not typepack's.
    if let Some(line) = errors.lines().find(|line| line.contains("typepack")) {
        return Err(format!("not measured, because it said: {line}"));
    }
    if !status.success() {
        let line = errors.lines().find(|line| line.to_ascii_lowercase().contains("error"));
        return Err(format!("the job failed: {}", line.unwrap_or("it said nothing").trim()));
    }
    Sheet::parse(&String::from_utf8_lossy(&output))
}

/// Waits until the job ends. Kills its launcher if it does not end in time.
fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) => {
                // The results are ignored: the launcher may have ended in the meantime.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("the job did not end in {} s", PATIENCE.as_secs()));
            }
            Err(e) => return Err(format!("mpiexec: {e}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sheet, edges};

    const PACKED: &str = "edge 4\nwidth 1\nelement 8\nfields 2\npack-x 1.5\nunpack-x 2\n\
        pack-y 3\nunpack-y 4\npack-z 5\nunpack-z 6\n";

    #[test]
    fn output_is_read() {
        let sheet = Sheet::parse(PACKED).expect("a sheet");
        assert_eq!((sheet.halo.edge, sheet.halo.fields, sheet.network), (4, 2, None));
        assert_eq!(sheet.point.times, [[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        let more = format!(
            "{PACKED}latency 1\nmessage 2\nmessage-x 5\nmessage-y 6\nmessage-z 7\ncontiguous 3\nexchange 4\n"
        );
        let network = Sheet::parse(&more).expect("a sheet").network.expect("messages");
        assert_eq!((network.latency, network.exchange), (1.0, 4.0));
        assert_eq!(network.faces, [5.0, 6.0, 7.0]);
    }

    #[test]
    fn wrong_output_is_refused() {
        let fails = |text: &str| Sheet::parse(text).expect_err("an error");
        assert!(fails("").contains("`edge`"));
        assert!(fails(&PACKED.replace("pack-y 3", "pack-y 0")).contains("`pack-y`"));
        assert!(fails(&PACKED.replace("edge 4", "edge 4.5")).contains("`edge`"));
        assert!(fails(&PACKED.replace("fields 2", "fields nan")).contains("`fields`"));
        assert!(fails(&format!("{PACKED}exchange 4\n")).contains("`latency`"));
    }

    #[test]
    fn edges_surround_the_cubes() {
        assert_eq!(edges(1, 8, 128), [8, 16, 32, 64, 128]);
        assert_eq!(edges(1, 20, 50), [16, 32, 50]);
        assert_eq!(edges(4, 1, 4), [4]);
        assert_eq!(edges(1, 128, 1000), [128, 256]);
        assert_eq!(edges(16, 1, 32), [16, 32]);
    }
}
