/* Sends lines between a rank and typepack-bench, over a socket in the file system.
 *
 * Standard input and output are unsuitable: launchers pass input to rank 0 only, and libraries print
 * text of their own. */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int end_point = -1;
static char line[8192];
static size_t begin, filled;

void die(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  fputs("bench: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  fflush(stderr);
  va_end(list);
  /* This function does not call MPI_Abort, because the MPI library itself may be the cause of the
   * fault. The launcher ends the job when this process exits. */
  _exit(9);
}

void link_open(const char *path, int rank, int size)
{
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof name.sun_path)
    die("%s: the path of a socket must have fewer than %zu bytes", path, sizeof name.sun_path);
  strcpy(name.sun_path, path);
  end_point = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (end_point < 0 || connect(end_point, (struct sockaddr *)&name, sizeof name) != 0)
    die("%s: %s", path, strerror(errno));
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  link_write("rank %d of %d, process %ld: %s", rank, size, (long)getpid(), version);
}

char *link_read(void)
{
  for (;;) {
    char *end = memchr(line + begin, '\n', filled - begin);
    if (end != NULL) {
      char *found = line + begin;
      *end = 0;
      begin = (size_t)(end + 1 - line);
      return found;
    }
    memmove(line, line + begin, filled - begin);
    filled -= begin;
    begin = 0;
    if (filled == sizeof line)
      die("a line is too long");
    ssize_t got = read(end_point, line + filled, sizeof line - filled);
    if (got == 0)
      return NULL;
    if (got < 0 && errno != EINTR)
      die("socket: %s", strerror(errno));
    if (got > 0)
      filled += (size_t)got;
  }
}

void link_write(const char *format, ...)
{
  char text[8192];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(text, sizeof text - 1, format, list);
  va_end(list);
  if (length < 0 || length >= (int)sizeof text - 1)
    die("an answer is too long");
  text[length++] = '\n';
  for (int written = 0; written < length;) {
    ssize_t sent = send(end_point, text + written, (size_t)(length - written), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR)
      die("socket: %s", strerror(errno));
    if (sent > 0)
      written += (int)sent;
  }
}
