//! Converts between positions in the external32 form of elements and positions in their native packed
//! form. The two forms of an element may have different sizes. If a file is read in external32 and ends
//! early, the number of bytes read is a number of external bytes, but the program asks how many elements
//! arrived.

use super::External32;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::Op;
use crate::ir::typed::{TypedProgram, Unit};

impl External32 {
    /// Returns the number of native packed bytes of the basic elements that lie completely within the
    /// first `external` bytes of the external32 form. The two members of a pair are two basic elements.
    /// The cost is O(depth + log list length) after the first call.
    ///
    /// ```
    /// use typepack_engine::{Datatype, External32, Named};
    ///
    /// // An `MPI_LONG` has 8 bytes in memory and 4 in external32.
    /// let external = External32::new(&Datatype::named(Named::LONG))?;
    /// assert_eq!((external.native_bytes(11)?, external.external_bytes(16)?), (16, 8));
    /// # Ok::<(), typepack_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - Returns [`ErrorKind::Overflow`] if the number does not fit in an `i64`.
    /// - Returns [`ErrorKind::Argument`] for `external` if the type has no data but `external` is not 0.
    /// - Returns [`ErrorKind::Limit`] if the type needs more program nodes than the documented limit (2^28).
    /// - Returns [`ErrorKind::Internal`] if the native program of the type does not have the same nodes as
    ///   the external32 program. This is an error in typepack.
    pub fn native_bytes(&self, external: u64) -> Result<u64> {
        converted(&self.0.program, self.native()?, ("external", external))
    }

    /// Returns the number of external32 bytes of the basic elements that lie completely within the first
    /// `native` bytes of the native packed form.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`External32::native_bytes`], with `native` in the place of `external`.
    pub fn external_bytes(&self, native: u64) -> Result<u64> {
        converted(self.native()?, &self.0.program, ("native", native))
    }

    /// Returns the typed program whose positions are native packed bytes.
    fn native(&self) -> Result<&TypedProgram> {
        if let Some(native) = self.0.native.get() {
            return Ok(native);
        }
        let native = TypedProgram::lower(&self.0.datatype, Unit::Native)?;
        Ok(self.0.native.get_or_init(|| native))
    }
}

/// Converts position `at`, in bytes of the form of `from`, to a position in bytes of the form of `to`. If
/// `at` lies inside a basic element, returns the position at which this basic element begins. Both programs
/// are lowered from one type. They have the same nodes, because lowering compares numbers of elements, never
/// numbers of bytes. The errors name `at` by `argument`, except the overflow error, which always names
/// `external`.
fn converted(
    from: &TypedProgram,
    to: &TypedProgram,
    (argument, at): (&'static str, u64),
) -> Result<u64> {
    let (source, target) = (from.program(), to.program());
    if source.nodes().len() != target.nodes().len() {
        let detail = "the external32 program and the native program of a type differ in their number of nodes";
        return Err(Error::new(ErrorKind::Internal, argument, detail));
    }
    if at == 0 {
        return Ok(0);
    }
    let Some(mut edge) = source.body else {
        let detail = format!("{at} bytes are given, but the type has no data; only 0 is allowed");
        return Err(Error::new(ErrorKind::Argument, argument, detail));
    };
    let each = |node| (source.node(node).bytes, target.node(node).bytes);
    let (bytes, units) = each(edge.node);
    let (mut done, mut rest) = (i128::from(at / bytes) * i128::from(units), at % bytes);
    while rest > 0 {
        let node = edge.node;
        match &source.node(node).op {
            Op::Block => {
                let Some(named) = from.named(node) else { break };
                let (one, other) = (from.unit().of(named), to.unit().of(named));
                done += i128::from(rest / one) * i128::from(other);
                // The first member of a pair may be complete. Both forms list members without gaps.
                if let Some([(_, first), _]) = named.members()
                    && rest % one >= from.unit().of(first)
                {
                    done += i128::from(to.unit().of(first));
                }
                break;
            }
            Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
                let (bytes, units) = each(body.node);
                done += i128::from(rest / bytes) * i128::from(units);
                rest %= bytes;
                edge = *body;
            }
            Op::Seq { parts } => {
                let part = parts.partition_point(|part| part.end <= rest);
                if part > 0 {
                    rest -= parts[part - 1].end;
                    if let Op::Seq { parts } = &target.node(node).op {
                        done += i128::from(parts[part - 1].end);
                    }
                }
                edge = parts[part].edge;
            }
        }
    }
    u64::try_from(done).ok().filter(|&done| i64::try_from(done).is_ok()).ok_or_else(|| {
        let detail = format!("{at} bytes become {done} bytes; at most 2^63 - 1 are possible");
        Error::new(ErrorKind::Overflow, "external", detail)
    })
}
