/* Every rank sends an array to the next rank in 16 partitions, which become ready one by one, and uses the array of the
 * rank before it in 4 partitions, as they arrive.
 *
 *     mpicc partitions.c -o partitions && mpiexec -n 2 ./partitions
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 16 * 8192, STEPS = 3 };

static void compute(double *values, int step)
{
    for (int i = 0; i < 8192; i++) values[i] = step;
}

int main(int argc, char **argv)
{
    int rank, size, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    double *field = calloc(LENGTH, sizeof *field), *received = calloc(LENGTH, sizeof *received), sum = 0;

    MPI_Request send, receive;
    MPI_Psend_init(field, 16, 8192, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(received, 4, LENGTH / 4, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    for (int step = 1; step <= STEPS; step++) {
        MPI_Start(&receive);
        MPI_Start(&send);
        /* Threads may share this loop. */
        for (int i = 0; i < 16; i++) {
            compute(field + 8192 * i, step);
            MPI_Pready(i, send);
        }
        for (int i = 0, arrived = 0; i < 4; i++, arrived = 0) {
            while (!arrived) MPI_Parrived(receive, i, &arrived);
            sum += received[i * (LENGTH / 4)];
        }
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);

    printf("rank %d of %d: the sum is %g\n", rank, size, sum);
    int wrong = sum != 4 * (1 + 2 + 3);
    free(field);
    free(received);
    MPI_Finalize();
    return wrong;
}
