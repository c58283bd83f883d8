/* Tests operations of the user, and the reductions whose result differs from rank to rank: scan, exscan and the two
   scattered reductions, each blocking, nonblocking and persistent, in place and with large counts. */
#include "check.h"

#include <stdint.h>

enum { LARGEST = 16, COUNT = 5 };

static int rank, size;

/* A linear function x -> a x + b. The composition of such functions is associative, and does not commute. An
   element of the datatype `gapped` begins 16 bytes before its address, and has gaps. */
struct gapped { uint32_t a, hole, gap[2], b, end[3]; };

static MPI_Datatype gapped;
static int calls;

static void compose(const uint32_t *lower, uint32_t *upper)
{
    uint32_t a = lower[0], b = lower[4], c = upper[0], d = upper[4];
    upper[0] = c * a, upper[4] = c * b + d;
}

static void check_type(MPI_Datatype type)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    int elements;
    OK(MPI_Type_get_extent(type, &lb, &extent));
    OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    CHECK(lb == -16 && extent == sizeof(struct gapped) && true_lb == -16 && true_extent == 20);
    OK(MPI_Type_size(type, &elements));
    CHECK(elements == 8);
}

static void composition(void *in, void *inout, int *len, MPI_Datatype *type)
{
    check_type(*type);
    CHECK(gapped == MPI_DATATYPE_NULL || *type == gapped);
    for (int i = 0; i < *len; i++)
        compose((uint32_t *)((char *)in + i * 32 - 16), (uint32_t *)((char *)inout + i * 32 - 16));
    calls++;
}

static void large_composition(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    check_type(*type);
    for (MPI_Count i = 0; i < *len; i++)
        compose((uint32_t *)((char *)in + i * 32 - 16), (uint32_t *)((char *)inout + i * 32 - 16));
    calls++;
}

static MPI_Datatype make_gapped(void)
{
    MPI_Datatype two, made;
    OK(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){-16, 0}, MPI_UINT32_T, &two));
    OK(MPI_Type_create_resized(two, -16, sizeof(struct gapped), &made));
    OK(MPI_Type_free(&two));
    OK(MPI_Type_commit(&made));
    return made;
}

static struct gapped element(int of, int i)
{
    struct gapped made;
    memset(&made, 0x77, sizeof made);
    made.a = 3 + 2 * (uint32_t)(of + i), made.b = 5 + (uint32_t)(of * 100 + i);
    return made;
}

/* Returns the reduction of the elements `i` of the ranks `first` to `last`. */
static struct gapped reduced(int first, int last, int i)
{
    struct gapped result = element(first, i);
    for (int r = first + 1; r <= last; r++) {
        struct gapped next = element(r, i);
        compose((uint32_t *)&result, (uint32_t *)&next);
        result = next;
    }
    return result;
}

/* Checks an element: its members `a` and `b` have the wanted values, and all other bytes are still `hole`. */
static void expect(const struct gapped *got, struct gapped wanted, int hole)
{
    struct gapped all;
    memset(&all, hole, sizeof all);
    all.a = wanted.a, all.b = wanted.b;
    CHECK(memcmp(got, &all, sizeof all) == 0);
}

enum form { RUN, RUN_LARGE, START, START_LARGE, PREPARE, PREPARE_LARGE, FORMS };

static MPI_Request request;

/* Makes a call in one of its forms. A persistent operation runs twice. Before each run, the statement `again`
   restores the buffers. */
