/* Calls that fail, or that a host does in another way, with tool.c in front of the host.
 *
 *     ./faults requests | startall | cut | external | order | edge | looks | device LIBRARY | LIBRARY
 *
 * The types are columns: N of 2 * N integers. With the path of a LIBRARY, the program loads it between two messages.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PASS, EARLY, LATE, PARTLY, CUT, N = 50 };

static int failures;
static int *tool_mode;
static MPI_Datatype column;

static void same(const char *what, const char *doing, int at, long expected, long found)
{
    if (expected != found && failures++ < 20)
        printf("%s: %s %d: expected %ld, found %ld\n", doing, what, at, expected, found);
}
#define OK(call) same(#call, doing, 0, MPI_SUCCESS, (call))

enum { WAIT, TEST, WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, CALLS };
static const char *name[] = {"Wait", "Test", "Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome"};

/* Calls until the request is complete or the call fails. Returns the code. */
static int finish(int call, MPI_Request *q)
{
    int code = MPI_SUCCESS, flag = 0, at, many[1];
    MPI_Status s[1];
    while (code == MPI_SUCCESS && !flag) {
        switch (call) {
        case WAIT: code = MPI_Wait(q, s); flag = 1; break;
        case TEST: code = MPI_Test(q, &flag, s); break;
        case WAITALL: code = MPI_Waitall(1, q, s); flag = 1; break;
        case TESTALL: code = MPI_Testall(1, q, &flag, s); break;
        case WAITANY: code = MPI_Waitany(1, q, &at, s); flag = 1; break;
        case TESTANY: code = MPI_Testany(1, q, &at, &flag, s); break;
        case WAITSOME: code = MPI_Waitsome(1, q, &at, many, s); flag = 1; break;
        default: code = MPI_Testsome(1, q, &at, many, s); flag = at != 0;
        }
    }
    return code;
}

