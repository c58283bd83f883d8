/* Layouts of the messages: the positions of their bytes, the functions that fill and check these
 * bytes, and the datatypes.
 *
 * Each layout describes its bytes twice: by positions and by a datatype. The checks compare every
 * received byte with the positions, so they find any difference between the two descriptions. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *memory;
static long memory_bytes, memory_used;

uint64_t salt;

void memory_open(const char *path, long bytes)
{
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    die("%s: %s", path, strerror(errno));
  void *start = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (start == MAP_FAILED)
    die("%s: %s", path, strerror(errno));
  close(file);
  memory = start;
  memory_bytes = bytes;
}

void buffer_make(struct buffer *buffer, long bytes, int from_mpi, long shift)
{
  buffer->from_mpi = from_mpi;
  if (from_mpi) {
    if (MPI_Alloc_mem(bytes, MPI_INFO_NULL, &buffer->base) != MPI_SUCCESS)
      die("MPI_Alloc_mem fails for %ld bytes", bytes);
  } else {
    long end = (memory_used + shift + bytes + 4095) / 4096 * 4096;
    if (end > memory_bytes)
      die("a buffer of %ld bytes does not fit into the %ld bytes of user memory", bytes, memory_bytes);
    buffer->base = memory + memory_used + shift;
    memory_used = end;
  }
  /* Touches every page before anything is timed. */
  memset(buffer->base, 0, (size_t)bytes);
}

void buffer_free(struct buffer *buffer)
{
  if (buffer->from_mpi)
    MPI_Free_mem(buffer->base);
  else
    memory_used = 0;
}

static uint64_t next_value(uint64_t *state)
{
  return *state += 0x9e3779b97f4a7c15u;
}

/* Returns the value of the eight bytes that begin at a position. The value depends only on the salt,
 * the stamp and the position. So if a piece belongs to two layouts, `fill` with the same stamp writes
 * the same bytes to it for both layouts. */
static inline uint64_t value_at(uint64_t stamp, long position)
{
  return (stamp ^ salt) * 0xd1342543de82ef95u + (uint64_t)position * 0x9e3779b97f4a7c15u;
}

static inline void fill_piece(char *base, long at, long length, uint64_t stamp)
{
  for (; length >= 8; length -= 8, at += 8) {
    uint64_t value = value_at(stamp, at);
    memcpy(base + at, &value, 8);
  }
  if (length > 0) {
    uint64_t value = value_at(stamp, at);
    for (; length > 0; length--, value >>= 8)
      base[at++] = (char)value;
  }
}

/* Returns the position of the first wrong byte of a piece, or -1 if no byte is wrong. */
static inline long check_piece(const char *base, long at, long length, uint64_t stamp, long shift)
{
  for (; length >= 8; length -= 8, at += 8) {
    uint64_t value = value_at(stamp, at + shift);
    if (memcmp(base + at, &value, 8) != 0)
      return at;
  }
  if (length > 0) {
    uint64_t value = value_at(stamp, at + shift);
    for (; length > 0; length--, value >>= 8, at++)
      if (base[at] != (char)value)
        return at;
  }
  return -1;
}

/* Runs BODY with `at` and `length` of every piece, in order. */
#define EACH_PIECE(layout, BODY)                                                                   \
  if ((layout)->listed > 0) {                                                                      \
    for (long i = 0; i < (layout)->listed; i++) {                                                  \
      const long at = (layout)->list_offset[i], length = (layout)->list_length[i];                 \
      BODY                                                                                         \
    }                                                                                              \
  } else {                                                                                         \
    for (long i = 0; i < (layout)->times[0]; i++)                                                  \
      for (long j = 0; j < (layout)->times[1]; j++) {                                              \
        long element = (layout)->start + i * (layout)->stride[0] + j * (layout)->stride[1];        \
        for (long k = 0; k < (layout)->times[2]; k++, element += (layout)->stride[2])              \
          for (int piece = 0; piece < (layout)->pieces; piece++) {                                 \
            const long at = element + (layout)->offset[piece], length = (layout)->length[piece];   \
            BODY                                                                                   \
          }                                                                                        \
      }                                                                                            \
  }

