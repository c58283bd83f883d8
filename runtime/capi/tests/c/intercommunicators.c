/* Tests intercommunicators: making, querying, duplicating, splitting and merging them, messages, collective calls
   in three ways, attributes, error handlers, and wrong arguments. */
#include "check.h"

static int world_rank, world_size;

/* The number of this rank's group (0 or 1), the rank in this group, and the sizes of this group and of the other
   one. */
static int side, mine, ours, theirs;

static int compared(MPI_Comm a, MPI_Comm b)
{
    int result = -1;
    OK(MPI_Comm_compare(a, b, &result));
    return result;
}

static int member(MPI_Group group, int world)
{
    MPI_Group all;
    int rank = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_translate_ranks(all, 1, &world, group, &rank));
    OK(MPI_Group_free(&all));
    return rank;
}

/* Returns the value that rank `rank` of group `group` sends as element `i`. */
static int value(int group, int rank, int i) { return 1000 * group + 10 * rank + i; }

/* Makes a call in three ways: once blocking, once nonblocking, and as a persistent operation that runs twice. */
#define EACH(run, start, init, prepare, check, ...)                                       \
    do {                                                                                  \
        MPI_Request request_;                                                             \
        prepare;                                                                          \
        OK(run(__VA_ARGS__));                                                             \
        check;                                                                            \
        prepare;                                                                          \
        OK(start(__VA_ARGS__, &request_));                                                \
        OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                       \
        check;                                                                            \
        OK(init(__VA_ARGS__, MPI_INFO_NULL, &request_));                                  \
        for (int round_ = 0; round_ < 2; round_++) {                                      \
            prepare;                                                                      \
            OK(MPI_Start(&request_));                                                     \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                   \
            check;                                                                        \
        }                                                                                 \
        OK(MPI_Request_free(&request_));                                                  \
    } while (0)

enum { N = 3, MOST = 16 };

