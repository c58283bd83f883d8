/* Ports, services and sockets: worlds that have no communicator in common meet. Parents start two worlds of children and
   disconnect from them; the children then find each other. */
#define _GNU_SOURCE
#include "check.h"

#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char self[PATH_MAX];
static int world_rank, world_size;

/* Tests an intercommunicator: each rank of one side sends to each rank of the other. */
static void talk(MPI_Comm inter, int high)
{
    int rank, remote, value, sum;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    MPI_Request *requests = malloc(remote * sizeof *requests);
    for (int peer = 0; peer < remote; peer++) OK(MPI_Isend(&rank, 1, MPI_INT, peer, 1, inter, &requests[peer]));
    for (int peer = 0; peer < remote; peer++) {
        OK(MPI_Recv(&value, 1, MPI_INT, peer, 1, inter, MPI_STATUS_IGNORE));
        CHECK(value == peer);
    }
    OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
    free(requests);
    MPI_Comm all;
    int size;
    OK(MPI_Intercomm_merge(inter, high, &all));
    OK(MPI_Comm_size(all, &size));
    value = 1;
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size);
    OK(MPI_Comm_disconnect(&all));
}

/* ---- children ---- */

static void serve(const char *service)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (world_rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    }
    for (int client = 0; client < 2; client++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        talk(inter, 0);
        OK(MPI_Comm_disconnect(&inter));
    }
    if (world_rank == 0) {
        OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
}

static void use(const char *service)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (world_rank == 0) {
        /* The other world may publish the name later. */
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        for (int class;;) {
            int code = MPI_Lookup_name(service, MPI_INFO_NULL, port);
            if (code == MPI_SUCCESS) break;
            OK(MPI_Error_class(code, &class));
            CHECK(class == MPI_ERR_NAME);
            usleep(1000);
        }
    }
    for (int time = 0; time < 2; time++) {
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        talk(inter, 1);
        OK(MPI_Comm_disconnect(&inter));
    }
}

/* The two ranks of the world join each other over a socket. */
static void join(void)
{
    char name[64] = "";
    if (world_rank == 0) snprintf(name, sizeof name, "typepack-join-%d", (int)getpid());
    OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), bell;
    CHECK(fd >= 0);
    if (world_rank == 0) {
        CHECK(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 1) == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        bell = accept(fd, NULL, NULL);
        CHECK(bell >= 0);
        close(fd);
        fd = bell;
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(connect(fd, (struct sockaddr *)&address, length) == 0);
    }
    MPI_Comm inter;
    int remote;
    OK(MPI_Comm_join(fd, &inter));
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == 1);
    talk(inter, world_rank);
    OK(MPI_Comm_disconnect(&inter));
    /* The socket is empty again. */
    char byte = (char)world_rank, got;
    CHECK(write(fd, &byte, 1) == 1 && read(fd, &got, 1) == 1 && got == !world_rank);
    close(fd);
}

static void child(MPI_Comm parent, char **argv)
{
    OK(MPI_Comm_disconnect(&parent));
    if (!strcmp(argv[1], "serve")) serve(argv[2]);
    else if (!strcmp(argv[1], "use")) use(argv[2]);
    else join();
}

/* ---- parents ---- */

static void start(char **arguments, int most)
{
    MPI_Comm inter;
    OK(MPI_Comm_spawn(self, arguments, most, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&inter));
}

static void errors(void)
{
    char port[MPI_MAX_PORT_NAME], other[MPI_MAX_PORT_NAME], text[MPI_MAX_ERROR_STRING];
    MPI_Comm inter;
    int length;
    const char *unknown[] = {"", "nothing", "typepack-port-1-1", "typepack-port-ffffffffffffffff-1"};
    for (int i = 0; i < 4; i++) {
        RAISES(MPI_ERR_PORT, MPI_Comm_connect(unknown[i], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        RAISES(MPI_ERR_PORT, MPI_Comm_accept(unknown[i], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        RAISES(MPI_ERR_PORT, MPI_Close_port(unknown[i]));
    }
    OK(MPI_Error_string(MPI_ERR_PORT, text, &length));
    CHECK(strstr(text, "another job"));
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Open_port(MPI_INFO_NULL, other));
    CHECK(strcmp(port, other));
    char service[64];
    snprintf(service, sizeof service, "service of %d", world_rank);
    RAISES(MPI_ERR_NAME, MPI_Lookup_name(service, MPI_INFO_NULL, other));
    RAISES(MPI_ERR_SERVICE, MPI_Unpublish_name(service, MPI_INFO_NULL, port));
    OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    RAISES(MPI_ERR_SERVICE, MPI_Publish_name(service, MPI_INFO_NULL, port));
    RAISES(MPI_ERR_SERVICE, MPI_Unpublish_name(service, MPI_INFO_NULL, "another port"));
    char found[MPI_MAX_PORT_NAME];
    OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
    CHECK(!strcmp(found, port));
    OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
    RAISES(MPI_ERR_NAME, MPI_Lookup_name(service, MPI_INFO_NULL, found));
    OK(MPI_Close_port(port));
    RAISES(MPI_ERR_PORT, MPI_Close_port(port));
    /* Only the rank that has opened a port may close it. */
    char first[MPI_MAX_PORT_NAME] = "";
    if (world_rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, first));
    OK(MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (world_rank != 0) RAISES(MPI_ERR_PORT, MPI_Close_port(first));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) OK(MPI_Close_port(first));
    RAISES(MPI_ERR_ARG, MPI_Comm_join(-1, &inter));
    int pipes[2], pair[2];
    CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RAISES(MPI_ERR_ARG, MPI_Comm_join(pipes[0], &inter));
    /* Another program, and one that has gone. */
    char junk[28] = "this is not the other rank";
    CHECK(write(pair[1], junk, sizeof junk) == sizeof junk);
    RAISES(MPI_ERR_ARG, MPI_Comm_join(pair[0], &inter));
    CHECK(read(pair[1], junk, sizeof junk) == sizeof junk);
    /* The same bytes with the number of another job. */
    junk[8] ^= 1;
    CHECK(write(pair[1], junk, sizeof junk) == sizeof junk);
    RAISES(MPI_ERR_PORT, MPI_Comm_join(pair[0], &inter));
    close(pair[1]);
    RAISES(MPI_ERR_ARG, MPI_Comm_join(pair[0], &inter));
    close(pair[0]), close(pipes[0]), close(pipes[1]);
}

/* Two groups of one world meet at a port. */
static void in_one_world(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    int side = world_rank % 2;
    if (world_rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    if (side) OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
    else OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
    talk(inter, side);
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_free(&half));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) OK(MPI_Close_port(port));
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        child(parent, argv);
    } else {
        errors_return();
        errors();
        if (world_size > 1) in_one_world();
        char *serves[] = {"serve", "ocean", NULL}, *uses[] = {"use", "ocean", NULL}, *joins[] = {"join", NULL};
        start(uses, 2);
        start(serves, 3);
        start(joins, 2);
    }
    OK(MPI_Finalize());
    return 0;
}
