/* Topologies and splits whose arguments differ between ranks, with TYPEPACK_CHECK_TYPES=1: every rank gets the same
 * error, and no call hangs. Neighbourhood collectives compare the edges, in all their forms. Also tests that sentinels are
 * refused as buffers. */
#include "check.h"

static int rank, size;

/* Calls that make a communicator with arguments that differ on one rank. */
static void makers(int odd)
{
    MPI_Comm made;
    int differs = rank == odd;
    int line[] = {size}, periods[] = {differs};
    RAISES(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 1, line, periods, 0, &made));
    periods[0] = 1;
    RAISES(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 1, line, periods, differs, &made));
    int grid[] = {differs ? 1 : size, differs ? size : 1}, both[] = {1, 1};
    RAISES(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 2, grid, both, 0, &made));
    int more[] = {size, 1};
    RAISES(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, differs ? 2 : 1, more, both, 0, &made));
    /* A ring in one direction; on the odd rank in the other one. */
    int *index = malloc(size * sizeof(int)), *edges = malloc(size * sizeof(int));
    CHECK(index && edges);
    for (int r = 0; r < size; r++) {
        index[r] = r + 1;
        edges[r] = (r + (differs ? size - 1 : 1)) % size;
    }
    if (size > 2)
        RAISES(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made));
    free(index);
    free(edges);
    int kind = differs ? MPI_COMM_TYPE_HW_UNGUIDED : MPI_COMM_TYPE_SHARED;
    RAISES(MPI_ERR_ARG, MPI_Comm_split_type(MPI_COMM_WORLD, kind, 0, MPI_INFO_NULL, &made));
    /* A rank may take no part, whatever the kind of the others. */
    kind = differs ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, kind, 0, MPI_INFO_NULL, &made));
    CHECK((made == MPI_COMM_NULL) == differs);
    if (made != MPI_COMM_NULL)
        OK(MPI_Comm_free(&made));
    /* The same arguments on all ranks are right. */
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, line, periods, 1, &made));
    OK(MPI_Comm_free(&made));
}

/* A ring in which the odd rank has no destination (`kind` is 0), no source (1), or two edges to the next rank (2). */
static void edges(int odd, int kind)
{
    int source = (rank + size - 1) % size, twice[] = {(rank + 1) % size, (rank + 1) % size};
    int differs = rank == odd;
    int sources = !(differs && kind == 1);
    int destinations = differs && kind != 1 ? kind : 1;
    int sent[] = {rank, rank}, got[] = {-1, -1};
    MPI_Request request;
    MPI_Comm ring;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, &source, MPI_UNWEIGHTED, destinations, twice,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring));
    OK(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
    RAISES(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, ring));
    RAISES(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(sent, 1, MPI_INT, got, 1, MPI_INT, ring));
    OK(MPI_Ineighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, ring, &request));
    RAISES(MPI_ERR_TOPOLOGY, MPI_Wait(&request, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_TOPOLOGY,
           MPI_Neighbor_alltoall_init(sent, 1, MPI_INT, got, 1, MPI_INT, ring, MPI_INFO_NULL, &request));
    CHECK(got[0] == -1 && got[1] == -1);
    OK(MPI_Barrier(ring));
    OK(MPI_Comm_free(&ring));
}

/* MPI_IN_PLACE is the address 1. As the buffer of a message or of a one-sided call, it is a mistake. */
static void sentinels(void)
{
    int word = 0;
    MPI_Win window;
    MPI_Request request;
    void *wrong = MPI_IN_PLACE;
    RAISES(MPI_ERR_BUFFER, MPI_Send(wrong, 1, MPI_INT, rank, 0, MPI_COMM_WORLD));
    RAISES(MPI_ERR_BUFFER, MPI_Isend(wrong, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request));
    RAISES(MPI_ERR_BUFFER, MPI_Irecv(wrong, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request));
    RAISES(MPI_ERR_BUFFER, MPI_Win_create(wrong, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_create(&word, sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, window));
    RAISES(MPI_ERR_BUFFER, MPI_Put(wrong, 1, MPI_INT, rank, 0, 1, MPI_INT, window));
    RAISES(MPI_ERR_BUFFER, MPI_Get(wrong, 1, MPI_INT, rank, 0, 1, MPI_INT, window));
    RAISES(MPI_ERR_BUFFER, MPI_Accumulate(wrong, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, window));
    RAISES(MPI_ERR_BUFFER, MPI_Fetch_and_op(wrong, &word, MPI_INT, rank, 0, MPI_SUM, window));
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Win_free(&window));
    CHECK(word == 0);
}

/* A split of an intercommunicator whose kind differs on one rank of one group: all ranks of both groups get the error. */
static void between(void)
{
    MPI_Comm half, both, made;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &both));
    OK(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
    int kind = rank == size - 1 ? MPI_COMM_TYPE_HW_UNGUIDED : MPI_COMM_TYPE_SHARED;
    RAISES(MPI_ERR_ARG, MPI_Comm_split_type(both, kind, 0, MPI_INFO_NULL, &made));
    OK(MPI_Comm_split_type(both, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    sentinels();
    if (size > 1)
        between();
    if (size > 1)
        for (int odd = 0; odd < size; odd++) {
            makers(odd);
            for (int kind = 0; kind < 3; kind++)
                edges(odd, kind);
        }
    OK(MPI_Finalize());
    return 0;
}
