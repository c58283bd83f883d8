/* Two halo exchanges, each in four ways: nonblocking messages with subarray datatypes, one
 * MPI_Neighbor_alltoallw, its persistent form, and messages that the program packs by hand. The
 * first exchange is that of a 5-point stencil in two dimensions, on a Cartesian communicator. The
 * second is that of a 27-point stencil in three dimensions, on a distributed graph with one edge for
 * each of the 26 directions. The program checks every halo cell. The four ways take turns for some rounds, and
 * the program prints the median of the rounds: the time per exchange.
 *
 *     mpicc halos.c -o halos && mpiexec -n 4 ./halos [CELLS [EXCHANGES]]     (any number of ranks)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 3, SIDES = 26, WAYS = 4, ROUNDS = 9 };

static const char *const WAY[WAYS] = {"subarrays", "neighbours", "persistent", "by hand"};

/* One exchange: the grid, this rank's array, and what travels towards each side. A side is a step of -1, 0 or
 * 1 along each dimension. */
struct halo {
    MPI_Comm grid, comm; /* the grid of ranks, and the communicator of the neighbourhood collective */
    int ndims, sides, cells, dims[DIMS], coords[DIMS];
    int step[SIDES][DIMS];
    int to[SIDES], from[SIDES]; /* the ranks at the side and at the opposite side */
    /* The cells that this rank sends towards the side, and the halo cells that receive one message. The
     * function `begin` says which message. */
    MPI_Datatype send[SIDES], recv[SIDES];
    /* The other arrays of the neighbourhood collective. The persistent form may read them until its request
     * is freed. */
    int counts[SIDES];
    MPI_Aint displacements[SIDES];
    double *array, *out[SIDES], *in[SIDES];
    int count[SIDES];
    MPI_Request kept;
};

/* Finds the cells that this rank sends towards a side, or the halo cells at the opposite side, in which it
 * receives the message that travels towards the side. Dimensions that are not used have one cell. */
static void region(const struct halo *h, int side, int receive, int start[DIMS], int extent[DIMS])
{
    for (int d = 0; d < DIMS; d++) {
        int step = h->step[side][d];
        start[d] = d < h->ndims, extent[d] = d < h->ndims ? h->cells : 1;
        if (step == 0) continue;
        extent[d] = 1;
        if (receive) start[d] = step < 0 ? h->cells + 1 : 0;
        else start[d] = step < 0 ? 1 : h->cells;
    }
}

static int width(const struct halo *h, int d) { return d < h->ndims ? h->cells + 2 : 1; }

static double *cell(const struct halo *h, int i, int j, int k)
{
    return h->array + ((size_t)i * width(h, 1) + j) * width(h, 2) + k;
}

/* Copies the cells of a region to `buffer`, or back if `unpack` is true. */
static void copy(const struct halo *h, int side, int unpack, double *buffer)
{
    int s[DIMS], n[DIMS];
    region(h, side, unpack, s, n);
    for (int i = s[0]; i < s[0] + n[0]; i++)
        for (int j = s[1]; j < s[1] + n[1]; j++) {
            double *row = cell(h, i, j, s[2]);
            if (unpack) memcpy(row, buffer, n[2] * sizeof *row);
            else memcpy(buffer, row, n[2] * sizeof *row);
            buffer += n[2];
        }
}

static MPI_Datatype subarray(const struct halo *h, int side, int receive)
{
    int start[DIMS], extent[DIMS], whole[DIMS];
    MPI_Datatype type;
    region(h, side, receive, start, extent);
    for (int d = 0; d < DIMS; d++) whole[d] = width(h, d);
    MPI_Type_create_subarray(DIMS, whole, extent, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Returns the rank at a side (`sign` 1) or at the opposite side (`sign` -1). All dimensions are periodic. */
static int neighbour(const struct halo *h, int side, int sign)
{
    int coords[DIMS], rank;
    for (int d = 0; d < h->ndims; d++) coords[d] = h->coords[d] + sign * h->step[side][d];
    MPI_Cart_rank(h->grid, coords, &rank);
    return rank;
}

static void begin(struct halo *h, int ndims, int cells)
{
    int size, rank, periodic[DIMS] = {1, 1, 1};
    size_t bytes = sizeof(double);
    memset(h, 0, sizeof *h);
    h->ndims = ndims, h->cells = cells;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, ndims, h->dims);
    MPI_Cart_create(MPI_COMM_WORLD, ndims, h->dims, periodic, 1, &h->grid);
    MPI_Comm_rank(h->grid, &rank);
    MPI_Cart_coords(h->grid, rank, ndims, h->coords);
    if (ndims == 2) {
        /* MPI's order of the neighbours in a grid: -1 and +1 along dimension 0, then along dimension 1. */
        for (int d = 0; d < 2; d++) h->step[2 * d][d] = -1, h->step[2 * d + 1][d] = 1;
        h->sides = 4;
    } else {
        for (int n = 0; n < 27; n++) {
            if (n == 13) continue;
            int *step = h->step[h->sides++];
            step[0] = n / 9 - 1, step[1] = n / 3 % 3 - 1, step[2] = n % 3 - 1;
        }
    }
    for (int d = 0; d < DIMS; d++) bytes *= width(h, d);
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &h->array);
    for (int s = 0; s < h->sides; s++) {
        int start[DIMS], extent[DIMS];
        h->to[s] = neighbour(h, s, 1), h->from[s] = neighbour(h, s, -1);
        h->send[s] = subarray(h, s, 0), h->recv[s] = subarray(h, s, 1);
        region(h, s, 0, start, extent);
        h->count[s] = extent[0] * extent[1] * extent[2];
        h->out[s] = malloc(h->count[s] * sizeof(double)), h->in[s] = malloc(h->count[s] * sizeof(double));
        if (!h->out[s] || !h->in[s]) MPI_Abort(MPI_COMM_WORLD, 1);
        h->counts[s] = 1;
    }
    if (ndims == 2) {
        /* In a grid, entry s of the receive arrays is for the neighbour at side s, whose message travels
         * towards the opposite side. */
        for (int s = 0; s < h->sides; s += 2) {
            MPI_Datatype lower = h->recv[s];
            h->recv[s] = h->recv[s + 1], h->recv[s + 1] = lower;
        }
        MPI_Comm_dup(h->grid, &h->comm);
    } else {
        /* In a distributed graph, the nth message from rank A to rank B arrives at the nth of B's edges from
         * A. So entry s of both arrays is for the message that travels towards side s. */
        MPI_Dist_graph_create_adjacent(h->grid, h->sides, h->from, MPI_UNWEIGHTED, h->sides, h->to,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &h->comm);
    }
    MPI_Neighbor_alltoallw_init(h->array, h->counts, h->displacements, h->send, h->array, h->counts,
                                h->displacements, h->recv, h->comm, MPI_INFO_NULL, &h->kept);
}

