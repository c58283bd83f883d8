/* Tests sessions in a program that never calls MPI_Init: process sets, groups and communicators of them, info,
   buffers, error handlers, several sessions, sessions after all others have ended, and wrong arguments. */
#include "check.h"

static int calls;

static void count_calls(MPI_Session *session, int *code, ...)
{
    CHECK(session != NULL && *code == MPI_ERR_ARG);
    calls++;
}

static MPI_Session begin(const char *level)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info = MPI_INFO_NULL;
    if (level != NULL) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "thread_level", level));
    }
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    CHECK(session != MPI_SESSION_NULL);
    if (level != NULL) OK(MPI_Info_free(&info));
    return session;
}

static void check_hint(MPI_Info info, const char *key, const char *wanted)
{
    char value[MPI_MAX_INFO_VAL];
    int flag, room = sizeof value;
    OK(MPI_Info_get_string(info, key, &room, value, &flag));
    CHECK(flag && strcmp(value, wanted) == 0);
    OK(MPI_Info_free(&info));
}

static MPI_Info info_of(MPI_Session session)
{
    MPI_Info info;
    OK(MPI_Session_get_info(session, &info));
    return info;
}

static MPI_Info info_of_set(MPI_Session session, const char *name)
{
    MPI_Info info;
    OK(MPI_Session_get_pset_info(session, name, &info));
    return info;
}

static MPI_Comm of_set(MPI_Session session, const char *name)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, name, &group));
    OK(MPI_Comm_create_from_group(group, "tests/sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

/* Checks that all process sets have a name and a size, and that their groups have this size. Returns the size of the
   set mpi://WORLD. */
static int sets(MPI_Session session)
{
    int number, world = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &number));
    CHECK(number >= 2);
    for (int n = 0; n < number; n++) {
        char name[MPI_MAX_PSET_NAME_LEN], cut[6] = "-----", text[16];
        int length = 0, room = sizeof name, size, rank;
        MPI_Info info;
        MPI_Group group;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, NULL));
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &room, name));
        CHECK(room == length && (int)strlen(name) == length - 1);
        room = 4;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &room, cut));
        CHECK(room == length && strncmp(cut, name, 3) == 0 && cut[3] == 0 && cut[4] == '-');
        OK(MPI_Group_from_session_pset(session, name, &group));
        OK(MPI_Group_size(group, &size));
        OK(MPI_Group_rank(group, &rank));
        OK(MPI_Session_get_pset_info(session, name, &info));
        snprintf(text, sizeof text, "%d", size);
        check_hint(info, "mpi_size", text);
        if (strcmp(name, "mpi://SELF") == 0) CHECK(size == 1 && rank == 0);
        if (strcmp(name, "mpi://WORLD") == 0) world = size;
        if (n == 1) check_hint(info_of_set(session, "Mpi://self"), "mpi_size", "1");
        if (rank != MPI_UNDEFINED && n >= 2) {
            /* The members of each of the other sets make a communicator, in which only these members are. */
            MPI_Comm comm = of_set(session, name);
            int sum = 0, one = 1;
            OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(sum == size);
            OK(MPI_Comm_free(&comm));
        }
        OK(MPI_Group_free(&group));
    }
    CHECK(world > 0);
    return world;
}

static void talk(MPI_Comm comm)
{
    int rank, size, in = -1, sum = -1, flag;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &in, 1, MPI_INT,
                    (rank + size - 1) % size, 3, comm, MPI_STATUS_IGNORE));
    CHECK(in == (rank + size - 1) % size);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_test_inter(comm, &flag));
    CHECK(!flag);
}

/* Buffered sends use the buffer of the session from which the communicator comes. */
static void buffers(MPI_Session session, MPI_Comm comm)
{
    enum { BYTES = 4000, ROOM = BYTES + MPI_BSEND_OVERHEAD };
    static char room[ROOM], message[BYTES], in[BYTES];
    MPI_Session other = begin(NULL);
    MPI_Comm foreign = of_set(other, "mpi://SELF"), dup;
    MPI_Group group;
    MPI_Request request;
    void *address = &calls;
    int rank, size, length = -1;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    memset(message, 'a' + rank, BYTES);
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(message, BYTES, MPI_CHAR, 0, 1, foreign));
    OK(MPI_Session_attach_buffer(session, room, ROOM));
    RAISES(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, room, ROOM));
    OK(MPI_Bsend(message, BYTES, MPI_CHAR, (rank + 1) % size, 1, comm));
    OK(MPI_Recv(in, BYTES, MPI_CHAR, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE));
    CHECK(in[BYTES - 1] == 'a' + (rank + size - 1) % size);
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_iflush_buffer(session, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* A duplicate, and a communicator of a group of a communicator, belong to the same session. */
    OK(MPI_Comm_dup(comm, &dup));
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(message, BYTES, MPI_CHAR, 0, 1, foreign));
    for (int round = 0; round < 2; round++) {
        OK(MPI_Bsend(message, BYTES, MPI_CHAR, rank, 1, dup));
        OK(MPI_Recv(in, BYTES, MPI_CHAR, rank, 1, dup, MPI_STATUS_IGNORE));
        OK(MPI_Comm_group(dup, &group));
        OK(MPI_Comm_free(&dup));
        OK(MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &dup));
        OK(MPI_Group_free(&group));
    }
    OK(MPI_Comm_free(&dup));
    OK(MPI_Session_detach_buffer(session, &address, &length));
    CHECK(address == room && length == ROOM);
    OK(MPI_Session_detach_buffer(session, &address, &length));
    CHECK(address == NULL && length == 0);
    OK(MPI_Comm_free(&foreign));
    OK(MPI_Session_finalize(&other));
}

