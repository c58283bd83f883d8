/* The program that `typepack-bench messages` and `collectives` compile with each library's mpicc and
 * run as ranks.
 *
 * The job of each library exists for the whole run. Between turns its ranks sleep in read(), outside
 * of MPI, so that waiting jobs cost nothing. The ranks start a turn, probe a cache line and end the
 * turn through a page that all ranks map, so that only the measured calls depend on the MPI.
 *
 *   main.c        chooses the mode; turns lines of commands into rows
 *   link.c        sends lines between a rank and typepack-bench (../src/message/session.rs)
 *   shared.c      the shared page: spinning barrier, cache-line probe; binding, clock
 *   layout.c      layouts: where their bytes are, how to fill and check them, their datatypes
 *   pingpong.c    rows of a message there and back
 *   halo.c        rows of an exchange of six faces
 *   collective.c  rows of a collective call of all ranks
 *   job.c         other modes: how long a job takes to start, wait and end
 */
#ifndef TYPEPACK_BENCH_H
#define TYPEPACK_BENCH_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* ---- link.c ---- */

/* Connects to the socket and sends the number of this rank. */
void link_open(const char *path, int rank, int size);
/* Returns the next line without its line break; NULL at the end of the run. */
char *link_read(void);
void link_write(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports a fault of this program or of the system: prints a line to stderr and ends the job. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- shared.c ---- */

/* Binds this process to the CPU that the comma-separated list has for this rank, which it finds by the
 * launcher's variables. Called before MPI_Init, so that the library sees the binding too. */
void bind_early(const char *cpus);
/* Binds this process by its rank in MPI_COMM_WORLD; ends the job if that is impossible. */
void bind_rank(const char *cpus, int rank);
/* Are there more ranks than CPUs in the list? If so, ranks are not bound, and they sleep in meetings. */
int is_crowded(const char *cpus, int size);
void shared_open(const char *path, const char *cpus, int rank, int size);
/* Waits until all ranks have called this function. */
void meet(void);
/* Returns the nanoseconds from the moment when the first rank begins to the moment when the last rank
 * ends. All ranks call this function, and meet before they call it again. */
double together(double begin, double end);
/* Rank 0 writes this word before a meeting, and all ranks read it after the meeting. */
void say(long word);
long said(void);
/* Returns the nanoseconds that a cache line takes one way between the first two ranks. All ranks call it. */
double probe(void);
double now_ns(void);
/* Sorts the values. */
double median(double *values, long count);

/* ---- layout.c ---- */

enum { MOST_PIECES = 8 };

/* Three loops around a few pieces of memory, or a list of pieces. All numbers are in bytes. */
struct layout {
  long start;
  long times[3], stride[3]; /* outermost first */
  int pieces;
  long offset[MOST_PIECES], length[MOST_PIECES];
  long listed; /* with a list, the loops are not used */
  long *list_offset, *list_length;
  long payload; /* bytes of data */
  long lines;   /* cache lines that these bytes touch */
  long memory;  /* bytes from the buffer's start to the end of the last element */
};

/* A layout of the messages, with the arguments for MPI. */
struct message {
  struct layout layout;
  MPI_Datatype type;
  int count;
};

/* Reads words such as "blocks 8 64 100" and changes `words`. A fault ends the job. */
void message_make(struct message *message, char *words);
void message_free(struct message *message);
void add_piece(struct layout *layout, long offset, long length);
/* Counts payload, lines and memory of a layout that already has its pieces. */
void layout_measure(struct layout *layout);
/* Writes to every byte of the layout a value that depends on the stamp and the position. */
void fill(const struct layout *layout, char *base, uint64_t stamp);
/* Returns the position of the first wrong byte, or -1. The right byte is the byte that `fill` has
 * written `shift` bytes further on in the source. */
long check(const struct layout *layout, const char *base, uint64_t stamp, long shift);

/* Allocates buffers: with MPI_Alloc_mem, or on pages that the jobs of all libraries use in turn. The jobs
 * share these pages because two equal runs on different pages differed by a factor of up to 1.8. */
struct buffer {
  char *base;
  int from_mpi;
};
/* Maps the user's memory of this rank. */
void memory_open(const char *path, long bytes);
/* For user memory, `shift` is the distance of the buffer from the beginning of a page. All buffers
 * are freed before a new one is made. */
void buffer_make(struct buffer *buffer, long bytes, int from_mpi, long shift);
void buffer_free(struct buffer *buffer);
/* A number that differs from job to job, so that data that another job has left in the shared pages is
 * always wrong. */
extern uint64_t salt;

/* ---- rows ---- */

struct row {
  /* One exchange, or a batch of them: prepares outside of the timing, and returns nanoseconds
   * (the result of rank 1 is not used). `batch` is the value that rank 0 has chosen. */
  double (*sample)(struct row *row, long batch);
  /* Checks the data that the last sample has received; returns NULL or a text with the fault. */
  const char *(*verify)(struct row *row);
  double (*pack)(struct row *row); /* one MPI_Pack of the message; or NULL */
  void (*free)(struct row *row);
  long payload;
  long lines; /* cache lines of user memory that one rank sends and receives */
  int batched; /* short enough that several exchanges make a sample */
  double sample_ns; /* the intended duration of such a sample; 0 for the usual duration */
};

struct row *pingpong_row(char *words, int rank);
struct row *halo_row(char *words, int rank);
struct row *collective_row(char *words, int rank, int size, int crowded);

int job_mode(int argc, char **argv);

#endif
