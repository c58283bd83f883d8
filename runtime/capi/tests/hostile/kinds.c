/* The kinds of arguments: the valid value and the wrong values of each kind, and the error classes that
   the library may return for the wrong values. */
#define _GNU_SOURCE
#include "writing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- objects ---- */

enum which { COMM, GROUP, INFO, ERRHANDLER, TYPE, OP, FILE_, WIN, SESSION, MESSAGE, REQUEST, NONE };
enum state { LIVE, NULL_HANDLE, STALE, JUNK };

struct object {
    enum which which;
    enum state state;
    const char *label;
    word value;
};

static struct object objects[96];
static int objects_count;
static MPI_Datatype uncommitted, giant, vector;
static MPI_Comm live_comm, grid_comm, graph_comm, dist_comm;
static MPI_Group live_group;
static MPI_Info live_info;
static MPI_Session live_session;
static MPI_Errhandler live_errhandler;
static MPI_Datatype live_type;
static MPI_Win live_win;
static int live_commkey, stale_commkey, live_typekey, stale_typekey, live_winkey, stale_winkey, added_class;
static void *freed_memory;

/* Memory that is as large as an array with the largest count. Reading it returns zeros, and the system
   allocates no pages for it. */
static void *zeros;

static void add(enum which which, enum state state, const char *label, word value)
{
    objects[objects_count++] = (struct object){which, state, label, value};
}
#define ADD(which, state, handle) add(which, state, #handle, (word)(handle))

static void must(int code)
{
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "the objects of the test cannot be made\n");
        abort();
    }
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void reduction(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

void make_objects(void)
{
    zeros = mmap(NULL, 3ull << 34, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) abort();

    MPI_Comm stale_comm;
    MPI_Group stale_group;
    MPI_Info stale_info;
    MPI_Session stale_session;
    MPI_Errhandler stale_errhandler;
    MPI_Datatype stale_type;
    MPI_Request live_request, stale_request, ended_request;
    must(MPI_Comm_dup(MPI_COMM_WORLD, &live_comm));
    must(MPI_Comm_dup(MPI_COMM_WORLD, &stale_comm));
    ADD(COMM, STALE, stale_comm);
    must(MPI_Comm_free(&stale_comm));
    /* In each of these topologies, the rank is its own only neighbour: on both sides of the rank in the grid, and along
       one edge in the two graphs. */
    int one = 1, zero = 0;
    must(MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &grid_comm));
    must(MPI_Graph_create(MPI_COMM_SELF, 1, &one, &zero, 0, &graph_comm));
    must(MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0,
                                        &dist_comm));
    must(MPI_Comm_group(MPI_COMM_WORLD, &live_group));
    must(MPI_Comm_group(MPI_COMM_WORLD, &stale_group));
    ADD(GROUP, STALE, stale_group);
    must(MPI_Group_free(&stale_group));
    must(MPI_Info_create(&live_info));
    must(MPI_Info_set(live_info, "key", "value"));
    must(MPI_Info_create(&stale_info));
    ADD(INFO, STALE, stale_info);
    must(MPI_Info_free(&stale_info));
    must(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &live_session));
    must(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &stale_session));
    ADD(SESSION, STALE, stale_session);
    must(MPI_Session_finalize(&stale_session));
    must(MPI_Comm_create_errhandler(handler, &live_errhandler));
    must(MPI_Comm_create_errhandler(handler, &stale_errhandler));
    ADD(ERRHANDLER, STALE, stale_errhandler);
    must(MPI_Errhandler_free(&stale_errhandler));
    MPI_Op stale_op;
    must(MPI_Op_create(reduction, 1, &stale_op));
    ADD(OP, STALE, stale_op);
    must(MPI_Op_free(&stale_op));
    must(MPI_Type_contiguous(1, MPI_INT, &live_type));
    must(MPI_Type_commit(&live_type));
    must(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    must(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
    must(MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_INT, &giant));
    must(MPI_Type_commit(&giant));
    must(MPI_Type_contiguous(3, MPI_INT, &stale_type));
    ADD(TYPE, STALE, stale_type);
    must(MPI_Type_free(&stale_type));
    must(MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &live_request));
    must(MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &stale_request));
    ADD(REQUEST, STALE, stale_request);
    must(MPI_Request_free(&stale_request));
    must(MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &ended_request));
    ADD(REQUEST, STALE, ended_request);
    must(MPI_Wait(&ended_request, MPI_STATUS_IGNORE));
    must(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &live_commkey, NULL));
    must(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &stale_commkey, NULL));
    must(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &live_typekey, NULL));
    must(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &stale_typekey, NULL));
    int key = stale_commkey;
    must(MPI_Comm_free_keyval(&key));
    key = stale_typekey;
    must(MPI_Type_free_keyval(&key));
    must(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &live_winkey, NULL));
    must(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &stale_winkey, NULL));
    key = stale_winkey;
    must(MPI_Win_free_keyval(&key));
    /* A window of this process alone, which has locked it. */
    void *window_memory;
    MPI_Win stale_win;
    must(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window_memory, &live_win));
    must(MPI_Win_set_errhandler(live_win, MPI_ERRORS_RETURN));
    must(MPI_Win_lock_all(0, live_win));
    must(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &stale_win));
    ADD(WIN, STALE, stale_win);
    must(MPI_Win_free(&stale_win));
    must(MPI_Add_error_class(&added_class));
    must(MPI_Alloc_mem(100, MPI_INFO_NULL, &freed_memory));
    must(MPI_Free_mem(freed_memory));

    ADD(COMM, LIVE, live_comm);
    ADD(GROUP, LIVE, live_group);
    ADD(INFO, LIVE, live_info);
    ADD(ERRHANDLER, LIVE, live_errhandler);
    ADD(SESSION, LIVE, live_session);
    ADD(TYPE, LIVE, live_type);
    ADD(REQUEST, LIVE, live_request);
    ADD(WIN, LIVE, live_win);
    ADD(COMM, LIVE, MPI_COMM_WORLD);
    ADD(COMM, LIVE, MPI_COMM_SELF);
    ADD(GROUP, LIVE, MPI_GROUP_EMPTY);
    ADD(INFO, LIVE, MPI_INFO_ENV);
    ADD(ERRHANDLER, LIVE, MPI_ERRORS_RETURN);
    ADD(TYPE, LIVE, MPI_INT);
    ADD(TYPE, LIVE, MPI_DOUBLE_INT);
    ADD(OP, LIVE, MPI_SUM);
    ADD(MESSAGE, LIVE, MPI_MESSAGE_NO_PROC);
    ADD(COMM, NULL_HANDLE, MPI_COMM_NULL);
    ADD(GROUP, NULL_HANDLE, MPI_GROUP_NULL);
    ADD(INFO, NULL_HANDLE, MPI_INFO_NULL);
    ADD(ERRHANDLER, NULL_HANDLE, MPI_ERRHANDLER_NULL);
    ADD(TYPE, NULL_HANDLE, MPI_DATATYPE_NULL);
    ADD(OP, NULL_HANDLE, MPI_OP_NULL);
    ADD(FILE_, NULL_HANDLE, MPI_FILE_NULL);
    ADD(WIN, NULL_HANDLE, MPI_WIN_NULL);
    ADD(SESSION, NULL_HANDLE, MPI_SESSION_NULL);
    ADD(MESSAGE, NULL_HANDLE, MPI_MESSAGE_NULL);
    ADD(REQUEST, NULL_HANDLE, MPI_REQUEST_NULL);
    /* Wrong handles: numbers that are in no table, addresses, and valid handles with one bit changed. */
    ADD(NONE, JUNK, 0);
    ADD(NONE, JUNK, 1);
    ADD(NONE, JUNK, 0x3ff);
    ADD(NONE, JUNK, 0xdeadbeefcafebabe);
    ADD(NONE, JUNK, INTPTR_MAX);
    ADD(NONE, JUNK, INTPTR_MIN);
    ADD(NONE, JUNK, -1);
    ADD(NONE, JUNK, zeros);
    ADD(NONE, JUNK, objects);
    ADD(NONE, JUNK, (word)live_comm ^ ((word)1 << 32));
    ADD(NONE, JUNK, (word)live_group ^ ((word)1 << 63));
    ADD(NONE, JUNK, (word)live_info ^ ((word)1 << 22));
    ADD(NONE, JUNK, (word)live_errhandler ^ ((word)1 << 31));
    ADD(NONE, JUNK, (word)live_type ^ ((word)1 << 40));
    ADD(NONE, JUNK, (word)live_request ^ ((word)1 << 21));
    ADD(NONE, JUNK, (word)MPI_INT | (word)1 << 32);
    ADD(NONE, JUNK, (word)MPI_COMM_WORLD | (word)1 << 40);
}

