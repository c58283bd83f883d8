/* The C side of languages.f90. */
#include <mpi.h>
#include <stdio.h>

/* Example 16.16: an absolute datatype for a count, followed by the array R(5) of Fortran. */
void c_routine(MPI_Fint *ftype)
{
    int count = 5;
    int lens[2] = {1, 1};
    MPI_Aint displs[2];
    MPI_Datatype types[2], newtype;

    MPI_Get_address(&count, &displs[0]);
    displs[1] = 0;
    types[0] = MPI_INT;
    types[1] = MPI_Type_f2c(*ftype);
    MPI_Type_create_struct(2, lens, displs, types, &newtype);
    MPI_Type_commit(&newtype);
    MPI_Send(MPI_BOTTOM, 1, newtype, 1, 0, MPI_COMM_WORLD);
    /* the message sent contains an int count of 5, followed by the 5 REAL entries of R */
    MPI_Type_free(&newtype);
}

void c_receive(float *r)
{
    struct { int count; float r[5]; } message = {0};
    MPI_Datatype type;
    int lens[2] = {1, 5}, i;
    MPI_Aint displs[2] = {0, sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_REAL};

    MPI_Type_create_struct(2, lens, displs, types, &type);
    MPI_Type_commit(&type);
    MPI_Recv(&message, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    if (message.count == 5) for (i = 0; i < 5; i++) r[i] = message.r[i];
}

int c_rank_of(MPI_Fint comm)
{
    int rank = -1;
    MPI_Comm_rank(MPI_Comm_f2c(comm), &rank);
    return rank;
}

void c_attribute(MPI_Fint comm, int keyval, int value)
{
    MPI_Comm_set_attr(MPI_Comm_f2c(comm), keyval, (void *)(MPI_Aint)value);
}

/* Sets a pointer as an attribute, duplicates the communicator, and returns 1 if the duplicate has the pointer. The function
   that copies the attribute is Fortran's. */
int c_copies_pointer(MPI_Fint comm, int keyval)
{
    static int place;
    void *found = NULL;
    int flag = 0;
    MPI_Comm dup;
    MPI_Comm_set_attr(MPI_Comm_f2c(comm), keyval, &place);
    MPI_Comm_dup(MPI_Comm_f2c(comm), &dup);
    MPI_Comm_get_attr(dup, keyval, &found, &flag);
    MPI_Comm_free(&dup);
    return flag && found == (void *)&place;
}

/* The tag of a Fortran status. */
int c_tag(const MPI_Fint *status)
{
    MPI_Status own;
    MPI_Status_f2c(status, &own);
    return own.MPI_TAG;
}

static void handled(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    if (*code == MPI_SUCCESS) printf("no error\n");
}

MPI_Fint c_handler(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handled, &handler);
    return MPI_Errhandler_c2f(handler);
}
