/* Checks what MPI-2.2 sections 4.1.12 and 4.1.13 say: which addresses are valid, and what the decoding
   calls return for every constructor. Also decodes nested datatypes down to their named types. */
#include "transfer.h"

#define LARGE 1000

static int ni, na, nd, combiner, i[LARGE];
static MPI_Aint a[LARGE];
static MPI_Datatype d[LARGE];

/* Decodes a datatype as the program in the section does: asks for the sizes, checks that the arrays are
   large enough, and reads the contents. */
static void decode(MPI_Datatype type)
{
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    if (ni > LARGE || na > LARGE || nd > LARGE) {
        fprintf(stderr, "%d integers, %d addresses, %d types are more than %d\n", ni, na, nd, LARGE);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    memset(i, 0xab, sizeof i);
    memset(a, 0xab, sizeof a);
    memset(d, 0xab, sizeof d);
    OK(MPI_Type_get_contents(type, ni, na, nd, i, a, d));
    /* MPI_Type_get_contents must not write beyond the number of entries that the envelope states. */
    int untouched;
    MPI_Aint untouched_too;
    memset(&untouched, 0xab, sizeof untouched);
    memset(&untouched_too, 0xab, sizeof untouched_too);
    CHECK(i[ni] == untouched && a[na] == untouched_too);
    CHECK(!memcmp(&d[nd], &untouched_too, sizeof untouched_too));
}

static void expect(MPI_Datatype *type, int which, const int *integers, int n, const MPI_Aint *places,
                   int m, const MPI_Datatype *types, int t)
{
    decode(*type);
    CHECK(combiner == which && ni == n && na == m && nd == t);
    for (int k = 0; k < n; k++) CHECK(i[k] == integers[k]);
    for (int k = 0; k < m; k++) CHECK(a[k] == places[k]);
    for (int k = 0; k < t; k++) CHECK(d[k] == types[k]);
    /* If an array is too small for the contents, the call fails. */
    if (n) RAISES(MPI_ERR_OTHER, MPI_Type_get_contents(*type, n - 1, m, t, i, a, d));
    if (m) RAISES(MPI_ERR_OTHER, MPI_Type_get_contents(*type, n, m - 1, t, i, a, d));
    if (t) RAISES(MPI_ERR_OTHER, MPI_Type_get_contents(*type, n, m, t - 1, i, a, d));
    OK(MPI_Type_free(type));
}

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))
#define INTEGERS(...) (int[]){__VA_ARGS__}, LENGTH(((int[]){__VA_ARGS__}))
#define PLACES(...) (MPI_Aint[]){__VA_ARGS__}, LENGTH(((MPI_Aint[]){__VA_ARGS__}))
#define TYPES(...) (MPI_Datatype[]){__VA_ARGS__}, LENGTH(((MPI_Datatype[]){__VA_ARGS__}))
#define NONE NULL, 0