void fill(const struct layout *layout, char *base, uint64_t stamp)
{
  EACH_PIECE(layout, { fill_piece(base, at, length, stamp); })
}

void copy_bytes(const struct layout *layout, char *to, const char *from, long shift)
{
  EACH_PIECE(layout, {
    if (length == 8)
      memcpy(to + at, from + at + shift, 8);
    else
      memcpy(to + at, from + at + shift, (size_t)length);
  })
}

long check(const struct layout *layout, const char *base, uint64_t stamp, long shift)
{
  EACH_PIECE(layout, {
    long wrong = check_piece(base, at, length, stamp, shift);
    if (wrong >= 0)
      return wrong;
  })
  return -1;
}

long check_packed(const struct layout *layout, const char *base, const char *packed)
{
  EACH_PIECE(layout, {
    if (memcmp(base + at, packed, (size_t)length) != 0)
      return at;
    packed += length;
  })
  return -1;
}

/* Gives the layout one loop: `count` elements, `stride` bytes apart. */
static void line_of(struct layout *layout, long count, long stride)
{
  layout->times[0] = layout->times[1] = 1;
  layout->times[2] = count;
  layout->stride[2] = stride;
}

void add_piece(struct layout *layout, long offset, long length)
{
  layout->offset[layout->pieces] = offset;
  layout->length[layout->pieces++] = length;
}

static long word_number(char **words)
{
  char *word = strsep(words, " "), *end = NULL;
  long value = word == NULL ? 0 : strtol(word, &end, 10);
  if (word == NULL || value < 0 || *end != 0)
    die("a layout needs one more number that is not negative, but has %s",
        word == NULL ? "no more words" : word);
  return value;
}

static void make_contig(struct message *message, char *words)
{
  long bytes = word_number(&words);
  line_of(&message->layout, 1, bytes);
  add_piece(&message->layout, 0, bytes);
  message->type = MPI_BYTE;
  message->count = (int)bytes;
}

/* Blocks of a vector. They consist of the largest of doubles, floats, 2-byte integers and bytes that divides
 * the block and the stride. */
static void make_blocks(struct message *message, char *words)
{
  static const MPI_Datatype types[] = {MPI_DOUBLE, MPI_FLOAT, MPI_INT16_T, MPI_INT8_T};
  long block = word_number(&words), stride = word_number(&words), count = word_number(&words);
  long unit = 8;
  int at = 0;
  for (; unit > 1 && (block % unit != 0 || stride % unit != 0); unit /= 2)
    at++;
  line_of(&message->layout, count, stride);
  add_piece(&message->layout, 0, block);
  MPI_Type_vector((int)count, (int)(block / unit), (int)(stride / unit), types[at], &message->type);
}

/* Several consecutive columns of a matrix of doubles, one element of the datatype for each: one column, resized
 * to the size of a double. The message has one column after the other. */
static void make_columns(struct message *message, char *words)
{
  long rows = word_number(&words), width = word_number(&words), count = word_number(&words);
  struct layout *layout = &message->layout;
  layout->times[0] = 1;
  layout->times[1] = rows;
  layout->stride[1] = 8 * width;
  layout->times[2] = count;
  layout->stride[2] = 8;
  add_piece(layout, 0, 8);
  MPI_Datatype column;
  MPI_Type_vector((int)rows, 1, (int)width, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, 8, &message->type);
  MPI_Type_free(&column);
  message->count = (int)count;
}

/* Blocks of 1 to 8 doubles with gaps of 1 to 8 doubles between them. */
static void make_indexed(struct message *message, char *words)
{
  long blocks = word_number(&words);
  struct layout *layout = &message->layout;
  int *lengths = malloc((size_t)blocks * sizeof *lengths);
  int *places = malloc((size_t)blocks * sizeof *places);
  layout->list_offset = malloc((size_t)blocks * sizeof(long));
  layout->list_length = malloc((size_t)blocks * sizeof(long));
  if (lengths == NULL || places == NULL || layout->list_offset == NULL ||
      layout->list_length == NULL)
    die("no memory for %ld blocks", blocks);
  uint64_t state = 5;
  long place = 0;
  for (long i = 0; i < blocks; i++) {
    lengths[i] = 1 + (int)(next_value(&state) >> 40) % 8;
    places[i] = (int)place;
    layout->list_offset[i] = 8 * place;
    layout->list_length[i] = 8 * lengths[i];
    place += lengths[i] + 1 + (long)(next_value(&state) >> 40) % 8;
  }
  layout->listed = blocks;
  MPI_Type_indexed((int)blocks, lengths, places, MPI_DOUBLE, &message->type);
  free(lengths);
  free(places);
}

