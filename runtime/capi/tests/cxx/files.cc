/* Files: every call of MPI-2.2, and a data representation in C++. */
#include "check.h"

static int conversions;

static int extent_of(const MPI::Datatype &type, MPI::Aint &extent, void *)
{
    extent = type.Get_size();
    return MPI::SUCCESS;
}

/* The file has the complement of each byte. */
static int convert_in(void *user, MPI::Datatype &type, int count, void *file, MPI::Offset position, void *extra)
{
    CHECK(extra == &conversions);
    const unsigned char *from = static_cast<unsigned char *>(file);
    unsigned char *to = static_cast<unsigned char *>(user);
    const int size = type.Get_size();
    for (int i = 0; i < count * size; i++) to[position * size + i] = static_cast<unsigned char>(~from[i]);
    conversions++;
    return MPI::SUCCESS;
}
static int convert_out(void *user, MPI::Datatype &type, int count, void *file, MPI::Offset position, void *extra)
{
    CHECK(extra == &conversions);
    const unsigned char *from = static_cast<unsigned char *>(user);
    unsigned char *to = static_cast<unsigned char *>(file);
    const int size = type.Get_size();
    for (int i = 0; i < count * size; i++) to[i] = static_cast<unsigned char>(~from[position * size + i]);
    conversions++;
    return MPI::SUCCESS;
}

int main(int argc, char **argv)
{
    start(argc, argv);
    MPI::Intracomm &world = MPI::COMM_WORLD;
    const int rank = world.Get_rank(), size = world.Get_size();
    char name[100];
    sprintf(name, "files-cxx-%d.bin", size);
    THROWS(MPI::ERR_NO_SUCH_FILE, MPI::File::Open(world, "no-such-file", MPI::MODE_RDONLY, MPI::INFO_NULL));
    MPI::File file = MPI::File::Open(world, name, MPI::MODE_CREATE | MPI::MODE_RDWR, MPI::INFO_NULL);
    CHECK(file.Get_amode() == (MPI::MODE_CREATE | MPI::MODE_RDWR) && !file.Get_atomicity());
    CHECK(file.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS);
    file.Set_size(0);
    file.Set_atomicity(true);
    CHECK(file.Get_atomicity() && file.Get_size() == 0);
    file.Set_atomicity(false);
    file.Preallocate(16);
    CHECK(file.Get_size() == 16);
    MPI::Group group = file.Get_group();
    CHECK(group.Get_size() == size);
    group.Free();
    MPI::Info info = file.Get_info();
    file.Set_info(info);
    info.Free();
    CHECK(file.Get_type_extent(MPI::INT) == 4);

    /* Each rank sees every size-th int. */
    MPI::Datatype filetype = MPI::INT.Create_resized(0, 4 * size);
    filetype.Commit();
    file.Set_view(4 * rank, MPI::INT, filetype, "native", MPI::INFO_NULL);
    MPI::Offset place;
    MPI::Datatype etype, seen;
    char representation[MPI::MAX_DATAREP_STRING];
    file.Get_view(place, etype, seen, representation);
    CHECK(place == 4 * rank && etype == MPI::INT && seen != MPI::INT && strcmp(representation, "native") == 0);
    seen.Free();
    CHECK(file.Get_byte_offset(1) == 4 * (rank + size));
    int data[3] = {rank, rank + 10, rank + 20}, back[3] = {0, 0, 0};
    MPI::Status status;
    file.Write_all(data, 1, MPI::INT, status);
    file.Write(data + 1, 1, MPI::INT);
    CHECK(file.Get_position() == 2);
    file.Iwrite(data + 2, 1, MPI::INT).Wait(status);
    CHECK(status.Get_count(MPI::INT) == 1);
    file.Seek(0, MPI::SEEK_SET);
    file.Read_all(back, 3, MPI::INT, status);
    CHECK(back[0] == rank && back[2] == rank + 20 && status.Get_count(MPI::INT) == 3);
    file.Seek(-1, MPI::SEEK_CUR);
    file.Read(back, 1, MPI::INT);
    CHECK(back[0] == rank + 20);
    file.Seek(0, MPI::SEEK_SET);
    file.Write_all_begin(data, 3, MPI::INT);
    file.Write_all_end(data, status);
    file.Seek(0, MPI::SEEK_SET);
    file.Read_all_begin(back, 3, MPI::INT);
    file.Read_all_end(back);
    CHECK(back[1] == rank + 10);
    file.Write_at_all_begin(0, data, 1, MPI::INT);
    file.Write_at_all_end(data);
    file.Read_at_all_begin(0, back, 1, MPI::INT);
    file.Read_at_all_end(back, status);
    file.Iwrite_at(1, data, 1, MPI::INT).Wait();
    file.Read_at(1, back, 1, MPI::INT);
    CHECK(back[0] == rank);
    file.Sync();

    /* The shared pointer. */
    file.Set_view(0, MPI::INT, MPI::INT, "native", MPI::INFO_NULL);
    file.Write_ordered(data, 1, MPI::INT, status);
    file.Seek_shared(0, MPI::SEEK_SET);
    file.Read_ordered(back, 1, MPI::INT);
    CHECK(back[0] == rank && file.Get_position_shared() == size);
    file.Seek_shared(0, MPI::SEEK_SET);
    file.Write_ordered_begin(data, 1, MPI::INT);
    file.Write_ordered_end(data);
    file.Seek_shared(0, MPI::SEEK_SET);
    file.Read_ordered_begin(back, 1, MPI::INT);
    file.Read_ordered_end(back, status);
    file.Seek_shared(0, MPI::SEEK_SET);
    file.Read_shared(back, 1, MPI::INT, status);
    CHECK(back[0] >= 0 && back[0] < size);
    file.Iread_shared(back, 1, MPI::INT).Wait();
    file.Seek_shared(0, MPI::SEEK_SET);
    file.Write_shared(data, 1, MPI::INT);
    file.Iwrite_shared(data, 1, MPI::INT).Wait();
    file.Iread_at(0, back, 1, MPI::INT).Wait();
    file.Iread(back, 1, MPI::INT).Wait();
    world.Barrier();

    /* The representation of the program. */
    MPI::Register_datarep("complement", convert_in, convert_out, extent_of, &conversions);
    file.Set_view(0, MPI::INT, MPI::INT, "complement", MPI::INFO_NULL);
    file.Write_at_all(rank, data, 1, MPI::INT);
    file.Read_at_all(rank, back, 1, MPI::INT);
    CHECK(back[0] == rank && conversions >= 2);
    file.Set_view(0, MPI::INT, MPI::INT, "native", MPI::INFO_NULL);
    file.Read_at_all(rank, back, 1, MPI::INT);
    CHECK(back[0] == ~rank);
    THROWS(MPI::ERR_ARG, file.Read_at(-1, back, 1, MPI::INT));

    /* The constants of stdio keep their values. */
    CHECK(::SEEK_SET == 0 && ::SEEK_END == 2 && MPI::SEEK_END == MPI_SEEK_END);
    filetype.Free();
    file.Close();
    CHECK(file == MPI::FILE_NULL);
    world.Barrier();
    if (rank == 0) MPI::File::Delete(name, MPI::INFO_NULL);
    return stop();
}
