/* Threads and sessions.
 *
 *     mpiexec -n 2 ./threads many | end | session | both
 *
 * many: several threads exchange messages of types that are not contiguous. end: a thread ends after its type was
 * freed, with tool.c in front of the host. session: MPI is used through a session alone; both: and through MPI_Init.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 200, N = 300 };

static int rank, peer;
static int failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void same(const char *what, long expected, long found)
{
    if (expected == found) return;
    pthread_mutex_lock(&lock);
    if (failures++ < 20) printf("rank %d: %s: expected %ld, found %ld\n", rank, what, expected, found);
    pthread_mutex_unlock(&lock);
}
#define OK(call) same(#call, MPI_SUCCESS, (call))

static MPI_Datatype column(int step)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(N, 1, step, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* One thread: each round has a type of its own, and completes requests in another way. */
static void *exchange(void *argument)
{
    int id = (int)(long)argument;
    static int memory[THREADS][5 * N], back[THREADS][5 * N];
    for (int round = 0; round < ROUNDS; round++) {
        int step = 2 + (round + id) % 4, flag = 0, at;
        MPI_Datatype type = column(step);
        MPI_Request q[2];
        MPI_Status status[2];
        for (int i = 0; i < step * N; i++) memory[id][i] = 1000000 * id + 1000 * round + i + rank, back[id][i] = -1;
        OK(MPI_Irecv(back[id], 1, type, peer, id, MPI_COMM_WORLD, &q[0]));
        OK(MPI_Isend(memory[id], 1, type, peer, id, MPI_COMM_WORLD, &q[1]));
        /* The type may be freed while its messages are on their way. */
        OK(MPI_Type_free(&type));
        switch (round % 4) {
        case 0: OK(MPI_Waitall(2, q, status)); break;
        case 1: while (!flag) OK(MPI_Testall(2, q, &flag, status)); break;
        case 2: for (int i = 0; i < 2; i++) OK(MPI_Waitany(2, q, &at, status)); break;
        default: OK(MPI_Wait(&q[0], status)); OK(MPI_Wait(&q[1], MPI_STATUS_IGNORE));
        }
        for (int i = 0; i < step * (N - 1) + 1; i++)
            same("integer", i % step ? -1 : 1000000 * id + 1000 * round + i + peer, back[id][i]);
    }
    return NULL;
}

static void many(void)
{
    pthread_t thread[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, exchange, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
}

static pthread_barrier_t meeting;
static MPI_Datatype shared;

static void *uses(void *nothing)
{
    int memory[2 * N], back[2 * N];
    memset(memory, 1, sizeof memory);
    for (int i = 0; i < 500; i++)
        OK(MPI_Sendrecv(memory, 1, shared, 0, 0, back, 1, shared, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    pthread_barrier_wait(&meeting);
    /* Here the main thread frees the type. */
    pthread_barrier_wait(&meeting);
    return nothing;
}

static int deleted;
static int deletes(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void end(void)
{
    pthread_t thread;
    int keyval;
    int *strangers = dlsym(NULL, "tool_strangers"), *freed = dlsym(NULL, "tool_freed");
    same("tool", 1, strangers != NULL && freed != NULL);
    if (!strangers || !freed) return;
    shared = column(2);
    OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, deletes, &keyval, NULL));
    OK(MPI_Type_set_attr(shared, keyval, NULL));
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&thread, NULL, uses, NULL);
    pthread_barrier_wait(&meeting);
    *freed = 0;
    OK(MPI_Type_free(&shared));
    same("types freed", 1, *freed);
    same("attributes deleted", 1, deleted);
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    same("types freed by a thread that ended", 0, *strangers);
}

static void session(int is_both)
{
    MPI_Session s;
    MPI_Group group;
    MPI_Comm comm;
    int memory[2 * N], back[2 * N];
    if (is_both) MPI_Init(NULL, NULL);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s));
    OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "typepack", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    peer = 1 - rank;
    MPI_Datatype type = column(2);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 2 * N; i++) memory[i] = 1000 * round + i + rank, back[i] = -1;
        OK(MPI_Sendrecv(memory, 1, type, peer, 0, back, 1, type, peer, 0, comm, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * N; i++) same("integer", i % 2 ? -1 : 1000 * round + i + peer, back[i]);
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&comm));
    if (is_both) MPI_Finalize();
    OK(MPI_Session_finalize(&s));
}

int main(int argc, char **argv)
{
    const char *word = argc == 2 ? argv[1] : "";
    if (strcmp(word, "session") == 0 || strcmp(word, "both") == 0) {
        session(strcmp(word, "both") == 0);
    } else {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
        same("MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE, provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        peer = 1 - rank;
        if (strcmp(word, "many") == 0) many();
        if (strcmp(word, "end") == 0) end();
        MPI_Finalize();
    }
    if (!failures) printf("%s: no difference\n", word);
    return failures != 0;
}
