/* What campaign.c and campaign_neighbors.c share: random numbers, layouts, buffers, the three forms of a call, and the
   rounds. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include "check.h"

#include <pthread.h>
#include <stdint.h>

enum { RANKS = 64, OUTSTANDING = 8, ROUNDS = 120, GUARD = 96, FILLER = 0xa5 };

static _Thread_local int rank, size;
static _Thread_local MPI_Comm comm;
static _Thread_local uint64_t round_seed;

/* ---- random numbers ---- */

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline unsigned below(uint64_t *state, unsigned bound)
{
    *state += 0x9e3779b97f4a7c15u;
    return (unsigned)(mix(*state) % bound);
}

/* ---- layouts: elements of one or two words, with gaps, in any order, with negative lower bounds ---- */

struct layout {
    int words;
    long extent, at[2];
    MPI_Datatype type;
};

enum { LAYOUTS = 8, SINGLES = 4 };

static struct layout layouts[LAYOUTS] = {
    {1, 8, {0}, 0}, {1, 24, {0}, 0}, {1, 32, {-16}, 0}, {1, 16, {8}, 0},
    {2, 16, {0, 8}, 0}, {2, 40, {24, 0}, 0}, {2, 48, {-24, 8}, 0}, {2, 24, {-8, 0}, 0},
};

static inline void make_layouts(void)
{
    layouts[0].type = MPI_INT64_T;
    for (int i = 1; i < LAYOUTS; i++) {
        struct layout *l = &layouts[i];
        MPI_Aint at[2] = {l->at[0], l->at[1]}, low = at[0] < at[1] || l->words == 1 ? at[0] : at[1];
        MPI_Datatype words;
        OK(MPI_Type_create_hindexed_block(l->words, 1, at, MPI_INT64_T, &words));
        OK(MPI_Type_create_resized(words, low < 0 ? low : 0, l->extent, &l->type));
        OK(MPI_Type_free(&words));
        OK(MPI_Type_commit(&l->type));
    }
}

/* ---- buffers ---- */

/* A buffer with a guard before and after its elements: its content now, before the call, and as the call must leave it.
   The file that includes this one says which elements have which layout. */
struct buffer {
    const struct layout *layout;
    size_t bytes;
    char *now, *first, *expected;
};

static inline void allocate_bytes(struct buffer *b, size_t bytes)
{
    b->bytes = 2 * GUARD + bytes;
    b->now = malloc(b->bytes), b->first = malloc(b->bytes), b->expected = malloc(b->bytes);
    CHECK(b->now && b->first && b->expected);
    memset(b->first, FILLER, b->bytes);
}

static inline void release(struct buffer *b)
{
    free(b->now), free(b->first), free(b->expected);
}

/* Returns the place of the first byte that differs from the expected one, or -1. */
static inline long difference(const struct buffer *b)
{
    size_t at = 0;
    if (memcmp(b->now, b->expected, b->bytes) == 0) return -1;
    while (b->now[at] == b->expected[at]) at++;
    return (long)at;
}

/* ---- the forms of a call ---- */

enum form { RUN, START, PREPARE, FORMS };

