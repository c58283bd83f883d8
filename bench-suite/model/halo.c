/* Measures what `typepack-bench model` predicts from, and what the command's prediction is compared with.
 *
 *     mpiexec -n 1 ./halo EDGE WIDTH ELEMENT FIELDS     times of MPI_Pack and MPI_Unpack of the faces
 *     mpiexec -n N ./halo EDGE WIDTH ELEMENT FIELDS     also messages and whole halo exchanges
 *
 * A rank has FIELDS cubes of EDGE^3 elements of ELEMENT bytes, with WIDTH layers of halo around each cube. A face is
 * one datatype: WIDTH layers of all fields. x varies fastest. The ranks stand on a ring: a rank exchanges the low faces
 * of all three dimensions with its left neighbour and the high faces with its right one, so that with two ranks all six
 * faces cross the network. Every byte of every halo is checked in the first and in the last exchange.
 *
 * Before every sample the rank writes all its memory anew, outside of the timing, as an application's iteration does.
 * Times are lower deciles, in nanoseconds: other processes on the machine only make times longer. Rank 0 prints one
 * word and its number in each line.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FACES = 6, WARM = 24, LEAST = 9, MOST = 201 };
static const double BUDGET = 0.6e9; /* Nanoseconds for one kind of measurement. */
static const char *const NAMES[3] = {"x", "y", "z"};

static int rank, size, left, right, fields;
static int64_t edge, width, element, side;
static unsigned char *memory;
static size_t bytes, array;
static uint64_t key, step;
static MPI_Datatype out[FACES], in[FACES];
static unsigned char *packed[2 * FACES];
static int face;

static void stop(const char *what)
{
    fprintf(stderr, "halo: error: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}
#define OK(call) do { if ((call) != MPI_SUCCESS) stop(#call); } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double lower_decile(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 10];
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

/* Writes every word anew. All ranks have made as many steps, so `key` is the same on all. */
static void write_all(void)
{
    uint64_t *words = (uint64_t *)memory, change = mixed(++step) ^ key;
    key ^= change;
    for (size_t i = 0; i < bytes / 8; i++) words[i] ^= change;
}

/* The byte at `at` that rank `of` has written. */
static unsigned char expected(int of, size_t at)
{
    uint64_t word = mixed((uint64_t)of << 48 ^ (at / 8 + 1)) ^ key;
    return (unsigned char)(word >> 8 * (at % 8));
}

/* Makes the type of the layers that begin at `at` in dimension d (0 is x): a subarray of each field. */
static MPI_Datatype layers(MPI_Datatype basic, int d, int64_t at)
{
    MPI_Datatype one, all;
    int sizes[3], part[3], from[3];
    for (int i = 0; i < 3; i++) {
        int mine = 2 - i == d; /* The last dimension of a C array is x. */
        sizes[i] = (int)side;
        part[i] = (int)(mine ? width : edge);
        from[i] = (int)(mine ? at : width);
    }
    OK(MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_C, basic, &one));
    OK(MPI_Type_create_hvector(fields, 1, (MPI_Aint)array, one, &all));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_commit(&all));
    return all;
}

/* Compares the halo of one side with what the neighbour has written: its opposite inner layers. */
static void check_side(int d, int high, int from)
{
    int64_t at[3], begin[3], end[3];
    for (int i = 0; i < 3; i++) begin[i] = width, end[i] = width + edge;
    begin[d] = high ? width + edge : 0;
    end[d] = begin[d] + width;
    int64_t moved[3] = {0, 0, 0};
    moved[d] = high ? -edge : edge;
    for (int f = 0; f < fields; f++)
        for (at[2] = begin[2]; at[2] < end[2]; at[2]++)
            for (at[1] = begin[1]; at[1] < end[1]; at[1]++)
                for (at[0] = begin[0]; at[0] < end[0]; at[0]++) {
                    int64_t cell = (at[2] * side + at[1]) * side + at[0];
                    int64_t origin = cell + (moved[2] * side + moved[1]) * side + moved[0];
                    for (int64_t b = 0; b < element; b++) {
                        size_t here = (size_t)f * array + (size_t)(cell * element + b);
                        size_t there = (size_t)f * array + (size_t)(origin * element + b);
                        if (memory[here] != expected(from, there)) stop("a halo has a wrong byte");
                    }
                }
}

