//! Checks hints of files: the library must keep the hints that it knows and whose values it accepts, ignore all
//! other hints, and return the hints in force. It must make a file with the permissions that a hint asks for.
//!
//! The check reads numbers with a parser of its own. It runs in a job of one rank; tests of the runtime pass
//! different hints on different ranks.

use arbitrary::{Result as Drawn, Unstructured};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use typepack::Universe;
use typepack::io::{File, Mode};

/// The hints that the library knows, in the order in which the library returns them.
const KNOWN: [&str; 3] = ["access_style", "ind_rd_buffer_size", "romio_ds_read"];

/// Keys that the library does not return. The library uses `file_perm` when it makes a file, and ignores all other keys
/// here.
const OTHERS: [&str; 10] = [
    "file_perm",
    "filename",
    "",
    "cb_buffer_size",
    "romio_ds_read ",
    "ROMIO_DS_READ",
    "romio_cb_write",
    "collective_buffering",
    "striping_factor",
    "access_style\0",
];

/// The words of `access_style`, in the order in which the library returns them.
const STYLES: [&str; 7] = [
    "read_once",
    "write_once",
    "read_mostly",
    "write_mostly",
    "sequential",
    "reverse_sequential",
    "random",
];

/// Values that are more interesting than random ones: words of the hints, limits, and texts that are nearly numbers.
const VALUES: [&str; 21] = [
    "automatic",
    "enable",
    "disable",
    "random",
    "sequential , write_once,random",
    "random,",
    "0",
    "1",
    "-1",
    "+17",
    " 4096\t",
    "4096 4096",
    "0x10",
    "1e3",
    "",
    "-",
    "9223372036854775806",
    "9223372036854775807",
    "99999999999999999999999",
    "000600",
    "۳",
];

/// A list of hints: keys and values.
pub type Hints = Vec<(String, String)>;

/// Draws a list of hints: known and unknown keys, good and bad values, keys that occur several times.
///
/// # Errors
///
/// Returns the errors of [`Unstructured`].
pub fn draw(u: &mut Unstructured<'_>) -> Drawn<Hints> {
    let mut hints = Vec::new();
    for _ in 0..u.int_in_range(0..=6)? {
        let key = match u.int_in_range(0..=4)? {
            0 => u.arbitrary()?,
            1 => (*u.choose(&OTHERS)?).to_owned(),
            _ => (*u.choose(&KNOWN)?).to_owned(),
        };
        let value = match u.int_in_range(0..=4)? {
            0 => u.arbitrary()?,
            1 => u.arbitrary::<i64>()?.to_string(),
            2 => u.int_in_range(0..=1 << 20)?.to_string(),
            3 => format!("{:o}", u.int_in_range(0..=0o1777)?),
            _ => (*u.choose(&VALUES)?).to_owned(),
        };
        hints.push((key, value));
    }
    Ok(hints)
}

