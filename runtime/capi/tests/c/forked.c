/* Tests MPI calls in a child process that a rank has made by fork. The child is not a rank: each of its MPI
   calls that would communicate, or that would change memory of the job, must return an error. No call may
   hang or end the child by a signal. The rank itself must go on as if there were no child. */
#include "messages.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The longest time that a call in a child may take, in seconds. */
enum { LONGEST = 100 };

static int here[4], there[4 * 64];
static unsigned char long_out[300000], long_in[300000];
static MPI_Request pending, posted, persistent, collective;
static MPI_Comm other_comm;
static void *allocated;

/* Makes a child that runs the following statement, and checks that the child ends by exit(wanted). */
#define CHILD(wanted, statement)                                                              \
    do {                                                                                      \
        int status_ = 0;                                                                      \
        fflush(NULL);                                                                         \
        pid_t child_ = fork();                                                                \
        CHECK(child_ >= 0);                                                                   \
        if (child_ == 0) {                                                                    \
            alarm(LONGEST);                                                                   \
            statement;                                                                        \
            _exit(99);                                                                        \
        }                                                                                     \
        CHECK(waitpid(child_, &status_, 0) == child_);                                        \
        if (!WIFEXITED(status_) || WEXITSTATUS(status_) != (wanted)) {                        \
            fprintf(stderr, "%s:%d: the child ended with status %#x: %s\n", __FILE__, __LINE__, \
                    status_, #statement);                                                     \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* Checks that a call in a child returns an error. */
#define REFUSED(call) CHILD(7, _exit((call) != MPI_SUCCESS ? 7 : 8))

/* Checks that a call in a child returns. */
#define RETURNS(call) CHILD(7, (void)(call); _exit(7))

static void all_calls(int peer)
{
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    MPI_Comm comm;
    MPI_File file;
    MPI_Win win;
    MPI_Group group;
    void *memory;
    int flag, index;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));

    REFUSED(MPI_Send(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Ssend(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Rsend(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Bsend(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Send(long_out, sizeof long_out, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Isend(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Send(here, 4, MPI_INT, rank, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Send(here, 4, MPI_INT, 0, 1, MPI_COMM_SELF));
    REFUSED(MPI_Send(allocated, 4, MPI_INT, peer, 1, MPI_COMM_WORLD));
    REFUSED(MPI_Recv(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD, &status));
    REFUSED(MPI_Recv(here, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    REFUSED(MPI_Irecv(here, 4, MPI_INT, peer, 1, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Sendrecv(here, 2, MPI_INT, peer, 1, there, 2, MPI_INT, peer, 1, MPI_COMM_WORLD,
                         &status));
    REFUSED(MPI_Probe(peer, 1, MPI_COMM_WORLD, &status));
    REFUSED(MPI_Iprobe(peer, 1, MPI_COMM_WORLD, &flag, &status));
    REFUSED(MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &message, &status));
    REFUSED(MPI_Improbe(peer, 1, MPI_COMM_WORLD, &flag, &message, &status));

    REFUSED(MPI_Wait(&pending, &status));
    REFUSED(MPI_Wait(&posted, &status));
    REFUSED(MPI_Wait(&collective, &status));
    REFUSED(MPI_Test(&posted, &flag, &status));
    REFUSED(MPI_Waitany(1, &posted, &index, &status));
    REFUSED(MPI_Testall(1, &posted, &flag, MPI_STATUSES_IGNORE));
    REFUSED(MPI_Request_get_status(posted, &flag, &status));
    REFUSED(MPI_Cancel(&posted));
    REFUSED(MPI_Start(&persistent));
    RETURNS(MPI_Request_free(&posted));
    RETURNS(MPI_Request_free(&persistent));

    REFUSED(MPI_Barrier(MPI_COMM_WORLD));
    REFUSED(MPI_Barrier(other_comm));
    REFUSED(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    REFUSED(MPI_Bcast(here, 4, MPI_INT, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Bcast(here, 4, MPI_INT, size - 1, MPI_COMM_WORLD));
    REFUSED(MPI_Allreduce(here, there, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    REFUSED(MPI_Reduce(here, there, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Allgather(here, 4, MPI_INT, there, 4, MPI_INT, MPI_COMM_WORLD));
    REFUSED(MPI_Alltoall(there, 1, MPI_INT, there + 64, 1, MPI_INT, MPI_COMM_WORLD));
    REFUSED(MPI_Gather(here, 4, MPI_INT, there, 4, MPI_INT, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Scatter(there, 1, MPI_INT, here, 1, MPI_INT, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Scan(here, there, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    REFUSED(MPI_Iallreduce(here, there, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));

    REFUSED(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    REFUSED(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm));
    REFUSED(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    REFUSED(MPI_Comm_create(MPI_COMM_WORLD, group, &comm));
    REFUSED(MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm));
    RETURNS(MPI_Comm_free(&other_comm));

    /* A job of one rank has no shared heap, and the child may use memory of its own. */
    if (size > 1) REFUSED(MPI_Alloc_mem(4096, MPI_INFO_NULL, &memory));
    RETURNS(MPI_Free_mem(allocated));
    REFUSED(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    REFUSED(MPI_Win_create(allocated, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    REFUSED(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));

    /* The memory of the other ranks is not mapped in the child, and the own memory is read-only there. */
    MPI_Win open;
    int one = 1, old = 0;
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &open));
    OK(MPI_Win_set_errhandler(open, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, open));
    REFUSED(MPI_Put(&one, 1, MPI_INT, peer, 0, 1, MPI_INT, open));
    REFUSED(MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, open));
    REFUSED(MPI_Get(&old, 1, MPI_INT, peer, 0, 1, MPI_INT, open));
    REFUSED(MPI_Accumulate(&one, 1, MPI_INT, peer, 0, 1, MPI_INT, MPI_SUM, open));
    REFUSED(MPI_Fetch_and_op(&one, &old, MPI_INT, peer, 0, MPI_SUM, open));
    REFUSED(MPI_Compare_and_swap(&one, &old, &old, MPI_INT, peer, 0, open));
    REFUSED(MPI_Win_flush(peer, open));
    REFUSED(MPI_Win_flush_local(peer, open));
    REFUSED(MPI_Win_flush_all(open));
    REFUSED(MPI_Win_flush_local_all(open));
    REFUSED(MPI_Win_unlock_all(open));
    REFUSED(MPI_Win_sync(open));
    REFUSED(MPI_Win_free(&open));
    OK(MPI_Win_unlock_all(open));

    /* Calls that begin an epoch. With these assertions, the calls would wait for no other rank. */
    MPI_Info info;
    REFUSED(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, open));
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, open));
    REFUSED(MPI_Win_lock_all(MPI_MODE_NOCHECK, open));
    REFUSED(MPI_Win_start(group, MPI_MODE_NOCHECK, open));
    REFUSED(MPI_Win_post(MPI_GROUP_EMPTY, 0, open));
    REFUSED(MPI_Win_get_info(open, &info));

    /* Calls that end an epoch that is open. */
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, open));
    REFUSED(MPI_Win_wait(open));
    REFUSED(MPI_Win_test(open, &flag));
    OK(MPI_Win_wait(open));
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, open));
    REFUSED(MPI_Win_complete(open));
    OK(MPI_Win_complete(open));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, open));
    REFUSED(MPI_Win_unlock(rank, open));
    OK(MPI_Win_unlock(rank, open));
    REFUSED(MPI_Win_free(&open));
    OK(MPI_Win_free(&open));

    MPI_Win dynamic;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(dynamic, here, sizeof here));
    REFUSED(MPI_Win_attach(dynamic, there, sizeof there));
    REFUSED(MPI_Win_detach(dynamic, here));
    OK(MPI_Win_detach(dynamic, here));
    OK(MPI_Win_free(&dynamic));

    REFUSED(MPI_Finalize());

    /* The child may use local calls, and it may exit. */
    int is = -1;
    CHILD(7, _exit(MPI_Comm_rank(MPI_COMM_WORLD, &is) == MPI_SUCCESS && is == rank ? 7 : 8));
    CHILD(7, _exit(MPI_Initialized(&flag) == MPI_SUCCESS && flag ? 7 : 8));
    CHILD(7, exit(7));
    /* MPI_Abort ends the child only. */
    CHILD(5, MPI_Abort(MPI_COMM_WORLD, 5));
    OK(MPI_Group_free(&group));
}

int main(void)
{
    begin();
    errors_return();
    int peer = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other_comm));
    OK(MPI_Comm_set_errhandler(other_comm, MPI_ERRORS_RETURN));
    OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &allocated));
    fill(allocated, 1 << 20, 5);
    fill(long_out, sizeof long_out, rank);

    /* These operations are pending while the process forks. */
    OK(MPI_Isend(long_out, sizeof long_out, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &pending));
    OK(MPI_Irecv(there, 4, MPI_INT, from, 3, MPI_COMM_WORLD, &posted));
    OK(MPI_Send_init(here, 4, MPI_INT, peer, 4, MPI_COMM_WORLD, &persistent));
    OK(MPI_Ibarrier(other_comm, &collective));
    all_calls(peer);

    /* The rank itself goes on. */
    OK(MPI_Recv(long_in, sizeof long_in, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(long_in, sizeof long_in, from));
    OK(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    here[0] = rank + 100;
    OK(MPI_Send(here, 4, MPI_INT, peer, 3, MPI_COMM_WORLD));
    OK(MPI_Wait(&posted, MPI_STATUS_IGNORE));
    CHECK(there[0] == from + 100);
    OK(MPI_Wait(&collective, MPI_STATUS_IGNORE));
    OK(MPI_Start(&persistent));
    OK(MPI_Recv(there, 4, MPI_INT, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&persistent));
    CHECK(is_filled(allocated, 1 << 20, 5));
    OK(MPI_Free_mem(allocated));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_free(&other_comm));
    return end();
}
