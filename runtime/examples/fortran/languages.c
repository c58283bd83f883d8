/* The functions in C of languages.f90: Example 16.16 of MPI-2.2. */
#include <mpi.h>

/* Sends an int, followed by what the datatype of Fortran describes. */
void c_send(MPI_Fint type, int to)
{
    int count = 5, lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 0};
    /* The handle of Fortran becomes the handle of C. The datatype stays the same. */
    MPI_Datatype types[2] = {MPI_INT, MPI_Type_f2c(type)}, both;

    /* The second place is 0, because the type of Fortran has absolute addresses. */
    MPI_Get_address(&count, &places[0]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    MPI_Send(MPI_BOTTOM, 1, both, to, 0, MPI_COMM_WORLD);
    MPI_Type_free(&both);
}

/* Receives an int, and 5 numbers into the array of Fortran. */
void c_receive(int from, int *count, float *r)
{
    int lengths[2] = {1, 5};
    MPI_Aint places[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT}, both;

    MPI_Get_address(count, &places[0]);
    MPI_Get_address(r, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    MPI_Recv(MPI_BOTTOM, 1, both, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&both);
}
