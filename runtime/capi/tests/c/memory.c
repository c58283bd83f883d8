/* Tests MPI_Alloc_mem and MPI_Free_mem: alignment, requests for too much memory, and freeing other memory.
   Also tests messages from and to such memory: many datatypes, both directions at once, truncated
   messages, persistent requests, and memory that is freed too early. */
#include "messages.h"

#include <stdint.h>

static void *allocated(MPI_Aint bytes)
{
    void *memory = NULL;
    OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
    CHECK(memory != NULL && (uintptr_t)memory % 64 == 0);
    return memory;
}

static void arguments(void)
{
    static const MPI_Aint sizes[] = {0, 1, 63, 4096, 100000, 5 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    unsigned char *pieces[SIZES];
    for (int i = 0; i < SIZES; i++) {
        pieces[i] = allocated(sizes[i]);
        fill(pieces[i], (size_t)sizes[i], (unsigned)i);
    }
    for (int i = 0; i < SIZES; i++) {
        CHECK(is_filled(pieces[i], (size_t)sizes[i], (unsigned)i));
        RAISES(MPI_ERR_BASE, MPI_Free_mem(pieces[i] + 1));
        OK(MPI_Free_mem(pieces[i]));
        RAISES(MPI_ERR_BASE, MPI_Free_mem(pieces[i]));
    }
    int here = 0;
    RAISES(MPI_ERR_BASE, MPI_Free_mem(&here));
    /* Freeing a null pointer has no effect, as in C. */
    OK(MPI_Free_mem(NULL));

    void *base = &here;
    RAISES(MPI_ERR_ARG, MPI_Alloc_mem(-1, MPI_INFO_NULL, &base));
    RAISES(MPI_ERR_NO_MEM, MPI_Alloc_mem(INTPTR_MAX, MPI_INFO_NULL, &base));
    RAISES(MPI_ERR_NO_MEM, MPI_Alloc_mem((MPI_Aint)1 << 50, MPI_INFO_NULL, &base));
    CHECK(base == &here);

    static const char *const alignments[] = {"1", "64", "4096", "65536", "4194304"};
    for (int i = 0; i < 5; i++) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", alignments[i]));
        void *memory[3];
        for (int k = 0; k < 3; k++) {
            OK(MPI_Alloc_mem(100 + 5000 * k, info, &memory[k]));
            CHECK((uintptr_t)memory[k] % (uintptr_t)atol(alignments[i]) == 0);
        }
        for (int k = 0; k < 3; k++) OK(MPI_Free_mem(memory[k]));
        OK(MPI_Info_free(&info));
    }
}

static long field(const char *name)
{
    char line[200];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name));
    fclose(file);
    return value / 1024;
}

/* Memory takes pages when it is touched. */
static void untouched(void)
{
    enum { MIB = 1 << 20, LONG = 256 };
    long before = field("VmRSS:");
    char *memory = allocated((MPI_Aint)LONG * MIB);
    CHECK(field("VmRSS:") < before + LONG / 2);
    memory[LONG * MIB / 2] = 1;
    CHECK(field("VmRSS:") < before + LONG / 2);
    OK(MPI_Free_mem(memory));
    /* With this hint, allocating too much fails as without it, and what is allocated can be used. */
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "typepack_populate", "true"));
    OK(MPI_Alloc_mem(8 * MIB, info, &memory));
    fill((unsigned char *)memory, 8 * MIB, 1);
    OK(MPI_Free_mem(memory));
    RAISES(MPI_ERR_NO_MEM, MPI_Alloc_mem((MPI_Aint)1 << 50, info, &memory));
    OK(MPI_Info_free(&info));
}

/* Sends messages with more datatypes than two ranks can number at a time. Each datatype is used twice, in
   both directions. */
