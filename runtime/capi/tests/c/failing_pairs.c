/* Lets allocations of rank 0 fail, in calls that move data to or from rank 1: for every n up to 12, and every seventh
   after that, the n-th allocation of the call, then the n-th and all that follow. A call of one rank alone may return
   MPI_ERR_NO_MEM; rank 0 then makes it again with memory, and nothing of the first try may be left. A collective call
   succeeds, because the library's reserve is there. An argument limits the test to the kinds of calls whose names
   contain the argument. */
#include "failing.h"

#include <pthread.h>
#include <stdint.h>

enum { MANY = 30, LONG = 40000, STOP = -1 };

static const MPI_Comm world = MPI_COMM_WORLD;
static MPI_Comm control;
static MPI_Datatype column;
static MPI_Win mapped, far;
static int *there, near[64];
static int in[LONG], out[LONG], rank, refused;
static MPI_Request request;

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

/* Each rank makes a call of its own. */
#define ALONE(call)                                      \
    do {                                                 \
        if (rank == 0)                                   \
            TRY_TWICE(call);                             \
        else                                             \
            OK(call);                                    \
    } while (0)

/* Both ranks make a call, rank 0 while allocations fail. */
#define TOGETHER(call)                                   \
    do {                                                 \
        if (rank == 0) {                                 \
            fail_allocations(first, last);               \
            int tried_ = (call);                          \
            failed += end_of_failing_allocations();      \
            OK(tried_);                                   \
        } else {                                         \
            OK(call);                                    \
        }                                                \
    } while (0)

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
        ALONE(MPI_Wait(&request, MPI_STATUS_IGNORE));    \
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

static const struct kind kinds[] = {
    KIND(send_short), KIND(send_eager), KIND(send_long), KIND(isend_long), KIND(issend), KIND(ibsend),
    KIND(send_column), KIND(unexpected), KIND(irecv), KIND(barrier), KIND(allreduce), KIND(allreduce_long),
    KIND(allgather), KIND(alltoall), KIND(iallreduce), KIND(ialltoall), KIND(bcast), KIND(put), KIND(get),
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

int main(int argc, char **argv)
{
    static char buffer[10000];
    int level, calls = 0, order[3];
    const char *only = argc > 1 ? argv[1] : "";
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    errors_return();
    OK(MPI_Comm_rank(world, &rank));
    for (int i = 0; i < LONG; i++)
        in[i] = i + 1;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Comm_dup(world, &control));
    OK(MPI_Comm_set_errhandler(control, MPI_ERRORS_RETURN));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Win_allocate(sizeof near, 4, MPI_INFO_NULL, world, &there, &mapped));
    OK(MPI_Win_create(near, sizeof near, 4, MPI_INFO_NULL, world, &far));
    OK(MPI_Win_set_errhandler(mapped, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(far, MPI_ERRORS_RETURN));
    memcpy(&there[30], in, 40), memcpy(&near[30], in, 40);
    OK(MPI_Barrier(control));

    if (rank == 1) {
        for (;;) {
            OK(MPI_Bcast(order, 1, MPI_INT, 0, control));
            if (order[0] == STOP)
                break;
            CHECK(!fails(&kinds[order[0]]));
        }
    } else {
        for (int kind = 0; kind < KINDS; kind++) {
            if (!strstr(kinds[kind].name, only))
                continue;
            for (int mode = 0; mode < 2; mode++) {
                int at = 0;
                do {
                    first = at, last = mode ? INT_MAX : at;
                    order[0] = kind;
                    OK(MPI_Bcast(order, 1, MPI_INT, 0, control));
                    CHECK(!fails(&kinds[kind]));
                    calls++;
                    at += at < 12 ? 1 : 7;
                } while (failed);
            }
        }
        order[0] = STOP;
        OK(MPI_Bcast(order, 1, MPI_INT, 0, control));
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
    OK(MPI_Comm_free(&control));
    OK(MPI_Type_free(&column));
    OK(MPI_Finalize());
    return 0;
}
