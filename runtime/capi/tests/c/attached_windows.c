/* Tests dynamic windows (MPI-5.0 section 12.2.4): attaching and detaching memory, calls whose elements lie in several
   attached pieces, and many pieces. */
#include "check.h"

static int rank, size;

static MPI_Win dynamic(void)
{
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static void attached(void)
{
    MPI_Win win = dynamic();
    long *pieces[12];
    MPI_Aint mine[12], theirs[12];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int i = 0; i < 12; i++) {
        /* Only the first half is attached, so that no piece follows another one without a gap. */
        OK(MPI_Alloc_mem(128, MPI_INFO_NULL, &pieces[i]));
        memset(pieces[i], 0, 128);
        OK(MPI_Win_attach(win, pieces[i], 64));
        OK(MPI_Get_address(pieces[i], &mine[i]));
    }
    RAISES(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, pieces[3] + 1, 8));
    OK(MPI_Sendrecv(mine, 12, MPI_AINT, last, 0, theirs, 12, MPI_AINT, next, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 12; i++) {
        long value = 100 * rank + i;
        OK(MPI_Put(&value, 1, MPI_LONG, next, MPI_Aint_add(theirs[i], 56), 1, MPI_LONG, win));
        OK(MPI_Accumulate(&value, 1, MPI_LONG, next, theirs[i], 1, MPI_LONG, MPI_SUM, win));
        RAISES(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, next, theirs[i] + 60, 1, MPI_LONG, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 12; i++) {
        CHECK(pieces[i][7] == 100 * last + i && pieces[i][0] == 100 * last + i);
        if (i % 2) OK(MPI_Win_detach(win, pieces[i]));
    }
    RAISES(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, pieces[1]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    for (int i = 0; i < 12; i++) {
        long value;
        int wanted = i % 2 ? MPI_ERR_RMA_RANGE : MPI_SUCCESS;
        RAISES(wanted, MPI_Get(&value, 1, MPI_LONG, next, theirs[i], 1, MPI_LONG, win));
    }
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_free(&win));
    for (int i = 0; i < 12; i++) OK(MPI_Free_mem(pieces[i]));
}

/* The elements of a call lie in several attached pieces: in two pieces without a gap between them, and in two that lie
   apart, by the absolute addresses of a datatype. */
static void attached_in_pieces(int from_mpi)
{
    /* GAP words between the two memories are not attached. */
    enum { HALF = 100, ALL = 2 * HALF, GAP = 8, APART = 40 };
    MPI_Win win = dynamic();
    static long user[ALL + GAP + APART];
    long *whole = user;
    if (from_mpi) OK(MPI_Alloc_mem(sizeof user, MPI_INFO_NULL, &whole));
    long *apart = whole + ALL + GAP;
    memset(whole, 0, sizeof user);
    OK(MPI_Win_attach(win, whole + HALF, 8 * HALF));
    OK(MPI_Win_attach(win, whole, 8 * HALF));
    OK(MPI_Win_attach(win, apart, 8 * APART));
    MPI_Aint mine[2], theirs[2];
    OK(MPI_Get_address(whole, &mine[0]));
    OK(MPI_Get_address(apart, &mine[1]));
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    OK(MPI_Sendrecv(mine, 2, MPI_AINT, last, 0, theirs, 2, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_lock_all(0, win));
    long data[ALL], back[ALL];
    for (int i = 0; i < ALL; i++) data[i] = 1000 * rank + i;
    OK(MPI_Put(data, ALL, MPI_LONG, next, theirs[0], ALL, MPI_LONG, win));
    memset(back, 0, sizeof back);
    OK(MPI_Get(back, ALL, MPI_LONG, next, theirs[0], ALL, MPI_LONG, win));
    OK(MPI_Win_flush(next, win));
    CHECK(memcmp(back, data, sizeof data) == 0);
    OK(MPI_Accumulate(data, ALL, MPI_LONG, next, theirs[0], ALL, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate(data, ALL, MPI_LONG, back, ALL, MPI_LONG, next, theirs[0], ALL, MPI_LONG, MPI_NO_OP, win));
    OK(MPI_Win_flush_local(next, win));
    for (int i = 0; i < ALL; i++) CHECK(back[i] == 2 * data[i]);
    MPI_Aint beyond = theirs[0] + 8;
    RAISES(MPI_ERR_RMA_RANGE, MPI_Put(data, ALL, MPI_LONG, next, beyond, ALL, MPI_LONG, win));
    RAISES(MPI_ERR_RMA_RANGE, MPI_Accumulate(data, ALL, MPI_LONG, next, beyond, ALL, MPI_LONG, MPI_SUM, win));
    /* The last words of the first memory and the first words of the second one, around their gap. */
    int lengths[] = {8 * 10, 8 * APART};
    MPI_Aint places[] = {theirs[0] + 8 * (ALL - 10), theirs[1]};
    MPI_Datatype bytes;
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &bytes));
    OK(MPI_Type_commit(&bytes));
    OK(MPI_Put(data, 8 * (10 + APART), MPI_BYTE, next, (MPI_Aint)MPI_BOTTOM, 1, bytes, win));
    memset(back, 0, sizeof back);
    OK(MPI_Get(back, 8 * (10 + APART), MPI_BYTE, next, (MPI_Aint)MPI_BOTTOM, 1, bytes, win));
    OK(MPI_Win_flush_local_all(win));
    CHECK(memcmp(back, data, 8 * (10 + APART)) == 0);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ALL; i++)
        CHECK(whole[i] == (i < ALL - 10 ? 2 * (1000 * last + i) : 1000 * last + i - (ALL - 10)));
    for (int i = 0; i < APART; i++) CHECK(apart[i] == 1000 * last + 10 + i);
    OK(MPI_Type_free(&bytes));
    OK(MPI_Win_free(&win));
    if (from_mpi) OK(MPI_Free_mem(whole));
}

