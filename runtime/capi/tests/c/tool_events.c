/* Events of the tool interface: their kinds, their source, and the functions that are called for them; each event is
   compared with what the program does.

   The test runs this alone and with two and three ranks. */
#include "tools.h"

#include <pthread.h>
#include <sched.h>

enum { KINDS = 6 };

static struct {
    MPI_T_event_registration registration;
    int kind, elements, calls, freed;
    MPI_Count last;
    unsigned long values[4]; /* of the last event */
} seen[KINDS];

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                     void *data)
{
    int kind = *(int *)data, source = 77, one = 0;
    MPI_Count time = 0;
    unsigned char copy[32];
    CHECK(kind >= 0 && kind < KINDS && registration == seen[kind].registration && safety == MPI_T_CB_REQUIRE_NONE);
    DONE(MPI_T_event_get_timestamp(instance, &time));
    DONE(MPI_T_event_get_source(instance, &source));
    CHECK(source == 0 && time >= seen[kind].last);
    seen[kind].last = time;
    MPI_Datatype types[4];
    MPI_Aint places[4];
    int room = 4;
    DONE(MPI_T_event_get_info(kind, NULL, NULL, NULL, types, places, &room, NULL, NULL, NULL, NULL, NULL));
    CHECK(room == seen[kind].elements);
    DONE(MPI_T_event_copy(instance, copy));
    for (int i = 0; i < room; i++) {
        unsigned long value = 0;
        DONE(MPI_T_event_read(instance, i, &value));
        CHECK(memcmp(&value, copy + places[i], types[i] == MPI_INT ? sizeof(int) : sizeof value) == 0);
        seen[kind].values[i] = value;
    }
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_event_read(instance, room, &one));
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_event_read(instance, -1, &one));
    T(MPI_T_ERR_INVALID, MPI_T_event_read(instance, 0, NULL));
    T(MPI_T_ERR_INVALID, MPI_T_event_copy(instance, NULL));
    T(MPI_T_ERR_INVALID, MPI_T_event_get_timestamp(instance, NULL));
    seen[kind].calls++;
}

static void on_freed(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    int kind = *(int *)data;
    CHECK(registration == seen[kind].registration && safety == MPI_T_CB_REQUIRE_NONE);
    seen[kind].freed++;
}

static MPI_Count lost;

static void on_lost(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety,
                    void *data)
{
    int kind = *(int *)data;
    CHECK(registration == seen[kind].registration && source == 0 && safety == MPI_T_CB_REQUIRE_NONE && count > 0);
    lost += count;
}

static int event_of(const char *name)
{
    int at = -1;
    DONE(MPI_T_event_get_index(name, &at));
    CHECK(at >= 0 && at < KINDS);
    return at;
}

