/* Floods rank 1 with messages that it has not asked for yet, from nonblocking and from buffered sends. Rank 1
   first receives the message that is sent last. The test sets TYPEPACK_UNEXPECTED_MAX to 1 MiB. The memory of
   rank 1 stays within this bound, a barrier does not wait for the flood, MPI_Bsend does not wait at all, and
   the nonblocking sends beyond the bound stay pending. */
#include "messages.h"

enum { MANY = 100000, SHORT = 64, LONG = 8000, FEW = 5000, LAST = 32766, MIB = 1 << 20 };

static int other;

/* Returns the private memory of this process in bytes. */
static long memory(void)
{
    char line[256];
    long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (kilobytes < 0 && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &kilobytes);
    fclose(file);
    CHECK(kilobytes > 0);
    return kilobytes * 1024;
}

static void flood(int count, int bytes, int buffered)
{
    unsigned char *data = malloc((size_t)bytes * (size_t)count), *got = malloc((size_t)bytes);
    MPI_Request *requests = malloc((size_t)count * sizeof *requests);
    void *buffer = NULL;
    size_t room = (size_t)count * ((size_t)bytes + MPI_BSEND_OVERHEAD);
    int last = 7, flag = 1;
    meet(other);
    if (rank == 0) {
        CHECK(data && got && requests);
        for (int i = 0; i < count; i++) fill(data + (size_t)i * (size_t)bytes, (size_t)bytes, (unsigned)i);
        if (buffered) {
            buffer = malloc(room);
            CHECK(buffer);
            OK(MPI_Buffer_attach_c(buffer, (MPI_Count)room));
        }
        for (int i = 0; i < count; i++) {
            unsigned char *from = data + (size_t)i * (size_t)bytes;
            if (buffered)
                OK(MPI_Bsend(from, bytes, MPI_BYTE, other, i % LAST, MPI_COMM_WORLD));
            else
                OK(MPI_Isend(from, bytes, MPI_BYTE, other, i % LAST, MPI_COMM_WORLD, &requests[i]));
        }
        if (buffered) memset(data, 0xEE, (size_t)bytes * (size_t)count);
        OK(MPI_Send(&last, 1, MPI_INT, other, LAST, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (buffered) {
            MPI_Count size;
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Buffer_detach_c(&buffer, &size));
            free(buffer);
        } else {
            OK(MPI_Test(&requests[count - 1], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
        }
    } else {
        long before = memory(), grown;
        OK(MPI_Recv(&last, 1, MPI_INT, other, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(last == 7);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        grown = memory() - before;
        printf("%d messages of %d bytes occupy %ld bytes\n", count, bytes, grown);
        CHECK(grown < 6L * MIB + 400L * count);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < count; i++) {
            OK(MPI_Recv(got, bytes, MPI_BYTE, MPI_ANY_SOURCE, i % LAST, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
            CHECK(is_filled(got, (size_t)bytes, (unsigned)i));
        }
    }
    meet(other);
    free(data);
    free(got);
    free(requests);
}

int main(void)
{
    begin();
    CHECK(size == 2);
    other = 1 - rank;
    for (int buffered = 0; buffered < 2; buffered++) {
        flood(MANY, SHORT, buffered);
        flood(FEW, LONG, buffered);
    }
    return end();
}
