/* The C side of completed.f90: starts, completes and frees requests of Fortran. */
#include <mpi.h>

/* Completes a request in one of nine ways. The last one leaves the request to Fortran. */
void c_complete(MPI_Fint *handle, int way)
{
    MPI_Request request = MPI_Request_f2c(*handle);
    MPI_Status status;
    int flag = 0, index, number = 0;

    switch (way) {
    case 0: MPI_Wait(&request, MPI_STATUS_IGNORE); break;
    case 1: while (!flag) MPI_Test(&request, &flag, &status); break;
    case 2: MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); break;
    case 3: while (!flag) MPI_Testall(1, &request, &flag, &status); break;
    case 4: MPI_Waitany(1, &request, &index, &status); break;
    case 5: while (!flag) MPI_Testany(1, &request, &index, &flag, &status); break;
    case 6: MPI_Waitsome(1, &request, &number, &index, &status); break;
    case 7: while (!number) MPI_Testsome(1, &request, &number, &index, &status); break;
    default: while (!flag) MPI_Request_get_status(request, &flag, &status); break;
    }
    *handle = MPI_Request_c2f(request);
}

void c_start(MPI_Fint *handle)
{
    MPI_Request request = MPI_Request_f2c(*handle);
    MPI_Start(&request);
    *handle = MPI_Request_c2f(request);
}

void c_free(MPI_Fint *handle)
{
    MPI_Request request = MPI_Request_f2c(*handle);
    MPI_Request_free(&request);
    *handle = MPI_Request_c2f(request);
}
