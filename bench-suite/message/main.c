/* Entry point of the program: measures rows on demand, or runs one of the modes of job.c.
 *
 * `bench serve SOCKET SHARED CPUS BYTES MEMORY...`: every rank connects to SOCKET and then carries out
 * the lines that it receives. SHARED is the path of the page that all ranks map, and CPUS a list such
 * as 0,1. For each rank there is one MEMORY, the path of its user memory of BYTES bytes. All ranks
 * get the same lines and answer each with one line; the answer of rank 0 has the figures.
 *
 *   line                                    action                  answer of rank 0
 *   row KIND WORDS...                       prepares the row        "ok PAYLOAD LINES SPENT CALLS"
 *   turn MILLISECONDS                       measures the row        "ns NS PACK SAMPLES BEFORE AFTER
 *                                                                    SPENT CALLS"
 *   turn WORDS...                           measures a row of       see file.c
 *                                           files
 *   end                                     frees the row's memory  "ok"
 *
 * KIND is pingpong, burst, halo, collective, window or file. PAYLOAD and LINES are the fields of struct row
 * (bench.h). NS is the time of the row, PACK the time of one MPI_Pack or of another way (0 if the row has none), and
 * SAMPLES the number of samples. BEFORE and AFTER are the results of probe() before and after the
 * measurement. SPENT and CALLS are the total time and the number of all exchanges or calls since the
 * last answer, with warm-up and verification. All times are in nanoseconds. If a rank has received
 * wrong data, it answers "error LINE". When the socket is closed, the job ends. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

/* BATCH_GROWTH is the greatest growth of a batch in one step. */
enum { MOST_SAMPLES = 20000, LEAST_SAMPLES = 5, BATCH_GROWTH = 8 };
/* A warm-up ends after this many bytes or after this number of nanoseconds, whichever comes first. By
 * then the caches are warm, and a library that compiles its packing code has done so. */
static const double SETTLED_BYTES = 48 << 20, SETTLED_NS = 150e6;
/* The intended duration of a sample of short messages, in nanoseconds. */
static const double SAMPLE_NS = 40e3;
/* If samples take longer than this in nanoseconds, fewer of them suffice. If ranks share CPUs, some libraries
 * need a second for one sample, and a run of all rows would take hours. */
static const double LONG_NS = 300e6;

static int rank, size, crowded;
static long batch;
/* The total time in nanoseconds and the number of all exchanges or calls since the last answer. */
static double spent_ns;
static long spent_calls;

/* Takes samples with `one` until rank 0 has spent `budget` nanoseconds, but at least `least`
 * samples, or as many as end within LONG_NS if that is less (at least one). Stores the number of
 * samples in `taken`. Returns the median of the samples; only the median of rank 0 is used. */
static double samples(struct row *row, double (*one)(struct row *, long), double budget,
                      long least, long *taken)
{
  static double list[MOST_SAMPLES];
  double start = now_ns();
  long count = 0;
  for (;;) {
    if (rank == 0) {
      double spent = now_ns() - start;
      int more = count == 0 || (count < least && spent < LONG_NS) || (spent < budget && count < MOST_SAMPLES);
      say(more ? batch : 0);
    }
    meet();
    long now = said();
    meet();
    if (now == 0)
      break;
    list[count] = one(row, now);
    if (one == row->sample) {
      spent_ns += list[count] * (double)now;
      spent_calls += now;
    }
    count++;
  }
  *taken = count;
  return median(list, count);
}

/* Makes one exchange and checks the data that this rank has received. Returns NULL, or a text that
 * describes the fault. */
static const char *verified(struct row *row)
{
  batch = 1;
  long taken;
  samples(row, row->sample, 0, 1, &taken);
  return row->verify(row);
}

/* Chooses the number of calls of a sample, beginning with the current batch. The batch grows in steps,
 * because a call in a large batch may take a thousand times as long as a call in a small one: ranks
 * that share CPUs wait for each other's lock only if their batches last long enough to overlap. Returns
 * the nanoseconds of a call in the last samples. */
static double choose_batch(struct row *row)
{
  double sample_ns = row->sample_ns > 0 ? row->sample_ns : SAMPLE_NS;
  for (;;) {
    long taken;
    double ns = samples(row, row->sample, 0, LEAST_SAMPLES, &taken);
    long wanted = (long)(sample_ns / (2 * ns)) + 1;
    int is_over = wanted <= BATCH_GROWTH * batch;
    batch = is_over ? wanted : BATCH_GROWTH * batch;
    /* Every rank computes a batch from its own times, but rank 0 decides. */
    if (rank == 0)
      say(is_over);
    meet();
    is_over = said() != 0;
    meet();
    if (is_over)
      return ns;
  }
}

