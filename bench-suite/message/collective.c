/* Rows of one blocking collective call. The time of a row is the time from the moment when the first
 * rank begins to the moment when the last rank ends, divided by the number of calls in the sample.
 *
 * The root changes from call to call. With a constant root, the root of a broadcast could run ahead
 * of the other ranks. The data are doubles with small whole values, so that sums are exact in every
 * order. BYTES is the size of one block: the data that each rank contributes, or for alltoall the
 * data that each rank sends to each rank. The name of an operation may have a shape behind it: "blocks"
 * are doubles, one in each 64 bytes of memory; "structs" are structures {char, int, double}, of whose 16
 * bytes 13 are data (BYTES then counts 16 for each); with "user", a reduction calls a function of this
 * program. In "neighbor", each rank sends a block to each other rank by MPI_Neighbor_alltoallw.
 *
 * Before each long call, the ranks write their data anew, outside of the timing. A sample of short calls
 * has several calls that send the same data. */
#include "bench.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation {
  BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, GATHER, ALLGATHER, ALLTOALL, ALLTOALLW, NEIGHBOR, OPERATIONS
};
static const char *const names[OPERATIONS] = {"barrier", "bcast",     "reduce",   "allreduce", "scan",
                                              "gather",  "allgather", "alltoall", "alltoallw", "neighbor"};

enum shape { CONTIGUOUS, BLOCKS, STRUCTS, USER, SHAPES };
static const char *const shapes[SHAPES] = {"", "blocks", "structs", "user"};

struct element {
  char letter;
  int whole;
  double value;
};

/* If a block has at most SHORT bytes, a sample has several calls. CROWDED_SHORT takes the place of SHORT
 * in jobs with more ranks than CPUs. In such jobs the first rank begins long before the last one, so
 * the time of a single call would consist mostly of this delay. */
enum { SHORT = 16384, CROWDED_SHORT = 262144 };
/* The intended durations of a sample of several calls, in nanoseconds. CROWDED_NS is for jobs with more
 * ranks than CPUs. In such jobs a call waits for the time slices of other ranks, and the meeting
 * before a sample waits until all ranks have woken up. */
static const double SAMPLE_NS = 160e3, CROWDED_NS = 6e6;

struct collective {
  struct row row;
  enum operation operation;
  enum shape shape;
  int rank, size;
  int count; /* number of doubles of a block */
  int step;  /* number of bytes of memory for each */
  struct buffer out, in;
  int items; /* number of elements of `type` in a block */
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm; /* of NEIGHBOR: all other ranks are neighbours */
  /* Of ALLTOALLW and NEIGHBOR, one entry for each rank or neighbour. */
  int *counts, *offsets;
  MPI_Aint *addresses;
  MPI_Datatype *types;
  uint64_t written; /* how many times the rank has written its data; also the stamp of the data */
  long calls;
};

static double value_of(int rank, uint64_t stamp, long at)
{
  return (double)(((uint64_t)rank * 37 + stamp * 101 + (salt & 0xff) + (uint64_t)at) % 1021);
}

static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
  (void)type;
  const double *lower = in;
  double *upper = inout;
  for (int i = 0; i < *count; i++)
    upper[i] += lower[i];
}

/* The place of value `at` of a buffer, and its value. */
static double *place(const struct collective *c, const struct buffer *buffer, long at)
{
  size_t offset = c->shape == STRUCTS ? offsetof(struct element, value) : 0;
  return (double *)(buffer->base + (size_t)at * (size_t)c->step + offset);
}

static void put(struct collective *c, struct buffer *buffer, long at, double value)
{
  *place(c, buffer, at) = value;
  if (c->shape == STRUCTS) {
    struct element *element = (struct element *)(buffer->base + (size_t)at * sizeof(struct element));
    element->letter = (char)((int)value % 100);
    element->whole = (int)value;
  }
}

static int is_right(const struct collective *c, const struct buffer *buffer, long at, double value)
{
  const struct element *element = (const struct element *)(buffer->base + (size_t)at * sizeof *element);
  return *place(c, buffer, at) == value
      && (c->shape != STRUCTS
          || (element->whole == (int)value && element->letter == (char)((int)value % 100)));
}

/* `sends` returns the number of blocks that a rank sends from `out`, and `receives` the number of blocks
 * that a rank receives into `in`. If the number differs between the ranks, both functions return the
 * number of the rank that has the most blocks. */
static int sends(const struct collective *c)
{
  switch (c->operation) {
  case BARRIER:
    return 0;
  case ALLTOALL:
  case ALLTOALLW:
    return c->size;
  case NEIGHBOR:
    return c->size - 1;
  default:
    return 1;
  }
}

