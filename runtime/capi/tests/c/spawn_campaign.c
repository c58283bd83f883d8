/* Random spawns, connections, disconnections, joins and names of services, and random deaths. `scripts/soak spawn` runs it.

   CAMPAIGN_SEED is the seed of the round; every world draws from a seed that follows from it. With CAMPAIGN_DEATHS=1,
   processes also end themselves, or mpiexec, at random places; then the job may end at any time, in any way, but soon. With
   CAMPAIGN_DEATHS=2, somebody else kills processes. A world prints how many operations it has made. The children run this
   program too: `spawn_campaign ROLE SEED DEPTH ...`. */
#define _GNU_SOURCE
#include "check.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_CHILDREN = 3, LONG = 20000 };

static char self[PATH_MAX];
static int world_rank, world_size, deaths;
static long operations;

/* ---- random numbers: all ranks that share a generator draw the same ---- */

static unsigned draw(uint64_t *state, unsigned below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (unsigned)((z ^ z >> 31) >> 33) % below;
}

static uint64_t seed_of(uint64_t *state)
{
    return (uint64_t)draw(state, 1u << 30) + 1;
}

/* The generator of this process alone. */
static uint64_t own;

/* Ends this process or mpiexec, now and then. */
static void maybe_die(void)
{
    if (deaths != 1 || draw(&own, 24) != 0) return;
    char path[64], name[16] = "";
    pid_t launcher = getppid();
    snprintf(path, sizeof path, "/proc/%d/comm", (int)launcher);
    FILE *comm = fopen(path, "r");
    if (comm) {
        if (!fgets(name, sizeof name, comm)) name[0] = 0;
        fclose(comm);
    }
    int is_launcher = !strcmp(name, "mpiexec\n");
    switch (draw(&own, 8)) {
    case 0: MPI_Abort(MPI_COMM_WORLD, 5); break;
    case 1: exit(3);
    case 2: _exit(0);
    case 3: kill(getpid(), SIGSEGV); break;
    case 4: if (is_launcher) kill(launcher, SIGKILL); break;
    case 5: if (is_launcher) kill(launcher, draw(&own, 2) ? SIGINT : SIGTERM); break;
    default: kill(getpid(), SIGKILL);
    }
}

/* ---- what two sides do together; both pass generators in the same state ---- */

static void messages(MPI_Comm inter, int side, int length)
{
    int rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    MPI_Request requests[2 * 16];
    int *out = malloc(length * sizeof *out), *in = malloc((size_t)remote * length * sizeof *in);
    CHECK(out && in && remote <= 16);
    for (int i = 0; i < length; i++) out[i] = 1000000 * side + 1000 * rank + i;
    for (int peer = 0; peer < remote; peer++) {
        OK(MPI_Irecv(in + (size_t)peer * length, length, MPI_INT, peer, 7, inter, &requests[2 * peer]));
        OK(MPI_Isend(out, length, MPI_INT, peer, 7, inter, &requests[2 * peer + 1]));
    }
    maybe_die();
    OK(MPI_Waitall(2 * remote, requests, MPI_STATUSES_IGNORE));
    for (int peer = 0; peer < remote; peer++)
        for (int i = 0; i < length; i++) CHECK(in[(size_t)peer * length + i] == 1000000 * !side + 1000 * peer + i);
    free(out), free(in);
}

static void merged(MPI_Comm inter, int side, int apart)
{
    MPI_Comm all;
    int size, one = 1, sum;
    OK(MPI_Intercomm_merge(inter, side, &all));
    OK(MPI_Comm_size(all, &size));
    maybe_die();
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size);
    OK(apart ? MPI_Comm_disconnect(&all) : MPI_Comm_free(&all));
}

static void together(MPI_Comm inter, int side, uint64_t *shared)
{
    int rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (unsigned n = draw(shared, 4); n > 0; n--) {
        maybe_die();
        switch (draw(shared, 5)) {
        case 0: messages(inter, side, 1 + draw(shared, 8)); break;
        case 1: messages(inter, side, LONG); break;
        case 2: merged(inter, side, draw(shared, 2)); break;
        case 3: {
            MPI_Comm again;
            int value = rank + 100 * side, sum;
            OK(MPI_Comm_dup(inter, &again));
            OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, again));
            CHECK(sum == remote * (remote - 1) / 2 + 100 * !side * remote);
            OK(draw(shared, 2) ? MPI_Comm_disconnect(&again) : MPI_Comm_free(&again));
            break;
        }
        default: OK(MPI_Barrier(inter));
        }
    }
}

