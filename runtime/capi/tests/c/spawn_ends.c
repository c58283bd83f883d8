/* How jobs with several worlds end. The first argument says what happens; the children run this program, too. What must
   not end prints a line at last. */
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char self[PATH_MAX];
static int rank;

/* No wait of this program is longer, in seconds. */
enum { LIMIT = 100 };

static void wait_for_ever(MPI_Comm comm)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, 77, comm, MPI_STATUS_IGNORE);
}

/* Sleeps for a moment. Ends the program if it has waited too long for `what` since `start`. */
static void nap(double start, const char *what, int number)
{
    if (MPI_Wtime() - start > LIMIT) {
        fprintf(stderr, "waited %d s for %s, %d\n", LIMIT, what, number);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    usleep(1000);
}

/* Waits until a process has ended. */
static void await_end(int pid)
{
    char name[64], line[256], state;
    double start = MPI_Wtime();
    for (;;) {
        snprintf(name, sizeof name, "/proc/%d/stat", pid);
        FILE *stat = fopen(name, "r");
        if (!stat) return;
        char *read = fgets(line, sizeof line, stat);
        fclose(stat);
        char *end = read ? strrchr(line, ')') : NULL;
        if (!end || sscanf(end + 1, " %c", &state) != 1 || state == 'Z') return;
        nap(start, "the end of process", pid);
    }
}

/* Waits until the process is not even a zombie any more. */
static void await_burial(int pid)
{
    char name[64];
    double start = MPI_Wtime();
    snprintf(name, sizeof name, "/proc/%d", pid);
    while (access(name, F_OK) == 0) nap(start, "the end of process", pid);
}

/* Returns how many descriptors a process has open. */
static int descriptors(int pid)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/fd", pid);
    DIR *folder = opendir(name);
    CHECK(folder);
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* The bytes that MPI_Comm_join sends first. */
enum { GREETING = 28 };

/* Makes a socket that listens under a name with the number `pid`, or connects to it. */
static int open_socket(int pid, int listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "typepack-ends-%d", pid);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 + length;
    CHECK(fd >= 0);
    if (listens) CHECK(bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, 2) == 0);
    else CHECK(connect(fd, (struct sockaddr *)&address, bytes) == 0);
    return fd;
}

static int tell_pids(MPI_Comm inter, int children)
{
    /* Rank 0 of each side tells the other its process id. */
    int own = (int)getpid(), other = 0;
    if (rank == 0) {
        OK(MPI_Sendrecv(&own, 1, MPI_INT, 0, 5, &other, 1, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE));
    }
    (void)children;
    return other;
}

/* Makes an intercommunicator whose local group has processes of both worlds, and disconnects all communicators. */
static void mix(MPI_Comm inter, int children)
{
    MPI_Comm all, half, mixed;
    int place;
    OK(MPI_Intercomm_merge(inter, children, &all));
    OK(MPI_Comm_rank(all, &place));
    OK(MPI_Comm_split(all, place % 2, place, &half));
    OK(MPI_Intercomm_create(half, 0, all, 1 - place % 2, 9, &mixed));
    OK(MPI_Comm_disconnect(&half));
    OK(MPI_Comm_disconnect(&all));
    OK(MPI_Comm_disconnect(&mixed));
    OK(MPI_Comm_disconnect(&inter));
}

/* Finds out what this process would send in MPI_Comm_join, without a partner. */
static void find_greeting(char *greeting)
{
    int pair[2];
    MPI_Comm inter;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(write(pair[1], "this is not another process", GREETING) == GREETING);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    RAISES(MPI_ERR_ARG, MPI_Comm_join(pair[0], &inter));
    CHECK(read(pair[1], greeting, GREETING) == GREETING);
}

