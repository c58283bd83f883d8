/* mpicxx.h: the C++ functions of MPI-2.2, which later versions of MPI do not have, from typepack.
 *
 * Generated from runtime/capi/abi and runtime/capi/tables/src/cxx; do not edit. mpi.h includes this file if the program
 * defines TYPEPACK_CXX. Everything here is inline and calls the C functions, so a program that is compiled
 * with it runs with every library that has the MPI 5 standard ABI.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef MPICXX_H_TYPEPACK
#define MPICXX_H_TYPEPACK

/* SEEK_SET and its kin are macros of these files. MPI has constants with the same names, so the macros become
   constants: the files come first, and do not define the macros again. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace typepack_stdio {
const int set = SEEK_SET, cur = SEEK_CUR, end = SEEK_END;
}
#undef SEEK_SET
#undef SEEK_CUR
#undef SEEK_END
const int SEEK_SET = typepack_stdio::set;
const int SEEK_CUR = typepack_stdio::cur;
const int SEEK_END = typepack_stdio::end;
/* A later file may define a macro only if there is none. A macro may stand for its own name. */
#define SEEK_SET SEEK_SET
#define SEEK_CUR SEEK_CUR
#define SEEK_END SEEK_END

/* All libraries of a program share what is kept here, also if they hide inline functions. */
namespace MPI __attribute__((visibility("default"))) {

typedef MPI_Aint Aint;
typedef MPI_Offset Offset;

class Comm;
class Intracomm;
class Intercomm;
class Cartcomm;
class Graphcomm;
class Distgraphcomm;
class Datatype;
class Errhandler;
class File;
class Group;
class Info;
class Op;
class Request;
class Prequest;
class Grequest;
class Status;
class Win;

typedef void User_function(const void *invec, void *inoutvec, int len, const Datatype &datatype);
typedef int Datarep_extent_function(const Datatype &datatype, Aint &file_extent, void *extra_state);
typedef int Datarep_conversion_function(void *userbuf, Datatype &datatype, int count, void *filebuf, Offset position,
    void *extra_state);

Datarep_conversion_function *const CONVERSION_FN_NULL = 0;

@numbers@

void *const BOTTOM = MPI_BOTTOM;
void *const IN_PLACE = MPI_IN_PLACE;
const char **const ARGV_NULL = 0;
const char ***const ARGVS_NULL = 0;

/* What is thrown where the error handler is ERRORS_THROW_EXCEPTIONS. */
class Exception {
public:
    explicit Exception(int error_code) : code_(error_code), class_(error_code)
    {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_class(error_code, &class_);
        MPI_Error_string(error_code, text, &length);
        text_ = text;
    }
    int Get_error_code() const { return code_; }
    int Get_error_class() const { return class_; }
    const char *Get_error_string() const { return text_.c_str(); }

private:
    int code_, class_;
    std::string text_;
};

namespace typepack {

typedef void (*Function)();

/* An error handler in C++ may throw, and no exception may cross the frames of the library. So while a function of this
   file calls the library, an error only leaves a note. The handler runs when the library has returned. */
struct Error {
    void (*act)(void *handle, int code, Function handler);
    void *handle;
    int code;
    Function handler;
};
struct Thread {
    int calls;
    Error error;
};

inline Thread &thread()
{
    static __thread Thread state;
    return state;
}

/* One call of the library. The object is made before the call. */
class Call {
public:
    Call() : outer_(thread())
    {
        thread().calls = outer_.calls + 1;
        thread().error.act = 0;
    }
    ~Call() { thread() = outer_; }
    void operator()(int)
    {
        const Error error = thread().error;
        if (error.act) {
            thread().error.act = 0;
            if (outer_.calls > 0) {
                /* A callback makes this call, and no exception may go through the library. The outer call throws. */
                if (!outer_.error.act) outer_.error = error;
                return;
            }
            thread().calls = 0;
            error.act(error.handle, error.code, error.handler);
        }
    }

private:
    Call(const Call &);
    Call &operator=(const Call &);
    Thread outer_;
};

/* Calls the error handler of the object `handle`, now or when the library has returned. */
inline void raise(void (*act)(void *, int, Function), void *handle, int code, Function handler);

/* Operations and error handlers have no state, so each function in C++ has a function in C of its own, of which there
   is a fixed number. It is never given back: a function that is used again gets the same one. */
const int SLOTS = 64;

template <class Kind> struct Slots {
    static Function functions[SLOTS];
};
template <class Kind> Function Slots<Kind>::functions[SLOTS];

template <class Kind, int N> struct Find {
    static typename Kind::C *entry(Function function)
    {
        Function *slot = &Slots<Kind>::functions[N - 1];
        if (*slot == function || __sync_bool_compare_and_swap(slot, static_cast<Function>(0), function)
            || *slot == function) {
            return &Kind::template Entry<N - 1>::call;
        }
        return Find<Kind, N - 1>::entry(function);
    }
};
template <class Kind> struct Find<Kind, 0> {
    static typename Kind::C *entry(Function)
    {
        Call call;
        call(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM));
        return 0;
    }
};

/* Logical values are `bool` in C++ and `int` in C. */
class Flags {
public:
    Flags(const bool *from, int length) : flags_(from, from + (from && length > 0 ? length : 0)) {}
    explicit Flags(int length) : flags_(length > 0 ? length : 0) {}
    int *data() { return flags_.empty() ? 0 : &flags_[0]; }
    void copy(bool *to) const
    {
        for (std::vector<int>::size_type i = 0; i < flags_.size(); i++) to[i] = flags_[i] != 0;
    }

private:
    std::vector<int> flags_;
};

/* Returns the communicator if it is of the kind, else the null communicator. */
enum Kind { INTRA, INTER, TOPOLOGY };
inline MPI_Comm only(MPI_Comm comm, Kind kind, int topology)
{
    int before = 0, after = 0, found = 0;
    MPI_Initialized(&before);
    MPI_Finalized(&after);
    if (comm == MPI_COMM_NULL || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || !before || after) {
        return kind == INTRA || comm == MPI_COMM_NULL || !before || after ? comm : MPI_COMM_NULL;
    }
    if (kind == TOPOLOGY) {
        MPI_Topo_test(comm, &found);
        return found == topology ? comm : MPI_COMM_NULL;
    }
    MPI_Comm_test_inter(comm, &found);
    return (found != 0) == (kind == INTER) ? comm : MPI_COMM_NULL;
}

} // namespace typepack

