/* The second translation unit of generalized.cc. */
#include <mpi.h>

const MPI::Datatype *elsewhere() { return &MPI::DOUBLE; }
MPI::Intracomm *world_elsewhere() { return &MPI::COMM_WORLD; }
