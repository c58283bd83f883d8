/* Rows of one blocking collective call. The time of a row is the time from the moment when the first
 * rank begins to the moment when the last rank ends, divided by the number of calls in the sample.
 *
 * The root changes from call to call. With a constant root, the root of a broadcast could run ahead
 * of the other ranks. The data are doubles with small whole values, so that sums are exact in every
 * order. BYTES is the size of one block: the data that each rank contributes, or for alltoall the
 * data that each rank sends to each rank. Before each long call, the ranks write their data anew,
 * outside of the timing. A sample of short calls has several calls that send the same data. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, GATHER, ALLGATHER, ALLTOALL, OPERATIONS };
static const char *const names[OPERATIONS] = {"barrier", "bcast",     "reduce",   "allreduce",
                                              "scan",    "gather",    "allgather", "alltoall"};

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
  int rank, size;
  int count; /* number of doubles of a block */
  struct buffer out, in;
  uint64_t written; /* how many times the rank has written its data; also the stamp of the data */
  long calls;
};

static double value_of(int rank, uint64_t stamp, long at)
{
  return (double)(((uint64_t)rank * 37 + stamp * 101 + (salt & 0xff) + (uint64_t)at) % 1021);
}

/* `sends` returns the number of blocks that a rank sends from `out`, and `receives` the number of blocks
 * that a rank receives into `in`. If the number differs between the ranks, both functions return the
 * number of the rank that has the most blocks. */
static int sends(const struct collective *c)
{
  return c->operation == BARRIER ? 0 : c->operation == ALLTOALL ? c->size : 1;
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
    return c->size;
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
  int n = c->count, root = root_of(c, c->calls++);
  void *out = c->out.base, *in = c->in.base;
  switch (c->operation) {
  case BARRIER:
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  case BCAST:
    MPI_Bcast(out, n, MPI_DOUBLE, root, MPI_COMM_WORLD);
    return;
  case REDUCE:
    MPI_Reduce(out, in, n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    return;
  case ALLREDUCE:
    MPI_Allreduce(out, in, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return;
  case SCAN:
    MPI_Scan(out, in, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return;
  case GATHER:
    MPI_Gather(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, root, MPI_COMM_WORLD);
    return;
  case ALLGATHER:
    MPI_Allgather(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, MPI_COMM_WORLD);
    return;
  case ALLTOALL:
    MPI_Alltoall(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, MPI_COMM_WORLD);
    return;
  case OPERATIONS:
    break;
  }
}

static void rewrite(struct collective *c)
{
  double *out = (double *)c->out.base, *in = (double *)c->in.base;
  long count = (long)sends(c) * c->count;
  c->written++;
  for (long at = 0; at < count; at++)
    out[at] = value_of(c->rank, c->written, at);
  /* Overwrites the first value of each block that an earlier call has received, so that `verify`
   * detects a call that writes no result. */
  for (int block = 0; block < receives(c); block++)
    if (c->count > 0)
      in[(long)block * c->count] = -1;
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
    return value_of(from, c->written, (long)c->rank * c->count + at);
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
  const double *data = (const double *)(c->operation == BCAST ? c->out.base : c->in.base);
  int blocks = c->operation == BCAST ? 1 : receives(c);
  for (int from = 0; from < blocks; from++)
    for (long at = 0; at < c->count; at++)
      if (data[(long)from * c->count + at] != expected(c, from, at)) {
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
  free(c);
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
  while (c->operation < OPERATIONS && strcmp(names[c->operation], name) != 0)
    c->operation++;
  long bytes = atol(words);
  if (c->operation == OPERATIONS || bytes < 0 || bytes % (long)sizeof(double) != 0)
    die("collective %s of %s bytes: the operation is unknown, or the number of bytes is not a multiple "
        "of 8",
        name, words);
  c->rank = rank;
  c->size = size;
  c->count = (int)(bytes / (long)sizeof(double));
  int from_mpi = strcmp(memory, "alloc") == 0;
  /* Each buffer has at least one cache line, so that calls without data have buffers too. */
  buffer_make(&c->out, sends(c) * bytes + 64, from_mpi, 64);
  buffer_make(&c->in, receives(c) * bytes + 64, from_mpi, 1088);
  c->row = (struct row){.sample = sample, .verify = verify, .free = release};
  c->row.payload = bytes > 0 ? bytes : 1;
  c->row.lines = (sends(c) + receives(c)) * (bytes + 63) / 64;
  c->row.batched = bytes <= (crowded ? CROWDED_SHORT : SHORT);
  c->row.sample_ns = crowded ? CROWDED_NS : SAMPLE_NS;
  return &c->row;
}
