/* Tests what the slides of a lecture on derived datatypes say, in the order of the slides (../README.md
   has the table). Each slide is checked by a message. The program compares the data that arrive with the
   result of a loop over the C variables. */
#include "transfer.h"
#include <stddef.h>
#include <stdint.h>

typedef struct { char a; int b; double c; } mystruct;
typedef struct { char a; int b; double c; float d; } longer;

static void bounds(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent, MPI_Aint true_lb,
                   MPI_Aint true_extent, int size_of_data)
{
    MPI_Aint at, long_is, ub = -1;
    int bytes;
    OK(MPI_Type_get_extent(type, &at, &long_is));
    CHECK(at == lb && long_is == extent);
    /* The slides use the MPI-1 names of these calls. */
    OK(MPI_Type_lb(type, &at));
    OK(MPI_Type_ub(type, &ub));
    OK(MPI_Type_extent(type, &long_is));
    CHECK(at == lb && ub == lb + extent && long_is == extent);
    OK(MPI_Type_get_true_extent(type, &at, &long_is));
    CHECK(at == true_lb && long_is == true_extent);
    OK(MPI_Type_size(type, &bytes));
    CHECK(bytes == size_of_data);
}

/* The slide "Our previous example looks like follows". The program gets addresses with MPI_Address,
   computes displacements as differences, and calls MPI_Type_struct. Then it does the same with the names
   of MPI-2. The type signature is {char, int, double}, so a message of this type can be received as a
   char, an int and a double. */
static void a_struct_of_three(void)
{
    mystruct mydata = {'x', -12, 0.625}, other = {0, 0, 0};
    MPI_Aint baseaddr, addr1, addr2, again;
    MPI_Datatype newtype, same, dtype[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
    int blength[3] = {1, 1, 1}, position = 0, b = 0;
    char packed[64], a = 0;
    double c = 0;
    OK(MPI_Address(&mydata, &baseaddr));
    OK(MPI_Address(&mydata.b, &addr1));
    OK(MPI_Address(&mydata.c, &addr2));
    OK(MPI_Get_address(&mydata.c, &again));
    CHECK(again == addr2 && addr2 == (MPI_Aint)(intptr_t)&mydata.c);
    MPI_Aint displ[3] = {0, addr1 - baseaddr, addr2 - baseaddr};
    CHECK(displ[1] == offsetof(mystruct, b) && displ[2] == offsetof(mystruct, c));
    OK(MPI_Type_struct(3, blength, displ, dtype, &newtype));
    OK(MPI_Type_create_struct(3, blength, displ, dtype, &same));
    OK(MPI_Type_commit(&newtype));
    OK(MPI_Type_commit(&same));
    bounds(newtype, 0, sizeof(mystruct), 0, sizeof(mystruct), 13);
    bounds(same, 0, sizeof(mystruct), 0, sizeof(mystruct), 13);

    send_all(&mydata, 1, newtype, &other, 1, same);
    if (receives()) CHECK(other.a == 'x' && other.b == -12 && other.c == 0.625);

    /* The packed data have the members in this order, without gaps. */
    send_all(&mydata, 1, newtype, packed, 13, MPI_PACKED);
    if (receives()) {
        OK(MPI_Unpack(packed, 13, &position, &a, 1, MPI_CHAR, MPI_COMM_WORLD));
        OK(MPI_Unpack(packed, 13, &position, &b, 1, MPI_INT, MPI_COMM_WORLD));
        OK(MPI_Unpack(packed, 13, &position, &c, 1, MPI_DOUBLE, MPI_COMM_WORLD));
        CHECK(position == 13 && a == 'x' && b == -12 && c == 0.625);
        CHECK(packed[0] == 'x' && !memcmp(packed + 1, &b, 4) && !memcmp(packed + 5, &c, 8));
    }

    /* The slide says: "Displacements are not required to be positive, distinct or in increasing order".
       This type has the same three members in reverse order, with displacements from the middle member,
       and one member twice. Only a sender may have a byte twice. */
    MPI_Aint from_b[4] = {displ[2] - displ[1], -displ[1], 0, 0};
    MPI_Datatype backwards, types[4] = {MPI_DOUBLE, MPI_CHAR, MPI_INT, MPI_INT};
    int ones[4] = {1, 1, 1, 1};
    struct { double c; char a; int b, b2; } flat = {0, 0, 0, 0};
    MPI_Aint places[4] = {0, (char *)&flat.a - (char *)&flat, (char *)&flat.b - (char *)&flat,
                          (char *)&flat.b2 - (char *)&flat};
    MPI_Datatype forwards;
    OK(MPI_Type_create_struct(4, ones, from_b, types, &backwards));
    OK(MPI_Type_create_struct(4, ones, places, types, &forwards));
    OK(MPI_Type_commit(&backwards));
    OK(MPI_Type_commit(&forwards));
    send_all(&mydata.b, 1, backwards, &flat, 1, forwards);
    if (receives()) CHECK(flat.c == 0.625 && flat.a == 'x' && flat.b == -12 && flat.b2 == -12);

    OK(MPI_Type_free(&backwards));
    OK(MPI_Type_free(&forwards));
    OK(MPI_Type_free(&newtype));
    OK(MPI_Type_free(&same));
    CHECK(newtype == MPI_DATATYPE_NULL);
}

/* The slide "Type map vs. type signature". The type map {(char, 0), (int, 8), (double, 16)} is one that no
   C compiler would make. Two signatures match if they are equal when written out with their counts, and a
   message may be shorter than the receive. */
static void signatures(void)
{
    int ones[3] = {1, 1, 1};
    MPI_Aint at[3] = {0, 8, 16};
    MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE}, type, pair, two[2] = {MPI_INT, MPI_INT};
    unsigned char from[24], to[24];
    MPI_Status status;
    int count = -1, elements = -1;
    OK(MPI_Type_create_struct(3, ones, at, types, &type));
    OK(MPI_Type_commit(&type));
    bounds(type, 0, 24, 0, 24, 13);
    fill(from, sizeof from, 3);
    memset(to, 0xee, sizeof to);
    send_all(from, 1, type, to, 1, type);
    for (int i = 0; i < 24 && receives(); i++)
        CHECK(to[i] == (i == 0 || (i >= 8 && i < 12) || i >= 16 ? from[i] : 0xee));

    /* 6 ints are received as 3 pairs of ints, although the receive has room for 5 pairs. */
    int out[6] = {1, 2, 3, 4, 5, 6}, in[10] = {0};
    MPI_Aint near[2] = {0, 4};
    OK(MPI_Type_create_struct(2, ones, near, two, &pair));
    OK(MPI_Type_commit(&pair));
    transfer(out, 6, MPI_INT, in, 5, pair, &status);
    if (receives()) {
        OK(MPI_Get_count(&status, pair, &count));
        OK(MPI_Get_elements(&status, pair, &elements));
        CHECK(count == 3 && elements == 6);
        for (int i = 0; i < 10; i++) CHECK(in[i] == (i < 6 ? out[i] : 0));
    }
    /* 5 ints are not a whole number of pairs, but they are 5 elements. */
    transfer(out, 5, MPI_INT, in, 5, pair, &status);
    if (receives()) {
        OK(MPI_Get_count(&status, pair, &count));
        OK(MPI_Get_elements(&status, pair, &elements));
        CHECK(count == MPI_UNDEFINED && elements == 5);
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&pair));
}