/* Returns wrong handle number `number` for an argument that takes handles of kind `which`; null if there
   are fewer. */
static const struct object *wrong_object(enum which which, int null_is_fine, int number)
{
    for (int i = 0; i < objects_count; i++) {
        const struct object *object = &objects[i];
        if (object->which == which) {
            if (object->state == LIVE) continue;
            if (object->state == NULL_HANDLE && null_is_fine) continue;
        }
        if (--number == 0) return object;
    }
    return NULL;
}

static int handle(call *call, int at, int variant, enum which which, word valid, int class,
                  int null_is_fine)
{
    call->words[at] = valid;
    if (variant == 0) return 1;
    const struct object *object = wrong_object(which, null_is_fine, variant);
    return object != NULL && wrong(call, at, object->value, object->label, class, 0);
}

/* Writes a handle to the argument's area: for an argument that is the address of a handle, or an array of
   handles of which one is used. */
static int handle_at(call *call, int at, int variant, enum which which, word valid, int class,
                     int null_is_fine)
{
    word *target = (word *)area(call, at);
    target[0] = target[1] = valid;
    if (variant == 0) return 1;
    if (variant == 1) return wrong(call, at, 0, "null pointer", MPI_ERR_ARG, 0);
    const struct object *object = wrong_object(which, null_is_fine, variant - 1);
    if (object == NULL) return 0;
    target[0] = object->value;
    return wrong(call, at, (word)target, object->label, class, 0);
}

/* Returns whether the null handle is valid for this call, because it has a name. */
static int name_of_null(const call *call)
{
    return strstr(call->row->name, "_get_name") != NULL;
}

