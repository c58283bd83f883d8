/* The program that `typepack-bench pingpong`, `collectives`, `one-sided`, `io` and `regret` compile with a
 * library's mpicc and run as ranks.
 *
 * The job of each library exists for the whole run. Between turns its ranks sleep in read(),
 * outside of MPI, so that waiting jobs use no CPU time. The ranks synchronise through a page that
 * they all map, and not with calls of MPI, so that only the measured calls depend on the library.
 *
 *   main.c        chooses the mode; turns lines of commands into rows
 *   link.c        sends lines between a rank and typepack-bench (../src/message/session.rs)
 *   shared.c      the shared page: spinning barrier, cache-line probe; binding, clock
 *   layout.c      layouts: where their bytes are, how to fill and check them, their datatypes
 *   pingpong.c    rows of a message there and back
 *   burst.c       rows of many messages in a row
 *   section.c     what rows of array sections do in Fortran (section.f90)
 *   halo.c        rows of an exchange of six faces, by messages or through a window
 *   collective.c  rows of a collective call of all ranks
 *   window.c      rows of one-sided communication
 *   file.c        rows of accesses to one file
 *   job.c         other modes: how long a job takes to start, wait and end
 *   spawn.c       modes about processes that start processes
 */
#ifndef TYPEPACK_BENCH_H
#define TYPEPACK_BENCH_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* ---- link.c ---- */

/* Connects to the socket at `path`. Sends a line with the number of this rank, the number of
 * ranks, the process id and the version of the MPI library. */