static int receives(const struct collective *c)
{
  switch (c->operation) {
  case BARRIER:
  case BCAST:
    return 0;
  case GATHER:
  case ALLGATHER:
  case ALLTOALL:
  case ALLTOALLW:
    return c->size;
  case NEIGHBOR:
    return c->size - 1;
  default:
    return 1;
  }
}

static int root_of(const struct collective *c, long call)
{
  return (int)(call % c->size);
}

static void call(struct collective *c)
{
  int n = c->items, root = root_of(c, c->calls++);
  void *out = c->out.base, *in = c->in.base;
  switch (c->operation) {
  case BARRIER:
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  case BCAST:
    MPI_Bcast(out, n, c->type, root, MPI_COMM_WORLD);
    return;
  case REDUCE:
    MPI_Reduce(out, in, n, c->type, c->op, root, MPI_COMM_WORLD);
    return;
  case ALLREDUCE:
    MPI_Allreduce(out, in, n, c->type, c->op, MPI_COMM_WORLD);
    return;
  case SCAN:
    MPI_Scan(out, in, n, c->type, c->op, MPI_COMM_WORLD);
    return;
  case GATHER:
    MPI_Gather(out, n, c->type, in, n, c->type, root, MPI_COMM_WORLD);
    return;
  case ALLGATHER:
    MPI_Allgather(out, n, c->type, in, n, c->type, MPI_COMM_WORLD);
    return;
  case ALLTOALL:
    MPI_Alltoall(out, n, c->type, in, n, c->type, MPI_COMM_WORLD);
    return;
  case ALLTOALLW:
    MPI_Alltoallw(out, c->counts, c->offsets, c->types, in, c->counts, c->offsets, c->types,
                  MPI_COMM_WORLD);
    return;
  case NEIGHBOR:
    MPI_Neighbor_alltoallw(out, c->counts, c->addresses, c->types, in, c->counts, c->addresses, c->types,
                           c->comm);
    return;
  case OPERATIONS:
    break;
  }
}

static void rewrite(struct collective *c)
{
  long count = (long)sends(c) * c->count;
  c->written++;
  for (long at = 0; at < count; at++)
    put(c, &c->out, at, value_of(c->rank, c->written, at));
  /* Overwrites the first value of each block that an earlier call has received, so that `verify`
   * detects a call that writes no result. */
  for (int block = 0; block < receives(c); block++)
    if (c->count > 0)
      put(c, &c->in, (long)block * c->count, -1);
}

static double sample(struct row *row, long batch)
{
  struct collective *c = (struct collective *)row;
  if (!row->batched || batch == 1)
    rewrite(c);
  meet();
  double begin = now_ns();
  for (long i = 0; i < batch; i++)
    call(c);
  return together(begin, now_ns()) / (double)batch;
}

static double sum_of(uint64_t stamp, long at, int ranks)
{
  double sum = 0;
  for (int rank = 0; rank < ranks; rank++)
    sum += value_of(rank, stamp, at);
  return sum;
}

/* Returns the value that this rank must have received at position `at` of the block from rank
 * `from`. */
static double expected(const struct collective *c, int from, long at)
{
  switch (c->operation) {
  case BCAST:
    return value_of(root_of(c, c->calls - 1), c->written, at);
  case REDUCE:
  case ALLREDUCE:
    return sum_of(c->written, at, c->size);
  case SCAN:
    return sum_of(c->written, at, c->rank + 1);
  case ALLTOALL:
  case ALLTOALLW:
    return value_of(from, c->written, (long)c->rank * c->count + at);
  case NEIGHBOR: {
    /* The neighbours of a rank are all other ranks, in their order. */
    int other = from < c->rank ? from : from + 1, mine = c->rank < other ? c->rank : c->rank - 1;
    return value_of(other, c->written, (long)mine * c->count + at);
  }
  default:
    return value_of(from, c->written, at);
  }
}

static const char *verify(struct row *row)
{
  static char fault[80];
  struct collective *c = (struct collective *)row;
  int rooted = c->operation == REDUCE || c->operation == GATHER;
  if (rooted && c->rank != root_of(c, c->calls - 1))
    return NULL;
  const struct buffer *data = c->operation == BCAST ? &c->out : &c->in;
  int blocks = c->operation == BCAST ? 1 : receives(c);
  for (int from = 0; from < blocks; from++)
    for (long at = 0; at < c->count; at++)
      if (!is_right(c, data, (long)from * c->count + at, expected(c, from, at))) {
        snprintf(fault, sizeof fault, "rank %d has a wrong value at %ld of block %d", c->rank, at,
                 from);
        return fault;
      }
  return NULL;
}

static void release(struct row *row)
{
  struct collective *c = (struct collective *)row;
  buffer_free(&c->out);
  buffer_free(&c->in);
  if (c->type != MPI_DOUBLE)
    MPI_Type_free(&c->type);
  if (c->op != MPI_SUM)
    MPI_Op_free(&c->op);
  if (c->comm != MPI_COMM_NULL)
    MPI_Comm_free(&c->comm);
  free(c->counts);
  free(c->offsets);
  free(c->addresses);
  free(c->types);
  free(c);
}

