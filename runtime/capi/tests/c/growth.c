/* Makes many of each object of the library, and fills each list of the library. `c.rs` runs this program under
   callgrind, which counts the instructions of each call of `measured`. Four times as many objects must not cost more
   than six times as many instructions.

   Without arguments, the program runs every case with a small and a four times larger number, and with both once more.
   It prints for each of these calls, in order, the name of the case. With arguments NAME N, it runs one case with the number N. */
#include "check.h"

#include <unistd.h>

/* The largest number of objects. */
#define MOST 100000

static MPI_Request requests[MOST];
static MPI_Status statuses[MOST];
static int indices[MOST], numbers[MOST];
static MPI_Comm comms[MOST];
static MPI_Datatype types[MOST];
static int values[MOST], other_values[MOST];
static char text[64];

static int copy_value(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)copied = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static void persistent_requests(int n)
{
    for (int i = 0; i < n; i++) {
        if (i % 2)
            OK(MPI_Send_init(&values[i], 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD, &requests[i]));
        else
            OK(MPI_Recv_init(&values[i], 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Startall(n, requests));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        OK(MPI_Request_free(&requests[i]));
}

/* Messages to this rank, with tags in ascending order or, if `back` is true, in descending order. */
static void messages(int n, int back)
{
    for (int i = 0; i < n / 2; i++)
        OK(MPI_Recv_init(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = n / 2; i < n; i++) {
        int tag = back ? n - 1 - i : i - n / 2;
        OK(MPI_Send_init(&values[i], 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Startall(n, requests));
    OK(MPI_Waitall(n, requests, statuses));
    for (int i = 0; i < n; i++)
        OK(MPI_Request_free(&requests[i]));
}

static void messages_in_order(int n) { messages(n, 0); }
static void messages_backwards(int n) { messages(n, 1); }

/* Receives of several communicators, so that the same tags differ by communicator only. */
static void messages_of_communicators(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[i]));
    for (int i = 0; i < n; i++)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 0, 1, comms[i], &requests[i]));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Send(&other_values[i], 1, MPI_INT, 0, 1, comms[i]));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_free(&comms[i]));
}

static void unexpected(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Isend(&other_values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = n - 1; i >= 0; i--) {
        int flag;
        OK(MPI_Iprobe(0, i, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
}

static void matched(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Isend(&other_values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = n - 1; i >= 0; i--) {
        MPI_Message message;
        OK(MPI_Mprobe(0, i, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        OK(MPI_Mrecv(&values[i], 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
}

static void receive_each(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = 0; i < n; i++)
        OK(MPI_Send(&other_values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD));
}

static void waitsome(int n)
{
    receive_each(n);
    for (int left = n, count; left > 0; left -= count)
        OK(MPI_Waitsome(n, requests, &count, indices, statuses));
}

static void testsome(int n)
{
    receive_each(n);
    for (int left = n, count; left > 0; left -= count)
        OK(MPI_Testsome(n, requests, &count, indices, statuses));
}

static void waitany(int n)
{
    receive_each(n);
    /* A call that gets all remaining requests reads all of them, so the calls get few requests each. */
    for (int i = 0, index; i < n; i += 4)
        for (int left = 4 < n - i ? 4 : n - i; left > 0; left--)
            OK(MPI_Waitany(4 < n - i ? 4 : n - i, &requests[i], &index, MPI_STATUS_IGNORE));
}

static void tests(int n)
{
    int flag;
    receive_each(n);
    OK(MPI_Request_get_status_all(n, requests, &flag, statuses));
    for (int i = n - 1; i >= 0; i--) {
        OK(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
        do
            OK(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
        while (!flag);
    }
}

static void cancelled_receives(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Cancel(&requests[i]));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
}

static void freed_requests(int n)
{
    for (int i = 0; i < n; i++) {
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Request_free(&requests[i]));
    }
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Send(&other_values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD));
}

static void collective_requests(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Iallreduce(&other_values[i], &values[i], 1, MPI_INT, MPI_SUM, MPI_COMM_SELF,
                          &requests[i]));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        OK(MPI_Bcast_init(&values[i], 1, MPI_INT, 0, MPI_COMM_SELF, MPI_INFO_NULL, &requests[i]));
    OK(MPI_Startall(n, requests));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        OK(MPI_Request_free(&requests[i]));
}

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    OK(MPI_Status_set_elements(status, MPI_BYTE, 0));
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int nothing_cancelled(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void generalized_requests(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Grequest_start(query, nothing, nothing_cancelled, NULL, &requests[i]));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Grequest_complete(requests[i]));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
}

static char space[MOST * (2 * sizeof(int) + MPI_BSEND_OVERHEAD)];

static void buffered_in(void *buffer, int size, int n)
{
    void *address;
    OK(MPI_Buffer_attach(buffer, size));
    for (int i = 0; i < n; i++)
        OK(MPI_Bsend(&other_values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++)
        OK(MPI_Recv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&address, &size));
}

static void buffered(int n) { buffered_in(space, n * (int)(2 * sizeof(int) + MPI_BSEND_OVERHEAD), n); }
static void buffered_automatically(int n) { buffered_in(MPI_BUFFER_AUTOMATIC, 0, n); }

static void buffers_of_communicators(int n)
{
    for (int i = 0; i < n; i++) {
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[i]));
        OK(MPI_Comm_attach_buffer(comms[i], &space[i * 32], 32));
    }
    for (int i = 0, size; i < n; i++) {
        void *address;
        OK(MPI_Comm_detach_buffer(comms[i], &address, &size));
        OK(MPI_Comm_free(&comms[i]));
    }
}

static MPI_Info info_of(int n)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "key %d", i);
        OK(MPI_Info_set(info, text, "value"));
    }
    return info;
}

