/* The check that needs no MPI call, so that programs that are not linked with the library can use it too.
   If the check fails, the program prints a line on standard error and exits with code 1. check.h has the
   checks of error codes, which call the library. */
#ifndef CONDITION_H
#define CONDITION_H

#include <stdio.h>
#include <stdlib.h>

/* Checks that the condition holds. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);      \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#endif
