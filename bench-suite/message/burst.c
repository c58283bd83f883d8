/* Rows of many messages in a row: one rank starts all sends, the other rank starts as many receives,
 * and both wait for all of them. Then the ranks swap their roles. The time of a row is the time of both
 * bursts divided by the number of messages in both, so its inverse is a rate of messages.
 *
 * Before a sample, which is one exchange, both ranks write their data anew and meet. Every message
 * has memory of its own, so that `verify` detects messages that have changed places. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

struct burst {
  struct row row;
  int rank, messages;
  int bytes; /* of each message */
  struct layout all; /* the memory of all messages of one rank */
  struct buffer out, in;
  MPI_Request requests[MOST];
  uint64_t exchanged;
};

static uint64_t stamp(const struct burst *b, int rank)
{
  return 2 * b->exchanged + (uint64_t)rank;
}

static char *part(struct burst *b, const struct buffer *buffer, int message)
{
  return buffer->base + (long)message * b->bytes;
}

static void send_all(struct burst *b)
{
  for (int i = 0; i < b->messages; i++)
    MPI_Isend(part(b, &b->out, i), b->bytes, MPI_BYTE, 1 - b->rank, 0, MPI_COMM_WORLD,
              &b->requests[i]);
  MPI_Waitall(b->messages, b->requests, MPI_STATUSES_IGNORE);
}

static void receive_all(struct burst *b)
{
  for (int i = 0; i < b->messages; i++)
    MPI_Irecv(part(b, &b->in, i), b->bytes, MPI_BYTE, 1 - b->rank, 0, MPI_COMM_WORLD,
              &b->requests[i]);
  MPI_Waitall(b->messages, b->requests, MPI_STATUSES_IGNORE);
}

static double sample(struct row *row, long ignored)
{
  struct burst *b = (struct burst *)row;
  (void)ignored;
  b->exchanged++;
  fill(&b->all, b->out.base, stamp(b, b->rank));
  meet();
  double start = now_ns();
  if (b->rank == 0) {
    send_all(b);
    receive_all(b);
  } else {
    receive_all(b);
    send_all(b);
  }
  return (now_ns() - start) / (2 * (double)b->messages);
}

static const char *verify(struct row *row)
{
  static char fault[80];
  struct burst *b = (struct burst *)row;
  long wrong = check(&b->all, b->in.base, stamp(b, 1 - b->rank), 0);
  if (wrong < 0)
    return NULL;
  snprintf(fault, sizeof fault, "rank %d received a wrong byte at %ld of message %ld", b->rank,
           wrong % b->bytes, wrong / b->bytes);
  return fault;
}

static void release(struct row *row)
{
  struct burst *b = (struct burst *)row;
  buffer_free(&b->out);
  buffer_free(&b->in);
  free(b);
}

/* Words: user|alloc MESSAGES BYTES */
struct row *burst_row(char *words, int rank)
{
  struct burst *b = calloc(1, sizeof *b);
  if (b == NULL)
    die("no memory");
  char *memory = strsep(&words, " "), *messages = strsep(&words, " ");
  if (words == NULL)
    die("a burst needs a kind of memory, a number of messages and a number of bytes");
  long bytes = atol(words);
  b->messages = atoi(messages);
  if (b->messages < 1 || b->messages > MOST || bytes < 1 || bytes > 1 << 20)
    die("a burst has 1 to %d messages of 1 to %d bytes, not %s of %s", MOST, 1 << 20, messages,
        words);
  b->rank = rank;
  b->bytes = (int)bytes;
  for (int i = 0; i < 3; i++)
    b->all.times[i] = 1;
  add_piece(&b->all, 0, b->messages * bytes);
  layout_measure(&b->all);
  int from_mpi = strcmp(memory, "alloc") == 0;
  buffer_make(&b->out, b->all.memory, from_mpi, 64);
  buffer_make(&b->in, b->all.memory, from_mpi, 1088);
  b->row = (struct row){.sample = sample, .verify = verify, .free = release};
  b->row.payload = bytes;
  b->row.lines = 2 * b->all.lines;
  return &b->row;
}