/* Makes a call in one of its forms, with or without large counts. `c->request` gets the request. */
#define LIST(...) __VA_ARGS__
#define ANY(form, wide, run, start, narrow_list, wide_list)                                          \
    switch ((form)*2 + (wide)) {                                                                     \
    case RUN * 2: OK(MPI_##run(LIST narrow_list, comm)); break;                                      \
    case RUN * 2 + 1: OK(MPI_##run##_c(LIST wide_list, comm)); break;                                \
    case START * 2: OK(MPI_I##start(LIST narrow_list, comm, &c->request)); break;                    \
    case START * 2 + 1: OK(MPI_I##start##_c(LIST wide_list, comm, &c->request)); break;              \
    case PREPARE * 2: OK(MPI_##run##_init(LIST narrow_list, comm, MPI_INFO_NULL, &c->request)); break; \
    default: OK(MPI_##run##_init_c(LIST wide_list, comm, MPI_INFO_NULL, &c->request));               \
    }
#define MAKE(run, start, ...) ANY(c->form, c->wide, run, start, (__VA_ARGS__), (__VA_ARGS__))

/* ---- the rounds ---- */

/* Completes those of the requests that are not null, in an order that differs from rank to rank. */
static inline void complete(MPI_Request *const *all, int number, uint64_t *own)
{
    int left = 0;
    MPI_Request *pending[OUTSTANDING];
    for (int i = 0; i < number; i++)
        if (*all[i] != MPI_REQUEST_NULL) pending[left++] = all[i];
    if (below(own, 4) == 0) {
        MPI_Request requests[OUTSTANDING];
        for (int i = 0; i < left; i++) requests[i] = *pending[i];
        OK(MPI_Waitall(left, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < left; i++) *pending[i] = requests[i];
        return;
    }
    while (left > 0) {
        int at = (int)below(own, (unsigned)left), flag = 1;
        if (below(own, 3) == 0) OK(MPI_Wait(pending[at], MPI_STATUS_IGNORE));
        else OK(MPI_Test(pending[at], &flag, MPI_STATUS_IGNORE));
        if (flag) pending[at] = pending[--left];
    }
}

/* What a thread works on: a duplicate of the world, the first seed, the time to run (none: a fixed number of rounds),
   and the number of rounds that it has made. */
struct work {
    void (*make_round)(MPI_Comm world, uint64_t *shared, uint64_t *own);
    MPI_Comm world;
    uint64_t seed;
    const char *seconds;
    long rounds, done;
};

static inline void *campaign(void *address)
{
    struct work *work = address;
    MPI_Comm world = work->world;
    int world_rank;
    MPI_Comm_rank(world, &world_rank);
    double end = MPI_Wtime() + (work->seconds ? strtod(work->seconds, NULL) : 0);
    uint64_t seed = work->seed;
    for (int more = 1; more; seed++, work->done++) {
        round_seed = seed;
        uint64_t shared = mix(seed), own = mix(seed) + (uint64_t)world_rank + 1;
        work->make_round(world, &shared, &own);
        more = work->seconds ? MPI_Wtime() < end : work->done + 1 < work->rounds;
        if (work->seconds && work->done % 16 == 15) {
            OK(MPI_Bcast(&more, 1, MPI_INT, 0, world));
        } else if (work->seconds) {
            more = 1;
        }
    }
    return NULL;
}

/* Makes rounds in all threads, and prints how many if CAMPAIGN_SECONDS is set. `prepare` runs once after MPI_Init. */
static inline int run_campaign(const char *name, void (*prepare)(void),
                               void (*make_round)(MPI_Comm world, uint64_t *shared, uint64_t *own))
{
    enum { THREADS = 8 };
    const char *seconds = getenv("CAMPAIGN_SECONDS"), *first = getenv("CAMPAIGN_SEED"), *many = getenv("CAMPAIGN_THREADS");
    int world_rank, world_size, threads = many ? atoi(many) : 1, provided;
    CHECK(threads >= 1 && threads <= THREADS);
    OK(MPI_Init_thread(NULL, NULL, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    CHECK(world_size <= RANKS);
    make_layouts();
    if (prepare) prepare();
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
    struct work work[THREADS];
    pthread_t others[THREADS];
    for (int t = 0; t < threads; t++) {
        struct work mine = {make_round, MPI_COMM_WORLD, seed + (uint64_t)t * 100000, seconds, ROUNDS / threads + 1, 0};
        work[t] = mine;
        if (t > 0) OK(MPI_Comm_dup(MPI_COMM_WORLD, &work[t].world));
    }
    for (int t = 1; t < threads; t++) CHECK(pthread_create(&others[t], NULL, campaign, &work[t]) == 0);
    campaign(&work[0]);
    long done = work[0].done;
    for (int t = 1; t < threads; t++) {
        CHECK(pthread_join(others[t], NULL) == 0);
        done += work[t].done;
        OK(MPI_Comm_free(&work[t].world));
    }
    if (world_rank == 0 && seconds)
        printf("%s: %d ranks, %d threads: %ld rounds, seeds from %llu\n", name, world_size, threads, done,
               (unsigned long long)seed);
    OK(MPI_Finalize());
    return 0;
}

#endif
