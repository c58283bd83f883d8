/* A checkpoint without a file. Every rank packs its state (a struct and the inner cells of a field)
 * into one buffer and sends the buffer to its right neighbour, which keeps it. After a loss, the
 * neighbour sends the buffer back and the rank unpacks its state from it.
 *
 *     mpicc checkpoint.c -o checkpoint && mpiexec -n 2 ./checkpoint        (any number of ranks)
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 10, COLUMNS = 14 };

struct header {
    int step;
    double time;
};

int main(int argc, char **argv)
{
    struct header saved = {40, 0.125}, header = {0, 0};
    double field[ROWS][COLUMNS];
    MPI_Datatype header_type, inner;
    int rank, size, bytes, total, position = 0, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    /* The struct has a gap after its int. The datatype skips the gap. */
    int lengths[] = {1, 1};
    MPI_Aint places[] = {offsetof(struct header, step), offsetof(struct header, time)};
    MPI_Datatype members[] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, members, &header_type);
    MPI_Type_commit(&header_type);
    /* This datatype is the field without its outermost cells. */
    int sizes[] = {ROWS, COLUMNS}, inner_sizes[] = {ROWS - 2, COLUMNS - 2}, starts[] = {1, 1};
    MPI_Type_create_subarray(2, sizes, inner_sizes, starts, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);

    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            field[i][j] = 1000.0 * rank + 20.0 * i + j;

    /* Pack the state. Each call appends one part to the buffer and advances the position. */
    MPI_Pack_size(1, header_type, MPI_COMM_WORLD, &total);
    MPI_Pack_size(1, inner, MPI_COMM_WORLD, &bytes);
    total += bytes;
    char *buffer = malloc(total), *kept = malloc(total);
    if (!buffer || !kept)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Pack(&saved, 1, header_type, buffer, total, &position, MPI_COMM_WORLD);
    MPI_Pack(field, 1, inner, buffer, total, &position, MPI_COMM_WORLD);
    bytes = position;

    /* The neighbour keeps the checkpoint; later it sends the checkpoint back. */
    MPI_Sendrecv(buffer, bytes, MPI_PACKED, right, 0, kept, total, MPI_PACKED, left, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(buffer, 0, total);
    memset(field, 0, sizeof field);
    MPI_Sendrecv(kept, bytes, MPI_PACKED, left, 1, buffer, total, MPI_PACKED, right, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    /* Unpack the state in the order in which it was packed. */
    position = 0;
    MPI_Unpack(buffer, bytes, &position, &header, 1, header_type, MPI_COMM_WORLD);
    MPI_Unpack(buffer, bytes, &position, field, 1, inner, MPI_COMM_WORLD);

    wrong += header.step != saved.step || header.time != saved.time || position != bytes;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            int halo = i == 0 || i == ROWS - 1 || j == 0 || j == COLUMNS - 1;
            wrong += field[i][j] != (halo ? 0.0 : 1000.0 * rank + 20.0 * i + j);
        }
    printf("rank %d: restored step %d from %d bytes, %d errors\n", rank, header.step, bytes, wrong);

    free(buffer);
    free(kept);
    MPI_Type_free(&header_type);
    MPI_Type_free(&inner);
    MPI_Finalize();
    return wrong != 0;
}
