/* Exchanges like those of applications, for jobs over several hosts. Each rank writes what it has received to a file.
 *
 *     mpiexec -n N ./hosts FILE        (writes FILE.0, FILE.1, ...)
 *
 * The ranks stand on a ring. Each layout travels to the right neighbour, in several calls and counts: columns and faces
 * of a field, four fields at once, particles at irregular places, structs with gaps, a transposed matrix. Then the
 * ranks exchange the six faces of a cube, and blocks of different types by MPI_Neighbor_alltoallw.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "older.h"

static int rank, size, left, right;
static FILE *out;

static void stop(const char *what)
{
    fprintf(stderr, "hosts: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define OK(call) do { if ((call) != MPI_SUCCESS) stop(#call); } while (0)

/* Bytes that depend on the rank, so that the file shows from where they came. */
static unsigned char *memory(size_t bytes, int of)
{
    unsigned char *m = malloc(bytes);
    if (!m) stop("no memory");
    for (size_t i = 0; i < bytes; i++) m[i] = (unsigned char)((i * 2654435761u >> 11) + 31u * (unsigned)of);
    return m;
}

static void keep(const void *data, size_t bytes)
{
    if (fwrite(data, 1, bytes, out) != bytes) stop("the file could not be written");
}

/* Sends `count` elements to the right and receives as many from the left, in three ways. */
static void exchange(MPI_Datatype type, int count)
{
    MPI_Count lb, extent, true_lb, true_extent;
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_get_extent_c(type, &lb, &extent));
    OK(MPI_Type_get_true_extent_c(type, &true_lb, &true_extent));
    size_t bytes = (size_t)(true_lb + true_extent + (count - 1) * extent);
    unsigned char *from = memory(bytes, rank), *to = malloc(bytes);
    if (!to || true_lb < 0) stop("no memory");
    for (int how = 0; how < 3; how++)
        for (int turn = 0; turn < 2; turn++) {
            MPI_Request q[2];
            MPI_Status status[2];
            int got;
            memset(to, 0, bytes);
            from[0] = (unsigned char)turn;
            switch (how) {
            case 0:
                OK(MPI_Sendrecv(from, count, type, right, how, to, count, type, left, how, MPI_COMM_WORLD, &status[0]));
                break;
            case 1:
                OK(MPI_Irecv(to, count, type, left, how, MPI_COMM_WORLD, &q[0]));
                OK(MPI_Isend(from, count, type, right, how, MPI_COMM_WORLD, &q[1]));
                OK(MPI_Waitall(2, q, status));
                break;
            default:
                OK(MPI_Recv_init(to, count, type, left, how, MPI_COMM_WORLD, &q[0]));
                OK(MPI_Send_init(from, count, type, right, how, MPI_COMM_WORLD, &q[1]));
                OK(MPI_Startall(2, q));
                OK(MPI_Waitall(2, q, status));
                OK(MPI_Request_free(&q[0]));
                OK(MPI_Request_free(&q[1]));
            }
            OK(MPI_Get_count(&status[0], type, &got));
            if (got != count || status[0].MPI_SOURCE != left || status[0].MPI_TAG != how) stop("a status is wrong");
            keep(to, bytes);
        }
    free(from);
    free(to);
    OK(MPI_Type_free(&type));
}

static void layouts(void)
{
    MPI_Datatype type, inner, parts[4];
    int n = 40;
    /* Columns of a field of doubles, and more than one of them. */
    OK(MPI_Type_vector(256, 1, 150, MPI_DOUBLE, &inner));
    OK(MPI_Type_create_resized(inner, 0, sizeof(double), &type));
    OK(MPI_Type_free(&inner));
    exchange(type, 5);
    /* The three faces of a cube. */
    for (int face = 0; face < 3; face++) {
        int sizes[3] = {n, n, n}, part[3] = {n, n, n}, at[3] = {0, 0, 0};
        part[face] = 2;
        at[face] = 1;
        OK(MPI_Type_create_subarray(3, sizes, part, at, MPI_ORDER_C, MPI_DOUBLE, &type));
        exchange(type, 1);
    }
    /* Four fields of a weather model at once. */
    int lengths[4] = {1, 1, 1, 1};
    MPI_Aint places[4];
    for (int f = 0; f < 4; f++) {
        int sizes[3] = {n, 20, n}, part[3] = {n, 20, 3}, at[3] = {0, 0, f};
        OK(MPI_Type_create_subarray(3, sizes, part, at, MPI_ORDER_C, MPI_FLOAT, &parts[f]));
        places[f] = (MPI_Aint)f * n * 20 * n * (MPI_Aint)sizeof(float);
    }
    OK(MPI_Type_create_struct(4, lengths, places, parts, &type));
    for (int f = 0; f < 4; f++) OK(MPI_Type_free(&parts[f]));
    exchange(type, 1);
    /* Particles at irregular places. */
    int where[2000];
    for (int i = 0; i < 2000; i++) where[i] = 7 * i + (i * 37) % 6;
    OK(MPI_Type_create_indexed_block(2000, 1, where, MPI_DOUBLE, &type));
    exchange(type, 1);
    OK(MPI_Type_create_indexed_block(2000, 1, where, MPI_CHAR, &type));
    exchange(type, 3);
    /* Structs {char, int, double} with gaps. */
    int one[3] = {1, 1, 1};
    MPI_Aint at[3] = {0, 4, 8};
    MPI_Datatype members[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct(3, one, at, members, &type));
    exchange(type, 10000);
    /* A matrix of complex numbers, transposed. */
    OK(MPI_Type_vector(128, 2, 256, MPI_DOUBLE, &inner));
    OK(MPI_Type_create_hvector(128, 1, 16, inner, &type));
    OK(MPI_Type_free(&inner));
    exchange(type, 1);
}

