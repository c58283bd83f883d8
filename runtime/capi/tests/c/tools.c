/* The tool interface: settings, counters, categories, enumerations. Before init, between init and finalize, after
   finalize; from two sessions; with wrong arguments. The counters are compared with what the program does.

   The test runs this alone and with two ranks. */
#include "tools.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

static void before_everything(void)
{
    int n = 77;
    char text[8];
    MPI_T_pvar_session session;
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&n));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_get_num(&n));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_category_get_num(&n));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_session_create(&session));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_index("TYPEPACK_JIT", &n));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, text, &n));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    T(MPI_T_ERR_INVALID, MPI_T_init_thread(MPI_THREAD_SINGLE, NULL));
    CHECK(n == 77);
}

/* A use that begins while the last one ends keeps its sessions. */
static void *begin_and_end(void *unused)
{
    int provided;
    MPI_T_pvar_session session;
    (void)unused;
    for (int i = 0; i < 3000; i++) {
        DONE(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
        DONE(MPI_T_pvar_session_create(&session));
        DONE(MPI_T_pvar_session_free(&session));
        DONE(MPI_T_finalize());
    }
    return NULL;
}

static void begins_beside_ends(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, begin_and_end, NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- settings ---- */

static void every_setting(void)
{
    int num = 0, again = -1;
    DONE(MPI_T_cvar_get_num(&num));
    CHECK(num >= 24);
    for (int i = 0; i < num; i++) {
        char name[256], desc[2048], text[4096];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity = 0, bind = 0, scope = 0, count = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum enumtype;
        MPI_T_cvar_handle handle;
        DONE(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &enumtype, desc, &desc_len, &bind, &scope));
        CHECK(name_len == (int)strlen(name) + 1 && desc_len == (int)strlen(desc) + 1 && desc_len > 1);
        CHECK(strncmp(name, "TYPEPACK_", 9) == 0 && bind == MPI_T_BIND_NO_OBJECT);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(scope == MPI_T_SCOPE_CONSTANT || scope == MPI_T_SCOPE_LOCAL || scope == MPI_T_SCOPE_ALL_EQ);
        CHECK(type == MPI_INT || type == MPI_UNSIGNED_LONG || type == MPI_CHAR);
        DONE(MPI_T_cvar_get_index(name, &again));
        CHECK(again == i);
        DONE(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        CHECK(type == MPI_CHAR ? count > 100 && count <= (int)sizeof text : count == 1);
        memset(text, 'x', sizeof text);
        DONE(MPI_T_cvar_read(handle, text));
        if (enumtype != MPI_T_ENUM_NULL) {
            int items = 0, value = 0, found = 0, read;
            memcpy(&read, text, sizeof read);
            CHECK(type == MPI_INT);
            name_len = sizeof name;
            DONE(MPI_T_enum_get_info(enumtype, &items, name, &name_len));
            CHECK(items >= 2 && name_len == (int)strlen(name) + 1);
            for (int item = 0; item < items; item++) {
                name_len = sizeof name;
                DONE(MPI_T_enum_get_item(enumtype, item, &value, name, &name_len));
                CHECK(name_len > 1);
                found |= value == read;
            }
            CHECK(found);
            T(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(enumtype, items, &value, name, &name_len));
            T(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(enumtype, -1, &value, name, &name_len));
        }
        if (type == MPI_CHAR) CHECK(memchr(text, 0, count) != NULL);
        DONE(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
        T(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&handle));
    }
}

static void lengths_of_strings(void)
{
    int at = setting("TYPEPACK_EAGER_LIMIT"), length = 5;
    const int whole_length = sizeof "TYPEPACK_EAGER_LIMIT";
    char name[64] = "xxxxxxxxx";
    DONE(MPI_T_cvar_get_info(at, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(name, "TYPE") == 0 && name[5] == 'x' && length == whole_length);
    length = 0;
    strcpy(name, "kept");
    DONE(MPI_T_cvar_get_info(at, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(name, "kept") == 0 && length == whole_length);
    length = 50;
    DONE(MPI_T_cvar_get_info(at, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(length == whole_length);
    DONE(MPI_T_cvar_get_info(at, name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(name, "kept") == 0);
    length = -3;
    DONE(MPI_T_cvar_get_info(at, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(name, "kept") == 0 && length == whole_length);
}

static void write_settings_before_init(void)
{
    unsigned long limit = 0, old = 0, wrong = 1000000;
    int flag = 2, choice = 0;
    char path[4096] = "/nowhere/tune";
    MPI_T_cvar_handle handle = open_setting("TYPEPACK_EAGER_LIMIT");
    DONE(MPI_T_cvar_read(handle, &old));
    CHECK(old == 8192);
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, &wrong));
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, NULL));
    T(MPI_T_ERR_INVALID, MPI_T_cvar_read(handle, NULL));
    limit = 64;
    DONE(MPI_T_cvar_write(handle, &limit));
    limit = 0;
    DONE(MPI_T_cvar_read(handle, &limit));
    CHECK(limit == 64);
    DONE(MPI_T_cvar_handle_free(&handle));
    handle = open_setting("TYPEPACK_QUIET");
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, &flag));
    flag = 1;
    DONE(MPI_T_cvar_write(handle, &flag));
    DONE(MPI_T_cvar_handle_free(&handle));
    handle = open_setting("TYPEPACK_IO");
    choice = 2; /* pwrite */
    DONE(MPI_T_cvar_write(handle, &choice));
    choice = 3;
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, &choice));
    choice = -1;
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, &choice));
    DONE(MPI_T_cvar_read(handle, &choice));
    CHECK(choice == 2);
    choice = 0; /* auto */
    DONE(MPI_T_cvar_write(handle, &choice));
    DONE(MPI_T_cvar_handle_free(&handle));
    handle = open_setting("TYPEPACK_COLL");
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, "bcast:tree"));
    DONE(MPI_T_cvar_write(handle, "bcast:messages"));
    DONE(MPI_T_cvar_read(handle, path));
    CHECK(strcmp(path, "bcast:messages") == 0);
    memset(path, 'y', sizeof path); /* no zero byte */
    T(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, path));
    DONE(MPI_T_cvar_handle_free(&handle));
    int unused;
    if (MPI_T_cvar_get_index("TYPEPACK_JIT", &unused) == MPI_SUCCESS) {
        handle = open_setting("TYPEPACK_JIT");
        choice = 2; /* eager */
        DONE(MPI_T_cvar_write(handle, &choice));
        DONE(MPI_T_cvar_handle_free(&handle));
    }
    handle = open_setting("TYPEPACK_CC");
    T(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(handle, "gcc"));
    DONE(MPI_T_cvar_handle_free(&handle));
}

