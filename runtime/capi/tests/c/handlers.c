/* Tests error handlers: which one the library calls, with which arguments, and how long it lives. Also
   tests error classes, codes and strings that the user adds. */
#include "check.h"

static MPI_Comm heard_on[8];
static int heard[8], times;

static void hear(MPI_Comm *comm, int *code, ...)
{
    CHECK(times < 8);
    heard_on[times] = *comm;
    heard[times++] = *code;
}

static void hear_too(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    exit(3);
}

/* Checks that the error handler was called exactly once, with this communicator and this code. */
static void check_heard(MPI_Comm comm, int code)
{
    CHECK(times == 1 && heard_on[0] == comm && heard[0] == code);
    times = 0;
}

/* Checks that all calls that return an error handler return the same handle, and that the handle stays
   valid until it has been freed once for each such call. */
static void handles(void)
{
    MPI_Errhandler made, other, got, again, copy;
    MPI_Comm dup;
    OK(MPI_Comm_create_errhandler(hear, &made));
    OK(MPI_Comm_create_errhandler(hear, &other));
    CHECK(made != other);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, made));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_get_errhandler(dup, &again));
    CHECK(got == made && again == made && MPI_Errhandler_fromint(MPI_Errhandler_toint(got)) == made);
    copy = made;
    OK(MPI_Errhandler_free(&made));
    CHECK(made == MPI_ERRHANDLER_NULL);
    OK(MPI_Errhandler_free(&again));
    /* The program has freed the handle less often than calls have returned it, so the handle is still
       valid and can be set. */
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    OK(MPI_Comm_get_errhandler(dup, &again));
    CHECK(again == MPI_ERRORS_RETURN);
    OK(MPI_Errhandler_free(&again));
    CHECK(again == MPI_ERRHANDLER_NULL);
    OK(MPI_Comm_set_errhandler(dup, got));
    OK(MPI_Errhandler_free(&got));
    /* Now the program has freed the handle as often as calls have returned it, so the handle is invalid.
       Both communicators still have the error handler. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    RAISES(MPI_ERR_ERRHANDLER, MPI_Errhandler_free(&copy));
    RAISES(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, copy));
    times = 0;
    RAISES(MPI_ERR_ARG, MPI_Comm_rank(dup, NULL));
    check_heard(dup, MPI_ERR_ARG);
    RAISES(MPI_ERR_ARG, MPI_Comm_rank(MPI_COMM_WORLD, NULL));
    check_heard(MPI_COMM_WORLD, MPI_ERR_ARG);
    OK(MPI_Comm_get_errhandler(dup, &got));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &again));
    CHECK(got == again && got != other);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Errhandler_free(&other));
    RAISES(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL));
    RAISES(MPI_ERR_ARG, MPI_Comm_create_errhandler(NULL, &other));
    /* An error handler for sessions can be made at any time, but cannot be set on a communicator. */
    OK(MPI_Session_create_errhandler((MPI_Session_errhandler_function *)hear_too, &other));
    RAISES(MPI_ERR_ARG, MPI_Comm_set_errhandler(MPI_COMM_SELF, other));
    OK(MPI_Errhandler_free(&other));
}

static int verdict;

static int refuse(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    return verdict;
}

/* Checks that a failed call on a communicator calls the error handler of that communicator, and that a
   failed call without a communicator calls the error handler of MPI_COMM_SELF. */
static void places(void)
{
    MPI_Comm comm, stale, world = MPI_COMM_WORLD;
    MPI_Errhandler handler;
    int key, code, text_length;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Comm_create_errhandler(hear, &handler));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    /* The user's delete function returns a code that the user added. The error handler and the caller get
       this code unchanged. */
    OK(MPI_Add_error_code(MPI_ERR_NAME, &code));
    OK(MPI_Add_error_string(code, "not yet"));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &key, NULL));
    OK(MPI_Comm_set_attr(comm, key, NULL));
    verdict = code;
    stale = comm;
    times = 0;
    CHECK(MPI_Comm_free(&comm) == code && comm == stale);
    check_heard(comm, code);
    CHECK(MPI_Comm_delete_attr(comm, key) == code);
    check_heard(comm, code);
    CHECK(MPI_Comm_set_attr(comm, key, &key) == code);
    check_heard(comm, code);
    OK(MPI_Error_string(code, text, &text_length));
    CHECK(strcmp(text, "not yet") == 0 && text_length == 7);
    verdict = MPI_SUCCESS;
    OK(MPI_Comm_call_errhandler(comm, MPI_ERR_PORT));
    check_heard(comm, MPI_ERR_PORT);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free_keyval(&key));
    CHECK(times == 0);
    /* This communicator has been freed, so the error handler of MPI_COMM_SELF is called. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    RAISES(MPI_ERR_COMM, MPI_Comm_rank(stale, &key));
    check_heard(MPI_COMM_SELF, MPI_ERR_COMM);
    RAISES(MPI_ERR_COMM, MPI_Comm_free(&stale));
    check_heard(MPI_COMM_SELF, MPI_ERR_COMM);
    RAISES(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &key));
    check_heard(MPI_COMM_SELF, MPI_ERR_TYPE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    RAISES(MPI_ERR_COMM, MPI_Comm_free(&world));
    check_heard(MPI_COMM_WORLD, MPI_ERR_COMM);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_PORT));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
}

static MPI_File heard_file;
static int heard_code;

static void hear_file(MPI_File *file, int *code, ...)
{
    heard_file = *file;
    heard_code = *code;
}

static void change_file(MPI_File *file, int *code, ...)
{
    heard_file = *file;
    *code = *code == MPI_ERR_NO_SUCH_FILE ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* Checks that the default error handler of files is MPI_ERRORS_RETURN, and that the program can set
   another one. */
