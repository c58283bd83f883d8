/* Uses a window after MPI_Finalize, in the short way of one-sided calls. The process must end, with one line. */
#include "check.h"

int main(void)
{
    double *memory, value = 1.5;
    MPI_Win win;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Put(&value, 1, MPI_DOUBLE, 0, 1, 1, MPI_DOUBLE, win));
        OK(MPI_Win_flush(0, win));
        CHECK(memory[1] == 1.5);
    }
    /* The lock is kept, so that only the end of MPI forbids the next call. */
    OK(MPI_Finalize());
    return MPI_Put(&value, 1, MPI_DOUBLE, 0, 1, 1, MPI_DOUBLE, win);
}
