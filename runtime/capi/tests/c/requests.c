/* Tests requests: waiting for and testing one, all, any and some requests; null, inactive and persistent
   requests; queries that do not take the result; cancelling; freeing pending requests; and errors in
   statuses. */
#include "messages.h"

static int other;
static MPI_Comm comm;

/* Checks that the status is empty, including its error field. */
static void check_nothing(MPI_Status *status)
{
    check_empty(status);
    CHECK(status->MPI_ERROR == MPI_SUCCESS);
    memset(status, 0x55, sizeof *status);
}

static void null_and_inactive(void)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL}, persistent;
    MPI_Status statuses[3];
    int flag, index, outcount, indices[3], value = 0;
    memset(statuses, 0x55, sizeof statuses);
    OK(MPI_Recv_init(&value, 1, MPI_INT, other, 1, comm, &persistent));
    for (int round = 0; round < 2; round++) {
        if (round == 1) requests[1] = persistent;
        OK(MPI_Wait(&requests[1], statuses));
        check_nothing(statuses);
        flag = 0;
        OK(MPI_Test(&requests[1], &flag, statuses));
        CHECK(flag);
        check_nothing(statuses);
        OK(MPI_Waitall(3, requests, statuses));
        for (int i = 0; i < 3; i++) check_nothing(&statuses[i]);
        flag = 0;
        OK(MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE));
        CHECK(flag);
        OK(MPI_Testall(3, requests, &flag, statuses));
        for (int i = 0; i < 3; i++) check_nothing(&statuses[i]);
        index = 5;
        OK(MPI_Waitany(3, requests, &index, statuses));
        CHECK(index == MPI_UNDEFINED);
        check_nothing(statuses);
        index = 5, flag = 0;
        OK(MPI_Testany(3, requests, &index, &flag, statuses));
        CHECK(index == MPI_UNDEFINED && flag);
        check_nothing(statuses);
        outcount = 5;
        OK(MPI_Waitsome(3, requests, &outcount, indices, statuses));
        CHECK(outcount == MPI_UNDEFINED);
        outcount = 5;
        OK(MPI_Testsome(3, requests, &outcount, indices, statuses));
        CHECK(outcount == MPI_UNDEFINED);
        flag = 0;
        OK(MPI_Request_get_status(requests[1], &flag, statuses));
        CHECK(flag);
        check_nothing(statuses);
        flag = 0;
        OK(MPI_Request_get_status_all(3, requests, &flag, statuses));
        CHECK(flag);
        for (int i = 0; i < 3; i++) check_nothing(&statuses[i]);
        flag = 0, index = 5;
        OK(MPI_Request_get_status_any(3, requests, &index, &flag, statuses));
        CHECK(flag && index == MPI_UNDEFINED);
        check_nothing(statuses);
        outcount = 5;
        OK(MPI_Request_get_status_some(3, requests, &outcount, indices, statuses));
        CHECK(outcount == MPI_UNDEFINED);
        OK(MPI_Waitall(0, NULL, NULL));
        OK(MPI_Testall(0, NULL, &flag, NULL));
        CHECK(flag);
    }
    CHECK(requests[1] == persistent);
    RAISES(MPI_ERR_REQUEST, MPI_Cancel(&persistent));
    OK(MPI_Request_free(&persistent));
    CHECK(persistent == MPI_REQUEST_NULL);
    RAISES(MPI_ERR_REQUEST, MPI_Request_free(&persistent));
    RAISES(MPI_ERR_REQUEST, MPI_Wait(&requests[1], statuses));
}