/* A failed call that completes nothing leaves the request to the next call. */
static void early(int call, int persistent)
{
    const char *doing = name[call];
    int plain[N], back[2 * N];
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    memset(back, 0, sizeof back);
    MPI_Request q, kept;
    if (persistent) {
        OK(MPI_Recv_init(back, 1, column, 0, 0, MPI_COMM_SELF, &q));
        OK(MPI_Start(&q));
    } else {
        OK(MPI_Irecv(back, 1, column, 0, 0, MPI_COMM_SELF, &q));
    }
    kept = q;
    *tool_mode = EARLY;
    same("code", doing, 0, MPI_ERR_OTHER, finish(call, &q));
    same("request", doing, 0, 1, q == kept);
    *tool_mode = PASS;
    OK(MPI_Send(plain, N, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(finish(call, &q));
    if (persistent) OK(MPI_Request_free(&q));
    for (int i = 0; i < 2 * N; i++) same("integer", doing, i, i % 2 ? 0 : i / 2 + 1, back[i]);
}

/* A failed call that has completed a persistent send: the next start sends the memory as it is then. */
static void late_send(int call)
{
    const char *doing = name[call];
    int memory[2 * N] = {0}, back[N];
    MPI_Request q, plain;
    OK(MPI_Send_init(memory, 1, column, 0, 0, MPI_COMM_SELF, &q));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2 * N; i++) memory[i] = 1000 * round + i;
        OK(PMPI_Irecv(back, N, MPI_INT, 0, 0, MPI_COMM_SELF, &plain));
        OK(MPI_Start(&q));
        *tool_mode = LATE;
        same("code", doing, round, MPI_ERR_OTHER, finish(call, &q));
        *tool_mode = PASS;
        OK(PMPI_Wait(&plain, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++) same("integer", doing, i, 1000 * round + 2 * i, back[i]);
    }
    OK(MPI_Request_free(&q));
}

/* A failed call that has completed a receive: the next receive, which may get the same handle, is not disturbed. */
static void late_receive(int call)
{
    const char *doing = name[call];
    int plain[N], back[2 * N];
    MPI_Request q;
    memset(plain, 1, sizeof plain);
    OK(MPI_Irecv(back, 1, column, 0, 0, MPI_COMM_SELF, &q));
    OK(MPI_Send(plain, N, MPI_INT, 0, 0, MPI_COMM_SELF));
    *tool_mode = LATE;
    same("code", doing, 0, MPI_ERR_OTHER, finish(call, &q));
    *tool_mode = PASS;
    same("request", doing, 0, 1, q == MPI_REQUEST_NULL);
    early(call, 0);
}

/* A failed call starts the first of two receives. Its message comes before the call or after it. */
static void partly(int is_early)
{
    const char *doing = "Startall";
    int plain[N], back[2][2 * N];
    MPI_Request q[2], send = MPI_REQUEST_NULL;
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    memset(back, 0, sizeof back);
    for (int k = 0; k < 2; k++) OK(MPI_Recv_init(back[k], 1, column, 0, k, MPI_COMM_SELF, &q[k]));
    if (is_early) OK(MPI_Isend(plain, N, MPI_INT, 0, 0, MPI_COMM_SELF, &send));
    *tool_mode = PARTLY;
    same("code", doing, 0, MPI_ERR_OTHER, MPI_Startall(2, q));
    *tool_mode = PASS;
    if (!is_early) OK(MPI_Send(plain, N, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Wait(&q[0], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&q[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; i++) same("integer", doing, i, i % 2 ? 0 : i / 2 + 1, back[0][i]);
    for (int i = 0; i < 2 * N; i++) same("integer that was not sent", doing, i, 0, back[1][i]);
    /* Both work as before. */
    for (int i = 0; i < N; i++) plain[i] = 1000 + i;
    OK(MPI_Startall(2, q));
    for (int k = 0; k < 2; k++) OK(MPI_Send(plain, N, MPI_INT, 0, k, MPI_COMM_SELF));
    OK(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2 * N; i++) same("integer", doing, i, i % 2 ? 0 : 1000 + i / 2, back[k][i]);
    for (int k = 0; k < 2; k++) OK(MPI_Request_free(&q[k]));
}

/* The host finds that a message is too long, and writes nothing. What a buffer had before must not arrive. */
static void cut(void)
{
    const char *doing = "Recv";
    int memory[2 * N], back[2 * N];
    MPI_Status status;
    memset(memory, 0x77, sizeof memory);
    OK(MPI_Sendrecv(memory, 1, column, 0, 0, back, 1, column, 0, 0, MPI_COMM_SELF, &status));
    for (int i = 0; i < 2 * N; i++) memory[i] = i + 1, back[i] = -i;
    MPI_Request q;
    OK(MPI_Isend(memory, 1, column, 0, 0, MPI_COMM_SELF, &q));
    *tool_mode = CUT;
    same("code", doing, 0, MPI_ERR_TRUNCATE, MPI_Recv(back, 1, column, 0, 0, MPI_COMM_SELF, &status));
    *tool_mode = PASS;
    OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; i++) same("integer", doing, i, -i, back[i]);
}

/* The host's external32 has the byte order of the machine. Zeros do not show that. */
static void external(void)
{
    const char *doing = "external32";
    int memory[2 * N] = {0}, packed[N], back[2 * N];
    for (int round = 0; round < 3; round++) {
        MPI_Aint at = 0;
        OK(MPI_Pack_external("external32", memory, 1, column, packed, sizeof packed, &at));
        same("position", doing, round, sizeof packed, at);
        for (int i = 0; i < N; i++) same("packed", doing, i, memory[2 * i], packed[i]);
        memset(back, 0, sizeof back);
        at = 0;
        OK(MPI_Unpack_external("external32", packed, sizeof packed, &at, back, 1, column));
        for (int i = 0; i < N; i++) same("unpacked", doing, i, memory[2 * i], back[2 * i]);
        for (int i = 0; i < N; i++) memory[2 * i] = i + 1;
    }
}

/* Two blocks from this rank to itself: a column, and integers in reverse order, which fill their extent. */
static void order(void)
{
    const char *doing = "Neighbor_alltoallw";
    int dims[1] = {1}, periods[1] = {1}, counts[2] = {1, 1}, places[2] = {1, 0}, memory[2 * N], back[2][2 * N];
    MPI_Comm ring;
    MPI_Datatype reverse;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    OK(PMPI_Type_create_indexed_block(2, 1, places, MPI_INT, &reverse));
    /* As a library does that was linked with the host's own functions. */
    int (*commit)(MPI_Datatype *) = PMPI_Type_commit;
    void *host = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (host) commit = (int (*)(MPI_Datatype *))dlsym(host, "PMPI_Type_commit");
    OK(commit(&reverse));
    for (int i = 0; i < 2 * N; i++) memory[i] = i + 1;
    MPI_Aint bytes[2] = {0, 0}, into[2] = {0, N * sizeof(int)};
    MPI_Datatype from[2] = {reverse, column}, to[2] = {MPI_INT, MPI_INT};
    int lengths[2] = {N, 2};
    memset(back, 0, sizeof back);
    OK(PMPI_Neighbor_alltoallw(memory, counts, bytes, from, back[0], lengths, into, to, ring));
    OK(MPI_Neighbor_alltoallw(memory, counts, bytes, from, back[1], lengths, into, to, ring));
    for (int i = 0; i < 2 * N; i++) same("sent from reverse", doing, i, back[0][i], back[1][i]);

    int plain[N];
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    MPI_Datatype whole[2] = {MPI_INT, MPI_INT}, apart[2] = {column, reverse};
    MPI_Aint after[2] = {0, 2 * N * sizeof(int)};
    int two[2] = {2, N}, wide[2][2 * N + 2];
    memset(wide, 0, sizeof wide);
    OK(PMPI_Neighbor_alltoallw(plain, two, bytes, whole, wide[0], counts, after, apart, ring));
    OK(MPI_Neighbor_alltoallw(plain, two, bytes, whole, wide[1], counts, after, apart, ring));
    for (int i = 0; i < 2 * N + 2; i++) same("received into reverse", doing, i, wide[0][i], wide[1][i]);

    /* The same with types that the library knows, so that it does the call. */
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_commit(&reverse));
    for (int known = 0; known < 2; known++) {
        from[0] = known ? pair : reverse;
        OK(PMPI_Neighbor_alltoallw(memory, counts, bytes, from, back[0], lengths, into, to, ring));
        OK(MPI_Neighbor_alltoallw(memory, counts, bytes, from, back[1], lengths, into, to, ring));
        for (int i = 0; i < 2 * N; i++) same("sent", doing, i, back[0][i], back[1][i]);
    }
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&reverse));
    OK(MPI_Comm_free(&ring));
}

