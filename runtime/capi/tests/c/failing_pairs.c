/* Lets allocations of rank 0 fail, in calls that move data to or from rank 1 and in calls that make objects of both: for
   every n up to 12, and every seventh after that, the n-th allocation of the call, then the n-th and all that follow,
   and last all allocations while the calls before have used up the library's reserve. A call of one rank alone may
   return MPI_ERR_NO_MEM; rank 0 then makes it again with memory, and nothing of the first try may be left. A collective
   call that moves data through cells succeeds as long as the library's reserve is there. Any other may return
   MPI_ERR_NO_MEM on rank 0, and an error on rank 1, but rank 1 does not wait for ever. An argument limits the test to
   the kinds of calls whose names contain the argument. */
#include "failing.h"

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum { MANY = 30, LONG = 40000, STOP = -1 };

static const MPI_Comm world = MPI_COMM_WORLD;
static MPI_Comm control;
static MPI_Datatype column;
static MPI_Win mapped, far;
static int *there, near[64];
static int in[LONG], out[LONG], rank, refused, calls;
static MPI_Request request;

/* Checks the code of a collective call, or of the wait for one, which may be refused if `may_be`. Returns whether the
   call has failed on this rank. */
static int is_refused(int code, int may_be)
{
    int class = MPI_SUCCESS;
    OK(MPI_Error_class(code, &class));
    /* A long message that comes early needs a long buffer. */
    CHECK(!class || may_be || getenv("TYPEPACK_COLL") || getenv("TYPEPACK_CHECK_TYPES"));
    CHECK(rank || !class || class == MPI_ERR_NO_MEM);
    refused += class != MPI_SUCCESS;
    return class != MPI_SUCCESS;
}

/* Rank 0 makes a call while allocations fail; if it fails, once more with memory. */
#define TRY_TWICE(call)                                  \
    do {                                                 \
        fail_allocations(first, last);                   \
        int tried_ = (call);                              \
        failed += end_of_failing_allocations();          \
        if (tried_) {                                     \
            int class_;                                  \
            OK(MPI_Error_class(tried_, &class_));         \
            CHECK(class_ == MPI_ERR_NO_MEM);             \
            refused++;                                   \
            OK(call);                                    \
        }                                                \
    } while (0)

/* Both ranks make a call, rank 0 while allocations fail. If the call is refused, the kind of calls ends there. */
#define TOGETHER(call) BOTH(call, used_up)
#define BOTH(call, may_be)                                 \
    do {                                                 \
        if (rank == 0)                                   \
            fail_allocations(first, last);               \
        int tried_ = (call);                             \
        failed += end_of_failing_allocations();          \
        if (is_refused(tried_, may_be))                   \
            return 0;                                    \
    } while (0)

/* Waits for a collective call. A wait that has no memory leaves the request as it is. Returns whether the call has
   failed. */
static int is_refused_later(void)
{
    if (rank == 0)
        fail_allocations(first, last);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    failed += end_of_failing_allocations();
    if (code && request != MPI_REQUEST_NULL)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return is_refused(code, used_up);
}

static void receive(int count)
{
    memset(out, 0, (size_t)count * sizeof *out);
    OK(MPI_Recv(out, count, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, (size_t)count * sizeof *in));
}

#define SEND(kind, count, call, end)                     \
    static int kind(void)                                \
    {                                                    \
        if (rank == 1)                                   \
            receive(count);                              \
        else {                                           \
            TRY_TWICE(call);                             \
            end;                                         \
        }                                                \
        return 0;                                        \
    }

static int wait(void) { OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); return 0; }

SEND(send_short, 2, MPI_Send(in, 2, MPI_INT, 1, 7, world), )
SEND(send_eager, 500, MPI_Send(in, 500, MPI_INT, 1, 7, world), )
SEND(send_long, LONG, MPI_Send(in, LONG, MPI_INT, 1, 7, world), )
SEND(isend_long, LONG, MPI_Isend(in, LONG, MPI_INT, 1, 7, world, &request), wait())
SEND(issend, 5, MPI_Issend(in, 5, MPI_INT, 1, 7, world, &request), wait())
SEND(ibsend, 5, MPI_Ibsend(in, 5, MPI_INT, 1, 7, world, &request), wait())

static int send_column(void)
{
    if (rank == 0) {
        TRY_TWICE(MPI_Send(in, 1000, column, 1, 7, world));
    } else {
        OK(MPI_Recv(out, 3000, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE));
        CHECK(out[0] == in[0] && out[1] == in[2] && out[3] == in[5]);
    }
    return 0;
}

