/* Calls that fail, and programs that end in an odd way.
 *
 *     mpiexec -n 2 ./errors wrong | truncated | huge | fork | abort | disconnect | outsider | foreign | insider
 *
 * wrong: erroneous calls, with PMPI_ functions and with MPI_ functions. The class of the error and the number of calls
 * of the program's error handler must be the same. A receive that fails writes nothing, also if its status is that of
 * an earlier receive.
 * truncated: messages that are too long. Each element has what it had, or what was sent.
 * huge: buffers for more bytes than a C integer counts, for messages that are short.
 * fork, abort: a child of a rank exits or starts a program, and a job is ended, while messages are outstanding.
 * disconnect: requests that the program has freed, on a communicator that it then disconnects.
 * outsider: rank 0 starts a program without the interposed library, and then all ranks meet it. foreign: the same, by the
 * functions whose names begin with PMPI_, as Fortran bindings call them. insider: both make
 * a communicator in the same way from the ranks of the job alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 50, MANY = 100000, LONG = 40000 };

static int rank, peer, failures, handled, raised;
static const char *doing = "";

static void same(const char *what, long at, long expected, long found)
{
    if (expected != found && failures++ < 20)
        printf("rank %d: %s: %s %ld: expected %ld, found %ld\n", rank, doing, what, at, expected, found);
}
#define OK(call) same(#call, 0, MPI_SUCCESS, (call))
#define CALL(u, f) ((u) ? MPI_##f : PMPI_##f)

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled++;
    raised = *code;
}

/* Returns the class of the error of a call. MPICH 5.0.2 returns no error if an error handler has returned. */
static int class_of(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code == MPI_SUCCESS && handled ? raised : code, &class);
    return class;
}

/* `blocks` of `2 * blocks` integers. */
static MPI_Datatype column(int blocks)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(blocks, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* A double and an integer in 24 bytes. */
static MPI_Datatype gapped(void)
{
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_INT}, joined, type;
    int lengths[2] = {1, 1};
    MPI_Aint at[2] = {0, 12};
    OK(MPI_Type_create_struct(2, lengths, at, parts, &joined));
    OK(MPI_Type_create_resized(joined, 0, 24, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&joined));
    return type;
}

/* ---- wrong ---- */

enum { SEND, ISEND, SEND_INIT, RECV, IRECV, RECV_INIT, SENDRECV, REPLACE, BCAST, IBCAST, GATHER, SCATTERV, ALLGATHER,
    ALLTOALLW, PACK, UNPACK, KINDS };
static const char *name[] = {"Send", "Isend", "Send_init", "Recv", "Irecv", "Recv_init", "Sendrecv", "Sendrecv_replace",
    "Bcast", "Ibcast", "Gather", "Scatterv", "Allgather", "Alltoallw", "Pack", "Unpack"};

/* The arguments of a call that can be wrong. */
struct wrong {
    const char *what;
    MPI_Comm comm;
    int count, other, tag;
    MPI_Datatype type;
};

static char from[1 << 16], to[1 << 16];

/* The status of a receive that has succeeded. */
static MPI_Status older;