static void settle(struct row *row)
{
  long taken;
  batch = 1;
  double ns = row->batched ? choose_batch(row) : samples(row, row->sample, 0, LEAST_SAMPLES, &taken);
  if (row->batched)
    ns *= 2 * (double)batch;
  double calls = SETTLED_BYTES / (double)(row->payload * batch);
  double budget = calls * ns < SETTLED_NS ? calls * ns : SETTLED_NS;
  samples(row, row->sample, budget, 2, &taken);
  if (row->batched)
    choose_batch(row);
}

static struct row *row_of(const char *kind, char *words)
{
  if (strcmp(kind, "collective") == 0)
    return collective_row(words, rank, size, crowded);
  if (strcmp(kind, "window") == 0)
    return window_row(words, rank, size, crowded);
  if (strcmp(kind, "file") == 0)
    return file_row(words, rank, size);
  if (size != 2)
    die("the rows are for 2 ranks, not %d", size);
  if (strcmp(kind, "burst") == 0)
    return burst_row(words, rank);
  return strcmp(kind, "halo") == 0 ? halo_row(words, rank) : pingpong_row(words, rank);
}

static void turn(struct row *row, double budget)
{
  long kept = batch, taken;
  const char *fault = verified(row);
  batch = kept;
  double before = probe();
  samples(row, row->sample, budget / 5, 2, &taken);
  double ns = samples(row, row->sample, budget, LEAST_SAMPLES, &taken);
  double after = probe(), packed = 0;
  if (row->other != NULL) {
    long others;
    if (row->is_way)
      samples(row, row->other, budget / 5, 2, &others);
    packed = samples(row, row->other, row->is_way ? budget : budget / 4, LEAST_SAMPLES, &others);
    if (row->is_way && fault == NULL)
      fault = row->verify(row);
  }
  /* Every rank verifies again, because the exchange needs all ranks, and only some may have found a fault. */
  const char *again = verified(row);
  if (fault == NULL)
    fault = again;
  batch = kept;
  if (fault != NULL)
    link_write("error %s", fault);
  else if (rank == 0)
    link_write("ns %.2f %.2f %ld %.1f %.1f %.0f %ld", ns, packed, taken, before, after, spent_ns,
               spent_calls);
  else
    link_write("ok");
  spent_ns = 0;
  spent_calls = 0;
}

static void serve(void)
{
  struct row *row = NULL;
  char *words;
  while ((words = link_read()) != NULL) {
    char *word = strsep(&words, " ");
    if (strcmp(word, "row") == 0 && row == NULL && words != NULL) {
      char *kind = strsep(&words, " ");
      if (words == NULL)
        die("a line that begins with \"row\" needs a kind and words");
      row = row_of(kind, words);
      spent_ns = 0;
      spent_calls = 0;
      if (row->turn == NULL)
        settle(row);
      link_write("ok %ld %ld %.0f %ld", row->payload, row->lines, spent_ns, spent_calls);
      spent_ns = 0;
      spent_calls = 0;
    } else if (strcmp(word, "turn") == 0 && row != NULL && words != NULL) {
      if (row->turn != NULL)
        row->turn(row, words);
      else
        turn(row, 1e6 * atof(words));
    } else if (strcmp(word, "end") == 0 && row != NULL) {
      row->free(row);
      row = NULL;
      link_write("ok");
    } else {
      die("unexpected line that begins with %s", word);
    }
  }
  if (row != NULL)
    row->free(row);
}

int main(int argc, char **argv)
{
  if (argc < 2)
    die("an argument is missing: serve, or a mode of job.c");
  if (strcmp(argv[1], "serve") != 0)
    return job_mode(argc, argv);
  if (argc < 7)
    die("arguments are missing; usage: serve SOCKET SHARED CPUS BYTES MEMORY...");
  int expected = argc - 6;
  for (const char *c = argv[2]; *c != 0; c++)
    salt = (salt ^ (uint64_t)(unsigned char)*c) * 0x100000001b3u;
  crowded = is_crowded(argv[4], expected);
  if (!crowded)
    bind_early(argv[4]);
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != expected)
    die("the rows are for %d ranks, not %d", expected, size);
  if (!crowded)
    bind_rank(argv[4], rank);
  shared_open(argv[3], argv[4], rank, size);
  memory_open(argv[6 + rank], atol(argv[5]));
  link_open(argv[2], rank, size);
  serve();
  MPI_Finalize();
  return 0;
}