/* Returns whether the null handle is valid for this call, because it has an error handler. */
static int handler_of_null(const call *call)
{
    return strstr(call->row->name, "_errhandler") != NULL;
}

#define HANDLE(name, which, valid, class, null_is_fine) \
    KIND(name) { return handle(call, at, variant, which, (word)(valid), class, null_is_fine); }
#define HANDLE_AT(name, which, valid, class, null_is_fine) \
    KIND(name) { return handle_at(call, at, variant, which, (word)(valid), class, null_is_fine); }

HANDLE(comm, COMM, live_comm, MPI_ERR_COMM, name_of_null(call))
HANDLE(group, GROUP, live_group, MPI_ERR_GROUP, 0)
HANDLE(info, INFO, live_info, MPI_ERR_INFO, 0)
HANDLE(hints, INFO, MPI_INFO_NULL, MPI_ERR_INFO, 1)
HANDLE(errhandler, ERRHANDLER, MPI_ERRORS_RETURN, MPI_ERR_ERRHANDLER, 0)
HANDLE(anytype, TYPE, MPI_INT, MPI_ERR_TYPE, name_of_null(call))
HANDLE(anyop, OP, MPI_MINLOC, MPI_ERR_OP, 0)
HANDLE(file, FILE_, MPI_FILE_NULL, MPI_ERR_FILE, handler_of_null(call))
HANDLE(win, WIN, live_win, MPI_ERR_WIN, name_of_null(call))
HANDLE(win_op, OP, MPI_SUM, MPI_ERR_OP, 0)
HANDLE(session, SESSION, live_session, MPI_ERR_SESSION, 0)
HANDLE(message, MESSAGE, MPI_MESSAGE_NO_PROC, MPI_ERR_REQUEST, 0)
HANDLE(request, REQUEST, MPI_REQUEST_NULL, MPI_ERR_REQUEST, 1)
HANDLE(live_request, REQUEST, MPI_REQUEST_NULL, MPI_ERR_REQUEST, 0)
HANDLE_AT(infos, INFO, MPI_INFO_NULL, MPI_ERR_INFO, 1)
HANDLE_AT(file_at, FILE_, MPI_FILE_NULL, MPI_ERR_FILE, 0)
HANDLE_AT(type_at, TYPE, MPI_INT, MPI_ERR_TYPE, 0)
HANDLE_AT(types, TYPE, MPI_INT, MPI_ERR_TYPE, 0)
HANDLE_AT(anytypes, TYPE, MPI_INT, MPI_ERR_TYPE, 0)
HANDLE_AT(request_at, REQUEST, MPI_REQUEST_NULL, MPI_ERR_REQUEST, 1)
HANDLE_AT(live_request_at, REQUEST, MPI_REQUEST_NULL, MPI_ERR_REQUEST, 0)
HANDLE_AT(requests, REQUEST, MPI_REQUEST_NULL, MPI_ERR_REQUEST, 1)
HANDLE_AT(live_requests, REQUEST, MPI_REQUEST_NULL, MPI_ERR_REQUEST, 0)
HANDLE_AT(message_at, MESSAGE, MPI_MESSAGE_NO_PROC, MPI_ERR_REQUEST, 0)

/* Communicators with a topology. The error class for a communicator without a topology differs from the error class for
   a handle that belongs to no communicator. */
static int shaped(call *call, int at, int variant, MPI_Comm comm)
{
    if (variant == 1)
        return wrong(call, at, (word)live_comm, "no topology", MPI_ERR_TOPOLOGY, 0);
    return handle(call, at, variant == 0 ? 0 : variant - 1, COMM, (word)comm, MPI_ERR_COMM, 0);
}

KIND(grid_comm) { return shaped(call, at, variant, grid_comm); }
KIND(graph_comm) { return shaped(call, at, variant, graph_comm); }
KIND(dist_comm) { return shaped(call, at, variant, dist_comm); }

/* An info object that the call may change, and that has the key "key". */
KIND(own_info)
{
    if (variant == 0) must(MPI_Info_set(live_info, "key", "value"));
    if (variant == 1) return wrong(call, at, (word)MPI_INFO_ENV, "MPI_INFO_ENV", MPI_ERR_INFO, 0);
    return handle(call, at, variant == 0 ? 0 : variant - 1, INFO, (word)live_info, MPI_ERR_INFO, 0);
}

/* A committed datatype. */
KIND(type)
{
    if (variant == 1)
        return wrong(call, at, (word)uncommitted, "an uncommitted type", MPI_ERR_TYPE, 0);
    return handle(call, at, variant == 0 ? 0 : variant - 1, TYPE, (word)MPI_INT, MPI_ERR_TYPE, 0);
}

/* A datatype that has contents. */
KIND(vector)
{
    if (variant == 1)
        return wrong(call, at, (word)MPI_INT, "a type without contents", MPI_ERR_TYPE, 0);
    return handle(call, at, variant == 0 ? 0 : variant - 1, TYPE, (word)vector, MPI_ERR_TYPE, 0);
}

/* A reduction operation on integers. */
KIND(op)
{
    switch (variant) {
    case 1: return wrong(call, at, (word)MPI_REPLACE, "MPI_REPLACE", MPI_ERR_OP, 0);
    case 2: return wrong(call, at, (word)MPI_NO_OP, "MPI_NO_OP", MPI_ERR_OP, 0);
    case 3: return wrong(call, at, (word)MPI_MINLOC, "MPI_MINLOC of integers", MPI_ERR_OP, 0);
    }
    return handle(call, at, variant == 0 ? 0 : variant - 3, OP, (word)MPI_SUM, MPI_ERR_OP, 0);
}