/* Face 2d goes to the left and face 2d + 1 to the right. What goes to the right arrives in the low halo. */
static double exchange(void)
{
    MPI_Request q[2 * FACES];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double start = now();
    for (int i = 0; i < FACES; i++)
        OK(MPI_Irecv(memory, 1, in[i], i % 2 ? right : left, i ^ 1, MPI_COMM_WORLD, &q[i]));
    for (int i = 0; i < FACES; i++)
        OK(MPI_Isend(memory, 1, out[i], i % 2 ? right : left, i, MPI_COMM_WORLD, &q[FACES + i]));
    OK(MPI_Waitall(2 * FACES, q, MPI_STATUSES_IGNORE));
    return now() - start;
}

/* The same messages from and into packed buffers. */
static double contiguous(void)
{
    MPI_Request q[2 * FACES];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double start = now();
    for (int i = 0; i < FACES; i++)
        OK(MPI_Irecv(packed[i], face, MPI_BYTE, i % 2 ? right : left, i ^ 1, MPI_COMM_WORLD, &q[i]));
    for (int i = 0; i < FACES; i++)
        OK(MPI_Isend(packed[FACES + i], face, MPI_BYTE, i % 2 ? right : left, i, MPI_COMM_WORLD, &q[FACES + i]));
    OK(MPI_Waitall(2 * FACES, q, MPI_STATUSES_IGNORE));
    return now() - start;
}

