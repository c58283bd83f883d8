/* Makes random one-sided calls, and checks the results. All ranks draw the same windows, epochs and calls, and
   each rank applies all calls to its own copy of the memory of all ranks. After each epoch, each rank compares its
   memory with the copy, and the data of the calls that read with what they must be. Some calls return requests, some
   have large counts, and some name their memory by absolute addresses.

   In an epoch that writes, no two puts touch the same word, and all accumulates of a region of the memory have one
   operation, so the result does not depend on the order; accumulates with MPI_REPLACE touch each word once. In an epoch
   that reads, only gets and fetches with MPI_NO_OP run, and they may read any word. At last, all ranks update the same
   words without an order.

   CAMPAIGN_SECONDS is the time to run (without it, the number of windows is fixed), and CAMPAIGN_SEED the first seed.
   A failure prints the seed of its window. */
#include "check.h"

#include <stdint.h>
#include <stdlib.h>

enum { RANKS = 16, WINDOWS = 40, EPOCHS = 8, CALLS = 30, WORDS = 512 };

/* Regions of the memory, in words: for puts, and for accumulates of several types. */
enum { PUT = 0, LONG = 128, INT = 256, BYTE = 320, PAIR = 352, COMPLEX = 416, END = 480 };

static int rank, size;
static uint64_t seed, state;
static int64_t *base, model[RANKS][WORDS];
static MPI_Aint shift[RANKS]; /* the address of the memory of each rank, in a dynamic window */
static int unit[RANKS];
static MPI_Win win;

static unsigned below(unsigned bound)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ z >> 31) % bound);
}

static void fail(const char *what, int target, int at)
{
    fprintf(stderr, "window_campaign: rank %d of %d, seed %llu: %s at word %d of rank %d\n", rank, size,
            (unsigned long long)seed, what, at, target);
    exit(1);
}

/* ---- layouts of words ---- */

struct layout {
    int words;
    long extent, at[3]; /* in words */
    MPI_Datatype type;
};

enum { LAYOUTS = 6 };
static struct layout layouts[LAYOUTS] = {
    {1, 1, {0}, 0}, {1, 3, {0}, 0}, {2, 2, {0, 1}, 0}, {2, 4, {2, 0}, 0}, {3, 5, {-1, 1, 2}, 0}, {1, 2, {-1}, 0},
};

static void make_layouts(void)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct layout *l = &layouts[i];
        MPI_Aint at[3] = {8 * l->at[0], 8 * l->at[1], 8 * l->at[2]};
        MPI_Datatype words;
        OK(MPI_Type_create_hindexed_block(l->words, 1, at, MPI_INT64_T, &words));
        OK(MPI_Type_create_resized(words, 0, 8 * l->extent, &l->type));
        OK(MPI_Type_free(&words));
        OK(MPI_Type_commit(&l->type));
    }
}

static long place(const struct layout *l, int word)
{
    return word / l->words * l->extent + l->at[word % l->words];
}

/* ---- windows ---- */

enum flavor { ALLOCATE, SHARED, CREATE, DYNAMIC, FLAVORS };
static enum flavor flavor;
static int is_private; /* the memory of this rank is not from MPI_Alloc_mem */

static void make_window(void)
{
    static const int units[] = {1, 2, 4, 8};
    MPI_Aint bytes = 8 * WORDS;
    flavor = below(FLAVORS);
    for (int i = 0; i < size; i++) unit[i] = flavor == DYNAMIC ? 1 : units[below(4)], shift[i] = 0;
    is_private = 0;
    for (int i = 0; i < size; i++)
        if (below(2) && i == rank) is_private = 1;
    MPI_Info info = MPI_INFO_NULL;
    if (below(2)) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", below(2) ? "true" : "false"));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", below(2) ? "4096" : "8"));
        static const char *const granularities[] = {"0", "8", "4096"};
        OK(MPI_Info_set(info, "mpi_accumulate_granularity", granularities[below(3)]));
    }
    switch (flavor) {
    case ALLOCATE: OK(MPI_Win_allocate(bytes, unit[rank], info, MPI_COMM_WORLD, &base, &win)); break;
    case SHARED: OK(MPI_Win_allocate_shared(bytes, unit[rank], info, MPI_COMM_WORLD, &base, &win)); break;
    default:
        if (is_private)
            base = malloc(8 * WORDS);
        else
            OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
        CHECK(base != NULL);
        memset(base, 0, 8 * WORDS);
    }
    if (flavor == CREATE) OK(MPI_Win_create(base, bytes, unit[rank], info, MPI_COMM_WORLD, &win));
    if (flavor == DYNAMIC) {
        OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, base, bytes));
        MPI_Aint mine;
        OK(MPI_Get_address(base, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, shift, 1, MPI_AINT, MPI_COMM_WORLD));
    }
    if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(model, 0, sizeof model);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void free_window(void)
{
    if (flavor == DYNAMIC && below(2)) OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    if (flavor != CREATE && flavor != DYNAMIC) return;
    if (is_private)
        free(base);
    else
        OK(MPI_Free_mem(base));
}

