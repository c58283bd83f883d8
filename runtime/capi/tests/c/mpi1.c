/* Tests the names of MPI-1 that courses still teach, and the addresses with which Fortran ignores a
   status. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int lengths[3] = {1, 1, 1};
    MPI_Aint places[3] = {-4, 0, 20}, lb, ub, extent;
    MPI_Datatype types[3] = {MPI_LB, MPI_INT, MPI_UB}, type;
    CHECK(MPI_Type_struct(3, lengths, places, types, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_lb(type, &lb) == MPI_SUCCESS && lb == -4);
    CHECK(MPI_Type_ub(type, &ub) == MPI_SUCCESS && ub == 20);
    CHECK(MPI_Type_extent(type, &extent) == MPI_SUCCESS && extent == 24);
    MPI_Type_free(&type);
    /* MPI-2 programs pass the markers to the new name of the function too. */
    CHECK(MPI_Type_create_struct(3, lengths, places, types, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_get_extent(type, &lb, &extent) == MPI_SUCCESS && lb == -4 && extent == 24);
    MPI_Type_free(&type);

    /* Names of ROMIO. */
    MPIO_Request request = MPI_REQUEST_NULL;
    int flag = 0;
    CHECK(MPIO_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag);
    CHECK(MPIO_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
#ifndef MPIO_USES_MPI_REQUEST
#error "the requests of files are requests of MPI"
#endif

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Type_struct(3, lengths, places, NULL, &type) == MPI_ERR_ARG);
    MPI_Count long_lengths[3] = {1, 1, 1}, long_places[3] = {-4, 0, 20};
    CHECK(MPI_Type_create_struct_c(3, long_lengths, long_places, types, &type) == MPI_ERR_TYPE);

    CHECK((intptr_t)MPI_F_STATUS_IGNORE == 0x1f01 && (intptr_t)MPI_F08_STATUSES_IGNORE == 0x1f04);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