static void errors(MPI_Session session)
{
    MPI_Errhandler counting, got;
    MPI_Session made = session;
    MPI_Group group = MPI_GROUP_EMPTY;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    char name[8];
    int number, room = sizeof name;
    OK(MPI_Session_create_errhandler(count_calls, &counting));
    OK(MPI_Session_set_errhandler(session, counting));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == counting);
    OK(MPI_Errhandler_free(&got));
    calls = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &number));
    RAISES(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, number, &room, name));
    RAISES(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &room, name));
    RAISES(MPI_ERR_ARG, MPI_Group_from_session_pset(session, "mpi://MOON", &group));
    RAISES(MPI_ERR_ARG, MPI_Session_get_pset_info(session, "", &info));
    CHECK(calls == 4 && group == MPI_GROUP_EMPTY && info == MPI_INFO_NULL && room == sizeof name);
    OK(MPI_Session_call_errhandler(session, MPI_ERR_ARG));
    CHECK(calls == 5);
    /* The new session's handler is called if the session cannot be made. */
    RAISES(MPI_ERR_ARG, MPI_Session_init(MPI_INFO_NULL, counting, NULL));
    CHECK(calls == 6);
    RAISES(MPI_ERR_INFO, MPI_Session_init((MPI_Info)&calls, MPI_ERRORS_RETURN, &made));
    CHECK(made == session);
    /* The communicator's handler is called if the communicator cannot be made. */
    RAISES(MPI_ERR_GROUP, MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL,
                                                     MPI_ERRORS_RETURN, &comm));
    RAISES(MPI_ERR_ARG, MPI_Comm_create_from_group(MPI_GROUP_EMPTY, NULL, MPI_INFO_NULL,
                                                   MPI_ERRORS_RETURN, &comm));
    /* There is no MPI_COMM_WORLD. */
    int rank = -1;
    MPI_Comm self = of_set(session, "mpi://SELF");
    OK(MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN));
    OK(MPI_Comm_compare(self, self, &rank));
    CHECK(rank == MPI_IDENT);
    OK(MPI_Comm_free(&self));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&counting));
}

/* Two sets of the same processes: an intercommunicator between the first rank and the others. */
static void between(MPI_Session session, int size)
{
    MPI_Group world, one, rest;
    MPI_Comm inter;
    int zero = 0, rank, remote;
    if (size == 1) return;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_rank(world, &rank));
    OK(MPI_Group_incl(world, 1, &zero, &one));
    OK(MPI_Group_excl(world, 1, &zero, &rest));
    OK(MPI_Intercomm_create_from_groups(rank == 0 ? one : rest, 0, rank == 0 ? rest : one, 0, "inter",
                                        MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == (rank == 0 ? size - 1 : 1));
    OK(MPI_Barrier(inter));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Group_free(&one));
    OK(MPI_Group_free(&rest));
    OK(MPI_Group_free(&world));
}

int main(void)
{
    int flag;
    for (int round = 0; round < 2; round++) {
        MPI_Session session = begin("MPI_THREAD_MULTIPLE"), other = begin(NULL);
        check_hint(info_of(session), "thread_level", "MPI_THREAD_MULTIPLE");
        check_hint(info_of(other), "thread_level", "MPI_THREAD_MULTIPLE");
        check_hint(info_of(other), "mpi_memory_alloc_kinds", "mpi,system");
        CHECK(session != other);
        OK(MPI_Initialized(&flag));
        CHECK(!flag);
        int size = sets(session);
        MPI_Comm comm = of_set(session, "mpi://WORLD"), dup;
        OK(MPI_Comm_size(comm, &flag));
        CHECK(flag == size);
        talk(comm);
        OK(MPI_Comm_dup(comm, &dup));
        talk(dup);
        OK(MPI_Comm_free(&dup));
        OK(MPI_Session_finalize(&other));
        CHECK(other == MPI_SESSION_NULL);
        talk(comm);
        buffers(session, comm);
        errors(session);
        between(session, size);
        MPI_Datatype column;
        OK(MPI_Type_vector(3, 1, 4, MPI_INT, &column));
        OK(MPI_Type_commit(&column));
        OK(MPI_Type_free(&column));
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Session_finalize(&session));
        OK(MPI_Finalized(&flag));
        CHECK(!flag);
    }
    return 0;
}
