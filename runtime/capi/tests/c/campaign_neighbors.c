/* Makes random neighbourhood collective calls, and compares their results with a plain computation. In each round, the
   ranks make a communicator with a random topology: a Cartesian grid (with dimensions of 1 and 2 ranks, periodic or not,
   smaller than the job or not), a graph, or a distributed graph by either function, with edges that occur several times
   and edges from a rank to itself. All ranks draw the same calls: kinds, numbers of words, blocking, nonblocking and
   persistent, with and without large counts. Up to eight operations are pending at the same time. Each rank chooses its
   own layouts, for MPI_Neighbor_alltoallw one per neighbour; one word and two words per element match.

   An edge has a name: the sender, the receiver, and a number that tells the edges between the two apart. In a grid this
   is the side towards which the sender sends. In a graph it is the number of the edge among those from this sender to
   this receiver, in the order of the lists of both. Every value and every amount is a function of the call, the name and
   the index. So each rank computes the expected content of its whole buffers, with the gaps, without communication.

   campaign.h has the rounds. CAMPAIGN_SECONDS is the time to run (without it, the number of rounds is fixed),
   CAMPAIGN_SEED the first seed, and CAMPAIGN_THREADS the number of threads. A failure prints the seed of its round. */
#include "campaign.h"

enum kind { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };

static const char *const names[KINDS] = {"neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall",
                                         "neighbor_alltoallv", "neighbor_alltoallw"};

/* ---- topologies ---- */

enum { DIMS = 4, OUT = 6, SLOTS = RANKS * OUT };
enum shape { GRID, GRAPH, ADJACENT, DISTRIBUTED, SHAPES };

/* One side of this rank's edges: how many, and for each the rank at the other end (or MPI_PROC_NULL) and the number of
   the edge. */
struct side {
    int count, rank[SLOTS], number[SLOTS];
};

static _Thread_local struct side to, from;
static _Thread_local enum shape shape;

/* Numbers the edges to or from each rank in the order of the list. */
static void number_edges(struct side *side)
{
    for (int s = 0; s < side->count; s++) {
        side->number[s] = 0;
        for (int earlier = 0; earlier < s; earlier++) side->number[s] += side->rank[earlier] == side->rank[s];
    }
}

static void make_grid(MPI_Comm world, int all, uint64_t *shared)
{
    int dims[DIMS] = {1, 1, 1, 1}, periods[DIMS], number = (int)below(shared, DIMS + 1);
    int used = number == 0 ? 1 : below(shared, 3) ? all : 1 + (int)below(shared, (unsigned)all);
    for (int left = used, prime = 2; left > 1; prime++)
        for (; left % prime == 0; left /= prime) dims[below(shared, (unsigned)number)] *= prime;
    for (int d = 0; d < number; d++) periods[d] = below(shared, 3) > 0;
    OK(MPI_Cart_create(world, number, dims, periods, (int)below(shared, 2), &comm));
    if (comm == MPI_COMM_NULL) return;
    to.count = from.count = 2 * number;
    for (int d = 0; d < number; d++) {
        int low, high;
        OK(MPI_Cart_shift(comm, d, 1, &low, &high));
        to.rank[2 * d] = from.rank[2 * d] = low, to.rank[2 * d + 1] = from.rank[2 * d + 1] = high;
        /* A message towards one side arrives from the other side. */
        to.number[2 * d] = from.number[2 * d + 1] = 2 * d, to.number[2 * d + 1] = from.number[2 * d] = 2 * d + 1;
    }
}