/* Checks, for each constructor, in which entries of the contents its arguments are returned. */
static void every_constructor(void)
{
    MPI_Datatype t;
    OK(MPI_Type_dup(MPI_INT, &t));
    expect(&t, MPI_COMBINER_DUP, NONE, NONE, TYPES(MPI_INT));
    OK(MPI_Type_contiguous(7, MPI_CHAR, &t));
    expect(&t, MPI_COMBINER_CONTIGUOUS, INTEGERS(7), NONE, TYPES(MPI_CHAR));
    OK(MPI_Type_vector(3, 2, -5, MPI_FLOAT, &t));
    expect(&t, MPI_COMBINER_VECTOR, INTEGERS(3, 2, -5), NONE, TYPES(MPI_FLOAT));
    OK(MPI_Type_create_hvector(3, 2, -50, MPI_FLOAT, &t));
    expect(&t, MPI_COMBINER_HVECTOR, INTEGERS(3, 2), PLACES(-50), TYPES(MPI_FLOAT));
    OK(MPI_Type_hvector(3, 2, -50, MPI_FLOAT, &t));
    expect(&t, MPI_COMBINER_HVECTOR, INTEGERS(3, 2), PLACES(-50), TYPES(MPI_FLOAT));
    int lengths[3] = {1, 0, 4}, displacements[3] = {9, -3, 2};
    MPI_Aint bytes[3] = {90, -30, 20};
    OK(MPI_Type_indexed(3, lengths, displacements, MPI_SHORT, &t));
    expect(&t, MPI_COMBINER_INDEXED, INTEGERS(3, 1, 0, 4, 9, -3, 2), NONE, TYPES(MPI_SHORT));
    OK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_SHORT, &t));
    expect(&t, MPI_COMBINER_HINDEXED, INTEGERS(3, 1, 0, 4), PLACES(90, -30, 20), TYPES(MPI_SHORT));
    OK(MPI_Type_hindexed(3, lengths, bytes, MPI_SHORT, &t));
    expect(&t, MPI_COMBINER_HINDEXED, INTEGERS(3, 1, 0, 4), PLACES(90, -30, 20), TYPES(MPI_SHORT));
    OK(MPI_Type_create_indexed_block(3, 2, displacements, MPI_SHORT, &t));
    expect(&t, MPI_COMBINER_INDEXED_BLOCK, INTEGERS(3, 2, 9, -3, 2), NONE, TYPES(MPI_SHORT));
    OK(MPI_Type_create_hindexed_block(3, 2, bytes, MPI_SHORT, &t));
    expect(&t, MPI_COMBINER_HINDEXED_BLOCK, INTEGERS(3, 2), PLACES(90, -30, 20), TYPES(MPI_SHORT));
    MPI_Datatype types[3] = {MPI_CHAR, MPI_LONG, MPI_INT};
    OK(MPI_Type_create_struct(3, lengths, bytes, types, &t));
    expect(&t, MPI_COMBINER_STRUCT, INTEGERS(3, 1, 0, 4), PLACES(90, -30, 20),
           TYPES(MPI_CHAR, MPI_LONG, MPI_INT));
    OK(MPI_Type_struct(3, lengths, bytes, types, &t));
    expect(&t, MPI_COMBINER_STRUCT, INTEGERS(3, 1, 0, 4), PLACES(90, -30, 20),
           TYPES(MPI_CHAR, MPI_LONG, MPI_INT));
    int sizes[2] = {8, 9}, subsizes[2] = {3, 2}, starts[2] = {5, 1};
    OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &t));
    expect(&t, MPI_COMBINER_SUBARRAY, INTEGERS(2, 8, 9, 3, 2, 5, 1, MPI_ORDER_FORTRAN), NONE,
           TYPES(MPI_INT));
    int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int dargs[2] = {4, MPI_DISTRIBUTE_DFLT_DARG}, psizes[2] = {2, 1};
    OK(MPI_Type_create_darray(2, 1, 2, sizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &t));
    expect(&t, MPI_COMBINER_DARRAY,
           INTEGERS(2, 1, 2, 8, 9, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE, 4,
                    MPI_DISTRIBUTE_DFLT_DARG, 2, 1, MPI_ORDER_C),
           NONE, TYPES(MPI_INT));
    OK(MPI_Type_create_resized(MPI_INT, -4, 100, &t));
    expect(&t, MPI_COMBINER_RESIZED, NONE, PLACES(-4, 100), TYPES(MPI_INT));
}

/* Checks predefined types without a name. A call returns the same handle for the same arguments, the
   contents of such a type have no datatypes, and freeing such a type is an error. */
static void by_precision(void)
{
    MPI_Datatype real, again, complex, integer;
    OK(MPI_Type_create_f90_real(15, 307, &real));
    OK(MPI_Type_create_f90_real(15, 307, &again));
    CHECK(real == again);
    decode(real);
    CHECK(combiner == MPI_COMBINER_F90_REAL && ni == 2 && na == 0 && nd == 0);
    CHECK(i[0] == 15 && i[1] == 307);
    OK(MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &complex));
    decode(complex);
    CHECK(combiner == MPI_COMBINER_F90_COMPLEX && ni == 2 && na == 0 && nd == 0);
    CHECK(i[0] == 6 && i[1] == MPI_UNDEFINED);
    OK(MPI_Type_create_f90_integer(9, &integer));
    decode(integer);
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && ni == 1 && na == 0 && nd == 0 && i[0] == 9);
    RAISES(MPI_ERR_TYPE, MPI_Type_free(&integer));
}

