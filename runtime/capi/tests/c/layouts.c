/* Tests messages whose sender and receiver use different datatypes: columns and rows, packed and typed
   data, absolute addresses, datatypes that are freed while they are in use, and more than 2^31 bytes and
   elements. The messages go to another rank, or to the same rank. */
#include "messages.h"
#include <stddef.h>

static int other;
static MPI_Comm comm;

static MPI_Datatype ready(MPI_Datatype type)
{
    OK(MPI_Type_commit(&type));
    return type;
}

static void transposed(int n)
{
    MPI_Datatype column, columns;
    double *from = malloc(n * n * sizeof *from), *to = malloc(n * n * sizeof *to);
    OK(MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(double), &columns));
    column = ready(columns);
    for (int i = 0; i < n * n; i++) from[i] = i;
    for (int mode = 0; mode < 4; mode++) {
        MPI_Request request;
        MPI_Status status;
        int count = 0;
        memset(to, 0, n * n * sizeof *to);
        /* All columns are sent, or all are received, or both. If only one side uses the column type, the
           matrix is transposed. */
        MPI_Datatype sent = mode == 1 ? MPI_DOUBLE : column;
        MPI_Datatype received = mode == 0 ? MPI_DOUBLE : column;
        int sends = mode == 1 ? n * n : n, receives = mode == 0 ? n * n : n;
        if (mode == 3) {
            OK(MPI_Isend(from, sends, sent, other, 1, comm, &request));
            OK(MPI_Recv(to, receives, received, other, 1, comm, &status));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Sendrecv(from, sends, sent, other, 1, to, receives, received, other, 1, comm,
                            &status));
        }
        OK(MPI_Get_count(&status, received, &count));
        CHECK(count == receives);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                CHECK(to[i * n + j] == (mode < 2 ? from[j * n + i] : from[i * n + j]));
    }
    OK(MPI_Type_free(&columns));
    free(from);
    free(to);
}

struct item { char tag; double value; int number[3]; };

static void packed(void)
{
    enum { N = 5000 };
    static struct item out[N], in[N];
    static char buffer[N * 40];
    int lengths[3] = {1, 1, 3}, position = 0, count;
    MPI_Aint at[3] = {offsetof(struct item, tag), offsetof(struct item, value),
                      offsetof(struct item, number)};
    MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, type, resized;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Type_create_struct(3, lengths, at, types, &type));
    OK(MPI_Type_create_resized(type, 0, sizeof(struct item), &resized));
    resized = ready(resized);
    for (int i = 0; i < N; i++) out[i] = (struct item){i, i / 2.0, {i, -i, 3 * i}};
    for (int n = 1; n <= N; n *= 17) {
        position = 0;
        OK(MPI_Pack(out, n, resized, buffer, sizeof buffer, &position, comm));
        memset(in, 0, sizeof in);
        OK(MPI_Isend(buffer, position, MPI_PACKED, other, 2, comm, &request));
        OK(MPI_Recv(in, N, resized, other, 2, comm, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Get_count(&status, resized, &count));
        CHECK(count == n);
        for (int i = 0; i < n; i++)
            CHECK(in[i].tag == (char)i && in[i].value == i / 2.0 && in[i].number[2] == 3 * i);
        memset(buffer, 0, sizeof buffer);
        OK(MPI_Isend(out, n, resized, other, 3, comm, &request));
        OK(MPI_Recv(buffer, sizeof buffer, MPI_PACKED, other, 3, comm, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Get_count(&status, MPI_PACKED, &count));
        CHECK(count == position);
        memset(in, 0, sizeof in);
        position = 0;
        OK(MPI_Unpack(buffer, count, &position, in, n, resized, comm));
        for (int i = 0; i < n; i++) CHECK(in[i].value == i / 2.0 && in[i].number[1] == -i);
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&resized));
}

