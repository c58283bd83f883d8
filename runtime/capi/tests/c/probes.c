/* Tests probes that leave messages in the queue, and probes that take messages out of the queue. */
#include "messages.h"

int main(void)
{
    begin();
    int other = size == 1 ? 0 : rank ^ 1, flag;
    enum { LONG = 300000 };
    static const int sizes[] = {0, 5, 100, 9000, LONG};
    static unsigned char out[LONG], in[LONG + 1];
    MPI_Request sends[5], request;
    MPI_Status status;
    MPI_Message message;
    fill(out, LONG, 9);
    OK(MPI_Iprobe(other, 77, MPI_COMM_WORLD, &flag, &status));
    CHECK(!flag);
    message = MPI_MESSAGE_NULL;
    OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &message, &status));
    CHECK(!flag && message == MPI_MESSAGE_NULL);
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        for (int i = 0; i < 5; i++) {
            int n = sizes[i];
            MPI_Request *send = &sends[i];
            /* Two messages have the same tag. The matched probe (MPI_Mprobe) takes the first message out
               of the queue, so a receive gets the second. */
            for (int k = 0; k < 2; k++) {
                if (synchronous)
                    OK(MPI_Issend(out + k, n - (n > 0 && k), MPI_BYTE, other, i, MPI_COMM_WORLD,
                                  &sends[k]));
                else
                    OK(MPI_Isend(out + k, n - (n > 0 && k), MPI_BYTE, other, i, MPI_COMM_WORLD,
                                 &sends[k]));
            }
            (void)send;
            OK(MPI_Probe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &status));
            check_status(&status, other, i, n);
            OK(MPI_Iprobe(other, i, MPI_COMM_WORLD, &flag, &status));
            CHECK(flag);
            check_status(&status, other, i, n);
            OK(MPI_Mprobe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
            check_status(&status, other, i, n);
            CHECK(message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC);
            MPI_Message copy = message;
            CHECK(MPI_Message_fromint(MPI_Message_toint(message)) == message);
            memset(in, 0, sizeof in);
            OK(MPI_Recv(in, LONG + 1, MPI_BYTE, other, i, MPI_COMM_WORLD, &status));
            check_status(&status, other, i, n - (n > 0));
            CHECK(memcmp(in, out + 1, n - (n > 0)) == 0);
            memset(in, 0, sizeof in);
            if (i % 2) {
                OK(MPI_Mrecv(in, LONG + 1, MPI_BYTE, &message, &status));
            } else {
                OK(MPI_Imrecv_c(in, LONG + 1, MPI_BYTE, &message, &request));
                OK(MPI_Wait(&request, &status));
            }
            check_status(&status, other, i, n);
            CHECK(is_filled(in, n, 9) && in[n] == 0 && message == MPI_MESSAGE_NULL);
            RAISES(MPI_ERR_REQUEST, MPI_Mrecv(in, 1, MPI_BYTE, &message, &status));
            RAISES(MPI_ERR_REQUEST, MPI_Mrecv(in, 1, MPI_BYTE, &copy, &status));
            OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
        }
    }
    /* A matched message is received with wrong arguments, and then by a receive that is too short. */
    OK(MPI_Isend(out, LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD, &sends[0]));
    OK(MPI_Mprobe(other, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_COUNT, MPI_Mrecv(in, -1, MPI_BYTE, &message, &status));
    RAISES(MPI_ERR_TYPE, MPI_Mrecv(in, 1, MPI_DATATYPE_NULL, &message, &status));
    RAISES(MPI_ERR_BUFFER, MPI_Mrecv(NULL, 1, MPI_BYTE, &message, &status));
    CHECK(message != MPI_MESSAGE_NULL);
    RAISES(MPI_ERR_TRUNCATE, MPI_Mrecv(in, 10, MPI_BYTE, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&sends[0], MPI_STATUS_IGNORE));
    /* A probe for a message from MPI_PROC_NULL returns MPI_MESSAGE_NO_PROC. */
    OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Mrecv(in, 10, MPI_BYTE, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK(flag && message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Imrecv(in, 10, MPI_BYTE, &message, &request));
    OK(MPI_Wait(&request, &status));
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    meet(other);
    return end();
}