/* Decodes a datatype down to its named types, and frees the handles that decoding returns. Counts the
   elements of each named type. */
static void leaves(MPI_Datatype type, long times, long *ints, long *doubles, int *depth)
{
    int n, m, t, which;
    OK(MPI_Type_get_envelope(type, &n, &m, &t, &which));
    ++*depth;
    if (which == MPI_COMBINER_NAMED) {
        CHECK(type == MPI_INT || type == MPI_DOUBLE);
        *(type == MPI_INT ? ints : doubles) += times;
        return;
    }
    int *integers = malloc((n + 1) * sizeof *integers);
    MPI_Aint *places = malloc((m + 1) * sizeof *places);
    MPI_Datatype *types = malloc((t + 1) * sizeof *types);
    OK(MPI_Type_get_contents(type, n, m, t, integers, places, types));
    for (int k = 0; k < t; k++) {
        long each = 1;
        switch (which) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED: break;
        case MPI_COMBINER_CONTIGUOUS: each = integers[0]; break;
        case MPI_COMBINER_VECTOR: each = (long)integers[0] * integers[1]; break;
        case MPI_COMBINER_STRUCT: each = integers[1 + k]; break;
        default: fprintf(stderr, "unexpected combiner %d\n", which); exit(1);
        }
        leaves(types[k], times * each, ints, doubles, depth);
        MPI_Datatype own = types[k];
        int inner_n, inner_m, inner_t, inner;
        OK(MPI_Type_get_envelope(own, &inner_n, &inner_m, &inner_t, &inner));
        if (inner != MPI_COMBINER_NAMED) OK(MPI_Type_free(&own));
    }
    free(integers);
    free(places);
    free(types);
}

static void taken_apart(void)
{
    MPI_Datatype column, moved, both, whole, parts[3];
    long ints = 0, doubles = 0;
    int depth = 0;
    OK(MPI_Type_vector(4, 2, 6, MPI_DOUBLE, &column));
    OK(MPI_Type_create_resized(column, 0, 16, &moved));
    parts[0] = MPI_INT;
    parts[1] = moved;
    parts[2] = column;
    OK(MPI_Type_create_struct(3, (int[]){3, 2, 1}, (MPI_Aint[]){0, 16, 512}, parts, &both));
    OK(MPI_Type_dup(both, &parts[0]));
    OK(MPI_Type_contiguous(5, parts[0], &whole));
    OK(MPI_Type_free(&parts[0]));
    OK(MPI_Type_free(&both));
    OK(MPI_Type_free(&moved));
    OK(MPI_Type_free(&column));
    leaves(whole, 1, &ints, &doubles, &depth);
    CHECK(ints == 15 && doubles == 5 * (2 * 8 + 8) && depth == 9);
    OK(MPI_Type_free(&whole));
}

/* Checks section 4.1.12. A datatype can contain the addresses of several variables that are not in the
   same sequential storage, if it is used with MPI_BOTTOM and a count of 1. MPI_BOTTOM + v is a buffer if
   v is a valid address. */