static void open_events(void)
{
    int num = 0, n = 0, length = 64, sum = 0, indices[KINDS];
    char name[64], desc[512];
    MPI_Count ticks = 0, most = 0, first = 0, second = 0;
    MPI_T_source_order order;
    MPI_Info info;
    MPI_T_event_registration registration;
    DONE(MPI_T_source_get_num(&num));
    CHECK(num == 1);
    DONE(MPI_T_source_get_info(0, name, &length, NULL, NULL, &order, &ticks, &most, &info));
    CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > 0 && length > 1);
    OK(MPI_Info_free(&info));
    DONE(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    DONE(MPI_T_source_get_timestamp(0, &first));
    DONE(MPI_T_source_get_timestamp(0, &second));
    CHECK(first > 0 && second >= first);
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(1, &first));
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    T(MPI_T_ERR_INVALID, MPI_T_source_get_timestamp(0, NULL));
    DONE(MPI_T_event_get_num(&num));
    CHECK(num == KINDS);
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_event_get_info(KINDS, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                    NULL, NULL));
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_event_handle_alloc(KINDS, NULL, MPI_INFO_NULL, &registration));
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &registration));
    T(MPI_T_ERR_INVALID, MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL));
    T(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("no such name", &n));
    DONE(MPI_T_category_get_num(&num));
    for (int i = 0; i < num; i++) {
        DONE(MPI_T_category_get_num_events(i, &n));
        DONE(MPI_T_category_get_events(i, KINDS, indices));
        for (int k = 0; k < n; k++) CHECK(indices[k] >= 0 && indices[k] < KINDS);
        sum += n;
    }
    CHECK(sum == KINDS);
    for (int i = 0; i < KINDS; i++) {
        int name_len = sizeof name, desc_len = sizeof desc, bind = 0, elements = 0, items = 0;
        MPI_T_enum names;
        DONE(MPI_T_event_get_info(i, name, &name_len, NULL, NULL, NULL, &elements, &names, NULL, desc, &desc_len,
                                  &bind));
        CHECK(elements >= 1 && elements <= 4 && bind == MPI_T_BIND_NO_OBJECT && name_len > 1 && desc_len > 1);
        CHECK(event_of(name) == i);
        DONE(MPI_T_enum_get_info(names, &items, NULL, NULL));
        CHECK(items == elements);
        seen[i].kind = i;
        seen[i].elements = elements;
        DONE(MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, &registration));
        seen[i].registration = registration;
        T(MPI_T_ERR_INVALID,
          MPI_T_event_register_callback(registration, (MPI_T_cb_safety)7, MPI_INFO_NULL, &seen[i].kind, on_event));
        T(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info));
        DONE(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &seen[i].kind,
                                           on_event));
        DONE(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info));
        OK(MPI_Info_get_nkeys(info, &n));
        CHECK(n == 0);
        OK(MPI_Info_free(&info));
        DONE(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
        DONE(MPI_T_event_handle_get_info(registration, &info));
        OK(MPI_Info_free(&info));
        DONE(MPI_T_event_handle_set_info(registration, MPI_INFO_NULL));
        DONE(MPI_T_event_set_dropped_handler(registration, on_lost));
    }
    MPI_T_event_registration none = (MPI_T_event_registration)0;
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(none, NULL, NULL));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_set_dropped_handler(none, on_lost));
    T(MPI_T_ERR_INVALID_HANDLE,
      MPI_T_event_register_callback(none, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_read((MPI_T_event_instance)0, 0, &n));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_copy((MPI_T_event_instance)0, desc));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_source((MPI_T_event_instance)0, &n));
}

