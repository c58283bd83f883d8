/* A program without MPI that loads a library with MPI privately (without RTLD_GLOBAL), as Python loads its extension
 * modules.
 *
 *     ./private ./libprivate.so
 *
 * With -DLIBRARY, this file is that library.
 */
#include <stdio.h>

#ifdef LIBRARY

#include <mpi.h>

int work(void)
{
    MPI_Datatype column;
    int memory[20], back[20], count = 0, wrong = 0;
    MPI_Status status;
    MPI_Init(NULL, NULL);
    MPI_Type_vector(10, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 20; i++) {
        memory[i] = i;
        back[i] = -1;
    }
    MPI_Sendrecv(memory, 1, column, 0, 0, back, 1, column, 0, 0, MPI_COMM_SELF, &status);
    MPI_Get_count(&status, column, &count);
    for (int i = 0; i < 20; i++) wrong += back[i] != (i % 2 ? -1 : i);
    MPI_Type_free(&column);
    MPI_Finalize();
    printf("count %d, wrong %d\n", count, wrong);
    return wrong != 0 || count != 1;
}

#else

#include <dlfcn.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*work)(void) = library ? (int (*)(void))dlsym(library, "work") : NULL;
    if (!work) {
        fprintf(stderr, "private: %s\n", argc == 2 ? dlerror() : "usage: private LIBRARY");
        return 2;
    }
    return work();
}

#endif