static void messages(MPI_Comm inter)
{
    /* Each rank exchanges a message with each rank of the other group. */
    MPI_Request requests[2 * MOST];
    int in[MOST], out[MOST], flag;
    MPI_Status status;
    for (int rank = 0; rank < theirs; rank++) {
        out[rank] = value(side, mine, rank);
        OK(MPI_Irecv(&in[rank], 1, MPI_INT, rank, 5, inter, &requests[rank]));
        OK(MPI_Isend(&out[rank], 1, MPI_INT, rank, 5, inter, &requests[theirs + rank]));
    }
    OK(MPI_Waitall(2 * theirs, requests, MPI_STATUSES_IGNORE));
    for (int rank = 0; rank < theirs; rank++) CHECK(in[rank] == value(!side, rank, mine));
    /* The sources of statuses and probes are ranks of the remote group. */
    for (int rank = 0; rank < theirs; rank++)
        OK(MPI_Isend(&out[rank], 1, MPI_INT, rank, 6, inter, &requests[rank]));
    for (int i = 0; i < theirs; i++) {
        MPI_Message message;
        OK(MPI_Probe(MPI_ANY_SOURCE, 6, inter, &status));
        CHECK(status.MPI_SOURCE >= 0 && status.MPI_SOURCE < theirs);
        if (i % 2) {
            OK(MPI_Mprobe(status.MPI_SOURCE, 6, inter, &message, &status));
            OK(MPI_Mrecv(in, 1, MPI_INT, &message, &status));
        } else {
            OK(MPI_Recv(in, 1, MPI_INT, status.MPI_SOURCE, 6, inter, &status));
        }
        CHECK(in[0] == value(!side, status.MPI_SOURCE, mine));
    }
    OK(MPI_Waitall(theirs, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(inter));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    RAISES(MPI_ERR_RANK, MPI_Send(in, 1, MPI_INT, theirs, 0, inter));
    RAISES(MPI_ERR_RANK, MPI_Recv(in, 1, MPI_INT, theirs, 0, inter, MPI_STATUS_IGNORE));
}

static int cells[MOST * MOST], spare[MOST * MOST];

static void clear(void)
{
    for (int i = 0; i < MOST * MOST; i++) cells[i] = -1;
}

static void rooted(MPI_Comm inter, int group, int root)
{
    /* The root is rank `root` of group `group`. */
    int at_root = side == group && mine == root;
    int to = side != group ? root : at_root ? MPI_ROOT : MPI_PROC_NULL;
    int counts[MOST], places[MOST], sum = 0;
    int senders = side == group ? theirs : ours;
    for (int rank = 0; rank < senders; rank++) {
        counts[rank] = rank % 3;
        places[rank] = 4 * rank + 1;
    }
    if (side != group) senders = 0;

    EACH(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init,
         clear(); if (at_root) for (int i = 0; i < N; i++) cells[i] = value(group, root, i),
         for (int i = 0; i < N; i++)
             CHECK(cells[i] == (side != group || at_root ? value(group, root, i) : -1)),
         cells, N, MPI_INT, to, inter);

    for (int i = 0; i < N; i++) spare[i] = value(side, mine, i);
    EACH(MPI_Gather, MPI_Igather, MPI_Gather_init, clear(),
         for (int rank = 0; at_root && rank < theirs; rank++)
             for (int i = 0; i < N; i++) CHECK(cells[N * rank + i] == value(!side, rank, i));
         CHECK(cells[at_root ? N * theirs : 0] == -1),
         spare, N, MPI_INT, cells, N, MPI_INT, to, inter);
    EACH(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, clear(),
         for (int rank = 0; at_root && rank < theirs; rank++)
             for (int i = 0; i < 4; i++)
                 CHECK(cells[4 * rank + 1 + i] == (i < counts[rank] ? value(!side, rank, i) : -1)),
         spare, mine % 3, MPI_INT, cells, counts, places, MPI_INT, to, inter);

    for (int i = 0; i < MOST * MOST; i++) spare[i] = value(side, mine, i);
    EACH(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, clear(),
         for (int i = 0; i < N; i++)
             CHECK(cells[i] == (side == group ? -1 : value(group, root, N * mine + i))),
         spare, N, MPI_INT, cells, N, MPI_INT, to, inter);
    EACH(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, clear(),
         for (int i = 0; side != group && i < mine % 3; i++)
             CHECK(cells[i] == value(group, root, 4 * mine + 1 + i));
         CHECK(cells[side == group ? 0 : mine % 3] == -1),
         spare, counts, places, MPI_INT, cells, mine % 3, MPI_INT, to, inter);

    for (int rank = 0; rank < senders; rank++) sum += value(!side, rank, 0);
    EACH(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, clear(),
         for (int i = 0; i < N; i++) CHECK(cells[i] == (at_root ? sum + i * theirs : -1)),
         spare, cells, N, MPI_INT, MPI_SUM, to, inter);
}

static void everywhere(MPI_Comm inter)
{
    int counts[MOST], places[MOST], ones[MOST], bytes[MOST], sum = 0, most = 0;
    MPI_Datatype types[MOST];
    for (int rank = 0; rank < theirs; rank++) {
        counts[rank] = (rank + mine) % 3;
        places[rank] = 4 * rank + 1;
        bytes[rank] = 16 * rank + 4;
        ones[rank] = rank % 3;
        types[rank] = MPI_INT;
        sum += value(!side, rank, 0);
        most = value(!side, rank, 0) > most ? value(!side, rank, 0) : most;
    }
    for (int i = 0; i < MOST * MOST; i++) spare[i] = value(side, mine, i);
    {
        MPI_Request request;
        OK(MPI_Barrier(inter));
        OK(MPI_Ibarrier(inter, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Barrier_init(inter, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
    EACH(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, clear(),
         for (int rank = 0; rank < theirs; rank++)
             for (int i = 0; i < N; i++) CHECK(cells[N * rank + i] == value(!side, rank, i));
         CHECK(cells[N * theirs] == -1),
         spare, N, MPI_INT, cells, N, MPI_INT, inter);
    EACH(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, clear(),
         for (int rank = 0; rank < theirs; rank++)
             for (int i = 0; i < 3; i++)
                 CHECK(cells[4 * rank + 1 + i] == (i < rank % 3 ? value(!side, rank, i) : -1)),
         spare, mine % 3, MPI_INT, cells, ones, places, MPI_INT, inter);
    /* Only the ranks of group 1 have data; those of group 0 send nothing. */
    int here = side == 1 ? N : 0, there = N - here;
    EACH(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, clear(),
         for (int rank = 0; rank < theirs; rank++)
             for (int i = 0; i < there; i++) CHECK(cells[N * rank + i] == value(!side, rank, i));
         CHECK(cells[there * theirs] == -1),
         spare, here, MPI_INT, cells, there, MPI_INT, inter);
    EACH(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, clear(),
         for (int rank = 0; rank < theirs; rank++)
             for (int i = 0; i < N; i++) CHECK(cells[N * rank + i] == value(!side, rank, N * mine + i));
         CHECK(cells[N * theirs] == -1),
         spare, N, MPI_INT, cells, N, MPI_INT, inter);
    EACH(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, clear(),
         for (int rank = 0; rank < theirs; rank++)
             for (int i = 0; i < 3; i++)
                 CHECK(cells[4 * rank + 1 + i] ==
                       (i < counts[rank] ? value(!side, rank, 4 * mine + 1 + i) : -1)),
         spare, counts, places, MPI_INT, cells, counts, places, MPI_INT, inter);
    EACH(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, clear(),
         for (int rank = 0; rank < theirs; rank++)
             for (int i = 0; i < 3; i++)
                 CHECK(cells[4 * rank + 1 + i] ==
                       (i < counts[rank] ? value(!side, rank, 4 * mine + 1 + i) : -1)),
         spare, counts, bytes, types, cells, counts, bytes, types, inter);
    EACH(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, clear(),
         for (int i = 0; i < N; i++) CHECK(cells[i] == sum + i * theirs);
         CHECK(cells[N] == -1),
         spare, cells, N, MPI_INT, MPI_SUM, inter);
    EACH(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, clear(), CHECK(cells[0] == most),
         spare, cells, 1, MPI_INT, MPI_MAX, inter);
    EACH(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, clear(), CHECK(cells[0] == -1),
         spare, cells, 0, MPI_INT, MPI_SUM, inter);
    /* The ranks of this group get parts of the other group's result. Both results must be equally long; their
       length here is the product of the sizes of the groups. */
    EACH(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, clear(),
         for (int i = 0; i < theirs; i++) CHECK(cells[i] == sum + theirs * (mine * theirs + i));
         CHECK(cells[theirs] == -1),
         spare, cells, theirs, MPI_INT, MPI_SUM, inter);
    int shares[MOST] = {ours * theirs - (ours - 1)}, first = mine == 0 ? 0 : shares[0] + mine - 1;
    for (int rank = 1; rank < ours; rank++) shares[rank] = 1;
    EACH(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, clear(),
         for (int i = 0; i < shares[mine]; i++) CHECK(cells[i] == sum + theirs * (first + i));
         CHECK(cells[shares[mine]] == -1),
         spare, cells, shares, MPI_INT, MPI_SUM, inter);
}

/* Starts several operations, and waits for them in the reverse order. */
static void overlapping(MPI_Comm inter)
{
    MPI_Request requests[4];
    int word = side == 0 && mine == 0 ? 77 : -1, sum[1] = {-1}, other[1] = {-1}, one = 1;
    int root = side == 1 ? 0 : mine == 0 ? MPI_ROOT : MPI_PROC_NULL;
    OK(MPI_Iallreduce(&one, sum, 1, MPI_INT, MPI_SUM, inter, &requests[0]));
    OK(MPI_Ibcast(&word, 1, MPI_INT, root, inter, &requests[1]));
    OK(MPI_Ibarrier(inter, &requests[2]));
    OK(MPI_Iallreduce(&mine, other, 1, MPI_INT, MPI_MAX, inter, &requests[3]));
    for (int i = 3; i >= 0; i--) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    CHECK(sum[0] == theirs && other[0] == theirs - 1);
    if (side == 1) CHECK(word == 77);
}

static void refused(MPI_Comm inter)
{
    int in[MOST] = {0}, out[MOST];
    MPI_Comm made = MPI_COMM_SELF;
    MPI_File file;
    RAISES(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, theirs, inter));
    RAISES(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, MPI_ANY_SOURCE, inter));
    RAISES(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, inter));
    RAISES(MPI_ERR_BUFFER, MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, inter));
    RAISES(MPI_ERR_BUFFER, MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, inter));
    RAISES(MPI_ERR_BUFFER, MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0, inter));
    RAISES(MPI_ERR_COMM, MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, inter));
    RAISES(MPI_ERR_COMM, MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, inter));
    RAISES(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, inter));
    RAISES(MPI_ERR_COMM, MPI_Dist_graph_create_adjacent(inter, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                                        MPI_INFO_NULL, 0, &made));
    RAISES(MPI_ERR_COMM, MPI_Dist_graph_create(inter, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    RAISES(MPI_ERR_COMM, MPI_Comm_create_group(inter, MPI_GROUP_EMPTY, 0, &made));
    RAISES(MPI_ERR_COMM, MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 0, &made));
    RAISES(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD));
    RAISES(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, MPI_PROC_NULL, MPI_COMM_WORLD));
    RAISES(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &made));
    CHECK(made == MPI_COMM_SELF);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    RAISES(MPI_ERR_COMM, MPI_File_open(inter, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    /* The calls above have failed on all ranks. This barrier shows that later calls of the ranks still match. */
    OK(MPI_Barrier(inter));
}

/* Checks the order of the ranks in the merged communicator: first the ranks of the group that passed 0 as `high`. */
static void merged(MPI_Comm inter)
{
    for (int high = 0; high < 2; high++) {
        MPI_Comm all;
        int rank, size, first = high == side;
        OK(MPI_Intercomm_merge(inter, high == side ? 0 : 1, &all));
        OK(MPI_Comm_rank(all, &rank));
        OK(MPI_Comm_size(all, &size));
        CHECK(size == ours + theirs && rank == (first ? mine : theirs + mine));
        OK(MPI_Allreduce(&rank, &size, 1, MPI_INT, MPI_MAX, all));
        CHECK(size == ours + theirs - 1);
        OK(MPI_Comm_free(&all));
    }
    MPI_Comm all;
    int rank, inside;
    OK(MPI_Intercomm_merge(inter, 1, &all));
    OK(MPI_Comm_rank(all, &rank));
    CHECK(rank == mine || rank == theirs + mine);
    OK(MPI_Comm_test_inter(all, &inside));
    CHECK(!inside);
    OK(MPI_Comm_free(&all));
    /* If the ranks of a group pass different values of `high`, all ranks of both groups get an error. */
    if (ours > 1 || theirs > 1)
        RAISES(MPI_ERR_ARG, MPI_Intercomm_merge(inter, ours > 1 ? mine == 0 : side, &all));
}

static int copies, deletions;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *in, void *extra)
{
    (void)comm, (void)key, (void)extra;
    deletions += *(int *)in;
    return deletions == 1000 ? MPI_ERR_KEYVAL : MPI_SUCCESS;
}

