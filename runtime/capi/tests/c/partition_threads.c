/* Threads mark partitions of one message ready, and other threads ask whether partitions have arrived, at the same
   time. Every rank sends to the next one. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

enum { PARTITIONS = 240, COUNT = 500, RECEIVED = 100, THREADS = 4, ROUNDS = 6 };

static int from[PARTITIONS * COUNT], to[PARTITIONS * COUNT];
static int rank, size, current;
static MPI_Request in, out;

static int value(int of, int round, int at) { return (of + 1) * 1000000 + round * 100000 + at % 9973; }

static void *send(void *argument)
{
    int thread = *(int *)argument;
    for (int i = thread; i < PARTITIONS; i += THREADS) {
        for (int k = 0; k < COUNT; k++) from[i * COUNT + k] = value(rank, current, i * COUNT + k);
        if (i % 3 == 0) {
            OK(MPI_Pready(i, out));
        } else if (i % 3 == 1) {
            OK(MPI_Pready_range(i, i, out));
        } else {
            OK(MPI_Pready_list(1, &i, out));
        }
    }
    return NULL;
}

static void *receive(void *argument)
{
    int thread = *(int *)argument, each = PARTITIONS * COUNT / RECEIVED;
    for (int i = thread; i < RECEIVED; i += THREADS) {
        int flag = 0;
        while (!flag) {
            OK(MPI_Parrived(in, i, &flag));
            if (!flag) sched_yield();
        }
        for (int k = i * each; k < (i + 1) * each; k++)
            CHECK(to[k] == value((rank + size - 1) % size, current, k));
    }
    return NULL;
}

int main(void)
{
    int level, numbers[THREADS];
    pthread_t threads[2 * THREADS];
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    CHECK(level == MPI_THREAD_MULTIPLE);
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Psend_init(from, PARTITIONS, COUNT, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    OK(MPI_Precv_init(to, RECEIVED, PARTITIONS * COUNT / RECEIVED, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &in));
    for (current = 0; current < ROUNDS; current++) {
        memset(to, 0, sizeof to);
        OK(MPI_Start(&in));
        OK(MPI_Start(&out));
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            CHECK(pthread_create(&threads[i], NULL, send, &numbers[i]) == 0);
            CHECK(pthread_create(&threads[THREADS + i], NULL, receive, &numbers[i]) == 0);
        }
        /* In some rounds this thread waits meanwhile, and so polls. */
        if (current % 2) OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        if (current % 2 == 0) OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&in, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&in));
    OK(MPI_Request_free(&out));
    OK(MPI_Finalize());
    return 0;
}
