/* Arguments that are odd, but that the standard does not forbid. */
#include "check.h"

#include <unistd.h>

static int deletions;

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

/* A grid with a dimension of 0 has no ranks, so no rank is in it. */
static void empty_grids(void)
{
    const int dims[3][2] = {{0, 1}, {1, 0}, {0, 0}}, periods[2] = {1, 0}, negative[1] = {-1};
    for (int i = 0; i < 3; i++) {
        MPI_Comm made = MPI_COMM_WORLD;
        OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims[i], periods, i % 2, &made));
        CHECK(made == MPI_COMM_NULL);
    }
    MPI_Comm made = MPI_COMM_WORLD;
    RAISES(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, negative, periods, 0, &made));
}

/* Deleting an attribute that is not there does nothing. */
static void absent_attributes(void)
{
    int key;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK(deletions == 1);
    OK(MPI_Comm_free_keyval(&key));
}

/* A message without data needs no buffer; one with data does. */
static void empty_buffered_sends(int rank, int size)
{
    MPI_Request request;
    MPI_Status status;
    int to = (rank + 1) % size, from = (rank + size - 1) % size, count = -1, value = 1;
    for (int i = 0; i < 3; i++) {
        OK(MPI_Bsend(NULL, 0, MPI_INT, to, 5, MPI_COMM_WORLD));
        OK(MPI_Ibsend(NULL, 0, MPI_INT, to, 6, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    RAISES(MPI_ERR_BUFFER, MPI_Bsend(&value, 1, MPI_INT, to, 5, MPI_COMM_WORLD));
    for (int i = 0; i < 6; i++) {
        OK(MPI_Recv(&value, 1, MPI_INT, from, 5 + i / 3, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 0 && value == 1);
    }
}

/* A view of etypes without data has no data; a filetype with data does not consist of such etypes. */
static void empty_etypes(void)
{
    MPI_Datatype none, got, filetype;
    MPI_File file;
    MPI_Status status;
    MPI_Offset displacement, end = -1;
    char name[80], representation[MPI_MAX_DATAREP_STRING];
    int value = 3, count = -1, size = -1, combiner[4];
    snprintf(name, sizeof name, "odd_arguments.%d", (int)getpid());
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 8, none, none, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &displacement, &got, &filetype, representation));
    OK(MPI_Type_size(got, &size));
    OK(MPI_Type_get_envelope(got, &combiner[0], &combiner[1], &combiner[2], &combiner[3]));
    CHECK(displacement == 8 && size == 0 && combiner[3] == MPI_COMBINER_CONTIGUOUS);
    OK(MPI_Type_free(&got));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_write_at(file, 2, &value, 0, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    OK(MPI_File_get_size(file, &end));
    CHECK(count == 0 && end == 0);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &end));
    CHECK(end == 0);
    RAISES(MPI_ERR_TYPE, MPI_File_set_view(file, 0, none, MPI_INT, "native", MPI_INFO_NULL));
    /* The standard allows a null handle only where it says so, and does not for this call. */
    RAISES(MPI_ERR_INFO, MPI_File_set_info(file, MPI_INFO_NULL));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&none));
}

/* On a grid without dimensions, a rank has no neighbours, so nothing uses the buffers. */
static void no_neighbors(void)
{
    MPI_Comm point;
    MPI_Request request;
    OK(MPI_Cart_create(MPI_COMM_SELF, 0, NULL, NULL, 0, &point));
    OK(MPI_Comm_set_errhandler(point, MPI_ERRORS_RETURN));
    OK(MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, point));
    OK(MPI_Neighbor_allgatherv(NULL, 1, MPI_INT, NULL, NULL, NULL, MPI_INT, point));
    OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, point));
    OK(MPI_Neighbor_alltoallv(NULL, NULL, NULL, MPI_INT, NULL, NULL, NULL, MPI_INT, point));
    OK(MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, point));
    OK(MPI_Ineighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, point, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&point));
}

int main(void)
{
    int rank, size;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    empty_grids();
    absent_attributes();
    empty_buffered_sends(rank, size);
    empty_etypes();
    no_neighbors();
    OK(MPI_Finalize());
    return 0;
}
