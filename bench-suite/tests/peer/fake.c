/* A fake MPI library that ../fake_peers.rs uses as a peer. It implements only the functions of the
 * MPI 5 ABI that vectors of doubles need. The macro MODE chooses the fault of the library; SOUND
 * stands for no fault. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOUND, CRASH, HANG, WRONG, REFUSE, CRASH_LATE, HANG_AT_START, FAIL_AT_START };

typedef void *handle;
static int count, block, stride, packs;

int MPI_Abi_get_version(int *major, int *minor) { return *major = 1, *minor = 0; }
int MPI_Comm_set_errhandler(handle comm, handle errors) { return (void)comm, (void)errors, 0; }
int MPI_Type_commit(handle *type) { return (void)type, 0; }
int MPI_Type_free(handle *type) { return *type = NULL, 0; }

int MPI_Init(int *argc, void *argv) {
  (void)argc, (void)argv;
  if (MODE == HANG_AT_START) sleep(600);
  return MODE == FAIL_AT_START ? 16 : 0;
}

int MPI_Get_library_version(char *text, int *length) {
  strcpy(text, "fake 1");
  return *length = 6, 0;
}

int MPI_Type_vector(int c, int b, int s, handle old, handle *made) {
  (void)old;
  count = c, block = b, stride = s;
  *made = &count;
  return MODE == REFUSE ? 3 : 0;
}

int MPI_Pack(const void *in, int n, handle type, void *out, int size, int *position, handle comm) {
  (void)n, (void)type, (void)size, (void)comm;
  packs++;
  if (MODE == CRASH || (MODE == CRASH_LATE && packs > 1)) abort();
  if (MODE == HANG) sleep(600);
  for (int i = 0; i < count; i++)
    memcpy((char *)out + 8 * i * block, (const char *)in + 8 * i * stride, 8 * block);
  if (MODE == WRONG) ((char *)out)[3] ^= 1;
  return *position = 8 * count * block, 0;
}

int MPI_Unpack(const void *in, int size, int *position, void *out, int n, handle type,
               handle comm) {
  (void)n, (void)type, (void)size, (void)comm;
  for (int i = 0; i < count; i++)
    memcpy((char *)out + 8 * i * stride, (const char *)in + 8 * i * block, 8 * block);
  return *position = 8 * count * block, 0;
}
