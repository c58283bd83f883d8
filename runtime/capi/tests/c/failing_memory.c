/* Lets allocations fail, in every kind of call: for every n the n-th allocation of the call, then the n-th and all that
   follow, and last all allocations while the calls before have used up the library's reserve. A call either succeeds
   and has the right effect, or returns MPI_ERR_NO_MEM. After each failure the library works on.

   The calls use MPI_COMM_SELF, so that no other rank has to be told of an error; failing_pairs.c has calls with another
   rank. With FAIL_EVERY_ALLOCATION in the environment, every n is tried; otherwise those up to 12, and then every
   seventh. An argument limits the test to the kinds of calls whose names contain the argument. */
#include "failing.h"

#include <stdint.h>
#include <unistd.h>

enum { N = 20, LONG = 40000 };

static const MPI_Comm self = MPI_COMM_SELF;
static MPI_Comm grid;
static MPI_Datatype column;
static MPI_Group group;
static MPI_Info info;
static MPI_Win win;
static MPI_File file;
static MPI_Op sum;
static int in[LONG], out[LONG], window[64], tag;
static MPI_Request requests[2 * N];
static char name[64];

static void add(void *a, void *b, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)b)[i] += ((int *)a)[i];
}

static int query(void *state, MPI_Status *status) { (void)state; return MPI_Status_set_elements(status, MPI_INT, 0); }
static int release(void *state) { (void)state; return 0; }
static int cancel(void *state, int done) { (void)state, (void)done; return 0; }
static void handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

/* Sends a message to this rank and packs a type. */
static void works(void)
{
    int sent = 7, got = 0, packed[4] = {0}, at = 0;
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, 0, 9, &got, 1, MPI_INT, 0, 9, self, MPI_STATUS_IGNORE));
    CHECK(got == 7);
    OK(MPI_Pack(in, 1, column, packed, sizeof packed, &at, self));
    CHECK(at == 12 && packed[0] == in[0] && packed[1] == in[2] && packed[2] == in[4]);
}

static int use_comm(MPI_Comm *comm)
{
    int mine = 3, all = 0;
    CHECK(*comm != MPI_COMM_NULL);
    OK(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN));
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, *comm));
    CHECK(all == 3);
    OK(MPI_Comm_free(comm));
    return 0;
}

static int use_type(MPI_Datatype *type)
{
    int size = 0, at = 0;
    OK(MPI_Type_commit(type));
    OK(MPI_Type_size(*type, &size));
    CHECK(size > 0);
    OK(MPI_Pack(in, 1, *type, out, sizeof out, &at, self));
    CHECK(at == size);
    OK(MPI_Type_free(type));
    return 0;
}

static int use_group(MPI_Group *made)
{
    int size = -1;
    OK(MPI_Group_size(*made, &size));
    CHECK(size == 1);
    OK(MPI_Group_free(made));
    return 0;
}

/* ---- communicators ---- */

#define COMM(kind, ...)                                  \
    static int kind(void)                                \
    {                                                    \
        MPI_Comm made = MPI_COMM_NULL;                   \
        TRY(__VA_ARGS__);                                \
        return use_comm(&made);                          \
    }

static const int one = 1, zero = 0, two = 2;
static const int index_[1] = {1};
COMM(comm_dup, MPI_Comm_dup(self, &made))
COMM(comm_dup_with_info, MPI_Comm_dup_with_info(self, info, &made))
COMM(comm_split, MPI_Comm_split(self, 1, 0, &made))
COMM(comm_split_type, MPI_Comm_split_type(self, MPI_COMM_TYPE_SHARED, 0, info, &made))
COMM(comm_create, MPI_Comm_create(self, group, &made))
COMM(comm_create_group, MPI_Comm_create_group(self, group, 4, &made))
COMM(comm_from_group, MPI_Comm_create_from_group(group, "failing", info, MPI_ERRORS_RETURN, &made))
COMM(cart_create, MPI_Cart_create(self, 1, &one, &one, 0, &made))
COMM(graph_create, MPI_Graph_create(self, 1, index_, &zero, 0, &made))
COMM(dist_graph, MPI_Dist_graph_create(self, 1, &zero, &one, &zero, MPI_UNWEIGHTED, info, 0, &made))
COMM(dist_graph_adjacent,
     MPI_Dist_graph_create_adjacent(self, 1, &zero, &one, 1, &zero, &two, info, 0, &made))
