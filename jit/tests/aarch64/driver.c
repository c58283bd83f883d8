/* Runs emitted kernels and compares them with memcpy along the same nest.
 *
 * main.rs beside this file writes cases.h and runs this program under qemu. Memory and packed
 * bytes lie between canaries; every byte of both is compared, so a kernel that touches a gap, a
 * neighbour or the byte past the end fails. */
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

#include "cases.h"

#define CANARY 4096
enum task { MEASURE, PACK, UNPACK };

/* State of a walk along a nest. */
struct walk {
    enum task task;
    int64_t low, high;  /* MEASURE: touched span relative to the base */
    uint64_t at;        /* packed bytes so far */
    unsigned char *mem; /* the base */
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

static int run_case(const struct test_case *c, int direction) {
    struct walk w = {.task = MEASURE};
    walk(c, 0, 0, &w);
    size_t mem_bytes = (size_t)(w.high - w.low) + 2 * CANARY;
    size_t packed_bytes = w.at + 2 * CANARY;
    unsigned char *mem[2], *packed[2]; /* expected, actual */
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

    size_t size = (c->code_bytes[direction] + 4095) / 4096 * 4096;
    void *code =
        need(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memcpy(code, c->code[direction], c->code_bytes[direction]);
    __builtin___clear_cache((char *)code, (char *)code + size);
    if (mprotect(code, size, PROT_READ | PROT_EXEC) != 0) {
        perror("mprotect");
        exit(2);
    }
    ((kernel *)code)(params, mem[1] + CANARY - w.low, packed[1] + CANARY);

    int bad = memcmp(mem[0], mem[1], mem_bytes) != 0;
    bad |= (memcmp(packed[0], packed[1], packed_bytes) != 0) << 1;
    if (bad) {
        fprintf(stderr, "%s %s: %s%s differ\n", c->name, direction == 0 ? "pack" : "unpack",
                bad & 1 ? "memory " : "", bad & 2 ? "packed bytes" : "");
    }
    munmap(code, size);
    for (int i = 0; i < 2; i++) {
        free(mem[i]);
        free(packed[i]);
    }
    return bad != 0;
}

int main(void) {
    int bad = 0, run = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int direction = 0; direction < 2; direction++, run++) {
            bad += run_case(&cases[i], direction);
        }
    }
    if (bad == 0) printf("%d kernels agree\n", run);
    return bad != 0;
}
