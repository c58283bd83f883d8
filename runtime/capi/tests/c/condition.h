/* One check, for programs that are not linked with the library too: a line on standard error and exit
   code 1. check.h has those that ask the library what a code means. */
#ifndef CONDITION_H
#define CONDITION_H

#include <stdio.h>
#include <stdlib.h>

/* The condition holds. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);      \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#endif