/* The slide "Committing and freeing a datatype". */
static void committing(void)
{
    MPI_Datatype part, whole, predefined = MPI_INT;
    int data[8] = {0};
    OK(MPI_Type_contiguous(2, MPI_INT, &part));
    RAISES(MPI_ERR_TYPE, MPI_Send(data, 1, part, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    /* A datatype that is not committed can be used to make another datatype. */
    OK(MPI_Type_contiguous(2, part, &whole));
    OK(MPI_Type_free(&part));
    OK(MPI_Type_commit(&whole));
    OK(MPI_Send(data, 1, whole, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_free(&whole));
    RAISES(MPI_ERR_TYPE, MPI_Type_free(&predefined));
    CHECK(predefined == MPI_INT);
}

/* Sends rows and columns of a matrix, in C order and in Fortran order: "which column you are really
   sending depends on the pointer". */
static void columns_and_rows(void)
{
    double matrix[8][8], line[8];
    MPI_Datatype strided, consecutive, hvector, types[2];
    for (int i = 0; i < 64; i++) matrix[i / 8][i % 8] = i;
    OK(MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &strided));
    OK(MPI_Type_hvector(8, 1, 8 * sizeof(double), MPI_DOUBLE, &hvector));
    OK(MPI_Type_contiguous(8, MPI_DOUBLE, &consecutive));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Type_commit(&hvector));
    OK(MPI_Type_commit(&consecutive));
    types[0] = strided;
    types[1] = hvector;
    for (int j = 0; j < 8; j++) {
        for (int k = 0; k < 2; k++) {
            /* Columns in C are rows in Fortran. */
            memset(line, 0, sizeof line);
            send_all(&matrix[0][j], 1, types[k], line, 8, MPI_DOUBLE);
            for (int i = 0; i < 8 && receives(); i++) CHECK(line[i] == 8 * i + j);
        }
        memset(line, 0, sizeof line);
        send_all(&matrix[j][0], 1, consecutive, line, 8, MPI_DOUBLE);
        for (int i = 0; i < 8 && receives(); i++) CHECK(line[i] == 8 * j + i);
        /* A row is received into a column, because the receiver may use another layout than the sender. */
        double square[8][8] = {{0}};
        send_all(&matrix[j][0], 1, consecutive, &square[0][j], 1, strided);
        for (int i = 0; i < 64 && receives(); i++)
            CHECK(square[i / 8][i % 8] == (i % 8 == j ? 8 * j + i / 8 : 0));
    }
    OK(MPI_Type_free(&strided));
    OK(MPI_Type_free(&hvector));
    OK(MPI_Type_free(&consecutive));
}

/* Checks which numbers a datatype selects from an array of 64 numbers, in which each number equals its
   index. */
static void takes(MPI_Datatype type, int count, const int *wanted, int n)
{
    int all[64], got[64];
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 64; i++) all[i] = i;
    memset(got, 0xff, sizeof got);
    send_all(all, count, type, got, n, MPI_INT);
    for (int i = 0; i < 64 && receives(); i++) CHECK(got[i] == (i < n ? wanted[i] : -1));
    OK(MPI_Type_free(&type));
}

