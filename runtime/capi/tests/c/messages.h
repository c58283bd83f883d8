/* Functions that the programs about messages share: to begin and end a program, and to fill and check the
   data of a message. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "check.h"

static int rank, size;

static inline void begin(void)
{
    int provided = -1;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(provided == MPI_THREAD_MULTIPLE);
}

static inline int end(void)
{
    OK(MPI_Finalize());
    return 0;
}

static inline void fill(unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static inline int is_filled(const unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(seed + i * 7 + (i >> 8))) return 0;
    return 1;
}

/* Returns when both ranks of a pair have called this function. */
static inline void meet(int other)
{
    int nothing = 0, nothing_else = 0;
    if (other != rank)
        OK(MPI_Sendrecv(&nothing, 1, MPI_INT, other, 32000, &nothing_else, 1, MPI_INT, other,
                        32000, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Checks that a status has this source and tag, a count of `n` bytes, and no cancellation. Also used for
   the empty status. */
static inline void check_status(const MPI_Status *status, int source, int tag, int n)
{
    int count = -7, cancelled = 1;
    CHECK(status->MPI_SOURCE == source && status->MPI_TAG == tag);
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(count == n && !cancelled);
}

static inline void check_empty(const MPI_Status *status)
{
    check_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}

#endif