static void exchange(struct halo *h, int way)
{
    MPI_Request requests[2 * SIDES];
    int n = 0;
    switch (way) {
    case 0:
        /* Tags tell the sides apart: one rank may be the neighbour at several sides. */
        for (int s = 0; s < h->sides; s++) {
            int entry = h->ndims == 2 ? s ^ 1 : s;
            MPI_Irecv(h->array, 1, h->recv[entry], h->from[s], s, h->grid, &requests[n++]);
        }
        for (int s = 0; s < h->sides; s++)
            MPI_Isend(h->array, 1, h->send[s], h->to[s], s, h->grid, &requests[n++]);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        break;
    case 1:
        MPI_Neighbor_alltoallw(h->array, h->counts, h->displacements, h->send, h->array, h->counts,
                               h->displacements, h->recv, h->comm);
        break;
    case 2:
        MPI_Start(&h->kept);
        MPI_Wait(&h->kept, MPI_STATUS_IGNORE);
        break;
    case 3:
        for (int s = 0; s < h->sides; s++)
            MPI_Irecv(h->in[s], h->count[s], MPI_DOUBLE, h->from[s], s, h->grid, &requests[n++]);
        for (int s = 0; s < h->sides; s++) {
            copy(h, s, 0, h->out[s]);
            MPI_Isend(h->out[s], h->count[s], MPI_DOUBLE, h->to[s], s, h->grid, &requests[n++]);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int s = 0; s < h->sides; s++) copy(h, s, 1, h->in[s]);
        break;
    }
}

/* Compares all cells with a number that depends on `salt` and on the place of the cell in the whole grid.
 * Returns how many cells are wrong. If `set` is true, sets the owned cells to this number and all others to
 * -1 instead, and returns 0. */
static long walk(struct halo *h, double salt, int set)
{
    long wrong = 0;
    for (int i = 0; i < width(h, 0); i++)
        for (int j = 0; j < width(h, 1); j++)
            for (int k = 0; k < width(h, 2); k++) {
                int at[DIMS] = {i, j, k}, outside = 0;
                double number = salt;
                for (int d = 0; d < h->ndims; d++) {
                    int all = h->dims[d] * h->cells;
                    outside += at[d] == 0 || at[d] == h->cells + 1;
                    number = number * all + (h->coords[d] * h->cells + at[d] - 1 + all) % all;
                }
                /* A 5-point stencil does not use the corners, and nobody sends to them. */
                if (h->ndims == 2 && outside == 2) number = -1;
                if (set) *cell(h, i, j, k) = outside ? -1 : number;
                else wrong += *cell(h, i, j, k) != number;
            }
    return wrong;
}

static void end(struct halo *h)
{
    MPI_Request_free(&h->kept);
    for (int s = 0; s < h->sides; s++) {
        MPI_Type_free(&h->send[s]), MPI_Type_free(&h->recv[s]);
        free(h->out[s]), free(h->in[s]);
    }
    MPI_Free_mem(h->array);
    MPI_Comm_free(&h->comm), MPI_Comm_free(&h->grid);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank;
    long wrong = 0;
    MPI_Init(&argc, &argv);
    int cells = argc > 1 ? atoi(argv[1]) : 8, exchanges = argc > 2 ? atoi(argv[2]) : 3;
    if (cells < 1 || exchanges < 1) {
        fprintf(stderr, "halos: CELLS and EXCHANGES must be at least 1\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int ndims = 2; ndims <= 3; ndims++) {
        struct halo h;
        begin(&h, ndims, cells);
        double times[WAYS][ROUNDS];
        long missed[WAYS] = {0};
        for (int round = 0; round < ROUNDS; round++)
            for (int way = 0; way < WAYS; way++) {
                walk(&h, 1 + way, 1);
                exchange(&h, way);
                missed[way] += walk(&h, 1 + way, 0);
                MPI_Barrier(MPI_COMM_WORLD);
                double time = MPI_Wtime();
                for (int n = 0; n < exchanges; n++) exchange(&h, way);
                times[way][round] = (MPI_Wtime() - time) / exchanges;
                missed[way] += walk(&h, 1 + way, 0);
            }
        for (int way = 0; way < WAYS; way++) {
            qsort(times[way], ROUNDS, sizeof(double), ascending);
            printf("rank %d: %2d-point, %-10s %ld wrong cells, %.1f us\n", rank, ndims == 2 ? 5 : 27, WAY[way],
                   missed[way], 1e6 * times[way][ROUNDS / 2]);
            wrong += missed[way];
        }
        end(&h);
    }
    MPI_Finalize();
    return wrong != 0;
}
