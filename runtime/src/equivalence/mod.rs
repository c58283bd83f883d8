//! Rust types that have an MPI datatype, and calls that take slices of their values.
//!
//! [`Equivalence`] is the trait of these types, which `#[derive(Equivalence)]` (`runtime/derive`) implements for
//! structs. [`Buffer`] and [`BufferMut`] are the traits of the buffers that the calls take: values of these types,
//! their slices, elements of committed datatypes, and views of `ndarray` (`buffer.rs`, `array.rs`).
//!
//! `calls.rs` has the messages, and the reductions of structs. `collectives.rs` has the collective calls that move
//! data, `neighbors.rs` those between neighbours, and `scope.rs` the nonblocking forms. All of them describe their
//! buffers in `divide.rs`. `single.rs` has calls of single values, which return their result. This folder calls
//! `coll/`, so it comes after `coll/` in the order of the folders.

#[cfg(feature = "ndarray")]
mod array;
mod buffer;
mod calls;
mod collectives;
mod divide;
mod neighbors;
mod scope;
mod single;

use crate::commit::commit_unchecked;
use crate::{Datatype, Error, ErrorKind, Named, Plan, Result};
use std::sync::OnceLock;
pub use typepack_derive::Equivalence;

#[cfg(feature = "ndarray")]
pub(crate) use array::strided;
pub use buffer::{Buffer, BufferMut, Elements, ElementsMut};

/// A Rust type that has an MPI datatype: numbers, arrays of such types, and structs with
/// `#[derive(Equivalence)]`.
///
/// Values and slices of these types can be sent and used in collective calls: [`Communicator::send`] and the
/// calls beside it, which take every [`Buffer`]. The bytes between the fields of a struct are gaps of the datatype,
/// which no call reads or writes. So unlike the types of [`Communicator::send_elements`], a struct may have padding.
///
/// ```
/// use typepack::Equivalence;
///
/// #[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
/// struct Particle {
///     kind: u8, // 7 bytes of padding follow, or the compiler places this field last
///     position: [f64; 3],
///     charge: i32,
/// }
///
/// let universe = typepack::init()?;
/// let world = universe.world();
/// let mut particles = vec![Particle::default(); 100];
/// if world.rank() == 0 {
///     particles.fill(Particle { kind: 3, position: [0.5, 1.0, 2.0], charge: -1 });
/// }
/// world.broadcast(&mut particles, 0)?;
/// assert_eq!(particles[99].position[2], 2.0);
///
/// let ty = Particle::datatype()?;
/// assert_eq!((ty.size(), ty.extent()), (29, size_of::<Particle>() as i64));
/// # Ok::<(), typepack::Error>(())
/// ```
///
/// If the type of a field has no datatype, the program does not compile. A `bool`, for example, has no datatype,
/// because a message could bring a byte that is no `bool`:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, typepack::Equivalence)]
/// struct Flagged {
///     value: f64,
///     set: bool,
/// }
/// ```
///
/// The compiler also refuses references, generic structs, and types that are not structs:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, typepack::Equivalence)]
/// struct Borrowed {
///     text: &'static str,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, typepack::Equivalence)]
/// struct Pair<T> {
///     values: [T; 2],
/// }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, typepack::Equivalence)]
/// enum Direction {
///     Up,
///     Down,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy, typepack::Equivalence)]
/// union Either {
///     word: u32,
///     real: f32,
/// }
/// ```
///
/// The compiler refuses a struct that is not `Copy`, because a message overwrites a value without dropping it:
///
/// ```compile_fail,E0277
/// #[derive(typepack::Equivalence)]
/// struct Owned {
///     value: f64,
/// }
/// ```
///
/// # Safety
///
/// - [`datatype`](Self::datatype) returns a type whose data lie within the bytes of one value, whose lower bound is 0,
///   and whose extent is the size of the Rust type. [`plan`](Self::plan) is the plan of this type.
/// - The provided methods stay as they are.
/// - In every value, the bytes of the data are initialised.
/// - A value remains valid if the bytes of the data change in any way.
/// - A value is valid whatever its other bytes are, also if they are not initialised: the function of a reduction gets
///   values of which only the bytes of the data are defined.
///
/// [`Communicator::send`]: crate::Communicator::send
/// [`Communicator::send_elements`]: crate::Communicator::send_elements
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no MPI datatype",
    label = "the trait `Equivalence` is not implemented for `{Self}`",
    note = "numbers, arrays of types with a datatype, and structs with `#[derive(Clone, Copy, Equivalence)]` have a datatype"
)]
#[doc(alias = "MPI_Type_create_struct")]
pub unsafe trait Equivalence: Copy + Send + 'static {
    /// Returns the datatype of one value.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Engine`] if the type is too large or nested too deeply for a datatype.
    fn datatype() -> Result<Datatype>;

    /// Returns the committed datatype of one value.
    ///
    /// # Errors
    /// Returns the errors of [`datatype`](Self::datatype) and of [`commit`](crate::commit()).
    fn plan() -> Result<&'static Plan>;

    /// Returns the committed type of which a value has elements, and their number. An array has those of its elements.
    #[doc(hidden)]
    fn elements() -> Result<(&'static Plan, u64)> {
        Ok((Self::plan()?, 1))
    }
}