class Errhandler {
public:
    Errhandler() : handle_(MPI_ERRHANDLER_NULL), throws_(false) {}
    Errhandler(MPI_Errhandler handle) : handle_(handle), throws_(false)
    {
        for (int i = 0; i < 3; i++) throws_ = throws_ || (handle && handle == throwing()[i]);
    }
    Errhandler &operator=(const MPI_Errhandler &handle) { return *this = Errhandler(handle); }
    bool operator==(const Errhandler &other) const
    {
        return throws_ == other.throws_ && (throws_ || handle_ == other.handle_);
    }
    bool operator!=(const Errhandler &other) const { return !(*this == other); }
    bool operator==(MPI_Errhandler other) const { return *this == Errhandler(other); }
    bool operator!=(MPI_Errhandler other) const { return !(*this == Errhandler(other)); }
    operator MPI_Errhandler() const { return of_Comm(); }

    void Free();

    /* For typepack. */
    struct Throws {};
    explicit Errhandler(Throws) : handle_(MPI_ERRHANDLER_NULL), throws_(true) {}
    MPI_Errhandler of_Comm() const;
    MPI_Errhandler of_File() const;
    MPI_Errhandler of_Win() const;

private:
    static MPI_Errhandler *throwing()
    {
        static MPI_Errhandler made[3];
        return made;
    }
    static MPI_Errhandler once(int at, MPI_Errhandler made);
    MPI_Errhandler handle_;
    bool throws_;
};

class Datatype {
public:
    @common Datatype@

    typedef int Copy_attr_function(const Datatype &oldtype, int type_keyval, void *extra_state,
        const void *attribute_val_in, void *attribute_val_out, bool &flag);
    typedef int Delete_attr_function(Datatype &datatype, int type_keyval, void *attribute_val, void *extra_state);
    @keyvals Datatype@

    @declare Datatype@
};

class Group {
public:
    @common Group@

    @declare Group@
};

class Info {
public:
    @common Info@

    @declare Info@
};

class Op {
public:
    @common Op@

    void Init(User_function *function, bool commute);
    @declare Op@
};

class Status {
public:
    Status() : handle_() {}
    Status(const MPI_Status &status) : handle_(status) {}
    Status &operator=(const MPI_Status &status)
    {
        handle_ = status;
        return *this;
    }
    operator MPI_Status() const { return handle_; }

    @declare Status@

private:
    MPI_Status handle_;
};

class Request {
public:
    @common Request@

    @declare Request@
};

class Prequest : public Request {
public:
    @derived Prequest Request@

    @declare Prequest@
};

class Grequest : public Request {
public:
    @derived Grequest Request@

    typedef int Query_function(void *extra_state, Status &status);
    typedef int Free_function(void *extra_state);
    typedef int Cancel_function(void *extra_state, bool complete);
    static Grequest Start(Query_function *query_fn, Free_function *free_fn, Cancel_function *cancel_fn,
        void *extra_state);
    @declare Grequest@
};

class Comm {
public:
    virtual ~Comm() {}
    bool operator==(const Comm &other) const { return handle_ == other.handle_; }
    bool operator!=(const Comm &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Comm other) const { return handle_ == other; }
    bool operator!=(MPI_Comm other) const { return handle_ != other; }
    operator MPI_Comm() const { return handle_; }

    typedef int Copy_attr_function(const Comm &oldcomm, int comm_keyval, void *extra_state, void *attribute_val_in,
        void *attribute_val_out, bool &flag);
    typedef int Delete_attr_function(Comm &comm, int comm_keyval, void *attribute_val, void *extra_state);
    @keyvals Comm@
    @handlers Comm@

