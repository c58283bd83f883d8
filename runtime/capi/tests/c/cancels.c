/* Tests MPI_Cancel of sends (MPI-5.0 section 3.8.4). After the call, MPI_Wait and MPI_Test return whatever
   the receiver does, and MPI_Request_free lets MPI_Finalize return. Either the send is cancelled and no part
   of the message arrives, or the send completes and the message arrives. In most parts rank 1 waits for a
   signal while rank 0 cancels, so rank 1 makes no call of the library. */
#define _POSIX_C_SOURCE 200809L
#include "messages.h"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

/* A message of LARGE bytes begins with an RTS always; one of MIDDLE bytes may go out in parts, after which it cannot be
   recalled. */
enum { LONG = 1 << 20, LARGE = 300000, MIDDLE = 10000, DONE = 31000, HALT = 31001 };

static unsigned char out[LONG], in[LONG];
static int other;
static pid_t partner;

/* The kinds of sends. */
enum { ISEND, ISSEND, PERSISTENT, SYNCHRONOUS, KINDS };

static void start(int kind, int bytes, int tag, MPI_Request *request)
{
    switch (kind) {
    case ISEND: OK(MPI_Isend(out, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, request)); return;
    case ISSEND: OK(MPI_Issend(out, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, request)); return;
    case PERSISTENT:
        OK(MPI_Send_init(out, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, request));
        break;
    default: OK(MPI_Ssend_init(out, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, request));
    }
    OK(MPI_Start(request));
}

/* Cancels the send and waits for it, by MPI_Wait or by MPI_Test. Returns whether it is cancelled. */
static int cancel(MPI_Request *request, int by_test)
{
    MPI_Status status;
    int flag = 0;
    OK(MPI_Cancel(request));
    if (by_test) {
        OK(MPI_Test(request, &flag, &status));
        CHECK(flag);
    } else {
        OK(MPI_Wait(request, &status));
    }
    OK(MPI_Test_cancelled(&status, &flag));
    if (*request != MPI_REQUEST_NULL) OK(MPI_Request_free(request));
    return flag;
}

/* Waits for SIGUSR1 from the other rank, without a call of the library. */
static void await_signal(void)
{
    sigset_t set;
    int number = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigwait(&set, &number) == 0 && number == SIGUSR1);
}

/* Rank 1 waits for a signal of rank 0 without a call of the library. At rank 0, the function returns when
   rank 1 has left the library. The message alone does not show this: rank 1 may still be inside MPI_Send
   when its message arrives, and then it would take further messages out of its ring. So rank 1 also sends
   a signal. */
