/* Tests partitioned messages (MPI-5.0 chapter 4): every rank sends to the next one, which is itself in a job of one
   rank. tests/c/partition_threads.c has the threads. */
#include "check.h"
#include <limits.h>

enum { MOST = 4096 };

static int rank, size, next, previous;

/* Waits for a partition. */
static void await(MPI_Request *request, int partition)
{
    int flag = 0;
    while (!flag) OK(MPI_Parrived(*request, partition, &flag));
}

static void start(MPI_Request *in, MPI_Request *out, int receive_first)
{
    OK(MPI_Start(receive_first ? in : out));
    OK(MPI_Start(receive_first ? out : in));
}

/* Equal partitions arrive one by one, in any order. */
static void one_by_one(int bytes)
{
    enum { PARTITIONS = 8 };
    char *from = calloc(PARTITIONS, bytes), *to = calloc(PARTITIONS, bytes);
    MPI_Request in, out;
    OK(MPI_Psend_init(from, PARTITIONS, bytes, MPI_CHAR, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    OK(MPI_Precv_init(to, PARTITIONS, bytes, MPI_CHAR, previous, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    for (int round = 0; round < 5; round++) {
        int flag;
        MPI_Status status;
        memset(to, -1, (size_t)PARTITIONS * bytes);
        start(&in, &out, round % 2);
        for (int i = 0; i < PARTITIONS; i++) {
            int at = (i * 5 + round) % PARTITIONS;
            memset(from + (size_t)at * bytes, round * 16 + at, bytes);
            OK(MPI_Test(&out, &flag, &status));
            CHECK(!flag);
            OK(MPI_Pready(at, out));
            /* The partition arrives although others are not ready. */
            await(&in, at);
            for (int byte = 0; byte < bytes; byte++) CHECK(to[(size_t)at * bytes + byte] == round * 16 + at);
            if (i + 1 < PARTITIONS) {
                OK(MPI_Parrived(in, (at + 5) % PARTITIONS, &flag));
                if (size > 1) continue;
                CHECK(!flag);
                OK(MPI_Test(&in, &flag, &status));
                CHECK(!flag);
            }
        }
        OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&in, &status));
        MPI_Count count;
        OK(MPI_Get_elements_c(&status, MPI_CHAR, &count));
        CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == 1 && count == (MPI_Count)PARTITIONS * bytes);
        CHECK(in != MPI_REQUEST_NULL && out != MPI_REQUEST_NULL);
        /* An inactive request has arrived, and is complete. */
        OK(MPI_Parrived(in, 0, &flag));
        CHECK(flag);
        OK(MPI_Test(&in, &flag, &status));
        CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE);
    }
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
    CHECK(in == MPI_REQUEST_NULL && out == MPI_REQUEST_NULL);
    free(from);
    free(to);
}

/* Both sides have different numbers of partitions, and types with gaps. `kind` says which types: 0 doubles on both
   sides, 1 every second double on both, 2 a type of all doubles at the receiver, which the sender's partitions cut. */