static void absolute(void)
{
    int lengths[2] = {2, 1}, a[2] = {1, 2}, b[2] = {0, 0};
    double x = 3, y = 0;
    MPI_Aint at[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, from, to;
    MPI_Request request;
    OK(MPI_Get_address(a, &at[0]));
    OK(MPI_Get_address(&x, &at[1]));
    OK(MPI_Type_create_struct(2, lengths, at, types, &from));
    OK(MPI_Get_address(b, &at[0]));
    OK(MPI_Get_address(&y, &at[1]));
    OK(MPI_Type_create_struct(2, lengths, at, types, &to));
    from = ready(from);
    to = ready(to);
    OK(MPI_Irecv(MPI_BOTTOM, 1, to, other, 4, comm, &request));
    OK(MPI_Type_free(&to));
    OK(MPI_Send(MPI_BOTTOM, 1, from, other, 4, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(b[0] == 1 && b[1] == 2 && y == 3);
    OK(MPI_Type_free(&from));
}

/* Sends a message of more than 2^31 bytes. All elements of the datatype lie at the same address, so the
   program needs only one megabyte for each side. */
static void large(void)
{
    enum { LONG = 1 << 20, TIMES = 2050 };
    unsigned char *out = malloc(LONG), *in = malloc(LONG);
    MPI_Datatype block, again, nothing;
    MPI_Count count = 0;
    MPI_Request request;
    MPI_Status status;
    int small = 0;
    fill(out, LONG, 1);
    OK(MPI_Type_contiguous(LONG, MPI_BYTE, &block));
    OK(MPI_Type_create_resized(block, 0, 0, &again));
    again = ready(again);
    OK(MPI_Irecv(in, TIMES, again, other, 5, comm, &request));
    OK(MPI_Send(out, TIMES, again, other, 5, comm));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    CHECK(count == (MPI_Count)TIMES * LONG && is_filled(in, LONG, 1));
    OK(MPI_Get_count(&status, MPI_BYTE, &small));
    CHECK(small == MPI_UNDEFINED);
    /* The elements have no bytes, and there are more elements than fit in an int. */
    OK(MPI_Type_contiguous(0, MPI_BYTE, &nothing));
    nothing = ready(nothing);
    OK(MPI_Irecv_c(in, (MPI_Count)5 << 32, nothing, other, 6, comm, &request));
    OK(MPI_Send_c(out, (MPI_Count)5 << 32, nothing, other, 6, comm));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count_c(&status, nothing, &count));
    CHECK(count == 0);
    /* A number of bytes that does not fit in 63 bits is an error, and the call starts nothing. */
    RAISES(MPI_ERR_VALUE_TOO_LARGE, MPI_Send_c(out, (MPI_Count)1 << 62, again, other, 7, comm));
    RAISES(MPI_ERR_VALUE_TOO_LARGE,
           MPI_Irecv_c(in, (MPI_Count)1 << 62, again, other, 7, comm, &request));
    OK(MPI_Type_free(&block));
    OK(MPI_Type_free(&again));
    OK(MPI_Type_free(&nothing));
    free(out);
    free(in);
}

/* Checks that a datatype with several names has the one that the standard's tables list first. */
static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int n;
    OK(MPI_Type_get_name(MPI_LONG_LONG, name, &n));
    CHECK(!strcmp(name, "MPI_LONG_LONG_INT") && n == 17);
    OK(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &n));
    CHECK(!strcmp(name, "MPI_C_COMPLEX") && n == 13);
    /* The names of conversions outside the ABI exist with the prefix P too. */
    CHECK(PMPI_Type_f2c(PMPI_Type_c2f(MPI_INT)) == MPI_INT);
}

int main(void)
{
    begin();
    names();
    for (int round = 0; round < 2; round++) {
        comm = round ? MPI_COMM_SELF : MPI_COMM_WORLD;
        other = round || size == 1 ? 0 : rank ^ 1;
        transposed(3);
        transposed(40);
        transposed(300);
        packed();
        absolute();
    }
    if (rank == 0) {
        comm = MPI_COMM_SELF;
        large();
    }
    if (size == 2) {
        comm = MPI_COMM_WORLD;
        other = rank ^ 1;
        large();
    }
    return end();
}