/* Rank 0 has to keep all messages of rank 1 but the last, for which it waits. */
static int unexpected(void)
{
    if (rank == 1) {
        for (int i = 0; i < MANY; i++)
            OK(MPI_Send(in, 1 + 40 * i, MPI_INT, 0, 100 + i, world));
        return 0;
    }
    for (int i = MANY - 1; i >= 0; i--) {
        memset(out, 0, sizeof out);
        TRY_TWICE(MPI_Recv(out, 1 + 40 * i, MPI_INT, 1, 100 + i, world, MPI_STATUS_IGNORE));
        CHECK(!memcmp(in, out, (size_t)(1 + 40 * i) * sizeof *in));
    }
    return 0;
}

static int irecv(void)
{
    if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, 8, world, MPI_STATUS_IGNORE));
        OK(MPI_Send(in, LONG, MPI_INT, 0, 9, world));
        return 0;
    }
    memset(out, 0, sizeof out);
    TRY_TWICE(MPI_Irecv(out, LONG, MPI_INT, 1, 9, world, &request));
    OK(MPI_Send(NULL, 0, MPI_INT, 1, 8, world));
    TRY_TWICE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, sizeof in));
    return 0;
}

/* ---- collective calls ---- */

#define COLL(kind, count, at, call)                          \
    static int kind(void)                                \
    {                                                    \
        memset(out, 0, (count) * sizeof *out);           \
        TOGETHER(call);                                  \
        CHECK(!memcmp(&in[at], out, (count) * sizeof *out)); \
        return 0;                                        \
    }

#define STARTED(kind, count, at, call)                       \
    static int kind(void)                                \
    {                                                    \
        memset(out, 0, (count) * sizeof *out);           \
        TOGETHER(call);                                  \
        if (is_refused_later())                          \
            return 0;                                    \
        CHECK(!memcmp(&in[at], out, (count) * sizeof *out)); \
        return 0;                                        \
    }

static int barrier(void) { TOGETHER(MPI_Barrier(world)); return 0; }
COLL(allreduce, 10, 0, MPI_Allreduce(in, out, 10, MPI_INT, MPI_MAX, world))
COLL(allreduce_long, LONG, 0, MPI_Allreduce(in, out, LONG, MPI_INT, MPI_MIN, world))
COLL(allgather, 10, 0, MPI_Allgather(in, 10, MPI_INT, out, 10, MPI_INT, world))
COLL(alltoall, 10, 10 * rank, MPI_Alltoall(in, 10, MPI_INT, out, 10, MPI_INT, world))
STARTED(iallreduce, 10, 0, MPI_Iallreduce(in, out, 10, MPI_INT, MPI_MAX, world, &request))
STARTED(ialltoall, 500, 500 * rank, MPI_Ialltoall(in, 500, MPI_INT, out, 500, MPI_INT, world, &request))

static int bcast(void)
{
    memset(out, 0, sizeof out);
    if (rank == 0)
        memcpy(out, in, sizeof in);
    TOGETHER(MPI_Bcast(out, LONG, MPI_INT, 0, world));
    CHECK(!memcmp(in, out, sizeof in));
    return 0;
}

/* ---- one-sided calls ---- */

static int put(void)
{
    static int value;
    MPI_Win windows[2] = {mapped, far};
    value++;
    for (int i = 0; i < 2; i++) {
        OK(MPI_Win_fence(0, windows[i]));
        if (rank == 0) {
            TRY_TWICE(MPI_Put(&value, 1, MPI_INT, 1, 3, 1, MPI_INT, windows[i]));
            TRY_TWICE(MPI_Put(in, 10, MPI_INT, 1, 10, 10, MPI_INT, windows[i]));
        }
        OK(MPI_Win_fence(0, windows[i]));
        int *window = i ? near : there;
        if (rank == 1)
            CHECK(window[3] == value && !memcmp(&window[10], in, 40));
    }
    return 0;
}

static int get(void)
{
    MPI_Win windows[2] = {mapped, far};
    for (int i = 0; rank == 0 && i < 2; i++) {
        memset(out, 0, 40);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, windows[i]));
        TRY_TWICE(MPI_Get(out, 10, MPI_INT, 1, 30, 10, MPI_INT, windows[i]));
        TRY_TWICE(MPI_Win_flush(1, windows[i]));
        CHECK(!memcmp(in, out, 40));
        memset(out, 0, 40);
        TRY_TWICE(MPI_Rget(out, 10, MPI_INT, 1, 30, 10, MPI_INT, windows[i], &request));
        TRY_TWICE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(!memcmp(in, out, 40));
        OK(MPI_Win_unlock(1, windows[i]));
    }
    OK(MPI_Barrier(control));
    return 0;
}