/* The functions of events are called at the beginning of the next call. */
static void events(int rank, int size)
{
    const int matched = event_of("message_matched"), unexpected = event_of("message_unexpected"),
              protocol = event_of("protocol_chosen"), begun = event_of("wait_begun"), ended = event_of("wait_ended");
    int data = 1, got = 0, num, before[KINDS];
    MPI_Request request;
    MPI_Status status;
    DONE(MPI_T_event_get_num(&num));
    for (int i = 0; i < KINDS; i++) before[i] = seen[i].calls;
#define NEW(kind) (seen[kind].calls - before[kind])
    /* An unexpected message, and then its receive. */
    OK(MPI_Send(&data, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
    DONE(MPI_T_event_get_num(&num));
    CHECK(NEW(unexpected) == 1 && NEW(protocol) == 1 && NEW(matched) == 0);
    CHECK(seen[unexpected].values[1] == 5 && seen[unexpected].values[2] == sizeof data);
    CHECK(seen[protocol].values[3] == 5 && seen[protocol].values[0] == (unsigned long)rank);
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &status));
    DONE(MPI_T_event_get_num(&num));
    CHECK(NEW(matched) == 1 && seen[matched].values[1] == 5 && seen[matched].values[3] == 1);
    /* A receive that waits for its message. */
    OK(MPI_Irecv(&got, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &request));
    OK(MPI_Send(&data, 1, MPI_INT, 0, 6, MPI_COMM_SELF));
    OK(MPI_Wait(&request, &status));
    DONE(MPI_T_event_get_num(&num));
    CHECK(NEW(unexpected) == 1 && NEW(matched) == 2 && seen[matched].values[3] == 0 && NEW(protocol) == 2);
    /* No call has had to wait. */
    CHECK(NEW(begun) == 0 && NEW(ended) == 0);
    /* The messages below must not come while another rank counts its own. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size > 1 && rank < 2) {
        int other = 1 - rank;
        char text[100] = {0};
        for (int i = 0; i < KINDS; i++) before[i] = seen[i].calls;
        /* The messages of 100 bytes wait for their receives, because the eager limit is 64 bytes. */
        if (rank == 0) {
            OK(MPI_Recv(text, 100, MPI_BYTE, other, 8, MPI_COMM_WORLD, &status));
            OK(MPI_Send(text, 1, MPI_BYTE, other, 8, MPI_COMM_WORLD));
            OK(MPI_Send(text, 100, MPI_BYTE, other, 9, MPI_COMM_WORLD));
            OK(MPI_Recv(text, 100, MPI_BYTE, other, 9, MPI_COMM_WORLD, &status));
        } else {
            OK(MPI_Send(text, 1, MPI_BYTE, other, 8, MPI_COMM_WORLD));
            OK(MPI_Recv(text, 100, MPI_BYTE, other, 8, MPI_COMM_WORLD, &status));
            OK(MPI_Recv(text, 100, MPI_BYTE, other, 9, MPI_COMM_WORLD, &status));
            OK(MPI_Send(text, 100, MPI_BYTE, other, 9, MPI_COMM_WORLD));
        }
        DONE(MPI_T_event_get_num(&num));
        CHECK(NEW(matched) == 2 && NEW(protocol) == 2);
        CHECK(seen[matched].values[0] == (unsigned long)other && seen[matched].values[1] == 9);
        CHECK(seen[matched].values[2] == 100 && seen[protocol].values[2] == 100);
        CHECK(NEW(begun) == NEW(ended));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Too many events in one call: those after the first thousands are lost, and told. */
    enum { MANY = 5000 };
    static MPI_Request sends[MANY], receives[MANY];
    for (int i = 0; i < MANY; i++) OK(MPI_Send_init(&data, 0, MPI_INT, 0, 7, MPI_COMM_SELF, &sends[i]));
    for (int i = 0; i < MANY; i++) OK(MPI_Irecv(&got, 0, MPI_INT, 0, 7, MPI_COMM_SELF, &receives[i]));
    DONE(MPI_T_event_get_num(&num));
    for (int i = 0; i < KINDS; i++) before[i] = seen[i].calls;
    CHECK(lost == 0);
    OK(MPI_Startall(MANY, sends));
    DONE(MPI_T_event_get_num(&num));
    CHECK(lost > 0 && NEW(matched) + NEW(protocol) > 0);
    CHECK(NEW(matched) + NEW(protocol) + lost == 2 * MANY);
    OK(MPI_Waitall(MANY, receives, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) OK(MPI_Request_free(&sends[i]));
}

/* A send from another thread, which sends when the main thread waits for the message. */
static void *send_to_the_waiting(void *unused)
{
    int data = 1;
    MPI_T_pvar_session session;
    (void)unused;
    DONE(MPI_T_pvar_session_create(&session));
    struct open posted = open_counter(session, "posted_receives", MPI_T_PVAR_CLASS_LEVEL, NULL);
    while (value_of(posted) == 0) sched_yield();
    OK(MPI_Send(&data, 1, MPI_INT, 0, 11, MPI_COMM_SELF));
    DONE(MPI_T_pvar_session_free(&session));
    return NULL;
}

/* A call that waits says so once, and says once that it has ended. */
static void waits(void)
{
    const int begun = event_of("wait_begun"), ended = event_of("wait_ended");
    int got = 0, num, before[KINDS];
    pthread_t thread;
    DONE(MPI_T_event_get_num(&num));
    for (int i = 0; i < KINDS; i++) before[i] = seen[i].calls;
    CHECK(pthread_create(&thread, NULL, send_to_the_waiting, NULL) == 0);
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 11, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(pthread_join(thread, NULL) == 0);
    DONE(MPI_T_event_get_num(&num));
    CHECK(NEW(begun) == 1 && NEW(ended) == 1);
}

static int inside;

/* Sends a message, and looks whether the call after it delivers its events. */
static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    const int unexpected = event_of("message_unexpected");
    int data = 1, got = 0, num, calls;
    (void)comm, (void)key, (void)value, (void)extra;
    calls = seen[unexpected].calls;
    OK(MPI_Send(&data, 1, MPI_INT, 0, 12, MPI_COMM_SELF));
    OK(MPI_Recv(&got, 1, MPI_INT, 0, 12, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    DONE(MPI_T_event_get_num(&num));
    CHECK(seen[unexpected].calls == calls);
    inside = 1;
    return MPI_SUCCESS;
}

/* A function of the program from which not every call may be made is no place for functions of tools. */
static void functions_of_the_program(void)
{
    const int unexpected = event_of("message_unexpected");
    int key, num, calls;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &key));
    DONE(MPI_T_event_get_num(&num));
    calls = seen[unexpected].calls;
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    DONE(MPI_T_event_get_num(&num));
    CHECK(inside && seen[unexpected].calls == calls + 1);
    OK(MPI_Comm_free_keyval(&key));
}

