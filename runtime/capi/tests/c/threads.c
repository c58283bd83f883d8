/* Tests several threads of a rank that communicate at once. The threads form pairs. Each pair exchanges
   messages of its own, long and short, and waits for them. A thread that waits must be woken by the thread
   that makes progress for all of them. */
#include "messages.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 60 };

static void *work(void *argument)
{
    int me = (int)(long)argument, other = size == 1 ? 0 : rank ^ 1;
    unsigned char *out = malloc(200000), *in = malloc(200000);
    for (int round = 0; round < ROUNDS; round++) {
        int n = round % 3 == 0 ? 150000 : 10 * round, flag = 0, index, outcount, indices[2];
        /* The messages go to the partner thread, which is in this process or in another one. */
        int to = 10 + (me + 1) % THREADS, from = 10 + me;
        MPI_Request requests[2];
        MPI_Status status;
        fill(out, n, round + 3 * to);
        memset(in, 0, n);
        OK(MPI_Irecv(in, n, MPI_BYTE, other, from, MPI_COMM_WORLD, &requests[0]));
        if (round % 2)
            OK(MPI_Isend(out, n, MPI_BYTE, other, to, MPI_COMM_WORLD, &requests[1]));
        else
            OK(MPI_Issend(out, n, MPI_BYTE, other, to, MPI_COMM_WORLD, &requests[1]));
        switch (round % 5) {
        case 0:
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            break;
        case 1:
            OK(MPI_Wait(&requests[0], &status));
            check_status(&status, other, from, n);
            break;
        case 2:
            for (int i = 0; i < 2; i++) OK(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
            break;
        case 3:
            for (int done = 0; done < 2; done += outcount)
                OK(MPI_Waitsome(2, requests, &outcount, indices, MPI_STATUSES_IGNORE));
            break;
        default:
            while (!flag) OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
        }
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(is_filled(in, n, round + 3 * from));
    }
    free(out);
    free(in);
    return NULL;
}

int main(void)
{
    begin();
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return end();
}
