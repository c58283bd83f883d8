/* Compares the collective calls of an interposed MPI library with the host's own, as differential.c does for messages.
 *
 *     mpiexec -n 3 ./collectives SEED ROUNDS [unequal]
 *
 * Each round draws one signature, and for each rank two types with this signature: one to send with and one to receive
 * with. The program makes every call with PMPI_ functions and with MPI_ functions: on the world, on a duplicate, on a
 * part, on a grid with and without neighbours at its edges, and on a graph. Memory must be the same.
 *
 * With `unequal`, each type has the signature once or several times, and the counts differ accordingly. So counts and
 * sizes of types differ between the ranks and between the sides. A correct host does such calls. Open MPI 5.0.11 does
 * not: its ranks choose different algorithms.
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

/* The largest count. Open MPI 5.0.11 by itself receives wrong bytes in some messages of more than 4 KiB (seed 4, round
 * 8, of 2 ranks: PMPI_Neighbor_alltoallv), where the interposed call has the bytes that MPICH has. */
#ifdef OPEN_MPI
#define LONGEST 60
#else
#define LONGEST 1500
#endif

/* The forms of a call. The persistent forms of MPICH 4.0.2 and of Intel MPI 2021.18 move some bytes in the call that
 * makes the request and never again, and end the process now and then, with or without typepack. */
enum { NOW, LATER, PERSISTENT };
#ifdef NO_PERSISTENT
#define FORMS PERSISTENT
#else
#define FORMS (PERSISTENT + 1)
#endif

/* Does one call. `u` says with which functions, `form` in which form, `large` whether with large counts. `sent` is what
 * the call sends. */
