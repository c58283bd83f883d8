/* Tests the topologies of communicators: grids, graphs and distributed graphs, their queries, and wrong
 * arguments. Every rank compares what the library says with what it computes itself. */
#include "messages.h"

enum { MOST = 4, LIMIT = 64 };

static int kind_of(MPI_Comm comm)
{
    int kind = -1;
    OK(MPI_Topo_test(comm, &kind));
    return kind;
}

/* Returns the rank at `coords`; MPI_PROC_NULL if there is none. */
static int place_of(int ndims, const int *dims, const int *periods, const int *coords)
{
    int place = 0;
    for (int d = 0; d < ndims; d++) {
        int coord = coords[d];
        if (periods[d]) coord = (coord % dims[d] + dims[d]) % dims[d];
        if (coord < 0 || coord >= dims[d]) return MPI_PROC_NULL;
        place = place * dims[d] + coord;
    }
    return place;
}

/* Checks all queries of a grid. */
static void check_grid(MPI_Comm comm, int ndims, const int *dims, const int *periods)
{
    int count = -1, me = -1, mine[MOST] = {0}, nodes = 1;
    for (int d = 0; d < ndims; d++) nodes *= dims[d];
    CHECK(kind_of(comm) == MPI_CART);
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &count));
    CHECK(count == nodes);
    OK(MPI_Cartdim_get(comm, &count));
    CHECK(count == ndims);
    int got_dims[MOST + 1], got_periods[MOST + 1], got_coords[MOST + 1];
    for (int d = 0; d <= MOST; d++) got_dims[d] = got_periods[d] = got_coords[d] = -5;
    OK(MPI_Cart_get(comm, MOST, got_dims, got_periods, got_coords));
    for (int d = 0; d < ndims; d++) CHECK(got_dims[d] == dims[d] && got_periods[d] == periods[d]);
    CHECK(got_dims[ndims] == -5 && got_periods[ndims] == -5 && got_coords[ndims] == -5);
    for (int r = 0; r < nodes; r++) {
        int coords[MOST + 1], found = -1;
        coords[ndims] = -5;
        OK(MPI_Cart_coords(comm, r, ndims, coords));
        CHECK(coords[ndims] == -5);
        CHECK(place_of(ndims, dims, periods, coords) == r);
        OK(MPI_Cart_rank(comm, coords, &found));
        CHECK(found == r);
        if (r == me) memcpy(mine, coords, sizeof mine);
        for (int d = 0; d < ndims; d++)
            for (int step = -3; step <= 3; step++) {
                coords[d] += step;
                int wanted = place_of(ndims, dims, periods, coords);
                if (wanted == MPI_PROC_NULL) {
                    RAISES(MPI_ERR_ARG, MPI_Cart_rank(comm, coords, &found));
                } else {
                    OK(MPI_Cart_rank(comm, coords, &found));
                    CHECK(found == wanted);
                }
                coords[d] -= step;
            }
    }
    CHECK(memcmp(mine, got_coords, ndims * sizeof *mine) == 0);
    for (int d = 0; d < ndims; d++)
        for (int step = -7; step <= 7; step++) {
            int source = -7, dest = -7;
            OK(MPI_Cart_shift(comm, d, step, &source, &dest));
            mine[d] += step;
            CHECK(dest == place_of(ndims, dims, periods, mine));
            mine[d] -= 2 * step;
            CHECK(source == place_of(ndims, dims, periods, mine));
            mine[d] += step;
        }
}

