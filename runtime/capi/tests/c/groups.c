/* Tests groups: set operations, groups from lists and ranges of ranks, the translation of ranks, and wrong
   arguments. */
#include "check.h"

static int size_of(MPI_Group group)
{
    int size = -1;
    OK(MPI_Group_size(group, &size));
    return size;
}

static int compared(MPI_Group a, MPI_Group b)
{
    int result = -1;
    OK(MPI_Group_compare(a, b, &result));
    return result;
}

int main(int argc, char **argv)
{
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));

    MPI_Group world, own, made, other;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_group(MPI_COMM_SELF, &own));
    CHECK(size_of(world) == size && size_of(own) == 1 && size_of(MPI_GROUP_EMPTY) == 0);
    int place = -1;
    OK(MPI_Group_rank(world, &place));
    CHECK(place == rank);
    OK(MPI_Group_rank(own, &place));
    CHECK(place == 0);
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &place));
    CHECK(place == MPI_UNDEFINED);
    CHECK(compared(world, world) == MPI_IDENT);
    CHECK(compared(world, MPI_GROUP_EMPTY) == MPI_UNEQUAL);

    /* This range has all ranks in reverse order. */
    int back[1][3] = {{size - 1, 0, -1}};
    OK(MPI_Group_range_incl(world, 1, back, &made));
    CHECK(compared(world, made) == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
    OK(MPI_Group_rank(made, &place));
    CHECK(place == size - 1 - rank);
    int from[3] = {0, size - 1, MPI_PROC_NULL}, to[3] = {-7, -7, -7};
    OK(MPI_Group_translate_ranks(world, 3, from, made, to));
    CHECK(to[0] == size - 1 && to[1] == 0 && to[2] == MPI_PROC_NULL);
    OK(MPI_Group_translate_ranks(world, 1, &rank, own, to));
    CHECK(to[0] == 0);
    OK(MPI_Group_translate_ranks(own, 0, NULL, world, NULL));
    OK(MPI_Group_free(&made));
    CHECK(made == MPI_GROUP_NULL);

    OK(MPI_Group_difference(world, own, &made));
    CHECK(size_of(made) == size - 1);
    CHECK((made == MPI_GROUP_EMPTY) == (size == 1));
    OK(MPI_Group_rank(made, &place));
    CHECK(place == MPI_UNDEFINED);
    if (size > 1) {
        OK(MPI_Group_translate_ranks(own, 1, from, made, to));
        CHECK(to[0] == MPI_UNDEFINED);
    }
    OK(MPI_Group_union(made, own, &other));
    CHECK(compared(other, world) == (rank == size - 1 ? MPI_IDENT : MPI_SIMILAR));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_intersection(made, own, &other));
    CHECK(other == MPI_GROUP_EMPTY);
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&made));
    int zero[1] = {0};
    OK(MPI_Group_incl(world, 1, zero, &made));
    OK(MPI_Group_excl(world, 1, zero, &other));
    CHECK(size_of(made) == 1 && size_of(other) == size - 1);
    CHECK(MPI_Group_fromint(MPI_Group_toint(made)) == made);
    CHECK(MPI_Group_toint(MPI_GROUP_EMPTY) == 0x109);
    OK(MPI_Group_free(&other));
    OK(MPI_Group_incl(world, 0, NULL, &other));
    CHECK(other == MPI_GROUP_EMPTY);
    OK(MPI_Group_range_excl(world, 1, back, &other));
    CHECK(other == MPI_GROUP_EMPTY);

    /* A call that fails does not change its outputs. */
    MPI_Group kept = (MPI_Group)0x77777, stale = made;
    int twice[2] = {0, 0}, outside[2] = {0, size}, below[1] = {-2};
    int still[1][3] = {{0, 0, 0}}, over[1][3] = {{0, size, 1}};
    OK(MPI_Group_free(&made));
    RAISES(MPI_ERR_GROUP, MPI_Group_size(stale, &place));
    RAISES(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &place));
    RAISES(MPI_ERR_GROUP, MPI_Group_size((MPI_Group)MPI_COMM_WORLD, &place));
    RAISES(MPI_ERR_GROUP, MPI_Group_free(&stale));
    RAISES(MPI_ERR_GROUP, MPI_Group_union(world, MPI_GROUP_NULL, &kept));
    RAISES(MPI_ERR_RANK, MPI_Group_incl(world, 2, twice, &kept));
    RAISES(MPI_ERR_RANK, MPI_Group_incl(world, 2, outside, &kept));
    RAISES(MPI_ERR_RANK, MPI_Group_excl(world, 1, below, &kept));
    RAISES(MPI_ERR_ARG, MPI_Group_incl(world, -1, zero, &kept));
    RAISES(MPI_ERR_ARG, MPI_Group_incl(world, 1, NULL, &kept));
    RAISES(MPI_ERR_ARG, MPI_Group_range_incl(world, 1, still, &kept));
    RAISES(MPI_ERR_RANK, MPI_Group_range_incl(world, 1, over, &kept));
    RAISES(MPI_ERR_ARG, MPI_Group_incl(world, 1, zero, NULL));
    RAISES(MPI_ERR_ARG, MPI_Group_size(world, NULL));
    CHECK(kept == (MPI_Group)0x77777);
    to[0] = to[1] = -7;
    RAISES(MPI_ERR_RANK, MPI_Group_translate_ranks(world, 2, outside, world, to));
    CHECK(to[0] == -7 && to[1] == -7);
    RAISES(MPI_ERR_ARG, MPI_Group_translate_ranks(world, 1, zero, world, NULL));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&own));
    OK(MPI_Finalize());
    return 0;
}
