/* How a kind writes its argument: areas of memory, wrong values with their labels and error classes, and the macros that
   define kinds of numbers and of arrays. kinds.c uses this file. */
#ifndef WRITING_H
#define WRITING_H

#include "hostile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static unsigned char *area(call *call, int at)
{
    call->words[at] = (word)call->areas[at];
    return call->areas[at];
}

/* Writes a wrong value as argument `at`, with its label and its one or two error classes. Returns 1. */
static int wrong(call *call, int at, word value, const char *label, int class, int other)
{
    call->words[at] = value;
    call->label = label;
    call->classes[0] = class;
    call->classes[1] = other;
    call->classes[2] = 0;
    return 1;
}

/* Writes an integer of the argument's width as entry `index` of the argument's area. */
static void element(call *call, int at, int index, long long value)
{
    unsigned char *target = area(call, at);
    int narrow = (int)value;
    if (call->row->arguments[at].bytes == sizeof narrow)
        memcpy(target + index * sizeof narrow, &narrow, sizeof narrow);
    else
        memcpy(target + index * sizeof value, &value, sizeof value);
}

static int is_wide(const call *call, int at) { return call->row->arguments[at].bytes == 8; }

/* Writes one of several values that are wrong for the same reason; `variant` selects it. Values that do
   not fit in the C type of the argument are skipped. Returns 0 if there is no such value. */
static int wrong_number(call *call, int at, int variant, const long long *values, int class,
                        int other)
{
    static char label[64];
    for (; *values != 0x5eed; values++) {
        int fits = *values >= INT_MIN && *values <= INT_MAX;
        if (!fits && !is_wide(call, at)) continue;
        if (--variant > 0) continue;
        snprintf(label, sizeof label, "%lld", *values);
        return wrong(call, at, (word)*values, label, class, other);
    }
    return 0;
}
#define WRONG_NUMBER(class, other, ...) \
    wrong_number(call, at, variant, (const long long[]){__VA_ARGS__, 0x5eed}, class, other)

/* Writes an array that is null (variant 1), or whose first entry is wrong (the other variants). Returns 0
   if there is no such variant. */
static int wrong_array(call *call, int at, int variant, const long long *values, int class,
                       int other)
{
    static char label[64];
    if (variant == 1) return wrong(call, at, 0, "null pointer", MPI_ERR_ARG, 0);
    variant--;
    for (; *values != 0x5eed; values++) {
        int fits = *values >= INT_MIN && *values <= INT_MAX;
        if (!fits && !is_wide(call, at)) continue;
        if (--variant > 0) continue;
        element(call, at, 0, *values);
        snprintf(label, sizeof label, "an entry is %lld", *values);
        return wrong(call, at, call->words[at], label, class, other);
    }
    return 0;
}
#define WRONG_ARRAY(class, other, ...) \
    wrong_array(call, at, variant, (const long long[]){__VA_ARGS__, 0x5eed}, class, other)

#define KIND(name) int kind_##name(call *call, int at, int variant)
#define NUMBER(name, valid, class, other, ...)             \
    KIND(name)                                             \
    {                                                      \
        call->words[at] = (word)(valid);                   \
        return variant == 0 || WRONG_NUMBER(class, other, __VA_ARGS__); \
    }
#define ARRAY(name, valid, class, other, ...)              \
    KIND(name)                                             \
    {                                                      \
        element(call, at, 0, valid);                       \
        element(call, at, 1, valid);                       \
        return variant == 0 || WRONG_ARRAY(class, other, __VA_ARGS__); \
    }

#endif