static void addresses(void)
{
    static double fixed[4];
    int local[2] = {0, 0}, *heap = malloc(3 * sizeof *heap), n = 0;
    int lengths[3] = {2, 3, 4};
    MPI_Aint at[3], moved;
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_DOUBLE}, absolute;
    double received[4] = {0};
    OK(MPI_Get_address(local, &at[0]));
    OK(MPI_Get_address(heap, &at[1]));
    OK(MPI_Get_address(fixed, &at[2]));
    OK(MPI_Type_create_struct(3, lengths, at, types, &absolute));
    OK(MPI_Type_commit(&absolute));
    for (int k = 0; k < 4; k++) fixed[k] = k < 3 && sends() ? k + 1.5 : 0;
    for (int k = 0; k < 3; k++) heap[k] = sends() ? k + 20 : 0;
    if (sends()) local[0] = 8, local[1] = 9;

    /* The message has 5 ints and 4 doubles. They come from several variables and are received into others. */
    char packed[52];
    int position = 0, five[5];
    send_all(MPI_BOTTOM, 1, absolute, packed, 52, MPI_PACKED);
    if (receives()) {
        OK(MPI_Unpack(packed, 52, &position, five, 5, MPI_INT, MPI_COMM_WORLD));
        OK(MPI_Unpack(packed, 52, &position, received, 4, MPI_DOUBLE, MPI_COMM_WORLD));
        for (int k = 0; k < 5; k++) CHECK(five[k] == (k < 2 ? 8 + k : 18 + k));
        for (int k = 0; k < 4; k++) CHECK(received[k] == (k < 3 ? k + 1.5 : 0));
    }
    if (size > 1) {
        send_all(MPI_BOTTOM, 1, absolute, MPI_BOTTOM, 1, absolute);
        if (sends() || receives()) CHECK(local[0] == 8 && local[1] == 9 && heap[2] == 22 && fixed[2] == 3.5);
    }
    /* The section says: "u - v can be computed only if both are in the same sequential storage." */
    OK(MPI_Get_address(&fixed[3], &moved));
    CHECK(MPI_Aint_diff(moved, at[2]) == 3 * sizeof(double));
    CHECK(MPI_Aint_add(at[2], 3 * sizeof(double)) == moved);
    OK(MPI_Pack((char *)MPI_BOTTOM + at[1], 3, MPI_INT, packed, 52, &n, MPI_COMM_WORLD));
    CHECK(n == 12 && !memcmp(packed, heap, 12));
    OK(MPI_Type_free(&absolute));
    free(heap);
}

/* A duplicate shares the plan of its original, but whether it is committed is its own property. */
static void duplicates(void)
{
    int ni, na, nd, combiner, integers[4], size;
    MPI_Datatype original, early, of_early, late, inner;
    OK(MPI_Type_vector(3, 2, 5, MPI_INT, &original));
    OK(MPI_Type_dup(original, &early));
    OK(MPI_Type_commit(&original));
    OK(MPI_Type_dup(original, &late));
    RAISES(MPI_ERR_TYPE, MPI_Pack_size(1, early, MPI_COMM_WORLD, &size));
    OK(MPI_Pack_size(1, late, MPI_COMM_WORLD, &size));
    CHECK(size >= 24);
    OK(MPI_Type_dup(early, &of_early));
    OK(MPI_Type_commit(&of_early));
    OK(MPI_Pack_size(1, of_early, MPI_COMM_WORLD, &size));
    RAISES(MPI_ERR_TYPE, MPI_Pack_size(1, early, MPI_COMM_WORLD, &size));
    OK(MPI_Type_free(&original));
    OK(MPI_Type_free(&early));
    OK(MPI_Type_get_envelope(late, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_DUP && ni == 0 && na == 0 && nd == 1);
    OK(MPI_Type_get_contents(late, 0, 0, 1, NULL, NULL, &inner));
    OK(MPI_Type_get_envelope(inner, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_VECTOR);
    OK(MPI_Type_get_contents(inner, ni, na, nd, integers, NULL, &original));
    CHECK(integers[0] == 3 && integers[1] == 2 && integers[2] == 5 && original == MPI_INT);
    OK(MPI_Type_free(&inner));
    for (int i = 0; i < 2; i++) {
        MPI_Datatype type = i ? late : of_early;
        int position = 0, data[12], packed[6];
        for (int k = 0; k < 12; k++) data[k] = k;
        OK(MPI_Pack(data, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD));
        CHECK(position == sizeof packed && packed[1] == 1 && packed[2] == 5 && packed[5] == 11);
        OK(MPI_Type_free(&type));
    }
}

int main(void)
{
    begin();
    duplicates();
    every_constructor();
    by_precision();
    taken_apart();
    addresses();
    return end();
}
