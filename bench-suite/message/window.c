/* Rows of one-sided communication: calls of one rank that read and write the memory of another.
 *
 * The memory of a window comes from MPI_Win_allocate ("alloc"), or is user memory that MPI_Win_create
 * takes ("user"). The buffers of the calling rank are user memory in both cases.
 *
 * In rows of put, get, accumulate, fetch and swap, rank 0 makes the calls and rank 1 is the target; each
 * call is completed by a flush. Rank 1 waits in MPI_Barrier meanwhile, because some libraries need its
 * help. The time is that of rank 0. Before each long put, rank 0 writes its data anew and rank 1 reads
 * one word of each cache line of the target's memory; before each long get, rank 1 writes its memory
 * anew; all outside of the timing. A sample of short calls has several calls that move the same data.
 *
 * In the other rows all ranks do the same, and the time runs from the moment when the first rank begins to
 * the moment when the last rank ends, divided by the number of fences, epochs, locks or insertions of one
 * rank. Where ranks take a lock in turn, it is also divided by the number of ranks. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { PUT, GET, ACCUMULATE, FETCH, SWAP, FENCE, POST, LOCK, INSERT, OPERATIONS };
static const char *const names[OPERATIONS] = {"put",   "get",  "accumulate", "fetch", "swap",
                                              "fence", "post", "lock",       "insert"};

/* A sample of calls with at most SHORT bytes has several calls. */
enum { SHORT = 16384 };
/* The intended duration of a sample in jobs with more ranks than CPUs, in nanoseconds; see collective.c. */
static const double CROWDED_NS = 6e6;
/* Slots of the hash table at each rank, and the number of different keys that a rank inserts. A quarter of
 * all slots is filled at most. */
enum { SLOTS = 1 << 15, KEYS = 1 << 13 };

struct window {
  struct row row;
  enum operation operation;
  int rank, size;
  struct message message; /* of put and get */
  long count;             /* number of doubles of an accumulate */
  struct buffer origin, memory;
  int is_created; /* whether the window is made of user memory */
  char *base;     /* this rank's memory in the window */
  MPI_Win win;
  MPI_Group others;  /* all ranks but this one */
  uint64_t written;  /* how often the data of put or get has been written; also their stamp */
  long done;         /* number of calls, insertions or locks of one rank since the window was made */
  long last;         /* number of calls of the last sample */
  uint64_t old;      /* the result of the last fetch or swap */
  int is_wrong;      /* whether a result of this rank was wrong */
};

static double operand(long at)
{
  return (double)(1 + ((uint64_t)at + (salt & 0xff)) % 7);
}

/* Returns a key that differs from all other keys and is not 0. */
static uint64_t key_of(int rank, long number)
{
  uint64_t key = ((uint64_t)(rank + 1) << 32 | (uint64_t)(number % KEYS)) * 0x9e3779b97f4a7c15u;
  return key ^ key >> 29;
}

static void insert(struct window *w, uint64_t key)
{
  uint64_t empty = 0, found, slots = (uint64_t)SLOTS * (uint64_t)w->size;
  uint64_t slot = (key * 0xd1342543de82ef95u >> 20) % slots;
  for (;;) {
    int target = (int)(slot / SLOTS);
    MPI_Compare_and_swap(&key, &empty, &found, MPI_UINT64_T, target, (MPI_Aint)(8 * (slot % SLOTS)),
                         w->win);
    MPI_Win_flush(target, w->win);
    if (found == 0 || found == key)
      return;
    slot = (slot + 1) % slots;
  }
}

/* Makes one call of a row in which only rank 0 makes calls. */
static void call(struct window *w)
{
  struct message *m = &w->message;
  char *origin = w->origin.base;
  uint64_t now = (uint64_t)w->done++, next = now + 1;
  const uint64_t one = 1;
  switch (w->operation) {
  case PUT:
    MPI_Put(origin, m->count, m->type, 1, 0, m->count, m->type, w->win);
    break;
  case GET:
    MPI_Get(origin, m->count, m->type, 1, 0, m->count, m->type, w->win);
    break;
  case ACCUMULATE:
    MPI_Accumulate(origin, (int)w->count, MPI_DOUBLE, 1, 0, (int)w->count, MPI_DOUBLE, MPI_SUM,
                   w->win);
    break;
  case FETCH:
    MPI_Fetch_and_op(&one, &w->old, MPI_UINT64_T, 1, 0, MPI_SUM, w->win);
    break;
  case SWAP:
    MPI_Compare_and_swap(&next, &now, &w->old, MPI_UINT64_T, 1, 0, w->win);
    break;
  default:
    break;
  }
  MPI_Win_flush(1, w->win);
  if (w->operation == FETCH || w->operation == SWAP)
    w->is_wrong |= w->old != now;
}