/* Between init and finalize, only some settings can be changed. */
static void write_settings_in_between(void)
{
    unsigned long limit = 0, threads = 2;
    int all = 1;
    MPI_T_cvar_handle handle = open_setting("TYPEPACK_THREADS");
    T(MPI_T_ERR_CVAR_SET_NOT_NOW, MPI_T_cvar_write(handle, &threads));
    DONE(MPI_T_cvar_read(handle, &threads));
    CHECK(threads == 1);
    DONE(MPI_T_cvar_handle_free(&handle));
    handle = open_setting("TYPEPACK_ERRORS");
    DONE(MPI_T_cvar_write(handle, &all));
    all = 0;
    DONE(MPI_T_cvar_write(handle, &all));
    DONE(MPI_T_cvar_handle_free(&handle));
    handle = open_setting("TYPEPACK_UNEXPECTED_MAX");
    limit = 1 << 20;
    DONE(MPI_T_cvar_write(handle, &limit));
    DONE(MPI_T_cvar_handle_free(&handle));
    handle = open_setting("TYPEPACK_EAGER_LIMIT");
    DONE(MPI_T_cvar_read(handle, &limit));
    CHECK(limit == 64);
    DONE(MPI_T_cvar_handle_free(&handle));
}

static void wrong_settings(void)
{
    int n = 77, count = 0;
    char text[16];
    unsigned long value;
    MPI_T_cvar_handle handle = open_setting("TYPEPACK_EAGER_LIMIT"), stale = handle;
    T(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(NULL));
    T(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("no such name", &n));
    T(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("", &n));
    T(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(NULL, &n));
    T(MPI_T_ERR_INVALID, MPI_T_cvar_get_index("TYPEPACK_JIT", NULL));
    static const int wrong[] = {-1, INT_MAX, INT_MIN, 1000};
    for (int i = 0; i < 4; i++) {
        T(MPI_T_ERR_INVALID_INDEX,
          MPI_T_cvar_get_info(wrong[i], text, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        T(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(wrong[i], NULL, &handle, &count));
        T(MPI_T_ERR_INVALID_INDEX,
          MPI_T_category_get_info(wrong[i], text, &n, NULL, NULL, NULL, NULL, NULL));
        T(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_cvars(wrong[i], 1, &count));
        T(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_pvars(wrong[i], 1, &count));
        T(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_categories(wrong[i], 1, &count));
        T(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_num_events(wrong[i], &count));
        T(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_get_info(wrong[i], text, &n, NULL, NULL, NULL, NULL, NULL, NULL,
                                                       NULL, NULL, NULL, NULL));
        T(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info((MPI_T_enum)(intptr_t)wrong[i], &n, text, &count));
    }
    CHECK(n == 77 && count == 0 && handle == stale);
    T(MPI_T_ERR_INVALID, MPI_T_cvar_handle_alloc(0, NULL, NULL, &count));
    T(MPI_T_ERR_INVALID, MPI_T_cvar_handle_alloc(0, NULL, &handle, NULL));
    DONE(MPI_T_cvar_handle_free(&handle));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(stale, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_write(stale, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&stale));
    T(MPI_T_ERR_INVALID, MPI_T_cvar_handle_free(NULL));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, text, &count));
    T(MPI_T_ERR_INVALID, MPI_T_category_get_cvars(0, -1, &count));
    T(MPI_T_ERR_INVALID, MPI_T_category_get_cvars(0, 3, NULL));
}