/* Checks the slices of a grid along every choice of dimensions. Each slice is used for a message. */
static void check_slices(MPI_Comm grid, int ndims, const int *dims, const int *periods)
{
    int me, mine[MOST];
    OK(MPI_Comm_rank(grid, &me));
    OK(MPI_Cart_coords(grid, me, MOST, mine));
    for (int bits = 0; bits < 1 << ndims; bits++) {
        int remain[MOST], kept[MOST], wraps[MOST], here[MOST], left = 0, number = 0, sum = -1, wanted = 0;
        for (int d = 0; d < ndims; d++) {
            /* Any number but 0 is true. */
            remain[d] = bits >> d & 1 ? 1 + 4 * d : 0;
            if (remain[d]) {
                kept[left] = dims[d], wraps[left] = periods[d], here[left] = mine[d];
                left++;
            } else {
                number = number * dims[d] + mine[d];
            }
        }
        MPI_Comm slice;
        OK(MPI_Cart_sub(grid, remain, &slice));
        check_grid(slice, left, kept, wraps);
        int place = -1, in_slice;
        OK(MPI_Comm_rank(slice, &in_slice));
        OK(MPI_Cart_rank(slice, here, &place));
        CHECK(place == in_slice);
        /* All ranks of a slice have the same number. */
        OK(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, slice));
        OK(MPI_Comm_size(slice, &wanted));
        CHECK(sum == number * wanted);
        OK(MPI_Comm_free(&slice));
    }
}

static void grids(void)
{
    static const int shapes[][MOST + 1] = {
        {0}, {1, 1}, {1, 2}, {1, 3}, {1, 5}, {1, 8}, {2, 1, 1}, {2, 2, 1}, {2, 1, 2}, {2, 2, 2}, {2, 1, 5},
        {2, 4, 2}, {3, 1, 2, 1}, {3, 1, 1, 3}, {3, 2, 2, 2}, {4, 1, 2, 1, 1}, {4, 2, 1, 2, 2}, {1, 7},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int ndims = shapes[s][0], nodes = 1, periods[MOST] = {0};
        const int *dims = shapes[s] + 1;
        for (int d = 0; d < ndims; d++) nodes *= dims[d];
        for (int bits = 0; bits < 1 << ndims; bits++) {
            MPI_Comm grid = MPI_COMM_WORLD;
            int reorder = bits & 1;
            for (int d = 0; d < ndims; d++) periods[d] = bits >> d & 1;
            if (nodes > size) {
                RAISES(MPI_ERR_DIMS,
                       MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, reorder, &grid));
                CHECK(grid == MPI_COMM_WORLD);
                continue;
            }
            int mapped = -7, place;
            if (ndims > 0) {
                /* A grid with a dimension of 0 has no ranks. */
                int empty[MOST];
                memcpy(empty, dims, sizeof empty);
                empty[ndims - 1] = 0;
                OK(MPI_Cart_map(MPI_COMM_WORLD, ndims, empty, periods, &mapped));
                CHECK(mapped == MPI_UNDEFINED);
                OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, empty, periods, reorder, &grid));
                CHECK(grid == MPI_COMM_NULL);
            }
            OK(MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, periods, &mapped));
            OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, reorder, &grid));
            if (grid == MPI_COMM_NULL) {
                CHECK(reorder ? mapped == MPI_UNDEFINED : rank >= nodes);
                continue;
            }
            OK(MPI_Comm_rank(grid, &place));
            CHECK(place == (reorder ? mapped : rank));
            check_grid(grid, ndims, dims, periods);
            check_slices(grid, ndims, dims, periods);
            /* Duplicates keep the topology; other new communicators have none. */
            MPI_Comm copy, other;
            MPI_Request request;
            OK(MPI_Comm_dup(grid, &copy));
            check_grid(copy, ndims, dims, periods);
            OK(MPI_Comm_free(&grid));
            check_slices(copy, ndims, dims, periods);
            OK(MPI_Comm_idup(copy, &other, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            check_grid(other, ndims, dims, periods);
            OK(MPI_Comm_free(&other));
            OK(MPI_Comm_split(copy, 0, 0, &other));
            CHECK(kind_of(other) == MPI_UNDEFINED);
            OK(MPI_Comm_free(&other));
            OK(MPI_Comm_free(&copy));
        }
    }
    /* A grid of a grid. */
    MPI_Comm line, ring;
    int one = 1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &line));
    OK(MPI_Cart_create(line, 1, &size, &(int){0}, 0, &ring));
    check_grid(line, 1, &size, &one);
    check_grid(ring, 1, &size, &(int){0});
    OK(MPI_Comm_free(&line));
    OK(MPI_Comm_free(&ring));
}

/* Tests the graphs of n nodes in which node r has r % 3 different neighbours, (r + 1) % n to (r + r % 3) % n, each of
 * them twice. */