static void info_keys(int n)
{
    MPI_Info info = info_of(n), other;
    char key[MPI_MAX_INFO_KEY + 1];
    int flag, length = sizeof text;
    OK(MPI_Info_dup(info, &other));
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        OK(MPI_Info_get_string(other, key, &length, text, &flag));
        length = sizeof text;
        OK(MPI_Info_get_valuelen(other, key, &length, &flag));
        OK(MPI_Info_set(other, key, "another value"));
        length = sizeof text;
    }
    OK(MPI_Info_free(&other));
    OK(MPI_Info_free(&info));
}

static void deleted_info_keys(int n)
{
    MPI_Info info = info_of(n);
    char key[MPI_MAX_INFO_KEY + 1];
    /* Every other key, so that there are holes. */
    for (int i = 0; i < n; i += 2) {
        snprintf(text, sizeof text, "key %d", i);
        OK(MPI_Info_delete(info, text));
    }
    /* The first one and the last one, until there is none. */
    for (int i = 1, left; i < n; i += 2) {
        OK(MPI_Info_get_nkeys(info, &left));
        OK(MPI_Info_get_nthkey(info, i % 4 == 1 ? 0 : left - 1, key));
        OK(MPI_Info_delete(info, key));
    }
    OK(MPI_Info_free(&info));
}

static void infos(int n)
{
    static MPI_Info all[MOST];
    for (int i = 0; i < n; i++)
        all[i] = info_of(1);
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Info_free(&all[i]));
}

static void use(MPI_Datatype type)
{
    int position = 0, size;
    static char packed[1 << 19], memory[1 << 20];
    OK(MPI_Type_size(type, &size));
    if ((size_t)size <= sizeof packed)
        OK(MPI_Pack(memory, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD));
}

static void free_types(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Type_free(&types[i]));
}

static void vectors(int n)
{
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_vector(2, 1, 2 + i % 100, MPI_INT, &types[i]));
        OK(MPI_Type_commit(&types[i]));
        use(types[i]);
    }
    free_types(n);
}

/* A struct of many members, which no loop describes. */
static void make_struct(int n, MPI_Datatype *type)
{
    static MPI_Aint places[MOST];
    static MPI_Datatype members[MOST];
    static int lengths[MOST];
    for (int i = 0; i < n; i++) {
        lengths[i] = 1 + i % 3;
        places[i] = 64L * i + i * 7 % 5 * 4;
        members[i] = i % 3 == 0 ? MPI_INT : i % 3 == 1 ? MPI_DOUBLE : MPI_CHAR;
    }
    OK(MPI_Type_create_struct(n, lengths, places, members, type));
}

static void struct_of_many(int n)
{
    make_struct(n, &types[0]);
    OK(MPI_Type_commit(&types[0]));
    use(types[0]);
    free_types(1);
}

/* Duplicates of one struct, each of which is used. */
static void duplicates_of_a_struct(int n)
{
    MPI_Datatype type;
    make_struct(n, &type);
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 100; i++) {
        int size;
        OK(MPI_Type_dup(type, &types[i]));
        OK(MPI_Pack_size(1, types[i], MPI_COMM_WORLD, &size));
    }
    free_types(100);
    OK(MPI_Type_free(&type));
}

