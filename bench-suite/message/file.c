/* Rows of accesses to one file that all ranks share. `typepack-bench io` sends them
 * (../src/files/).
 *
 * A row is one pattern, one direction, and one way to call (collectively, or each rank alone). A turn
 * opens the file, makes one access, and then repeats the access until its time is over. The times of
 * the first access and of the fastest access are figures of their own, because libraries keep things
 * from access to access. The clock runs from the moment when the first rank begins an access to the
 * moment when the last rank ends the access. Opening, closing and set_view are not timed, except in
 * the pattern `billion`.
 *
 * Besides the library ("mpi"), three baselines can take a turn in the same processes:
 *   kept     a loop that copies between the memory and a mapping of the file. The mapping stays from
 *            access to access.
 *   mapped   the same loop; each access maps the file and unmaps it again
 *   calls    one pwrite or pread for each piece. If there are more than MOST_CALLS pieces, only the
 *            first MOST_CALLS are moved, and the measured time is scaled up to all pieces.
 *
 * Before the first turn of a METHOD, `turn METHOD verify` makes one access that is not timed, on a file with its first
 * values, and checks the answer.
 *
 * Before the writes of a turn, each rank fills its memory with new values. After the first access and
 * after the last one, it compares its pieces of the file with these values, and checks that the gaps
 * inside its elements have not changed. Before the reads of a turn, each rank clears its memory, and
 * compares it with the file's values afterwards. Every value depends on its position in the file. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_CALLS = 1 << 16, MOST_ACCESSES = 200, LEAST_LATER = 2 };
/* Number of bytes that each process may allocate in the first access of the pattern `billion`. With
 * this limit, a library that turns the view into a list fails instead of taking all memory of the
 * machine. */
static const long MOST_GROWTH = 1l << 30;
/* The key of the values that a file has before a row begins (see byte_at). */
static const uint64_t BEFORE = 0x5bd1e995u;

/* What one rank accesses: three loops around one or two pieces. Each piece of the file has a piece of
 * the memory with the same length; both follow in the same order. */
struct pieces {
  long times[3], in_file[3], in_memory[3]; /* outermost first; strides in bytes */
  long file_start, memory_start;
  int pieces;
  long offset[2], length[2];
};

struct file_row {
  struct row row;
  int rank, size;
  int write, collective, cold;
  int view_timed;         /* 1 if the access includes set_view */
  char path[200];
  struct pieces pieces;
  long known[2];          /* the range of the file that is filled with values before the row */
  long span;              /* size of the file */
  MPI_Offset displacement;
  MPI_Datatype etype, filetype, memtype;
  int is_byte;            /* 1 if the file keeps its default view, which is a sequence of bytes */
  long calls, count;      /* each access makes this many calls of this many elements */
  MPI_Offset at, step;    /* offset of the first call, and distance of two calls, in etypes */
  struct buffer buffer;
  long memory;            /* bytes of the buffer */
  uint64_t written;       /* how many times the rank has filled its memory */
  MPI_File file;
  int descriptor;
  char *mapping;
  char fault[200];
};

/* Runs BODY with `in_file`, `in_memory` and `length` of every piece, in order. */
#define EACH(p, BODY)                                                                              \
  for (long i = 0; i < (p)->times[0]; i++)                                                         \
    for (long j = 0; j < (p)->times[1]; j++) {                                                     \
      long f_ = (p)->file_start + i * (p)->in_file[0] + j * (p)->in_file[1];                       \
      long m_ = (p)->memory_start + i * (p)->in_memory[0] + j * (p)->in_memory[1];                 \
      for (long k = 0; k < (p)->times[2];                                                          \
           k++, f_ += (p)->in_file[2], m_ += (p)->in_memory[2])                                    \
        for (int piece = 0; piece < (p)->pieces; piece++) {                                        \
          const long in_file = f_ + (p)->offset[piece], in_memory = m_ + (p)->offset[piece];       \
          const long length = (p)->length[piece];                                                  \
          BODY                                                                                     \
        }                                                                                          \
    }

static void set_fault(struct file_row *r, const char *what, int code)
{
  if (code == MPI_SUCCESS || r->fault[0] != 0)
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  text[strcspn(text, "\n")] = 0;
  snprintf(r->fault, sizeof r->fault, "%s: %.150s", what, text);
}

