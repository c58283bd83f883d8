//! The fields at time 0. The program generates them, or rank 0 reads them from a file.
//!
//! If the fields come from a file, `blocks.rs` distributes them to the ranks. If they are generated, each
//! rank generates the values of its own block, and the serial solution generates the values of the whole
//! grid.
//!
//! A value depends only on its field and its position in the whole grid, so every decomposition has the same
//! values. All values are finite, because equal computations on finite values give equal bits, whereas NaN
//! results may differ in their payloads.

use std::io::Read;
use std::path::Path;

use typepack_job::sys::named;

use super::npy;

/// The constant value of the cells beyond a fixed boundary. The value is not 0, so that the verification also
/// finds memory that was never written.
pub const WALL: f64 = 20.0;

/// Returns the generated value of a cell. Each field has a warm ball near the middle of the grid, at a
/// slightly different place per field, and noise that makes every cell different.
pub fn generated(field: usize, grid: [usize; 3], cell: [usize; 3]) -> f64 {
    let mut distance = 0.0;
    let mut seed = field as u64;
    for d in 0..3 {
        let middle = 0.5 + 0.05 * field as f64;
        let away = (cell[d] as f64 + 0.5) / grid[d] as f64 - middle;
        distance += away * away;
        seed = mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ cell[d] as u64);
    }
    // A 53-bit random number divided by 2^53 is exactly representable as a double, and less than 1.
    let noise = (seed >> 11) as f64 / (1_u64 << 53) as f64;
    WALL + 60.0 / (1.0 + 32.0 * distance) + 5.0 * noise
}

/// Mixes the bits of `word` (one step of SplitMix64). Each bit of the result depends on all bits of `word`.
pub fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Returns the generated values of all fields in the whole grid.
pub fn generate(grid: [usize; 3], fields: usize) -> Vec<Vec<f64>> {
    (0..fields)
        .map(|field| {
            let mut cube = Vec::with_capacity(grid.iter().product());
            for z in 0..grid[0] {
                for y in 0..grid[1] {
                    cube.extend((0..grid[2]).map(|x| generated(field, grid, [z, y, x])));
                }
            }
            cube
        })
        .collect()
}

