/* Processes that start processes: MPI_Comm_spawn, MPI_Comm_spawn_multiple, MPI_Comm_get_parent, and what parents and
   children do together. The children run this program too; the first argument says what they do. */
#define _GNU_SOURCE
#include "check.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char self[PATH_MAX];
static int world_rank, world_size;

static void find_self(void)
{
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = 0;
}

static int attribute(int key)
{
    int *value, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    return flag ? *value : -1;
}

/* ---- what both sides do together ---- */

/* Messages between each rank of one side and each rank of the other. */
static void messages(MPI_Comm inter, int children)
{
    int rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    enum { LONG = 100000 };
    double *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int peer = 0; peer < remote; peer++) {
        for (int i = 0; i < LONG; i++) out[i] = children * 1000 + rank * 10 + peer + i;
        MPI_Request request;
        MPI_Status status;
        OK(MPI_Isend(out, LONG, MPI_DOUBLE, peer, 3, inter, &request));
        OK(MPI_Probe(peer, 3, inter, &status));
        int count;
        OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
        CHECK(count == LONG && status.MPI_SOURCE == peer);
        OK(MPI_Recv(in, LONG, MPI_DOUBLE, peer, 3, inter, &status));
        CHECK(status.MPI_SOURCE == peer);
        for (int i = 0; i < LONG; i++) CHECK(in[i] == !children * 1000 + peer * 10 + rank + i);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    /* A short message from any source, and a receive and a send that are cancelled. */
    MPI_Request *sends = malloc(remote * sizeof *sends);
    for (int peer = 0; peer < remote; peer++) OK(MPI_Isend(&rank, 1, MPI_INT, peer, 4, inter, &sends[peer]));
    for (int peer = 0, sum = 0; peer < remote; peer++) {
        int value;
        MPI_Status status;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, inter, &status));
        CHECK(status.MPI_SOURCE == value);
        sum += value;
        if (peer == remote - 1) CHECK(sum == remote * (remote - 1) / 2);
    }
    OK(MPI_Waitall(remote, sends, MPI_STATUSES_IGNORE));
    free(sends);
    MPI_Request request;
    MPI_Status status;
    int flag, value;
    OK(MPI_Irecv(&value, 1, MPI_INT, 0, 99, inter, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Issend(&value, 1, MPI_INT, 0, 98, inter, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    free(out), free(in);
}

/* Collective calls between both groups. */
static void between(MPI_Comm inter, int children)
{
    int rank, size, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    int value = 100 * children + rank, sum = -1;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == 100 * !children * remote + remote * (remote - 1) / 2);
    int root = children ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    value = !children && rank == 0 ? 4711 : 0;
    OK(MPI_Bcast(&value, 1, MPI_INT, root, inter));
    CHECK(value == (children || rank == 0 ? 4711 : 0));
    OK(MPI_Barrier(inter));
    MPI_Comm dup;
    OK(MPI_Comm_dup(inter, &dup));
    int *all = malloc(remote * sizeof *all);
    OK(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, dup));
    for (int i = 0; i < remote; i++) CHECK(all[i] == i);
    free(all);
    OK(MPI_Comm_disconnect(&dup));
}