#define TAKES(type, count, ...)                                                              \
    takes(type, count, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void constructors(void)
{
    MPI_Datatype type, part, dup;
    OK(MPI_Type_contiguous(4, MPI_INT, &type));
    TAKES(type, 1, 0, 1, 2, 3);
    /* The slide says of MPI_Type_contiguous: "End of one element exactly at the beginning of the next". */
    OK(MPI_Type_vector(2, 1, 3, MPI_INT, &part));
    OK(MPI_Type_contiguous(3, part, &type));
    TAKES(type, 1, 0, 3, 4, 7, 8, 11);
    OK(MPI_Type_free(&part));

    OK(MPI_Type_vector(3, 2, 3, MPI_INT, &type));
    TAKES(type, 1, 0, 1, 3, 4, 6, 7);
    OK(MPI_Type_hvector(3, 2, 3 * sizeof(int), MPI_INT, &type));
    TAKES(type, 1, 0, 1, 3, 4, 6, 7);
    OK(MPI_Type_create_hvector(3, 2, 3 * sizeof(int), MPI_INT, &type));
    TAKES(type, 2, 0, 1, 3, 4, 6, 7, 8, 9, 11, 12, 14, 15);

    int lengths[3] = {2, 1, 4}, places[3] = {0, 3, 5};
    MPI_Aint bytes[3] = {0, 12, 20};
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type));
    TAKES(type, 1, 0, 1, 3, 5, 6, 7, 8);
    OK(MPI_Type_hindexed(3, lengths, bytes, MPI_INT, &type));
    TAKES(type, 1, 0, 1, 3, 5, 6, 7, 8);
    OK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type));
    TAKES(type, 2, 0, 1, 3, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 17);
    OK(MPI_Type_create_indexed_block(3, 2, (int[]){9, 0, 4}, MPI_INT, &type));
    TAKES(type, 1, 9, 10, 0, 1, 4, 5);

    /* The slide has a matrix of 8 x 8 numbers from 0, and a submatrix of 4 x 2 that begins at (2, 4). In
       the other order of dimensions, the submatrix is the mirror image. */
    int sizes[2] = {8, 8}, subsizes[2] = {4, 2}, starts[2] = {2, 4};
    OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type));
    bounds(type, 0, 256, 80, 104, 32);
    TAKES(type, 1, 20, 21, 28, 29, 36, 37, 44, 45);
    OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type));
    TAKES(type, 1, 34, 35, 36, 37, 42, 43, 44, 45);

    /* The part of rank 3 if a grid of 2 x 2 ranks shares a matrix of 8 x 8 numbers. The rows are
       distributed cyclically, and the columns in blocks. */
    int distribs[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int dargs[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, psizes[2] = {2, 2};
    OK(MPI_Type_create_darray(4, 3, 2, sizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type));
    TAKES(type, 1, 20, 21, 22, 23, 28, 29, 30, 31, 52, 53, 54, 55, 60, 61, 62, 63);

    /* The slide says of MPI_Type_dup: "The new datatype has the same committed state as the previous
       datatype." */
    int data = 0;
    OK(MPI_Type_contiguous(1, MPI_INT, &type));
    OK(MPI_Type_dup(type, &dup));
    RAISES(MPI_ERR_TYPE, MPI_Send(&data, 1, dup, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_free(&dup));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_dup(type, &dup));
    OK(MPI_Type_free(&type));
    OK(MPI_Send(&data, 1, dup, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    TAKES(dup, 3, 0, 1, 2);
}

/* The slide "A problem with the specification up to now". The program sends the members b and c of five
   structs. */
static void two_members_of_five(void)
{
    longer mydata[5], got[5];
    MPI_Aint baseaddr, addr1, addr2, addr3;
    MPI_Datatype simple, marked, resized;
    int blength[4] = {1, 1, 1, 1};
    for (int i = 0; i < 5; i++) mydata[i] = (longer){'a' + i, 10 + i, i + 0.5, i + 0.25f};
    OK(MPI_Address(&mydata[0], &baseaddr));
    OK(MPI_Address(&mydata[0].b, &addr1));
    OK(MPI_Address(&mydata[0].c, &addr2));
    OK(MPI_Address(&mydata[1], &addr3));
    MPI_Aint some[2] = {addr1 - baseaddr, addr2 - baseaddr};
    MPI_Datatype members[2] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_struct(2, blength, some, members, &simple));
    OK(MPI_Type_commit(&simple));
    CHECK(sizeof(longer) == 24);
    bounds(simple, 4, 16, 4, 12, 12);

    /* A message of one element has the right data. */
    memset(got, 0, sizeof got);
    send_all(mydata, 1, simple, got, 1, simple);
    if (receives()) CHECK(got[0].b == 10 && got[0].c == 0.5 && got[0].a == 0 && got[0].d == 0);
    /* In a message of five elements, only the first is right. The others are read at multiples of 16
       bytes, as the slide shows. */
    char packed[60];
    send_all(mydata, 5, simple, packed, 60, MPI_PACKED);
    for (int i = 0; i < 5 && receives(); i++) {
        const char *element = (const char *)mydata + 16 * i;
        CHECK(!memcmp(packed + 12 * i, element + 4, 4) && !memcmp(packed + 12 * i + 4, element + 8, 8));
        CHECK((i == 0) == !memcmp(packed + 12 * i, &mydata[i].b, 4));
    }

    /* These are correct descriptions: one with bound markers, and one with the call that replaced the
       markers. */
    MPI_Aint all[4] = {0, addr1 - baseaddr, addr2 - baseaddr, addr3 - baseaddr};
    MPI_Datatype with[4] = {MPI_LB, MPI_INT, MPI_DOUBLE, MPI_UB};
    OK(MPI_Type_struct(4, blength, all, with, &marked));
    OK(MPI_Type_create_resized(simple, 0, sizeof(longer), &resized));
    OK(MPI_Type_commit(&marked));
    OK(MPI_Type_commit(&resized));
    MPI_Datatype right[2] = {marked, resized};
    for (int k = 0; k < 2; k++) {
        bounds(right[k], 0, 24, 4, 12, 12);
        memset(got, 0, sizeof got);
        send_all(mydata, 5, right[k], got, 5, right[1 - k]);
        for (int i = 0; i < 5 && receives(); i++)
            CHECK(got[i].b == 10 + i && got[i].c == i + 0.5 && got[i].a == 0 && got[i].d == 0);
    }

    /* The slide says that there is "no way to erase upper and lower bound markers once they are set". Only
       MPI_Type_create_resized erases them. */
    MPI_Datatype outer, parts[2] = {marked, MPI_INT}, erased;
    MPI_Aint at[2] = {0, 100};
    OK(MPI_Type_struct(2, blength, at, parts, &outer));
    bounds(outer, 0, 24, 4, 100, 16);
    OK(MPI_Type_create_resized(outer, -8, 200, &erased));
    bounds(erased, -8, 200, 4, 100, 16);
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_free(&erased));
    OK(MPI_Type_free(&simple));
    OK(MPI_Type_free(&marked));
    OK(MPI_Type_free(&resized));
}

/* The slides "MPI_Type_get_envelope", "MPI_Type_get_contents" and "Examples using MPI_Type_get_contents". */
static void decoding(void)
{
    int ni, na, nd, combiner, i[8], lengths[3] = {1, 2, 1};
    MPI_Aint a[8], places[3] = {0, 8, 24};
    MPI_Datatype d[8], inner, type, inside[3];
    OK(MPI_Type_get_envelope(MPI_DOUBLE, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED && ni == 0 && na == 0 && nd == 0);
    RAISES(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_DOUBLE, 8, 8, 8, i, a, d));

    OK(MPI_Type_contiguous(3, MPI_INT, &inner));
    OK(MPI_Type_get_envelope(inner, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_CONTIGUOUS && ni == 1 && na == 0 && nd == 1);
    OK(MPI_Type_get_contents(inner, ni, na, nd, i, a, d));
    CHECK(i[0] == 3 && d[0] == MPI_INT);

    OK(MPI_Type_vector(3, 2, 5, MPI_INT, &type));
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_VECTOR && ni == 3 && na == 0 && nd == 1);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_indexed(3, lengths, (int[]){0, 3, 5}, MPI_INT, &type));
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_INDEXED && ni == 7 && na == 0 && nd == 1);
    OK(MPI_Type_free(&type));

    inside[0] = MPI_CHAR;
    inside[1] = MPI_DOUBLE;
    inside[2] = inner;
    OK(MPI_Type_struct(3, lengths, places, inside, &type));
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_STRUCT && ni == 4 && na == 3 && nd == 3);
    OK(MPI_Type_get_contents(type, ni, na, nd, i, a, d));
    CHECK(i[0] == 3);
    for (int k = 0; k < 3; k++) CHECK(i[1 + k] == lengths[k] && a[k] == places[k]);
    CHECK(d[0] == MPI_CHAR && d[1] == MPI_DOUBLE && d[2] != inner);
    /* MPI_Type_get_contents returns a derived datatype as a duplicate, which the caller frees. The
       duplicate stays valid when the original is freed. */
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_get_contents(d[2], 1, 0, 1, i, NULL, &type));
    CHECK(i[0] == 3 && type == MPI_INT);
    OK(MPI_Type_free(&d[2]));
}

