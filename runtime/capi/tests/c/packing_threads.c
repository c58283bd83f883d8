/* Tests the cache of datatypes that each thread has: threads that start and end, more threads at once than
   the cache has slots, datatypes that other threads free, calls at the end of a thread, and fork. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 300, N = 16 };

static MPI_Datatype every[4];
static pthread_barrier_t barrier;
static pthread_key_t last_key;

/* Returns a datatype of N doubles that lie `stride` doubles apart. */
static MPI_Datatype column(int stride)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(N, 1, stride, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static void packs(MPI_Datatype type, int stride)
{
    double in[N * 8], out[N], back[N * 8];
    int position = 0;
    for (int i = 0; i < N * 8; i++) in[i] = i + 0.5, back[i] = -1;
    OK(MPI_Pack(in, 1, type, out, sizeof out, &position, MPI_COMM_WORLD));
    CHECK(position == sizeof out);
    for (int i = 0; i < N; i++) CHECK(out[i] == i * stride + 0.5);
    position = 0;
    OK(MPI_Unpack(out, sizeof out, &position, back, 1, type, MPI_COMM_WORLD));
    for (int i = 0; i < N * stride; i++) CHECK(back[i] == (i % stride ? -1 : i + 0.5));
}

static void refused(MPI_Datatype type)
{
    double in[N * 8] = {0}, out[N];
    int position = 0;
    RAISES(MPI_ERR_TYPE, MPI_Pack(in, 1, type, out, sizeof out, &position, MPI_COMM_WORLD));
    CHECK(position == 0);
}

/* Packs at the end of a thread, after the destructors of its thread-local variables. */
static void last_words(void *stride)
{
    packs(every[(long)stride - 2], (int)(long)stride);
}

static void *one_of_many(void *argument)
{
    int n = (int)(long)argument % 4;
    packs(every[n], n + 2);
    CHECK(pthread_setspecific(last_key, (void *)(long)(n + 2)) == 0);
    /* Now every thread has an entry of the cache. The barrier makes all threads live at the same time, so
       some have no slot and use an entry of their own. */
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 20; round++) {
        packs(every[n], n + 2);
        packs(every[round % 4], round % 4 + 2);
        MPI_Datatype own = column(3), stale = own;
        packs(own, 3);
        OK(MPI_Type_free(&own));
        refused(stale);
    }
    return NULL;
}

static void many(int threads)
{
    static pthread_t thread[MANY];
    CHECK(pthread_barrier_init(&barrier, NULL, threads) == 0);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&thread[i], NULL, one_of_many, (void *)i) == 0);
    for (int i = 0; i < threads; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&barrier) == 0);
}

static MPI_Datatype passed;

/* Packs with a datatype that another thread makes and frees. Later the process forks while this thread has
   a datatype in its cache. */
static void *user(void *unused)
{
    (void)unused;
    for (int round = 0; round < 50; round++) {
        pthread_barrier_wait(&barrier);
        packs(passed, 5);
        packs(passed, 5);
        pthread_barrier_wait(&barrier);
        /* The other thread frees the datatype here. */
        pthread_barrier_wait(&barrier);
        refused(passed);
        packs(every[1], 3);
        pthread_barrier_wait(&barrier);
    }
    pthread_barrier_wait(&barrier);
    /* The process forks here. */
    pthread_barrier_wait(&barrier);
    packs(every[1], 3);
    return NULL;
}

static void fork_while_others_remember(void)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* The parent's other threads do not exist in the child. New threads of the child may get the
           stacks of those threads, and so their keys in the cache. */
        packs(every[0], 2);
        many(20);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    int provided;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    errors_return();
    CHECK(pthread_key_create(&last_key, last_words) == 0);
    for (int i = 0; i < 4; i++) every[i] = column(i + 2);
    packs(every[0], 2);
    many(MANY);
    many(MANY);

    enum { USERS = 8 };
    pthread_t thread[USERS];
    CHECK(pthread_barrier_init(&barrier, NULL, USERS + 1) == 0);
    for (int i = 0; i < USERS; i++) CHECK(pthread_create(&thread[i], NULL, user, NULL) == 0);
    for (int round = 0; round < 50; round++) {
        passed = column(5);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        MPI_Datatype freed = passed;
        OK(MPI_Type_free(&freed));
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_barrier_wait(&barrier);
    fork_while_others_remember();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < USERS; i++) CHECK(pthread_join(thread[i], NULL) == 0);

    for (int i = 0; i < 4; i++) {
        MPI_Datatype stale = every[i];
        OK(MPI_Type_free(&every[i]));
        refused(stale);
    }
    OK(MPI_Finalize());
    return 0;
}