static void many_types(int other)
{
    enum { BLOCKS = 4000, TYPES = 150 };
    double *out = allocated(BLOCKS * 160 * 8), *in = allocated(BLOCKS * 160 * 8);
    for (int t = 0; t < 2 * TYPES; t++) {
        int stride = 2 + t % TYPES;
        MPI_Datatype type;
        OK(MPI_Type_vector(BLOCKS, 1, stride, MPI_DOUBLE, &type));
        OK(MPI_Type_commit(&type));
        for (int i = 0; i < BLOCKS; i++) {
            out[i * stride] = rank * 1e6 + i + t;
            in[i * stride] = in[i * stride + 1] = -1;
        }
        MPI_Request requests[2];
        OK(MPI_Irecv(in, 1, type, other, t, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, 1, type, other, t, MPI_COMM_WORLD, &requests[1]));
        /* The datatype is freed while it is in use. */
        OK(MPI_Type_free(&type));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < BLOCKS; i++)
            CHECK(in[i * stride] == other * 1e6 + i + t && in[i * stride + 1] == -1);
    }
    OK(MPI_Free_mem(out));
    OK(MPI_Free_mem(in));
}

/* Checks that a message that is too long for its receive does not change the receive buffer, and that the
   send completes. */
static void truncated(int other)
{
    enum { LONG = 300000 };
    unsigned char *data = allocated(LONG);
    for (int posted = 0; posted < 2; posted++) {
        fill(data, LONG, (unsigned)rank);
        if (rank < other) {
            if (posted) meet(other);
            OK(MPI_Ssend(data, LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD));
            if (!posted) meet(other);
        } else {
            MPI_Request request;
            if (posted) {
                OK(MPI_Irecv(data, LONG - 1, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request));
                meet(other);
                RAISES(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                RAISES(MPI_ERR_TRUNCATE, MPI_Recv(data, LONG - 1, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                                                  MPI_STATUS_IGNORE));
                meet(other);
            }
            CHECK(is_filled(data, LONG, (unsigned)rank));
        }
    }
    OK(MPI_Free_mem(data));
}

/* Checks persistent requests, MPI_Sendrecv_replace, and a receive that is longer than its message. */
static void kept(int other)
{
    enum { LONG = 200000 };
    unsigned char *out = allocated(LONG), *in = allocated(2 * LONG);
    MPI_Request requests[2];
    OK(MPI_Send_init(out, LONG, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_init(in, 2 * LONG, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[1]));
    for (unsigned turn = 0; turn < 20; turn++) {
        MPI_Status statuses[2];
        fill(out, LONG, turn * 2 + (unsigned)rank);
        memset(in, 0, 2 * LONG);
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, statuses));
        check_status(&statuses[1], other, 2, LONG);
        CHECK(is_filled(in, LONG, turn * 2 + (unsigned)other));
        for (int i = LONG; i < 2 * LONG; i++) CHECK(in[i] == 0);
        OK(MPI_Sendrecv_replace(out, LONG, MPI_BYTE, other, 3, other, 3, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE));
        CHECK(is_filled(out, LONG, turn * 2 + (unsigned)other));
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Free_mem(out));
    OK(MPI_Free_mem(in));
}

/* Frees memory while it is being sent, and allocates it again. This is an error of the program, but it
   must not crash either rank. */
static void freed_too_early(int other)
{
    enum { LONG = 50 << 20 };
    unsigned char *data = allocated(LONG);
    MPI_Status status;
    if (rank < other) {
        MPI_Request request;
        OK(MPI_Isend(data, LONG, MPI_BYTE, other, 4, MPI_COMM_WORLD, &request));
        OK(MPI_Free_mem(data));
        data = allocated(LONG / 2);
        memset(data, 1, LONG / 2);
        meet(other);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        meet(other);
        OK(MPI_Recv(data, LONG, MPI_BYTE, other, 4, MPI_COMM_WORLD, &status));
        check_status(&status, other, 4, LONG);
    }
    OK(MPI_Free_mem(data));
}

int main(void)
{
    begin();
    arguments();
    untouched();
    int other = rank ^ 1;
    if (other < size) {
        many_types(other);
        truncated(other);
        kept(other);
        freed_too_early(other);
        arguments();
    }
    return end();
}
