/* Makes random collective calls, and compares their results with a plain computation. All ranks draw the same calls:
   kinds, communicators, roots, operations, counts, in place or not, blocking, nonblocking and persistent. Up to eight
   operations are pending at the same time. Each rank chooses its own layouts. Every value is a function of the call,
   the ranks and the index. So each rank computes the expected content of its whole buffers, with the gaps, without
   communication.

   CAMPAIGN_SECONDS is the time to run (without it, the number of rounds is fixed), and CAMPAIGN_SEED the first
   seed. A failure prints the seed of its round. CAMPAIGN_THREADS is the number of threads of each rank (1 by default)
   that make such calls at the same time, each on communicators of its own. */
#include "campaign.h"

enum kind {
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, KINDS
};

static const char *names[KINDS] = {
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall",
    "alltoallv", "alltoallw", "reduce", "allreduce", "scan", "exscan", "reduce_scatter", "reduce_scatter_block",
};

/* ---- operations ---- */

/* The user's operation. Elements of one word are added. An element of two words (a, b) stands for the function
   x -> a x + b, and the operation composes two such functions, which does not commute. */
static void user_words(char *in, char *inout, long count, MPI_Datatype type)
{
    const struct layout *l = NULL;
    for (int i = 0; i < LAYOUTS; i++)
        if (layouts[i].type == type) l = &layouts[i];
    CHECK(l != NULL);
    for (long i = 0; i < count; i++) {
        uint64_t *a = (uint64_t *)(in + i * l->extent + l->at[0]), *c = (uint64_t *)(inout + i * l->extent + l->at[0]);
        if (l->words == 1) {
            *c += *a;
            continue;
        }
        uint64_t *b = (uint64_t *)(in + i * l->extent + l->at[1]), *d = (uint64_t *)(inout + i * l->extent + l->at[1]);
        *d += *c * *b, *c *= *a;
    }
}

static void user(void *in, void *inout, int *count, MPI_Datatype *type)
{
    user_words(in, inout, *count, *type);
}

static void user_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *type)
{
    user_words(in, inout, *count, *type);
}

enum { SUM, MAX, MIN, BXOR, PROD, USER, USER_LARGE, OPS };
static MPI_Op ops[OPS];

static void combine(int op, int words, const int64_t *lower, int64_t *upper)
{
    uint64_t a = (uint64_t)lower[0], c = (uint64_t)upper[0];
    switch (op) {
    case SUM: upper[0] = (int64_t)(a + c); break;
    case MAX: upper[0] = lower[0] > upper[0] ? lower[0] : upper[0]; break;
    case MIN: upper[0] = lower[0] < upper[0] ? lower[0] : upper[0]; break;
    case BXOR: upper[0] = (int64_t)(a ^ c); break;
    case PROD: upper[0] = (int64_t)(a * c); break;
    default:
        if (words == 1) {
            upper[0] = (int64_t)(a + c);
            break;
        }
        upper[1] = (int64_t)(c * (uint64_t)lower[1] + (uint64_t)upper[1]);
        upper[0] = (int64_t)(a * c);
    }
}

/* ---- one call ---- */

struct call {
    enum kind kind;
    enum form form;
    int wide, placed, root, op, words;
    uint64_t seed;
    /* For each rank, the number of its elements, and the displacement of its part in a buffer that has one part per
       rank. The buffer has `total` elements. */
    int counts[RANKS], displs[RANKS], total;
    /* For calls of the kind ALLTOALL: the count and the displacement of the part that this rank exchanges with each
       other rank. */
    int mine[RANKS], mine_displs[RANKS];
    struct buffer send, recv;
    MPI_Request request;
    /* The same numbers in the types that the _c forms and MPI_Alltoallw take. The arrays must live until the
       operation is complete. */
    MPI_Count wide_counts[RANKS], wide_mine[RANKS];
    MPI_Aint wide_displs[RANKS], wide_mine_displs[RANKS];
    int byte_displs[2][RANKS];
    MPI_Aint wide_byte_displs[2][RANKS];
    MPI_Datatype types[2][RANKS];
};