/* ---- calls that make an object of both ranks ---- */

/* `end` frees the object. A rank that has it frees it, also if the other rank has none. A copy of an argument that finds
   no memory refuses the call although the library's reserve is there. */
#define MADE(kind, type, call, end)                      \
    static int kind(void)                                \
    {                                                    \
        type made;                                       \
        BOTH(call, 1);                                   \
        OK(end);                                         \
        return 0;                                        \
    }

#define COMM(kind, call) MADE(kind, MPI_Comm, call, MPI_Comm_free(&made))
#define WIN(kind, call) MADE(kind, MPI_Win, call, MPI_Win_free(&made))

static MPI_Comm selves, between, grid;
static MPI_Group pair;
static void *base;
static const int one = 1, two = 2, zero = 0, ends[2] = {1, 2}, edges[2] = {1, 0};
static const char *path;

COMM(comm_dup, MPI_Comm_dup(world, &made))
COMM(comm_split, MPI_Comm_split(world, 1, rank, &made))
COMM(comm_create, MPI_Comm_create(world, pair, &made))
COMM(comm_create_group, MPI_Comm_create_group(world, pair, 4, &made))
COMM(comm_from_group, MPI_Comm_create_from_group(pair, "failing", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made))
COMM(intercomm_create, MPI_Intercomm_create(selves, 0, world, !rank, 5, &made))
COMM(intercomm_merge, MPI_Intercomm_merge(between, rank, &made))
COMM(cart_create, MPI_Cart_create(world, 1, &two, &one, 0, &made))
COMM(cart_sub, MPI_Cart_sub(grid, &one, &made))
COMM(graph_create, MPI_Graph_create(world, 2, ends, edges, 0, &made))
COMM(dist_graph, MPI_Dist_graph_create(world, 1, &rank, &one, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made))
WIN(win_allocate, MPI_Win_allocate(4096, 1, MPI_INFO_NULL, world, &base, &made))
WIN(win_allocate_shared, MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, world, &base, &made))
WIN(win_create, MPI_Win_create(near, 16, 1, MPI_INFO_NULL, world, &made))
WIN(win_create_dynamic, MPI_Win_create_dynamic(MPI_INFO_NULL, world, &made))
MADE(file_open, MPI_File,
     MPI_File_open(world, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &made), MPI_File_close(&made))

static MPI_File opened;
COMM(comm_split_type, MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made))

/* Calls on a file of both ranks. */
static int file_set_view(void)
{
    BOTH(MPI_File_set_view(opened, 8, MPI_INT, column, "native", MPI_INFO_NULL), 1);
    return 0;
}

static int file_set_size(void) { BOTH(MPI_File_set_size(opened, 4096), 1); return 0; }
static int file_sync(void) { BOTH(MPI_File_sync(opened), 1); return 0; }
static int file_set_atomicity(void) { BOTH(MPI_File_set_atomicity(opened, 1), 1); return 0; }

static int file_write_all(void)
{
    MPI_Offset at = 40000 * rank;
    BOTH(MPI_File_write_at_all(opened, at, in, 1000, MPI_INT, MPI_STATUS_IGNORE), 1);
    return 0;
}

static int file_close(void)
{
    MPI_File made;
    OK(MPI_File_open(world, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &made));
    BOTH(MPI_File_close(&made), 1);
    return 0;
}

static int comm_idup(void)
{
    MPI_Comm made;
    TOGETHER(MPI_Comm_idup(world, &made, &request));
    if (is_refused_later())
        return 0;
    OK(MPI_Comm_free(&made));
    return 0;
}

