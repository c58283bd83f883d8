/* Tests calls that make communicators and in which one rank passes a wrong argument. That rank gets its error, the
   other ranks get MPI_ERR_OTHER and do not wait, and the next collective call of all ranks works. In some
   calls the other ranks cannot know of the error. These calls give them a communicator. */
#include "check.h"

#include <sys/resource.h>
#include <unistd.h>

static int rank, size;

/* All ranks of `comm` make the next collective call together. */
static void check_next(MPI_Comm comm)
{
    int sum = -1, one = 1, count;
    OK(MPI_Comm_size(comm, &count));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == count);
}

/* The rank `failing` gets an error of the class `class`, and the other ranks get MPI_ERR_OTHER. */
#define FAILS(class, call)                                  \
    do {                                                    \
        if (rank == failing) RAISES(class, call);           \
        else RAISES(MPI_ERR_OTHER, call);                   \
        check_next(comm);                                   \
    } while (0)

static void check_each(MPI_Comm comm, int failing)
{
    MPI_Comm made, *out = rank == failing ? NULL : &made;
    MPI_Group group, wrong;
    int dims[] = {size}, below[] = {-1}, periods[] = {0}, more[] = {size + 1};
    int *where = rank == failing ? below : dims;
    OK(MPI_Comm_group(comm, &group));
    wrong = rank == failing ? MPI_GROUP_NULL : group;

    FAILS(MPI_ERR_ARG, MPI_Comm_split(comm, 0, 0, out));
    FAILS(MPI_ERR_ARG, MPI_Comm_split(comm, rank == failing ? -77 : 0, 0, &made));
    FAILS(MPI_ERR_ARG, MPI_Comm_split_type(comm, rank == failing ? -77 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    FAILS(MPI_ERR_ARG, MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, out));
    FAILS(MPI_ERR_GROUP, MPI_Comm_create(comm, wrong, &made));
    FAILS(MPI_ERR_ARG, MPI_Comm_create(comm, group, out));
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(comm, 1, where, periods, 0, &made));
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(comm, 1, rank == failing ? more : dims, periods, 1, &made));
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(comm, rank == failing ? -1 : 1, dims, periods, 1, &made));
    FAILS(MPI_ERR_ARG, MPI_Cart_create(comm, 1, dims, periods, 0, out));

    /* A graph without edges, in which one rank passes an edge to a rank that does not exist. */
    int none[64] = {0}, one[64], far[] = {size};
    for (int place = 0; place < size; place++) one[place] = 1;
    FAILS(MPI_ERR_RANK, MPI_Graph_create(comm, size, rank == failing ? one : none, far, 0, &made));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(comm, size, none, far, 0, out));

    int edges = rank == failing, weight[] = {-1};
    FAILS(MPI_ERR_RANK, MPI_Dist_graph_create_adjacent(comm, edges, far, MPI_UNWEIGHTED, 0, far, MPI_UNWEIGHTED,
                                                       MPI_INFO_NULL, 0, &made));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(comm, 0, far, MPI_UNWEIGHTED, 0, far, MPI_UNWEIGHTED,
                                                      MPI_INFO_NULL, 0, out));
    FAILS(MPI_ERR_RANK, MPI_Dist_graph_create(comm, edges, far, one, far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(comm, edges, none, one, none, weight, MPI_INFO_NULL, 0, &made));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(comm, 0, far, one, far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, out));

    MPI_Comm grid;
    int kept[] = {1};
    OK(MPI_Cart_create(comm, 1, dims, periods, 0, &grid));
    FAILS(MPI_ERR_ARG, MPI_Cart_sub(grid, rank == failing ? NULL : kept, &made));
    check_next(grid);
    OK(MPI_Comm_free(&grid));

    /* The other ranks get duplicates. The failing rank does not get one. */
    MPI_Info info = MPI_INFO_NULL;
    if (rank == failing) {
        OK(MPI_Info_create(&info));
        MPI_Info freed = info;
        OK(MPI_Info_free(&info));
        info = freed;
        RAISES(MPI_ERR_ARG, MPI_Comm_dup(comm, NULL));
        check_next(comm);
        RAISES(MPI_ERR_INFO, MPI_Comm_dup_with_info(comm, info, &made));
        check_next(comm);
    } else {
        for (int call = 0; call < 2; call++) {
            OK(call == 0 ? MPI_Comm_dup(comm, &made) : MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &made));
            check_next(comm);
            OK(MPI_Comm_free(&made));
        }
    }
    /* Other ranks may need the number of the duplicate from a rank that abandons its own duplicate. If this rank does
       not know the number yet, the ranks that wait for the number get an error. A rank gets this error from
       `MPI_Comm_idup` if the news of the abandoned duplicate is already there, and from `MPI_Wait` otherwise. */
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == failing) {
        RAISES(MPI_ERR_ARG, MPI_Comm_idup(comm, &made, NULL));
    } else {
        /* The failing rank abandons its duplicate before rank 0 sends the number. After that, the ranks with odd numbers
           take their messages (the probe makes progress) and only then start. */
        usleep(rank == 0 ? 10000 : rank % 2 != 0 ? 30000 : 0);
        int there;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &there, MPI_STATUS_IGNORE));
        int class, code = MPI_Comm_idup(comm, &made, &request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request == MPI_REQUEST_NULL);
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_SUCCESS || (class == MPI_ERR_OTHER && failing != 0));
        if (class == MPI_SUCCESS) OK(MPI_Comm_free(&made));
    }
    check_next(comm);
    FAILS(MPI_ERR_INFO, MPI_Dist_graph_create(comm, 0, far, one, far, MPI_UNWEIGHTED, info, 0, &made));

    /* Calls with a tag: the second call with the same tag makes a communicator on all ranks. */
    for (int way = 0; way < 4; way++) {
        for (int again = 0; again < 2; again++) {
            int fails = again == 0 && rank == failing, code;
            MPI_Info hints = way == 2 && fails ? info : MPI_INFO_NULL;
            MPI_Errhandler handler = way == 3 && fails ? MPI_ERRHANDLER_NULL : MPI_ERRORS_RETURN;
            MPI_Comm *to = way < 2 && fails ? NULL : &made;
            made = MPI_COMM_NULL;
            if (way == 0) code = MPI_Comm_create_group(comm, group, 5, to);
            else code = MPI_Comm_create_from_group(group, "tests/creations", hints, handler, to);
            CHECK(fails == (code != MPI_SUCCESS));
            if (!fails && again == 0) OK(MPI_Comm_free(&made));
        }
        check_next(made);
        OK(MPI_Comm_free(&made));
        check_next(comm);
    }
    OK(MPI_Group_free(&group));
}

