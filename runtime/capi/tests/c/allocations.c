/* Counts the allocations of memory while short messages move. Once a program has sent and received some messages,
   there must be none, whether a receive is started before its message arrives or afterwards. */
#include "allocating.h"
#include "check.h"

enum { MESSAGES = 32, WARM = 40, COUNTED = 40, LONGEST = 8192, LAST = 1000 };

/* Checks that a call succeeds. OK asks for the class of the code, which allocates. */
#define DONE(call) CHECK((call) == MPI_SUCCESS)

static int rank, other;
static unsigned char out[MESSAGES][LONGEST], in[MESSAGES][LONGEST];
static MPI_Request requests[2 * MESSAGES];
static MPI_Status statuses[2 * MESSAGES];

static void start_receives(int bytes)
{
    for (int n = 0; n < MESSAGES; n++) {
        memset(in[n], 0, (size_t)bytes);
        DONE(MPI_Irecv(in[n], bytes, MPI_BYTE, n % 3 ? other : MPI_ANY_SOURCE, n, MPI_COMM_WORLD, &requests[n]));
    }
}

static void start_sends(int round, int bytes)
{
    for (int n = 0; n < MESSAGES; n++) {
        memset(out[n], round + n + rank + 1, (size_t)bytes);
        DONE(MPI_Isend(out[n], bytes, MPI_BYTE, other, n, MPI_COMM_WORLD, &requests[MESSAGES + n]));
    }
}

/* Waits until the other rank has called this function too. Then the messages that it has sent before are in the
   ring. */
static void meet(void)
{
    DONE(MPI_Sendrecv(NULL, 0, MPI_BYTE, other, LAST, NULL, 0, MPI_BYTE, other, LAST, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
}

static void complete(int round)
{
    int done = 0;
    switch (round % 4) {
    case 0:
        DONE(MPI_Waitall(2 * MESSAGES, requests, statuses));
        break;
    case 1:
        DONE(MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE));
        break;
    case 2:
        while (!done)
            DONE(MPI_Testall(2 * MESSAGES, requests, &done, statuses));
        break;
    default:
        for (int n = 2 * MESSAGES - 1; n >= 0; n--)
            DONE(MPI_Wait(&requests[n], &statuses[n]));
    }
    for (int n = 0; n < 2 * MESSAGES; n++)
        CHECK(requests[n] == MPI_REQUEST_NULL);
}

static void exchange(int round, int bytes, int late)
{
    if (!late)
        start_receives(bytes);
    start_sends(round, bytes);
    if (late) {
        /* The probe takes the messages out of the ring, so that the library has to keep them. */
        int found;
        meet();
        DONE(MPI_Iprobe(other, LAST - 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
        CHECK(!found);
        start_receives(bytes);
    }
    complete(round);
    for (int n = 0; n < MESSAGES; n++)
        for (int at = 0; at < bytes; at++)
            CHECK(in[n][at] == (unsigned char)(round + n + other + 1));
}

/* Lets more messages wait for their receives, and more receives for their messages, than any later round does. So
   the library allocates all memory that the later rounds need. */
static void flood(int bytes)
{
    enum { FLOOD = 4 * MESSAGES };
    static MPI_Request sends[FLOOD], receives[FLOOD];
    for (int n = 0; n < FLOOD; n++)
        DONE(MPI_Irecv(in[1], 0, MPI_BYTE, other, LAST + 1 + n, MPI_COMM_WORLD, &receives[n]));
    for (int n = 0; n < FLOOD; n++)
        DONE(MPI_Isend(out[0], bytes, MPI_BYTE, other, n, MPI_COMM_WORLD, &sends[n]));
    meet();
    for (int n = FLOOD - 1; n >= 0; n--)
        DONE(MPI_Recv(in[0], bytes, MPI_BYTE, other, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    DONE(MPI_Waitall(FLOOD, sends, MPI_STATUSES_IGNORE));
    for (int n = 0; n < FLOOD; n++)
        DONE(MPI_Send(NULL, 0, MPI_BYTE, other, LAST + 1 + n, MPI_COMM_WORLD));
    DONE(MPI_Waitall(FLOOD, receives, MPI_STATUSES_IGNORE));
}

static const int lengths[] = {0, 8, 64, 65, 1000, 4096, LONGEST};

enum { LENGTHS = sizeof lengths / sizeof *lengths };

int main(int argc, char **argv)
{
    int size, failed = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size == 2);
    other = 1 - rank;
    for (int length = 0; length < LENGTHS; length++) {
        flood(lengths[length]);
        for (int round = 0; round < WARM; round++)
            exchange(round, lengths[length], round / 4 % 2);
    }
    for (int length = 0; length < LENGTHS; length++) {
        for (int late = 0; late < 2; late++) {
            meet();
            begin_to_count_allocations();
            for (int round = 0; round < COUNTED; round++)
                exchange(round, lengths[length], late);
            int now = end_of_counted_allocations();
            if (now) {
                fprintf(stderr, "rank %d: %d allocations while %d messages of %d bytes were received %s\n", rank, now,
                        COUNTED * MESSAGES, lengths[length], late ? "late" : "early");
                failed = 1;
            }
        }
    }
    check_that_allocations_come_here();
    OK(MPI_Finalize());
    return failed;
}