/* A merged communicator, with a window and a file on it. */
static void merged(MPI_Comm inter, int children)
{
    MPI_Comm all;
    int rank, size, local;
    OK(MPI_Intercomm_merge(inter, children, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Comm_rank(inter, &local));
    if (!children) CHECK(rank == local);
    for (int round = 0; round < 20; round++) {
        int value = rank + round, sum, from = round % size, told = rank == from ? 5 * round : -1;
        OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK(sum == size * (size - 1) / 2 + size * round);
        OK(MPI_Bcast(&told, 1, MPI_INT, from, all));
        CHECK(told == 5 * round);
        int *table = malloc(2 * size * sizeof *table), *got = table + size;
        for (int i = 0; i < size; i++) table[i] = 100 * rank + i;
        OK(MPI_Alltoall(table, 1, MPI_INT, got, 1, MPI_INT, all));
        for (int i = 0; i < size; i++) CHECK(got[i] == 100 * i + rank);
        free(table);
    }
    /* A window of memory that all can map, and one of private memory. */
    for (int own = 0; own < 2; own++) {
        int *memory, private_memory[64];
        MPI_Win win;
        if (own) {
            memory = private_memory;
            OK(MPI_Win_create(memory, sizeof private_memory, sizeof(int), MPI_INFO_NULL, all, &win));
        } else {
            OK(MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, all, &memory, &win));
        }
        for (int i = 0; i < 64; i++) memory[i] = 1000 * rank + i;
        OK(MPI_Win_fence(0, win));
        int got = -1, next = (rank + 1) % size, put = 7000 + rank, one = 1;
        OK(MPI_Get(&got, 1, MPI_INT, next, 5, 1, MPI_INT, win));
        OK(MPI_Put(&put, 1, MPI_INT, next, 9, 1, MPI_INT, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 10, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_fence(0, win));
        CHECK(got == 1000 * next + 5);
        CHECK(memory[9] == 7000 + (rank + size - 1) % size);
        if (rank == 0) CHECK(memory[10] == 10 + size);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 11, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_unlock(0, win));
        OK(MPI_Barrier(all));
        if (rank == 0) CHECK(memory[11] == 11 + size);
        OK(MPI_Win_free(&win));
    }
    char name[64] = "";
    if (rank == 0) snprintf(name, sizeof name, "/tmp/typepack-spawned-%d", (int)getpid());
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, all));
    MPI_File file;
    OK(MPI_File_open(all, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    int value = 31 * rank, got = -1;
    MPI_Offset next = (rank + 1) % size;
    OK(MPI_File_write_at_all(file, rank * sizeof(int), &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(all));
    OK(MPI_File_read_at_all(file, next * sizeof(int), &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == 31 * (int)next);
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Group group;
    int place;
    OK(MPI_Comm_group(all, &group));
    OK(MPI_Group_rank(group, &place));
    CHECK(place == rank);
    OK(MPI_Group_free(&group));
    /* Each world has its own set of all its processes, and each process a set of its own. */
    for (int alone = 0; alone < 2; alone++) {
        MPI_Info info;
        MPI_Comm set;
        int members;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_pset_name", alone ? "mpi://SELF" : "mpi://WORLD"));
        OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &set));
        OK(MPI_Info_free(&info));
        CHECK(set != MPI_COMM_NULL);
        OK(MPI_Comm_size(set, &members));
        /* The parents may be a part of their world. */
        OK(MPI_Comm_size(inter, &local));
        CHECK(members == (alone ? 1 : local));
        OK(MPI_Comm_free(&set));
    }
    MPI_Comm half;
    OK(MPI_Comm_split(all, rank % 2, rank, &half));
    OK(MPI_Barrier(half));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&all));
}

static void together(MPI_Comm inter, int children)
{
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    messages(inter, children);
    between(inter, children);
    merged(inter, children);
}

/* ---- children ---- */

