/* Compares the collective calls of an interposed MPI library with the host's own, as differential.c does for messages.
 *
 *     mpiexec -n 3 ./collectives SEED ROUNDS
 *
 * Each round draws one signature, and for each rank two types with this signature: one to send with and one to receive
 * with. The program makes every call with PMPI_ functions and with MPI_ functions: on the world, on a duplicate, on a
 * part, on a grid with and without neighbours at its edges, and on a graph. Memory must be the same.
 *
 * The host needs basic elements of one size, because MPICH 5.0.2 fails in long messages of several basic types.
 */
#include "types.h"

enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW, NEIGHBOR_V,
    NEIGHBOR_W, KINDS };
static const char *name[] = {"Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Gatherv", "Scatterv",
    "Allgatherv", "Alltoallv",
    "Alltoallw", "Neighbor_alltoallv", "Neighbor_alltoallw"};

#define MOST 16

/* The blocks of one side: the count and the place, in extents and in bytes, for each rank. */
struct blocks {
    int counts[MOST], places[MOST], bytes[MOST];
    MPI_Count wide_counts[MOST];
    MPI_Aint wide_places[MOST], wide_bytes[MOST];
    MPI_Datatype types[MOST];
    int total;
};

static void lay_out(struct blocks *b, const int *counts, int n, MPI_Datatype type, int gap)
{
    MPI_Count lb, extent, true_lb, true_extent;
    bounds(type, &lb, &extent, &true_lb, &true_extent);
    b->total = 0;
    for (int i = 0; i < n; i++) {
        b->counts[i] = counts[i];
        b->wide_counts[i] = counts[i];
        b->places[i] = b->total;
        b->wide_places[i] = b->total;
        b->bytes[i] = (int)(b->total * extent);
        b->wide_bytes[i] = (MPI_Aint)(b->total * extent);
        b->types[i] = type;
        b->total += counts[i] + gap;
    }
    if (b->total == 0) b->total = 1;
}

