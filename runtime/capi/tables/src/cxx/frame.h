/* mpicxx.h: the C++ functions of MPI-2.2, which later versions of MPI do not have, from typepack.
 *
 * Generated from runtime/capi/abi and runtime/capi/tables/src/cxx/frame.h; do not edit. mpi.h includes this file if the
 * program defines TYPEPACK_CXX. Everything here is inline and calls the C functions, so a program that is compiled
 * with it runs with every library that has the MPI 5 standard ABI.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef MPICXX_H_TYPEPACK
#define MPICXX_H_TYPEPACK

/* SEEK_SET and its kin are macros of these files. MPI has constants with the same names, so the macros become constants:
   the files come first, and do not define the macros again. */
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

namespace MPI {

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

/* One call of the library. */
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
        Call()(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM));
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

namespace typepack {

/* An array of objects has the same bytes as an array of handles. */
template <bool> struct Same;
template <> struct Same<true> {
    enum { value };
};
enum {
    DATATYPES = Same<sizeof(Datatype) == sizeof(MPI_Datatype)>::value,
    REQUESTS = Same<sizeof(Request) == sizeof(MPI_Request) && sizeof(Prequest) == sizeof(MPI_Request)>::value,
    INFOS = Same<sizeof(Info) == sizeof(MPI_Info)>::value,
    STATUSES = Same<sizeof(Status) == sizeof(MPI_Status)>::value
};
inline MPI_Datatype *handles(Datatype *objects) { return reinterpret_cast<MPI_Datatype *>(objects); }
inline const MPI_Datatype *handles(const Datatype *objects) { return reinterpret_cast<const MPI_Datatype *>(objects); }
inline MPI_Request *handles(Request *objects) { return reinterpret_cast<MPI_Request *>(objects); }
inline const MPI_Info *handles(const Info *objects) { return reinterpret_cast<const MPI_Info *>(objects); }
inline MPI_Status *handles(Status *objects) { return reinterpret_cast<MPI_Status *>(objects); }

/* The object that a callback gets. A communicator is of the class that its kind asks for. */
template <class Object, class Handle> class Held {
public:
    explicit Held(Handle handle) : object_(handle) {}
    Object &get() { return object_; }

private:
    Object object_;
};
template <> class Held<Comm, MPI_Comm> {
public:
    explicit Held(MPI_Comm comm) : comm_(0)
    {
        int inter = 0, topology = MPI_UNDEFINED;
        if (comm != MPI_COMM_NULL) MPI_Comm_test_inter(comm, &inter);
        if (inter) {
            comm_ = new Intercomm(comm);
            return;
        }
        if (comm != MPI_COMM_NULL) MPI_Topo_test(comm, &topology);
        switch (topology) {
        case MPI_CART: comm_ = new Cartcomm(comm); break;
        case MPI_GRAPH: comm_ = new Graphcomm(comm); break;
        case MPI_DIST_GRAPH: comm_ = new Distgraphcomm(comm); break;
        default: comm_ = new Intracomm(comm);
        }
    }
    ~Held() { delete comm_; }
    Comm &get() { return *comm_; }

private:
    Held(const Held &);
    Held &operator=(const Held &);
    Comm *comm_;
};

/* Error handlers. */
template <class Object, class Handle, class Callback> struct Handler {
    typedef Callback C;
    typedef typename Object::Errhandler_function Cpp;
    static void act(void *handle, int code, Function function)
    {
        Held<Object, Handle> held(static_cast<Handle>(handle));
        reinterpret_cast<Cpp *>(function)(held.get(), &code);
    }
    template <int N> struct Entry {
        static void call(Handle *handle, int *code, ...)
        {
            raise(&Handler::act, *handle, *code, Slots<Handler>::functions[N]);
        }
    };
    static C *entry(Cpp *function) { return Find<Handler, SLOTS>::entry(reinterpret_cast<Function>(function)); }
    static void throws(Object &, int *code, ...) { throw Exception(*code); }
};
typedef Handler<Comm, MPI_Comm, MPI_Comm_errhandler_function> Comm_handler;
typedef Handler<File, MPI_File, MPI_File_errhandler_function> File_handler;
typedef Handler<Win, MPI_Win, MPI_Win_errhandler_function> Win_handler;

inline void raise(void (*act)(void *, int, Function), void *handle, int code, Function handler)
{
    Error &error = thread().error;
    if (thread().calls > 0) {
        if (error.act) return;
        error.act = act;
        error.handle = handle;
        error.code = code;
        error.handler = handler;
    } else if (handler != reinterpret_cast<Function>(&Comm_handler::throws)
        && handler != reinterpret_cast<Function>(&File_handler::throws)
        && handler != reinterpret_cast<Function>(&Win_handler::throws)) {
        /* The call came from C, to which no exception may go. */
        act(handle, code, handler);
    }
}

/* Operations. */
struct Operation {
    typedef MPI_User_function C;
    template <int N> struct Entry {
        static void call(void *invec, void *inoutvec, int *len, MPI_Datatype *datatype)
        {
            Function function = Slots<Operation>::functions[N];
            reinterpret_cast<User_function *>(function)(invec, inoutvec, *len, Datatype(*datatype));
        }
    };
};

/* The functions of a key of attributes. Equal ones are kept once, for as long as the program runs, because nobody tells
   when the last attribute of a key is gone. */
template <class Object, class Handle> struct Attributes {
    typedef typename Object::Copy_attr_function Copy;
    typedef typename Object::Delete_attr_function Delete;
    Copy *copy;
    Delete *erase;
    void *extra_state;
    Attributes *next;

    static Attributes *first;
    static Attributes *of(Copy *copy, Delete *erase, void *extra_state)
    {
        for (Attributes *at = first; at; at = at->next) {
            if (at->copy == copy && at->erase == erase && at->extra_state == extra_state) return at;
        }
        Attributes *made = new Attributes;
        made->copy = copy;
        made->erase = erase;
        made->extra_state = extra_state;
        do {
            made->next = first;
        } while (!__sync_bool_compare_and_swap(&first, made->next, made));
        return made;
    }
    static int on_copy(Handle handle, int keyval, void *state, void *in, void *out, int *flag)
    {
        const Attributes *self = static_cast<Attributes *>(state);
        Held<Object, Handle> held(handle);
        bool copied = false;
        int code = self->copy(held.get(), keyval, self->extra_state, in, out, copied);
        *flag = copied;
        return code;
    }
    static int on_delete(Handle handle, int keyval, void *value, void *state)
    {
        const Attributes *self = static_cast<Attributes *>(state);
        Held<Object, Handle> held(handle);
        return self->erase(held.get(), keyval, value, self->extra_state);
    }
};
template <class Object, class Handle> Attributes<Object, Handle> *Attributes<Object, Handle>::first;

/* Generalized requests. */
struct Generalized {
    Grequest::Query_function *query;
    Grequest::Free_function *free;
    Grequest::Cancel_function *cancel;
    void *extra_state;