    virtual Comm &Clone() const = 0;
    @declare Comm@

protected:
    Comm() : handle_(MPI_COMM_NULL) {}
    Comm(MPI_Comm comm) : handle_(comm) {}
    Comm(const Comm &other) : handle_(other.handle_) {}
    Comm &operator=(const Comm &other)
    {
        handle_ = other.handle_;
        return *this;
    }
    MPI_Comm handle_;
};

/* The null communicator, which is of every class. */
class Nullcomm : public Comm {
public:
    virtual Nullcomm &Clone() const { return *new Nullcomm; }
};

class Intracomm : public Comm {
public:
    Intracomm() {}
    Intracomm(const Nullcomm &) {}
    Intracomm(MPI_Comm comm) : Comm(typepack::only(comm, typepack::INTRA, 0)) {}
    virtual Intracomm &Clone() const;

    Intercomm Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root) const;
    Intercomm Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root,
        int array_of_errcodes[]) const;
    Intercomm Spawn_multiple(int count, const char *array_of_commands[], const char **array_of_argv[],
        const int array_of_maxprocs[], const Info array_of_info[], int root) const;
    Intercomm Spawn_multiple(int count, const char *array_of_commands[], const char **array_of_argv[],
        const int array_of_maxprocs[], const Info array_of_info[], int root, int array_of_errcodes[]) const;
    @declare Intracomm@

protected:
    struct Checked {};
    Intracomm(MPI_Comm comm, Checked) : Comm(comm) {}
};

class Intercomm : public Comm {
public:
    Intercomm() {}
    Intercomm(const Nullcomm &) {}
    Intercomm(MPI_Comm comm) : Comm(typepack::only(comm, typepack::INTER, 0)) {}
    virtual Intercomm &Clone() const;

    @declare Intercomm@
};

class Cartcomm : public Intracomm {
public:
    Cartcomm() {}
    Cartcomm(const Nullcomm &) {}
    Cartcomm(MPI_Comm comm) : Intracomm(typepack::only(comm, typepack::TOPOLOGY, MPI_CART), Checked()) {}
    virtual Cartcomm &Clone() const;

    @declare Cartcomm@
};

class Graphcomm : public Intracomm {
public:
    Graphcomm() {}
    Graphcomm(const Nullcomm &) {}
    Graphcomm(MPI_Comm comm) : Intracomm(typepack::only(comm, typepack::TOPOLOGY, MPI_GRAPH), Checked()) {}
    virtual Graphcomm &Clone() const;

    @declare Graphcomm@
};

class Distgraphcomm : public Intracomm {
public:
    Distgraphcomm() {}
    Distgraphcomm(const Nullcomm &) {}
    Distgraphcomm(MPI_Comm comm) : Intracomm(typepack::only(comm, typepack::TOPOLOGY, MPI_DIST_GRAPH), Checked()) {}
    virtual Distgraphcomm &Clone() const;

    /* The degrees are those of the calling process. The rank that MPI-2.2 has here is not used, and MPICH's C++
       functions do not have it. */
    virtual void Get_dist_neighbors_count(int &indegree, int &outdegree, bool &weighted) const;
    virtual void Get_dist_neighbors_count(int rank, int indegree[], int outdegree[], bool &weighted) const;
    @declare Distgraphcomm@
};

class Win {
public:
    @common Win@

    typedef int Copy_attr_function(const Win &oldwin, int win_keyval, void *extra_state, void *attribute_val_in,
        void *attribute_val_out, bool &flag);
    typedef int Delete_attr_function(Win &win, int win_keyval, void *attribute_val, void *extra_state);
    @keyvals Win@
    @handlers Win@

    @declare Win@
};

class File {
public:
    @common File@

    @handlers File@

    @declare File@
};

@declare MPI@
void Init();
void Init(int &argc, char **&argv);
int Init_thread(int required);
int Init_thread(int &argc, char **&argv, int required);
void Pcontrol(const int level, ...);
void Register_datarep(const char *datarep, Datarep_conversion_function *read_conversion_fn,
    Datarep_conversion_function *write_conversion_fn, Datarep_extent_function *dtype_file_extent_fn,
    void *extra_state);

/* The predefined objects. A function makes them, so that they are there before any object of the program. */
struct Predefined {
    @members@
    const Nullcomm COMM_NULL;
    const Errhandler ERRORS_THROW_EXCEPTIONS;
    Predefined();
};

inline Predefined::Predefined()
    : @initializers@,
      COMM_NULL(), ERRORS_THROW_EXCEPTIONS(Errhandler::Throws())
{
}

inline Predefined &predefined()
{
    static Predefined objects;
    return objects;
}

#if __cplusplus >= 201703L
#define TYPEPACK_OBJECT inline
#else
#define TYPEPACK_OBJECT static __attribute__((unused))
#endif
@objects@
TYPEPACK_OBJECT const Nullcomm &COMM_NULL = predefined().COMM_NULL;
TYPEPACK_OBJECT const Errhandler &ERRORS_THROW_EXCEPTIONS = predefined().ERRORS_THROW_EXCEPTIONS;
#undef TYPEPACK_OBJECT