static void make_graph(MPI_Comm world, int all, uint64_t *shared)
{
    /* The neighbours of each rank. */
    int lists[RANKS][2 * OUT], counts[RANKS] = {0}, index[RANKS], edges[RANKS * 2 * OUT], number = 0;
    int nodes = below(shared, 3) ? all : 1 + (int)below(shared, (unsigned)all), made;
    for (int i = (int)below(shared, (unsigned)(2 * nodes + 1)); i > 0; i--) {
        int a = (int)below(shared, (unsigned)nodes), b = (int)below(shared, (unsigned)nodes);
        if (counts[a] + 2 > 2 * OUT || counts[b] + 2 > 2 * OUT) continue;
        lists[a][counts[a]++] = b;
        if (a != b) lists[b][counts[b]++] = a;
    }
    for (int r = 0; r < nodes; r++) {
        for (int i = 0; i < counts[r]; i++) edges[number++] = lists[r][i];
        index[r] = number;
    }
    OK(MPI_Graph_create(world, nodes, index, edges, (int)below(shared, 2), &comm));
    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm, &made);
    OK(MPI_Graph_neighbors_count(comm, made, &to.count));
    OK(MPI_Graph_neighbors(comm, made, SLOTS, to.rank));
    from.count = to.count;
    memcpy(from.rank, to.rank, sizeof to.rank);
    number_edges(&to), number_edges(&from);
}

/* Makes a distributed graph. All ranks draw the same edges. */
static void make_distributed(MPI_Comm world, int all, uint64_t *shared, uint64_t *own)
{
    int me, sources[SLOTS], degrees[SLOTS], ends[SLOTS], weights[SLOTS], number = 0, in, out, weighted;
    int flag = (int)below(shared, 2), *none = flag ? MPI_UNWEIGHTED : MPI_WEIGHTS_EMPTY;
    MPI_Comm_rank(world, &me);
    for (int r = 0; r < all; r++)
        for (int i = (int)below(shared, OUT + 1); i > 0; i--)
            sources[number] = r, weights[number] = i, degrees[number] = 1, ends[number++] = (int)below(shared, (unsigned)all);
    if (shape == ADJACENT) {
        int to_rank[SLOTS], to_weight[SLOTS], from_rank[SLOTS], from_weight[SLOTS];
        out = in = 0;
        /* The edges from a rank are in the drawn order in both lists. Edges of different ranks are mixed. */
        uint64_t turn = below(own, (unsigned)all);
        for (int e = 0; e < number; e++)
            if (sources[e] == me) to_rank[out] = ends[e], to_weight[out++] = weights[e];
        for (int r = 0; r < all; r++)
            for (int e = 0; e < number; e++)
                if ((sources[e] + (int)turn) % all == r && ends[e] == me) from_rank[in] = sources[e], from_weight[in++] = weights[e];
        OK(MPI_Dist_graph_create_adjacent(world, in, from_rank, flag ? MPI_UNWEIGHTED : in ? from_weight : none, out,
                                          to_rank, flag ? MPI_UNWEIGHTED : out ? to_weight : none, MPI_INFO_NULL,
                                          (int)below(shared, 2), &comm));
    } else {
        /* Any rank may pass an edge. */
        int passed = 0, giver = (int)below(shared, 3);
        for (int e = 0; e < number; e++) {
            int who = giver == 0 ? 0 : giver == 1 ? ends[e] : e % all;
            if (who == me) sources[passed] = sources[e], ends[passed] = ends[e], weights[passed++] = weights[e];
        }
        OK(MPI_Dist_graph_create(world, passed, sources, degrees, ends, flag ? MPI_UNWEIGHTED : passed ? weights : none,
                                 MPI_INFO_NULL, (int)below(shared, 2), &comm));
    }
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(weighted == !flag || number == 0);
    from.count = in, to.count = out;
    OK(MPI_Dist_graph_neighbors(comm, SLOTS, from.rank, flag ? MPI_UNWEIGHTED : sources, SLOTS, to.rank,
                                flag ? MPI_UNWEIGHTED : sources));
    number_edges(&to), number_edges(&from);
}

/* ---- one call ---- */

/* The part of a buffer for one neighbour. */
struct slot {
    const struct layout *layout;
    int elements;
    long at; /* in bytes from the beginning of the buffer */
};

struct half {
    struct buffer buffer;
    int slots;
    struct slot slot[SLOTS];
    /* What the calls take. The arrays must live until the operation is complete. */
    int counts[SLOTS], displs[SLOTS];
    MPI_Count wide_counts[SLOTS];
    MPI_Aint wide_displs[SLOTS], bytes[SLOTS];
    MPI_Datatype types[SLOTS];
};

struct call {
    enum kind kind;
    enum form form;
    int wide;
    unsigned most;
    uint64_t seed;
    struct half send, recv;
    MPI_Request request;
};

