/* Tests generalized requests: the library must call each function of the user as often as the standard
   says, and at the right time. */
#include "messages.h"
#include <pthread.h>
#include <unistd.h>

static int queries, frees, cancels, was_complete, answer, failing;

static int query(void *extra, MPI_Status *status)
{
    CHECK(extra == &answer);
    queries++;
    OK(MPI_Status_set_elements(status, MPI_INT, 3));
    OK(MPI_Status_set_cancelled(status, cancels > 0));
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = 42;
    return failing == 1 ? MPI_ERR_NAME : MPI_SUCCESS;
}

static int release(void *extra)
{
    CHECK(extra == &answer);
    frees++;
    return failing == 2 ? MPI_ERR_PORT : MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    CHECK(extra == &answer);
    cancels++;
    was_complete = complete;
    return MPI_SUCCESS;
}

static MPI_Request start(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Grequest_start(query, release, cancel, &answer, &request));
    CHECK(request != MPI_REQUEST_NULL);
    queries = frees = cancels = 0;
    return request;
}

static void *later(void *request)
{
    usleep(20000);
    OK(MPI_Grequest_complete(*(MPI_Request *)request));
    return NULL;
}

int main(void)
{
    begin();
    int flag, count, index, value = 1;
    MPI_Status status, statuses[2];
    MPI_Request request = start(), copy = request, pair[2];
    OK(MPI_Test(&request, &flag, &status));
    CHECK(!flag && queries == 0);
    OK(MPI_Grequest_complete(request));
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(request));
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag && queries == 1 && frees == 0 && status.MPI_TAG == 42);
    OK(MPI_Wait(&request, &status));
    CHECK(queries == 2 && frees == 1 && request == MPI_REQUEST_NULL);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3 && status.MPI_TAG == 42);
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(copy));
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(MPI_REQUEST_NULL));
    /* Another thread completes the request while this one waits. */
    request = copy = start();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, later, &copy) == 0);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(pthread_join(thread, NULL) == 0 && queries == 1 && frees == 1);
    /* The program frees one request before completing it, and another request after completing it. */
    request = copy = start();
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL && frees == 0);
    RAISES(MPI_ERR_REQUEST, MPI_Wait(&copy, MPI_STATUS_IGNORE));
    OK(MPI_Grequest_complete(copy));
    CHECK(frees == 1 && queries == 0);
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(copy));
    request = start();
    OK(MPI_Grequest_complete(request));
    OK(MPI_Request_free(&request));
    CHECK(frees == 1 && queries == 0);
    /* A request that the program cancels. The user's functions decide what that means. */
    request = start();
    OK(MPI_Cancel(&request));
    CHECK(cancels == 1 && was_complete == 0);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    /* The program waits for a generalized request and for a receive in one call. In the second and third
       round, a function of the user fails. */
    for (failing = 0; failing < 3; failing++) {
        pair[0] = start();
        OK(MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &pair[1]));
        OK(MPI_Grequest_complete(pair[0]));
        OK(MPI_Send(&failing, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
        if (failing == 0) {
            OK(MPI_Waitany(2, pair, &index, &status));
            CHECK(index == 0 && status.MPI_TAG == 42 && frees == 1);
            OK(MPI_Waitall(2, pair, statuses));
        } else {
            RAISES(MPI_ERR_IN_STATUS, MPI_Waitall(2, pair, statuses));
            CHECK(statuses[0].MPI_ERROR == (failing == 1 ? MPI_ERR_NAME : MPI_ERR_PORT));
            CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS && frees == 1 && queries == 1);
        }
        CHECK(value == failing);
    }
    failing = 0;
    RAISES(MPI_ERR_ARG, MPI_Grequest_start(NULL, release, cancel, NULL, &request));
    OK(MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
    RAISES(MPI_ERR_REQUEST, MPI_Grequest_complete(request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return end();
}
