/* The C side of attributes.f90. C's attributes are pointers. */
#include <mpi.h>
#include <stddef.h>

static int place = 5;

/* The pointer that C sets, as a number. */
MPI_Aint c_pointer(void)
{
    MPI_Aint address;
    MPI_Get_address(&place, &address);
    return address;
}

static void *get(int kind, MPI_Fint object, int keyval)
{
    void *value = NULL;
    int flag = 0;

    switch (kind) {
    case 0: MPI_Comm_get_attr(MPI_Comm_f2c(object), keyval, &value, &flag); break;
    case 1: MPI_Type_get_attr(MPI_Type_f2c(object), keyval, &value, &flag); break;
    default: MPI_Win_get_attr(MPI_Win_f2c(object), keyval, &value, &flag); break;
    }
    return flag ? value : NULL;
}

void c_set(int kind, MPI_Fint object, int keyval)
{
    switch (kind) {
    case 0: MPI_Comm_set_attr(MPI_Comm_f2c(object), keyval, &place); break;
    case 1: MPI_Type_set_attr(MPI_Type_f2c(object), keyval, &place); break;
    default: MPI_Win_set_attr(MPI_Win_f2c(object), keyval, &place); break;
    }
}

/* What C reads of an attribute that C has set: 1 if it is the pointer. */
int c_reads_pointer(int kind, MPI_Fint object, int keyval)
{
    int *value = get(kind, object, keyval);
    return value == &place && *value == 5;
}

/* What C reads of an attribute that Fortran has set as an INTEGER: the address of an int. */
int c_reads_integer(int kind, MPI_Fint object, int keyval)
{
    int *value = get(kind, object, keyval);
    return value ? *value : -1;
}

/* What C reads of an attribute that Fortran has set as an integer of the width of an address: the address of one. */
MPI_Aint c_reads_address(int kind, MPI_Fint object, int keyval)
{
    MPI_Aint *value = get(kind, object, keyval);
    return value ? *value : -1;
}
