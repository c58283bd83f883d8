/* Tests windows (MPI-5.0 chapter 12): flavors, attributes, hints, epochs, one-sided calls, and their errors. */
#include "check.h"

#include <stdint.h>

static int rank, size;

static MPI_Win quiet(MPI_Win win)
{
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static MPI_Win allocated(MPI_Aint bytes, int unit, void *base)
{
    MPI_Win win;
    OK(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win));
    return quiet(win);
}

static void *attribute(MPI_Win win, int key)
{
    void *value = NULL;
    int flag = 0;
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag);
    return value;
}

static void attributes_of(MPI_Win win, void *base, MPI_Aint bytes, int unit, int flavor)
{
    CHECK(attribute(win, MPI_WIN_BASE) == base);
    CHECK(*(MPI_Aint *)attribute(win, MPI_WIN_SIZE) == bytes);
    CHECK(*(int *)attribute(win, MPI_WIN_DISP_UNIT) == unit);
    CHECK(*(int *)attribute(win, MPI_WIN_CREATE_FLAVOR) == flavor);
    CHECK(*(int *)attribute(win, MPI_WIN_MODEL) == MPI_WIN_UNIFIED);
}

static int deleted;

static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static MPI_Win to_free;
static int freed_with;

/* Frees the window in `to_free`, once. Each of the library's calls that runs this function must return. */
static void free_now(void)
{
    if (to_free == MPI_WIN_NULL) return;
    MPI_Win win = to_free;
    int code = MPI_Win_free(&win);
    MPI_Error_class(code, &freed_with);
    to_free = MPI_WIN_NULL;
}

static int freeing_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)value, (void)extra;
    free_now();
    return MPI_SUCCESS;
}

static void freeing_handler(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
    free_now();
}

/* Windows that are freed by functions of the program which the library calls. */
static void freed_in_callbacks(void)
{
    int key, one = 1;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, freeing_delete, &key, NULL));
    long *base;

    /* In MPI_Win_free itself: the inner call fails, and the outer one goes on. */
    MPI_Win win = allocated(64, 1, &base);
    OK(MPI_Win_set_attr(win, key, &one));
    to_free = win, freed_with = -1;
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL && freed_with == MPI_ERR_WIN);

    /* In a call that replaces or deletes an attribute: the window is freed. */
    for (int replaces = 0; replaces < 2; replaces++) {
        win = allocated(64, 1, &base);
        OK(MPI_Win_set_attr(win, key, &one));
        to_free = win, freed_with = -1;
        if (replaces)
            OK(MPI_Win_set_attr(win, key, &one));
        else
            OK(MPI_Win_delete_attr(win, key));
        CHECK(freed_with == MPI_SUCCESS);
        RAISES(MPI_ERR_WIN, MPI_Win_sync(win));
    }
    OK(MPI_Win_free_keyval(&key));

    /* In an error handler, called for an error and called by the program. */
    MPI_Errhandler handler;
    OK(MPI_Win_create_errhandler(freeing_handler, &handler));
    for (int by_program = 0; by_program < 2; by_program++) {
        OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_set_errhandler(win, handler));
        to_free = win, freed_with = -1;
        if (by_program)
            OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
        else
            RAISES(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
        CHECK(freed_with == MPI_SUCCESS);
        RAISES(MPI_ERR_WIN, MPI_Win_sync(win));
    }
    OK(MPI_Errhandler_free(&handler));
}

/* The parts of a shared window begin and end anywhere in pages, are zero also if other windows have used the memory, and
   follow each other. */
