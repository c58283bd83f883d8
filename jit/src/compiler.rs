//! Compiles CLIF (Cranelift's intermediate code) to machine code, and publishes the machine code as
//! a kernel.
//!
//! `translate/` makes the CLIF, `cache.rs` keeps the kernel, and the engine calls the kernel. If
//! Cranelift returns an error or panics, or if the system denies memory, the shape is refused with an
//! [`Error`].

use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Arena, CodeMemory};
use crate::target::{self, Machine, Target};
use crate::translate::{self, Translate, whitelist};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, ModuleError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use typepack_engine::kernel::{Entry, Kernel};

/// Makes kernels for this machine.
pub(crate) struct CodeGenerator {
    isa: OwnedTargetIsa,
    machine: Machine,
    arena: Arc<Arena>,
}

impl CodeGenerator {
    /// Makes a generator that may use up to `memory_max` bytes of address space for code.
    pub(crate) fn new(memory_max: u64) -> Result<Self> {
        let (isa, machine) = target::isa(Target::Host)?;
        let arena = Arena::new(memory_max)
            .map_err(|error| Error::new(ErrorKind::Memory, error.to_string()))?;
        Ok(Self { isa, machine, arena })
    }

    /// Returns the kernel of `shape` and the length of its code in bytes.
    pub(crate) fn compile(&self, shape: &impl Translate) -> Result<(Kernel, usize)> {
        // A panic may leave the context and the module incomplete. This does no harm, because only
        // this call owns them, and the call drops both. The arena's list of free pages is
        // consistent whenever the list's lock is free.
        contain(|| {
            let code = generate(shape, &*self.isa, self.machine)?;
            let kernel = self.publish(shape, &code)?;
            Ok((kernel, code.bytes.len()))
        })
    }

    /// Writes `code` to executable memory. Each kernel has a module of its own, because a module
    /// cannot free its functions one by one.
    fn publish(&self, shape: &impl Translate, code: &Machinecode) -> Result<Kernel> {
        let memory = CodeMemory::new(self.arena.clone());
        // The module never looks up a name, because a kernel has no symbols and no calls.
        let names = cranelift_module::default_libcall_names();
        let mut builder = JITBuilder::with_isa(self.isa.clone(), names);
        builder.memory_provider(Box::new(memory.clone()));
        let mut module = JITModule::new(builder);
        let signature = translate::signature(&*self.isa);
        let id = module.declare_anonymous_function(&signature).map_err(refusal)?;
        module.define_function_bytes(id, code.align, &code.bytes, &[]).map_err(refusal)?;
        module.finalize_definitions().map_err(refusal)?;
        let address = module.get_finalized_function(id);
        let published = memory.take_published();
        // SAFETY: `translate` gave the function at `address` the signature of `Entry`, with the
        // calling convention of this machine, and `finalize_definitions` has published it.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
        // SAFETY:
        // - the code implements `shape` (translate/mod.rs) and contains no call, so it cannot
        //   unwind;
        // - `published` owns the code's pages, which stay mapped and read-only until it is dropped.
        Ok(unsafe { Kernel::new(entry, shape.to_string().into(), Arc::new(published)) })
    }
}

/// Position-independent machine code.
pub(crate) struct Machinecode {
    pub(crate) bytes: Vec<u8>,
    pub(crate) align: u64,
}

/// Translates `shape`, and refuses the result if it contains an operation outside the whitelist.
fn context(shape: &impl Translate, isa: &dyn TargetIsa, machine: Machine) -> Result<Context> {
    let function = translate::function(shape, isa, machine)?;
    match whitelist::stranger(&function) {
        None => Ok(Context::for_function(function)),
        Some(opcode) => {
            let detail = format!(
                "{shape}: the code contains the operation {opcode}, which is not in the whitelist"
            );
            Err(Error::new(ErrorKind::CodeGeneration, detail))
        }
    }
}

/// Translates and compiles `shape`. The code has no relocations, so it runs at any address.
fn generate(shape: &impl Translate, isa: &dyn TargetIsa, machine: Machine) -> Result<Machinecode> {
    let mut context = context(shape, isa, machine)?;
    let code = context
        .compile(isa, &mut ControlPlane::default())
        .map_err(|e| Error::new(ErrorKind::CodeGeneration, format!("{shape}: {:?}", e.inner)))?;
    let relocations = code.buffer.relocs().len();
    if relocations != 0 {
        let detail = format!("{shape}: the code has {relocations} relocations; it must have none");
        return Err(Error::new(ErrorKind::CodeGeneration, detail));
    }
    let align = u64::from(code.buffer.alignment.max(isa.function_alignment().preferred));
    Ok(Machinecode { bytes: code.code_buffer().to_vec(), align })
}

/// Does the work of [`crate::emit`].
pub(crate) fn emit(shape: &impl Translate, target: Target) -> Result<Machinecode> {
    contain(|| {
        let (isa, machine) = target::isa(target)?;
        generate(shape, &*isa, machine)
    })
}

/// Returns the length of the code of `shape` in bytes, and its instructions as text.
pub(crate) fn disassembly(shape: &impl Translate, target: Target) -> Result<(usize, String)> {
    contain(|| {
        let (isa, machine) = target::isa(target)?;
        let mut context = context(shape, &*isa, machine)?;
        context.set_disasm(true);
        let code = context.compile(&*isa, &mut ControlPlane::default()).map_err(|e| {
            Error::new(ErrorKind::CodeGeneration, format!("{shape}: {:?}", e.inner))
        })?;
        Ok((code.code_buffer().len(), code.vcode.clone().unwrap_or_default()))
    })
}

/// Does the work of [`crate::clif`].
pub(crate) fn clif(shape: &impl Translate, target: Target) -> Result<String> {
    contain(|| {
        let (isa, machine) = target::isa(target)?;
        Ok(translate::function(shape, &*isa, machine)?.display().to_string())
    })
}

/// Runs `work` and turns a panic in `work` into a refusal. The panic hook still prints the panic's
/// message, because a panic here is a bug that should be seen.
fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Error::new(ErrorKind::CodeGeneration, format!("panic: {text}")))
    })
}

fn refusal(error: ModuleError) -> Error {
    match error {
        ModuleError::Allocation { err } => Error::new(ErrorKind::Memory, err.to_string()),
        other => Error::new(ErrorKind::CodeGeneration, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_refusal() {
        let error = contain::<()>(|| panic!("lowering of {}", "i8x16"))
            .expect_err("the panic becomes an error");
        assert_eq!(error.kind(), ErrorKind::CodeGeneration);
        assert_eq!(error.to_string(), "code generation: panic: lowering of i8x16");
    }
}
