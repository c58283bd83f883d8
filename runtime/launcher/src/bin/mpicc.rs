//! `mpicc`: compiles and links C programs for the MPI ABI. The code is in `../wrapper/`.

#[path = "../wrapper/mod.rs"]
mod wrapper;

fn main() -> std::process::ExitCode {
    wrapper::main(&wrapper::Tool {
        name: "mpicc",
        language: "C",
        compiler: "cc",
        choosers: &["-cc="],
        variables: &["TYPEPACK_CC", "MPICH_CC", "OMPI_CC"],
        fortran: false,
    })
}