static void shared_pages(void)
{
    static const MPI_Aint sizes[] = {0, 100, 5000, 3 << 20, (1 << 20) + 8};
    for (int round = 0; round < 12; round++) {
        MPI_Aint bytes = sizes[(round + rank) % 5], other;
        char *base, *start, *expected = NULL;
        int unit;
        MPI_Win win;
        OK(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        for (MPI_Aint i = 0; i < bytes; i++) CHECK(base[i] == 0);
        memset(base, rank + 1, (size_t)bytes);
        OK(MPI_Win_fence(0, win));
        for (int target = 0; target < size; target++) {
            OK(MPI_Win_shared_query(win, target, &other, &unit, &start));
            CHECK(other == sizes[(round + target) % 5] && (target == 0 || start == expected));
            for (MPI_Aint i = 0; i < other; i += other < 200 ? 1 : 97) CHECK(start[i] == target + 1);
            expected = start + other;
        }
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_free(&win));
    }
}

static void flavors(void)
{
    long *base = NULL;
    MPI_Win win = allocated(100 + rank, 4, &base);
    attributes_of(win, base, 100 + rank, 4, MPI_WIN_FLAVOR_ALLOCATE);
    for (int i = 0; i < 100 + rank; i++) CHECK(((char *)base)[i] == 0);
    /* If the library has allocated the memory of a window, all ranks can load from it. */
    for (int other = 0; other < size; other++) {
        MPI_Aint bytes;
        int unit;
        void *there;
        OK(MPI_Win_shared_query(win, other, &bytes, &unit, &there));
        CHECK(bytes == 100 + other && unit == 4 && (other != rank || there == base));
    }
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 0);
    OK(MPI_Win_set_name(win, "counters"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 8 && strcmp(name, "counters") == 0);
    MPI_Group group, world;
    int result;
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    int key, one = 1;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL));
    OK(MPI_Win_set_attr(win, key, &one));
    CHECK(attribute(win, key) == &one);
    RAISES(MPI_ERR_KEYVAL, MPI_Win_set_attr(win, MPI_WIN_BASE, &one));
    RAISES(MPI_ERR_KEYVAL, MPI_Win_delete_attr(win, MPI_WIN_SIZE));
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL && deleted == 1);
    OK(MPI_Win_free_keyval(&key));

    void *memory;
    OK(MPI_Alloc_mem(64, MPI_INFO_NULL, &memory));
    OK(MPI_Win_create(memory, 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes_of(win, memory, 64, 8, MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(memory));

    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes_of(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_free(&win));
}

static void shared(void)
{
    for (int apart = 0; apart < 2; apart++) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
        int words = rank == 1 ? 0 : 3 + rank;
        long *base;
        MPI_Win win;
        OK(MPI_Win_allocate_shared(8 * words, 8, info, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Info_free(&info));
        attributes_of(win, base, 8 * words, 8, MPI_WIN_FLAVOR_SHARED);
        char *end = NULL;
        for (int other = 0; other < size; other++) {
            MPI_Aint bytes, unit;
            char *there;
            OK(MPI_Win_shared_query_c(win, other, &bytes, &unit, &there));
            CHECK(bytes == 8 * (other == 1 ? 0 : 3 + other) && unit == 8);
            CHECK(apart ? (there == NULL) == (bytes == 0) : other == 0 || there == end);
            end = there + bytes;
        }
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < words; i++) base[i] = 100 * rank + i;
        OK(MPI_Win_fence(0, win));
        for (int other = 0; other < size; other++) {
            MPI_Aint bytes;
            int unit;
            long *there;
            OK(MPI_Win_shared_query(win, other, &bytes, &unit, &there));
            for (int i = 0; i < bytes / 8; i++) CHECK(there[i] == 100 * other + i);
        }
        long *lowest;
        MPI_Aint bytes;
        int unit;
        OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &lowest));
        CHECK(bytes == 24 && lowest[0] == 0 && lowest[2] == 2);
        OK(MPI_Win_free(&win));
    }
}

static int value_is(MPI_Info info, const char *key, const char *wanted)
{
    char value[100];
    int length = sizeof value, flag;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    return flag && strcmp(value, wanted) == 0;
}