static const struct kind kinds[] = {
    KIND(send_short), KIND(send_eager), KIND(send_long), KIND(isend_long), KIND(issend), KIND(ibsend),
    KIND(send_column), KIND(unexpected), KIND(irecv), KIND(barrier), KIND(allreduce), KIND(allreduce_long),
    KIND(allgather), KIND(alltoall), KIND(iallreduce), KIND(ialltoall), KIND(bcast), KIND(put), KIND(get),
    KIND(comm_dup), KIND(comm_split), KIND(comm_create), KIND(comm_create_group), KIND(comm_from_group),
    KIND(comm_idup), KIND(intercomm_create), KIND(intercomm_merge), KIND(cart_create), KIND(cart_sub),
    KIND(graph_create), KIND(dist_graph), KIND(win_allocate), KIND(win_allocate_shared), KIND(win_create),
    KIND(win_create_dynamic), KIND(comm_split_type), KIND(file_open),
    KIND(file_set_view), KIND(file_set_size), KIND(file_sync), KIND(file_set_atomicity), KIND(file_write_all),
    KIND(file_close),
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- a thread whose first calls find no memory ---- */

static void *starved(void *unused)
{
    int packed[3] = {0}, at = 0, got = 0, five = 5, class = 0;
    (void)unused;
    fail_allocations(0, INT_MAX);
    int code = MPI_Pack(in, 1, column, packed, sizeof packed, &at, MPI_COMM_SELF);
    int bad = MPI_Send(in, -1, MPI_INT, 0, 0, MPI_COMM_SELF);
    int sent = MPI_Sendrecv(&five, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    int copied = MPI_Sendrecv(in, 2, column, 0, 0, out, 2, column, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    end_of_failing_allocations();
    CHECK(code ? MPI_Error_class(code, &class) == 0 && class == MPI_ERR_NO_MEM : packed[1] == in[2]);
    CHECK(bad != MPI_SUCCESS);
    CHECK(sent ? MPI_Error_class(sent, &class) == 0 && class == MPI_ERR_NO_MEM : got == 5);
    CHECK(copied ? MPI_Error_class(copied, &class) == 0 && class == MPI_ERR_NO_MEM : out[2] == in[2]);
    return NULL;
}

/* Rank 0 tells rank 1 what they call, and both call it. */
static void make(int kind)
{
    int order[2] = {kind, used_up};
    OK(MPI_Bcast(order, 2, MPI_INT, 0, control));
    CHECK(!fails(&kinds[kind]));
    calls++;
}

int main(int argc, char **argv)
{
    static char buffer[10000];
    int level, order[2];
    const char *only = argc > 1 ? argv[1] : "";
    static char name[64];
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    errors_return();
    OK(MPI_Comm_rank(world, &rank));
    for (int i = 0; i < LONG; i++)
        in[i] = i + 1;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Comm_dup(world, &control));
    snprintf(name, sizeof name, "failing_pairs_%d", (int)getpid());
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, control));
    path = name;
    OK(MPI_Comm_set_errhandler(control, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &selves));
    OK(MPI_Intercomm_create(selves, 0, control, !rank, 5, &between));
    OK(MPI_Cart_create(control, 1, &two, &one, 0, &grid));
    OK(MPI_Comm_group(world, &pair));
    MPI_Comm all[3] = {selves, between, grid};
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_set_errhandler(all[i], MPI_ERRORS_RETURN));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Win_allocate(sizeof near, 4, MPI_INFO_NULL, world, &there, &mapped));
    OK(MPI_Win_create(near, sizeof near, 4, MPI_INFO_NULL, world, &far));
    OK(MPI_Win_set_errhandler(mapped, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(far, MPI_ERRORS_RETURN));
    OK(MPI_File_open(control, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &opened));
    memcpy(&there[30], in, 40), memcpy(&near[30], in, 40);
    OK(MPI_Barrier(control));

    if (rank == 1) {
        for (;;) {
            OK(MPI_Bcast(order, 2, MPI_INT, 0, control));
            if (order[0] == STOP)
                break;
            used_up = order[1];
            CHECK(!fails(&kinds[order[0]]));
        }
    } else {
        each_allocation(kinds, KINDS, only, 0, make);
        each_without_reserve(kinds, KINDS, only, make);
        order[0] = STOP;
        OK(MPI_Bcast(order, 2, MPI_INT, 0, control));
        check_that_allocations_come_here();
        printf("%d calls of %d kinds, %d returned MPI_ERR_NO_MEM\n", calls, KINDS, refused);
    }
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, starved, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    OK(MPI_Win_free(&mapped));
    OK(MPI_Win_free(&far));
    OK(MPI_Buffer_detach(&(char *){NULL}, &(int){0}));
    OK(MPI_Group_free(&pair));
    OK(MPI_File_close(&opened));
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_free(&all[i]));
    OK(MPI_Comm_free(&control));
    OK(MPI_Type_free(&column));
    if (rank == 0)
        unlink(path);
    OK(MPI_Finalize());
    return 0;
}