static void files(void)
{
    MPI_Errhandler handler, got;
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_File_create_errhandler(hear_file, &handler));
    RAISES(MPI_ERR_ARG, MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    CHECK(got == handler);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&handler));
    heard_file = (MPI_File)&file;
    OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_QUOTA));
    CHECK(heard_file == MPI_FILE_NULL && heard_code == MPI_ERR_QUOTA);
    RAISES(MPI_ERR_FILE, MPI_File_set_errhandler((MPI_File)0x77777, MPI_ERRORS_RETURN));
    CHECK(heard_file == MPI_FILE_NULL && heard_code == MPI_ERR_FILE);
    /* Calls that open or delete a file have no open file, so they call the error handler of MPI_FILE_NULL,
       and not that of the communicator. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    heard_code = MPI_SUCCESS;
    RAISES(MPI_ERR_NO_SUCH_FILE, MPI_File_delete("/nonexistent", MPI_INFO_NULL));
    CHECK(heard_code == MPI_ERR_NO_SUCH_FILE);
    heard_code = MPI_SUCCESS;
    RAISES(MPI_ERR_NO_SUCH_FILE,
           MPI_File_open(MPI_COMM_WORLD, "/nonexistent", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK(heard_code == MPI_ERR_NO_SUCH_FILE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    /* A call returns the code that the error handler leaves. */
    OK(MPI_File_create_errhandler(change_file, &handler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_File_delete("/nonexistent", MPI_INFO_NULL));
    CHECK(MPI_File_delete("/dev", MPI_INFO_NULL) == MPI_ERR_OTHER);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

static void codes(void)
{
    int class, code, of, length = -1;
    char text[MPI_MAX_ERROR_STRING] = "something";
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_code(class, &code));
    CHECK(code > MPI_ERR_LASTCODE && code != class);
    OK(MPI_Error_class(code, &of));
    CHECK(of == class);
    OK(MPI_Error_class(class, &of));
    CHECK(of == class);
    /* The code first has no string, then an empty string, and then two other strings, the second of which
       replaces the first. */
    OK(MPI_Error_string(code, text, &length));
    CHECK(length == 0 && text[0] == 0);
    RAISES(MPI_ERR_ARG, MPI_Remove_error_string(code));
    OK(MPI_Add_error_string(code, ""));
    RAISES(MPI_ERR_ARG, MPI_Remove_error_code(code));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Add_error_string(code, "first"));
    OK(MPI_Add_error_string(code, "second"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "second") == 0 && length == 6);
    RAISES(MPI_ERR_ARG, MPI_Remove_error_class(class));
    RAISES(MPI_ERR_ARG, MPI_Remove_error_class(code));
    RAISES(MPI_ERR_ARG, MPI_Remove_error_code(class));
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    RAISES(MPI_ERR_ARG, MPI_Error_string(code, text, &length));
    OK(MPI_Remove_error_class(class));
    RAISES(MPI_ERR_ARG, MPI_Add_error_code(class, &code));
    RAISES(MPI_ERR_ARG, MPI_Remove_error_class(MPI_ERR_ARG));
    RAISES(MPI_ERR_ARG, MPI_Add_error_string(MPI_ERR_ARG, "mine"));
}

/* Checks that MPI_Error_string says what the last failed call of this thread has found, and nothing about another
   class. */
static void texts(void)
{
    char text[MPI_MAX_ERROR_STRING], who[32];
    int length, rank, buffer[4] = {0};
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    snprintf(who, sizeof who, "rank %d: MPI_Send: ", rank);
    int code = MPI_Send(buffer, 1, MPI_INT, 777, 0, MPI_COMM_WORLD);
    RAISES(MPI_ERR_RANK, code);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strncmp(text, "MPI_ERR_RANK: invalid rank: ", 28) == 0 && strncmp(text + 28, who, strlen(who)) == 0);
    CHECK(strstr(text, "777") != NULL && (int)strlen(text) == length);
    OK(MPI_Error_string(MPI_ERR_TAG, text, &length));
    CHECK(strcmp(text, "MPI_ERR_TAG: invalid tag") == 0);
    /* Both receives fail: the code of the call and the classes in the statuses have texts. */
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int i = 0; i < 2; i++)
        OK(MPI_Irecv(buffer + i, 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]));
    for (int i = 0; i < 2; i++) OK(MPI_Send(buffer, 4, MPI_INT, 0, i, MPI_COMM_SELF));
    code = MPI_Waitall(2, requests, statuses);
    RAISES(MPI_ERR_IN_STATUS, code);
    CHECK(statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE);
    OK(MPI_Error_string(statuses[1].MPI_ERROR, text, &length));
    CHECK(strstr(text, "MPI_Waitall: ") != NULL && strstr(text, "has 16 bytes") != NULL);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "MPI_Waitall: ") != NULL && strstr(text, "has 16 bytes") != NULL);
    OK(MPI_Error_string(MPI_ERR_RANK, text, &length));
    CHECK(strcmp(text, "MPI_ERR_RANK: invalid rank") == 0);
}

int main(int argc, char **argv)
{
    MPI_Errhandler early;
    OK(MPI_Session_create_errhandler((MPI_Session_errhandler_function *)hear_too, &early));
    OK(MPI_Errhandler_free(&early));
    OK(MPI_Init(&argc, &argv));
    errors_return();
    handles();
    places();
    files();
    codes();
    texts();
    OK(MPI_Finalize());
    codes();
    return 0;
}