static void hints(void)
{
    MPI_Info info, used;
    void *base;
    MPI_Win win;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    OK(MPI_Info_set(info, "unknown", "true"));
    OK(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win));
    quiet(win);
    CHECK((uintptr_t)base % 4096 == 0);
    OK(MPI_Win_get_info(win, &used));
    CHECK(value_is(used, "no_locks", "true") && value_is(used, "same_size", "false"));
    CHECK(value_is(used, "accumulate_ordering", "rar,raw,war,waw") && !value_is(used, "unknown", "true"));
    OK(MPI_Info_free(&used));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Info_set(info, "no_locks", "false"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

/* In a shared window in one piece, the memory of a rank begins where that of the rank below ends. So it has the
   alignment of mpi_minimum_memory_alignment, and the window's hints name the key, if the sizes below are multiples.
   Above a page, it is sure only at rank 0. Memory in several pieces always has it. */
static void alignments(void)
{
    for (int kind = 0; kind < 4; kind++) {
        MPI_Info info, used;
        char *base, value[20];
        MPI_Win win;
        MPI_Aint bytes = kind == 0 ? 8192 : kind == 3 ? 2 << 20 : 100;
        const char *most = kind == 3 ? "2097152" : "4096";
        int length = sizeof value, named;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", rank && kind != 3 ? "1024" : most));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", kind == 2 ? "true" : "false"));
        OK(MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_get_info(win, &used));
        OK(MPI_Info_get_string(used, "mpi_minimum_memory_alignment", &length, value, &named));
        CHECK(named == (kind != 1 || rank == 0) || (kind == 3 && rank > 0));
        CHECK(kind != 3 || named == ((uintptr_t)base % (2 << 20) == 0));
        CHECK(!named || (uintptr_t)base % (uintptr_t)atol(value) == 0);
        if (kind != 2) {
            char *first;
            int unit;
            OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &first));
            CHECK(base == first + rank * bytes && (uintptr_t)first % 4096 == 0);
        }
        OK(MPI_Info_free(&used));
        OK(MPI_Info_free(&info));
        OK(MPI_Win_free(&win));
    }
}

