/* The error of a collective call that does not match tells what the other rank does now, and which call of this rank
   failed, also if several threads make calls. */
#include "check.h"

enum { TRIES = 500 };

int main(void)
{
    static char text[MPI_MAX_ERROR_STRING];
    int level, rank, length, told = 0;
    int threads = getenv("SEVERAL_THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
    OK(MPI_Init_thread(NULL, NULL, threads, &level));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    /* Rank 1 gives rank 0 a short time to begin its wait, which may be too short. */
    for (int i = 0; i < TRIES && !told; i++) {
        int values[8] = {0};
        if (rank == 0) {
            OK(MPI_Bcast(values, 8, MPI_INT, 0, MPI_COMM_WORLD));
            OK(MPI_Recv(&told, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            continue;
        }
        int code = MPI_Bcast(values, 2, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(code != MPI_SUCCESS);
        OK(MPI_Error_string(code, text, &length));
        CHECK(strstr(text, "MPI_Bcast") && strstr(text, "TYPEPACK_CHECK_TYPES=1"));
        told = strstr(text, "rank 0 is in MPI_Recv now") != NULL;
        OK(MPI_Send(&told, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    }
    if (!told)
        fprintf(stderr, "%s\n", text);
    CHECK(told);
    OK(MPI_Finalize());
    return 0;
}