static void set_system_fault(struct file_row *r, const char *what)
{
  if (r->fault[0] == 0)
    snprintf(r->fault, sizeof r->fault, "%s: %s", what, strerror(errno));
}

/* ---- values ---- */

static inline unsigned char byte_at(uint64_t key, long position)
{
  return (unsigned char)(((uint64_t)position * 0x9e3779b97f4a7c15u + key) >> 56);
}

static uint64_t key_of(const struct file_row *r)
{
  return r->write ? (r->written + 1) * 0xd1342543de82ef95u + salt : BEFORE;
}

static void fill_memory(struct file_row *r)
{
  r->written++;
  uint64_t key = key_of(r);
  char *base = r->buffer.base;
  EACH(&r->pieces, {
    for (long b = 0; b < length; b++)
      base[in_memory + b] = (char)byte_at(key, in_file + b);
  })
}

/* Returns the position in the file of the first wrong byte, or -1 if no byte is wrong. `base` has the
 * bytes of the file if `is_file` is 1, and otherwise those of the memory. */
static long wrong_byte(const struct file_row *r, const char *base, int is_file)
{
  uint64_t key = key_of(r);
  EACH(&r->pieces, {
    const char *own = base + (is_file ? in_file : in_memory);
    for (long b = 0; b < length; b++)
      if ((unsigned char)own[b] != byte_at(key, in_file + b))
        return in_file + b;
    if (is_file && piece > 0) {
      long end = r->pieces.offset[piece - 1] + r->pieces.length[piece - 1];
      for (long b = end - r->pieces.offset[piece]; b < 0; b++)
        if ((unsigned char)own[b] != byte_at(BEFORE, in_file + b))
          return in_file + b;
    }
  })
  return -1;
}

static void verify_file(struct file_row *r)
{
  long wrong;
  if (r->write) {
    int file = open(r->path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) != 0 || facts.st_size < r->span) {
      if (r->fault[0] == 0)
        snprintf(r->fault, sizeof r->fault, "rank %d: the file is too short", r->rank);
      if (file >= 0)
        close(file);
      return;
    }
    char *base = mmap(NULL, (size_t)r->span, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (base == MAP_FAILED) {
      set_system_fault(r, "mmap");
      return;
    }
    wrong = wrong_byte(r, base, 1);
    munmap(base, (size_t)r->span);
  } else {
    wrong = wrong_byte(r, r->buffer.base, 0);
  }
  if (wrong >= 0 && r->fault[0] == 0)
    snprintf(r->fault, sizeof r->fault, "rank %d: the byte for file position %ld is wrong", r->rank,
             wrong);
}

/* ---- the baselines ---- */

#define MOVE(N)                                                                                    \
  for (long k = 0; k < p->times[2]; k++, f += p->in_file[2], m += p->in_memory[2]) {               \
    if (write)                                                                                     \
      memcpy(f, m, (size_t)(N));                                                                   \
    else                                                                                           \
      memcpy(m, f, (size_t)(N));                                                                   \
  }

/* Copies all pieces. Pieces of the usual lengths have loops with a constant length, as a user would
 * write them. */
static void move_all(const struct pieces *p, char *file, char *memory, int write)
{
  for (long i = 0; i < p->times[0]; i++)
    for (long j = 0; j < p->times[1]; j++) {
      char *f = file + p->file_start + i * p->in_file[0] + j * p->in_file[1];
      char *m = memory + p->memory_start + i * p->in_memory[0] + j * p->in_memory[1];
      if (p->pieces == 2) {
        for (long k = 0; k < p->times[2]; k++, f += p->in_file[2], m += p->in_memory[2]) {
          char *to = write ? f : m;
          const char *from = write ? m : f;
          memcpy(to, from, 1);
          memcpy(to + 4, from + 4, 12);
        }
        continue;
      }
      f += p->offset[0];
      m += p->offset[0];
      switch (p->length[0]) {
      case 3:
        MOVE(3)
        break;
      case 8:
        MOVE(8)
        break;
      case 64:
        MOVE(64)
        break;
      case 512:
        MOVE(512)
        break;
      default:
        MOVE(p->length[0])
      }
    }
}