static int64_t value(const struct call *c, int from, int to, long i, int word)
{
    return (int64_t)mix(c->seed + (uint64_t)from * 1000003 + (uint64_t)to * 7919 + (uint64_t)i * 2 + (uint64_t)word);
}

static char *word(const struct buffer *b, char *memory, long element, int w)
{
    return memory + GUARD + element * b->layout->extent + b->layout->at[w];
}

static void put(const struct buffer *b, char *memory, long element, int w, int64_t v)
{
    memcpy(word(b, memory, element, w), &v, sizeof v);
}

/* Writes `count` elements to `memory`, beginning with element `at` of the memory. They are the elements that rank `from`
   has for rank `to`, beginning with index `first`. */
static void part(const struct call *c, const struct buffer *b, char *memory, long at, long count, int from, int to,
                 long first)
{
    for (long i = 0; i < count; i++)
        for (int w = 0; w < c->words; w++) put(b, memory, at + i, w, value(c, from, to, first + i, w));
}

/* Writes the reduction of the elements of ranks `low` to `high`. */
static void reduction(const struct call *c, const struct buffer *b, char *memory, long count, int low, int high,
                      long first)
{
    for (long i = 0; i < count; i++) {
        int64_t result[2] = {value(c, low, 0, first + i, 0), value(c, low, 0, first + i, 1)};
        for (int r = low + 1; r <= high; r++) {
            int64_t next[2] = {value(c, r, 0, first + i, 0), value(c, r, 0, first + i, 1)};
            combine(c->op, c->words, result, next);
            memcpy(result, next, sizeof result);
        }
        for (int w = 0; w < c->words; w++) put(b, memory, i, w, result[w]);
    }
}

static void allocate(struct buffer *b, const struct layout *layout, long elements)
{
    b->layout = layout;
    allocate_bytes(b, (size_t)elements * (size_t)layout->extent);
}

