/* Single cases that random pairs of types do not reach. Each compares what arrives with what must arrive.
 *
 *     mpiexec -n 2 ./cases CASE
 *
 * The cases: profiled, freed, callbacks, bottom, cancel, pairs, left, wide, shared, deep, long, apart.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "older.h"

enum { N = 50, LONG = 40000 };

static int rank, peer, failures;
static const char *doing = "";

static void same(const char *what, int at, long expected, long found)
{
    if (expected != found && failures++ < 20)
        printf("rank %d: %s: %s %d: expected %ld, found %ld\n", rank, doing, what, at, expected, found);
}
#define OK(call) same(#call, 0, MPI_SUCCESS, (call))

/* N of 2 * N integers. */
static MPI_Datatype column(void)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* ---- profiled: a tool calls the functions whose names begin with PMPI_ ---- */

enum { WAIT, TEST, WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, STATUS, STATUS_ALL, STATUS_ANY, STATUS_SOME,
    CALLS };
static const char *name[] = {"PMPI_Wait", "PMPI_Test", "PMPI_Waitall", "PMPI_Testall", "PMPI_Waitany", "PMPI_Testany",
    "PMPI_Waitsome", "PMPI_Testsome", "PMPI_Request_get_status", "PMPI_Request_get_status_all",
    "PMPI_Request_get_status_any", "PMPI_Request_get_status_some"};

static void complete(int call, MPI_Request *q)
{
    int flag = 0, at, many[1];
    MPI_Status s[1];
    while (!flag) {
        switch (call) {
        case WAIT: OK(PMPI_Wait(q, s)); flag = 1; break;
        case TEST: OK(PMPI_Test(q, &flag, s)); break;
        case WAITALL: OK(PMPI_Waitall(1, q, s)); flag = 1; break;
        case TESTALL: OK(PMPI_Testall(1, q, &flag, s)); break;
        case WAITANY: OK(PMPI_Waitany(1, q, &at, s)); flag = 1; break;
        case TESTANY: OK(PMPI_Testany(1, q, &at, &flag, s)); break;
        case WAITSOME: OK(PMPI_Waitsome(1, q, &at, many, s)); flag = 1; break;
        case TESTSOME: OK(PMPI_Testsome(1, q, &at, many, s)); flag = at != 0; break;
        case STATUS: OK(PMPI_Request_get_status(*q, &flag, s)); break;
        case STATUS_ALL: OK(PMPI_Request_get_status_all(1, q, &flag, s)); break;
        case STATUS_ANY: OK(PMPI_Request_get_status_any(1, q, &at, &flag, s)); break;
        default: OK(PMPI_Request_get_status_some(1, q, &at, many, s)); flag = at == 1;
        }
    }
}

static void profiled(void)
{
    int plain[N], memory[2 * N], back[2 * N];
    MPI_Datatype type = column();
    for (int call = 0; call < CALLS; call++)
        for (int persistent = 0; persistent < 2; persistent++) {
            MPI_Request receive, send;
            doing = name[call];
            for (int i = 0; i < N; i++) plain[i] = 1000 * call + i + 1;
            memset(back, 0, sizeof back);
            if (persistent) {
                OK(MPI_Recv_init(back, 1, type, 0, 0, MPI_COMM_SELF, &receive));
                OK(PMPI_Start(&receive));
            } else {
                OK(MPI_Irecv(back, 1, type, 0, 0, MPI_COMM_SELF, &receive));
            }
            OK(PMPI_Send(plain, N, MPI_INT, 0, 0, MPI_COMM_SELF));
            complete(call, &receive);
            for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? 0 : plain[i / 2], back[i]);
            if (call >= STATUS && !persistent) OK(PMPI_Wait(&receive, MPI_STATUS_IGNORE));
            if (persistent) OK(PMPI_Request_free(&receive));

            if (!persistent) continue;
            /* A start must send the memory as it is at the start. */
            OK(MPI_Send_init(memory, 1, type, 0, 1, MPI_COMM_SELF, &send));
            for (int i = 0; i < 2 * N; i++) memory[i] = 10 * call + i;
            OK(PMPI_Irecv(plain, N, MPI_INT, 0, 1, MPI_COMM_SELF, &receive));
            OK(PMPI_Startall(1, &send));
            OK(PMPI_Wait(&send, MPI_STATUS_IGNORE));
            OK(PMPI_Wait(&receive, MPI_STATUS_IGNORE));
            for (int i = 0; i < N; i++) same("integer sent", i, 10 * call + 2 * i, plain[i]);
            OK(PMPI_Request_free(&send));
        }
    OK(PMPI_Type_free(&type));
    /* A type that was committed by the other name. */
    doing = "PMPI_Type_commit";
    OK(PMPI_Type_vector(N, 1, 2, MPI_INT, &type));
    OK(PMPI_Type_commit(&type));
    for (int i = 0; i < N; i++) plain[i] = i;
    memset(back, 0, sizeof back);
    OK(MPI_Sendrecv(plain, N, MPI_INT, 0, 0, back, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? 0 : i / 2, back[i]);
    OK(MPI_Type_free(&type));
}

