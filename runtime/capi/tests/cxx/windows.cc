/* Windows: every call of MPI-2.2. */
#include "check.h"

int main(int argc, char **argv)
{
    start(argc, argv);
    MPI::Intracomm &world = MPI::COMM_WORLD;
    const int rank = world.Get_rank(), size = world.Get_size(), next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    int memory[4] = {rank, 0, 0, 0}, value = 100 + rank, got = -1;
    MPI::Win win = MPI::Win::Create(memory, sizeof memory, sizeof(int), MPI::INFO_NULL, world);
    win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);

    win.Fence(MPI::MODE_NOPRECEDE);
    win.Put(&value, 1, MPI::INT, next, 1, 1, MPI::INT);
    win.Get(&got, 1, MPI::INT, next, 0, 1, MPI::INT);
    win.Accumulate(&value, 1, MPI::INT, next, 2, 1, MPI::INT, MPI::SUM);
    win.Fence(MPI::MODE_NOSUCCEED);
    CHECK(memory[1] == 100 + before && got == next && memory[2] == 100 + before);

    MPI::Group group = win.Get_group();
    CHECK(group.Get_size() == size);
    const int to[1] = {next}, from[1] = {before};
    MPI::Group targets = group.Incl(1, to), origins = group.Incl(1, from);
    win.Post(origins, 0);
    win.Start(targets, 0);
    win.Put(&rank, 1, MPI::INT, next, 3, 1, MPI::INT);
    win.Complete();
    win.Wait();
    CHECK(memory[3] == before);
    win.Post(origins, 0);
    win.Start(targets, 0);
    win.Complete();
    while (!win.Test()) {}
    world.Barrier();

    win.Lock(MPI::LOCK_EXCLUSIVE, 0, 0);
    win.Accumulate(&value, 1, MPI::INT, 0, 2, 1, MPI::INT, MPI::REPLACE);
    win.Unlock(0);
    world.Barrier();
    win.Lock(MPI::LOCK_SHARED, 0, 0);
    win.Get(&got, 1, MPI::INT, 0, 2, 1, MPI::INT);
    win.Unlock(0);
    CHECK(got >= 100 && got < 100 + size);
    THROWS(MPI::ERR_RANK, win.Lock(MPI::LOCK_SHARED, size, 0));
    targets.Free();
    origins.Free();
    group.Free();
    win.Free();
    return stop();
}