/* In the allgather calls, all edges from a rank have the same data. */
static uint64_t edge(const struct call *c, int sender, int receiver, int number)
{
    uint64_t name = (uint64_t)sender * 1000003;
    return mix(c->seed + (c->kind <= ALLGATHERV ? name : name + (uint64_t)receiver * 7919 + (uint64_t)number * 31));
}

/* The number of pairs of words that move along an edge. */
static int pairs(const struct call *c, int sender, int receiver, int number)
{
    int same = c->kind == ALLGATHER || c->kind == ALLTOALL;
    return (int)((same ? mix(c->seed) : edge(c, sender, receiver, number)) % (c->most + 1));
}

/* Writes the words of an edge into a part of a buffer. */
static void part(const struct call *c, const struct slot *slot, char *memory, int sender, int receiver, int number)
{
    uint64_t first = edge(c, sender, receiver, number);
    const struct layout *l = slot->layout;
    for (long i = 0; i < slot->elements; i++)
        for (int w = 0; w < l->words; w++) {
            uint64_t value = mix(first + (uint64_t)(i * l->words + w));
            memcpy(memory + GUARD + slot->at + i * l->extent + l->at[w], &value, sizeof value);
        }
}

/* Chooses the layouts and places of all parts of a buffer, and fills the arrays that the calls take. */
static void place(const struct call *c, struct half *half, const struct side *side, int is_send, uint64_t *own)
{
    const struct layout *common = &layouts[below(own, LAYOUTS)];
    int rows = c->kind == ALLGATHER || c->kind == ALLTOALL, alone = is_send && c->kind <= ALLGATHERV;
    long end = 0;
    half->slots = alone ? 1 : side->count;
    CHECK(half->slots <= SLOTS);
    /* In the v and w forms, the parts lie in the reverse order with gaps between them. */
    for (int i = 0; i < half->slots; i++) {
        int s = rows ? i : half->slots - 1 - i, other = alone ? -1 : side->rank[s], gap = rows || alone ? 0 : (int)below(own, 3);
        struct slot *slot = &half->slot[s];
        slot->layout = c->kind == ALLTOALLW ? &layouts[below(own, LAYOUTS)] : common;
        long extent = slot->layout->extent;
        int number = alone ? 0 : side->number[s];
        slot->elements = 2 / slot->layout->words * pairs(c, is_send ? rank : other, is_send ? other : rank, number);
        end += c->kind == ALLTOALLW ? 64 + 8 * gap : extent * gap;
        slot->at = end, end += slot->elements * extent;
        half->counts[s] = slot->elements, half->wide_counts[s] = slot->elements;
        half->displs[s] = (int)(slot->at / extent), half->wide_displs[s] = slot->at / extent;
        half->bytes[s] = slot->at, half->types[s] = slot->layout->type;
        /* Nobody looks at the type of a neighbour that does not exist. */
        if (other == MPI_PROC_NULL && below(own, 2)) half->types[s] = MPI_DATATYPE_NULL;
    }
    half->buffer.layout = common;
    allocate_bytes(&half->buffer, (size_t)end + 64);
}

static void draw(struct call *c, uint64_t *shared, uint64_t *own)
{
    static const unsigned most[] = {1, 4, 30, 350, 4500};
    c->kind = below(shared, KINDS), c->form = below(shared, FORMS), c->wide = (int)below(shared, 2);
    c->seed = mix(*shared), c->most = most[below(shared, 20) == 0 ? 4 : below(shared, 4)];
    struct half *send = &c->send, *recv = &c->recv;
    place(c, send, &to, 1, own), place(c, recv, &from, 0, own);
    int alone = c->kind <= ALLGATHERV;
    for (int s = 0; s < send->slots; s++)
        if (alone || to.rank[s] != MPI_PROC_NULL)
            part(c, &send->slot[s], send->buffer.first, rank, alone ? 0 : to.rank[s], alone ? 0 : to.number[s]);
    memcpy(send->buffer.expected, send->buffer.first, send->buffer.bytes);
    memcpy(recv->buffer.expected, recv->buffer.first, recv->buffer.bytes);
    for (int s = 0; s < recv->slots; s++)
        if (from.rank[s] != MPI_PROC_NULL)
            part(c, &recv->slot[s], recv->buffer.expected, from.rank[s], rank, from.number[s]);
}

