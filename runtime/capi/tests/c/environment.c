/* Tests calls before init and after finalize, MPI_COMM_WORLD and MPI_COMM_SELF, and threads. The calls
   that are allowed at any time (MPI-5.0 section 11.4.1) must work at every stage of the process. */
#include "check.h"

#include <pthread.h>

static void initialized(int begun, int ended)
{
    int flag = -1;
    OK(MPI_Initialized(&flag));
    CHECK(flag == begun);
    OK(MPI_Finalized(&flag));
    CHECK(flag == ended);
}

/* Makes the calls that are allowed at any time. The program calls this function at every stage, also in
   another thread. */
static void *always(void *nothing)
{
    int n = -1, minor = -1, flag = -1, class, code;
    char text[MPI_MAX_ERROR_STRING], library[MPI_MAX_LIBRARY_VERSION_STRING];
    char key[MPI_MAX_INFO_KEY], value[8];
    MPI_Info info, other;
    MPI_Status status;
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    OK(MPI_Get_version(&n, &minor));
    CHECK(n == MPI_VERSION && minor == MPI_SUBVERSION);
    OK(MPI_Abi_get_version(&n, &minor));
    CHECK(n == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    OK(MPI_Get_library_version(library, &n));
    CHECK(n == (int)strlen(library) && strstr(library, "typepack"));
    OK(MPI_Abi_get_info(&info));
    OK(MPI_Info_get(info, "mpi_count_size", 7, value, &flag));
    CHECK(flag && strcmp(value, "8") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "value"));
    OK(MPI_Info_dup(info, &other));
    OK(MPI_Info_delete(info, "key"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 0);
    OK(MPI_Info_get_nthkey(other, 0, key));
    OK(MPI_Info_get_valuelen(other, "key", &n, &flag));
    CHECK(strcmp(key, "key") == 0 && flag && n == 5);
    n = sizeof value;
    OK(MPI_Info_get_string(other, "key", &n, value, &flag));
    CHECK(n == 6 && flag && strcmp(value, "value") == 0);
    CHECK(MPI_Info_fromint(MPI_Info_toint(other)) == other);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&other));
    OK(MPI_Info_create_env(0, NULL, &info));
    OK(MPI_Info_free(&info));
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    OK(MPI_Error_class(MPI_ERR_RANK, &class));
    OK(MPI_Error_string(MPI_ERR_RANK, text, &n));
    CHECK(class == MPI_ERR_RANK && n == (int)strlen(text) && n > 0);
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "mine"));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_get_source(&status, &n));
    CHECK(n == 3);
    CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0);
    return nothing;
}

static void by_a_thread(void *(*body)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void *not_main(void *nothing)
{
    int flag = -1;
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag == 0);
    return nothing;
}

int main(int argc, char **argv)
{
    int flag = -1, rank = -1, size = -1, provided = -1, level = -1;
    initialized(0, 0);
    always(NULL);
    by_a_thread(always);
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided));
    initialized(1, 0);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(rank >= 0 && rank < size);
    OK(MPI_Comm_rank(MPI_COMM_SELF, &rank));
    OK(MPI_Comm_size(MPI_COMM_SELF, &size));
    CHECK(rank == 0 && size == 1);
    OK(MPI_Query_thread(&level));
    CHECK(provided >= MPI_THREAD_SERIALIZED && level == provided);
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag == 1);
    by_a_thread(not_main);
    always(NULL);
    errors_return();
    RAISES(MPI_ERR_OTHER, MPI_Init(&argc, &argv));
    OK(MPI_Finalize());
    initialized(1, 1);
    always(NULL);
    by_a_thread(always);
    /* A session may begin at this stage. */
    MPI_Session session = MPI_SESSION_NULL;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
    initialized(1, 1);
    return 0;
}
