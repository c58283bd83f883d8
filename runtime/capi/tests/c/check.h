/* The checks that the programs in this directory use. If a check fails, the program prints a line on
   standard error and exits with code 1. */
#ifndef CHECK_H
#define CHECK_H

#include "condition.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks that the call succeeds. */
#define OK(call) RAISES(MPI_SUCCESS, call)

/* Checks that the call returns an error code of the class `wanted`. The error handler of the call's object
   must be one that returns. */
#define RAISES(wanted, call)                                                              \
    do {                                                                                  \
        int code_ = (call), class_ = -1;                                                  \
        MPI_Error_class(code_, &class_);                                                  \
        if (class_ != (wanted)) {                                                         \
            char text_[MPI_MAX_ERROR_STRING] = "";                                        \
            int length_ = 0;                                                              \
            MPI_Error_string(code_, text_, &length_);                                     \
            fprintf(stderr, "%s:%d: %s, not %s: %s\n", __FILE__, __LINE__, text_, #wanted, \
                    #call);                                                               \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* From now on, calls that fail without an object and calls that fail on MPI_COMM_WORLD return their error
   code. */
static inline void errors_return(void)
{
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

#endif