static int call(int kind, int u, const struct wrong *w)
{
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Status s = older;
    MPI_Datatype types[2] = {w->type, w->type};
    int counts[2] = {w->count, w->count}, zero[2] = {0, 0}, at = 0, code;
    switch (kind) {
    case SEND: return CALL(u, Send)(from, w->count, w->type, w->other, w->tag, w->comm);
    case ISEND: code = CALL(u, Isend)(from, w->count, w->type, w->other, w->tag, w->comm, &q); break;
    case SEND_INIT: code = CALL(u, Send_init)(from, w->count, w->type, w->other, w->tag, w->comm, &q); break;
    case RECV: return CALL(u, Recv)(to, w->count, w->type, w->other, w->tag, w->comm, &s);
    case IRECV: code = CALL(u, Irecv)(to, w->count, w->type, w->other, w->tag, w->comm, &q); break;
    case RECV_INIT: code = CALL(u, Recv_init)(to, w->count, w->type, w->other, w->tag, w->comm, &q); break;
    case SENDRECV:
        return CALL(u, Sendrecv)(from, w->count, w->type, w->other, w->tag, to, 1, w->type, w->other, w->tag, w->comm,
            &s);
    case REPLACE:
        return CALL(u, Sendrecv_replace)(to, w->count, w->type, w->other, w->tag, w->other, w->tag, w->comm, &s);
    case BCAST: return CALL(u, Bcast)(to, w->count, w->type, w->other, w->comm);
    case IBCAST: code = CALL(u, Ibcast)(to, w->count, w->type, w->other, w->comm, &q); break;
    case GATHER: return CALL(u, Gather)(from, w->count, w->type, to, w->count, w->type, w->other, w->comm);
    case SCATTERV: return CALL(u, Scatterv)(from, counts, zero, w->type, to, w->count, w->type, w->other, w->comm);
    case ALLGATHER: return CALL(u, Allgather)(from, w->count, w->type, to, w->count, w->type, w->comm);
    case ALLTOALLW: return CALL(u, Alltoallw)(from, counts, zero, types, to, counts, zero, types, w->comm);
    case PACK: return CALL(u, Pack)(from, w->count, w->type, to, sizeof to, &at, w->comm);
    default: return CALL(u, Unpack)(from, sizeof from, &at, to, w->count, w->type, w->comm);
    }
    if (q != MPI_REQUEST_NULL) same("a request after an error", kind, 0, 1);
    return code;
}

static int is_message(int kind) { return kind <= REPLACE; }
static int has_root(int kind) { return kind >= BCAST && kind <= SCATTERV; }

static void wrong(void)
{
    MPI_Errhandler counts;
    MPI_Comm duplicate;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate));
    OK(MPI_Comm_create_errhandler(handler, &counts));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, counts));
    OK(MPI_Comm_set_errhandler(duplicate, counts));
    MPI_Datatype good[2] = {column(N), gapped()}, uncommitted;
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &uncommitted));
    for (int which = 0; which < 2; which++) {
        const struct wrong all[] = {
            {"communicator", MPI_COMM_NULL, 1, peer, 0, good[which]},
            {"count", duplicate, -1, peer, 0, good[which]},
            {"rank", duplicate, 1, 77, 0, good[which]},
            {"rank below zero", duplicate, 1, -77, 0, good[which]},
            {"tag", duplicate, 1, peer, -77, good[which]},
            {"null type", duplicate, 1, peer, 0, MPI_DATATYPE_NULL},
            {"uncommitted type", duplicate, 1, peer, 0, uncommitted},
        };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            for (int kind = 0; kind < KINDS; kind++) {
                static char text[100];
                int class[2] = {-1, -1}, times[2];
                /* These arguments exist only in some calls. */
                if (!strncmp(all[i].what, "rank", 4) && !is_message(kind) && !has_root(kind)) continue;
                if (!strcmp(all[i].what, "tag") && !is_message(kind)) continue;
                /* What is wrong on the other rank alone, a rank does not see. */
                if (kind == GATHER || kind == SCATTERV) {
                    int is_seen = !strcmp(all[i].what, "communicator") || !strncmp(all[i].what, "rank", 4);
                    if (!is_seen) continue;
                }
                snprintf(text, sizeof text, "%s with a wrong %s", name[kind], all[i].what);
                doing = text;
                for (int u = 0; u < 2; u++) {
                    /* Buffers of the library that have other data. */
                    memset(from, 0x77, sizeof from);
                    OK(MPI_Sendrecv(from, 1, good[which], 0, 1, to, 1, good[which], 0, 1, MPI_COMM_SELF, &older));
                    memset(to, 0x33, sizeof to);
                    handled = 0;
                    class[u] = class_of(call(kind, u, &all[i]));
                    times[u] = handled;
                    for (size_t at = 0; kind < PACK && at < sizeof to; at++) same("byte", (long)at, 0x33, to[at]);
                }
                same("error class", 0, class[0], class[1]);
                same("calls of the error handler", 0, times[0], times[1]);
                if (class[0] == MPI_SUCCESS) same("error class of the host", 0, 1, 0);
            }
    }
    /* One block must be packed, and the other one has a type that was not committed. */
    {
        static char from[1 << 12], to[1 << 12];
        MPI_Datatype out[2] = {good[1], MPI_INT}, in[2] = {good[1], uncommitted};
        int ones[2] = {1, N}, one[2] = {1, 1}, zero[2] = {0, 0}, class[2], times[2];
        doing = "Alltoallw with an uncommitted type beside another one";
        for (int u = 0; u < 2; u++) {
            handled = 0;
            class[u] = class_of(CALL(u, Alltoallw)(from, ones, zero, out, to, one, zero, in, duplicate));
            times[u] = handled;
        }
        same("error class", 0, class[0], class[1]);
        same("calls of the error handler", 0, times[0], times[1]);
    }
    /* To free the request of a collective call is an error, which the host reports or not. */
    void *host = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (host) {
        int (*of_host)(MPI_Request *) = (int (*)(MPI_Request *))dlsym(host, "PMPI_Request_free");
        static int from[2 * N], to[4 * N];
        int class[2], times[2];
        doing = "Request_free of a collective call";
        for (int u = 0; u < 2; u++) {
            MPI_Request q;
            OK(CALL(u, Iallgather)(from, 1, good[0], to, 1, good[0], duplicate, &q));
            handled = 0;
            class[u] = class_of(u ? MPI_Request_free(&q) : of_host(&q));
            times[u] = handled;
            if (q != MPI_REQUEST_NULL) OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
            OK(MPI_Barrier(duplicate));
        }
        same("error class", 0, class[0], class[1]);
        same("calls of the error handler", 0, times[0], times[1]);
    }
    for (int i = 0; i < 2; i++) OK(MPI_Type_free(&good[i]));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Errhandler_free(&counts));
    OK(MPI_Comm_free(&duplicate));
}

