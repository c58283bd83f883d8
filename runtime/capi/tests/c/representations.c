/* Tests the representations of data in files: external32, and one of the user in which an int takes 8 bytes and
   is stored as three times its value. The user's functions must run only in the program's thread, in every kind of
   access. */
#include "files.h"

#include <pthread.h>
#include <stdint.h>

enum { COUNT = 300 };

static char name[256];
static pthread_t thread;
static int calls, fails;
static MPI_Datatype gaps, filetype;
static int data[2 * COUNT], back[2 * COUNT];

static int extent(MPI_Datatype datatype, MPI_Aint *bytes, void *extra)
{
    CHECK(extra == &calls && pthread_equal(thread, pthread_self()));
    if (datatype != MPI_INT) return MPI_ERR_TYPE;
    *bytes = 8;
    return MPI_SUCCESS;
}

/* Returns the address of element `at` of the buffer. */
static int *element(void *buffer, MPI_Datatype datatype, MPI_Offset at)
{
    MPI_Aint lb, step;
    CHECK(MPI_Type_get_extent(datatype, &lb, &step) == MPI_SUCCESS);
    return (int *)((char *)buffer + at * step);
}

static int to_file(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position, void *extra)
{
    CHECK(extra == &calls && pthread_equal(thread, pthread_self()));
    calls++;
    for (MPI_Count i = 0; i < count; i++) {
        int64_t stored = 3 * (int64_t)*element(user, datatype, position + i);
        memcpy((char *)file + 8 * i, &stored, 8);
    }
    return fails ? MPI_ERR_CONVERSION : MPI_SUCCESS;
}

static int from_file(void *user, MPI_Datatype datatype, MPI_Count count, void *file, MPI_Offset position, void *extra)
{
    CHECK(extra == &calls && pthread_equal(thread, pthread_self()));
    calls++;
    for (MPI_Count i = 0; i < count; i++) {
        int64_t stored;
        memcpy(&stored, (char *)file + 8 * i, 8);
        *element(user, datatype, position + i) = (int)(stored / 3);
    }
    return MPI_SUCCESS;
}

static int to_file_int(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *extra)
{
    return to_file(user, datatype, count, file, position, extra);
}

static int from_file_int(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *extra)
{
    return from_file(user, datatype, count, file, position, extra);
}

static int value(int of, int at) { return 1000 * (of + 1) + at; }

static void clear(void)
{
    for (int i = 0; i < 2 * COUNT; i++) data[i] = i % 2 ? -1 : value(rank, i / 2);
    memset(back, 0xee, sizeof back);
    calls = 0;
}

static void check_back(int count)
{
    CHECK(calls > 0);
    for (int i = 0; i < 2 * COUNT; i++)
        CHECK(back[i] == (i % 2 || i / 2 >= count ? (int)0xeeeeeeee : value(rank, i / 2)));
}

static void check_count(MPI_Status *status, int wanted)
{
    int count = -1;
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK(count == wanted);
}

/* Writes and reads in the way `way`. Each rank accesses its own ints, which alternate in the file with those of the
   other ranks. An int takes `width` bytes in the file. */