static int call(int kind, int u, int form, int large, MPI_Comm comm, int root, char *from, char *to, int n, int m,
    struct blocks *s, struct blocks *r, MPI_Datatype st, MPI_Datatype rt, struct memory *sent)
{
    MPI_Request q = MPI_REQUEST_NULL;
    int code;
#define SMALL(Name, name, ...) \
    do { \
        if (form == PERSISTENT) \
            code = CALL(u, Name##_init)(__VA_ARGS__, MPI_INFO_NULL, &q); \
        else if (form == LATER) \
            code = CALL(u, I##name)(__VA_ARGS__, &q); \
        else \
            code = CALL(u, Name)(__VA_ARGS__); \
    } while (0)
#if MPI_VERSION < 4
#define LARGE(...) code = MPI_ERR_OTHER
#else
#define LARGE(Name, name, ...) \
    do { \
        if (form == PERSISTENT) \
            code = CALL(u, Name##_init_c)(__VA_ARGS__, MPI_INFO_NULL, &q); \
        else if (form == LATER) \
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
        int count = me == root ? n : m;
        if (large) LARGE(Bcast, bcast, buf, count, type, root, comm);
        else SMALL(Bcast, bcast, buf, count, type, root, comm);
        break;
    }
    case GATHER:
        if (large) LARGE(Gather, gather, from, n, st, to, m, rt, root, comm);
        else SMALL(Gather, gather, from, n, st, to, m, rt, root, comm);
        break;
    case SCATTER:
        if (large) LARGE(Scatter, scatter, from, n, st, to, m, rt, root, comm);
        else SMALL(Scatter, scatter, from, n, st, to, m, rt, root, comm);
        break;
    case ALLGATHER:
        if (large) LARGE(Allgather, allgather, from, n, st, to, m, rt, comm);
        else SMALL(Allgather, allgather, from, n, st, to, m, rt, comm);
        break;
    case ALLTOALL:
        if (large) LARGE(Alltoall, alltoall, from, n, st, to, m, rt, comm);
        else SMALL(Alltoall, alltoall, from, n, st, to, m, rt, comm);
        break;
    case GATHERV:
        if (large) LARGE(Gatherv, gatherv, from, s->counts[me], st, to, r->wide_counts, r->wide_places, rt, root, comm);
        else SMALL(Gatherv, gatherv, from, s->counts[me], st, to, r->counts, r->places, rt, root, comm);
        break;
    case SCATTERV:
        if (large) LARGE(Scatterv, scatterv, from, s->wide_counts, s->wide_places, st, to, r->counts[me], rt, root,
            comm);
        else SMALL(Scatterv, scatterv, from, s->counts, s->places, st, to, r->counts[me], rt, root, comm);
        break;
    case ALLGATHERV:
        if (large) LARGE(Allgatherv, allgatherv, from, s->counts[me], st, to, r->wide_counts, r->wide_places, rt, comm);
        else SMALL(Allgatherv, allgatherv, from, s->counts[me], st, to, r->counts, r->places, rt, comm);
        break;
    case ALLTOALLV:
        if (large) LARGE(Alltoallv, alltoallv, from, s->wide_counts, s->wide_places, st, to, r->wide_counts,
            r->wide_places, rt, comm);
        else SMALL(Alltoallv, alltoallv, from, s->counts, s->places, st, to, r->counts, r->places, rt, comm);
        break;
    case ALLTOALLW:
        if (large)
            LARGE(Alltoallw, alltoallw, from, s->wide_counts, s->wide_bytes, s->types, to, r->wide_counts,
                r->wide_bytes, r->types, comm);
        else SMALL(Alltoallw, alltoallw, from, s->counts, s->bytes, s->types, to, r->counts, r->bytes, r->types, comm);
        break;
    case NEIGHBOR_V:
        if (large)
            LARGE(Neighbor_alltoallv, neighbor_alltoallv, from, s->wide_counts, s->wide_places, st, to,
                r->wide_counts, r->wide_places, rt,
                  comm);
        else SMALL(Neighbor_alltoallv, neighbor_alltoallv, from, s->counts, s->places, st, to, r->counts, r->places,
            rt, comm);
        break;
    default:
        if (large)
            LARGE(Neighbor_alltoallw, neighbor_alltoallw, from, s->wide_counts, s->wide_bytes, s->types, to,
                r->wide_counts,
                  r->wide_bytes, r->types, comm);
        else
            SMALL(Neighbor_alltoallw, neighbor_alltoallw, from, s->counts, s->wide_bytes, s->types, to, r->counts,
                r->wide_bytes,
                  r->types, comm);
    }
    if (form == PERSISTENT) {
        /* Each start sends what the memory has then. */
        for (int turn = 0; turn < 2; turn++) {
            OK(CALL(u, Start)(&q));
            OK(CALL(u, Wait)(&q, MPI_STATUS_IGNORE));
            OK(CALL(u, Wait)(&q, MPI_STATUS_IGNORE));
            for (size_t i = 0; i < sent->size; i++) sent->base[i] ^= 0x3c;
        }
        OK(CALL(u, Request_free)(&q));
    } else if (form == LATER) {
        /* The arrays of a call must live until it is complete; memory that is not touched says nothing about that. */
        OK(CALL(u, Wait)(&q, MPI_STATUS_IGNORE));
    }
    return code;
}

/* True if counts and sizes of types differ between ranks and sides. */
static int unequal;

/* Makes a type that has the signature `times` times. */
static MPI_Datatype repeated(const int *signature, int length, int times)
{
    int all[400];
    for (int i = 0; i < length * times; i++) all[i] = signature[i % length];
    return make(all, length * times, 0);
}

/* Does one call both ways. `blocks_in` and `blocks_out` are the numbers of blocks that a rank receives and sends. */
static void compare(int kind, MPI_Comm comm, int blocks_in, int blocks_out, const int *signature, int length)
{
    int size, me, form = below(FORMS), large = below(2) && MPI_VERSION >= 4, root, in_place = below(4) == 0;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    root = below(size);
    int count = 1 + below(below(6) ? 3 : below(4) ? 60 : LONGEST), gap = below(3), counts[MOST];
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
    int sends = 1, receives = 1;
    for (int i = 0; i < size; i++) {
        static const int times[] = {1, 2, 3, 6};
        int at = unequal ? below(4) : 0, bt = unequal ? below(4) : 0;
        MPI_Datatype a = repeated(signature, length, times[at]), b = repeated(signature, length, times[bt]);
        if (i == me) st = a, rt = b, sends = times[at], receives = times[bt];
        else PMPI_Type_free(&a), PMPI_Type_free(&b);
    }
    OK(MPI_Type_commit(&st));
    OK(MPI_Type_commit(&rt));
    /* With 6 signatures in each unit of a count, every type fits. */
    int sent[MOST], received[MOST], units = unequal ? 6 : 1;
    for (int i = 0; i < MOST; i++) sent[i] = counts[i] * units / sends, received[i] = counts[i] * units / receives;
    struct blocks s, r;
    lay_out(&s, sent, blocks_out, st, gap);
    lay_out(&r, received, blocks_in, rt, gap);
    int send_count = count * units / sends, receive_count = count * units / receives;
    int n = send_count * size > s.total ? send_count * size : s.total;
    int m = receive_count * size > r.total ? receive_count * size : r.total;
    if (sent[me] > n) n = sent[me];
    if (received[me] > m) m = received[me];
    struct memory from = memory_for(st, n, 256), to[2];
    for (size_t i = 0; i < from.size; i++) from.base[i] ^= (unsigned char)(me * 37);
    static char text[120];
    int can_be_in_place = kind >= GATHER && kind <= ALLTOALLW && kind != SCATTERV && kind != SCATTER;
    int here = can_be_in_place && in_place && !((kind == GATHER || kind == GATHERV) && me != root);
    snprintf(text, sizeof text, "%s%s%s%s%s of %d ranks", form == LATER ? "I" : "", name[kind],
        form == PERSISTENT ? "_init" : "", large ? "_c" : "", here ? " in place" : "", size);
    doing = text;
    if (getenv("COLLECTIVES_TRACE")) fprintf(stderr, "rank %d, round %ld: %s\n", rank, pair_number, text);
    for (int u = 0; u < 2; u++) {
        to[u] = memory_for(rt, m, 256);
        for (size_t i = 0; i < to[u].size; i++) to[u].base[i] ^= (unsigned char)(me * 91);
        OK(call(kind, u, form, large, comm, root, here ? MPI_IN_PLACE : from.origin, to[u].origin, send_count,
            receive_count, &s, &r, st, rt, &from));
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
    unequal = argc == 4 && strcmp(argv[3], "unequal") == 0;
    if (argc != 3 + unequal) {
        fprintf(stderr, "usage: collectives SEED ROUNDS [unequal]\n");
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
