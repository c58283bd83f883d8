/* Datatypes: every constructor, sizes, names, packing, and types of C++. */
#include "check.h"

#include <complex>

int main(int argc, char **argv)
{
    start(argc, argv);
    MPI::Intracomm &world = MPI::COMM_WORLD;
    int ni, na, nd, combiner;
    MPI::Aint lb, extent;
    const int lengths[2] = {2, 1}, places[2] = {0, 3};
    const MPI::Aint bytes[2] = {0, 12};
    const int sizes[2] = {4, 6}, subsizes[2] = {2, 3}, starts[2] = {1, 2};
    const int distribs[2] = {MPI::DISTRIBUTE_BLOCK, MPI::DISTRIBUTE_CYCLIC};
    const int dargs[2] = {MPI::DISTRIBUTE_DFLT_DARG, MPI::DISTRIBUTE_DFLT_DARG}, psizes[2] = {1, 1};
    const MPI::Datatype types[] = {
        MPI::INT.Create_contiguous(3), MPI::INT.Create_vector(2, 1, 3), MPI::INT.Create_hvector(2, 1, 12),
        MPI::INT.Create_indexed(2, lengths, places), MPI::INT.Create_hindexed(2, lengths, bytes),
        MPI::INT.Create_indexed_block(2, 1, places), MPI::INT.Create_subarray(2, sizes, subsizes, starts, MPI::ORDER_C),
        MPI::INT.Create_darray(1, 0, 2, sizes, distribs, dargs, psizes, MPI::ORDER_FORTRAN),
        MPI::INT.Create_resized(-4, 16), MPI::INT.Dup(), MPI::Datatype::Create_f90_integer(9),
        MPI::Datatype::Create_f90_real(12, 100), MPI::Datatype::Create_f90_complex(6, 30)};
    const int combiners[] = {MPI::COMBINER_CONTIGUOUS, MPI::COMBINER_VECTOR, MPI::COMBINER_HVECTOR,
        MPI::COMBINER_INDEXED, MPI::COMBINER_HINDEXED, MPI::COMBINER_INDEXED_BLOCK, MPI::COMBINER_SUBARRAY,
        MPI::COMBINER_DARRAY, MPI::COMBINER_RESIZED, MPI::COMBINER_DUP, MPI::COMBINER_F90_INTEGER, MPI::COMBINER_F90_REAL,
        MPI::COMBINER_F90_COMPLEX};
    const int ints[] = {3, 2, 2, 3, 3, 2, 6, 24, 1, 1, 1, 2, 2};
    for (int i = 0; i < 13; i++) {
        types[i].Get_envelope(ni, na, nd, combiner);
        CHECK(combiner == combiners[i] && types[i].Get_size() == 4 * ints[i]);
    }
    types[8].Get_extent(lb, extent);
    CHECK(lb == -4 && extent == 16);
    types[8].Get_true_extent(lb, extent);
    CHECK(lb == 0 && extent == 4);
    for (int i = 0; i < 10; i++) {
        MPI::Datatype type = types[i];
        type.Commit();
        type.Free();
    }
    CHECK(MPI::Datatype::Match_size(MPI::TYPECLASS_REAL, 8).Get_size() == 8);
    CHECK(MPI::BOOL.Get_size() == sizeof(bool) && MPI::DOUBLE_COMPLEX.Get_size() == 16);
    CHECK(MPI::TWOINT.Get_size() == 8 && MPI::F_DOUBLE_COMPLEX == MPI_DOUBLE_COMPLEX && MPI_INT == MPI::INT);

    /* Names. */
    char name[MPI::MAX_OBJECT_NAME];
    int length;
    MPI::Datatype type = MPI::CHAR.Create_vector(3, 1, 2);
    type.Set_name("every second");
    type.Get_name(name, length);
    CHECK(length == 12 && strcmp(name, "every second") == 0);
    type.Commit();
    const char text[] = "a-b-c";
    char gathered[4] = "", back[6] = "-----";
    int position = 0;
    type.Pack(text, 1, gathered, 3, position, world);
    CHECK(position == 3 && strcmp(gathered, "abc") == 0);
    position = 0;
    type.Unpack(gathered, 3, back, 1, position, world);
    CHECK(position == 3 && memcmp(back, "a-b-c", 5) == 0);

    /* external32 has the most significant byte first. */
    const int numbers[2] = {1, 256};
    unsigned char external[8];
    MPI::Aint place = 0;
    CHECK(MPI::INT.Pack_external_size("external32", 2) == 8);
    MPI::INT.Pack_external("external32", numbers, 2, external, 8, place);
    CHECK(place == 8 && external[3] == 1 && external[6] == 1 && external[0] == 0);
    int again[2] = {0, 0};
    place = 0;
    MPI::INT.Unpack_external("external32", external, 8, place, again, 2);
    CHECK(again[0] == 1 && again[1] == 256);
    type.Free();

    /* Absolute addresses. */
    int here = 5;
    double there = 6.5;
    const int ones[2] = {1, 1};
    const MPI::Aint addresses[2] = {MPI::Get_address(&here), MPI::Get_address(&there)};
    const MPI::Datatype members[2] = {MPI::INT, MPI::DOUBLE};
    type = MPI::Datatype::Create_struct(2, ones, addresses, members);
    type.Commit();
    char buffer[12];
    position = 0;
    type.Pack(MPI::BOTTOM, 1, buffer, 12, position, world);
    here = 0;
    there = 0;
    position = 0;
    type.Unpack(buffer, 12, MPI::BOTTOM, 1, position, world);
    CHECK(here == 5 && there == 6.5);
    type.Free();

    std::complex<double> value(1, 2), sum;
    world.Allreduce(&value, &sum, 1, MPI::DOUBLE_COMPLEX, MPI::SUM);
    CHECK(sum == value * static_cast<double>(world.Get_size()));
    THROWS(MPI::ERR_TYPE, MPI::DATATYPE_NULL.Get_size());
    return stop();
}
