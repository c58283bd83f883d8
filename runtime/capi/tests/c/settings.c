/* What the settings do that a tool has written before init: each writable one changes what it says. The counters show
   it, or the test that runs this program sees it in the output.

   settings a|b|c [FILE]: the three variants give each setting different values. The test runs each with two ranks. */
#define _GNU_SOURCE
#include "tools.h"

#include <sys/uio.h>
#include <unistd.h>

/* Settings of which no number tells: times, and methods with the same results. Other tests force them by their
   variables (TYPEPACK_ISA: leaf kernels; TYPEPACK_COPY: copies; TYPEPACK_SPIN_US: waits; TYPEPACK_UNEXPECTED_MAX: flow;
   TYPEPACK_VERIFY: kernels with mistakes; TYPEPACK_THREADS: packing threads of Rust programs). */
static const char *const not_told[] = {"TYPEPACK_ISA",    "TYPEPACK_COPY",          "TYPEPACK_SPIN_US",
                                       "TYPEPACK_VERIFY", "TYPEPACK_UNEXPECTED_MAX", "TYPEPACK_THREADS"};

static char variant;
static const char *file;

/* A setting and its values in the three variants. */
struct row {
    const char *name, *values[3];
};

static struct row rows[] = {
    {"TYPEPACK_JIT", {"eager", "off", "lazy"}},
    {"TYPEPACK_JIT_THRESHOLD", {"0", "0", "1"}},
    {"TYPEPACK_JIT_MEMORY_MAX", {"16777216", "16777216", "4096"}},
    {"TYPEPACK_KERNEL", {"auto", "interpreter", "kernel"}},
    {"TYPEPACK_CHECK_TYPES", {"1", "0", "0"}},
    {"TYPEPACK_ERRORS", {"all", "fatal", "fatal"}},
    {"TYPEPACK_EAGER_LIMIT", {"64", "4096", "64"}},
    {"TYPEPACK_CMA", {"off", "off", "auto"}},
    {"TYPEPACK_IO", {"pwrite", "mmap", "auto"}},
    {"TYPEPACK_COLL", {"bcast:messages", "bcast:cells", "all:auto"}},
    {"TYPEPACK_TRANSPORT", {"pipeline", "eager", "cma"}},
    {"TYPEPACK_TUNE", {"off", "on", "off"}},
    {"TYPEPACK_TUNE_FILE", {"", NULL, ""}},
    {"TYPEPACK_REPORT", {"1", "0", "0"}},
    {"TYPEPACK_QUIET", {"1", "0", "1"}},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int is_known(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return 1;
    for (size_t i = 0; i < sizeof not_told / sizeof not_told[0]; i++)
        if (strcmp(not_told[i], name) == 0) return 1;
    return 0;
}

/* Writes a value given as text. */
static void write_setting(const char *name, const char *value)
{
    char text[4096] = "";
    MPI_Datatype type;
    MPI_T_enum words;
    int at;
    if (MPI_T_cvar_get_index(name, &at) != MPI_SUCCESS) return; /* built without the code generator */
    DONE(MPI_T_cvar_get_info(at, NULL, NULL, NULL, &type, &words, NULL, NULL, NULL, NULL));
    MPI_T_cvar_handle handle = open_setting(name);
    if (type == MPI_UNSIGNED_LONG) {
        unsigned long number = strtoul(value, NULL, 10);
        DONE(MPI_T_cvar_write(handle, &number));
    } else if (type == MPI_CHAR) {
        snprintf(text, sizeof text, "%s", value);
        DONE(MPI_T_cvar_write(handle, text));
    } else {
        int number = atoi(value), items = 0, item = 0;
        if (words != MPI_T_ENUM_NULL) {
            DONE(MPI_T_enum_get_info(words, &items, NULL, NULL));
            for (item = 0; item < items; item++) {
                int length = sizeof text;
                DONE(MPI_T_enum_get_item(words, item, &number, text, &length));
                if (strcmp(text, value) == 0) break;
            }
            CHECK(item < items);
        }
        DONE(MPI_T_cvar_write(handle, &number));
    }
    DONE(MPI_T_cvar_handle_free(&handle));
}

static void write_all(void)
{
    int num = 0;
    DONE(MPI_T_cvar_get_num(&num));
    for (int i = 0; i < num; i++) {
        char name[64];
        int length = sizeof name, scope;
        DONE(MPI_T_cvar_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, &scope));
        if (scope != MPI_T_SCOPE_CONSTANT && !is_known(name)) {
            fprintf(stderr, "no variant of settings.c gives %s a value\n", name);
            exit(1);
        }
    }
    for (int i = 0; i < ROWS; i++) {
        const char *value = rows[i].values[variant - 'a'];
        write_setting(rows[i].name, value ? value : file);
    }
}