/* Types over one struct of 1000 members. */
static void types_over_a_struct(int n)
{
    MPI_Datatype type;
    make_struct(1000, &type);
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_contiguous(2, type, &types[i]));
        OK(MPI_Type_commit(&types[i]));
    }
    free_types(n);
    OK(MPI_Type_free(&type));
}

static void chain_of_duplicates(int n)
{
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_dup(i ? types[i - 1] : MPI_INT, &types[i]));
        use(types[i]);
    }
    free_types(n);
}

/* Duplicates of a type that is not committed. */
static void chain_of_later_commits(int n)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &type));
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_dup(i ? types[i - 1] : type, &types[i]));
    }
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_commit(&types[i]));
        use(types[i]);
    }
    free_types(n);
    OK(MPI_Type_free(&type));
}

/* Each struct has one member more than the one before it, and each is committed. The last one is used. */
static void growing_struct(int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Datatype members[2] = {i ? types[i - 1] : MPI_INT, i % 2 ? MPI_INT : MPI_CHAR};
        MPI_Aint places[2] = {0, 12L * i + 8};
        OK(MPI_Type_create_struct(2, (int[]){1, 1}, places, members, &types[i]));
        OK(MPI_Type_commit(&types[i]));
    }
    use(types[n - 1]);
    free_types(n);
}

static void decoded_types(int n)
{
    for (int i = 0; i < n; i++) {
        int integers[4], counts[4];
        MPI_Aint addresses[1];
        MPI_Datatype inner;
        OK(MPI_Type_contiguous(2, i ? types[i - 1] : MPI_BYTE, &types[i]));
        if (i % 16 == 15) {
            OK(MPI_Type_free(&types[i]));
            OK(MPI_Type_dup(MPI_BYTE, &types[i]));
            continue;
        }
        OK(MPI_Type_get_envelope(types[i], &counts[0], &counts[1], &counts[2], &counts[3]));
        OK(MPI_Type_get_contents(types[i], counts[0], counts[1], counts[2], integers, addresses, &inner));
        if (i)
            OK(MPI_Type_free(&inner));
    }
    free_types(n);
}

static void attributes(int n)
{
    static int keys[MOST];
    MPI_Comm comm, copy;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    for (int i = 0, flag; i < n; i++) {
        void *value;
        OK(MPI_Comm_create_keyval(copy_value, MPI_COMM_NULL_DELETE_FN, &keys[i], NULL));
        OK(MPI_Comm_set_attr(comm, keys[i], &values[i]));
        OK(MPI_Comm_set_attr(comm, keys[i / 2], &values[i]));
        OK(MPI_Comm_get_attr(comm, keys[i / 3], &value, &flag));
    }
    OK(MPI_Comm_dup(comm, &copy));
    for (int i = 0; i < n; i += 2)
        OK(MPI_Comm_delete_attr(comm, keys[i]));
    OK(MPI_Comm_free(&comm));
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_free_keyval(&keys[i]));
    OK(MPI_Comm_free(&copy));
}

static void attributes_of_types(int n)
{
    static int keys[MOST];
    MPI_Datatype type, copy;
    OK(MPI_Type_dup(MPI_INT, &type));
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &keys[i], NULL));
        OK(MPI_Type_set_attr(type, keys[i], &values[i]));
    }
    OK(MPI_Type_dup(type, &copy));
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_free(&type));
    for (int i = 0; i < n; i++)
        OK(MPI_Type_free_keyval(&keys[i]));
}

static void error_codes(int n)
{
    static int codes[MOST], one_class;
    for (int i = 0; i < n; i++)
        OK(MPI_Add_error_class(&numbers[i]));
    OK(MPI_Add_error_class(&one_class));
    for (int i = 0, length; i < n; i++) {
        char string[MPI_MAX_ERROR_STRING];
        OK(MPI_Add_error_code(i % 2 ? one_class : numbers[i], &codes[i]));
        OK(MPI_Add_error_string(codes[i], "a string"));
        OK(MPI_Error_string(codes[i], string, &length));
        OK(MPI_Error_class(codes[i], &length));
        OK(MPI_Remove_error_string(codes[i]));
    }
    for (int i = 0; i < n; i++) {
        OK(MPI_Remove_error_code(codes[i]));
        OK(MPI_Remove_error_class(numbers[i]));
    }
    OK(MPI_Remove_error_class(one_class));
}

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void error_handlers(int n)
{
    static MPI_Errhandler all[MOST];
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    for (int i = 0; i < n; i++) {
        OK(MPI_Comm_create_errhandler(handle, &all[i]));
        OK(MPI_Comm_set_errhandler(comm, all[i]));
    }
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Errhandler_free(&all[i]));
    OK(MPI_Comm_free(&comm));
}

