/* A thread ends the only session of its process while another rank has not yet received what the session has sent. That
   rank first waits for another thread of the process, which begins a session meanwhile. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { WORDS = 1 << 20 };
static int words[WORDS];

static MPI_Session begin(void)
{
    MPI_Session session;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    return session;
}

static MPI_Comm world_of(MPI_Session session, const char *name)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

static void *later(void *unused)
{
    usleep(100000); /* by now, the other thread usually waits in MPI_Session_finalize */
    MPI_Session session = begin();
    MPI_Comm comm = world_of(session, "tests/later");
    int go = 5;
    OK(MPI_Send(&go, 1, MPI_INT, 1, 0, comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    return unused;
}

int main(void)
{
    MPI_Session session = begin();
    MPI_Comm comm = world_of(session, "tests/first");
    int rank, go = 0;
    OK(MPI_Comm_rank(comm, &rank));
    if (rank == 0) {
        MPI_Request request;
        pthread_t thread;
        for (int at = 0; at < WORDS; at++) words[at] = at;
        OK(MPI_Isend(words, WORDS, MPI_INT, 1, 0, comm, &request));
        OK(MPI_Request_free(&request));
        OK(MPI_Comm_free(&comm));
        CHECK(pthread_create(&thread, NULL, later, NULL) == 0);
        OK(MPI_Session_finalize(&session));
        CHECK(pthread_join(thread, NULL) == 0);
        return 0;
    }
    MPI_Session second = begin();
    MPI_Comm other = world_of(second, "tests/later");
    if (rank == 1) {
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE));
        CHECK(go == 5);
        OK(MPI_Recv(words, WORDS, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
        for (int at = 0; at < WORDS; at++) CHECK(words[at] == at);
    }
    OK(MPI_Comm_free(&other));
    OK(MPI_Session_finalize(&second));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    return 0;
}
