/* Tests the check of types (TYPEPACK_CHECK_TYPES=1), with messages from other ranks and from the same
   rank. If the types of a message and its receive do not match, every call that receives must return
   MPI_ERR_TYPE, must not change the buffer, and must not disturb later messages. If the types match by the
   rules of the standard, the message must arrive. */
#include "messages.h"
#include <stdint.h>

enum { LONG = 100000, TAG = 5 };
static float data[LONG];
static int got[LONG];
static char room[8 * LONG + MPI_BSEND_OVERHEAD];
static int other;

static void told(MPI_Status *status, int n)
{
    int count = -1, cancelled = -1;
    CHECK(status->MPI_SOURCE == other && status->MPI_TAG == TAG);
    OK(MPI_Get_count(status, MPI_FLOAT, &count));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(count == n && !cancelled);
    for (int i = 0; i < n; i++) CHECK(got[i] == -1);
}

static void receives(int n)
{
    MPI_Status status;
    MPI_Request request, sending;
    MPI_Message message;
    for (int way = 0; way < 9; way++) {
        memset(&status, 0x55, sizeof status);
        memset(got, 0xff, sizeof got);
        if (way == 2 || way == 6) {
            OK((way == 2 ? MPI_Irecv : MPI_Recv_init)(got, n, MPI_INT, MPI_ANY_SOURCE, TAG,
                                                      MPI_COMM_WORLD, &request));
            if (way == 6) OK(MPI_Start(&request));
            meet(other);
        }
        if (way != 1 && way != 5 && way != 8)
            OK(MPI_Isend(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &sending));
        switch (way) {
        case 0:
            RAISES(MPI_ERR_TYPE,
                   MPI_Recv(got, n, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
            break;
        case 1:
            RAISES(MPI_ERR_TYPE, MPI_Sendrecv(data, n, MPI_FLOAT, other, TAG, got, n, MPI_INT,
                                              other, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            break;
        case 2: RAISES(MPI_ERR_TYPE, MPI_Wait(&request, &status)); break;
        case 3:
            OK(MPI_Mprobe(other, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
            RAISES(MPI_ERR_TYPE, MPI_Mrecv(got, n, MPI_INT, &message, &status));
            break;
        case 4:
            OK(MPI_Irecv(got, n, MPI_INT, other, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
            RAISES(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, &status));
            CHECK(status.MPI_ERROR == MPI_ERR_TYPE);
            status.MPI_ERROR = 0x55555555;
            break;
        case 5:
            /* The call has one datatype for both directions. One rank has ints and the other has floats,
               so the types do not match in either direction. */
            RAISES(MPI_ERR_TYPE,
                   MPI_Sendrecv_replace(rank == 0 ? (void *)got : data, n,
                                        rank == 0 ? MPI_INT : MPI_FLOAT, other, TAG, other, TAG,
                                        MPI_COMM_WORLD, &status));
            break;
        case 6:
            RAISES(MPI_ERR_TYPE, MPI_Wait(&request, &status));
            told(&status, n);
            OK(MPI_Wait(&sending, MPI_STATUS_IGNORE));
            /* After the error, the persistent request can be started again. */
            OK(MPI_Start(&request));
            OK(MPI_Send(data, n, MPI_PACKED, other, TAG, MPI_COMM_WORLD));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Request_free(&request));
            memset(got, 0xff, sizeof got);
            break;
        case 7:
            OK(MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
            OK(MPI_Imrecv(got, n, MPI_INT, &message, &request));
            RAISES(MPI_ERR_TYPE, MPI_Wait(&request, &status));
            break;
        case 8:
            OK(MPI_Isendrecv(data, n, MPI_FLOAT, other, TAG, got, n, MPI_INT, other, TAG,
                             MPI_COMM_WORLD, &request));
            RAISES(MPI_ERR_TYPE, MPI_Wait(&request, &status));
            break;
        }
        told(&status, n);
        CHECK(status.MPI_ERROR == 0x55555555);
        if (way != 1 && way != 5 && way != 6 && way != 8)
            OK(MPI_Wait(&sending, MPI_STATUS_IGNORE));
        int flag;
        OK(MPI_Iprobe(other, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        meet(other);
    }
}

static void sends(int n)
{
    for (int mode = 0; mode < 6; mode++) {
        MPI_Request request, receive;
        MPI_Status status;
        memset(got, 0xff, sizeof got);
        memset(&status, 0x55, sizeof status);
        if (mode == 2) {
            OK(MPI_Irecv(got, n, MPI_INT, other, TAG, MPI_COMM_WORLD, &receive));
            meet(other);
        }
        switch (mode) {
        case 0: OK(MPI_Isend(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &request)); break;
        case 1: OK(MPI_Issend(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &request)); break;
        case 2: OK(MPI_Irsend(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &request)); break;
        case 3: OK(MPI_Ibsend(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &request)); break;
        case 4:
            OK(MPI_Ssend_init(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &request));
            OK(MPI_Start(&request));
            break;
        case 5:
            OK(MPI_Isend_c(data, n, MPI_FLOAT, other, TAG, MPI_COMM_WORLD, &request));
            break;
        }
        if (mode == 2)
            RAISES(MPI_ERR_TYPE, MPI_Wait(&receive, &status));
        else
            RAISES(MPI_ERR_TYPE,
                   MPI_Recv(got, n, MPI_INT, other, TAG, MPI_COMM_WORLD, &status));
        told(&status, n);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (mode == 4) OK(MPI_Request_free(&request));
        meet(other);
    }
}

/* Sends a message of `n` elements of type `sent`, and receives it with `many` elements of type `expected`.
   Returns whether the types match. */
static int meets(int n, MPI_Datatype sent, int many, MPI_Datatype expected)
{
    MPI_Request request;
    int class;
    static char from[64 * 100], to[64 * 100];
    OK(MPI_Isend(from, n, sent, other, TAG, MPI_COMM_WORLD, &request));
    int code = MPI_Recv(to, many, expected, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_TYPE);
    return class == MPI_SUCCESS;
}

static void matching(void)
{
    MPI_Datatype pair, column, bytes;
    int lengths[2] = {1, 1};
    MPI_Aint at[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, lengths, at, types, &pair));
    OK(MPI_Type_vector(3, 1, 2, pair, &column));
    OK(MPI_Type_contiguous(12, MPI_BYTE, &bytes));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_commit(&bytes));
    CHECK(meets(7, MPI_LONG, 7, MPI_INT64_T));
    CHECK(meets(7, MPI_AINT, 9, MPI_COUNT));
    CHECK(!meets(7, MPI_LONG, 7, MPI_DOUBLE));
    CHECK(!meets(2, MPI_INT, 1, MPI_LONG));
    CHECK(meets(2, MPI_INT, 1, MPI_2INT));
    CHECK(meets(1, MPI_INT, 1, MPI_2INT));
    CHECK(meets(2, column, 6, pair));
    CHECK(meets(3, pair, 1, column));
    CHECK(meets(2, pair, 1, column));
    CHECK(meets(1, MPI_INT, 1, column));
    CHECK(!meets(2, MPI_INT, 1, column));
    CHECK(!meets(1, pair, 12, MPI_BYTE));
    CHECK(!meets(12, MPI_BYTE, 1, pair));
    CHECK(!meets(12, MPI_BYTE, 12, MPI_UNSIGNED_CHAR));
    CHECK(meets(12, MPI_BYTE, 1, bytes));
    CHECK(meets(12, MPI_PACKED, 1, pair));
    CHECK(meets(1, pair, 12, MPI_PACKED));
    CHECK(meets(12, MPI_PACKED, 12, MPI_BYTE));
    CHECK(meets(0, MPI_DOUBLE, 1, MPI_CHAR));
    /* Packed data that are sent as MPI_PACKED can be received with the type of the data. */
    int position = 0;
    struct { int i; double d; } one = {3, 0.5}, back = {0, 0};
    char unit[100];
    OK(MPI_Pack(&one, 1, pair, unit, sizeof unit, &position, MPI_COMM_WORLD));
    MPI_Request request;
    OK(MPI_Isend(unit, position, MPI_PACKED, other, TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Recv(&back, 1, pair, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(back.i == 3 && back.d == 0.5);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&bytes));
}

/* All ranks get an error of the class `wanted` (success if there is only one rank). */
static void differ(int wanted, int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == (size == 1 ? MPI_SUCCESS : wanted));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Makes collective calls in which the arguments of the last rank differ from those of the others. Every rank must get
   the error, and no rank may hang. */
static void collective(void)
{
    int last = rank == size - 1 && size > 1, counts[8], displs[8], in[64] = {0}, out[64], n = last ? 3 : 2;
    MPI_Datatype mine = last ? MPI_FLOAT : MPI_INT, types[8];
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    CHECK(size <= 8);
    differ(MPI_ERR_TYPE, MPI_Bcast(in, 8, mine, 0, comm));
    differ(MPI_ERR_TYPE, MPI_Gather(in, 1, mine, out, 1, MPI_INT, 0, comm));
    differ(MPI_ERR_TYPE, MPI_Scatter(out, 1, MPI_INT, in, 1, mine, 0, comm));
    differ(MPI_ERR_TYPE, MPI_Allgather(in, 1, mine, out, 1, mine, comm));
    differ(MPI_ERR_TYPE, MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 1, mine, comm));
    differ(MPI_ERR_TYPE, MPI_Allreduce(in, out, 8, mine, MPI_SUM, comm));
    differ(MPI_ERR_TYPE, MPI_Scan(in, out, 8, mine, MPI_SUM, comm));
    differ(MPI_ERR_TYPE, MPI_Bcast_init(in, 8, mine, 0, comm, MPI_INFO_NULL, &request));
    if (size == 1) OK(MPI_Request_free(&request));

    differ(MPI_ERR_COUNT, MPI_Bcast(in, n, MPI_INT, 0, comm));
    differ(MPI_ERR_COUNT, MPI_Gather(in, n, MPI_INT, out, 2, MPI_INT, 0, comm));
    differ(MPI_ERR_COUNT, MPI_Scatter(out, 2, MPI_INT, in, n, MPI_INT, 0, comm));
    differ(MPI_ERR_COUNT, MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm));
    differ(MPI_ERR_COUNT, MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm));
    differ(MPI_ERR_COUNT, MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, 0, comm));
    differ(MPI_ERR_COUNT, MPI_Exscan(in, out, n, MPI_INT, MPI_SUM, comm));
    differ(MPI_ERR_COUNT, MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm));
    for (int r = 0; r < size; r++) {
        counts[r] = last && r == 0 ? 2 : 1;
        displs[r] = 8 * r;
        types[r] = MPI_INT;
    }
    differ(MPI_ERR_COUNT, MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm));
    differ(MPI_ERR_COUNT, MPI_Allgatherv(in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, comm));
    differ(MPI_ERR_COUNT, MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, out, counts, displs, MPI_INT, comm));
    for (int r = 0; r < size; r++) displs[r] *= sizeof(int);
    if (last) types[0] = MPI_FLOAT;
    if (last) counts[0] = 1;
    differ(MPI_ERR_TYPE, MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, out, counts, displs, types, comm));

    differ(MPI_ERR_ROOT, MPI_Bcast(in, 8, MPI_INT, last, comm));
    differ(MPI_ERR_ROOT, MPI_Reduce(in, out, 8, MPI_INT, MPI_SUM, last ? rank : 0, comm));
    differ(MPI_ERR_ROOT, MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, last ? rank : 0, comm));
    differ(MPI_ERR_ROOT, MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, last ? rank : 0, comm));
    differ(MPI_ERR_ARG, MPI_Allreduce(in, out, 8, MPI_INT, last ? MPI_MAX : MPI_SUM, comm));
    differ(MPI_ERR_OTHER, last ? MPI_Barrier(comm) : MPI_Bcast(in, 8, MPI_INT, 0, comm));

    /* A rank whose own arguments are wrong gets its error, and the others do not wait for it. */
    if (last) RAISES(MPI_ERR_COUNT, MPI_Bcast(in, -1, MPI_INT, 0, comm));
    else differ(MPI_ERR_OTHER, size == 1 ? MPI_SUCCESS : MPI_Bcast(in, 8, MPI_INT, 0, comm));
    if (last) OK(MPI_Barrier(comm));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Now the types of all ranks match. */
    for (int i = 0; i < 8; i++) in[i] = rank;
    OK(MPI_Allgather(in, 8, MPI_INT, out, 4, MPI_2INT, MPI_COMM_WORLD));
    for (int i = 0; i < 8 * size; i++) CHECK(out[i] == i / 8);
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 8, MPI_INT, MPI_COMM_WORLD));
    /* MPI_PACKED matches every type, also in a call that is in place. */
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, rank % 2 ? 1 : 4,
                    rank % 2 ? MPI_INT : MPI_PACKED, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, in, 8, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(in[7] == size * (size - 1) / 2);
    /* The library also checks the types of the data that a rank sends to itself. */
    RAISES(MPI_ERR_TYPE, MPI_Gather(in, 1, MPI_INT, out, 1, MPI_FLOAT, 0, MPI_COMM_SELF));
}

