/* Makes packing calls with one wrong argument each, and checks that they return an error of the right
   class and write nothing. Also checks that the library truncates names that are too long. */
#include "messages.h"

static MPI_Datatype type, uncommitted, stale;
static int data[6] = {1, 2, 3, 4, 5, 6};
static char unit[100];
static MPI_Comm world;

static int untouched(void)
{
    for (int i = 0; i < 100; i++)
        if (unit[i] != 0x55) return 0;
    for (int i = 0; i < 6; i++)
        if (data[i] != i + 1) return 0;
    return 1;
}

/* Makes a call with the position `at` and checks the class of its error. Afterwards the position, the
   packed unit and the data must be unchanged. */
#define WRONG(class, at, call)                                                               \
    do {                                                                                     \
        position = (at);                                                                     \
        RAISES(class, call);                                                                 \
        CHECK(position == (at) && untouched());                                              \
    } while (0)

/* All calls in one form. The two forms differ in the types of count and position. */
#define FORM(name, pack, unpack, size_of, count_t)                                           \
    static void name(void)                                                                   \
    {                                                                                        \
        count_t position, bytes = -7;                                                        \
        WRONG(MPI_ERR_BUFFER, 0, pack(NULL, 1, type, unit, 100, &position, world));          \
        WRONG(MPI_ERR_ARG, 0, pack(data, 1, type, NULL, 100, &position, world));             \
        WRONG(MPI_ERR_ARG, 0, pack(data, 1, type, unit, 100, NULL, world));                  \
        WRONG(MPI_ERR_COUNT, 0, pack(data, -1, type, unit, 100, &position, world));          \
        WRONG(MPI_ERR_ARG, 0, pack(data, 1, type, unit, -1, &position, world));              \
        WRONG(MPI_ERR_ARG, -1, pack(data, 1, type, unit, 100, &position, world));            \
        WRONG(MPI_ERR_ARG, 101, pack(data, 0, type, unit, 100, &position, world));           \
        WRONG(MPI_ERR_BUFFER, 89, pack(data, 1, type, unit, 100, &position, world));         \
        WRONG(MPI_ERR_BUFFER, 0, pack(data, 9, type, unit, 100, &position, world));          \
        WRONG(MPI_ERR_TYPE, 0, pack(data, 1, uncommitted, unit, 100, &position, world));     \
        WRONG(MPI_ERR_TYPE, 0, pack(data, 1, stale, unit, 100, &position, world));           \
        WRONG(MPI_ERR_TYPE, 0, pack(data, 1, MPI_DATATYPE_NULL, unit, 100, &position, world)); \
        WRONG(MPI_ERR_COMM, 0, pack(data, 1, type, unit, 100, &position, MPI_COMM_NULL));    \
        WRONG(MPI_ERR_BUFFER, 0, unpack(unit, 100, &position, NULL, 1, type, world));        \
        WRONG(MPI_ERR_ARG, 0, unpack(NULL, 100, &position, data, 1, type, world));           \
        WRONG(MPI_ERR_ARG, 0, unpack(unit, 100, NULL, data, 1, type, world));                \
        WRONG(MPI_ERR_COUNT, 0, unpack(unit, 100, &position, data, -1, type, world));        \
        WRONG(MPI_ERR_ARG, 0, unpack(unit, -1, &position, data, 1, type, world));            \
        WRONG(MPI_ERR_ARG, -1, unpack(unit, 100, &position, data, 1, type, world));          \
        WRONG(MPI_ERR_BUFFER, 0, unpack(unit, 11, &position, data, 1, type, world));         \
        WRONG(MPI_ERR_TYPE, 0, unpack(unit, 100, &position, data, 1, uncommitted, world));   \
        WRONG(MPI_ERR_COMM, 0, unpack(unit, 100, &position, data, 1, type, MPI_COMM_NULL));  \
        RAISES(MPI_ERR_COUNT, size_of(-1, type, world, &bytes));                             \
        RAISES(MPI_ERR_TYPE, size_of(1, uncommitted, world, &bytes));                        \
        RAISES(MPI_ERR_ARG, size_of(1, type, world, NULL));                                  \
        CHECK(bytes == -7);                                                                  \
        /* Packing 0 elements needs no memory. MPI_BOTTOM is valid for absolute addresses. */  \
        position = 100;                                                                      \
        OK(pack(NULL, 0, type, unit, 100, &position, world));                                \
        CHECK(position == 100 && untouched());                                               \
    }