static void graphs(void)
{
    for (int nodes = 0; nodes <= size + 1; nodes++) {
        int index[LIMIT], edges[6 * LIMIT], total = 0, mapped = -7, count = -7;
        for (int r = 0; r < nodes; r++) {
            for (int i = 0; i < 2 * (r % 3); i++) edges[total++] = (r + 1 + i / 2) % nodes;
            index[r] = total;
        }
        MPI_Comm graph = MPI_COMM_WORLD;
        if (nodes > size) {
            RAISES(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 0, &graph));
            continue;
        }
        OK(MPI_Graph_map(MPI_COMM_WORLD, nodes, index, edges, &mapped));
        CHECK(mapped == (rank < nodes ? rank : MPI_UNDEFINED));
        OK(MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 1, &graph));
        CHECK((graph == MPI_COMM_NULL) == (rank >= nodes));
        if (graph == MPI_COMM_NULL) continue;
        MPI_Comm copy;
        OK(MPI_Comm_dup(graph, &copy));
        OK(MPI_Comm_free(&graph));
        CHECK(kind_of(copy) == MPI_GRAPH);
        int got_nodes = -1, got_edges = -1;
        OK(MPI_Graphdims_get(copy, &got_nodes, &got_edges));
        CHECK(got_nodes == nodes && got_edges == total);
        int got_index[LIMIT], got[6 * LIMIT + 1];
        got[total] = -5;
        OK(MPI_Graph_get(copy, LIMIT, 6 * LIMIT, got_index, got));
        CHECK(memcmp(index, got_index, nodes * sizeof *index) == 0);
        CHECK(memcmp(edges, got, total * sizeof *edges) == 0 && got[total] == -5);
        for (int r = 0; r < nodes; r++) {
            int list[LIMIT];
            OK(MPI_Graph_neighbors_count(copy, r, &count));
            CHECK(count == 2 * (r % 3));
            list[count] = -5;
            OK(MPI_Graph_neighbors(copy, r, count, list));
            CHECK(memcmp(list, edges + index[r] - count, count * sizeof *list) == 0 && list[count] == -5);
        }
        RAISES(MPI_ERR_RANK, MPI_Graph_neighbors_count(copy, nodes, &count));
        RAISES(MPI_ERR_RANK, MPI_Graph_neighbors_count(copy, -1, &count));
        if (total > 0) {
            RAISES(MPI_ERR_ARG, MPI_Graph_get(copy, nodes, total - 1, got_index, got));
            RAISES(MPI_ERR_ARG, MPI_Graph_get(copy, nodes - 1, total, got_index, got));
        }
        OK(MPI_Comm_free(&copy));
    }
}

/* The edges of a distributed graph: rank r has r % 3 + 1 edges to each of the ranks r + 1 and 2 r (modulo the
 * number of ranks). Calls `each` with the ends and the weight of every edge, in the same order on all ranks. */
static void every_edge(void (*each)(int source, int dest, int weight, void *), void *with)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i <= r % 3; i++) {
            each(r, (r + 1) % size, 100 * r + i, with);
            each(r, 2 * r % size, 100 * r + 50 + i, with);
        }
}

struct list {
    int in, out;
    int sources[LIMIT], source_weights[LIMIT], dests[LIMIT], dest_weights[LIMIT];
};

static void add_mine(int source, int dest, int weight, void *with)
{
    struct list *list = with;
    if (dest == rank) list->sources[list->in] = source, list->source_weights[list->in++] = weight;
    if (source == rank) list->dests[list->out] = dest, list->dest_weights[list->out++] = weight;
}

