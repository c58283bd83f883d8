/* A 2-D array in a file. The ranks stand in a grid, and each of them writes its block of the array. The file
 * has the whole array, row by row, whatever the number of ranks. Then every rank reads the whole array.
 *
 *     mpicc array.c -o array && mpiexec -n 4 ./array array.bin        (any number of ranks)
 */
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 8, COLUMNS = 12 };

int main(int argc, char **argv)
{
    double mine[ROWS * COLUMNS], all[ROWS][COLUMNS];
    MPI_Datatype block;
    MPI_File file;
    int rank, size, count = 0, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *path = argc > 1 ? argv[1] : "array.bin";

    /* The errors of files are returned by default. In this program, an error ends the job. */
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);

    /* This rank has the rows and columns from starts[d] on, subsizes[d] of them. */
    int sizes[] = {ROWS, COLUMNS}, dims[] = {0, 0}, subsizes[2], starts[2];
    MPI_Dims_create(size, 2, dims);
    int place[] = {rank / dims[1], rank % dims[1]};
    for (int d = 0; d < 2; d++) {
        starts[d] = sizes[d] * place[d] / dims[d];
        subsizes[d] = sizes[d] * (place[d] + 1) / dims[d] - starts[d];
    }
    for (int i = 0; i < subsizes[0]; i++)
        for (int j = 0; j < subsizes[1]; j++)
            mine[count++] = 100 * (starts[0] + i) + starts[1] + j;

    /* The filetype selects the block in the array of the file. */
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);

    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    /* An older file of this name may be longer. */
    MPI_File_set_size(file, sizeof all);
    MPI_File_set_view(file, 0, MPI_DOUBLE, block, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, mine, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);

    /* Without a view, the file is a sequence of bytes. */
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_read_at_all(file, 0, all, ROWS * COLUMNS, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            wrong += all[i][j] != 100 * i + j;
    printf("rank %d: wrote %d x %d values, read %d x %d, %d wrong\n", rank, subsizes[0], subsizes[1],
           ROWS, COLUMNS, wrong);

    MPI_Type_free(&block);
    MPI_Finalize();
    return wrong != 0;
}
