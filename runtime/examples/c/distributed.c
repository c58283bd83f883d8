/* An array that is distributed over the ranks: each rank has a block, and puts values into the blocks of all others.
 * Each rank computes the squares of the numbers that are its rank modulo the number of ranks, and puts them into the
 * array at their places. A datatype puts all squares for one rank in one call.
 *
 *     mpicc distributed.c -o distributed && mpiexec -n 4 ./distributed     (any number of ranks)
 */
#include <mpi.h>
#include <stdio.h>

enum { BLOCK = 60 }; /* number of values at each rank */

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long long *block;
    MPI_Win window;
    MPI_Win_allocate(BLOCK * sizeof *block, sizeof *block, MPI_INFO_NULL, MPI_COMM_WORLD, &block, &window);

    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    for (int owner = 0; owner < size; owner++) {
        /* The numbers of this rank in the block of the owner: `first`, and then every `size`-th. */
        int start = owner * BLOCK, first = (rank + size - start % size) % size, count = 0;
        long long squares[BLOCK];
        for (int i = first; i < BLOCK; i += size) {
            long long number = start + i;
            squares[count++] = number * number;
        }
        MPI_Datatype every;
        MPI_Type_vector(count, 1, size, MPI_LONG_LONG, &every);
        MPI_Type_commit(&every);
        MPI_Put(squares, count, MPI_LONG_LONG, owner, first, 1, every, window);
        MPI_Type_free(&every);
        /* The next round changes `squares`, so the put must have read them: the flush of an epoch between fences would
         * be an error, and so each round has a fence. */
        MPI_Win_fence(owner + 1 < size ? 0 : MPI_MODE_NOSUCCEED, window);
    }

    for (int i = 0; i < BLOCK; i++) {
        long long number = (long long)rank * BLOCK + i;
        wrong += block[i] != number * number;
    }
    printf("rank %d: %d of %d squares are wrong\n", rank, wrong, BLOCK);
    MPI_Win_free(&window);
    MPI_Finalize();
    return wrong > 0;
}
