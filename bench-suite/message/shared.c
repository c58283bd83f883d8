/* The page that all ranks map (a barrier, a word, and a cache line for the probe), the binding of
 * ranks to CPUs, and the clock.
 *
 * If each rank has its own CPU, the ranks meet by spinning on words of the page, because turns are
 * short. Each of these words has one writer. After a while a spinning rank yields its CPU, so that
 * even a job on one CPU makes progress. If there are more ranks than CPUs, the ranks increment a
 * counter and sleep until the last rank has arrived, because a spinning rank would take time from
 * the measured ranks.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 16 };

/* A word that shares its cache line with no other word. The alignment is 128 bytes, because the
 * prefetchers of some CPUs load two lines of 64 bytes at once. */
struct line {
  _Alignas(128) _Atomic long value;
};

/* The words that one rank writes. */
struct own {
  _Alignas(128) _Atomic long met;
  double begin, end;
};

struct page {
  struct own own[MOST_RANKS];
  struct line word;
  struct line ball;
  struct line arrived;
  _Alignas(128) _Atomic int meeting; /* number of finished meetings; ranks sleep on it as a futex */
};
_Static_assert(sizeof(struct page) <= 4096, "one page");

static struct page *page;
static int me, ranks;
static int crowd; /* 1 if there are more ranks than CPUs */
static const char *cpu_list;
static long meetings;

static void pause_now(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void await(_Atomic long *word, long value)
{
  for (long turn = 0; atomic_load_explicit(word, memory_order_acquire) < value; turn++) {
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
    die("cannot bind a rank to CPU %ld: %s", cpu, strerror(errno));
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

static int length(const char *list)
{
  int numbers = 1;
  for (; *list != 0; list++)
    numbers += *list == ',';
  return numbers;
}

/* Lets this process run on all CPUs of the list again. */
static void set_free(void)
{
  cpu_set_t set;
  CPU_ZERO(&set);
  const char *next = cpu_list;
  for (int taken = 0; taken < length(cpu_list); taken++) {
    char *end;
    CPU_SET(strtol(next, &end, 10), &set);
    next = end + 1;
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    die("cannot bind a rank to the CPUs %s: %s", cpu_list, strerror(errno));
}

int is_crowded(const char *cpus, int size)
{
  return size > length(cpus);
}

void shared_open(const char *path, const char *cpus, int rank, int size)
{
  if (size > MOST_RANKS)
    die("the rows are for at most %d ranks, not %d", MOST_RANKS, size);
  cpu_list = cpus;
  ranks = size;
  crowd = is_crowded(cpus, size);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    die("%s: %s", path, strerror(errno));
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED)
    die("%s: %s", path, strerror(errno));
  close(file);
  me = rank;
}

/* Sleeps until the last rank has arrived. */
static void meet_asleep(void)
{
  int meeting = atomic_load_explicit(&page->meeting, memory_order_relaxed);
  if (atomic_fetch_add(&page->arrived.value, 1) + 1 == ranks) {
    atomic_store_explicit(&page->arrived.value, 0, memory_order_relaxed);
    atomic_store(&page->meeting, meeting + 1);
    syscall(SYS_futex, &page->meeting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return;
  }
  while (atomic_load(&page->meeting) == meeting)
    syscall(SYS_futex, &page->meeting, FUTEX_WAIT, meeting, NULL, NULL, 0);
}

void meet(void)
{
  if (crowd) {
    meet_asleep();
    return;
  }
  meetings++;
  atomic_store_explicit(&page->own[me].met, meetings, memory_order_release);
  for (int rank = 0; rank < ranks; rank++)
    if (rank != me)
      await(&page->own[rank].met, meetings);
}

double together(double begin, double end)
{
  page->own[me].begin = begin;
  page->own[me].end = end;
  meet();
  double first = begin, last = end;
  for (int rank = 0; rank < ranks; rank++) {
    first = page->own[rank].begin < first ? page->own[rank].begin : first;
    last = page->own[rank].end > last ? page->own[rank].end : last;
  }
  return last - first;
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
  /* Two ranks, each on its own CPU, write to the cache line alternately. All other ranks wait in the
   * next meet(). */
  if (crowd && me < 2)
    set_cpu(cpu_list, me, 1);
  meet();
  for (int round = 0; me < 2 && round < ROUNDS; round++) {
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
  if (crowd && me < 2)
    set_free();
  return me < 2 ? median(rounds, ROUNDS) : 0;
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