static int calls;

static void count_calls(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    calls++;
}

static void duplicates(MPI_Comm inter)
{
    MPI_Comm dup, other, info_dup;
    MPI_Request request;
    MPI_Errhandler counting;
    int key, step = 1, length, flag;
    void *got;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_create_keyval(copy, delete, &key, NULL));
    OK(MPI_Comm_set_attr(inter, key, &step));
    OK(MPI_Comm_create_errhandler(count_calls, &counting));
    OK(MPI_Comm_set_errhandler(inter, counting));
    OK(MPI_Comm_set_name(inter, "between"));
    copies = deletions = calls = 0;
    OK(MPI_Comm_dup(inter, &dup));
    OK(MPI_Comm_idup(inter, &other, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_dup_with_info(inter, MPI_INFO_NULL, &info_dup));
    CHECK(copies == 3);
    CHECK(compared(inter, inter) == MPI_IDENT && compared(dup, inter) == MPI_CONGRUENT);
    CHECK(compared(other, dup) == MPI_CONGRUENT && compared(info_dup, other) == MPI_CONGRUENT);
    CHECK(compared(inter, MPI_COMM_WORLD) == MPI_UNEQUAL);
    RAISES(MPI_ERR_RANK, MPI_Send(NULL, 0, MPI_INT, -9, 0, dup));
    CHECK(calls == 1);
    OK(MPI_Comm_get_name(dup, name, &length));
    CHECK(length == 0);
    OK(MPI_Comm_get_name(inter, name, &length));
    CHECK(strcmp(name, "between") == 0);
    OK(MPI_Comm_get_attr(other, key, &got, &flag));
    CHECK(flag && got == &step);
    /* Messages of a duplicate do not match receives of the original. */
    int a = 1, b = 2, in[2] = {0, 0};
    if (mine < theirs) {
        MPI_Request sends[2];
        OK(MPI_Isend(&a, 1, MPI_INT, mine, 0, inter, &sends[0]));
        OK(MPI_Isend(&b, 1, MPI_INT, mine, 0, other, &sends[1]));
        OK(MPI_Recv(&in[1], 1, MPI_INT, mine, 0, other, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&in[0], 1, MPI_INT, mine, 0, inter, MPI_STATUS_IGNORE));
        OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
        CHECK(in[0] == 1 && in[1] == 2);
    }
    everywhere(dup);
    everywhere(other);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_disconnect(&other));
    CHECK(other == MPI_COMM_NULL && deletions == 2);
    /* If the delete function of an attribute fails, the communicator is not freed. */
    deletions = 999;
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_free(&info_dup));
    CHECK(info_dup != MPI_COMM_NULL && calls == 2);
    OK(MPI_Comm_disconnect(&info_dup));
    OK(MPI_Comm_delete_attr(inter, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&counting));
}

