/* Each form in C++ that the founding texts show (MPI-2.2, 4.1.13, 4.2 and 13.4), as the type of a pointer: it compiles
   only if the function is declared as there. Then the functions run. */
#include "check.h"

static void (MPI::Datatype::*get_envelope)(int &num_integers, int &num_addresses, int &num_datatypes,
    int &combiner) const =
    &MPI::Datatype::Get_envelope;
static void (MPI::Datatype::*get_contents)(int max_integers, int max_addresses, int max_datatypes,
    int array_of_integers[], MPI::Aint array_of_addresses[], MPI::Datatype array_of_datatypes[]) const =
    &MPI::Datatype::Get_contents;
static void (MPI::Datatype::*pack)(const void *inbuf, int incount, void *outbuf, int outsize, int &position,
    const MPI::Comm &comm) const = &MPI::Datatype::Pack;
static void (MPI::Datatype::*unpack)(const void *inbuf, int insize, void *outbuf, int outcount, int &position,
    const MPI::Comm &comm) const = &MPI::Datatype::Unpack;
static int (MPI::Datatype::*pack_size)(int incount, const MPI::Comm &comm) const = &MPI::Datatype::Pack_size;

typedef void (MPI::File::*Read)(MPI::Offset offset, void *buf, int count, const MPI::Datatype &datatype,
    MPI::Status &status);
typedef void (MPI::File::*Read_without)(MPI::Offset offset, void *buf, int count, const MPI::Datatype &datatype);
typedef void (MPI::File::*Write)(MPI::Offset offset, const void *buf, int count, const MPI::Datatype &datatype,
    MPI::Status &status);
typedef void (MPI::File::*Write_without)(MPI::Offset offset, const void *buf, int count,
    const MPI::Datatype &datatype);
static Read read_at = &MPI::File::Read_at, read_at_all = &MPI::File::Read_at_all;
static Read_without read_at_without = &MPI::File::Read_at, read_at_all_without = &MPI::File::Read_at_all;
static Write write_at = &MPI::File::Write_at, write_at_all = &MPI::File::Write_at_all;
static Write_without write_at_without = &MPI::File::Write_at, write_at_all_without = &MPI::File::Write_at_all;
static MPI::Request (MPI::File::*iread_at)(MPI::Offset offset, void *buf, int count, const MPI::Datatype &datatype) =
    &MPI::File::Iread_at;

/* An object of the program may copy a predefined one before main begins. */
static MPI::Datatype early = MPI::INT;
static MPI::Intracomm early_world = MPI::COMM_WORLD;

/* The program with LARGE of 4.1.13, for a type of a struct. */
static void decode()
{
    const int LARGE = 1000;
    static int integers[LARGE];
    static MPI::Aint addresses[LARGE];
    static MPI::Datatype datatypes[LARGE];
    const int lengths[3] = {2, 1, 3};
    const MPI::Aint displacements[3] = {0, 16, 26};
    MPI::Datatype pair = MPI::DOUBLE.Create_contiguous(2);
    const MPI::Datatype types[3] = {MPI::FLOAT, pair, MPI::CHAR};
    MPI::Datatype type = MPI::Datatype::Create_struct(3, lengths, displacements, types);
    int ni, na, nd, combiner;
    (type.*get_envelope)(ni, na, nd, combiner);
    CHECK(ni == 4 && na == 3 && nd == 3 && combiner == MPI::COMBINER_STRUCT);
    (type.*get_contents)(LARGE, LARGE, LARGE, integers, addresses, datatypes);
    CHECK(integers[0] == 3 && integers[1] == 2 && integers[3] == 3 && addresses[1] == 16 && addresses[2] == 26);
    CHECK(datatypes[0] == MPI::FLOAT && datatypes[2] == MPI::CHAR && datatypes[1] != MPI::DOUBLE);
    (datatypes[1].*get_envelope)(ni, na, nd, combiner);
    CHECK(combiner == MPI::COMBINER_CONTIGUOUS && ni == 1 && na == 0 && nd == 1);
    datatypes[1].Free();
    MPI::INT.Get_envelope(ni, na, nd, combiner);
    CHECK(combiner == MPI::COMBINER_NAMED && ni == 0 && na == 0 && nd == 0);
    THROWS(MPI::ERR_TYPE, MPI::INT.Get_contents(LARGE, LARGE, LARGE, integers, addresses, datatypes));
    MPI::Datatype dup = MPI::INT.Dup();
    dup.Get_envelope(ni, na, nd, combiner);
    CHECK(combiner == MPI::COMBINER_DUP && nd == 1);
    dup.Free();
    pair.Free();
    type.Free();
    CHECK(type == MPI::DATATYPE_NULL);
}

