/* Modes for the rows about whole jobs. typepack-bench times most of these modes from outside the
 * processes.
 *
 *   bench singleton      MPI_Init alone, without mpiexec: prints its duration in ns
 *   bench empty          init and finalize
 *   bench ring           init, barrier, a token once around, finalize
 *   bench idle SECONDS   rank 0 sleeps and then sends; the last rank waits in MPI_Recv and prints
 *                        the share of a CPU that the wait took, in percent
 *   bench partitions     the time of a partitioned message in us (partition.c)
 *   bench partition-ratio  the same, divided by the time of one message
 *   bench spawn          the time from a spawn of four ranks to their first messages in ms (spawn.c)
 *   bench spawn-connect  the time in which two worlds connect and exchange a message in ms
 *   bench spawn-apart BYTES   the time of a message to a rank that was started later, in ns
 *   bench spawn-within BYTES  the same between two ranks that were started together
 *   bench child ...      a process that one of these has started
 *   bench victim         every rank prints its process id and waits for a message that never comes
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void ring(int rank, int size)
{
  long token = 17;
  MPI_Barrier(MPI_COMM_WORLD);
  if (size == 1)
    return;
  int left = (rank + size - 1) % size, right = (rank + 1) % size;
  if (rank == 0)
    MPI_Send(&token, 1, MPI_LONG, right, 0, MPI_COMM_WORLD);
  MPI_Recv(&token, 1, MPI_LONG, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (token != 17 + (rank == 0 ? size : rank) - 1)
    die("rank %d got token %ld", rank, token);
  token++;
  if (rank != 0)
    MPI_Send(&token, 1, MPI_LONG, right, 0, MPI_COMM_WORLD);
}

static void idle(int rank, int size, double seconds)
{
  char byte = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep((useconds_t)(1e6 * seconds));
    MPI_Send(&byte, 1, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD);
  } else if (rank == size - 1) {
    double start = now_ns(), before = cpu_seconds();
    MPI_Recv(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("@%.4f\n", 100 * (cpu_seconds() - before) / (1e-9 * (now_ns() - start)));
    fflush(stdout);
  }
}

static void victim(int rank)
{
  MPI_Barrier(MPI_COMM_WORLD);
  printf("@%d %ld\n", rank, (long)getpid());
  fflush(stdout);
  char byte;
  MPI_Recv(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int job_mode(int argc, char **argv)
{
  const char *mode = argv[1];
  int rank, size;
  double start = now_ns();
  int threads = strncmp(mode, "partition", 9) == 0, level;
  if (!threads)
    MPI_Init(NULL, NULL);
  else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level), level != MPI_THREAD_MULTIPLE)
    die("the library has no MPI_THREAD_MULTIPLE");
  double started = now_ns() - start;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(mode, "singleton") == 0)
    printf("@%.0f\n", started);
  else if (strcmp(mode, "ring") == 0)
    ring(rank, size);
  else if (strcmp(mode, "idle") == 0)
    idle(rank, size, argc > 2 ? atof(argv[2]) : 1);
  else if (strcmp(mode, "victim") == 0)
    victim(rank);
  else if (strncmp(mode, "spawn", 5) == 0 || strcmp(mode, "child") == 0) {
    double value = spawn_mode(argc, argv, rank);
    if (value >= 0)
      printf("@%.4f\n", value);
    fflush(stdout);
  }
  else if (threads) {
    double value = partitions(rank, strcmp(mode, "partition-ratio") == 0);
    if (rank == 0)
      printf("@%.4f\n", value);
    fflush(stdout);
  }
  else if (strcmp(mode, "empty") != 0)
    die("unknown mode %s", mode);
  MPI_Finalize();
  return 0;
}
