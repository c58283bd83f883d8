/* Tests every predefined operation on every predefined datatype. C computes the expected results with its own
   types. An operation that the standard does not define on a datatype must be refused with MPI_ERR_OP. */
#include "check.h"

#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNT = 103, WIDEST = 32, BYTES = COUNT * WIDEST };

static int rank, size;

enum op { MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR, MAXLOC, MINLOC, OPS };

static const struct {
    const char *name;
    MPI_Op op;
} ops[OPS] = {
    [MAX] = {"MPI_MAX", MPI_MAX},          [MIN] = {"MPI_MIN", MPI_MIN},
    [SUM] = {"MPI_SUM", MPI_SUM},          [PROD] = {"MPI_PROD", MPI_PROD},
    [LAND] = {"MPI_LAND", MPI_LAND},       [BAND] = {"MPI_BAND", MPI_BAND},
    [LOR] = {"MPI_LOR", MPI_LOR},          [BOR] = {"MPI_BOR", MPI_BOR},
    [LXOR] = {"MPI_LXOR", MPI_LXOR},       [BXOR] = {"MPI_BXOR", MPI_BXOR},
    [MAXLOC] = {"MPI_MAXLOC", MPI_MAXLOC}, [MINLOC] = {"MPI_MINLOC", MPI_MINLOC},
};

#define BIT(op) (1 << (op))
#define ORDERED (BIT(MAX) | BIT(MIN))
#define ARITHMETIC (BIT(SUM) | BIT(PROD))
#define LOGICAL (BIT(LAND) | BIT(LOR) | BIT(LXOR))
#define BITWISE (BIT(BAND) | BIT(BOR) | BIT(BXOR))
#define LOCATED (BIT(MAXLOC) | BIT(MINLOC))
#define C_INTEGER (ORDERED | ARITHMETIC | LOGICAL | BITWISE)
#define INTEGER (ORDERED | ARITHMETIC | BITWISE)
#define REAL (ORDERED | ARITHMETIC)

typedef __int128 int128_t;
typedef unsigned __int128 uint128_t;
typedef _Float16 half;
typedef __float128 quad;
typedef long double extended;
typedef _Complex float complex32;
typedef _Complex double complex64;
typedef _Complex long double complex_extended;
typedef struct { half re, im; } complex16;
typedef struct { quad re, im; } complex128;

/* ---- the oracle: `upper = lower op upper` for one element ---- */

/* Integers are added and multiplied as unsigned numbers, whose overflow C defines. */
#define INTEGERS(T, U)                                                         \
    static void apply_##T(enum op op, const void *lower, void *upper)          \
    {                                                                          \
        T a, b, r = 0;                                                         \
        memcpy(&a, lower, sizeof a), memcpy(&b, upper, sizeof b);              \
        switch (op) {                                                          \
        case MAX: r = b > a ? b : a; break;                                    \
        case MIN: r = b < a ? b : a; break;                                    \
        case SUM: r = (T)((U)a + (U)b); break;                                 \
        case PROD: r = (T)((uint128_t)(U)a * (U)b); break;                     \
        case LAND: r = a && b; break;                                          \
        case LOR: r = a || b; break;                                           \
        case LXOR: r = !a != !b; break;                                        \
        case BAND: r = a & b; break;                                           \
        case BOR: r = a | b; break;                                            \
        case BXOR: r = a ^ b; break;                                           \
        default: abort();                                                      \
        }                                                                      \
        memcpy(upper, &r, sizeof r);                                           \
    }
INTEGERS(int8_t, uint8_t)
INTEGERS(int16_t, uint16_t)
INTEGERS(int32_t, uint32_t)
INTEGERS(int64_t, uint64_t)
INTEGERS(int128_t, uint128_t)
INTEGERS(uint8_t, uint8_t)
INTEGERS(uint16_t, uint16_t)
INTEGERS(uint32_t, uint32_t)
INTEGERS(uint64_t, uint64_t)
INTEGERS(uint128_t, uint128_t)