/* ---- counters ---- */

static void every_counter(MPI_T_pvar_session session)
{
    int num = 0;
    DONE(MPI_T_pvar_get_num(&num));
    CHECK(num > 40);
    for (int i = 0; i < num; i++) {
        char name[256], desc[512];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, class, bind, readonly, continuous, atomic;
        int count = 0, at = -1;
        MPI_Datatype type;
        MPI_T_enum enumtype;
        MPI_T_pvar_handle handle;
        DONE(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &enumtype, desc, &desc_len, &bind,
                                 &readonly, &continuous, &atomic));
        CHECK(name_len == (int)strlen(name) + 1 && desc_len > 1 && enumtype == MPI_T_ENUM_NULL);
        CHECK(type == (class == MPI_T_PVAR_CLASS_TIMER ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG));
        DONE(MPI_T_pvar_get_index(name, class, &at));
        CHECK(at == i);
        T(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &at));
        if (bind != MPI_T_BIND_NO_OBJECT) {
            CHECK(bind == MPI_T_BIND_MPI_COMM);
            T(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
            continue;
        }
        double buffer = 0;
        DONE(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
        DONE(MPI_T_pvar_read(session, handle, &buffer));
        if (continuous) {
            CHECK(readonly && !atomic && class == MPI_T_PVAR_CLASS_LEVEL);
            T(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, handle));
            T(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_stop(session, handle));
            T(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, handle));
            T(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_write(session, handle, &buffer));
            T(MPI_T_ERR_PVAR_NO_ATOMIC, MPI_T_pvar_readreset(session, handle, &buffer));
        } else {
            CHECK(!readonly && atomic && buffer == 0);
            DONE(MPI_T_pvar_start(session, handle));
            DONE(MPI_T_pvar_readreset(session, handle, &buffer));
            T(MPI_T_ERR_INVALID, MPI_T_pvar_readreset(session, handle, NULL));
            T(MPI_T_ERR_INVALID, MPI_T_pvar_write(session, handle, NULL));
            DONE(MPI_T_pvar_stop(session, handle));
        }
        T(MPI_T_ERR_INVALID, MPI_T_pvar_read(session, handle, NULL));
        DONE(MPI_T_pvar_handle_free(session, &handle));
        CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    }
}