static char *map_file(struct file_row *r)
{
  int protection = r->write ? PROT_READ | PROT_WRITE : PROT_READ;
  char *base = mmap(NULL, (size_t)r->span, protection, MAP_SHARED, r->descriptor, 0);
  if (base == MAP_FAILED) {
    set_system_fault(r, "mmap");
    return NULL;
  }
  return base;
}

/* Moves the pieces, at most MOST_CALLS of them. Returns the factor by which the measured time must be
 * multiplied: the number of all pieces divided by the number of moved ones. */
static double move_by_calls(struct file_row *r)
{
  const struct pieces *p = &r->pieces;
  long all = p->times[0] * p->times[1] * p->times[2] * p->pieces, done = 0;
  char *base = r->buffer.base;
  EACH(p, {
    if (done++ == MOST_CALLS)
      return (double)all / MOST_CALLS;
    ssize_t moved = r->write ? pwrite(r->descriptor, base + in_memory, (size_t)length, in_file)
                             : pread(r->descriptor, base + in_memory, (size_t)length, in_file);
    if (moved != length) {
      set_system_fault(r, r->write ? "pwrite" : "pread");
      return 1;
    }
  })
  return 1;
}

/* ---- accesses ---- */

enum method { MPI, KEPT, MAPPED, CALLS, METHODS };
static const char *const methods[METHODS] = {"mpi", "kept", "mapped", "calls"};

static void set_view(struct file_row *r)
{
  if (!r->is_byte)
    set_fault(r, "MPI_File_set_view",
              MPI_File_set_view(r->file, r->displacement, r->etype, r->filetype, "native",
                                MPI_INFO_NULL));
}

static int mpi_call(struct file_row *r, MPI_Offset at, char *memory, MPI_Status *status)
{
  int count = (int)r->count;
  if (r->write)
    return r->collective ? MPI_File_write_at_all(r->file, at, memory, count, r->memtype, status)
                         : MPI_File_write_at(r->file, at, memory, count, r->memtype, status);
  return r->collective ? MPI_File_read_at_all(r->file, at, memory, count, r->memtype, status)
                       : MPI_File_read_at(r->file, at, memory, count, r->memtype, status);
}

/* Makes one access. Returns the factor by which its time must be multiplied: 1, except that
 * move_by_calls may return more. */
static double access_once(struct file_row *r, enum method method)
{
  switch (method) {
  case MPI:
    if (r->view_timed)
      set_view(r);
    for (long call = 0; call < r->calls; call++) {
      MPI_Status status;
      int code = mpi_call(r, r->at + call * r->step, r->buffer.base + call * r->step, &status);
      set_fault(r, r->write ? "MPI_File_write_at" : "MPI_File_read_at", code);
    }
    return 1;
  case KEPT:
    if (r->mapping != NULL)
      move_all(&r->pieces, r->mapping, r->buffer.base, r->write);
    return 1;
  case MAPPED: {
    char *mapping = map_file(r);
    if (mapping != NULL) {
      move_all(&r->pieces, mapping, r->buffer.base, r->write);
      munmap(mapping, (size_t)r->span);
    }
    return 1;
  }
  default:
    return move_by_calls(r);
  }
}

static int is_scaled(const struct file_row *r, enum method method)
{
  const struct pieces *p = &r->pieces;
  return method == CALLS && p->times[0] * p->times[1] * p->times[2] * p->pieces > MOST_CALLS;
}

