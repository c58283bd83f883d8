/* Tests all send modes, blocking and nonblocking, with message sizes around the limits of the transports,
   to other ranks and to the same rank. Also tests that synchronous sends complete only when they are
   matched, the calls that send and receive, MPI_PROC_NULL, and that a message without a receive does not
   block later messages. */
#include "messages.h"

static const int sizes[] = {0, 1, 8, 31, 32, 33, 1000, 8191, 8192, 8193, 65537, 3 << 20};
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static unsigned char *out, *in;

static int send_blocking(int mode, int n, int to, int tag, MPI_Comm comm) {
    switch (mode) {
    case 0: return MPI_Send(out, n, MPI_BYTE, to, tag, comm);
    case 1: return MPI_Ssend(out, n, MPI_BYTE, to, tag, comm);
    case 2: return MPI_Bsend(out, n, MPI_BYTE, to, tag, comm);
    case 3: return MPI_Rsend(out, n, MPI_BYTE, to, tag, comm);
    case 4: return MPI_Send_c(out, n, MPI_BYTE, to, tag, comm);
    case 5: return MPI_Ssend_c(out, n, MPI_BYTE, to, tag, comm);
    case 6: return MPI_Bsend_c(out, n, MPI_BYTE, to, tag, comm);
    default: return MPI_Rsend_c(out, n, MPI_BYTE, to, tag, comm);
    }
}

static int send_nonblocking(int mode, int n, int to, int tag, MPI_Comm comm, MPI_Request *r) {
    switch (mode) {
    case 0: return MPI_Isend(out, n, MPI_BYTE, to, tag, comm, r);
    case 1: return MPI_Issend(out, n, MPI_BYTE, to, tag, comm, r);
    case 2: return MPI_Ibsend(out, n, MPI_BYTE, to, tag, comm, r);
    case 3: return MPI_Irsend(out, n, MPI_BYTE, to, tag, comm, r);
    case 4: return MPI_Isend_c(out, n, MPI_BYTE, to, tag, comm, r);
    case 5: return MPI_Issend_c(out, n, MPI_BYTE, to, tag, comm, r);
    case 6: return MPI_Ibsend_c(out, n, MPI_BYTE, to, tag, comm, r);
    default: return MPI_Irsend_c(out, n, MPI_BYTE, to, tag, comm, r);
    }
}

/* Checks sends whose receive was posted before. The peer is the same rank, or the ranks form a ring. */
static void posted(MPI_Comm comm, int to, int from) {
    for (int i = 0; i < SIZES; i++) {
        for (int mode = 0; mode < 8; mode++) {
            int n = sizes[i], tag = 10 * i + mode;
            MPI_Request requests[2];
            MPI_Status statuses[2];
            fill(out, n, tag);
            memset(in, 0, n + 1);
            OK(MPI_Irecv(in, n + 1, MPI_BYTE, from, tag, comm, &requests[0]));
            OK(send_nonblocking(mode, n, to, tag, comm, &requests[1]));
            statuses[0].MPI_ERROR = 77;
            OK(MPI_Waitall(2, requests, statuses));
            CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
            check_status(&statuses[0], from, tag, n);
            CHECK(statuses[0].MPI_ERROR == 77);
            CHECK(is_filled(in, n, tag) && in[n] == 0);

            memset(in, 0, n + 1);
            OK(MPI_Irecv(in, n + 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]));
            OK(send_blocking(mode, n, to, tag, comm));
            OK(MPI_Wait(&requests[0], &statuses[0]));
            check_status(&statuses[0], from, tag, n);
            CHECK(is_filled(in, n, tag) && in[n] == 0);
        }
    }
}

