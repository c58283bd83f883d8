/* Tests messages in communicators in which a process has another rank than in the world. Sources,
   destinations and statuses must use the ranks of the communicator. Also tests that a communicator can be
   freed while its messages are pending. */
#include "messages.h"

int main(void)
{
    begin();
    MPI_Comm reversed, twin;
    int me, in[4] = {-1, -1, -1, -1}, out[4], flag;
    MPI_Request requests[2], sends[4];
    MPI_Status status;
    MPI_Message message;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed));
    OK(MPI_Comm_dup(reversed, &twin));
    OK(MPI_Comm_rank(reversed, &me));
    CHECK(me == size - 1 - rank);
    int right = (me + 1) % size, left = (me + size - 1) % size;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 4; k++) {
            out[k] = 100 * round + 10 * k + me;
            OK(MPI_Isend(&out[k], 1, MPI_INT, right, k, k % 2 ? twin : reversed, &sends[k]));
        }
        /* A probe in one communicator must not find the messages of the other. */
        OK(MPI_Probe(MPI_ANY_SOURCE, 3, twin, &status));
        check_status(&status, left, 3, 4);
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 3, reversed, &flag, &status));
        CHECK(!flag);
        OK(MPI_Recv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 0, reversed, &status));
        check_status(&status, left, 0, 4);
        OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, twin, &message, &status));
        check_status(&status, left, 1, 4);
        OK(MPI_Mrecv(&in[1], 1, MPI_INT, &message, &status));
        check_status(&status, left, 1, 4);
        OK(MPI_Irecv(&in[2], 1, MPI_INT, left, 2, reversed, &requests[0]));
        OK(MPI_Recv_init(&in[3], 1, MPI_INT, left, MPI_ANY_TAG, twin, &requests[1]));
        OK(MPI_Start(&requests[1]));
        OK(MPI_Wait(&requests[0], &status));
        check_status(&status, left, 2, 4);
        OK(MPI_Wait(&requests[1], &status));
        check_status(&status, left, 3, 4);
        OK(MPI_Request_free(&requests[1]));
        OK(MPI_Waitall(4, sends, MPI_STATUSES_IGNORE));
        for (int k = 0; k < 4; k++) CHECK(in[k] == 100 * round + 10 * k + left);
        int replaced = me;
        OK(MPI_Sendrecv_replace(&replaced, 1, MPI_INT, left, 9, right, 9, reversed, &status));
        check_status(&status, right, 9, 4);
        CHECK(replaced == right);
    }
    RAISES(MPI_ERR_RANK, MPI_Send(out, 1, MPI_INT, size, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN));
    RAISES(MPI_ERR_RANK, MPI_Send(out, 1, MPI_INT, size, 0, twin));
    /* The communicator is freed while a receive waits and a buffered message is pending. */
    static char room[200000], data[100000], got[100000];
    memset(data, me + 1, sizeof data);
    OK(MPI_Comm_attach_buffer(twin, room, sizeof room));
    OK(MPI_Irecv(got, sizeof got, MPI_BYTE, left, 5, twin, &requests[0]));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, right, 5, twin));
    memset(data, 0, sizeof data);
    OK(MPI_Comm_free(&twin));
    CHECK(twin == MPI_COMM_NULL);
    memset(room, 0, sizeof room);
    OK(MPI_Wait(&requests[0], &status));
    check_status(&status, left, 5, sizeof got);
    CHECK(got[0] == left + 1 && got[sizeof got - 1] == left + 1);
    /* A communicator that has only some of the ranks, here only the last one. */
    MPI_Comm half;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? 0 : MPI_UNDEFINED, 0, &half));
    if (half != MPI_COMM_NULL) {
        int own = 7, mine = 0;
        OK(MPI_Sendrecv(&own, 1, MPI_INT, 0, 1, &mine, 1, MPI_INT, 0, 1, half, &status));
        check_status(&status, 0, 1, 4);
        CHECK(mine == 7);
        OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
        RAISES(MPI_ERR_RANK, MPI_Send(&own, 1, MPI_INT, 1, 1, half));
        OK(MPI_Comm_free(&half));
    }
    OK(MPI_Comm_free(&reversed));
    return end();
}
