/* A stencil over a shared window: the ranks smooth an array, and read the cells of their neighbours directly. In each
 * step, a cell becomes the mean of itself and its two neighbours. Each rank has a block of the array; the window has
 * all blocks in one piece, so no cell is copied to a halo. Two windows take turns: a step reads from one and writes
 * to the other.
 *
 *     mpicc stencil.c -o stencil && mpiexec -n 4 ./stencil     (any number of ranks)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 50, STEPS = 40 }; /* number of cells at each rank, and of steps */

static double start(int cell) { return cell * cell % 17; }

static double mean(double left, double here, double right) { return (left + here + right) / 3.0; }

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int all = size * CELLS, first = rank * CELLS;
    MPI_Win window[2];
    double *cells[2]; /* all cells of each window, from the first cell of rank 0 on */
    for (int i = 0; i < 2; i++) {
        double *own;
        MPI_Aint bytes;
        int unit;
        MPI_Win_allocate_shared(CELLS * sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window[i]);
        MPI_Win_shared_query(window[i], 0, &bytes, &unit, &cells[i]);
    }
    for (int cell = first; cell < first + CELLS; cell++)
        cells[0][cell] = start(cell);

    for (int step = 0; step < STEPS; step++) {
        const double *from = cells[step % 2];
        double *to = cells[(step + 1) % 2];
        /* Makes the cells that the neighbours have written in the last step visible here. All ranks have also read what
         * this step overwrites. */
        MPI_Win_fence(0, window[step % 2]);
        /* The array is a ring: the neighbour of the last cell is the first one. */
        for (int cell = first; cell < first + CELLS; cell++)
            to[cell] = mean(from[(cell + all - 1) % all], from[cell], from[(cell + 1) % all]);
    }
    MPI_Win_fence(0, window[STEPS % 2]);

    /* Computes the same without other ranks. */
    double *one = malloc(2 * (size_t)all * sizeof *one), *other = one + all;
    for (int cell = 0; cell < all; cell++)
        one[cell] = start(cell);
    for (int step = 0; step < STEPS; step++) {
        const double *from = step % 2 == 0 ? one : other;
        double *to = step % 2 == 0 ? other : one;
        for (int cell = 0; cell < all; cell++)
            to[cell] = mean(from[(cell + all - 1) % all], from[cell], from[(cell + 1) % all]);
    }
    for (int cell = first; cell < first + CELLS; cell++)
        wrong += cells[STEPS % 2][cell] != (STEPS % 2 == 0 ? one : other)[cell];
    free(one);
    printf("rank %d: %d of %d cells are wrong after %d steps\n", rank, wrong, CELLS, STEPS);
    for (int i = 0; i < 2; i++) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window[i]);
        MPI_Win_free(&window[i]);
    }
    MPI_Finalize();
    return wrong > 0;
}
