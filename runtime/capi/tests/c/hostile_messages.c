/* Calls every function on messages and requests with wrong arguments. Each call must return an error of
   the right class, leave its outputs unchanged, and start no operation. At the end no message may be
   pending. */
#include "messages.h"

#define HANDLE(type, value) ((type)(MPI_Aint)(value))

static unsigned char in[64], out[64];
static MPI_Request request, marked;
static MPI_Status status;
static MPI_Message message;
static int flag, index_, outcount, indices[2];
static MPI_Datatype uncommitted, stale;

/* Fills the outputs with marks. A failed call must not change them. */
static void mark(void)
{
    memset(in, 0xab, sizeof in);
    request = marked;
    message = MPI_MESSAGE_NULL;
    flag = index_ = outcount = 0x5a5a5a5a;
    memset(&status, 0x5a, sizeof status);
}

static void check_marks(int line)
{
    MPI_Status same;
    memset(&same, 0x5a, sizeof same);
    int kept = request == marked && message == MPI_MESSAGE_NULL && flag == 0x5a5a5a5a &&
               index_ == 0x5a5a5a5a && outcount == 0x5a5a5a5a &&
               memcmp(&same, &status, sizeof same) == 0;
    for (size_t i = 0; i < sizeof in; i++) kept &= in[i] == 0xab;
    if (!kept) fprintf(stderr, "line %d: an output was written\n", line);
    CHECK(kept);
}

#define BAD(class, call)       \
    do {                       \
        mark();                \
        RAISES(class, call);   \
        check_marks(__LINE__); \
    } while (0)

/* Makes a send or receive with each of its arguments wrong in turn. CALL takes the buffer, the count, the
   datatype, the rank, the tag and the communicator. */
#define ARGUMENTS(CALL, ANY)                                                              \
    do {                                                                                  \
        BAD(MPI_ERR_COUNT, CALL(in, -1, MPI_BYTE, 0, 1, MPI_COMM_WORLD));                 \
        BAD(MPI_ERR_TYPE, CALL(in, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD));          \
        BAD(MPI_ERR_TYPE, CALL(in, 1, uncommitted, 0, 1, MPI_COMM_WORLD));                \
        BAD(MPI_ERR_TYPE, CALL(in, 1, stale, 0, 1, MPI_COMM_WORLD));                      \
        BAD(MPI_ERR_TYPE, CALL(in, 1, HANDLE(MPI_Datatype, 0), 0, 1, MPI_COMM_WORLD));    \
        BAD(MPI_ERR_TYPE, CALL(in, 1, HANDLE(MPI_Datatype, MPI_COMM_WORLD), 0, 1,         \
                               MPI_COMM_WORLD));                                          \
        BAD(MPI_ERR_TYPE, CALL(in, 1, HANDLE(MPI_Datatype, in), 0, 1, MPI_COMM_WORLD));   \
        BAD(MPI_ERR_RANK, CALL(in, 1, MPI_BYTE, size, 1, MPI_COMM_WORLD));                \
        BAD(MPI_ERR_RANK, CALL(in, 1, MPI_BYTE, 1, 1, MPI_COMM_SELF));                    \
        BAD(MPI_ERR_RANK, CALL(in, 1, MPI_BYTE, -9, 1, MPI_COMM_WORLD));                  \
        if (!ANY) BAD(MPI_ERR_RANK, CALL(in, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD)); \
        BAD(MPI_ERR_TAG, CALL(in, 1, MPI_BYTE, 0, -1, MPI_COMM_WORLD));                   \
        BAD(MPI_ERR_TAG, CALL(in, 1, MPI_BYTE, MPI_PROC_NULL, -9, MPI_COMM_WORLD));       \
        if (!ANY) BAD(MPI_ERR_TAG, CALL(in, 1, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD)); \
        BAD(MPI_ERR_COMM, CALL(in, 1, MPI_BYTE, 0, 1, MPI_COMM_NULL));                    \
        BAD(MPI_ERR_COMM, CALL(in, 1, MPI_BYTE, 0, 1, HANDLE(MPI_Comm, 0)));              \
        BAD(MPI_ERR_COMM, CALL(in, 1, MPI_BYTE, 0, 1, HANDLE(MPI_Comm, uncommitted)));    \
        BAD(MPI_ERR_COMM, CALL(in, 1, MPI_BYTE, 0, 1, HANDLE(MPI_Comm, MPI_INT)));        \
        BAD(MPI_ERR_BUFFER, CALL(NULL, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD));               \
    } while (0)


