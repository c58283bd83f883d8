/* Collective calls, and operations in C++. */
#include "check.h"

static void add(const void *in, void *inout, int count, const MPI::Datatype &type)
{
    CHECK(type == MPI::INT);
    const int *from = static_cast<const int *>(in);
    int *to = static_cast<int *>(inout);
    for (int i = 0; i < count; i++) to[i] += from[i];
}

/* Keeps what the left one has: not commutative. */
static void left(const void *in, void *inout, int count, const MPI::Datatype &)
{
    memcpy(inout, in, count * sizeof(int));
}

int main(int argc, char **argv)
{
    start(argc, argv);
    MPI::Intracomm &world = MPI::COMM_WORLD;
    const int rank = world.Get_rank(), size = world.Get_size();
    int one = rank + 1, *all = new int[3 * size], *other = new int[3 * size];
    int *counts = new int[size], *places = new int[size], *bytes = new int[size];
    MPI::Datatype *types = new MPI::Datatype[size];
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = i, bytes[i] = 4 * i, types[i] = MPI::INT;
    const int sum = size * (size + 1) / 2;

    world.Barrier();
    int word = rank == 0 ? 42 : 0;
    world.Bcast(&word, 1, MPI::INT, 0);
    CHECK(word == 42);
    world.Gather(&one, 1, MPI::INT, all, 1, MPI::INT, 0);
    CHECK(rank != 0 || all[size - 1] == size);
    world.Gatherv(&one, 1, MPI::INT, all, counts, places, MPI::INT, 0);
    world.Scatter(all, 1, MPI::INT, &word, 1, MPI::INT, 0);
    CHECK(word == one);
    world.Scatterv(all, counts, places, MPI::INT, &word, 1, MPI::INT, 0);
    CHECK(word == one);
    world.Allgather(&one, 1, MPI::INT, all, 1, MPI::INT);
    CHECK(all[0] == 1 && all[size - 1] == size);
    memset(all, 0, size * sizeof(int));
    world.Allgatherv(&one, 1, MPI::INT, all, counts, places, MPI::INT);
    CHECK(all[size - 1] == size);
    for (int i = 0; i < size; i++) all[i] = 10 * rank + i;
    world.Alltoall(all, 1, MPI::INT, other, 1, MPI::INT);
    CHECK(other[size - 1] == 10 * (size - 1) + rank);
    world.Alltoallv(all, counts, places, MPI::INT, other, counts, places, MPI::INT);
    CHECK(other[0] == rank);
    memset(other, 0, size * sizeof(int));
    world.Alltoallw(all, counts, bytes, types, other, counts, bytes, types);
    CHECK(other[size - 1] == 10 * (size - 1) + rank);

    world.Reduce(&one, &word, 1, MPI::INT, MPI::SUM, 0);
    CHECK(rank != 0 || word == sum);
    word = one;
    world.Allreduce(MPI::IN_PLACE, &word, 1, MPI::INT, MPI::MAX);
    CHECK(word == size);
    for (int i = 0; i < size; i++) all[i] = i + 1;
    world.Reduce_scatter(all, &word, counts, MPI::INT, MPI::SUM);
    CHECK(word == size * one);
    world.Reduce_scatter_block(all, &word, 1, MPI::INT, MPI::SUM);
    CHECK(word == size * one);
    world.Scan(&one, &word, 1, MPI::INT, MPI::SUM);
    CHECK(word == one * (one + 1) / 2);
    world.Exscan(&one, &word, 1, MPI::INT, MPI::SUM);
    CHECK(rank == 0 || word == rank * (rank + 1) / 2);
    bool yes = rank == 0, any = false;
    world.Allreduce(&yes, &any, 1, MPI::BOOL, MPI::LOR);
    CHECK(any);
    struct {
        int value, place;
    } pair = {rank == size - 1 ? -5 : rank, rank}, least;
    world.Allreduce(&pair, &least, 1, MPI::TWOINT, MPI::MINLOC);
    CHECK(least.value == -5 && least.place == size - 1);

    /* Many operations of two functions: each function takes one place, so there are enough. */
    for (int i = 0; i < 200; i++) {
        MPI::Op plus, first;
        plus.Init(add, true);
        first.Init(left, false);
        CHECK(plus.Is_commutative() && !first.Is_commutative() && plus != first);
        if (i < 3) {
            world.Allreduce(&one, &word, 1, MPI::INT, plus);
            CHECK(word == sum);
            world.Allreduce(&one, &word, 1, MPI::INT, first);
            CHECK(word == 1);
            int to = 5;
            plus.Reduce_local(&one, &to, 1, MPI::INT);
            CHECK(to == 5 + one);
        }
        plus.Free();
        first.Free();
        CHECK(plus == MPI::OP_NULL);
    }
    THROWS(MPI::ERR_ROOT, world.Bcast(&word, 1, MPI::INT, size));
    delete[] all;
    delete[] other;
    delete[] counts;
    delete[] places;
    delete[] bytes;
    delete[] types;
    return stop();
}