COMM(cart_sub, MPI_Cart_sub(grid, &one, &made))

static int comm_idup(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    TRY(MPI_Comm_idup(self, &made, requests));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    return use_comm(&made);
}

static int comm_set_name(void)
{
    int length = 0;
    snprintf(name, sizeof name, "name%d", tag++);
    TRY(MPI_Comm_set_name(grid, name));
    char back[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_get_name(grid, back, &length));
    CHECK(!strcmp(back, name));
    return 0;
}

static int comm_get_info(void)
{
    MPI_Info made;
    TRY(MPI_Comm_get_info(grid, &made));
    OK(MPI_Info_free(&made));
    return 0;
}

static int comm_set_info(void)
{
    TRY(MPI_Comm_set_info(grid, info));
    return 0;
}

/* ---- datatypes ---- */

#define TYPE(kind, ...)                                  \
    static int kind(void)                                \
    {                                                    \
        MPI_Datatype made = MPI_DATATYPE_NULL;           \
        TRY(__VA_ARGS__);                                \
        return use_type(&made);                          \
    }

static const int lengths[3] = {1, 2, 1}, starts[3] = {0, 3, 9}, sizes[2] = {4, 5}, part[2] = {2, 3};
static const MPI_Aint places[3] = {0, 12, 36};
static const MPI_Datatype types[3] = {MPI_INT, MPI_FLOAT, MPI_CHAR};
TYPE(type_contiguous, MPI_Type_contiguous(3, column, &made))
TYPE(type_vector, MPI_Type_vector(3, 1, 2, column, &made))
TYPE(type_hvector, MPI_Type_create_hvector(3, 1, 100, column, &made))
TYPE(type_indexed, MPI_Type_indexed(3, lengths, starts, MPI_INT, &made))
TYPE(type_hindexed, MPI_Type_create_hindexed(3, lengths, places, column, &made))
TYPE(type_indexed_block, MPI_Type_create_indexed_block(3, 2, starts, MPI_INT, &made))
TYPE(type_struct, MPI_Type_create_struct(3, lengths, places, types, &made))
TYPE(type_subarray, MPI_Type_create_subarray(2, sizes, part, (int[]){1, 1}, MPI_ORDER_C, MPI_INT, &made))
TYPE(type_darray, MPI_Type_create_darray(1, 0, 1, sizes, (int[]){MPI_DISTRIBUTE_BLOCK},
                                         (int[]){MPI_DISTRIBUTE_DFLT_DARG}, &one, MPI_ORDER_C, MPI_INT, &made))
TYPE(type_resized, MPI_Type_create_resized(column, 0, 64, &made))
TYPE(type_dup, MPI_Type_dup(column, &made))

static int type_commit(void)
{
    MPI_Datatype inner, made;
    OK(MPI_Type_create_hindexed(3, lengths, places, column, &inner));
    OK(MPI_Type_vector(3, 2, 5, inner, &made));
    OK(MPI_Type_free(&inner));
    TRY_OR(MPI_Type_commit(&made), OK(MPI_Type_free(&made)));
    return use_type(&made);
}

/* The plan of a struct with many members takes more memory than the reserve gives for one step. */
static int type_long(void)
{
    enum { MEMBERS = 3000 };
    static int ones[MEMBERS];
    static MPI_Aint at[MEMBERS];
    static MPI_Datatype members[MEMBERS];
    MPI_Datatype made;
    int end = 0;
    for (int i = 0; i < MEMBERS; i++) {
        ones[i] = 1, at[i] = 12 * i + i % 2 * 4;
        members[i] = i % 3 ? MPI_INT : MPI_SHORT;
    }
    OK(MPI_Type_create_struct(MEMBERS, ones, at, members, &made));
    OK(MPI_Type_commit(&made));
    TRY_OR(MPI_Pack(in, 1, made, out, sizeof out, &end, self), OK(MPI_Type_free(&made)));
    CHECK(end == 1000 * 10 && !memcmp((char *)out + 2, &in[4], sizeof *in));
    OK(MPI_Type_free(&made));
    return 0;
}

