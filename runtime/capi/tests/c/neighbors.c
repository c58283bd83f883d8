/* Tests the neighbourhood collectives: every call blocking, nonblocking and persistent, with and without large
 * counts, on grids, graphs and distributed graphs. A slot is the place of a neighbour in the list of destinations or
 * sources. Every message names its sender and the sender's slot. So the program finds messages that arrive in a
 * wrong place, even if one rank is a neighbour several times. */
#include "messages.h"

enum { SLOTS = 64, ROOM = 8, CALLS = 5, ROUNDS = 3, MANY = 6 };
enum way { RUN, RUN_C, START, START_C, KEEP, KEEP_C, WAYS };

/* A communicator, and this rank's neighbours. `slot` has, for each source, the place of this rank in the source's
 * list of destinations. */
struct around {
    MPI_Comm comm;
    int in, out, me;
    int sources[SLOTS], slot[SLOTS], dests[SLOTS];
};

/* The number of elements that rank `r` sends from its slot `slot`, in the calls with counts. */
static int amount(int r, int slot) { return (r + 2 * slot) % 4; }

/* Element `i` of the message that rank `r` sends from its slot `slot`. */
static int element(int r, int slot, int i, int salt) { return salt * 1000000 + r * 10000 + slot * 100 + i; }

/* The buffers of a call. Slots are ROOM elements apart. */
struct call {
    int which;
    int send[SLOTS * ROOM], recv[SLOTS * ROOM];
};

static void prepare(struct call *call, const struct around *at, int which, int salt)
{
    call->which = which;
    for (int s = 0; s < SLOTS; s++)
        for (int i = 0; i < ROOM; i++) {
            int slot = which < 2 ? 0 : s;
            call->send[s * ROOM + i] = element(at->me, slot, i, salt);
            call->recv[s * ROOM + i] = -1 - i;
        }
    /* The calls without displacements use the slots without gaps between them. */
    if (which == 2)
        for (int s = 0; s < SLOTS; s++)
            for (int i = 0; i < 3; i++) call->send[s * 3 + i] = element(at->me, s, i, salt);
}