/* ---- freed: a receive that the program frees, whose message comes while the program finalizes ---- */

static int late[2 * N], late_persistent[2 * N], later[2 * N];

/* Finalize calls this function first. */
static int frees(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    MPI_Datatype type = column();
    int plain[N];
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    if (rank == 0) {
        MPI_Request q;
        OK(MPI_Irecv(later, 1, type, peer, 3, MPI_COMM_WORLD, &q));
        OK(MPI_Request_free(&q));
    } else {
        usleep(200000);
        OK(MPI_Send(plain, N, MPI_INT, peer, 3, MPI_COMM_WORLD));
    }
    return MPI_Type_free(&type);
}

/* Attaches a function that finalize calls. */
static void attach(MPI_Comm_delete_attr_function *function, void *value)
{
    int keyval;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value));
    OK(MPI_Comm_free_keyval(&keyval));
}

static void freed(void)
{
    attach(frees, NULL);
    doing = "MPI_Finalize";
    MPI_Datatype type = column();
    int plain[N];
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    if (rank == 0) {
        MPI_Request q;
        OK(MPI_Irecv(late, 1, type, peer, 1, MPI_COMM_WORLD, &q));
        OK(MPI_Request_free(&q));
        OK(MPI_Recv_init(late_persistent, 1, type, peer, 2, MPI_COMM_WORLD, &q));
        OK(MPI_Start(&q));
        OK(MPI_Request_free(&q));
    } else {
        /* Lets rank 0 enter MPI_Finalize, in most runs. */
        usleep(300000);
        OK(MPI_Send(plain, N, MPI_INT, peer, 1, MPI_COMM_WORLD));
        OK(MPI_Send(plain, N, MPI_INT, peer, 2, MPI_COMM_WORLD));
    }
    OK(MPI_Type_free(&type));
}

static void after_finalize(void)
{
    for (int i = 0; i < 2 * N; i++) {
        same("integer", i, i % 2 || rank ? 0 : i / 2 + 1, late[i]);
        same("integer of a persistent receive", i, i % 2 || rank ? 0 : i / 2 + 1, late_persistent[i]);
        same("integer of a receive in finalize", i, i % 2 || rank ? 0 : i / 2 + 1, later[i]);
    }
}

/* ---- callbacks: the functions on MPI_COMM_SELF, which finalize calls while MPI can be used ---- */

static struct {
    MPI_Datatype type;
    MPI_Request receive, send;
    int back[2 * N], memory[2 * N];
    int calls;
} ending;

/* The first call completes what was started before finalize, and the second one makes new messages. */
static int ends(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    int finalized = 1;
    doing = "a function on MPI_COMM_SELF";
    OK(MPI_Finalized(&finalized));
    same("finalized", 0, 0, finalized);
    same("order of the calls", 0, ++ending.calls, *(int *)value);
    if (ending.calls == 1) {
        for (int i = 0; i < 2 * N; i++) ending.memory[i] = 100 * rank + i;
        OK(MPI_Start(&ending.send));
        OK(MPI_Wait(&ending.receive, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&ending.send, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&ending.send));
        for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? -1 : 100 * peer + i, ending.back[i]);
        return MPI_SUCCESS;
    }
    for (int i = 0; i < 2 * N; i++) ending.back[i] = -1;
    OK(MPI_Sendrecv(ending.memory, 1, ending.type, peer, 2, ending.back, 1, ending.type, peer, 2, MPI_COMM_WORLD,
        MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? -1 : 100 * peer + i, ending.back[i]);
    return MPI_Type_free(&ending.type);
}

