/* What a debugger shows: the test stops this program in `stop_here` by gdb, and prints the variables of `main`.

   The test runs this as one process. */
#include "check.h"

enum { COUNT = 1000 };

void stop_here(void);

__attribute__((noinline)) void stop_here(void)
{
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    static double data[COUNT * 16], more[COUNT];
    int provided;
    MPI_Datatype column;
    MPI_Datatype volatile none = MPI_DATATYPE_NULL, real = MPI_DOUBLE;
    MPI_Comm comm;
    MPI_Comm volatile all = MPI_COMM_WORLD;
    MPI_Request receive, any, done, prepared;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Type_vector(COUNT, 8, 16, MPI_DOUBLE, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_name(comm, "columns"));
    OK(MPI_Irecv(data, 1, column, 0, 7, comm, &receive));
    OK(MPI_Irecv(more, COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any));
    OK(MPI_Issend(more, 3, MPI_DOUBLE, 0, 9, MPI_COMM_SELF, &done));
    OK(MPI_Recv_init(more, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &prepared));
    stop_here();
    OK(MPI_Cancel(&receive));
    OK(MPI_Cancel(&any));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&any, MPI_STATUS_IGNORE));
    OK(MPI_Recv(data, 3, MPI_DOUBLE, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&done, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&prepared));
    OK(MPI_Type_free(&column));
    OK(MPI_Comm_free(&comm));
    CHECK(none == MPI_DATATYPE_NULL && real == MPI_DOUBLE && all == MPI_COMM_WORLD);
    OK(MPI_Finalize());
    return 0;
}