static void open_file(struct file_row *r, enum method method)
{
  if (method == MPI) {
    int mode = r->write ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
    int code = MPI_File_open(MPI_COMM_WORLD, r->path, mode, MPI_INFO_NULL, &r->file);
    set_fault(r, "MPI_File_open", code);
    if (code != MPI_SUCCESS) {
      r->file = MPI_FILE_NULL;
      return;
    }
    if (!r->view_timed)
      set_view(r);
    return;
  }
  r->descriptor = open(r->path, (r->write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (r->descriptor < 0)
    set_system_fault(r, "open");
  else if (method == KEPT)
    r->mapping = map_file(r);
}

static void close_file(struct file_row *r, enum method method)
{
  if (method == MPI) {
    if (r->file != MPI_FILE_NULL)
      set_fault(r, "MPI_File_close", MPI_File_close(&r->file));
    return;
  }
  if (r->mapping != NULL)
    munmap(r->mapping, (size_t)r->span);
  r->mapping = NULL;
  if (r->descriptor >= 0)
    close(r->descriptor);
}

/* Writes the file to disk and drops its pages from the page cache. Checks that at most 5 % of them stay. */
static void drop_cache(struct file_row *r)
{
  int file = open(r->path, O_RDWR | O_CLOEXEC);
  if (file < 0 || fsync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
    set_system_fault(r, "fsync and POSIX_FADV_DONTNEED");
  size_t pages = (size_t)((r->span + 4095) / 4096), resident = 0;
  unsigned char *list = malloc(pages);
  void *base = file < 0 ? MAP_FAILED : mmap(NULL, (size_t)r->span, PROT_READ, MAP_SHARED, file, 0);
  if (list == NULL || base == MAP_FAILED || mincore(base, (size_t)r->span, list) != 0)
    set_system_fault(r, "mincore");
  else
    for (size_t page = 0; page < pages; page++)
      resident += list[page] & 1;
  if (base != MAP_FAILED)
    munmap(base, (size_t)r->span);
  if (file >= 0)
    close(file);
  free(list);
  if (resident > pages / 20 && r->fault[0] == 0)
    snprintf(r->fault, sizeof r->fault,
             "%zu of %zu pages stay in the page cache after POSIX_FADV_DONTNEED", resident, pages);
}

/* Returns the number of KiB in the line of /proc/self/status that begins with `key`; 0 if there is no
 * such line. */
static long status_kib(const char *key)
{
  FILE *file = fopen("/proc/self/status", "r");
  char line[200];
  long found = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, key, strlen(key)) == 0)
      found = atol(line + strlen(key));
  if (file != NULL)
    fclose(file);
  return found;
}

/* Resets VmHWM, the greatest resident size of this process, to the current size. */
static void reset_peak(void)
{
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (file != NULL) {
    fputs("5", file);
    fclose(file);
  }
}

static void limit_growth(const struct file_row *r, int on)
{
  static rlim_t before;
  struct rlimit limit;
  if (!r->view_timed || getrlimit(RLIMIT_DATA, &limit) != 0)
    return;
  if (on) {
    before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)(1024 * status_kib("VmData:") + MOST_GROWTH);
  } else {
    limit.rlim_cur = before;
  }
  setrlimit(RLIMIT_DATA, &limit);
}

static void before_access(struct file_row *r)
{
  if (r->write)
    fill_memory(r);
  else
    memset(r->buffer.base, 0, (size_t)r->memory);
}

static double timed(struct file_row *r, enum method method)
{
  meet();
  double begin = now_ns();
  double factor = access_once(r, method);
  return together(begin, now_ns()) * factor;
}

static void write_before(struct file_row *r);

/* Makes one access that is not timed, and checks its result. If the access writes, rank 0 gives the file its
 * first values before the access, so that data of an earlier turn cannot pass for the result, and again after
 * the access. Makes no access with a method that moves only a part of the pieces. The answer is "ok", or the
 * first fault. */
static void verify_before(struct file_row *r, enum method method)
{
  r->fault[0] = 0;
  for (int done = 0; done < 2; done++) {
    meet();
    if (r->write && r->rank == 0)
      write_before(r);
    meet();
    if (done || is_scaled(r, method))
      break;
    before_access(r);
    open_file(r, method);
    limit_growth(r, 1);
    access_once(r, method);
    limit_growth(r, 0);
    meet();
    verify_file(r);
    close_file(r, method);
  }
  meet();
  if (r->fault[0] != 0)
    link_write("error %s", r->fault);
  else
    link_write("ok");
}

/* Words: METHOD MILLISECONDS LONG, or METHOD verify (`verify_before`). The accesses after the first one
 * take about MILLISECONDS together; there are none if the first access takes LONG milliseconds or more, or
 * if the row is cold.
 * The answer of rank 0 is "file FIRST BEST MEAN ACCESSES GROWTH". FIRST and BEST are the nanoseconds of
 * the first access and of the fastest one. MEAN is the mean of the accesses after the first one; if there
 * are none, it is FIRST. ACCESSES is the number of all accesses. GROWTH is the number of bytes by which
 * this process has grown in the first access. */
