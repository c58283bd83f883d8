/* What MPI_INFO_ENV says of a program among several: `mpiexec -n 1 program : -n 2 program`. */
#include "check.h"

int main(void)
{
    char ranks[16] = "";
    int *number = NULL, flag = 0;
    MPI_Info early;
    /* What is asked before init is not what is known afterwards. */
    OK(MPI_Info_create_env(0, NULL, &early));
    OK(MPI_Info_free(&early));
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    CHECK(flag && (*number == 0 || *number == 1));
    OK(MPI_Info_get(MPI_INFO_ENV, "maxprocs", 15, ranks, &flag));
    CHECK(flag && !strcmp(ranks, *number == 0 ? "1" : "2"));
    OK(MPI_Finalize());
    return 0;
}
