/* Measures processes that start processes (MPI-5.0 chapter 11) for rows about whole jobs: the time until four new ranks
 * have sent their first messages, the time until two worlds have connected, and messages to a rank that was started later.
 * The children run this program, too; their mode is `child WHAT ...`. Every message is checked. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 4, STARTS = 7, MEETINGS = 51, SAMPLES = 51, MOST = 64 << 10 };

static const char *program;

/* Starts `count` children with these arguments. */
static MPI_Comm start(int count, char **arguments)
{
  MPI_Comm children;
  if (MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE) !=
      MPI_SUCCESS)
    die("no children");
  return children;
}

/* ---- the time to the first message ---- */

static int first_message(int round, int child)
{
  return 1000 * round + child + 7;
}

static double starts(void)
{
  static double list[STARTS];
  for (int round = 0; round < STARTS; round++) {
    char number[16];
    char *arguments[] = {"child", "start", number, NULL};
    snprintf(number, sizeof number, "%d", round);
    double begin = now_ns();
    MPI_Comm children = start(CHILDREN, arguments);
    for (int child = 0; child < CHILDREN; child++) {
      int value = 0;
      MPI_Recv(&value, 1, MPI_INT, child, 1, children, MPI_STATUS_IGNORE);
      if (value != first_message(round, child))
        die("child %d sent %d", child, value);
    }
    list[round] = now_ns() - begin;
    MPI_Comm_disconnect(&children);
  }
  return median(list, STARTS) / 1e6;
}

/* ---- connect and accept ---- */

/* Meets the other world MEETINGS times. Returns the median time of the call and of a message there and back. */
static double meetings(char *port, int accepts)
{
  static double list[MEETINGS];
  for (int i = 0; i < MEETINGS; i++) {
    MPI_Comm other;
    double begin = now_ns();
    if (accepts)
      MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    else
      MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    int value = -1;
    if (accepts) {
      MPI_Send(&i, 1, MPI_INT, 0, 2, other);
      MPI_Recv(&value, 1, MPI_INT, 0, 3, other, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&value, 1, MPI_INT, 0, 2, other, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_INT, 0, 3, other);
    }
    list[i] = now_ns() - begin;
    if (value != i)
      die("meeting %d brought %d", i, value);
    MPI_Comm_disconnect(&other);
  }
  return median(list, MEETINGS) / 1e6;
}

static double connects(void)
{
  char port[MPI_MAX_PORT_NAME];
  MPI_Open_port(MPI_INFO_NULL, port);
  char *arguments[] = {"child", "connect", port, NULL};
  MPI_Comm child = start(1, arguments);
  /* From now on the two worlds have nothing in common. */
  MPI_Comm_disconnect(&child);
  double time = meetings(port, 1);
  MPI_Close_port(port);
  return time;
}

/* ---- messages ---- */

/* Sends messages there and back. Returns the median time of one, in nanoseconds. */
static double messages(MPI_Comm comm, int peer, int is_first, int bytes)
{
  static double list[SAMPLES];
  static unsigned char out[MOST], in[MOST];
  int batch = bytes > 1024 ? 20 : 500;
  for (int sample = -10; sample < SAMPLES; sample++) {
    for (int at = 0; at < bytes; at++)
      out[at] = (unsigned char)(sample + 3 * at + is_first);
    memset(in, 0, (size_t)bytes);
    double begin = now_ns();
    for (int i = 0; i < batch; i++) {
      if (is_first)
        MPI_Send(out, bytes, MPI_BYTE, peer, 4, comm);
      MPI_Recv(in, bytes, MPI_BYTE, peer, 4, comm, MPI_STATUS_IGNORE);
      if (!is_first)
        MPI_Send(out, bytes, MPI_BYTE, peer, 4, comm);
    }
    if (sample >= 0)
      list[sample] = (now_ns() - begin) / (2 * batch);
    for (int at = 0; at < bytes; at++)
      if (in[at] != (unsigned char)(sample + 3 * at + !is_first))
        die("a wrong byte at %d of %d", at, bytes);
  }
  return median(list, SAMPLES);
}

static int size_of(const char *word)
{
  int bytes = atoi(word);
  if (bytes < 1 || bytes > MOST)
    die("messages of %s bytes", word);
  return bytes;
}

/* ---- the modes ---- */

double spawn_mode(int argc, char **argv, int rank)
{
  const char *what = argv[1];
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  program = argv[0];
  if (strcmp(what, "child") == 0) {
    if (argc < 4 || parent == MPI_COMM_NULL)
      die("no parent");
    if (strcmp(argv[2], "start") == 0) {
      int value = first_message(atoi(argv[3]), rank);
      MPI_Send(&value, 1, MPI_INT, 0, 1, parent);
    } else if (strcmp(argv[2], "messages") == 0) {
      messages(parent, 0, 0, size_of(argv[3]));
    }
    MPI_Comm_disconnect(&parent);
    if (strcmp(argv[2], "connect") == 0)
      meetings(argv[3], 0);
    return -1;
  }
  if (strcmp(what, "spawn") == 0)
    return starts();
  if (strcmp(what, "spawn-connect") == 0)
    return connects();
  if (argc < 3)
    die("%s needs a number of bytes", what);
  int bytes = size_of(argv[2]);
  if (strcmp(what, "spawn-within") == 0) {
    double time = messages(MPI_COMM_WORLD, 1 - rank, rank == 0, bytes);
    return rank == 0 ? time : -1;
  }
  char *arguments[] = {"child", "messages", argv[2], NULL};
  MPI_Comm child = start(1, arguments);
  double time = messages(child, 0, 1, bytes);
  MPI_Comm_disconnect(&child);
  return time;
}
