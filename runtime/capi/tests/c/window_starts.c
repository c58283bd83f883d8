/* Calls on private memory only start their operations: rank 0 starts all its operations while the other ranks wait
   for a flag in shared memory, without a call of the library. Rank 0 sets the flag after the last start. If a start
   waited for its target, the job would not go on.

   Then rank 1 detaches memory before it serves the operations on it: the calls that complete the operations return the
   error. */
#include "check.h"

#include <stdint.h>
#include <time.h>

enum { READ = 0, READS = 20000, COUNT = READS, SWAP, OLD = COUNT + 10, OLDS = 3000, SUM = 30000, SUMS = 200000,
       PUT = SUM + SUMS, PUTS = 20000, WORDS = PUT + PUTS };

static int rank, size;
static int64_t memory[WORDS];
static volatile int *flag; /* two flags of rank 0: all operations are started; rank 1 makes no call */
static MPI_Win flags, win;
static MPI_Aint shift[16];

static void reset(void)
{
    for (int i = 0; i < WORDS; i++) memory[i] = i < READS ? 100000 * rank + i : 0;
    if (rank == 0) flag[0] = flag[1] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Waits for the flag without a call of the library. */
static void await_flag(void)
{
    time_t end = time(NULL) + 60;
    while (!*flag) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        if (time(NULL) > end) {
            fprintf(stderr, "window_starts: rank %d: a start waits for its target\n", rank);
            exit(1);
        }
    }
}

enum epoch { LOCK, FENCE, ACTIVE, EPOCHS };

struct results {
    int64_t one[8], some[100], all[READS], counts[8], swapped[2], olds[OLDS], gaps[2 * OLDS], got[READS];
};

/* Starts operations at a target; with `asks`, also such that return requests. Returns the number of requests. */
static int start(struct results *r, int target, int asks, MPI_Datatype gaps, MPI_Request *requests)
{
    static int64_t ones[SUMS], one = 1, five = 5, zero = 0;
    MPI_Aint at = shift[target];
    int unit = at ? 8 : 1, count = 0;
#define AT(word) (at + (MPI_Aint)(word) * unit)
    for (int i = 0; i < SUMS; i++) ones[i] = 1;
    for (int i = 0; i < 8; i++) {
        OK(MPI_Get(&r->one[i], 1, MPI_INT64_T, target, AT(READ + i), 1, MPI_INT64_T, win));
        OK(MPI_Fetch_and_op(&one, &r->counts[i], MPI_INT64_T, target, AT(COUNT), MPI_SUM, win));
    }
    OK(MPI_Compare_and_swap(&five, &zero, &r->swapped[0], MPI_INT64_T, target, AT(SWAP), win));
    OK(MPI_Compare_and_swap(&one, &five, &r->swapped[1], MPI_INT64_T, target, AT(SWAP), win));
    OK(MPI_Get(r->some, 100, MPI_INT64_T, target, AT(READ), 100, MPI_INT64_T, win));
    OK(MPI_Get(r->all, READS, MPI_INT64_T, target, AT(READ), READS, MPI_INT64_T, win));
    OK(MPI_Get_accumulate(ones, OLDS, MPI_INT64_T, r->olds, OLDS, MPI_INT64_T, target, AT(OLD), OLDS, MPI_INT64_T,
                          MPI_SUM, win));
    if (!asks) {
        OK(MPI_Accumulate(ones, SUMS, MPI_INT64_T, target, AT(SUM), SUMS, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Put(ones, PUTS, MPI_INT64_T, target, AT(PUT), PUTS, MPI_INT64_T, win));
        OK(MPI_Get_accumulate(ones, OLDS, MPI_INT64_T, r->gaps, 1, gaps, target, AT(OLD), OLDS, MPI_INT64_T, MPI_SUM,
                              win));
        OK(MPI_Get(r->got, READS, MPI_INT64_T, target, AT(PUT), READS, MPI_INT64_T, win));
        return 0;
    }
    OK(MPI_Raccumulate(ones, SUMS, MPI_INT64_T, target, AT(SUM), SUMS, MPI_INT64_T, MPI_SUM, win, requests + count++));
    OK(MPI_Rput(ones, PUTS, MPI_INT64_T, target, AT(PUT), PUTS, MPI_INT64_T, win, requests + count++));
    OK(MPI_Rget_accumulate(ones, OLDS, MPI_INT64_T, r->gaps, 1, gaps, target, AT(OLD), OLDS, MPI_INT64_T, MPI_SUM, win,
                           requests + count++));
    /* A get sees the earlier puts of its rank. */
    OK(MPI_Rget(r->got, READS, MPI_INT64_T, target, AT(PUT), READS, MPI_INT64_T, win, requests + count++));
    return count;
}

static void check(const struct results *r, int target)
{
    int64_t base = 100000 * target;
    for (int i = 0; i < 8; i++) CHECK(r->one[i] == base + i && r->counts[i] == i);
    CHECK(r->swapped[0] == 0 && r->swapped[1] == 5);
    for (int i = 0; i < 100; i++) CHECK(r->some[i] == base + i);
    for (int i = 0; i < READS; i++) CHECK(r->all[i] == base + i && r->got[i] == 1);
    for (int i = 0; i < OLDS; i++) CHECK(r->olds[i] == 0 && r->gaps[2 * i] == 1 && r->gaps[2 * i + 1] == -7);
}

static void starts(enum epoch epoch)
{
    MPI_Datatype gaps;
    MPI_Request requests[64];
    MPI_Group world, others, first;
    int count = 0, zero = 0;
    OK(MPI_Type_vector(OLDS, 1, 2, MPI_INT64_T, &gaps));
    OK(MPI_Type_commit(&gaps));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_excl(world, 1, &zero, &others));
    OK(MPI_Group_incl(world, 1, &zero, &first));
    reset();
    struct results *results = calloc((size_t)size, sizeof *results);
    CHECK(results != NULL);
    for (int target = 0; target < size; target++)
        for (int i = 0; i < 2 * OLDS; i++) results[target].gaps[i] = -7;
    if (epoch == FENCE) OK(MPI_Win_fence(0, win));
    if (epoch == ACTIVE && rank > 0) OK(MPI_Win_post(first, 0, win));
    if (rank == 0) {
        if (epoch == LOCK) OK(MPI_Win_lock_all(0, win));
        if (epoch == ACTIVE) OK(MPI_Win_start(others, 0, win));
        for (int target = 1; target < size; target++)
            count += start(&results[target], target, epoch == LOCK, gaps, requests + count);
        *flag = 1;
        if (epoch == LOCK) {
            /* The requests end in any order, some before and some after the epoch. */
            int done, at;
            OK(MPI_Waitany(count, requests, &at, MPI_STATUS_IGNORE));
            OK(MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE));
            if (count > 1) OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
            OK(MPI_Win_unlock_all(win));
            OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
        }
        if (epoch == ACTIVE) OK(MPI_Win_complete(win));
    } else {
        await_flag();
        if (epoch == ACTIVE) OK(MPI_Win_wait(win));
    }
    if (epoch == FENCE) OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int target = 1; target < size && rank == 0; target++) check(&results[target], target);
    for (int i = 0; i < SUMS && rank > 0; i++) CHECK(memory[SUM + i] == 1);
    for (int i = 0; i < OLDS && rank > 0; i++) CHECK(memory[OLD + i] == 2);
    CHECK(rank == 0 || (memory[COUNT] == 8 && memory[SWAP] == 1));
    free(results);
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&first));
    OK(MPI_Type_free(&gaps));
}