#define LIST(...) __VA_ARGS__
#define MAKE(form, run, start, arguments, again)                                              \
    switch (form) {                                                                           \
    case RUN: OK(MPI_##run(LIST arguments, MPI_COMM_WORLD)); break;                           \
    case RUN_LARGE: OK(MPI_##run##_c(LIST arguments, MPI_COMM_WORLD)); break;                 \
    case START: OK(MPI_I##start(LIST arguments, MPI_COMM_WORLD, &request)); break;            \
    case START_LARGE: OK(MPI_I##start##_c(LIST arguments, MPI_COMM_WORLD, &request)); break;  \
    case PREPARE:                                                                             \
        OK(MPI_##run##_init(LIST arguments, MPI_COMM_WORLD, MPI_INFO_NULL, &request));        \
        break;                                                                                \
    case PREPARE_LARGE:                                                                       \
        OK(MPI_##run##_init_c(LIST arguments, MPI_COMM_WORLD, MPI_INFO_NULL, &request));      \
        break;                                                                                \
    default: abort();                                                                         \
    }                                                                                         \
    if (form == START || form == START_LARGE) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));      \
    if (form == PREPARE || form == PREPARE_LARGE) {                                           \
        for (int round = 0; round < 2; round++) {                                             \
            again;                                                                            \
            OK(MPI_Start(&request));                                                          \
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                                        \
        }                                                                                     \
        OK(MPI_Request_free(&request));                                                       \
    }

static struct gapped mine[LARGEST * COUNT], got[LARGEST * COUNT];

static void fill(int placed)
{
    for (int i = 0; i < LARGEST * COUNT; i++) {
        mine[i] = element(rank, i);
        memset(&got[i], 0x33, sizeof got[i]);
        if (placed) got[i].a = mine[i].a, got[i].b = mine[i].b;
    }
}

/* The address of displacement 0. */
#define AT(buffer) ((char *)(buffer) + 16)

static void scans(MPI_Op op, enum form form, int placed)
{
    void *send = placed ? MPI_IN_PLACE : AT(mine);
    fill(placed);
    MAKE(form, Scan, scan, (send, AT(got), COUNT, gapped, op), fill(placed));
    for (int i = 0; i < COUNT; i++) expect(&got[i], reduced(0, rank, i), 0x33);

    fill(placed);
    void *receive = rank == 0 && !placed ? NULL : AT(got);
    MAKE(form, Exscan, exscan, (send, receive, COUNT, gapped, op), fill(placed));
    struct gapped untouched;
    memset(&untouched, 0x33, sizeof untouched);
    for (int i = 0; i < COUNT; i++)
        expect(&got[i], rank > 0 ? reduced(0, rank - 1, i) : placed ? mine[i] : untouched, 0x33);
}

static void divided(MPI_Op op, enum form form, int placed)
{
    void *send = placed ? MPI_IN_PLACE : AT(mine);
    fill(placed);
    MAKE(form, Reduce_scatter_block, reduce_scatter_block, (send, AT(got), COUNT, gapped, op), fill(placed));
    for (int i = 0; i < COUNT; i++) expect(&got[i], reduced(0, size - 1, rank * COUNT + i), 0x33);
    for (int i = COUNT; i < size * COUNT && placed; i++) expect(&got[i], mine[i], 0x33);

    int counts[LARGEST], first = 0;
    MPI_Count wide[LARGEST];
    for (int r = 0; r < size; r++) wide[r] = counts[r] = (r + 2) % 4;
    for (int r = 0; r < rank; r++) first += counts[r];
    fill(placed);
    if (form == RUN_LARGE || form == START_LARGE || form == PREPARE_LARGE) {
        switch (form) {
        case RUN_LARGE: OK(MPI_Reduce_scatter_c(send, AT(got), wide, gapped, op, MPI_COMM_WORLD)); break;
        case START_LARGE: OK(MPI_Ireduce_scatter_c(send, AT(got), wide, gapped, op, MPI_COMM_WORLD, &request)); break;
        default:
            OK(MPI_Reduce_scatter_init_c(send, AT(got), wide, gapped, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
            memset(wide, -1, sizeof wide);
            OK(MPI_Start(&request));
        }
        OK(form == RUN_LARGE ? MPI_SUCCESS : MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (form == PREPARE_LARGE) OK(MPI_Request_free(&request));
    } else {
        switch (form) {
        case RUN: OK(MPI_Reduce_scatter(send, AT(got), counts, gapped, op, MPI_COMM_WORLD)); break;
        case START: OK(MPI_Ireduce_scatter(send, AT(got), counts, gapped, op, MPI_COMM_WORLD, &request)); break;
        default:
            OK(MPI_Reduce_scatter_init(send, AT(got), counts, gapped, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
            OK(MPI_Start(&request));
        }
        OK(form == RUN ? MPI_SUCCESS : MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (form == PREPARE) OK(MPI_Request_free(&request));
    }
    for (int i = 0; i < counts[rank]; i++) expect(&got[i], reduced(0, size - 1, first + i), 0x33);
    if (!placed)
        for (int i = counts[rank]; i < LARGEST * COUNT; i++) CHECK(got[i].a == 0x33333333 && got[i].b == 0x33333333);
    for (int i = 0; i < LARGEST * COUNT; i++) CHECK(memcmp(&mine[i], &(struct gapped[]){element(rank, i)}, sizeof mine[i]) == 0);
}

/* Tests MPI_Reduce and MPI_Allreduce with operations of the user. */
static void reductions(MPI_Op op, enum form form, int placed)
{
    for (int root = 0; root < size; root++) {
        fill(placed && rank == root);
        void *send = placed && rank == root ? MPI_IN_PLACE : AT(mine);
        MAKE(form, Reduce, reduce, (send, AT(got), COUNT, gapped, op, root), fill(placed && rank == root));
        for (int i = 0; i < COUNT && rank == root; i++) expect(&got[i], reduced(0, size - 1, i), 0x33);
    }
    fill(placed);
    void *send = placed ? MPI_IN_PLACE : AT(mine);
    MAKE(form, Allreduce, allreduce, (send, AT(got), COUNT, gapped, op), fill(placed));
    for (int i = 0; i < COUNT; i++) expect(&got[i], reduced(0, size - 1, i), 0x33);
}

/* Frees an operation and a datatype while reductions with them are pending. */
static void freed(void)
{
    MPI_Op op;
    MPI_Request requests[3];
    OK(MPI_Op_create(composition, 0, &op));
    gapped = make_gapped();
    fill(0);
    struct gapped other[COUNT];
    memset(other, 0x33, sizeof other);
    OK(MPI_Iscan(AT(mine), AT(got), COUNT, gapped, op, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Iallreduce(AT(mine), AT(other), COUNT, gapped, op, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Type_free(&gapped));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; i++) {
        expect(&got[i], reduced(0, rank, i), 0x33);
        expect(&other[i], reduced(0, size - 1, i), 0x33);
    }
}

/* The operation for reductions of many elements (`long_vectors`). They need long messages, and some have more
   elements than a rank receives at once. */
static void add_words(void *in, void *inout, int *len, MPI_Datatype *type)
{
    CHECK(*type == MPI_INT64_T);
    for (int i = 0; i < *len; i++) ((int64_t *)inout)[i] += ((int64_t *)in)[i];
}

static void long_vectors(void)
{
    MPI_Op ours;
    OK(MPI_Op_create(add_words, 1, &ours));
    int n = 30000, total = n * size;
    int64_t *out = malloc(8 * (size_t)total), *in = malloc(8 * (size_t)total);
    for (int which = 0; which < 2; which++) {
        MPI_Op op = which ? ours : MPI_SUM;
        for (int i = 0; i < total; i++) out[i] = (int64_t)i * (rank + 1), in[i] = -1;
        int64_t ranks = (int64_t)size * (size + 1) / 2, below = (int64_t)rank * (rank + 1) / 2;
        OK(MPI_Reduce_scatter_block(out, in, n, MPI_INT64_T, op, MPI_COMM_WORLD));
        for (int i = 0; i < n; i++) CHECK(in[i] == (int64_t)(rank * n + i) * ranks);
        CHECK(size == 1 || in[n] == -1);
        OK(MPI_Scan(out, in, n, MPI_INT64_T, op, MPI_COMM_WORLD));
        for (int i = 0; i < n; i++) CHECK(in[i] == i * (below + rank + 1));
        OK(MPI_Exscan(out, in, n, MPI_INT64_T, op, MPI_COMM_WORLD));
        for (int i = 0; i < n && rank > 0; i++) CHECK(in[i] == i * below);
        OK(MPI_Allreduce(out, in, total, MPI_INT64_T, op, MPI_COMM_WORLD));
        for (int i = 0; i < total; i++) CHECK(in[i] == i * ranks);
        int root = size / 2, at_root = rank == root;
        memset(in, -1, 8 * (size_t)total);
        OK(MPI_Reduce(out, at_root ? in : NULL, total, MPI_INT64_T, op, root, MPI_COMM_WORLD));
        for (int i = 0; i < total; i++) CHECK(in[i] == (at_root ? i * ranks : -1));
        memcpy(in, out, 8 * (size_t)total);
        OK(MPI_Reduce(at_root ? MPI_IN_PLACE : in, in, total, MPI_INT64_T, op, root, MPI_COMM_WORLD));
        for (int i = 0; i < total; i++) CHECK(in[i] == (at_root ? i * ranks : out[i]));
        memcpy(in, out, 8 * (size_t)total);
        OK(MPI_Allreduce(MPI_IN_PLACE, in, total, MPI_INT64_T, op, MPI_COMM_WORLD));
        for (int i = 0; i < total; i++) CHECK(in[i] == i * ranks);
        OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, out, n, MPI_INT64_T, op, MPI_COMM_WORLD));
        for (int i = 0; i < n; i++) CHECK(out[i] == (int64_t)(rank * n + i) * ranks);
    }
    free(out), free(in);
    OK(MPI_Op_free(&ours));
}

static void nothing(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
    calls++;
}

static void errors_and_zero_counts(void)
{
    MPI_Op op = MPI_OP_NULL, stale;
    int flag = -1, in[LARGEST] = {0}, out[LARGEST] = {0}, zeros[LARGEST] = {0}, bad[LARGEST] = {-1};
    MPI_Comm world = MPI_COMM_WORLD;
    RAISES(MPI_ERR_ARG, MPI_Op_create(NULL, 1, &op));
    RAISES(MPI_ERR_ARG, MPI_Op_create(nothing, 1, NULL));
    RAISES(MPI_ERR_ARG, MPI_Op_create_c(NULL, 1, &op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Op_create(nothing, 7, &op));
    OK(MPI_Op_commutative(op, &flag));
    CHECK(flag == 1);
    RAISES(MPI_ERR_ARG, MPI_Op_commutative(op, NULL));
    stale = op;
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    RAISES(MPI_ERR_OP, MPI_Op_free(&op));
    RAISES(MPI_ERR_OP, MPI_Op_free(&stale));
    RAISES(MPI_ERR_OP, MPI_Op_commutative(stale, &flag));
    RAISES(MPI_ERR_OP, MPI_Scan(in, out, 1, MPI_INT, stale, world));
    RAISES(MPI_ERR_ARG, MPI_Op_free(NULL));
    op = MPI_SUM;
    RAISES(MPI_ERR_OP, MPI_Op_free(&op));
    CHECK(op == MPI_SUM);
    OK(MPI_Op_create(nothing, 0, &op));
    OK(MPI_Op_commutative(op, &flag));
    CHECK(flag == 0);
    OK(MPI_Op_commutative(MPI_MINLOC, &flag));
    CHECK(flag == 1);
    OK(MPI_Op_commutative(MPI_REPLACE, &flag));
    CHECK(flag == 0);
    CHECK(MPI_Op_fromint(MPI_Op_toint(op)) == op);

    RAISES(MPI_ERR_COUNT, MPI_Scan(in, out, -1, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_TYPE, MPI_Exscan(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, world));
    RAISES(MPI_ERR_BUFFER, MPI_Scan(out, out, 1, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_BUFFER, MPI_Scan(NULL, out, 1, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_COUNT, MPI_Reduce_scatter(in, out, bad, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_ARG, MPI_Reduce_scatter(in, out, NULL, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(NULL, out, 1, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_VALUE_TOO_LARGE, MPI_Reduce_scatter_block_c(in, out, INT64_MAX / 2, MPI_INT, MPI_SUM, world));
    RAISES(MPI_ERR_OP, MPI_Reduce_scatter_block(in, out, 1, MPI_FLOAT, MPI_BAND, world));

    calls = 0;
    OK(MPI_Scan(NULL, NULL, 0, MPI_INT, op, world));
    OK(MPI_Exscan(NULL, NULL, 0, MPI_INT, op, world));
    OK(MPI_Reduce_scatter(NULL, NULL, zeros, MPI_INT, op, world));
    OK(MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, op, world));
    OK(MPI_Reduce_local(NULL, NULL, 0, MPI_INT, op));
    CHECK(calls == 0);
    OK(MPI_Reduce_local(in, out, 3, MPI_INT, op));
    CHECK(calls == 1);
    OK(MPI_Op_free(&op));
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op narrow, wide;
    OK(MPI_Op_create(composition, 0, &narrow));
    OK(MPI_Op_create_c(large_composition, 0, &wide));
    gapped = make_gapped();
    for (enum form form = 0; form < FORMS; form++)
        for (int placed = 0; placed < 2; placed++) {
            MPI_Op op = (form + placed) % 2 ? narrow : wide;
            scans(op, form, placed);
            divided(op, form, placed);
            reductions(op, form, placed);
        }
    CHECK(size == 1 || calls > 0);
    OK(MPI_Op_free(&narrow));
    OK(MPI_Op_free(&wide));
    OK(MPI_Type_free(&gapped));
    freed();
    long_vectors();
    errors_and_zero_counts();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
