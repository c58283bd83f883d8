/* Tests the C side of MPI-2.2 sections 16.3.5 and 16.3.6. The Fortran side is played by C code, in which a
   status is an array of integers and a handle is an integer. In example 16.16, the Fortran side makes the
   datatype. */
#include "transfer.h"

/* The C side of example 16.16: a message with a count and an array. The datatype that the Fortran side
   made describes the array by its absolute address. */
static void c_routine(MPI_Fint *ftype)
{
    int count = 5, lens[2] = {1, 1};
    MPI_Aint displs[2];
    MPI_Datatype types[2], newtype;
    struct { int n; float r[5]; } got = {0, {0}};
    MPI_Datatype wanted, both[2] = {MPI_INT, MPI_FLOAT};
    OK(MPI_Get_address(&count, &displs[0]));
    displs[1] = 0;
    types[0] = MPI_INT;
    types[1] = MPI_Type_f2c(*ftype);
    OK(MPI_Type_create_struct(2, lens, displs, types, &newtype));
    OK(MPI_Type_commit(&newtype));

    MPI_Aint at[2] = {0, (char *)got.r - (char *)&got};
    OK(MPI_Type_create_struct(2, (int[]){1, 5}, at, both, &wanted));
    OK(MPI_Type_commit(&wanted));
    send_all(MPI_BOTTOM, 1, newtype, &got, 1, wanted);
    if (receives()) {
        CHECK(got.n == 5);
        for (int k = 0; k < 5; k++) CHECK(got.r[k] == k - 1.25f);
    }
    OK(MPI_Type_free(&wanted));
    OK(MPI_Type_free(&newtype));
}

/* The Fortran side of example 16.16, which has handles only as integers. */
static void fortran_routine(void)
{
    float r[5];
    MPI_Aint aodisp;
    MPI_Datatype type, aotype = MPI_Type_f2c(MPI_Type_c2f(MPI_REAL));
    int aoblen = 5;
    for (int k = 0; k < 5; k++) r[k] = k - 1.25f;
    OK(MPI_Get_address(r, &aodisp));
    OK(MPI_Type_create_struct(1, &aoblen, &aodisp, &aotype, &type));
    MPI_Fint ftype = MPI_Type_c2f(type);
    c_routine(&ftype);
    /* The standard says: "An object created in one language can be accessed, modified or freed in
       another." */
    MPI_Datatype other = MPI_Type_f2c(ftype);
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(other, &lb, &extent));
    CHECK(other == type && lb == aodisp && extent == sizeof r);
    OK(MPI_Type_free(&other));
    RAISES(MPI_ERR_TYPE, MPI_Type_commit(&type));
}

/* Checks that a status keeps its count, its number of elements and its cancellation if it is converted. */
static void statuses(void)
{
    int data[3] = {1, 2, 3}, got[7], count = -1, elements = -1, cancelled = -1;
    MPI_Fint f_status[MPI_F_STATUS_SIZE];
    MPI_Status status, back;
    MPI_F08_status f08;
    MPI_Datatype pair;
    MPI_Request request;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    transfer(data, 3, MPI_INT, got, 3, pair, &status);
    if (receives()) {
        status.MPI_ERROR = MPI_ERR_PENDING;
        OK(MPI_Status_c2f(&status, f_status));
        memset(&back, 0x77, sizeof back);
        OK(MPI_Status_f2c(f_status, &back));
        CHECK(back.MPI_SOURCE == 0 && back.MPI_TAG == 7 && back.MPI_ERROR == MPI_ERR_PENDING);
        OK(MPI_Get_count(&back, pair, &count));
        OK(MPI_Get_elements(&back, pair, &elements));
        OK(MPI_Test_cancelled(&back, &cancelled));
        CHECK(count == MPI_UNDEFINED && elements == 3 && !cancelled);
        /* Fortran reads the source, the tag and the error of a status by indices, or uses a derived type
           of its own. */
        CHECK(f_status[MPI_F_SOURCE] == 0 && f_status[MPI_F_TAG] == 7);
        CHECK(f_status[MPI_F_ERROR] == MPI_ERR_PENDING);
        OK(MPI_Status_c2f08(&status, &f08));
        memset(&back, 0, sizeof back);
        OK(MPI_Status_f082c(&f08, &back));
        CHECK(!memcmp(&back, &status, sizeof back));
    }
    OK(MPI_Type_free(&pair));

    /* The status of a message of more than 2^31 bytes and that of a cancelled operation are converted
       correctly too. */
    MPI_Count big = (MPI_Count)5 << 31, bytes = 0;
    OK(MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Status_set_elements_c(&status, MPI_BYTE, big));
    OK(MPI_Status_c2f(&status, f_status));
    memset(&back, 0, sizeof back);
    OK(MPI_Status_f2c(f_status, &back));
    OK(MPI_Test_cancelled(&back, &cancelled));
    OK(MPI_Get_elements_c(&back, MPI_BYTE, &bytes));
    CHECK(cancelled == 1 && bytes == big);

    /* The addresses with which Fortran ignores a status differ from those in C, and passing them to a
       conversion is an error. */
    CHECK(MPI_F_STATUS_IGNORE != NULL && MPI_F_STATUSES_IGNORE != NULL);
    CHECK(MPI_F_STATUS_IGNORE != MPI_F_STATUSES_IGNORE);
    RAISES(MPI_ERR_ARG, MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back));
    RAISES(MPI_ERR_ARG, MPI_Status_f2c(MPI_F_STATUSES_IGNORE, &back));
    RAISES(MPI_ERR_ARG, MPI_Status_c2f(MPI_STATUS_IGNORE, f_status));
}

static int deleted;

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval;
    CHECK(value == &deleted && extra == &rank);
    deleted++;
    return MPI_SUCCESS;
}

/* Converts handles of every kind to integers and back. A callback of an object must be called whether the
   handle of the object comes from C or from Fortran. */
static void handles(void)
{
    MPI_Comm comm;
    MPI_Group group;
    MPI_Info info;
    MPI_Request request;
    MPI_Errhandler handler;
    int keyval;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, &rank));
    OK(MPI_Comm_set_attr(comm, keyval, &deleted));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Info_create(&info));
    OK(MPI_Irecv(&keyval, 1, MPI_INT, 0, 5, comm, &request));
    OK(MPI_Comm_get_errhandler(comm, &handler));
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(comm)) == comm);
    CHECK(MPI_Group_f2c(MPI_Group_c2f(group)) == group);
    CHECK(MPI_Info_f2c(MPI_Info_c2f(info)) == info);
    CHECK(MPI_Request_f2c(MPI_Request_c2f(request)) == request);
    CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(handler)) == handler);
    CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE_COMPLEX)) == MPI_DOUBLE_COMPLEX);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Group_free(&group));
    OK(MPI_Info_free(&info));
    OK(MPI_Errhandler_free(&handler));
    comm = MPI_Comm_f2c(MPI_Comm_c2f(comm));
    OK(MPI_Comm_free(&comm));
    CHECK(deleted == 1);
}

int main(void)
{
    begin();
    fortran_routine();
    statuses();
    handles();
    return end();
}