    static int on_query(void *state, MPI_Status *status)
    {
        const Generalized *self = static_cast<Generalized *>(state);
        Status object(*status);
        int code = self->query(self->extra_state, object);
        *status = object;
        return code;
    }
    static int on_free(void *state)
    {
        Generalized *self = static_cast<Generalized *>(state);
        int code = self->free(self->extra_state);
        delete self;
        return code;
    }
    static int on_cancel(void *state, int complete)
    {
        const Generalized *self = static_cast<Generalized *>(state);
        return self->cancel(self->extra_state, complete != 0);
    }
};

/* Data representations, which exist until the program ends. */
struct Datarep {
    Datarep_conversion_function *read, *write;
    Datarep_extent_function *extent;
    void *extra_state;

    static int on_extent(MPI_Datatype datatype, MPI_Aint *file_extent, void *state)
    {
        const Datarep *self = static_cast<Datarep *>(state);
        return self->extent(Datatype(datatype), *file_extent, self->extra_state);
    }
    static int on_read(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position, void *state)
    {
        const Datarep *self = static_cast<Datarep *>(state);
        Datatype object(datatype);
        return self->read(userbuf, object, count, filebuf, position, self->extra_state);
    }
    static int on_write(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position, void *state)
    {
        const Datarep *self = static_cast<Datarep *>(state);
        Datatype object(datatype);
        return self->write(userbuf, object, count, filebuf, position, self->extra_state);
    }
};

} // namespace typepack

@define@

inline MPI_Errhandler Errhandler::once(int at, MPI_Errhandler made)
{
    if (!__sync_bool_compare_and_swap(&throwing()[at], static_cast<MPI_Errhandler>(0), made)) MPI_Errhandler_free(&made);
    return throwing()[at];
}