/// Reads a raw file or a .npy file, and returns one cube per field: the values of the field in the whole
/// grid. The caller puts `--init: ` before the text of an error.
pub fn read(path: &Path, grid: [usize; 3], fields: usize) -> Result<Vec<Vec<f64>>, String> {
    let name = path.display();
    let failed = |error: std::io::Error| format!("{name}: {}", plain(&error));
    let (mut file, metadata) = named::open_regular(path).map_err(failed)?;
    let cells: u64 = grid.iter().map(|&extent| extent as u64).product();
    let mut start = Vec::new();
    file.by_ref().take(16 * 1024).read_to_end(&mut start).map_err(failed)?;
    let numpy = start.starts_with(npy::MAGIC)
        || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    let (header, cubes) = if numpy {
        let header = npy::header(&start).map_err(|what| format!("{name}: {what}"))?;
        let cubes = match header.shape[..] {
            [z, y, x] if [z, y, x] == grid => 1,
            [f, z, y, x] if f == fields && [z, y, x] == grid => fields,
            _ => {
                let [z, y, x] = grid;
                let several = if fields > 1 {
                    format!(" or ({fields}, {z}, {y}, {x})")
                } else {
                    String::new()
                };
                return Err(format!(
                    "{name}: the shape is {:?}; the grid needs ({z}, {y}, {x}){several}",
                    header.shape
                ));
            }
        };
        (header, cubes)
    } else {
        (npy::Header { shape: grid.to_vec(), fortran: false, data: 0 }, 1)
    };
    // `job.rs` has checked that the values of the grid fit in memory. Here, the length of the file is checked
    // before the memory for its values is allocated.
    let wanted = cells.saturating_mul(cubes as u64).saturating_mul(8);
    let found = metadata.len().saturating_sub(header.data as u64);
    if found != wanted {
        let how = if found < wanted { "short" } else { "long" };
        return Err(format!(
            "{name}: too {how}: the file has {found} bytes of values; the grid needs {wanted}"
        ));
    }
    let mut bytes = start.split_off(header.data);
    // The cast is lossless: `job.rs` has checked that `wanted` bytes fit in memory.
    bytes.reserve_exact((wanted as usize).saturating_sub(bytes.len()));
    file.take(wanted.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 != wanted {
        return Err(format!("{name}: the file changed while it was read"));
    }
    let mut values = npy::values(&header, &bytes);
    drop(bytes);
    if let Some(position) = values.iter().position(|value| !value.is_finite()) {
        return Err(format!(
            "{name}: value {position} is {}; values must be finite",
            values[position]
        ));
    }
    if cubes == fields {
        let rest = values.len() / fields;
        let mut all = Vec::with_capacity(fields);
        for _ in 1..fields {
            let tail = values.split_off(rest);
            all.push(std::mem::replace(&mut values, tail));
        }
        all.push(values);
        return Ok(all);
    }
    Ok((0..fields)
        .map(|field| values.iter().map(|&value| derived(value, field)).collect())
        .collect())
}

/// Returns the value of a cell in field number `field` when the file has only one cube for all fields.
/// `value` is the value of the cell in that cube.
fn derived(value: f64, field: usize) -> f64 {
    let field = field as f64;
    value / (1.0 + field) + field
}

/// Returns the text of an I/O error. If the text ends with the system's error number, returns it without
/// the number and in lower case.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path =
            std::env::temp_dir().join(format!("typepack-init-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }

    fn raw(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn numpy(shape: &str, values: &[f64]) -> Vec<u8> {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = npy::MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend(raw(values));
        file
    }

    #[test]
    fn raw_and_numpy_files_give_the_same_cube() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        for (name, bytes) in [("a.raw", raw(&values)), ("a.bin", numpy("(2, 3, 4)", &values))] {
            let path = write(name, &bytes);
            let cubes = read(&path, [2, 3, 4], 2).expect("a good file");
            assert_eq!(cubes[0], values);
            assert_eq!(cubes[1][2], 2.0);
            std::fs::remove_file(path).expect("removed");
        }
    }

    #[test]
    fn a_fourth_dimension_gives_one_cube_per_field() {
        let values: Vec<f64> = (0..18).map(f64::from).collect();
        let path = write("b.npy", &numpy("(3, 1, 2, 3)", &values));
        let cubes = read(&path, [1, 2, 3], 3).expect("a good file");
        assert_eq!(cubes, [values[..6].to_vec(), values[6..12].to_vec(), values[12..].to_vec()]);
        let error = read(&path, [1, 2, 3], 2).expect_err("two fields");
        assert!(error.contains("(1, 2, 3) or (2, 1, 2, 3)"), "{error}");
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn wrong_files_are_refused_in_one_clause() {
        let cases: [(&str, Vec<u8>, &str); 5] = [
            ("short.raw", raw(&[1.0; 23]), "too short: the file has 184 bytes of values"),
            ("long.raw", raw(&[1.0; 25]), "too long"),
            ("not.npy", raw(&[1.0; 24]), "not a .npy file"),
            ("shape.npy", numpy("(4, 3, 2)", &[1.0; 24]), "the grid needs (2, 3, 4)"),
            ("nan.raw", raw(&[f64::NAN; 24]), "value 0 is NaN"),
        ];
        for (name, bytes, wanted) in cases {
            let path = write(name, &bytes);
            let error = read(&path, [2, 3, 4], 1).expect_err(name);
            assert!(error.contains(wanted), "{error}");
            assert_eq!(error.lines().count(), 1);
            std::fs::remove_file(path).expect("removed");
        }
        let error = read(Path::new("/nonexistent/x"), [2, 3, 4], 1).expect_err("missing");
        assert_eq!(error, "/nonexistent/x: no such file or directory");
        let error = read(Path::new("/dev/zero"), [2, 3, 4], 1).expect_err("a device");
        assert_eq!(error, "/dev/zero: not a regular file");
    }
}
