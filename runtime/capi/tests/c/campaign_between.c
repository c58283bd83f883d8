/* Makes random collective calls on intercommunicators, and checks the results. In each round, the ranks divide
   into two random groups, and all draw the same calls: kinds, roots in either group, counts, operations, blocking,
   nonblocking and persistent, with up to eight operations under way. Each rank chooses the gaps of its own elements.
   Every value is a function of the call, the ranks and the index, so each rank computes the expected content of its
   whole receive buffer without communication.

   CAMPAIGN_SECONDS is the time to run (without it, the number of rounds is fixed), and CAMPAIGN_SEED the first seed.
   A failure prints the seed of its round. */
#include "check.h"

#include <stdint.h>

enum { RANKS = 16, OUTSTANDING = 8, ROUNDS = 100, FILLER = 0x5a };
enum kind {
    BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, REDUCE, ALLREDUCE, BLOCKS, GATHERV,
    SCATTERV, ALLTOALLW, REDUCE_SCATTER, KINDS
};
enum form { RUN, START, PREPARE, FORMS };
static const char *const names[KINDS] = {"barrier", "bcast", "gather", "scatter", "allgather", "allgatherv",
                                         "alltoall", "alltoallv", "reduce", "allreduce", "reduce_scatter_block",
                                         "gatherv", "scatterv", "alltoallw", "reduce_scatter"};

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(uint64_t *state, int bound)
{
    *state += 0x9e3779b97f4a7c15u;
    return (int)(mix(*state) % (unsigned)bound);
}

/* Elements of one word: without a gap, with a gap after it, and with a gap before it. */
enum { LAYOUTS = 3 };
static const long extents[LAYOUTS] = {8, 24, 16}, places[LAYOUTS] = {0, 0, 8};
static MPI_Datatype types[LAYOUTS];

/* The last operation returns the operand of the lower ranks. It does not commute. */
enum { OPS = 3, FIRST = 2 };
static MPI_Op ops[OPS];

static void first(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int l = 0;
    while (l < LAYOUTS && types[l] != *type) l++;
    CHECK(l < LAYOUTS);
    for (long i = 0; i < *count; i++) {
        long at = i * extents[l] + places[l];
        memcpy((char *)inout + at, (char *)in + at, 8);
    }
}

struct buffer {
    int layout;
    long elements;
    char *now, *expected;
};

struct call {
    enum kind kind;
    enum form form;
    uint64_t seed;
    int root_group, root, count, op;
    struct buffer send, recv;
    /* Counts and places of the parts for and from the ranks of the other group. In a reduce-scatter, `recv_counts` has
       the blocks of this group. MPI_Alltoallw takes the places in bytes, and types. */
    int send_counts[RANKS], send_places[RANKS], recv_counts[RANKS], recv_places[RANKS];
    int send_bytes[RANKS], recv_bytes[RANKS];
    MPI_Datatype send_types[RANKS], recv_types[RANKS];
    MPI_Request request;
};

static MPI_Comm comm; /* the intercommunicator */
static int group, rank, size, others;
static uint64_t round_seed;

/* Returns word `i` of the data that rank `from` of group `from_group` sends to rank `to` of the other group. */
static int64_t value(const struct call *c, int from_group, int from, int to, long i)
{
    uint64_t who = (uint64_t)from_group * 1009 + (uint64_t)from * 31 + (uint64_t)to * 7;
    return (int64_t)mix(c->seed + who * 1000003 + (uint64_t)i);
}

static void put(struct buffer *b, char *memory, long element, int64_t v)
{
    memcpy(memory + element * extents[b->layout] + places[b->layout], &v, 8);
}

static void allocate(struct buffer *b, int layout, long elements)
{
    b->layout = layout, b->elements = elements;
    size_t bytes = (size_t)(elements * extents[b->layout]) + 8;
    b->now = malloc(bytes), b->expected = malloc(bytes);
    CHECK(b->now != NULL && b->expected != NULL);
    memset(b->now, FILLER, bytes), memset(b->expected, FILLER, bytes);
}

/* The reduction of word `i` over the ranks of the other group. */
static int64_t reduced(const struct call *c, long i)
{
    uint64_t sum = (uint64_t)value(c, !group, 0, 0, i);
    for (int from = 1; from < others && c->op != FIRST; from++) {
        uint64_t next = (uint64_t)value(c, !group, from, 0, i);
        sum = c->op == 0 ? sum + next : sum ^ next;
    }
    return (int64_t)sum;
}

/* The number of words that rank `from` of a group sends to rank `to` of the other one in the v variants, such as MPI_Gatherv. */
static int share(const struct call *c, int from_group, int from, int to)
{
    return (int)((mix(c->seed + 77) + (uint64_t)(from_group * 5 + from * 3 + to)) % 4) * (c->count % 9);
}

