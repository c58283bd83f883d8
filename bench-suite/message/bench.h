/* The program that `typepack-bench messages` and `collectives` compile with each library's mpicc and
 * run as ranks.
 *
 * One job per library lives through the whole run. Between turns its ranks sleep in read(), outside
 * of MPI, so that the waiting jobs cost nothing; a turn's beginning, its probe and its end go
 * through a page that all ranks map, so that nothing but the measured calls depends on the MPI.
 *
 *   main.c      which mode; from command lines to rows
 *   link.c      the lines between a rank and typepack-bench (../src/message/session.rs)
 *   shared.c    the page: spinning barrier, cache-line probe; binding, clock
 *   layout.c    layouts: where their bytes are, how to fill and check them, their datatypes
 *   pingpong.c  rows: a message there and back
 *   halo.c      rows: six faces exchanged
 *   collective.c  rows: a collective call of all ranks
 *   job.c       modes of their own: how long a job takes to start, wait, end
 */
#ifndef TYPEPACK_BENCH_H
#define TYPEPACK_BENCH_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* ---- link.c ---- */

/* Connects to the socket and says which rank this is. */
void link_open(const char *path, int rank, int size);
/* The next line without its end; NULL at the end of the run. */
char *link_read(void);
void link_write(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A fault of this program or of the system: a line to stderr, then the end of the job. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- shared.c ---- */

/* Before MPI_Init, so that the library knows its place too: binds this process to the CPU that the
 * comma-separated list has for this rank, according to the launcher's variables. */
void bind_early(const char *cpus);
/* The same with the rank in MPI_COMM_WORLD; ends the job if that is impossible. */
void bind_rank(const char *cpus, int rank);
/* Are there more ranks than CPUs in the list? Then they are not bound, and sleep where they meet. */
int is_crowded(const char *cpus, int size);
void shared_open(const char *path, const char *cpus, int rank, int size);
/* All ranks meet. */
void meet(void);
/* From the first rank's begin to the last one's end, nanoseconds; all call, and then meet before
 * they call it again. */
double together(double begin, double end);
/* What rank 0 says before a meeting, for everybody to read after it. */
void say(long word);
long said(void);
/* One way of a cache line between the first two ranks, in nanoseconds; all call. */
double probe(void);
double now_ns(void);
/* Sorts. */
double median(double *values, long count);

/* ---- layout.c ---- */

enum { MOST_PIECES = 8 };

/* Three loops around a few pieces of memory, or a list of pieces. In bytes. */
struct layout {
  long start;
  long times[3], stride[3]; /* outermost first */
  int pieces;
  long offset[MOST_PIECES], length[MOST_PIECES];
  long listed; /* with a list, the loops are not used */
  long *list_offset, *list_length;
  long payload; /* bytes of data */
  long lines;   /* cache lines that they touch */
  long memory;  /* bytes from the buffer's start to the end of the last element */
};

/* A layout of the messages, with the arguments for MPI. */
struct message {
  struct layout layout;
  MPI_Datatype type;
  int count;
};

/* Reads words such as "blocks 8 64 100"; changes `words`. Faults end the job. */
void message_make(struct message *message, char *words);
void message_free(struct message *message);
void add_piece(struct layout *layout, long offset, long length);
/* Counts payload, lines and memory of a layout whose pieces are there. */
void layout_measure(struct layout *layout);
/* Writes values that follow from stamp and position to every byte of the layout. */
void fill(const struct layout *layout, char *base, uint64_t stamp);
/* The position of the first byte that is not what `fill` has written `shift` bytes further on where
 * the data came from, or -1. */
long check(const struct layout *layout, const char *base, uint64_t stamp, long shift);

/* Buffers of the user's, on pages that the jobs of all libraries share (they take turns), because
 * which pages a buffer got made up to 1.8x between two equal runs; or of MPI_Alloc_mem. */
struct buffer {
  char *base;
  int from_mpi;
};
/* Maps the user's memory of this rank. */
void memory_open(const char *path, long bytes);
/* `shift`: from the begin of a page, for the user's. All are freed before any is made again. */
void buffer_make(struct buffer *buffer, long bytes, int from_mpi, long shift);
void buffer_free(struct buffer *buffer);
/* Differs from job to job: what another has left in the shared pages is never right. */
extern uint64_t salt;

/* ---- rows ---- */

struct row {
  /* One exchange, or a batch of them: prepares outside of the timing, returns nanoseconds (what
   * rank 1 returns is not used). `batch` is what rank 0 has said. */
  double (*sample)(struct row *row, long batch);
  /* Checks what the last sample has received; returns NULL or what is wrong. */
  const char *(*verify)(struct row *row);
  double (*pack)(struct row *row); /* one MPI_Pack of the message; or NULL */
  void (*free)(struct row *row);
  long payload;
  long lines; /* cache lines of user memory that one rank sends and receives */
  int batched; /* short enough that several exchanges make a sample */
  double sample_ns; /* how long such a sample should be; 0 for the usual */
};

struct row *pingpong_row(char *words, int rank);
struct row *halo_row(char *words, int rank);
struct row *collective_row(char *words, int rank, int size, int crowded);

int job_mode(int argc, char **argv);

#endif