/* Sets hints, and checks that they are in force. */
static void set_info(void)
{
    static const char *const orders[] = {"none", "rar,raw,war,waw", "waw"};
    const char *order = orders[below(3)], *ops = below(2) ? "same_op" : "same_op_no_op";
    if (below(2)) return;
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL];
    int length = sizeof value, flag;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "accumulate_ordering", order));
    OK(MPI_Info_set(info, "accumulate_ops", ops));
    OK(MPI_Info_set(info, "no_locks", "false"));
    OK(MPI_Info_set(info, "of_no_meaning", "1"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "accumulate_ordering", &length, value, &flag));
    CHECK(flag && strcmp(value, order) == 0);
    length = sizeof value;
    OK(MPI_Info_get_string(info, "accumulate_ops", &length, value, &flag));
    CHECK(flag && strcmp(value, ops) == 0);
    OK(MPI_Info_free(&info));
}

/* The displacement of a byte of the memory of a rank. */
static MPI_Aint disp(int target, long byte)
{
    CHECK(byte % unit[target] == 0);
    return shift[target] + byte / unit[target];
}

/* ---- epochs ---- */

enum epoch { FENCE, ACTIVE, LOCK, LOCK_EXCLUSIVE, LOCK_ALL, KINDS };
static char reaches[RANKS][RANKS]; /* whether the epoch lets a rank access another */
static int reads;                  /* no call of the epoch writes */

/* Returns the ranks that this rank reaches, or the ranks that reach this rank. */
static MPI_Group partners(int targets)
{
    MPI_Group world, group;
    int ranks[RANKS], count = 0;
    for (int i = 0; i < size; i++)
        if (targets ? reaches[rank][i] : reaches[i][rank]) ranks[count++] = i;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, count, ranks, &group));
    OK(MPI_Group_free(&world));
    return group;
}

static void begin(enum epoch epoch)
{
    /* In an epoch of start, a rank accesses a part of the ranks, which all ranks draw. */
    int sparse = epoch == ACTIVE && below(2);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) reaches[i][j] = !sparse || below(3) > 0;
    /* No rank stores to its memory between the epochs. */
    int promises = below(2) ? MPI_MODE_NOSTORE | (reads ? MPI_MODE_NOPUT : 0) : 0;
    int checks = below(2), precede = below(2);
    if (epoch == FENCE) OK(MPI_Win_fence(promises | (precede ? 0 : MPI_MODE_NOPRECEDE), win));
    if (epoch == LOCK_ALL) OK(MPI_Win_lock_all(0, win));
    if (epoch != ACTIVE) return;
    MPI_Group targets = partners(1), origins = partners(0);
    OK(MPI_Win_post(origins, promises | (checks ? 0 : MPI_MODE_NOCHECK), win));
    if (!checks) OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_start(targets, checks ? 0 : MPI_MODE_NOCHECK, win));
    OK(MPI_Group_free(&targets));
    OK(MPI_Group_free(&origins));
}

static void check_all(int target);

