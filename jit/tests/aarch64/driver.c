/* Runs emitted kernels and compares their results with those of memcpy along the same nest.
 *
 * main.rs beside this file writes cases.h and runs this program under qemu. Memory and packed
 * bytes lie between guard bytes. The program compares every byte of the memory and of the packed
 * bytes, so a kernel fails if it writes a gap, a byte before the start or a byte past the end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct level { uint64_t count; int64_t step; const void *table; int width; };
struct run { int64_t offset; uint64_t bytes; };
struct test_case {
    const char *name;
    const unsigned char *code[2]; /* pack, unpack */
    size_t code_bytes[2];
    int depth;
    struct level levels[8];
    int runs_len;
    struct run runs[32];
    int is_long; /* the block length is a parameter */
};

/* A case of a fused copy: every level has a source and a destination. */
struct pair_run { int64_t from, to; uint64_t bytes; };
struct pair_case {
    const char *name;
    const unsigned char *code;
    size_t code_bytes;
    int depth;
    struct level levels[5][2];
    int runs_len;
    struct pair_run runs[16];
    int is_long;
};

#include "cases.h"

#define CANARY 4096
enum task { MEASURE, PACK, UNPACK };

/* The state of a walk along the runs of a nest. */
struct walk {
    enum task task;
    int64_t low, high;  /* MEASURE: the touched span, relative to the base */
    uint64_t at;        /* number of packed bytes so far */
    unsigned char *mem; /* the base of the nest */
    unsigned char *packed;
};

static void walk(const struct test_case *c, int l, int64_t offset, struct walk *w) {
    if (l < c->depth) {
        const struct level *level = &c->levels[l];
        for (uint64_t i = 0; i < level->count; i++) {
            int64_t unit = (int64_t)i;
            if (level->width == 4) unit = ((const int32_t *)level->table)[i];
            if (level->width == 8) unit = ((const int64_t *)level->table)[i];
            walk(c, l + 1, offset + unit * level->step, w);
        }
        return;
    }
    for (int r = 0; r < c->runs_len; r++) {
        int64_t start = offset + c->runs[r].offset;
        int64_t end = start + (int64_t)c->runs[r].bytes;
        if (w->task == MEASURE) {
            if (start < w->low) w->low = start;
            if (end > w->high) w->high = end;
        } else if (w->task == PACK) {
            memcpy(w->packed + w->at, w->mem + start, c->runs[r].bytes);
        } else {
            memcpy(w->mem + start, w->packed + w->at, c->runs[r].bytes);
        }
        w->at += c->runs[r].bytes;
    }
}

static void *need(void *p) {
    if (p == NULL || p == MAP_FAILED) {
        perror("memory");
        exit(2);
    }
    return p;
}

static void fill(unsigned char *p, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p[i] = (unsigned char)(seed >> 56);
    }
}

typedef void kernel(const uint64_t *params, void *mem, void *packed);

