/* Calls every function that is not built. Each must fail as an unbuilt function does, through the error handler of
   handlers.csv, and set all its outputs. */
#include "hostile.h"
#include "unbuilt.h"

#include <stdio.h>

static int failures;

static void complain(const char *name, const char *what)
{
    fprintf(stderr, "%s: %s\n", name, what);
    failures++;
}

void result(const char *name, int code, int wanted, const char *handler)
{
    if (code != wanted) complain(name, "another code is expected");
    const char *wrong = handler ? wrong_handler(handler, code) : NULL;
    if (wrong != NULL) complain(name, wrong);
}

void same(const char *name, const void *found, const void *wanted, size_t bytes)
{
    if (memcmp(found, wanted, bytes) != 0) complain(name, "an output is not null");
}

void zero(const char *name, const void *found, size_t bytes)
{
    same(name, found, (char[16]){0}, bytes);
}

void text(const char *name, const char *found)
{
    if (found[0] != 0 || found[1] != 'x') complain(name, "a string is not empty");
}

void entries(const char *name, const int found[3], int wanted)
{
    for (int i = 0; i < 3; i++)
        if (found[i] != wanted) complain(name, "an entry of an array is wrong");
}

int main(void)
{
    int provided, number = 0;
    for (int i = 0; tools[i] != NULL; i++, number++) tools[i](MPI_T_ERR_NOT_INITIALIZED);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int i = 0; tools[i] != NULL; i++) tools[i](MPI_T_ERR_NOT_SUPPORTED);
    MPI_Init(NULL, NULL);
    set_handlers();
    for (int i = 0; calls[i] != NULL; i++, number++) calls[i](MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Finalize();
    MPI_T_finalize();
    printf("%d functions, %d failures\n", number, failures);
    return failures != 0 || number == 0;
}