/* Does one call. `u` says with which functions, `later` whether with a request, `large` whether with large counts. */
static int call(int kind, int u, int later, int large, MPI_Comm comm, int root, char *from, char *to, int count,
    struct blocks *s,
                struct blocks *r, MPI_Datatype st, MPI_Datatype rt)
{
    MPI_Request q = MPI_REQUEST_NULL;
    int code;
#define FORMS(Name, name, ...) \
    do { \
        if (later) \
            code = CALL(u, I##name)(__VA_ARGS__, &q); \
        else \
            code = CALL(u, Name)(__VA_ARGS__); \
    } while (0)
#if MPI_VERSION < 4
#define LARGE(...) code = MPI_ERR_OTHER
#else
#define LARGE(Name, name, ...) \
    do { \
        if (later) \
            code = CALL(u, I##name##_c)(__VA_ARGS__, &q); \
        else \
            code = CALL(u, Name##_c)(__VA_ARGS__); \
    } while (0)
#endif
    int me;
    PMPI_Comm_rank(comm, &me);
    switch (kind) {
    case BCAST: {
        char *buf = me == root ? from : to;
        MPI_Datatype type = me == root ? st : rt;
        if (large) LARGE(Bcast, bcast, buf, count, type, root, comm);
        else FORMS(Bcast, bcast, buf, count, type, root, comm);
        break;
    }
    case GATHER:
        if (large) LARGE(Gather, gather, from, count, st, to, count, rt, root, comm);
        else FORMS(Gather, gather, from, count, st, to, count, rt, root, comm);
        break;
    case SCATTER:
        if (large) LARGE(Scatter, scatter, from, count, st, to, count, rt, root, comm);
        else FORMS(Scatter, scatter, from, count, st, to, count, rt, root, comm);
        break;
    case ALLGATHER:
        if (large) LARGE(Allgather, allgather, from, count, st, to, count, rt, comm);
        else FORMS(Allgather, allgather, from, count, st, to, count, rt, comm);
        break;
    case ALLTOALL:
        if (large) LARGE(Alltoall, alltoall, from, count, st, to, count, rt, comm);
        else FORMS(Alltoall, alltoall, from, count, st, to, count, rt, comm);
        break;
    case GATHERV:
        if (large) LARGE(Gatherv, gatherv, from, s->counts[me], st, to, r->wide_counts, r->wide_places, rt, root, comm);
        else FORMS(Gatherv, gatherv, from, s->counts[me], st, to, r->counts, r->places, rt, root, comm);
        break;
    case SCATTERV:
        if (large) LARGE(Scatterv, scatterv, from, s->wide_counts, s->wide_places, st, to, r->counts[me], rt, root,
            comm);
        else FORMS(Scatterv, scatterv, from, s->counts, s->places, st, to, r->counts[me], rt, root, comm);
        break;
    case ALLGATHERV:
        if (large) LARGE(Allgatherv, allgatherv, from, s->counts[me], st, to, r->wide_counts, r->wide_places, rt, comm);
        else FORMS(Allgatherv, allgatherv, from, s->counts[me], st, to, r->counts, r->places, rt, comm);
        break;
    case ALLTOALLV:
        if (large) LARGE(Alltoallv, alltoallv, from, s->wide_counts, s->wide_places, st, to, r->wide_counts,
            r->wide_places, rt, comm);
        else FORMS(Alltoallv, alltoallv, from, s->counts, s->places, st, to, r->counts, r->places, rt, comm);
        break;
    case ALLTOALLW:
        if (large)
            LARGE(Alltoallw, alltoallw, from, s->wide_counts, s->wide_bytes, s->types, to, r->wide_counts,
                r->wide_bytes, r->types, comm);
        else FORMS(Alltoallw, alltoallw, from, s->counts, s->bytes, s->types, to, r->counts, r->bytes, r->types, comm);
        break;
    case NEIGHBOR_V:
        if (large)
            LARGE(Neighbor_alltoallv, neighbor_alltoallv, from, s->wide_counts, s->wide_places, st, to,
                r->wide_counts, r->wide_places, rt,
                  comm);
        else FORMS(Neighbor_alltoallv, neighbor_alltoallv, from, s->counts, s->places, st, to, r->counts, r->places,
            rt, comm);
        break;
    default:
        if (large)
            LARGE(Neighbor_alltoallw, neighbor_alltoallw, from, s->wide_counts, s->wide_bytes, s->types, to,
                r->wide_counts,
                  r->wide_bytes, r->types, comm);
        else
            FORMS(Neighbor_alltoallw, neighbor_alltoallw, from, s->counts, s->wide_bytes, s->types, to, r->counts,
                r->wide_bytes,
                  r->types, comm);
    }
    if (later) {
        /* The arrays of a call must live until it is complete; memory that is not touched says nothing about that. */
        OK(CALL(u, Wait)(&q, MPI_STATUS_IGNORE));
    }
    return code;
}

/* Does one call both ways. `blocks_in` and `blocks_out` are the numbers of blocks that a rank receives and sends. */
static void compare(int kind, MPI_Comm comm, int blocks_in, int blocks_out, const int *signature, int length)
{
    int size, me, later = below(2), large = below(2) && MPI_VERSION >= 4, root, in_place = below(4) == 0;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    root = below(size);
    int count = 1 + below(below(6) ? 3 : 60), gap = below(3), counts[MOST];
    /* All blocks between two ranks have the same count, also in both directions. */
    int same_count = kind < GATHERV || kind >= NEIGHBOR_V;
    for (int i = 0; i < MOST; i++) {
        int drawn = below(4);
        counts[i] = same_count ? count : drawn;
    }
    if (kind == ALLTOALLV || kind == ALLTOALLW) {
        /* Symmetric: the count between i and j. */
        int base[MOST];
        memcpy(base, counts, sizeof base);
        for (int i = 0; i < MOST; i++) counts[i] = base[i] + base[me] > 3 ? 0 : base[i] + base[me];
    }
    /* Each rank has types of its own. The draws of all ranks are made by all, so that they stay equal. */
    MPI_Datatype st = MPI_DATATYPE_NULL, rt = MPI_DATATYPE_NULL;
    for (int i = 0; i < size; i++) {
        MPI_Datatype a = make(signature, length, 0), b = make(signature, length, 0);
        if (i == me) st = a, rt = b;
        else PMPI_Type_free(&a), PMPI_Type_free(&b);
    }
    OK(MPI_Type_commit(&st));
    OK(MPI_Type_commit(&rt));
    struct blocks s, r;
    lay_out(&s, counts, blocks_out, st, gap);
    lay_out(&r, counts, blocks_in, rt, gap);
    int n = count * size > s.total ? count * size : s.total, m = count * size > r.total ? count * size : r.total;
    if (counts[me] > n) n = counts[me];
    if (counts[me] > m) m = counts[me];
    struct memory from = memory_for(st, n, 256), to[2];
    for (size_t i = 0; i < from.size; i++) from.base[i] ^= (unsigned char)(me * 37);
    static char text[120];
    int can_be_in_place = kind >= GATHER && kind <= ALLTOALLW && kind != SCATTERV && kind != SCATTER;
    int here = can_be_in_place && in_place && !((kind == GATHER || kind == GATHERV) && me != root);
    snprintf(text, sizeof text, "%s%s%s%s of %d ranks", later ? "I" : "", name[kind], large ? "_c" : "",
        here ? " in place" : "", size);
    doing = text;
    for (int u = 0; u < 2; u++) {
        to[u] = memory_for(rt, m, 256);
        for (size_t i = 0; i < to[u].size; i++) to[u].base[i] ^= (unsigned char)(me * 91);
        OK(call(kind, u, later, large, comm, root, here ? MPI_IN_PLACE : from.origin, to[u].origin, count, &s, &r, st,
            rt));
    }
    same_memory("memory", &to[0], &to[1]);
    free(to[0].base);
    free(to[1].base);
    free(from.base);
    OK(MPI_Type_free(&st));
    OK(MPI_Type_free(&rt));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 3) {
        fprintf(stderr, "usage: collectives SEED ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    uint64_t seed = strtoull(argv[1], NULL, 0);
    long rounds = strtol(argv[2], NULL, 0), calls = 0;
    int size, all = 0;
    MPI_Comm world, part, line, ring, graph;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST / 2) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, ERRORS_RETURN);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, -rank, &part));
    int dims[1] = {size}, open[1] = {0}, closed[1] = {1};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, open, 0, &line));
    OK(MPI_Cart_create(world, 1, dims, closed, 0, &ring));
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
        MPI_INFO_NULL, 0, &graph));
    MPI_Comm comms[3] = {MPI_COMM_WORLD, world, part}, grids[3] = {line, ring, graph};
    for (pair_number = 0; pair_number < rounds && !all; pair_number++) {
        state = seed * 0x2545f4914f6cdd1du + (uint64_t)pair_number * 0x9e3779b97f4a7c15u;
        int signature[400], length = 1 + below(40), which = below(BASICS - 1);
        for (int i = 0; i < length; i++) signature[i] = which;
        for (int kind = 0; kind < KINDS; kind++, calls++) {
            uint64_t kept = state;
            int at = below(3), blocks_in, blocks_out;
            MPI_Comm comm = kind < NEIGHBOR_V ? comms[at] : grids[at];
            MPI_Comm_size(comm, &blocks_in);
            blocks_out = blocks_in;
            if (kind >= NEIGHBOR_V) blocks_in = blocks_out = at == 2 ? 1 : 2;
            compare(kind, comm, blocks_in, blocks_out, signature, length);
            /* Communicators of different sizes draw different numbers of types. */
            state = kept + 0x1234567;
        }
        PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&world);
    MPI_Comm_free(&part);
    MPI_Comm_free(&line);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&graph);
    if (rank == 0 && !all) printf("%ld rounds, %ld calls: no difference\n", rounds, calls);
    MPI_Finalize();
    return all != 0;
}