static void draw(struct call *c, uint64_t *shared, uint64_t *own)
{
    memset(c, 0, sizeof *c);
    c->kind = (enum kind)below(shared, KINDS), c->form = (enum form)below(shared, FORMS);
    c->seed = mix(round_seed * 131 + (uint64_t)below(shared, 1 << 30));
    c->root_group = below(shared, 2);
    c->root = below(shared, 1 << 20) % (c->root_group == group ? size : others);
    c->count = below(shared, 8) == 0 ? 3000 + below(shared, 3000) : below(shared, 20);
    c->op = below(shared, OPS);
    int is_root = c->root_group == group && c->root == rank, takes = c->root_group != group;
    /* In the v and w forms: whether this rank sends, whether it sends another part to each rank, and whether it receives
       a part from each rank. */
    int apart = c->kind == ALLTOALLV || c->kind == ALLTOALLW || c->kind == SCATTERV;
    int sends = c->kind == SCATTERV ? is_root : c->kind != GATHERV || takes;
    int gets = c->kind == GATHERV ? is_root : c->kind != SCATTERV;
    long out = 0, in = 0;
    switch (c->kind) {
    case BARRIER: case KINDS: break;
    case BCAST: out = is_root ? c->count : 0, in = takes ? c->count : 0; break;
    case GATHER: out = takes ? c->count : 0, in = is_root ? (long)c->count * others : 0; break;
    case SCATTER: out = is_root ? (long)c->count * others : 0, in = takes ? c->count : 0; break;
    case ALLGATHER: out = c->count, in = (long)c->count * others; break;
    case ALLTOALL: out = in = (long)c->count * others; break;
    case REDUCE: out = takes ? c->count : 0, in = is_root ? c->count : 0; break;
    case ALLREDUCE: out = in = c->count; break;
    case BLOCKS:
        c->count %= 500;
        out = (long)c->count * size * others, in = (long)c->count * others;
        break;
    case REDUCE_SCATTER: {
        /* Both groups get as many elements. Each group divides them among its ranks in a way of its own. */
        int left = out = c->count %= 500;
        for (int r = 0; r < size; r++) {
            uint64_t random = mix(c->seed + (uint64_t)(group * 100 + r + 1));
            c->recv_counts[r] = r == size - 1 ? left : (int)(random % (unsigned)(left + 1));
            left -= c->recv_counts[r];
        }
        in = c->recv_counts[rank];
        break;
    }
    case ALLGATHERV: case ALLTOALLV: case ALLTOALLW: case GATHERV: case SCATTERV:
        for (int r = 0; r < others; r++) {
            c->send_counts[r] = sends ? share(c, group, rank, apart ? r : 0) : 0;
            c->recv_counts[r] = gets ? share(c, !group, r, apart ? rank : 0) : 0;
            c->send_places[r] = (int)out, c->recv_places[r] = (int)in + r % 2; /* some gaps between the parts */
            if (apart || r == 0) out += c->send_counts[r];
            if (gets) in += c->recv_counts[r] + r % 2;
        }
        if (c->kind == SCATTERV && takes) in = share(c, !group, c->root, rank);
    }
    /* A reduction has one type for both buffers, and the predefined operations do not take derived types. */
    int reduces = c->kind == REDUCE || c->kind == ALLREDUCE || c->kind == BLOCKS || c->kind == REDUCE_SCATTER;
    int layout = reduces && c->op != FIRST ? 0 : below(own, LAYOUTS);
    allocate(&c->send, layout, out), allocate(&c->recv, reduces ? layout : below(own, LAYOUTS), in);
    /* Below, `send` gets the data that this rank sends, and `recv` the data that this rank must receive. */
    struct buffer *send = &c->send, *recv = &c->recv;
    long each = c->count;
    for (long i = 0; i < out && !apart; i++) {
        int parts = c->kind == SCATTER || c->kind == ALLTOALL;
        put(send, send->now, i, value(c, group, rank, parts ? (int)(i / each) : 0, parts ? i % each : i));
    }
    switch (c->kind) {
    case BARRIER: case KINDS: break;
    case BCAST: for (long i = 0; i < in; i++) put(recv, recv->expected, i, value(c, !group, c->root, 0, i)); break;
    case SCATTER: for (long i = 0; i < in; i++) put(recv, recv->expected, i, value(c, !group, c->root, rank, i)); break;
    case GATHER: case ALLGATHER: case ALLTOALL:
        for (long i = 0; i < in; i++) {
            int to = c->kind == ALLTOALL ? rank : 0;
            put(recv, recv->expected, i, value(c, !group, (int)(i / each), to, i % each));
        }
        break;
    case REDUCE: case ALLREDUCE: for (long i = 0; i < in; i++) put(recv, recv->expected, i, reduced(c, i)); break;
    case BLOCKS: for (long i = 0; i < in; i++) put(recv, recv->expected, i, reduced(c, in * rank + i)); break;
    case REDUCE_SCATTER: {
        long before = 0;
        for (int r = 0; r < rank; r++) before += c->recv_counts[r];
        for (long i = 0; i < in; i++) put(recv, recv->expected, i, reduced(c, before + i));
        break;
    }
    case ALLGATHERV: case ALLTOALLV: case ALLTOALLW: case GATHERV: case SCATTERV:
        for (int r = 0; r < others; r++) {
            for (long i = 0; i < c->recv_counts[r]; i++)
                put(recv, recv->expected, c->recv_places[r] + i, value(c, !group, r, apart ? rank : 0, i));
            for (long i = 0; i < c->send_counts[r] && apart; i++)
                put(send, send->now, c->send_places[r] + i, value(c, group, rank, r, i));
            c->send_bytes[r] = c->send_places[r] * (int)extents[send->layout];
            c->recv_bytes[r] = c->recv_places[r] * (int)extents[recv->layout];
            c->send_types[r] = c->send_counts[r] || r % 2 ? types[send->layout] : MPI_DATATYPE_NULL;
            c->recv_types[r] = c->recv_counts[r] || r % 2 ? types[recv->layout] : MPI_DATATYPE_NULL;
        }
        for (long i = 0; i < in && c->kind == SCATTERV; i++)
            put(recv, recv->expected, i, value(c, !group, c->root, rank, i));
    }
    memcpy(send->expected, send->now, (size_t)(send->elements * extents[send->layout]) + 8);
}