#define REALS(T)                                                               \
    static void apply_##T(enum op op, const void *lower, void *upper)          \
    {                                                                          \
        T a, b, r = 0;                                                         \
        memcpy(&a, lower, sizeof a), memcpy(&b, upper, sizeof b);              \
        switch (op) {                                                          \
        case MAX: r = b > a ? b : a; break;                                    \
        case MIN: r = b < a ? b : a; break;                                    \
        case SUM: r = a + b; break;                                            \
        case PROD: r = a * b; break;                                           \
        default: abort();                                                      \
        }                                                                      \
        memcpy(upper, &r, sizeof r);                                           \
    }
REALS(half)
REALS(float)
REALS(double)
REALS(extended)
REALS(quad)

#define COMPLEX(T)                                                             \
    static void apply_##T(enum op op, const void *lower, void *upper)          \
    {                                                                          \
        T a, b, r = 0;                                                         \
        memcpy(&a, lower, sizeof a), memcpy(&b, upper, sizeof b);              \
        r = op == SUM ? a + b : a * b;                                         \
        memcpy(upper, &r, sizeof r);                                           \
    }
COMPLEX(complex32)
COMPLEX(complex64)
COMPLEX(complex_extended)

/* How C computes with the complex types of half and quad precision depends on the machine. So the oracle computes
   with their parts. */
#define PARTS(T)                                                               \
    static void apply_##T(enum op op, const void *lower, void *upper)          \
    {                                                                          \
        T a, b, r;                                                             \
        memcpy(&a, lower, sizeof a), memcpy(&b, upper, sizeof b);              \
        if (op == SUM) {                                                       \
            r.re = a.re + b.re, r.im = a.im + b.im;                            \
        } else {                                                               \
            r.re = a.re * b.re, r.im = a.re * b.im;                            \
            r.re -= a.im * b.im, r.im += a.im * b.re;                          \
        }                                                                      \
        memcpy(upper, &r, sizeof r);                                           \
    }
PARTS(complex16)
PARTS(complex128)

#define PAIR(N, V, I)                                                          \
    typedef struct { V value; I index; } N;                                    \
    static void apply_##N(enum op op, const void *lower, void *upper)          \
    {                                                                          \
        N a, b;                                                                \
        memcpy(&a, lower, sizeof a), memcpy(&b, upper, sizeof b);              \
        int wins = op == MAXLOC ? b.value > a.value : b.value < a.value;       \
        if (a.value == b.value) wins = b.index < a.index;                      \
        if (wins) return;                                                      \
        memcpy((char *)upper + offsetof(N, value), &a.value, sizeof a.value);  \
        memcpy((char *)upper + offsetof(N, index), &a.index, sizeof a.index);  \
    }
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(short_int, short, int)
PAIR(extended_int, extended, int)
PAIR(int_int, int, int)
PAIR(float_float, float, float)
PAIR(double_double, double, double)

/* ---- the datatypes ---- */

enum fill { WHOLE, TRUTH, REALS_OF, HALVES, PAIRS };

struct type {
    const char *name;
    MPI_Datatype type;
    int defined;
    void (*apply)(enum op, const void *, void *);
    size_t bytes, part;
    enum fill fill;
};

#define INT_ROW(mpi, T, set) {#mpi, mpi, set, apply_##T, sizeof(T), sizeof(T), WHOLE}
#define BOOL_ROW(mpi, T) {#mpi, mpi, LOGICAL, apply_##T, sizeof(T), sizeof(T), TRUTH}
#define REAL_ROW(mpi, T) {#mpi, mpi, REAL, apply_##T, sizeof(T), sizeof(T), REALS_OF}
#define COMPLEX_ROW(mpi, T, P) {#mpi, mpi, ARITHMETIC, apply_##T, sizeof(T), sizeof(P), HALVES}
#define PAIR_ROW(mpi, N) {#mpi, mpi, LOCATED, apply_##N, sizeof(N), 0, PAIRS}
#define NONE_ROW(mpi) {#mpi, mpi, 0, NULL, 1, 1, WHOLE}

