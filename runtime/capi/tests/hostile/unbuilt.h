/* What the calls in unbuilt_calls.c need, which hostile.rs generates: a call of each function that is not built. */
#ifndef UNBUILT_H
#define UNBUILT_H

#include <mpi.h>
#include <string.h>

/* Check a result: the code and the error handler, a number or handle, a string, an array of three or two integers. */
void result(const char *name, int code, int wanted, const char *handler);
void same(const char *name, const void *found, const void *wanted, size_t bytes);
void zero(const char *name, const void *found, size_t bytes);
void text(const char *name, const char *found);
void entries(const char *name, const int found[3], int wanted);

/* The calls; the last entry of each list is null. */
extern void (*const calls[])(int), (*const tools[])(int);

#endif
