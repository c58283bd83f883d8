//! Describes the machines for which the crate makes code, and the one difference between them that
//! matters to the translator.
//!
//! `compiler.rs` and [`emit`](crate::emit) take the instruction set and its settings from this
//! file. `translate/` uses [`Machine`] and knows nothing else about the processor.

use crate::error::{Error, ErrorKind, Result};
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};

/// A machine for which code can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// This machine, with all the features that it reports.
    Host,
    /// Any x86-64 with SSE4.2 and POPCNT (2008).
    X86_64,
    /// Any AArch64 with little-endian data.
    Aarch64,
}

/// The facts about a processor that the translator needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// True if joining several narrow loads into one 16-byte store is faster than several narrow stores.
    /// On x86-64 the joined store is faster. On AArch64 the narrow stores are faster, because to build a
    /// vector there, Cranelift needs one move through a general register per lane.
    pub(crate) joins: bool,
}

/// Returns Cranelift's code generator for `target`, and the facts about that machine.
pub(crate) fn isa(target: Target) -> Result<(OwnedTargetIsa, Machine)> {
    let builder = match target {
        Target::Host => cranelift_native::builder().map_err(|reason| {
            Error::new(
                ErrorKind::Target,
                format!("there is no code generator for this machine: {reason}"),
            )
        })?,
        Target::X86_64 => {
            let mut builder = lookup("x86_64-unknown-linux-gnu")?;
            // Cranelift's checks require these five features together.
            for feature in ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"] {
                builder.enable(feature).map_err(|e| refuse(target, &e.to_string()))?;
            }
            builder
        }
        Target::Aarch64 => lookup("aarch64-unknown-linux-gnu")?,
    };
    let mut flags = settings::builder();
    for (name, value) in [
        // Without optimisation, compiling took 10 % less time, and the loops were equally fast
        // (tune.rs). Optimisation stays on, because the translator writes plain address arithmetic
        // and leaves common subexpressions to the optimiser.
        ("opt_level", "speed"),
        // The verifier is off, because it takes half as long as compiling; tests run it
        // (translate/whitelist.rs).
        ("enable_verifier", "false"),
        // Kernels are leaf functions. Nothing unwinds through them, so they need no unwind
        // information.
        ("unwind_info", "false"),
        ("is_pic", "false"),
        ("enable_probestack", "false"),
    ] {
        flags.set(name, value).map_err(|e| refuse(target, &e.to_string()))?;
    }
    let isa =
        builder.finish(settings::Flags::new(flags)).map_err(|e| refuse(target, &e.to_string()))?;
    let joins = isa.triple().architecture.to_string() == "x86_64";
    Ok((isa, Machine { joins }))
}

fn lookup(triple: &str) -> Result<isa::Builder> {
    isa::lookup_by_name(triple).map_err(|e| Error::new(ErrorKind::Target, format!("{triple}: {e}")))
}

fn refuse(target: Target, reason: &str) -> Error {
    Error::new(ErrorKind::Target, format!("{target:?}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_generator_here() {
        for target in [Target::Host, Target::X86_64, Target::Aarch64] {
            isa(target).expect("there is a code generator for this target");
        }
        assert!(isa(Target::X86_64).expect("there is a code generator for x86-64").1.joins);
        assert!(!isa(Target::Aarch64).expect("there is a code generator for AArch64").1.joins);
    }
}