/* Checks that the edges of this rank are those in `wanted`, in any order if `sorted` is 0. */
static void check_edges(MPI_Comm comm, const struct list *wanted, int weighted, int sorted)
{
    int in = -1, out = -1, flag = -1;
    struct list got;
    CHECK(kind_of(comm) == MPI_DIST_GRAPH);
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &flag));
    CHECK(in == wanted->in && out == wanted->out && !flag == !weighted);
    memset(&got, 0xab, sizeof got);
    OK(MPI_Dist_graph_neighbors(comm, in, got.sources, got.source_weights, out, got.dests, got.dest_weights));
    int untouched = got.dest_weights[0];
    for (int i = 0; i < in; i++) {
        int found = 0;
        for (int j = 0; j < in; j++)
            if (sorted ? i == j : 1)
                found += got.sources[j] == wanted->sources[i] &&
                         (!weighted || got.source_weights[j] == wanted->source_weights[i]);
        CHECK(found >= 1 && (!weighted || found == 1));
    }
    for (int i = 0; i < out; i++) {
        int found = 0;
        for (int j = 0; j < out; j++)
            if (sorted ? i == j : 1)
                found += got.dests[j] == wanted->dests[i] &&
                         (!weighted || got.dest_weights[j] == wanted->dest_weights[i]);
        CHECK(found >= 1 && (!weighted || found == 1));
    }
    if (!weighted) CHECK(untouched == (int)0xabababab);
    /* A constant in place of an array of weights means that the program does not want the weights. An array that is
     * too short for all edges gets the first ones. */
    int first = -5;
    OK(MPI_Dist_graph_neighbors(comm, 0, NULL, MPI_UNWEIGHTED, out > 0, &first, MPI_UNWEIGHTED));
    CHECK(first == (out > 0 ? got.dests[0] : -5));
    OK(MPI_Dist_graph_neighbors(comm, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY));
    RAISES(MPI_ERR_ARG, MPI_Dist_graph_neighbors(comm, -1, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
}

struct part {
    int n, sources[6 * LIMIT], degrees[6 * LIMIT], dests[6 * LIMIT], weights[6 * LIMIT], next;
};

/* Adds the edges that this rank passes to MPI_Dist_graph_create: one of every `size` edges, in turn with the other
 * ranks. Most of them are edges between other ranks. */
static void add_third(int source, int dest, int weight, void *with)
{
    struct part *part = with;
    if (part->next++ % size != (size - rank) % size) return;
    part->sources[part->n] = source, part->dests[part->n] = dest;
    part->degrees[part->n] = 1, part->weights[part->n++] = weight;
}

static void distributed_graphs(void)
{
    struct list wanted = {0};
    struct part part = {0};
    every_edge(add_mine, &wanted);
    every_edge(add_third, &part);
    for (int weighted = 0; weighted < 2; weighted++) {
        MPI_Comm graph, copy;
        int *to = weighted ? wanted.source_weights : MPI_UNWEIGHTED;
        int *from = weighted ? wanted.dest_weights : MPI_UNWEIGHTED;
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, wanted.in, wanted.sources, to, wanted.out,
                                          wanted.dests, from, MPI_INFO_NULL, 0, &graph));
        check_edges(graph, &wanted, weighted, 1);
        OK(MPI_Comm_dup(graph, &copy));
        OK(MPI_Comm_free(&graph));
        check_edges(copy, &wanted, weighted, 1);
        OK(MPI_Comm_free(&copy));
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, part.n, part.sources, part.degrees, part.dests,
                                 weighted ? part.weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &graph));
        check_edges(graph, &wanted, weighted, 0);
        OK(MPI_Comm_free(&graph));
        /* One rank knows all edges from rank 0; the other ranks know none. */
        struct list star = {0};
        int all[LIMIT], weights[LIMIT], last = size - 1;
        for (int r = 0; r < size; r++) all[r] = r, weights[r] = r + 7;
        star.in = 1, star.source_weights[0] = rank + 7;
        if (rank == 0) {
            star.out = size;
            memcpy(star.dests, all, sizeof all), memcpy(star.dest_weights, weights, sizeof weights);
        }
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == last, &(int){0}, &size, all,
                                 !weighted ? MPI_UNWEIGHTED : rank == last ? weights : MPI_WEIGHTS_EMPTY,
                                 MPI_INFO_NULL, 0, &graph));
        check_edges(graph, &star, weighted, 1);
        OK(MPI_Comm_free(&graph));
        /* A graph without edges. */
        struct list none = {0};
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL,
                                 weighted ? MPI_WEIGHTS_EMPTY : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
        check_edges(graph, &none, weighted, 1);
        OK(MPI_Comm_free(&graph));
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL,
                                          weighted ? MPI_WEIGHTS_EMPTY : MPI_UNWEIGHTED, 0, NULL,
                                          weighted ? MPI_WEIGHTS_EMPTY : MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                          &graph));
        check_edges(graph, &none, weighted, 1);
        OK(MPI_Comm_free(&graph));
    }
    /* If only rank 0 passes weights, all ranks get an error. */
    if (size > 1) {
        MPI_Comm graph = MPI_COMM_NULL;
        RAISES(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &(int){1}, &(int){0},
                                                  rank == 0 ? &size : MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                                  &graph));
    }
}

