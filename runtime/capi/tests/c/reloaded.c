/* Uses the library the way a plug-in of another program would: loads the library at run time, unloads it
   while a thread still has a datatype in its cache, and loads it again. This program is not linked with
   the library. */
#include "condition.h"

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>

enum { N = 16 };

static void *library;
static pthread_barrier_t barrier;

static struct {
    __typeof__(&MPI_Init_thread) init;
    __typeof__(&MPI_Finalize) finalize;
    __typeof__(&MPI_Finalized) finalized;
    __typeof__(&MPI_Type_vector) vector;
    __typeof__(&MPI_Type_commit) commit;
    __typeof__(&MPI_Type_free) free;
    __typeof__(&MPI_Pack) pack;
} mpi;

static void load(void)
{
    library = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
#define FIND(field, name) CHECK((mpi.field = (__typeof__(mpi.field))dlsym(library, name)) != NULL)
    FIND(init, "MPI_Init_thread");
    FIND(finalize, "MPI_Finalize");
    FIND(finalized, "MPI_Finalized");
    FIND(vector, "MPI_Type_vector");
    FIND(commit, "MPI_Type_commit");
    FIND(free, "MPI_Type_free");
    FIND(pack, "MPI_Pack");
}

static void packs(MPI_Datatype type)
{
    double in[2 * N], out[N];
    for (int i = 0; i < 2 * N; i++) in[i] = i;
    for (int round = 0; round < 3; round++) {
        int position = 0;
        CHECK(mpi.pack(in, 1, type, out, sizeof out, &position, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(position == sizeof out);
        for (int i = 0; i < N; i++) CHECK(out[i] == 2 * i);
    }
}

/* Has a datatype in the cache of its thread until the library is closed. */
static void *remembers(void *type)
{
    packs(*(MPI_Datatype *)type);
    pthread_barrier_wait(&barrier);
    /* The main thread finalizes MPI and closes the library here. */
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Loads the library, uses MPI from init to finalize, and closes the library. */
static void *life(void *again)
{
    int provided, finalized;
    load();
    CHECK(mpi.finalized(&finalized) == MPI_SUCCESS);
    if (finalized) {
        /* The loader did not unload the library before, so MPI is already finalized. */
        CHECK(again != NULL);
        CHECK(dlclose(library) == 0);
        return NULL;
    }
    CHECK(mpi.init(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    MPI_Datatype type;
    CHECK(mpi.vector(N, 1, 2, MPI_DOUBLE, &type) == MPI_SUCCESS);
    CHECK(mpi.commit(&type) == MPI_SUCCESS);
    packs(type);

    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, remembers, &type) == 0);
    pthread_barrier_wait(&barrier);
    CHECK(mpi.free(&type) == MPI_SUCCESS);
    CHECK(mpi.finalize() == MPI_SUCCESS);
    CHECK(dlclose(library) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&barrier) == 0);
    return NULL;
}

int main(void)
{
    for (long round = 0; round < 3; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, life, (void *)round) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        void *left = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_NOLOAD);
        printf("%s\n", left == NULL ? "unloaded" : "still there");
        if (left != NULL) dlclose(left);
    }
    /* The last round runs in the first thread, which ends when the process exits. */
    life("again");
    return 0;
}