static void close_events(void)
{
    for (int i = 0; i < KINDS; i++) {
        MPI_T_event_registration old = seen[i].registration;
        DONE(MPI_T_event_handle_free(old, &seen[i].kind, i == 0 ? NULL : on_freed));
        CHECK(seen[i].freed == (i > 0));
        T(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(old, NULL, NULL));
    }
}

/* Each compilation of a kernel is an event, and is counted. */
static void kernels(int has_generator)
{
    MPI_T_pvar_session session;
    int kind = event_of("kernel_compiled"), told = seen[kind].calls;
    DONE(MPI_T_pvar_session_create(&session));
    struct open compiled = open_counter(session, "kernels_compiled", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open refused = open_counter(session, "kernel_refusals", MPI_T_PVAR_CLASS_COUNTER, NULL);
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 2; i < 9; i++) {
        MPI_Datatype type;
        OK(MPI_Type_vector(1000 + i, i, 3 * i, MPI_SHORT, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_free(&type));
    }
    CHECK((whole)(seen[kind].calls - told) == value_of(compiled));
    /* There is no code generator where executable memory is denied. Then it has refused the kernels. */
    if (has_generator) CHECK(value_of(compiled) > 0 || value_of(refused) > 0);
    DONE(MPI_T_pvar_session_free(&session));
}

int main(int argc, char **argv)
{
    int provided, rank, size, index, has_generator = 0;
    DONE(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    unsigned long limit = 64;
    MPI_T_cvar_handle handle = open_setting("TYPEPACK_EAGER_LIMIT");
    DONE(MPI_T_cvar_write(handle, &limit));
    DONE(MPI_T_cvar_handle_free(&handle));
    if (MPI_T_cvar_get_index("TYPEPACK_JIT", &index) == MPI_SUCCESS) {
        int eager = 2;
        has_generator = 1;
        handle = open_setting("TYPEPACK_JIT");
        DONE(MPI_T_cvar_write(handle, &eager));
        DONE(MPI_T_cvar_handle_free(&handle));
    }
    open_events();
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    kernels(has_generator);
    events(rank, size);
    waits();
    functions_of_the_program();
    OK(MPI_Finalize());
    close_events();
    DONE(MPI_T_finalize());
    return 0;
}
