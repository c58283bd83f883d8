/* Tests the content of MPI_INFO_ENV in a job of several programs: `mpiexec -n 1 program : -n 2 program`. */
#include "check.h"

int main(void)
{
    char ranks[16] = "";
    int *number = NULL, flag = 0;
    MPI_Info early;
    /* Before init, MPI_INFO_ENV has fewer keys than afterwards. */
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