static void end(enum epoch epoch)
{
    int waits = below(2);
    switch (epoch) {
    case FENCE: OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | (below(2) ? MPI_MODE_NOSTORE : 0), win)); break;
    case ACTIVE:
        OK(MPI_Win_complete(win));
        for (int flag = 0; !waits && !flag;) OK(MPI_Win_test(win, &flag));
        if (waits) OK(MPI_Win_wait(win));
        break;
    case LOCK_ALL: OK(MPI_Win_unlock_all(win)); break;
    default: break;
    }
    check_all(-1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void before(enum epoch epoch, int target)
{
    int promised = size == 1 && below(2);
    if (epoch == LOCK || epoch == LOCK_EXCLUSIVE)
        OK(MPI_Win_lock(epoch == LOCK ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, promised ? MPI_MODE_NOCHECK : 0,
                        win));
}

/* ---- calls under way ---- */

/* The memory of a call, which stays until the call is complete. */
static struct kept {
    int64_t data[200], old[200], wanted[200];
    int target, at, reads;
    MPI_Request request;
} kept[CALLS];
static int under_way;

static struct kept *keep(int target, long at)
{
    CHECK(under_way < CALLS);
    struct kept *k = &kept[under_way++];
    memset(k, 0, sizeof *k);
    k->target = target, k->at = (int)at, k->request = MPI_REQUEST_NULL;
    return k;
}

/* Checks the data of the calls to a target that are complete, or of all calls (-1). */
static void check_all(int target)
{
    for (int i = 0; i < under_way; i++) {
        struct kept *k = &kept[i];
        if (target >= 0 && k->target != target) continue;
        OK(MPI_Wait(&k->request, MPI_STATUS_IGNORE));
        for (int j = 0; j < 200 && k->reads; j++)
            if (k->data[j] != k->wanted[j]) fail("a wrong value was read", k->target, k->at);
        k->reads = 0;
    }
    if (target < 0) under_way = 0;
}

static void after(enum epoch epoch, int target, struct kept *k)
{
    if (below(3) == 0) {
        int flag;
        OK(MPI_Test(&k->request, &flag, MPI_STATUS_IGNORE));
    } else if (below(2)) {
        OK(MPI_Wait(&k->request, MPI_STATUS_IGNORE));
    }
    if (epoch == LOCK || epoch == LOCK_EXCLUSIVE) {
        OK(MPI_Win_unlock(target, win));
        check_all(-1);
    }
    if (epoch != LOCK_ALL) return;
    switch (below(8)) {
    case 0: OK(MPI_Win_flush(target, win)); check_all(target); break;
    case 1: OK(MPI_Win_flush_local(target, win)); check_all(target); break;
    case 2: OK(MPI_Win_flush_all(win)); check_all(-1); break;
    case 3: OK(MPI_Win_flush_local_all(win)); check_all(-1); break;
    default: break;
    }
}

/* Elements at the calling rank or at a target, as a call takes them. */
struct elements {
    void *address;
    MPI_Aint disp;
    int count;
    MPI_Datatype type, absolute;
};

/* Names the elements at an address. Sometimes the type has absolute addresses, and the address is MPI_BOTTOM. */
static struct elements near_elements(int64_t *address, int count, const struct layout *l)
{
    struct elements e = {address, 0, count, l->type, MPI_DATATYPE_NULL};
    if (below(4)) return e;
    MPI_Aint at;
    OK(MPI_Get_address(address, &at));
    OK(MPI_Type_create_hindexed_block(1, count, &at, l->type, &e.absolute));
    OK(MPI_Type_commit(&e.absolute));
    return (struct elements){MPI_BOTTOM, 0, 1, e.absolute, e.absolute};
}

/* Names elements at a target. In a dynamic window, the type sometimes has absolute addresses. */
static struct elements far_elements(int target, long word, int count, const struct layout *l)
{
    struct elements e = {NULL, disp(target, 8 * word), count, l->type, MPI_DATATYPE_NULL};
    if (flavor != DYNAMIC || below(2)) return e;
    MPI_Aint at = e.disp;
    OK(MPI_Type_create_hindexed_block(1, count, &at, l->type, &e.absolute));
    OK(MPI_Type_commit(&e.absolute));
    return (struct elements){NULL, (MPI_Aint)MPI_BOTTOM, 1, e.absolute, e.absolute};
}

/* A call may be complete later than its types. */
static void release(struct elements *e)
{
    if (e->absolute != MPI_DATATYPE_NULL) OK(MPI_Type_free(&e->absolute));
}

/* How a call is made: with int counts or large ones, and with a request or without. */
static int is_passive(enum epoch epoch) { return epoch == LOCK || epoch == LOCK_EXCLUSIVE || epoch == LOCK_ALL; }

/* Makes one of the forms of a call. The macros get the same arguments for all forms. */
#define FORMS(name, rname, epoch, request, ...)                                       \
    do {                                                                              \
        int asks = is_passive(epoch) && below(2), large = (int)below(2);              \
        if (asks && large)                                                            \
            OK(rname##_c(__VA_ARGS__, request));                                      \
        else if (asks)                                                                \
            OK(rname(__VA_ARGS__, request));                                          \
        else if (large)                                                               \
            OK(name##_c(__VA_ARGS__));                                                \
        else                                                                          \
            OK(name(__VA_ARGS__));                                                    \
    } while (0)

static int64_t value_of(int call, int word)
{
    return (int64_t)((seed * 31 + (unsigned)call) * 1000003u + (unsigned)word);
}

/* ---- calls that write ---- */

static char used[RANKS][WORDS];
static void compare(void);

/* Draws elements of a layout of `words` words in a region of `length` words. Returns the word at which they begin, or
   -1 if they do not fit. */
static long draw(const struct layout *l, int words, int first, int length)
{
    long low = 0, high = 0;
    for (int i = 0; i < words; i++) {
        long at = place(l, i);
        if (at < low) low = at;
        if (at > high) high = at;
    }
    if (high - low >= length) return -1;
    return first - low + below((unsigned)(length - (high - low)));
}

static void put(int call, int origin, int target, enum epoch epoch)
{
    const struct layout *from = &layouts[below(LAYOUTS)], *to = &layouts[below(LAYOUTS)];
    int words = 6 * (1 + (int)below(4));
    long at = draw(to, words, PUT, LONG - PUT);
    if (at < 0) return;
    for (int i = 0; i < words; i++)
        if (used[target][at + place(to, i)]) return;
    for (int i = 0; i < words; i++) {
        used[target][at + place(to, i)] = 1;
        model[target][at + place(to, i)] = value_of(call, i);
    }
    if (origin != rank) return;
    uint64_t drawn = state;
    struct kept *k = keep(target, at);
    for (int i = 0; i < words; i++) k->data[2 + place(from, i)] = value_of(call, i);
    before(epoch, target);
    struct elements near = near_elements(k->data + 2, words / from->words, from);
    struct elements far = far_elements(target, at, words / to->words, to);
    FORMS(MPI_Put, MPI_Rput, epoch, &k->request, near.address, near.count, near.type, target, far.disp, far.count,
          far.type, win);
    release(&near), release(&far);
    after(epoch, target, k);
    state = drawn;
}

static int64_t combined(MPI_Op op, int64_t a, int64_t b)
{
    if (op == MPI_SUM) return (int64_t)((uint64_t)a + (uint64_t)b);
    if (op == MPI_PROD) return (int64_t)((uint64_t)a * (uint64_t)b);
    if (op == MPI_BXOR) return a ^ b;
    if (op == MPI_BOR) return a | b;
    if (op == MPI_BAND) return a & b;
    if (op == MPI_REPLACE) return b;
    return op == MPI_MAX ? (a > b ? a : b) : (a < b ? a : b);
}

/* Accumulates whole words. */
static void accumulate(int call, int origin, int target, enum epoch epoch, MPI_Op op)
{
    const struct layout *from = &layouts[below(LAYOUTS)], *to = &layouts[below(LAYOUTS)];
    const struct layout *back = &layouts[below(LAYOUTS)];
    int words = 6 * (1 + (int)below(4)), fetches = (int)below(3);
    if (fetches == 2) words = 1, from = to = back = &layouts[0];
    long at = draw(to, words, LONG, INT - LONG);
    if (at < 0) return;
    for (int i = 0; i < words && op == MPI_REPLACE; i++)
        if (used[target][at + place(to, i)]) return;
    for (int i = 0; i < words; i++) {
        used[target][at + place(to, i)] = 1;
        int64_t *there = &model[target][at + place(to, i)];
        *there = combined(op, *there, value_of(call, i));
    }
    if (origin != rank) return;
    uint64_t drawn = state;
    struct kept *k = keep(target, at);
    for (int i = 0; i < words; i++) k->data[2 + place(from, i)] = value_of(call, i);
    before(epoch, target);
    struct elements near = near_elements(k->data + 2, words / from->words, from);
    struct elements result = near_elements(k->old + 2, words / back->words, back);
    struct elements far = far_elements(target, at, words / to->words, to);
    if (fetches == 0)
        FORMS(MPI_Accumulate, MPI_Raccumulate, epoch, &k->request, near.address, near.count, near.type, target,
              far.disp, far.count, far.type, op, win);
    else if (fetches == 1)
        FORMS(MPI_Get_accumulate, MPI_Rget_accumulate, epoch, &k->request, near.address, near.count, near.type,
              result.address, result.count, result.type, target, far.disp, far.count, far.type, op, win);
    else
        OK(MPI_Fetch_and_op(k->data + 2, k->old + 2, MPI_INT64_T, target, disp(target, 8 * at), op, win));
    release(&near), release(&result), release(&far);
    after(epoch, target, k);
    state = drawn;
}

/* Accumulates elements of other sizes. Each type has one operation. */
static void small(int call, int origin, int target, enum epoch epoch)
{
    int kind = (int)below(4);
    int first = (int)below(20), elements = 1 + (int)below(12);
    char *there = (char *)model[target];
    union elements_of { int32_t ints[16]; uint8_t bytes[16]; double complex_[32];
        struct { double value; int index; } pairs[16]; } data;
    memset(&data, 0, sizeof data);
    MPI_Datatype type = MPI_INT32_T;
    MPI_Op op = MPI_SUM;
    long at = 8 * INT + 4 * first;
    for (int i = 0; i < elements; i++) {
        int64_t value = value_of(call, i);
        switch (kind) {
        case 0:
            data.ints[i] = (int32_t)value;
            ((uint32_t *)(there + at))[i] += (uint32_t)value;
            break;
        case 1:
            type = MPI_UINT8_T, op = MPI_BXOR, at = 8 * BYTE + first;
            data.bytes[i] = (uint8_t)value;
            there[at + i] ^= (char)value;
            break;
        case 2: {
            type = MPI_DOUBLE_INT, op = MPI_MAXLOC, at = 8 * PAIR + 16 * first;
            data.pairs[i].value = (double)(value & 1023), data.pairs[i].index = (int)(value >> 10 & 0xffff);
            struct { double value; int index; } *pair = (void *)(there + at + 16 * i);
            if (data.pairs[i].value > pair->value
                || (data.pairs[i].value == pair->value && data.pairs[i].index < pair->index))
                pair->value = data.pairs[i].value, pair->index = data.pairs[i].index;
            break;
        }
        default:
            type = MPI_C_DOUBLE_COMPLEX, at = 8 * COMPLEX + 16 * first;
            for (int part = 0; part < 2; part++) {
                data.complex_[2 * i + part] = (double)(value >> part & 255);
                ((double *)(there + at))[2 * i + part] += data.complex_[2 * i + part];
            }
        }
    }
    int step = unit[target];
    if (origin == rank) {
        uint64_t drawn = state;
        struct kept *k = keep(target, at / 8);
        memcpy(k->data, &data, sizeof data);
        before(epoch, target);
        if (at % step == 0) {
            FORMS(MPI_Accumulate, MPI_Raccumulate, epoch, &k->request, k->data, elements, type, target,
                  disp(target, at), elements, type, op, win);
        } else {
            /* The displacement counts units of the window, so the type adds the remaining bytes. */
            MPI_Datatype later;
            int lengths[1] = {elements};
            MPI_Aint displacements[1] = {at % step};
            OK(MPI_Type_create_hindexed(1, lengths, displacements, type, &later));
            OK(MPI_Type_commit(&later));
            OK(MPI_Accumulate(k->data, elements, type, target, disp(target, at - at % step), 1, later, op, win));
            OK(MPI_Type_free(&later));
        }
        after(epoch, target, k);
        state = drawn;
    }
}

/* ---- calls that read ---- */

static void read_back(int origin, int target, enum epoch epoch)
{
    const struct layout *from = &layouts[below(LAYOUTS)], *to = &layouts[below(LAYOUTS)];
    int words = 6 * (1 + (int)below(4)), fetches = (int)below(2);
    long at = draw(from, words, PUT, END - PUT);
    if (at < 0) return;
    if (origin != rank) return;
    uint64_t drawn = state;
    struct kept *k = keep(target, at);
    k->reads = 1;
    for (int i = 0; i < 200; i++) k->data[i] = k->wanted[i] = (int64_t)i << 32 | i;
    for (int i = 0; i < words; i++) k->wanted[2 + place(to, i)] = model[target][at + place(from, i)];
    before(epoch, target);
    struct elements near = near_elements(k->data + 2, words / to->words, to);
    struct elements far = far_elements(target, at, words / from->words, from);
    if (fetches)
        FORMS(MPI_Get_accumulate, MPI_Rget_accumulate, epoch, &k->request, NULL, 0, MPI_INT64_T, near.address,
              near.count, near.type, target, far.disp, far.count, far.type, MPI_NO_OP, win);
    else
        FORMS(MPI_Get, MPI_Rget, epoch, &k->request, near.address, near.count, near.type, target, far.disp, far.count,
              far.type, win);
    release(&near), release(&far);
    after(epoch, target, k);
    state = drawn;
}

/* ---- updates of the same words at the same time ---- */

/* All ranks update the words from LONG to INT (1 KiB) of one target at the same time, without an order: they add to
   all words at once, fetch and add to one word, or compare and swap one word. Checks that no update is lost, and that
   the values that a rank fetches from a word grow. */
static void contend(void)
{
    enum { SUM_WORDS = INT - LONG, UPDATES = 60 };
    int target = (int)below((unsigned)size);
    uint64_t kept = state;
    state += 77u * (unsigned)rank; /* from here on, each rank draws numbers of its own */
    int64_t ones[SUM_WORDS], added[SUM_WORDS] = {0}, all[SUM_WORDS], last[SUM_WORDS], one = 1;
    for (int i = 0; i < SUM_WORDS; i++) ones[i] = 1, last[i] = INT64_MIN;
    OK(MPI_Win_lock_all(0, win));
    /* Sums must not wrap, because the values of a word must grow. */
    for (int i = 0; i < SUM_WORDS; i++) {
        static int64_t zero = 0, old;
        if (rank == target)
            OK(MPI_Fetch_and_op(&zero, &old, MPI_INT64_T, target, disp(target, 8 * (LONG + i)), MPI_REPLACE, win));
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int update = 0; update < UPDATES; update++) {
        int word = (int)below(8);
        MPI_Aint at = disp(target, 8 * (LONG + word));
        int64_t old, next;
        switch (below(4)) {
        case 0:
            OK(MPI_Accumulate(ones, SUM_WORDS, MPI_INT64_T, target, disp(target, 8 * LONG), SUM_WORDS, MPI_INT64_T,
                              MPI_SUM, win));
            for (int i = 0; i < SUM_WORDS; i++) added[i]++;
            break;
        case 1:
            OK(MPI_Fetch_and_op(NULL, &old, MPI_INT64_T, target, at, MPI_NO_OP, win));
            OK(MPI_Win_flush(target, win));
            next = old + 1;
            OK(MPI_Compare_and_swap(&next, &old, &all[0], MPI_INT64_T, target, at, win));
            OK(MPI_Win_flush_local(target, win));
            added[word] += all[0] == old;
            break;
        default:
            OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, at, MPI_SUM, win));
            OK(MPI_Win_flush_local_all(win));
            added[word]++;
            if (old <= last[word]) fail("fetched values do not grow", target, LONG + word);
            last[word] = old;
        }
        OK(MPI_Win_flush(target, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(added, all, SUM_WORDS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < SUM_WORDS; i++) model[target][LONG + i] = all[i];
    state = kept;
    compare();
}

static void compare(void)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < WORDS; i++)
        if (base[i] != model[rank][i]) fail("wrong memory", rank, i);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size <= RANKS);
    make_layouts();
    const char *seconds = getenv("CAMPAIGN_SECONDS"), *first = getenv("CAMPAIGN_SEED");
    double until = seconds ? MPI_Wtime() + atof(seconds) : 0;
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_BXOR, MPI_BOR, MPI_BAND, MPI_MAX, MPI_MIN, MPI_REPLACE};
    for (int window = 0;; window++) {
        int more = seconds ? MPI_Wtime() < until : window < WINDOWS;
        OK(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
        if (!more) break;
        seed = (first ? strtoull(first, NULL, 10) : 0) + (unsigned)window;
        state = seed * 0x2545f4914f6cdd1du + 1;
        make_window();
        for (int i = 0; i < EPOCHS; i++) {
            enum epoch epoch = below(KINDS);
            MPI_Op op = ops[below(sizeof ops / sizeof *ops)];
            memset(used, 0, sizeof used);
            reads = i % 2;
            set_info();
            begin(epoch);
            for (int call = 0; call < CALLS; call++) {
                int origin = (int)below((unsigned)size), target = (int)below((unsigned)size);
                int number = CALLS * i + call;
                if (!reaches[origin][target]) continue;
                switch (reads ? 3 : below(3)) {
                case 0: put(number, origin, target, epoch); break;
                case 1: accumulate(number, origin, target, epoch, op); break;
                case 2: small(number, origin, target, epoch); break;
                default: read_back(origin, target, epoch);
                }
            }
            end(epoch);
            compare();
        }
        contend();
        free_window();
    }
    OK(MPI_Finalize());
    return 0;
}