static int type_contents(void)
{
    int integers[3];
    MPI_Aint none[1];
    MPI_Datatype inner[1] = {MPI_DATATYPE_NULL};
    TRY(MPI_Type_get_contents(column, 3, 0, 1, integers, none, inner));
    CHECK(integers[0] == 3 && integers[1] == 1 && integers[2] == 2 && inner[0] == MPI_INT);
    return 0;
}

static int type_set_name(void)
{
    TRY(MPI_Type_set_name(column, "column"));
    return 0;
}

static int type_f90(void)
{
    MPI_Datatype made;
    TRY(MPI_Type_create_f90_integer(5, &made));
    return 0;
}

static int pack_long(void)
{
    /* Many elements, so that the library makes a kernel if it does so at once. */
    MPI_Datatype made;
    int at = 0;
    OK(MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &made));
    OK(MPI_Type_commit(&made));
    TRY_OR(MPI_Pack(in, 900, made, out, sizeof out, &at, self), OK(MPI_Type_free(&made)));
    CHECK(at == 900 * 16 && out[0] == in[0] && out[1] == in[3] && out[4] == in[10]);
    at = 0;
    TRY_OR(MPI_Unpack(out, sizeof out, &at, in, 900, made, self), OK(MPI_Type_free(&made)));
    OK(MPI_Type_free(&made));
    return 0;
}

/* Commits a type for which the library has made no kernel yet. With TYPEPACK_JIT=eager and TYPEPACK_KERNEL=kernel, it
   makes one. */
static int kernel(void)
{
    static int made_before;
    int n = made_before++, at = 0;
    int three[3] = {1 + n % 61, 1 + n / 61 % 59, 1 + n / 3599 % 53};
    const MPI_Aint here[3] = {0, 70, 150};
    MPI_Datatype inner, made;
    OK(MPI_Type_create_hindexed(3, three, here, MPI_BYTE, &inner));
    OK(MPI_Type_create_hvector(20, 1, 256, inner, &made));
    OK(MPI_Type_free(&inner));
    TRY_OR(MPI_Type_commit(&made), OK(MPI_Type_free(&made)));
    OK(MPI_Pack(in, 1, made, out, sizeof out, &at, self));
    CHECK(at == 20 * (three[0] + three[1] + three[2]));
    CHECK(!memcmp((char *)out + three[0], (char *)in + 70, (size_t)three[1]));
    OK(MPI_Type_free(&made));
    return 0;
}

static int pack_external(void)
{
    MPI_Aint at = 0;
    TRY(MPI_Pack_external("external32", in, 5, column, out, sizeof out, &at));
    CHECK(at == 60);
    return 0;
}

/* ---- groups, operations, information, attributes, errors ---- */

#define GROUP(kind, ...)                                 \
    static int kind(void)                                \
    {                                                    \
        MPI_Group made;                                  \
        TRY(__VA_ARGS__);                                \
        return use_group(&made);                         \
    }

static int range[1][3] = {{0, 0, 1}};
GROUP(comm_group, MPI_Comm_group(self, &made))
GROUP(group_incl, MPI_Group_incl(group, 1, &zero, &made))
GROUP(group_range, MPI_Group_range_incl(group, 1, range, &made))
GROUP(group_union, MPI_Group_union(group, MPI_GROUP_EMPTY, &made))

static int group_translate(void)
{
    int there = -1;
    TRY(MPI_Group_translate_ranks(group, 1, &zero, group, &there));
    CHECK(there == 0);
    return 0;
}

static int op_create(void)
{
    MPI_Op made;
    TRY(MPI_Op_create(add, 1, &made));
    OK(MPI_Op_free(&made));
    return 0;
}

