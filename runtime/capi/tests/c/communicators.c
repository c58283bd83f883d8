/* Tests the calls that make communicators from communicators, the hints, names and error handlers of the
   new communicators, and wrong arguments. */
#include "check.h"

static int calls;

static void count_calls(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    calls++;
}

static int compared(MPI_Comm a, MPI_Comm b)
{
    int result = -1;
    OK(MPI_Comm_compare(a, b, &result));
    return result;
}

/* Checks that a hint of the communicator has the value `wanted`, or is not set if `wanted` is null. */
static void check_hint(MPI_Comm comm, const char *key, const char *wanted)
{
    MPI_Info used;
    char value[MPI_MAX_INFO_VAL];
    int flag, room = sizeof value;
    OK(MPI_Comm_get_info(comm, &used));
    OK(MPI_Info_get_string(used, key, &room, value, &flag));
    CHECK(flag == (wanted != NULL) && (!flag || strcmp(value, wanted) == 0));
    OK(MPI_Info_free(&used));
}

static const char *const assertions[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking", "mpi_assert_strict_persistent_collective_ordering"};

/* Checks that a communicator keeps and returns known hints, ignores other hints, and inherits none. */
static void hints(void)
{
    enum { N = sizeof assertions / sizeof *assertions };
    MPI_Comm parent, dup, part;
    MPI_Info info;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    for (int i = 0; i < N; i++) check_hint(parent, assertions[i], "false");
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, assertions[0], "true"));
    OK(MPI_Info_set(info, assertions[1], "perhaps"));
    OK(MPI_Info_set(info, "nobody_knows", "true"));
    OK(MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda"));
    OK(MPI_Comm_set_info(parent, info));
    for (int i = 0; i < N; i++) check_hint(parent, assertions[i], i == 0 ? "true" : "false");
    check_hint(parent, "nobody_knows", NULL);
    check_hint(parent, "mpi_memory_alloc_kinds", "mpi,system");
    /* Hints that the info object does not contain keep their values. */
    OK(MPI_Info_delete(info, assertions[0]));
    OK(MPI_Info_set(info, assertions[2], "true"));
    OK(MPI_Comm_set_info(parent, info));
    check_hint(parent, assertions[0], "true");
    check_hint(parent, assertions[2], "true");
    OK(MPI_Comm_dup(parent, &dup));
    OK(MPI_Comm_split(parent, 0, 0, &part));
    for (int i = 0; i < N; i++) check_hint(dup, assertions[i], "false");
    for (int i = 0; i < N; i++) check_hint(part, assertions[i], "false");
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_dup_with_info(parent, info, &dup));
    for (int i = 0; i < N; i++) check_hint(dup, assertions[i], i == 2 ? "true" : "false");
    check_hint(dup, "nobody_knows", NULL);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, &dup));
    for (int i = 0; i < N; i++) check_hint(dup, assertions[i], "false");
    /* The info object that MPI_Comm_get_info returns can be passed to MPI_Comm_set_info. */
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_get_info(parent, &info));
    OK(MPI_Comm_set_info(dup, info));
    check_hint(dup, assertions[0], "true");
    check_hint(dup, assertions[3], "false");
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&parent));
}

