/* Measures the exchanges of `typepack demo` as a C program that uses only MPI's datatypes, so that they run on any MPI
 * library. `scripts/demo` compiles the program for MPICH and runs it there. The cases, the contents of the cells, and the
 * table are those of `exchange.rs`, `cells.rs`, `verify.rs` and `record.rs`; the test `the_demo_compares_three_ways`
 * compares the tables.
 *
 *   mpiexec -n 2 ./datatypes BAR FILE      writes the table to FILE; BAR is the first word of its lines
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWNED = 64, PADDED = OWNED + 2, CELLS = PADDED * PADDED * PADDED, FACE = OWNED * OWNED };

struct gapped {
  char kind;
  int level;
  double value;
};

struct test {
  const char *name, *what;
  int axis;
  int has_gaps;
  int bytes; /* of one cell, without gaps */
};

static const struct test tests[] = {
    {"doubles", "exchange: x faces, 64^3 doubles", 2, 0, 8},
    {"structs", "exchange: x faces, 64^3 {char, int, double}", 2, 1, 13},
    {"rows", "exchange: z faces, 64^3 {char, int, double}", 0, 1, 13},
};

static int rank, other;

/* Sets the cell with this number. If the cell has a gap, all bits of the gap are 1. */
static void make(const struct test *test, long number, void *cell) {
  if (!test->has_gaps) {
    double value = (double)number + 0.25;
    memcpy(cell, &value, sizeof value);
    return;
  }
  struct gapped *gapped = cell;
  memset(gapped, 255, sizeof *gapped);
  gapped->kind = (char)number;
  gapped->level = (int)number;
  gapped->value = (double)number + 0.5;
}

/* Sets a blank cell, the content of each halo cell before the exchange. */
static void blank(const struct test *test, void *cell) {
  if (!test->has_gaps) {
    double value = -1;
    memcpy(cell, &value, sizeof value);
    return;
  }
  struct gapped *gapped = cell;
  memset(gapped, 1, sizeof *gapped);
  gapped->kind = 77;
  gapped->level = -1;
  gapped->value = -1;
}

static size_t size_of(const struct test *test) {
  return test->has_gaps ? sizeof(struct gapped) : sizeof(double);
}

static long number(int owner, const int at[3]) {
  return (((long)owner * OWNED + at[0]) * OWNED + at[1]) * OWNED + at[2];
}

/* Sets `cell` to what the cell at this position holds: before the exchange, or after it. */
static void wanted(const struct test *test, int position, int is_after, void *cell) {
  int at[3] = {position / PADDED / PADDED - 1, position / PADDED % PADDED - 1, position % PADDED - 1};
  int outside = 0, elsewhere = 0;
  for (int d = 0; d < 3; d++) {
    int is_outside = at[d] < 0 || at[d] >= OWNED;
    outside += is_outside;
    elsewhere += is_outside && d != test->axis;
  }
  if (outside == 0) {
    make(test, number(rank, at), cell);
    return;
  }
  blank(test, cell);
  if (!is_after || elsewhere) return;
  at[test->axis] = (at[test->axis] + OWNED) % OWNED;
  if (!test->has_gaps) {
    make(test, number(other, at), cell);
    return;
  }
  struct gapped sent, *into = cell;
  make(test, number(other, at), &sent);
  into->kind = sent.kind;
  into->level = sent.level;
  into->value = sent.value;
}

static void fill(const struct test *test, char *cells) {
  for (int position = 0; position < CELLS; position++) wanted(test, position, 0, cells + position * size_of(test));
}

