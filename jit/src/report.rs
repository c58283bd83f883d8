//! Reports on one kernel for human readers: its code in two forms, its size, its compile time, its
//! parameters.
//!
//! The report is not part of a request: `compiler.rs` compiles the kernel again, and nothing is
//! published or kept. `typepack explain --clif --asm` prints the report.

use crate::compiler;
use crate::error::Result;
use crate::target::Target;
use std::time::{Duration, Instant};
use typepack_engine::kernel::{Direction, LeafShape, Level, Nest};

/// Number of compilations that are timed. The report has their median, because the first
/// compilation in a process takes longer.
const COMPILATIONS: usize = 9;

/// A report on the kernel of a nest in one direction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The shape's name, which is also the kernel's name.
    pub name: String,
    /// The CLIF before optimisation, as Cranelift prints it.
    pub clif: String,
    /// The machine instructions in the notation of Cranelift's code generator. Constants that are
    /// stored in the code are left out.
    pub assembly: String,
    /// Length of the machine code in bytes, constants included.
    pub code_bytes: usize,
    /// The median time of nine compilations. It does not include the time to make the code
    /// executable. Each of these compilations sets up its own code generator, while a
    /// [`Jit`](crate::Jit) sets up one for all kernels.
    pub compile: Duration,
    /// Meaning and value of each word of the parameter block, for a call that executes the whole nest
    /// once.
    pub parameters: Vec<(String, u64)>,
}

/// Reports on the kernel of `nest` for `target`.
///
/// ```
/// use typepack_engine::{Datatype, Direction};
/// use typepack_jit::{Target, report};
///
/// let plan = "vector(100, 1, 2, double)".parse::<Datatype>()?.commit()?;
/// let nest = plan.nests().next().ok_or("a nest")?;
/// let kernel = report(nest, Direction::Pack, Target::X86_64)?;
/// assert_eq!(kernel.name, "pack loop loop b8");
/// assert_eq!(kernel.parameters[4], ("level 1: stride in bytes".to_owned(), 16));
/// assert!(kernel.assembly.contains("movq") && kernel.code_bytes < 1024);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the errors of [`emit`](crate::emit).
pub fn report(nest: &Nest, direction: Direction, target: Target) -> Result<Report> {
    let shape = nest.shape(direction);
    let (code_bytes, assembly) = compiler::disassembly(&shape, target)?;
    let mut times = Vec::with_capacity(COMPILATIONS);
    for _ in 0..COMPILATIONS {
        let start = Instant::now();
        compiler::emit(&shape, target)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(Report {
        name: shape.to_string(),
        clif: compiler::clif(&shape, target)?,
        assembly,
        code_bytes,
        compile: times[COMPILATIONS / 2],
        parameters: parameters(nest, &shape.leaf),
    })
}

fn parameters(nest: &Nest, leaf: &LeafShape) -> Vec<(String, u64)> {
    let mut words = Vec::new();
    for (l, level) in nest.levels.iter().enumerate() {
        let mut word = |what: &str, value| words.push((format!("level {l}: {what}"), value));
        word("count", level.count());
        match level {
            Level::Loop { stride, .. } => {
                word("stride in bytes", *stride as u64);
                word("unused", 0);
            }
            Level::Table { entries, scale } => {
                word("address of the table", entries.address());
                word("bytes per unit of an entry", *scale as u64);
            }
        }
    }
    match leaf {
        LeafShape::Long => words.push(("length of a block in bytes".to_owned(), nest.leaf.bytes())),
        LeafShape::Fixed { .. } | LeafShape::Window { .. } => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::{Datatype, Table, kernel::Leaf};

    fn nest(levels: Vec<Level>, bytes: u64) -> Nest {
        Nest { base: 0, levels: levels.into(), leaf: Leaf::Block { bytes } }
    }

    #[test]
    fn reports_agree_with_what_is_made() {
        let entries = Table::new(&[3, 1, 2]);
        let address = entries.address();
        let levels =
            vec![Level::Loop { count: 7, stride: -64 }, Level::Table { entries, scale: 24 }];
        for target in [Target::Host, Target::X86_64, Target::Aarch64] {
            for direction in [Direction::Pack, Direction::Unpack] {
                for bytes in [8, 100] {
                    let nest = nest(levels.clone(), bytes);
                    let shape = nest.shape(direction);
                    let report = report(&nest, direction, target).expect("the kernel has a report");
                    assert_eq!(report.name, shape.to_string());
                    let code = crate::emit(&shape, target).expect("the shape is compiled");
                    assert_eq!(report.code_bytes, code.len());
                    assert_eq!(
                        report.clif,
                        crate::clif(&shape, target).expect("the shape is translated")
                    );
                    assert!(report.assembly.contains("ret"), "{}", report.assembly);
                    assert!(!report.compile.is_zero());
                    assert_eq!(report.parameters.len(), shape.words());
                    let values: Vec<u64> = report.parameters.iter().map(|word| word.1).collect();
                    let expected = [7, -64_i64 as u64, 0, 3, address, 24];
                    assert_eq!(values[..6], expected);
                    assert_eq!(values.get(6), (bytes == 100).then_some(&100));
                }
            }
        }
    }

    #[test]
    fn what_is_not_translated_is_refused() {
        let nine = vec![Level::Loop { count: 1, stride: 0 }; 9];
        let refused = report(&nest(nine, 8), Direction::Pack, Target::Host);
        assert_eq!(refused.expect_err("nine levels are refused").kind(), crate::ErrorKind::Shape);
    }

    /// Checks the project's limit on code size: each kernel of these types has less than 1 KiB of
    /// code.
    #[test]
    fn loops_are_less_than_a_kibibyte() {
        for text in [
            "vector(100, 1, 2, double)",
            "vector(100, 3, 5, double)",
            "vector(100, 40, 50, char)",
            "vector(100, 200, 300, char)",
            "struct([1, 1, 1], [0, 4, 8], [char, int, double])",
            "subarray([90, 90, 90], [84, 80, 83], [3, 5, 2], C, double)",
            "indexed_block(1, [5, 0, 11, 20, 3, 7, 2, 90, 44, 31, 78], double)",
            "indexed_block(3, [5, 0, 11, 20, 3, 7, 2, 90, 44, 31, 78], int)",
        ] {
            let plan = text
                .parse::<Datatype>()
                .expect("the text is a type")
                .commit()
                .expect("the type is committed");
            for nest in plan.nests() {
                for direction in [Direction::Pack, Direction::Unpack] {
                    for target in [Target::Host, Target::X86_64, Target::Aarch64] {
                        let report =
                            report(nest, direction, target).expect("the kernel has a report");
                        assert!(
                            report.code_bytes < 1024,
                            "{text}: {} {}",
                            report.name,
                            report.code_bytes
                        );
                    }
                }
            }
        }
    }
}