/* Takes part in one fence, epoch, lock or insertion. */
static void take_part(struct window *w)
{
  uint64_t count;
  switch (w->operation) {
  case FENCE:
    MPI_Win_fence(0, w->win);
    break;
  case POST:
    MPI_Win_post(w->others, 0, w->win);
    MPI_Win_start(w->others, 0, w->win);
    MPI_Win_complete(w->win);
    MPI_Win_wait(w->win);
    break;
  case LOCK:
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
    MPI_Get(&count, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, w->win);
    MPI_Win_flush(0, w->win);
    count++;
    MPI_Put(&count, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, w->win);
    MPI_Win_unlock(0, w->win);
    break;
  case INSERT:
    insert(w, key_of(w->rank, w->done));
    break;
  default:
    break;
  }
  w->done++;
}

/* Writes the values that the calls so far have made to the window, and the operands. All libraries use the same
 * pages of user memory, so another library may have changed the values since the last sample. */
static void write_again(struct window *w)
{
  switch (w->operation) {
  case ACCUMULATE:
    for (long at = 0; w->rank == 1 && at < w->count; at++)
      ((double *)w->base)[at] = (double)w->done * operand(at);
    for (long at = 0; w->rank == 0 && at < w->count; at++)
      ((double *)w->origin.base)[at] = operand(at);
    break;
  case FETCH:
  case SWAP:
    if (w->rank == 1)
      *(uint64_t *)w->base = (uint64_t)w->done;
    break;
  case LOCK:
    if (w->rank == 0) {
      uint64_t count = (uint64_t)w->done * (uint64_t)w->size;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
      MPI_Put(&count, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, w->win);
      MPI_Win_unlock(0, w->win);
    }
    break;
  default:
    break;
  }
}

static double alone_sample(struct row *row, long batch)
{
  static volatile uint64_t sum;
  struct window *w = (struct window *)row;
  w->last = batch;
  if (!row->batched || batch == 1) {
    w->written++;
    if (w->rank == 0 && w->operation == PUT)
      fill(&w->message.layout, w->origin.base, w->written);
    if (w->rank == 1 && w->operation == GET)
      fill(&w->message.layout, w->base, w->written);
    if (w->rank == 1 && w->operation == PUT)
      for (long at = 0; at + 8 <= w->message.layout.memory; at += 64)
        sum += *(const uint64_t *)(w->base + at);
  }
  write_again(w);
  MPI_Win_sync(w->win);
  meet();
  double begin = now_ns();
  if (w->rank == 0)
    for (long i = 0; i < batch; i++)
      call(w);
  else
    w->done += batch;
  double ns = (now_ns() - begin) / (double)batch;
  MPI_Barrier(MPI_COMM_WORLD);
  return ns;
}

static double together_sample(struct row *row, long batch)
{
  struct window *w = (struct window *)row;
  w->last = batch;
  if (w->operation == INSERT) {
    memset(w->base, 0, SLOTS * sizeof(uint64_t));
    w->done = 0;
    MPI_Win_sync(w->win);
  }
  write_again(w);
  meet();
  double begin = now_ns();
  for (long i = 0; i < batch; i++)
    take_part(w);
  double end = now_ns();
  /* The other ranks may still need the help of this rank. */
  MPI_Barrier(MPI_COMM_WORLD);
  return together(begin, end) / (double)batch / (w->operation == LOCK ? w->size : 1);
}

/* Checks that the table has each key of the last sample once. */
static int has_keys(const struct window *w)
{
  const uint64_t *slots = (const uint64_t *)w->base;
  uint64_t own[2] = {0, 0}, all[2], expected[2] = {0, 0};
  for (long slot = 0; slot < SLOTS; slot++) {
    own[0] += slots[slot] != 0;
    own[1] += slots[slot];
  }
  MPI_Allreduce(own, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int rank = 0; rank < w->size; rank++)
    for (long number = 0; number < w->last && number < KEYS; number++) {
      expected[0]++;
      expected[1] += key_of(rank, number);
    }
  return all[0] == expected[0] && all[1] == expected[1];
}

