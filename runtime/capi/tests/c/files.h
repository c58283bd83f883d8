/* Functions that the programs about files share: a name that all ranks agree on, and reading without MPI. */
#ifndef FILES_H
#define FILES_H

#include "messages.h"

#include <unistd.h>

/* Writes the name of a file for this job: in the folder for temporary files, with the number of rank 0's
   process. */
static inline void file_name(char name[256], const char *what)
{
    const char *folder = getenv("TMPDIR");
    int pid = (int)getpid();
    OK(MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, 256, "%s/typepack-%s-%d", folder ? folder : "/tmp", what, pid);
}

/* Reads a file with calls of C. Returns its length. */
static inline size_t read_file(const char *name, unsigned char *bytes, size_t most)
{
    FILE *file = fopen(name, "rb");
    CHECK(file != NULL);
    size_t length = fread(bytes, 1, most, file);
    CHECK(length < most && fclose(file) == 0);
    return length;
}

#endif