static void turn_file(struct row *row, char *words)
{
  struct file_row *r = (struct file_row *)row;
  char *name = strsep(&words, " ");
  int method = 0;
  while (method < METHODS && strcmp(methods[method], name) != 0)
    method++;
  char *budget_word = words == NULL ? NULL : strsep(&words, " ");
  if (method < METHODS && budget_word != NULL && strcmp(budget_word, "verify") == 0) {
    verify_before(r, (enum method)method);
    return;
  }
  if (method == METHODS || words == NULL)
    die("a turn of files needs a method, a duration, and the time of a long first access");
  double budget = 1e6 * atof(budget_word), long_ns = 1e6 * atof(words);
  int checked = !is_scaled(r, (enum method)method);
  r->fault[0] = 0;
  meet();
  if (r->cold && r->rank == 0)
    drop_cache(r);
  meet();
  before_access(r);
  open_file(r, (enum method)method);
  limit_growth(r, 1);
  reset_peak();
  long resident = status_kib("VmRSS:");
  double first = timed(r, (enum method)method);
  long growth = 1024 * (status_kib("VmHWM:") - resident);
  limit_growth(r, 0);
  meet();
  if (checked)
    verify_file(r);
  double best = first, start = now_ns(), sum = 0;
  long accesses = 1;
  /* `first` is the same in all ranks, so all ranks take the same branch. Rank 0 decides whether there is
   * another access. */
  if (!r->cold && first < long_ns) {
    before_access(r);
    for (;;) {
      if (r->rank == 0)
        say(accesses <= LEAST_LATER || (now_ns() - start < budget && accesses < MOST_ACCESSES));
      meet();
      long more = said();
      if (more == 0)
        break;
      double ns = timed(r, (enum method)method);
      best = ns < best ? ns : best;
      sum += ns;
      accesses++;
      meet();
    }
    if (checked)
      verify_file(r);
  }
  close_file(r, (enum method)method);
  meet();
  if (r->fault[0] != 0)
    link_write("error %s", r->fault);
  else if (r->rank == 0)
    link_write("file %.0f %.0f %.0f %ld %ld", first, best,
               accesses > 1 ? sum / (double)(accesses - 1) : first, accesses, growth > 0 ? growth : 0);
  else
    link_write("ok");
}

/* ---- patterns ---- */

static void one_loop(struct file_row *r, long count, long in_file, long in_memory)
{
  struct pieces *p = &r->pieces;
  p->times[0] = p->times[1] = 1;
  p->times[2] = count;
  p->in_file[2] = in_file;
  p->in_memory[2] = in_memory;
}

static void piece(struct file_row *r, long offset, long length)
{
  r->pieces.offset[r->pieces.pieces] = offset;
  r->pieces.length[r->pieces.pieces++] = length;
}

/* Blocks of `block` bytes. The blocks of the ranks alternate in the file. */
static void make_strided(struct file_row *r, long bytes, long block)
{
  long count = bytes / (block * r->size);
  r->span = count * block * r->size;
  one_loop(r, count, block * r->size, block);
  piece(r, 0, block);
  r->pieces.file_start = r->displacement = block * r->rank;
  MPI_Datatype one;
  MPI_Type_contiguous((int)block, MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, block * r->size, &r->filetype);
  MPI_Type_free(&one);
  r->etype = r->memtype = MPI_BYTE;
  r->count = count * block;
}

/* Records of a char, an int and a double: 13 bytes of data in 16, in memory and in the file. The records
 * of the ranks alternate in the file. */
static void make_records(struct file_row *r, long bytes)
{
  long count = bytes / (16 * r->size);
  r->span = count * 16 * r->size;
  one_loop(r, count, 16 * r->size, 16);
  piece(r, 0, 1);
  piece(r, 4, 12);
  r->pieces.file_start = r->displacement = 16 * r->rank;
  int lengths[3] = {1, 1, 1};
  MPI_Aint places[3] = {0, 4, 8};
  MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE}, one;
  MPI_Type_create_struct(3, lengths, places, types, &one);
  MPI_Type_create_resized(one, 0, 16, &r->memtype);
  MPI_Type_create_resized(r->memtype, 0, 16 * r->size, &r->filetype);
  MPI_Type_free(&one);
  r->etype = r->memtype;
  r->count = count;
}