static const struct type types[] = {
    INT_ROW(MPI_SIGNED_CHAR, int8_t, C_INTEGER),
    INT_ROW(MPI_SHORT, int16_t, C_INTEGER),
    INT_ROW(MPI_INT, int32_t, C_INTEGER),
    INT_ROW(MPI_LONG, int64_t, C_INTEGER),
    INT_ROW(MPI_LONG_LONG, int64_t, C_INTEGER),
    INT_ROW(MPI_UNSIGNED_CHAR, uint8_t, C_INTEGER),
    INT_ROW(MPI_UNSIGNED_SHORT, uint16_t, C_INTEGER),
    INT_ROW(MPI_UNSIGNED, uint32_t, C_INTEGER),
    INT_ROW(MPI_UNSIGNED_LONG, uint64_t, C_INTEGER),
    INT_ROW(MPI_UNSIGNED_LONG_LONG, uint64_t, C_INTEGER),
    INT_ROW(MPI_INT8_T, int8_t, C_INTEGER),
    INT_ROW(MPI_INT16_T, int16_t, C_INTEGER),
    INT_ROW(MPI_INT32_T, int32_t, C_INTEGER),
    INT_ROW(MPI_INT64_T, int64_t, C_INTEGER),
    INT_ROW(MPI_UINT8_T, uint8_t, C_INTEGER),
    INT_ROW(MPI_UINT16_T, uint16_t, C_INTEGER),
    INT_ROW(MPI_UINT32_T, uint32_t, C_INTEGER),
    INT_ROW(MPI_UINT64_T, uint64_t, C_INTEGER),
    INT_ROW(MPI_INTEGER, int32_t, INTEGER),
    INT_ROW(MPI_INTEGER1, int8_t, INTEGER),
    INT_ROW(MPI_INTEGER2, int16_t, INTEGER),
    INT_ROW(MPI_INTEGER4, int32_t, INTEGER),
    INT_ROW(MPI_INTEGER8, int64_t, INTEGER),
    INT_ROW(MPI_INTEGER16, int128_t, INTEGER),
    INT_ROW(MPI_AINT, int64_t, INTEGER),
    INT_ROW(MPI_OFFSET, int64_t, INTEGER),
    INT_ROW(MPI_COUNT, int64_t, INTEGER),
    INT_ROW(MPI_BYTE, uint8_t, BITWISE),
    BOOL_ROW(MPI_C_BOOL, uint8_t),
    BOOL_ROW(MPI_CXX_BOOL, uint8_t),
    BOOL_ROW(MPI_LOGICAL, uint32_t),
    BOOL_ROW(MPI_LOGICAL1, uint8_t),
    BOOL_ROW(MPI_LOGICAL2, uint16_t),
    BOOL_ROW(MPI_LOGICAL4, uint32_t),
    BOOL_ROW(MPI_LOGICAL8, uint64_t),
    BOOL_ROW(MPI_LOGICAL16, uint128_t),
    REAL_ROW(MPI_REAL2, half),
    REAL_ROW(MPI_FLOAT, float),
    REAL_ROW(MPI_REAL, float),
    REAL_ROW(MPI_REAL4, float),
    REAL_ROW(MPI_DOUBLE, double),
    REAL_ROW(MPI_DOUBLE_PRECISION, double),
    REAL_ROW(MPI_REAL8, double),
    REAL_ROW(MPI_LONG_DOUBLE, extended),
    REAL_ROW(MPI_REAL16, quad),
    COMPLEX_ROW(MPI_COMPLEX4, complex16, half),
    COMPLEX_ROW(MPI_C_FLOAT_COMPLEX, complex32, float),
    COMPLEX_ROW(MPI_CXX_FLOAT_COMPLEX, complex32, float),
    COMPLEX_ROW(MPI_COMPLEX, complex32, float),
    COMPLEX_ROW(MPI_COMPLEX8, complex32, float),
    COMPLEX_ROW(MPI_C_DOUBLE_COMPLEX, complex64, double),
    COMPLEX_ROW(MPI_CXX_DOUBLE_COMPLEX, complex64, double),
    COMPLEX_ROW(MPI_DOUBLE_COMPLEX, complex64, double),
    COMPLEX_ROW(MPI_COMPLEX16, complex64, double),
    COMPLEX_ROW(MPI_C_LONG_DOUBLE_COMPLEX, complex_extended, extended),
    COMPLEX_ROW(MPI_CXX_LONG_DOUBLE_COMPLEX, complex_extended, extended),
    COMPLEX_ROW(MPI_COMPLEX32, complex128, quad),
    PAIR_ROW(MPI_FLOAT_INT, float_int),
    PAIR_ROW(MPI_DOUBLE_INT, double_int),
    PAIR_ROW(MPI_LONG_INT, long_int),
    PAIR_ROW(MPI_SHORT_INT, short_int),
    PAIR_ROW(MPI_LONG_DOUBLE_INT, extended_int),
    PAIR_ROW(MPI_2INT, int_int),
    PAIR_ROW(MPI_2INTEGER, int_int),
    PAIR_ROW(MPI_2REAL, float_float),
    PAIR_ROW(MPI_2DOUBLE_PRECISION, double_double),
    NONE_ROW(MPI_CHARACTER),
    NONE_ROW(MPI_WCHAR),
    NONE_ROW(MPI_PACKED),
};

