/* Tests all calls in Table 14.1 of MPI-5.0 (reading and writing files) on views that are not trivial, and the
   calls that open, close and describe files. Each rank sees its own rows of a matrix: blocks of 3 ints, one
   block of each rank in turn, behind a displacement. A walk over the positions in plain C tells where each
   element lies. */
#include "files.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 3, BLOCKS = 5, COUNT = BLOCK * BLOCKS, DISP = 40 };

static char name[256];
static MPI_Datatype filetype, memory;
static int data[2 * COUNT], back[2 * COUNT];

/* Returns the byte of the file at which element `at` of the view of rank `of` lies. */
static MPI_Offset place(int of, int at)
{
    return DISP + 4 * ((MPI_Offset)(at / BLOCK * size + of) * BLOCK + at % BLOCK);
}

static int value(int of, int at) { return 1000 * (of + 1) + at; }

/* Every other int of `data` is an element of the memory type, so memory has gaps too. */
static void fill_data(void)
{
    for (int i = 0; i < 2 * COUNT; i++) data[i] = i % 2 ? -1 : value(rank, i / 2);
    memset(back, 0xee, sizeof back);
}

static MPI_File open_view(int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, DISP, MPI_INT, filetype, "native", MPI_INFO_NULL));
    return file;
}

/* Checks with calls of C that the file holds the elements of all ranks and nothing else. */
static void check_file(MPI_File file)
{
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    static unsigned char bytes[1 << 16];
    size_t length = read_file(name, bytes, sizeof bytes);
    CHECK(length == (size_t)place(size - 1, COUNT - 1) + 4);
    for (int i = 0; i < DISP; i++) CHECK(bytes[i] == 0);
    for (int of = 0; of < size; of++) {
        for (int at = 0; at < COUNT; at++) {
            int found;
            memcpy(&found, bytes + place(of, at), 4);
            CHECK(found == value(of, at));
        }
    }
    MPI_Offset bytes_of_file;
    OK(MPI_File_get_size(file, &bytes_of_file));
    CHECK(bytes_of_file == (MPI_Offset)length);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Checks that `back` has the elements of this rank from element `from` on, and that its gaps are untouched. */
static void check_back(int from, int count)
{
    for (int i = 0; i < 2 * COUNT; i++) {
        int wanted = (int)0xeeeeeeee;
        if (i % 2 == 0 && i / 2 < count) wanted = value(rank, from + i / 2);
        CHECK(back[i] == wanted);
    }
    memset(back, 0xee, sizeof back);
}

static void check_count(MPI_Status *status, int ints)
{
    int elements = -1, count = -1;
    OK(MPI_Get_elements(status, MPI_INT, &elements));
    CHECK(elements == ints);
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK(count == ints);
}

static void check_position(MPI_File file, MPI_Offset wanted)
{
    MPI_Offset position = -1;
    OK(MPI_File_get_position(file, &position));
    CHECK(position == wanted);
}

static void empty_file(MPI_File file)
{
    OK(MPI_File_set_size(file, 0));
}

/* Tests accesses at explicit offsets and with individual file pointers: blocking, nonblocking, nonblocking
   collective and split. */
static void own_positions(void)
{
    MPI_File file = open_view(MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Status status;
    MPI_Request request;
    const int half = COUNT / 2, rest = COUNT - half;
    for (int way = 0; way < 10; way++) {
        fill_data();
        empty_file(file);
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
        int *second = data + 2 * half;
        switch (way) {
        case 0:
            OK(MPI_File_write_at(file, half, second, rest, memory, &status));
            check_count(&status, rest);
            OK(MPI_File_write_at_c(file, 0, data, half, memory, &status));
            break;
        case 1:
            OK(MPI_File_write_at_all(file, half, second, rest, memory, &status));
            check_count(&status, rest);
            OK(MPI_File_write_at_all_c(file, 0, data, half, memory, &status));
            break;
        case 2:
            OK(MPI_File_iwrite_at(file, half, second, rest, memory, &request));
            OK(MPI_Wait(&request, &status));
            check_count(&status, rest);
            OK(MPI_File_iwrite_at_c(file, 0, data, half, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 3:
            OK(MPI_File_iwrite_at_all(file, half, second, rest, memory, &request));
            OK(MPI_Wait(&request, &status));
            check_count(&status, rest);
            OK(MPI_File_iwrite_at_all_c(file, 0, data, half, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 4:
            OK(MPI_File_write_at_all_begin(file, half, second, rest, memory));
            OK(MPI_File_write_at_all_end(file, second, &status));
            check_count(&status, rest);
            OK(MPI_File_write_at_all_begin_c(file, 0, data, half, memory));
            OK(MPI_File_write_at_all_end(file, data, &status));
            break;
        case 5:
            OK(MPI_File_write(file, data, half, memory, &status));
            check_position(file, half);
            OK(MPI_File_write_c(file, second, rest, memory, MPI_STATUS_IGNORE));
            break;
        case 6:
            OK(MPI_File_write_all(file, data, half, memory, &status));
            check_position(file, half);
            OK(MPI_File_write_all_c(file, second, rest, memory, MPI_STATUS_IGNORE));
            break;
        case 7: {
            MPI_Request both[2];
            MPI_Status statuses[2];
            OK(MPI_File_iwrite(file, data, half, memory, &both[0]));
            check_position(file, half);
            OK(MPI_File_iwrite_c(file, second, rest, memory, &both[1]));
            OK(MPI_Waitall(2, both, statuses));
            status = statuses[0];
            check_count(&statuses[1], rest);
            break;
        }
        case 8:
            OK(MPI_File_iwrite_all(file, data, half, memory, &request));
            check_position(file, half);
            OK(MPI_Wait(&request, &status));
            OK(MPI_File_iwrite_all_c(file, second, rest, memory, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            break;
        case 9:
            OK(MPI_File_write_all_begin(file, data, half, memory));
            check_position(file, half);
            OK(MPI_File_write_all_end(file, data, &status));
            OK(MPI_File_write_all_begin_c(file, second, rest, memory));
            OK(MPI_File_write_all_end(file, second, MPI_STATUS_IGNORE));
            break;
        }
        check_count(&status, half);
        if (way >= 5) check_position(file, COUNT);
        check_file(file);
        /* Each rank reads 3 elements from element 4 on, in the same way as it has written them. */
        OK(MPI_File_seek(file, 4, MPI_SEEK_SET));
        switch (way) {
        case 0: OK(MPI_File_read_at(file, 4, back, 3, memory, &status)); break;
        case 1: OK(MPI_File_read_at_all(file, 4, back, 3, memory, &status)); break;
        case 2:
            OK(MPI_File_iread_at(file, 4, back, 3, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 3:
            OK(MPI_File_iread_at_all(file, 4, back, 3, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 4:
            OK(MPI_File_read_at_all_begin(file, 4, back, 3, memory));
            OK(MPI_File_read_at_all_end(file, back, &status));
            break;
        case 5: OK(MPI_File_read(file, back, 3, memory, &status)); break;
        case 6: OK(MPI_File_read_all(file, back, 3, memory, &status)); break;
        case 7:
            OK(MPI_File_iread(file, back, 3, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 8:
            OK(MPI_File_iread_all(file, back, 3, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 9:
            OK(MPI_File_read_all_begin(file, back, 3, memory));
            OK(MPI_File_read_all_end(file, back, &status));
            break;
        }
        check_count(&status, 3);
        check_back(4, 3);
        if (way >= 5) check_position(file, 7);
        /* The file ends in the middle of a read: the count is exact, and there is no error. */
        OK(MPI_File_seek(file, COUNT - 2, MPI_SEEK_SET));
        if (way % 2)
            OK(MPI_File_read_all(file, back, 5, memory, &status));
        else
            OK(MPI_File_read_at_all(file, COUNT - 2, back, 5, memory, &status));
        check_count(&status, 2);
        check_back(COUNT - 2, 2);
        OK(MPI_File_read_at(file, 10 * COUNT, back, 5, memory, &status));
        check_count(&status, 0);
        check_back(0, 0);
    }
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

/* Tests accesses with the shared file pointer. All ranks have the same view, which has no holes behind its
   displacement. */
static void shared_positions(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    /* A view with holes: 2 of every 3 ints. */
    MPI_Datatype pair, holes;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_create_resized(pair, 0, 12, &holes));
    OK(MPI_Type_commit(&holes));
    OK(MPI_File_set_view(file, 8, MPI_INT, holes, "native", MPI_INFO_NULL));
    const int each = 2 + 2 * rank; /* uneven sizes */
    int total = 0, before = 0;
    for (int r = 0; r < size; r++) {
        total += 2 + 2 * r;
        if (r < rank) before += 2 + 2 * r;
    }
    for (int way = 0; way < 4; way++) {
        fill_data();
        empty_file(file);
        OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
        switch (way) {
        case 0: OK(MPI_File_write_shared(file, data, each, memory, &status)); break;
        case 1:
            OK(MPI_File_iwrite_shared(file, data, each, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 2: OK(MPI_File_write_ordered(file, data, each, memory, &status)); break;
        case 3:
            OK(MPI_File_write_ordered_begin(file, data, each, memory));
            OK(MPI_File_write_ordered_end(file, data, &status));
            break;
        }
        check_count(&status, each);
        OK(MPI_File_sync(file));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Offset position = -1;
        OK(MPI_File_get_position_shared(file, &position));
        CHECK(position == total);
        static unsigned char bytes[1 << 16];
        size_t length = read_file(name, bytes, sizeof bytes);
        CHECK(length == 8 + (size_t)(total / 2 - 1) * 12 + 8);
        int *elements = malloc(sizeof(int) * (size_t)total);
        for (int at = 0; at < total; at++)
            memcpy(elements + at, bytes + 8 + at / 2 * 12 + at % 2 * 4, 4);
        if (way >= 2) { /* ordered by rank */
            for (int r = 0, at = 0; r < size; r++)
                for (int i = 0; i < 2 + 2 * r; i++, at++) CHECK(elements[at] == value(r, i));
        } else { /* in any order, but each access is one piece */
            int at = 0;
            while (at < total) {
                int r = elements[at] / 1000 - 1;
                CHECK(r >= 0 && r < size);
                for (int i = 0; i < 2 + 2 * r; i++, at++) CHECK(elements[at] == value(r, i));
            }
        }
        free(elements);
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
        switch (way) {
        case 0: OK(MPI_File_read_shared(file, back, 2, memory, &status)); break;
        case 1:
            OK(MPI_File_iread_shared(file, back, 2, memory, &request));
            OK(MPI_Wait(&request, &status));
            break;
        case 2: OK(MPI_File_read_ordered(file, back, each, memory, &status)); break;
        case 3:
            OK(MPI_File_read_ordered_begin(file, back, each, memory));
            OK(MPI_File_read_ordered_end(file, back, &status));
            break;
        }
        if (way >= 2) {
            check_count(&status, each);
            check_back(0, each);
        } else {
            check_count(&status, 2);
            memset(back, 0xee, sizeof back);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_get_position_shared(file, &position));
        CHECK(position == (way >= 2 ? total : 2 * size));
    }
    (void)before;
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&holes));
}

static void descriptions(void)
{
    MPI_File file = open_view(MPI_MODE_RDWR);
    MPI_Offset offset = -1;
    MPI_Datatype etype, seen;
    char datarep[MPI_MAX_DATAREP_STRING];
    int amode = 0, flag = 1;
    OK(MPI_File_get_view(file, &offset, &etype, &seen, datarep));
    CHECK(offset == DISP && etype == MPI_INT && strcmp(datarep, "native") == 0);
    MPI_Aint lb, extent, other;
    OK(MPI_Type_get_extent(filetype, &lb, &extent));
    OK(MPI_Type_get_extent(seen, &lb, &other));
    CHECK(extent == other && seen != filetype);
    OK(MPI_Type_free(&seen));
    for (int at = 0; at < 2 * COUNT; at++) {
        OK(MPI_File_get_byte_offset(file, at, &offset));
        CHECK(offset == place(rank, at));
    }
    OK(MPI_File_get_amode(file, &amode));
    CHECK(amode == MPI_MODE_RDWR);
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 1);
    fill_data();
    empty_file(file);
    OK(MPI_File_write_at_all(file, 0, data, COUNT, memory, MPI_STATUS_IGNORE));
    check_file(file);
    OK(MPI_File_set_atomicity(file, 0));
    MPI_Group group, world;
    int relation;
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &relation));
    CHECK(relation == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_File_get_type_extent(file, memory, &extent));
    CHECK(extent == 8);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &offset));
    CHECK(offset == COUNT);
    OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
    check_position(file, COUNT - 2);
    RAISES(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
    OK(MPI_File_preallocate(file, 100000));
    OK(MPI_File_get_size(file, &offset));
    CHECK(offset == 100000);
    OK(MPI_File_preallocate(file, 10));
    OK(MPI_File_get_size(file, &offset));
    CHECK(offset == 100000);
    /* The library returns the hints that it knows and that all ranks set to valid values. The call does not
       hang if only one rank sets a hint. */
    MPI_Info info, used;
    char text[64];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_ds_read", "disable"));
    OK(MPI_Info_set(info, "ind_rd_buffer_size", "0"));
    OK(MPI_Info_set(info, "cb_nodes", "1"));
    if (rank == 0) OK(MPI_Info_set(info, "access_style", "random"));
    OK(MPI_File_set_info(file, info));
    OK(MPI_File_get_info(file, &used));
    OK(MPI_Info_get(used, "romio_ds_read", 63, text, &flag));
    CHECK(flag && strcmp(text, "disable") == 0);
    OK(MPI_Info_get(used, "ind_rd_buffer_size", 63, text, &flag));
    CHECK(flag && strcmp(text, "1048576") == 0);
    OK(MPI_Info_get(used, "cb_nodes", 63, text, &flag));
    CHECK(!flag);
    OK(MPI_Info_get(used, "access_style", 63, text, &flag));
    CHECK(flag == (size == 1));
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
    /* With MPI_MODE_APPEND, the individual and the shared file pointer begin at the end of the file. */
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    check_position(file, 100000);
    OK(MPI_File_get_position_shared(file, &offset));
    CHECK(offset == 100000);
    OK(MPI_File_close(&file));
}

/* Checks that each wrong call raises an error of the right class on all ranks, and changes nothing. */
static void errors(void)
{
    MPI_File file;
    MPI_Request request;
    MPI_Offset offset;
    int byte = 0;
    RAISES(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, name, 0, MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
                                        MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_FILE_EXISTS,
           MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL,
                         MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, "/nonexistent/file", MPI_MODE_RDONLY,
                                               MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_NO_SUCH_FILE, MPI_File_delete("/nonexistent/file", MPI_INFO_NULL));
    if (size > 1) {
        RAISES(MPI_ERR_NOT_SAME,
               MPI_File_open(MPI_COMM_WORLD, name, rank ? MPI_MODE_RDONLY : MPI_MODE_RDWR,
                             MPI_INFO_NULL, &file));
        RAISES(MPI_ERR_NO_SUCH_FILE,
               MPI_File_open(MPI_COMM_WORLD, rank == size - 1 ? "/nonexistent/file" : name,
                             MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        RAISES(MPI_ERR_NOT_SAME, MPI_File_open(MPI_COMM_WORLD, rank == size - 1 ? "/dev/null" : name,
                                               MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    }
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_READ_ONLY, MPI_File_write(file, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_READ_ONLY, MPI_File_write_all(file, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_READ_ONLY, MPI_File_write_ordered(file, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_READ_ONLY, MPI_File_iwrite_all(file, &byte, 1, MPI_INT, &request));
    RAISES(MPI_ERR_READ_ONLY, MPI_File_set_size(file, 0));
    RAISES(MPI_ERR_UNSUPPORTED_DATAREP,
           MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nonsense", MPI_INFO_NULL));
    RAISES(MPI_ERR_ARG, MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    RAISES(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL));
    RAISES(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL));
    RAISES(MPI_ERR_ARG, MPI_File_read_at(file, -1, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_COUNT, MPI_File_read(file, &byte, -1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_ARG, MPI_File_seek(file, 0, 12345));
    RAISES(MPI_ERR_ARG, MPI_File_seek_shared(file, 0, 12345));
    RAISES(MPI_ERR_REQUEST, MPI_File_read_all_end(file, &byte, MPI_STATUS_IGNORE));
    /* Only the last rank passes a wrong argument. All ranks get an error of its class, and no rank hangs. */
    int bad = rank == size - 1 ? -1 : 1;
    RAISES(MPI_ERR_COUNT, MPI_File_read_all(file, &byte, bad, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_COUNT, MPI_File_read_ordered(file, &byte, bad, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_COUNT, MPI_File_read_ordered_begin(file, &byte, bad, MPI_INT));
    if (rank == size - 1) {
        RAISES(MPI_ERR_COUNT, MPI_File_iread_all(file, &byte, bad, MPI_INT, &request));
        RAISES(MPI_ERR_COUNT, MPI_File_read_all_begin(file, &byte, bad, MPI_INT));
    } else {
        OK(MPI_File_iread_all(file, &byte, bad, MPI_INT, &request));
        RAISES(MPI_ERR_COUNT, MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_File_read_all_begin(file, &byte, bad, MPI_INT));
        RAISES(MPI_ERR_COUNT, MPI_File_read_all_end(file, &byte, MPI_STATUS_IGNORE));
    }
    if (size > 1) {
        RAISES(MPI_ERR_NOT_SAME, MPI_File_set_atomicity(file, rank == 0));
        RAISES(MPI_ERR_NOT_SAME, MPI_File_seek_shared(file, rank == 0, MPI_SEEK_SET));
        RAISES(MPI_ERR_NOT_SAME, MPI_File_set_view(file, 0, rank ? MPI_INT : MPI_CHAR, MPI_INT, "native",
                                                   MPI_INFO_NULL));
    }
    /* The file cannot be closed while an access is under way. */
    OK(MPI_File_iread(file, &byte, 1, MPI_INT, &request));
    RAISES(MPI_ERR_REQUEST, MPI_File_close(&file));
    RAISES(MPI_ERR_REQUEST, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_read_all_begin(file, &byte, 1, MPI_INT));
    RAISES(MPI_ERR_REQUEST, MPI_File_close(&file));
    RAISES(MPI_ERR_REQUEST, MPI_File_read_all_begin(file, &byte, 1, MPI_INT));
    RAISES(MPI_ERR_BUFFER, MPI_File_read_all_end(file, &offset, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_REQUEST, MPI_File_read_at_all_end(file, &byte, MPI_STATUS_IGNORE));
    OK(MPI_File_read_all_end(file, &byte, MPI_STATUS_IGNORE));
    MPI_File old = file;
    OK(MPI_File_close(&file));
    RAISES(MPI_ERR_FILE, MPI_File_get_size(old, &offset));
    RAISES(MPI_ERR_FILE, MPI_File_close(&old));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_ACCESS, MPI_File_read(file, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    /* With MPI_MODE_SEQUENTIAL, only calls with the shared file pointer are allowed. */
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
    RAISES(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read(file, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read_at(file, 0, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    RAISES(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, &byte, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &offset, &(MPI_Datatype){0}, &(MPI_Datatype){0},
                         (char[MPI_MAX_DATAREP_STRING]){0}));
    CHECK(offset == 4 * size);
    OK(MPI_File_close(&file));
}

/* Checks that a write beyond the process's limit for the size of files is an error whose status has the exact
   count, and that no signal ends the process. */
static void size_limit(void)
{
    MPI_File file;
    MPI_Status status;
    struct rlimit old, low;
    static char bytes[3000];
    char own[300];
    snprintf(own, sizeof own, "%s-%d", name, rank);
    OK(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    low = old;
    low.rlim_cur = 1000;
    CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
    RAISES(MPI_ERR_IO, MPI_File_write_at(file, 0, bytes, 3000, MPI_BYTE, &status));
    check_count(&status, 250);
    MPI_Request request;
    OK(MPI_File_iwrite_at_all(file, 0, bytes, 3000, MPI_BYTE, &request));
    RAISES(MPI_ERR_IO, MPI_Wait(&request, &status));
    check_count(&status, 250);
    RAISES(MPI_ERR_IO, MPI_File_set_size(file, 5000));
    RAISES(MPI_ERR_IO, MPI_File_preallocate(file, 5000));
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    OK(MPI_File_write_at(file, 0, bytes, 3000, MPI_BYTE, &status));
    check_count(&status, 750);
    OK(MPI_File_close(&file));
}

/* Tests views whose filetype is in order and whose copies are not. Libraries make such filetypes without asking for it:
   explicit bounds of a member become the bounds of a struct. */
static void view_copies_overlap(void)
{
    MPI_File file;
    MPI_Datatype wide, apart, hole;
    char own[300];
    snprintf(own, sizeof own, "%s-copies-%d", name, rank);
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &wide));
    /* Ints at 0 and 100; the lower bound is 100, the extent 8. */
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 100}, (MPI_Datatype[]){MPI_INT, wide}, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, apart, "native", MPI_INFO_NULL));
    MPI_Offset bytes = -1;
    int out[40], in[40] = {0}, raw[100];
    for (int i = 0; i < 40; i++) out[i] = i + 1;
    OK(MPI_File_write_at_all(file, 0, out, 2, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 104);
    OK(MPI_File_read_at(file, 0, in, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(in[0] == 1 && in[1] == 2);
    /* The end of the file in etypes: the first one that begins there or later. */
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    check_position(file, 3);
    /* 20 filetypes: ints at 0, 8, ... 152 and at 100, 108, ... 252, so 104 and 108 have no int of the first kind. */
    OK(MPI_File_write_at_all(file, 0, out, 40, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 256);
    for (int i = 0; i < 40; i++) {
        OK(MPI_File_get_byte_offset(file, i, &bytes));
        CHECK(bytes == i / 2 * 8 + i % 2 * 100);
    }
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, raw, 256, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 40; i++) CHECK(raw[i / 2 * 2 + i % 2 * 25] == i + 1);
    /* All copies lie on top of each other: the last one wins. */
    OK(MPI_Type_create_resized(MPI_INT, 0, 0, &hole));
    OK(MPI_Type_commit(&hole));
    OK(MPI_File_set_view(file, 4, MPI_INT, hole, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at(file, 0, out, 9, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 5, in, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(in[0] == 9 && in[1] == 9);
    OK(MPI_Type_free(&hole));
    /* A hole that is not a multiple of the etype: an offset still counts etypes. */
    OK(MPI_Type_create_resized(MPI_INT, 0, 7, &hole));
    OK(MPI_Type_commit(&hole));
    OK(MPI_File_set_view(file, 1, MPI_INT, hole, "native", MPI_INFO_NULL));
    OK(MPI_File_get_byte_offset(file, 3, &bytes));
    CHECK(bytes == 22);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&hole));
    OK(MPI_Type_free(&apart));
    OK(MPI_Type_free(&wide));
}

/* Writes `text` to a file with calls of C. */
static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Checks that a file with MPI_MODE_DELETE_ON_CLOSE is removed where it was opened, although the processes change their
   directory and the folder gets another name, and that another file in its place stays. */
static void removed_where_opened(void)
{
    MPI_File file;
    char before[4096], folder[256], other[300];
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    file_name(folder, "folder");
    snprintf(other, sizeof other, "%s-other", folder);
    CHECK(getcwd(before, sizeof before) != NULL);
    CHECK(rank != 0 || mkdir(folder, 0700) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(chdir(folder) == 0);
    OK(MPI_File_open(MPI_COMM_WORLD, "a", mode, MPI_INFO_NULL, &file));
    CHECK(chdir(before) == 0);
    if (rank == 0) {
        CHECK(rename(folder, other) == 0 && mkdir(folder, 0700) == 0);
        CHECK(chdir(folder) == 0);
        write_file("a", "keep");
    }
    OK(MPI_File_close(&file));
    if (rank == 0) {
        CHECK(access("a", F_OK) == 0 && chdir(other) == 0 && access("a", F_OK) != 0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(chdir(folder) == 0);
    /* Another file gets the name. */
    OK(MPI_File_open(MPI_COMM_WORLD, "a", mode, MPI_INFO_NULL, &file));
    if (rank == 0) {
        CHECK(rename("a", "b") == 0);
        write_file("a", "another");
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    RAISES(MPI_ERR_NO_SUCH_FILE, MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL && access("a", F_OK) == 0 && access("b", F_OK) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Another name leads to the file: the file goes, and the link stays. */
    CHECK(rank != 0 || symlink("b", "link") == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, "link", mode, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    char text[8];
    CHECK(access("b", F_OK) != 0 && readlink("link", text, sizeof text) == 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(rank != 0 || (unlink("link") == 0 && unlink("a") == 0));
    CHECK(chdir(before) == 0);
    CHECK(rank != 0 || (rmdir(folder) == 0 && rmdir(other) == 0));
}

/* Checks that running out of descriptors is an error that says so. */
static void no_descriptor_left(void)
{
    MPI_File file;
    struct rlimit old, low;
    char own[300], text[MPI_MAX_ERROR_STRING];
    int length;
    snprintf(own, sizeof own, "%s-%d", name, rank);
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    int next = dup(0);
    CHECK(next >= 0 && close(next) == 0);
    low = old;
    low.rlim_cur = (rlim_t)next;
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    int code = MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    RAISES(MPI_ERR_IO, code);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "EMFILE") != NULL && strstr(text, "ulimit -n") != NULL);
}

/* The text of an error about a file has the name of the file, on all ranks, though only rank 0 opens a file first. */
static void texts_name_the_file(void)
{
    static const char *const names[] = {"/nonexistent/file", "a-file-that-is-missing", "/proc/self"};
    MPI_File file;
    char text[MPI_MAX_ERROR_STRING];
    int length, code;
    for (int i = 0; i < 3; i++) {
        code = MPI_File_open(MPI_COMM_SELF, names[i], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        RAISES(i < 2 ? MPI_ERR_NO_SUCH_FILE : MPI_ERR_BAD_FILE, code);
        OK(MPI_Error_string(code, text, &length));
        CHECK(strstr(text, names[i]) != NULL);
    }
    code = MPI_File_open(MPI_COMM_WORLD, names[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    RAISES(MPI_ERR_NO_SUCH_FILE, code);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, names[1]) != NULL);
    code = MPI_File_delete(names[1], MPI_INFO_NULL);
    RAISES(MPI_ERR_NO_SUCH_FILE, code);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, names[1]) != NULL);
}

int main(void)
{
    begin();
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    file_name(name, "files");
    MPI_Datatype block;
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &memory));
    OK(MPI_Type_commit(&memory));
    OK(MPI_Type_vector(1, BLOCK, BLOCK, MPI_INT, &block));
    int at = 4 * BLOCK * rank;
    MPI_Aint displacement = at;
    MPI_Datatype moved;
    OK(MPI_Type_create_hindexed_block(1, 1, &displacement, block, &moved));
    OK(MPI_Type_create_resized(moved, 0, 4 * BLOCK * size, &filetype));
    OK(MPI_Type_commit(&filetype));
    own_positions();
    shared_positions();
    descriptions();
    errors();
    size_limit();
    view_copies_overlap();
    removed_where_opened();
    no_descriptor_left();
    texts_name_the_file();
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    CHECK(access(name, F_OK) != 0);
    return end();
}
