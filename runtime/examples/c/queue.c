/* A queue of work: the ranks take the next task from a counter in a window, and add their results to a sum. A task is a
 * number; its result is the number of steps that the number takes to become 1 (halve it if it is even, else triple it
 * and add 1). Tasks take different times, so the ranks do different numbers of them. No rank waits for another one to
 * take a task.
 *
 *     mpicc queue.c -o queue && mpiexec -n 4 ./queue     (any number of ranks)
 */
#include <mpi.h>
#include <stdio.h>

enum { TASKS = 2000 };

static long long steps(long long number)
{
    long long steps = 0;
    for (; number != 1; steps++)
        number = number % 2 == 0 ? number / 2 : 3 * number + 1;
    return steps;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, done = 0, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Rank 0 has two values: the number of the next task, and the sum of all results. */
    long long *values;
    MPI_Win window;
    MPI_Aint bytes = rank == 0 ? 2 * sizeof *values : 0;
    MPI_Win_allocate(bytes, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &values, &window);
    if (rank == 0)
        values[0] = values[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Win_lock_all(0, window);
    for (;;) {
        const long long one = 1;
        long long task, result;
        MPI_Fetch_and_op(&one, &task, MPI_LONG_LONG, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        if (task >= TASKS)
            break;
        result = steps(task + 1);
        MPI_Accumulate(&result, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, MPI_SUM, window);
        MPI_Win_flush_local(0, window); /* `result` may change from now on */
        done++;
    }
    MPI_Win_unlock_all(window);
    printf("rank %d: %d tasks\n", rank, done);

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        long long sum = 0;
        for (int task = 1; task <= TASKS; task++)
            sum += steps(task);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        wrong = values[1] != sum;
        MPI_Win_unlock(0, window);
        printf("the sum of all results is %lld, which is %s\n", values[1], wrong ? "wrong" : "right");
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return wrong;
}