/// Types whose single values are buffers: all types with a datatype, except arrays. An array is a buffer of its
/// elements.
pub trait Single: Equivalence {}

/// A place for the plan of one type. The first use makes the plan.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Kept(OnceLock<Result<Plan>>);

impl Kept {
    /// Returns an empty place.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the plan of `T`. All calls on one `Kept` must be for the same `T`.
    pub fn plan<T: Equivalence>(&'static self) -> Result<&'static Plan> {
        if let Some(kept) = self.0.get() {
            return kept.as_ref().map_err(Clone::clone);
        }
        // The caller checks the memory. The end of memory says nothing about the type, so this error is not kept.
        match T::datatype().and_then(|ty| commit_unchecked(&ty)) {
            Err(error) if error.kind() == ErrorKind::NoMemory => Err(error),
            made => self.0.get_or_init(|| made).as_ref().map_err(Clone::clone),
        }
    }
}

macro_rules! numbers {
    ($($t:ty: $named:expr;)*) => {
        $(
            // SAFETY: the named type has the size of the number and no gaps. All bit patterns are numbers.
            unsafe impl Equivalence for $t {
                fn datatype() -> Result<Datatype> {
                    debug_assert_eq!($named.size() as usize, size_of::<$t>());
                    Ok(Datatype::named($named))
                }

                fn plan() -> Result<&'static Plan> {
                    static PLAN: Kept = Kept::new();
                    PLAN.plan::<$t>()
                }
            }

            impl Single for $t {}
        )*
    };
}

// The types of addresses and lengths have 64 bits.
const _: () = assert!(usize::BITS == 64, "typepack needs a machine with 64-bit addresses");

numbers! {
    i8: Named::I8;
    i16: Named::I16;
    i32: Named::I32;
    i64: Named::I64;
    i128: Named::INTEGER16;
    isize: Named::AINT;
    usize: Named::U64;
    u8: Named::U8;
    u16: Named::U16;
    u32: Named::U32;
    u64: Named::U64;
    f32: Named::F32;
    f64: Named::F64;
}

// SAFETY: the elements of an array lie at multiples of their size, which is the extent of their datatype. They are the
// only bytes of the array.
unsafe impl<T: Equivalence, const N: usize> Equivalence for [T; N] {
    fn datatype() -> Result<Datatype> {
        let count = i64::try_from(N).map_err(|_| {
            Error::new(ErrorKind::Count, "length", format!("an array of {N} elements is too long"))
        })?;
        Ok(Datatype::contiguous(count, &T::datatype()?)?)
    }

    fn plan() -> Result<&'static Plan> {
        // All instances of a generic function share its statics, so a static here cannot hold one plan per array type.
        // A table holds the plans.
        arrays::plan::<Self>()
    }

    fn elements() -> Result<(&'static Plan, u64)> {
        let (plan, each) = T::elements()?;
        Ok((plan, N as u64 * each))
    }
}

/// The plans of arrays.
mod arrays {
    use super::Equivalence;
    use crate::commit::commit;
    use crate::{Plan, Result};
    use std::any::TypeId;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    static PLANS: Mutex<BTreeMap<TypeId, &'static Plan>> = Mutex::new(BTreeMap::new());

    pub fn plan<T: Equivalence>() -> Result<&'static Plan> {
        let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&TypeId::of::<T>()) {
            return Ok(plan);
        }
        // A program has a fixed number of array types, so it keeps their plans until it ends.
        let plan: &'static Plan = Box::leak(Box::new(commit(&T::datatype()?)?));
        plans.insert(TypeId::of::<T>(), plan);
        Ok(plan)
    }
}

/// Returns the datatype of a struct of `size` bytes. Each field has an offset and a size in bytes, and a datatype.
///
/// # Errors
/// Returns [`ErrorKind::Count`] if a size or an offset does not fit in an `i64`, [`ErrorKind::Engine`] if the engine
/// refuses the type as too large or nested too deeply, and [`ErrorKind::Internal`] if the datatype of a field does not
/// have the lower bound 0 and the size of the field as its extent.
#[doc(hidden)]
pub fn of_fields(size: usize, fields: &[(usize, usize, Datatype)]) -> Result<Datatype> {
    let wide = |bytes: usize| {
        i64::try_from(bytes).map_err(|_| {
            Error::new(ErrorKind::Count, "size", format!("a struct of {bytes} bytes is too large"))
        })
    };
    let (mut offsets, mut types) = (Vec::new(), Vec::new());
    for (offset, bytes, ty) in fields {
        if (ty.lb(), ty.extent()) != (0, wide(*bytes)?) {
            let detail = format!(
                "a field of {bytes} bytes has a datatype of lower bound {} and extent {}",
                ty.lb(),
                ty.extent()
            );
            return Err(Error::new(ErrorKind::Internal, "datatype", detail));
        }
        offsets.push(wide(*offset)?);
        types.push(ty.clone());
    }
    let ty = Datatype::structured(&vec![1; types.len()], &offsets, &types)?;
    Ok(Datatype::resized(0, wide(size)?, &ty)?)
}