/* Half a round trip between ranks 0 and 1: of `count` bytes, or of the face whose number is `of`. */
static double round_trip(int count, int of)
{
    const void *from = of < 0 ? packed[0] : memory;
    void *to = of < 0 ? packed[1] : memory;
    MPI_Datatype sent = of < 0 ? MPI_BYTE : out[of], received = of < 0 ? MPI_BYTE : in[of];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double start = now();
    if (rank == 0) {
        OK(MPI_Send(from, count, sent, 1, 7, MPI_COMM_WORLD));
        OK(MPI_Recv(to, count, received, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        OK(MPI_Recv(to, count, received, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(from, count, sent, 0, 7, MPI_COMM_WORLD));
    }
    return (now() - start) / 2;
}
static double trip_small(void) { return round_trip(1, -1); }
static double trip_face(void) { return round_trip(face, -1); }
static double trip_x(void) { return round_trip(1, 0); }
static double trip_y(void) { return round_trip(1, 2); }
static double trip_z(void) { return round_trip(1, 4); }

/* The lower decile over samples of the greatest time of a rank. All ranks take as many samples. */
static double sampled(double (*measure)(void))
{
    double times[MOST], begin = 0;
    int count = 0, more = 1;
    for (int i = 0; more; i++) {
        write_all();
        if (i == WARM) begin = now();
        double mine = measure(), greatest = mine;
        OK(MPI_Allreduce(&mine, &greatest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
        if (i < WARM) continue;
        times[count++] = greatest;
        more = count < MOST && (count < LEAST || now() - begin < BUDGET);
        OK(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    return lower_decile(times, count);
}

/* Times MPI_Pack and MPI_Unpack of all faces, and prints the mean of the two faces of each dimension. */
static void pack_times(void)
{
    static double times[2][FACES][MOST];
    double begin = 0;
    int count = 0;
    for (int i = 0; i < WARM || count < LEAST || (count < MOST && now() - begin < BUDGET); i++) {
        write_all();
        if (i == WARM) begin = now();
        for (int way = 0; way < 2; way++)
            for (int f = 0; f < FACES; f++) {
                int at = 0;
                double start = now();
                if (way == 0)
                    OK(MPI_Pack(memory, 1, out[f], packed[f], face, &at, MPI_COMM_SELF));
                else
                    OK(MPI_Unpack(packed[f], face, &at, memory, 1, in[f ^ 1], MPI_COMM_SELF));
                double time = now() - start;
                if (at != face) stop("a packed face has a wrong size");
                if (i >= WARM) times[way][f][count] = time;
            }
        /* A rank that is its own neighbour on both sides. */
        if (i == 0)
            for (int f = 0; f < FACES; f++) check_side(f / 2, f % 2, rank);
        if (i >= WARM) count++;
    }
    for (int d = 0; d < 3; d++) {
        double of[2];
        for (int way = 0; way < 2; way++)
            of[way] = (lower_decile(times[way][2 * d], count) + lower_decile(times[way][2 * d + 1], count)) / 2;
        if (rank == 0) printf("pack-%s %.1f\nunpack-%s %.1f\n", NAMES[d], of[0], NAMES[d], of[1]);
    }
}

static int64_t number(const char *text, const char *what)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (*end || value < 1 || value > 4096) stop(what);
    return value;
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (argc != 5) stop("the arguments are EDGE WIDTH ELEMENT FIELDS");
    edge = number(argv[1], "EDGE must be between 1 and 4096");
    width = number(argv[2], "WIDTH must be between 1 and 4096");
    element = number(argv[3], "ELEMENT must be between 1 and 4096");
    fields = (int)number(argv[4], "FIELDS must be between 1 and 4096");
    if (width > edge) stop("WIDTH must not be greater than EDGE");
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    side = edge + 2 * width;
    double total = (double)side * (double)side * (double)side * (double)element * (double)fields;
    double one = (double)width * (double)edge * (double)edge * (double)element * (double)fields;
    if (total > 16e9 || one > 1e9) stop("the fields are too large");
    array = (size_t)(side * side * side * element);
    bytes = (array * (size_t)fields + 7) / 8 * 8;
    face = (int)one;
    memory = malloc(bytes);
    if (!memory) stop("no memory");
    for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)memory)[i] = mixed((uint64_t)rank << 48 ^ (i + 1));
    for (int i = 0; i < 2 * FACES; i++) {
        packed[i] = malloc((size_t)face);
        if (!packed[i]) stop("no memory");
        memset(packed[i], i, (size_t)face);
    }
    MPI_Datatype basic;
    switch (element) {
    case 1: basic = MPI_INT8_T; break;
    case 2: basic = MPI_INT16_T; break;
    case 4: basic = MPI_FLOAT; break;
    case 8: basic = MPI_DOUBLE; break;
    default: OK(MPI_Type_contiguous((int)element, MPI_BYTE, &basic));
    }
    for (int d = 0; d < 3; d++) {
        out[2 * d] = layers(basic, d, width);
        out[2 * d + 1] = layers(basic, d, edge);
        in[2 * d] = layers(basic, d, 0);
        in[2 * d + 1] = layers(basic, d, edge + width);
    }
    if (rank == 0) {
        printf("edge %lld\nwidth %lld\n", (long long)edge, (long long)width);
        printf("element %lld\nfields %d\n", (long long)element, fields);
    }
    pack_times();
    if (size > 1) {
        /* The fields are made anew: MPI_Unpack has filled halos, and the ranks made different numbers of steps. */
        key = step = 0;
        for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)memory)[i] = mixed((uint64_t)rank << 48 ^ (i + 1));
        double small = sampled(trip_small), message = sampled(trip_face), plain = sampled(contiguous);
        double (*const trips[3])(void) = {trip_x, trip_y, trip_z};
        for (int d = 0; d < 3; d++) {
            double time = sampled(trips[d]);
            if (rank == 0) printf("message-%s %.1f\n", NAMES[d], time);
        }
        write_all();
        exchange();
        for (int f = 0; f < FACES; f++) check_side(f / 2, f % 2, f % 2 ? right : left);
        double whole = sampled(exchange);
        for (int f = 0; f < FACES; f++) check_side(f / 2, f % 2, f % 2 ? right : left);
        if (rank == 0)
            printf("latency %.1f\nmessage %.1f\ncontiguous %.1f\nexchange %.1f\n", small, message, plain, whole);
    }
    OK(MPI_Finalize());
    return 0;
}