/* ---- truncated ---- */

static void truncated(void)
{
    MPI_Errhandler counts;
    OK(MPI_Comm_create_errhandler(handler, &counts));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts));
    int *memory = malloc(4 * MANY * sizeof *memory), *back = malloc(4 * MANY * sizeof *back);
    static const int sizes[] = {20, 200, 4000, MANY};
    for (int at = 0; at < 4; at++)
        for (int how = 0; how < 6; how++) {
            int half = sizes[at], class[2], times[2];
            MPI_Datatype whole = column(2 * half), part = column(half);
            for (int u = 0; u < 2; u++) {
                MPI_Request q, sends;
                MPI_Status s;
                int code = MPI_SUCCESS;
                doing = u ? "a truncated receive" : "a truncated receive of the host";
                /* Buffers of the library that have other data. */
                for (int i = 0; i < 4 * half; i++) memory[i] = 0x7777;
                OK(MPI_Sendrecv(memory, 1, part, peer, 1, back, 1, part, peer, 1, MPI_COMM_WORLD, &s));
                for (int i = 0; i < 4 * half; i++) memory[i] = i, back[i] = -i;
                handled = 0;
                if (how % 2) OK(MPI_Isend(memory, 1, whole, peer, 0, MPI_COMM_WORLD, &sends));
                if (how % 2) OK(MPI_Barrier(MPI_COMM_WORLD));
                switch (how / 2) {
                case 0:
                    OK(CALL(u, Irecv)(back, 1, part, peer, 0, MPI_COMM_WORLD, &q));
                    if (how % 2 == 0) OK(MPI_Isend(memory, 1, whole, peer, 0, MPI_COMM_WORLD, &sends));
                    code = CALL(u, Wait)(&q, &s);
                    break;
                case 1:
                    if (how % 2 == 0) OK(MPI_Isend(memory, 1, whole, peer, 0, MPI_COMM_WORLD, &sends));
                    code = CALL(u, Recv)(back, 1, part, peer, 0, MPI_COMM_WORLD, &s);
                    break;
                default:
                    OK(CALL(u, Recv_init)(back, 1, part, peer, 0, MPI_COMM_WORLD, &q));
                    OK(CALL(u, Start)(&q));
                    if (how % 2 == 0) OK(MPI_Isend(memory, 1, whole, peer, 0, MPI_COMM_WORLD, &sends));
                    code = CALL(u, Wait)(&q, &s);
                    OK(CALL(u, Request_free)(&q));
                }
                times[u] = handled;
                class[u] = class_of(code);
                OK(MPI_Wait(&sends, MPI_STATUS_IGNORE));
                for (int i = 0; i < 4 * half; i++)
                    if (back[i] != -i && (i % 2 || i >= 2 * half || back[i] != i)) same("integer", i, i, back[i]);
            }
            same("error class", sizes[at], class[0], class[1]);
            same("calls of the error handler", sizes[at], times[0], times[1]);
            same("error class", sizes[at], MPI_ERR_TRUNCATE, class[1]);
            OK(MPI_Type_free(&whole));
            OK(MPI_Type_free(&part));
        }
    free(memory);
    free(back);
    OK(MPI_Errhandler_free(&counts));
}