static int child(MPI_Comm parent, int argc, char **argv)
{
    int flag, remote;
    OK(MPI_Comm_test_inter(parent, &flag));
    CHECK(flag);
    OK(MPI_Comm_remote_size(parent, &remote));
    CHECK(remote > 0);
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Comm_get_name(parent, name, &length));
    CHECK(!strcmp(name, "MPI_COMM_PARENT"));
    MPI_Comm again;
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == parent);
    int value = world_rank, sum;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == world_size * (world_size - 1) / 2);
    MPI_Group group;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Group_rank(group, &value));
    CHECK(value == world_rank);
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_size(MPI_COMM_SELF, &value));
    CHECK(value == 1);

    if (argc < 2 || !strcmp(argv[1], "together")) {
        together(parent, 1);
    } else if (!strcmp(argv[1], "arguments")) {
        CHECK(argc == 5 && !strcmp(argv[2], "a b") && !strcmp(argv[3], "") && !strcmp(argv[4], "'\"$x"));
    } else if (!strcmp(argv[1], "number")) {
        /* The number of the command is that of MPI_APPNUM. */
        CHECK(argc == 3 && atoi(argv[2]) == attribute(MPI_APPNUM));
        int told[2] = {attribute(MPI_APPNUM), world_rank};
        OK(MPI_Send(told, 2, MPI_INT, 0, 1, parent));
    } else if (!strcmp(argv[1], "directory")) {
        char here[PATH_MAX];
        CHECK(getcwd(here, sizeof here) && !strcmp(here, argv[2]));
    } else if (!strcmp(argv[1], "handler")) {
        /* mpi_initial_errhandler is mpi_errors_return. */
        RAISES(MPI_ERR_RANK, MPI_Send(NULL, 0, MPI_INT, 77, 0, MPI_COMM_WORLD));
        RAISES(MPI_ERR_RANK, MPI_Send(NULL, 0, MPI_INT, 77, 0, parent));
    } else if (!strcmp(argv[1], "deeper")) {
        int depth = atoi(argv[2]);
        if (depth > 0) {
            char text[16];
            snprintf(text, sizeof text, "%d", depth - 1);
            char *arguments[] = {"deeper", text, NULL};
            MPI_Comm inter;
            OK(MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
            together(inter, 0);
            OK(MPI_Comm_disconnect(&inter));
        }
        together(parent, 1);
    } else {
        fprintf(stderr, "a child with the argument %s\n", argv[1]);
        return 1;
    }
    OK(MPI_Comm_disconnect(&parent));
    CHECK(parent == MPI_COMM_NULL);
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    return 0;
}

/* ---- parents ---- */

static void some_children(MPI_Comm comm, int root)
{
    int rank;
    OK(MPI_Comm_rank(comm, &rank));
    for (int children = 1; children <= 4; children++) {
        int codes[4] = {77, 77, 77, 77}, remote;
        MPI_Comm inter;
        /* Only the root's arguments count. */
        int is_root = rank == root;
        char *arguments[] = {"together", NULL};
        OK(MPI_Comm_spawn(is_root ? self : NULL, is_root && children % 2 ? arguments : MPI_ARGV_NULL,
                          is_root ? children : -1, MPI_INFO_NULL, root, comm, &inter,
                          children > 2 ? MPI_ERRCODES_IGNORE : codes));
        for (int i = 0; i < 4; i++) CHECK(codes[i] == (children <= 2 && i < children ? MPI_SUCCESS : 77));
        OK(MPI_Comm_remote_size(inter, &remote));
        CHECK(remote == children);
        together(inter, 0);
        OK(MPI_Comm_disconnect(&inter));
        CHECK(inter == MPI_COMM_NULL);
    }
}

static void several_commands(void)
{
    char *commands[] = {self, self, self};
    char *first[] = {"number", "0", NULL}, *second[] = {"number", "1", NULL}, *third[] = {"number", "2", NULL};
    char **argvs[] = {first, second, third};
    int most[] = {1, 2, 1}, codes[4] = {77, 77, 77, 77}, remote;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    OK(MPI_Comm_spawn_multiple(3, commands, argvs, most, infos, 0, MPI_COMM_WORLD, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 4);
    if (world_rank == 0) {
        int wanted[] = {0, 1, 1, 2};
        for (int child = 0; child < 4; child++) {
            int told[2];
            CHECK(codes[child] == MPI_SUCCESS);
            OK(MPI_Recv(told, 2, MPI_INT, child, 1, inter, MPI_STATUS_IGNORE));
            CHECK(told[0] == wanted[child] && told[1] == child);
        }
    }
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &inter,
                               MPI_ERRCODES_IGNORE));
    together(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
}

/* Spawns with hints that the keys and values in `hints` say; the list ends with NULL. */
static int with_hints(const char *command, char **argv, int most, const char **hints, MPI_Comm *inter, int *codes)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (; *hints; hints += 2) OK(MPI_Info_set(info, hints[0], hints[1]));
    int code = MPI_Comm_spawn(command, argv, most, info, 0, MPI_COMM_WORLD, inter, codes);
    OK(MPI_Info_free(&info));
    return code;
}