static int reduce_local(void)
{
    int a[2] = {1, 2}, b[2] = {3, 4};
    TRY(MPI_Reduce_local(a, b, 2, MPI_INT, sum));
    CHECK(b[0] == 4 && b[1] == 6);
    return 0;
}

static int info_create(void)
{
    MPI_Info made;
    TRY(MPI_Info_create(&made));
    OK(MPI_Info_free(&made));
    return 0;
}

static int info_dup(void)
{
    MPI_Info made;
    TRY(MPI_Info_dup(info, &made));
    OK(MPI_Info_free(&made));
    return 0;
}

static int info_set(void)
{
    char value[64];
    int set = 0, room = sizeof value;
    snprintf(name, sizeof name, "key%d", tag++);
    TRY(MPI_Info_set(info, name, "a value that is longer than the others"));
    OK(MPI_Info_get_string(info, name, &room, value, &set));
    CHECK(set && !strcmp(value, "a value that is longer than the others"));
    OK(MPI_Info_delete(info, name));
    return 0;
}

static int info_get(void)
{
    char value[64] = "";
    int set = 0, room = sizeof value;
    TRY(MPI_Info_get_string(info, "failing", &room, value, &set));
    CHECK(set && !strcmp(value, "yes"));
    return 0;
}

static int errhandler(void)
{
    MPI_Errhandler made;
    TRY(MPI_Comm_create_errhandler(handle, &made));
    OK(MPI_Errhandler_free(&made));
    return 0;
}

static int keyval(void)
{
    int key;
    TRY(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_free_keyval(&key));
    return 0;
}

static int set_attr(void)
{
    int key, set = 0, *value = NULL;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    TRY_OR(MPI_Comm_set_attr(grid, key, in), OK(MPI_Comm_free_keyval(&key)));
    OK(MPI_Comm_get_attr(grid, key, &value, &set));
    CHECK(set && value == in);
    OK(MPI_Comm_delete_attr(grid, key));
    OK(MPI_Comm_free_keyval(&key));
    return 0;
}

static int error_class(void)
{
    int class;
    TRY(MPI_Add_error_class(&class));
    TRY_OR(MPI_Add_error_string(class, "failing"), OK(MPI_Remove_error_class(class)));
    OK(MPI_Remove_error_string(class));
    OK(MPI_Remove_error_class(class));
    return 0;
}

static int error_string(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    TRY(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(length > 0);
    return 0;
}

/* ---- messages ---- */

static void receive(int count, int with)
{
    memset(out, 0, sizeof out);
    OK(MPI_Recv(out, count, MPI_INT, 0, with, self, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, (size_t)count * sizeof *in));
}

#define SEND(kind, count, call)                          \
    static int kind(void)                                \
    {                                                    \
        int with = ++tag;                                \
        TRY(call);                                       \
        receive(count, with);                            \
        OK(MPI_Wait(requests, MPI_STATUS_IGNORE));       \
        return 0;                                        \
    }

SEND(isend_short, 2, MPI_Isend(in, 2, MPI_INT, 0, with, self, requests))
SEND(isend_eager, 500, MPI_Isend(in, 500, MPI_INT, 0, with, self, requests))
SEND(isend_long, LONG, MPI_Isend(in, LONG, MPI_INT, 0, with, self, requests))
SEND(issend, 5, MPI_Issend(in, 5, MPI_INT, 0, with, self, requests))
SEND(ibsend, 5, MPI_Ibsend(in, 5, MPI_INT, 0, with, self, requests))

static int irecv(void)
{
    int with = ++tag;
    memset(out, 0, sizeof out);
    TRY(MPI_Irecv(out, 3, MPI_INT, 0, with, self, requests));
    OK(MPI_Send(in, 3, MPI_INT, 0, with, self));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, 12));
    return 0;
}

