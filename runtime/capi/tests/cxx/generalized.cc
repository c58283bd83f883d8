/* Generalized requests with callbacks in C++, threads' levels, and a second translation unit. */
#include "check.h"

const MPI::Datatype *elsewhere();
MPI::Intracomm *world_elsewhere();

static int queried, freed, cancelled;

static int query(void *extra, MPI::Status &status)
{
    CHECK(extra == &queried);
    status.Set_elements(MPI::INT, 3);
    status.Set_cancelled(cancelled > 0);
    status.Set_source(MPI::UNDEFINED);
    status.Set_tag(17);
    queried++;
    return MPI::SUCCESS;
}
static int release(void *extra)
{
    CHECK(extra == &queried);
    freed++;
    return MPI::SUCCESS;
}
static int cancel(void *extra, bool complete)
{
    CHECK(extra == &queried && !complete);
    cancelled++;
    return MPI::SUCCESS;
}

int main()
{
    CHECK(MPI::Init_thread(MPI::THREAD_SERIALIZED) >= MPI::THREAD_SERIALIZED);
    MPI::COMM_SELF.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    MPI::Status status;
    MPI::Grequest request = MPI::Grequest::Start(query, release, cancel, &queried);
    CHECK(!request.Test(status));
    request.Complete();
    request.Wait(status);
    CHECK(queried == 1 && freed == 1 && status.Get_tag() == 17 && status.Get_count(MPI::INT) == 3);
    CHECK(request == MPI::REQUEST_NULL && !status.Is_cancelled());
    request = MPI::Grequest::Start(query, release, cancel, &queried);
    request.Cancel();
    request.Complete();
    request.Wait(status);
    CHECK(cancelled == 1 && status.Is_cancelled() && freed == 2);
    /* Both translation units have the same objects. */
    CHECK(elsewhere() == &MPI::DOUBLE && world_elsewhere() == &MPI::COMM_WORLD);
    return stop();
}