#define FRESH(name, type, which, class, make)                                            \
    KIND(name)                                                                           \
    {                                                                                    \
        type fresh = 0;                                                                  \
        if (variant == 0) must(make);                                                    \
        return handle_at(call, at, variant, which, (word)fresh, class, 0);               \
    }

FRESH(fresh_comm, MPI_Comm, COMM, MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_WORLD, &fresh))
FRESH(fresh_group, MPI_Group, GROUP, MPI_ERR_GROUP, MPI_Comm_group(MPI_COMM_WORLD, &fresh))
FRESH(fresh_info, MPI_Info, INFO, MPI_ERR_INFO, MPI_Info_create(&fresh))
FRESH(fresh_errhandler, MPI_Errhandler, ERRHANDLER, MPI_ERR_ERRHANDLER,
      MPI_Comm_create_errhandler(handler, &fresh))
FRESH(fresh_session, MPI_Session, SESSION, MPI_ERR_SESSION,
      MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &fresh))
FRESH(fresh_win, MPI_Win, WIN, MPI_ERR_WIN, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &fresh))
FRESH(fresh_op, MPI_Op, OP, MPI_ERR_OP, MPI_Op_create(reduction, 0, &fresh))
FRESH(fresh_type, MPI_Datatype, TYPE, MPI_ERR_TYPE, MPI_Type_contiguous(2, MPI_INT, &fresh))

/* ---- attribute keys ---- */

static int commkey(call *call, int at, int variant)
{
    must(MPI_Comm_set_attr(live_comm, live_commkey, &live_commkey));
    call->words[at] = (word)live_commkey;
    if (variant == 1) return wrong(call, at, (word)stale_commkey, "stale", MPI_ERR_KEYVAL, 0);
    if (variant == 2) return wrong(call, at, (word)live_typekey, "of types", MPI_ERR_KEYVAL, 0);
    if (variant > 2) variant -= 2;
    return variant == 0 || WRONG_NUMBER(MPI_ERR_KEYVAL, 0, MPI_KEYVAL_INVALID, -1, 1, INT_MAX, INT_MIN);
}

KIND(any_commkey) { return commkey(call, at, variant); }

/* A key that the user may set. */
KIND(commkey)
{
    if (variant == 1) return wrong(call, at, (word)MPI_TAG_UB, "MPI_TAG_UB", MPI_ERR_KEYVAL, 0);
    return commkey(call, at, variant == 0 ? 0 : variant - 1);
}

KIND(typekey)
{
    must(MPI_Type_set_attr(MPI_INT, live_typekey, &live_typekey));
    call->words[at] = (word)live_typekey;
    if (variant == 1) return wrong(call, at, (word)stale_typekey, "stale", MPI_ERR_KEYVAL, 0);
    if (variant == 2) return wrong(call, at, (word)live_commkey, "of communicators", MPI_ERR_KEYVAL, 0);
    if (variant == 3) return wrong(call, at, (word)MPI_TAG_UB, "MPI_TAG_UB", MPI_ERR_KEYVAL, 0);
    if (variant > 3) variant -= 3;
    return variant == 0 || WRONG_NUMBER(MPI_ERR_KEYVAL, 0, MPI_KEYVAL_INVALID, -1, 1, INT_MAX, INT_MIN);
}

KIND(fresh_commkey)
{
    int fresh = 0;
    if (variant == 0)
        must(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &fresh, NULL));
    element(call, at, 0, fresh);
    return variant == 0 || WRONG_ARRAY(MPI_ERR_KEYVAL, 0, MPI_KEYVAL_INVALID, MPI_TAG_UB,
                                       live_typekey, stale_commkey, -1, INT_MAX, INT_MIN);
}

KIND(fresh_typekey)
{
    int fresh = 0;
    if (variant == 0)
        must(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &fresh, NULL));
    element(call, at, 0, fresh);
    return variant == 0 || WRONG_ARRAY(MPI_ERR_KEYVAL, 0, MPI_KEYVAL_INVALID, MPI_TAG_UB,
                                       live_commkey, stale_typekey, -1, INT_MAX, INT_MIN);
}

KIND(fresh_winkey)
{
    int fresh = 0;
    if (variant == 0) must(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &fresh, NULL));
    element(call, at, 0, fresh);
    return variant == 0 || WRONG_ARRAY(MPI_ERR_KEYVAL, 0, MPI_KEYVAL_INVALID, MPI_WIN_BASE,
                                       live_commkey, stale_winkey, -1, INT_MAX, INT_MIN);
}

static int winkey(call *call, int at, int variant)
{
    must(MPI_Win_set_attr(live_win, live_winkey, &live_winkey));
    call->words[at] = (word)live_winkey;
    if (variant == 1) return wrong(call, at, (word)stale_winkey, "stale", MPI_ERR_KEYVAL, 0);
    if (variant == 2) return wrong(call, at, (word)live_commkey, "of communicators", MPI_ERR_KEYVAL, 0);
    if (variant > 2) variant -= 2;
    return variant == 0 || WRONG_NUMBER(MPI_ERR_KEYVAL, 0, MPI_KEYVAL_INVALID, -1, 1, INT_MAX, INT_MIN);
}

