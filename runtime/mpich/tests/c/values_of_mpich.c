/* Constants, strings, callbacks, attributes, decoding: what has other values in MPICH. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)
#define GOOD(call) CHECK((call) == MPI_SUCCESS)

static MPI_Comm expected;
static int calls;

static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    CHECK(*type == MPI_INT);
    calls++;
    for (int i = 0; i < *length; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class;
    CHECK(*comm == expected);
    GOOD(MPI_Error_class(*code, &class));
    CHECK(class == MPI_ERR_RANK);
    calls++;
}

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *to, int *flag)
{
    CHECK(comm == expected && extra == (void *)&calls && key != MPI_KEYVAL_INVALID);
    *(void **)to = value;
    *flag = 1;
    calls++;
    return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    calls++;
    return MPI_ERR_OTHER;
}

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    GOOD(MPI_Status_set_elements(status, MPI_INT, 3));
    GOOD(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = MPI_ANY_TAG;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void callbacks(void)
{
    MPI_Op op;
    int rank, sum = 1, size, key, dup, null_copy, flag, *value;
    GOOD(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    GOOD(MPI_Comm_size(MPI_COMM_WORLD, &size));
    GOOD(MPI_Op_create(add, 1, &op));
    GOOD(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, op, MPI_COMM_WORLD));
    CHECK(sum == size && (size == 1 || calls > 0));
    GOOD(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);

    MPI_Errhandler errors;
    GOOD(MPI_Comm_dup(MPI_COMM_WORLD, &expected));
    GOOD(MPI_Comm_create_errhandler(handler, &errors));
    GOOD(MPI_Comm_set_errhandler(expected, errors));
    calls = 0;
    int code = MPI_Send(&sum, 1, MPI_INT, size + 9, 0, expected), class;
    GOOD(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_RANK && calls == 1);
    GOOD(MPI_Comm_call_errhandler(expected, MPI_ERR_RANK));
    CHECK(calls == 2);
    GOOD(MPI_Comm_set_errhandler(expected, MPI_ERRORS_RETURN));
    GOOD(MPI_Errhandler_free(&errors));
    CHECK(errors == MPI_ERRHANDLER_NULL);

    GOOD(MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, &calls));
    GOOD(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup, NULL));
    GOOD(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &null_copy, NULL));
    GOOD(MPI_Comm_set_attr(expected, key, &sum));
    GOOD(MPI_Comm_set_attr(expected, dup, &rank));
    GOOD(MPI_Comm_set_attr(expected, null_copy, &rank));
    calls = 0;
    MPI_Comm other;
    GOOD(MPI_Comm_dup(expected, &other));
    CHECK(calls == 1);
    GOOD(MPI_Comm_get_attr(other, key, &value, &flag));
    CHECK(flag && value == &sum);
    GOOD(MPI_Comm_get_attr(other, dup, &value, &flag));
    CHECK(flag && value == &rank);
    GOOD(MPI_Comm_get_attr(other, null_copy, &value, &flag));
    CHECK(!flag);
    code = MPI_Comm_delete_attr(expected, null_copy);
    GOOD(MPI_Error_class(code, &class));
    CHECK(code != MPI_SUCCESS && class == MPI_ERR_OTHER && calls == 2);
    GOOD(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    GOOD(MPI_Comm_free(&other));

    MPI_Request request;
    MPI_Status status;
    GOOD(MPI_Grequest_start(query, release, cancel, NULL, &request));
    GOOD(MPI_Grequest_complete(request));
    GOOD(MPI_Wait(&request, &status));
    int count;
    GOOD(MPI_Get_elements(&status, MPI_INT, &count));
    CHECK(count == 3 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
}

static void attributes(void)
{
    int *value, flag, class, code;
    void *base;
    GOOD(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    GOOD(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && *value == MPI_ANY_SOURCE);
    GOOD(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    GOOD(MPI_Add_error_class(&class));
    GOOD(MPI_Add_error_code(class, &code));
    GOOD(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value == code && code > MPI_ERR_LASTCODE);
    GOOD(MPI_Add_error_string(code, "my own"));
    char text[MPI_MAX_ERROR_STRING];
    int length, found;
    GOOD(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "my own") == 0 && length == 6);
    GOOD(MPI_Error_class(code, &found));
    CHECK(found == class);

    MPI_Win win;
    int *memory;
    GOOD(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    GOOD(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *value == MPI_WIN_FLAVOR_ALLOCATE);
    GOOD(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && (*value == MPI_WIN_UNIFIED || *value == MPI_WIN_SEPARATE));
    GOOD(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
    CHECK(flag && base == (void *)memory);
    GOOD(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag && *value == 4);
    GOOD(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    GOOD(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, win));
    GOOD(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    GOOD(MPI_Win_unlock(0, win));
    GOOD(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
}

static void decoding(void)
{
    int sizes[2] = {4, 6}, subsizes[2] = {2, 3}, starts[2] = {1, 1}, ni, na, nd, combiner;
    MPI_Datatype type, inner[8];
    GOOD(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type));
    GOOD(MPI_Type_commit(&type));
    GOOD(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_SUBARRAY && ni == 8 && nd == 1);
    int integers[40];
    MPI_Aint addresses[8];
    GOOD(MPI_Type_get_contents(type, 40, 8, 8, integers, addresses, inner));
    CHECK(integers[7] == MPI_ORDER_FORTRAN && inner[0] == MPI_DOUBLE && integers[0] == 2);
    GOOD(MPI_Type_free(&type));
    CHECK(type == MPI_DATATYPE_NULL);
    int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int psizes[2] = {1, 1};
    GOOD(MPI_Type_create_darray(1, 0, 2, sizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type));
    GOOD(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_DARRAY && ni == 12);
    GOOD(MPI_Type_get_contents(type, 40, 8, 8, integers, addresses, inner));
    CHECK(integers[5] == MPI_DISTRIBUTE_BLOCK && integers[6] == MPI_DISTRIBUTE_CYCLIC);
    CHECK(integers[7] == MPI_DISTRIBUTE_DFLT_DARG && integers[8] == 2 && integers[11] == MPI_ORDER_C);
    GOOD(MPI_Type_free(&type));
    GOOD(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
    GOOD(MPI_Type_size(type, &ni));
    CHECK(ni == 8);
}

static void strings_and_groups(void)
{
    char name[MPI_MAX_PROCESSOR_NAME + 8], key[MPI_MAX_INFO_KEY + 8];
    int length, level, ranks[2] = {MPI_PROC_NULL, 0}, other[2];
    memset(name, 'y', sizeof name);
    memset(key, 'y', sizeof key);
    GOOD(MPI_Get_processor_name(name, &length));
    CHECK(name[length] == 0 && length < MPI_MAX_PROCESSOR_NAME && name[MPI_MAX_PROCESSOR_NAME] == 'y');
    MPI_Info info;
    GOOD(MPI_Info_create(&info));
    GOOD(MPI_Info_set(info, "a key", "a value"));
    GOOD(MPI_Info_get_nthkey(info, 0, key));
    CHECK(strcmp(key, "a key") == 0 && key[MPI_MAX_INFO_KEY] == 'y');
    GOOD(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL);
    GOOD(MPI_Query_thread(&level));
    CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
    MPI_Group world;
    GOOD(MPI_Comm_group(MPI_COMM_WORLD, &world));
    GOOD(MPI_Group_translate_ranks(world, 2, ranks, MPI_GROUP_EMPTY, other));
    CHECK(other[0] == MPI_PROC_NULL && other[1] == MPI_UNDEFINED);
    GOOD(MPI_Group_free(&world));
    CHECK(world == MPI_GROUP_NULL);
    int major = 0, minor = 0;
    GOOD(MPI_Abi_get_version(&major, &minor));
    CHECK(major == -1 && minor == -1);
}

static void topologies(void)
{
    int size, rank, dims[1] = {0}, periods[1] = {0}, source, dest, kind;
    MPI_Comm line;
    GOOD(MPI_Comm_size(MPI_COMM_WORLD, &size));
    GOOD(MPI_Dims_create(size, 1, dims));
    GOOD(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line));
    GOOD(MPI_Topo_test(line, &kind));
    CHECK(kind == MPI_CART);
    GOOD(MPI_Comm_rank(line, &rank));
    GOOD(MPI_Cart_shift(line, 0, 1, &source, &dest));
    CHECK(source == (rank == 0 ? MPI_PROC_NULL : rank - 1) && dest == (rank == size - 1 ? MPI_PROC_NULL : rank + 1));
    /* The types of both neighbours. */
    int in[2] = {-5, -5}, out[2] = {rank, rank}, counts[2] = {1, 1};
    MPI_Aint places[2] = {0, sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    GOOD(MPI_Neighbor_alltoallw(out, counts, places, types, in, counts, places, types, line));
    CHECK(in[0] == (source == MPI_PROC_NULL ? -5 : source) && in[1] == (dest == MPI_PROC_NULL ? -5 : dest));
    GOOD(MPI_Comm_free(&line));
    MPI_Comm graph;
    int next = (rank + 1) % size, before = (rank + size - 1) % size, indegree, outdegree, weighted;
    GOOD(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                        MPI_INFO_NULL, 0, &graph));
    GOOD(MPI_Dist_graph_neighbors_count(graph, &indegree, &outdegree, &weighted));
    CHECK(indegree == 1 && outdegree == 1 && !weighted);
    GOOD(MPI_Topo_test(graph, &kind));
    CHECK(kind == MPI_DIST_GRAPH);
    GOOD(MPI_Comm_free(&graph));
    MPI_Comm shared;
    GOOD(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
    GOOD(MPI_Comm_free(&shared));
    GOOD(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &shared));
    CHECK(shared == MPI_COMM_NULL);
}