static void uneven(int sent, int received, int kind, int shared)
{
    int total = sent * received, wide = kind == 0 ? 1 : 2;
    double *from, *to;
    size_t bytes = sizeof(double) * (size_t)(total * 2 + 2);
    MPI_Request in, out;
    MPI_Datatype every_second, whole;
    if (shared) {
        OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &from));
        OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &to));
    } else {
        from = malloc(bytes);
        to = malloc(bytes);
    }
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 2 * sizeof(double), &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Type_vector(total / received, 1, 2, MPI_DOUBLE, &whole));
    OK(MPI_Type_create_resized(whole, 0, 2 * (total / received) * (MPI_Aint)sizeof(double), &whole));
    OK(MPI_Type_commit(&whole));
    MPI_Datatype type = kind == 0 ? MPI_DOUBLE : every_second;
    OK(MPI_Psend_init(from, sent, total / sent, type, next, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    if (kind == 2)
        OK(MPI_Precv_init_c(to, received, 1, whole, previous, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    else
        OK(MPI_Precv_init_c(to, received, total / received, type, previous, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    /* The library keeps the types. */
    OK(MPI_Type_free(&every_second));
    OK(MPI_Type_free(&whole));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < total * 2 + 2; i++) from[i] = to[i] = -1 - i;
        start(&in, &out, round == 1);
        for (int i = 0; i < total; i++) from[i * wide] = round * 1000 + i;
        if (round == 0) {
            OK(MPI_Pready_range(0, sent - 1, out));
        } else if (round == 1) {
            int *list = malloc(sizeof(int) * sent);
            for (int i = 0; i < sent; i++) list[i] = sent - 1 - i;
            OK(MPI_Pready_list(sent, list, out));
            free(list);
        } else {
            for (int i = 0; i < sent; i += 2) OK(MPI_Pready(i, out));
            for (int i = 1; i < sent; i += 2) OK(MPI_Pready_range(i, i, out));
        }
        if (round != 1)
            for (int i = received - 1; i >= 0; i--) {
                await(&in, i);
                CHECK(to[i * (total / received) * wide] == round * 1000 + i * (total / received));
            }
        MPI_Request both[2] = {in, out};
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < total * 2 + 2; i++) {
            int sent_here = i % wide == 0 && i / wide < total;
            CHECK(to[i] == (sent_here ? round * 1000 + i / wide : -1 - i));
        }
    }
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
    if (shared) {
        OK(MPI_Free_mem(from));
        OK(MPI_Free_mem(to));
    } else {
        free(from);
        free(to);
    }
}

/* Requests with equal arguments match in the order in which they were made, for all rounds, and whatever the order of
   the starts. The send may be made, started and complete before its receive is made. */
static void order_of_init(void)
{
    enum { REQUESTS = 5 };
    int from[REQUESTS], to[REQUESTS];
    MPI_Request in[REQUESTS], out[REQUESTS], sync;
    for (int i = 0; i < REQUESTS; i++) {
        OK(MPI_Psend_init(&from[i], 1, 1, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &out[i]));
        if (i < 2) {
            from[i] = 100 * rank + i;
            OK(MPI_Start(&out[i]));
            OK(MPI_Pready(0, out[i]));
            OK(MPI_Wait(&out[i], MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &sync));
    OK(MPI_Wait(&sync, MPI_STATUS_IGNORE));
    /* Messages of other kinds and other tags match none of them. */
    int flag;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    for (int i = 0; i < REQUESTS; i++)
        OK(MPI_Precv_init(&to[i], 1, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &in[i]));
    OK(MPI_Startall(REQUESTS - 2, out + 2));
    for (int i = REQUESTS - 1; i >= 2; i--) {
        from[i] = 100 * rank + i;
        OK(MPI_Pready(0, out[i]));
    }
    for (int i = REQUESTS - 1; i >= 0; i--) {
        OK(MPI_Start(&in[i]));
        OK(MPI_Wait(&in[i], MPI_STATUS_IGNORE));
        CHECK(to[i] == 100 * previous + i);
    }
    OK(MPI_Waitall(REQUESTS, out, MPI_STATUSES_IGNORE));
    /* A sender may be a round ahead. */
    for (int round = 0; round < 4; round++) {
        OK(MPI_Start(&out[4]));
        from[4] = round;
        OK(MPI_Pready(0, out[4]));
        OK(MPI_Wait(&out[4], MPI_STATUS_IGNORE));
    }
    for (int round = 0; round < 4; round++) {
        OK(MPI_Start(&in[4]));
        OK(MPI_Wait(&in[4], MPI_STATUS_IGNORE));
        CHECK(to[4] == round);
    }
    for (int i = 0; i < REQUESTS; i++) {
        OK(MPI_Request_free(&in[i]));
        OK(MPI_Request_free(&out[i]));
    }
    /* A receive that is freed before its send is known takes that send with it. */
    int first = 1, second = 2, got = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Precv_init(&got, 1, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &in[0]));
    OK(MPI_Precv_init(&got, 1, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &in[1]));
    OK(MPI_Request_free(&in[0]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Psend_init(&first, 1, 1, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &out[0]));
    OK(MPI_Psend_init(&second, 1, 1, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &out[1]));
    start(&in[1], &out[1], 1);
    OK(MPI_Pready(0, out[1]));
    OK(MPI_Wait(&in[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&out[1], MPI_STATUS_IGNORE));
    CHECK(got == 2);
    OK(MPI_Request_free(&in[1]));
    OK(MPI_Request_free(&out[1]));
    OK(MPI_Request_free(&out[0]));
}

/* No partitions, partitions without elements, no process. */
static void nothing(void)
{
    int flag, value = 7;
    MPI_Status status;
    MPI_Request in, out;
    for (int sent = 0; sent < 3; sent++)
        for (int received = 0; received < 3; received++) {
            OK(MPI_Psend_init(&value, sent, 0, MPI_INT, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
            OK(MPI_Precv_init(&value, received, 0, MPI_INT, previous, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
            for (int round = 0; round < 2; round++) {
                start(&in, &out, round);
                for (int i = 0; i < sent; i++) OK(MPI_Pready(i, out));
                for (int i = 0; i < received; i++) await(&in, i);
                OK(MPI_Wait(&out, &status));
                OK(MPI_Wait(&in, &status));
            }
            OK(MPI_Request_free(&in));
            OK(MPI_Request_free(&out));
        }
    OK(MPI_Psend_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    OK(MPI_Precv_init(NULL, 3, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    for (int round = 0; round < 2; round++) {
        start(&in, &out, round);
        OK(MPI_Pready_range(round, 1, out));
        RAISES(MPI_ERR_REQUEST, MPI_Pready(1, out));
        OK(MPI_Parrived(in, 2, &flag));
        CHECK(flag);
        RAISES(MPI_ERR_ARG, MPI_Parrived(in, 3, &flag));
        OK(MPI_Wait(&out, &status));
        OK(MPI_Wait(&in, &status));
        CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
        RAISES(MPI_ERR_REQUEST, MPI_Pready(0, out));
    }
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
    flag = 0;
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK(flag);
    CHECK(value == 7);
}

/* A wrong call returns an error class and sends nothing: the round goes on, and its data is right. */
static void wrong_calls(void)
{
    int from[4] = {1, 2, 3, 4}, to[4], flag = 5, repeated[3] = {0, 1, 0}, outside[2] = {3, 4};
    MPI_Request in, out, plain, copy;
    RAISES(MPI_ERR_ARG, MPI_Psend_init(from, -1, 1, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    RAISES(MPI_ERR_COUNT, MPI_Psend_init(from, 1, -1, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    RAISES(MPI_ERR_COUNT, MPI_Psend_init(from, 8, 1ll << 61, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    RAISES(MPI_ERR_RANK, MPI_Precv_init(to, 1, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    RAISES(MPI_ERR_TAG, MPI_Precv_init(to, 1, 1, MPI_INT, previous, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    RAISES(MPI_ERR_TYPE,
           MPI_Precv_init(to, 1, 1, MPI_DATATYPE_NULL, previous, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    OK(MPI_Send_init(from, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plain));
    OK(MPI_Psend_init(from, 4, 1, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    OK(MPI_Precv_init(to, 2, 2, MPI_INT, previous, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    RAISES(MPI_ERR_REQUEST, MPI_Pready(0, out));
    RAISES(MPI_ERR_REQUEST, MPI_Pready(0, in));
    RAISES(MPI_ERR_REQUEST, MPI_Pready(0, plain));
    RAISES(MPI_ERR_REQUEST, MPI_Parrived(plain, 0, &flag));
    RAISES(MPI_ERR_REQUEST, MPI_Parrived(out, 0, &flag));
    RAISES(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
    RAISES(MPI_ERR_REQUEST, MPI_Cancel(&out));
    for (int round = 0; round < 3; round++) {
        memset(to, 0, sizeof to);
        start(&in, &out, round);
        RAISES(MPI_ERR_REQUEST, MPI_Start(&out));
        RAISES(MPI_ERR_REQUEST, MPI_Start(&in));
        RAISES(MPI_ERR_ARG, MPI_Pready(4, out));
        RAISES(MPI_ERR_ARG, MPI_Pready(-1, out));
        RAISES(MPI_ERR_ARG, MPI_Pready_range(0, 4, out));
        RAISES(MPI_ERR_ARG, MPI_Pready_range(-1, 0, out));
        RAISES(MPI_ERR_ARG, MPI_Pready_list(2, outside, out));
        RAISES(MPI_ERR_REQUEST, MPI_Pready_list(3, repeated, out));
        RAISES(MPI_ERR_COUNT, MPI_Pready_list(-1, repeated, out));
        RAISES(MPI_ERR_ARG, MPI_Pready_list(1, NULL, out));
        OK(MPI_Pready_list(0, NULL, out));
        OK(MPI_Pready(2, out));
        RAISES(MPI_ERR_REQUEST, MPI_Pready(2, out));
        RAISES(MPI_ERR_REQUEST, MPI_Pready_range(0, 3, out));
        RAISES(MPI_ERR_ARG, MPI_Parrived(in, 2, &flag));
        RAISES(MPI_ERR_ARG, MPI_Parrived(in, -1, &flag));
        CHECK(flag == 5);
        copy = out;
        RAISES(MPI_ERR_REQUEST, MPI_Request_free(&copy));
        RAISES(MPI_ERR_REQUEST, MPI_Cancel(&copy));
        copy = in;
        RAISES(MPI_ERR_REQUEST, MPI_Request_free(&copy));
        RAISES(MPI_ERR_REQUEST, MPI_Cancel(&copy));
        OK(MPI_Request_get_status(out, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        from[0] = round;
        OK(MPI_Pready_range(0, 1, out));
        from[3] = 10 + round;
        OK(MPI_Pready(3, out));
        OK(MPI_Wait(&in, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        CHECK(to[0] == round && to[1] == 2 && to[2] == 3 && to[3] == 10 + round);
        RAISES(MPI_ERR_REQUEST, MPI_Pready(0, out));
        flag = 5;
    }
    copy = out;
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
    RAISES(MPI_ERR_REQUEST, MPI_Pready(0, copy));
    OK(MPI_Request_free(&plain));
}

/* The two sides have different numbers of bytes. The receive fails, and the send ends. */
static void unequal_bytes(void)
{
    static char from[MOST * 16], to[MOST * 16];
    int counts[][2] = {{MOST * 8, MOST * 8 - 1}, {1, 2}, {MOST, 0}};
    for (int i = 0; i < 3; i++) {
        MPI_Request in, out;
        memset(to, 7, sizeof to);
        OK(MPI_Psend_init(from, 2, counts[i][0], MPI_CHAR, next, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
        OK(MPI_Precv_init(to, 2, counts[i][1], MPI_CHAR, previous, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
        for (int round = 0; round < 2; round++) {
            start(&in, &out, round);
            OK(MPI_Pready_range(0, 1, out));
            RAISES(MPI_ERR_TRUNCATE, MPI_Wait(&in, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        }
        for (size_t at = 0; at < sizeof to; at++) CHECK(to[at] == 7);
        OK(MPI_Request_free(&in));
        OK(MPI_Request_free(&out));
    }
}

/* The send is known, started and complete before the receive is made, and does not fit. The start succeeds, and the wait
   has the error. */
static void a_late_receive_that_does_not_fit(void)
{
    char from[4] = {1, 2, 3, 4}, to[8];
    MPI_Request in, out;
    OK(MPI_Psend_init(from, 4, 1, MPI_CHAR, next, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    OK(MPI_Start(&out));
    OK(MPI_Pready_range(0, 3, out));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Precv_init(to, 2, 4, MPI_CHAR, previous, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    OK(MPI_Start(&in));
    RAISES(MPI_ERR_TRUNCATE, MPI_Wait(&in, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
}

/* The largest number of partitions needs much address space and no memory, or is refused. */
static void most_partitions(void)
{
    char byte = 0;
    int class;
    for (int receives = 0; receives < 2; receives++) {
        MPI_Request request;
        int code = receives ? MPI_Precv_init(&byte, INT_MAX, 1, MPI_CHAR, previous, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &request)
                            : MPI_Psend_init(&byte, INT_MAX, 1, MPI_CHAR, next, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        if (code == MPI_SUCCESS) {
            OK(MPI_Request_free(&request));
        } else {
            OK(MPI_Error_class(code, &class));
            CHECK(class == MPI_ERR_NO_MEM);
        }
    }
}

/* The calls that wait for several requests, with a partitioned one among them. */
static void several_requests(void)
{
    int from[2] = {1, 2}, to[2], index, flag, count, indices[3], one = 5, other = 0;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    OK(MPI_Psend_init(from, 2, 1, MPI_INT, next, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(to, 1, 2, MPI_INT, previous, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    requests[2] = MPI_REQUEST_NULL;
    OK(MPI_Testany(3, requests, &index, &flag, statuses));
    CHECK(flag && index == MPI_UNDEFINED);
    for (int round = 0; round < 3; round++) {
        OK(MPI_Startall(2, requests));
        OK(MPI_Irecv(&other, 1, MPI_INT, previous, 9, MPI_COMM_WORLD, &requests[2]));
        OK(MPI_Testall(3, requests, &flag, statuses));
        CHECK(!flag);
        OK(MPI_Send(&one, 1, MPI_INT, next, 9, MPI_COMM_WORLD));
        OK(MPI_Waitany(3, requests, &index, statuses));
        CHECK(index == 2 && other == 5);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready(1, requests[0]));
        OK(MPI_Testsome(3, requests, &count, indices, statuses));
        CHECK(count == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready(0, requests[0]));
        if (round == 0) {
            OK(MPI_Waitall(3, requests, statuses));
            CHECK(statuses[1].MPI_SOURCE == previous && statuses[1].MPI_TAG == 8);
        } else {
            int left = 2;
            while (left > 0) {
                OK(MPI_Waitsome(3, requests, &count, indices, statuses));
                CHECK(count > 0);
                left -= count;
            }
        }
        CHECK(to[0] == 1 && to[1] == 2);
        OK(MPI_Request_get_status(requests[1], &flag, statuses));
        CHECK(flag);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

/* The communicator is freed while the requests exist; the two groups of an intercommunicator. */
static void communicators(void)
{
    MPI_Comm local, between;
    MPI_Request in, out;
    int from[3], to[3];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &local));
    OK(MPI_Psend_init(from, 3, 1, MPI_INT, next, 1, local, MPI_INFO_NULL, &out));
    OK(MPI_Precv_init(to, 1, 3, MPI_INT, previous, 1, local, MPI_INFO_NULL, &in));
    OK(MPI_Comm_free(&local));
    for (int i = 0; i < 3; i++) from[i] = rank * 10 + i;
    start(&in, &out, 0);
    OK(MPI_Pready_range(0, 2, out));
    OK(MPI_Wait(&in, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3; i++) CHECK(to[i] == previous * 10 + i);
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
    if (size < 2) return;
    /* Rank 0 alone, and the others. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &local));
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank == 0, 0, &between));
    int peers;
    OK(MPI_Comm_remote_size(between, &peers));
    if (rank < 2) {
        MPI_Status status;
        RAISES(MPI_ERR_RANK, MPI_Psend_init(from, 1, 1, MPI_INT, peers, 2, between, MPI_INFO_NULL, &out));
        OK(MPI_Psend_init(from, 1, 3, MPI_INT, 0, 2, between, MPI_INFO_NULL, &out));
        OK(MPI_Precv_init(to, 3, 1, MPI_INT, 0, 2, between, MPI_INFO_NULL, &in));
        start(&in, &out, rank);
        OK(MPI_Pready(0, out));
        OK(MPI_Wait(&in, &status));
        OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        for (int i = 0; i < 3; i++) CHECK(to[i] == (1 - rank) * 10 + i);
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 2);
        OK(MPI_Request_free(&in));
        OK(MPI_Request_free(&out));
    }
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&local));
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    one_by_one(1);
    one_by_one(MOST);
    one_by_one(100000);
    int numbers[] = {1, 2, 3, 7, 12};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            for (int kind = 0; kind < 3; kind++) uneven(numbers[i], numbers[j], kind, (i + j) % 2);
    for (int kind = 0; kind < 3; kind++) {
        uneven(1, MOST, kind, 0);
        uneven(MOST, 1, kind, 1);
        uneven(60, 77, kind, 0);
        uneven(300, 500, kind, 1);
    }
    order_of_init();
    nothing();
    wrong_calls();
    unequal_bytes();
    a_late_receive_that_does_not_fit();
    most_partitions();
    several_requests();
    communicators();
    OK(MPI_Finalize());
    return 0;
}
