//! Sends and receives of types that are not contiguous: packed by us, carried by the host as `MPI_PACKED`.
//!
//! Each function returns `None` if the host must do the call with the program's own arguments.

pub mod both;
pub mod mode;
pub mod receive;
pub mod send;

/// Calls the host's function with C integers if all the counts fit, and else its form with large counts. The counts
/// are of type `i64`.
macro_rules! widths {
    ($next:ident, [$($count:ident),+], $int:ident ($($a:expr),*), $large:ident ($($b:expr),*)) => {
        match ($(std::ffi::c_int::try_from($count),)+) {
            ($(Ok($count),)+) => $next.$int($($a),*),
            _ => $next.$large($($b),*),
        }
    };
}
pub(crate) use widths;