/* Splits the intercommunicator, and makes intercommunicators from parts of its groups. */
static void parts(MPI_Comm inter)
{
    MPI_Comm part;
    MPI_Group group, less;
    int rank, size, remote;
    /* A rank gets a communicator only if ranks of both groups pass its color. */
    OK(MPI_Comm_split(inter, mine % 2, -mine, &part));
    int here = (ours + 1 - mine % 2) / 2, there = (theirs + 1 - mine % 2) / 2;
    CHECK((part == MPI_COMM_NULL) == (there == 0));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_rank(part, &rank));
        OK(MPI_Comm_size(part, &size));
        OK(MPI_Comm_remote_size(part, &remote));
        CHECK(size == here && remote == there && rank == here - 1 - mine / 2);
        int sum = -1, one = 1;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part));
        CHECK(sum == there);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split(inter, side == 0 ? 0 : MPI_UNDEFINED, 0, &part));
    CHECK(part == MPI_COMM_NULL);
    RAISES(MPI_ERR_ARG, MPI_Comm_split(inter, -5, 0, &part));
    /* Makes an intercommunicator of the last ranks of both groups, and then one with an empty group. */
    int last = ours - 1;
    OK(MPI_Comm_group(inter, &group));
    OK(MPI_Group_incl(group, 1, &last, &less));
    OK(MPI_Comm_create(inter, less, &part));
    CHECK((part != MPI_COMM_NULL) == (mine == last));
    if (mine == last) {
        int in = -1;
        OK(MPI_Comm_remote_size(part, &remote));
        CHECK(remote == 1);
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, part, MPI_STATUS_IGNORE));
        CHECK(in == theirs - 1);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_create(inter, side == 0 ? group : MPI_GROUP_EMPTY, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Group_free(&less));
    OK(MPI_Comm_remote_group(inter, &less));
    RAISES(MPI_ERR_GROUP, MPI_Comm_create(inter, less, &part));
    OK(MPI_Barrier(inter));
    OK(MPI_Group_free(&less));
    OK(MPI_Group_free(&group));
}