static void draw(struct call *c, uint64_t *shared, uint64_t *own)
{
    memset(c, 0, sizeof *c);
    c->kind = below(shared, KINDS), c->form = below(shared, FORMS), c->wide = (int)below(shared, 2);
    c->placed = below(shared, 3) == 0, c->root = (int)below(shared, (unsigned)size);
    c->seed = mix(*shared), c->words = 1 + (int)below(shared, 2);
    unsigned most = (unsigned[]){1, 4, 30, 700, 9000}[below(shared, 20) == 0 ? 4 : below(shared, 4)];
    /* The library uses another algorithm for long reductions, so some of them must be longer. */
    if (most == 9000 && c->kind >= REDUCE && c->kind <= EXSCAN) most = 40000;
    int same = c->kind == GATHER || c->kind == SCATTER || c->kind == ALLGATHER || c->kind == ALLTOALL ||
               c->kind == REDUCE_SCATTER_BLOCK;
    int equal = (int)below(shared, most + 1);
    for (int r = 0; r < size; r++) c->counts[r] = same ? equal : (int)below(shared, most + 1);
    /* The parts lie in the order of the ranks without gaps if all of them must be equally long. Otherwise they lie in
       the reverse order, with gaps of one element. */
    for (int r = size - 1, at = 0; r >= 0; r--) {
        c->displs[r] = same ? r * equal : at;
        at += c->counts[r] + !same;
        c->total = at;
    }
    for (int r = 0, at = 0; r < size; r++) {
        c->mine[r] = same ? equal : c->counts[r] + c->counts[rank];
        c->mine_displs[r] = at;
        at += c->mine[r] + !same;
        if (c->kind >= ALLTOALL && c->kind <= ALLTOALLW) c->total = at;
    }
    int offset = c->words == 1 ? 0 : SINGLES, number = c->words == 1 ? SINGLES : LAYOUTS - SINGLES;
    const struct layout *a = &layouts[offset + (int)below(own, (unsigned)number)],
                        *b = &layouts[offset + (int)below(own, (unsigned)number)];
    if (c->kind >= REDUCE) {
        c->op = (int)below(shared, OPS);
        a = b = &layouts[offset + (int)below(shared, (unsigned)number)];
        if (c->op < USER) c->words = 1, a = b = &layouts[0];
    }
    long elements = c->total;
    if (c->kind == REDUCE_SCATTER || c->kind == REDUCE_SCATTER_BLOCK) {
        elements = 0;
        for (int r = 0; r < size; r++) elements += c->counts[r];
    }
    if (c->kind == BCAST || (c->kind >= REDUCE && c->kind <= EXSCAN)) elements = c->counts[c->root];
    allocate(&c->send, a, elements);
    allocate(&c->recv, b, elements);
    struct buffer *s = &c->send, *r = &c->recv;
    for (int i = 0; i < size; i++) {
        c->wide_counts[i] = c->counts[i], c->wide_displs[i] = c->displs[i];
        c->wide_mine[i] = c->mine[i], c->wide_mine_displs[i] = c->mine_displs[i];
        for (int side = 0; side < 2; side++) {
            long extent = side == 0 ? a->extent : b->extent;
            c->wide_byte_displs[side][i] = c->byte_displs[side][i] = (int)(c->mine_displs[i] * extent);
            c->types[side][i] = c->mine[i] == 0 && i % 2 ? MPI_DATATYPE_NULL : side == 0 ? a->type : b->type;
        }
    }
    int at_root = rank == c->root;
    long count = c->counts[c->root], own_count = c->counts[rank];
    /* Computes first the content of the buffers before the call, and then the content that the call must leave. */
    switch (c->kind) {
    case BCAST:
        if (at_root) part(c, r, r->first, 0, count, c->root, 0, 0);
        break;
    case GATHER:
    case GATHERV:
        c->placed &= at_root;
        if (!c->placed) part(c, s, s->first, 0, own_count, rank, 0, 0);
        else part(c, r, r->first, c->displs[rank], own_count, rank, 0, 0);
        break;
    case SCATTER:
    case SCATTERV:
        c->placed &= at_root;
        for (int to = 0; to < size && at_root; to++) part(c, s, s->first, c->displs[to], c->counts[to], rank, to, 0);
        break;
    case ALLGATHER:
    case ALLGATHERV:
        if (!c->placed) part(c, s, s->first, 0, own_count, rank, 0, 0);
        else part(c, r, r->first, c->displs[rank], own_count, rank, 0, 0);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        for (int to = 0; to < size; to++)
            part(c, c->placed ? r : s, c->placed ? r->first : s->first, c->mine_displs[to], c->mine[to], rank, to, 0);
        break;
    case REDUCE:
        c->placed &= at_root;
        /* fallthrough */
    case ALLREDUCE:
    case SCAN:
    case EXSCAN:
        part(c, c->placed ? r : s, c->placed ? r->first : s->first, 0, count, rank, 0, 0);
        break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
        part(c, c->placed ? r : s, c->placed ? r->first : s->first, 0, elements, rank, 0, 0);
        break;
    default: break;
    }
    memcpy(s->expected, s->first, s->bytes), memcpy(r->expected, r->first, r->bytes);
    long before = 0;
    for (int i = 0; i < rank; i++) before += c->counts[i];
    switch (c->kind) {
    case BCAST: part(c, r, r->expected, 0, count, c->root, 0, 0); break;
    case GATHER:
    case GATHERV:
        for (int i = 0; i < size && at_root; i++) part(c, r, r->expected, c->displs[i], c->counts[i], i, 0, 0);
        break;
    case SCATTER:
    case SCATTERV:
        if (!c->placed) part(c, r, r->expected, 0, own_count, c->root, rank, 0);
        break;
    case ALLGATHER:
    case ALLGATHERV:
        for (int i = 0; i < size; i++) part(c, r, r->expected, c->displs[i], c->counts[i], i, 0, 0);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        for (int i = 0; i < size; i++) part(c, r, r->expected, c->mine_displs[i], c->mine[i], i, rank, 0);
        break;
    case REDUCE:
        if (at_root) reduction(c, r, r->expected, count, 0, size - 1, 0);
        break;
    case ALLREDUCE: reduction(c, r, r->expected, count, 0, size - 1, 0); break;
    case SCAN: reduction(c, r, r->expected, count, 0, rank, 0); break;
    case EXSCAN:
        if (rank > 0) reduction(c, r, r->expected, count, 0, rank - 1, 0);
        break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK: reduction(c, r, r->expected, own_count, 0, size - 1, before); break;
    default: break;
    }
}