KIND(any_winkey) { return winkey(call, at, variant); }

/* A key that the user may set. */
KIND(winkey)
{
    if (variant == 1) return wrong(call, at, (word)MPI_WIN_BASE, "MPI_WIN_BASE", MPI_ERR_KEYVAL, 0);
    return winkey(call, at, variant == 0 ? 0 : variant - 1);
}

/* ---- addresses ---- */

KIND(any)
{
    call->words[at] = 0;
    return variant == 0;
}

KIND(out)
{
    area(call, at);
    return variant == 0 || (variant == 1 && wrong(call, at, 0, "null pointer", MPI_ERR_ARG, 0));
}

KIND(ignorable)
{
    area(call, at);
    return variant == 0;
}

KIND(buffer)
{
    memset(area(call, at), 7, 64);
    switch (variant) {
    case 0: return 1;
    case 1: return wrong(call, at, 0, "null pointer", MPI_ERR_BUFFER, 0);
    case 2: return wrong(call, at, (word)MPI_UNWEIGHTED, "MPI_UNWEIGHTED", MPI_ERR_BUFFER, 0);
    case 3: return wrong(call, at, (word)MPI_BUFFER_AUTOMATIC, "MPI_BUFFER_AUTOMATIC", MPI_ERR_BUFFER, 0);
    case 4:
        return !call->row->collective &&
               wrong(call, at, (word)MPI_IN_PLACE, "MPI_IN_PLACE", MPI_ERR_BUFFER, 0);
    }
    return 0;
}

KIND(packed)
{
    memset(area(call, at), 7, 64);
    switch (variant) {
    case 0: return 1;
    case 1: return wrong(call, at, 0, "null pointer", MPI_ERR_ARG, MPI_ERR_BUFFER);
    case 2: return wrong(call, at, (word)MPI_IN_PLACE, "MPI_IN_PLACE", MPI_ERR_BUFFER, 0);
    case 3: return wrong(call, at, (word)MPI_UNWEIGHTED, "MPI_UNWEIGHTED", MPI_ERR_BUFFER, 0);
    }
    return 0;
}

KIND(function)
{
    call->words[at] = (word)handler;
    return variant == 0 || (variant == 1 && wrong(call, at, 0, "null pointer", MPI_ERR_ARG, 0));
}

KIND(status)
{
    memset(area(call, at), 0, sizeof(MPI_Status));
    return variant == 0 ||
           (variant == 1 && wrong(call, at, 0, "MPI_STATUS_IGNORE", MPI_ERR_ARG, 0));
}

/* Memory that MPI_Alloc_mem returned. The valid value is a null pointer, which a program may also free. */
KIND(memory)
{
    switch (variant) {
    case 0: return 1;
    case 1: return wrong(call, at, (word)call->areas[at], "other memory", MPI_ERR_BASE, 0);
    case 2: return wrong(call, at, (word)freed_memory, "freed memory", MPI_ERR_BASE, 0);
    case 3: return wrong(call, at, (word)-1, "no address", MPI_ERR_BASE, 0);
    }
    return 0;
}

KIND(attached)
{
    area(call, at);
    return variant == 0 ||
           (variant == 1 && wrong(call, at, 0, "null pointer", MPI_ERR_BUFFER, MPI_ERR_ARG));
}

/* ---- strings ---- */

static int text(call *call, int at, int variant, const char *valid, int class)
{
    strcpy((char *)area(call, at), valid);
    if (variant == 0) return 1;
    if (variant == 1) return wrong(call, at, 0, "null pointer", MPI_ERR_ARG, class);
    if (variant == 2) {
        memset(call->areas[at], 'a', AREA);
        return wrong(call, at, call->words[at], "without an end", class, 0);
    }
    return 0;
}

/* The name of an object may be too long, because the library truncates it. So this kind has no such wrong
   value. */
KIND(name) { return variant < 2 && text(call, at, variant, "a name", MPI_ERR_ARG); }
KIND(string) { return text(call, at, variant, "a name", MPI_ERR_ARG); }
KIND(filename) { return text(call, at, variant, "a name", MPI_ERR_BAD_FILE); }
KIND(port) { return text(call, at, variant, "a port", MPI_ERR_PORT); }
KIND(value) { return text(call, at, variant, "value", MPI_ERR_INFO_VALUE); }

/* An array with one string. */
KIND(command_list)
{
    static char command[] = "a command";
    char **target = (char **)area(call, at);
    target[0] = command;
    if (variant == 1) return wrong(call, at, 0, "null pointer", MPI_ERR_ARG, 0);
    if (variant == 2) {
        target[0] = NULL;
        return wrong(call, at, (word)target, "null string", MPI_ERR_ARG, 0);
    }
    return variant == 0;
}

KIND(key)
{
    if (variant == 3) {
        call->areas[at][0] = 0;
        return wrong(call, at, (word)call->areas[at], "empty", MPI_ERR_INFO_KEY, 0);
    }
    return text(call, at, variant, "key", MPI_ERR_INFO_KEY);
}