/* ---- values ---- */

static uint64_t state;

static uint64_t next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Writes a random real number of `bytes` bytes. Half of the numbers are small, and the others are any bits. If
   `exact` is true, all numbers are integers, so small that the product of three complex numbers is the same in
   whatever way it is computed. */
static void real(void *at, size_t bytes, int exact, int is_quad)
{
    int small = exact ? (int)(next() % 11) - 5 : (int)(next() % 33) - 16;
    if (exact || next() % 2) {
        half h = small;
        float f = small;
        double d = exact ? small : small / 3.0 * (double)(next() % 1000);
        extended e = exact ? small : small / 7.0L;
        quad q = exact ? small : (quad)small / 7;
        memcpy(at, bytes == 2 ? (void *)&h : bytes == 4 ? (void *)&f : bytes == 8 ? (void *)&d : is_quad ? (void *)&q : (void *)&e, bytes);
        return;
    }
    uint64_t bits[2] = {next(), next()};
    memcpy(at, bits, bytes);
    if (bytes == 16 && !is_quad) {
        /* A long double has an explicit leading bit, which is set unless the exponent is 0. */
        extended e = ldexpl((extended)bits[0], (int)(bits[1] % 30000) - 15000);
        memset(at, 0, bytes), memcpy(at, &e, 10);
    }
    if (bytes == 16 && is_quad && bits[0] % 4 == 0) {
        /* Numbers of similar size, and numbers near the ends of the range. */
        static const uint64_t fields[] = {0, 1, 0x3ffe, 0x3fff, 0x4000, 0x406f, 0x4070, 0x4071, 0x7ffe, 0x7fff};
        uint64_t field = fields[bits[0] / 4 % 10], high = (bits[1] >> 16 & 0x80000000ffffu) % 0x1000000000000u;
        high |= field << 48 | (bits[0] >> 60 & 1) << 63;
        uint64_t low = bits[0] / 64 % 3 == 0 ? 0 : bits[1];
        memcpy(at, &low, 8), memcpy((char *)at + 8, &high, 8);
    }
}

static int is_quad_type(const struct type *type)
{
    return type->type == MPI_REAL16 || type->type == MPI_COMPLEX32 || type->apply == apply_quad;
}