/* Two groups of ranks, one of which has a rank with a wrong argument. */
static void check_between(MPI_Comm comm, int failing)
{
    MPI_Comm half, between, made;
    MPI_Group group, world;
    int low = rank < size / 2, leaders[] = {0, size / 2};
    OK(MPI_Comm_split(comm, low, 0, &half));
    if (low == (failing < size / 2)) {
        int code = MPI_Intercomm_create(half, 0, comm, leaders[low], 9, rank == failing ? NULL : &between);
        CHECK(code != MPI_SUCCESS);
        check_next(half);
    } else {
        RAISES(MPI_ERR_OTHER, MPI_Intercomm_create(half, 0, comm, leaders[low], 9, &between));
    }
    check_next(comm);
    OK(MPI_Intercomm_create(half, 0, comm, leaders[low], 9, &between));
    if (rank == failing) RAISES(MPI_ERR_ARG, MPI_Intercomm_merge(between, low, NULL));
    else RAISES(MPI_ERR_OTHER, MPI_Intercomm_merge(between, low, &made));
    if (rank == failing) RAISES(MPI_ERR_ARG, MPI_Comm_split(between, -77, 0, &made));
    else RAISES(MPI_ERR_OTHER, MPI_Comm_split(between, 0, 0, &made));
    OK(MPI_Comm_group(between, &group));
    if (rank == failing) RAISES(MPI_ERR_GROUP, MPI_Comm_create(between, MPI_GROUP_NULL, &made));
    else RAISES(MPI_ERR_OTHER, MPI_Comm_create(between, group, &made));
    OK(MPI_Intercomm_merge(between, low, &made));
    check_next(made);
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&between));

    /* The same for MPI_Intercomm_create_from_groups, which needs no communicator. */
    MPI_Group other;
    int range[] = {low ? size / 2 : 0, low ? size - 1 : size / 2 - 1, 1};
    OK(MPI_Comm_group(comm, &world));
    OK(MPI_Group_range_incl(world, 1, &range, &other));
    for (int again = 0; again < 2; again++) {
        int fails = again == 0 && rank == failing;
        int code = MPI_Intercomm_create_from_groups(group, 0, other, 0, "tests/between", MPI_INFO_NULL,
                                                    MPI_ERRORS_RETURN, fails ? NULL : &between);
        CHECK((again == 0) == (code != MPI_SUCCESS));
        check_next(comm);
    }
    OK(MPI_Intercomm_merge(between, low, &made));
    check_next(made);
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&between));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&half));
}

/* One rank has no memory for the edges that another rank passes. No rank waits for the failing rank. */
static void check_memory(MPI_Comm comm)
{
    enum { EDGES = 4 << 20 };
    int last = size - 1, edges = rank == 0 ? EDGES : 0, degree = EDGES, *ends = NULL, n = rank == 0;
    struct rlimit old, now;
    MPI_Comm made;
    if (rank == 0) {
        ends = malloc(EDGES * sizeof *ends);
        CHECK(ends != NULL);
        for (int place = 0; place < edges; place++) ends[place] = last;
    }
    check_next(comm);
    if (rank == last) {
        long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
        fclose(file);
        CHECK(getrlimit(RLIMIT_AS, &old) == 0);
        now = old;
        now.rlim_cur = (rlim_t)pages * 4096 + (24 << 20);
        CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    }
    int zero = 0;
    int code = MPI_Dist_graph_create(comm, n, &zero, &degree, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), class = -1;
    if (rank == last) CHECK(setrlimit(RLIMIT_AS, &old) == 0);
    CHECK(code != MPI_SUCCESS);
    OK(MPI_Error_class(code, &class));
    CHECK(class == (rank == last ? MPI_ERR_NO_MEM : MPI_ERR_OTHER));
    check_next(comm);
    free(ends);
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size <= 64);
    for (int failing = 0; failing < size; failing++) {
        check_each(MPI_COMM_WORLD, failing);
        if (size > 1) check_between(MPI_COMM_WORLD, failing);
    }
    if (size > 1) check_memory(MPI_COMM_WORLD);
    OK(MPI_Finalize());
    return 0;
}