FORM(as_ints, MPI_Pack, MPI_Unpack, MPI_Pack_size, int)
FORM(as_counts, MPI_Pack_c, MPI_Unpack_c, MPI_Pack_size_c, MPI_Count)

static void external(void)
{
    const char *rep = "external32";
    MPI_Aint position, bytes = -7;
    WRONG(MPI_ERR_BUFFER, 0, MPI_Pack_external(rep, NULL, 1, type, unit, 100, &position));
    WRONG(MPI_ERR_ARG, 0, MPI_Pack_external(rep, data, 1, type, NULL, 100, &position));
    WRONG(MPI_ERR_ARG, 0, MPI_Pack_external("native", data, 1, type, unit, 100, &position));
    WRONG(MPI_ERR_ARG, 0, MPI_Pack_external(NULL, data, 1, type, unit, 100, &position));
    WRONG(MPI_ERR_COUNT, 0, MPI_Pack_external(rep, data, -1, type, unit, 100, &position));
    WRONG(MPI_ERR_ARG, -1, MPI_Pack_external(rep, data, 1, type, unit, 100, &position));
    WRONG(MPI_ERR_BUFFER, 89, MPI_Pack_external(rep, data, 1, type, unit, 100, &position));
    WRONG(MPI_ERR_TYPE, 0, MPI_Pack_external(rep, data, 1, uncommitted, unit, 100, &position));
    WRONG(MPI_ERR_BUFFER, 0, MPI_Unpack_external(rep, unit, 100, &position, NULL, 1, type));
    WRONG(MPI_ERR_ARG, 0, MPI_Unpack_external(rep, NULL, 100, &position, data, 1, type));
    WRONG(MPI_ERR_BUFFER, 0, MPI_Unpack_external(rep, unit, 11, &position, data, 1, type));
    WRONG(MPI_ERR_TYPE, 0, MPI_Unpack_external(rep, unit, 100, &position, data, 1, stale));
    RAISES(MPI_ERR_ARG, MPI_Pack_external_size("native", 1, type, &bytes));
    RAISES(MPI_ERR_COUNT, MPI_Pack_external_size(rep, -1, type, &bytes));
    CHECK(bytes == -7);
}

/* Checks what the standard says: "Attempts to put names longer than this will result in truncation of the
   name." */
static void names(void)
{
    char name[3 * MPI_MAX_OBJECT_NAME], got[MPI_MAX_OBJECT_NAME];
    int length = -1;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    OK(MPI_Type_set_name(type, name));
    OK(MPI_Type_get_name(type, got, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && !strncmp(got, name, length) && !got[length]);
    OK(MPI_Comm_set_name(world, name));
    OK(MPI_Comm_get_name(world, got, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && !strncmp(got, name, length) && !got[length]);
    RAISES(MPI_ERR_ARG, MPI_Comm_set_name(world, NULL));
    RAISES(MPI_ERR_ARG, MPI_Type_set_name(type, NULL));
}

int main(void)
{
    begin();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    memset(unit, 0x55, sizeof unit);
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_contiguous(3, MPI_INT, &uncommitted));
    OK(MPI_Type_contiguous(3, MPI_INT, &stale));
    OK(MPI_Type_commit(&stale));
    MPI_Datatype freed = stale;
    OK(MPI_Type_free(&freed));
    as_ints();
    as_counts();
    external();
    names();
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Comm_free(&world));
    return end();
}
