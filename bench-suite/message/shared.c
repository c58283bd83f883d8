/* The page that both ranks map: a barrier, a word, a cache line to throw; binding and clock.
 *
 * A word has one writer, as everywhere in shared memory. Waiters spin: the two ranks have a CPU
 * each, and turns are short. After a while they give the CPU away, so that a job on one CPU ends.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A line of the largest caches' prefetchers is two. */
struct line {
  _Alignas(128) _Atomic long value;
};

struct page {
  struct line met[2];
  struct line word;
  struct line ball;
};

static struct page *page;
static int me;
static long meetings;

static void pause_now(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void await(struct line *line, long value)
{
  for (long turn = 0; atomic_load_explicit(&line->value, memory_order_acquire) < value; turn++) {
    if (turn < 1000000)
      pause_now();
    else
      sched_yield();
  }
}

static void set_cpu(const char *cpus, int rank, int strict)
{
  char *end;
  long cpu = strtol(cpus, &end, 10);
  for (int skipped = 0; skipped < rank && *end == ','; skipped++)
    cpu = strtol(end + 1, &end, 10);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0 && strict)
    die("not bound to CPU %ld: %s", cpu, strerror(errno));
}

void bind_early(const char *cpus)
{
  static const char *const names[] = {"TYPEPACK_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "MPI_LOCALRANKID", "PMI_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    if (value != NULL) {
      set_cpu(cpus, atoi(value), 0);
      return;
    }
  }
}

void bind_rank(const char *cpus, int rank)
{
  set_cpu(cpus, rank, 1);
}

void shared_open(const char *path, int rank, int size)
{
  if (size != 2)
    die("the rows are for 2 ranks, not %d", size);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    die("%s: %s", path, strerror(errno));
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED)
    die("%s: %s", path, strerror(errno));
  close(file);
  me = rank;
}

void meet(void)
{
  meetings++;
  atomic_store_explicit(&page->met[me].value, meetings, memory_order_release);
  await(&page->met[1 - me], meetings);
}

void say(long word)
{
  atomic_store_explicit(&page->word.value, word, memory_order_relaxed);
}

long said(void)
{
  return atomic_load_explicit(&page->word.value, memory_order_relaxed);
}

double probe(void)
{
  enum { ROUNDS = 15, THROWS = 64 };
  double rounds[ROUNDS];
  long base = atomic_load(&page->ball.value);
  meet();
  for (int round = 0; round < ROUNDS; round++) {
    double start = now_ns();
    for (int throw = 0; throw < THROWS; throw++) {
      long turn = base + 2 * (round * THROWS + throw);
      if (me == 0) {
        atomic_store_explicit(&page->ball.value, turn + 1, memory_order_release);
        while (atomic_load_explicit(&page->ball.value, memory_order_acquire) != turn + 2)
          continue;
      } else {
        while (atomic_load_explicit(&page->ball.value, memory_order_acquire) != turn + 1)
          continue;
        atomic_store_explicit(&page->ball.value, turn + 2, memory_order_release);
      }
    }
    rounds[round] = (now_ns() - start) / (2 * THROWS);
  }
  meet();
  return median(rounds, ROUNDS);
}

double now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int order(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *values, long count)
{
  qsort(values, (size_t)count, sizeof *values, order);
  return count % 2 == 0 ? (values[count / 2 - 1] + values[count / 2]) / 2 : values[count / 2];
}
