/* Measures partitioned messages (MPI-5.0 chapter 4) for a row about whole jobs: rank 0 sends 16 partitions of 64 KiB,
 * which two threads mark ready at once. The comparison is one persistent
 * message of 1 MiB between the same buffers. The ranks take turns in sending, so the time of a message is half of the
 * time of an exchange. Some libraries do not have the calls; the program finds them when it runs. */
#define _GNU_SOURCE
#include "bench.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITIONS = 16, BYTES = 64 << 10, WARM = 50, ROUNDS = 301 };

typedef int init(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);

static int (*pready)(int, MPI_Request);
static char *out, *in;
static MPI_Request sends, receives;
/* The second thread marks its half of the partitions ready each time it is told to by `go`, and says so by `done`. It
 * ends if `over` is set. */
static sem_t go, done;
static int over;

static void ready(int first)
{
  for (int i = first; i < PARTITIONS; i += 2)
    pready(i, sends);
}

static void *second(void *ignored)
{
  (void)ignored;
  for (;;) {
    sem_wait(&go);
    if (over)
      return NULL;
    ready(1);
    sem_post(&done);
  }
}

static void send(int parts)
{
  MPI_Start(&sends);
  if (parts) {
    sem_post(&go);
    ready(0);
    sem_wait(&done);
  }
  MPI_Wait(&sends, MPI_STATUS_IGNORE);
}

static void receive(void)
{
  MPI_Wait(&receives, MPI_STATUS_IGNORE);
}

/* Returns the median time of a message, in nanoseconds. */
static double times(int rank, int parts)
{
  static double list[ROUNDS];
  for (int i = -WARM; i < ROUNDS; i++) {
    memset(out, i, PARTITIONS * BYTES);
    MPI_Start(&receives);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_ns();
    if (rank == 0) {
      send(parts);
      receive();
    } else {
      receive();
      send(parts);
    }
    if (i >= 0)
      list[i] = (now_ns() - start) / 2;
    for (int at = 0; at < PARTITIONS * BYTES; at += 4096)
      if (in[at] != (char)i)
        die("rank %d received a wrong byte at %d", rank, at);
  }
  return median(list, ROUNDS);
}

/* Returns the time of a partitioned message in microseconds, or by_ratio: divided by that of one message. */
double partitions(int rank, int by_ratio)
{
  init *psend = (init *)dlsym(RTLD_DEFAULT, "MPI_Psend_init"), *precv = (init *)dlsym(RTLD_DEFAULT, "MPI_Precv_init");
  pready = (int (*)(int, MPI_Request))dlsym(RTLD_DEFAULT, "MPI_Pready");
  if (psend == NULL || precv == NULL || pready == NULL)
    die("the library has no partitioned messages");
  out = malloc(PARTITIONS * BYTES);
  in = malloc(PARTITIONS * BYTES);
  if (out == NULL || in == NULL)
    die("no memory");
  memset(in, 1, PARTITIONS * BYTES);
  sem_init(&go, 0, 0);
  sem_init(&done, 0, 0);
  pthread_t thread;
  if (pthread_create(&thread, NULL, second, NULL) != 0)
    die("no thread");
  psend(out, PARTITIONS, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &sends);
  precv(in, PARTITIONS, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receives);
  double parts = times(rank, 1);
  MPI_Request_free(&sends);
  MPI_Request_free(&receives);
  double result = parts / 1e3;
  if (by_ratio) {
    MPI_Send_init(out, PARTITIONS * BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &sends);
    MPI_Recv_init(in, PARTITIONS * BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &receives);
    result = parts / times(rank, 0);
    MPI_Request_free(&sends);
    MPI_Request_free(&receives);
  }
  over = 1;
  sem_post(&go);
  pthread_join(thread, NULL);
  free(out);
  free(in);
  return result;
}
