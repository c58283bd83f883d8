/* What the C++ programs in this directory share. They are C++98, and MPI's errors are exceptions in them. */
#ifndef CXX_CHECK_H
#define CXX_CHECK_H

#include "../c/condition.h"

#include <mpi.h>
#include <string.h>

/* Checks that the statement throws an exception of the error class. */
#define THROWS(wanted, statement)                          \
    do {                                                   \
        int class_ = MPI::SUCCESS;                         \
        try {                                              \
            statement;                                     \
        } catch (const MPI::Exception &exception) {        \
            class_ = exception.Get_error_class();          \
            CHECK(exception.Get_error_string()[0] != 0);   \
        }                                                  \
        CHECK(class_ == (wanted));                         \
    } while (0)

/* Starts MPI; errors of the world and of files are exceptions from now on. */
inline void start(int &argc, char **&argv)
{
    CHECK(!MPI::Is_initialized() && !MPI::Is_finalized());
    MPI::Init(argc, argv);
    MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    MPI::COMM_SELF.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    MPI::FILE_NULL.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
}

inline int stop()
{
    MPI::Finalize();
    CHECK(MPI::Is_finalized());
    return 0;
}

#endif