static void child(MPI_Comm parent, const char *what)
{
    int other = tell_pids(parent, 1);
    if (!strcmp(what, "child-dies")) {
        if (rank == 1) kill(getpid(), SIGKILL);
        wait_for_ever(parent);
    } else if (!strcmp(what, "child-dies-apart")) {
        OK(MPI_Comm_disconnect(&parent));
        if (rank == 0) kill(getpid(), SIGKILL);
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "child-dies-mixed")) {
        mix(parent, 1);
        if (rank == 0) kill(getpid(), SIGKILL);
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "both-freed")) {
        OK(MPI_Comm_free(&parent));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) kill(other, SIGUSR1);
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "child-dies-freed")) {
        /* Freeing the communicator does not disconnect. */
        OK(MPI_Comm_free(&parent));
        kill(getpid(), SIGKILL);
    } else if (!strcmp(what, "parent-dies")) {
        wait_for_ever(parent);
    } else if (!strcmp(what, "parent-dies-apart")) {
        OK(MPI_Comm_disconnect(&parent));
        if (rank == 0) await_end(other);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) printf("the children live\n");
    } else if (!strcmp(what, "abort")) {
        if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
        wait_for_ever(parent);
    } else if (!strcmp(what, "fails-at-last")) {
        OK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        exit(9);
    } else if (!strcmp(what, "pool")) {
        int pid = (int)getpid();
        OK(MPI_Gather(&pid, 1, MPI_INT, NULL, 1, MPI_INT, 0, parent));
        OK(MPI_Comm_disconnect(&parent));
    } else if (!strcmp(what, "error")) {
        if (rank == 1) MPI_Send(NULL, 0, MPI_INT, 77, 0, MPI_COMM_WORLD);
        wait_for_ever(parent);
    } else if (!strcmp(what, "told")) {
        if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 6, parent, MPI_STATUS_IGNORE);
            kill(getpid(), SIGKILL);
        }
        wait_for_ever(parent);
    } else if (!strcmp(what, "joined-dies")) {
        OK(MPI_Comm_disconnect(&parent));
        if (rank == 0) {
            char greeting[GREETING], answer[GREETING];
            find_greeting(greeting);
            int fd = open_socket(other, 0);
            CHECK(write(fd, greeting, GREETING) == GREETING);
            CHECK(recv(fd, answer, GREETING, MSG_WAITALL) == GREETING);
            kill(getpid(), SIGKILL);
        }
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "joined-dies-late") || !strcmp(what, "joined-dies-over")) {
        /* The parent hears of the greeting when mpiexec has dealt with the death of rank 0: then rank 1 gets a signal. */
        sigset_t sign;
        int number, pid = (int)getpid();
        char greeting[GREETING];
        sigemptyset(&sign);
        sigaddset(&sign, SIGTERM);
        CHECK(sigprocmask(SIG_BLOCK, &sign, NULL) == 0);
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Bcast(&other, 1, MPI_INT, 0, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) {
            find_greeting(greeting);
            int fd = open_socket(other, 0);
            CHECK(write(fd, greeting, GREETING) == GREETING);
            kill(getpid(), SIGKILL);
        }
        CHECK(sigwait(&sign, &number) == 0);
        int fd = open_socket(other, 0);
        CHECK(write(fd, &pid, sizeof pid) == sizeof pid);
        /* Either the parent ends while this process runs, or this process has ended long before. */
        if (!strcmp(what, "joined-dies-late")) await_end(other);
        kill(pid, SIGKILL);
    } else if (!strcmp(what, "hang")) {
        printf("pid %d\n", (int)getpid());
        fflush(stdout);
        wait_for_ever(parent);
    }
}