static int send_recv(void)
{
    int with = ++tag;
    memset(out, 0, sizeof out);
    TRY(MPI_Sendrecv(in, 9, column, 0, with, out, 27, MPI_INT, 0, with, self, MPI_STATUS_IGNORE));
    CHECK(out[0] == in[0] && out[1] == in[2]);
    return 0;
}

static int send_recv_replace(void)
{
    int with = ++tag;
    TRY(MPI_Sendrecv_replace(in, 300, MPI_INT, 0, with, 0, with, self, MPI_STATUS_IGNORE));
    return 0;
}

static int persistent(void)
{
    int with = ++tag;
    TRY(MPI_Send_init(in, 4, MPI_INT, 0, with, self, requests));
    TRY_OR(MPI_Start(requests), OK(MPI_Request_free(requests)));
    receive(4, with);
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(requests));
    return 0;
}

static int matched(void)
{
    int with = ++tag;
    MPI_Message message;
    OK(MPI_Send(in, 4, MPI_INT, 0, with, self));
    TRY_OR(MPI_Mprobe(0, with, self, &message, MPI_STATUS_IGNORE), receive(4, with));
    OK(MPI_Mrecv(out, 4, MPI_INT, &message, MPI_STATUS_IGNORE));
    return 0;
}

static int wait_all(void)
{
    int with = ++tag;
    for (int i = 0; i < N; i++)
        OK(MPI_Irecv(&out[i], 1, MPI_INT, 0, with, self, &requests[i]));
    for (int i = 0; i < N; i++)
        OK(MPI_Isend(&in[i], 1, MPI_INT, 0, with, self, &requests[N + i]));
    TRY_OR(MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE),
           OK(MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE)));
    CHECK(!memcmp(in, out, N * sizeof *in));
    return 0;
}

static int generalized(void)
{
    TRY(MPI_Grequest_start(query, release, cancel, NULL, requests));
    OK(MPI_Grequest_complete(requests[0]));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    return 0;
}

/* ---- collective calls ---- */

#define COLL(kind, call)                                 \
    static int kind(void)                                \
    {                                                    \
        memset(out, 0, 40);                              \
        TRY(call);                                       \
        CHECK(!memcmp(in, out, 40));                     \
        return 0;                                        \
    }

#define STARTED(kind, call)                              \
    static int kind(void)                                \
    {                                                    \
        memset(out, 0, 40);                              \
        TRY(call);                                       \
        OK(MPI_Wait(requests, MPI_STATUS_IGNORE));       \
        CHECK(!memcmp(in, out, 40));                     \
        return 0;                                        \
    }

COLL(allreduce, MPI_Allreduce(in, out, 10, MPI_INT, sum, self))
COLL(gather, MPI_Gather(in, 10, MPI_INT, out, 10, MPI_INT, 0, self))
COLL(alltoall, MPI_Alltoall(in, 10, MPI_INT, out, 10, MPI_INT, self))
COLL(scan, MPI_Scan(in, out, 10, MPI_INT, MPI_MAX, self))
COLL(neighbor, MPI_Neighbor_allgather(in, 10, MPI_INT, out, 10, MPI_INT, grid))
STARTED(iallreduce, MPI_Iallreduce(in, out, 10, MPI_INT, sum, self, requests))
STARTED(iallgather, MPI_Iallgather(in, 10, MPI_INT, out, 10, MPI_INT, self, requests))

static int barrier(void)
{
    TRY(MPI_Barrier(self));
    TRY(MPI_Bcast(in, 10, column, 0, self));
    return 0;
}

static int reduce_init(void)
{
    memset(out, 0, 40);
    TRY(MPI_Allreduce_init(in, out, 10, MPI_INT, MPI_MIN, self, info, requests));
    TRY_OR(MPI_Start(requests), OK(MPI_Request_free(requests)));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(requests));
    CHECK(!memcmp(in, out, 40));
    return 0;
}

/* ---- memory, windows, files, sessions ---- */

static int alloc_mem(void)
{
    char *memory;
    TRY(MPI_Alloc_mem(10000, info, &memory));
    memset(memory, 1, 10000);
    OK(MPI_Free_mem(memory));
    return 0;
}