static void fill(const struct type *type, enum op op, unsigned char *buffer)
{
    for (int i = 0; i < COUNT; i++) {
        unsigned char *at = buffer + i * type->bytes;
        uint64_t words[4] = {next(), next(), next(), next()};
        switch (type->fill) {
        case WHOLE:
            memcpy(at, words, type->bytes);
            /* Logical operations need zeros. */
            if (BIT(op) & LOGICAL && next() % 2) memset(at, 0, type->bytes);
            break;
        case TRUTH: memset(at, 0, type->bytes), at[0] = words[0] % 2; break;
        case REALS_OF: real(at, type->part, 0, is_quad_type(type)); break;
        case HALVES:
            for (int part = 0; part < 2; part++) real(at + part * type->part, type->part, 1, is_quad_type(type));
            break;
        case PAIRS: break;
        }
    }
}

#define FILL_PAIR(N)                                                           \
    if (type->apply == apply_##N) {                                            \
        N pair;                                                                \
        memset(&pair, 0x5a, sizeof pair);                                      \
        pair.value = (int)(next() % 5) + 1, pair.index = (int)(next() % 7);    \
        memcpy(at, &pair, sizeof pair);                                        \
        memset(at + sizeof pair.value, 0x5a, offsetof(N, index) - sizeof pair.value); \
        memset(at + offsetof(N, index) + sizeof pair.index, 0x5a,              \
               sizeof pair - offsetof(N, index) - sizeof pair.index);          \
        continue;                                                              \
    }

static void fill_pairs(const struct type *type, unsigned char *buffer)
{
    for (int i = 0; i < COUNT; i++) {
        unsigned char *at = buffer + i * type->bytes;
        FILL_PAIR(float_int)
        FILL_PAIR(double_int)
        FILL_PAIR(long_int)
        FILL_PAIR(short_int)
        FILL_PAIR(extended_int)
        FILL_PAIR(int_int)
        FILL_PAIR(float_float)
        FILL_PAIR(double_double)
        abort();
    }
}

static void values(const struct type *type, enum op op, uint64_t seed, unsigned char *buffer)
{
    state = seed * 1000 + op + 1;
    if (type->fill == PAIRS)
        fill_pairs(type, buffer);
    else
        fill(type, op, buffer);
}

/* Returns whether two elements are equal. Two NaNs are equal. A long double has 10 bytes of value. */
static int equal(const struct type *type, const unsigned char *a, const unsigned char *b)
{
    if (type->fill != REALS_OF && type->fill != HALVES) return memcmp(a, b, type->bytes) == 0;
    for (size_t at = 0; at < type->bytes; at += type->part) {
        size_t bytes = type->part == 16 && !is_quad_type(type) ? 10 : type->part;
        if (memcmp(a + at, b + at, bytes) == 0) continue;
        if (type->apply == apply_half) {
            half x, y;
            memcpy(&x, a + at, 2), memcpy(&y, b + at, 2);
            if (x != x && y != y) continue;
        } else if (type->apply == apply_float) {
            float x, y;
            memcpy(&x, a + at, 4), memcpy(&y, b + at, 4);
            if (x != x && y != y) continue;
        } else if (type->apply == apply_double) {
            double x, y;
            memcpy(&x, a + at, 8), memcpy(&y, b + at, 8);
            if (x != x && y != y) continue;
        } else if (type->apply == apply_extended) {
            extended x, y;
            memcpy(&x, a + at, 16), memcpy(&y, b + at, 16);
            if (x != x && y != y) continue;
        } else if (type->apply == apply_quad) {
            quad x, y;
            memcpy(&x, a + at, 16), memcpy(&y, b + at, 16);
            if (x != x && y != y) continue;
        }
        return 0;
    }
    return 1;
}

static void compare(const struct type *type, enum op op, const unsigned char *got,
                    const unsigned char *expected, const char *call)
{
    for (int i = 0; i < COUNT; i++) {
        const unsigned char *a = got + i * type->bytes, *b = expected + i * type->bytes;
        if (equal(type, a, b)) continue;
        fprintf(stderr, "%s: %s of %s, element %d of rank %d:", call, ops[op].name, type->name, i, rank);
        for (size_t byte = type->bytes; byte-- > 0;) fprintf(stderr, " %02x", a[byte]);
        fprintf(stderr, ", not");
        for (size_t byte = type->bytes; byte-- > 0;) fprintf(stderr, " %02x", b[byte]);
        fprintf(stderr, "\n");
        exit(1);
    }
}

