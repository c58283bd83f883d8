/* A halo exchange in two dimensions. The ranks stand side by side along x and exchange columns,
 * which are not contiguous in memory. Every rank has one column of halo cells on its left side and
 * one on its right side.
 *
 *     mpicc halo.c -o halo && mpiexec -n 4 ./halo        (any number of ranks)
 */
#include <mpi.h>
#include <stdio.h>

enum { NY = 64, NX = 32, WIDTH = NX + 2 };

int main(int argc, char **argv)
{
    static double cells[NY][WIDTH];
    MPI_Datatype column;
    MPI_Request requests[4];
    int rank, size, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    MPI_Type_vector(NY, 1, WIDTH, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);

    for (int y = 0; y < NY; y++)
        for (int x = 1; x <= NX; x++)
            cells[y][x] = 10000.0 * rank + 100.0 * y + x;

    /* Tag 0 travels to the left, tag 1 to the right: with 2 ranks both neighbours are one rank. */
    MPI_Irecv(&cells[0][0], 1, column, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&cells[0][NX + 1], 1, column, right, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&cells[0][1], 1, column, left, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&cells[0][NX], 1, column, right, 1, MPI_COMM_WORLD, &requests[3]);
    /* Cells that need no halo could be computed here. */
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);

    for (int y = 0; y < NY; y++) {
        wrong += cells[y][0] != 10000.0 * left + 100.0 * y + NX;
        wrong += cells[y][NX + 1] != 10000.0 * right + 100.0 * y + 1;
    }
    printf("rank %d: %d wrong halo cells\n", rank, wrong);

    MPI_Type_free(&column);
    MPI_Finalize();
    return wrong != 0;
}