enum { EDGE = 50 };

/* Several steps of a halo exchange along all dimensions of a grid of ranks. */
static void halo(void)
{
    int dims[3] = {0, 0, 0}, periods[3] = {1, 1, 1};
    MPI_Comm grid;
    MPI_Datatype out_face[6], in_face[6];
    size_t cells = (size_t)EDGE * EDGE * EDGE;
    OK(MPI_Dims_create(size, 3, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid));
    double *field = malloc(cells * sizeof *field);
    if (!field) stop("no memory");
    for (size_t i = 0; i < cells; i++) field[i] = (double)rank + 1e-6 * (double)i;
    int counts[6];
    MPI_Aint places[6] = {0};
    for (int side = 0; side < 6; side++) {
        int d = side / 2, up = side % 2, sizes[3] = {EDGE, EDGE, EDGE}, part[3], at[3];
        for (int i = 0; i < 3; i++) part[i] = i == d ? 1 : EDGE - 2, at[i] = 1;
        counts[side] = 1;
        at[d] = up ? EDGE - 2 : 1;
        OK(MPI_Type_create_subarray(3, sizes, part, at, MPI_ORDER_C, MPI_DOUBLE, &out_face[side]));
        OK(MPI_Type_commit(&out_face[side]));
        at[d] = up ? EDGE - 1 : 0;
        OK(MPI_Type_create_subarray(3, sizes, part, at, MPI_ORDER_C, MPI_DOUBLE, &in_face[side]));
        OK(MPI_Type_commit(&in_face[side]));
    }
    for (int step = 0; step < 20; step++) {
        if (step % 2) {
            OK(MPI_Neighbor_alltoallw(field, counts, places, out_face, field, counts, places, in_face, grid));
        } else {
            MPI_Request q[12];
            for (int side = 0; side < 6; side++) {
                int low, high;
                OK(MPI_Cart_shift(grid, side / 2, 1, &low, &high));
                int peer = side % 2 ? high : low;
                /* A message has the tag of the side from which it comes. */
                OK(MPI_Irecv(field, 1, in_face[side], peer, side ^ 1, grid, &q[side]));
                OK(MPI_Isend(field, 1, out_face[side], peer, side, grid, &q[6 + side]));
            }
            OK(MPI_Waitall(12, q, MPI_STATUSES_IGNORE));
        }
        /* The cells beside the halo change, so that the next step sends something else. */
        for (size_t i = 0; i + 1 < cells; i += 3) field[i] = 0.5 * field[i] + 0.25 * field[i + 1];
    }
    keep(field, cells * sizeof *field);
    free(field);
    for (int side = 0; side < 6; side++) {
        OK(MPI_Type_free(&out_face[side]));
        OK(MPI_Type_free(&in_face[side]));
    }
    OK(MPI_Comm_free(&grid));
}

/* Each neighbour gets other elements in another layout. */
static void neighbours(void)
{
    int sources[2] = {left, right}, targets[2] = {left, right}, counts[2] = {2, 3};
    MPI_Aint from_at[2] = {0, 64000}, to_at[2] = {128, 70000};
    MPI_Comm ring;
    MPI_Datatype sends[2], receives[2];
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED,
        MPI_INFO_NULL, 0, &ring));
    /* 1000 doubles go to the left, and 6300 short integers to the right. They come from the other side, in other types:
     * counts[i] elements of sends[i] are as many as wanted[1 - i] elements of receives[1 - i]. */
    int wanted[2] = {3, 2};
    OK(MPI_Type_vector(500, 1, 3, MPI_DOUBLE, &sends[0]));
    OK(MPI_Type_vector(700, 3, 7, MPI_SHORT, &sends[1]));
    OK(MPI_Type_vector(2100, 1, 2, MPI_SHORT, &receives[0]));
    OK(MPI_Type_vector(100, 5, 9, MPI_DOUBLE, &receives[1]));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Type_commit(&sends[i]));
        OK(MPI_Type_commit(&receives[i]));
    }
    size_t bytes = 200000;
    unsigned char *from = memory(bytes, rank), *to = calloc(bytes, 1);
    if (!to) stop("no memory");
    for (int turn = 0; turn < 6; turn++) {
        MPI_Request q;
        if (turn % 2) {
            OK(MPI_Ineighbor_alltoallw(from, counts, from_at, sends, to, wanted, to_at, receives, ring, &q));
            OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Neighbor_alltoallw(from, counts, from_at, sends, to, wanted, to_at, receives, ring));
        }
        keep(to, bytes);
        from[turn] ^= 0x5a;
    }
    free(from);
    free(to);
    for (int i = 0; i < 2; i++) {
        OK(MPI_Type_free(&sends[i]));
        OK(MPI_Type_free(&receives[i]));
    }
    OK(MPI_Comm_free(&ring));
}

int main(int argc, char **argv)
{
    char name[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    if (argc != 2) stop("usage: hosts FILE");
    snprintf(name, sizeof name, "%s.%d", argv[1], rank);
    out = fopen(name, "wb");
    if (!out) stop("the file could not be made");
    layouts();
    halo();
    /* Two neighbours of one rank would be the same rank: then the order of the blocks is another one. */
    if (size > 2) neighbours();
    if (fclose(out) != 0) stop("the file could not be written");
    MPI_Finalize();
    return 0;
}
