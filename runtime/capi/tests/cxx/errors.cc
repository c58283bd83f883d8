/* Errors: exceptions, handlers in C++, and handlers that return. */
#include "check.h"

#include <string>

static int handled, code_seen;
struct Mine {
    int code;
};

static void count(MPI::Comm &comm, int *code, ...)
{
    CHECK(comm != MPI::COMM_NULL);
    handled++;
    code_seen = MPI::Get_error_class(*code);
}
static void throw_mine(MPI::Comm &, int *code, ...)
{
    Mine mine = {MPI::Get_error_class(*code)};
    throw mine;
}
static void on_file(MPI::File &, int *, ...) { handled++; }
static void on_win(MPI::Win &, int *, ...) { handled++; }
template <int N> static void many(MPI::Comm &, int *, ...) {}

template <int N> struct Fill {
    static void use()
    {
        MPI::Comm::Create_errhandler(many<N>).Free();
        Fill<N - 1>::use();
    }
};
template <> struct Fill<0> {
    static void use() {}
};

static int bad_in_c()
{
    int class_ = 0;
    MPI_Error_class(MPI_Send(0, 1, MPI_INT, 777, 0, MPI_COMM_WORLD), &class_);
    return class_;
}

int main(int argc, char **argv)
{
    start(argc, argv);
    MPI::Intracomm &world = MPI::COMM_WORLD;
    int word = 0;
    THROWS(MPI::ERR_RANK, world.Send(&word, 1, MPI::INT, 777, 0));
    THROWS(MPI::ERR_TAG, world.Send(&word, 1, MPI::INT, 0, -7));
    CHECK(world.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS);
    CHECK(MPI::COMM_SELF.Get_errhandler() == world.Get_errhandler() && world.Get_errhandler() != MPI::ERRORS_RETURN);
    try {
        world.Call_errhandler(MPI::ERR_OTHER);
        CHECK(false);
    } catch (MPI::Exception error) {
        CHECK(error.Get_error_code() == MPI::ERR_OTHER && std::string(error.Get_error_string()).size() > 3);
    }

    /* No exception goes to C: the handler is one that returns there. It leaves nothing behind. */
    CHECK(bad_in_c() == MPI::ERR_RANK);
    world.Barrier();
    world.Set_errhandler(MPI::ERRORS_RETURN);
    CHECK(world.Get_errhandler() == MPI::ERRORS_RETURN && bad_in_c() == MPI::ERR_RANK);
    world.Send(&word, 1, MPI::INT, 777, 0);

    /* A handler in C++: it gets an object, and it may throw what it likes. */
    MPI::Errhandler counting = MPI::Comm::Create_errhandler(count);
    world.Set_errhandler(counting);
    world.Send(&word, 1, MPI::INT, 777, 0);
    CHECK(handled == 1 && code_seen == MPI::ERR_RANK && world.Get_errhandler() == counting);
    CHECK(bad_in_c() == MPI::ERR_RANK && handled == 2);
    counting.Free();
    CHECK(counting == MPI::ERRHANDLER_NULL);
    MPI::Errhandler throwing = MPI::Comm::Create_errhandler(throw_mine);
    world.Set_errhandler(throwing);
    int caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            world.Send(&word, 1, MPI::INT, 777, 0);
        } catch (const Mine &mine) {
            CHECK(mine.code == MPI::ERR_RANK);
            caught++;
        }
    }
    CHECK(caught == 3);
    /* Its exception does not go to C, either: the call returns its error. */
    CHECK(bad_in_c() == MPI::ERR_RANK);
    world.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    throwing.Free();

    /* Files and windows. */
    MPI::Errhandler of_file = MPI::File::Create_errhandler(on_file), of_win = MPI::Win::Create_errhandler(on_win);
    MPI::FILE_NULL.Set_errhandler(of_file);
    handled = 0;
    CHECK(MPI::File::Open(world, "/no/such/file", MPI::MODE_RDONLY, MPI::INFO_NULL) == MPI::FILE_NULL && handled == 1);
    MPI::FILE_NULL.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    THROWS(MPI::ERR_NO_SUCH_FILE, MPI::File::Open(world, "/no/such/file", MPI::MODE_RDONLY, MPI::INFO_NULL));
    MPI::Win win = MPI::Win::Create(&word, 4, 4, MPI::INFO_NULL, world);
    win.Set_errhandler(of_win);
    win.Call_errhandler(MPI::ERR_OTHER);
    CHECK(handled == 2 && win.Get_errhandler() == of_win);
    win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    THROWS(MPI::ERR_OTHER, win.Call_errhandler(MPI::ERR_OTHER));
    CHECK(win.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS);
    win.Free();
    of_file.Free();
    of_win.Free();

    /* There is a place for 64 functions. One more is an error. */
    THROWS(MPI::ERR_NO_MEM, Fill<64>::use());

    /* The exception of a request comes from its communicator's handler. */
    int wide[2] = {1, 2}, narrow = 0;
    MPI::Request request = MPI::COMM_SELF.Isend(wide, 2, MPI::INT, 0, 0);
    MPI::Request other = MPI::COMM_SELF.Irecv(&narrow, 1, MPI::INT, 0, 0);
    request.Wait();
    THROWS(MPI::ERR_TRUNCATE, other.Wait());
    return stop();
}
