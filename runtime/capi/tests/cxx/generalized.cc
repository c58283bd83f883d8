/* Generalized requests with callbacks in C++, threads' levels, and a second translation unit. */
#include "check.h"

#include <cstdlib>
#include <new>

/* Headers that come later define such macros only if there are none. */
#ifndef SEEK_SET
#define SEEK_SET 0
#endif
#ifndef SEEK_END
#define SEEK_END 2
#endif

/* The number of blocks of memory that C++ has allocated. */
static int blocks;

void *operator new(std::size_t size)
{
    void *block = std::malloc(size ? size : 1);
    if (!block) throw std::bad_alloc();
    blocks++;
    return block;
}
static void give_back(void *block)
{
    if (block) blocks--;
    std::free(block);
}
void operator delete(void *block) throw() { give_back(block); }
#if __cplusplus >= 201402L
void operator delete(void *block, std::size_t) noexcept { give_back(block); }
#endif

/* With this, the library refuses generalized requests. */
static bool refuses;

extern "C" int MPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
    MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    if (refuses) return MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM), MPI_ERR_NO_MEM;
    return PMPI_Grequest_start(query_fn, free_fn, cancel_fn, extra_state, request);
}

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
    /* A request that is not made leaves nothing behind. */
    refuses = true;
    int before = blocks;
    THROWS(MPI::ERR_NO_MEM, MPI::Grequest::Start(query, release, cancel, &queried));
    CHECK(blocks == before);
    CHECK(MPI::SEEK_SET == MPI_SEEK_SET && MPI::SEEK_END == MPI_SEEK_END && SEEK_END == 2);
    /* Both translation units have the same objects. */
    CHECK(elsewhere() == &MPI::DOUBLE && world_elsewhere() == &MPI::COMM_WORLD);
    return stop();
}