static void several(void)
{
    enum { N = 5 };
    int in[N], out[N], index, flag, outcount, indices[N], done = 0;
    MPI_Request receives[N], sends[N];
    MPI_Status status, statuses[N];
    for (int i = 0; i < N; i++) {
        out[i] = 100 * i + rank;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, other, i, comm, &receives[i]));
    }
    /* No rank has sent a message yet. */
    meet(other);
    OK(MPI_Testall(N, receives, &flag, statuses));
    CHECK(!flag);
    index = 7;
    OK(MPI_Testany(N, receives, &index, &flag, &status));
    CHECK(!flag && index == MPI_UNDEFINED);
    OK(MPI_Testsome(N, receives, &outcount, indices, statuses));
    CHECK(outcount == 0);
    OK(MPI_Request_get_status_any(N, receives, &index, &flag, &status));
    CHECK(!flag && index == MPI_UNDEFINED);
    meet(other);
    OK(MPI_Isend(&out[3], 1, MPI_INT, other, 3, comm, &sends[3]));
    OK(MPI_Waitany(N, receives, &index, &status));
    CHECK(index == 3 && receives[3] == MPI_REQUEST_NULL && in[3] == 300 + other);
    check_status(&status, other, 3, 4);
    meet(other);
    for (int i = 0; i < N; i++)
        if (i != 3) OK(MPI_Isend(&out[i], 1, MPI_INT, other, i, comm, &sends[i]));
    while (done < N - 1) {
        OK(MPI_Request_get_status_some(N, receives, &outcount, indices, statuses));
        int seen = outcount;
        OK(MPI_Waitsome(N, receives, &outcount, indices, statuses));
        CHECK(outcount >= seen && outcount > 0);
        for (int i = 0; i < outcount; i++) {
            CHECK(in[indices[i]] == 100 * indices[i] + other);
            check_status(&statuses[i], other, indices[i], 4);
        }
        done += outcount;
    }
    OK(MPI_Testsome(N, receives, &outcount, indices, statuses));
    CHECK(outcount == MPI_UNDEFINED);
    OK(MPI_Waitall(N, sends, MPI_STATUSES_IGNORE));
}

static void persistent(void)
{
    int in = -1, out = 0, flag;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Recv_init(&in, 1, MPI_INT, other, 5, comm, &requests[0]));
    for (int mode = 0; mode < 3; mode++) {
        if (mode == 0) OK(MPI_Send_init(&out, 1, MPI_INT, other, 5, comm, &requests[1]));
        if (mode == 1) OK(MPI_Ssend_init_c(&out, 1, MPI_INT, other, 5, comm, &requests[1]));
        if (mode == 2) OK(MPI_Rsend_init(&out, 1, MPI_INT, other, 5, comm, &requests[1]));
        for (int round = 0; round < 20; round++) {
            MPI_Request before[2] = {requests[0], requests[1]};
            out = 1000 * mode + round;
            in = -1;
            if (round % 2) {
                OK(MPI_Startall(2, requests));
            } else {
                OK(MPI_Start(&requests[0]));
                meet(other);
                OK(MPI_Start(&requests[1]));
            }
            RAISES(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
            OK(MPI_Waitall(2, requests, statuses));
            CHECK(in == out && requests[0] == before[0] && requests[1] == before[1]);
            check_status(&statuses[0], other, 5, 4);
            OK(MPI_Test(&requests[0], &flag, statuses));
            CHECK(flag);
            check_empty(statuses);
        }
        OK(MPI_Request_free(&requests[1]));
    }
    /* The persistent receive is started and then cancelled. */
    OK(MPI_Start(&requests[0]));
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], statuses));
    OK(MPI_Test_cancelled(statuses, &flag));
    CHECK(flag && requests[0] != MPI_REQUEST_NULL);
    meet(other);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Irecv(&in, 1, MPI_INT, other, 5, comm, &requests[0]));
    RAISES(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
    OK(MPI_Send(&out, 1, MPI_INT, other, 5, comm));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
}

