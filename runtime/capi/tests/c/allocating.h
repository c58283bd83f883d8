/* Counts the allocations of a program, and lets them fail. This file defines the functions that allocate, so that the
   library's calls come here. */
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

/* The allocations that fail: those of the thread that has called fail_allocations, with a number from first_failing to
   last_failing, counted from that call on. A thread that the library starts has memory: the system's library ends the
   process if a new thread has none for its first thread-local variable. */
static atomic_int tried, failed_allocations;
static int first_failing, last_failing;
static __thread int fails_here;

/* Counts an allocation. Returns whether it must fail. */
static int count_allocation(void)
{
    atomic_fetch_add(&allocations_seen, 1);
    if (atomic_load(&counts_allocations))
        atomic_fetch_add(&allocations, 1);
    if (!fails_here)
        return 0;
    int number = atomic_fetch_add(&tried, 1);
    if (number < first_failing || number > last_failing)
        return 0;
    atomic_fetch_add(&failed_allocations, 1);
    errno = ENOMEM;
    return 1;
}

/* From now on, this thread's allocations with the numbers from `first` to `last` fail. The next one has the number 0. */
static inline void fail_allocations(int first, int last)
{
    first_failing = first, last_failing = last;
    atomic_store(&tried, 0);
    atomic_store(&failed_allocations, 0);
    fails_here = 1;
}

/* From now on, no allocation fails. Returns how many have failed. */
static inline int end_of_failing_allocations(void)
{
    fails_here = 0;
    return atomic_load(&failed_allocations);
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
    return count_allocation() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    return count_allocation() ? NULL : __libc_calloc(number, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return count_allocation() ? NULL : __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return count_allocation() ? NULL : __libc_memalign(alignment, bytes);
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