static void wrong_counters(void)
{
    int at = counter_of("messages_sent", MPI_T_PVAR_CLASS_COUNTER), count = 0;
    whole value = 77;
    double negative = -1;
    MPI_T_pvar_session one, two, stale;
    MPI_T_pvar_handle handle, dead = (MPI_T_pvar_handle)(intptr_t)0x123450;
    DONE(MPI_T_pvar_session_create(&one));
    DONE(MPI_T_pvar_session_create(&two));
    CHECK(one != two && one != MPI_T_PVAR_SESSION_NULL);
    T(MPI_T_ERR_INVALID, MPI_T_pvar_session_create(NULL));
    T(MPI_T_ERR_INVALID, MPI_T_pvar_get_num(NULL));
    T(MPI_T_ERR_INVALID, MPI_T_pvar_get_index("messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL));
    T(MPI_T_ERR_INVALID, MPI_T_pvar_get_index(NULL, MPI_T_PVAR_CLASS_COUNTER, &count));
    T(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("no such name", MPI_T_PVAR_CLASS_COUNTER, &count));
    T(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(one, at, NULL, NULL, &count));
    T(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(one, at, NULL, &handle, NULL));
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(one, -1, NULL, &handle, &count));
    T(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(one, 100000, NULL, &handle, &count));
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, at, NULL, &handle, &count));
    DONE(MPI_T_pvar_handle_alloc(one, at, NULL, &handle, &count));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(two, handle, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_start(two, handle));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(two, &handle));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(one, dead, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(one, MPI_T_PVAR_HANDLE_NULL, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(one, MPI_T_PVAR_ALL_HANDLES, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_write(one, MPI_T_PVAR_ALL_HANDLES, &value));
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_readreset(one, MPI_T_PVAR_ALL_HANDLES, &value));
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, handle, &value));
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_reset(MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_ALL_HANDLES));
    CHECK(value == 77);
    struct open time = open_counter(one, "kernel_compile_time", MPI_T_PVAR_CLASS_TIMER, NULL);
    T(MPI_T_ERR_INVALID, MPI_T_pvar_write(one, time.handle, &negative));
    stale = one;
    DONE(MPI_T_pvar_session_free(&one));
    CHECK(one == MPI_T_PVAR_SESSION_NULL);
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&one));
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&stale));
    T(MPI_T_ERR_INVALID, MPI_T_pvar_session_free(NULL));
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(stale, handle, &value));
    DONE(MPI_T_pvar_session_free(&two));
}

static void categories(void)
{
    int num = 0, cvars = 0, pvars = 0, all_cvars, all_pvars, number = 77, changed = 77;
    int settings[256], counters[256], below[64];
    DONE(MPI_T_category_get_num(&num));
    DONE(MPI_T_cvar_get_num(&all_cvars));
    DONE(MPI_T_pvar_get_num(&all_pvars));
    for (int i = 0; i < num; i++) {
        char name[64], desc[256];
        int name_len = sizeof name, desc_len = sizeof desc, c = 0, p = 0, n = 0, at = -1;
        DONE(MPI_T_category_get_info(i, name, &name_len, desc, &desc_len, &c, &p, &n));
        CHECK(name_len > 1 && desc_len > 1);
        DONE(MPI_T_category_get_index(name, &at));
        CHECK(at == i);
        memset(settings, 0xff, sizeof settings);
        DONE(MPI_T_category_get_cvars(i, 256, settings));
        DONE(MPI_T_category_get_pvars(i, 256, counters));
        DONE(MPI_T_category_get_categories(i, 64, below));
        for (int k = 0; k < c; k++) CHECK(settings[k] >= 0 && settings[k] < all_cvars);
        CHECK(settings[c] == -1);
        for (int k = 0; k < n; k++) CHECK(below[k] > 0 && below[k] < num);
        settings[0] = -1;
        DONE(MPI_T_category_get_cvars(i, 0, settings));
        CHECK(settings[0] == -1);
        cvars += c;
        pvars += p;
        DONE(MPI_T_category_get_num_events(i, &number));
    }
    CHECK(cvars == all_cvars && pvars == all_pvars);
    T(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("no such name", &number));
    DONE(MPI_T_category_changed(&changed));
    DONE(MPI_T_category_changed(&number));
    CHECK(changed == number);
}

