/* Calls that are made while allocations fail: what failing_memory.c and failing_pairs.c have in common. */
#ifndef FAILING_H
#define FAILING_H

#include "allocating.h"
#include "check.h"

#include <limits.h>

/* The first and the last allocation of a call that fail, counted from 0, and how many have failed. */
static int first, last, failed;

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

#endif
