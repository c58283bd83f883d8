/* The function for the end of a registration is called once and outside functions of the program, even if the program ends
   the registration in such a function, ends the tool interface there, and makes no other call after MPI_Finalize.

   The test runs this alone and with one and two ranks. */
#include "tools.h"

static MPI_T_event_registration registrations[2];
static int inside, freed, ends;

static void on_freed(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    CHECK(!inside && safety == MPI_T_CB_REQUIRE_NONE && data == &registrations[freed]);
    CHECK(registration == registrations[freed]);
    freed++;
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    int before = freed;
    CHECK(comm == MPI_COMM_SELF && key != MPI_KEYVAL_INVALID && extra == NULL);
    inside = 1;
    DONE(MPI_T_event_handle_free(*(MPI_T_event_registration *)value, value, on_freed));
    if (ends)
        DONE(MPI_T_finalize());
    CHECK(freed == before);
    inside = 0;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int provided, key, kind, num;
    DONE(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    DONE(MPI_T_event_get_index("message_matched", &kind));
    for (int i = 0; i < 2; i++)
        DONE(MPI_T_event_handle_alloc(kind, NULL, MPI_INFO_NULL, &registrations[i]));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL));

    /* The next call that is not in a function of the program calls the function. */
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &registrations[0]));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    DONE(MPI_T_event_get_num(&num));
    CHECK(freed == 1);

    /* No call comes after this one. */
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &registrations[1]));
    ends = 1;
    OK(MPI_Finalize());
    CHECK(freed == 2);
    return 0;
}
