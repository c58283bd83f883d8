/* Uses up the address space of a process with one kind of call, until the call fails: MPI_ERR_NO_MEM, and no signal.
   With the limit raised again, the library works on. Each kind has a process of its own, which the program starts. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const kinds[] = {
    "dup", "type", "long type", "struct", "group", "op", "info", "irecv", "isend", "persistent", "iallreduce",
    "errhandler", "keyval", "attribute", "split", "window", "generalized", "memory", "file",
};

enum { KINDS = sizeof kinds / sizeof *kinds, BYTES = 20 << 20, LONG = 300000 };

static void fold(void *a, void *b, int *n, MPI_Datatype *type) { (void)a, (void)b, (void)n, (void)type; }
static void handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }
static int query(void *state, MPI_Status *status) { (void)state, (void)status; return 0; }
static int release(void *state) { (void)state; return 0; }
static int cancel(void *state, int done) { (void)state, (void)done; return 0; }

static char bytes[100];
static int lengths[LONG], places[LONG];
static MPI_Aint far_places[LONG];
static MPI_Datatype types[LONG];
static MPI_Group group;
static MPI_Info info;
static MPI_Comm last;

static int call(int kind, int round)
{
    static int zero, value, result;
    char text[300], name[40];
    int key;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Group made;
    MPI_Op op;
    MPI_Request request;
    MPI_Errhandler handler;
    MPI_Win win;
    MPI_File file;
    void *memory;
    switch (kind) {
    case 0:
        return MPI_Comm_dup(MPI_COMM_SELF, &last);
    case 1:
        key = MPI_Type_vector(3, 1, 2, MPI_INT, &type);
        return key ? key : MPI_Type_commit(&type);
    case 2:
        key = MPI_Type_indexed(LONG, lengths, places, MPI_INT, &type);
        return key ? key : MPI_Type_commit(&type);
    case 3:
        key = MPI_Type_create_struct(LONG / 10, lengths, far_places, types, &type);
        return key ? key : MPI_Type_commit(&type);
    case 4:
        return MPI_Group_incl(group, 1, &zero, &made);
    case 5:
        return MPI_Op_create(fold, 1, &op);
    case 6:
        snprintf(name, sizeof name, "key%d", round);
        memset(text, 'x', sizeof text - 1);
        text[sizeof text - 1] = 0;
        return MPI_Info_set(info, name, text);
    case 7:
        return MPI_Irecv(bytes, 100, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
    case 8:
        return MPI_Isend(bytes, 100, MPI_CHAR, 0, 2, MPI_COMM_SELF, &request);
    case 9:
        return MPI_Send_init(bytes, 100, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
    case 10:
        return MPI_Iallreduce(&value, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
    case 11:
        return MPI_Comm_create_errhandler(handle, &handler);
    case 12:
        return MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    case 13:
        key = 0;
        value = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
        return value ? value : MPI_Comm_set_attr(MPI_COMM_SELF, key, bytes);
    case 14:
        return MPI_Comm_split(MPI_COMM_SELF, 0, 0, &comm);
    case 15:
        return MPI_Win_create(bytes, sizeof bytes, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    case 16:
        return MPI_Grequest_start(query, release, cancel, NULL, &request);
    case 17:
        return MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
    default:
        return MPI_File_open(MPI_COMM_SELF, "short_memory.file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    }
}

static long address_space(void)
{
    char line[300];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmSize:", 7))
            kilobytes = atol(line + 7);
    fclose(status);
    return kilobytes * 1024;
}

static int one(int kind)
{
    struct rlimit before, limit;
    int code = 0, sent = 7, got = 0, class = 0;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Info_create(&info));
    for (int i = 0; i < LONG; i++)
        lengths[i] = 1 + i % 2, places[i] = 5 * i + i % 3, far_places[i] = 8L * places[i],
        types[i] = i % 2 ? MPI_INT : MPI_CHAR;
    CHECK(!getrlimit(RLIMIT_AS, &before));
    limit = before;
    limit.rlim_cur = (rlim_t)address_space() + BYTES;
    CHECK(!setrlimit(RLIMIT_AS, &limit));
    for (int round = 0; !code && round < 5000000; round++)
        code = call(kind, round);
    CHECK(code);
    CHECK(!setrlimit(RLIMIT_AS, &before));
    OK(MPI_Error_class(code, &class));
    /* Files may run out of descriptors first. */
    CHECK(class == MPI_ERR_NO_MEM || kind == KINDS - 1);
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, 0, 9, &got, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == 7);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &last));
    OK(MPI_Comm_free(&last));
    /* The objects that are left, such as active requests, end with the process. */
    _exit(0);
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc > 1)
        return one(atoi(argv[1]));
    for (int kind = 0; kind < KINDS; kind++) {
        char number[12];
        int status;
        snprintf(number, sizeof number, "%d", kind);
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            execl("/proc/self/exe", argv[0], number, (char *)NULL);
            _exit(127);
        }
        CHECK(waitpid(child, &status, 0) == child);
        if (status) {
            fprintf(stderr, "%s: %s %d\n", kinds[kind], WIFSIGNALED(status) ? "signal" : "exit",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            failed = 1;
        }
    }
    unlink("short_memory.file");
    return failed;
}