/* A block of an array of doubles with at most four dimensions. `whole` has the edges of the array in
 * the file, and `own` the edges of this rank's block, which begins at the indices `first`. In memory,
 * the block has a halo of `halo` elements on each side in each dimension. */
static void make_block(struct file_row *r, int dimensions, const int *whole, const int *own,
                       const int *first, int halo)
{
  struct pieces *p = &r->pieces;
  long in_file = 8, in_memory = 8;
  int held[4], starts[4];
  for (int level = 0; level < 3; level++)
    p->times[level] = 1;
  for (int dimension = dimensions - 1; dimension >= 0; dimension--) {
    int level = dimension + 3 - (dimensions - 1);
    held[dimension] = own[dimension] + 2 * halo;
    starts[dimension] = halo;
    p->file_start += first[dimension] * in_file;
    p->memory_start += halo * in_memory;
    if (level < 3) {
      p->times[level] = own[dimension];
      p->in_file[level] = in_file;
      p->in_memory[level] = in_memory;
    }
    in_file *= whole[dimension];
    in_memory *= held[dimension];
  }
  piece(r, 0, 8 * (long)own[dimensions - 1]);
  r->span = in_file;
  r->memory = in_memory;
  MPI_Type_create_subarray(dimensions, whole, own, first, MPI_ORDER_C, MPI_DOUBLE, &r->filetype);
  MPI_Type_create_subarray(dimensions, held, own, starts, MPI_ORDER_C, MPI_DOUBLE, &r->memtype);
  r->etype = MPI_DOUBLE;
  r->count = 1;
}

/* Tiles of a matrix, whose rows have 8 KiB for each rank. */
static void make_tiles(struct file_row *r, long bytes)
{
  int columns = 1024 * r->size, rows = (int)(bytes / (8 * columns));
  make_block(r, 2, (int[]){rows, columns}, (int[]){rows, 1024}, (int[]){0, 1024 * r->rank}, 0);
}

/* Blocks of an array of three dimensions, with rows of 512 bytes. The memory has a halo. */
static void make_blocks(struct file_row *r, long bytes)
{
  int row = 64 * r->size, planes = (int)(bytes / (8 * row * 32));
  make_block(r, 3, (int[]){planes, 32, row}, (int[]){planes, 32, 64}, (int[]){0, 0, 64 * r->rank}, 1);
}

/* A lattice of four dimensions with eight doubles for each site. The two middle dimensions have a
 * border in the file that nobody accesses. */
static void make_lattice(struct file_row *r, long bytes)
{
  int row = 16 * 8 * r->size, slices = (int)(bytes / (8l * row * 18 * 18));
  slices = slices < 1 ? 1 : slices;
  make_block(r, 4, (int[]){slices, 18, 18, row}, (int[]){slices, 16, 16, 16 * 8},
             (int[]){0, 1, 1, 16 * 8 * r->rank}, 0);
}

/* One contiguous range for each rank. An access moves it in calls of `chunk` bytes each, or in one call
 * if `chunk` is 0. */
static void make_contiguous(struct file_row *r, long bytes, long chunk)
{
  long own = bytes / r->size;
  chunk = chunk == 0 || chunk > own ? own : chunk;
  r->calls = own / chunk;
  own = r->calls * chunk;
  r->span = own * r->size;
  one_loop(r, r->calls, chunk, chunk);
  piece(r, 0, chunk);
  r->pieces.file_start = r->at = own * r->rank;
  r->step = r->count = chunk;
  r->is_byte = 1;
  r->etype = r->filetype = r->memtype = MPI_BYTE;
}

/* A view of 10^9 doubles: every second double of the file. The access moves 1024 doubles in the middle
 * of the view. */
static void make_billion(struct file_row *r)
{
  const long many = 1000000000, middle = many / 2, count = 1024;
  r->view_timed = 1;
  one_loop(r, count, 16, 8);
  piece(r, 0, 8);
  r->displacement = 8 * r->rank;
  r->pieces.file_start = 16 * middle + r->displacement;
  r->known[0] = 16 * middle;
  r->span = r->known[1] = 16 * (middle + count);
  MPI_Type_vector((int)many, 1, 2, MPI_DOUBLE, &r->filetype);
  r->etype = r->memtype = MPI_DOUBLE;
  r->count = count;
  r->at = middle;
}

