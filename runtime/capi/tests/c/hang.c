/* A program that hangs in the way that its argument names. The tests in `hangs/` read what mpiexec tells about it. With
   `until FILE` and `thread FILE`, it goes on when the file exists. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

#define LONG (1 << 20)

static const char *file;

/* Computes until the file exists. */
static void compute(void) {
    for (volatile unsigned long n = 1; access(file, F_OK) != 0;)
        for (unsigned i = 0; i < 100000; i++)
            n = n * 3 + i;
}

static void *thread(void *unused) {
    int x = 0;
    compute();
    OK(MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
    return unused;
}

int main(int argc, char **argv) {
    static char data[LONG], more[LONG];
    const char *how = argc > 1 ? argv[1] : "";
    file = argc > 2 ? argv[2] : "";
    int level, rank, size, index, x = 0;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MPI_Comm halo, split;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &halo));
    OK(MPI_Comm_set_name(halo, "halo"));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &split));
    int next = (rank + 1) % size;
    int is = 0;
#define HOW(name) (!strcmp(how, name) && (is = 1))
    if (HOW("sends"))
        OK(MPI_Send(data, LONG, MPI_BYTE, next, 0, MPI_COMM_WORLD));
    if (HOW("receives"))
        OK(MPI_Recv(data, 100, MPI_BYTE, next, 7, halo, MPI_STATUS_IGNORE));
    if (HOW("split")) /* The ranks of this communicator are those of the world, backwards. */
        OK(MPI_Ssend(data, 8, MPI_BYTE, 0, 2, split));
    if (HOW("probes"))
        OK(MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (HOW("requests")) {
        MPI_Request r[2];
        OK(MPI_Irecv(data, 8, MPI_BYTE, next, 1, halo, &r[0]));
        OK(MPI_Isend(more, LONG, MPI_BYTE, next, 2, MPI_COMM_WORLD, &r[1]));
        if (rank == 0)
            OK(MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    }
    if (HOW("collectives")) {
        /* The later calls on a communicator go another way than the first ones. */
        for (int i = 0; i < 5; i++)
            OK(MPI_Barrier(halo));
        if (rank == 0)
            OK(MPI_Barrier(halo));
        OK(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, split, MPI_STATUS_IGNORE));
    }
    if (HOW("started")) {
        MPI_Request r;
        if (rank == 0) {
            OK(MPI_Ibarrier(halo, &r));
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        }
        OK(MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    if (HOW("windows")) {
        MPI_Win win;
        void *base;
        OK(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL));
        if (rank == 0)
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            OK(MPI_Recv(&x, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    }
    if (HOW("fences")) {
        MPI_Win win;
        void *base;
        OK(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        if (rank == 0)
            OK(MPI_Win_fence(0, win));
        OK(MPI_Recv(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (HOW("files")) {
        MPI_File f;
        int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
        OK(MPI_File_open(MPI_COMM_WORLD, file, amode, MPI_INFO_NULL, &f));
        if (rank == 0)
            OK(MPI_File_write_all(f, data, 8, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (HOW("finalize") && rank == 0)
        OK(MPI_Recv(&x, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (HOW("until")) {
        if (rank == 0) {
            compute();
            OK(MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    if (HOW("thread")) {
        /* The first threads of both ranks wait all the time. */
        pthread_t other;
        if (rank == 0)
            CHECK(pthread_create(&other, NULL, thread, NULL) == 0);
        OK(MPI_Recv(&x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (rank == 0)
            CHECK(pthread_join(other, NULL) == 0);
        else
            OK(MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    }
    CHECK(is);
    OK(MPI_Comm_free(&halo));
    OK(MPI_Comm_free(&split));
    OK(MPI_Finalize());
    return 0;
}