static const char *verify(struct row *row)
{
  static char fault[80];
  struct window *w = (struct window *)row;
  long wrong = -1;
  if (w->operation != FENCE && w->operation != POST && w->operation != LOCK)
    MPI_Win_sync(w->win);
  switch (w->operation) {
  case PUT:
    wrong = w->rank == 1 ? check(&w->message.layout, w->base, w->written, 0) : -1;
    break;
  case GET:
    wrong = w->rank == 0 ? check(&w->message.layout, w->origin.base, w->written, 0) : -1;
    break;
  case ACCUMULATE:
    for (long at = 0; w->rank == 1 && wrong < 0 && at < w->count; at++)
      if (((const double *)w->base)[at] != (double)w->done * operand(at))
        wrong = 8 * at;
    break;
  case FETCH:
  case SWAP:
    if (w->is_wrong || (w->rank == 1 && *(const uint64_t *)w->base != (uint64_t)w->done))
      wrong = 0;
    break;
  case LOCK: {
    /* The lock makes the counter visible to its owner, too. */
    uint64_t count;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
    MPI_Get(&count, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, w->win);
    MPI_Win_unlock(0, w->win);
    if (count != (uint64_t)w->done * (uint64_t)w->size)
      wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    break;
  }
  case INSERT:
    wrong = has_keys(w) ? -1 : 0;
    break;
  default:
    break;
  }
  if (wrong < 0)
    return NULL;
  snprintf(fault, sizeof fault, "rank %d has a wrong byte or value at %ld", w->rank, wrong);
  return fault;
}

/* Whether all ranks keep shared locks of all ranks as long as the row exists. */
static int keeps_locks(const struct window *w)
{
  return w->operation != FENCE && w->operation != POST && w->operation != LOCK;
}

static void release(struct row *row)
{
  struct window *w = (struct window *)row;
  if (keeps_locks(w))
    MPI_Win_unlock_all(w->win);
  if (w->operation == FENCE)
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
  MPI_Win_free(&w->win);
  MPI_Group_free(&w->others);
  if (w->operation == PUT || w->operation == GET)
    message_free(&w->message);
  buffer_free(&w->origin);
  if (w->is_created)
    buffer_free(&w->memory);
  free(w);
}

void window_make(struct buffer *memory, MPI_Win *win, long bytes, int from_mpi, long shift)
{
  int result;
  if (from_mpi) {
    result = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory->base, win);
    if (result == MPI_SUCCESS)
      memset(memory->base, 0, (size_t)bytes);
  } else {
    buffer_make(memory, bytes, 0, shift);
    result = MPI_Win_create(memory->base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win);
  }
  if (result != MPI_SUCCESS)
    die("no window of %ld bytes can be made", bytes);
}

/* Words: user|alloc OPERATION, and for put and get a LAYOUT, for accumulate a number of bytes. */
struct row *window_row(char *words, int rank, int size, int crowded)
{
  struct window *w = calloc(1, sizeof *w);
  if (w == NULL)
    die("no memory");
  char *memory = strsep(&words, " "), *name = strsep(&words, " ");
  if (name == NULL)
    die("a window row needs a kind of memory and an operation");
  while (w->operation < OPERATIONS && strcmp(names[w->operation], name) != 0)
    w->operation++;
  if (w->operation == OPERATIONS)
    die("%s is not an operation of a window row", name);
  long bytes = 8, lines = 1;
  if (w->operation <= ACCUMULATE && words == NULL)
    die("the window operation %s needs a layout or a number of bytes", name);
  if (w->operation == PUT || w->operation == GET) {
    message_make(&w->message, words);
    bytes = w->message.layout.memory;
    w->row.payload = w->message.layout.payload;
    lines = w->message.layout.lines;
  } else if (w->operation == ACCUMULATE) {
    bytes = atol(words);
    if (bytes < 8 || bytes % 8 != 0)
      die("an accumulate of %s bytes: it must be a positive multiple of 8", words);
    w->count = bytes / 8;
    w->row.payload = bytes;
    lines = (bytes + 63) / 64;
  } else {
    w->row.payload = 8;
  }
  if (size != 2 && w->operation <= SWAP)
    die("the window operation %s is for 2 ranks, not %d", name, size);
  w->rank = rank;
  w->size = size;
  buffer_make(&w->origin, bytes, 0, 64);
  w->is_created = strcmp(memory, "user") == 0;
  long room = w->operation == INSERT ? SLOTS * (long)sizeof(uint64_t) : (bytes + 63) / 64 * 64;
  window_make(&w->memory, &w->win, room, !w->is_created, 1088);
  w->base = w->memory.base;
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_excl(all, 1, &rank, &w->others);
  MPI_Group_free(&all);
  MPI_Barrier(MPI_COMM_WORLD);
  if (keeps_locks(w))
    MPI_Win_lock_all(0, w->win);
  if (w->operation == FENCE)
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
  w->row.sample = w->operation <= SWAP ? alone_sample : together_sample;
  w->row.verify = verify;
  w->row.free = release;
  w->row.lines = 2 * lines;
  w->row.batched = w->row.payload <= SHORT;
  w->row.sample_ns = crowded ? CROWDED_NS : 0;
  return &w->row;
}