/* Counters of messages of a rank to itself: started, stopped, reset, written, in two sessions. */
static void starts_and_stops(void)
{
    int data = 1, got = 0;
    MPI_T_pvar_session one, two;
    DONE(MPI_T_pvar_session_create(&one));
    DONE(MPI_T_pvar_session_create(&two));
    struct open first = open_counter(one, "messages_to_itself", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open second = open_counter(two, "messages_to_itself", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open bytes = open_counter(two, "bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
#define TO_ITSELF() \
    OK(MPI_Sendrecv(&data, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE))
    TO_ITSELF();
    CHECK(value_of(first) == 0 && value_of(second) == 0);
    DONE(MPI_T_pvar_start(one, first.handle));
    TO_ITSELF();
    TO_ITSELF();
    DONE(MPI_T_pvar_start(one, first.handle));
    CHECK(value_of(first) == 2 && value_of(second) == 0);
    DONE(MPI_T_pvar_start(two, MPI_T_PVAR_ALL_HANDLES));
    TO_ITSELF();
    DONE(MPI_T_pvar_stop(one, first.handle));
    TO_ITSELF();
    CHECK(value_of(first) == 3 && value_of(second) == 2 && value_of(bytes) == 2 * sizeof data);
    DONE(MPI_T_pvar_start(one, first.handle));
    TO_ITSELF();
    CHECK(value_of(first) == 4);
    whole value = 0;
    DONE(MPI_T_pvar_readreset(one, first.handle, &value));
    CHECK(value == 4 && value_of(first) == 0 && value_of(second) == 3);
    value = 40;
    DONE(MPI_T_pvar_write(two, second.handle, &value));
    TO_ITSELF();
    CHECK(value_of(first) == 1 && value_of(second) == 41);
    DONE(MPI_T_pvar_stop(two, MPI_T_PVAR_ALL_HANDLES));
    DONE(MPI_T_pvar_reset(two, MPI_T_PVAR_ALL_HANDLES));
    TO_ITSELF();
    CHECK(value_of(second) == 0 && value_of(bytes) == 0 && value_of(first) == 2);
    DONE(MPI_T_pvar_handle_free(one, &first.handle));
    DONE(MPI_T_pvar_session_free(&one));
    DONE(MPI_T_pvar_session_free(&two));
}

/* Messages from rank 0 to rank 1: protocols, and the queue of unexpected messages. The eager limit is 64 bytes. */
static void messages(int rank, int size)
{
    enum { SHORT = 16, MANY = 5 };
    char data[4096] = {0};
    if (size < 2) return;
    MPI_T_pvar_session session;
    DONE(MPI_T_pvar_session_create(&session));
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    struct open sent = open_counter(session, "messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open eager = open_counter(session, "messages_eager", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open bytes = open_counter(session, "bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    struct open queued = open_counter(session, "messages_queued", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open waiting = open_counter(session, "unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, NULL);
    struct open of_comm =
        open_counter(session, "unexpected_messages_of_communicator", MPI_T_PVAR_CLASS_LEVEL, &comm);
    struct open memory = open_counter(session, "unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL, NULL);
    struct open posted = open_counter(session, "posted_receives", MPI_T_PVAR_CLASS_LEVEL, NULL);
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Barrier(comm));
    if (rank == 0) {
        DONE(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
        for (int i = 0; i < MANY; i++) OK(MPI_Send(data, SHORT, MPI_BYTE, 1, i, comm));
        CHECK(value_of(sent) == MANY && value_of(eager) == MANY && value_of(bytes) == MANY * SHORT);
        OK(MPI_Send(data, 65, MPI_BYTE, 1, 9, comm));
        CHECK(value_of(sent) == MANY + 1 && value_of(bytes) == MANY * SHORT + 65);
        if (size == 2) CHECK(value_of(eager) == MANY);
        /* A higher limit takes effect at once. */
        unsigned long limit = 8192;
        MPI_T_cvar_handle handle = open_setting("TYPEPACK_EAGER_LIMIT");
        DONE(MPI_T_cvar_write(handle, &limit));
        OK(MPI_Send(data, 65, MPI_BYTE, 1, 10, comm));
        CHECK(value_of(eager) == MANY + 1);
        limit = 64;
        DONE(MPI_T_cvar_write(handle, &limit));
        DONE(MPI_T_cvar_handle_free(&handle));
    } else if (rank == 1) {
        MPI_Status status;
        /* The last short message has come, so all of them wait. */
        OK(MPI_Probe(0, MANY - 1, comm, &status));
        CHECK(value_of(waiting) >= MANY && value_of(of_comm) >= MANY && value_of(queued) >= MANY);
        CHECK(value_of(memory) >= MANY * SHORT && value_of(posted) == 0);
        for (int i = MANY - 1; i >= 0; i--) OK(MPI_Recv(data, SHORT, MPI_BYTE, 0, i, comm, &status));
        OK(MPI_Recv(data, 65, MPI_BYTE, 0, 9, comm, &status));
        OK(MPI_Recv(data, 65, MPI_BYTE, 0, 10, comm, &status));
        CHECK(value_of(of_comm) == 0);
        MPI_Request request;
        OK(MPI_Irecv(data, 1, MPI_BYTE, 0, 99, comm, &request));
        CHECK(value_of(posted) == 1);
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(value_of(posted) == 0);
    }
    OK(MPI_Barrier(comm));
    /* The communicator of the handle has been freed. */
    OK(MPI_Comm_free(&comm));
    whole value = 0;
    T(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, of_comm.handle, &value));
    DONE(MPI_T_pvar_session_free(&session));
}

/* A message that is under way, and then cancelled. */
static void cancelled(int rank, int size)
{
    static char data[1 << 20];
    int flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_T_pvar_session session;
    if (size < 2) return;
    DONE(MPI_T_pvar_session_create(&session));
    struct open under_way = open_counter(session, "messages_under_way", MPI_T_PVAR_CLASS_LEVEL, NULL);
    struct open lost = open_counter(session, "messages_not_delivered", MPI_T_PVAR_CLASS_COUNTER, NULL);
    DONE(MPI_T_pvar_start(session, lost.handle));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        whole others = value_of(under_way);
        OK(MPI_Issend(data, sizeof data, MPI_BYTE, 1, 20, MPI_COMM_WORLD, &request));
        CHECK(value_of(under_way) == others + 1 && value_of(lost) == 0);
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag && value_of(under_way) == others && value_of(lost) == 1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    DONE(MPI_T_pvar_session_free(&session));
}

/* Partitions of messages to the next rank: 6 of 40 bytes at the sender, 4 of 60 at the receiver, and some without
   bytes. */
static void partitions(int rank, int size)
{
    int from[60] = {0}, to[60];
    MPI_Request requests[2];
    MPI_T_pvar_session session;
    DONE(MPI_T_pvar_session_create(&session));
    struct open ready = open_counter(session, "partitions_ready", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open arrived = open_counter(session, "partitions_arrived", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open bytes = open_counter(session, "partition_bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    for (int empty = 0; empty < 2; empty++) {
        int count = empty ? 0 : 10;
        whole were_ready = value_of(ready), were_there = value_of(arrived);
        OK(MPI_Psend_init(from, 6, count, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Precv_init(to, 4, count / 2 * 3, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &requests[1]));
        for (int round = 1; round < 3; round++) {
            OK(MPI_Startall(2, requests));
            OK(MPI_Pready_range(1, 5, requests[0]));
            CHECK(value_of(ready) - were_ready == (whole)(6 * round - 1));
            OK(MPI_Pready(0, requests[0]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            CHECK(value_of(ready) - were_ready == (whole)(6 * round));
            CHECK(value_of(arrived) - were_there == (whole)(4 * round));
            CHECK(value_of(bytes) == (whole)(empty ? 480 : 240 * round));
        }
        for (int i = 0; i < 2; i++) OK(MPI_Request_free(&requests[i]));
    }
    DONE(MPI_T_pvar_session_free(&session));
}

static void collectives(int size)
{
    int data = 1, sum = 0;
    MPI_Request request;
    MPI_T_pvar_session session;
    MPI_Comm comm, other, wrong = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    DONE(MPI_T_pvar_session_create(&session));
    struct open calls = open_counter(session, "collective_calls", MPI_T_PVAR_CLASS_COUNTER, &comm);
    struct open others = open_counter(session, "collective_calls", MPI_T_PVAR_CLASS_COUNTER, &other);
    struct open messages =
        open_counter(session, "collective_bcast_messages", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open cells = open_counter(session, "collective_allreduce_cells", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open by_messages =
        open_counter(session, "collective_allreduce_messages", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open started =
        open_counter(session, "collective_allreduce_nonblocking", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open prepared =
        open_counter(session, "collective_barrier_persistent", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_T_pvar_handle none;
    T(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, counter_of("collective_calls", MPI_T_PVAR_CLASS_COUNTER),
                                                 &wrong, &none, &data));
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 0; i < 3; i++) OK(MPI_Bcast(&data, 1, MPI_INT, 0, comm));
    for (int i = 0; i < 2; i++) OK(MPI_Allreduce(&data, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(value_of(calls) == 5 && value_of(others) == 0);
    CHECK(value_of(messages) == 3); /* TYPEPACK_COLL=bcast:messages */
    CHECK(value_of(cells) + value_of(by_messages) == 2);
    if (size == 1) CHECK(value_of(cells) == 0);
    OK(MPI_Iallreduce(&data, &sum, 1, MPI_INT, MPI_SUM, other, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(value_of(started) == 1 && value_of(others) == 1 && value_of(calls) == 5);
    OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &request));
    for (int i = 0; i < 4; i++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
    CHECK(value_of(prepared) == 4);
    DONE(MPI_T_pvar_session_free(&session));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&other));
}

static void windows(int rank, int size)
{
    MPI_T_pvar_session session;
    MPI_Win win;
    long *memory, value = 3, old = 0, compare = 3, many[100] = {0};
    int target = (rank + 1) % size;
    DONE(MPI_T_pvar_session_create(&session));
    struct open puts = open_counter(session, "window_puts", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open gets = open_counter(session, "window_gets", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open updates = open_counter(session, "window_accumulates", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_Datatype column;
    OK(MPI_Type_vector(10, 1, 2, MPI_LONG, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Win_allocate(100 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 0; i < 5; i++) OK(MPI_Put(&value, 1, MPI_LONG, target, i, 1, MPI_LONG, win));
    OK(MPI_Put(many, 1, column, target, 0, 1, column, win));
    OK(MPI_Get(&old, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Get(many, 100, MPI_LONG, target, 0, 100, MPI_LONG, win));
    OK(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Accumulate(many, 100, MPI_LONG, target, 0, 100, MPI_LONG, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&value, &old, MPI_LONG, target, 1, MPI_SUM, win));
    OK(MPI_Compare_and_swap(&value, &compare, &old, MPI_LONG, target, 2, win));
    OK(MPI_Get_accumulate(&value, 1, MPI_LONG, &old, 1, MPI_LONG, target, 3, 1, MPI_LONG, MPI_MAX, win));
    CHECK(value_of(puts) == 6 && value_of(gets) == 2 && value_of(updates) == 5);
    OK(MPI_Win_unlock_all(win));
    DONE(MPI_T_pvar_session_free(&session));
    OK(MPI_Win_free(&win));
    OK(MPI_Type_free(&column));
}

static void files(void)
{
    char name[64], data[1000] = {0};
    MPI_File file;
    MPI_Request request;
    MPI_T_pvar_session session;
    snprintf(name, sizeof name, "/tmp/typepack-tools-%d", (int)getpid());
    DONE(MPI_T_pvar_session_create(&session));
    struct open reads = open_counter(session, "file_reads", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open writes = open_counter(session, "file_writes", MPI_T_PVAR_CLASS_COUNTER, NULL);
    struct open in = open_counter(session, "file_bytes_read", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    struct open out = open_counter(session, "file_bytes_written", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_write_at(file, 0, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at_all(file, 500, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 900, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at(file, 0, data, 10, MPI_BYTE, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    CHECK(value_of(writes) == 2 && value_of(out) == 1100);
    CHECK(value_of(reads) == 2 && value_of(in) == 110);
    DONE(MPI_T_pvar_session_free(&session));
}


/* What typepack explain prints. */
#ifdef MPI_H_TYPEPACK
static void descriptions(void)
{
    char text[4096], begin[20];
    int length = sizeof text, all;
    MPI_Datatype type;
    OK(MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &type));
    OK(MPIX_Type_describe(type, text, &length));
    CHECK(strstr(text, "vector(3, 2, 4, double)") != NULL && strstr(text, "48 bytes of data, extent 80") != NULL);
    CHECK(length == (int)strlen(text) + 1);
    all = length;
    length = sizeof begin;
    OK(MPIX_Type_describe(type, begin, &length));
    CHECK(length == all && strlen(begin) == sizeof begin - 1 && strncmp(begin, text, sizeof begin - 1) == 0);
    length = 0;
    OK(MPIX_Type_describe(type, NULL, &length));
    CHECK(length == all);
    length = -1;
    RAISES(MPI_ERR_ARG, MPIX_Type_describe(type, text, &length));
    RAISES(MPI_ERR_ARG, MPIX_Type_describe(type, text, NULL));
    length = sizeof text;
    RAISES(MPI_ERR_ARG, MPIX_Type_describe(type, NULL, &length));
    RAISES(MPI_ERR_TYPE, MPIX_Type_describe(MPI_DATATYPE_NULL, text, &length));
    CHECK(length == sizeof text);
    OK(MPIX_Type_describe(MPI_INT, text, &length));
    OK(MPI_Type_free(&type));
}
#endif

static void packing(void)
{
    double matrix[64], packed[8];
    int position = 0;
    MPI_Datatype column;
    MPI_T_pvar_session session;
    static const char *const names[] = {"bytes_memcpy",           "bytes_rows",          "bytes_leaf_kernels",
                                        "bytes_compiled_kernels", "bytes_fused_copies", "bytes_compiled_copies",
                                        "bytes_interpreter"};
    struct open moved[7];
    whole sum = 0;
    DONE(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < 7; i++)
        moved[i] = open_counter(session, names[i], MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    OK(MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &column));
    OK(MPI_Type_commit(&column));
    for (int i = 0; i < 64; i++) matrix[i] = i;
    DONE(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Pack(matrix, 1, column, packed, sizeof packed, &position, MPI_COMM_SELF));
    for (int i = 0; i < 7; i++) sum += value_of(moved[i]);
    CHECK(sum == sizeof packed);
    DONE(MPI_T_pvar_session_free(&session));
    OK(MPI_Type_free(&column));
}

int main(int argc, char **argv)
{
    int provided = -1, rank, size;
    MPI_T_pvar_session session;
    before_everything();
    begins_beside_ends();
    DONE(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    DONE(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    every_setting();
    lengths_of_strings();
    wrong_settings();
    wrong_counters();
    categories();
    DONE(MPI_T_pvar_session_create(&session));
    every_counter(session);
    struct open kept = open_counter(session, "messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL);
    DONE(MPI_T_pvar_start(session, kept.handle));
    CHECK(value_of(kept) == 0);
    write_settings_before_init();
    /* One end of two: everything goes on. */
    DONE(MPI_T_finalize());
    CHECK(value_of(kept) == 0);

    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    every_setting();
    write_settings_in_between();
    wrong_counters();
    every_counter(session);
    starts_and_stops();
    messages(rank, size);
    cancelled(rank, size);
    partitions(rank, size);
    collectives(size);
    windows(rank, size);
    files();
#ifdef MPI_H_TYPEPACK
    descriptions();
#endif
    packing();
    OK(MPI_Finalize());

    whole sent = value_of(kept);
    CHECK(sent >= 8);
    every_setting();
    every_counter(session);
    categories();
    CHECK(value_of(kept) == sent);
    DONE(MPI_T_finalize());
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_read(session, kept.handle, &sent));
    T(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    /* Handles do not outlive the last end. */
    DONE(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    T(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(session, kept.handle, &sent));
    DONE(MPI_T_finalize());
    return 0;
}
