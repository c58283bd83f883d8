/* Calls that are made while allocations fail: what failing_memory.c and failing_pairs.c have in common. */
#ifndef FAILING_H
#define FAILING_H

#include "allocating.h"
#include "check.h"

#include <limits.h>

/* The first and the last allocation of a call that fail, counted from 0, and how many have failed. */
static int first, last, failed;

/* Whether the calls before have used up what the library lets them have of its reserve. */
static int used_up;

/* Makes a call while allocations fail, and returns its code. */
#define TRY(call)                                        \
    do {                                                 \
        fail_allocations(first, last);                   \
        int code_ = (call);                              \
        failed += end_of_failing_allocations();          \
        if (code_)                                       \
            return code_;                                \
    } while (0)

/* Like TRY, with what has to be done if the call fails. */
#define TRY_OR(call, undo)                               \
    do {                                                 \
        fail_allocations(first, last);                   \
        int code_ = (call);                              \
        failed += end_of_failing_allocations();          \
        if (code_) {                                     \
            undo;                                        \
            return code_;                                \
        }                                                \
    } while (0)

/* A kind of calls. The function returns the code of the call that has failed, or 0. */
struct kind {
    const char *name;
    int (*call)(void);
};

#define KIND(name) {#name, name}

/* Makes the calls of a kind. Returns whether they fail. */
static int fails(const struct kind *kind)
{
    failed = 0;
    int code = kind->call(), class = MPI_SUCCESS;
    if (code)
        OK(MPI_Error_class(code, &class));
    if (class != MPI_SUCCESS && class != MPI_ERR_NO_MEM) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        OK(MPI_Error_string(code, text, &length));
        fprintf(stderr, "%s, allocations %d to %d: %s\n", kind->name, first, last, text);
        exit(1);
    }
    return class != MPI_SUCCESS;
}

/* Calls `make` with the number of each kind whose name contains `only`: for every n the n-th allocation fails, then the
   n-th and all that follow. Without `every`, only the n up to 12 and every seventh after that. */
static void each_allocation(const struct kind *kinds, int count, const char *only, int every, void (*make)(int kind))
{
    for (int kind = 0; kind < count; kind++) {
        if (!strstr(kinds[kind].name, only))
            continue;
        for (int all = 0; all < 2; all++) {
            int at = 0;
            do {
                first = at, last = all ? INT_MAX : at;
                make(kind);
                at += every || at < 12 ? 1 : 7;
            } while (failed);
        }
    }
}

/* Makes calls that keep memory of the library's reserve, until one is refused. Returns how many there were. */
static int use_up(MPI_Info eaten)
{
    static int key;
    char name[32], value[400];
    int count = 0, code = MPI_SUCCESS;
    memset(value, 'x', sizeof value - 1), value[sizeof value - 1] = 0;
    fail_allocations(0, INT_MAX);
    for (; !code && count < 200000; count++) {
        snprintf(name, sizeof name, "key%d", key++);
        code = MPI_Info_set(eaten, name, value);
    }
    end_of_failing_allocations();
    CHECK(code == MPI_ERR_NO_MEM);
    return count;
}

/* Calls `make` with the number of each kind whose name contains `only`, while all allocations fail and the calls before
   have used up the reserve. Calls that free objects still work then. */
static void each_without_reserve(const struct kind *kinds, int count, const char *only, void (*make)(int kind))
{
    MPI_Info eaten;
    OK(MPI_Info_create(&eaten));
    CHECK(use_up(eaten) > 100);
    used_up = 1;
    for (int kind = 0; kind < count; kind++) {
        if (!strstr(kinds[kind].name, only))
            continue;
        /* The calls before had memory, and have given a little back to the reserve. */
        use_up(eaten);
        first = 0, last = INT_MAX;
        make(kind);
    }
    used_up = 0;
    fail_allocations(0, INT_MAX);
    CHECK(MPI_Info_free(&eaten) == MPI_SUCCESS);
    CHECK(MPI_Info_create(&eaten) == MPI_SUCCESS);
    CHECK(MPI_Info_free(&eaten) == MPI_SUCCESS);
    end_of_failing_allocations();
}

#endif