/* Puts and gets compare the types at both ends, and move nothing if they differ. */
static void one_sided(void)
{
    int *base, value[2] = {7, 8};
    MPI_Win win;
    OK(MPI_Win_allocate(16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    base[0] = base[1] = 1;
    OK(MPI_Win_fence(0, win));
    RAISES(MPI_ERR_TYPE, MPI_Put(value, 2, MPI_INT, rank, 0, 1, MPI_DOUBLE, win));
    RAISES(MPI_ERR_TYPE, MPI_Put(value, 1, MPI_INT, rank, 0, 1, MPI_FLOAT, win));
    RAISES(MPI_ERR_TYPE, MPI_Get(value, 1, MPI_FLOAT, rank, 0, 1, MPI_INT, win));
    CHECK(base[0] == 1 && base[1] == 1 && value[0] == 7);
    OK(MPI_Put(value, 2, MPI_INT, rank, 0, 1, MPI_2INT, win));
    OK(MPI_Get(value, 1, MPI_INT32_T, rank, 4, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[0] == 7 && base[1] == 8 && value[0] == 8);
    OK(MPI_Win_free(&win));
}

int main(void)
{
    begin();
    /* Making a communicator must work with the check on. */
    MPI_Comm copy;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Buffer_attach(room, sizeof room));
    if (size <= 2) {
        other = size - 1 - rank;
        int lengths[4] = {2, 20, 1000, LONG};
        for (int k = 0; k < 4; k++) {
            if (size == 2) receives(lengths[k]);
            sends(lengths[k]);
        }
        matching();
    }
    collective();
    one_sided();
    void *attached;
    int length;
    OK(MPI_Buffer_detach(&attached, &length));
    return end();
}