#define SEND_(b, n, type, to, tag, comm) MPI_Send(b, n, type, to, tag, comm)
#define SSEND_(b, n, type, to, tag, comm) MPI_Ssend(b, n, type, to, tag, comm)
#define BSEND_(b, n, type, to, tag, comm) MPI_Bsend(b, n, type, to, tag, comm)
#define RSEND_(b, n, type, to, tag, comm) MPI_Rsend_c(b, n, type, to, tag, comm)
#define ISEND_(b, n, type, to, tag, comm) MPI_Isend(b, n, type, to, tag, comm, &request)
#define ISSEND_(b, n, type, to, tag, comm) MPI_Issend(b, n, type, to, tag, comm, &request)
#define IBSEND_(b, n, type, to, tag, comm) MPI_Ibsend(b, n, type, to, tag, comm, &request)
#define IRSEND_(b, n, type, to, tag, comm) MPI_Irsend_c(b, n, type, to, tag, comm, &request)
#define SEND_INIT_(b, n, type, to, tag, comm) MPI_Send_init(b, n, type, to, tag, comm, &request)
#define SSEND_INIT_(b, n, type, to, tag, comm) MPI_Ssend_init(b, n, type, to, tag, comm, &request)
#define BSEND_INIT_(b, n, type, to, tag, comm) MPI_Bsend_init(b, n, type, to, tag, comm, &request)
#define RSEND_INIT_(b, n, type, to, tag, comm) MPI_Rsend_init_c(b, n, type, to, tag, comm, &request)
#define RECV_(b, n, type, to, tag, comm) MPI_Recv(b, n, type, to, tag, comm, &status)
#define IRECV_(b, n, type, to, tag, comm) MPI_Irecv(b, n, type, to, tag, comm, &request)
#define RECV_INIT_(b, n, type, to, tag, comm) MPI_Recv_init(b, n, type, to, tag, comm, &request)
/* Calls that send and receive. In the macros with SEND the arguments of the send are wrong, in those with
   RECV the arguments of the receive. */
#define SR_SEND_(b, n, type, to, tag, comm) \
    MPI_Sendrecv(b, n, type, to, tag, in, 1, MPI_BYTE, 0, 1, comm, &status)
#define SR_RECV_(b, n, type, to, tag, comm) \
    MPI_Sendrecv(out, 1, MPI_BYTE, 0, 1, b, n, type, to, tag, comm, &status)
#define SRR_SEND_(b, n, type, to, tag, comm) \
    MPI_Sendrecv_replace(b, n, type, to, tag, 0, 1, comm, &status)
#define SRR_RECV_(b, n, type, to, tag, comm) \
    MPI_Sendrecv_replace(b, n, type, 0, 1, to, tag, comm, &status)
#define ISR_SEND_(b, n, type, to, tag, comm) \
    MPI_Isendrecv(b, n, type, to, tag, in, 1, MPI_BYTE, 0, 1, comm, &request)
#define ISR_RECV_(b, n, type, to, tag, comm) \
    MPI_Isendrecv_c(out, 1, MPI_BYTE, 0, 1, b, n, type, to, tag, comm, &request)
#define ISRR_SEND_(b, n, type, to, tag, comm) \
    MPI_Isendrecv_replace(b, n, type, to, tag, 0, 1, comm, &request)
#define ISRR_RECV_(b, n, type, to, tag, comm) \
    MPI_Isendrecv_replace_c(b, n, type, 0, 1, to, tag, comm, &request)

#define PROBE_ARGUMENTS(CALL)                                        \
    do {                                                             \
        BAD(MPI_ERR_RANK, CALL(size, 1, MPI_COMM_WORLD));            \
        BAD(MPI_ERR_RANK, CALL(-9, 1, MPI_COMM_WORLD));              \
        BAD(MPI_ERR_TAG, CALL(0, -1, MPI_COMM_WORLD));               \
        BAD(MPI_ERR_COMM, CALL(0, 1, MPI_COMM_NULL));                \
        BAD(MPI_ERR_COMM, CALL(0, 1, HANDLE(MPI_Comm, MPI_INT)));    \
    } while (0)

