/* Checks of the programs in this directory: a line on standard error and exit code 1. */
#ifndef CHECK_H
#define CHECK_H

#include "condition.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The call succeeds. */
#define OK(call) RAISES(MPI_SUCCESS, call)

/* The call returns a code of this class. The object's handler must return. */
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

/* Errors without an object, and those of the world, are returned from now on. */
static inline void errors_return(void)
{
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

#endif
