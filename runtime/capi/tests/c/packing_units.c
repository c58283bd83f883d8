/* Tests packing and unpacking as in MPI-2.2 section 4.2: examples 4.21 to 4.23 in different words, and
   what the section says about packing units. */
#include <limits.h>
#include "transfer.h"

/* Example 4.21: two packed ints are received as ints. */
static void two_ints_into_one_message(void)
{
    int position = 0, i = 17, j = -4, a[2] = {0, 0};
    char buff[1000];
    if (sends()) {
        OK(MPI_Pack(&i, 1, MPI_INT, buff, 1000, &position, MPI_COMM_WORLD));
        CHECK(position == 4);
        OK(MPI_Pack(&j, 1, MPI_INT, buff, 1000, &position, MPI_COMM_WORLD));
    }
    send_all(buff, position, MPI_PACKED, a, 2, MPI_INT);
    if (receives()) CHECK(a[0] == 17 && a[1] == -4);
}

/* Example 4.22: the sender sends i and then a[0] to a[i-1]. It packs them, or describes them by a datatype
   of their addresses. The receiver unpacks in two steps, because the length of the array depends on i. */
static void a_count_and_its_numbers(int i, int by_packing)
{
    static float a[1000];
    char buff[1000];
    int position = 0, n = 0;
    MPI_Status status;
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends()) {
        int len[2] = {1, i};
        MPI_Aint disp[2];
        MPI_Datatype type[2] = {MPI_INT, MPI_FLOAT};
        for (int k = 0; k < 1000; k++) a[k] = k / 4.0f;
        OK(MPI_Address(&i, disp));
        OK(MPI_Address(a, disp + 1));
        OK(MPI_Type_struct(2, len, disp, type, &newtype));
        OK(MPI_Type_commit(&newtype));
        if (by_packing) {
            OK(MPI_Pack(MPI_BOTTOM, 1, newtype, buff, 1000, &position, MPI_COMM_WORLD));
            CHECK(position == 4 + 4 * i);
            OK(MPI_Isend(buff, position, MPI_PACKED, size > 1, 0, MPI_COMM_WORLD, &request));
        } else {
            /* The section says: "One can replace the last three lines with" a send of the datatype itself. */
            OK(MPI_Isend(MPI_BOTTOM, 1, newtype, size > 1, 0, MPI_COMM_WORLD, &request));
        }
    }
    if (receives()) {
        char received[1000];
        float b[1000] = {0};
        OK(MPI_Recv(received, 1000, MPI_PACKED, 0, 0, MPI_COMM_WORLD, &status));
        position = 0;
        OK(MPI_Unpack(received, 1000, &position, &n, 1, MPI_INT, MPI_COMM_WORLD));
        CHECK(n == i);
        OK(MPI_Unpack(received, 1000, &position, b, n, MPI_FLOAT, MPI_COMM_WORLD));
        CHECK(position == 4 + 4 * i);
        for (int k = 0; k < 1000; k++) CHECK(b[k] == (k < i ? k / 4.0f : 0));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (sends()) OK(MPI_Type_free(&newtype));
}

/* Example 4.23: every rank sends a count and as many characters as the count says. The root joins all
   characters to one string. */
static void one_string_of_all(int root)
{
    int count = 3 + (rank * 5) % 40, counts[64], displs[64], totalcount, k1, k2, k, position = 0;
    char chr[100], *lbuf, *rbuf, *cbuf;
    MPI_Comm comm = MPI_COMM_WORLD;
    CHECK(size <= 64);
    for (int i = 0; i < count; i++) chr[i] = 'a' + (rank + i) % 26;
    OK(MPI_Pack_size(1, MPI_INT, comm, &k1));
    OK(MPI_Pack_size(count, MPI_CHAR, comm, &k2));
    k = k1 + k2;
    lbuf = malloc(k);
    OK(MPI_Pack(&count, 1, MPI_INT, lbuf, k, &position, comm));
    OK(MPI_Pack(chr, count, MPI_CHAR, lbuf, k, &position, comm));
    CHECK(position <= k);
    if (rank != root) {
        OK(MPI_Gather(&position, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, comm));
        OK(MPI_Gatherv(lbuf, position, MPI_PACKED, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, comm));
    } else {
        OK(MPI_Gather(&position, 1, MPI_INT, counts, 1, MPI_INT, root, comm));
        displs[0] = 0;
        for (int i = 1; i < size; i++) displs[i] = displs[i - 1] + counts[i - 1];
        totalcount = displs[size - 1] + counts[size - 1];
        rbuf = malloc(totalcount);
        cbuf = malloc(totalcount);
        OK(MPI_Gatherv(lbuf, position, MPI_PACKED, rbuf, counts, displs, MPI_PACKED, root, comm));
        /* Each message is a packing unit of its own, and is unpacked from its beginning. */
        int concat_pos = 0;
        for (int i = 0; i < size; i++) {
            position = 0;
            OK(MPI_Unpack(rbuf + displs[i], totalcount - displs[i], &position, &count, 1, MPI_INT, comm));
            OK(MPI_Unpack(rbuf + displs[i], totalcount - displs[i], &position, cbuf + concat_pos, count,
                          MPI_CHAR, comm));
            concat_pos += count;
        }
        char *next = cbuf;
        for (int i = 0; i < size; i++)
            for (int j = 0; j < 3 + (i * 5) % 40; j++) CHECK(*next++ == 'a' + (i + j) % 26);
        CHECK(next == cbuf + concat_pos);
        free(rbuf);
        free(cbuf);
    }
    free(lbuf);
}