static void halt(void)
{
    int number = 0;
    if (rank == 0) {
        OK(MPI_Recv(&number, 1, MPI_INT, other, HALT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        await_signal();
        return;
    }
    OK(MPI_Send(&number, 1, MPI_INT, other, HALT, MPI_COMM_WORLD));
    CHECK(kill(partner, SIGUSR1) == 0);
    await_signal();
}

/* At rank 0: ends the wait of rank 1. */
static void release(void)
{
    CHECK(kill(partner, SIGUSR1) == 0);
}

/* Checks that no message with this tag has arrived. All earlier messages of rank 0 have arrived. */
static void check_none(int tag)
{
    int flag = 1;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
}

/* Rank 1 makes no MPI call. Long and synchronous sends are cancelled, and their messages never arrive. */
static void unmatched(void)
{
    const int lengths[] = {MIDDLE, LONG, 8, 0};
    halt();
    for (int kind = 0; rank == 0 && kind < KINDS; kind++) {
        for (int i = 0; i < 4; i++) {
            MPI_Request request;
            if (lengths[i] < MIDDLE && kind != ISSEND && kind != SYNCHRONOUS) continue;
            fill(out, LONG, 1);
            start(kind, lengths[i], 10 + kind * 4 + i, &request);
            CHECK(cancel(&request, i % 2));
            memset(out, 0xEE, sizeof out);
        }
    }
    if (rank == 0) release();
    meet(other);
    for (int tag = 10; rank == 1 && tag < 10 + 4 * KINDS; tag++) check_none(tag);
}

/* A buffered send is complete when its call returns, so cancelling it has no effect. */
static void buffered(void)
{
    static unsigned char buffer[LONG + MPI_BSEND_OVERHEAD];
    void *address;
    int bytes;
    MPI_Request request;
    halt();
    if (rank == 1) {
        OK(MPI_Recv(in, LONG, MPI_BYTE, other, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, LONG, 2));
        return;
    }
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    fill(out, LONG, 2);
    OK(MPI_Ibsend(out, LONG, MPI_BYTE, other, 30, MPI_COMM_WORLD, &request));
    CHECK(!cancel(&request, 0));
    memset(out, 0xEE, sizeof out);
    release();
    OK(MPI_Buffer_detach(&address, &bytes));
}

/* Rank 1 makes no calls and its ring is full, so the last messages are still in the queue of rank 0, and their
   sends can be cancelled. A short message that is in the ring already counts as sent. */
static void queued(void)
{
    enum { MANY = 1000 };
    static MPI_Request requests[MANY];
    static int cancelled[MANY], values[MANY];
    int count = 0;
    halt();
    if (rank == 0) {
        for (int i = 0; i < MANY; i++) {
            values[i] = i;
            OK(MPI_Isend(&values[i], 1, MPI_INT, other, 40, MPI_COMM_WORLD, &requests[i]));
        }
        for (int i = 0; i < MANY; i++) {
            count += cancelled[i] = cancel(&requests[i], i % 2);
            values[i] = -1;
        }
        CHECK(count > 0 && cancelled[MANY - 1]);
        release();
    }
    OK(MPI_Bcast(cancelled, MANY, MPI_INT, 0, MPI_COMM_WORLD));
    for (int i = 0; rank == 1 && i < MANY; i++) {
        int value = -1;
        if (cancelled[i]) continue;
        OK(MPI_Recv(&value, 1, MPI_INT, other, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == i);
    }
    if (rank == 1) check_none(40);
}

/* Cancels more long sends than the library can recall at the same time: each message that can be recalled takes one
   of a few words of shared memory. A message whose send completes arrives unchanged. */
static void many(void)
{
    enum { MANY = 400 };
    static MPI_Request requests[MANY];
    static int cancelled[MANY];
    int count = 0;
    /* In halt(), rank 1 takes envelopes out of its ring. The second part shows that the words of the first part can
       be used again. */
    for (int part = 0; part < 2; part++) {
        meet(other);
        for (int i = 0; rank == 0 && i < MANY; i++) {
            fill(out, LONG, 3);
            OK(MPI_Isend(out, LARGE + i, MPI_BYTE, other, 41, MPI_COMM_WORLD, &requests[i]));
        }
        halt();
        if (rank == 0) {
            count = 0;
            for (int i = 0; i < MANY; i++) count += cancelled[i] = cancel(&requests[i], i % 2);
            CHECK(count >= 50 && cancelled[0]);
            memset(out, 0xEE, sizeof out);
            release();
        }
        OK(MPI_Bcast(cancelled, MANY, MPI_INT, 0, MPI_COMM_WORLD));
        for (int i = 0; rank == 1 && i < MANY; i++) {
            MPI_Status status;
            if (cancelled[i]) continue;
            OK(MPI_Recv(in, LONG, MPI_BYTE, other, 41, MPI_COMM_WORLD, &status));
            check_status(&status, other, 41, LARGE + i);
            CHECK(is_filled(in, LARGE + (size_t)i, 3));
        }
        if (rank == 1) check_none(41);
    }
}

/* A receive or a probe of rank 1 matches the message, and then rank 1 makes no MPI call. So the cancelled send
   completes, from a copy. The message lies at `from`, in memory of the library or of the program. */
static void matched(unsigned char *from)
{
    for (int way = 0; way < 3; way++) {
        MPI_Request request;
        MPI_Message message;
        MPI_Status status;
        meet(other);
        if (rank == 0) {
            fill(from, LONG, 5);
            OK(MPI_Isend(from, LONG, MPI_BYTE, other, 50, MPI_COMM_WORLD, &request));
            halt();
            CHECK(!cancel(&request, way % 2));
            memset(from, 0xEE, LONG);
            release();
            continue;
        }
        if (way == 0) {
            OK(MPI_Probe(other, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Irecv(in, LONG, MPI_BYTE, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &request));
        } else if (way == 1) {
            OK(MPI_Probe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Mprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        }
        halt();
        if (way == 1) {
            OK(MPI_Irecv(in, LONG, MPI_BYTE, other, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
        } else if (way == 2) {
            OK(MPI_Imrecv(in, LONG, MPI_BYTE, &message, &request));
        }
        OK(MPI_Wait(&request, &status));
        check_status(&status, other, 50, LONG);
        CHECK(is_filled(in, LONG, 5));
    }
}

/* Rank 0 cancels while rank 1 may be receiving. Both must agree whether the message arrives. */
static void races(void)
{
    enum { ROUNDS = 3000 };
    unsigned random = 1;
    int cancels = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int kind = round % 2, bytes = round % 4 < 2 ? 8 : MIDDLE, cancelled = 0;
        MPI_Request request;
        MPI_Status status;
        random = random * 1664525u + 1013904223u;
        fill(out, MIDDLE, (unsigned)round);
        meet(other);
        if (rank == 0) {
            if (kind == ISEND) bytes = MIDDLE;
            start(kind, bytes, 60, &request);
            for (volatile unsigned i = 0; i < (random >> 20); i++) {}
            cancelled = cancel(&request, round % 2);
            memset(out, 0xEE, MIDDLE);
            cancels += cancelled;
            OK(MPI_Send(&cancelled, 1, MPI_INT, other, DONE, MPI_COMM_WORLD));
            continue;
        }
        for (volatile unsigned i = 0; i < (random >> 10 & 0x1fff); i++) {}
        OK(MPI_Irecv(in, MIDDLE, MPI_BYTE, other, 60, MPI_COMM_WORLD, &request));
        OK(MPI_Recv(&cancelled, 1, MPI_INT, other, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (cancelled) {
            int flag = 0;
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &flag));
            CHECK(flag);
        } else {
            int count;
            OK(MPI_Wait(&request, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(is_filled(in, (size_t)count, (unsigned)round));
        }
    }
    if (rank == 0) printf("%d of %d cancelled\n", cancels, ROUNDS);
}

/* A long message of a rank to itself. */
static void own(void)
{
    MPI_Request request;
    MPI_Message message;
    for (int taken = 0; taken < 2; taken++) {
        fill(out, LONG, 9);
        OK(MPI_Isend(out, LONG, MPI_BYTE, rank, 70, MPI_COMM_WORLD, &request));
        if (taken) OK(MPI_Mprobe(rank, 70, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        CHECK(cancel(&request, taken) == !taken);
        memset(out, 0xEE, sizeof out);
        if (taken) {
            OK(MPI_Mrecv(in, LONG, MPI_BYTE, &message, MPI_STATUS_IGNORE));
            CHECK(is_filled(in, LONG, 9));
        }
        check_none(70);
    }
}

int main(void)
{
    sigset_t set;
    MPI_Request request;
    unsigned char *shared;
    int pids[2], pid = (int)getpid();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    begin();
    own();
    if (size == 1) return end();
    other = 1 - rank;
    OK(MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD));
    partner = pids[other];
    OK(MPI_Alloc_mem(LONG, MPI_INFO_NULL, &shared));
    unmatched();
    buffered();
    queued();
    many();
    matched(out);
    matched(shared);
    races();
    OK(MPI_Free_mem(shared));
    /* Rank 1 goes to MPI_Finalize at once. The last example of MPI-5.0 section 11.2.2 is such a program. */
    if (rank == 0) {
        start(ISEND, LONG, 80, &request);
        OK(MPI_Cancel(&request));
        OK(MPI_Request_free(&request));
        start(ISSEND, 8, 81, &request);
        CHECK(cancel(&request, 0));
    }
    return end();
}