/* Makes a call in one of its three forms. */
#define FORM(run, start, ...)                                                       \
    do {                                                                            \
        if (c->form == RUN) OK(run(__VA_ARGS__, comm));                             \
        else if (c->form == START) OK(start(__VA_ARGS__, comm, &c->request));       \
        else OK(run##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &c->request));         \
    } while (0)

static void make(struct call *c)
{
    int n = c->count, to = c->root;
    char *s = c->send.now, *r = c->recv.now;
    MPI_Datatype st = types[c->send.layout], rt = types[c->recv.layout];
    MPI_Op op = ops[c->op];
    if (c->root_group == group) to = c->root == rank ? MPI_ROOT : MPI_PROC_NULL;
    switch (c->kind) {
    case KINDS: break;
    case BARRIER:
        if (c->form == RUN) OK(MPI_Barrier(comm));
        else if (c->form == START) OK(MPI_Ibarrier(comm, &c->request));
        else OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &c->request));
        break;
    case BCAST: {
        int sends = to == MPI_ROOT;
        FORM(MPI_Bcast, MPI_Ibcast, sends ? s : r, n, sends ? st : rt, to);
        break;
    }
    case GATHER: FORM(MPI_Gather, MPI_Igather, s, n, st, r, n, rt, to); break;
    case SCATTER: FORM(MPI_Scatter, MPI_Iscatter, s, n, st, r, n, rt, to); break;
    case ALLGATHER: FORM(MPI_Allgather, MPI_Iallgather, s, n, st, r, n, rt); break;
    case ALLGATHERV: FORM(MPI_Allgatherv, MPI_Iallgatherv, s, c->send_counts[0], st, r, c->recv_counts, c->recv_places, rt); break;
    case ALLTOALL: FORM(MPI_Alltoall, MPI_Ialltoall, s, n, st, r, n, rt); break;
    case ALLTOALLV:
        FORM(MPI_Alltoallv, MPI_Ialltoallv, s, c->send_counts, c->send_places, st, r, c->recv_counts, c->recv_places, rt);
        break;
    case REDUCE: FORM(MPI_Reduce, MPI_Ireduce, s, r, n, st, op, to); break;
    case ALLREDUCE: FORM(MPI_Allreduce, MPI_Iallreduce, s, r, n, st, op); break;
    case BLOCKS: FORM(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, s, r, n * others, st, op); break;
    case GATHERV:
        FORM(MPI_Gatherv, MPI_Igatherv, s, c->send_counts[0], st, r, c->recv_counts, c->recv_places, rt, to);
        break;
    case SCATTERV:
        FORM(MPI_Scatterv, MPI_Iscatterv, s, c->send_counts, c->send_places, st, r, (int)c->recv.elements, rt, to);
        break;
    case ALLTOALLW:
        FORM(MPI_Alltoallw, MPI_Ialltoallw, s, c->send_counts, c->send_bytes, c->send_types, r, c->recv_counts,
             c->recv_bytes, c->recv_types);
        break;
    case REDUCE_SCATTER: FORM(MPI_Reduce_scatter, MPI_Ireduce_scatter, s, r, c->recv_counts, st, op); break;
    }
}

