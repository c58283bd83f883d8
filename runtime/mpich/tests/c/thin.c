/* Messages, statuses and errors with MPICH's values. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

int main(int argc, char **argv)
{
    int rank, size, data[4] = {1, 2, 3, 4}, got[4] = {0};
    CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Status status;
    memset(&status, 0x55, sizeof status);
    int other = size - 1 - rank, count = -1, old = status.MPI_ERROR;
    MPI_Request request;
    CHECK(MPI_Isend(data, 4, MPI_INT, other, 7, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Recv(got, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    CHECK(status.MPI_SOURCE == other && status.MPI_TAG == 7 && status.MPI_ERROR == old);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 4);
    CHECK(memcmp(data, got, sizeof data) == 0);

    /* No process, and a message that is too long. */
    CHECK(MPI_Recv(got, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Isend(data, 4, MPI_INT, other, 8, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    int code = MPI_Recv(got, 2, MPI_INT, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE), class;
    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS && class == MPI_ERR_TRUNCATE);
    CHECK(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);

    /* Handles of the ABI, and numbers that are no handles, are errors. */
    CHECK(MPI_Comm_size(0x101, &size) != MPI_SUCCESS);
    CHECK(MPI_Comm_size(0, &size) != MPI_SUCCESS && MPI_Comm_size(-1, &size) != MPI_SUCCESS);
    CHECK(MPI_Comm_size(MPI_COMM_NULL, &size) != MPI_SUCCESS);
    CHECK(MPI_Send(data, 1, 0x209, MPI_PROC_NULL, 0, MPI_COMM_WORLD) != MPI_SUCCESS);

    int sum = 0;
    MPI_Comm copy;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS && copy != MPI_COMM_NULL);
    CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy) == MPI_SUCCESS);
    sum = rank;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, copy) == MPI_SUCCESS && sum == size - 1);
    CHECK(MPI_Comm_compare(MPI_COMM_WORLD, copy, &class) == MPI_SUCCESS && class == MPI_CONGRUENT);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
    return MPI_Finalize();
}