#define PROBE_(from, tag, comm) MPI_Probe(from, tag, comm, &status)
#define IPROBE_(from, tag, comm) MPI_Iprobe(from, tag, comm, &flag, &status)
#define MPROBE_(from, tag, comm) MPI_Mprobe(from, tag, comm, &message, &status)
#define IMPROBE_(from, tag, comm) MPI_Improbe(from, tag, comm, &flag, &message, &status)

/* Makes every call that takes a request with a handle that is not a request. */
static void bad_request(MPI_Request bad)
{
    MPI_Request null = MPI_REQUEST_NULL, array[2] = {null, bad};
    MPI_Status statuses[2];
    if (bad != MPI_REQUEST_NULL) {
        BAD(MPI_ERR_REQUEST, MPI_Wait(&bad, &status));
        BAD(MPI_ERR_REQUEST, MPI_Test(&bad, &flag, &status));
        BAD(MPI_ERR_REQUEST, MPI_Waitall(2, array, statuses));
        BAD(MPI_ERR_REQUEST, MPI_Testall(2, array, &flag, statuses));
        BAD(MPI_ERR_REQUEST, MPI_Waitany(2, array, &index_, &status));
        BAD(MPI_ERR_REQUEST, MPI_Testany(2, array, &index_, &flag, &status));
        BAD(MPI_ERR_REQUEST, MPI_Waitsome(2, array, &outcount, indices, statuses));
        BAD(MPI_ERR_REQUEST, MPI_Testsome(2, array, &outcount, indices, statuses));
        BAD(MPI_ERR_REQUEST, MPI_Request_get_status(bad, &flag, &status));
        BAD(MPI_ERR_REQUEST, MPI_Request_get_status_all(2, array, &flag, statuses));
        BAD(MPI_ERR_REQUEST, MPI_Request_get_status_any(2, array, &index_, &flag, &status));
        BAD(MPI_ERR_REQUEST,
            MPI_Request_get_status_some(2, array, &outcount, indices, statuses));
    }
    BAD(MPI_ERR_REQUEST, MPI_Start(&bad));
    BAD(MPI_ERR_REQUEST, MPI_Startall(2, array));
    BAD(MPI_ERR_REQUEST, MPI_Cancel(&bad));
    BAD(MPI_ERR_REQUEST, MPI_Request_free(&bad));
    BAD(MPI_ERR_REQUEST, MPI_Grequest_complete(bad));
    CHECK(array[0] == null && array[1] == bad);
}

