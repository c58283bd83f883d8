/* Groups, communicators and topologies. */
#include "check.h"

static void groups(int rank, int size)
{
    MPI::Group all = MPI::COMM_WORLD.Get_group();
    CHECK(all.Get_size() == size && all.Get_rank() == rank);
    const int zero[1] = {0}, range[1][3] = {{0, size - 1, 1}};
    MPI::Group first = all.Incl(1, zero), rest = all.Excl(1, zero), same = all.Range_incl(1, range);
    MPI::Group none = all.Range_excl(1, range);
    CHECK(MPI::Group::Compare(all, same) == MPI::IDENT && none == MPI::GROUP_EMPTY);
    MPI::Group both = MPI::Group::Union(rest, first), common = MPI::Group::Intersect(all, first);
    MPI::Group without = MPI::Group::Difference(all, first);
    CHECK(both.Get_size() == size && common.Get_size() == 1 && without.Get_size() == size - 1);
    int place = -1;
    MPI::Group::Translate_ranks(all, 1, zero, both, &place);
    CHECK(place == size - 1);
    MPI::Intracomm lonely = MPI::COMM_WORLD.Create(first);
    CHECK((lonely == MPI::COMM_NULL) == (rank != 0));
    if (lonely != MPI::COMM_NULL) lonely.Free();
    all.Free();
    first.Free();
    if (rest != MPI::GROUP_EMPTY) rest.Free();
    CHECK(all == MPI::GROUP_NULL);
}

static void communicators(int rank, int size)
{
    MPI::Intracomm world = MPI::COMM_WORLD, dup = world.Dup();
    CHECK(MPI::Comm::Compare(world, dup) == MPI::CONGRUENT && !dup.Is_inter() && dup.Get_topology() == MPI::UNDEFINED);
    MPI::Comm &general = dup, &copy = general.Clone();
    CHECK(dynamic_cast<MPI::Intracomm *>(&copy) && MPI::Comm::Compare(copy, dup) == MPI::CONGRUENT);
    copy.Set_name("the copy");
    char name[MPI::MAX_OBJECT_NAME];
    int length;
    copy.Get_name(name, length);
    CHECK(length == 8 && strcmp(name, "the copy") == 0);
    copy.Free();
    delete &copy;
    MPI::Intracomm half = dup.Split(rank % 2, rank);
    CHECK(half.Get_size() == (size + 1 - rank % 2) / 2);
    CHECK(MPI::Intercomm(dup) == MPI::COMM_NULL && MPI::Cartcomm(dup) == MPI::COMM_NULL);
    if (size > 1) {
        MPI::Intercomm between = half.Create_intercomm(0, world, 1 - rank % 2, 5);
        CHECK(between.Is_inter() && between.Get_remote_size() == size - half.Get_size());
        CHECK(MPI::Intracomm(between) == MPI::COMM_NULL && MPI::Intercomm(between) == between);
        MPI::Group remote = between.Get_remote_group();
        CHECK(remote.Get_size() == between.Get_remote_size());
        remote.Free();
        int word = rank;
        between.Bcast(&word, 1, MPI::INT, rank % 2 ? 0 : half.Get_rank() == 0 ? MPI::ROOT : MPI::PROC_NULL);
        CHECK(rank % 2 == 0 || word == 0);
        MPI::Intercomm again = between.Dup();
        MPI::Comm &clone = again.Clone();
        CHECK(dynamic_cast<MPI::Intercomm *>(&clone));
        clone.Free();
        delete &clone;
        MPI::Intercomm part = again.Split(0, rank);
        part.Free();
        again.Free();
        MPI::Intracomm merged = between.Merge(rank % 2 == 1);
        CHECK(merged.Get_size() == size);
        merged.Free();
        between.Disconnect();
        CHECK(between == MPI::COMM_NULL);
    }
    half.Free();
    dup.Free();
    CHECK(dup == MPI::COMM_NULL && MPI::Comm::Get_parent() == MPI::COMM_NULL);
}

static void grids(int rank, int size)
{
    int dims[2] = {0, 1}, coords[2], back[2], from, to;
    const bool periods[2] = {true, false}, keep[2] = {true, false};
    bool wraps[2] = {false, true};
    MPI::Compute_dims(size, 2, dims);
    CHECK(dims[0] == size && dims[1] == 1);
    MPI::Cartcomm grid = MPI::COMM_WORLD.Create_cart(2, dims, periods, false);
    CHECK(grid.Get_topology() == MPI::CART && grid.Get_dim() == 2 && MPI::Cartcomm(grid) == grid);
    grid.Get_topo(2, back, wraps, coords);
    CHECK(back[0] == size && wraps[0] && !wraps[1] && coords[0] == rank);
    grid.Get_coords(rank, 2, coords);
    CHECK(grid.Get_cart_rank(coords) == rank);
    grid.Shift(0, 1, from, to);
    CHECK(from == (rank + size - 1) % size && to == (rank + 1) % size);
    CHECK(grid.Map(2, dims, periods) == rank);
    MPI::Cartcomm line = grid.Sub(keep);
    CHECK(line.Get_dim() == 1 && line.Get_size() == size);
    MPI::Comm &clone = grid.Clone();
    CHECK(dynamic_cast<MPI::Cartcomm *>(&clone) && clone.Get_topology() == MPI::CART);
    clone.Free();
    delete &clone;
    MPI::Cartcomm dup = line.Dup();
    dup.Free();
    line.Free();
    grid.Free();

    int *index = new int[size], *edges = new int[size], *degrees = new int[size];
    for (int i = 0; i < size; i++) index[i] = i + 1, edges[i] = (i + 1) % size, degrees[i] = 1;
    MPI::Graphcomm ring = MPI::COMM_WORLD.Create_graph(size, index, edges, false);
    int nodes, links;
    ring.Get_dims(&nodes, &links);
    CHECK(nodes == size && links == size && ring.Get_neighbors_count(rank) == 1);
    ring.Get_neighbors(rank, 1, &to);
    CHECK(to == (rank + 1) % size && ring.Map(size, index, edges) == rank);
    ring.Get_topo(size, size, index, edges);
    CHECK(index[size - 1] == size && ring.Get_topology() == MPI::GRAPH);
    MPI::Graphcomm second = ring.Dup();
    second.Free();
    ring.Free();

    const int next[1] = {(rank + 1) % size}, before[1] = {(rank + size - 1) % size}, weight[1] = {7};
    int weights[2];
    bool weighted = false;
    MPI::Distgraphcomm near = MPI::COMM_WORLD.Dist_graph_create_adjacent(1, before, weight, 1, next, weight,
        MPI::INFO_NULL, false);
    near.Get_dist_neighbors_count(rank, &from, &to, weighted);
    CHECK(from == 1 && to == 1 && weighted);
    near.Get_dist_neighbors(1, back, weights, 1, coords, weights + 1);
    CHECK(back[0] == before[0] && coords[0] == next[0] && weights[1] == 7);
    near.Free();
    near = MPI::COMM_WORLD.Dist_graph_create(1, &rank, degrees, next, MPI::INFO_NULL, false);
    near.Get_dist_neighbors_count(from, to, weighted);
    CHECK(from == 1 && to == 1 && !weighted && near.Get_topology() == MPI::DIST_GRAPH);
    MPI::Distgraphcomm third = near.Clone();
    third.Free();
    near.Free();
    delete[] index;
    delete[] edges;
    delete[] degrees;
}

int main(int argc, char **argv)
{
    start(argc, argv);
    const int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
    groups(rank, size);
    communicators(rank, size);
    grids(rank, size);
    return stop();
}
