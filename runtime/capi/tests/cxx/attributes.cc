/* Attributes with callbacks in C++, info objects, and the environment. */
#include "check.h"

static int copies, deletions;

static int copy_comm(const MPI::Comm &comm, int, void *extra, void *in, void *out, bool &flag)
{
    CHECK(dynamic_cast<const MPI::Cartcomm *>(&comm) && extra == &copies);
    *static_cast<void **>(out) = static_cast<char *>(in) + 1;
    flag = true;
    copies++;
    return MPI::SUCCESS;
}
static int delete_comm(MPI::Comm &comm, int, void *, void *extra)
{
    CHECK(dynamic_cast<MPI::Cartcomm *>(&comm) && extra == &copies);
    deletions++;
    return MPI::SUCCESS;
}
static int copy_type(const MPI::Datatype &, int, void *, const void *, void *, bool &flag)
{
    flag = false;
    copies++;
    return MPI::SUCCESS;
}
static int delete_type(MPI::Datatype &, int, void *, void *)
{
    deletions++;
    return MPI::SUCCESS;
}
static int delete_win(MPI::Win &win, int, void *value, void *)
{
    CHECK(win != MPI::WIN_NULL && value == &copies);
    deletions++;
    return MPI::SUCCESS;
}

static void communicators()
{
    const int one[1] = {MPI::COMM_WORLD.Get_size()};
    const bool no[1] = {false};
    MPI::Cartcomm line = MPI::COMM_WORLD.Create_cart(1, one, no, false);
    int key = MPI::Comm::Create_keyval(copy_comm, delete_comm, &copies);
    char text[4];
    char *value = 0;
    CHECK(!line.Get_attr(key, &value));
    line.Set_attr(key, text);
    CHECK(line.Get_attr(key, &value) && value == text);
    MPI::Cartcomm dup = line.Dup();
    CHECK(dup.Get_attr(key, &value) && value == text + 1 && copies == 1);
    dup.Delete_attr(key);
    CHECK(deletions == 1 && !dup.Get_attr(key, &value));
    MPI::Comm::Free_keyval(key);
    CHECK(key == MPI::KEYVAL_INVALID);
    line.Free();
    CHECK(deletions == 2);

    int plain = MPI::Comm::Create_keyval(MPI::Comm::DUP_FN, MPI::Comm::NULL_DELETE_FN, 0);
    dup.Set_attr(plain, text + 3);
    MPI::Cartcomm again = dup.Dup();
    CHECK(again.Get_attr(plain, &value) && value == text + 3);
    int lost = MPI::Comm::Create_keyval(MPI::Comm::NULL_COPY_FN, MPI::Comm::NULL_DELETE_FN, 0);
    dup.Set_attr(lost, text);
    again.Free();
    again = dup.Dup();
    CHECK(!again.Get_attr(lost, &value));
    MPI::Comm::Free_keyval(plain);
    MPI::Comm::Free_keyval(lost);
    again.Free();
    dup.Free();
    int *bound = 0;
    CHECK(MPI::COMM_WORLD.Get_attr(MPI::TAG_UB, &bound) && *bound >= 32767);
    THROWS(MPI::ERR_KEYVAL, MPI::COMM_WORLD.Delete_attr(MPI::KEYVAL_INVALID));
}

static void types_and_windows()
{
    copies = deletions = 0;
    MPI::Datatype type = MPI::INT.Dup();
    int key = MPI::Datatype::Create_keyval(copy_type, delete_type, 0);
    type.Set_attr(key, &type);
    MPI::Datatype dup = type.Dup();
    void *value = 0;
    CHECK(!dup.Get_attr(key, &value) && copies == 1);
    CHECK(type.Get_attr(key, &value) && value == &type);
    type.Free();
    dup.Free();
    CHECK(deletions == 1);
    MPI::Datatype::Free_keyval(key);

    int memory[4];
    MPI::Win win = MPI::Win::Create(memory, sizeof memory, 4, MPI::INFO_NULL, MPI::COMM_WORLD);
    key = MPI::Win::Create_keyval(MPI::Win::NULL_COPY_FN, delete_win, 0);
    win.Set_attr(key, &copies);
    CHECK(win.Get_attr(key, &value) && value == &copies);
    win.Delete_attr(key);
    CHECK(deletions == 2);
    MPI::Win::Free_keyval(key);
    win.Set_name("memory");
    char name[MPI::MAX_OBJECT_NAME];
    int length;
    win.Get_name(name, length);
    CHECK(length == 6 && strcmp(name, "memory") == 0);
    int *base = 0;
    CHECK(win.Get_attr(MPI::WIN_BASE, &base) && base == memory);
    win.Free();
    CHECK(win == MPI::WIN_NULL);
}

static void infos()
{
    MPI::Info info = MPI::Info::Create();
    info.Set("color", "green");
    info.Set("size", "4");
    MPI::Info dup = info.Dup();
    info.Delete("size");
    char value[MPI::MAX_INFO_VAL + 1], key[MPI::MAX_INFO_KEY + 1];
    int length = 0;
    CHECK(info.Get_nkeys() == 1 && dup.Get_nkeys() == 2);
    CHECK(dup.Get("color", 10, value) && strcmp(value, "green") == 0 && !info.Get("size", 10, value));
    CHECK(dup.Get_valuelen("color", length) && length == 5);
    dup.Get_nthkey(1, key);
    CHECK(strcmp(key, "size") == 0);
    info.Free();
    dup.Free();
    CHECK(info == MPI::INFO_NULL);
}

static void environment()
{
    int version, subversion, length;
    MPI::Get_version(version, subversion);
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
    char name[MPI::MAX_PROCESSOR_NAME];
    MPI::Get_processor_name(name, length);
    CHECK(length > 0 && MPI::Wtime() > 0 && MPI::Wtick() > 0);
    CHECK(MPI::Is_thread_main() && MPI::Query_thread() >= MPI::THREAD_SINGLE);
    void *memory = MPI::Alloc_mem(100, MPI::INFO_NULL);
    memset(memory, 1, 100);
    MPI::Free_mem(memory);
    MPI::Pcontrol(1);
    int code = MPI::Add_error_code(MPI::Add_error_class());
    MPI::Add_error_string(code, "my error");
    char text[MPI::MAX_ERROR_STRING];
    MPI::Get_error_string(code, text, length);
    CHECK(strcmp(text, "my error") == 0 && MPI::Get_error_class(MPI::ERR_TAG) == MPI::ERR_TAG);
}

int main(int argc, char **argv)
{
    start(argc, argv);
    communicators();
    types_and_windows();
    infos();
    environment();
    return stop();
}