/* Calls that need another topology than the communicator has. */
static void wrong_topologies(void)
{
    MPI_Comm comms[4], made;
    int zero = 0, n = 0, a[8], b[8], c[8];
    comms[0] = MPI_COMM_WORLD;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &zero, 0, &comms[1]));
    int index[LIMIT], edges[LIMIT];
    for (int r = 0; r < size; r++) index[r] = r + 1, edges[r] = (r + 1) % size;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comms[2]));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &comms[3]));
    for (int i = 0; i < 4; i++) {
        if (i != 1) {
            RAISES(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(comms[i], &n));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Cart_get(comms[i], 1, a, b, c));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Cart_rank(comms[i], a, &n));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Cart_coords(comms[i], 0, 1, a));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Cart_shift(comms[i], 0, 1, a, b));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Cart_sub(comms[i], a, &made));
        }
        if (i != 2) {
            RAISES(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(comms[i], a, b));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Graph_get(comms[i], 8, 8, a, b));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(comms[i], 0, &n));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors(comms[i], 0, 8, a));
        }
        if (i != 3) {
            RAISES(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(comms[i], a, b, c));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors(comms[i], 8, a, b, 8, c, c));
        }
        if (i == 0) {
            MPI_Request request;
            RAISES(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, comms[i]));
            RAISES(MPI_ERR_TOPOLOGY,
                   MPI_Ineighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comms[i], &request));
            RAISES(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoallv_init(a, a, a, MPI_INT, b, b, b, MPI_INT,
                                                                 comms[i], MPI_INFO_NULL, &request));
        }
    }
    for (int i = 1; i < 4; i++) OK(MPI_Comm_free(&comms[i]));
}