/* The buffers begin one byte after an aligned address: the library must not rely on alignment. */
static _Alignas(32) unsigned char memory[4][BYTES + 64];

static void test(const struct type *type, enum op op, int offset)
{
    unsigned char *lower = memory[0] + offset, *upper = memory[1] + offset, *expected = memory[2],
                  *result = memory[3] + offset;
    if (!(type->defined & BIT(op))) {
        memset(lower, 0, BYTES), memset(upper, 0, BYTES);
        RAISES(MPI_ERR_OP, MPI_Reduce_local(lower, upper, 1, type->type, ops[op].op));
        RAISES(MPI_ERR_OP, MPI_Allreduce(lower, upper, 1, type->type, ops[op].op, MPI_COMM_WORLD));
        return;
    }
    values(type, op, 900, lower), values(type, op, 901, upper), values(type, op, 901, expected);
    for (int i = 0; i < COUNT; i++)
        type->apply(op, lower + i * type->bytes, expected + i * type->bytes);
    OK(MPI_Reduce_local(lower, upper, COUNT, type->type, ops[op].op));
    compare(type, op, upper, expected, "MPI_Reduce_local");

    /* The scan combines the values of the ranks from 0 to this one. With at most 3 ranks, this program knows in
       which order the library combines, so the results must be equal in every bit. */
    if (size > 3) return;
    values(type, op, 0, expected);
    for (int r = 1; r <= rank; r++) {
        values(type, op, r, upper);
        for (int i = 0; i < COUNT; i++)
            type->apply(op, expected + i * type->bytes, upper + i * type->bytes);
        memcpy(expected, upper, BYTES);
    }
    values(type, op, rank, lower);
    values(type, op, rank, result);
    OK(MPI_Scan_c(lower, result, COUNT, type->type, ops[op].op, MPI_COMM_WORLD));
    compare(type, op, result, expected, "MPI_Scan_c");
}

/* Fortran 90 kinds. */
static void kinds(int offset)
{
    MPI_Datatype type;
    OK(MPI_Type_create_f90_integer(15, &type));
    struct type f90[] = {
        {"integer(15)", type, INTEGER, apply_int64_t, 8, 8, WHOLE},
        {"real(15)", type, REAL, apply_double, 8, 8, REALS_OF},
        {"real(30)", type, REAL, apply_quad, 16, 16, REALS_OF},
        {"complex(6)", type, ARITHMETIC, apply_complex32, 8, 4, HALVES},
    };
    OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &f90[1].type));
    OK(MPI_Type_create_f90_real(30, MPI_UNDEFINED, &f90[2].type));
    OK(MPI_Type_create_f90_complex(6, 30, &f90[3].type));
    for (size_t i = 0; i < sizeof f90 / sizeof *f90; i++)
        for (enum op op = 0; op < OPS; op++) test(&f90[i], op, offset);
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int offset = 0; offset < 2; offset++) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            MPI_Aint lb, extent;
            OK(MPI_Type_get_extent(types[i].type, &lb, &extent));
            CHECK(types[i].defined == 0 || extent == (MPI_Aint)types[i].bytes);
            for (enum op op = 0; op < OPS; op++) test(&types[i], op, offset);
        }
        kinds(offset);
    }
    MPI_Datatype pair;
    int in[2] = {1, 2}, out[2] = {3, 4};
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    RAISES(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, pair, MPI_SUM));
    OK(MPI_Type_free(&pair));
    for (int i = 0; i < 3; i++) {
        MPI_Op op = (MPI_Op[]){MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL}[i];
        RAISES(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_INT, op));
        RAISES(MPI_ERR_OP, MPI_Scan(in, out, 1, MPI_INT, op, MPI_COMM_WORLD));
    }
    CHECK(out[0] == 3 && out[1] == 4);
    OK(MPI_Finalize());
    return 0;
}
