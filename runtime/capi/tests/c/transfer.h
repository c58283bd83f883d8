/* The programs made from teaching texts send from rank 0 to rank 1, or alone to themselves. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "messages.h"

/* Who has something to send, and who to look at afterwards. */
static inline int sends(void) { return rank == 0; }
static inline int receives(void) { return rank == (size > 1); }

/* One message; the status and everything in `to` are the receiver's. */
static inline void transfer(const void *from, int n, MPI_Datatype sent, void *to, int m,
                            MPI_Datatype received, MPI_Status *status)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends()) OK(MPI_Isend(from, n, sent, size > 1, 7, MPI_COMM_WORLD, &request));
    if (receives()) OK(MPI_Recv(to, m, received, 0, 7, MPI_COMM_WORLD, status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* The same when only the data matter. */
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