/* The name of a process set. */
KIND(set)
{
    if (variant == 3) {
        strcpy((char *)area(call, at), "mpi://MOON");
        return wrong(call, at, call->words[at], "no such set", MPI_ERR_ARG, 0);
    }
    return text(call, at, variant, "mpi://SELF", MPI_ERR_ARG);
}

KIND(present_key)
{
    if (variant == 4) {
        strcpy((char *)area(call, at), "absent");
        return wrong(call, at, call->words[at], "absent", MPI_ERR_INFO_NOKEY, 0);
    }
    return kind_key(call, at, variant);
}

KIND(representation)
{
    if (variant == 3) {
        strcpy((char *)area(call, at), "native");
        return wrong(call, at, call->words[at], "native", MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_DATAREP);
    }
    return text(call, at, variant, "external32", MPI_ERR_UNSUPPORTED_DATAREP);
}

/* ---- counts ---- */

/* Returns the position of the first argument whose kind is `one` or `other`; -1 if there is none. The
   search begins at `at`, and continues from 0 after the last argument. */
static int find(const call *call, int at, kind *one, kind *other)
{
    for (int i = 0; i < call->row->count; i++) {
        int place = (at + i) % call->row->count;
        kind *is = call->row->arguments[place].kind;
        if (is == one || is == other) return place;
    }
    return -1;
}

/* A count of elements of a datatype. */
KIND(count)
{
    /* With the first two counts, the number of bytes does not fit in 63 bits. The third count is tried
       only if the call has a buffer, which would then be larger than the memory can be. */
    static const long long huge[] = {1ll << 62, LLONG_MAX, 1ll << 60};
    call->words[at] = 1;
    if (variant == 0) return 1;
    if (WRONG_NUMBER(MPI_ERR_COUNT, 0, -1, INT_MIN, LLONG_MIN)) return 1;
    variant -= is_wide(call, at) ? 3 : 2;
    int numbers = !is_wide(call, at) ? 0 : find(call, at, kind_buffer, NULL) < 0 ? 2 : 3;
    int type = find(call, at, kind_type, kind_anytype);
    if (variant > numbers + (type >= 0)) return 0;
    if (variant > numbers) call->words[type] = (word)giant;
    wrong(call, at, variant > numbers ? INT_MAX : (word)huge[variant - 1],
          variant > numbers ? "INT_MAX of a giant type" : "huge", MPI_ERR_COUNT,
          MPI_ERR_VALUE_TOO_LARGE);
    /* Before the library computes the number of bytes, it may find that the buffer is too small, or that
       the operation is not defined on the giant datatype. */
    call->classes[2] = MPI_ERR_BUFFER;
    call->classes[3] = variant > numbers ? MPI_ERR_OP : 0;
    call->classes[4] = 0;
    return 1;
}

static int is_array(kind *kind)
{
    return kind == kind_requests || kind == kind_live_requests || kind == kind_ranks ||
           kind == kind_ranges || kind == kind_blocklengths || kind == kind_displs ||
           kind == kind_anytypes || kind == kind_sizes || kind == kind_starts ||
           kind == kind_distributions || kind == kind_distribution_arguments || kind == kind_grid ||
           kind == kind_cartesian_grid ||
           kind == kind_dims || kind == kind_index || kind == kind_weights;
}

/* Makes all arrays of the call begin at `address`. */
static void arrays_at(call *call, void *address)
{
    for (int i = 0; i < call->row->count; i++)
        if (is_array(call->row->arguments[i].kind)) call->words[i] = (word)address;
}

/* The number of entries of arrays that the call may also write. */
KIND(number)
{
    call->words[at] = 1;
    if (variant == 0) return 1;
    if (WRONG_NUMBER(MPI_ERR_ARG, MPI_ERR_COUNT, -1, INT_MIN, LLONG_MIN)) return 1;
    variant -= is_wide(call, at) ? 3 : 2;
    if (variant > 2) return 0;
    arrays_at(call, NULL);
    return wrong(call, at, variant == 1 ? 1 : INT_MAX, "null arrays", MPI_ERR_ARG, MPI_ERR_COUNT);
}

/* The number of entries of arrays that the call only reads. The largest count with an array of zeros is
   also an error, and the call must find it without much memory or time. */
KIND(length)
{
    static const long long huge[] = {INT_MAX, 1ll << 62, LLONG_MAX};
    int numbers = is_wide(call, at) ? 5 : 4;
    if (variant <= numbers) return kind_number(call, at, variant);
    variant -= numbers;
    if (variant > (is_wide(call, at) ? 3 : 1)) return 0;
    arrays_at(call, zeros);
    return wrong(call, at, (word)huge[variant - 1], "huge", MPI_ERR_COUNT, MPI_ERR_NO_MEM);
}

KIND(dimensions)
{
    static const long long huge[] = {INT_MAX};
    call->words[at] = 1;
    if (variant == 0) return 1;
    if (WRONG_NUMBER(MPI_ERR_ARG, MPI_ERR_DIMS, 0, -1, INT_MIN)) return 1;
    if (variant == 4) {
        arrays_at(call, zeros);
        return wrong(call, at, (word)huge[0], "huge", MPI_ERR_ARG, MPI_ERR_NO_MEM);
    }
    return 0;
}