static void refill(struct call *c)
{
    memcpy(c->send.now, c->send.first, c->send.bytes);
    memcpy(c->recv.now, c->recv.first, c->recv.bytes);
}

static void make(struct call *c)
{
    MPI_Datatype s = c->send.layout->type, r = c->recv.layout->type;
    void *send = c->send.now + GUARD, *recv = c->recv.now + GUARD, *own = c->placed ? MPI_IN_PLACE : send;
    int count = c->counts[c->root], root = c->root, each = c->counts[rank];
    MPI_Op op = ops[c->op];
    switch (c->kind) {
    case BARRIER:
        if (c->form == RUN) OK(MPI_Barrier(comm));
        if (c->form == START) OK(MPI_Ibarrier(comm, &c->request));
        if (c->form == PREPARE) OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &c->request));
        break;
    case BCAST: MAKE(Bcast, bcast, recv, count, r, root) break;
    case GATHER: MAKE(Gather, gather, own, each, s, recv, each, r, root) break;
    case GATHERV:
        ANY(c->form, c->wide, Gatherv, gatherv, (own, each, s, recv, c->counts, c->displs, r, root),
            (own, each, s, recv, c->wide_counts, c->wide_displs, r, root))
        break;
    case SCATTER: MAKE(Scatter, scatter, send, each, s, c->placed ? MPI_IN_PLACE : recv, each, r, root) break;
    case SCATTERV:
        ANY(c->form, c->wide, Scatterv, scatterv,
            (send, c->counts, c->displs, s, c->placed ? MPI_IN_PLACE : recv, each, r, root),
            (send, c->wide_counts, c->wide_displs, s, c->placed ? MPI_IN_PLACE : recv, each, r, root))
        break;
    case ALLGATHER: MAKE(Allgather, allgather, own, each, s, recv, each, r) break;
    case ALLGATHERV:
        ANY(c->form, c->wide, Allgatherv, allgatherv, (own, each, s, recv, c->counts, c->displs, r),
            (own, each, s, recv, c->wide_counts, c->wide_displs, r))
        break;
    case ALLTOALL: MAKE(Alltoall, alltoall, own, each, s, recv, each, r) break;
    case ALLTOALLV:
        ANY(c->form, c->wide, Alltoallv, alltoallv,
            (own, c->mine, c->mine_displs, s, recv, c->mine, c->mine_displs, r),
            (own, c->wide_mine, c->wide_mine_displs, s, recv, c->wide_mine, c->wide_mine_displs, r))
        break;
    case ALLTOALLW:
        ANY(c->form, c->wide, Alltoallw, alltoallw,
            (own, c->mine, c->byte_displs[0], c->types[0], recv, c->mine, c->byte_displs[1], c->types[1]),
            (own, c->wide_mine, c->wide_byte_displs[0], c->types[0], recv, c->wide_mine, c->wide_byte_displs[1],
             c->types[1]))
        break;
    case REDUCE: MAKE(Reduce, reduce, own, recv, count, r, op, root) break;
    case ALLREDUCE: MAKE(Allreduce, allreduce, own, recv, count, r, op) break;
    case SCAN: MAKE(Scan, scan, own, recv, count, r, op) break;
    case EXSCAN: MAKE(Exscan, exscan, own, recv, count, r, op) break;
    case REDUCE_SCATTER:
        ANY(c->form, c->wide, Reduce_scatter, reduce_scatter, (own, recv, c->counts, r, op),
            (own, recv, c->wide_counts, r, op))
        break;
    default: MAKE(Reduce_scatter_block, reduce_scatter_block, own, recv, each, r, op)
    }
}