/* Returns the code in executable pages. */
static void *executable(const unsigned char *bytes, size_t size) {
    size_t pages = (size + 4095) / 4096 * 4096;
    void *code =
        need(mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memcpy(code, bytes, size);
    __builtin___clear_cache((char *)code, (char *)code + pages);
    if (mprotect(code, pages, PROT_READ | PROT_EXEC) != 0) {
        perror("mprotect");
        exit(2);
    }
    return code;
}

static void discard(void *code, size_t size) { munmap(code, (size + 4095) / 4096 * 4096); }

static int run_case(const struct test_case *c, int direction) {
    struct walk w = {.task = MEASURE};
    walk(c, 0, 0, &w);
    size_t mem_bytes = (size_t)(w.high - w.low) + 2 * CANARY;
    size_t packed_bytes = w.at + 2 * CANARY;
    unsigned char *mem[2], *packed[2]; /* the expected bytes, then the actual bytes */
    for (int i = 0; i < 2; i++) {
        fill(mem[i] = need(malloc(mem_bytes)), mem_bytes, 1);
        fill(packed[i] = need(malloc(packed_bytes)), packed_bytes, 2);
    }
    struct walk expected = {
        .task = direction == 0 ? PACK : UNPACK,
        .mem = mem[0] + CANARY - w.low,
        .packed = packed[0] + CANARY,
    };
    walk(c, 0, 0, &expected);

    uint64_t params[25];
    int words = 0;
    for (int l = 0; l < c->depth; l++) {
        const struct level *level = &c->levels[l];
        params[words++] = level->count;
        params[words++] = level->width ? (uint64_t)level->table : (uint64_t)level->step;
        params[words++] = level->width ? (uint64_t)level->step : 0;
    }
    if (c->is_long) params[words++] = c->runs[0].bytes;

    void *code = executable(c->code[direction], c->code_bytes[direction]);
    ((kernel *)code)(params, mem[1] + CANARY - w.low, packed[1] + CANARY);

    int bad = memcmp(mem[0], mem[1], mem_bytes) != 0;
    bad |= (memcmp(packed[0], packed[1], packed_bytes) != 0) << 1;
    if (bad) {
        fprintf(stderr, "%s %s: %s%s differ\n", c->name, direction == 0 ? "pack" : "unpack",
                bad & 1 ? "memory " : "", bad & 2 ? "packed bytes" : "");
    }
    discard(code, c->code_bytes[direction]);
    for (int i = 0; i < 2; i++) {
        free(mem[i]);
        free(packed[i]);
    }
    return bad != 0;
}

/* The state of a walk along both layouts of a pair. */
struct pair_walk {
    int measure;
    int64_t low[2], high[2]; /* touched spans relative to the bases */
    unsigned char *base[2];
};

static int64_t place(const struct level *level, uint64_t i) {
    int64_t unit = (int64_t)i;
    if (level->width == 4) unit = ((const int32_t *)level->table)[i];
    if (level->width == 8) unit = ((const int64_t *)level->table)[i];
    return unit * level->step;
}

static void walk_pair(const struct pair_case *c, int l, int64_t from, int64_t to,
                      struct pair_walk *w) {
    if (l < c->depth) {
        for (uint64_t i = 0; i < c->levels[l][0].count; i++) {
            walk_pair(c, l + 1, from + place(&c->levels[l][0], i),
                      to + place(&c->levels[l][1], i), w);
        }
        return;
    }
    for (int r = 0; r < c->runs_len; r++) {
        int64_t at[2] = {from + c->runs[r].from, to + c->runs[r].to};
        uint64_t bytes = c->runs[r].bytes;
        for (int side = 0; w->measure && side < 2; side++) {
            int64_t end = at[side] + (int64_t)bytes;
            if (at[side] < w->low[side]) w->low[side] = at[side];
            if (end > w->high[side]) w->high[side] = end;
        }
        if (!w->measure) memcpy(w->base[1] + at[1], w->base[0] + at[0], bytes);
    }
}

static int run_pair(const struct pair_case *c) {
    struct pair_walk w = {.measure = 1};
    walk_pair(c, 0, 0, 0, &w);
    size_t bytes[2];
    unsigned char *memory[2][2]; /* [expected, actual][source, destination] */
    for (int side = 0; side < 2; side++) {
        bytes[side] = (size_t)(w.high[side] - w.low[side]) + 2 * CANARY;
        for (int i = 0; i < 2; i++) {
            fill(memory[i][side] = need(malloc(bytes[side])), bytes[side], 3 + (uint64_t)side);
        }
    }
    struct pair_walk expected = {
        .base = {memory[0][0] + CANARY - w.low[0], memory[0][1] + CANARY - w.low[1]},
    };
    walk_pair(c, 0, 0, 0, &expected);

    uint64_t params[26];
    int words = 0;
    for (int l = 0; l < c->depth; l++) {
        params[words++] = c->levels[l][0].count;
        for (int side = 0; side < 2; side++) {
            const struct level *level = &c->levels[l][side];
            params[words++] = level->width ? (uint64_t)level->table : (uint64_t)level->step;
            params[words++] = level->width ? (uint64_t)level->step : 0;
        }
    }
    if (c->is_long) params[words++] = c->runs[0].bytes;

    void *code = executable(c->code, c->code_bytes);
    ((kernel *)code)(params, memory[1][0] + CANARY - w.low[0], memory[1][1] + CANARY - w.low[1]);
    discard(code, c->code_bytes);
    int bad = 0;
    for (int side = 0; side < 2; side++) {
        if (memcmp(memory[0][side], memory[1][side], bytes[side]) != 0) {
            fprintf(stderr, "%s: %s differs\n", c->name, side ? "destination" : "source");
            bad = 1;
        }
        free(memory[0][side]);
        free(memory[1][side]);
    }
    return bad;
}

int main(void) {
    int bad = 0, run = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int direction = 0; direction < 2; direction++, run++) {
            bad += run_case(&cases[i], direction);
        }
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++, run++) {
        bad += run_pair(&pairs[i]);
    }
    if (bad == 0) printf("%d kernels agree\n", run);
    return bad != 0;
}
