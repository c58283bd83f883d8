/* The hand-written loops in C, the same loops as those of src/lib.rs. ../src/competitor/hand_c.rs
 * compiles them with `-O3 -march=native`, or for one level such as `-march=x86-64-v3`, if the machine
 * has a compiler. The usual block sizes are compile-time constants; counts and strides are run-time
 * arguments, except in the kind FIXED, which has constant strides, too. Nothing is unrolled or
 * vectorised by hand. Like loops in C programs, the loops check no bounds; ../src/competitor/hand.rs
 * checks the bounds before it calls them. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The same struct as `Nest` in src/lib.rs. */
struct nest {
  uint32_t kind;
  size_t block, start, packed;
  size_t counts[3], strides[3];
  size_t entries;
  const size_t *offsets, *lengths;
};

enum { COLUMN, BOX, CHAR_INT_DOUBLE, PARTICLE, OFFSETS, RUNS, FIXED };

struct record {
  char c;
  int i;
  double d;
};

struct particle {
  double x[3];
  int kind;
  double v[3];
};

/* Defines pack_<name> and unpack_<name>: the loops over blocks of B bytes. B is a constant, except
 * in LOOPS(block, any), which serves all other block sizes. */
#define LOOPS(B, name)                                                                             \
  static void pack_##name(const struct nest *n, size_t block, const char *restrict m,              \
                          char *restrict p) {                                                      \
    (void)block;                                                                                   \
    if (n->kind == COLUMN) {                                                                       \
      const size_t count = n->counts[2], stride = n->strides[2];                                   \
      for (size_t i = 0; i < count; i++) memcpy(p + i * (B), m + i * stride, B);                   \
    } else if (n->kind == BOX) {                                                                   \
      const size_t count = n->counts[2], stride = n->strides[2];                                   \
      for (size_t x = 0; x < n->counts[0]; x++)                                                    \
        for (size_t y = 0; y < n->counts[1]; y++) {                                                \
          const char *row = m + x * n->strides[0] + y * n->strides[1];                             \
          for (size_t i = 0; i < count; i++) memcpy(p + i * (B), row + i * stride, B);             \
          p += count * (B);                                                                        \
        }                                                                                          \
    } else {                                                                                       \
      const size_t entries = n->entries, *restrict offsets = n->offsets;                           \
      for (size_t i = 0; i < entries; i++) memcpy(p + i * (B), m + offsets[i], B);                 \
    }                                                                                              \
  }                                                                                                \
  static void unpack_##name(const struct nest *n, size_t block, const char *restrict p,            \
                            char *restrict m) {                                                    \
    (void)block;                                                                                   \
    if (n->kind == COLUMN) {                                                                       \
      const size_t count = n->counts[2], stride = n->strides[2];                                   \
      for (size_t i = 0; i < count; i++) memcpy(m + i * stride, p + i * (B), B);                   \
    } else if (n->kind == BOX) {                                                                   \
      const size_t count = n->counts[2], stride = n->strides[2];                                   \
      for (size_t x = 0; x < n->counts[0]; x++)                                                    \
        for (size_t y = 0; y < n->counts[1]; y++) {                                                \
          char *row = m + x * n->strides[0] + y * n->strides[1];                                   \
          for (size_t i = 0; i < count; i++) memcpy(row + i * stride, p + i * (B), B);             \
          p += count * (B);                                                                        \
        }                                                                                          \
    } else {                                                                                       \
      const size_t entries = n->entries, *restrict offsets = n->offsets;                           \
      for (size_t i = 0; i < entries; i++) memcpy(m + offsets[i], p + i * (B), B);                 \
    }                                                                                              \
  }

LOOPS(1, 1)
LOOPS(2, 2)
LOOPS(4, 4)
LOOPS(8, 8)
LOOPS(12, 12)
LOOPS(16, 16)
LOOPS(24, 24)
LOOPS(32, 32)
LOOPS(40, 40)
LOOPS(64, 64)
LOOPS(block, any)

struct floats {
  float f[3];
};

/* Calls DO(type, block, stride) for every pair of a block length and a stride of the kind FIXED. */
#define PATTERNS(DO)                                                                               \
  DO(uint8_t, 1, 2)                                                                                \
  DO(uint8_t, 1, 3)                                                                                \
  DO(uint8_t, 1, 4)                                                                                \
  DO(uint16_t, 2, 4)                                                                               \
  DO(uint16_t, 2, 6)                                                                               \
  DO(uint32_t, 4, 8)                                                                               \
  DO(uint32_t, 4, 12)                                                                              \
  DO(uint64_t, 8, 16)                                                                              \
  DO(uint64_t, 8, 24)                                                                              \
  DO(struct floats, 12, 16)

/* The loops over blocks of B bytes, S bytes apart, as a programmer writes them for one array of type T. Every
 * block is aligned for T. */