static void compare(const struct call *c, const struct buffer *b, const char *which)
{
    long at = difference(b);
    if (at < 0) return;
    fprintf(stderr,
            "campaign: seed %llu: %s%s, form %d, in place %d, root %d, operation %d, layouts %d %d, counts",
            (unsigned long long)round_seed, names[c->kind], c->wide ? "_c" : "", c->form, c->placed, c->root, c->op,
            (int)(c->send.layout - layouts), (int)(c->recv.layout - layouts));
    for (int r = 0; r < size; r++) fprintf(stderr, " %d", c->counts[r]);
    fprintf(stderr, ": the %s buffer of rank %d of %d is wrong at byte %ld\n", which, rank, size, at - GUARD);
    exit(1);
}

static void round_of_calls(uint64_t *shared, uint64_t *own)
{
    static _Thread_local struct call calls[OUTSTANDING];
    MPI_Request *requests[OUTSTANDING];
    int number = 1 + (int)below(shared, OUTSTANDING);
    for (int i = 0; i < number; i++) {
        draw(&calls[i], shared, own);
        calls[i].request = MPI_REQUEST_NULL, requests[i] = &calls[i].request;
    }
    for (int i = 0; i < number; i++) {
        refill(&calls[i]);
        make(&calls[i]);
        if (calls[i].form == PREPARE) OK(MPI_Start(&calls[i].request));
    }
    complete(requests, number, own);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < number; i++) {
            compare(&calls[i], &calls[i].send, "send"), compare(&calls[i], &calls[i].recv, "receive");
        }
        if (round == 1) break;
        /* The persistent operations run once more. The order of the starts differs from rank to rank. */
        for (int i = 0, first = (int)below(own, (unsigned)number); i < number; i++) {
            struct call *c = &calls[(i + first) % number];
            if (c->form != PREPARE) continue;
            refill(c);
            OK(MPI_Start(&c->request));
        }
        complete(requests, number, own);
    }
    for (int i = 0; i < number; i++) {
        if (calls[i].form == PREPARE) OK(MPI_Request_free(&calls[i].request));
        release(&calls[i].send), release(&calls[i].recv);
    }
}

/* Makes the calls of one round on a communicator that the ranks choose. */
static void make_round(MPI_Comm world, uint64_t *shared, uint64_t *own)
{
    int which = (int)below(shared, 4);
    int color = 0, key;
    MPI_Comm_rank(world, &key);
    if (which == 2) key = -key;
    if (which == 3) color = (int)below(own, 2);
    if (which == 0) comm = world;
    else if (which == 1) OK(MPI_Comm_dup(world, &comm));
    else OK(MPI_Comm_split(world, color, key, &comm));
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    *shared += (uint64_t)color * 12345;
    round_of_calls(shared, own);
    if (comm != world) OK(MPI_Comm_free(&comm));
}

static void make_operations(void)
{
    MPI_Op predefined[USER] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_PROD};
    memcpy(ops, predefined, sizeof predefined);
    OK(MPI_Op_create(user, 0, &ops[USER]));
    OK(MPI_Op_create_c(user_large, 0, &ops[USER_LARGE]));
}

int main(void)
{
    return run_campaign("campaign", make_operations, make_round);
}
