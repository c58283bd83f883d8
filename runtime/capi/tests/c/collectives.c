/* Tests the blocking collective calls: with different layouts on the ranks, in place, in the forms with
   and without large counts, and with wrong arguments. */
#include "check.h"

enum { LARGEST = 16 };

static int rank, size;

static int value(int from, int to, int i)
{
    return from * 10000 + to * 100 + i;
}

static void broadcasts(MPI_Comm comm)
{
    for (int root = 0; root < size; root++) {
        /* The data are a column of a matrix at the root, and a row on the other ranks. */
        int matrix[20][4], row[20];
        MPI_Datatype column;
        OK(MPI_Type_vector(20, 1, 4, MPI_INT, &column));
        OK(MPI_Type_commit(&column));
        for (int i = 0; i < 20; i++)
            matrix[i][1] = value(root, 0, i), row[i] = -1;
        if (rank == root)
            OK(MPI_Bcast(&matrix[0][1], 1, column, root, comm));
        else
            OK(MPI_Bcast_c(row, 20, MPI_INT, root, comm));
        for (int i = 0; i < 20; i++)
            CHECK(rank == root || row[i] == value(root, 0, i));
        OK(MPI_Type_free(&column));
        OK(MPI_Bcast(NULL, 0, MPI_INT, root, comm));
    }
}

static void gathers(MPI_Comm comm)
{
    int mine[3], all[3 * LARGEST], counts[LARGEST], displs[LARGEST];
    for (int i = 0; i < 3; i++)
        mine[i] = value(rank, 7, i);
    for (int root = 0; root < size; root++) {
        memset(all, -1, sizeof all);
        void *own = mine;
        if (root == rank && root % 2) {
            memcpy(all + 3 * rank, mine, sizeof mine);
            own = MPI_IN_PLACE;
        }
        OK(MPI_Gather(own, 3, MPI_INT, rank == root ? all : NULL, 3, MPI_INT, root, comm));
        for (int r = 0; r < size && rank == root; r++)
            for (int i = 0; i < 3; i++)
                CHECK(all[3 * r + i] == value(r, 7, i));
        /* Rank r has r % 3 elements. The parts lie in the reverse order of the ranks. */
        memset(all, -1, sizeof all);
        for (int r = 0; r < size; r++)
            counts[r] = r % 3, displs[r] = 3 * (size - 1 - r);
        OK(MPI_Gatherv(mine, rank % 3, MPI_INT, all, counts, displs, MPI_INT, root, comm));
        for (int r = 0; r < size && rank == root; r++)
            for (int i = 0; i < 3; i++)
                CHECK(all[displs[r] + i] == (i < counts[r] ? value(r, 7, i) : -1));
        int back[3] = {-1, -1, -1};
        for (int r = 0; r < size; r++)
            for (int i = 0; i < 3; i++)
                all[displs[r] + i] = value(r, root, i);
        OK(MPI_Scatterv(all, counts, displs, MPI_INT, back, rank % 3, MPI_INT, root, comm));
        for (int i = 0; i < 3; i++)
            CHECK(back[i] == (i < rank % 3 ? value(rank, root, i) : -1));
        for (int i = 0; i < 3 * size; i++)
            all[i] = value(i / 3, root, i % 3);
        int placed = rank == root && root % 2;
        OK(MPI_Scatter(all, 3, MPI_INT, placed ? MPI_IN_PLACE : (void *)back, 3, MPI_INT, root, comm));
        for (int i = 0; i < 3; i++)
            CHECK(placed || back[i] == value(rank, root, i));
    }
    for (int placed = 0; placed < 2; placed++) {
        memset(all, -1, sizeof all);
        if (placed)
            memcpy(all + 3 * rank, mine, sizeof mine);
        OK(MPI_Allgather(placed ? MPI_IN_PLACE : (void *)mine, 3, MPI_INT, all, 3, MPI_INT, comm));
        for (int i = 0; i < 3 * size; i++)
            CHECK(all[i] == value(i / 3, 7, i % 3));
        memset(all, -1, sizeof all);
        MPI_Count wide[LARGEST];
        MPI_Aint far[LARGEST];
        for (int r = 0; r < size; r++)
            wide[r] = (r + 1) % 3, far[r] = 3 * r + 1;
        OK(MPI_Allgatherv_c(mine, wide[rank], MPI_INT, all, wide, far, MPI_INT, comm));
        for (int i = 0; i < 3 * size; i++)
            CHECK(i % 3 < 1 || all[i] == (i % 3 - 1 < wide[i / 3] ? value(i / 3, 7, i % 3 - 1) : -1));
    }
}