/* Rank 1 detaches its memory after rank 0 has started operations on it. A long put that is refused must end, too: once
   it waited for ever, because nobody received its message. */
static void refused(void)
{
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(win, memory, sizeof memory));
    for (int step = 0; step < 5; step++) {
        int64_t one = 1, old[100] = {0};
        MPI_Request request;
        reset();
        if (rank == 0) {
            while (!flag[1]) OK(MPI_Win_sync(win));
            OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
            MPI_Aint at = shift[1];
            switch (step) {
            case 0:
                OK(MPI_Rget_accumulate(old, 100, MPI_INT64_T, old + 50, 50, MPI_INT64_T, 1, at, 50, MPI_INT64_T,
                                       MPI_NO_OP, win, &request));
                break;
            case 1: OK(MPI_Fetch_and_op(&one, old, MPI_INT64_T, 1, at, MPI_SUM, win)); break;
            case 2: OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 1, at, 1, MPI_INT64_T, MPI_SUM, win)); break;
            case 3: OK(MPI_Put(memory, 10000, MPI_INT64_T, 1, at, 10000, MPI_INT64_T, win)); break;
            default:
                OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, old, 60, MPI_INT64_T, 1, at, 60, MPI_INT64_T, MPI_NO_OP,
                                      win));
            }
            *flag = 1;
            if (step == 0) {
                RAISES(MPI_ERR_RMA_RANGE, MPI_Wait(&request, MPI_STATUS_IGNORE));
                OK(MPI_Win_flush(1, win));
            } else {
                RAISES(MPI_ERR_RMA_RANGE, MPI_Win_flush(1, win));
            }
            OK(MPI_Win_unlock(1, win));
        } else if (rank == 1) {
            flag[1] = 1;
            await_flag();
            OK(MPI_Win_detach(win, memory));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 1) OK(MPI_Win_attach(win, memory, sizeof memory));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 100; i++) CHECK(old[i] == 0);
    }
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int *own, unit;
    MPI_Aint bytes, mine, none[16] = {0};
    CHECK(size <= 16);
    OK(MPI_Win_allocate_shared(2 * sizeof *own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &flags));
    OK(MPI_Win_shared_query(flags, 0, &bytes, &unit, (void *)&flag));
    for (enum epoch epoch = LOCK; epoch < EPOCHS; epoch++) {
        memcpy(shift, none, sizeof shift);
        OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        starts(epoch);
        OK(MPI_Win_free(&win));
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        OK(MPI_Win_attach(win, memory, sizeof memory));
        OK(MPI_Get_address(memory, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, shift, 1, MPI_AINT, MPI_COMM_WORLD));
        starts(epoch);
        OK(MPI_Win_detach(win, memory));
        OK(MPI_Win_free(&win));
    }
    if (size > 1) refused();
    OK(MPI_Win_free(&flags));
    OK(MPI_Finalize());
    return 0;
}
