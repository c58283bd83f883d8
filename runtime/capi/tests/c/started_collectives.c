/* Tests nonblocking and persistent collective calls, and compares their results with those of the blocking
 * calls. The calls are made in the forms with and without large counts, many at once, and are started in
 * different orders. Also tests wrong arguments, and the nonblocking duplication of communicators. */
#include "check.h"

enum { LARGEST = 16, CALLS = 13, ROUNDS = 3, MANY = 8, ROOM = 6 * LARGEST };
enum way { RUN, START, START_C, KEEP, KEEP_C, WAYS };

static int rank, size;

/* The buffers and the root of a call. `make` overwrites the arrays of counts and frees the datatypes when
 * the call has returned. */
struct call {
    int which, root;
    int send[ROOM], recv[ROOM];
};

static void fill(struct call *call, int which, int root, int salt)
{
    call->which = which;
    call->root = root;
    for (int i = 0; i < ROOM; i++) {
        call->send[i] = salt + 1000 * rank + i;
        call->recv[i] = which == 1 ? call->send[i] : -1 - i;
    }
}

/* Makes a collective call in one of the ways: blocking, nonblocking or persistent. */
static void make(struct call *call, enum way way, MPI_Comm comm, MPI_Request *request)
{
    int counts[LARGEST], displs[LARGEST], bytes[LARGEST], root = call->root;
    MPI_Count wide_counts[LARGEST];
    MPI_Aint wide_displs[LARGEST], wide_bytes[LARGEST];
    MPI_Datatype type, types[LARGEST];
    MPI_Info none = MPI_INFO_NULL;
    int *send = call->send, *recv = call->recv;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    /* Rank r has r % 3 elements, which begin at element 3 r. */
    for (int r = 0; r < size; r++) {
        wide_counts[r] = counts[r] = r % 3;
        wide_displs[r] = displs[r] = 3 * r;
        /* MPI_Alltoallw takes displacements in bytes, and a datatype per rank. */
        bytes[r] = 3 * r * (int)sizeof(int);
        wide_bytes[r] = bytes[r];
        types[r] = MPI_INT;
    }
    int own = rank % 3;
    int pairs[LARGEST];
    MPI_Count wide_pairs[LARGEST];
    for (int r = 0; r < size; r++)
        wide_pairs[r] = pairs[r] = (r + rank) % 3;
    switch (call->which) {
#define WITH(NAME, INAME, ...)                                                     \
    if (way == RUN) OK(MPI_##NAME(__VA_ARGS__, comm));                             \
    else if (way == START) OK(MPI_##INAME(__VA_ARGS__, comm, request));            \
    else if (way == KEEP) OK(MPI_##NAME##_init(__VA_ARGS__, comm, none, request))
#define WITH_C(NAME, INAME, ...)                                                   \
    if (way == START_C) OK(MPI_##INAME##_c(__VA_ARGS__, comm, request));           \
    else if (way == KEEP_C) OK(MPI_##NAME##_init_c(__VA_ARGS__, comm, none, request))
    case 0:
        if (way == RUN) OK(MPI_Barrier(comm));
        else if (way == START || way == START_C) OK(MPI_Ibarrier(comm, request));
        else OK(MPI_Barrier_init(comm, none, request));
        break;
    case 1:
        WITH(Bcast, Ibcast, recv, 3, type, root);
        WITH_C(Bcast, Ibcast, recv, 3, type, root);
        break;
    case 2:
        WITH(Gather, Igather, send, 1, type, recv, 2, MPI_INT, root);
        WITH_C(Gather, Igather, send, 1, type, recv, 2, MPI_INT, root);
        break;
    case 3:
        WITH(Gatherv, Igatherv, send, own, MPI_INT, recv, counts, displs, MPI_INT, root);
        WITH_C(Gatherv, Igatherv, send, own, MPI_INT, recv, wide_counts, wide_displs, MPI_INT, root);
        break;
    case 4:
        WITH(Scatter, Iscatter, send, 2, MPI_INT, recv, 1, type, root);
        WITH_C(Scatter, Iscatter, send, 2, MPI_INT, recv, 1, type, root);
        break;
    case 5:
        WITH(Scatterv, Iscatterv, send, counts, displs, MPI_INT, recv, own, MPI_INT, root);
        WITH_C(Scatterv, Iscatterv, send, wide_counts, wide_displs, MPI_INT, recv, own, MPI_INT, root);
        break;
    case 6:
        WITH(Allgather, Iallgather, send, 2, MPI_INT, recv, 1, type);
        WITH_C(Allgather, Iallgather, send, 2, MPI_INT, recv, 1, type);
        break;
    case 7:
        WITH(Allgatherv, Iallgatherv, send, own, MPI_INT, recv, counts, displs, MPI_INT);
        WITH_C(Allgatherv, Iallgatherv, send, own, MPI_INT, recv, wide_counts, wide_displs, MPI_INT);
        break;
    case 8:
        WITH(Alltoall, Ialltoall, send, 1, type, recv, 2, MPI_INT);
        WITH_C(Alltoall, Ialltoall, send, 1, type, recv, 2, MPI_INT);
        break;
    case 9:
        WITH(Alltoallv, Ialltoallv, send, pairs, displs, MPI_INT, recv, pairs, displs, MPI_INT);
        WITH_C(Alltoallv, Ialltoallv, send, wide_pairs, wide_displs, MPI_INT, recv, wide_pairs,
               wide_displs, MPI_INT);
        break;
    case 10:
        WITH(Alltoallw, Ialltoallw, send, pairs, bytes, types, recv, pairs, bytes, types);
        WITH_C(Alltoallw, Ialltoallw, send, wide_pairs, wide_bytes, types, recv, wide_pairs, wide_bytes,
               types);
        break;
    case 11:
        WITH(Reduce, Ireduce, send, recv, 5, MPI_INT, MPI_SUM, root);
        WITH_C(Reduce, Ireduce, send, recv, 5, MPI_INT, MPI_SUM, root);
        break;
    case 12:
        WITH(Allreduce, Iallreduce, send, recv, 5, MPI_INT, MPI_MAX);
        WITH_C(Allreduce, Iallreduce, send, recv, 5, MPI_INT, MPI_MAX);
        break;
    }
    OK(MPI_Type_free(&type));
    memset(counts, -1, sizeof counts), memset(displs, -1, sizeof displs);
    memset(bytes, -1, sizeof bytes), memset(pairs, -1, sizeof pairs);
    memset(wide_counts, -1, sizeof wide_counts), memset(wide_displs, -1, sizeof wide_displs);
    memset(wide_bytes, -1, sizeof wide_bytes), memset(wide_pairs, -1, sizeof wide_pairs);
    memset(types, -1, sizeof types);
}

static void same(const struct call *got, const struct call *wanted)
{
    CHECK(memcmp(got->recv, wanted->recv, sizeof got->recv) == 0);
    CHECK(memcmp(got->send, wanted->send, sizeof got->send) == 0);
}

/* Checks each operation alone, one after the other. */
static void one_by_one(MPI_Comm comm)
{
    for (int which = 0; which < CALLS; which++)
        for (int way = START; way < WAYS; way++)
            for (int root = 0; root < size; root++) {
                struct call got, wanted;
                MPI_Request request = MPI_REQUEST_NULL;
                MPI_Status status;
                fill(&got, which, root, 7);
                make(&got, way, comm, &request);
                for (int round = 0; round < ROUNDS; round++) {
                    int kept = way == KEEP || way == KEEP_C;
                    fill(&wanted, which, root, 7 + 100 * round);
                    if (kept) {
                        fill(&got, which, root, 7 + 100 * round);
                        OK(MPI_Start(&request));
                    }
                    OK(MPI_Wait(&request, &status));
                    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
                    CHECK((request == MPI_REQUEST_NULL) == !kept);
                    make(&wanted, RUN, comm, NULL);
                    same(&got, &wanted);
                    if (!kept) break;
                }
                if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
                CHECK(request == MPI_REQUEST_NULL);
            }
}

/* Checks many operations at once. Each rank starts the persistent operations in a different order. */
static void at_once(MPI_Comm comm)
{
    static struct call got[MANY], wanted[MANY];
    MPI_Request requests[MANY];
    for (int first = 0; first < CALLS; first++)
        for (int way = START; way < WAYS; way++) {
            int kept = way == KEEP || way == KEEP_C;
            for (int i = 0; i < MANY; i++) {
                fill(&got[i], (first + i) % CALLS, i % size, 50 * i);
                make(&got[i], way, comm, &requests[i]);
            }
            for (int round = 0; round < (kept ? ROUNDS : 1); round++) {
                for (int i = 0; i < MANY && kept; i++) {
                    int at = (i * 3 + rank * (round + 1)) % MANY;
                    fill(&got[at], got[at].which, got[at].root, 50 * at + round);
                    if (round != 1) OK(MPI_Start(&requests[at]));
                }
                if (kept && round == 1) {
                    for (int i = 0; i < MANY; i++)
                        fill(&got[i], got[i].which, got[i].root, 50 * i + round);
                    OK(MPI_Startall(MANY, requests));
                }
                /* The rounds wait with MPI_Waitall, with MPI_Waitany or with MPI_Testall. */
                if (first % 3 == 0) {
                    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
                } else if (first % 3 == 1) {
                    for (int left = MANY, at; left > 0; left--) {
                        OK(MPI_Waitany(MANY, requests, &at, MPI_STATUS_IGNORE));
                        CHECK(at != MPI_UNDEFINED);
                    }
                } else {
                    int done = 0;
                    while (!done) OK(MPI_Testall(MANY, requests, &done, MPI_STATUSES_IGNORE));
                }
                for (int i = 0; i < MANY; i++) {
                    fill(&wanted[i], got[i].which, got[i].root, 50 * i + (kept ? round : 0));
                    make(&wanted[i], RUN, comm, NULL);
                    same(&got[i], &wanted[i]);
                }
            }
            for (int i = 0; i < MANY && kept; i++)
                OK(MPI_Request_free(&requests[i]));
        }
}

/* Checks that operations complete if their communicator is freed while they are pending. */
static void freed(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    int mine = rank, sum = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
    OK(MPI_Ibarrier(comm, &requests[1]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(sum == size * (size - 1) / 2);
}

static int copied, deleted;

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *result, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)result = (char *)value + 1;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void duplicates(void)
{
    MPI_Comm parent, dup[MANY];
    MPI_Request requests[MANY];
    MPI_Info hints;
    MPI_Errhandler handler;
    int key, flag, relation, before = deleted;
    char value[2], text[8], *got;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    OK(MPI_Comm_create_keyval(copy, delete, &key, NULL));
    OK(MPI_Comm_set_attr(parent, key, value));
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "mpi_assert_no_any_tag", "true"));
    copied = 0;
    for (int i = 0; i < MANY; i++) {
        if (i % 2) OK(MPI_Comm_idup_with_info(parent, hints, &dup[i], &requests[i]));
        else OK(MPI_Comm_idup(parent, &dup[i], &requests[i]));
        CHECK(dup[i] != MPI_COMM_NULL && requests[i] != MPI_REQUEST_NULL && copied == i + 1);
        OK(MPI_Comm_get_errhandler(dup[i], &handler));
        CHECK(handler == MPI_ERRORS_RETURN);
        OK(MPI_Errhandler_free(&handler));
        /* The program sets the error handler of the duplicate before the duplicate exists, as some
         * programs do. */
        OK(MPI_Comm_set_errhandler(dup[i], i % 3 ? MPI_ERRORS_RETURN : MPI_ERRORS_ABORT));
    }
    OK(MPI_Info_free(&hints));
    RAISES(MPI_ERR_REQUEST, MPI_Cancel(&requests[0]));
    RAISES(MPI_ERR_REQUEST, MPI_Request_free(&requests[1]));
    /* The duplicates get what the parent had when the calls were made, not what the program changes later. */
    OK(MPI_Comm_delete_attr(parent, key));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) {
        int mine = rank + i, sum = -1;
        OK(MPI_Comm_compare(dup[i], MPI_COMM_WORLD, &relation));
        CHECK(relation == MPI_CONGRUENT);
        OK(MPI_Comm_get_attr(dup[i], key, &got, &flag));
        CHECK(flag && got == value + 1);
        OK(MPI_Comm_get_errhandler(dup[i], &handler));
        CHECK(handler == (i % 3 ? MPI_ERRORS_RETURN : MPI_ERRORS_ABORT));
        OK(MPI_Errhandler_free(&handler));
        OK(MPI_Comm_get_info(dup[i], &hints));
        OK(MPI_Info_get(hints, "mpi_assert_no_any_tag", 7, text, &flag));
        CHECK(flag && strcmp(text, i % 2 ? "true" : "false") == 0);
        OK(MPI_Info_free(&hints));
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, dup[i]));
        CHECK(sum == size * (size - 1) / 2 + i * size);
        OK(MPI_Comm_free(&dup[i]));
    }
    CHECK(deleted - before == MANY + 1);
    OK(MPI_Comm_free_keyval(&key));
}

static void refused(MPI_Comm comm)
{
    int mine = rank, sum = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm none = MPI_COMM_NULL;
    /* The request of a nonblocking operation can be neither cancelled nor freed. That of a persistent
     * operation can never be cancelled, and cannot be freed while it is active. */
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    RAISES(MPI_ERR_REQUEST, MPI_Cancel(&request));
    RAISES(MPI_ERR_REQUEST, MPI_Request_free(&request));
    RAISES(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    RAISES(MPI_ERR_REQUEST, MPI_Cancel(&request));
    sum = -1;
    OK(MPI_Start(&request));
    RAISES(MPI_ERR_REQUEST, MPI_Start(&request));
    RAISES(MPI_ERR_REQUEST, MPI_Request_free(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == size * (size - 1) / 2);
    /* Waiting for a request that is not active succeeds at once. */
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    /* If an argument is wrong on all ranks, nothing is started, and the later calls of the ranks still
     * match. */
    sum = -1;
    RAISES(MPI_ERR_OP, MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_OP_NULL, comm, &request));
    RAISES(MPI_ERR_COUNT, MPI_Ibcast(&sum, -1, MPI_INT, 0, comm, &request));
    RAISES(MPI_ERR_TYPE, MPI_Ibcast(&sum, 1, MPI_DATATYPE_NULL, 0, comm, &request));
    RAISES(MPI_ERR_ROOT, MPI_Ibcast(&sum, 1, MPI_INT, size, comm, &request));
    RAISES(MPI_ERR_COMM, MPI_Ibarrier(MPI_COMM_NULL, &request));
    RAISES(MPI_ERR_ARG, MPI_Ibarrier(comm, NULL));
    RAISES(MPI_ERR_INFO, MPI_Barrier_init(comm, (MPI_Info)0x77777, &request));
    RAISES(MPI_ERR_COMM, MPI_Comm_idup(MPI_COMM_NULL, &none, &request));
    RAISES(MPI_ERR_ARG, MPI_Comm_idup(comm, NULL, &request));
    RAISES(MPI_ERR_INFO, MPI_Comm_idup_with_info(comm, (MPI_Info)0x77777, &none, &request));
    CHECK(request == MPI_REQUEST_NULL && none == MPI_COMM_NULL && sum == -1);
    /* Only one rank fails to make a persistent operation. The next operation of this rank must still match
     * those of the other ranks. */
    MPI_Request kept = MPI_REQUEST_NULL;
    int value = rank == 0 ? 17 : -1;
    if (rank == size - 1) {
        RAISES(MPI_ERR_COUNT, MPI_Bcast_init(&value, -1, MPI_INT, 0, comm, MPI_INFO_NULL, &kept));
        RAISES(MPI_ERR_INFO, MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, (MPI_Info)0x77777, &kept));
        RAISES(MPI_ERR_ARG, MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, NULL));
        CHECK(kept == MPI_REQUEST_NULL);
    } else
        for (int i = 0; i < 3; i++) {
            OK(MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &kept));
            OK(MPI_Request_free(&kept));
        }
    OK(MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &kept));
    OK(MPI_Start(&kept));
    OK(MPI_Wait(&kept, MPI_STATUS_IGNORE));
    CHECK(value == 17);
    OK(MPI_Request_free(&kept));
    /* If an argument is wrong on one rank, the later calls of this rank still match those of the other
     * ranks. */
    if (rank == size - 1)
        RAISES(MPI_ERR_TYPE, MPI_Ireduce(&mine, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, rank, comm, &request));
    else
        OK(MPI_Ireduce(&mine, &sum, 0, MPI_INT, MPI_SUM, size - 1, comm, &request));
    MPI_Request other;
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &other));
    OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    one_by_one(comm);
    at_once(comm);
    freed();
    duplicates();
    refused(comm);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