static void exchanges(MPI_Comm comm)
{
    int out[2 * LARGEST], in[2 * LARGEST], counts[LARGEST], displs[LARGEST];
    for (int placed = 0; placed < 2; placed++) {
        for (int i = 0; i < 2 * size; i++)
            out[i] = value(rank, i / 2, i % 2), in[i] = placed ? out[i] : -1;
        OK(MPI_Alltoall(placed ? MPI_IN_PLACE : (void *)out, 2, MPI_INT, in, 2, MPI_INT, comm));
        for (int i = 0; i < 2 * size; i++)
            CHECK(in[i] == value(i / 2, rank, i % 2));
        /* Ranks i and j exchange (i + j) % 3 % 2 elements. */
        for (int r = 0; r < size; r++)
            counts[r] = (r + rank) % 3 % 2, displs[r] = 2 * r;
        for (int i = 0; i < 2 * size; i++)
            in[i] = placed ? out[i] : -1;
        OK(MPI_Alltoallv(placed ? MPI_IN_PLACE : (void *)out, counts, displs, MPI_INT, in, counts,
                         displs, MPI_INT, comm));
        for (int i = 0; i < 2 * size; i++)
            CHECK(in[i] == (i % 2 < counts[i / 2] ? value(i / 2, rank, i % 2) : placed ? out[i] : -1));
        MPI_Datatype types[LARGEST];
        for (int r = 0; r < size; r++)
            types[r] = counts[r] ? MPI_INT : MPI_DATATYPE_NULL, displs[r] *= sizeof(int);
        for (int i = 0; i < 2 * size; i++)
            in[i] = placed ? out[i] : -1;
        OK(MPI_Alltoallw(placed ? MPI_IN_PLACE : (void *)out, counts, displs, types, in, counts,
                         displs, types, comm));
        for (int i = 0; i < 2 * size; i++)
            CHECK(in[i] == (i % 2 < counts[i / 2] ? value(i / 2, rank, i % 2) : placed ? out[i] : -1));
    }
}

/* Checks calls whose send buffer and receive buffer are both MPI_BOTTOM. The displacements of the
   datatypes are addresses. */
static void bottoms(MPI_Comm comm)
{
    int out = value(rank, 5, 0), in[LARGEST], one = 1, counts[LARGEST], displs[LARGEST];
    MPI_Aint from, to;
    MPI_Datatype source, target, sources[LARGEST], targets[LARGEST];
    OK(MPI_Get_address(&out, &from));
    OK(MPI_Get_address(in, &to));
    OK(MPI_Type_create_hindexed(1, &one, &from, MPI_INT, &source));
    OK(MPI_Type_create_hindexed(1, &one, &to, MPI_INT, &target));
    OK(MPI_Type_create_resized(target, 0, sizeof(int), &targets[0]));
    OK(MPI_Type_free(&target));
    target = targets[0];
    OK(MPI_Type_commit(&source));
    OK(MPI_Type_commit(&target));
    memset(in, -1, sizeof in);
    OK(MPI_Allgather(MPI_BOTTOM, 1, source, MPI_BOTTOM, 1, target, comm));
    for (int r = 0; r < size; r++)
        CHECK(in[r] == value(r, 5, 0));
    memset(in, -1, sizeof in);
    for (int r = 0; r < size; r++)
        counts[r] = 1, displs[r] = r * (int)sizeof(int), sources[r] = source, targets[r] = target;
    int same[LARGEST] = {0};
    OK(MPI_Alltoallw(MPI_BOTTOM, counts, same, sources, MPI_BOTTOM, counts, displs, targets, comm));
    for (int r = 0; r < size; r++)
        CHECK(in[r] == value(r, 5, 0));
    RAISES(MPI_ERR_BUFFER, MPI_Allgather(MPI_BOTTOM, 1, source, &out, 1, MPI_INT, MPI_COMM_SELF));
    OK(MPI_Type_free(&source));
    OK(MPI_Type_free(&target));
}

