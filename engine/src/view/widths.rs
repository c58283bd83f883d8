//! Types as they are in a file whose data representation gives basic types other sizes than memory does
//! (external32, or a representation that the user has registered).

use crate::datatype::Datatype;
use crate::error::Result;
use crate::named::Named;

/// Returns `datatype` as it is in a file in which an element of each named type takes `width(named)`
/// bytes. The result describes bytes: its size and extent are those in the file, and `FileView::new`
/// takes it as an etype or a filetype. A stride or a displacement that counts elements is multiplied by
/// the extent in the file; one that counts bytes stays as it is (MPI-5.0 section 14.5). No gap is added
/// between the members of a pair or at the end of a struct, because the bytes of a file have no
/// alignment.
///
/// For external32, pass [`external32::size_of`](crate::external32::size_of).
///
/// ```
/// use typepack_engine::{Datatype, Named, external32, view};
///
/// let column = Datatype::vector(3, 1, 4, &Datatype::named(Named::LONG))?;
/// assert_eq!((column.size(), column.extent()), (24, 72));
/// let in_file = view::in_file(&column, |named| Ok(external32::size_of(named)))?;
/// assert_eq!((in_file.size(), in_file.extent()), (12, 36));
/// # Ok::<(), typepack_engine::Error>(())
/// ```
///
/// # Errors
///
/// Returns the errors of `width`. Returns `ErrorKind::Overflow` if a size, a bound or a displacement in
/// the file does not fit in an `i64`.
#[doc(alias = "MPI_File_get_type_extent")]
pub fn in_file(
    datatype: &Datatype,
    mut width: impl FnMut(Named) -> Result<u64>,
) -> Result<Datatype> {
    let byte = Datatype::named(Named::BYTE);
    datatype.with_leaves(&mut |named| {
        let bytes = i64::try_from(width(named)?).unwrap_or(i64::MAX);
        Datatype::contiguous(bytes, &byte)
    })
}