/* Checks sends that begin before their receive, so that the message waits for the receive. */
static void unexpected(MPI_Comm comm, int to, int from) {
    for (int i = 0; i < SIZES; i++) {
        for (int mode = 0; mode < 8; mode++) {
            int n = sizes[i], tag = 10 * i + mode;
            MPI_Request request;
            MPI_Status status;
            fill(out, n, tag);
            memset(in, 0, n + 1);
            OK(send_nonblocking(mode, n, to, tag, comm, &request));
            OK(MPI_Recv(in, n + 1, MPI_BYTE, from, tag, comm, &status));
            check_status(&status, from, tag, n);
            CHECK(is_filled(in, n, tag) && in[n] == 0);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
}

/* Checks that a synchronous send is not complete before its message is matched, even if the message is
   short. */
static void synchronous(void) {
    for (int i = 0; i < SIZES; i++) {
        int n = sizes[i], flag = 7;
        MPI_Request request;
        if (size == 1) {
            OK(MPI_Issend(out, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
            for (int j = 0; j < 10; j++) {
                OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
                CHECK(!flag);
            }
            OK(MPI_Recv(in, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
            CHECK(flag && request == MPI_REQUEST_NULL);
        } else if (rank == 0) {
            OK(MPI_Issend(out, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
            /* After two calls of `meet`, the message has certainly arrived at the other rank, which has
               not posted a receive for it yet. */
            meet(1);
            meet(1);
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
            OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else if (rank == 1) {
            meet(0);
            meet(0);
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            /* A receive that is too short fails, but it also matches the message, so the send completes. */
            int code = MPI_Recv(in, n / 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(code == (n > n / 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
        }
    }
}

static void both(MPI_Comm comm, int to, int from) {
    for (int i = 0; i < SIZES; i++) {
        int n = sizes[i];
        MPI_Status status;
        MPI_Request request;
        fill(out, n, i);
        memset(in, 0, n + 1);
        OK(MPI_Sendrecv(out, n, MPI_BYTE, to, i, in, n + 1, MPI_BYTE, from, i, comm, &status));
        check_status(&status, from, i, n);
        CHECK(is_filled(in, n, i));
        memcpy(in, out, n);
        OK(MPI_Sendrecv_replace(in, n, MPI_BYTE, to, i, from, MPI_ANY_TAG, comm, &status));
        check_status(&status, from, i, n);
        CHECK(is_filled(in, n, i));
        memset(in, 0, n + 1);
        OK(MPI_Isendrecv_c(out, n, MPI_BYTE, to, i, in, n + 1, MPI_BYTE, from, i, comm, &request));
        OK(MPI_Wait(&request, &status));
        check_status(&status, from, i, n);
        CHECK(is_filled(in, n, i));
        OK(MPI_Isendrecv_replace(in, n, MPI_BYTE, to, i, from, i, comm, &request));
        OK(MPI_Wait(&request, &status));
        check_status(&status, from, i, n);
        CHECK(is_filled(in, n, i) && request == MPI_REQUEST_NULL);
    }
}

static void nobody(void) {
    MPI_Status status;
    MPI_Request requests[3];
    int mark = 5, flag = 0;
    OK(MPI_Send(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Ssend(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Isend(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Isendrecv(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, &mark, 1, MPI_INT, MPI_PROC_NULL, 0,
                     MPI_COMM_WORLD, &requests[2]));
    for (int i = 1; i < 3; i++) {
        OK(MPI_Wait(&requests[i], &status));
        check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    }
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, &mark, 1, MPI_INT, MPI_PROC_NULL, 0,
                    MPI_COMM_WORLD, &status));
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Sendrecv_replace(&mark, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0,
                            MPI_COMM_WORLD, &status));
    OK(MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &status));
    CHECK(flag);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    CHECK(mark == 5);
    /* One rank only sends, and the other only receives; the other half of each call has MPI_PROC_NULL. */
    int other = rank ^ 1, got = -1;
    if (size == 2) {
        if (rank == 0)
            OK(MPI_Sendrecv(&mark, 1, MPI_INT, other, 3, &got, 1, MPI_INT, MPI_PROC_NULL, 3,
                            MPI_COMM_WORLD, &status));
        else
            OK(MPI_Sendrecv(&mark, 1, MPI_INT, MPI_PROC_NULL, 3, &got, 1, MPI_INT, other, 3,
                            MPI_COMM_WORLD, &status));
        CHECK(got == (rank == 0 ? -1 : 5));
    }
}

/* Checks that long messages that are not received yet do not delay short ones. */
static void overtaking(void) {
    enum { LONG = 2 << 20 };
    int other = rank ^ 1, small = rank, got = -1;
    if (size != 2) return;
    MPI_Request requests[3];
    fill(out, LONG, rank);
    for (int i = 0; i < 3; i++)
        OK(MPI_Isend(out, LONG, MPI_BYTE, other, 50 + i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Sendrecv(&small, 1, MPI_INT, other, 60, &got, 1, MPI_INT, other, 60, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(got == other);
    for (int i = 2; i >= 0; i--) {
        memset(in, 0, LONG);
        OK(MPI_Recv(in, LONG, MPI_BYTE, other, 50 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, LONG, other));
    }
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
}

int main(void) {
    begin();
    /* A test runs this program with each kind of memory. The memory of MPI_Alloc_mem is not freed before
       MPI_Finalize, as in many programs. */
    if (getenv("FROM_MPI") != NULL) {
        OK(MPI_Alloc_mem((3 << 20) + 1, MPI_INFO_NULL, &out));
        OK(MPI_Alloc_mem((3 << 20) + 1, MPI_INFO_NULL, &in));
    } else {
        out = malloc((3 << 20) + 1);
        in = malloc((3 << 20) + 1);
    }
    /* The buffer has room for several messages, because the receiver in the ring may be a few messages
       behind. */
    int room = 8 * ((3 << 20) + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(room), *back = NULL;
    int bytes = 0;
    OK(MPI_Buffer_attach(buffer, room));
    posted(MPI_COMM_SELF, 0, 0);
    unexpected(MPI_COMM_SELF, 0, 0);
    both(MPI_COMM_SELF, 0, 0);
    posted(MPI_COMM_WORLD, (rank + 1) % size, (rank + size - 1) % size);
    unexpected(MPI_COMM_WORLD, (rank + 1) % size, (rank + size - 1) % size);
    both(MPI_COMM_WORLD, (rank + 1) % size, (rank + size - 1) % size);
    synchronous();
    nobody();
    overtaking();
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == buffer && bytes == room);
    return end();
}