static void combine(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
}

static void operations(int n)
{
    static MPI_Op all[MOST];
    for (int i = 0; i < n; i++) {
        OK(MPI_Op_create(combine, 1, &all[i]));
        OK(MPI_Allreduce(&other_values[i], &values[i], 1, MPI_INT, all[i], MPI_COMM_SELF));
    }
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Op_free(&all[i]));
}

static void groups(int n)
{
    static MPI_Group all[MOST];
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int i = 0; i < n; i++) {
        OK(MPI_Group_incl(world, 1, (int[]){0}, &all[i]));
        numbers[i] = 0;
    }
    OK(MPI_Group_translate_ranks(world, n, numbers, all[0], indices));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Group_free(&all[i]));
    OK(MPI_Group_free(&world));
}

static void communicators(int n)
{
    MPI_Group group;
    OK(MPI_Comm_group(MPI_COMM_SELF, &group));
    for (int i = 0; i < n; i++) {
        switch (i % 4) {
        case 0: OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[i])); break;
        case 1: OK(MPI_Comm_create_group(MPI_COMM_SELF, group, i, &comms[i])); break;
        case 2: OK(MPI_Comm_split(MPI_COMM_SELF, 0, 0, &comms[i])); break;
        default:
            OK(MPI_Comm_idup(MPI_COMM_SELF, &comms[i], &requests[0]));
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        }
        OK(MPI_Barrier(comms[i]));
    }
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Group_free(&group));
}

static void started_duplicates(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_idup(MPI_COMM_SELF, &comms[i], &requests[i]));
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Comm_free(&comms[i]));
}

static void topology_edges(int n)
{
    MPI_Comm graph, edges;
    for (int i = 0; i < n; i++)
        numbers[i] = 0;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, n, numbers, MPI_UNWEIGHTED, n, numbers,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
    OK(MPI_Neighbor_alltoall(other_values, 1, MPI_INT, values, 1, MPI_INT, graph));
    OK(MPI_Comm_free(&graph));
    indices[0] = n;
    OK(MPI_Graph_create(MPI_COMM_SELF, 1, indices, numbers, 0, &edges));
    OK(MPI_Comm_free(&edges));
}

static void attached_memory(int n)
{
    static char memory[MOST * 64];
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win));
    for (int i = 0; i < n; i++)
        OK(MPI_Win_attach(win, &memory[i * 64], 32));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < n; i++) {
        MPI_Aint at;
        OK(MPI_Get_address(&memory[i * 64], &at));
        OK(MPI_Put(&values[i], 1, MPI_INT, 0, at, 1, MPI_INT, win));
    }
    OK(MPI_Win_unlock_all(win));
    for (int i = 0; i < n; i += 2)
        OK(MPI_Win_detach(win, &memory[i * 64]));
    for (int i = n - 1 - n % 2; i >= 0; i -= 2)
        OK(MPI_Win_detach(win, &memory[i * 64]));
    OK(MPI_Win_free(&win));
}