/* Makes the call. When the call has returned, this function overwrites the arrays and frees the datatypes. */
static void make(struct call *call, const struct around *at, enum way way, MPI_Request *request)
{
    int scounts[SLOTS], sdispls[SLOTS], rcounts[SLOTS], rdispls[SLOTS];
    MPI_Count wide_scounts[SLOTS], wide_rcounts[SLOTS];
    MPI_Aint wide_sdispls[SLOTS], wide_rdispls[SLOTS], sbytes[SLOTS], rbytes[SLOTS];
    MPI_Datatype three, spread, stypes[SLOTS], rtypes[SLOTS];
    MPI_Comm comm = at->comm;
    MPI_Info none = MPI_INFO_NULL;
    int *send = call->send, *recv = call->recv, own = amount(at->me, 0);
    OK(MPI_Type_contiguous(3, MPI_INT, &three));
    OK(MPI_Type_commit(&three));
    OK(MPI_Type_vector(1, 1, 1, MPI_INT, &spread));
    OK(MPI_Type_commit(&spread));
    for (int s = 0; s < SLOTS; s++) {
        int there = s < at->in ? at->sources[s] : MPI_PROC_NULL;
        scounts[s] = amount(at->me, s);
        rcounts[s] = there == MPI_PROC_NULL ? 2 : amount(there, call->which < 2 ? 0 : at->slot[s]);
        /* The slots are in descending order in memory. */
        sdispls[s] = (SLOTS - 1 - s) * ROOM, rdispls[s] = (SLOTS - 1 - s) * ROOM;
        wide_scounts[s] = scounts[s], wide_rcounts[s] = rcounts[s];
        wide_sdispls[s] = sdispls[s], wide_rdispls[s] = rdispls[s];
        sbytes[s] = sdispls[s] * (MPI_Aint)sizeof(int), rbytes[s] = rdispls[s] * (MPI_Aint)sizeof(int);
        stypes[s] = s % 2 ? MPI_INT : spread;
        /* The type of a neighbour that does not exist does not matter. */
        rtypes[s] = there == MPI_PROC_NULL ? MPI_DATATYPE_NULL : s % 3 ? MPI_INT : spread;
        if (s < at->out && at->dests[s] == MPI_PROC_NULL) stypes[s] = MPI_DATATYPE_NULL;
    }
    if (call->which >= 3) {
        int old[SLOTS * ROOM];
        memcpy(old, send, sizeof old);
        for (int s = 0; s < SLOTS; s++)
            memcpy(send + sdispls[s], old + s * ROOM, ROOM * sizeof *send);
    }
    switch (call->which) {
#define WITH(NAME, ...)                                                           \
    if (way == RUN) OK(MPI_N##NAME(__VA_ARGS__, comm));                           \
    if (way == START) OK(MPI_In##NAME(__VA_ARGS__, comm, request));               \
    if (way == KEEP) OK(MPI_N##NAME##_init(__VA_ARGS__, comm, none, request))
#define WITH_C(NAME, ...)                                                         \
    if (way == RUN_C) OK(MPI_N##NAME##_c(__VA_ARGS__, comm));                     \
    if (way == START_C) OK(MPI_In##NAME##_c(__VA_ARGS__, comm, request));         \
    if (way == KEEP_C) OK(MPI_N##NAME##_init_c(__VA_ARGS__, comm, none, request))
    case 0:
        WITH(eighbor_allgather, send, 1, three, recv, 3, MPI_INT);
        WITH_C(eighbor_allgather, send, 1, three, recv, 3, MPI_INT);
        break;
    case 1:
        WITH(eighbor_allgatherv, send, own, MPI_INT, recv, rcounts, rdispls, spread);
        WITH_C(eighbor_allgatherv, send, own, MPI_INT, recv, wide_rcounts, wide_rdispls, spread);
        break;
    case 2:
        WITH(eighbor_alltoall, send, 3, MPI_INT, recv, 1, three);
        WITH_C(eighbor_alltoall, send, 3, MPI_INT, recv, 1, three);
        break;
    case 3:
        WITH(eighbor_alltoallv, send, scounts, sdispls, MPI_INT, recv, rcounts, rdispls, spread);
        WITH_C(eighbor_alltoallv, send, wide_scounts, wide_sdispls, MPI_INT, recv, wide_rcounts,
               wide_rdispls, spread);
        break;
    case 4:
        WITH(eighbor_alltoallw, send, scounts, sbytes, stypes, recv, rcounts, rbytes, rtypes);
        WITH_C(eighbor_alltoallw, send, wide_scounts, sbytes, stypes, recv, wide_rcounts, rbytes, rtypes);
        break;
    }
    OK(MPI_Type_free(&three));
    OK(MPI_Type_free(&spread));
    memset(scounts, -1, sizeof scounts), memset(rcounts, -1, sizeof rcounts);
    memset(wide_scounts, -1, sizeof wide_scounts), memset(wide_rcounts, -1, sizeof wide_rcounts);
    memset(sdispls, -1, sizeof sdispls), memset(rdispls, -1, sizeof rdispls);
    memset(sbytes, -1, sizeof sbytes), memset(rbytes, -1, sizeof rbytes);
    memset(stypes, -1, sizeof stypes), memset(rtypes, -1, sizeof rtypes);
}

/* Fills the send buffer of a persistent call for its next round. */
static void refill(struct call *call, const struct around *at, int salt)
{
    int which = call->which;
    prepare(call, at, which, salt);
    if (which < 3) return;
    struct call old = *call;
    for (int s = 0; s < SLOTS; s++)
        memcpy(call->send + (SLOTS - 1 - s) * ROOM, old.send + s * ROOM, ROOM * sizeof(int));
}

/* Checks every element of the receive buffer. */
static void check(const struct call *call, const struct around *at, int salt)
{
    int wanted[SLOTS * ROOM], which = call->which, row = which == 0 || which == 2;
    for (int i = 0; i < SLOTS * ROOM; i++) wanted[i] = -1 - i % ROOM;
    for (int s = 0; s < at->in; s++) {
        int there = at->sources[s], slot = which < 2 ? 0 : at->slot[s];
        if (there == MPI_PROC_NULL) continue;
        for (int i = 0; i < (row ? 3 : amount(there, slot)); i++)
            wanted[row ? 3 * s + i : (SLOTS - 1 - s) * ROOM + i] = element(there, slot, i, salt);
    }
    CHECK(memcmp(call->recv, wanted, sizeof wanted) == 0);
}

/* Makes every call in every way, alone and while others are pending. */
static void exchange(const struct around *at)
{
    static struct call calls[MANY];
    for (int which = 0; which < CALLS; which++)
        for (int way = RUN; way < WAYS; way++) {
            MPI_Request request = MPI_REQUEST_NULL;
            int kept = way >= KEEP;
            prepare(&calls[0], at, which, 3);
            make(&calls[0], at, way, &request);
            for (int round = 0; round < (kept ? ROUNDS : 1); round++) {
                if (kept) {
                    refill(&calls[0], at, 3 + round);
                    OK(MPI_Start(&request));
                }
                if (way >= START) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                check(&calls[0], at, 3 + round);
            }
            if (kept) OK(MPI_Request_free(&request));
            CHECK(request == MPI_REQUEST_NULL);
        }
    for (int way = START; way < WAYS; way++) {
        MPI_Request requests[MANY];
        int kept = way >= KEEP;
        for (int i = 0; i < MANY; i++) {
            prepare(&calls[i], at, i % CALLS, i);
            make(&calls[i], at, way, &requests[i]);
        }
        for (int round = 0; round < (kept ? ROUNDS : 1); round++) {
            for (int i = 0; kept && i < MANY; i++) refill(&calls[i], at, i + round);
            /* Each rank starts its persistent calls in another order. */
            for (int i = 0; kept && i < MANY; i++) OK(MPI_Start(&requests[(i + at->me + round) % MANY]));
            OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
            for (int i = 0; i < MANY; i++) check(&calls[i], at, i + round);
        }
        for (int i = 0; kept && i < MANY; i++) OK(MPI_Request_free(&requests[i]));
    }
}

/* The standard, section 8.6: the sources and destinations in a grid are the neighbours at displacement -1 and +1
 * of each dimension. What a rank sends to the lower side, the other rank receives from its upper side. */
static void on_grids(void)
{
    static const int shapes[][4] = {{1, 1}, {1, 2},       {1, 3},       {1, 5},       {1, 8},
                                    {2, 1, 1}, {2, 1, 2}, {2, 2, 2},    {2, 2, 4},    {2, 3, 1},
                                    {3, 1, 1, 1}, {3, 2, 1, 2}, {3, 2, 2, 2}, {3, 1, 5, 1}, {0}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int ndims = shapes[s][0], nodes = 1;
        for (int d = 1; d <= ndims; d++) nodes *= shapes[s][d];
        for (int bits = 0; nodes <= size && bits < 1 << ndims; bits++) {
            struct around at = {.in = 2 * ndims, .out = 2 * ndims};
            int periods[3];
            for (int d = 0; d < ndims; d++) periods[d] = bits >> d & 1;
            OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, shapes[s] + 1, periods, bits & 1, &at.comm));
            if (at.comm == MPI_COMM_NULL) continue;
            OK(MPI_Comm_rank(at.comm, &at.me));
            for (int d = 0; d < ndims; d++) {
                OK(MPI_Cart_shift(at.comm, d, 1, &at.sources[2 * d], &at.sources[2 * d + 1]));
                at.slot[2 * d] = 2 * d + 1, at.slot[2 * d + 1] = 2 * d;
            }
            memcpy(at.dests, at.sources, sizeof at.dests);
            exchange(&at);
            MPI_Comm copy;
            OK(MPI_Comm_dup(at.comm, &copy));
            OK(MPI_Comm_free(&at.comm));
            at.comm = copy;
            exchange(&at);
            OK(MPI_Comm_free(&at.comm));
        }
    }
}

/* Returns how often rank `r` is among the first `n` entries of a list. */
static int before(const int *list, int n, int r)
{
    int found = 0;
    for (int i = 0; i < n; i++) found += list[i] == r;
    return found;
}

/* Lists the neighbours of rank `r` in a graph in which all edges go both ways; rank 0 and the last rank have
 * two edges, and every rank has one to itself. */
static int listed(int r, int *list)
{
    int n = 0;
    list[n++] = (r + 1) % size;
    list[n++] = r;
    list[n++] = (r + size - 1) % size;
    if (r == 0) list[n++] = size - 1;
    if (r == size - 1) list[n++] = 0;
    return n;
}

static void on_graphs(void)
{
    struct around at = {.me = rank};
    int index[SLOTS], edges[4 * SLOTS], total = 0;
    for (int r = 0; r < size; r++) index[r] = total += listed(r, edges + total);
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &at.comm));
    at.in = at.out = listed(rank, at.sources);
    memcpy(at.dests, at.sources, sizeof at.dests);
    for (int i = 0; i < at.in; i++) {
        int theirs[SLOTS], count = listed(at.sources[i], theirs), nth = before(at.sources, i, at.sources[i]);
        for (at.slot[i] = 0; at.slot[i] < count; at.slot[i]++)
            if (theirs[at.slot[i]] == rank && before(theirs, at.slot[i], rank) == nth) break;
    }
    exchange(&at);
    OK(MPI_Comm_free(&at.comm));
}

/* Lists the destinations of rank `r` in a graph whose edges go one way, some of them twice. */
static int dests_of(int r, int *list)
{
    int n = 0;
    for (int i = 0; i <= r % 3; i++) list[n++] = (r + 1) % size;
    list[n++] = (3 * r + 1) % size;
    if (r % 2) list[n++] = r;
    for (int i = 0; r == 0 && i < size; i++) list[n++] = i;
    return n;
}

static void on_distributed_graphs(void)
{
    struct around at = {.me = rank};
    at.out = dests_of(rank, at.dests);
    /* The sources are in descending order of their ranks. */
    for (int r = size - 1; r >= 0; r--) {
        int theirs[SLOTS], count = dests_of(r, theirs);
        for (int i = 0; i < count; i++)
            if (theirs[i] == rank) at.sources[at.in] = r, at.slot[at.in++] = i;
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, at.in, at.sources, MPI_UNWEIGHTED, at.out, at.dests,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &at.comm));
    exchange(&at);
    OK(MPI_Comm_free(&at.comm));
    /* The same graph, made by the general call. The program asks for the order of the neighbours. */
    int degree = at.out, weighted;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, at.dests, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                             &at.comm));
    OK(MPI_Dist_graph_neighbors_count(at.comm, &at.in, &at.out, &weighted));
    OK(MPI_Dist_graph_neighbors(at.comm, at.in, at.sources, MPI_UNWEIGHTED, at.out, at.dests, MPI_UNWEIGHTED));
    /* Every rank tells the others its list of destinations, because the library may have changed the order of the
     * list. */
    static int all[SLOTS * SLOTS];
    at.dests[at.out] = -1;
    OK(MPI_Allgather(at.dests, SLOTS, MPI_INT, all, SLOTS, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < at.in; i++) {
        const int *theirs = all + at.sources[i] * SLOTS;
        int nth = before(at.sources, i, at.sources[i]);
        for (at.slot[i] = 0; at.slot[i] < SLOTS - 1; at.slot[i]++)
            if (theirs[at.slot[i]] == rank && before(theirs, at.slot[i], rank) == nth) break;
    }
    exchange(&at);
    OK(MPI_Comm_free(&at.comm));
}

