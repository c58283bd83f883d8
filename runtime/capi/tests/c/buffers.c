/* Tests buffered sends: full buffers, detaching, flushing, automatic buffers, and buffers of
   communicators. */
#include "messages.h"

/* Checks that a message finds room whenever it would find room in the standard's model, a circular queue
   (section 3.6.2). When the first of two long messages has left the buffer, a short message is placed
   behind the second one, and a message that is nearly as long as the first is placed at the beginning. */
static void around(int other, unsigned char *room)
{
    enum { A = 80000, B = 40000, C = 75000 };
    static unsigned char out[A], in[A];
    static const int sizes[] = {A, A, B, C};
    int bytes;
    void *back;
    OK(MPI_Buffer_attach(room, 2 * A + B + 3 * MPI_BSEND_OVERHEAD));
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 4; k++) {
            fill(out, sizes[k], k);
            OK(MPI_Bsend(out, sizes[k], MPI_BYTE, other, k, MPI_COMM_WORLD));
            if (k != 1) continue;
            OK(MPI_Recv(in, A, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(is_filled(in, A, 0));
            /* After `meet`, both ranks have received the first message, so it has left the buffers. */
            meet(other);
        }
        for (int k = 1; k < 4; k++) {
            OK(MPI_Recv(in, A, MPI_BYTE, other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(is_filled(in, sizes[k], k));
        }
        /* The next round begins with an empty buffer. */
        OK(MPI_Buffer_flush());
    }
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == room);
}

int main(void)
{
    begin();
    int other = size == 1 ? 0 : rank ^ 1, bytes = -1, flag, index;
    enum { LONG = 100000, ROOM = 2 * (LONG + MPI_BSEND_OVERHEAD) };
    static unsigned char out[LONG], in[LONG], room[ROOM], second[ROOM];
    MPI_Count large = -1;
    void *back = &back;
    MPI_Request request, requests[2];
    (void)index;
    /* No buffer is attached here, so buffered sends fail, and detaching returns size 0. */
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(out, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD));
    RAISES(MPI_ERR_BUFFER, MPI_Ibsend(out, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Bsend(out, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == NULL && bytes == 0);
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_attach(room, ROOM));
    RAISES(MPI_ERR_BUFFER, MPI_Buffer_attach(second, ROOM));
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(out, ROOM + 1, MPI_BYTE, other, 0, MPI_COMM_WORLD));
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 2; k++) {
            fill(out, LONG, round + k);
            if (k) OK(MPI_Bsend(out, LONG, MPI_BYTE, other, k, MPI_COMM_WORLD));
            else OK(MPI_Ibsend(out, LONG, MPI_BYTE, other, k, MPI_COMM_WORLD, &request));
            if (!k) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            memset(out, 0, LONG);
        }
        /* The other rank has not received a message yet, so the buffer has no room for a third message. */
        meet(other);
        RAISES(MPI_ERR_BUFFER, MPI_Bsend(out, LONG, MPI_BYTE, other, 2, MPI_COMM_WORLD));
        meet(other);
        OK(MPI_Buffer_iflush(&request));
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag || size > 1);
        for (int k = 1; k >= 0; k--) {
            OK(MPI_Recv(in, LONG, MPI_BYTE, other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(is_filled(in, LONG, round + k));
        }
        if (!flag) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Buffer_flush());
    }
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == room && bytes == ROOM);
    around(other, room);
    OK(MPI_Buffer_attach(room, ROOM));
    /* Persistent buffered sends also go through the attached buffer. */
    OK(MPI_Bsend_init(out, LONG, MPI_BYTE, other, 3, MPI_COMM_WORLD, &requests[0]));
    for (int round = 0; round < 3; round++) {
        fill(out, LONG, round);
        OK(MPI_Start(&requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        memset(out, 0, LONG);
        OK(MPI_Recv(in, LONG, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, LONG, round));
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == room && bytes == ROOM);
    /* The buffer of the communicator is used instead of the buffer of the process. */
    OK(MPI_Comm_attach_buffer_c(MPI_COMM_WORLD, room, ROOM));
    RAISES(MPI_ERR_BUFFER, MPI_Comm_attach_buffer(MPI_COMM_WORLD, second, ROOM));
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(out, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF));
    OK(MPI_Bsend(out, LONG, MPI_BYTE, other, 4, MPI_COMM_WORLD));
    OK(MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &request));
    OK(MPI_Recv(in, LONG, MPI_BYTE, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_flush_buffer(MPI_COMM_WORLD));
    OK(MPI_Comm_detach_buffer_c(MPI_COMM_WORLD, &back, &large));
    CHECK(back == room && large == ROOM);
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(out, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD));
    /* With an automatic buffer, the library allocates the memory for the messages. */
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int k = 0; k < 10; k++) {
        fill(out, LONG, k);
        OK(MPI_Bsend(out, LONG, MPI_BYTE, other, k, MPI_COMM_WORLD));
    }
    for (int k = 9; k >= 0; k--) {
        OK(MPI_Recv(in, LONG, MPI_BYTE, other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, LONG, k));
    }
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == MPI_BUFFER_AUTOMATIC);
    meet(other);
    return end();
}