static int use_window(MPI_Win *made)
{
    int value = 5;
    OK(MPI_Win_set_errhandler(*made, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, *made));
    OK(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, *made));
    OK(MPI_Win_fence(0, *made));
    OK(MPI_Win_free(made));
    return 0;
}

static int win_create(void)
{
    MPI_Win made;
    static int memory[4];
    TRY(MPI_Win_create(memory, sizeof memory, 4, info, self, &made));
    use_window(&made);
    CHECK(memory[0] == 5);
    return 0;
}

static int win_allocate(void)
{
    MPI_Win made;
    int *memory;
    TRY(MPI_Win_allocate(4096, 4, info, self, &memory, &made));
    return use_window(&made);
}

static int win_dynamic(void)
{
    MPI_Win made;
    TRY(MPI_Win_create_dynamic(info, self, &made));
    OK(MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN));
    TRY_OR(MPI_Win_attach(made, out, sizeof out), OK(MPI_Win_free(&made)));
    OK(MPI_Win_detach(made, out));
    OK(MPI_Win_free(&made));
    return 0;
}

static int put(void)
{
    int value = ++tag;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    TRY_OR(MPI_Put(&value, 1, MPI_INT, 0, 3, 1, MPI_INT, win), OK(MPI_Win_unlock(0, win)));
    OK(MPI_Win_unlock(0, win));
    CHECK(window[3] == value);
    return 0;
}

static int get_accumulate(void)
{
    int add_one[3] = {1, 1, 1}, old[3], before = window[8];
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    TRY_OR(MPI_Get_accumulate(add_one, 3, MPI_INT, old, 3, MPI_INT, 0, 8, 3, MPI_INT, MPI_SUM, win),
           OK(MPI_Win_unlock(0, win)));
    OK(MPI_Win_unlock(0, win));
    CHECK(window[8] == before + 1 && old[0] == before);
    return 0;
}

static int rget(void)
{
    int got = -1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    TRY_OR(MPI_Rget(&got, 1, MPI_INT, 0, 3, 1, MPI_INT, win, requests), OK(MPI_Win_unlock(0, win)));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock(0, win));
    CHECK(got == window[3]);
    return 0;
}

static int file_open(void)
{
    MPI_File made;
    char path[80];
    snprintf(path, sizeof path, "failing_memory.%d", (int)getpid());
    TRY(MPI_File_open(self, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &made));
    OK(MPI_File_close(&made));
    return 0;
}

static int file_write(void)
{
    memset(out, 0, 40);
    TRY(MPI_File_write_at(file, 0, in, 10, MPI_INT, MPI_STATUS_IGNORE));
    TRY(MPI_File_read_at_all(file, 0, out, 10, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, 40));
    return 0;
}

static int file_write_gaps(void)
{
    memset(out, 0, 60);
    TRY(MPI_File_write_at_all(file, 64, in, 3, column, MPI_STATUS_IGNORE));
    TRY(MPI_File_read_at(file, 64, out, 3, column, MPI_STATUS_IGNORE));
    CHECK(out[0] == in[0] && out[2] == in[2] && out[4] == in[4]);
    return 0;
}

static int file_started(void)
{
    TRY(MPI_File_iwrite_at(file, 0, in, 10, MPI_INT, requests));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    TRY(MPI_File_iread_at_all(file, 0, out, 10, MPI_INT, requests));
    OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, 40));
    return 0;
}

static int file_view(void)
{
    TRY(MPI_File_set_view(file, 0, MPI_INT, column, "native", info));
    TRY_OR(MPI_File_write_at(file, 3, in, 9, MPI_INT, MPI_STATUS_IGNORE),
           OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info)));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
    return 0;
}

static int file_get_info(void)
{
    MPI_Info made;
    TRY(MPI_File_get_info(file, &made));
    OK(MPI_Info_free(&made));
    return 0;
}

