/* Rows of one message there and back; the time of a row is half of the round trip.
 *
 * Both ranks have a send buffer and a receive buffer of the layout. Before every send, the sender
 * writes its data anew. A sample of long messages is one exchange: both ranks write their data and
 * meet, and then the exchange is timed. A sample of short messages has several exchanges. Its time
 * includes the writing, which takes the same few nanoseconds with every library.
 *
 * Other rows do the same from Fortran (section.c): both ranks send and receive array sections; or only the send is a
 * call from Fortran, and the other way of the row is the same in C; or nobody sends, rank 0 packs, and the other way is an
 * array assignment. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 2048 };

struct pingpong {
  struct row row;
  int rank;
  struct message message;
  struct buffer out, in;
  void (*send)(struct pingpong *);
  void (*receive)(struct pingpong *);
  char *packed;
  uint64_t sent; /* number of messages that this rank has sent; the stamp of a message depends on it */
};

static uint64_t stamp(int rank, uint64_t number)
{
  return 2 * number + (uint64_t)rank;
}

static void send_one(struct pingpong *p)
{
  MPI_Send(p->out.base, p->message.count, p->message.type, 1 - p->rank, 0, MPI_COMM_WORLD);
}

static void receive_one(struct pingpong *p)
{
  MPI_Recv(p->in.base, p->message.count, p->message.type, 1 - p->rank, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

static void send_section(struct pingpong *p)
{
  (void)p;
  section_send();
}

static void receive_section(struct pingpong *p)
{
  (void)p;
  section_receive();
}

static void rewrite(struct pingpong *p)
{
  p->sent++;
  fill(&p->message.layout, p->out.base, stamp(p->rank, p->sent));
}

static double sample(struct row *row, long batch)
{
  struct pingpong *p = (struct pingpong *)row;
  int inside = row->batched;
  if (!inside)
    rewrite(p);
  meet();
  double start = now_ns();
  for (long i = 0; i < batch; i++) {
    if (p->rank == 0) {
      if (inside)
        rewrite(p);
      p->send(p);
      p->receive(p);
    } else {
      p->receive(p);
      if (inside)
        rewrite(p);
      p->send(p);
    }
  }
  return (now_ns() - start) / (2 * (double)batch);
}

static const char *verify(struct row *row)
{
  static char fault[80];
  struct pingpong *p = (struct pingpong *)row;
  long wrong = check(&p->message.layout, p->in.base, stamp(1 - p->rank, p->sent), 0);
  if (wrong < 0)
    return NULL;
  snprintf(fault, sizeof fault, "rank %d received a wrong byte at %ld", p->rank, wrong);
  return fault;
}

static double sample_in_c(struct row *row, long batch)
{
  struct pingpong *p = (struct pingpong *)row;
  p->send = send_one;
  double ns = sample(row, batch);
  p->send = send_section;
  return ns;
}

static double pack(struct row *row, long ignored)
{
  struct pingpong *p = (struct pingpong *)row;
  int position = 0;
  (void)ignored;
  rewrite(p);
  meet();
  /* The other CPU stays idle, as in the measurements of packing. */
  if (p->rank != 0)
    return 0;
  double start = now_ns();
  MPI_Pack(p->out.base, p->message.count, p->message.type, p->packed, (int)p->row.payload,
           &position, MPI_COMM_WORLD);
  return now_ns() - start;
}

/* Times `pack` of rank 0. The other CPU stays idle. */
static double sample_of(struct pingpong *p, void (*pack)(void), long batch)
{
  rewrite(p);
  meet();
  if (p->rank != 0)
    return 0;
  double start = now_ns();
  for (long i = 0; i < batch; i++)
    pack();
  return (now_ns() - start) / (double)batch;
}

static double sample_pack(struct row *row, long batch)
{
  return sample_of((struct pingpong *)row, section_pack, batch);
}

static double sample_assignment(struct row *row, long batch)
{
  return sample_of((struct pingpong *)row, section_assign, batch);
}

static const char *verify_packed(struct row *row)
{
  static char fault[80];
  struct pingpong *p = (struct pingpong *)row;
  long wrong = p->rank == 0 ? check_packed(&p->message.layout, p->out.base, p->packed) : -1;
  if (wrong < 0)
    return NULL;
  snprintf(fault, sizeof fault, "the packed byte at %ld is wrong", wrong);
  return fault;
}

/* Makes the row one of Fortran. Returns 0 if `extra` is no such row. */
static int in_fortran(struct pingpong *p, const char *extra)
{
  if (strcmp(extra, "sections") == 0) {
    p->receive = receive_section;
  } else if (strcmp(extra, "over-c") == 0) {
    p->row.other = sample_in_c;
  } else if (strcmp(extra, "assignment") == 0) {
    p->row.sample = sample_pack;
    p->row.other = sample_assignment;
    p->row.verify = verify_packed;
  } else {
    return 0;
  }
  p->send = send_section;
  p->row.is_way = p->row.other != NULL;
  section_of(&p->message.layout, p->out.base, p->in.base, p->packed, 1 - p->rank);
  return 1;
}

static void release(struct row *row)
{
  struct pingpong *p = (struct pingpong *)row;
  message_free(&p->message);
  buffer_free(&p->out);
  buffer_free(&p->in);
  free(p->packed);
  free(p);
}

/* Words: user|alloc plain|pack|sections|over-c|assignment LAYOUT... */
struct row *pingpong_row(char *words, int rank)
{
  struct pingpong *p = calloc(1, sizeof *p);
  if (p == NULL)
    die("no memory");
  char *memory = strsep(&words, " "), *extra = strsep(&words, " ");
  if (words == NULL)
    die("a pingpong row needs a kind of memory, a way and a layout");
  int from_mpi = strcmp(memory, "alloc") == 0;
  p->rank = rank;
  message_make(&p->message, words);
  /* Each buffer begins at a cache line, and each at a different position in its page. On some CPUs,
   * copies between buffers at equal positions in their pages are slower. */
  buffer_make(&p->out, p->message.layout.memory, from_mpi, 64);
  buffer_make(&p->in, p->message.layout.memory, from_mpi, 1088);
  p->row = (struct row){.sample = sample, .verify = verify, .free = release};
  p->row.payload = p->message.layout.payload;
  p->row.lines = 2 * p->message.layout.lines;
  p->row.batched = p->row.payload <= SHORT;
  p->send = send_one;
  p->receive = receive_one;
  if (strcmp(extra, "plain") == 0)
    return &p->row;
  p->packed = aligned_alloc(64, ((size_t)p->row.payload + 63) / 64 * 64);
  if (p->packed == NULL)
    die("no memory");
  memset(p->packed, 0, (size_t)p->row.payload);
  if (strcmp(extra, "pack") == 0)
    p->row.other = pack;
  else if (!in_fortran(p, extra))
    die("%s is no way of a message", extra);
  return &p->row;
}