static void callbacks(void)
{
    static int order[2] = {2, 1};
    ending.type = column();
    for (int i = 0; i < 2 * N; i++) ending.memory[i] = -2, ending.back[i] = -1;
    OK(MPI_Irecv(ending.back, 1, ending.type, peer, 1, MPI_COMM_WORLD, &ending.receive));
    OK(MPI_Send_init(ending.memory, 1, ending.type, peer, 1, MPI_COMM_WORLD, &ending.send));
    /* The function that comes last is called first. */
    for (int i = 0; i < 2; i++) attach(ends, &order[i]);
}

/* ---- bottom: types with absolute addresses ---- */

static void bottom(void)
{
    static double from[100], to[100];
    static int from_int, to_int;
    MPI_Datatype type[2], parts[3] = {MPI_DOUBLE, MPI_DOUBLE, MPI_INT}, column;
    OK(MPI_Type_vector(20, 1, 3, MPI_DOUBLE, &column));
    parts[0] = column;
    for (int side = 0; side < 2; side++) {
        int lengths[3] = {1, 2, 1};
        MPI_Aint at[3];
        OK(MPI_Get_address(side ? to : from, &at[0]));
        OK(MPI_Get_address(side ? &to[80] : &from[80], &at[1]));
        OK(MPI_Get_address(side ? &to_int : &from_int, &at[2]));
        OK(MPI_Type_create_struct(3, lengths, at, parts, &type[side]));
        OK(MPI_Type_commit(&type[side]));
    }
    OK(MPI_Type_free(&column));
    for (int how = 0; how < 4; how++) {
        MPI_Status status;
        MPI_Request q;
        int count = 0, bytes = 0, at = 0;
        char packed[1000];
        doing = "MPI_BOTTOM";
        memset(to, 0, sizeof to);
        to_int = 0;
        for (int i = 0; i < 100; i++) from[i] = 1000 * how + i + rank;
        from_int = 77 + how;
        switch (how) {
        case 0:
            OK(MPI_Sendrecv(MPI_BOTTOM, 1, type[0], peer, 0, MPI_BOTTOM, 1, type[1], peer, 0, MPI_COMM_WORLD, &status));
            break;
        case 1:
            OK(MPI_Irecv(MPI_BOTTOM, 1, type[1], peer, 0, MPI_COMM_WORLD, &q));
            OK(MPI_Send(MPI_BOTTOM, 1, type[0], peer, 0, MPI_COMM_WORLD));
            OK(MPI_Wait(&q, &status));
            break;
        case 2:
            OK(MPI_Recv_init(MPI_BOTTOM, 1, type[1], peer, 0, MPI_COMM_WORLD, &q));
            OK(MPI_Start(&q));
            OK(MPI_Send(MPI_BOTTOM, 1, type[0], peer, 0, MPI_COMM_WORLD));
            OK(MPI_Wait(&q, &status));
            OK(MPI_Request_free(&q));
            break;
        default:
            OK(MPI_Pack(MPI_BOTTOM, 1, type[0], packed, sizeof packed, &at, MPI_COMM_WORLD));
            same("position", 0, 22 * sizeof(double) + sizeof(int), at);
            OK(MPI_Sendrecv(packed, at, MPI_PACKED, peer, 0, MPI_BOTTOM, 1, type[1], peer, 0, MPI_COMM_WORLD, &status));
        }
        OK(MPI_Get_count(&status, type[1], &count));
        OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
        same("count", how, 1, count);
        same("bytes", how, 22 * sizeof(double) + sizeof(int), bytes);
        for (int i = 0; i < 100; i++) {
            int is_part = (i < 60 && i % 3 == 0) || i == 80 || i == 81;
            same("double", i, is_part ? 1000 * how + i + peer : 0, (long)to[i]);
        }
        same("integer", how, 77 + how, to_int);
    }
    OK(MPI_Type_free(&type[0]));
    OK(MPI_Type_free(&type[1]));
}

/* ---- cancel ---- */