static void make_records(struct message *message, char *words, int particle)
{
  struct layout *layout = &message->layout;
  long count = word_number(&words);
  long extent = particle ? 56 : 16;
  line_of(layout, count, extent);
  int lengths[3] = {1, 1, 1};
  MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_DOUBLE}, record;
  if (particle) {
    lengths[0] = lengths[2] = 3;
    types[0] = MPI_DOUBLE;
  }
  add_piece(layout, 0, particle ? 24 : 1);
  add_piece(layout, particle ? 24 : 4, 4);
  add_piece(layout, particle ? 32 : 8, particle ? 24 : 8);
  MPI_Aint places[3] = {layout->offset[0], layout->offset[1], layout->offset[2]};
  MPI_Type_create_struct(3, lengths, places, types, &record);
  MPI_Type_create_resized(record, 0, extent, &message->type);
  MPI_Type_free(&record);
  message->count = (int)count;
}

/* The first interior layer of a cube of doubles, [z][y][x], with a halo of one cell. */
static void make_face(struct message *message, char *words)
{
  long edge = word_number(&words), axis = word_number(&words);
  if (axis > 2)
    die("the axis of a face is %ld; it must be 0 to 2", axis);
  struct layout *layout = &message->layout;
  int sizes[3], inner[3], starts[3] = {1, 1, 1};
  long step[3];
  for (int dimension = 2; dimension >= 0; dimension--) {
    sizes[dimension] = (int)edge + 2;
    inner[dimension] = dimension == 2 - (int)axis ? 1 : (int)edge;
    step[dimension] = dimension == 2 ? 8 : step[dimension + 1] * (edge + 2);
    layout->times[dimension] = inner[dimension];
    layout->stride[dimension] = step[dimension];
    layout->start += step[dimension];
  }
  add_piece(layout, 0, 8);
  MPI_Type_create_subarray(3, sizes, inner, starts, MPI_ORDER_C, MPI_DOUBLE, &message->type);
}

void layout_measure(struct layout *layout)
{
  long last = -1;
  EACH_PIECE(layout, {
    /* Does not count a cache line again if the piece before this one has touched it. Pieces that
     * share a cache line always follow each other in the list. */
    long first = at / 64 > last ? at / 64 : last + 1;
    last = (at + length - 1) / 64;
    layout->lines += last < first ? 0 : last - first + 1;
    layout->payload += length;
    if (at + length > layout->memory)
      layout->memory = at + length;
  })
}

void message_make(struct message *message, char *words)
{
  memset(message, 0, sizeof *message);
  message->count = 1;
  char *kind = strsep(&words, " ");
  if (strcmp(kind, "contig") == 0)
    make_contig(message, words);
  else if (strcmp(kind, "blocks") == 0)
    make_blocks(message, words);
  else if (strcmp(kind, "columns") == 0)
    make_columns(message, words);
  else if (strcmp(kind, "indexed") == 0)
    make_indexed(message, words);
  else if (strcmp(kind, "struct") == 0)
    make_records(message, words, 0);
  else if (strcmp(kind, "particle") == 0)
    make_records(message, words, 1);
  else if (strcmp(kind, "face") == 0)
    make_face(message, words);
  else
    die("unknown layout %s", kind);
  if (message->type != MPI_BYTE)
    MPI_Type_commit(&message->type);
  layout_measure(&message->layout);
  int bytes;
  MPI_Type_size(message->type, &bytes);
  if ((long)bytes * message->count != message->layout.payload)
    die("the datatype has %ld bytes, but the layout has %ld", (long)bytes * message->count,
        message->layout.payload);
}

void message_free(struct message *message)
{
  if (message->type != MPI_BYTE)
    MPI_Type_free(&message->type);
  free(message->layout.list_offset);
  free(message->layout.list_length);
}
