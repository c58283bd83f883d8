/* Tests wrong handles of windows, files, sessions and operations: null handles, handles of other kinds,
 * and numbers that are not handles. Also tests that very many objects leave no memory behind. */
#include "check.h"

static MPI_Win heard_win;
static int heard;

static void hear_win(MPI_Win *win, int *code, ...)
{
    heard_win = *win;
    heard = *code;
}

static int heard_file;

static void hear_file(MPI_File *file, int *code, ...)
{
    CHECK(*file == MPI_FILE_NULL);
    heard_file = *code;
}

/* Numbers that are not handles of windows, files, sessions or operations. */
static void *wrong[6];

static void fill(void)
{
    MPI_Comm comm;
    MPI_Info info;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    wrong[0] = (void *)comm;
    OK(MPI_Info_create(&info));
    wrong[1] = (void *)info;
    OK(MPI_Info_free(&info));
    wrong[2] = (void *)0;
    wrong[3] = (void *)0x77777;
    wrong[4] = (void *)-1L;
    wrong[5] = (void *)MPI_INT;
}

static void windows(void)
{
    MPI_Errhandler handler;
    OK(MPI_Win_create_errhandler(hear_win, &handler));
    for (int i = -1; i < 6; i++) {
        MPI_Win win = i < 0 ? MPI_WIN_NULL : (MPI_Win)wrong[i], before = win;
        char name[MPI_MAX_OBJECT_NAME] = "unchanged";
        int length = -1;
        heard = 0;
        RAISES(MPI_ERR_WIN, MPI_Win_fence(0, win));
        RAISES(MPI_ERR_WIN, MPI_Win_free(&win));
        if (i < 0) {
            /* The null handle has a name of its own. */
            OK(MPI_Win_get_name(win, name, &length));
            CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && length == (int)strlen(name));
            strcpy(name, "unchanged");
            length = -1;
        } else {
            RAISES(MPI_ERR_WIN, MPI_Win_get_name(win, name, &length));
        }
        RAISES(MPI_ERR_WIN, MPI_Put(NULL, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
        RAISES(MPI_ERR_WIN, MPI_Win_set_errhandler(win, handler));
        RAISES(MPI_ERR_WIN, MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
        CHECK(win == before && heard == 0 && length == -1 && strcmp(name, "unchanged") == 0);
        CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    }
    RAISES(MPI_ERR_ARG, MPI_Win_free(NULL));
    OK(MPI_Errhandler_free(&handler));
}

static void files(void)
{
    MPI_Errhandler handler;
    OK(MPI_File_create_errhandler(hear_file, &handler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    OK(MPI_Errhandler_free(&handler));
    for (int i = -1; i < 6; i++) {
        MPI_File file = i < 0 ? MPI_FILE_NULL : (MPI_File)wrong[i], before = file;
        MPI_Offset size = -1;
        /* If a call gets no valid file, the error handler of MPI_FILE_NULL is called. */
        heard_file = 0;
        RAISES(MPI_ERR_FILE, MPI_File_get_size(file, &size));
        CHECK(heard_file == MPI_ERR_FILE && size == -1);
        RAISES(MPI_ERR_FILE, MPI_File_sync(file));
        RAISES(MPI_ERR_FILE, MPI_File_close(&file));
        CHECK(file == before);
    }
    RAISES(MPI_ERR_ARG, MPI_File_close(NULL));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

static void sessions(void)
{
    for (int i = -1; i < 6; i++) {
        MPI_Session session = i < 0 ? MPI_SESSION_NULL : (MPI_Session)wrong[i], before = session;
        MPI_Errhandler got = MPI_ERRHANDLER_NULL;
        int sets = -1;
        RAISES(MPI_ERR_SESSION, MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
        RAISES(MPI_ERR_SESSION, MPI_Session_finalize(&session));
        RAISES(MPI_ERR_SESSION, MPI_Session_get_errhandler(session, &got));
        CHECK(session == before && sets == -1 && got == MPI_ERRHANDLER_NULL);
    }
}

static void operations(void)
{
    int commutes = -1;
    for (int i = -1; i < 6; i++) {
        MPI_Op op = i < 0 ? MPI_OP_NULL : (MPI_Op)wrong[i], before = op;
        int value = 1, sum = 0;
        RAISES(MPI_ERR_OP, MPI_Op_commutative(op, &commutes));
        RAISES(MPI_ERR_OP, MPI_Op_free(&op));
        RAISES(MPI_ERR_OP, MPI_Allreduce(&value, &sum, 1, MPI_INT, op, MPI_COMM_SELF));
        CHECK(op == before && commutes == -1 && sum == 0);
    }
    /* Predefined operations cannot be freed. */
    MPI_Op op = MPI_SUM;
    RAISES(MPI_ERR_OP, MPI_Op_free(&op));
    op = MPI_REPLACE;
    RAISES(MPI_ERR_OP, MPI_Op_free(&op));
    CHECK(op == MPI_REPLACE);
    OK(MPI_Op_commutative(MPI_SUM, &commutes));
    CHECK(commutes == 1);
}

/* Memory of this process, in pages. */
static long resident(void)
{
    long all, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &all, &pages) == 2);
    fclose(file);
    return pages;
}

/* The memory of very many datatypes goes back to the system when they are freed. */
static void freed_types(void)
{
    enum { N = 200000 };
    MPI_Datatype *types = malloc(N * sizeof *types);
    memset(types, 0, N * sizeof *types);
    long before = resident();
    for (int i = 0; i < N; i++) {
        MPI_Datatype members[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
        OK(MPI_Type_create_struct(3, (int[]){1, 2, 1}, (MPI_Aint[]){0, 8 + i % 7, 100}, members, &types[i]));
        OK(MPI_Type_commit(&types[i]));
    }
    long made = resident();
    for (int i = 0; i < N; i++)
        OK(MPI_Type_free(&types[i]));
    free(types);
    /* The table of handles stays, so that the handles of the freed datatypes stay invalid. */
#ifndef __SANITIZE_ADDRESS__
    CHECK(resident() - before < (made - before) / 3);
#endif
}

int main(void)
{
    MPI_Comm comm;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    fill();
    windows();
    files();
    sessions();
    operations();
    freed_types();
    comm = (MPI_Comm)wrong[0];
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
