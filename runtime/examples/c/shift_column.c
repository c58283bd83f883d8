/* A first datatype. Rank 0 sends the first column of a matrix, and rank 1 receives it as the last
 * column of its own matrix. No loop copies anything, because the datatype says which doubles make up
 * a column.
 *
 *     mpicc shift_column.c -o shift_column && mpiexec -n 2 ./shift_column
 */
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 4, COLUMNS = 6 };

int main(int argc, char **argv)
{
    double matrix[ROWS][COLUMNS] = {{0}};
    MPI_Datatype column;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    /* 4 blocks of 1 double; each block starts 6 doubles after the one before it. */
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);

    if (rank == 0) {
        for (int row = 0; row < ROWS; row++)
            matrix[row][0] = 1 + row;
        MPI_Send(&matrix[0][0], 1, column, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        /* This is the address of the first element of the last column. */
        MPI_Recv(&matrix[0][COLUMNS - 1], 1, column, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int row = 0; row < ROWS; row++) {
            for (int i = 0; i < COLUMNS; i++)
                printf("%s%g", i ? " " : "", matrix[row][i]);
            printf("\n");
        }
    }

    MPI_Type_free(&column);
    MPI_Finalize();
    return 0;
}