static void compare(struct call *c, struct buffer *b, const char *which)
{
    size_t bytes = (size_t)(b->elements * extents[b->layout]) + 8;
    if (memcmp(b->now, b->expected, bytes) == 0) return;
    size_t at = 0;
    while (b->now[at] == b->expected[at]) at++;
    fprintf(stderr, "seed %llu: group %d, rank %d: %s (form %d, root %d of group %d, %d elements): the %s buffer differs at byte %zu\n",
            (unsigned long long)round_seed, group, rank, names[c->kind], c->form, c->root, c->root_group, c->count, which, at);
    exit(1);
}

static void round_of_calls(uint64_t *shared, uint64_t *own)
{
    static struct call calls[OUTSTANDING];
    int number = 1 + below(shared, OUTSTANDING);
    for (int i = 0; i < number; i++) {
        struct call *c = &calls[i];
        draw(c, shared, own);
        c->request = MPI_REQUEST_NULL;
        make(c);
        if (c->form == PREPARE) OK(MPI_Start(&c->request));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0, from = below(own, number); i < number; i++) OK(MPI_Wait(&calls[(i + from) % number].request, MPI_STATUS_IGNORE));
        for (int i = 0; i < number; i++) compare(&calls[i], &calls[i].send, "send"), compare(&calls[i], &calls[i].recv, "receive");
        if (round == 1) break;
        /* The persistent operations run once more. Every rank starts them in an order of its own. */
        for (int i = 0, from = below(own, number); i < number; i++) {
            struct call *c = &calls[(i + from) % number];
            if (c->form != PREPARE) continue;
            memset(c->recv.now, FILLER, (size_t)(c->recv.elements * extents[c->recv.layout]) + 8);
            OK(MPI_Start(&c->request));
        }
    }
    for (int i = 0; i < number; i++) {
        if (calls[i].form == PREPARE) OK(MPI_Request_free(&calls[i].request));
        free(calls[i].send.now), free(calls[i].send.expected), free(calls[i].recv.now), free(calls[i].recv.expected);
    }
}

int main(void)
{
    int world_rank, world_size;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    CHECK(world_size <= RANKS);
    types[0] = MPI_INT64_T;
    for (int l = 1; l < LAYOUTS; l++) {
        MPI_Aint at[1] = {places[l]};
        MPI_Datatype word;
        OK(MPI_Type_create_hindexed_block(1, 1, at, MPI_INT64_T, &word));
        OK(MPI_Type_create_resized(word, 0, extents[l], &types[l]));
        OK(MPI_Type_commit(&types[l]));
        OK(MPI_Type_free(&word));
    }
    ops[0] = MPI_SUM, ops[1] = MPI_BXOR;
    OK(MPI_Op_create(first, 0, &ops[FIRST]));
    const char *seconds = getenv("CAMPAIGN_SECONDS"), *start = getenv("CAMPAIGN_SEED");
    uint64_t seed = start ? strtoull(start, NULL, 10) : 1;
    double end = MPI_Wtime() + (seconds ? strtod(seconds, NULL) : 0);
    long done = 0;
    for (int more = world_size > 1; more; seed++, done++) {
        round_seed = seed;
        uint64_t shared = mix(seed), own = mix(seed) + (uint64_t)world_rank + 1;
        MPI_Comm local, copy;
        /* Each of the two groups gets at least one rank. */
        int cut = 1 + below(&shared, world_size - 1), turned = (world_rank + below(&shared, world_size)) % world_size;
        int shift = (turned - world_rank + world_size) % world_size, low = turned < cut;
        int leaders[2] = {(cut - shift + world_size) % world_size, (world_size - shift) % world_size};
        group = low;
        OK(MPI_Comm_split(MPI_COMM_WORLD, low, turned, &local));
        OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, leaders[!low], 3, &comm));
        if (below(&shared, 2)) {
            OK(MPI_Comm_dup(comm, &copy));
            OK(MPI_Comm_free(&comm));
            comm = copy;
        }
        MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size), MPI_Comm_remote_size(comm, &others);
        round_of_calls(&shared, &own);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_free(&local));
        more = seconds ? MPI_Wtime() < end : done + 1 < ROUNDS;
        if (seconds && done % 16 == 15) OK(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
        else if (seconds) more = 1;
    }
    if (world_rank == 0 && seconds)
        printf("campaign between groups: %d ranks: %ld rounds, seeds up to %llu\n", world_size, done, (unsigned long long)seed - 1);
    OK(MPI_Finalize());
    return 0;
}