/* Starts one world after another. None leaves anything in mpiexec. */
static void pool(void)
{
    char *arguments[] = {"pool", NULL};
    /* mpiexec opens a descriptor for each rank that joins. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int before = descriptors(getppid());
    for (int world = 0; world < 6; world++) {
        MPI_Comm inter;
        OK(MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
        int pids[2];
        tell_pids(inter, 0);
        OK(MPI_Gather(NULL, 0, MPI_INT, pids, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
        OK(MPI_Comm_disconnect(&inter));
        if (rank == 0) {
            await_burial(pids[0]);
            await_burial(pids[1]);
            double start = MPI_Wtime();
            while (descriptors(getppid()) > before) nap(start, "the end of descriptors; at first there were", before);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (rank == 0) printf("nothing is left\n");
}

static void parent(const char *what)
{
    MPI_Comm inter;
    char *arguments[] = {(char *)what, NULL};
    if (!strcmp(what, "never-joins")) {
        MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        printf("not reached\n");
        return;
    }
    if (!strcmp(what, "exits-early") || !strcmp(what, "killed-early")) {
        char *shell[] = {"-c", strcmp(what, "exits-early") ? "kill -9 $$" : "exit 3", NULL};
        MPI_Comm_spawn("sh", shell, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        printf("not reached\n");
        return;
    }
    if (!strcmp(what, "refused")) {
        /* The system finds out only when it executes the file. */
        char strange[64];
        snprintf(strange, sizeof strange, "/tmp/typepack-refused-%d", (int)getpid());
        FILE *to = fopen(strange, "w");
        CHECK(to);
        fprintf(to, "#!/no/such/interpreter\n");
        fclose(to);
        CHECK(chmod(strange, 0755) == 0);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (int i = 0; i < 9; i++) {
            int code = MPI_Comm_spawn(strange, MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                      MPI_ERRCODES_IGNORE), class;
            OK(MPI_Error_class(code, &class));
            CHECK(class == MPI_ERR_SPAWN && inter == MPI_COMM_NULL);
        }
        unlink(strange);
        printf("nothing was started\n");
        return;
    }
    if (!strcmp(what, "pool")) {
        pool();
        return;
    }
    /* mpiexec gives this process some time after SIGTERM. */
    if (!strcmp(what, "told")) signal(SIGTERM, SIG_IGN);
    int socket = -1;
    if (!strncmp(what, "joined-dies", 11) && rank == 0) socket = open_socket((int)getpid(), 1);
    sigset_t sign;
    int number;
    sigemptyset(&sign);
    sigaddset(&sign, SIGUSR1);
    if (!strcmp(what, "both-freed")) CHECK(sigprocmask(SIG_BLOCK, &sign, NULL) == 0);
    OK(MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    int other = tell_pids(inter, 0);
    if (!strcmp(what, "child-dies") || !strcmp(what, "child-dies-freed") || !strcmp(what, "abort")) {
        wait_for_ever(inter);
    } else if (!strcmp(what, "child-dies-apart") || !strcmp(what, "fails-at-last")) {
        OK(MPI_Comm_disconnect(&inter));
        if (rank == 0) await_end(other);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) printf("the parents live\n");
    } else if (!strcmp(what, "both-freed")) {
        /* The last free of both sides ends the connection. */
        OK(MPI_Comm_free(&inter));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) {
            CHECK(sigwait(&sign, &number) == 0);
            kill(other, SIGKILL);
            await_end(other);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) printf("the parents live\n");
    } else if (!strcmp(what, "child-dies-mixed")) {
        mix(inter, 0);
        if (rank == 0) await_end(other);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) printf("the parents live\n");
    } else if (!strcmp(what, "error")) {
        wait_for_ever(inter);
    } else if (!strcmp(what, "told")) {
        int value, length;
        char text[MPI_MAX_ERROR_STRING];
        if (rank != 0) wait_for_ever(inter);
        OK(MPI_Send(NULL, 0, MPI_INT, 1, 6, inter));
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        int code = MPI_Recv(&value, 1, MPI_INT, 1, 77, inter, MPI_STATUS_IGNORE);
        OK(MPI_Error_string(code, text, &length));
        if (strstr(text, "rank 1 of world 1 killed by signal 9")) printf("the text names the world\n");
        else printf("not so: %s\n", text);
        fflush(stdout);
        pause();
    } else if (!strcmp(what, "joined-dies")) {
        OK(MPI_Comm_disconnect(&inter));
        if (rank == 0) {
            int fd = accept(socket, NULL, NULL);
            CHECK(fd >= 0);
            MPI_Comm_join(fd, &inter);
            printf("not reached\n");
        }
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "joined-dies-late") || !strcmp(what, "joined-dies-over")) {
        OK(MPI_Comm_disconnect(&inter));
        if (rank == 0) {
            int pair[2], pid, fd = accept(socket, NULL, NULL);
            char greeting[GREETING];
            CHECK(recv(fd, greeting, GREETING, MSG_WAITALL) == GREETING);
            fd = accept(socket, NULL, NULL);
            CHECK(recv(fd, &pid, sizeof pid, MSG_WAITALL) == sizeof pid);
            /* When it is no zombie any more, mpiexec has nothing left of its world. */
            if (!strcmp(what, "joined-dies-over")) await_burial(pid);
            CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
            CHECK(write(pair[1], greeting, GREETING) == GREETING);
            MPI_Comm_join(pair[0], &inter);
            printf("not reached\n");
        }
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "parent-dies")) {
        if (rank == 0) kill(getpid(), SIGKILL);
        wait_for_ever(inter);
    } else if (!strcmp(what, "parent-dies-apart")) {
        OK(MPI_Comm_disconnect(&inter));
        /* The others may be in the call. */
        if (rank == 0) kill(getpid(), SIGKILL);
        wait_for_ever(MPI_COMM_WORLD);
    } else if (!strcmp(what, "hang")) {
        printf("pid %d\n", (int)getpid());
        fflush(stdout);
        wait_for_ever(inter);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm up;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 2);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&up));
    if (up != MPI_COMM_NULL) child(up, argv[1]);
    else parent(argv[1]);
    OK(MPI_Finalize());
    return 0;
}