/* A grid of one rank has no neighbours: what would be sent to them must not be read. */
static void edge(void)
{
    const char *doing = "Neighbor_alltoallv";
    int dims[1] = {1}, periods[1] = {0}, counts[2] = {1, 1}, places[2] = {0, 1}, back[4 * N] = {0};
    MPI_Comm line;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line));
    void *nothing = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(MPI_Neighbor_alltoallv(nothing, counts, places, column, back, counts, places, column, line));
    for (int i = 0; i < 4 * N; i++) same("integer", doing, i, 0, back[i]);
    munmap(nothing, 1 << 16);
    OK(MPI_Comm_free(&line));
}

/* Two blocks from this rank to itself, which must be packed because of the first one: pairs of a double and an integer
 * with a gap, and integers, which come into the memory of a device. */
static void device(const char *library)
{
    const char *doing = "Neighbor_alltoallw";
    enum { PAIR = 24, BYTES = 1 << 16 };
    void **memory = dlsym(NULL, "tool_device");
    size_t *bytes = dlsym(NULL, "tool_device_bytes");
    if (!memory || !bytes || !dlopen(library, RTLD_NOW)) {
        same(library, doing, 0, 1, 0);
        return;
    }
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_INT}, joined, pair;
    int lengths[2] = {1, 1}, dims[1] = {1}, periods[1] = {1}, plain[N];
    MPI_Aint at[2] = {0, 12};
    MPI_Comm ring;
    OK(MPI_Type_create_struct(2, lengths, at, parts, &joined));
    OK(MPI_Type_create_resized(joined, 0, PAIR, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_free(&joined));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    static char sent[N * PAIR], received[N * PAIR];
    for (int i = 0; i < N; i++) plain[i] = i + 1;
    for (int i = 0; i < N * PAIR; i++) sent[i] = (char)i, received[i] = 0x55;
    int *there = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *bytes = BYTES;
    *memory = there;
    /* The block to the left comes from the right. */
    MPI_Datatype from[2] = {MPI_INT, pair}, to[2] = {pair, MPI_INT};
    int counts[2] = {N, N};
    MPI_Aint out[2] = {0, (char *)sent - (char *)plain}, in[2] = {0, (char *)there - received};
    OK(MPI_Neighbor_alltoallw(plain, counts, out, from, received, counts, in, to, ring));
    *memory = NULL;
    mprotect(there, BYTES, PROT_READ | PROT_WRITE);
    for (int i = 0; i < N; i++) same("integer", doing, i, i + 1, there[i]);
    for (int i = 0; i < N * PAIR; i++) {
        int is_data = i % PAIR < 8 || (i % PAIR >= 12 && i % PAIR < 16);
        same("byte", doing, i, is_data ? (char)i : 0x55, received[i]);
    }
    munmap(there, BYTES);
    OK(MPI_Type_free(&pair));
    OK(MPI_Comm_free(&ring));
}

