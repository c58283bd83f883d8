/* Tests messages that are longer than their receive, from other ranks and from the same rank. Every call
   that receives must return an error, and a status with the source and the tag of the message and the
   number of elements of the receive. */
#include "messages.h"

enum { SHORT = 10, LONG = 100000 };
static int data[LONG], got[LONG];
static int other;

static void told(MPI_Status *status, int n, int room)
{
    int count = -1, cancelled = -1;
    CHECK(status->MPI_SOURCE == other && status->MPI_TAG == n % 1000 + 5);
    OK(MPI_Get_count(status, MPI_INT, &count));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(count == room && !cancelled);
}

int main(void)
{
    begin();
    other = size > 1 ? 1 - rank : 0;
    int lengths[3] = {2, SHORT, LONG};
    for (int k = 0; k < 3; k++) {
        int n = lengths[k], room = n / 2, flag;
        MPI_Status status;
        MPI_Request request, sending;
        MPI_Message message;
        for (int way = 0; way < 5; way++) {
            memset(&status, 0x55, sizeof status);
            memset(got, 0xff, sizeof got);
            if (way == 2) {
                OK(MPI_Irecv(got, room, MPI_INT, MPI_ANY_SOURCE, n % 1000 + 5, MPI_COMM_WORLD,
                             &request));
                meet(other);
            }
            if (way != 1)
                OK(MPI_Isend(data, n, MPI_INT, other, n % 1000 + 5, MPI_COMM_WORLD, &sending));
            switch (way) {
            case 0:
                RAISES(MPI_ERR_TRUNCATE, MPI_Recv(got, room, MPI_INT, MPI_ANY_SOURCE, n % 1000 + 5,
                                                  MPI_COMM_WORLD, &status));
                break;
            case 1:
                RAISES(MPI_ERR_TRUNCATE,
                       MPI_Sendrecv(data, n, MPI_INT, other, n % 1000 + 5, got, room, MPI_INT,
                                    other, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
                break;
            case 2: RAISES(MPI_ERR_TRUNCATE, MPI_Wait(&request, &status)); break;
            case 3:
                OK(MPI_Mprobe(other, n % 1000 + 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
                RAISES(MPI_ERR_TRUNCATE, MPI_Mrecv(got, room, MPI_INT, &message, &status));
                break;
            case 4:
                OK(MPI_Irecv(got, room, MPI_INT, other, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
                RAISES(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, &status));
                CHECK(status.MPI_ERROR == MPI_ERR_TRUNCATE);
                status.MPI_ERROR = 0x55555555;
                break;
            }
            told(&status, n, room);
            CHECK(status.MPI_ERROR == 0x55555555);
            for (int i = room; i < n; i++) CHECK(got[i] == -1);
            if (way != 1) OK(MPI_Wait(&sending, MPI_STATUS_IGNORE));
            OK(MPI_Iprobe(other, n % 1000 + 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
            meet(other);
        }
    }
    return end();
}
