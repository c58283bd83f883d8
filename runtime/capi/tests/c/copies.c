/* Counts the calls of memcpy and memmove of 256 bytes or more with which the library moves the data of
   messages: those from or to the buffers of this program, and from or to memory that the ranks share. There
   must be none, because libc decides by the model of the processor how it copies, and the library decides by
   measurement. Calls that move the library's own records do not count.

   This program defines both functions itself, so that the library's calls come here. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

enum { LONG = 256, DOUBLES = 1 << 19 };

static atomic_int counting, calls, seen;
static _Atomic size_t longest, place;

/* The memory that holds the data of messages. */
enum { RANGES = 4096 };
static struct { uintptr_t start, end; } ranges[RANGES];
static int used;

static void add(const void *start, size_t bytes)
{
    CHECK(used < RANGES);
    ranges[used].start = (uintptr_t)start;
    ranges[used++].end = (uintptr_t)start + bytes;
}

/* Adds the memory that the ranks share. The job's memory is a memfd. */
static void add_shared(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (strstr(line, "memfd:") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            add((const void *)start, end - start);
    }
    fclose(maps);
}

static int holds_data(const void *at)
{
    for (int i = 0; i < used; i++)
        if ((uintptr_t)at >= ranges[i].start && (uintptr_t)at < ranges[i].end)
            return 1;
    return 0;
}

/* Counts a call if it is long, comes from the library under test and moves data of messages. */
static void count(const void *caller, const void *to, const void *from, size_t bytes)
{
    Dl_info info;
    if (!dladdr(caller, &info) || !strstr(info.dli_fname, "libmpi_abi"))
        return;
    atomic_fetch_add(&seen, 1);
    if (!atomic_load(&counting) || bytes < LONG || !(holds_data(to) || holds_data(from)))
        return;
    atomic_fetch_add(&calls, 1);
    if (bytes > atomic_load(&longest)) {
        atomic_store(&longest, bytes);
        atomic_store(&place, (uintptr_t)caller - (uintptr_t)info.dli_fbase);
    }
}

/* The attribute keeps the compiler from turning the loops into calls of memcpy and memmove, the functions that they
   implement. */
__attribute__((noinline, optimize("no-tree-loop-distribute-patterns")))
static void *forward(void *to, const void *from, size_t bytes)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    for (size_t i = 0; i < bytes; i++)
        t[i] = f[i];
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    count(__builtin_return_address(0), to, from, bytes);
    return forward(to, from, bytes);
}

__attribute__((optimize("no-tree-loop-distribute-patterns")))
void *memmove(void *to, const void *from, size_t bytes)
{
    count(__builtin_return_address(0), to, from, bytes);
    if ((uintptr_t)to <= (uintptr_t)from || (uintptr_t)to >= (uintptr_t)from + bytes)
        return forward(to, from, bytes);
    unsigned char *t = to;
    const unsigned char *f = from;
    for (size_t i = bytes; i > 0; i--)
        t[i - 1] = f[i - 1];
    return to;
}

/* Sends `count` elements around the ring of all ranks, blocking and nonblocking, and checks the first and the
   last double of what has arrived. */
static void ring(double *out, double *in, int count, MPI_Datatype type, int last)
{
    int rank, size;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < 6; round++) {
        out[0] = 100 * rank + round;
        out[last] = out[0] + 0.5;
        in[0] = in[last] = -1;
        if (round % 2) {
            MPI_Request requests[2];
            OK(MPI_Irecv(in, count, type, left, 3, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Isend(out, count, type, right, 3, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        } else {
            OK(MPI_Sendrecv(out, count, type, right, 3, in, count, type, left, 3, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        }
        CHECK(in[0] == 100 * left + round);
        CHECK(in[last] == in[0] + 0.5);
    }
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Datatype blocks, columns;
    OK(MPI_Type_vector(DOUBLES / 128, 64, 128, MPI_DOUBLE, &blocks));
    OK(MPI_Type_vector(DOUBLES / 8, 1, 8, MPI_DOUBLE, &columns));
    OK(MPI_Type_commit(&blocks));
    OK(MPI_Type_commit(&columns));
    for (int shared = 0; shared < 2; shared++) {
        double *out, *in;
        size_t bytes = DOUBLES * sizeof(double);
        if (shared) {
            OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &out));
            OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &in));
        } else {
            out = calloc(DOUBLES, sizeof *out);
            in = calloc(DOUBLES, sizeof *in);
        }
        /* Only the last round counts. In the first rounds the ranks make contact and compile kernels, and may
           call memcpy for that. */
        for (int round = 0; round < 6; round++) {
            if (round == 5) {
                used = 0;
                add(out, bytes);
                add(in, bytes);
                add_shared();
                CHECK(used > 2);
                atomic_store(&counting, 1);
            }
            for (int count = 8; count <= DOUBLES; count *= 4)
                ring(out, in, count, MPI_DOUBLE, count - 1);
            ring(out, in, 1, blocks, DOUBLES - 128 + 63);
            ring(out, in, 1, columns, DOUBLES - 8);
            atomic_store(&counting, 0);
        }
        if (shared) {
            OK(MPI_Free_mem(out));
            OK(MPI_Free_mem(in));
        } else {
            free(out);
            free(in);
        }
    }
    if (atomic_load(&calls)) {
        fprintf(stderr,
                "the library called memcpy or memmove %d times; the longest call had %zu bytes and came from "
                "offset %#zx of the library\n",
                atomic_load(&calls), atomic_load(&longest), atomic_load(&place));
        return 1;
    }
    /* Without a single call of any length, the functions of this file would not be those that the library
       uses, and the test would show nothing. */
    CHECK(atomic_load(&seen) > 0);
    OK(MPI_Type_free(&blocks));
    OK(MPI_Type_free(&columns));
    OK(MPI_Finalize());
    return 0;
}