static void refill(struct call *c)
{
    memcpy(c->send.buffer.now, c->send.buffer.first, c->send.buffer.bytes);
    memcpy(c->recv.buffer.now, c->recv.buffer.first, c->recv.buffer.bytes);
}

static void make(struct call *c)
{
    struct half *out = &c->send, *in = &c->recv;
    MPI_Datatype s = out->buffer.layout->type, r = in->buffer.layout->type;
    void *send = out->buffer.now + GUARD, *recv = in->buffer.now + GUARD;
    int words[2] = {out->buffer.layout->words, in->buffer.layout->words}, same = 2 * pairs(c, 0, 0, 0);
    int own = out->slot[0].elements, each[2] = {same / words[0], same / words[1]};
    switch (c->kind) {
    case ALLGATHER: MAKE(Neighbor_allgather, neighbor_allgather, send, each[0], s, recv, each[1], r) break;
    case ALLGATHERV:
        ANY(c->form, c->wide, Neighbor_allgatherv, neighbor_allgatherv, (send, own, s, recv, in->counts, in->displs, r),
            (send, own, s, recv, in->wide_counts, in->wide_displs, r))
        break;
    case ALLTOALL: MAKE(Neighbor_alltoall, neighbor_alltoall, send, each[0], s, recv, each[1], r) break;
    case ALLTOALLV:
        ANY(c->form, c->wide, Neighbor_alltoallv, neighbor_alltoallv,
            (send, out->counts, out->displs, s, recv, in->counts, in->displs, r),
            (send, out->wide_counts, out->wide_displs, s, recv, in->wide_counts, in->wide_displs, r))
        break;
    default:
        ANY(c->form, c->wide, Neighbor_alltoallw, neighbor_alltoallw,
            (send, out->counts, out->bytes, out->types, recv, in->counts, in->bytes, in->types),
            (send, out->wide_counts, out->bytes, out->types, recv, in->wide_counts, in->bytes, in->types))
    }
}

static void compare(const struct call *c, const struct buffer *b, const char *which)
{
    long at = difference(b);
    if (at < 0) return;
    fprintf(stderr,
            "campaign of neighbours: seed %llu: %s%s, form %d, topology %d with %d sources and %d destinations, up to %u "
            "pairs of words: the %s buffer of rank %d of %d is wrong at byte %ld\n",
            (unsigned long long)round_seed, names[c->kind], c->wide ? "_c" : "", c->form, shape, from.count, to.count,
            c->most, which, rank, size, at - GUARD);
    exit(1);
}

static void compare_all(const struct call *calls, int number)
{
    for (int i = 0; i < number; i++) {
        compare(&calls[i], &calls[i].send.buffer, "send"), compare(&calls[i], &calls[i].recv.buffer, "receive");
    }
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
    compare_all(calls, number);
    /* The persistent operations run once more. The order of the starts differs from rank to rank. */
    for (int i = 0, first = (int)below(own, (unsigned)number); i < number; i++) {
        struct call *c = &calls[(i + first) % number];
        if (c->form != PREPARE) continue;
        refill(c);
        OK(MPI_Start(&c->request));
    }
    complete(requests, number, own);
    compare_all(calls, number);
    for (int i = 0; i < number; i++) {
        if (calls[i].form == PREPARE) OK(MPI_Request_free(&calls[i].request));
        release(&calls[i].send.buffer), release(&calls[i].recv.buffer);
    }
}

static void make_round(MPI_Comm world, uint64_t *shared, uint64_t *own)
{
    int all;
    MPI_Comm_size(world, &all);
    shape = below(shared, 2) ? GRID : below(shared, SHAPES);
    switch (shape) {
    case GRID: make_grid(world, all, shared); break;
    case GRAPH: make_graph(world, all, shared); break;
    default: make_distributed(world, all, shared, own);
    }
    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    round_of_calls(shared, own);
    OK(MPI_Comm_free(&comm));
}

int main(void)
{
    return run_campaign("campaign of neighbours", NULL, make_round);
}