/* If MPI_Startall refuses one request, it starts none of the others. */
static void refused_starts(void)
{
    enum { N = 3 };
    int values[N];
    MPI_Request requests[N], twice[4];
    for (int i = 0; i < N; i++)
        OK(MPI_Recv_init(&values[i], 1, MPI_INT, MPI_PROC_NULL, i, comm, &requests[i]));
    for (int round = 0; round < 3; round++) {
        memcpy(twice, requests, sizeof requests);
        twice[3] = requests[round];
        RAISES(MPI_ERR_REQUEST, MPI_Startall(4, twice));
        /* An active request, and none, after requests that could be started. */
        OK(MPI_Start(&requests[2]));
        RAISES(MPI_ERR_REQUEST, MPI_Startall(N, requests));
        OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
        twice[2] = MPI_REQUEST_NULL;
        RAISES(MPI_ERR_REQUEST, MPI_Startall(N, twice));
        OK(MPI_Startall(N, requests));
        OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < N; i++)
        OK(MPI_Request_free(&requests[i]));
}

static void cancelled(void)
{
    int in = -1, out = 4, flag = 0;
    MPI_Request request, send;
    MPI_Status status;
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 8, comm, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && request == MPI_REQUEST_NULL);
    meet(other);
    /* The cancelled receive must not take the message, so the next receive gets it. */
    OK(MPI_Isend(&out, 1, MPI_INT, other, 8, comm, &send));
    OK(MPI_Irecv(&in, 1, MPI_INT, other, 8, comm, &request));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    do OK(MPI_Request_get_status(request, &flag, &status));
    while (!flag);
    check_status(&status, other, 8, 4);
    /* The receive has matched the message, so it is too late to cancel the receive. */
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    check_status(&status, other, 8, 4);
    CHECK(in == 4);
    /* A receive has matched the send, so it is too late to cancel it, and its status says so. `cancels.c`
       tests the other cases. */
    OK(MPI_Irecv(&in, 1, MPI_INT, other, 9, comm, &request));
    OK(MPI_Issend(&out, 1, MPI_INT, other, 9, comm, &send));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    meet(other);
    OK(MPI_Cancel(&send));
    OK(MPI_Wait(&send, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
}

static void freed(void)
{
    enum { LONG = 1 << 20 };
    static unsigned char out[LONG], in[LONG], small[8];
    MPI_Request request;
    MPI_Datatype type;
    fill(out, LONG, 3);
    OK(MPI_Type_contiguous(8, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Irecv(small, 1, type, other, 11, comm, &request));
    /* The program needs neither request any more, but it needs the message. */
    OK(MPI_Type_free(&type));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL && type == MPI_DATATYPE_NULL);
    OK(MPI_Isend(out, LONG, MPI_BYTE, other, 12, comm, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Send(out, 8, MPI_BYTE, other, 11, comm));
    OK(MPI_Recv(in, LONG, MPI_BYTE, other, 12, comm, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, LONG, 3));
    /* The short message arrives before later short messages. But it may arrive after the long message,
       whose data may be copied before its sender makes the next call. So this rank waits until the other
       rank has made its calls. */
    meet(other);
    CHECK(is_filled(small, 8, 3));
}

static void errors(void)
{
    int in[4] = {-1, -1, -1, -1}, out[4] = {1, 2, 3, 4}, outcount, indices[2], index, flag;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    for (int sent_first = 0; sent_first < 2; sent_first++) {
        for (int call = 0; call < 5; call++) {
            MPI_Request sends[2];
            if (sent_first) {
                OK(MPI_Isend(out, 1, MPI_INT, other, 20, comm, &sends[0]));
                OK(MPI_Isend(out, 3, MPI_INT, other, 21, comm, &sends[1]));
                meet(other);
            }
            OK(MPI_Irecv(in, 1, MPI_INT, other, 20, comm, &requests[0]));
            OK(MPI_Irecv(in + 1, 1, MPI_INT, other, 21, comm, &requests[1]));
            if (!sent_first) {
                meet(other);
                OK(MPI_Isend(out, 1, MPI_INT, other, 20, comm, &sends[0]));
                OK(MPI_Isend(out, 3, MPI_INT, other, 21, comm, &sends[1]));
            }
            requests[2] = MPI_REQUEST_NULL;
            statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 55;
            switch (call) {
            case 0:
                RAISES(MPI_ERR_IN_STATUS, MPI_Waitall(3, requests, statuses));
                CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
                CHECK(statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE);
                CHECK(statuses[2].MPI_ERROR == MPI_SUCCESS);
                check_status(&statuses[0], other, 20, 4);
                break;
            case 1:
                RAISES(MPI_ERR_TRUNCATE, MPI_Wait(&requests[1], &statuses[1]));
                CHECK(statuses[1].MPI_ERROR == 55);
                OK(MPI_Wait(&requests[0], &statuses[0]));
                break;
            case 2:
                OK(MPI_Wait(&requests[0], &statuses[0]));
                RAISES(MPI_ERR_IN_STATUS,
                       MPI_Waitsome(3, requests, &outcount, indices, statuses));
                CHECK(outcount == 1 && indices[0] == 1);
                CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
                break;
            case 3:
                OK(MPI_Wait(&requests[0], &statuses[0]));
                index = -1;
                RAISES(MPI_ERR_TRUNCATE, MPI_Waitany(3, requests, &index, statuses));
                CHECK(index == 1);
                break;
            default:
                do {
                    flag = 0;
                    int code = MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
                    CHECK(code == (flag ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
                } while (!flag);
            }
            CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
            CHECK(in[0] == 1 && in[2] == -1 && in[3] == -1);
            OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
        }
    }
}

static int heard;

static void hear(MPI_Comm *on, int *code, ...)
{
    CHECK(*on == MPI_COMM_WORLD);
    int class;
    OK(MPI_Error_class(*code, &class));
    CHECK(class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS);
    heard++;
}

/* Checks that a call that completes a failed operation calls the error handler of the operation's
   communicator, although the call itself has no communicator. */
static void handlers(void)
{
    int in = 0, out[2] = {1, 2};
    MPI_Errhandler handler;
    MPI_Request request;
    OK(MPI_Comm_create_errhandler(hear, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Irecv(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Send(out, 2, MPI_INT, rank, 1, MPI_COMM_WORLD));
    RAISES(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(heard == 1);
    OK(MPI_Irecv(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Send(out, 2, MPI_INT, rank, 1, MPI_COMM_WORLD));
    RAISES(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
    CHECK(heard == 2);
    /* If such a call has a wrong argument, the error handler of MPI_COMM_SELF is called. */
    RAISES(MPI_ERR_REQUEST, MPI_Start(&request));
    CHECK(heard == 2);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&handler));
}

/* Checks that a handle of a request that has ended is an error everywhere, also beside a live one. */
static void ended(void)
{
    int in[2] = {-1, -1}, out = 6, flag, index, outcount, indices[2];
    MPI_Request request, old, both[2];
    MPI_Status statuses[2];
    OK(MPI_Irecv(in, 1, MPI_INT, other, 30, comm, &request));
    CHECK(MPI_Request_fromint(MPI_Request_toint(request)) == request);
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(request));
    RAISES(MPI_ERR_REQUEST, MPI_Startall(1, &request));
    old = request;
    OK(MPI_Send(&out, 1, MPI_INT, other, 30, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == MPI_REQUEST_NULL && in[0] == 6);
    CHECK(MPI_Request_fromint(MPI_Request_toint(old)) == MPI_REQUEST_NULL);
    /* The next request has another handle, so the old one does not end it. */
    OK(MPI_Irecv(in, 1, MPI_INT, other, 31, comm, &request));
    both[0] = request, both[1] = old;
    CHECK(request != old);
    RAISES(MPI_ERR_REQUEST, MPI_Wait(&both[1], statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Test(&both[1], &flag, statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Waitall(2, both, statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Testall(2, both, &flag, statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Waitany(2, both, &index, statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Testsome(2, both, &outcount, indices, statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Request_get_status(old, &flag, statuses));
    RAISES(MPI_ERR_REQUEST, MPI_Cancel(&both[1]));
    RAISES(MPI_ERR_REQUEST, MPI_Request_free(&both[1]));
    RAISES(MPI_ERR_REQUEST, MPI_Start(&both[1]));
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(old));
    CHECK(both[0] == request && both[1] == old);
    OK(MPI_Send(&out, 1, MPI_INT, other, 31, comm));
    OK(MPI_Waitall(1, both, statuses));
    check_status(&statuses[0], other, 31, 4);
    meet(other);
}

/* Starts receives in several communicators, frees these, and completes the receives together with requests of other
   kinds. */
static void mixed(void)
{
    enum { N = 4, KINDS = 3 * N + 1 };
    static int in[3 * N], out[3 * N];
    int last = 0;
    MPI_Comm dups[2];
    MPI_Request requests[KINDS], sends[3 * N];
    MPI_Status statuses[KINDS];
    for (int i = 0; i < 2; i++) OK(MPI_Comm_dup(comm, &dups[i]));
    for (int i = 0; i < 3 * N; i++) {
        out[i] = 7 * i + rank, in[i] = -1;
        if (i % 3 == 2) {
            OK(MPI_Recv_init(&in[i], 1, MPI_INT, other, i, comm, &requests[i]));
            OK(MPI_Start(&requests[i]));
        } else {
            OK(MPI_Irecv(&in[i], 1, MPI_INT, other, i, dups[i % 3], &requests[i]));
        }
    }
    OK(MPI_Irecv(&last, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &requests[3 * N]));
    meet(other);
    for (int i = 0; i < 3 * N; i++)
        OK(MPI_Isend(&out[i], 1, MPI_INT, other, i, i % 3 == 2 ? comm : dups[i % 3], &sends[i]));
    for (int i = 0; i < 2; i++) OK(MPI_Comm_free(&dups[i]));
    OK(MPI_Waitall(KINDS, requests, statuses));
    for (int i = 0; i < 3 * N; i++) {
        CHECK(in[i] == 7 * i + other);
        check_status(&statuses[i], other, i, 4);
        CHECK((requests[i] == MPI_REQUEST_NULL) == (i % 3 != 2));
        if (i % 3 == 2) OK(MPI_Request_free(&requests[i]));
    }
    check_status(&statuses[3 * N], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Waitall(3 * N, sends, MPI_STATUSES_IGNORE));
}

/* Keeps many receives pending at a time, and ends them in another order than they were started. */
static void many(void)
{
    enum { N = 3000 };
    static int in[N], out[N];
    static MPI_Request receives[N], sends[N];
    MPI_Status status;
    for (int i = 0; i < N; i++) {
        in[i] = -1, out[i] = 5 * i + rank;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, other, i, comm, &receives[i]));
    }
    for (int i = 0; i < N; i++) {
        int tag = i * 7 % N;
        OK(MPI_Isend(&out[tag], 1, MPI_INT, other, tag, comm, &sends[i]));
    }
    for (int i = N - 1; i >= 0; i--) {
        OK(MPI_Wait(&receives[i], &status));
        CHECK(in[i] == 5 * i + other);
        check_status(&status, other, i, 4);
    }
    OK(MPI_Waitall(N, sends, MPI_STATUSES_IGNORE));
}

static void all(void)
{
    null_and_inactive();
    several();
    ended();
    mixed();
    many();
    persistent();
    refused_starts();
    cancelled();
    freed();
    errors();
}

int main(void)
{
    begin();
    int world = rank;
    comm = MPI_COMM_WORLD;
    other = size == 1 ? 0 : rank ^ 1;
    all();
    /* The same checks with messages to the same rank, in MPI_COMM_SELF. */
    comm = MPI_COMM_SELF;
    other = rank = 0;
    all();
    rank = world;
    handlers();
    return end();
}