static void files(void)
{
    MPI_File file;
    MPI_Offset at;
    int mode, got = 0, word = 77;
    char name[64];
    snprintf(name, sizeof name, "mpich-values-%d", (int)MPI_Wtime());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int wanted = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    GOOD(MPI_File_open(MPI_COMM_WORLD, name, wanted, MPI_INFO_NULL, &file));
    GOOD(MPI_File_get_amode(file, &mode));
    CHECK(mode == wanted);
    GOOD(MPI_File_write_at_all(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    GOOD(MPI_File_seek(file, 0, MPI_SEEK_END));
    GOOD(MPI_File_get_position(file, &at));
    CHECK(at == sizeof word);
    GOOD(MPI_File_seek(file, 0, MPI_SEEK_SET));
    MPI_Status status;
    GOOD(MPI_File_read(file, &got, 1, MPI_INT, &status));
    CHECK(got == 77);
    CHECK(MPI_File_c2f(file) != 0 && MPI_File_f2c(MPI_File_c2f(file)) == file);
    GOOD(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    int code = MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), class;
    GOOD(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_NO_SUCH_FILE || class == MPI_ERR_BAD_FILE);
}

static int raised;
static char words[MPI_MAX_ERROR_STRING];

static void note(MPI_Comm *comm, int *code, ...)
{
    int length;
    (void)comm;
    raised++;
    GOOD(MPI_Error_string(*code, words, &length));
}

static void note_file(MPI_File *file, int *code, ...)
{
    int length;
    (void)file;
    raised++;
    GOOD(MPI_Error_string(*code, words, &length));
}

/* Each failed call raises one error, of its own name and with the values of the program. */
static void errors(void)
{
    MPI_Comm comm;
    MPI_Errhandler errors;
    int in[2], out[2] = {0, 0}, counts[2] = {1, 1}, class, code, size;
    MPI_Aint places[2] = {0, sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    GOOD(MPI_Comm_size(MPI_COMM_WORLD, &size));
    GOOD(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    GOOD(MPI_Comm_create_errhandler(note, &errors));
    GOOD(MPI_Comm_set_errhandler(comm, errors));
    raised = 0;
    code = MPI_Neighbor_alltoallw(out, counts, places, types, in, counts, places, types, comm);
    GOOD(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_TOPOLOGY && raised == 1 && strstr(words, "MPI_Neighbor_alltoallw: comm: "));
    code = MPI_Send(out, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm);
    CHECK(code != MPI_SUCCESS && raised == 2 && strstr(words, "MPI_Send: dest: -2 "));
    code = MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, -2, comm);
    CHECK(code != MPI_SUCCESS && raised == 3 && strstr(words, "MPI_Send: tag: -2 "));
    GOOD(MPI_Errhandler_free(&errors));
    GOOD(MPI_Comm_free(&comm));

    MPI_File file;
    MPI_Errhandler of_files;
    char name[64];
    snprintf(name, sizeof name, "mpich-errors-%d", (int)MPI_Wtime());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    GOOD(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    GOOD(MPI_File_create_errhandler(note_file, &of_files));
    GOOD(MPI_File_set_errhandler(file, of_files));
    GOOD(MPI_Errhandler_free(&of_files));
    /* In the standard ABI, this is MPI_DISPLACEMENT_CURRENT. */
    code = MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    CHECK(code != MPI_SUCCESS && raised == 4 && strstr(words, "MPI_File_set_view: disp: the displacement -1 "));
    GOOD(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    int provided;
    GOOD(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided));
    CHECK(provided >= MPI_THREAD_SERIALIZED && provided <= MPI_THREAD_MULTIPLE);
    callbacks();
    attributes();
    decoding();
    strings_and_groups();
    topologies();
    files();
    errors();
    return MPI_Finalize();
}
