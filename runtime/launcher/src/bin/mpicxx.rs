//! `mpicxx`: compiles and links C++ programs that call the C functions of the MPI ABI. (MPI-3.0 removed MPI's
//! own C++ interface.) The code is in `../wrapper/`.

#[path = "../wrapper/mod.rs"]
mod wrapper;

fn main() -> std::process::ExitCode {
    wrapper::main(&wrapper::Tool {
        name: "mpicxx",
        language: "C++",
        compiler: "c++",
        choosers: &["-cxx=", "-CC="],
        variables: &["TYPEPACK_CXX", "MPICH_CXX", "OMPI_CXX"],
        fortran: false,
    })
}