int main(int argc, char **argv)
{
    int rank, size, n;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_rank(MPI_COMM_SELF, &n));
    CHECK(n == 0);
    CHECK(compared(MPI_COMM_WORLD, MPI_COMM_WORLD) == MPI_IDENT);
    CHECK(compared(MPI_COMM_SELF, MPI_COMM_WORLD) == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
    MPI_Comm parent = MPI_COMM_WORLD;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);

    /* A duplicate has the error handler of its parent, and neither its name nor its hints. */
    MPI_Comm dup, half;
    MPI_Errhandler handler;
    MPI_Info info;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_create_errhandler(count_calls, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_set_info(MPI_COMM_WORLD, info));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    CHECK(compared(MPI_COMM_WORLD, dup) == MPI_CONGRUENT);
    OK(MPI_Comm_get_name(dup, name, &n));
    CHECK(n == 0 && name[0] == 0);
    calls = 0;
    RAISES(MPI_ERR_ARG, MPI_Comm_rank(dup, NULL));
    CHECK(calls == 1);
    check_hint(dup, "mpi_assert_no_any_tag", "false");
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(dup)) == dup);
    OK(MPI_Comm_free(&dup));
    CHECK(dup == MPI_COMM_NULL);
    check_hint(MPI_COMM_WORLD, "mpi_assert_no_any_tag", "true");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    hints();

    /* Makes communicators by splitting MPI_COMM_WORLD. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
    OK(MPI_Comm_rank(half, &n));
    CHECK(n == (size - 1 - rank) / 2);
    OK(MPI_Comm_size(half, &n));
    CHECK(n == (size + 1 - rank % 2) / 2);
    int sum = -1;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half));
    CHECK(sum == (rank % 2 ? n * n : n * (n - 1)));
    MPI_Comm none = MPI_COMM_WORLD, all;
    OK(MPI_Comm_split(half, MPI_UNDEFINED, 0, &none));
    CHECK(none == MPI_COMM_NULL);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &all));
    CHECK(compared(MPI_COMM_WORLD, all) == MPI_CONGRUENT);
    OK(MPI_Comm_split_type(all, MPI_UNDEFINED, 0, MPI_INFO_NULL, &none));
    CHECK(none == MPI_COMM_NULL);
    /* This split depends on the processors that mpiexec gave to the ranks. Either nothing divides the ranks, or
       each rank gets a communicator of fewer ranks. The test c.rs also runs the program without binding. */
    none = MPI_COMM_WORLD;
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &none));
    if (none != MPI_COMM_NULL) {
        CHECK(getenv("COMMUNICATORS_UNBOUND") == NULL);
        OK(MPI_Comm_size(none, &n));
        CHECK(n < size);
        OK(MPI_Comm_free(&none));
    }
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_HW_GUIDED, 0, info, &dup));
    CHECK(compared(all, dup) == MPI_CONGRUENT);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &dup));
    CHECK(compared(all, dup) == MPI_CONGRUENT);
    OK(MPI_Comm_free(&dup));
    /* Splits by a set of processes. There are two such sets. */
    OK(MPI_Info_delete(info, "mpi_hw_resource_type"));
    OK(MPI_Info_set(info, "mpi_pset_name", "mpi://WORLD"));
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, -rank, info, &dup));
    OK(MPI_Comm_rank(dup, &n));
    CHECK(n == size - 1 - rank);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Info_set(info, "mpi_pset_name", "mpi://SELF"));
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &dup));
    CHECK(compared(MPI_COMM_SELF, dup) == MPI_CONGRUENT);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_HW_GUIDED, 0, info, &none));
    CHECK(none == MPI_COMM_NULL);
    OK(MPI_Info_set(info, "mpi_pset_name", "elsewhere://SELF"));
    OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &none));
    CHECK(none == MPI_COMM_NULL);
    OK(MPI_Comm_free(&all));

    /* Makes communicators from groups: from two disjoint groups in one call of all ranks, and from a group
       in a call that only its members make. */
    MPI_Group group;
    OK(MPI_Comm_group(half, &group));
    OK(MPI_Comm_create(MPI_COMM_WORLD, group, &dup));
    CHECK(compared(half, dup) == MPI_CONGRUENT);
    OK(MPI_Comm_free(&dup));
    if (rank % 2 == 0) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, 12, &dup));
        CHECK(compared(half, dup) == MPI_CONGRUENT);
        OK(MPI_Barrier(dup));
        OK(MPI_Comm_free(&dup));
    }
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &none));
    CHECK(none == MPI_COMM_NULL);

    /* Calls with wrong arguments fail and do not change their outputs. */
    MPI_Comm kept = (MPI_Comm)0x77777, stale = half, world = MPI_COMM_WORLD;
    MPI_Group whole;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &whole));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    if (size > 1)
        RAISES(MPI_ERR_GROUP, MPI_Comm_create(MPI_COMM_SELF, whole, &kept));
    OK(MPI_Comm_free(&half));
    RAISES(MPI_ERR_COMM, MPI_Comm_size(stale, &n));
    RAISES(MPI_ERR_COMM, MPI_Comm_free(&stale));
    RAISES(MPI_ERR_COMM, MPI_Comm_free(&world));
    RAISES(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &kept));
    RAISES(MPI_ERR_COMM, MPI_Comm_dup((MPI_Comm)group, &kept));
    RAISES(MPI_ERR_COMM, MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &n));
    RAISES(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &n));
    RAISES(MPI_ERR_COMM, MPI_Comm_remote_group(MPI_COMM_WORLD, &group));
    RAISES(MPI_ERR_GROUP, MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &kept));
    RAISES(MPI_ERR_TAG, MPI_Comm_create_group(MPI_COMM_WORLD, whole, -1, &kept));
    RAISES(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &kept));
    RAISES(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL));
    RAISES(MPI_ERR_ARG, MPI_Comm_split_type(MPI_COMM_WORLD, 5, 0, MPI_INFO_NULL, &kept));
    RAISES(MPI_ERR_INFO, MPI_Comm_set_info(MPI_COMM_WORLD, MPI_INFO_NULL));
    RAISES(MPI_ERR_INFO, MPI_Comm_dup_with_info(MPI_COMM_WORLD, (MPI_Info)0x77777, &kept));
    CHECK(kept == (MPI_Comm)0x77777 && world == MPI_COMM_WORLD);
    OK(MPI_Group_free(&whole));
    OK(MPI_Group_free(&group));
    OK(MPI_Info_free(&info));
    OK(MPI_Finalize());
    return 0;
}