/* ---- huge ---- */

static void huge(void)
{
    enum { ROOM = 200000000 };
    MPI_Datatype type = gapped();
    MPI_Request q;
    char from[2 * 24];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *to = mmap(NULL, (size_t)ROOM * 24, PROT_READ | PROT_WRITE, flags, -1, 0);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int how = 0; how < 5; how++) {
        static const char *names[] = {"Recv", "Irecv", "Recv_init", "Sendrecv", "Mrecv"};
        MPI_Request sends;
        MPI_Message message;
        MPI_Status s;
        int count = 0;
        doing = names[how];
        for (int i = 0; i < 48; i++) from[i] = (char)(i + how + rank), to[i] = 0x55;
        if (how != 3) OK(MPI_Isend(from, 2, type, peer, 0, MPI_COMM_WORLD, &sends));
        switch (how) {
        case 0: OK(MPI_Recv(to, ROOM, type, peer, 0, MPI_COMM_WORLD, &s)); break;
        case 1:
            OK(MPI_Irecv(to, ROOM, type, peer, 0, MPI_COMM_WORLD, &q));
            OK(MPI_Wait(&q, &s));
            break;
        case 2:
            OK(MPI_Recv_init(to, ROOM, type, peer, 0, MPI_COMM_WORLD, &q));
            OK(MPI_Start(&q));
            OK(MPI_Wait(&q, &s));
            OK(MPI_Request_free(&q));
            break;
        case 3: OK(MPI_Sendrecv(from, 2, type, peer, 0, to, ROOM, type, peer, 0, MPI_COMM_WORLD, &s)); break;
        default:
            OK(MPI_Mprobe(peer, 0, MPI_COMM_WORLD, &message, &s));
            OK(MPI_Mrecv(to, ROOM, type, &message, &s));
        }
        if (how != 3) OK(MPI_Wait(&sends, MPI_STATUS_IGNORE));
        OK(MPI_Get_count(&s, type, &count));
        same("count", how, 2, count);
        for (int i = 0; i < 48; i++) {
            int is_data = i % 24 < 8 || (i % 24 >= 12 && i % 24 < 16);
            same("byte", i, is_data ? (char)(i + how + peer) : 0x55, to[i]);
        }
    }
    /* A send of more bytes than a C integer counts, which is never started. */
    doing = "Send_init";
    OK(MPI_Send_init(to, ROOM, type, peer, 0, MPI_COMM_WORLD, &q));
    OK(MPI_Request_free(&q));
    munmap(to, (size_t)ROOM * 24);
    OK(MPI_Type_free(&type));
}

/* ---- fork ---- */

