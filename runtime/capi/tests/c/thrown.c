/* Lets an exception of another language leave the function of an operation. The process must end, with one line. */
#include "messages.h"

#include <unwind.h>

static void throws(void *in, void *inout, int *count, MPI_Datatype *type)
{
    static struct _Unwind_Exception exception = {.exception_class = 0x5445535454455354};
    (void)in, (void)inout, (void)count, (void)type;
    _Unwind_RaiseException(&exception);
}

int main(void)
{
    int one = 1, two = 2;
    MPI_Op op;
    begin();
    OK(MPI_Op_create(throws, 1, &op));
    MPI_Reduce_local(&one, &two, 1, MPI_INT, op);
    return end();
}