ARRAY(counts, 1, MPI_ERR_COUNT, 0, -1, INT_MIN, LLONG_MIN)
ARRAY(displs, 0, MPI_ERR_ARG, 0, 0x5eed)
NUMBER(size, 64, MPI_ERR_ARG, MPI_ERR_NO_MEM, -1, LLONG_MIN, 1ll << 62, LLONG_MAX)
NUMBER(attached_size, 1024, MPI_ERR_ARG, 0, -1, INT_MIN, LLONG_MIN)
/* A count of a call that only computes a size. Every number that is not negative is valid. */
NUMBER(asked, 1, MPI_ERR_COUNT, 0, -1, INT_MIN, LLONG_MIN)
/* A count of basic elements. The datatype need not be committed. */
NUMBER(elements, 1, MPI_ERR_COUNT, 0, -1, INT_MIN, LLONG_MIN, 1ll << 62, LLONG_MAX)
NUMBER(blocklength, 1, MPI_ERR_ARG, MPI_ERR_COUNT, -1, INT_MIN, LLONG_MIN)
ARRAY(blocklengths, 1, MPI_ERR_ARG, MPI_ERR_COUNT, -1, INT_MIN, LLONG_MIN)

/* ---- windows ---- */

NUMBER(unit, 1, MPI_ERR_ARG, 0, 0, -1, INT_MIN, LLONG_MIN)
NUMBER(window_size, 64, MPI_ERR_SIZE, MPI_ERR_NO_MEM, -1, LLONG_MIN, 1ll << 62, LLONG_MAX)
NUMBER(target_disp, 0, MPI_ERR_DISP, MPI_ERR_RMA_RANGE, -1, 61, 64, LLONG_MIN, 1ll << 62, LLONG_MAX)
NUMBER(target_count, 1, MPI_ERR_COUNT, MPI_ERR_RMA_RANGE, -1, 17, INT_MAX, INT_MIN, LLONG_MIN, 1ll << 60)
NUMBER(lock_type, MPI_LOCK_SHARED, MPI_ERR_LOCKTYPE, 0, 0, -1, INT_MAX, INT_MIN)
NUMBER(assertion, 0, MPI_ERR_ASSERT, 0, 1, -1, 1 << 20, INT_MAX, INT_MIN)

/* ---- ranks and tags ---- */

NUMBER(root, 0, MPI_ERR_ROOT, 0, 1, -1, MPI_PROC_NULL, MPI_ROOT, INT_MAX, INT_MIN)
NUMBER(partitions, 1, MPI_ERR_ARG, 0, -1, INT_MIN)
NUMBER(dest, 0, MPI_ERR_RANK, 0, 1, -9, MPI_ANY_SOURCE, MPI_ROOT, INT_MAX, INT_MIN)
NUMBER(source, 0, MPI_ERR_RANK, 0, 1, -9, MPI_ROOT, INT_MAX, INT_MIN)
NUMBER(tag, 7, MPI_ERR_TAG, 0, -1, MPI_ANY_TAG, -9, INT_MIN)
NUMBER(anytag, 7, MPI_ERR_TAG, 0, -1, -9, INT_MIN)
ARRAY(ranks, 0, MPI_ERR_RANK, 0, 1, -1, INT_MAX, INT_MIN)
NUMBER(maxprocs, 1, MPI_ERR_ARG, 0, -1, INT_MIN)
NUMBER(commands, 1, MPI_ERR_ARG, 0, 0, -1, INT_MIN)
ARRAY(most, 1, MPI_ERR_ARG, 0, -1, INT_MIN)
NUMBER(color, 0, MPI_ERR_ARG, 0, -1, INT_MIN)
NUMBER(split_type, MPI_COMM_TYPE_SHARED, MPI_ERR_ARG, 0, -1, 99999, INT_MAX, INT_MIN)

KIND(ranges)
{
    static const int bad[][3] = {{0, 0, 0}, {0, 1, 1}, {-1, 0, 1}, {INT_MAX, INT_MAX, 1},
                                 {0, INT_MAX, 1}, {INT_MIN, INT_MAX, INT_MAX}, {0, INT_MIN, -1}};
    int *target = (int *)area(call, at);
    target[0] = target[1] = 0;
    target[2] = 1;
    if (variant == 0) return 1;
    if (variant == 1) return wrong(call, at, 0, "null pointer", MPI_ERR_ARG, 0);
    if (variant > 1 + (int)(sizeof bad / sizeof bad[0])) return 0;
    memcpy(target, bad[variant - 2], sizeof bad[0]);
    return wrong(call, at, (word)target, "a wrong range", MPI_ERR_RANK, MPI_ERR_ARG);
}

/* ---- layouts ---- */

