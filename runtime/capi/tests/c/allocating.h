/* Counts the allocations of a program. This file defines the functions that allocate, so that the library's calls come
   here. */
#ifndef ALLOCATING_H
#define ALLOCATING_H

#include "condition.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_int counts_allocations, allocations, allocations_seen;

static void count_allocation(void)
{
    atomic_fetch_add(&allocations_seen, 1);
    if (atomic_load(&counts_allocations))
        atomic_fetch_add(&allocations, 1);
}

/* From now on, allocations count. */
static inline void begin_to_count_allocations(void)
{
    atomic_store(&counts_allocations, 1);
}

/* Returns the number of allocations since the last call of begin_to_count_allocations. From now on, allocations do not
   count. */
static inline int end_of_counted_allocations(void)
{
    atomic_store(&counts_allocations, 0);
    return atomic_exchange(&allocations, 0);
}

/* Checks that the library uses the functions of this file. Otherwise a test would prove nothing. */
static inline void check_that_allocations_come_here(void)
{
    CHECK(atomic_load(&allocations_seen) > 0);
}

void *malloc(size_t bytes)
{
    count_allocation();
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    count_allocation();
    return __libc_calloc(number, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count_allocation();
    return __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    count_allocation();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **place, size_t alignment, size_t bytes)
{
    *place = memalign(alignment, bytes);
    return *place ? 0 : ENOMEM;
}

#endif