/* Makes the datatype and the lists of a row, whose block has `bytes` bytes of memory. */
static void make(struct collective *c, long bytes)
{
  c->op = MPI_SUM;
  c->comm = MPI_COMM_NULL;
  c->type = MPI_DOUBLE;
  c->items = c->count;
  if (c->shape == USER)
    MPI_Op_create(sum, 1, &c->op);
  if (c->shape == BLOCKS) {
    MPI_Datatype blocks;
    MPI_Type_vector(c->count, 1, c->step / (int)sizeof(double), MPI_DOUBLE, &blocks);
    MPI_Type_create_resized(blocks, 0, bytes, &c->type);
    MPI_Type_free(&blocks);
    c->items = 1;
  }
  if (c->shape == STRUCTS) {
    int lengths[3] = {1, 1, 1};
    MPI_Aint displs[3] = {0, offsetof(struct element, whole), offsetof(struct element, value)};
    MPI_Datatype members[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(3, lengths, displs, members, &c->type);
  }
  if (c->type != MPI_DOUBLE)
    MPI_Type_commit(&c->type);
  if (c->operation != ALLTOALLW && c->operation != NEIGHBOR)
    return;
  size_t size = (size_t)c->size;
  c->counts = calloc(size, sizeof *c->counts);
  c->offsets = calloc(size, sizeof *c->offsets);
  c->addresses = calloc(size, sizeof *c->addresses);
  c->types = calloc(size, sizeof *c->types);
  int *others = calloc(size, sizeof *others), found = 0;
  if (!c->counts || !c->offsets || !c->addresses || !c->types || !others)
    die("no memory");
  for (int i = 0; i < c->size; i++) {
    c->counts[i] = c->items;
    c->offsets[i] = (int)(i * bytes);
    c->addresses[i] = i * bytes;
    c->types[i] = c->type;
    if (i != c->rank)
      others[found++] = i;
  }
  if (c->operation == NEIGHBOR)
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, found, others, MPI_UNWEIGHTED, found, others,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c->comm);
  free(others);
}

/* Sets the operation and the shape whose names together are `name`. Returns 0 if there are none. */
static int find(struct collective *c, const char *name)
{
  for (int operation = 0; operation < OPERATIONS; operation++) {
    size_t length = strlen(names[operation]);
    for (int shape = 0; shape < SHAPES; shape++)
      if (strncmp(name, names[operation], length) == 0 && strcmp(name + length, shapes[shape]) == 0) {
        c->operation = (enum operation)operation;
        c->shape = (enum shape)shape;
        int reduces = operation == REDUCE || operation == ALLREDUCE || operation == SCAN;
        return reduces ? shape == CONTIGUOUS || shape == USER : shape != USER;
      }
  }
  return 0;
}

/* Words: user|alloc OPERATION BYTES */
struct row *collective_row(char *words, int rank, int size, int crowded)
{
  struct collective *c = calloc(1, sizeof *c);
  if (c == NULL)
    die("no memory");
  char *memory = strsep(&words, " "), *name = strsep(&words, " ");
  if (words == NULL)
    die("a collective needs a kind of memory, an operation and a number of bytes");
  long bytes = atol(words);
  if (!find(c, name) || bytes < 0 || bytes % (long)sizeof(double) != 0)
    die("collective %s of %s bytes: the operation is unknown, or the number of bytes is not a multiple "
        "of 8",
        name, words);
  c->rank = rank;
  c->size = size;
  c->step = c->shape == BLOCKS ? 64 : c->shape == STRUCTS ? (int)sizeof(struct element) : (int)sizeof(double);
  c->count = (int)(bytes / (c->shape == STRUCTS ? c->step : (long)sizeof(double)));
  long memory_bytes = (long)c->count * c->step;
  make(c, memory_bytes);
  int from_mpi = strcmp(memory, "alloc") == 0;
  /* Each buffer has at least one cache line, so that calls without data have buffers too. */
  buffer_make(&c->out, sends(c) * memory_bytes + 64, from_mpi, 64);
  buffer_make(&c->in, receives(c) * memory_bytes + 64, from_mpi, 1088);
  c->row = (struct row){.sample = sample, .verify = verify, .free = release};
  c->row.payload = bytes > 0 ? bytes : 1;
  c->row.lines = (sends(c) + receives(c)) * (memory_bytes + 63) / 64;
  c->row.batched = bytes <= (crowded ? CROWDED_SHORT : SHORT);
  c->row.sample_ns = crowded ? CROWDED_NS : SAMPLE_NS;
  return &c->row;
}
