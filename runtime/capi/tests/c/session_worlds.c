/* Tests sessions in a program that also calls MPI_Init and MPI_Finalize: a session that ends before, sessions that
   begin before and end after, and a session after MPI_Finalize. Also splits communicators by resources. */
#define _GNU_SOURCE
#include "check.h"

#include <sched.h>

static MPI_Session begin(void)
{
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    return session;
}

static void talk(MPI_Session session)
{
    MPI_Group group;
    MPI_Comm comm;
    int rank, size, sum = -1;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "tests/worlds", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&comm));
}

/* Splits by a kind of resource, and uses the new communicator if there is one. `wanted` is its size, 0 for the null
   handle, and negative if any result is right. */
static void split(MPI_Comm comm, int kind, const char *key, const char *name, int wanted)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm part;
    int size = 0;
    if (key != NULL) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, key, name));
    }
    OK(MPI_Comm_split_type(comm, kind, 0, info, &part));
    if (part != MPI_COMM_NULL) {
        int one = 1, sum = 0;
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part));
        CHECK(sum == size);
        OK(MPI_Comm_free(&part));
    }
    CHECK(wanted < 0 || size == wanted);
    if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
}

static void resources(void)
{
    static const char *const kinds[] = {"hwloc://Machine", "hwloc://Package", "hwloc://NUMANode",
                                        "hwloc://L3Cache", "hwloc://L2Cache", "hwloc://L1Cache",
                                        "hwloc://Core", "hwloc://PU"};
    const char *const key = "mpi_hw_resource_type", *const set = "mpi_pset_name";
    MPI_Info info;
    MPI_Comm comm, part;
    int size, rank, flag;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, NULL, NULL, size);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, NULL, NULL, 0);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, key, "mpi_shared_memory", size);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, key, "hwloc://Moon", 0);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, set, "mpi://WORLD", 0);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, key, "hwloc://Machine", size);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, set, "mpi://WORLD", size);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, set, "mpi://SELF", 1);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, set, "mpi://MOON", 0);
    split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, NULL, NULL, 0);
    split(MPI_COMM_WORLD, MPI_UNDEFINED, NULL, NULL, 0);
    OK(MPI_Get_hw_resource_info(&info));
    for (int kind = 0; kind < (int)(sizeof kinds / sizeof *kinds); kind++) {
        char value[8];
        int room = sizeof value;
        OK(MPI_Info_get_string(info, kinds[kind], &room, value, &flag));
        CHECK(flag && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0));
        CHECK(kind > 0 || strcmp(value, "true") == 0);
        /* A rank that is not bound to one resource of the kind gets the null handle. */
        split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, key, kinds[kind], strcmp(value, "true") == 0 ? -1 : 0);
        split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, key, kinds[kind], -1);
    }
    /* mpiexec knows to how many processors it has bound the rank. */
    char value[8];
    int room = sizeof value;
    cpu_set_t cpus;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    OK(MPI_Info_get_string(info, "hwloc://PU", &room, value, &flag));
    if (CPU_COUNT(&cpus) > 1) CHECK(strcmp(value, "false") == 0);
    else if (getenv("TYPEPACK_RANK")) CHECK(strcmp(value, "true") == 0);
    OK(MPI_Info_free(&info));
    /* Each unguided split makes the communicator smaller, until it cannot be divided. The call writes the kind of
       resource into the info object. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int level = 0; comm != MPI_COMM_NULL; level++) {
        char value[MPI_MAX_INFO_VAL];
        int room = sizeof value, before, after;
        CHECK(level < 10);
        OK(MPI_Info_create(&info));
        OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part));
        OK(MPI_Info_get_string(info, key, &room, value, &flag));
        CHECK(flag == (part != MPI_COMM_NULL));
        OK(MPI_Comm_size(comm, &before));
        if (part != MPI_COMM_NULL) {
            OK(MPI_Comm_size(part, &after));
            CHECK(after < before && strncmp(value, "hwloc://", 8) == 0);
        }
        OK(MPI_Comm_free(&comm));
        OK(MPI_Info_free(&info));
        comm = part;
    }
}

int main(void)
{
    MPI_Session first = begin(), around, after;
    MPI_Comm kept;
    int flag;
    talk(first);
    OK(MPI_Session_finalize(&first));
    around = begin();
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &kept));
    talk(around);
    resources();
    OK(MPI_Session_finalize(&around));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    around = begin();
    talk(around);
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    talk(around);
    /* After MPI_Finalize, MPI_COMM_WORLD, MPI_COMM_SELF and the communicators made from them do not exist any more,
       although a session is open. */
    RAISES(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_WORLD, &flag));
    RAISES(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_WORLD));
    RAISES(MPI_ERR_COMM, MPI_Send(&flag, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
    RAISES(MPI_ERR_COMM, MPI_Pack_size(1, MPI_INT, MPI_COMM_SELF, &flag));
    RAISES(MPI_ERR_COMM, MPI_Comm_size(kept, &flag));
    RAISES(MPI_ERR_OTHER, MPI_Finalize());
    RAISES(MPI_ERR_OTHER, MPI_Init(NULL, NULL));
    OK(MPI_Session_finalize(&around));
    RAISES(MPI_ERR_SESSION, MPI_Session_finalize(&around));
    after = begin();
    talk(after);
    OK(MPI_Session_finalize(&after));
    return 0;
}