static void one_way(MPI_File file, int way, int width)
{
    MPI_Status status;
    MPI_Request request;
    clear();
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    switch (way) {
    case 0: OK(MPI_File_write_at(file, 0, data, COUNT, gaps, &status)); break;
    case 1: OK(MPI_File_write_all(file, data, COUNT, gaps, &status)); break;
    case 2:
        OK(MPI_File_iwrite(file, data, COUNT, gaps, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 3:
        OK(MPI_File_iwrite_at_all(file, 0, data, COUNT, gaps, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 4:
        OK(MPI_File_write_all_begin(file, data, COUNT, gaps));
        OK(MPI_File_write_all_end(file, data, &status));
        break;
    }
    check_count(&status, COUNT);
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    static unsigned char bytes[1 << 16];
    CHECK(read_file(name, bytes, sizeof bytes) == 5 + (size_t)(width * size * COUNT));
    for (int of = 0; of < size; of++) {
        for (int at = 0; at < COUNT; at++) {
            unsigned char *place = bytes + 5 + width * (at * size + of);
            int64_t stored = 0;
            if (width == 8) {
                memcpy(&stored, place, 8);
                CHECK(stored == 3 * (int64_t)value(of, at));
            } else {
                for (int i = 0; i < 4; i++) stored = stored << 8 | place[i];
                CHECK(stored == value(of, at));
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (width == 8) CHECK(calls > 0);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    switch (way) {
    case 0: OK(MPI_File_read_at(file, 0, back, COUNT, gaps, &status)); break;
    case 1: OK(MPI_File_read_all(file, back, COUNT, gaps, &status)); break;
    case 2:
        OK(MPI_File_iread(file, back, COUNT, gaps, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 3:
        OK(MPI_File_iread_at_all(file, 0, back, COUNT, gaps, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 4:
        OK(MPI_File_read_all_begin(file, back, COUNT, gaps));
        OK(MPI_File_read_all_end(file, back, &status));
        break;
    }
    check_count(&status, COUNT);
    if (width == 4) calls = 1;
    check_back(COUNT);
    /* Reads 20 ints where only 7 are left before the end of the file. */
    memset(back, 0xee, sizeof back);
    OK(MPI_File_read_at(file, COUNT - 7, back, 20, MPI_INT, &status));
    check_count(&status, 7);
    for (int at = 0; at < 7; at++) CHECK(back[at] == value(rank, COUNT - 7 + at));
    CHECK(back[7] == (int)0xeeeeeeee);
}

static void all_ways(const char *datarep, int width)
{
    MPI_File file;
    MPI_Aint bytes;
    MPI_Offset offset;
    char seen[MPI_MAX_DATAREP_STRING];
    MPI_Datatype etype, template;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 5, MPI_INT, filetype, datarep, MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &offset, &etype, &template, seen));
    CHECK(strcmp(seen, datarep) == 0 && etype == MPI_INT);
    OK(MPI_Type_free(&template));
    OK(MPI_File_get_type_extent(file, MPI_INT, &bytes));
    CHECK(bytes == width);
    OK(MPI_File_get_byte_offset(file, 2, &offset));
    CHECK(offset == 5 + width * (2 * size + rank));
    for (int way = 0; way < 5; way++) one_way(file, way, width);
    if (width == 8) {
        fails = rank == size - 1;
        RAISES(MPI_ERR_CONVERSION, MPI_File_write_at_all(file, 0, data, 1, MPI_INT, MPI_STATUS_IGNORE));
        fails = 0;
    }
    /* Writes and reads with the shared file pointer, in the order of the ranks. All ranks have the same view without
       holes. */
    MPI_Status status;
    OK(MPI_File_set_view(file, 5, MPI_INT, MPI_INT, datarep, MPI_INFO_NULL));
    OK(MPI_File_write_ordered(file, data, 10, gaps, &status));
    check_count(&status, 10);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    clear();
    OK(MPI_File_read_ordered(file, back, 10, gaps, &status));
    check_count(&status, 10);
    if (width == 4) calls = 1;
    check_back(10);
    OK(MPI_File_close(&file));
}

int main(void)
{
    begin();
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    thread = pthread_self();
    file_name(name, "representations");
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &gaps));
    OK(MPI_Type_commit(&gaps));
    /* The filetype of each rank: a row of `size` ints, of which it selects the int with the rank's number. */
    MPI_Datatype subarray;
    int sizes[1] = {size}, subsizes[1] = {1}, starts[1] = {rank};
    OK(MPI_Type_create_subarray(1, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &subarray));
    filetype = subarray;
    OK(MPI_Type_commit(&filetype));
    OK(MPI_Register_datarep("doubled", from_file_int, to_file_int, extent, &calls));
    OK(MPI_Register_datarep_c("doubled, large", from_file, to_file, extent, &calls));
    OK(MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, &calls));
    /* These errors go to the error handler of MPI_FILE_NULL, which returns by default. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    RAISES(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("doubled", from_file_int, to_file_int, extent, &calls));
    RAISES(MPI_ERR_DUP_DATAREP, MPI_Register_datarep_c("doubled", from_file, to_file, extent, &calls));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    RAISES(MPI_ERR_DUP_DATAREP,
           MPI_Register_datarep("native", from_file_int, to_file_int, extent, &calls));
    all_ways("external32", 4);
    all_ways("doubled", 8);
    all_ways("doubled, large", 8);
    return end();
}