/* Examples 4.21 and 4.22: two ints in one message; a count and its numbers. */
static void packing()
{
    const int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
    char buffer[1000];
    int i = 7, j = 8, position = 0;
    float numbers[100];
    (MPI::INT.*pack)(&i, 1, buffer, 1000, position, MPI::COMM_WORLD);
    MPI::INT.Pack(&j, 1, buffer, 1000, position, MPI::COMM_WORLD);
    CHECK(position == 2 * (MPI::INT.*pack_size)(1, MPI::COMM_WORLD));
    for (int k = 0; k < j; k++) numbers[k] = static_cast<float>(k + rank);
    MPI::FLOAT.Pack(numbers, j, buffer, 1000, position, MPI::COMM_WORLD);
    char other[1000];
    MPI::Status status;
    MPI::COMM_WORLD.Sendrecv(buffer, position, MPI::PACKED, (rank + 1) % size, 0, other, 1000, MPI::PACKED,
        (rank + size - 1) % size, 0, status);
    CHECK(status.Get_count(MPI::PACKED) == position);
    int from = 0;
    i = j = 0;
    (MPI::INT.*unpack)(other, 1000, &i, 1, from, MPI::COMM_WORLD);
    MPI::INT.Unpack(other, 1000, &j, 1, from, MPI::COMM_WORLD);
    CHECK(i == 7 && j == 8);
    MPI::FLOAT.Unpack(other, 1000, numbers, j, from, MPI::COMM_WORLD);
    CHECK(from == position && numbers[3] == static_cast<float>(3 + (rank + size - 1) % size));
    position = 0;
    THROWS(MPI::ERR_BUFFER, MPI::INT.Pack(&i, 1, buffer, 2, position, MPI::COMM_WORLD));
}

/* The accesses with explicit offsets of 13.4.2. */
static void accesses()
{
    const int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
    char name[100];
    sprintf(name, "founding-%d.bin", size);
    MPI::File file = MPI::File::Open(MPI::COMM_WORLD, name, MPI::MODE_CREATE | MPI::MODE_RDWR, MPI::INFO_NULL);
    int data[2] = {rank, -rank}, back[2] = {9, 9};
    const MPI::Offset place = 8 * rank;
    MPI::Status status;
    (file.*write_at)(place, data, 1, MPI::INT, status);
    CHECK(status.Get_count(MPI::INT) == 1);
    (file.*write_at_without)(place + 4, data + 1, 1, MPI::INT);
    (file.*read_at)(place, back, 2, MPI::INT, status);
    CHECK(back[0] == rank && back[1] == -rank && status.Get_count(MPI::INT) == 2);
    data[0] += 100;
    (file.*write_at_all)(place, data, 2, MPI::INT, status);
    (file.*write_at_all_without)(place, data, 2, MPI::INT);
    (file.*read_at_all)(place, back, 2, MPI::INT, status);
    CHECK(back[0] == rank + 100);
    (file.*read_at_without)(place, back, 1, MPI::INT);
    (file.*read_at_all_without)(place, back, 1, MPI::INT);
    MPI::Request request = (file.*iread_at)(place, back + 1, 1, MPI::INT);
    request.Wait(status);
    CHECK(back[1] == rank + 100 && status.Get_count(MPI::INT) == 1);
    file.Close();
    MPI::COMM_WORLD.Barrier();
    if (rank == 0) MPI::File::Delete(name, MPI::INFO_NULL);
}

int main(int argc, char **argv)
{
    start(argc, argv);
    CHECK(early == MPI::INT && early_world == MPI::COMM_WORLD);
    decode();
    packing();
    accesses();
    return stop();
}