static void window_requests(int n)
{
    MPI_Win win;
    OK(MPI_Win_create(values, sizeof values, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < n; i++) {
        if (i % 2)
            OK(MPI_Rput(&other_values[i], 1, MPI_INT, 0, i, 1, MPI_INT, win, &requests[i]));
        else
            OK(MPI_Raccumulate(&other_values[i], 1, MPI_INT, 0, i, 1, MPI_INT, MPI_SUM, win,
                               &requests[i]));
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

/* Windows that exist at the same time, and one-sided calls with one datatype each. */
static void windows(int n)
{
    static MPI_Win all[MOST];
    for (int i = 0; i < n; i++) {
        OK(MPI_Win_create(values, sizeof values, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &all[i]));
        OK(MPI_Type_vector(2, 1, 2 + i % 100, MPI_INT, &types[i]));
        OK(MPI_Type_commit(&types[i]));
    }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, all[0]));
    for (int i = 0; i < n; i++)
        OK(MPI_Put(other_values, 1, types[i], 0, 0, 1, types[i], all[0]));
    OK(MPI_Win_unlock(0, all[0]));
    for (int i = 0; i < n; i++)
        OK(MPI_Win_free(&all[i]));
    free_types(n);
}

static void files(int n)
{
    static MPI_File all[MOST];
    char name[64];
    snprintf(name, sizeof name, "/tmp/typepack-growth.%ld", (long)getpid());
    for (int i = 0; i < n; i++) {
        MPI_Datatype etype, filetype;
        char representation[MPI_MAX_DATAREP_STRING];
        MPI_Offset at;
        OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &all[i]));
        OK(MPI_File_set_view(all[i], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        OK(MPI_File_get_view(all[i], &at, &etype, &filetype, representation));
        OK(MPI_File_iwrite_at(all[i], i, &values[i], 1, MPI_INT, &requests[i]));
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_File_close(&all[i]));
    CHECK(remove(name) == 0);
}

static void allocated_memory(int n)
{
    static void *all[MOST];
    for (int i = 0; i < n; i++)
        OK(MPI_Alloc_mem(64, MPI_INFO_NULL, &all[i]));
    for (int i = 0; i < n; i += 2)
        OK(MPI_Free_mem(all[i]));
    for (int i = n - 1 - n % 2; i >= 0; i -= 2)
        OK(MPI_Free_mem(all[i]));
}

static int extent(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    (void)type, (void)extra;
    *extent = 8;
    return MPI_SUCCESS;
}

static void representations(int n)
{
    static int made;
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "representation %d", made++);
        OK(MPI_Register_datarep(text, MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, NULL));
    }
}

static void sessions(int n)
{
    static MPI_Session all[MOST];
    for (int i = 0; i < n; i++)
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &all[i]));
    for (int i = n - 1; i >= 0; i--)
        OK(MPI_Session_finalize(&all[i]));
}

static void integers_of_handles(int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Type_dup(MPI_INT, &types[i]));
    for (int i = 0; i < n; i++)
        CHECK(MPI_Type_f2c(MPI_Type_c2f(types[i])) == types[i]);
    free_types(n);
}

static const struct {
    const char *name;
    void (*run)(int);
    int number;
} cases[] = {
#define CASE(name, number) {#name, name, number}
    CASE(persistent_requests, 500),
    CASE(messages_in_order, 500),
    CASE(messages_backwards, 500),
    CASE(messages_of_communicators, 100),
    CASE(unexpected, 250),
    CASE(matched, 250),
    CASE(waitsome, 500),
    CASE(testsome, 500),
    CASE(waitany, 500),
    CASE(tests, 500),
    CASE(cancelled_receives, 500),
    CASE(freed_requests, 500),
    CASE(collective_requests, 250),
    CASE(generalized_requests, 500),
    CASE(buffered, 500),
    CASE(buffered_automatically, 500),
    CASE(buffers_of_communicators, 100),
    CASE(info_keys, 250),
    CASE(deleted_info_keys, 500),
    CASE(infos, 500),
    CASE(vectors, 250),
    CASE(struct_of_many, 1000),
    CASE(duplicates_of_a_struct, 1000),
    CASE(types_over_a_struct, 100),
    CASE(chain_of_duplicates, 250),
    CASE(chain_of_later_commits, 250),
    CASE(growing_struct, 250),
    CASE(decoded_types, 250),
    CASE(attributes, 250),
    CASE(attributes_of_types, 250),
    CASE(error_codes, 250),
    CASE(error_handlers, 500),
    CASE(operations, 250),
    CASE(groups, 500),
    CASE(communicators, 100),
    CASE(started_duplicates, 100),
    CASE(topology_edges, 1000),
    CASE(attached_memory, 250),
    CASE(window_requests, 250),
    CASE(windows, 25),
    CASE(files, 25),
    CASE(allocated_memory, 250),
    CASE(representations, 250),
    CASE(sessions, 100),
    CASE(integers_of_handles, 500),
};

/* callgrind counts the instructions of each call of this function. */
__attribute__((noinline)) void measured(void (*run)(int), int n)
{
    run(n);
    /* This statement keeps the call above from becoming the last jump of this function. */
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name))
            continue;
        if (argc > 2) {
            measured(cases[i].run, atoi(argv[2]));
            continue;
        }
        /* What happens only once must not count. */
        cases[i].run(2);
        for (int call = 0; call < 4; call++) {
            measured(cases[i].run, call % 2 ? 4 * cases[i].number : cases[i].number);
            printf("%s\n", cases[i].name);
        }
    }
    OK(MPI_Finalize());
    return 0;
}