/* Tests long messages of derived types, from memory of MPI_Alloc_mem and from other memory. */
static void long_messages(void)
{
    enum { N = 40000 };
    MPI_Comm ring;
    int one = 1, left, right;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &ring));
    OK(MPI_Cart_shift(ring, 0, 1, &left, &right));
    MPI_Datatype every_second;
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int heap = 0; heap < 2; heap++) {
        int *data;
        size_t bytes = 8 * N * sizeof *data;
        if (heap) OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &data));
        else data = malloc(bytes);
        CHECK(data != NULL);
        int counts[] = {1, 1};
        MPI_Aint sdispls[] = {0, sizeof(int)}, rdispls[] = {4 * N * sizeof(int), (4 * N + 1) * sizeof(int)};
        MPI_Datatype types[] = {every_second, every_second};
        MPI_Request request;
        OK(MPI_Neighbor_alltoallw_init(data, counts, sdispls, types, data, counts, rdispls, types, ring,
                                       MPI_INFO_NULL, &request));
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 4 * N; i++) data[i] = 100 * i + 10 * rank + round, data[4 * N + i] = -1;
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            for (int i = 0; i < N; i++) {
                /* The lower neighbour sent its odd elements to this rank, and the upper one its even ones. */
                CHECK(data[4 * N + 2 * i] == 100 * (2 * i + 1) + 10 * left + round);
                CHECK(data[4 * N + 2 * i + 1] == 100 * 2 * i + 10 * right + round);
            }
            for (int i = 6 * N; i < 8 * N; i++) CHECK(data[i] == -1);
        }
        OK(MPI_Request_free(&request));
        if (heap) OK(MPI_Free_mem(data));
        else free(data);
    }
    OK(MPI_Type_free(&every_second));
    OK(MPI_Comm_free(&ring));
}

/* A neighbour that sends more than this rank receives is an error, and the next exchange works. With the check of types,
 * the ranks find the error before a message arrives. */
static void unequal_counts(void)
{
    const char *checks = getenv("TYPEPACK_CHECK_TYPES");
    int wanted = checks && strcmp(checks, "1") == 0 ? MPI_ERR_COUNT : MPI_ERR_TRUNCATE;
    MPI_Comm ring;
    int one = 1, send[8] = {1, 2, 3, 4, 5, 6, 7, 8}, recv[8];
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &ring));
    int code = MPI_Neighbor_alltoall(send, 2, MPI_INT, recv, 1, MPI_INT, ring), class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == wanted);
    OK(MPI_Neighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, ring));
    CHECK(recv[0] == 2 && recv[1] == 1);
    OK(MPI_Comm_free(&ring));
}

int main(void)
{
    begin();
    on_grids();
    on_graphs();
    on_distributed_graphs();
    long_messages();
    unequal_counts();
    return end();
}