#define PACK_FIXED(T, B, S)                                                                        \
  if (n->block == (B) && n->strides[2] == (S)) {                                                   \
    T *restrict to = (T *)p;                                                                       \
    for (size_t i = 0; i < count; i++) to[i] = *(const T *)(m + i * (S));                          \
    return;                                                                                        \
  }
#define UNPACK_FIXED(T, B, S)                                                                      \
  if (n->block == (B) && n->strides[2] == (S)) {                                                   \
    const T *restrict from = (const T *)p;                                                         \
    for (size_t i = 0; i < count; i++) *(T *)(m + i * (S)) = from[i];                              \
    return;                                                                                        \
  }

static void pack_fixed(const struct nest *n, const char *restrict m, char *restrict p) {
  const size_t count = n->counts[2];
  PATTERNS(PACK_FIXED)
}

static void unpack_fixed(const struct nest *n, const char *restrict p, char *restrict m) {
  const size_t count = n->counts[2];
  PATTERNS(UNPACK_FIXED)
}

#define WITH_BLOCK(way, ...)                                                                       \
  switch (n->block) {                                                                              \
  case 1: way##_1(__VA_ARGS__); break;                                                             \
  case 2: way##_2(__VA_ARGS__); break;                                                             \
  case 4: way##_4(__VA_ARGS__); break;                                                             \
  case 8: way##_8(__VA_ARGS__); break;                                                             \
  case 12: way##_12(__VA_ARGS__); break;                                                           \
  case 16: way##_16(__VA_ARGS__); break;                                                           \
  case 24: way##_24(__VA_ARGS__); break;                                                           \
  case 32: way##_32(__VA_ARGS__); break;                                                           \
  case 40: way##_40(__VA_ARGS__); break;                                                           \
  case 64: way##_64(__VA_ARGS__); break;                                                           \
  default: way##_any(__VA_ARGS__);                                                                 \
  }

static void pack_one(const struct nest *n, const char *restrict m, char *restrict p) {
  const size_t entries = n->entries;
  switch (n->kind) {
  case CHAR_INT_DOUBLE: {
    const struct record *r = (const struct record *)m;
    for (size_t i = 0; i < entries; i++) {
      memcpy(p + 13 * i, &r[i].c, 1);
      memcpy(p + 13 * i + 1, &r[i].i, 4);
      memcpy(p + 13 * i + 5, &r[i].d, 8);
    }
    break;
  }
  case PARTICLE: {
    const struct particle *r = (const struct particle *)m;
    for (size_t i = 0; i < entries; i++) {
      memcpy(p + 52 * i, r[i].x, 24);
      memcpy(p + 52 * i + 24, &r[i].kind, 4);
      memcpy(p + 52 * i + 28, r[i].v, 24);
    }
    break;
  }
  case RUNS:
    for (size_t i = 0; i < entries; i++) {
      memcpy(p, m + n->offsets[i], n->lengths[i]);
      p += n->lengths[i];
    }
    break;
  case FIXED: pack_fixed(n, m, p); break;
  default: WITH_BLOCK(pack, n, n->block, m, p)
  }
}

static void unpack_one(const struct nest *n, const char *restrict p, char *restrict m) {
  const size_t entries = n->entries;
  switch (n->kind) {
  case CHAR_INT_DOUBLE: {
    struct record *r = (struct record *)m;
    for (size_t i = 0; i < entries; i++) {
      memcpy(&r[i].c, p + 13 * i, 1);
      memcpy(&r[i].i, p + 13 * i + 1, 4);
      memcpy(&r[i].d, p + 13 * i + 5, 8);
    }
    break;
  }
  case PARTICLE: {
    struct particle *r = (struct particle *)m;
    for (size_t i = 0; i < entries; i++) {
      memcpy(r[i].x, p + 52 * i, 24);
      memcpy(&r[i].kind, p + 52 * i + 24, 4);
      memcpy(r[i].v, p + 52 * i + 28, 24);
    }
    break;
  }
  case RUNS:
    for (size_t i = 0; i < entries; i++) {
      memcpy(m + n->offsets[i], p, n->lengths[i]);
      p += n->lengths[i];
    }
    break;
  case FIXED: unpack_fixed(n, p, m); break;
  default: WITH_BLOCK(unpack, n, n->block, p, m)
  }
}

void typepack_hand_pack(const struct nest *nests, size_t parts, const char *restrict memory,
                        size_t memory_bytes, char *restrict packed, size_t packed_bytes) {
  (void)memory_bytes, (void)packed_bytes;
  for (size_t i = 0; i < parts; i++)
    pack_one(&nests[i], memory + nests[i].start, packed + nests[i].packed);
}

void typepack_hand_unpack(const struct nest *nests, size_t parts, const char *restrict packed,
                          size_t packed_bytes, char *restrict memory, size_t memory_bytes) {
  (void)memory_bytes, (void)packed_bytes;
  for (size_t i = 0; i < parts; i++)
    unpack_one(&nests[i], packed + nests[i].packed, memory + nests[i].start);
}