/* Tests info objects: keys and values are strings of limited length, and keys are case sensitive and have
   one value each. */
static void info(void)
{
    MPI_Info hints;
    char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 2], lengthy[MPI_MAX_INFO_VAL + 2];
    int flag = -1, n = -1;
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "access_style", "read_once"));
    OK(MPI_Info_set(hints, "Access_Style", "random"));
    OK(MPI_Info_get(hints, "access_style", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && !strcmp(value, "read_once"));
    OK(MPI_Info_get(hints, "Access_Style", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && !strcmp(value, "random"));
    /* The slide says of MPI_Info_set: "Overrides previous value, if key already known." */
    OK(MPI_Info_set(hints, "access_style", "sequential"));
    OK(MPI_Info_get(hints, "access_style", 3, value, &flag));
    CHECK(flag && !strcmp(value, "seq"));
    OK(MPI_Info_get_nkeys(hints, &n));
    CHECK(n == 2);
    OK(MPI_Info_get(hints, "unknown", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_delete(hints, "Access_Style"));
    OK(MPI_Info_get(hints, "Access_Style", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag);
    RAISES(MPI_ERR_INFO_NOKEY, MPI_Info_delete(hints, "Access_Style"));
    /* Calls ignore keys that they do not know. */
    OK(MPI_Info_set(hints, "no_such_hint", "1"));
    void *memory;
    OK(MPI_Alloc_mem(64, hints, &memory));
    OK(MPI_Free_mem(memory));
    /* In C, MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL include the terminating zero byte. */
    memset(key, 'k', sizeof key);
    memset(lengthy, 'v', sizeof lengthy);
    key[MPI_MAX_INFO_KEY - 1] = lengthy[MPI_MAX_INFO_VAL - 1] = 0;
    OK(MPI_Info_set(hints, key, lengthy));
    OK(MPI_Info_get(hints, key, MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && !strcmp(value, lengthy));
    key[MPI_MAX_INFO_KEY - 1] = 'k';
    key[MPI_MAX_INFO_KEY] = 0;
    RAISES(MPI_ERR_INFO_KEY, MPI_Info_set(hints, key, "1"));
    lengthy[MPI_MAX_INFO_VAL - 1] = 'v';
    lengthy[MPI_MAX_INFO_VAL] = 0;
    RAISES(MPI_ERR_INFO_VALUE, MPI_Info_set(hints, "key", lengthy));
    OK(MPI_Info_free(&hints));
    CHECK(hints == MPI_INFO_NULL);
}

int main(void)
{
    begin();
    a_struct_of_three();
    signatures();
    committing();
    columns_and_rows();
    constructors();
    two_members_of_five();
    decoding();
    info();
    return end();
}