/* Ends an intercommunicator as both sides have drawn. */
static void part(MPI_Comm *inter, unsigned how)
{
    maybe_die();
    OK(how ? MPI_Comm_disconnect(inter) : MPI_Comm_free(inter));
    CHECK(*inter == MPI_COMM_NULL);
    operations++;
}

/* ---- operations of a world on a communicator ---- */

static void work(MPI_Comm comm, uint64_t *shared, int depth);

static void spawn(MPI_Comm comm, int root, const char *role, uint64_t seed, int depth, const char *more, int children,
                  MPI_Comm *inter)
{
    char number[32], level[16], side[2] = "0";
    snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    snprintf(level, sizeof level, "%d", depth);
    if (!strcmp(role, "connect")) side[0] = '1';
    char *arguments[] = {(char *)role, number, level, (char *)more, side, NULL};
    int codes[MOST_CHILDREN], remote;
    OK(MPI_Comm_spawn(self, arguments, children, MPI_INFO_NULL, root, comm, inter, codes));
    for (int i = 0; i < children; i++) CHECK(codes[i] == MPI_SUCCESS);
    OK(MPI_Comm_remote_size(*inter, &remote));
    CHECK(remote == children);
    operations++;
}

static void family(MPI_Comm comm, int size, uint64_t *shared, int depth)
{
    int children = 1 + draw(shared, MOST_CHILDREN), root = draw(shared, size);
    uint64_t seed = seed_of(shared);
    MPI_Comm inter;
    spawn(comm, root, "child", seed, depth - 1, "-", children, &inter);
    together(inter, 0, &seed);
    part(&inter, draw(&seed, 3));
}

/* Two new worlds find each other by the name of a service. */
static void strangers(MPI_Comm comm, int size, uint64_t *shared)
{
    static int count;
    int first = 1 + draw(shared, 2), second = 1 + draw(shared, 2), root = draw(shared, size), rank;
    /* The worlds wait for each other: if one may die, both stay connected with this one until they have met. Otherwise
       nobody would end the other one. */
    unsigned early = deaths ? 0 : draw(shared, 2);
    uint64_t seed = seed_of(shared);
    char service[64] = "";
    OK(MPI_Comm_rank(comm, &rank));
    if (rank == 0) snprintf(service, sizeof service, "campaign-%d-%d%s", (int)getpid(), count++, early ? "-early" : "");
    OK(MPI_Bcast(service, sizeof service, MPI_CHAR, 0, comm));
    MPI_Comm one, other;
    spawn(comm, root, "connect", seed, 0, service, first, &one);
    spawn(comm, root, "accept", seed, 0, service, second, &other);
    part(&one, 1);
    part(&other, 1);
}

/* Two parts of a communicator meet at a port. */
static void halves(MPI_Comm comm, int size, uint64_t *shared)
{
    int rank;
    uint64_t seed = seed_of(shared);
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    OK(MPI_Comm_rank(comm, &rank));
    if (size < 2) return;
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, comm));
    OK(MPI_Comm_split(comm, rank % 2, 0, &half));
    maybe_die();
    if (rank % 2) OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
    else OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
    operations++;
    together(inter, rank % 2, &seed);
    part(&inter, draw(&seed, 2));
    OK(MPI_Comm_free(&half));
    OK(MPI_Barrier(comm));
    if (rank == 0) OK(MPI_Close_port(port));
}

static void sockets(MPI_Comm comm, int size, uint64_t *shared)
{
    int root = draw(shared, size);
    uint64_t seed = seed_of(shared);
    MPI_Comm inter;
    spawn(comm, root, "join", seed, 0, "-", 2, &inter);
    part(&inter, 1);
}