/* Returns the shared memory that this process uses, in MiB. */
static long shared_memory(void)
{
    long pages = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%*d %ld %ld", &pages, &shared) == 2);
    fclose(file);
    return shared * 4 / 1024;
}

/* Rank 0 attaches and detaches other memory all the time, while the other ranks read a word that stays attached. Then
   rank 0 attaches many pieces: the memory of its tables must not grow with the square of their number. */
static void attached_meanwhile(void)
{
    enum { CHANGES = 2000, PIECES = 5000 };
    static long other[PIECES];
    MPI_Win win = dynamic();
    long *word, value;
    MPI_Aint at, last;
    OK(MPI_Alloc_mem(sizeof *word, MPI_INFO_NULL, &word));
    *word = 77;
    if (rank == 0) OK(MPI_Win_attach(win, word, sizeof *word));
    OK(MPI_Get_address(word, &at));
    OK(MPI_Bcast(&at, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int change = 0; change < CHANGES; change++) {
        if (rank == 0) {
            OK(MPI_Win_attach(win, &other[change % 50], sizeof *other));
            if (change >= 3) OK(MPI_Win_detach(win, &other[(change - 3) % 50]));
        } else {
            value = 0;
            OK(MPI_Get(&value, 1, MPI_LONG, 0, at, 1, MPI_LONG, win));
            OK(MPI_Win_flush(0, win));
            CHECK(value == 77);
        }
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 3 && rank == 0; i++) OK(MPI_Win_detach(win, &other[(CHANGES - 3 + i) % 50]));
    long before = shared_memory();
    for (int i = 0; i < PIECES && rank == 0; i++) {
        other[i] = i;
        OK(MPI_Win_attach(win, &other[i], sizeof *other));
    }
    CHECK(shared_memory() - before < 64);
    OK(MPI_Get_address(&other[PIECES - 1], &last));
    OK(MPI_Bcast(&last, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, 0, last, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    CHECK(value == PIECES - 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(word));
}
int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    attached();
    attached_in_pieces(0);
    attached_in_pieces(1);
    attached_meanwhile();
    OK(MPI_Finalize());
    return 0;
}
