/* Tests the calls with which a Fortran layer sets the properties of a Fortran compiler. Each property can
   be set only once. */
#include "check.h"

static int has(MPI_Info info, const char *key, const char *value)
{
    char text[64];
    int flag = 0;
    OK(MPI_Info_get(info, key, 63, text, &flag));
    return value ? flag && !strcmp(text, value) : !flag;
}

int main(void)
{
    MPI_Info info, got = MPI_INFO_ENV;
    int set = -1, n = -1;
    long long yes = 1, no = 0, y = 7, f = 7;

    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Abi_get_fortran_info(&got));
    CHECK(got == MPI_INFO_NULL);
    OK(MPI_Abi_get_fortran_booleans(8, &y, &f, &set));
    CHECK(!set && y == 7 && f == 7);

    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_integer_size", "four"));
    RAISES(MPI_ERR_INFO_VALUE, MPI_Abi_set_fortran_info(info));
    /* The datatypes have fixed sizes, so the library refuses any other size. */
    OK(MPI_Info_set(info, "mpi_integer_size", "8"));
    RAISES(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_set(info, "mpi_integer_size", "4"));
    OK(MPI_Info_set(info, "mpi_double_precision_size", "8"));
    OK(MPI_Info_set(info, "mpi_real2_supported", "maybe"));
    RAISES(MPI_ERR_INFO_VALUE, MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_set(info, "mpi_real2_supported", "false"));
    OK(MPI_Info_set(info, "mpi_real16_supported", "true"));
    OK(MPI_Info_set(info, "somebody's own", "key"));
    RAISES(MPI_ERR_INFO, MPI_Abi_set_fortran_info(MPI_INFO_NULL));
    OK(MPI_Abi_set_fortran_info(info));
    RAISES(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_free(&info));
    /* Each call returns a new object with the entries that the library knows. */
    OK(MPI_Abi_get_fortran_info(&got));
    OK(MPI_Info_get_nkeys(got, &n));
    CHECK(n == 4 && has(got, "mpi_integer_size", "4") && has(got, "mpi_real2_supported", "false"));
    CHECK(has(got, "mpi_real16_supported", "true") && has(got, "somebody's own", NULL));
    OK(MPI_Info_free(&got));

    RAISES(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(3, &yes, &no));
    RAISES(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(8, NULL, &no));
    RAISES(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(8, &yes, &yes));
    OK(MPI_Abi_set_fortran_booleans(8, &yes, &no));
    RAISES(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(8, &yes, &no));
    OK(MPI_Abi_get_fortran_booleans(8, &y, &f, &set));
    CHECK(set == 1 && y == 1 && f == 0);
    RAISES(MPI_ERR_ARG, MPI_Abi_get_fortran_booleans(4, &y, &f, &set));
    RAISES(MPI_ERR_ARG, MPI_Abi_get_fortran_booleans(8, NULL, &f, &set));
    OK(MPI_Finalize());
    return 0;
}