/* A program that is not there. */
static void nothing(MPI_Comm comm, int size, uint64_t *shared)
{
    MPI_Comm inter;
    int root = draw(shared, size), codes[2];
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    RAISES(MPI_ERR_SPAWN, MPI_Comm_spawn("./no-such-program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, root, comm, &inter, codes));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
    operations++;
}

static void work(MPI_Comm comm, uint64_t *shared, int depth)
{
    int size;
    OK(MPI_Comm_size(comm, &size));
    for (unsigned steps = 1 + draw(shared, 4); steps > 0; steps--) {
        maybe_die();
        unsigned what = draw(shared, depth > 0 ? 10 : 2);
        switch (what) {
        case 0: halves(comm, size, shared); break;
        case 1: nothing(comm, size, shared); break;
        case 2: sockets(comm, size, shared); break;
        case 3:
        case 4: strangers(comm, size, shared); break;
        default: family(comm, size, shared, depth);
        }
    }
}

/* ---- children ---- */

static void meet(MPI_Comm parent, const char *service, int connects, uint64_t *shared)
{
    int early = strstr(service, "-early") != NULL;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (early) part(&parent, 1);
    if (world_rank == 0 && !connects) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    } else if (world_rank == 0) {
        OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
        for (int class;;) {
            int code = MPI_Lookup_name(service, MPI_INFO_NULL, port);
            if (code == MPI_SUCCESS) break;
            OK(MPI_Error_class(code, &class));
            CHECK(class == MPI_ERR_NAME);
            usleep(1000);
        }
    }
    for (unsigned n = 1 + draw(shared, 3); n > 0; n--) {
        maybe_die();
        if (connects) OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        else OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        operations++;
        together(inter, connects, shared);
        part(&inter, draw(shared, 3));
    }
    if (world_rank == 0 && !connects) {
        OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
    if (!early) part(&parent, 1);
}

static void join(uint64_t *shared)
{
    char name[64] = "";
    if (world_rank == 0) snprintf(name, sizeof name, "typepack-campaign-%d", (int)getpid());
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    if (world_rank == 0) CHECK(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 1) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) {
        int heard = accept(fd, NULL, NULL);
        CHECK(heard >= 0);
        close(fd);
        fd = heard;
    } else {
        CHECK(connect(fd, (struct sockaddr *)&address, length) == 0);
    }
    maybe_die();
    MPI_Comm inter;
    OK(MPI_Comm_join(fd, &inter));
    CHECK(inter != MPI_COMM_NULL);
    operations++;
    together(inter, world_rank, shared);
    part(&inter, draw(shared, 2));
    close(fd);
}

static void child(MPI_Comm parent, char **argv)
{
    uint64_t seed = strtoull(argv[2], NULL, 10);
    if (!strcmp(argv[1], "child")) {
        uint64_t later = seed ^ 0x5555;
        together(parent, 1, &seed);
        part(&parent, draw(&seed, 3));
        if (draw(&later, 2)) work(MPI_COMM_WORLD, &later, atoi(argv[3]));
    } else if (!strcmp(argv[1], "join")) {
        join(&seed);
        part(&parent, 1);
    } else {
        meet(parent, argv[4], argv[5][0] == '1', &seed);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    const char *seed = getenv("CAMPAIGN_SEED"), *dies = getenv("CAMPAIGN_DEATHS");
    uint64_t shared = seed ? strtoull(seed, NULL, 10) : 1;
    deaths = dies ? atoi(dies) : 0;
    OK(MPI_Init(&argc, &argv));
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    OK(MPI_Comm_get_parent(&parent));
    own = shared * 1000003 + (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 101 + world_rank;
    if (parent != MPI_COMM_NULL) {
        CHECK(argc == 6);
        child(parent, argv);
    } else {
        uint64_t alone = shared + world_rank + 17;
        work(MPI_COMM_WORLD, &shared, 2);
        /* Each rank by itself, at the same time as the others. */
        if (draw(&shared, 2)) work(MPI_COMM_SELF, &alone, 1);
    }
    maybe_die();
    if (world_rank == 0) {
        printf("operations %ld\n", operations);
        fflush(stdout);
    }
    OK(MPI_Finalize());
    return 0;
}