static int session(void)
{
    MPI_Session made;
    MPI_Group all;
    TRY(MPI_Session_init(info, MPI_ERRORS_RETURN, &made));
    TRY_OR(MPI_Group_from_session_pset(made, "mpi://SELF", &all), OK(MPI_Session_finalize(&made)));
    use_group(&all);
    OK(MPI_Session_finalize(&made));
    return 0;
}

static const struct kind kinds[] = {
    KIND(comm_dup), KIND(comm_dup_with_info), KIND(comm_split), KIND(comm_split_type), KIND(comm_create),
    KIND(comm_create_group), KIND(comm_from_group), KIND(cart_create), KIND(graph_create), KIND(dist_graph),
    KIND(dist_graph_adjacent), KIND(cart_sub), KIND(comm_idup), KIND(comm_set_name), KIND(comm_get_info),
    KIND(comm_set_info), KIND(type_contiguous), KIND(type_vector), KIND(type_hvector), KIND(type_indexed),
    KIND(type_hindexed), KIND(type_indexed_block), KIND(type_struct), KIND(type_subarray), KIND(type_darray),
    KIND(type_resized), KIND(type_dup), KIND(type_commit), KIND(type_long), KIND(type_contents), KIND(type_set_name), KIND(type_f90),
    KIND(pack_long), KIND(kernel), KIND(pack_external), KIND(comm_group), KIND(group_incl), KIND(group_range),
    KIND(group_union),
    KIND(group_translate), KIND(op_create), KIND(reduce_local), KIND(info_create), KIND(info_dup), KIND(info_set),
    KIND(info_get), KIND(errhandler), KIND(keyval), KIND(set_attr), KIND(error_class), KIND(error_string),
    KIND(isend_short), KIND(isend_eager), KIND(isend_long), KIND(issend), KIND(ibsend), KIND(irecv), KIND(send_recv),
    KIND(send_recv_replace), KIND(persistent), KIND(matched), KIND(wait_all), KIND(generalized), KIND(allreduce),
    KIND(gather), KIND(alltoall), KIND(scan), KIND(neighbor), KIND(iallreduce), KIND(iallgather), KIND(barrier),
    KIND(reduce_init), KIND(alloc_mem), KIND(win_create), KIND(win_allocate), KIND(win_dynamic), KIND(put),
    KIND(get_accumulate), KIND(rget), KIND(file_open), KIND(file_write), KIND(file_write_gaps), KIND(file_started),
    KIND(file_view), KIND(file_get_info), KIND(session),
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static int calls, refused;

static void make(int kind)
{
    refused += fails(&kinds[kind]);
    works();
    calls++;
}

int main(int argc, char **argv)
{
    static char buffer[10000];
    const char *only = argc > 1 ? argv[1] : "";
    OK(MPI_Init(NULL, NULL));
    errors_return();
    for (int i = 0; i < LONG; i++)
        in[i] = i + 1;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Cart_create(self, 1, &one, &one, 0, &grid));
    OK(MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN));
    OK(MPI_Comm_group(self, &group));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "failing", "yes"));
    OK(MPI_Op_create(add, 1, &sum));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Win_create(window, sizeof window, 4, MPI_INFO_NULL, self, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    snprintf(name, sizeof name, "failing_memory_%d", (int)getpid());
    OK(MPI_File_open(self, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));

    each_allocation(kinds, KINDS, only, getenv("FAIL_EVERY_ALLOCATION") != NULL, make);
    /* Without memory, the library refuses calls before its reserve is used up. */
    for (int again = 0; again < 2; again++) {
        int before = refused;
        each_without_reserve(kinds, KINDS, only, make);
        CHECK(refused - before > 20 || *only);
        works();
    }
    check_that_allocations_come_here();
    printf("%d calls of %d kinds, %d returned MPI_ERR_NO_MEM\n", calls, KINDS, refused);
    OK(MPI_File_close(&file));
    OK(MPI_Win_free(&win));
    OK(MPI_Buffer_detach(&(char *){NULL}, &(int){0}));
    OK(MPI_Op_free(&sum));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&grid));
    OK(MPI_Type_free(&column));
    OK(MPI_Finalize());
    return 0;
}