static void all_of(MPI_Comm inter, MPI_Group remote_wanted)
{
    int flag, size, remote, result;
    MPI_Group group;
    OK(MPI_Comm_test_inter(inter, &flag));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(flag && size == ours && remote == theirs);
    OK(MPI_Comm_remote_group(inter, &group));
    OK(MPI_Group_compare(group, remote_wanted, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&group));
    messages(inter);
    everywhere(inter);
    for (int group = 0; group < 2; group++)
        for (int root = 0; root < (side == group ? ours : theirs); root++) rooted(inter, group, root);
    overlapping(inter);
    refused(inter);
    merged(inter);
    duplicates(inter);
    parts(inter);
}

/* Divides the world into two groups and tests the intercommunicators between them. `divide` returns the number of
   a rank's group. */
static void between(int (*divide)(int))
{
    MPI_Comm local, inter;
    MPI_Group group, world, remote;
    int members[MOST], count = 0, leaders[2] = {-1, -1};
    side = divide(world_rank);
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, -world_rank, &local));
    OK(MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(local, &mine));
    OK(MPI_Comm_size(local, &ours));
    theirs = world_size - ours;
    for (int rank = world_size - 1; rank >= 0; rank--) {
        leaders[divide(rank)] = rank;
        if (divide(rank) != side) members[count++] = rank;
    }
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, count, members, &remote));
    /* The leader of each group is its last rank. Only the leaders know the communicator between them. */
    int leads = leaders[side] == world_rank;
    OK(MPI_Intercomm_create(local, ours - 1, leads ? MPI_COMM_WORLD : MPI_COMM_NULL,
                            leads ? leaders[!side] : -77, 12, &inter));
    MPI_Errhandler returns;
    OK(MPI_Comm_get_errhandler(inter, &returns));
    CHECK(returns == MPI_ERRORS_RETURN);
    OK(MPI_Errhandler_free(&returns));
    all_of(inter, remote);
    MPI_Comm_free(&inter);
    /* Makes the same intercommunicator from the groups, without a communicator. */
    OK(MPI_Comm_group(local, &group));
    OK(MPI_Intercomm_create_from_groups(group, ours - 1, leads ? remote : MPI_GROUP_NULL,
                                        leads ? member(remote, leaders[!side]) : -3, "tests/between",
                                        MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
    all_of(inter, remote);
    OK(MPI_Comm_disconnect(&inter));
    /* If the leader's arguments do not name the leader of another group, all ranks of its group get an error. */
    int code = MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, world_size, 3, &inter), class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == (mine == 0 ? MPI_ERR_RANK : MPI_ERR_OTHER));
    code = MPI_Intercomm_create(local, 0, MPI_COMM_NULL, 0, 3, &inter);
    OK(MPI_Error_class(code, &class));
    CHECK(class == (mine == 0 ? MPI_ERR_COMM : MPI_ERR_OTHER));
    OK(MPI_Barrier(local));
    RAISES(MPI_ERR_RANK, MPI_Intercomm_create(local, ours, MPI_COMM_WORLD, 0, 3, &inter));
    RAISES(MPI_ERR_RANK, MPI_Intercomm_create(local, -1, MPI_COMM_WORLD, 0, 3, &inter));
    RAISES(MPI_ERR_TAG, MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 0, -1, &inter));
    code = MPI_Intercomm_create_from_groups(group, 0, MPI_GROUP_NULL, 0, "tests/null", MPI_INFO_NULL,
                                            MPI_ERRORS_RETURN, &inter);
    OK(MPI_Error_class(code, &class));
    CHECK(class == (mine == 0 ? MPI_ERR_GROUP : MPI_ERR_OTHER));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&remote));
    OK(MPI_Group_free(&world));
    OK(MPI_Comm_free(&local));
}

