/* The ranks start two workers, which run this program too. Rank 0 sends each of them a number and gets its square.
 *
 *     mpicc workers.c -o workers && mpiexec -n 1 ./workers
 */
#include <mpi.h>
#include <stdio.h>

static void work(MPI_Comm parent)
{
    int number;
    MPI_Recv(&number, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    number *= number;
    MPI_Send(&number, 1, MPI_INT, 0, 0, parent);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        work(parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }

    int rank, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm workers;
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &workers, MPI_ERRCODES_IGNORE);
    for (int worker = 0; worker < 2 && rank == 0; worker++) {
        int number = 6 + worker, square;
        MPI_Send(&number, 1, MPI_INT, worker, 0, workers);
        MPI_Recv(&square, 1, MPI_INT, worker, 0, workers, MPI_STATUS_IGNORE);
        printf("worker %d: %d squared is %d\n", worker, number, square);
        wrong |= square != number * number;
    }
    printf("rank %d disconnects\n", rank);
    MPI_Comm_disconnect(&workers);
    MPI_Finalize();
    return wrong;
}