/* One wrong argument at a time, on MPI_COMM_SELF, so that no other rank waits. */
static void wrong_arguments(void)
{
    MPI_Comm self = MPI_COMM_SELF, comm = MPI_COMM_WORLD, grid;
    int one = 1, zero = 0, two = 2, minus = -1, n, a[4], b[4], c[4];
    RAISES(MPI_ERR_DIMS, MPI_Cart_create(self, -1, &one, &one, 0, &comm));
    RAISES(MPI_ERR_DIMS, MPI_Cart_create(self, 1, &minus, &one, 0, &comm));
    RAISES(MPI_ERR_DIMS, MPI_Cart_create(self, 1, &two, &one, 0, &comm));
    RAISES(MPI_ERR_ARG, MPI_Cart_create(self, 1, NULL, &one, 0, &comm));
    RAISES(MPI_ERR_ARG, MPI_Cart_create(self, 1, &one, NULL, 0, &comm));
    RAISES(MPI_ERR_ARG, MPI_Cart_create(self, 1, &one, &one, 0, NULL));
    RAISES(MPI_ERR_COMM, MPI_Cart_create(MPI_COMM_NULL, 1, &one, &one, 0, &comm));
    OK(MPI_Cart_create(self, 2, (int[]){1, 1}, (int[]){1, 0}, 0, &grid));
    RAISES(MPI_ERR_DIMS, MPI_Cart_shift(grid, 2, 1, a, b));
    RAISES(MPI_ERR_DIMS, MPI_Cart_shift(grid, -1, 1, a, b));
    RAISES(MPI_ERR_DIMS, MPI_Cart_coords(grid, 0, 1, a));
    RAISES(MPI_ERR_DIMS, MPI_Cart_get(grid, 1, a, b, c));
    RAISES(MPI_ERR_DIMS, MPI_Cart_get(grid, -2, a, b, c));
    RAISES(MPI_ERR_RANK, MPI_Cart_coords(grid, 1, 2, a));
    RAISES(MPI_ERR_RANK, MPI_Cart_coords(grid, -1, 2, a));
    RAISES(MPI_ERR_ARG, MPI_Cart_rank(grid, NULL, &n));
    RAISES(MPI_ERR_ARG, MPI_Cart_sub(grid, NULL, &comm));
    RAISES(MPI_ERR_COUNT, MPI_Neighbor_allgather(a, -1, MPI_INT, b, 1, MPI_INT, grid));
    RAISES(MPI_ERR_COUNT, MPI_Neighbor_alltoallv(a, (int[]){-1, 0, 0, 0}, c, MPI_INT, b,
                                                 (int[]){0, 0, 0, 0}, c, MPI_INT, grid));
    RAISES(MPI_ERR_TYPE, MPI_Neighbor_alltoall(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, grid));
    OK(MPI_Comm_free(&grid));
    RAISES(MPI_ERR_ARG, MPI_Graph_create(self, -1, &one, &zero, 0, &comm));
    RAISES(MPI_ERR_ARG, MPI_Graph_create(self, 1, &minus, &zero, 0, &comm));
    RAISES(MPI_ERR_RANK, MPI_Graph_create(self, 1, &one, &one, 0, &comm));
    RAISES(MPI_ERR_RANK, MPI_Graph_create(self, 1, &one, &minus, 0, &comm));
    RAISES(MPI_ERR_ARG, MPI_Graph_create(self, 1, &one, NULL, 0, &comm));
#define ADJACENT(in, from, of_from, out, to, of_to)                                                    \
    MPI_Dist_graph_create_adjacent(self, in, from, of_from, out, to, of_to, MPI_INFO_NULL, 0, &comm)
    RAISES(MPI_ERR_ARG, ADJACENT(-1, &zero, &one, 1, &zero, &one));
    RAISES(MPI_ERR_ARG, ADJACENT(1, &zero, &one, -1, &zero, &one));
    RAISES(MPI_ERR_RANK, ADJACENT(1, &one, &one, 1, &zero, &one));
    RAISES(MPI_ERR_RANK, ADJACENT(1, &zero, &one, 1, &minus, &one));
    RAISES(MPI_ERR_ARG, ADJACENT(1, &zero, &minus, 1, &zero, &one));
    RAISES(MPI_ERR_ARG, ADJACENT(1, &zero, MPI_WEIGHTS_EMPTY, 1, &zero, &one));
    RAISES(MPI_ERR_ARG, ADJACENT(1, &zero, MPI_UNWEIGHTED, 1, &zero, &one));
    RAISES(MPI_ERR_ARG, ADJACENT(1, &zero, NULL, 1, &zero, &one));
#define GENERAL(n, from, degree, to, weights) \
    MPI_Dist_graph_create(self, n, from, degree, to, weights, MPI_INFO_NULL, 0, &comm)
    RAISES(MPI_ERR_ARG, GENERAL(-1, &zero, &one, &zero, &one));
    RAISES(MPI_ERR_RANK, GENERAL(1, &one, &one, &zero, &one));
    RAISES(MPI_ERR_RANK, GENERAL(1, &minus, &one, &zero, &one));
    RAISES(MPI_ERR_ARG, GENERAL(1, &zero, &minus, &zero, &one));
    RAISES(MPI_ERR_RANK, GENERAL(1, &zero, &one, &one, &one));
    RAISES(MPI_ERR_ARG, GENERAL(1, &zero, &one, &zero, &minus));
    RAISES(MPI_ERR_ARG, GENERAL(1, &zero, &one, &zero, MPI_WEIGHTS_EMPTY));
    CHECK(comm == MPI_COMM_WORLD);
    /* This rank names itself as a source but not as a destination, so the two ends of the edge disagree. */
    OK(ADJACENT(1, &zero, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
    RAISES(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, comm));
    OK(MPI_Comm_free(&comm));
}

int main(void)
{
    begin();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    grids();
    graphs();
    distributed_graphs();
    wrong_topologies();
    wrong_arguments();
    return end();
}