static int first_alone(int rank) { return rank != 0; }
static int odd(int rank) { return rank % 2; }
static int last_alone(int rank) { return rank != world_size - 1; }

/* Tries to make an intercommunicator whose two groups have a common member: rank 0 leads one group and is also named
   as the leader of the other one. */
static void overlap(void)
{
    MPI_Comm inter = MPI_COMM_SELF, dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    int code = MPI_Intercomm_create(dup, 0, MPI_COMM_WORLD, 0, 1, &inter), class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == (world_rank == 0 ? MPI_ERR_RANK : MPI_ERR_OTHER) && inter == MPI_COMM_SELF);
    OK(MPI_Comm_free(&dup));
}

/* Makes communicators from groups, without a parent communicator. */
static void from_group(void)
{
    MPI_Group world, some;
    MPI_Comm comm;
    int result, range[1][3] = {{world_size - 1, 0, -1}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, range, &some));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Comm_create_from_group(some, "tests/reversed", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Comm_rank(comm, &result));
        CHECK(result == world_size - 1 - world_rank);
        OK(MPI_Allreduce(&world_rank, &result, 1, MPI_INT, MPI_MAX, comm));
        CHECK(result == world_size - 1);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    CHECK(comm == MPI_COMM_NULL);
    if (world_size > 1) {
        int zero = 0;
        OK(MPI_Group_incl(world, 1, &zero, &some));
        if (world_rank == 0) {
            OK(MPI_Comm_create_from_group(some, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
            OK(MPI_Comm_free(&comm));
        } else {
            RAISES(MPI_ERR_GROUP,
                   MPI_Comm_create_from_group(some, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        }
        OK(MPI_Group_free(&some));
    }
    OK(MPI_Group_free(&world));
}

/* Tests that MPI_Comm_disconnect waits for pending messages: the request is complete afterwards, although its receive
   began late. */
static void disconnected(void)
{
    enum { LENGTH = 1 << 18 };
    static int data[LENGTH];
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    int most = world_size - 1;
    if (world_rank == 0) {
        for (int i = 0; i < LENGTH; i++) data[i] = i;
        OK(MPI_Isend(data, LENGTH, MPI_INT, most, 0, comm, &request));
    }
    if (world_rank == most && most > 0) {
        double start = MPI_Wtime();
        while (MPI_Wtime() - start < 0.05) continue;
        OK(MPI_Irecv(data, LENGTH, MPI_INT, 0, 0, comm, &request));
    }
    if (most > 0) {
        OK(MPI_Comm_disconnect(&comm));
        CHECK(comm == MPI_COMM_NULL);
        if (world_rank == most) CHECK(data[LENGTH - 1] == LENGTH - 1);
    } else {
        OK(MPI_Recv(data, LENGTH, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
        OK(MPI_Comm_disconnect(&comm));
    }
    int flag;
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    MPI_Comm parent = MPI_COMM_WORLD, comm = MPI_COMM_WORLD;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    RAISES(MPI_ERR_COMM, MPI_Comm_disconnect(&comm));
    disconnected();
    overlap();
    from_group();
    if (world_size > 1) {
        between(first_alone);
        between(odd);
        between(last_alone);
    }
    OK(MPI_Finalize());
    return 0;
}