/// Returns the number that `text` states in `base`. The digits may have a sign before them, and blanks around
/// them. Returns `None` for any other text.
fn number(text: &str, base: i128) -> Option<i128> {
    let text = text.trim();
    let (sign, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let mut value: i128 = 0;
    for digit in digits {
        let digit = i128::from(*digit) - i128::from(b'0');
        if !(0..base).contains(&digit) {
            return None;
        }
        // The limit prevents an overflow. It does not matter by how much a number is too large.
        value = (value * base + digit).min(1 << 100);
    }
    (!digits.is_empty()).then_some(sign * value)
}

/// Returns the value that the library returns for `value` of the known hint `name`; `None` if the hint does not allow the
/// value.
fn allowed(name: &str, value: &str) -> Option<String> {
    match name {
        "access_style" => {
            let given: Vec<&str> = value.split(',').map(str::trim).collect();
            let known = given.iter().all(|word| STYLES.contains(word));
            let in_order = STYLES.iter().filter(|word| given.contains(word)).copied();
            known.then(|| in_order.collect::<Vec<_>>().join(","))
        }
        "ind_rd_buffer_size" => {
            let bytes = number(value, 10).filter(|bytes| (1..=1 << 30).contains(bytes))?;
            Some(bytes.to_string())
        }
        _ => {
            let word = value.trim();
            ["automatic", "enable", "disable"].contains(&word).then(|| word.to_owned())
        }
    }
}

/// The hints that are in force if the program gives none.
fn defaults() -> Known {
    [None, Some("1048576".to_owned()), Some("automatic".to_owned())]
}

/// The hints in force, in the order of [`KNOWN`].
type Known = [Option<String>; KNOWN.len()];

/// Checks lists of hints one after another, on one file.
pub struct HintChecker {
    file: File,
    universe: Universe,
    known: Known,
    path: PathBuf,
    /// The umask of this process: the permissions that new files do not get.
    withheld: u32,
}

impl HintChecker {
    /// Makes a checker. A process can have only one, because it joins the job.
    ///
    /// # Errors
    ///
    /// Returns a message if the job does not start, if the file cannot be made, or if the umask of the process
    /// cannot be read.
    pub fn new() -> Result<Self, String> {
        let universe = typepack::init().map_err(|error| error.to_string())?;
        let path = std::env::temp_dir().join(format!("typepack-hints-{}", std::process::id()));
        let opened = File::open(&universe.world(), &path, Mode::CREATE_READ_WRITE);
        let file = opened.map_err(|error| error.to_string())?;
        // Without a name, the file exists until the checker is dropped.
        File::delete(&path).map_err(|error| error.to_string())?;
        let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let withheld = mask.and_then(|mask| number(mask, 8)).ok_or("there is no line Umask")?;
        let withheld = u32::try_from(withheld).map_err(|error| error.to_string())?;
        let path = path.with_extension("new");
        Ok(Self { file, universe, known: defaults(), path, withheld })
    }

    /// Sets `hints` on the checker's file, and compares the hints in force with those that this check expects. If
    /// `open` is true, also makes a new file with `hints`, and checks its permissions and its hints.
    ///
    /// # Errors
    ///
    /// Returns a message if a call fails, or if the hints or the permissions are not the expected ones.
    pub fn check(&mut self, hints: &Hints, open: bool) -> Result<(), String> {
        let last = |name: &str| hints.iter().rfind(|(key, _)| key == name);
        let given = KNOWN.map(|name| last(name).and_then(|(_, value)| allowed(name, value)));
        self.file.set_hints(hints).map_err(|error| error.to_string())?;
        for (known, given) in self.known.iter_mut().zip(&given) {
            *known = given.clone().or_else(|| known.take());
        }
        let mut new = defaults();
        for (new, given) in new.iter_mut().zip(given) {
            *new = given.or_else(|| new.take());
        }
        compare(&self.file, &self.known)?;
        if open {
            let mode = Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE;
            let world = self.universe.world();
            let file = File::open_with(&world, &self.path, mode, hints);
            let file = file.map_err(|error| error.to_string())?;
            compare(&file, &new)?;
            let bits = last("file_perm").and_then(|(_, value)| number(value, 8));
            let bits = bits.filter(|bits| (1..=0o777).contains(bits)).unwrap_or(0o666);
            // The cast loses nothing, because the bits are at most 0o777.
            let wanted = bits as u32 & !self.withheld;
            let found = std::fs::metadata(&self.path).map_err(|error| error.to_string())?;
            let found = found.permissions().mode() & 0o777;
            if found != wanted {
                return Err(format!("the file has permissions {found:o} instead of {wanted:o}"));
            }
            file.close().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn compare(file: &File, known: &Known) -> Result<(), String> {
    let wanted: Hints = KNOWN
        .iter()
        .zip(known)
        .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)))
        .collect();
    let found = file.hints();
    if found == wanted { Ok(()) } else { Err(format!("the hints are {found:?}, not {wanted:?}")) }
}
