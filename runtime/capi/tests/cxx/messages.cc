/* Messages, requests and statuses. */
#include "check.h"

int main(int argc, char **argv)
{
    start(argc, argv);
    MPI::Intracomm world = MPI::COMM_WORLD;
    const int rank = world.Get_rank(), size = world.Get_size();
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int out = 10 + rank, in = -1, more[4];
    MPI::Status status;

    world.Sendrecv(&out, 1, MPI::INT, next, 1, &in, 1, MPI::INT, before, 1);
    CHECK(in == 10 + before);
    in = out;
    world.Sendrecv_replace(&in, 1, MPI::INT, next, 2, before, 2, status);
    CHECK(in == 10 + before && status.Get_source() == before && status.Get_tag() == 2);
    world.Sendrecv_replace(&in, 1, MPI::INT, MPI::PROC_NULL, 2, MPI::PROC_NULL, 2);

    /* Every mode, nonblocking. */
    MPI::Request requests[5];
    char space[10000];
    MPI::Attach_buffer(space, sizeof space);
    for (int mode = 0; mode < 4; mode++) {
        requests[0] = world.Irecv(more, 1, MPI::INT, before, mode);
        world.Barrier();
        switch (mode) {
        case 0: requests[1] = world.Isend(&out, 1, MPI::INT, next, mode); break;
        case 1: requests[1] = world.Ibsend(&out, 1, MPI::INT, next, mode); break;
        case 2: requests[1] = world.Issend(&out, 1, MPI::INT, next, mode); break;
        default: requests[1] = world.Irsend(&out, 1, MPI::INT, next, mode);
        }
        MPI::Status statuses[2];
        if (mode == 0) {
            MPI::Request::Waitall(2, requests);
        } else if (mode == 1) {
            MPI::Request::Waitall(2, requests, statuses);
            CHECK(statuses[0].Get_source() == before && statuses[0].Get_tag() == 1);
        } else if (mode == 2) {
            while (!MPI::Request::Testall(2, requests, statuses)) {}
            CHECK(statuses[0].Get_count(MPI::INT) == 1);
        } else {
            while (!MPI::Request::Testall(2, requests)) {}
        }
        CHECK(more[0] == 10 + before && requests[0] == MPI::REQUEST_NULL);
    }
    void *detached = 0;
    CHECK(MPI::Detach_buffer(detached) == static_cast<int>(sizeof space) && detached == space);

    /* Blocking modes, and probes. */
    MPI::Request received = world.Irecv(more, 4, MPI::INT, before, 9);
    world.Barrier();
    world.Rsend(&out, 1, MPI::INT, next, 9);
    received.Wait();
    received = world.Isend(&out, 1, MPI::INT, next, 10);
    while (!world.Iprobe(before, 10, status)) {}
    CHECK(status.Get_elements(MPI::INT) == 1 && !status.Is_cancelled());
    CHECK(world.Iprobe(before, 10));
    world.Probe(before, 10);
    world.Probe(MPI::ANY_SOURCE, MPI::ANY_TAG, status);
    CHECK(status.Get_source() == before);
    world.Recv(&in, 1, MPI::INT, before, 10, status);
    received.Wait(status);
    received = world.Isend(&out, 1, MPI::INT, next, 11);
    world.Recv(&in, 1, MPI::INT, before, 11);
    while (!received.Test(status)) {}
    CHECK(received.Test() && received.Get_status() && received.Get_status(status));
    if (rank == 0 && size > 1) world.Ssend(&out, 1, MPI::INT, 1, 12), world.Send(&out, 1, MPI::INT, 1, 13);
    if (rank == 1) world.Recv(&in, 1, MPI::INT, 0, 12), world.Recv(&in, 1, MPI::INT, 0, 13);

    /* Some and any. */
    for (int i = 0; i < 2; i++) requests[i] = world.Irecv(&more[i], 1, MPI::INT, before, 20 + i);
    for (int i = 2; i < 4; i++) requests[i] = world.Isend(&out, 1, MPI::INT, next, 18 + i);
    int done = 0, indices[4];
    MPI::Status statuses[4];
    const int any = MPI::Request::Waitany(4, requests, status);
    CHECK(any >= 0 && any < 4 && requests[any] == MPI::REQUEST_NULL);
    int at = -1;
    done = 1;
    if (MPI::Request::Testany(4, requests, at, status)) done++;
    if (done < 4) done += MPI::Request::Waitsome(4, requests, indices, statuses);
    while (done < 4) done += MPI::Request::Testsome(4, requests, indices, statuses);
    CHECK(MPI::Request::Waitsome(4, requests, indices) == MPI::UNDEFINED);
    CHECK(MPI::Request::Testsome(4, requests, indices) == MPI::UNDEFINED);
    CHECK(MPI::Request::Testany(4, requests, at) && at == MPI::UNDEFINED);
    CHECK(MPI::Request::Waitany(4, requests) == MPI::UNDEFINED);

    /* Persistent requests of every mode. */
    MPI::Prequest persistent[2] = {world.Recv_init(&in, 1, MPI::INT, before, 30),
        world.Send_init(&out, 1, MPI::INT, next, 30)};
    for (int i = 0; i < 3; i++) {
        in = -1;
        if (i) MPI::Prequest::Startall(2, persistent);
        else persistent[0].Start(), persistent[1].Start();
        MPI::Request::Waitall(2, persistent);
        CHECK(in == 10 + before && persistent[0] != MPI::REQUEST_NULL);
    }
    persistent[0].Free();
    persistent[1].Free();
    CHECK(persistent[0] == MPI::REQUEST_NULL);
    MPI::Prequest modes[3] = {world.Bsend_init(&out, 1, MPI::INT, next, 31),
        world.Ssend_init(&out, 1, MPI::INT, next, 31), world.Rsend_init(&out, 1, MPI::INT, next, 31)};
    for (int i = 0; i < 3; i++) modes[i].Free();

    /* A cancelled receive, and a status made by hand. */
    MPI::Request never = world.Irecv(&in, 1, MPI::INT, before, 40);
    never.Cancel();
    never.Wait(status);
    CHECK(status.Is_cancelled());
    MPI::Status made;
    made.Set_source(3);
    made.Set_tag(4);
    made.Set_error(MPI::ERR_TAG);
    made.Set_elements(MPI::INT, 5);
    made.Set_cancelled(true);
    const MPI_Status in_c = made;
    CHECK(in_c.MPI_SOURCE == 3 && made.Get_tag() == 4 && made.Get_error() == MPI::ERR_TAG);
    CHECK(MPI::Status(in_c).Get_elements(MPI::INT) == 5 && made.Is_cancelled());

    /* A C handle is as good as an object. */
    MPI_Request in_c_too = world.Isend(&out, 1, MPI_INT, next, 50);
    world.Recv(&in, 1, MPI_INT, before, 50);
    MPI::Request(in_c_too).Wait();
    world.Bcast(MPI::BOTTOM, 0, MPI::INT, 0);
    return stop();
}