int main(void)
{
    begin();
    static char attached[4096];
    MPI_Request gone, array[1] = {MPI_REQUEST_NULL};
    OK(MPI_Buffer_attach(attached, sizeof attached));
    OK(MPI_Type_contiguous(3, MPI_INT, &uncommitted));
    OK(MPI_Type_contiguous(3, MPI_INT, &stale));
    MPI_Datatype copy = stale;
    OK(MPI_Type_free(&copy));
    OK(MPI_Recv_init(in, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &marked));

    ARGUMENTS(SEND_, 0);
    ARGUMENTS(SSEND_, 0);
    ARGUMENTS(BSEND_, 0);
    ARGUMENTS(RSEND_, 0);
    ARGUMENTS(ISEND_, 0);
    ARGUMENTS(ISSEND_, 0);
    ARGUMENTS(IBSEND_, 0);
    ARGUMENTS(IRSEND_, 0);
    ARGUMENTS(SEND_INIT_, 0);
    ARGUMENTS(SSEND_INIT_, 0);
    ARGUMENTS(BSEND_INIT_, 0);
    ARGUMENTS(RSEND_INIT_, 0);
    ARGUMENTS(RECV_, 1);
    ARGUMENTS(IRECV_, 1);
    ARGUMENTS(RECV_INIT_, 1);
    ARGUMENTS(SR_SEND_, 0);
    ARGUMENTS(SR_RECV_, 1);
    ARGUMENTS(SRR_SEND_, 0);
    ARGUMENTS(SRR_RECV_, 1);
    ARGUMENTS(ISR_SEND_, 0);
    ARGUMENTS(ISR_RECV_, 1);
    ARGUMENTS(ISRR_SEND_, 0);
    ARGUMENTS(ISRR_RECV_, 1);
    PROBE_ARGUMENTS(PROBE_);
    PROBE_ARGUMENTS(IPROBE_);
    PROBE_ARGUMENTS(MPROBE_);
    PROBE_ARGUMENTS(IMPROBE_);

    /* The pointers for the results are null. */
    BAD(MPI_ERR_ARG, MPI_Isend(out, 1, MPI_BYTE, rank, 1, MPI_COMM_WORLD, NULL));
    BAD(MPI_ERR_ARG, MPI_Irecv(in, 1, MPI_BYTE, rank, 1, MPI_COMM_WORLD, NULL));
    BAD(MPI_ERR_ARG, MPI_Send_init(out, 1, MPI_BYTE, rank, 1, MPI_COMM_WORLD, NULL));
    BAD(MPI_ERR_ARG, MPI_Recv_init(in, 1, MPI_BYTE, rank, 1, MPI_COMM_WORLD, NULL));
    BAD(MPI_ERR_ARG, MPI_Isendrecv(out, 1, MPI_BYTE, rank, 1, in, 1, MPI_BYTE, rank, 1,
                                   MPI_COMM_WORLD, NULL));
    BAD(MPI_ERR_ARG, MPI_Isendrecv_replace(in, 1, MPI_BYTE, rank, 1, rank, 1, MPI_COMM_WORLD,
                                           NULL));
    BAD(MPI_ERR_ARG, MPI_Iprobe(0, 1, MPI_COMM_WORLD, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Mprobe(0, 1, MPI_COMM_WORLD, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Improbe(0, 1, MPI_COMM_WORLD, NULL, &message, &status));
    BAD(MPI_ERR_ARG, MPI_Improbe(0, 1, MPI_COMM_WORLD, &flag, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Mrecv(in, 1, MPI_BYTE, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Imrecv(in, 1, MPI_BYTE, NULL, &request));
    BAD(MPI_ERR_ARG, MPI_Imrecv(in, 1, MPI_BYTE, &message, NULL));
    BAD(MPI_ERR_ARG, MPI_Wait(NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Test(NULL, &flag, &status));
    BAD(MPI_ERR_ARG, MPI_Test(array, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Waitall(1, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Testall(1, NULL, &flag, &status));
    BAD(MPI_ERR_ARG, MPI_Testall(1, array, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Waitany(1, array, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Waitany(1, NULL, &index_, &status));
    BAD(MPI_ERR_ARG, MPI_Testany(1, array, NULL, &flag, &status));
    BAD(MPI_ERR_ARG, MPI_Testany(1, array, &index_, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Waitsome(1, array, NULL, indices, &status));
    BAD(MPI_ERR_ARG, MPI_Waitsome(1, array, &outcount, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Testsome(1, NULL, &outcount, indices, &status));
    BAD(MPI_ERR_ARG, MPI_Request_get_status(MPI_REQUEST_NULL, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Request_get_status_all(1, array, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Request_get_status_any(1, array, NULL, &flag, &status));
    BAD(MPI_ERR_ARG, MPI_Request_get_status_some(1, array, &outcount, NULL, &status));
    BAD(MPI_ERR_ARG, MPI_Start(NULL));
    BAD(MPI_ERR_ARG, MPI_Startall(1, NULL));
    BAD(MPI_ERR_ARG, MPI_Cancel(NULL));
    BAD(MPI_ERR_ARG, MPI_Request_free(NULL));
    BAD(MPI_ERR_ARG, MPI_Buffer_iflush(NULL));
    BAD(MPI_ERR_ARG, MPI_Comm_iflush_buffer(MPI_COMM_WORLD, NULL));

    /* The number of requests is negative. */
    BAD(MPI_ERR_COUNT, MPI_Waitall(-1, array, &status));
    BAD(MPI_ERR_COUNT, MPI_Testall(-1, array, &flag, &status));
    BAD(MPI_ERR_COUNT, MPI_Waitany(-1, array, &index_, &status));
    BAD(MPI_ERR_COUNT, MPI_Testany(-1, array, &index_, &flag, &status));
    BAD(MPI_ERR_COUNT, MPI_Waitsome(-1, array, &outcount, indices, &status));
    BAD(MPI_ERR_COUNT, MPI_Testsome(-1, array, &outcount, indices, &status));
    BAD(MPI_ERR_COUNT, MPI_Startall(-1, array));
    BAD(MPI_ERR_COUNT, MPI_Request_get_status_all(-1, array, &flag, &status));

    /* These handles do not belong to requests. */
    gone = marked;
    OK(MPI_Recv_init(in, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &gone));
    MPI_Request freed = gone;
    OK(MPI_Request_free(&freed));
    bad_request(gone);
    bad_request(MPI_REQUEST_NULL);
    bad_request(HANDLE(MPI_Request, 0));
    bad_request(HANDLE(MPI_Request, uncommitted));
    bad_request(HANDLE(MPI_Request, MPI_COMM_WORLD));
    bad_request(HANDLE(MPI_Request, in));
    bad_request(HANDLE(MPI_Request, -1));

    /* These handles do not belong to matched messages. */
    MPI_Message bad[] = {MPI_MESSAGE_NULL, HANDLE(MPI_Message, 0), HANDLE(MPI_Message, marked),
                         HANDLE(MPI_Message, in), HANDLE(MPI_Message, -1)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        MPI_Message one = bad[i];
        BAD(MPI_ERR_REQUEST, MPI_Mrecv(in, 1, MPI_BYTE, &one, &status));
        BAD(MPI_ERR_REQUEST, MPI_Imrecv(in, 1, MPI_BYTE, &one, &request));
        CHECK(one == bad[i]);
    }

    /* The calls that attach, detach and flush buffers get wrong arguments. */
    int bytes = 0x5a5a5a5a;
    void *back = in;
    BAD(MPI_ERR_ARG, MPI_Buffer_detach(NULL, &bytes));
    BAD(MPI_ERR_ARG, MPI_Buffer_detach(&back, NULL));
    BAD(MPI_ERR_BUFFER, MPI_Buffer_attach(attached, 10));
    BAD(MPI_ERR_COMM, MPI_Comm_attach_buffer(MPI_COMM_NULL, attached, 10));
    BAD(MPI_ERR_ARG, MPI_Comm_attach_buffer(MPI_COMM_WORLD, attached, -1));
    BAD(MPI_ERR_ARG, MPI_Comm_attach_buffer_c(MPI_COMM_WORLD, NULL, 10));
    BAD(MPI_ERR_COMM, MPI_Comm_detach_buffer(MPI_COMM_NULL, &back, &bytes));
    BAD(MPI_ERR_COMM, MPI_Comm_flush_buffer(HANDLE(MPI_Comm, in)));
    BAD(MPI_ERR_COMM, MPI_Comm_iflush_buffer(MPI_COMM_NULL, &request));
    CHECK(back == in && bytes == 0x5a5a5a5a);

    /* A message is received into the memory from which it is sent, or into memory that overlaps it. */
    enum { PLACE = 300000 };
    static unsigned char place[2 * PLACE];
    for (int shift = 0; shift < 3; shift++) {
        for (int n = 4; n <= PLACE; n += PLACE - 4) {
            fill(place, n, 3);
            OK(MPI_Issend(place, n, MPI_BYTE, 0, 7, MPI_COMM_SELF, &request));
            OK(MPI_Recv(place + shift, n, MPI_BYTE, 0, 7, MPI_COMM_SELF, &status));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(is_filled(place + shift, n, 3));
            OK(MPI_Irecv(place, n, MPI_BYTE, 0, 7, MPI_COMM_SELF, &request));
            OK(MPI_Send(place + shift, n, MPI_BYTE, 0, 7, MPI_COMM_SELF));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(is_filled(place, n, 3));
        }
    }

    /* None of these calls has started an operation. */
    OK(MPI_Request_free(&marked));
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == attached && bytes == sizeof attached);
    meet(size == 1 ? 0 : rank ^ 1);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Type_free(&uncommitted));
    return end();
}
