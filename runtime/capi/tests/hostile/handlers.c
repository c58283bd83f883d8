/* Error handlers that record on which object a call has called them. */
#include "hostile.h"

#include <string.h>

enum { SELF, WORLD, OTHER_COMM, FILE_NULL, OTHER_FILE, OBJECTS };

static int times[OBJECTS], last_code;

static void on_comm(MPI_Comm *comm, int *code, ...)
{
    times[*comm == MPI_COMM_SELF ? SELF : *comm == MPI_COMM_WORLD ? WORLD : OTHER_COMM]++;
    last_code = *code;
}

static void on_file(MPI_File *file, int *code, ...)
{
    times[*file == MPI_FILE_NULL ? FILE_NULL : OTHER_FILE]++;
    last_code = *code;
}

void set_handlers(void)
{
    MPI_Errhandler comm, file;
    MPI_Comm_create_errhandler(on_comm, &comm);
    MPI_File_create_errhandler(on_file, &file);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, comm);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, comm);
    MPI_File_set_errhandler(MPI_FILE_NULL, file);
    MPI_Errhandler_free(&comm);
    MPI_Errhandler_free(&file);
}

void forget_handlers(void)
{
    memset(times, 0, sizeof times);
    last_code = MPI_SUCCESS;
}

const char *wrong_handler(const char *wanted, int code)
{
    int all = 0;
    for (int i = 0; i < OBJECTS; i++) all += times[i];
    int self = times[SELF], comms = self + times[WORLD] + times[OTHER_COMM];
    /* The argument of the calls that have one is MPI_ERRORS_RETURN, which nobody hears. */
    if (strcmp(wanted, "argument") == 0) return all == self && self <= 1 ? NULL : "not the handler of the argument";
    if (all != 1) return all == 0 ? "no error handler was called" : "several error handlers were called";
    if (last_code != code) return "the error handler got another code";
    if (strcmp(wanted, "MPI_COMM_SELF") == 0) return self ? NULL : "not the handler of MPI_COMM_SELF";
    if (strcmp(wanted, "MPI_FILE_NULL") == 0) return times[FILE_NULL] ? NULL : "not the handler of MPI_FILE_NULL";
    return comms ? NULL : "not the handler of a communicator";
}
