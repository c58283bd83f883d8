/* Tests the content of MPI_INFO_ENV in a job of several programs: `mpiexec -n 1 program : -n 2 program`, and that
   MPI_Info_create_env makes the same content before init, after init, and after finalize. */
#include "check.h"

int main(void)
{
    char ranks[16] = "", before[16] = "", after[16] = "";
    int *number = NULL, flag = 0;
    MPI_Info early;
    OK(MPI_Info_create_env(0, NULL, &early));
    OK(MPI_Info_get(early, "maxprocs", 15, before, &flag));
    CHECK(flag);
    OK(MPI_Info_free(&early));
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    CHECK(flag && (*number == 0 || *number == 1));
    OK(MPI_Info_get(MPI_INFO_ENV, "maxprocs", 15, ranks, &flag));
    CHECK(flag && !strcmp(ranks, *number == 0 ? "1" : "2"));
    CHECK(!strcmp(ranks, before));
    OK(MPI_Finalize());
    OK(MPI_Info_create_env(0, NULL, &early));
    OK(MPI_Info_get(early, "maxprocs", 15, after, &flag));
    CHECK(flag && !strcmp(ranks, after));
    OK(MPI_Info_free(&early));
    return 0;
}