static MPI_T_pvar_session session;

static struct open counter(const char *name)
{
    struct open open = open_counter(session, name, MPI_T_PVAR_CLASS_COUNTER, NULL);
    DONE(MPI_T_pvar_start(session, open.handle));
    return open;
}

static void kernels(void)
{
    int index;
    if (MPI_T_cvar_get_index("TYPEPACK_JIT", &index) != MPI_SUCCESS) return;
    struct open compiled = counter("kernels_compiled"), refused = counter("kernel_refusals");
    struct open interpreted = open_counter(session, "bytes_interpreter", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    DONE(MPI_T_pvar_start(session, interpreted.handle));
    static short data[40000], packed[40000];
    for (int i = 2; i < 9; i++) {
        MPI_Datatype type;
        int position = 0;
        OK(MPI_Type_vector(1000 + i, i, 3 * i, MPI_SHORT, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Pack(data, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF));
        OK(MPI_Type_free(&type));
    }
    switch (variant) {
    case 'a': /* eager: at commit, unless executable memory is denied */
        CHECK(value_of(compiled) > 0 || value_of(refused) > 0);
        CHECK(value_of(interpreted) == 0);
        break;
    case 'b': /* off, and the interpreter */
        CHECK(value_of(compiled) == 0 && value_of(interpreted) > 0);
        break;
    default: /* lazy, but at once, and there is hardly room for code */
        CHECK(value_of(refused) > 0);
    }
}

static void types_and_errors(void)
{
    int number = 1;
    float other = 0;
    MPI_Request request;
    OK(MPI_Isend(&number, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
    RAISES(variant == 'a' ? MPI_ERR_TYPE : MPI_SUCCESS,
           MPI_Recv(&other, 1, MPI_FLOAT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* With TYPEPACK_ERRORS=all, this is one line. */
    RAISES(MPI_ERR_TAG, MPI_Send(&number, 1, MPI_INT, 0, -77, MPI_COMM_SELF));
}

/* Returns whether this process may read the memory of the other rank. */
static int may_read(int rank)
{
    long mine[2] = {getpid(), (long)&variant}, theirs[2];
    char copy = 0;
    OK(MPI_Sendrecv(mine, 2, MPI_LONG, 1 - rank, 2, theirs, 2, MPI_LONG, 1 - rank, 2, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    struct iovec to = {&copy, 1}, from = {(void *)theirs[1], 1};
    int may = process_vm_readv((pid_t)theirs[0], &to, 1, &from, 1, 0) == 1 && copy == variant, both;
    OK(MPI_Allreduce(&may, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return both;
}

static void messages(int rank)
{
    enum { LONG = 1 << 20 };
    struct open eager = counter("messages_eager"), pipeline = counter("messages_pipeline");
    struct open cma = counter("messages_cma");
    int may = may_read(rank);
    static char own[LONG];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    DONE(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    if (rank == 0) {
        OK(MPI_Send(own, 1000, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
        CHECK((value_of(eager) > 0) == (variant == 'b'));
        OK(MPI_Send(own, LONG, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
        if (variant == 'a') CHECK(value_of(pipeline) > 0);
        CHECK((value_of(cma) > 0) == (variant == 'c' && may));
    } else {
        OK(MPI_Recv(own, 1000, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(own, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

static void collectives(void)
{
    int data = 1;
    struct open messages = counter("collective_bcast_messages"), cells = counter("collective_bcast_cells");
    for (int i = 0; i < 5; i++) OK(MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (variant == 'a') CHECK(value_of(messages) == 5 && value_of(cells) == 0);
    if (variant == 'b') CHECK(value_of(messages) == 0 && value_of(cells) == 5);
}

static void files(void)
{
    char name[64], data[100000] = {0};
    MPI_File handle;
    struct open mapped = counter("file_accesses_mapped");
    snprintf(name, sizeof name, "/tmp/typepack-settings-%d", (int)getpid());
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &handle));
    OK(MPI_File_write_at(handle, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(handle, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&handle));
    if (variant != 'c') CHECK((value_of(mapped) > 0) == (variant == 'b'));
}

int main(int argc, char **argv)
{
    int provided, rank;
    CHECK(argc == 3);
    variant = argv[1][0];
    file = argv[2];
    DONE(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    write_all();
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    DONE(MPI_T_pvar_session_create(&session));
    kernels();
    types_and_errors();
    messages(rank);
    collectives();
    files();
    struct open choices = open_counter(session, "choices", MPI_T_PVAR_CLASS_LEVEL, NULL);
    if (variant != 'b') CHECK(value_of(choices) == 0);
    OK(MPI_Finalize());
    DONE(MPI_T_finalize());
    return 0;
}