static void cancel(void)
{
    MPI_Datatype type = column();
    int plain[N], back[2 * N];
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    for (int persistent = 0; persistent < 2; persistent++)
        for (int how = 0; how < 3; how++) {
            MPI_Request q;
            MPI_Status status;
            int cancelled = -1, flag = 0;
            doing = "MPI_Cancel";
            for (int i = 0; i < 2 * N; i++) back[i] = -i;
            if (persistent) {
                OK(MPI_Recv_init(back, 1, type, peer, 5, MPI_COMM_WORLD, &q));
                OK(MPI_Start(&q));
            } else {
                OK(MPI_Irecv(back, 1, type, peer, 5, MPI_COMM_WORLD, &q));
            }
            OK(MPI_Cancel(&q));
            switch (how) {
            case 0: OK(MPI_Wait(&q, &status)); break;
            case 1: while (!flag) OK(MPI_Test(&q, &flag, &status)); break;
            default: OK(MPI_Waitall(1, &q, &status));
            }
            OK(MPI_Test_cancelled(&status, &cancelled));
            same("cancelled", how, 1, cancelled);
            for (int i = 0; i < 2 * N; i++) same("integer", i, -i, back[i]);
            /* The next message is not disturbed. */
            if (persistent) OK(MPI_Start(&q)); else OK(MPI_Irecv(back, 1, type, peer, 5, MPI_COMM_WORLD, &q));
            OK(MPI_Send(plain, N, MPI_INT, peer, 5, MPI_COMM_WORLD));
            OK(MPI_Wait(&q, &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            same("cancelled", how, 0, cancelled);
            for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? -i : i / 2 + 1, back[i]);
            if (persistent) OK(MPI_Request_free(&q));
        }
    /* A send that is cancelled or not, as the library likes. The receiver gets the message or nothing. */
    MPI_Request q, other;
    MPI_Status status;
    for (int turn = 0; turn < 4; turn++) {
        int cancelled[2] = {-1, -1}, go = 1, sender = turn % 2;
        doing = "MPI_Cancel of a send";
        for (int i = 0; i < 2 * N; i++) back[i] = rank == sender ? 100 * turn + i : -i;
        if (rank == sender) {
            if (turn < 2) OK(MPI_Isend(back, 1, type, peer, 8, MPI_COMM_WORLD, &q));
            else OK(MPI_Issend(back, 1, type, peer, 8, MPI_COMM_WORLD, &q));
            OK(MPI_Cancel(&q));
            OK(MPI_Send(&go, 1, MPI_INT, peer, 9, MPI_COMM_WORLD));
            OK(MPI_Wait(&q, &status));
            OK(MPI_Test_cancelled(&status, &cancelled[0]));
            OK(MPI_Send(cancelled, 1, MPI_INT, peer, 9, MPI_COMM_WORLD));
            continue;
        }
        OK(MPI_Recv(&go, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Irecv(back, 1, type, peer, 8, MPI_COMM_WORLD, &other));
        OK(MPI_Recv(cancelled, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (cancelled[0]) OK(MPI_Cancel(&other));
        OK(MPI_Wait(&other, &status));
        OK(MPI_Test_cancelled(&status, &cancelled[1]));
        same("cancelled", turn, cancelled[0], cancelled[1]);
        for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 || cancelled[0] ? -i : 100 * turn + i, back[i]);
    }
    /* A cancelled receive that the program frees. */
    OK(MPI_Irecv(back, 1, type, peer, 6, MPI_COMM_WORLD, &q));
    OK(MPI_Cancel(&q));
    OK(MPI_Request_free(&q));
    OK(MPI_Type_free(&type));
}

/* ---- pairs and left: long messages of a double and an integer ---- */

struct pair { double value; int index; };

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

/* A type with the layout of `struct pair` that is nested too deeply to be rebuilt. */
static MPI_Datatype nested(void)
{
    MPI_Datatype type, outer;
    OK(MPI_Type_contiguous(1, MPI_DOUBLE_INT, &type));
    for (int level = 0; level < 110; level++) {
        OK(MPI_Type_contiguous(1, type, &outer));
        OK(MPI_Type_free(&type));
        type = outer;
    }
    OK(MPI_Type_commit(&type));
    return type;
}

static char *sent;
static struct pair *received;

static void clear(void)
{
    memset(received, 0x55, LONG * sizeof *received);
    for (int i = 0; i < LONG; i++) {
        double value = 0.5 * i + rank;
        int index = 3 * i + rank;
        memset(sent + 24 * i, 0x66, 24);
        memcpy(sent + 24 * i, &value, 8);
        memcpy(sent + 24 * i + 12, &index, 4);
    }
}

static void check(int count, int from)
{
    struct pair kept;
    memset(&kept, 0x55, sizeof kept);
    for (int i = 0; i < LONG; i++) {
        struct pair wanted = kept;
        if (i < count) wanted.value = 0.5 * i + from, wanted.index = 3 * i + from;
        same("pair", i, 0, memcmp(&wanted, &received[i], sizeof kept));
    }
}

static void long_messages(MPI_Datatype into)
{
    enum { RECV, IRECV, INIT, MRECV, IMRECV, SENDRECV, ISENDRECV, PACK, BCAST, ALLTOALLW, GATHER, HOWS };
    static const char *names[] = {"Recv", "Irecv", "Recv_init", "Mrecv", "Imrecv", "Sendrecv", "Isendrecv",
        "Pack and Unpack", "Bcast", "Alltoallw", "Gatherv"};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype from = gapped();
    sent = malloc(24 * LONG);
    received = malloc(LONG * sizeof *received);
    for (int how = 0; how < HOWS; how++)
        for (int count = LONG; count > 0; count -= LONG - 1) {
            MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            MPI_Message message;
            MPI_Status status;
            int got = count, at = 0, bytes = 12 * count;
            char *packed;
            doing = names[how];
            clear();
            if (how != SENDRECV && how != ISENDRECV && how < PACK)
                OK(MPI_Isend(sent, count, from, peer, 0, world, &q[1]));
            switch (how) {
            case RECV: OK(MPI_Recv(received, LONG, into, peer, 0, world, &status)); break;
            case IRECV:
                OK(MPI_Irecv(received, LONG, into, peer, 0, world, &q[0]));
                OK(MPI_Wait(&q[0], &status));
                break;
            case INIT:
                OK(MPI_Recv_init(received, LONG, into, peer, 0, world, &q[0]));
                for (int start = 0; start < 2; start++) {
                    if (start) {
                        OK(MPI_Wait(&q[1], MPI_STATUS_IGNORE));
                        clear();
                        OK(MPI_Isend(sent, count, from, peer, 0, world, &q[1]));
                    }
                    OK(MPI_Start(&q[0]));
                    OK(MPI_Wait(&q[0], &status));
                    check(count, peer);
                }
                OK(MPI_Request_free(&q[0]));
                break;
            case MRECV:
            case IMRECV:
                OK(MPI_Mprobe(peer, 0, world, &message, &status));
                if (how == MRECV) {
                    OK(MPI_Mrecv(received, LONG, into, &message, &status));
                } else {
                    OK(MPI_Imrecv(received, LONG, into, &message, &q[0]));
                    OK(MPI_Wait(&q[0], &status));
                }
                break;
            case SENDRECV:
                OK(MPI_Sendrecv(sent, count, from, peer, 0, received, LONG, into, peer, 0, world, &status));
                break;
            case ISENDRECV:
                OK(MPI_Isendrecv(sent, count, from, peer, 0, received, LONG, into, peer, 0, world, &q[0]));
                OK(MPI_Wait(&q[0], MPI_STATUS_IGNORE));
                break;
            case PACK:
                packed = malloc((size_t)bytes);
                OK(MPI_Pack(sent, count, from, packed, bytes, &at, world));
                at = 0;
                OK(MPI_Sendrecv_replace(packed, bytes, MPI_PACKED, peer, 0, peer, 0, world, MPI_STATUS_IGNORE));
                OK(MPI_Unpack(packed, bytes, &at, received, count, into, world));
                same("position", 0, bytes, at);
                free(packed);
                break;
            case BCAST:
                OK(rank ? MPI_Bcast(received, count, into, 0, world) : MPI_Bcast(sent, count, from, 0, world));
                break;
            case ALLTOALLW: {
                int counts[2] = {0, 0}, places[2] = {0, 0};
                MPI_Datatype out[2] = {from, from}, in[2] = {into, into};
                counts[peer] = count;
                OK(MPI_Alltoallw(sent, counts, places, out, received, counts, places, in, world));
                break;
            }
            default: {
                int counts[2] = {0, 0}, places[2] = {0, 0};
                counts[1] = count;
                OK(MPI_Gatherv(sent, rank ? count : 0, from, received, counts, places, into, 0, world));
            }
            }
            OK(MPI_Wait(&q[1], MPI_STATUS_IGNORE));
            if (how <= SENDRECV) {
                OK(MPI_Get_count(&status, into, &got));
                same("count", how, count, got);
            }
            if (how == BCAST && rank == 0) continue;
            if (how == GATHER && rank != 0) continue;
            check(count, how == BCAST ? 0 : peer);
        }
    /* Replace: both ranks send and receive with the type of the received pairs. */
    for (int now = 0; now < 2; now++) {
        MPI_Request q;
        doing = now ? "Sendrecv_replace" : "Isendrecv_replace";
        clear();
        for (int i = 0; i < LONG; i++) received[i].value = 0.5 * i + rank, received[i].index = 3 * i + rank;
        if (now) {
            OK(MPI_Sendrecv_replace(received, LONG, into, peer, 0, peer, 0, world, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Isendrecv_replace(received, LONG, into, peer, 0, peer, 0, world, &q));
            OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        }
        check(LONG, peer);
    }
    free(sent);
    free(received);
    OK(MPI_Type_free(&from));
}

/* ---- wide: the blocks of a call are long pairs from the other rank, and contiguous elements from this one ---- */

static void wide_with(const char *name, MPI_Datatype own, int bytes)
{
    MPI_Datatype from = gapped(), out[2], in[2];
    int counts_out[2], counts[2], places_out[2], places[2], both[2] = {0, 1};
    char little[64], back[64];
    MPI_Aint far_out[2], far[2];
    MPI_Comm graph;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, both, MPI_UNWEIGHTED, 2, both, MPI_UNWEIGHTED, MPI_INFO_NULL,
        0, &graph));
    out[peer] = from, in[peer] = MPI_DOUBLE_INT, counts_out[peer] = counts[peer] = LONG;
    out[rank] = in[rank] = own, counts_out[rank] = counts[rank] = 1;
    sent = malloc(24 * LONG + sizeof little);
    received = malloc((LONG + sizeof back / sizeof *received) * sizeof *received);
    places_out[peer] = places[peer] = 0;
    places_out[rank] = 24 * LONG, places[rank] = LONG * (int)sizeof *received;
    for (int i = 0; i < 2; i++) {
        OK(MPI_Get_address(sent + places_out[i], &far_out[i]));
        OK(MPI_Get_address((char *)received + places[i], &far[i]));
    }
    for (int how = 0; how < 3; how++) {
        MPI_Request q;
        static char text[100];
        snprintf(text, sizeof text, "%s of %s", how == 0 ? "Alltoallw" : how == 1 ? "Ialltoallw" : "Neighbor_alltoallw",
            name);
        doing = text;
        clear();
        for (int i = 0; i < bytes; i++) sent[24 * LONG + i] = (char)(i + how + rank), back[i] = 0;
        memset(received + LONG, 0, sizeof back);
        if (how == 0)
            OK(MPI_Alltoallw(sent, counts_out, places_out, out, received, counts, places, in, MPI_COMM_WORLD));
        if (how == 1) {
            OK(MPI_Ialltoallw(sent, counts_out, places_out, out, received, counts, places, in, MPI_COMM_WORLD, &q));
            OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        }
        /* The displacements of this call are addresses, which may be large. */
        if (how == 2)
            OK(MPI_Neighbor_alltoallw(MPI_BOTTOM, counts_out, far_out, out, MPI_BOTTOM, counts, far, in, graph));
        check(LONG, peer);
        for (int i = 0; i < bytes; i++) same("byte", i, (char)(i + how + rank), ((char *)(received + LONG))[i]);
    }
    free(sent);
    free(received);
    OK(MPI_Comm_free(&graph));
    OK(MPI_Type_free(&from));
}

static void wide(void)
{
    MPI_Datatype f90, unseen;
    wide_with("MPI_FLOAT_INT", MPI_FLOAT_INT, 8);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* A host without Fortran has no such type. */
    if (MPI_Type_create_f90_real(15, MPI_UNDEFINED, &f90) == MPI_SUCCESS) wide_with("a type of Fortran", f90, 8);
    /* As a library makes its types that was linked with the host alone. */
    int (*commit)(MPI_Datatype *) = MPI_Type_commit;
    void *host = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (host) commit = (int (*)(MPI_Datatype *))dlsym(host, "PMPI_Type_commit");
    OK(MPI_Type_contiguous(12, MPI_INT, &unseen));
    OK(commit(&unseen));
    wide_with("a type that was committed elsewhere", unseen, 48);
    OK(MPI_Type_free(&unseen));
}

/* ---- shared: two calls at once on a communicator of one rank, for which MPICH gives one request ---- */

static void shared(void)
{
    enum { DOUBLES = 1 << 17, TIMES = 600 };
    MPI_Comm alone;
    MPI_Datatype type;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone));
    OK(MPI_Type_vector(DOUBLES, 1, 2, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    double *memory = calloc(2 * DOUBLES, sizeof *memory);
    doing = "Ibcast";
    for (int time = 0; time < TIMES; time++) {
        MPI_Request q[2];
        for (int i = 0; i < 2; i++) OK(MPI_Ibcast(memory, 1, type, 0, alone, &q[i]));
        OK(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
    }
    free(memory);
    OK(MPI_Type_free(&type));

    /* Calls that move data. Both are complete when both were waited for, in either order. */
    static const char *names[] = {"Iallgather", "Igather", "Iscatter", "Ialltoall", "Ialltoallw", "Iallgatherv"};
    type = column();
    for (int kind = 0; kind < 6; kind++)
        for (int turn = 0; turn < 2; turn++) {
            int from[2][2 * N], to[2][2 * N], one[1] = {1}, zero[1] = {0};
            MPI_Request q[2];
            doing = names[kind];
            for (int k = 0; k < 2; k++) {
                for (int i = 0; i < 2 * N; i++) from[k][i] = 1000 * k + i, to[k][i] = -1;
                int *a = from[k], *b = to[k];
                switch (kind) {
                case 0: OK(MPI_Iallgather(a, 1, type, b, 1, type, alone, &q[k])); break;
                case 1: OK(MPI_Igather(a, 1, type, b, 1, type, 0, alone, &q[k])); break;
                case 2: OK(MPI_Iscatter(a, 1, type, b, 1, type, 0, alone, &q[k])); break;
                case 3: OK(MPI_Ialltoall(a, 1, type, b, 1, type, alone, &q[k])); break;
                case 4: OK(MPI_Ialltoallw(a, one, zero, &type, b, one, zero, &type, alone, &q[k])); break;
                default: OK(MPI_Iallgatherv(a, 1, type, b, one, zero, type, alone, &q[k]));
                }
            }
            for (int k = 0; k < 2; k++) {
                int which = turn ? 1 - k : k;
                OK(MPI_Wait(&q[which], MPI_STATUS_IGNORE));
                for (int i = 0; i < 2 * N; i++) same("integer", i, i % 2 ? -1 : 1000 * which + i, to[which][i]);
            }
        }
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&alone));
}

/* ---- deep: each level has the level below twice ---- */

static void deep(void)
{
    enum { DEPTH = 60, FIRST = 3 };
    MPI_Datatype type, outer;
    int back[2 * 8] = {0}, memory[2 * 8];
    MPI_Aint extent = 2 * sizeof(int);
    doing = "deep types";
    for (int i = 0; i < 2 * 8; i++) memory[i] = i + 1;
    OK(MPI_Type_create_resized(MPI_INT, 0, extent, &type));
    for (int level = 0; level < DEPTH; level++) {
        MPI_Datatype parts[2] = {type, type};
        /* After three levels, the second part has no elements, so that the size stays as it is. */
        int lengths[2] = {1, level < FIRST};
        MPI_Aint at[2] = {0, level < FIRST ? extent : 0};
        OK(MPI_Type_create_struct(2, lengths, at, parts, &outer));
        OK(MPI_Type_free(&type));
        type = outer;
        if (level < FIRST) extent *= 2;
    }
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(memory, 1, type, 0, 0, back, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * 8; i++) same("integer", i, i % 2 ? 0 : i + 1, back[i]);
    OK(MPI_Type_free(&type));
}

/* ---- long: blocks of 2 KiB, which the host sends as well ---- */

static void long_blocks(void)
{
    enum { BLOCK = 256, STRIDE = 512, BLOCKS = 6, TIMES = 30 };
    static double sent[BLOCKS * STRIDE], received[BLOCKS * STRIDE];
    MPI_Datatype type;
    doing = "long blocks";
    OK(MPI_Type_vector(BLOCKS, BLOCK, STRIDE, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < BLOCKS * STRIDE; i++) sent[i] = i + time, received[i] = -1;
        OK(MPI_Sendrecv(sent, 1, type, peer, 0, received, 1, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < BLOCKS * STRIDE; i++)
            same("double", i, i % STRIDE < BLOCK ? i + time : -1, (int)received[i]);
    }
    OK(MPI_Type_free(&type));
}

/* ---- apart: six faces in different ways, after which a rank leaves MPI ---- */

/* Rank 1 packs all its faces, and rank 0 only two. After each exchange, a rank waits in shared memory, without MPI, for
 * the other. */
static void stays_apart(void)
{
    enum { FACES = 6, DOUBLES = 16384, TIMES = 60 };
    MPI_Datatype packed, straight;
    OK(MPI_Type_vector(DOUBLES, 1, 2, MPI_DOUBLE, &packed));
    OK(MPI_Type_vector(DOUBLES / 256, 256, 512, MPI_DOUBLE, &straight));
    OK(MPI_Type_commit(&packed));
    OK(MPI_Type_commit(&straight));
    MPI_Win window;
    int *flag, *other, unit;
    MPI_Aint size;
    OK(MPI_Win_allocate_shared(sizeof *flag, sizeof *flag, MPI_INFO_NULL, MPI_COMM_WORLD, &flag, &window));
    OK(MPI_Win_shared_query(window, peer, &size, &unit, &other));
    __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double *sent = calloc(FACES * 2 * DOUBLES, sizeof *sent), *received = calloc(FACES * 2 * DOUBLES, sizeof *received);
    doing = "faces in different ways";
    for (int time = 1; time <= TIMES; time++) {
        MPI_Request requests[2 * FACES];
        for (int i = 0; i < FACES; i++) {
            MPI_Datatype in = i < 4 ? straight : packed;
            OK(MPI_Irecv(&received[i * 2 * DOUBLES], 1, in, peer, i, MPI_COMM_WORLD, &requests[i]));
        }
        for (int i = 0; i < FACES; i++) {
            MPI_Datatype out = rank == 0 && i < 4 ? straight : packed;
            sent[i * 2 * DOUBLES] = time * FACES + i;
            OK(MPI_Isend(&sent[i * 2 * DOUBLES], 1, out, peer, i, MPI_COMM_WORLD, &requests[FACES + i]));
        }
        OK(MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < FACES; i++) same("double", i, time * FACES + i, (long)received[i * 2 * DOUBLES]);
        __atomic_store_n(flag, time, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(other, __ATOMIC_SEQ_CST) < time) sched_yield();
    }
    free(sent);
    free(received);
    OK(MPI_Win_free(&window));
    OK(MPI_Type_free(&packed));
    OK(MPI_Type_free(&straight));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *word = argc == 2 ? argv[1] : "";
    if (size != 2 || argc != 2) {
        fprintf(stderr, "usage: mpiexec -n 2 ./cases CASE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    peer = 1 - rank;
    if (strcmp(word, "profiled") == 0) profiled();
    if (strcmp(word, "freed") == 0) freed();
    if (strcmp(word, "callbacks") == 0) callbacks();
    if (strcmp(word, "bottom") == 0) bottom();
    if (strcmp(word, "cancel") == 0) cancel();
    if (strcmp(word, "pairs") == 0) long_messages(MPI_DOUBLE_INT);
    if (strcmp(word, "left") == 0) {
        MPI_Datatype type = nested();
        long_messages(type);
        OK(MPI_Type_free(&type));
    }
    if (strcmp(word, "wide") == 0) wide();
    if (strcmp(word, "shared") == 0) shared();
    if (strcmp(word, "deep") == 0) deep();
    if (strcmp(word, "apart") == 0) stays_apart();
    if (strcmp(word, "long") == 0) long_blocks();
    MPI_Finalize();
    if (strcmp(word, "freed") == 0) after_finalize();
    if (strcmp(word, "callbacks") == 0) same("calls in finalize", 0, 2, ending.calls);
    if (!failures) printf("%s: no difference\n", word);
    return failures != 0;
}