static void reductions(MPI_Comm comm)
{
    double mine[2] = {rank + 1.0, -rank}, got[2];
    for (int root = 0; root < size; root++) {
        got[0] = got[1] = -99;
        OK(MPI_Reduce(mine, rank == root ? got : NULL, 2, MPI_DOUBLE, MPI_SUM, root, comm));
        if (rank == root)
            CHECK(got[0] == size * (size + 1) / 2 && got[1] == -size * (size - 1) / 2);
        got[0] = mine[0], got[1] = mine[1];
        OK(MPI_Reduce(rank == root ? MPI_IN_PLACE : (void *)mine, got, 2, MPI_DOUBLE, MPI_MIN, root, comm));
        if (rank == root)
            CHECK(got[0] == 1 && got[1] == 1 - size);
    }
    OK(MPI_Allreduce(mine, got, 2, MPI_DOUBLE, MPI_MAX, comm));
    CHECK(got[0] == size && got[1] == 0);
    OK(MPI_Allreduce_c(MPI_IN_PLACE, mine, 2, MPI_DOUBLE, MPI_PROD, comm));
    CHECK(mine[1] == 0);
    struct {
        double value;
        int at;
    } where = {-(rank % 2), rank}, found;
    OK(MPI_Allreduce(&where, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm));
    CHECK(found.value == (size > 1 ? -1 : 0) && found.at == (size > 1));
    long double precise[2] = {1 + rank * 0x1p-60L, rank}, total[2];
    OK(MPI_Allreduce(precise, total, 2, MPI_LONG_DOUBLE, MPI_SUM, comm));
    CHECK(total[1] == size * (size - 1) / 2 && total[0] == size + total[1] * 0x1p-60L);
    OK(MPI_Allreduce(precise, total, 2, MPI_LONG_DOUBLE, MPI_MAX, comm));
    CHECK(total[0] == 1 + (size - 1) * 0x1p-60L && total[1] == size - 1);
    struct {
        long double value;
        int at;
    } most = {2 + rank % 2 * 0x1p-62L, rank}, top;
    OK(MPI_Allreduce(&most, &top, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, comm));
    CHECK(top.value == 2 + (size > 1) * 0x1p-62L && top.at == (size > 1));
    unsigned bits = 1u << rank, all;
    OK(MPI_Allreduce(&bits, &all, 1, MPI_UNSIGNED, MPI_BOR, comm));
    CHECK(all == (1u << size) - 1);
    int truth = rank, both;
    OK(MPI_Allreduce(&truth, &both, 1, MPI_INT, MPI_LAND, comm));
    CHECK(both == 0);
    int in[2] = {3, 4}, inout[2] = {10, 20};
    OK(MPI_Reduce_local(in, inout, 2, MPI_INT, MPI_SUM));
    CHECK(inout[0] == 13 && inout[1] == 24);
}