static void hints(void)
{
    MPI_Comm inter;
    int codes[4], remote;
    char *arguments[] = {"arguments", "a b", "", "'\"$x", NULL};
    OK(MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&inter));

    char here[PATH_MAX], folder[PATH_MAX], *name = strrchr(self, '/') + 1;
    CHECK(getcwd(here, sizeof here));
    snprintf(folder, sizeof folder, "%.*s", (int)(name - self - 1), self);
    char *there[] = {"directory", "/usr", NULL}, *stay[] = {"directory", here, NULL};
    OK(with_hints(self, there, 1, (const char *[]){"wdir", "/usr", "host", "localhost", "unknown", "x", NULL}, &inter,
                  codes));
    OK(MPI_Comm_disconnect(&inter));
    OK(with_hints(name, stay, 1, (const char *[]){"path", folder, NULL}, &inter, codes));
    OK(MPI_Comm_disconnect(&inter));
    char relative[PATH_MAX];
    snprintf(relative, sizeof relative, "./%s", name);
    char *beside[] = {"directory", folder, NULL};
    OK(with_hints(relative, beside, 1, (const char *[]){"wdir", folder, NULL}, &inter, codes));
    OK(MPI_Comm_disconnect(&inter));
    char *handler[] = {"handler", NULL};
    OK(with_hints(self, handler, 2, (const char *[]){"mpi_initial_errhandler", "mpi_errors_return", NULL}, &inter,
                  codes));
    OK(MPI_Comm_disconnect(&inter));

    /* The largest number of the list that is possible. */
    OK(with_hints(self, MPI_ARGV_NULL, 4, (const char *[]){"soft", "1,3:9:5, 0:2", NULL}, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 3);
    if (world_rank == 0) CHECK(codes[2] == MPI_SUCCESS && codes[3] == MPI_ERR_SPAWN);
    together(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
    /* No process can be started, and none is needed. */
    OK(with_hints("./no-such-program", MPI_ARGV_NULL, 2, (const char *[]){"soft", "0:2", NULL}, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 0);
    if (world_rank == 0) CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    OK(MPI_Comm_disconnect(&inter));

    /* Hints from a file. */
    char file[64], text[PATH_MAX + 64];
    snprintf(file, sizeof file, "/tmp/typepack-hints-%d-%d", (int)getppid(), world_rank);
    FILE *to = fopen(file, "w");
    CHECK(to);
    fprintf(to, "# hints\n\nwdir = /usr\nsoft=1\n");
    fclose(to);
    snprintf(text, sizeof text, "%s", file);
    OK(with_hints(self, there, 3, (const char *[]){"file", text, NULL}, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 1);
    OK(MPI_Comm_disconnect(&inter));
    unlink(file);
}

/* A shell that starts the rank, and a script. */
static void wrappers(void)
{
    MPI_Comm inter;
    char line[PATH_MAX + 32];
    snprintf(line, sizeof line, "'%s' together; exit $?", self);
    char *arguments[] = {"-c", line, NULL};
    OK(MPI_Comm_spawn("sh", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    together(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
}

static void nothing_starts(const char *command, const char **hint)
{
    MPI_Comm inter = MPI_COMM_SELF;
    int codes[2] = {77, 77};
    RAISES(MPI_ERR_SPAWN, with_hints(command, MPI_ARGV_NULL, 2, hint, &inter, codes));
    CHECK(inter == MPI_COMM_NULL);
    if (world_rank == 0) CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
}

static void errors(void)
{
    MPI_Comm inter;
    int codes[3];
    const char *none[] = {NULL};
    nothing_starts("./no-such-program", none);
    nothing_starts("no-such-program", none);
    nothing_starts("/etc/passwd", none);
    nothing_starts("/etc", none);
    nothing_starts("", none);
    nothing_starts(self, (const char *[]){"wdir", "/no/such/folder", NULL});
    nothing_starts(self, (const char *[]){"wdir", "/etc/passwd", NULL});
    nothing_starts(self, (const char *[]){"host", "no-such-host.example.org", NULL});
    nothing_starts(self, (const char *[]){"arch", "pdp11", NULL});
    nothing_starts(self, (const char *[]){"soft", "5:9", NULL});
    /* The system finds out only when it executes the file. */
    char strange[64];
    snprintf(strange, sizeof strange, "/tmp/typepack-strange-%d-%d", (int)getppid(), world_rank);
    FILE *to = fopen(strange, "w");
    CHECK(to);
    fprintf(to, "#!/no/such/interpreter\n");
    fclose(to);
    CHECK(chmod(strange, 0755) == 0);
    nothing_starts(strange, none);
    /* No process is one of the allowed numbers. */
    int remote;
    OK(with_hints(strange, MPI_ARGV_NULL, 2, (const char *[]){"soft", "0:2", NULL}, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 0);
    OK(MPI_Comm_disconnect(&inter));
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(MPI_ERR_SPAWN, text, &length));
    if (world_rank == 0) CHECK(strstr(text, strange) != NULL);
    /* If one of two commands cannot be started, the other one is not started either. */
    char *commands[] = {self, strange};
    int most[] = {2, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    RAISES(MPI_ERR_SPAWN, MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &inter,
                                                  codes));
    unlink(strange);
    RAISES(MPI_ERR_SPAWN, MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &inter,
                                                  codes));
    RAISES(MPI_ERR_SPAWN, MPI_Comm_spawn(self, MPI_ARGV_NULL, 5000, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                         MPI_ERRCODES_IGNORE));
    /* Arguments that are wrong at the root are errors of other classes at the other ranks. */
    int is_root = world_rank == 0, other = is_root ? MPI_ERR_ARG : MPI_ERR_OTHER;
    RAISES(other, MPI_Comm_spawn(self, MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE));
    RAISES(other, MPI_Comm_spawn(NULL, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE));
    RAISES(is_root ? MPI_ERR_INFO_VALUE : MPI_ERR_OTHER,
           with_hints(self, MPI_ARGV_NULL, 1, (const char *[]){"soft", "x", NULL}, &inter, codes));
    RAISES(is_root ? MPI_ERR_INFO_VALUE : MPI_ERR_OTHER,
           with_hints(self, MPI_ARGV_NULL, 1, (const char *[]){"mpi_initial_errhandler", "mine", NULL}, &inter, codes));
    RAISES(MPI_ERR_ROOT, MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, world_size, MPI_COMM_WORLD, &inter,
                                        MPI_ERRCODES_IGNORE));
    /* A wrong argument of another rank: nothing is started. */
    if (world_size > 1)
        RAISES(is_root ? MPI_ERR_OTHER : MPI_ERR_ARG,
               MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, is_root ? &inter : NULL,
                              MPI_ERRCODES_IGNORE));
    /* After all these errors, the communicator works. */
    int value = 1, sum;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == world_size);
}

/* Children of children, and several worlds at once. */
static void more_worlds(void)
{
    char *deeper[] = {"deeper", "1", NULL};
    MPI_Comm inter, half;
    OK(MPI_Comm_spawn(self, deeper, 1, MPI_INFO_NULL, world_size - 1, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    together(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
    /* Each rank starts processes of its own at the same time. */
    OK(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    together(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half));
    OK(MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, half, &inter, MPI_ERRCODES_IGNORE));
    together(inter, 0);
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_free(&half));
    /* Two worlds of children, which both live. */
    char *together_[] = {"together", NULL};
    MPI_Comm other;
    OK(MPI_Comm_spawn(self, together_, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_spawn(self, together_, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE));
    together(other, 0);
    together(inter, 0);
    OK(MPI_Comm_disconnect(&other));
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    find_self();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    OK(MPI_Comm_get_parent(&parent));
    int code = 0;
    if (parent != MPI_COMM_NULL) {
        code = child(parent, argc, argv);
    } else {
        errors_return();
        some_children(MPI_COMM_WORLD, world_size - 1);
        several_commands();
        hints();
        wrappers();
        errors();
        more_worlds();
    }
    OK(MPI_Finalize());
    return code;
}