/* Packs many times: not each call looks at the loaded objects. */
static void looks(void)
{
    const char *doing = "Pack";
    enum { TIMES = 20000 };
    int *looked = dlsym(NULL, "tool_looks"), memory[2 * N] = {0}, packed[N];
    if (!looked) {
        same("tool_looks", doing, 0, 1, 0);
        return;
    }
    int before = *looked;
    for (int time = 0; time < TIMES; time++) {
        int at = 0;
        OK(MPI_Pack(memory, 1, column, packed, sizeof packed, &at, MPI_COMM_SELF));
    }
    if (*looked - before > TIMES / 4) same("looks at the loaded objects", doing, TIMES, TIMES / 4, *looked - before);
}

/* Sends and receives a column. */
static void message(void)
{
    const char *doing = "message";
    int memory[2 * N], back[2 * N] = {0};
    for (int i = 0; i < 2 * N; i++) memory[i] = i + 1;
    OK(MPI_Sendrecv(memory, 1, column, 0, 0, back, 1, column, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * N; i++) same("integer", doing, i, i % 2 ? 0 : i + 1, back[i]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    tool_mode = dlsym(NULL, "tool_mode");
    if (argc < 2 || !tool_mode) {
        fprintf(stderr, "usage: faults CASE, with tool.c loaded before the host\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_vector(N, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    if (strcmp(argv[1], "requests") == 0)
        for (int call = 0; call < CALLS; call++) {
            early(call, 0);
            early(call, 1);
            late_send(call);
            late_receive(call);
        }
    if (strcmp(argv[1], "startall") == 0) partly(0), partly(1);
    if (strcmp(argv[1], "cut") == 0) cut();
    if (strcmp(argv[1], "looks") == 0) looks();
    if (strcmp(argv[1], "device") == 0 && argc == 3) device(argv[2]);
    if (strcmp(argv[1], "external") == 0) external();
    if (strcmp(argv[1], "order") == 0) order();
    if (strcmp(argv[1], "edge") == 0) edge();
    if (strchr(argv[1], '/')) {
        message();
        if (!dlopen(argv[1], RTLD_NOW)) same(dlerror(), argv[1], 0, 1, 0);
        message();
    }
    MPI_Type_free(&column);
    if (!failures) printf("%s: no difference\n", argv[1]);
    MPI_Finalize();
    return failures != 0;
}