/* Makes the file with its size, and fills the range `known` with the values that it has before the row. */
static void write_before(struct file_row *r)
{
  enum { CHUNK = 1 << 20 };
  static unsigned char chunk[CHUNK];
  int file = open(r->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, r->span) != 0)
    die("%s: %s", r->path, strerror(errno));
  for (long at = r->known[0]; at < r->known[1]; at += CHUNK) {
    long length = r->known[1] - at < CHUNK ? r->known[1] - at : CHUNK;
    for (long b = 0; b < length; b++)
      chunk[b] = byte_at(BEFORE, at + b);
    if (pwrite(file, chunk, (size_t)length, at) != length)
      die("%s: %s", r->path, strerror(errno));
  }
  close(file);
}

static void release(struct row *row)
{
  struct file_row *r = (struct file_row *)row;
  int shared = r->memtype == r->etype;
  if (r->memtype != MPI_BYTE && r->memtype != MPI_DOUBLE)
    MPI_Type_free(&r->memtype);
  if (!shared && r->etype != MPI_BYTE && r->etype != MPI_DOUBLE)
    MPI_Type_free(&r->etype);
  if (!r->is_byte)
    MPI_Type_free(&r->filetype);
  buffer_free(&r->buffer);
  free(r);
}

/* Words: PATH BYTES warm|cold write|read collective|independent PATTERN [BLOCK] */
struct row *file_row(char *words, int rank, int size)
{
  struct file_row *r = calloc(1, sizeof *r);
  if (r == NULL)
    die("no memory");
  char *path = strsep(&words, " "), *bytes_word = strsep(&words, " ");
  char *cache = strsep(&words, " "), *direction = strsep(&words, " "), *who = strsep(&words, " ");
  if (words == NULL || strlen(path) >= sizeof r->path)
    die("a row of files needs a path of at most %zu bytes, a size in bytes, warm or cold, write or read, "
        "collective or independent, and a pattern",
        sizeof r->path - 1);
  char *pattern = strsep(&words, " ");
  long bytes = atol(bytes_word), block = words == NULL ? 0 : atol(words);
  strcpy(r->path, path);
  r->rank = rank;
  r->size = size;
  r->cold = strcmp(cache, "cold") == 0;
  r->write = strcmp(direction, "write") == 0;
  r->collective = strcmp(who, "collective") == 0;
  r->file = MPI_FILE_NULL;
  r->descriptor = -1;
  r->calls = 1;
  if (strcmp(pattern, "strided") == 0 && block > 0)
    make_strided(r, bytes, block);
  else if (strcmp(pattern, "records") == 0)
    make_records(r, bytes);
  else if (strcmp(pattern, "tiles") == 0)
    make_tiles(r, bytes);
  else if (strcmp(pattern, "blocks") == 0)
    make_blocks(r, bytes);
  else if (strcmp(pattern, "lattice") == 0)
    make_lattice(r, bytes);
  else if (strcmp(pattern, "contiguous") == 0)
    make_contiguous(r, bytes, block);
  else if (strcmp(pattern, "billion") == 0)
    make_billion(r);
  else
    die("the pattern %s is unknown, or its block is missing", pattern);
  if (!r->is_byte)
    MPI_Type_commit(&r->filetype);
  if (r->memtype != MPI_BYTE && r->memtype != MPI_DOUBLE)
    MPI_Type_commit(&r->memtype);
  if (r->known[1] == 0)
    r->known[1] = r->span;
  const struct pieces *p = &r->pieces;
  long last = p->memory_start + (p->times[0] - 1) * p->in_memory[0] +
              (p->times[1] - 1) * p->in_memory[1] + (p->times[2] - 1) * p->in_memory[2] +
              p->offset[p->pieces - 1] + p->length[p->pieces - 1];
  r->memory = r->memory > last ? r->memory : last;
  buffer_make(&r->buffer, r->memory, 0, 64);
  if (rank == 0)
    write_before(r);
  long payload = 0;
  for (int each = 0; each < p->pieces; each++)
    payload += p->length[each] * p->times[0] * p->times[1] * p->times[2];
  r->row = (struct row){.turn = turn_file, .free = release};
  r->row.payload = payload * size;
  r->row.lines = (r->memory + 63) / 64;
  meet();
  return &r->row;
}