/* Each rank puts a column into the matrix of the next one, and gets it back transposed. */
static void derived(void)
{
    enum { N = 37 };
    double *base, mine[N][N], back[N];
    MPI_Win win = allocated(sizeof mine, sizeof(double), &base);
    MPI_Datatype column;
    OK(MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column));
    OK(MPI_Type_commit(&column));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) mine[i][j] = 1000 * rank + N * i + j;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(&mine[0][2], 1, column, next, 5, 1, column, win));
    OK(MPI_Put(&mine[0][3], 1, column, next, 6 * N, N, MPI_DOUBLE, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < N; i++) {
        if (i != 6) CHECK(base[N * i + 5] == 1000 * last + N * i + 2);
        CHECK(base[6 * N + i] == 1000 * last + N * i + 3 || i == 5);
        if (i != 6) CHECK(base[N * i + 4] == 0);
    }
    OK(MPI_Get(back, N, MPI_DOUBLE, next, 0 * N + 5, 1, column, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < N; i++)
        if (i != 6) CHECK(back[i] == 1000 * rank + N * i + 2);
    RAISES(MPI_ERR_RMA_SYNC, MPI_Put(back, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, win));
    OK(MPI_Type_free(&column));
    OK(MPI_Win_free(&win));
}

/* Tests post, start, complete and wait with groups that differ from rank to rank: the neighbours of the rank in a ring,
   in both directions. */
static void active_target(void)
{
    long *base, got;
    MPI_Win win = allocated(8 * size, 8, &base);
    MPI_Group world, to, from;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    OK(MPI_Group_incl(world, 1, &next, &to));
    OK(MPI_Group_incl(world, 1, &last, &from));
    for (long round = 1; round <= 100; round++) {
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        long value = 1000 * round + rank;
        OK(MPI_Put(&value, 1, MPI_LONG, next, rank, 1, MPI_LONG, win));
        if (round % 2) {
            OK(MPI_Get(&got, 1, MPI_LONG, next, rank, 1, MPI_LONG, win));
            CHECK(got == value);
        }
        OK(MPI_Win_complete(win));
        if (round % 3) {
            OK(MPI_Win_wait(win));
        } else {
            int flag = 0;
            while (!flag) OK(MPI_Win_test(win, &flag));
        }
        CHECK(base[last] == 1000 * round + last);
    }
    if (size > 1) {
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        RAISES(MPI_ERR_RMA_SYNC, MPI_Get(&got, 1, MPI_LONG, rank, 0, 1, MPI_LONG, win));
        RAISES(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
        RAISES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        RAISES(MPI_ERR_RMA_SYNC, MPI_Win_post(from, 0, win));
        RAISES(MPI_ERR_RMA_SYNC, MPI_Win_start(to, 0, win));
        RAISES(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
    /* An exposure epoch may overlap with access epochs, also with locks of other ranks that expose nothing: rank 0 posts
       for the last rank and locks rank 1, in both orders. A rank cannot lock the memory that it exposes. */
    if (size > 2) {
        MPI_Group zero, end;
        int first = 0, most = size - 1;
        OK(MPI_Group_incl(world, 1, &first, &zero));
        OK(MPI_Group_incl(world, 1, &most, &end));
        for (long order = 0; order < 2; order++) {
            long value = 5 + order;
            if (rank == 0) {
                if (order == 0) OK(MPI_Win_post(end, 0, win));
                OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
                if (order == 1) OK(MPI_Win_post(end, 0, win));
                OK(MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
                RAISES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
                RAISES(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
                OK(MPI_Win_unlock(1, win));
                OK(MPI_Win_wait(win));
                CHECK(base[0] == value);
                OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
                RAISES(MPI_ERR_RMA_SYNC, MPI_Win_post(end, 0, win));
                OK(MPI_Win_unlock(0, win));
            } else if (rank == most) {
                OK(MPI_Win_start(zero, 0, win));
                OK(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
                OK(MPI_Win_complete(win));
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (rank == 1) CHECK(base[0] == value);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        OK(MPI_Group_free(&zero));
        OK(MPI_Group_free(&end));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    OK(MPI_Win_free(&win));
}

/* Under an exclusive lock, every rank increments two words by a get and a put. Under a shared lock, the two words are
   equal. */
static void exclusive(void)
{
    enum { TURNS = 300 };
    long *base, pair[2];
    MPI_Win win = allocated(16, 8, &base);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int target = 0; target < size; target += size > 1 ? size - 1 : 1) {
            int shared = (turn + rank) % 3 == 0;
            OK(MPI_Win_lock(shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
            OK(MPI_Get(pair, 2, MPI_LONG, target, 0, 2, MPI_LONG, win));
            OK(MPI_Win_flush(target, win));
            CHECK(pair[0] == pair[1]);
            if (!shared) {
                pair[0]++, pair[1]++;
                OK(MPI_Put(pair, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
                OK(MPI_Put(pair + 1, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
            }
            OK(MPI_Win_unlock(target, win));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long wanted = 0;
    for (int other = 0; other < size; other++)
        for (int turn = 0; turn < TURNS; turn++) wanted += (turn + other) % 3 != 0;
    if (rank == 0 || rank == size - 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
        CHECK(base[0] == wanted && base[1] == wanted);
        OK(MPI_Win_unlock(rank, win));
    }
    OK(MPI_Win_free(&win));
}

/* Tests whether updates are atomic: all ranks update the memory of rank 0 in several ways at the same time. Sums show
   whether an update is lost. */
static void atomics(void)
{
    enum { TURNS = 400, WORDS = 128 };
    struct {
        int64_t words[WORDS], counter, swapped;
        int32_t ints[16];
        uint8_t bytes[16];
        int16_t shorts[16];
        double complex_[4], real[4];
        char unaligned[24];
        struct { double value; int index; } most;
    } *base;
    MPI_Win win = allocated(rank == 0 ? sizeof *base : 0, 1, &base);
#define AT(member) ((MPI_Aint)((char *)&base->member - (char *)base))
    int64_t ones[WORDS], one = 1, old, mine = 0;
    int32_t four[16];
    uint8_t bytes[16];
    int16_t shorts[16];
    double two[4] = {1, 2, 3, 4};
    for (int i = 0; i < WORDS; i++) ones[i] = 1;
    for (int i = 0; i < 16; i++) four[i] = 4, bytes[i] = 1, shorts[i] = 2;
    base = rank == 0 ? base : NULL;
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < TURNS; turn++) {
        OK(MPI_Accumulate(ones, WORDS, MPI_INT64_T, 0, AT(words), WORDS, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, AT(words[turn % WORDS]), MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, AT(counter), MPI_SUM, win));
        CHECK(old >= mine);
        mine = old + 1;
        OK(MPI_Accumulate(four, 16, MPI_INT32_T, 0, AT(ints), 16, MPI_INT32_T, MPI_SUM, win));
        OK(MPI_Accumulate(bytes, 16, MPI_UINT8_T, 0, AT(bytes), 16, MPI_UINT8_T, MPI_SUM, win));
        OK(MPI_Accumulate(shorts, 16, MPI_INT16_T, 0, AT(shorts), 16, MPI_INT16_T, MPI_SUM, win));
        OK(MPI_Accumulate(two, 2, MPI_C_DOUBLE_COMPLEX, 0, AT(complex_), 2, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                          win));
        OK(MPI_Accumulate(two, 4, MPI_DOUBLE, 0, AT(real), 4, MPI_DOUBLE, MPI_SUM, win));
        OK(MPI_Accumulate(ones, 2, MPI_INT64_T, 0, AT(unaligned[3]), 2, MPI_INT64_T, MPI_SUM, win));
        struct { double value; int index; } pair = {(turn * 7 + rank) % 500, 1000 * rank + turn};
        OK(MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, AT(most), 1, MPI_DOUBLE_INT, MPI_MAXLOC, win));
        /* A spin lock by compare and swap. */
        int64_t zero = 0, me = rank + 1;
        do OK(MPI_Compare_and_swap(&me, &zero, &old, MPI_INT64_T, 0, AT(swapped), win));
        while (old != 0);
        OK(MPI_Fetch_and_op(&zero, &old, MPI_INT64_T, 0, AT(swapped), MPI_REPLACE, win));
        CHECK(old == me);
        OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        int64_t all = (int64_t)TURNS * size;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        for (int i = 0; i < WORDS; i++)
            CHECK(base->words[i] == all + (TURNS / WORDS + (i < TURNS % WORDS)) * size);
        CHECK(base->counter == all && base->swapped == 0);
        for (int i = 0; i < 16; i++) {
            CHECK(base->ints[i] == 4 * all && base->bytes[i] == (uint8_t)all);
            CHECK(base->shorts[i] == (int16_t)(2 * all));
        }
        for (int i = 0; i < 4; i++)
            CHECK(base->complex_[i] == two[i] * all && base->real[i] == two[i] * all);
        int64_t there[2];
        memcpy(there, base->unaligned + 3, sizeof there);
        CHECK(there[0] == all && there[1] == all);
        double most = 0;
        int index = -1;
        for (int other = 0; other < size; other++)
            for (int turn = 0; turn < TURNS; turn++) {
                double value = (turn * 7 + other) % 500;
                int at = 1000 * other + turn;
                if (value > most || (value == most && at < index)) most = value, index = at;
            }
        CHECK(base->most.value == most && base->most.index == index);
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_free(&win));
}

/* Tests updates while the memory of rank 0 changes between locks (many elements) and instructions (single ones). */
static void there_and_back(void)
{
    enum { EPOCHS = 60, WORDS = 1024 };
    int64_t *base, ones[WORDS], one = 1, old;
    MPI_Win win = allocated(WORDS * sizeof *base, sizeof *base, &base);
    for (int i = 0; i < WORDS; i++) ones[i] = 1;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Accumulate(ones, WORDS, MPI_INT64_T, 0, 0, WORDS, MPI_INT64_T, MPI_SUM, win));
        for (int i = 0; i < (epoch % 2 ? 40 : 3); i++)
            OK(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, i, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_unlock_all(win));
    }
    for (int i = MPI_Barrier(MPI_COMM_WORLD); rank == 0 && i < WORDS; i++)
        CHECK(base[i] == size * (EPOCHS + (i < 40) * EPOCHS / 2 + (i < 3) * EPOCHS / 2));
    OK(MPI_Win_free(&win));
}

/* Tests whether an update of one short pair (8 bytes) and an update of several are atomic to each other: rank 0 sees
   each of its own updates at once, while all other ranks update the same pair with less. */
static void short_pairs(void)
{
    enum { TURNS = 20000 };
    struct { float value; int index; } *base, pair = {0, 0}, less[2] = {{0, 0}, {0, 0}}, seen;
    MPI_Win win = allocated(2 * sizeof *base, 1, &base);
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 1; turn <= TURNS; turn++) {
        if (rank > 0) {
            OK(MPI_Accumulate(less, 2, MPI_FLOAT_INT, 0, 0, 2, MPI_FLOAT_INT, MPI_MAXLOC, win));
            continue;
        }
        pair.value = (float)turn, pair.index = turn;
        OK(MPI_Accumulate(&pair, 1, MPI_FLOAT_INT, 0, 0, 1, MPI_FLOAT_INT, MPI_MAXLOC, win));
        OK(MPI_Fetch_and_op(NULL, &seen, MPI_FLOAT_INT, 0, 0, MPI_NO_OP, win));
        OK(MPI_Win_flush(0, win));
        CHECK(seen.value == (float)turn && seen.index == turn);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

/* The calls that return a request or the old values, with layouts on both sides. */
static void results(void)
{
    int *base, values[20], old[40], next = (rank + 1) % size;
    MPI_Win win = allocated(sizeof values, sizeof(int), &base);
    MPI_Datatype pairs;
    MPI_Request requests[4];
    OK(MPI_Type_vector(5, 1, 2, MPI_INT, &pairs));
    OK(MPI_Type_commit(&pairs));
    for (int i = 0; i < 20; i++) values[i] = i;
    memset(old, -1, sizeof old);
    int codes[4];
    codes[0] = MPI_Rput(values, 1, MPI_INT, next, 0, 1, MPI_INT, win, requests);
    RAISES(MPI_ERR_RMA_SYNC, codes[0]);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    OK(MPI_Rput(values, 10, MPI_INT, next, 0, 10, MPI_INT, win, &requests[0]));
    OK(MPI_Rget_accumulate(values, 5, MPI_INT, old, 1, pairs, next, 1, 1, pairs, MPI_SUM, win, &requests[1]));
    OK(MPI_Raccumulate(values + 7, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_PROD, win, &requests[2]));
    OK(MPI_Rget(old + 10, 10, MPI_INT, next, 0, 10, MPI_INT, win, &requests[3]));
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, old + 20, 10, MPI_INT, next, 0, 10, MPI_INT, MPI_NO_OP,
                          win));
    OK(MPI_Win_flush_local(next, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_unlock(next, win));
    for (int i = 0; i < 10; i++) {
        CHECK(old[i] == (i % 2 ? -1 : i + 1));
        int now = i % 2 == 0 ? i : i + i / 2;
        if (i == 1) now *= 7;
        CHECK(old[10 + i] == now && old[20 + i] == now);
    }
    /* MPI_PROC_NULL is a target at which nothing happens. */
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Fetch_and_op(values, old, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Type_free(&pairs));
    OK(MPI_Win_free(&win));
}

/* Windows on memory that the program has not allocated by the library. Other ranks access it through requests. */
static void private_memory(void)
{
    enum { WORDS = 20000 };
    static long big[WORDS];
    static struct { double value; int index; } most;
    long *data = malloc(sizeof big), old;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    CHECK(data != NULL);
    memset(big, 0, sizeof big);
    MPI_Win win;
    OK(MPI_Win_create(big, sizeof big, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    quiet(win);
    attributes_of(win, big, sizeof big, 8, MPI_WIN_FLAVOR_CREATE);
    MPI_Datatype every;
    OK(MPI_Type_vector(WORDS / 2, 1, 2, MPI_LONG, &every));
    OK(MPI_Type_commit(&every));
    for (long i = 0; i < WORDS; i++) data[i] = 100000 * rank + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(data, WORDS / 2, MPI_LONG, next, 1, 1, every, win));
    OK(MPI_Win_fence(0, win));
    for (long i = 0; i < WORDS; i++) CHECK(big[i] == (i % 2 ? 100000 * last + i / 2 : 0));
    /* Every rank adds to all others, in layouts and to single words. */
    OK(MPI_Win_fence(0, win));
    for (int other = 0; other < size; other++) {
        OK(MPI_Accumulate(data, WORDS / 2, MPI_LONG, other, 0, 1, every, MPI_SUM, win));
        for (int i = 0; i < 50; i++) {
            long one = 1;
            OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, other, 2, MPI_SUM, win));
        }
    }
    OK(MPI_Win_fence(0, win));
    long ranks = (long)size * (size - 1) / 2;
    for (long i = 0; i < WORDS; i += 2)
        CHECK(big[i] == 100000 * ranks + size * (i / 2) + (i == 2 ? 50 * size : 0));
    OK(MPI_Get(data, 1, every, next, 0, WORDS / 2, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (long i = 0; i < WORDS; i += 2)
        CHECK(data[i] == (i / 2 % 2 ? 100000 * ((next + size - 1) % size) + i / 4
                                    : 100000 * ranks + size * (i / 4) + (i == 4 ? 50 * size : 0)));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    RAISES(MPI_ERR_RMA_RANGE, MPI_Put(data, 2, MPI_LONG, next, WORDS - 1, 2, MPI_LONG, win));
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Type_free(&every));
    OK(MPI_Win_free(&win));
    free(data);

    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    quiet(win);
    most.value = -1, most.index = 7;
    MPI_Aint mine, theirs;
    OK(MPI_Win_attach(win, &most, sizeof most));
    OK(MPI_Get_address(&most, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, last, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_lock_all(0, win));
    struct { double value; int index; } pair = {rank, rank}, before;
    OK(MPI_Fetch_and_op(&pair, &before, MPI_DOUBLE_INT, next, theirs, MPI_MAXLOC, win));
    OK(MPI_Win_flush_local(next, win));
    CHECK(before.value == -1 && before.index == 7);
    RAISES(MPI_ERR_RMA_RANGE, MPI_Get(&before, 1, MPI_DOUBLE_INT, next, theirs + 8, 1, MPI_DOUBLE_INT, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(most.value == last && most.index == last);
    int32_t swap[3] = {5, 7, 0};
    static int32_t lock = 7;
    OK(MPI_Win_attach(win, &lock, sizeof lock));
    OK(MPI_Get_address(&lock, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, last, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    OK(MPI_Compare_and_swap(&swap[0], &swap[1], &swap[2], MPI_INT32_T, next, theirs, win));
    OK(MPI_Win_flush(next, win));
    CHECK(swap[2] == 7);
    OK(MPI_Compare_and_swap(&swap[0], &swap[1], &swap[2], MPI_INT32_T, next, theirs, win));
    OK(MPI_Win_flush_local_all(win));
    CHECK(swap[2] == 5);
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_detach(win, &most));
    OK(MPI_Win_free(&win));
}

static void errors(void)
{
    void *memory;
    MPI_Win win;
    int value = 7;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* A wrong argument of one rank is an error on all ranks. */
    int wrong = rank == size - 1;
    RAISES(MPI_ERR_SIZE, MPI_Win_allocate(wrong ? -1 : 8, 1, MPI_INFO_NULL, comm, &memory, &win));
    RAISES(MPI_ERR_ARG, MPI_Win_allocate(8, wrong ? 0 : 1, MPI_INFO_NULL, comm, &memory, &win));
    RAISES(MPI_ERR_ARG, MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, wrong ? NULL : &memory, &win));
    RAISES(MPI_ERR_BASE, MPI_Win_create(wrong ? NULL : &value, 4, 1, MPI_INFO_NULL, comm, &win));
    RAISES(MPI_ERR_NO_MEM,
           MPI_Win_allocate(wrong ? (MPI_Aint)1 << 60 : 8, 1, MPI_INFO_NULL, comm, &memory, &win));
    RAISES(MPI_ERR_NO_MEM,
           MPI_Win_allocate_shared((MPI_Aint)1 << 62, 1, MPI_INFO_NULL, comm, &memory, &win));
    OK(MPI_Comm_free(&comm));

    win = allocated(40, 4, &memory);
    RAISES(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
    RAISES(MPI_ERR_LOCKTYPE, MPI_Win_lock(0, 0, 0, win));
    RAISES(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
    RAISES(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win));
    RAISES(MPI_ERR_ASSERT, MPI_Win_fence(MPI_MODE_NOCHECK, win));
    RAISES(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, &value, 4));
    OK(MPI_Win_fence(0, win));
    RAISES(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_INT, -5, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_DISP, MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win));
    RAISES(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_INT, 0, 10, 1, MPI_INT, win));
    RAISES(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_INT, 0, (MPI_Aint)1 << 62, 1, MPI_INT, win));
    int four[4];
    RAISES(MPI_ERR_RMA_RANGE, MPI_Get(four, 4, MPI_INT, 0, 7, 4, MPI_INT, win));
    RAISES(MPI_ERR_TRUNCATE, MPI_Put(memory, 2, MPI_INT, 0, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_COUNT, MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_OP, MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win));
    RAISES(MPI_ERR_OP, MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
    RAISES(MPI_ERR_OP, MPI_Accumulate(&value, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BOR, win));
    RAISES(MPI_ERR_TYPE, MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win));
    RAISES(MPI_ERR_TYPE, MPI_Compare_and_swap(&value, &value, &value, MPI_FLOAT, 0, 0, win));
    char letters[3] = "ab";
    OK(MPI_Compare_and_swap(&letters[0], &letters[1], &letters[2], MPI_CHAR, 0, 0, win));
    MPI_Datatype two;
    OK(MPI_Type_contiguous(1, MPI_INT, &two));
    OK(MPI_Type_commit(&two));
    RAISES(MPI_ERR_TYPE, MPI_Fetch_and_op(&value, &value, two, 0, 0, MPI_SUM, win));
    OK(MPI_Type_free(&two));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 40; i++) CHECK(((char *)memory)[i] == 0);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    OK(MPI_Win_unlock(rank, win));
    /* A fence must end an epoch with operations. */
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    OK(MPI_Win_fence(0, win));
    /* If one rank must not free the window, the others do not wait, and the window stays on all ranks. */
    int key, one = 1;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL));
    OK(MPI_Win_set_attr(win, key, &one));
    deleted = 0;
    if (rank == size - 1) OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    RAISES(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    CHECK(win != MPI_WIN_NULL && deleted == 0 && attribute(win, key) == &one);
    OK(MPI_Win_free_keyval(&key));
    if (rank == size - 1) OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_fence(0, win));
    MPI_Win stale = win;
    OK(MPI_Win_free(&win));
    RAISES(MPI_ERR_WIN, MPI_Win_fence(0, stale));
    RAISES(MPI_ERR_WIN, MPI_Win_free(&stale));
    RAISES(MPI_ERR_WIN, MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    flavors();
    freed_in_callbacks();
    shared();
    shared_pages();
    hints();
    alignments();
    derived();
    active_target();
    exclusive();
    atomics();
    there_and_back();
    short_pairs();
    results();
    private_memory();
    errors();
    OK(MPI_Finalize());
    return 0;
}
