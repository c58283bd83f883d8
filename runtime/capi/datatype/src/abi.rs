//! The constants of the ABI, from `../../abi/constants.csv` (`build.rs`): integers as they are, handles and pointers as
//! the numbers they are compared with. Names are without `MPI_`.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
