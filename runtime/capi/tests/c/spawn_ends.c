/* How jobs with several worlds end. The first argument says what happens; the children run this program, too. What must
   not end prints a line at last. */
#define _GNU_SOURCE
#include "check.h"

#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char self[PATH_MAX];
static int rank;

static void wait_for_ever(MPI_Comm comm)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, 77, comm, MPI_STATUS_IGNORE);
}

/* Waits until a process has ended. */
static void await_end(int pid)
{
    char name[64], line[256], state;
    for (;;) {
        snprintf(name, sizeof name, "/proc/%d/stat", pid);
        FILE *stat = fopen(name, "r");
        if (!stat) return;
        char *read = fgets(line, sizeof line, stat);
        fclose(stat);
        char *end = read ? strrchr(line, ')') : NULL;
        if (!end || sscanf(end + 1, " %c", &state) != 1 || state == 'Z') return;
        usleep(1000);
    }
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
    } else if (!strcmp(what, "hang")) {
        printf("pid %d\n", (int)getpid());
        fflush(stdout);
        wait_for_ever(parent);
    }
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