inline void Errhandler::Free()
{
    if (!throws_) typepack::Call()(MPI_Errhandler_free(&handle_));
    *this = Errhandler();
}

inline Intercomm Intracomm::Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root) const
{
    return Spawn(command, argv, maxprocs, info, root, MPI_ERRCODES_IGNORE);
}

inline Intercomm Intracomm::Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root,
    int array_of_errcodes[]) const
{
    MPI_Comm made = MPI_COMM_NULL;
    typepack::Call()(MPI_Comm_spawn(command, const_cast<char **>(argv), maxprocs, info, root, handle_, &made,
        array_of_errcodes));
    return Intercomm(made);
}

inline Intercomm Intracomm::Spawn_multiple(int count, const char *array_of_commands[], const char **array_of_argv[],
    const int array_of_maxprocs[], const Info array_of_info[], int root) const
{
    return Spawn_multiple(count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root,
        MPI_ERRCODES_IGNORE);
}

inline Intercomm Intracomm::Spawn_multiple(int count, const char *array_of_commands[], const char **array_of_argv[],
    const int array_of_maxprocs[], const Info array_of_info[], int root, int array_of_errcodes[]) const
{
    MPI_Comm made = MPI_COMM_NULL;
    typepack::Call()(MPI_Comm_spawn_multiple(count, const_cast<char **>(array_of_commands),
        const_cast<char ***>(array_of_argv), array_of_maxprocs, typepack::handles(array_of_info), root, handle_, &made,
        array_of_errcodes));
    return Intercomm(made);
}

inline void Distgraphcomm::Get_dist_neighbors_count(int &indegree, int &outdegree, bool &weighted) const
{
    int flag = 0;
    typepack::Call()(MPI_Dist_graph_neighbors_count(handle_, &indegree, &outdegree, &flag));
    weighted = flag != 0;
}

inline void Distgraphcomm::Get_dist_neighbors_count(int, int indegree[], int outdegree[], bool &weighted) const
{
    Get_dist_neighbors_count(*indegree, *outdegree, weighted);
}

inline void Op::Init(User_function *function, bool commute)
{
    MPI_User_function *entry =
        typepack::Find<typepack::Operation, typepack::SLOTS>::entry(reinterpret_cast<typepack::Function>(function));
    if (entry) typepack::Call()(MPI_Op_create(entry, commute, &handle_));
}

inline Grequest Grequest::Start(Query_function *query_fn, Free_function *free_fn, Cancel_function *cancel_fn,
    void *extra_state)
{
    typepack::Generalized *state = new typepack::Generalized;
    state->query = query_fn;
    state->free = free_fn;
    state->cancel = cancel_fn;
    state->extra_state = extra_state;
    MPI_Request made = MPI_REQUEST_NULL;
    typepack::Call()(MPI_Grequest_start(&typepack::Generalized::on_query, &typepack::Generalized::on_free,
        &typepack::Generalized::on_cancel, state, &made));
    return Grequest(made);
}

inline void Init() { typepack::Call()(MPI_Init(0, 0)); }

inline void Init(int &argc, char **&argv) { typepack::Call()(MPI_Init(&argc, &argv)); }

inline int Init_thread(int required)
{
    int provided = MPI_THREAD_SINGLE;
    typepack::Call()(MPI_Init_thread(0, 0, required, &provided));
    return provided;
}

inline int Init_thread(int &argc, char **&argv, int required)
{
    int provided = MPI_THREAD_SINGLE;
    typepack::Call()(MPI_Init_thread(&argc, &argv, required, &provided));
    return provided;
}

inline void Pcontrol(const int level, ...) { typepack::Call()(MPI_Pcontrol(level)); }

inline void Register_datarep(const char *datarep, Datarep_conversion_function *read_conversion_fn,
    Datarep_conversion_function *write_conversion_fn, Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
    typepack::Datarep *state = new typepack::Datarep;
    state->read = read_conversion_fn;
    state->write = write_conversion_fn;
    state->extent = dtype_file_extent_fn;
    state->extra_state = extra_state;
    typepack::Call()(MPI_Register_datarep(datarep, read_conversion_fn ? &typepack::Datarep::on_read : 0,
        write_conversion_fn ? &typepack::Datarep::on_write : 0, &typepack::Datarep::on_extent, state));
}

} // namespace MPI

#endif