/* Checks calls with wrong arguments, which fail before the rank sends anything. */
static void refused(void)
{
    int buffer[4] = {5, 5, 5, 5}, other[4], one[1] = {1}, minus[1] = {-1}, zero[1] = {0};
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    RAISES(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    RAISES(MPI_ERR_COMM, MPI_Bcast(buffer, 1, MPI_INT, 0, (MPI_Comm)0x77777));
    RAISES(MPI_ERR_COUNT, MPI_Bcast(buffer, -1, MPI_INT, 0, self));
    RAISES(MPI_ERR_TYPE, MPI_Bcast(buffer, 1, MPI_DATATYPE_NULL, 0, self));
    RAISES(MPI_ERR_TYPE, MPI_Bcast(buffer, 1, pair, 0, self));
    RAISES(MPI_ERR_ROOT, MPI_Bcast(buffer, 1, MPI_INT, 1, self));
    RAISES(MPI_ERR_ROOT, MPI_Bcast(buffer, 1, MPI_INT, MPI_ROOT, self));
    RAISES(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, self));
    RAISES(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, self));
    RAISES(MPI_ERR_BUFFER, MPI_Gather(buffer, 1, MPI_INT, NULL, 1, MPI_INT, 0, self));
    RAISES(MPI_ERR_BUFFER, MPI_Gather(buffer, 1, MPI_INT, buffer, 1, MPI_INT, 0, self));
    RAISES(MPI_ERR_ARG, MPI_Gatherv(buffer, 1, MPI_INT, other, NULL, zero, MPI_INT, 0, self));
    RAISES(MPI_ERR_ARG, MPI_Gatherv(buffer, 1, MPI_INT, other, one, NULL, MPI_INT, 0, self));
    RAISES(MPI_ERR_COUNT, MPI_Gatherv(buffer, 1, MPI_INT, other, minus, zero, MPI_INT, 0, self));
    RAISES(MPI_ERR_TRUNCATE, MPI_Gather(buffer, 2, MPI_INT, other, 1, MPI_INT, 0, self));
    RAISES(MPI_ERR_COUNT, MPI_Gather(buffer, 1, MPI_INT, other, 2, MPI_INT, 0, self));
    RAISES(MPI_ERR_BUFFER, MPI_Allgather(buffer, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, self));
    RAISES(MPI_ERR_BUFFER, MPI_Alltoall(NULL, 1, MPI_INT, buffer, 1, MPI_INT, self));
    RAISES(MPI_ERR_BUFFER, MPI_Allreduce(buffer, buffer, 1, MPI_INT, MPI_SUM, self));
    RAISES(MPI_ERR_OP, MPI_Allreduce(buffer, other, 1, MPI_INT, MPI_OP_NULL, self));
    RAISES(MPI_ERR_OP, MPI_Allreduce(buffer, other, 1, MPI_INT, MPI_REPLACE, self));
    RAISES(MPI_ERR_OP, MPI_Allreduce(buffer, other, 1, MPI_DOUBLE, MPI_BAND, self));
    OK(MPI_Type_commit(&pair));
    RAISES(MPI_ERR_OP, MPI_Allreduce(buffer, other, 1, pair, MPI_SUM, self));
    RAISES(MPI_ERR_ROOT, MPI_Reduce(buffer, other, 1, MPI_INT, MPI_SUM, -1, self));
    for (int i = 0; i < 4; i++)
        CHECK(buffer[i] == 5);
    OK(MPI_Type_free(&pair));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    MPI_Comm part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &part));
    MPI_Comm reversed;
    int world;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_split(part, 0, -world, &reversed));
    MPI_Comm comms[3] = {MPI_COMM_WORLD, reversed, MPI_COMM_SELF};
    for (int c = 0; c < 3; c++) {
        OK(MPI_Comm_rank(comms[c], &rank));
        OK(MPI_Comm_size(comms[c], &size));
        CHECK(size <= LARGEST);
        OK(MPI_Barrier(comms[c]));
        broadcasts(comms[c]);
        gathers(comms[c]);
        exchanges(comms[c]);
        bottoms(comms[c]);
        reductions(comms[c]);
    }
    refused();
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&reversed));
    OK(MPI_Finalize());
    return 0;
}