/* Ends the job if a byte of the field is wrong after an exchange. */
static void verify(const struct test *test, const char *cells) {
  int wrong = 0;
  for (int position = 0; position < CELLS; position++) {
    char cell[sizeof(struct gapped)];
    wanted(test, position, 1, cell);
    wrong += memcmp(cell, cells + position * size_of(test), size_of(test)) != 0;
  }
  if (wrong != 0) {
    fprintf(stderr, "datatypes: %s: the number of wrong cells after the exchange is %d\n", test->what, wrong);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static MPI_Datatype face(const struct test *test, MPI_Datatype element, int at) {
  int sizes[3] = {PADDED, PADDED, PADDED}, subsizes[3] = {OWNED, OWNED, OWNED}, starts[3] = {1, 1, 1};
  subsizes[test->axis] = 1;
  starts[test->axis] = at;
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, element, &type);
  MPI_Type_commit(&type);
  return type;
}

static MPI_Datatype element(const struct test *test) {
  MPI_Datatype type, members[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
  if (!test->has_gaps) {
    MPI_Type_dup(MPI_DOUBLE, &type);
    return type;
  }
  int lengths[3] = {1, 1, 1};
  MPI_Aint places[3] = {offsetof(struct gapped, kind), offsetof(struct gapped, level), offsetof(struct gapped, value)};
  MPI_Type_create_struct(3, lengths, places, members, &type);
  return type;
}

static void exchange(MPI_Request requests[4]) {
  MPI_Startall(4, requests);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* Returns the least seconds of a message of 8 bytes there and back, and stores those of a copy of 4 MiB. */
static double probe(double *copy) {
  enum { MESSAGES = 200, COPIES = 4, BYTES = 4 << 20 };
  static char from[BYTES], to[BYTES];
  double word = 0, least[2] = {1e9, 1e9};
  for (int i = 0; i < MESSAGES; i++) {
    double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(&word, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&word, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
    double end = MPI_Wtime();
    if (end - begin < least[0]) least[0] = end - begin;
  }
  for (int i = 0; i < COPIES; i++) {
    double begin = MPI_Wtime();
    memset(from, i, 1);
    memcpy(to, from, BYTES);
    *(volatile char *)to;
    double end = MPI_Wtime();
    if (end - begin < least[1]) least[1] = end - begin;
  }
  MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  *copy = least[1];
  return least[0];
}

static int alike(double a, double b) { return a <= 1.25 * b && b <= 1.25 * a; }

/* Returns the least seconds of an exchange. */
static double least(MPI_Request requests[4]) {
  enum { WARM_UP = 5, SAMPLES = 501 };
  const double budget = 0.2;
  double least = 1e9, spent = 0;
  for (int i = 0; i < WARM_UP + 11 || (i < WARM_UP + SAMPLES && spent < budget); i++) {
    double begin = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    double middle = MPI_Wtime();
    exchange(requests);
    double end = MPI_Wtime();
    double slowest[2] = {end - middle, end - begin};
    MPI_Allreduce(MPI_IN_PLACE, slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    spent += slowest[1];
    if (i >= WARM_UP && slowest[0] < least) least = slowest[0];
  }
  return least;
}

static void measure(const struct test *test, const char *bar, FILE *table) {
  char *cells;
  MPI_Alloc_mem((MPI_Aint)(CELLS * size_of(test)), MPI_INFO_NULL, &cells);
  fill(test, cells);
  MPI_Datatype cell = element(test), first = face(test, cell, 1), last = face(test, cell, OWNED),
               before = face(test, cell, 0), after = face(test, cell, OWNED + 1);
  MPI_Request requests[4];
  MPI_Recv_init(cells, 1, before, other, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(cells, 1, after, other, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(cells, 1, last, other, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Send_init(cells, 1, first, other, 2, MPI_COMM_WORLD, &requests[3]);
  double copy_before, copy_after, message_before = probe(&copy_before), message_after = 0, time = 0;
  for (int tries = 0; tries < 3; tries++) {
    time = least(requests);
    message_after = probe(&copy_after);
    if (alike(message_before, message_after) && alike(copy_before, copy_after)) break;
    message_before = message_after;
    copy_before = copy_after;
  }
  fill(test, cells);
  MPI_Barrier(MPI_COMM_WORLD);
  exchange(requests);
  verify(test, cells);
  /* Each rank sends two faces. */
  if (rank == 0)
    fprintf(table, "%s,%s,\"%s\",%d,%.3f,%.1f\n", bar, test->name, test->what, FACE * test->bytes * 4, time * 1e6,
            message_after * 1e9);
  for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
  MPI_Datatype *types[5] = {&cell, &first, &last, &before, &after};
  for (int i = 0; i < 5; i++) MPI_Type_free(types[i]);
  MPI_Free_mem(cells);
}

int main(int argc, char **argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || size != 2) {
    fprintf(stderr, "usage: mpiexec -n 2 %s BAR FILE\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  other = 1 - rank;
  FILE *table = NULL;
  if (rank == 0 && !(table = fopen(argv[2], "w"))) {
    perror(argv[2]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) fprintf(table, "bar,case,what,bytes,us,probe_ns\n");
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) measure(&tests[i], argv[1], table);
  if (rank == 0 && fclose(table) != 0) {
    perror(argv[2]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