void link_open(const char *path, int rank, int size);
/* Returns the next line without its line break; NULL at the end of the run. */
char *link_read(void);
void link_write(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports a fault of this program or of the system: prints a line to stderr and ends the job. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- shared.c ---- */

/* Binds this process to its CPU: the entry of the comma-separated list at the position of this
 * rank. Reads the number of the rank from variables that the launchers set, and does nothing if
 * none of them is set. Called before MPI_Init, so that the library sees the binding too. */
void bind_early(const char *cpus);
/* Binds this process to its CPU like bind_early, but uses its rank in MPI_COMM_WORLD. Ends the job
 * if the system refuses the binding. */
void bind_rank(const char *cpus, int rank);
/* Returns 1 if there are more ranks than CPUs in the list, and 0 otherwise. If there are more, the
 * ranks are not bound, and they sleep while they wait in meet(). */
int is_crowded(const char *cpus, int size);
void shared_open(const char *path, const char *cpus, int rank, int size);
/* Waits until all ranks have called this function. */
void meet(void);
/* All ranks pass the times at which they began and ended. Returns the nanoseconds from the moment
 * when the first rank began to the moment when the last rank ended. Between two calls of this
 * function, all ranks must call meet(). */
double together(double begin, double end);
/* Pass a number from rank 0 to all ranks: rank 0 calls say() before meet(), and all ranks call
 * said() after meet(). */
void say(long word);
long said(void);
/* Returns the nanoseconds that a cache line takes from the CPU of rank 0 to the CPU of rank 1 or
 * back. All ranks call this function; ranks above 1 get 0. */
double probe(void);
double now_ns(void);
/* Sorts the values and returns their median. */
double median(double *values, long count);

/* ---- layout.c ---- */

enum { MOST_PIECES = 8 };

/* The positions of the bytes of a layout: three loops around a few pieces of memory, or a list of
 * pieces. Offsets, lengths and strides are in bytes. */
struct layout {
  long start;
  long times[3], stride[3]; /* outermost first */
  int pieces;
  long offset[MOST_PIECES], length[MOST_PIECES];
  long listed; /* number of pieces in the list; 0 if the layout has loops instead */
  long *list_offset, *list_length;
  long payload; /* bytes of data */
  long lines;   /* cache lines that these bytes touch */
  long memory;  /* bytes from the start of the buffer to the end of the last piece */
};

/* The layout of a message, with the datatype and the count to pass to MPI. */
struct message {
  struct layout layout;
  MPI_Datatype type;
  int count;
};

/* Makes the layout and the datatype that words such as "blocks 8 64 100" describe. Overwrites the
 * spaces in `words`. Ends the job if the words are wrong. */
void message_make(struct message *message, char *words);
void message_free(struct message *message);
void add_piece(struct layout *layout, long offset, long length);
/* Computes the fields payload, lines and memory of a layout whose pieces are already set. */
void layout_measure(struct layout *layout);
/* Writes to every byte of the layout a value that depends on the stamp and the position. */
void fill(const struct layout *layout, char *base, uint64_t stamp);
/* Copies every byte of the layout: the byte at a position of `to` comes from the position `shift` bytes
 * further on of `from`. */
void copy_bytes(const struct layout *layout, char *to, const char *from, long shift);
/* Returns the position of the first wrong byte, or -1 if no byte is wrong. A byte is right if
 * `fill`, with the same stamp, writes this byte `shift` bytes further on. */
long check(const struct layout *layout, const char *base, uint64_t stamp, long shift);

/* Returns the position of the first byte of the layout that is wrong in `packed`, where all its bytes follow each
 * other in order, or -1 if no byte is wrong. */
long check_packed(const struct layout *layout, const char *base, const char *packed);

/* A buffer: either from MPI_Alloc_mem, or user memory on pages that the jobs of all libraries use
 * in turn. The jobs share these pages because two equal runs on different pages differed by a
 * factor of up to 1.8. */
struct buffer {
  char *base;
  int from_mpi;
};
/* Maps the file at `path`, which holds the user memory of this rank. */
void memory_open(const char *path, long bytes);
/* Makes a buffer. In user memory, the buffer begins `shift` bytes after the beginning of a page.
 * After one buffer in user memory has been freed, all others must be freed before a new one is
 * made. */
void buffer_make(struct buffer *buffer, long bytes, int from_mpi, long shift);
void buffer_free(struct buffer *buffer);
/* A number that differs from job to job. `fill` and `check` use it, so that `check` rejects data
 * that another job has left in the shared pages. */
extern uint64_t salt;

/* ---- section.c ---- */

/* Makes a layout of doubles in two buffers the section of the next calls; `packed` has its data one after the other. */
void section_of(const struct layout *layout, char *out, char *in, char *packed, int partner);
/* Returns 1 if nonblocking calls may take sections, and 0 otherwise. */
int section_supported(void);
/* Send and receive the section, pack it with MPI_Pack, and pack it with an array assignment. */
void section_send(void);
void section_receive(void);
void section_pack(void);
void section_assign(void);
/* Sets the cube of a halo and the partners of its faces. Then exchange the faces: as sections, and packed by loops. */
void section_cube(void *base, int edge, const int partners[6]);
void section_halo(void);
void section_halo_by_hand(void);

/* ---- rows ---- */

struct row {
  /* Takes one sample of `batch` exchanges or calls, a number that rank 0 has chosen. Returns the
   * time of the row in nanoseconds: of one exchange or call, of half a round trip, or of one message
   * of a burst. Only the result of rank 0 is used. */
  double (*sample)(struct row *row, long batch);
  /* Checks the data that the last sample has received. Returns NULL, or a text that describes the
   * first fault. */
  const char *(*verify)(struct row *row);
  /* Takes one sample of something else of the message: of one MPI_Pack, or of the whole row done in another way. NULL
   * if the row has none. */
  double (*other)(struct row *row, long batch);
  int is_way; /* 1 if `other` is another way of the row: then `verify` checks its data, too */
  /* Carries out a whole turn: reads the words of the line and answers it. NULL if a turn of the row
   * consists of samples. If this function is not NULL, the three functions above are NULL. */
  void (*turn)(struct row *row, char *words);
  void (*free)(struct row *row);
  /* bytes of one message, of all faces of one rank, of one block of a collective, or of an access of all ranks */
  long payload;
  long lines; /* number of cache lines that one rank sends from and receives into */
  int batched; /* 1 if a sample has several exchanges, because one is too short to time */
  double sample_ns; /* the intended duration of a batched sample; 0 for the usual duration */
};

struct row *pingpong_row(char *words, int rank);
struct row *burst_row(char *words, int rank);
struct row *halo_row(char *words, int rank);
struct row *collective_row(char *words, int rank, int size, int crowded);
struct row *window_row(char *words, int rank, int size, int crowded);
/* Makes a window of `bytes` bytes at each rank, with byte displacements: of memory that the window
 * allocates, or of user memory (buffer_make). The memory's bytes are 0. */
void window_make(struct buffer *memory, MPI_Win *win, long bytes, int from_mpi, long shift);
struct row *file_row(char *words, int rank, int size);

int job_mode(int argc, char **argv);

/* The time of a partitioned message in microseconds, or its ratio to that of one message (partition.c). */
double partitions(int rank, int by_ratio);

/* The time of a mode of spawn.c, or -1 at a rank that has none. */
double spawn_mode(int argc, char **argv, int rank);

#endif
