/* Functions for the programs that contain the examples of the texts in ../README.md. The functions send
   messages from rank 0 to rank 1, or to rank 0 itself if there is only one rank. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "messages.h"

/* True if this rank sends the message, and true if this rank receives it and checks the data afterwards. */
static inline int sends(void) { return rank == 0; }
static inline int receives(void) { return rank == (size > 1); }

/* Sends one message. Only the receiver gets the status and the data in `to`. */
static inline void transfer(const void *from, int n, MPI_Datatype sent, void *to, int m,
                            MPI_Datatype received, MPI_Status *status)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends()) OK(MPI_Isend(from, n, sent, size > 1, 7, MPI_COMM_WORLD, &request));
    if (receives()) OK(MPI_Recv(to, m, received, 0, 7, MPI_COMM_WORLD, status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Sends one message that fills the receive buffer, and checks the status: source, tag, and a count of `m`
   elements. */
static inline void send_all(const void *from, int n, MPI_Datatype sent, void *to, int m,
                            MPI_Datatype received)
{
    MPI_Status status;
    int count = -1;
    transfer(from, n, sent, to, m, received, &status);
    if (!receives()) return;
    OK(MPI_Get_count(&status, received, &count));
    CHECK(count == m && status.MPI_SOURCE == 0 && status.MPI_TAG == 7);
}

#endif