/* Checks that "a message sent with any type can be received using the type MPI_PACKED". The receiver can
   unpack such a message in several pieces. A message that several calls packed can be received with any
   type that has the same signature. */
static void units(void)
{
    struct { int n; double x[3]; } from = {5, {1.5, -2.25, 8}}, to = {0, {0, 0, 0}};
    MPI_Datatype type, both[2] = {MPI_INT, MPI_DOUBLE};
    int lengths[2] = {1, 3}, position = 0, bound = 0, sum = 0;
    MPI_Aint at[2] = {0, (char *)from.x - (char *)&from};
    char buffer[64];
    OK(MPI_Type_create_struct(2, lengths, at, both, &type));
    OK(MPI_Type_commit(&type));
    send_all(&from, 1, type, buffer, 28, MPI_PACKED);
    if (receives()) {
        OK(MPI_Unpack(buffer, 28, &position, &to.n, 1, MPI_INT, MPI_COMM_WORLD));
        for (int i = 0; i < 3; i++)
            OK(MPI_Unpack(buffer, 28, &position, &to.x[i], 1, MPI_DOUBLE, MPI_COMM_WORLD));
        CHECK(position == 28 && to.n == 5 && !memcmp(to.x, from.x, sizeof to.x));
    }
    position = 0;
    OK(MPI_Pack(&from.n, 1, MPI_INT, buffer, 64, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(from.x, 3, MPI_DOUBLE, buffer, 64, &position, MPI_COMM_WORLD));
    memset(&to, 0, sizeof to);
    send_all(buffer, position, MPI_PACKED, &to, 1, type);
    if (receives()) CHECK(to.n == 5 && !memcmp(to.x, from.x, sizeof to.x));

    /* MPI_Pack_size returns an upper bound for the number of packed bytes. If the buffer is too small,
       packing fails and does not change the position. */
    OK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &sum));
    OK(MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &bound));
    CHECK(sum + bound >= position);
    /* One size does not fit in an int, and another does not fit in 63 bits. */
    MPI_Count large = 0;
    MPI_Aint external = 0;
    OK(MPI_Pack_size(INT_MAX, MPI_INT, MPI_COMM_WORLD, &sum));
    CHECK(sum == MPI_UNDEFINED);
    OK(MPI_Pack_size_c(INT_MAX, MPI_INT, MPI_COMM_WORLD, &large));
    CHECK(large == 4 * (MPI_Count)INT_MAX);
    OK(MPI_Pack_size_c((MPI_Count)1 << 62, MPI_INT, MPI_COMM_WORLD, &large));
    CHECK(large == MPI_UNDEFINED);
    OK(MPI_Pack_external_size("external32", INT_MAX, MPI_INT, &external));
    CHECK(external == 4 * (MPI_Aint)INT_MAX);
    OK(MPI_Pack_external_size_c("external32", (MPI_Count)1 << 62, MPI_INT, &large));
    CHECK(large == MPI_UNDEFINED);
    position = 40;
    memset(buffer, 0x55, sizeof buffer);
    RAISES(MPI_ERR_BUFFER, MPI_Pack(&from, 1, type, buffer, 64, &position, MPI_COMM_WORLD));
    CHECK(position == 40);
    for (int i = 0; i < 64; i++) CHECK(buffer[i] == 0x55);
    RAISES(MPI_ERR_BUFFER, MPI_Unpack(buffer, 64, &position, &to, 1, type, MPI_COMM_WORLD));
    CHECK(position == 40 && to.n == (receives() ? 5 : 0));
    OK(MPI_Type_free(&type));
}

int main(void)
{
    begin();
    two_ints_into_one_message();
    for (int by_packing = 0; by_packing < 2; by_packing++) {
        a_count_and_its_numbers(100, by_packing);
        a_count_and_its_numbers(1, by_packing);
        a_count_and_its_numbers(0, by_packing);
        a_count_and_its_numbers(249, by_packing);
    }
    for (int root = 0; root < size; root++) one_string_of_all(root);
    units();
    return end();
}