static void forks(void)
{
    MPI_Datatype type = column(N);
    int back[2 * N], plain[N];
    doing = "a message while children end";
    for (int how = 0; how < 3; how++) {
        MPI_Request q;
        for (int i = 0; i < 2 * N; i++) back[i] = -1;
        for (int i = 0; i < N; i++) plain[i] = 10 * how + i + rank;
        OK(MPI_Irecv(back, 1, type, peer, 0, MPI_COMM_WORLD, &q));
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            if (how == 0) _exit(7);
            if (how == 1) exit(7);
            execlp("sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
        int status = 0;
        same("child", how, child, waitpid(child, &status, 0));
        same("code of the child", how, 7, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        OK(MPI_Send(plain, N, MPI_INT, peer, 0, MPI_COMM_WORLD));
        OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? -1 : 10 * how + i / 2 + peer, back[i]);
    }
    OK(MPI_Type_free(&type));
}

/* ---- abort ---- */

static void aborts(void)
{
    MPI_Datatype type = column(MANY);
    MPI_Request q[3];
    int *memory = calloc(6 * MANY, sizeof *memory);
    OK(MPI_Irecv(memory, 1, type, peer, 0, MPI_COMM_WORLD, &q[0]));
    OK(MPI_Isend(memory + 2 * MANY, 1, type, peer, 1, MPI_COMM_WORLD, &q[1]));
    OK(MPI_Send_init(memory + 4 * MANY, 1, type, peer, 2, MPI_COMM_WORLD, &q[2]));
    OK(MPI_Start(&q[2]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
}

/* ---- disconnect: requests that the program has freed, on a communicator that it then disconnects ---- */

static void disconnect(void)
{
    enum { DOUBLES = 1 << 16, TIMES = 3 };
    static int plain[N], small[2 * N];
    MPI_Datatype type, ints = column(N);
    OK(MPI_Type_vector(DOUBLES, 1, 2, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    double *sent = calloc(2 * DOUBLES, sizeof *sent), *received = calloc(2 * DOUBLES, sizeof *received);
    doing = "disconnect";
    for (int time = 0; time < TIMES; time++) {
        MPI_Comm comm;
        MPI_Request q, other;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        for (int i = 0; i < 2 * DOUBLES; i++) sent[i] = i + time, received[i] = -1;
        /* A receive on another communicator, whose message comes when this one is gone. */
        OK(MPI_Irecv(small, 1, ints, peer, 7, MPI_COMM_WORLD, &other));
        OK(MPI_Request_free(&other));
        if (rank == 0) {
            OK(MPI_Isend(sent, 1, type, 1, 0, comm, &q));
            OK(MPI_Request_free(&q));
        } else if (time == 0) {
            OK(MPI_Recv(received, 1, type, 0, 0, comm, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Irecv(received, 1, type, 0, 0, comm, &q));
            OK(MPI_Request_free(&q));
        }
        OK(MPI_Comm_disconnect(&comm));
        same("communicator", 0, 1, comm == MPI_COMM_NULL);
        if (rank == 1)
            for (int i = 0; i < 2 * DOUBLES; i += 2) same("double", i, i + time, (long)received[i]);
        for (int i = 0; i < N; i++) plain[i] = i + time;
        OK(MPI_Send(plain, N, MPI_INT, peer, 7, MPI_COMM_WORLD));
        /* The freed receive is complete after the first one of these messages, and unpacked in a later call. */
        for (int turn = 0; turn < 3; turn++) {
            OK(MPI_Irecv(received, 1, type, peer, 8, MPI_COMM_WORLD, &q));
            OK(MPI_Send(sent, 1, type, peer, 8, MPI_COMM_WORLD));
            OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        }
        for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? 0 : i / 2 + time, small[i]);
    }
    free(received);
    OK(MPI_Type_free(&ints));
    OK(MPI_Type_free(&type));
    free(sent);
}

/* ---- outsider ---- */

/* What rank 1 of the job sends, and the child receives. */
static void fill(char *memory)
{
    for (int i = 0; i < 24 * LONG; i++) memory[i] = (char)(i * 7);
}

static void outsider(const char *program, int is_mpi)
{
    MPI_Comm spawned = MPI_COMM_NULL, both = MPI_COMM_NULL, inter;
    MPI_Datatype type = gapped();
    char *memory = malloc(24 * LONG);
    doing = "MPI_Intercomm_create";
    if (rank == 0) {
        char *words[] = {"-u", "LD_PRELOAD", (char *)program, "child", NULL};
        OK(CALL(is_mpi, Comm_spawn)("env", words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &spawned, MPI_ERRCODES_IGNORE));
        OK(MPI_Intercomm_merge(spawned, 0, &both));
    }
    OK(CALL(is_mpi, Intercomm_create)(MPI_COMM_WORLD, 0, both, 1, 5, &inter));
    fill(memory);
    /* With tool.c: how many messages were packed. Not every way between two processes shows that to the receiver. */
    int *packed = dlsym(NULL, "tool_packed"), before = packed ? *packed : 0;
    if (rank == 1) OK(MPI_Send(memory, LONG, type, 0, 0, inter));
    if (packed) same("packed messages", 0, before, *packed);
    int of_child = 0;
    if (rank == 1) OK(MPI_Recv(&of_child, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    same("failures of the child", 0, 0, of_child);
    OK(MPI_Comm_free(&inter));
    if (rank == 0) {
        OK(MPI_Comm_free(&both));
        OK(MPI_Comm_disconnect(&spawned));
    }
    free(memory);
    OK(MPI_Type_free(&type));
}

static void insider(void)
{
    MPI_Comm inter;
    MPI_Datatype type = gapped();
    char *memory = malloc(24 * LONG);
    doing = "MPI_Intercomm_create of the job's own ranks";
    OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, peer, 5, &inter));
    fill(memory);
    int *packed = dlsym(NULL, "tool_packed"), before = packed ? *packed : 0;
    if (rank == 1) OK(MPI_Send(memory, LONG, type, 0, 0, inter));
    else OK(MPI_Recv(memory, LONG, type, 0, 0, inter, MPI_STATUS_IGNORE));
    if (packed) same("packed messages", 0, before + rank, *packed);
    OK(MPI_Comm_free(&inter));
    free(memory);
    OK(MPI_Type_free(&type));
}

static void child(void)
{
    MPI_Comm parent, both, inter;
    MPI_Datatype type = gapped();
    char *memory = malloc(24 * LONG), *wanted = malloc(24 * LONG);
    doing = "the child";
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Intercomm_merge(parent, 1, &both));
    OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, both, 0, 5, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    fill(wanted);
    memset(memory, 0x55, 24 * LONG);
    OK(MPI_Recv(memory, LONG, type, 1, 0, inter, MPI_STATUS_IGNORE));
    for (int i = 0; i < 24 * LONG; i++) {
        int is_data = i % 24 < 8 || (i % 24 >= 12 && i % 24 < 16);
        same("byte", i, is_data ? wanted[i] : 0x55, memory[i]);
    }
    OK(MPI_Send(&failures, 1, MPI_INT, 1, 1, inter));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_disconnect(&parent));
    free(memory);
    free(wanted);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size;
    const char *word = argc == 2 ? argv[1] : "";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(word, "child") == 0) {
        child();
        MPI_Finalize();
        return failures != 0;
    }
    if (size != 2 || argc != 2) {
        fprintf(stderr, "usage: mpiexec -n 2 ./errors CASE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    peer = 1 - rank;
    if (strcmp(word, "wrong") == 0) wrong();
    if (strcmp(word, "truncated") == 0) truncated();
    if (strcmp(word, "huge") == 0) huge();
    if (strcmp(word, "fork") == 0) forks();
    if (strcmp(word, "abort") == 0) aborts();
    if (strcmp(word, "disconnect") == 0) disconnect();
    if (strcmp(word, "outsider") == 0) outsider(argv[0], 1);
    if (strcmp(word, "foreign") == 0) outsider(argv[0], 0);
    if (strcmp(word, "insider") == 0) insider();
    MPI_Finalize();
    if (!failures) printf("%s: no difference\n", word);
    return failures != 0;
}