ARRAY(sizes, 1, MPI_ERR_ARG, 0, 0, -1, INT_MIN, LLONG_MIN)
ARRAY(starts, 0, MPI_ERR_ARG, 0, 1, -1, INT_MAX, INT_MIN, LLONG_MAX, LLONG_MIN)
NUMBER(order, MPI_ORDER_C, MPI_ERR_ARG, 0, 0, -1, 99999, INT_MAX, INT_MIN)
NUMBER(grid_size, 1, MPI_ERR_ARG, 0, 0, -1, 2, INT_MAX, INT_MIN)
NUMBER(grid_rank, 0, MPI_ERR_ARG, MPI_ERR_RANK, 1, -1, INT_MAX, INT_MIN)
ARRAY(distributions, MPI_DISTRIBUTE_BLOCK, MPI_ERR_ARG, 0, 0, -1, 99999, INT_MAX, INT_MIN)
ARRAY(distribution_arguments, MPI_DISTRIBUTE_DFLT_DARG, MPI_ERR_ARG, 0, 0, -1, INT_MIN)
ARRAY(grid, 1, MPI_ERR_ARG, 0, 0, -1, 2, INT_MAX, INT_MIN)
/* MPI_Cart_create and MPI_Cart_map allow dimensions of 0. */
ARRAY(cartesian_grid, 1, MPI_ERR_ARG, 0, -1, 2, INT_MAX, INT_MIN)
NUMBER(room0, 0, MPI_ERR_ARG, 0, -1, INT_MIN, LLONG_MIN)
NUMBER(room1, 1, MPI_ERR_ARG, MPI_ERR_OTHER, 0, -1, INT_MIN, LLONG_MIN)
NUMBER(room3, 3, MPI_ERR_ARG, MPI_ERR_OTHER, 2, 0, -1, INT_MIN, LLONG_MIN)
NUMBER(digits, 6, MPI_ERR_ARG, 0, 1000, -5, INT_MAX, INT_MIN)
NUMBER(exponent, 30, MPI_ERR_ARG, 0, 100000, -5, INT_MAX, INT_MIN)
NUMBER(typeclass, MPI_TYPECLASS_INTEGER, MPI_ERR_ARG, 0, 0, -1, 99999, INT_MAX, INT_MIN)
NUMBER(typesize, 4, MPI_ERR_ARG, 0, 0, 3, -1, INT_MAX, INT_MIN)
NUMBER(nodes, 1, MPI_ERR_ARG, MPI_ERR_DIMS, 0, -1, INT_MIN)
ARRAY(dims, 0, MPI_ERR_DIMS, MPI_ERR_ARG, -1, 2, INT_MAX, INT_MIN)

/* ---- topologies ---- */

NUMBER(maxdims, 1, MPI_ERR_DIMS, 0, 0, -1, INT_MIN)
NUMBER(direction, 0, MPI_ERR_DIMS, 0, 1, -1, INT_MAX, INT_MIN)
ARRAY(index, 1, MPI_ERR_ARG, 0, -1, INT_MIN)
ARRAY(weights, 1, MPI_ERR_ARG, 0, -1, INT_MIN)
NUMBER(max_edges, 1, MPI_ERR_ARG, 0, -1, INT_MIN)

/* The size of a packed buffer that has room for one integer. */
KIND(room_for_one)
{
    call->words[at] = 4;
    if (variant == 1) return wrong(call, at, 3, "3 bytes", MPI_ERR_BUFFER, 0);
    if (variant == 2) return wrong(call, at, 0, "no bytes", MPI_ERR_BUFFER, 0);
    if (variant > 2) variant -= 2;
    return variant == 0 || WRONG_NUMBER(MPI_ERR_ARG, 0, -1, INT_MIN, LLONG_MIN);
}

KIND(position)
{
    element(call, at, 0, 0);
    if (variant == 2 || variant == 3) {
        /* At the first of these positions, one byte is missing in the buffer. The second is beyond its end. */
        element(call, at, 0, variant == 2 ? 1 : INT_MAX);
        if (variant == 2)
            return wrong(call, at, call->words[at], "beyond the room", MPI_ERR_BUFFER, 0);
        return wrong(call, at, call->words[at], "beyond the room", MPI_ERR_ARG, 0);
    }
    if (variant > 2) variant -= 2;
    return variant == 0 || WRONG_ARRAY(MPI_ERR_ARG, 0, -1, INT_MIN, LLONG_MIN);
}

/* ---- the rest ---- */

NUMBER(level, MPI_THREAD_MULTIPLE, MPI_ERR_ARG, 0, -1, 99999, INT_MAX, INT_MIN)
NUMBER(errorcode, MPI_ERR_ARG, MPI_ERR_ARG, 0, -1, 5000, INT_MAX, INT_MIN)
NUMBER(errorclass, added_class, MPI_ERR_ARG, 0, -1, 5000, INT_MAX, INT_MIN)
NUMBER(addedcode, added_class, MPI_ERR_ARG, 0, 0, MPI_ERR_TYPE, MPI_ERR_LASTCODE, -1, 5000, INT_MAX, INT_MIN)
NUMBER(text_length, 16, MPI_ERR_ARG, 0, -1, INT_MIN)
ARRAY(text_length_at, 16, MPI_ERR_ARG, 0, -1, INT_MIN)
NUMBER(set_number, 0, MPI_ERR_ARG, 0, 2, -1, INT_MAX, INT_MIN)
NUMBER(nth, 0, MPI_ERR_ARG, 0, 1, -1, INT_MAX, INT_MIN)
NUMBER(integer, 0, MPI_ERR_ARG, 0, 1, -1, 0x3ff, 0x10000000, 0x20000000, 0x5a5a5a5a, INT_MAX, INT_MIN)
NUMBER(logical_size, 4, MPI_ERR_ARG, 0, 0, 3, -1, 32, INT_MAX, INT_MIN)
