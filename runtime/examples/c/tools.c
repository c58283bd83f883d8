/* A program that looks at the library by the tool interface of MPI: it changes a setting before MPI_Init, counts how its
 * messages travel, and prints what typepack says about a datatype. The program of the page "Tools" of typepack's guide.
 * Rank 0 sends a column of a matrix to rank 1; every other rank does nothing.
 *
 *     mpicc tools.c -o tools && mpiexec -n 2 ./tools
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 200, COLUMNS = 50 };

int main(void)
{
    MPI_T_cvar_handle handle;
    unsigned long limit = 1024;
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_cvar_get_index("TYPEPACK_EAGER_LIMIT", &index);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    MPI_T_cvar_write(handle, &limit);
    MPI_Init(NULL, NULL);

    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double matrix[ROWS][COLUMNS];
    MPI_Datatype column;
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);

    MPI_T_pvar_session session;
    MPI_T_pvar_handle eager;
    unsigned long long messages = 0;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_index("messages_eager", MPI_T_PVAR_CLASS_COUNTER, &index);
    MPI_T_pvar_handle_alloc(session, index, NULL, &eager, &count);
    MPI_T_pvar_start(session, eager);
    if (size > 1 && rank == 0) {
        MPI_Send(matrix, 1, column, 1, 0, MPI_COMM_WORLD);    /* 1600 bytes: above the limit */
        MPI_Send(matrix, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD); /* 8 bytes */
    } else if (rank == 1) {
        MPI_Recv(matrix, 1, column, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(matrix, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_T_pvar_read(session, eager, &messages);
    if (rank == 0) {
        printf("eager messages: %llu\n", messages);
        char text[4096];
        int length = sizeof text; /* on return, the length that the whole text needs */
        MPIX_Type_describe(column, text, &length);
        puts(text);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_cvar_handle_free(&handle);
    MPI_Type_free(&column);
    MPI_Finalize();
    MPI_T_finalize();
    return 0;
}
