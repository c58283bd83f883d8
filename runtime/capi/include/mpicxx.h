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

const int SUCCESS = MPI_SUCCESS;
const int ERR_BUFFER = MPI_ERR_BUFFER;
const int ERR_COUNT = MPI_ERR_COUNT;
const int ERR_TYPE = MPI_ERR_TYPE;
const int ERR_TAG = MPI_ERR_TAG;
const int ERR_COMM = MPI_ERR_COMM;
const int ERR_RANK = MPI_ERR_RANK;
const int ERR_REQUEST = MPI_ERR_REQUEST;
const int ERR_ROOT = MPI_ERR_ROOT;
const int ERR_GROUP = MPI_ERR_GROUP;
const int ERR_OP = MPI_ERR_OP;
const int ERR_TOPOLOGY = MPI_ERR_TOPOLOGY;
const int ERR_DIMS = MPI_ERR_DIMS;
const int ERR_ARG = MPI_ERR_ARG;
const int ERR_UNKNOWN = MPI_ERR_UNKNOWN;
const int ERR_TRUNCATE = MPI_ERR_TRUNCATE;
const int ERR_OTHER = MPI_ERR_OTHER;
const int ERR_INTERN = MPI_ERR_INTERN;
const int ERR_PENDING = MPI_ERR_PENDING;
const int ERR_IN_STATUS = MPI_ERR_IN_STATUS;
const int ERR_ACCESS = MPI_ERR_ACCESS;
const int ERR_AMODE = MPI_ERR_AMODE;
const int ERR_ASSERT = MPI_ERR_ASSERT;
const int ERR_BAD_FILE = MPI_ERR_BAD_FILE;
const int ERR_BASE = MPI_ERR_BASE;
const int ERR_CONVERSION = MPI_ERR_CONVERSION;
const int ERR_DISP = MPI_ERR_DISP;
const int ERR_DUP_DATAREP = MPI_ERR_DUP_DATAREP;
const int ERR_FILE_EXISTS = MPI_ERR_FILE_EXISTS;
const int ERR_FILE_IN_USE = MPI_ERR_FILE_IN_USE;
const int ERR_FILE = MPI_ERR_FILE;
const int ERR_INFO_KEY = MPI_ERR_INFO_KEY;
const int ERR_INFO_NOKEY = MPI_ERR_INFO_NOKEY;
const int ERR_INFO_VALUE = MPI_ERR_INFO_VALUE;
const int ERR_INFO = MPI_ERR_INFO;
const int ERR_IO = MPI_ERR_IO;
const int ERR_KEYVAL = MPI_ERR_KEYVAL;
const int ERR_LOCKTYPE = MPI_ERR_LOCKTYPE;
const int ERR_NAME = MPI_ERR_NAME;
const int ERR_NO_MEM = MPI_ERR_NO_MEM;
const int ERR_NOT_SAME = MPI_ERR_NOT_SAME;
const int ERR_NO_SPACE = MPI_ERR_NO_SPACE;
const int ERR_NO_SUCH_FILE = MPI_ERR_NO_SUCH_FILE;
const int ERR_PORT = MPI_ERR_PORT;
const int ERR_QUOTA = MPI_ERR_QUOTA;
const int ERR_READ_ONLY = MPI_ERR_READ_ONLY;
const int ERR_RMA_ATTACH = MPI_ERR_RMA_ATTACH;
const int ERR_RMA_CONFLICT = MPI_ERR_RMA_CONFLICT;
const int ERR_RMA_RANGE = MPI_ERR_RMA_RANGE;
const int ERR_RMA_SHARED = MPI_ERR_RMA_SHARED;
const int ERR_RMA_SYNC = MPI_ERR_RMA_SYNC;
const int ERR_SERVICE = MPI_ERR_SERVICE;
const int ERR_SIZE = MPI_ERR_SIZE;
const int ERR_SPAWN = MPI_ERR_SPAWN;
const int ERR_UNSUPPORTED_DATAREP = MPI_ERR_UNSUPPORTED_DATAREP;
const int ERR_UNSUPPORTED_OPERATION = MPI_ERR_UNSUPPORTED_OPERATION;
const int ERR_WIN = MPI_ERR_WIN;
const int ERR_RMA_FLAVOR = MPI_ERR_RMA_FLAVOR;
const int ERR_PROC_ABORTED = MPI_ERR_PROC_ABORTED;
const int ERR_VALUE_TOO_LARGE = MPI_ERR_VALUE_TOO_LARGE;
const int ERR_SESSION = MPI_ERR_SESSION;
const int ERR_ERRHANDLER = MPI_ERR_ERRHANDLER;
const int ERR_ABI = MPI_ERR_ABI;
const int ERR_LASTCODE = MPI_ERR_LASTCODE;
const int MAX_DATAREP_STRING = MPI_MAX_DATAREP_STRING;
const int MAX_ERROR_STRING = MPI_MAX_ERROR_STRING;
const int MAX_INFO_KEY = MPI_MAX_INFO_KEY;
const int MAX_INFO_VAL = MPI_MAX_INFO_VAL;
const int MAX_LIBRARY_VERSION_STRING = MPI_MAX_LIBRARY_VERSION_STRING;
const int MAX_OBJECT_NAME = MPI_MAX_OBJECT_NAME;
const int MAX_PORT_NAME = MPI_MAX_PORT_NAME;
const int MAX_PROCESSOR_NAME = MPI_MAX_PROCESSOR_NAME;
const int MAX_STRINGTAG_LEN = MPI_MAX_STRINGTAG_LEN;
const int MAX_PSET_NAME_LEN = MPI_MAX_PSET_NAME_LEN;
const int BSEND_OVERHEAD = MPI_BSEND_OVERHEAD;
const int MODE_APPEND = MPI_MODE_APPEND;
const int MODE_CREATE = MPI_MODE_CREATE;
const int MODE_DELETE_ON_CLOSE = MPI_MODE_DELETE_ON_CLOSE;
const int MODE_EXCL = MPI_MODE_EXCL;
const int MODE_RDONLY = MPI_MODE_RDONLY;
const int MODE_RDWR = MPI_MODE_RDWR;
const int MODE_SEQUENTIAL = MPI_MODE_SEQUENTIAL;
const int MODE_UNIQUE_OPEN = MPI_MODE_UNIQUE_OPEN;
const int MODE_WRONLY = MPI_MODE_WRONLY;
const int MODE_NOCHECK = MPI_MODE_NOCHECK;
const int MODE_NOPRECEDE = MPI_MODE_NOPRECEDE;
const int MODE_NOPUT = MPI_MODE_NOPUT;
const int MODE_NOSTORE = MPI_MODE_NOSTORE;
const int MODE_NOSUCCEED = MPI_MODE_NOSUCCEED;
const int ANY_SOURCE = MPI_ANY_SOURCE;
const int ANY_TAG = MPI_ANY_TAG;
const int PROC_NULL = MPI_PROC_NULL;
const int ROOT = MPI_ROOT;
const int UNDEFINED = MPI_UNDEFINED;
const int THREAD_SINGLE = MPI_THREAD_SINGLE;
const int THREAD_FUNNELED = MPI_THREAD_FUNNELED;
const int THREAD_SERIALIZED = MPI_THREAD_SERIALIZED;
const int THREAD_MULTIPLE = MPI_THREAD_MULTIPLE;
const int ORDER_C = MPI_ORDER_C;
const int ORDER_FORTRAN = MPI_ORDER_FORTRAN;
const int DISTRIBUTE_NONE = MPI_DISTRIBUTE_NONE;
const int DISTRIBUTE_BLOCK = MPI_DISTRIBUTE_BLOCK;
const int DISTRIBUTE_CYCLIC = MPI_DISTRIBUTE_CYCLIC;
const int DISTRIBUTE_DFLT_DARG = MPI_DISTRIBUTE_DFLT_DARG;
const int COMBINER_NAMED = MPI_COMBINER_NAMED;
const int COMBINER_DUP = MPI_COMBINER_DUP;
const int COMBINER_CONTIGUOUS = MPI_COMBINER_CONTIGUOUS;
const int COMBINER_VECTOR = MPI_COMBINER_VECTOR;
const int COMBINER_HVECTOR = MPI_COMBINER_HVECTOR;
const int COMBINER_INDEXED = MPI_COMBINER_INDEXED;
const int COMBINER_HINDEXED = MPI_COMBINER_HINDEXED;
const int COMBINER_INDEXED_BLOCK = MPI_COMBINER_INDEXED_BLOCK;
const int COMBINER_HINDEXED_BLOCK = MPI_COMBINER_HINDEXED_BLOCK;
const int COMBINER_STRUCT = MPI_COMBINER_STRUCT;
const int COMBINER_SUBARRAY = MPI_COMBINER_SUBARRAY;
const int COMBINER_DARRAY = MPI_COMBINER_DARRAY;
const int COMBINER_F90_REAL = MPI_COMBINER_F90_REAL;
const int COMBINER_F90_COMPLEX = MPI_COMBINER_F90_COMPLEX;
const int COMBINER_F90_INTEGER = MPI_COMBINER_F90_INTEGER;
const int COMBINER_RESIZED = MPI_COMBINER_RESIZED;
const int COMBINER_VALUE_INDEX = MPI_COMBINER_VALUE_INDEX;
const int TYPECLASS_INTEGER = MPI_TYPECLASS_INTEGER;
const int TYPECLASS_REAL = MPI_TYPECLASS_REAL;
const int TYPECLASS_COMPLEX = MPI_TYPECLASS_COMPLEX;
const int IDENT = MPI_IDENT;
const int CONGRUENT = MPI_CONGRUENT;
const int SIMILAR = MPI_SIMILAR;
const int UNEQUAL = MPI_UNEQUAL;
const int CART = MPI_CART;
const int GRAPH = MPI_GRAPH;
const int DIST_GRAPH = MPI_DIST_GRAPH;
const int LOCK_EXCLUSIVE = MPI_LOCK_EXCLUSIVE;
const int LOCK_SHARED = MPI_LOCK_SHARED;
const int SEEK_CUR = MPI_SEEK_CUR;
const int SEEK_END = MPI_SEEK_END;
const int SEEK_SET = MPI_SEEK_SET;
const Offset DISPLACEMENT_CURRENT = MPI_DISPLACEMENT_CURRENT;
const int KEYVAL_INVALID = MPI_KEYVAL_INVALID;
const int TAG_UB = MPI_TAG_UB;
const int IO = MPI_IO;
const int HOST = MPI_HOST;
const int WTIME_IS_GLOBAL = MPI_WTIME_IS_GLOBAL;
const int APPNUM = MPI_APPNUM;
const int LASTUSEDCODE = MPI_LASTUSEDCODE;
const int UNIVERSE_SIZE = MPI_UNIVERSE_SIZE;
const int WIN_BASE = MPI_WIN_BASE;
const int WIN_DISP_UNIT = MPI_WIN_DISP_UNIT;
const int WIN_SIZE = MPI_WIN_SIZE;
const int WIN_CREATE_FLAVOR = MPI_WIN_CREATE_FLAVOR;
const int WIN_MODEL = MPI_WIN_MODEL;
const int COMBINER_HVECTOR_INTEGER = 20005;
const int COMBINER_HINDEXED_INTEGER = 20007;
const int COMBINER_STRUCT_INTEGER = 20010;

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
    Datatype() : handle_(MPI_DATATYPE_NULL) {}
    Datatype(MPI_Datatype handle) : handle_(handle) {}
    Datatype &operator=(const MPI_Datatype &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const Datatype &other) const { return handle_ == other.handle_; }
    bool operator!=(const Datatype &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Datatype other) const { return handle_ == other; }
    bool operator!=(MPI_Datatype other) const { return handle_ != other; }
    operator MPI_Datatype() const { return handle_; }

protected:
    MPI_Datatype handle_;

public:

    typedef int Copy_attr_function(const Datatype &oldtype, int type_keyval, void *extra_state,
        const void *attribute_val_in, void *attribute_val_out, bool &flag);
    typedef int Delete_attr_function(Datatype &datatype, int type_keyval, void *attribute_val, void *extra_state);
    static int Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn, void *extra_state);
    static int NULL_COPY_FN(const Datatype &, int, void *, const void *, void *, bool &flag)
    {
        flag = false;
        return MPI_SUCCESS;
    }
    static int DUP_FN(const Datatype &, int, void *, const void *in, void *out, bool &flag)
    {
        *static_cast<void **>(out) = const_cast<void *>(in);
        flag = true;
        return MPI_SUCCESS;
    }
    static int NULL_DELETE_FN(Datatype &, int, void *, void *) { return MPI_SUCCESS; }
    static int Create_keyval(int (*copy_fn)(const Datatype &, int, void *, void *, void *, bool &),
        Delete_attr_function *delete_fn, void *extra_state)
    {
        return Create_keyval(reinterpret_cast<Copy_attr_function *>(copy_fn), delete_fn, extra_state);
    }

    Datatype Create_contiguous(int count) const;
    Datatype Create_vector(int count, int blocklength, int stride) const;
    Datatype Create_hvector(int count, int blocklength, Aint stride) const;
    Datatype Create_indexed(int count, const int array_of_blocklengths[],
        const int array_of_displacements[]) const;
    Datatype Create_hindexed(int count, const int array_of_blocklengths[],
        const Aint array_of_displacements[]) const;
    Datatype Create_indexed_block(int count, int blocklength,
        const int array_of_displacements[]) const;
    Datatype Create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
        const int array_of_starts[], int order) const;
    Datatype Create_darray(int size, int rank, int ndims, const int array_of_gsizes[],
        const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[],
        int order) const;
    Datatype Create_resized(Aint lb, Aint extent) const;
    Datatype Dup() const;
    static Datatype Create_struct(int count, const int array_of_blocklengths[],
        const Aint array_of_displacements[], const Datatype array_of_types[]);
    static Datatype Create_f90_integer(int r);
    static Datatype Create_f90_real(int p, int r);
    static Datatype Create_f90_complex(int p, int r);
    static Datatype Match_size(int typeclass, int size);
    void Commit();
    void Free();
    int Get_size() const;
    void Get_extent(Aint &lb, Aint &extent) const;
    void Get_true_extent(Aint &true_lb, Aint &true_extent) const;
    void Get_envelope(int &num_integers, int &num_addresses, int &num_datatypes,
        int &combiner) const;
    void Get_contents(int max_integers, int max_addresses, int max_datatypes,
        int array_of_integers[], Aint array_of_addresses[], Datatype array_of_datatypes[]) const;
    void Pack(const void *inbuf, int incount, void *outbuf, int outsize, int &position,
        const Comm &comm) const;
    void Unpack(const void *inbuf, int insize, void *outbuf, int outcount, int &position,
        const Comm &comm) const;
    int Pack_size(int incount, const Comm &comm) const;
    void Pack_external(const char *datarep, const void *inbuf, int incount, void *outbuf,
        Aint outsize, Aint &position) const;
    void Unpack_external(const char datarep[], const void *inbuf, Aint insize, Aint &position,
        void *outbuf, int outcount) const;
    Aint Pack_external_size(const char *datarep, int incount) const;
    void Get_name(char *type_name, int &resultlen) const;
    void Set_name(const char *type_name) const;
    bool Get_attr(int type_keyval, void *attribute_val) const;
    void Set_attr(int type_keyval, const void *attribute_val) const;
    void Delete_attr(int type_keyval) const;
    static void Free_keyval(int &type_keyval);
};

class Group {
public:
    Group() : handle_(MPI_GROUP_NULL) {}
    Group(MPI_Group handle) : handle_(handle) {}
    Group &operator=(const MPI_Group &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const Group &other) const { return handle_ == other.handle_; }
    bool operator!=(const Group &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Group other) const { return handle_ == other; }
    bool operator!=(MPI_Group other) const { return handle_ != other; }
    operator MPI_Group() const { return handle_; }

protected:
    MPI_Group handle_;

public:

    int Get_size() const;
    int Get_rank() const;
    static void Translate_ranks(const Group &group1, int n, const int ranks1[], const Group &group2,
        int ranks2[]);
    static int Compare(const Group &group1, const Group &group2);
    static Group Union(const Group &group1, const Group &group2);
    static Group Intersect(const Group &group1, const Group &group2);
    static Group Difference(const Group &group1, const Group &group2);
    Group Incl(int n, const int ranks[]) const;
    Group Excl(int n, const int ranks[]) const;
    Group Range_incl(int n, const int ranges[][3]) const;
    Group Range_excl(int n, const int ranges[][3]) const;
    void Free();
};

class Info {
public:
    Info() : handle_(MPI_INFO_NULL) {}
    Info(MPI_Info handle) : handle_(handle) {}
    Info &operator=(const MPI_Info &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const Info &other) const { return handle_ == other.handle_; }
    bool operator!=(const Info &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Info other) const { return handle_ == other; }
    bool operator!=(MPI_Info other) const { return handle_ != other; }
    operator MPI_Info() const { return handle_; }

protected:
    MPI_Info handle_;

public:

    static Info Create();
    Info Dup() const;
    void Free();
    void Set(const char *key, const char *value);
    void Delete(const char *key);
    bool Get(const char *key, int valuelen, char *value) const;
    bool Get_valuelen(const char *key, int &valuelen) const;
    int Get_nkeys() const;
    void Get_nthkey(int n, char *key) const;
};

class Op {
public:
    Op() : handle_(MPI_OP_NULL) {}
    Op(MPI_Op handle) : handle_(handle) {}
    Op &operator=(const MPI_Op &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const Op &other) const { return handle_ == other.handle_; }
    bool operator!=(const Op &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Op other) const { return handle_ == other; }
    bool operator!=(MPI_Op other) const { return handle_ != other; }
    operator MPI_Op() const { return handle_; }

protected:
    MPI_Op handle_;

public:

    void Init(User_function *function, bool commute);
    void Free();
    bool Is_commutative() const;
    void Reduce_local(const void *inbuf, void *inoutbuf, int count, const Datatype &datatype) const;
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

    int Get_count(const Datatype &datatype) const;
    int Get_elements(const Datatype &datatype) const;
    bool Is_cancelled() const;
    void Set_elements(const Datatype &datatype, int count);
    void Set_cancelled(bool flag);
    int Get_source() const;
    void Set_source(int source);
    int Get_tag() const;
    void Set_tag(int tag);
    int Get_error() const;
    void Set_error(int error);

private:
    MPI_Status handle_;
};

class Request {
public:
    Request() : handle_(MPI_REQUEST_NULL) {}
    Request(MPI_Request handle) : handle_(handle) {}
    Request &operator=(const MPI_Request &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const Request &other) const { return handle_ == other.handle_; }
    bool operator!=(const Request &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Request other) const { return handle_ == other; }
    bool operator!=(MPI_Request other) const { return handle_ != other; }
    operator MPI_Request() const { return handle_; }

protected:
    MPI_Request handle_;

public:

    void Wait(Status &status);
    void Wait();
    bool Test(Status &status);
    bool Test();
    void Free();
    void Cancel() const;
    bool Get_status(Status &status) const;
    bool Get_status() const;
    static int Waitany(int count, Request array_of_requests[], Status &status);
    static int Waitany(int count, Request array_of_requests[]);
    static bool Testany(int count, Request array_of_requests[], int &indx, Status &status);
    static bool Testany(int count, Request array_of_requests[], int &indx);
    static void Waitall(int count, Request array_of_requests[], Status array_of_statuses[]);
    static void Waitall(int count, Request array_of_requests[]);
    static bool Testall(int count, Request array_of_requests[], Status array_of_statuses[]);
    static bool Testall(int count, Request array_of_requests[]);
    static int Waitsome(int incount, Request array_of_requests[], int array_of_indices[],
        Status array_of_statuses[]);
    static int Waitsome(int incount, Request array_of_requests[], int array_of_indices[]);
    static int Testsome(int incount, Request array_of_requests[], int array_of_indices[],
        Status array_of_statuses[]);
    static int Testsome(int incount, Request array_of_requests[], int array_of_indices[]);
};

class Prequest : public Request {
public:
    Prequest() {}
    Prequest(MPI_Request handle) : Request(handle) {}
    explicit Prequest(const Request &other) : Request(other) {}

    void Start();
    static void Startall(int count, Prequest array_of_requests[]);
};

class Grequest : public Request {
public:
    Grequest() {}
    Grequest(MPI_Request handle) : Request(handle) {}
    explicit Grequest(const Request &other) : Request(other) {}

    typedef int Query_function(void *extra_state, Status &status);
    typedef int Free_function(void *extra_state);
    typedef int Cancel_function(void *extra_state, bool complete);
    static Grequest Start(Query_function *query_fn, Free_function *free_fn, Cancel_function *cancel_fn,
        void *extra_state);
    void Complete();
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
    static int Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn, void *extra_state);
    static int NULL_COPY_FN(const Comm &, int, void *, void *, void *, bool &flag)
    {
        flag = false;
        return MPI_SUCCESS;
    }
    static int DUP_FN(const Comm &, int, void *, void *in, void *out, bool &flag)
    {
        *static_cast<void **>(out) = in;
        flag = true;
        return MPI_SUCCESS;
    }
    static int NULL_DELETE_FN(Comm &, int, void *, void *) { return MPI_SUCCESS; }
    typedef void Errhandler_function(Comm &, int *, ...);
    typedef Errhandler_function Errhandler_fn;
    static Errhandler Create_errhandler(Errhandler_function *function);

    virtual Comm &Clone() const = 0;
    virtual void Send(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual void Bsend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual void Ssend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual void Rsend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Request Isend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Request Ibsend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Request Issend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Request Irsend(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Request Irecv(void *buf, int count, const Datatype &datatype, int source,
        int tag) const;
    virtual Prequest Send_init(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Prequest Bsend_init(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Prequest Ssend_init(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Prequest Rsend_init(const void *buf, int count, const Datatype &datatype, int dest,
        int tag) const;
    virtual Prequest Recv_init(void *buf, int count, const Datatype &datatype, int source,
        int tag) const;
    virtual void Recv(void *buf, int count, const Datatype &datatype, int source, int tag,
        Status &status) const;
    virtual void Recv(void *buf, int count, const Datatype &datatype, int source, int tag) const;
    virtual void Probe(int source, int tag, Status &status) const;
    virtual void Probe(int source, int tag) const;
    virtual bool Iprobe(int source, int tag, Status &status) const;
    virtual bool Iprobe(int source, int tag) const;
    virtual void Sendrecv(const void *sendbuf, int sendcount, const Datatype &sendtype, int dest,
        int sendtag, void *recvbuf, int recvcount, const Datatype &recvtype, int source, int recvtag,
        Status &status) const;
    virtual void Sendrecv(const void *sendbuf, int sendcount, const Datatype &sendtype, int dest,
        int sendtag, void *recvbuf, int recvcount, const Datatype &recvtype, int source,
        int recvtag) const;
    virtual void Sendrecv_replace(void *buf, int count, const Datatype &datatype, int dest,
        int sendtag, int source, int recvtag, Status &status) const;
    virtual void Sendrecv_replace(void *buf, int count, const Datatype &datatype, int dest,
        int sendtag, int source, int recvtag) const;
    virtual void Barrier() const;
    virtual void Bcast(void *buffer, int count, const Datatype &datatype, int root) const;
    virtual void Gather(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf,
        int recvcount, const Datatype &recvtype, int root) const;
    virtual void Gatherv(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf,
        const int recvcounts[], const int displs[], const Datatype &recvtype, int root) const;
    virtual void Scatter(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf,
        int recvcount, const Datatype &recvtype, int root) const;
    virtual void Scatterv(const void *sendbuf, const int sendcounts[], const int displs[],
        const Datatype &sendtype, void *recvbuf, int recvcount, const Datatype &recvtype,
        int root) const;
    virtual void Allgather(const void *sendbuf, int sendcount, const Datatype &sendtype,
        void *recvbuf, int recvcount, const Datatype &recvtype) const;
    virtual void Allgatherv(const void *sendbuf, int sendcount, const Datatype &sendtype,
        void *recvbuf, const int recvcounts[], const int displs[], const Datatype &recvtype) const;
    virtual void Alltoall(const void *sendbuf, int sendcount, const Datatype &sendtype,
        void *recvbuf, int recvcount, const Datatype &recvtype) const;
    virtual void Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
        const Datatype &sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
        const Datatype &recvtype) const;
    virtual void Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[],
        const Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[],
        const Datatype recvtypes[]) const;
    virtual void Reduce(const void *sendbuf, void *recvbuf, int count, const Datatype &datatype,
        const Op &op, int root) const;
    virtual void Allreduce(const void *sendbuf, void *recvbuf, int count, const Datatype &datatype,
        const Op &op) const;
    virtual void Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[],
        const Datatype &datatype, const Op &op) const;
    virtual void Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
        const Datatype &datatype, const Op &op) const;
    virtual int Get_size() const;
    virtual int Get_rank() const;
    virtual Group Get_group() const;
    static int Compare(const Comm &comm1, const Comm &comm2);
    virtual bool Is_inter() const;
    virtual int Get_topology() const;
    virtual void Free();
    virtual void Disconnect();
    virtual void Abort(int errorcode) const;
    static Intercomm Get_parent();
    static Intercomm Join(int fd);
    virtual void Get_name(char *comm_name, int &resultlen) const;
    virtual void Set_name(const char *comm_name);
    virtual bool Get_attr(int comm_keyval, void *attribute_val) const;
    virtual void Set_attr(int comm_keyval, const void *attribute_val) const;
    virtual void Delete_attr(int comm_keyval);
    static void Free_keyval(int &comm_keyval);
    virtual void Set_errhandler(const Errhandler &errhandler);
    virtual Errhandler Get_errhandler() const;
    virtual void Call_errhandler(int errorcode) const;

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
    virtual void Scan(const void *sendbuf, void *recvbuf, int count, const Datatype &datatype,
        const Op &op) const;
    virtual void Exscan(const void *sendbuf, void *recvbuf, int count, const Datatype &datatype,
        const Op &op) const;
    Intracomm Dup() const;
    virtual Intracomm Create(const Group &group) const;
    virtual Intracomm Split(int color, int key) const;
    virtual Intercomm Create_intercomm(int local_leader, const Comm &peer_comm, int remote_leader,
        int tag) const;
    virtual Intercomm Accept(const char *port_name, const Info &info, int root) const;
    virtual Intercomm Connect(const char *port_name, const Info &info, int root) const;
    virtual Cartcomm Create_cart(int ndims, const int dims[], const bool periods[],
        bool reorder) const;
    virtual Graphcomm Create_graph(int nnodes, const int indx[], const int edges[],
        bool reorder) const;
    virtual Distgraphcomm Dist_graph_create(int n, const int sources[], const int degrees[],
        const int destinations[], const int weights[], const Info &info, bool reorder) const;
    virtual Distgraphcomm Dist_graph_create_adjacent(int indegree, const int sources[],
        const int sourceweights[], int outdegree, const int destinations[], const int destweights[],
        const Info &info, bool reorder) const;
    virtual Distgraphcomm Dist_graph_create(int n, const int sources[], const int degrees[],
        const int destinations[], const Info &info, bool reorder) const;
    virtual Distgraphcomm Dist_graph_create_adjacent(int indegree, const int sources[],
        int outdegree, const int destinations[], const Info &info, bool reorder) const;

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

    Intercomm Dup() const;
    virtual Intercomm Create(const Group &group) const;
    virtual Intercomm Split(int color, int key) const;
    virtual Intracomm Merge(bool high) const;
    virtual int Get_remote_size() const;
    virtual Group Get_remote_group() const;
};

class Cartcomm : public Intracomm {
public:
    Cartcomm() {}
    Cartcomm(const Nullcomm &) {}
    Cartcomm(MPI_Comm comm) : Intracomm(typepack::only(comm, typepack::TOPOLOGY, MPI_CART), Checked()) {}
    virtual Cartcomm &Clone() const;

    Cartcomm Dup() const;
    virtual int Get_dim() const;
    virtual void Get_topo(int maxdims, int dims[], bool periods[], int coords[]) const;
    virtual int Get_cart_rank(const int coords[]) const;
    virtual void Get_coords(int rank, int maxdims, int coords[]) const;
    virtual void Shift(int direction, int disp, int &rank_source, int &rank_dest) const;
    virtual Cartcomm Sub(const bool remain_dims[]) const;
    virtual int Map(int ndims, const int dims[], const bool periods[]) const;
};

class Graphcomm : public Intracomm {
public:
    Graphcomm() {}
    Graphcomm(const Nullcomm &) {}
    Graphcomm(MPI_Comm comm) : Intracomm(typepack::only(comm, typepack::TOPOLOGY, MPI_GRAPH), Checked()) {}
    virtual Graphcomm &Clone() const;

    Graphcomm Dup() const;
    virtual void Get_dims(int *nnodes, int *nedges) const;
    virtual void Get_topo(int maxindex, int maxedges, int indx[], int edges[]) const;
    virtual int Get_neighbors_count(int rank) const;
    virtual void Get_neighbors(int rank, int maxneighbors, int neighbors[]) const;
    virtual int Map(int nnodes, const int indx[], const int edges[]) const;
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
    Distgraphcomm Dup() const;
    virtual void Get_dist_neighbors(int maxindegree, int sources[], int sourceweights[],
        int maxoutdegree, int destinations[], int destweights[]) const;
};

class Win {
public:
    Win() : handle_(MPI_WIN_NULL) {}
    Win(MPI_Win handle) : handle_(handle) {}
    Win &operator=(const MPI_Win &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const Win &other) const { return handle_ == other.handle_; }
    bool operator!=(const Win &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_Win other) const { return handle_ == other; }
    bool operator!=(MPI_Win other) const { return handle_ != other; }
    operator MPI_Win() const { return handle_; }

protected:
    MPI_Win handle_;

public:

    typedef int Copy_attr_function(const Win &oldwin, int win_keyval, void *extra_state, void *attribute_val_in,
        void *attribute_val_out, bool &flag);
    typedef int Delete_attr_function(Win &win, int win_keyval, void *attribute_val, void *extra_state);
    static int Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn, void *extra_state);
    static int NULL_COPY_FN(const Win &, int, void *, void *, void *, bool &flag)
    {
        flag = false;
        return MPI_SUCCESS;
    }
    static int DUP_FN(const Win &, int, void *, void *in, void *out, bool &flag)
    {
        *static_cast<void **>(out) = in;
        flag = true;
        return MPI_SUCCESS;
    }
    static int NULL_DELETE_FN(Win &, int, void *, void *) { return MPI_SUCCESS; }
    typedef void Errhandler_function(Win &, int *, ...);
    typedef Errhandler_function Errhandler_fn;
    static Errhandler Create_errhandler(Errhandler_function *function);

    void Get_name(char *win_name, int &resultlen) const;
    void Set_name(const char *win_name);
    bool Get_attr(int win_keyval, void *attribute_val) const;
    void Set_attr(int win_keyval, const void *attribute_val);
    void Delete_attr(int win_keyval);
    static void Free_keyval(int &win_keyval);
    void Set_errhandler(const Errhandler &errhandler);
    Errhandler Get_errhandler() const;
    void Call_errhandler(int errorcode) const;
    static Win Create(const void *base, Aint size, int disp_unit, const Info &info,
        const Intracomm &comm);
    void Free();
    Group Get_group() const;
    void Put(const void *origin_addr, int origin_count, const Datatype &origin_datatype,
        int target_rank, Aint target_disp, int target_count, const Datatype &target_datatype) const;
    void Get(void *origin_addr, int origin_count, const Datatype &origin_datatype, int target_rank,
        Aint target_disp, int target_count, const Datatype &target_datatype) const;
    void Accumulate(const void *origin_addr, int origin_count, const Datatype &origin_datatype,
        int target_rank, Aint target_disp, int target_count, const Datatype &target_datatype,
        const Op &op) const;
    void Fence(int assert) const;
    void Start(const Group &group, int assert) const;
    void Complete() const;
    void Post(const Group &group, int assert) const;
    void Wait() const;
    void Lock(int lock_type, int rank, int assert) const;
    void Unlock(int rank) const;
    bool Test() const;
};

class File {
public:
    File() : handle_(MPI_FILE_NULL) {}
    File(MPI_File handle) : handle_(handle) {}
    File &operator=(const MPI_File &handle)
    {
        handle_ = handle;
        return *this;
    }
    bool operator==(const File &other) const { return handle_ == other.handle_; }
    bool operator!=(const File &other) const { return handle_ != other.handle_; }
    bool operator==(MPI_File other) const { return handle_ == other; }
    bool operator!=(MPI_File other) const { return handle_ != other; }
    operator MPI_File() const { return handle_; }

protected:
    MPI_File handle_;

public:

    typedef void Errhandler_function(File &, int *, ...);
    typedef Errhandler_function Errhandler_fn;
    static Errhandler Create_errhandler(Errhandler_function *function);

    void Set_errhandler(const Errhandler &errhandler);
    Errhandler Get_errhandler() const;
    void Call_errhandler(int errorcode) const;
    static File Open(const Intracomm &comm, const char *filename, int amode, const Info &info);
    void Close();
    static void Delete(const char *filename, const Info &info);
    int Get_amode() const;
    bool Get_atomicity() const;
    Offset Get_byte_offset(Offset offset) const;
    Group Get_group() const;
    Info Get_info() const;
    Offset Get_position() const;
    Offset Get_position_shared() const;
    Offset Get_size() const;
    Aint Get_type_extent(const Datatype &datatype) const;
    void Get_view(Offset &disp, Datatype &etype, Datatype &filetype, char *datarep) const;
    void Set_view(Offset disp, const Datatype &etype, const Datatype &filetype, const char *datarep,
        const Info &info);
    void Set_size(Offset size);
    void Set_info(const Info &info);
    void Set_atomicity(bool flag);
    void Preallocate(Offset size);
    void Seek(Offset offset, int whence);
    void Seek_shared(Offset offset, int whence);
    void Sync();
    void Read(void *buf, int count, const Datatype &datatype, Status &status);
    void Read(void *buf, int count, const Datatype &datatype);
    void Read_at(Offset offset, void *buf, int count, const Datatype &datatype, Status &status);
    void Read_at(Offset offset, void *buf, int count, const Datatype &datatype);
    void Read_all(void *buf, int count, const Datatype &datatype, Status &status);
    void Read_all(void *buf, int count, const Datatype &datatype);
    void Read_at_all(Offset offset, void *buf, int count, const Datatype &datatype, Status &status);
    void Read_at_all(Offset offset, void *buf, int count, const Datatype &datatype);
    void Read_shared(void *buf, int count, const Datatype &datatype, Status &status);
    void Read_shared(void *buf, int count, const Datatype &datatype);
    void Read_ordered(void *buf, int count, const Datatype &datatype, Status &status);
    void Read_ordered(void *buf, int count, const Datatype &datatype);
    void Read_all_begin(void *buf, int count, const Datatype &datatype);
    void Read_all_end(void *buf, Status &status);
    void Read_all_end(void *buf);
    void Read_at_all_begin(Offset offset, void *buf, int count, const Datatype &datatype);
    void Read_at_all_end(void *buf, Status &status);
    void Read_at_all_end(void *buf);
    void Read_ordered_begin(void *buf, int count, const Datatype &datatype);
    void Read_ordered_end(void *buf, Status &status);
    void Read_ordered_end(void *buf);
    Request Iread(void *buf, int count, const Datatype &datatype);
    Request Iread_at(Offset offset, void *buf, int count, const Datatype &datatype);
    Request Iread_shared(void *buf, int count, const Datatype &datatype);
    void Write(const void *buf, int count, const Datatype &datatype, Status &status);
    void Write(const void *buf, int count, const Datatype &datatype);
    void Write_at(Offset offset, const void *buf, int count, const Datatype &datatype,
        Status &status);
    void Write_at(Offset offset, const void *buf, int count, const Datatype &datatype);
    void Write_all(const void *buf, int count, const Datatype &datatype, Status &status);
    void Write_all(const void *buf, int count, const Datatype &datatype);
    void Write_at_all(Offset offset, const void *buf, int count, const Datatype &datatype,
        Status &status);
    void Write_at_all(Offset offset, const void *buf, int count, const Datatype &datatype);
    void Write_shared(const void *buf, int count, const Datatype &datatype, Status &status);
    void Write_shared(const void *buf, int count, const Datatype &datatype);
    void Write_ordered(const void *buf, int count, const Datatype &datatype, Status &status);
    void Write_ordered(const void *buf, int count, const Datatype &datatype);
    void Write_all_begin(const void *buf, int count, const Datatype &datatype);
    void Write_all_end(const void *buf, Status &status);
    void Write_all_end(const void *buf);
    void Write_at_all_begin(Offset offset, const void *buf, int count, const Datatype &datatype);
    void Write_at_all_end(const void *buf, Status &status);
    void Write_at_all_end(const void *buf);
    void Write_ordered_begin(const void *buf, int count, const Datatype &datatype);
    void Write_ordered_end(const void *buf, Status &status);
    void Write_ordered_end(const void *buf);
    Request Iwrite(const void *buf, int count, const Datatype &datatype);
    Request Iwrite_at(Offset offset, const void *buf, int count, const Datatype &datatype);
    Request Iwrite_shared(const void *buf, int count, const Datatype &datatype);
};

void Attach_buffer(void *buffer, int size);
int Detach_buffer(void *&buffer_addr);
Aint Get_address(const void *location);
void Compute_dims(int nnodes, int ndims, int dims[]);
void Finalize();
bool Is_initialized();
bool Is_finalized();
bool Is_thread_main();
int Query_thread();
void Get_version(int &version, int &subversion);
void Get_processor_name(char *name, int &resultlen);
int Get_error_class(int errorcode);
void Get_error_string(int errorcode, char *string, int &resultlen);
int Add_error_class();
int Add_error_code(int errorclass);
void Add_error_string(int errorcode, const char *string);
void *Alloc_mem(Aint size, const Info &info);
void Free_mem(void *base);
double Wtime();
double Wtick();
void Open_port(const Info &info, char *port_name);
void Close_port(const char *port_name);
void Publish_name(const char *service_name, const Info &info, const char *port_name);
void Unpublish_name(const char *service_name, const Info &info, const char *port_name);
void Lookup_name(const char *service_name, const Info &info, char *port_name);
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
    const Op OP_NULL;
    const Op SUM;
    const Op MIN;
    const Op MAX;
    const Op PROD;
    const Op BAND;
    const Op BOR;
    const Op BXOR;
    const Op LAND;
    const Op LOR;
    const Op LXOR;
    const Op MINLOC;
    const Op MAXLOC;
    const Op REPLACE;
    const Op NO_OP;
    Intracomm COMM_WORLD;
    Intracomm COMM_SELF;
    const Group GROUP_NULL;
    const Group GROUP_EMPTY;
    const Win WIN_NULL;
    File FILE_NULL;
    const Info INFO_NULL;
    const Info INFO_ENV;
    const Errhandler ERRHANDLER_NULL;
    const Errhandler ERRORS_ARE_FATAL;
    const Errhandler ERRORS_ABORT;
    const Errhandler ERRORS_RETURN;
    const Request REQUEST_NULL;
    const Datatype DATATYPE_NULL;
    const Datatype AINT;
    const Datatype COUNT;
    const Datatype OFFSET;
    const Datatype PACKED;
    const Datatype SHORT;
    const Datatype INT;
    const Datatype LONG;
    const Datatype LONG_LONG;
    const Datatype LONG_LONG_INT;
    const Datatype UNSIGNED_SHORT;
    const Datatype UNSIGNED;
    const Datatype UNSIGNED_LONG;
    const Datatype UNSIGNED_LONG_LONG;
    const Datatype FLOAT;
    const Datatype C_FLOAT_COMPLEX;
    const Datatype C_COMPLEX;
    const Datatype COMPLEX;
    const Datatype DOUBLE;
    const Datatype C_DOUBLE_COMPLEX;
    const Datatype DOUBLE_COMPLEX;
    const Datatype LOGICAL;
    const Datatype INTEGER;
    const Datatype REAL;
    const Datatype F_COMPLEX;
    const Datatype DOUBLE_PRECISION;
    const Datatype F_DOUBLE_COMPLEX;
    const Datatype CHARACTER;
    const Datatype LONG_DOUBLE;
    const Datatype C_LONG_DOUBLE_COMPLEX;
    const Datatype LONG_DOUBLE_COMPLEX;
    const Datatype FLOAT_INT;
    const Datatype DOUBLE_INT;
    const Datatype LONG_INT;
    const Datatype TWOINT;
    const Datatype SHORT_INT;
    const Datatype LONG_DOUBLE_INT;
    const Datatype TWOREAL;
    const Datatype TWODOUBLE_PRECISION;
    const Datatype TWOINTEGER;
    const Datatype C_BOOL;
    const Datatype BOOL;
    const Datatype WCHAR;
    const Datatype INT8_T;
    const Datatype UINT8_T;
    const Datatype CHAR;
    const Datatype SIGNED_CHAR;
    const Datatype UNSIGNED_CHAR;
    const Datatype BYTE;
    const Datatype INT16_T;
    const Datatype UINT16_T;
    const Datatype INT32_T;
    const Datatype UINT32_T;
    const Datatype INT64_T;
    const Datatype UINT64_T;
    const Datatype LOGICAL1;
    const Datatype INTEGER1;
    const Datatype LOGICAL2;
    const Datatype INTEGER2;
    const Datatype REAL2;
    const Datatype LOGICAL4;
    const Datatype INTEGER4;
    const Datatype REAL4;
    const Datatype F_COMPLEX4;
    const Datatype COMPLEX4;
    const Datatype LOGICAL8;
    const Datatype INTEGER8;
    const Datatype REAL8;
    const Datatype F_COMPLEX8;
    const Datatype COMPLEX8;
    const Datatype LOGICAL16;
    const Datatype INTEGER16;
    const Datatype REAL16;
    const Datatype F_COMPLEX16;
    const Datatype COMPLEX16;
    const Datatype F_COMPLEX32;
    const Datatype COMPLEX32;
    const Datatype LB;
    const Datatype UB;
    const Nullcomm COMM_NULL;
    const Errhandler ERRORS_THROW_EXCEPTIONS;
    Predefined();
};

inline Predefined::Predefined()
    : OP_NULL(MPI_OP_NULL), SUM(MPI_SUM), MIN(MPI_MIN), MAX(MPI_MAX), PROD(MPI_PROD), BAND(MPI_BAND),
      BOR(MPI_BOR), BXOR(MPI_BXOR), LAND(MPI_LAND), LOR(MPI_LOR), LXOR(MPI_LXOR),
      MINLOC(MPI_MINLOC), MAXLOC(MPI_MAXLOC), REPLACE(MPI_REPLACE), NO_OP(MPI_NO_OP),
      COMM_WORLD(MPI_COMM_WORLD), COMM_SELF(MPI_COMM_SELF), GROUP_NULL(MPI_GROUP_NULL),
      GROUP_EMPTY(MPI_GROUP_EMPTY), WIN_NULL(MPI_WIN_NULL), FILE_NULL(MPI_FILE_NULL),
      INFO_NULL(MPI_INFO_NULL), INFO_ENV(MPI_INFO_ENV), ERRHANDLER_NULL(MPI_ERRHANDLER_NULL),
      ERRORS_ARE_FATAL(MPI_ERRORS_ARE_FATAL), ERRORS_ABORT(MPI_ERRORS_ABORT),
      ERRORS_RETURN(MPI_ERRORS_RETURN), REQUEST_NULL(MPI_REQUEST_NULL),
      DATATYPE_NULL(MPI_DATATYPE_NULL), AINT(MPI_AINT), COUNT(MPI_COUNT), OFFSET(MPI_OFFSET),
      PACKED(MPI_PACKED), SHORT(MPI_SHORT), INT(MPI_INT), LONG(MPI_LONG), LONG_LONG(MPI_LONG_LONG),
      LONG_LONG_INT(MPI_LONG_LONG_INT), UNSIGNED_SHORT(MPI_UNSIGNED_SHORT), UNSIGNED(MPI_UNSIGNED),
      UNSIGNED_LONG(MPI_UNSIGNED_LONG), UNSIGNED_LONG_LONG(MPI_UNSIGNED_LONG_LONG),
      FLOAT(MPI_FLOAT), C_FLOAT_COMPLEX(MPI_C_FLOAT_COMPLEX), C_COMPLEX(MPI_C_COMPLEX),
      COMPLEX(MPI_CXX_FLOAT_COMPLEX), DOUBLE(MPI_DOUBLE), C_DOUBLE_COMPLEX(MPI_C_DOUBLE_COMPLEX),
      DOUBLE_COMPLEX(MPI_CXX_DOUBLE_COMPLEX), LOGICAL(MPI_LOGICAL), INTEGER(MPI_INTEGER),
      REAL(MPI_REAL), F_COMPLEX(MPI_COMPLEX), DOUBLE_PRECISION(MPI_DOUBLE_PRECISION),
      F_DOUBLE_COMPLEX(MPI_DOUBLE_COMPLEX), CHARACTER(MPI_CHARACTER), LONG_DOUBLE(MPI_LONG_DOUBLE),
      C_LONG_DOUBLE_COMPLEX(MPI_C_LONG_DOUBLE_COMPLEX),
      LONG_DOUBLE_COMPLEX(MPI_CXX_LONG_DOUBLE_COMPLEX), FLOAT_INT(MPI_FLOAT_INT),
      DOUBLE_INT(MPI_DOUBLE_INT), LONG_INT(MPI_LONG_INT), TWOINT(MPI_2INT),
      SHORT_INT(MPI_SHORT_INT), LONG_DOUBLE_INT(MPI_LONG_DOUBLE_INT), TWOREAL(MPI_2REAL),
      TWODOUBLE_PRECISION(MPI_2DOUBLE_PRECISION), TWOINTEGER(MPI_2INTEGER), C_BOOL(MPI_C_BOOL),
      BOOL(MPI_CXX_BOOL), WCHAR(MPI_WCHAR), INT8_T(MPI_INT8_T), UINT8_T(MPI_UINT8_T),
      CHAR(MPI_CHAR), SIGNED_CHAR(MPI_SIGNED_CHAR), UNSIGNED_CHAR(MPI_UNSIGNED_CHAR),
      BYTE(MPI_BYTE), INT16_T(MPI_INT16_T), UINT16_T(MPI_UINT16_T), INT32_T(MPI_INT32_T),
      UINT32_T(MPI_UINT32_T), INT64_T(MPI_INT64_T), UINT64_T(MPI_UINT64_T), LOGICAL1(MPI_LOGICAL1),
      INTEGER1(MPI_INTEGER1), LOGICAL2(MPI_LOGICAL2), INTEGER2(MPI_INTEGER2), REAL2(MPI_REAL2),
      LOGICAL4(MPI_LOGICAL4), INTEGER4(MPI_INTEGER4), REAL4(MPI_REAL4), F_COMPLEX4(MPI_COMPLEX4),
      COMPLEX4(MPI_COMPLEX4), LOGICAL8(MPI_LOGICAL8), INTEGER8(MPI_INTEGER8), REAL8(MPI_REAL8),
      F_COMPLEX8(MPI_COMPLEX8), COMPLEX8(MPI_COMPLEX8), LOGICAL16(MPI_LOGICAL16),
      INTEGER16(MPI_INTEGER16), REAL16(MPI_REAL16), F_COMPLEX16(MPI_COMPLEX16),
      COMPLEX16(MPI_COMPLEX16), F_COMPLEX32(MPI_COMPLEX32), COMPLEX32(MPI_COMPLEX32),
      LB(((MPI_Datatype)0x1210)), UB(((MPI_Datatype)0x1211)),
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
TYPEPACK_OBJECT const Op &OP_NULL = predefined().OP_NULL;
TYPEPACK_OBJECT const Op &SUM = predefined().SUM;
TYPEPACK_OBJECT const Op &MIN = predefined().MIN;
TYPEPACK_OBJECT const Op &MAX = predefined().MAX;
TYPEPACK_OBJECT const Op &PROD = predefined().PROD;
TYPEPACK_OBJECT const Op &BAND = predefined().BAND;
TYPEPACK_OBJECT const Op &BOR = predefined().BOR;
TYPEPACK_OBJECT const Op &BXOR = predefined().BXOR;
TYPEPACK_OBJECT const Op &LAND = predefined().LAND;
TYPEPACK_OBJECT const Op &LOR = predefined().LOR;
TYPEPACK_OBJECT const Op &LXOR = predefined().LXOR;
TYPEPACK_OBJECT const Op &MINLOC = predefined().MINLOC;
TYPEPACK_OBJECT const Op &MAXLOC = predefined().MAXLOC;
TYPEPACK_OBJECT const Op &REPLACE = predefined().REPLACE;
TYPEPACK_OBJECT const Op &NO_OP = predefined().NO_OP;
TYPEPACK_OBJECT Intracomm &COMM_WORLD = predefined().COMM_WORLD;
TYPEPACK_OBJECT Intracomm &COMM_SELF = predefined().COMM_SELF;
TYPEPACK_OBJECT const Group &GROUP_NULL = predefined().GROUP_NULL;
TYPEPACK_OBJECT const Group &GROUP_EMPTY = predefined().GROUP_EMPTY;
TYPEPACK_OBJECT const Win &WIN_NULL = predefined().WIN_NULL;
TYPEPACK_OBJECT File &FILE_NULL = predefined().FILE_NULL;
TYPEPACK_OBJECT const Info &INFO_NULL = predefined().INFO_NULL;
TYPEPACK_OBJECT const Info &INFO_ENV = predefined().INFO_ENV;
TYPEPACK_OBJECT const Errhandler &ERRHANDLER_NULL = predefined().ERRHANDLER_NULL;
TYPEPACK_OBJECT const Errhandler &ERRORS_ARE_FATAL = predefined().ERRORS_ARE_FATAL;
TYPEPACK_OBJECT const Errhandler &ERRORS_ABORT = predefined().ERRORS_ABORT;
TYPEPACK_OBJECT const Errhandler &ERRORS_RETURN = predefined().ERRORS_RETURN;
TYPEPACK_OBJECT const Request &REQUEST_NULL = predefined().REQUEST_NULL;
TYPEPACK_OBJECT const Datatype &DATATYPE_NULL = predefined().DATATYPE_NULL;
TYPEPACK_OBJECT const Datatype &AINT = predefined().AINT;
TYPEPACK_OBJECT const Datatype &COUNT = predefined().COUNT;
TYPEPACK_OBJECT const Datatype &OFFSET = predefined().OFFSET;
TYPEPACK_OBJECT const Datatype &PACKED = predefined().PACKED;
TYPEPACK_OBJECT const Datatype &SHORT = predefined().SHORT;
TYPEPACK_OBJECT const Datatype &INT = predefined().INT;
TYPEPACK_OBJECT const Datatype &LONG = predefined().LONG;
TYPEPACK_OBJECT const Datatype &LONG_LONG = predefined().LONG_LONG;
TYPEPACK_OBJECT const Datatype &LONG_LONG_INT = predefined().LONG_LONG_INT;
TYPEPACK_OBJECT const Datatype &UNSIGNED_SHORT = predefined().UNSIGNED_SHORT;
TYPEPACK_OBJECT const Datatype &UNSIGNED = predefined().UNSIGNED;
TYPEPACK_OBJECT const Datatype &UNSIGNED_LONG = predefined().UNSIGNED_LONG;
TYPEPACK_OBJECT const Datatype &UNSIGNED_LONG_LONG = predefined().UNSIGNED_LONG_LONG;
TYPEPACK_OBJECT const Datatype &FLOAT = predefined().FLOAT;
TYPEPACK_OBJECT const Datatype &C_FLOAT_COMPLEX = predefined().C_FLOAT_COMPLEX;
TYPEPACK_OBJECT const Datatype &C_COMPLEX = predefined().C_COMPLEX;
TYPEPACK_OBJECT const Datatype &COMPLEX = predefined().COMPLEX;
TYPEPACK_OBJECT const Datatype &DOUBLE = predefined().DOUBLE;
TYPEPACK_OBJECT const Datatype &C_DOUBLE_COMPLEX = predefined().C_DOUBLE_COMPLEX;
TYPEPACK_OBJECT const Datatype &DOUBLE_COMPLEX = predefined().DOUBLE_COMPLEX;
TYPEPACK_OBJECT const Datatype &LOGICAL = predefined().LOGICAL;
TYPEPACK_OBJECT const Datatype &INTEGER = predefined().INTEGER;
TYPEPACK_OBJECT const Datatype &REAL = predefined().REAL;
TYPEPACK_OBJECT const Datatype &F_COMPLEX = predefined().F_COMPLEX;
TYPEPACK_OBJECT const Datatype &DOUBLE_PRECISION = predefined().DOUBLE_PRECISION;
TYPEPACK_OBJECT const Datatype &F_DOUBLE_COMPLEX = predefined().F_DOUBLE_COMPLEX;
TYPEPACK_OBJECT const Datatype &CHARACTER = predefined().CHARACTER;
TYPEPACK_OBJECT const Datatype &LONG_DOUBLE = predefined().LONG_DOUBLE;
TYPEPACK_OBJECT const Datatype &C_LONG_DOUBLE_COMPLEX = predefined().C_LONG_DOUBLE_COMPLEX;
TYPEPACK_OBJECT const Datatype &LONG_DOUBLE_COMPLEX = predefined().LONG_DOUBLE_COMPLEX;
TYPEPACK_OBJECT const Datatype &FLOAT_INT = predefined().FLOAT_INT;
TYPEPACK_OBJECT const Datatype &DOUBLE_INT = predefined().DOUBLE_INT;
TYPEPACK_OBJECT const Datatype &LONG_INT = predefined().LONG_INT;
TYPEPACK_OBJECT const Datatype &TWOINT = predefined().TWOINT;
TYPEPACK_OBJECT const Datatype &SHORT_INT = predefined().SHORT_INT;
TYPEPACK_OBJECT const Datatype &LONG_DOUBLE_INT = predefined().LONG_DOUBLE_INT;
TYPEPACK_OBJECT const Datatype &TWOREAL = predefined().TWOREAL;
TYPEPACK_OBJECT const Datatype &TWODOUBLE_PRECISION = predefined().TWODOUBLE_PRECISION;
TYPEPACK_OBJECT const Datatype &TWOINTEGER = predefined().TWOINTEGER;
TYPEPACK_OBJECT const Datatype &C_BOOL = predefined().C_BOOL;
TYPEPACK_OBJECT const Datatype &BOOL = predefined().BOOL;
TYPEPACK_OBJECT const Datatype &WCHAR = predefined().WCHAR;
TYPEPACK_OBJECT const Datatype &INT8_T = predefined().INT8_T;
TYPEPACK_OBJECT const Datatype &UINT8_T = predefined().UINT8_T;
TYPEPACK_OBJECT const Datatype &CHAR = predefined().CHAR;
TYPEPACK_OBJECT const Datatype &SIGNED_CHAR = predefined().SIGNED_CHAR;
TYPEPACK_OBJECT const Datatype &UNSIGNED_CHAR = predefined().UNSIGNED_CHAR;
TYPEPACK_OBJECT const Datatype &BYTE = predefined().BYTE;
TYPEPACK_OBJECT const Datatype &INT16_T = predefined().INT16_T;
TYPEPACK_OBJECT const Datatype &UINT16_T = predefined().UINT16_T;
TYPEPACK_OBJECT const Datatype &INT32_T = predefined().INT32_T;
TYPEPACK_OBJECT const Datatype &UINT32_T = predefined().UINT32_T;
TYPEPACK_OBJECT const Datatype &INT64_T = predefined().INT64_T;
TYPEPACK_OBJECT const Datatype &UINT64_T = predefined().UINT64_T;
TYPEPACK_OBJECT const Datatype &LOGICAL1 = predefined().LOGICAL1;
TYPEPACK_OBJECT const Datatype &INTEGER1 = predefined().INTEGER1;
TYPEPACK_OBJECT const Datatype &LOGICAL2 = predefined().LOGICAL2;
TYPEPACK_OBJECT const Datatype &INTEGER2 = predefined().INTEGER2;
TYPEPACK_OBJECT const Datatype &REAL2 = predefined().REAL2;
TYPEPACK_OBJECT const Datatype &LOGICAL4 = predefined().LOGICAL4;
TYPEPACK_OBJECT const Datatype &INTEGER4 = predefined().INTEGER4;
TYPEPACK_OBJECT const Datatype &REAL4 = predefined().REAL4;
TYPEPACK_OBJECT const Datatype &F_COMPLEX4 = predefined().F_COMPLEX4;
TYPEPACK_OBJECT const Datatype &COMPLEX4 = predefined().COMPLEX4;
TYPEPACK_OBJECT const Datatype &LOGICAL8 = predefined().LOGICAL8;
TYPEPACK_OBJECT const Datatype &INTEGER8 = predefined().INTEGER8;
TYPEPACK_OBJECT const Datatype &REAL8 = predefined().REAL8;
TYPEPACK_OBJECT const Datatype &F_COMPLEX8 = predefined().F_COMPLEX8;
TYPEPACK_OBJECT const Datatype &COMPLEX8 = predefined().COMPLEX8;
TYPEPACK_OBJECT const Datatype &LOGICAL16 = predefined().LOGICAL16;
TYPEPACK_OBJECT const Datatype &INTEGER16 = predefined().INTEGER16;
TYPEPACK_OBJECT const Datatype &REAL16 = predefined().REAL16;
TYPEPACK_OBJECT const Datatype &F_COMPLEX16 = predefined().F_COMPLEX16;
TYPEPACK_OBJECT const Datatype &COMPLEX16 = predefined().COMPLEX16;
TYPEPACK_OBJECT const Datatype &F_COMPLEX32 = predefined().F_COMPLEX32;
TYPEPACK_OBJECT const Datatype &COMPLEX32 = predefined().COMPLEX32;
TYPEPACK_OBJECT const Datatype &LB = predefined().LB;
TYPEPACK_OBJECT const Datatype &UB = predefined().UB;
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
        /* The call came from C, to which no exception may go. It returns its error. */
        try {
            act(handle, code, handler);
        } catch (...) {
        }
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
    static int on_read(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
        void *state)
    {
        const Datarep *self = static_cast<Datarep *>(state);
        Datatype object(datatype);
        return self->read(userbuf, object, count, filebuf, position, self->extra_state);
    }
    static int on_write(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
        void *state)
    {
        const Datarep *self = static_cast<Datarep *>(state);
        Datatype object(datatype);
        return self->write(userbuf, object, count, filebuf, position, self->extra_state);
    }
};

} // namespace typepack

inline void Comm::Send(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    typepack::Call call;
    call(MPI_Send(buf, count, datatype, dest, tag, handle_));
}

inline void Comm::Bsend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    typepack::Call call;
    call(MPI_Bsend(buf, count, datatype, dest, tag, handle_));
}

inline void Comm::Ssend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    typepack::Call call;
    call(MPI_Ssend(buf, count, datatype, dest, tag, handle_));
}

inline void Comm::Rsend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    typepack::Call call;
    call(MPI_Rsend(buf, count, datatype, dest, tag, handle_));
}

inline Request Comm::Isend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Isend(buf, count, datatype, dest, tag, handle_, &request));
    return Request(request);
}

inline Request Comm::Ibsend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Ibsend(buf, count, datatype, dest, tag, handle_, &request));
    return Request(request);
}

inline Request Comm::Issend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Issend(buf, count, datatype, dest, tag, handle_, &request));
    return Request(request);
}

inline Request Comm::Irsend(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Irsend(buf, count, datatype, dest, tag, handle_, &request));
    return Request(request);
}

inline Request Comm::Irecv(void *buf, int count, const Datatype &datatype, int source,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Irecv(buf, count, datatype, source, tag, handle_, &request));
    return Request(request);
}

inline Prequest Comm::Send_init(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Send_init(buf, count, datatype, dest, tag, handle_, &request));
    return Prequest(request);
}

inline Prequest Comm::Bsend_init(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Bsend_init(buf, count, datatype, dest, tag, handle_, &request));
    return Prequest(request);
}

inline Prequest Comm::Ssend_init(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Ssend_init(buf, count, datatype, dest, tag, handle_, &request));
    return Prequest(request);
}

inline Prequest Comm::Rsend_init(const void *buf, int count, const Datatype &datatype, int dest,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Rsend_init(buf, count, datatype, dest, tag, handle_, &request));
    return Prequest(request);
}

inline Prequest Comm::Recv_init(void *buf, int count, const Datatype &datatype, int source,
    int tag) const
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_Recv_init(buf, count, datatype, source, tag, handle_, &request));
    return Prequest(request);
}

inline void Comm::Recv(void *buf, int count, const Datatype &datatype, int source, int tag,
    Status &status) const
{
    typepack::Call call;
    call(MPI_Recv(buf, count, datatype, source, tag, handle_, typepack::handles(&status)));
}

inline void Comm::Recv(void *buf, int count, const Datatype &datatype, int source,
    int tag) const
{
    typepack::Call call;
    call(MPI_Recv(buf, count, datatype, source, tag, handle_, MPI_STATUS_IGNORE));
}

inline void Comm::Probe(int source, int tag, Status &status) const
{
    typepack::Call call;
    call(MPI_Probe(source, tag, handle_, typepack::handles(&status)));
}

inline void Comm::Probe(int source, int tag) const
{
    typepack::Call call;
    call(MPI_Probe(source, tag, handle_, MPI_STATUS_IGNORE));
}

inline bool Comm::Iprobe(int source, int tag, Status &status) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Iprobe(source, tag, handle_, &flag, typepack::handles(&status)));
    return flag != 0;
}

inline bool Comm::Iprobe(int source, int tag) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Iprobe(source, tag, handle_, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
}

inline void Comm::Sendrecv(const void *sendbuf, int sendcount, const Datatype &sendtype,
    int dest, int sendtag, void *recvbuf, int recvcount, const Datatype &recvtype, int source,
    int recvtag, Status &status) const
{
    typepack::Call call;
    call(MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
        source, recvtag, handle_, typepack::handles(&status)));
}

inline void Comm::Sendrecv(const void *sendbuf, int sendcount, const Datatype &sendtype,
    int dest, int sendtag, void *recvbuf, int recvcount, const Datatype &recvtype, int source,
    int recvtag) const
{
    typepack::Call call;
    call(MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
        source, recvtag, handle_, MPI_STATUS_IGNORE));
}

inline void Comm::Sendrecv_replace(void *buf, int count, const Datatype &datatype, int dest,
    int sendtag, int source, int recvtag, Status &status) const
{
    typepack::Call call;
    call(MPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, handle_,
        typepack::handles(&status)));
}

inline void Comm::Sendrecv_replace(void *buf, int count, const Datatype &datatype, int dest,
    int sendtag, int source, int recvtag) const
{
    typepack::Call call;
    call(MPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, handle_,
        MPI_STATUS_IGNORE));
}

inline void Attach_buffer(void *buffer, int size)
{
    typepack::Call call;
    call(MPI_Buffer_attach(buffer, size));
}

inline int Detach_buffer(void *&buffer_addr)
{
    int size = 0;
    typepack::Call call;
    call(MPI_Buffer_detach(&buffer_addr, &size));
    return size;
}

inline void Request::Wait(Status &status)
{
    typepack::Call call;
    call(MPI_Wait(&handle_, typepack::handles(&status)));
}

inline void Request::Wait()
{
    typepack::Call call;
    call(MPI_Wait(&handle_, MPI_STATUS_IGNORE));
}

inline bool Request::Test(Status &status)
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Test(&handle_, &flag, typepack::handles(&status)));
    return flag != 0;
}

inline bool Request::Test()
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Test(&handle_, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
}

inline void Request::Free()
{
    typepack::Call call;
    call(MPI_Request_free(&handle_));
}

inline void Request::Cancel() const
{
    MPI_Request request = handle_;
    typepack::Call call;
    call(MPI_Cancel(&request));
}

inline bool Request::Get_status(Status &status) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Request_get_status(handle_, &flag, typepack::handles(&status)));
    return flag != 0;
}

inline bool Request::Get_status() const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Request_get_status(handle_, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
}

inline int Request::Waitany(int count, Request array_of_requests[], Status &status)
{
    int indx = 0;
    typepack::Call call;
    call(MPI_Waitany(count, typepack::handles(array_of_requests), &indx,
        typepack::handles(&status)));
    return indx;
}

inline int Request::Waitany(int count, Request array_of_requests[])
{
    int indx = 0;
    typepack::Call call;
    call(MPI_Waitany(count, typepack::handles(array_of_requests), &indx, MPI_STATUS_IGNORE));
    return indx;
}

inline bool Request::Testany(int count, Request array_of_requests[], int &indx, Status &status)
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Testany(count, typepack::handles(array_of_requests), &indx, &flag,
        typepack::handles(&status)));
    return flag != 0;
}

inline bool Request::Testany(int count, Request array_of_requests[], int &indx)
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Testany(count, typepack::handles(array_of_requests), &indx, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
}

inline void Request::Waitall(int count, Request array_of_requests[], Status array_of_statuses[])
{
    typepack::Call call;
    call(MPI_Waitall(count, typepack::handles(array_of_requests),
        typepack::handles(array_of_statuses)));
}

inline void Request::Waitall(int count, Request array_of_requests[])
{
    typepack::Call call;
    call(MPI_Waitall(count, typepack::handles(array_of_requests), MPI_STATUSES_IGNORE));
}

inline bool Request::Testall(int count, Request array_of_requests[], Status array_of_statuses[])
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Testall(count, typepack::handles(array_of_requests), &flag,
        typepack::handles(array_of_statuses)));
    return flag != 0;
}

inline bool Request::Testall(int count, Request array_of_requests[])
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Testall(count, typepack::handles(array_of_requests), &flag, MPI_STATUSES_IGNORE));
    return flag != 0;
}

inline int Request::Waitsome(int incount, Request array_of_requests[], int array_of_indices[],
    Status array_of_statuses[])
{
    int outcount = 0;
    typepack::Call call;
    call(MPI_Waitsome(incount, typepack::handles(array_of_requests), &outcount, array_of_indices,
        typepack::handles(array_of_statuses)));
    return outcount;
}

inline int Request::Waitsome(int incount, Request array_of_requests[], int array_of_indices[])
{
    int outcount = 0;
    typepack::Call call;
    call(MPI_Waitsome(incount, typepack::handles(array_of_requests), &outcount, array_of_indices,
        MPI_STATUSES_IGNORE));
    return outcount;
}

inline int Request::Testsome(int incount, Request array_of_requests[], int array_of_indices[],
    Status array_of_statuses[])
{
    int outcount = 0;
    typepack::Call call;
    call(MPI_Testsome(incount, typepack::handles(array_of_requests), &outcount, array_of_indices,
        typepack::handles(array_of_statuses)));
    return outcount;
}

inline int Request::Testsome(int incount, Request array_of_requests[], int array_of_indices[])
{
    int outcount = 0;
    typepack::Call call;
    call(MPI_Testsome(incount, typepack::handles(array_of_requests), &outcount, array_of_indices,
        MPI_STATUSES_IGNORE));
    return outcount;
}

inline void Prequest::Start()
{
    typepack::Call call;
    call(MPI_Start(&handle_));
}

inline void Prequest::Startall(int count, Prequest array_of_requests[])
{
    typepack::Call call;
    call(MPI_Startall(count, typepack::handles(array_of_requests)));
}

inline void Grequest::Complete()
{
    typepack::Call call;
    call(MPI_Grequest_complete(handle_));
}

inline int Status::Get_count(const Datatype &datatype) const
{
    int count = 0;
    typepack::Call call;
    call(MPI_Get_count(&handle_, datatype, &count));
    return count;
}

inline int Status::Get_elements(const Datatype &datatype) const
{
    int count = 0;
    typepack::Call call;
    call(MPI_Get_elements(&handle_, datatype, &count));
    return count;
}

inline bool Status::Is_cancelled() const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Test_cancelled(&handle_, &flag));
    return flag != 0;
}

inline void Status::Set_elements(const Datatype &datatype, int count)
{
    typepack::Call call;
    call(MPI_Status_set_elements(&handle_, datatype, count));
}

inline void Status::Set_cancelled(bool flag)
{
    typepack::Call call;
    call(MPI_Status_set_cancelled(&handle_, flag));
}

inline int Status::Get_source() const
{
    int source = 0;
    typepack::Call call;
    call(MPI_Status_get_source(&handle_, &source));
    return source;
}

inline void Status::Set_source(int source)
{
    typepack::Call call;
    call(MPI_Status_set_source(&handle_, source));
}

inline int Status::Get_tag() const
{
    int tag = 0;
    typepack::Call call;
    call(MPI_Status_get_tag(&handle_, &tag));
    return tag;
}

inline void Status::Set_tag(int tag)
{
    typepack::Call call;
    call(MPI_Status_set_tag(&handle_, tag));
}

inline int Status::Get_error() const
{
    int error = 0;
    typepack::Call call;
    call(MPI_Status_get_error(&handle_, &error));
    return error;
}

inline void Status::Set_error(int error)
{
    typepack::Call call;
    call(MPI_Status_set_error(&handle_, error));
}

inline Datatype Datatype::Create_contiguous(int count) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_contiguous(count, handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_vector(int count, int blocklength, int stride) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_vector(count, blocklength, stride, handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_hvector(int count, int blocklength, Aint stride) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_hvector(count, blocklength, stride, handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_indexed(int count, const int array_of_blocklengths[],
    const int array_of_displacements[]) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_indexed(count, array_of_blocklengths, array_of_displacements, handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_hindexed(int count, const int array_of_blocklengths[],
    const Aint array_of_displacements[]) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, handle_,
        &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_indexed_block(int count, int blocklength,
    const int array_of_displacements[]) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_indexed_block(count, blocklength, array_of_displacements, handle_,
        &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_subarray(int ndims, const int array_of_sizes[],
    const int array_of_subsizes[], const int array_of_starts[], int order) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
        handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_darray(int size, int rank, int ndims,
    const int array_of_gsizes[], const int array_of_distribs[], const int array_of_dargs[],
    const int array_of_psizes[], int order) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_darray(size, rank, ndims, array_of_gsizes, array_of_distribs,
        array_of_dargs, array_of_psizes, order, handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_resized(Aint lb, Aint extent) const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_resized(handle_, lb, extent, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Dup() const
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_dup(handle_, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_struct(int count, const int array_of_blocklengths[],
    const Aint array_of_displacements[], const Datatype array_of_types[])
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements,
        typepack::handles(array_of_types), &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_f90_integer(int r)
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_f90_integer(r, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_f90_real(int p, int r)
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_f90_real(p, r, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Create_f90_complex(int p, int r)
{
    MPI_Datatype newtype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_create_f90_complex(p, r, &newtype));
    return Datatype(newtype);
}

inline Datatype Datatype::Match_size(int typeclass, int size)
{
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
    typepack::Call call;
    call(MPI_Type_match_size(typeclass, size, &datatype));
    return Datatype(datatype);
}

inline void Datatype::Commit()
{
    typepack::Call call;
    call(MPI_Type_commit(&handle_));
}

inline void Datatype::Free()
{
    typepack::Call call;
    call(MPI_Type_free(&handle_));
}

inline int Datatype::Get_size() const
{
    int size = 0;
    typepack::Call call;
    call(MPI_Type_size(handle_, &size));
    return size;
}

inline void Datatype::Get_extent(Aint &lb, Aint &extent) const
{
    typepack::Call call;
    call(MPI_Type_get_extent(handle_, &lb, &extent));
}

inline void Datatype::Get_true_extent(Aint &true_lb, Aint &true_extent) const
{
    typepack::Call call;
    call(MPI_Type_get_true_extent(handle_, &true_lb, &true_extent));
}

inline void Datatype::Get_envelope(int &num_integers, int &num_addresses, int &num_datatypes,
    int &combiner) const
{
    typepack::Call call;
    call(MPI_Type_get_envelope(handle_, &num_integers, &num_addresses, &num_datatypes, &combiner));
}

inline void Datatype::Get_contents(int max_integers, int max_addresses, int max_datatypes,
    int array_of_integers[], Aint array_of_addresses[], Datatype array_of_datatypes[]) const
{
    typepack::Call call;
    call(MPI_Type_get_contents(handle_, max_integers, max_addresses, max_datatypes,
        array_of_integers, array_of_addresses, typepack::handles(array_of_datatypes)));
}

inline void Datatype::Pack(const void *inbuf, int incount, void *outbuf, int outsize,
    int &position, const Comm &comm) const
{
    typepack::Call call;
    call(MPI_Pack(inbuf, incount, handle_, outbuf, outsize, &position, comm));
}

inline void Datatype::Unpack(const void *inbuf, int insize, void *outbuf, int outcount,
    int &position, const Comm &comm) const
{
    typepack::Call call;
    call(MPI_Unpack(inbuf, insize, &position, outbuf, outcount, handle_, comm));
}

inline int Datatype::Pack_size(int incount, const Comm &comm) const
{
    int size = 0;
    typepack::Call call;
    call(MPI_Pack_size(incount, handle_, comm, &size));
    return size;
}

inline void Datatype::Pack_external(const char *datarep, const void *inbuf, int incount,
    void *outbuf, Aint outsize, Aint &position) const
{
    typepack::Call call;
    call(MPI_Pack_external(datarep, inbuf, incount, handle_, outbuf, outsize, &position));
}

inline void Datatype::Unpack_external(const char datarep[], const void *inbuf, Aint insize,
    Aint &position, void *outbuf, int outcount) const
{
    typepack::Call call;
    call(MPI_Unpack_external(datarep, inbuf, insize, &position, outbuf, outcount, handle_));
}

inline Aint Datatype::Pack_external_size(const char *datarep, int incount) const
{
    MPI_Aint size = 0;
    typepack::Call call;
    call(MPI_Pack_external_size(datarep, incount, handle_, &size));
    return size;
}

inline Aint Get_address(const void *location)
{
    MPI_Aint address = 0;
    typepack::Call call;
    call(MPI_Get_address(location, &address));
    return address;
}

inline void Comm::Barrier() const
{
    typepack::Call call;
    call(MPI_Barrier(handle_));
}

inline void Comm::Bcast(void *buffer, int count, const Datatype &datatype, int root) const
{
    typepack::Call call;
    call(MPI_Bcast(buffer, count, datatype, root, handle_));
}

inline void Comm::Gather(const void *sendbuf, int sendcount, const Datatype &sendtype,
    void *recvbuf, int recvcount, const Datatype &recvtype, int root) const
{
    typepack::Call call;
    call(MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle_));
}

inline void Comm::Gatherv(const void *sendbuf, int sendcount, const Datatype &sendtype,
    void *recvbuf, const int recvcounts[], const int displs[], const Datatype &recvtype,
    int root) const
{
    typepack::Call call;
    call(MPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
        handle_));
}

inline void Comm::Scatter(const void *sendbuf, int sendcount, const Datatype &sendtype,
    void *recvbuf, int recvcount, const Datatype &recvtype, int root) const
{
    typepack::Call call;
    call(MPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle_));
}

inline void Comm::Scatterv(const void *sendbuf, const int sendcounts[], const int displs[],
    const Datatype &sendtype, void *recvbuf, int recvcount, const Datatype &recvtype,
    int root) const
{
    typepack::Call call;
    call(MPI_Scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
        handle_));
}

inline void Comm::Allgather(const void *sendbuf, int sendcount, const Datatype &sendtype,
    void *recvbuf, int recvcount, const Datatype &recvtype) const
{
    typepack::Call call;
    call(MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle_));
}

inline void Comm::Allgatherv(const void *sendbuf, int sendcount, const Datatype &sendtype,
    void *recvbuf, const int recvcounts[], const int displs[], const Datatype &recvtype) const
{
    typepack::Call call;
    call(MPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
        handle_));
}

inline void Comm::Alltoall(const void *sendbuf, int sendcount, const Datatype &sendtype,
    void *recvbuf, int recvcount, const Datatype &recvtype) const
{
    typepack::Call call;
    call(MPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle_));
}

inline void Comm::Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
    const Datatype &sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
    const Datatype &recvtype) const
{
    typepack::Call call;
    call(MPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
        recvtype, handle_));
}

inline void Comm::Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[],
    const Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[],
    const Datatype recvtypes[]) const
{
    typepack::Call call;
    call(MPI_Alltoallw(sendbuf, sendcounts, sdispls, typepack::handles(sendtypes), recvbuf,
        recvcounts, rdispls, typepack::handles(recvtypes), handle_));
}

inline void Comm::Reduce(const void *sendbuf, void *recvbuf, int count, const Datatype &datatype,
    const Op &op, int root) const
{
    typepack::Call call;
    call(MPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, handle_));
}

inline void Comm::Allreduce(const void *sendbuf, void *recvbuf, int count,
    const Datatype &datatype, const Op &op) const
{
    typepack::Call call;
    call(MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, handle_));
}

inline void Comm::Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[],
    const Datatype &datatype, const Op &op) const
{
    typepack::Call call;
    call(MPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, handle_));
}

inline void Comm::Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
    const Datatype &datatype, const Op &op) const
{
    typepack::Call call;
    call(MPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, handle_));
}

inline void Intracomm::Scan(const void *sendbuf, void *recvbuf, int count,
    const Datatype &datatype, const Op &op) const
{
    typepack::Call call;
    call(MPI_Scan(sendbuf, recvbuf, count, datatype, op, handle_));
}

inline void Intracomm::Exscan(const void *sendbuf, void *recvbuf, int count,
    const Datatype &datatype, const Op &op) const
{
    typepack::Call call;
    call(MPI_Exscan(sendbuf, recvbuf, count, datatype, op, handle_));
}

inline void Op::Free()
{
    typepack::Call call;
    call(MPI_Op_free(&handle_));
}

inline bool Op::Is_commutative() const
{
    int commute = 0;
    typepack::Call call;
    call(MPI_Op_commutative(handle_, &commute));
    return commute != 0;
}

inline void Op::Reduce_local(const void *inbuf, void *inoutbuf, int count,
    const Datatype &datatype) const
{
    typepack::Call call;
    call(MPI_Reduce_local(inbuf, inoutbuf, count, datatype, handle_));
}

inline int Group::Get_size() const
{
    int size = 0;
    typepack::Call call;
    call(MPI_Group_size(handle_, &size));
    return size;
}

inline int Group::Get_rank() const
{
    int rank = 0;
    typepack::Call call;
    call(MPI_Group_rank(handle_, &rank));
    return rank;
}

inline void Group::Translate_ranks(const Group &group1, int n, const int ranks1[],
    const Group &group2, int ranks2[])
{
    typepack::Call call;
    call(MPI_Group_translate_ranks(group1, n, ranks1, group2, ranks2));
}

inline int Group::Compare(const Group &group1, const Group &group2)
{
    int result = 0;
    typepack::Call call;
    call(MPI_Group_compare(group1, group2, &result));
    return result;
}

inline Group Group::Union(const Group &group1, const Group &group2)
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_union(group1, group2, &newgroup));
    return Group(newgroup);
}

inline Group Group::Intersect(const Group &group1, const Group &group2)
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_intersection(group1, group2, &newgroup));
    return Group(newgroup);
}

inline Group Group::Difference(const Group &group1, const Group &group2)
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_difference(group1, group2, &newgroup));
    return Group(newgroup);
}

inline Group Group::Incl(int n, const int ranks[]) const
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_incl(handle_, n, ranks, &newgroup));
    return Group(newgroup);
}

inline Group Group::Excl(int n, const int ranks[]) const
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_excl(handle_, n, ranks, &newgroup));
    return Group(newgroup);
}

inline Group Group::Range_incl(int n, const int ranges[][3]) const
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_range_incl(handle_, n, const_cast<int (*)[3]>(ranges), &newgroup));
    return Group(newgroup);
}

inline Group Group::Range_excl(int n, const int ranges[][3]) const
{
    MPI_Group newgroup = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Group_range_excl(handle_, n, const_cast<int (*)[3]>(ranges), &newgroup));
    return Group(newgroup);
}

inline void Group::Free()
{
    typepack::Call call;
    call(MPI_Group_free(&handle_));
}

inline int Comm::Get_size() const
{
    int size = 0;
    typepack::Call call;
    call(MPI_Comm_size(handle_, &size));
    return size;
}

inline int Comm::Get_rank() const
{
    int rank = 0;
    typepack::Call call;
    call(MPI_Comm_rank(handle_, &rank));
    return rank;
}

inline Group Comm::Get_group() const
{
    MPI_Group group = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Comm_group(handle_, &group));
    return Group(group);
}

inline int Comm::Compare(const Comm &comm1, const Comm &comm2)
{
    int result = 0;
    typepack::Call call;
    call(MPI_Comm_compare(comm1, comm2, &result));
    return result;
}

inline bool Comm::Is_inter() const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Comm_test_inter(handle_, &flag));
    return flag != 0;
}

inline int Comm::Get_topology() const
{
    int status = 0;
    typepack::Call call;
    call(MPI_Topo_test(handle_, &status));
    return status;
}

inline void Comm::Free()
{
    typepack::Call call;
    call(MPI_Comm_free(&handle_));
}

inline void Comm::Disconnect()
{
    typepack::Call call;
    call(MPI_Comm_disconnect(&handle_));
}

inline void Comm::Abort(int errorcode) const
{
    typepack::Call call;
    call(MPI_Abort(handle_, errorcode));
}

inline Intracomm Intracomm::Dup() const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_dup(handle_, &newcomm));
    return Intracomm(newcomm);
}

inline Intercomm Intercomm::Dup() const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_dup(handle_, &newcomm));
    return Intercomm(newcomm);
}

inline Cartcomm Cartcomm::Dup() const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_dup(handle_, &newcomm));
    return Cartcomm(newcomm);
}

inline Graphcomm Graphcomm::Dup() const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_dup(handle_, &newcomm));
    return Graphcomm(newcomm);
}

inline Distgraphcomm Distgraphcomm::Dup() const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_dup(handle_, &newcomm));
    return Distgraphcomm(newcomm);
}

inline Intracomm Intracomm::Create(const Group &group) const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_create(handle_, group, &newcomm));
    return Intracomm(newcomm);
}

inline Intracomm Intracomm::Split(int color, int key) const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_split(handle_, color, key, &newcomm));
    return Intracomm(newcomm);
}

inline Intercomm Intercomm::Create(const Group &group) const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_create(handle_, group, &newcomm));
    return Intercomm(newcomm);
}

inline Intercomm Intercomm::Split(int color, int key) const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_split(handle_, color, key, &newcomm));
    return Intercomm(newcomm);
}

inline Intercomm Intracomm::Create_intercomm(int local_leader, const Comm &peer_comm,
    int remote_leader, int tag) const
{
    MPI_Comm newintercomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Intercomm_create(handle_, local_leader, peer_comm, remote_leader, tag, &newintercomm));
    return Intercomm(newintercomm);
}

inline Intracomm Intercomm::Merge(bool high) const
{
    MPI_Comm newintracomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Intercomm_merge(handle_, high, &newintracomm));
    return Intracomm(newintracomm);
}

inline int Intercomm::Get_remote_size() const
{
    int size = 0;
    typepack::Call call;
    call(MPI_Comm_remote_size(handle_, &size));
    return size;
}

inline Group Intercomm::Get_remote_group() const
{
    MPI_Group group = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Comm_remote_group(handle_, &group));
    return Group(group);
}

inline Intercomm Comm::Get_parent()
{
    MPI_Comm parent = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_get_parent(&parent));
    return Intercomm(parent);
}

inline Intercomm Comm::Join(int fd)
{
    MPI_Comm intercomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_join(fd, &intercomm));
    return Intercomm(intercomm);
}

inline Intercomm Intracomm::Accept(const char *port_name, const Info &info, int root) const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_accept(port_name, info, root, handle_, &newcomm));
    return Intercomm(newcomm);
}

inline Intercomm Intracomm::Connect(const char *port_name, const Info &info, int root) const
{
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_connect(port_name, info, root, handle_, &newcomm));
    return Intercomm(newcomm);
}

inline void Comm::Get_name(char *comm_name, int &resultlen) const
{
    typepack::Call call;
    call(MPI_Comm_get_name(handle_, comm_name, &resultlen));
}

inline void Comm::Set_name(const char *comm_name)
{
    typepack::Call call;
    call(MPI_Comm_set_name(handle_, comm_name));
}

inline bool Comm::Get_attr(int comm_keyval, void *attribute_val) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Comm_get_attr(handle_, comm_keyval, attribute_val, &flag));
    return flag != 0;
}

inline void Comm::Set_attr(int comm_keyval, const void *attribute_val) const
{
    typepack::Call call;
    call(MPI_Comm_set_attr(handle_, comm_keyval, const_cast<void *>(attribute_val)));
}

inline void Comm::Delete_attr(int comm_keyval)
{
    typepack::Call call;
    call(MPI_Comm_delete_attr(handle_, comm_keyval));
}

inline void Comm::Free_keyval(int &comm_keyval)
{
    typepack::Call call;
    call(MPI_Comm_free_keyval(&comm_keyval));
}

inline void Datatype::Get_name(char *type_name, int &resultlen) const
{
    typepack::Call call;
    call(MPI_Type_get_name(handle_, type_name, &resultlen));
}

inline void Datatype::Set_name(const char *type_name) const
{
    typepack::Call call;
    call(MPI_Type_set_name(handle_, type_name));
}

inline bool Datatype::Get_attr(int type_keyval, void *attribute_val) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Type_get_attr(handle_, type_keyval, attribute_val, &flag));
    return flag != 0;
}

inline void Datatype::Set_attr(int type_keyval, const void *attribute_val) const
{
    typepack::Call call;
    call(MPI_Type_set_attr(handle_, type_keyval, const_cast<void *>(attribute_val)));
}

inline void Datatype::Delete_attr(int type_keyval) const
{
    typepack::Call call;
    call(MPI_Type_delete_attr(handle_, type_keyval));
}

inline void Datatype::Free_keyval(int &type_keyval)
{
    typepack::Call call;
    call(MPI_Type_free_keyval(&type_keyval));
}

inline void Win::Get_name(char *win_name, int &resultlen) const
{
    typepack::Call call;
    call(MPI_Win_get_name(handle_, win_name, &resultlen));
}

inline void Win::Set_name(const char *win_name)
{
    typepack::Call call;
    call(MPI_Win_set_name(handle_, win_name));
}

inline bool Win::Get_attr(int win_keyval, void *attribute_val) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Win_get_attr(handle_, win_keyval, attribute_val, &flag));
    return flag != 0;
}

inline void Win::Set_attr(int win_keyval, const void *attribute_val)
{
    typepack::Call call;
    call(MPI_Win_set_attr(handle_, win_keyval, const_cast<void *>(attribute_val)));
}

inline void Win::Delete_attr(int win_keyval)
{
    typepack::Call call;
    call(MPI_Win_delete_attr(handle_, win_keyval));
}

inline void Win::Free_keyval(int &win_keyval)
{
    typepack::Call call;
    call(MPI_Win_free_keyval(&win_keyval));
}

inline void Comm::Set_errhandler(const Errhandler &errhandler)
{
    typepack::Call call;
    call(MPI_Comm_set_errhandler(handle_, errhandler.of_Comm()));
}

inline Errhandler Comm::Get_errhandler() const
{
    MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
    typepack::Call call;
    call(MPI_Comm_get_errhandler(handle_, &errhandler));
    return Errhandler(errhandler);
}

inline void Comm::Call_errhandler(int errorcode) const
{
    typepack::Call call;
    call(MPI_Comm_call_errhandler(handle_, errorcode));
}

inline void Win::Set_errhandler(const Errhandler &errhandler)
{
    typepack::Call call;
    call(MPI_Win_set_errhandler(handle_, errhandler.of_Win()));
}

inline Errhandler Win::Get_errhandler() const
{
    MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
    typepack::Call call;
    call(MPI_Win_get_errhandler(handle_, &errhandler));
    return Errhandler(errhandler);
}

inline void Win::Call_errhandler(int errorcode) const
{
    typepack::Call call;
    call(MPI_Win_call_errhandler(handle_, errorcode));
}

inline void File::Set_errhandler(const Errhandler &errhandler)
{
    typepack::Call call;
    call(MPI_File_set_errhandler(handle_, errhandler.of_File()));
}

inline Errhandler File::Get_errhandler() const
{
    MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
    typepack::Call call;
    call(MPI_File_get_errhandler(handle_, &errhandler));
    return Errhandler(errhandler);
}

inline void File::Call_errhandler(int errorcode) const
{
    typepack::Call call;
    call(MPI_File_call_errhandler(handle_, errorcode));
}

inline Cartcomm Intracomm::Create_cart(int ndims, const int dims[], const bool periods[],
    bool reorder) const
{
    typepack::Flags periods_(periods, ndims);
    MPI_Comm comm_cart = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Cart_create(handle_, ndims, dims, periods_.data(), reorder, &comm_cart));
    return Cartcomm(comm_cart);
}

inline Graphcomm Intracomm::Create_graph(int nnodes, const int indx[], const int edges[],
    bool reorder) const
{
    MPI_Comm comm_graph = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Graph_create(handle_, nnodes, indx, edges, reorder, &comm_graph));
    return Graphcomm(comm_graph);
}

inline Distgraphcomm Intracomm::Dist_graph_create(int n, const int sources[],
    const int degrees[], const int destinations[], const int weights[], const Info &info,
    bool reorder) const
{
    MPI_Comm comm_dist_graph = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Dist_graph_create(handle_, n, sources, degrees, destinations, weights, info, reorder,
        &comm_dist_graph));
    return Distgraphcomm(comm_dist_graph);
}

inline Distgraphcomm Intracomm::Dist_graph_create_adjacent(int indegree, const int sources[],
    const int sourceweights[], int outdegree, const int destinations[], const int destweights[],
    const Info &info, bool reorder) const
{
    MPI_Comm comm_dist_graph = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Dist_graph_create_adjacent(handle_, indegree, sources, sourceweights, outdegree,
        destinations, destweights, info, reorder, &comm_dist_graph));
    return Distgraphcomm(comm_dist_graph);
}

inline Distgraphcomm Intracomm::Dist_graph_create(int n, const int sources[],
    const int degrees[], const int destinations[], const Info &info, bool reorder) const
{
    MPI_Comm comm_dist_graph = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Dist_graph_create(handle_, n, sources, degrees, destinations, MPI_UNWEIGHTED, info,
        reorder, &comm_dist_graph));
    return Distgraphcomm(comm_dist_graph);
}

inline Distgraphcomm Intracomm::Dist_graph_create_adjacent(int indegree, const int sources[],
    int outdegree, const int destinations[], const Info &info, bool reorder) const
{
    MPI_Comm comm_dist_graph = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Dist_graph_create_adjacent(handle_, indegree, sources, MPI_UNWEIGHTED, outdegree,
        destinations, MPI_UNWEIGHTED, info, reorder, &comm_dist_graph));
    return Distgraphcomm(comm_dist_graph);
}

inline void Compute_dims(int nnodes, int ndims, int dims[])
{
    typepack::Call call;
    call(MPI_Dims_create(nnodes, ndims, dims));
}

inline int Cartcomm::Get_dim() const
{
    int ndims = 0;
    typepack::Call call;
    call(MPI_Cartdim_get(handle_, &ndims));
    return ndims;
}

inline void Cartcomm::Get_topo(int maxdims, int dims[], bool periods[], int coords[]) const
{
    typepack::Flags periods_(maxdims);
    typepack::Call call;
    call(MPI_Cart_get(handle_, maxdims, dims, periods_.data(), coords));
    periods_.copy(periods);
}

inline int Cartcomm::Get_cart_rank(const int coords[]) const
{
    int rank = 0;
    typepack::Call call;
    call(MPI_Cart_rank(handle_, coords, &rank));
    return rank;
}

inline void Cartcomm::Get_coords(int rank, int maxdims, int coords[]) const
{
    typepack::Call call;
    call(MPI_Cart_coords(handle_, rank, maxdims, coords));
}

inline void Cartcomm::Shift(int direction, int disp, int &rank_source, int &rank_dest) const
{
    typepack::Call call;
    call(MPI_Cart_shift(handle_, direction, disp, &rank_source, &rank_dest));
}

inline Cartcomm Cartcomm::Sub(const bool remain_dims[]) const
{
    typepack::Flags remain_dims_(remain_dims, Get_dim());
    MPI_Comm newcomm = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Cart_sub(handle_, remain_dims_.data(), &newcomm));
    return Cartcomm(newcomm);
}

inline int Cartcomm::Map(int ndims, const int dims[], const bool periods[]) const
{
    typepack::Flags periods_(periods, ndims);
    int newrank = 0;
    typepack::Call call;
    call(MPI_Cart_map(handle_, ndims, dims, periods_.data(), &newrank));
    return newrank;
}

inline void Graphcomm::Get_dims(int *nnodes, int *nedges) const
{
    typepack::Call call;
    call(MPI_Graphdims_get(handle_, nnodes, nedges));
}

inline void Graphcomm::Get_topo(int maxindex, int maxedges, int indx[], int edges[]) const
{
    typepack::Call call;
    call(MPI_Graph_get(handle_, maxindex, maxedges, indx, edges));
}

inline int Graphcomm::Get_neighbors_count(int rank) const
{
    int nneighbors = 0;
    typepack::Call call;
    call(MPI_Graph_neighbors_count(handle_, rank, &nneighbors));
    return nneighbors;
}

inline void Graphcomm::Get_neighbors(int rank, int maxneighbors, int neighbors[]) const
{
    typepack::Call call;
    call(MPI_Graph_neighbors(handle_, rank, maxneighbors, neighbors));
}

inline int Graphcomm::Map(int nnodes, const int indx[], const int edges[]) const
{
    int newrank = 0;
    typepack::Call call;
    call(MPI_Graph_map(handle_, nnodes, indx, edges, &newrank));
    return newrank;
}

inline void Distgraphcomm::Get_dist_neighbors(int maxindegree, int sources[],
    int sourceweights[], int maxoutdegree, int destinations[], int destweights[]) const
{
    typepack::Call call;
    call(MPI_Dist_graph_neighbors(handle_, maxindegree, sources, sourceweights, maxoutdegree,
        destinations, destweights));
}

inline Info Info::Create()
{
    MPI_Info info = MPI_INFO_NULL;
    typepack::Call call;
    call(MPI_Info_create(&info));
    return Info(info);
}

inline Info Info::Dup() const
{
    MPI_Info newinfo = MPI_INFO_NULL;
    typepack::Call call;
    call(MPI_Info_dup(handle_, &newinfo));
    return Info(newinfo);
}

inline void Info::Free()
{
    typepack::Call call;
    call(MPI_Info_free(&handle_));
}

inline void Info::Set(const char *key, const char *value)
{
    typepack::Call call;
    call(MPI_Info_set(handle_, key, value));
}

inline void Info::Delete(const char *key)
{
    typepack::Call call;
    call(MPI_Info_delete(handle_, key));
}

inline bool Info::Get(const char *key, int valuelen, char *value) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Info_get(handle_, key, valuelen, value, &flag));
    return flag != 0;
}

inline bool Info::Get_valuelen(const char *key, int &valuelen) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Info_get_valuelen(handle_, key, &valuelen, &flag));
    return flag != 0;
}

inline int Info::Get_nkeys() const
{
    int nkeys = 0;
    typepack::Call call;
    call(MPI_Info_get_nkeys(handle_, &nkeys));
    return nkeys;
}

inline void Info::Get_nthkey(int n, char *key) const
{
    typepack::Call call;
    call(MPI_Info_get_nthkey(handle_, n, key));
}

inline Win Win::Create(const void *base, Aint size, int disp_unit, const Info &info,
    const Intracomm &comm)
{
    MPI_Win win = MPI_WIN_NULL;
    typepack::Call call;
    call(MPI_Win_create(const_cast<void *>(base), size, disp_unit, info, comm, &win));
    return Win(win);
}

inline void Win::Free()
{
    typepack::Call call;
    call(MPI_Win_free(&handle_));
}

inline Group Win::Get_group() const
{
    MPI_Group group = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_Win_get_group(handle_, &group));
    return Group(group);
}

inline void Win::Put(const void *origin_addr, int origin_count, const Datatype &origin_datatype,
    int target_rank, Aint target_disp, int target_count, const Datatype &target_datatype) const
{
    typepack::Call call;
    call(MPI_Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
        target_datatype, handle_));
}

inline void Win::Get(void *origin_addr, int origin_count, const Datatype &origin_datatype,
    int target_rank, Aint target_disp, int target_count, const Datatype &target_datatype) const
{
    typepack::Call call;
    call(MPI_Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
        target_datatype, handle_));
}

inline void Win::Accumulate(const void *origin_addr, int origin_count,
    const Datatype &origin_datatype, int target_rank, Aint target_disp, int target_count,
    const Datatype &target_datatype, const Op &op) const
{
    typepack::Call call;
    call(MPI_Accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
        target_count, target_datatype, op, handle_));
}

inline void Win::Fence(int assert) const
{
    typepack::Call call;
    call(MPI_Win_fence(assert, handle_));
}

inline void Win::Start(const Group &group, int assert) const
{
    typepack::Call call;
    call(MPI_Win_start(group, assert, handle_));
}

inline void Win::Complete() const
{
    typepack::Call call;
    call(MPI_Win_complete(handle_));
}

inline void Win::Post(const Group &group, int assert) const
{
    typepack::Call call;
    call(MPI_Win_post(group, assert, handle_));
}

inline void Win::Wait() const
{
    typepack::Call call;
    call(MPI_Win_wait(handle_));
}

inline void Win::Lock(int lock_type, int rank, int assert) const
{
    typepack::Call call;
    call(MPI_Win_lock(lock_type, rank, assert, handle_));
}

inline void Win::Unlock(int rank) const
{
    typepack::Call call;
    call(MPI_Win_unlock(rank, handle_));
}

inline bool Win::Test() const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Win_test(handle_, &flag));
    return flag != 0;
}

inline File File::Open(const Intracomm &comm, const char *filename, int amode, const Info &info)
{
    MPI_File fh = MPI_FILE_NULL;
    typepack::Call call;
    call(MPI_File_open(comm, filename, amode, info, &fh));
    return File(fh);
}

inline void File::Close()
{
    typepack::Call call;
    call(MPI_File_close(&handle_));
}

inline void File::Delete(const char *filename, const Info &info)
{
    typepack::Call call;
    call(MPI_File_delete(filename, info));
}

inline int File::Get_amode() const
{
    int amode = 0;
    typepack::Call call;
    call(MPI_File_get_amode(handle_, &amode));
    return amode;
}

inline bool File::Get_atomicity() const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_File_get_atomicity(handle_, &flag));
    return flag != 0;
}

inline Offset File::Get_byte_offset(Offset offset) const
{
    MPI_Offset disp = 0;
    typepack::Call call;
    call(MPI_File_get_byte_offset(handle_, offset, &disp));
    return disp;
}

inline Group File::Get_group() const
{
    MPI_Group group = MPI_GROUP_NULL;
    typepack::Call call;
    call(MPI_File_get_group(handle_, &group));
    return Group(group);
}

inline Info File::Get_info() const
{
    MPI_Info info_used = MPI_INFO_NULL;
    typepack::Call call;
    call(MPI_File_get_info(handle_, &info_used));
    return Info(info_used);
}

inline Offset File::Get_position() const
{
    MPI_Offset offset = 0;
    typepack::Call call;
    call(MPI_File_get_position(handle_, &offset));
    return offset;
}

inline Offset File::Get_position_shared() const
{
    MPI_Offset offset = 0;
    typepack::Call call;
    call(MPI_File_get_position_shared(handle_, &offset));
    return offset;
}

inline Offset File::Get_size() const
{
    MPI_Offset size = 0;
    typepack::Call call;
    call(MPI_File_get_size(handle_, &size));
    return size;
}

inline Aint File::Get_type_extent(const Datatype &datatype) const
{
    MPI_Aint extent = 0;
    typepack::Call call;
    call(MPI_File_get_type_extent(handle_, datatype, &extent));
    return extent;
}

inline void File::Get_view(Offset &disp, Datatype &etype, Datatype &filetype,
    char *datarep) const
{
    typepack::Call call;
    call(MPI_File_get_view(handle_, &disp, typepack::handles(&etype), typepack::handles(&filetype),
        datarep));
}

inline void File::Set_view(Offset disp, const Datatype &etype, const Datatype &filetype,
    const char *datarep, const Info &info)
{
    typepack::Call call;
    call(MPI_File_set_view(handle_, disp, etype, filetype, datarep, info));
}

inline void File::Set_size(Offset size)
{
    typepack::Call call;
    call(MPI_File_set_size(handle_, size));
}

inline void File::Set_info(const Info &info)
{
    typepack::Call call;
    call(MPI_File_set_info(handle_, info));
}

inline void File::Set_atomicity(bool flag)
{
    typepack::Call call;
    call(MPI_File_set_atomicity(handle_, flag));
}

inline void File::Preallocate(Offset size)
{
    typepack::Call call;
    call(MPI_File_preallocate(handle_, size));
}

inline void File::Seek(Offset offset, int whence)
{
    typepack::Call call;
    call(MPI_File_seek(handle_, offset, whence));
}

inline void File::Seek_shared(Offset offset, int whence)
{
    typepack::Call call;
    call(MPI_File_seek_shared(handle_, offset, whence));
}

inline void File::Sync()
{
    typepack::Call call;
    call(MPI_File_sync(handle_));
}

inline void File::Read(void *buf, int count, const Datatype &datatype, Status &status)
{
    typepack::Call call;
    call(MPI_File_read(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Read(void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Read_at(Offset offset, void *buf, int count, const Datatype &datatype,
    Status &status)
{
    typepack::Call call;
    call(MPI_File_read_at(handle_, offset, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Read_at(Offset offset, void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_at(handle_, offset, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Read_all(void *buf, int count, const Datatype &datatype, Status &status)
{
    typepack::Call call;
    call(MPI_File_read_all(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Read_all(void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_all(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Read_at_all(Offset offset, void *buf, int count, const Datatype &datatype,
    Status &status)
{
    typepack::Call call;
    call(MPI_File_read_at_all(handle_, offset, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Read_at_all(Offset offset, void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_at_all(handle_, offset, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Read_shared(void *buf, int count, const Datatype &datatype, Status &status)
{
    typepack::Call call;
    call(MPI_File_read_shared(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Read_shared(void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_shared(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Read_ordered(void *buf, int count, const Datatype &datatype, Status &status)
{
    typepack::Call call;
    call(MPI_File_read_ordered(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Read_ordered(void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_ordered(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Read_all_begin(void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_all_begin(handle_, buf, count, datatype));
}

inline void File::Read_all_end(void *buf, Status &status)
{
    typepack::Call call;
    call(MPI_File_read_all_end(handle_, buf, typepack::handles(&status)));
}

inline void File::Read_all_end(void *buf)
{
    typepack::Call call;
    call(MPI_File_read_all_end(handle_, buf, MPI_STATUS_IGNORE));
}

inline void File::Read_at_all_begin(Offset offset, void *buf, int count,
    const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_at_all_begin(handle_, offset, buf, count, datatype));
}

inline void File::Read_at_all_end(void *buf, Status &status)
{
    typepack::Call call;
    call(MPI_File_read_at_all_end(handle_, buf, typepack::handles(&status)));
}

inline void File::Read_at_all_end(void *buf)
{
    typepack::Call call;
    call(MPI_File_read_at_all_end(handle_, buf, MPI_STATUS_IGNORE));
}

inline void File::Read_ordered_begin(void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_read_ordered_begin(handle_, buf, count, datatype));
}

inline void File::Read_ordered_end(void *buf, Status &status)
{
    typepack::Call call;
    call(MPI_File_read_ordered_end(handle_, buf, typepack::handles(&status)));
}

inline void File::Read_ordered_end(void *buf)
{
    typepack::Call call;
    call(MPI_File_read_ordered_end(handle_, buf, MPI_STATUS_IGNORE));
}

inline Request File::Iread(void *buf, int count, const Datatype &datatype)
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_File_iread(handle_, buf, count, datatype, &request));
    return Request(request);
}

inline Request File::Iread_at(Offset offset, void *buf, int count, const Datatype &datatype)
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_File_iread_at(handle_, offset, buf, count, datatype, &request));
    return Request(request);
}

inline Request File::Iread_shared(void *buf, int count, const Datatype &datatype)
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_File_iread_shared(handle_, buf, count, datatype, &request));
    return Request(request);
}

inline void File::Write(const void *buf, int count, const Datatype &datatype, Status &status)
{
    typepack::Call call;
    call(MPI_File_write(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Write(const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Write_at(Offset offset, const void *buf, int count, const Datatype &datatype,
    Status &status)
{
    typepack::Call call;
    call(MPI_File_write_at(handle_, offset, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Write_at(Offset offset, const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_at(handle_, offset, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Write_all(const void *buf, int count, const Datatype &datatype,
    Status &status)
{
    typepack::Call call;
    call(MPI_File_write_all(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Write_all(const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_all(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Write_at_all(Offset offset, const void *buf, int count,
    const Datatype &datatype, Status &status)
{
    typepack::Call call;
    call(MPI_File_write_at_all(handle_, offset, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Write_at_all(Offset offset, const void *buf, int count,
    const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_at_all(handle_, offset, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Write_shared(const void *buf, int count, const Datatype &datatype,
    Status &status)
{
    typepack::Call call;
    call(MPI_File_write_shared(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Write_shared(const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_shared(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Write_ordered(const void *buf, int count, const Datatype &datatype,
    Status &status)
{
    typepack::Call call;
    call(MPI_File_write_ordered(handle_, buf, count, datatype, typepack::handles(&status)));
}

inline void File::Write_ordered(const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_ordered(handle_, buf, count, datatype, MPI_STATUS_IGNORE));
}

inline void File::Write_all_begin(const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_all_begin(handle_, buf, count, datatype));
}

inline void File::Write_all_end(const void *buf, Status &status)
{
    typepack::Call call;
    call(MPI_File_write_all_end(handle_, buf, typepack::handles(&status)));
}

inline void File::Write_all_end(const void *buf)
{
    typepack::Call call;
    call(MPI_File_write_all_end(handle_, buf, MPI_STATUS_IGNORE));
}

inline void File::Write_at_all_begin(Offset offset, const void *buf, int count,
    const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_at_all_begin(handle_, offset, buf, count, datatype));
}

inline void File::Write_at_all_end(const void *buf, Status &status)
{
    typepack::Call call;
    call(MPI_File_write_at_all_end(handle_, buf, typepack::handles(&status)));
}

inline void File::Write_at_all_end(const void *buf)
{
    typepack::Call call;
    call(MPI_File_write_at_all_end(handle_, buf, MPI_STATUS_IGNORE));
}

inline void File::Write_ordered_begin(const void *buf, int count, const Datatype &datatype)
{
    typepack::Call call;
    call(MPI_File_write_ordered_begin(handle_, buf, count, datatype));
}

inline void File::Write_ordered_end(const void *buf, Status &status)
{
    typepack::Call call;
    call(MPI_File_write_ordered_end(handle_, buf, typepack::handles(&status)));
}

inline void File::Write_ordered_end(const void *buf)
{
    typepack::Call call;
    call(MPI_File_write_ordered_end(handle_, buf, MPI_STATUS_IGNORE));
}

inline Request File::Iwrite(const void *buf, int count, const Datatype &datatype)
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_File_iwrite(handle_, buf, count, datatype, &request));
    return Request(request);
}

inline Request File::Iwrite_at(Offset offset, const void *buf, int count,
    const Datatype &datatype)
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_File_iwrite_at(handle_, offset, buf, count, datatype, &request));
    return Request(request);
}

inline Request File::Iwrite_shared(const void *buf, int count, const Datatype &datatype)
{
    MPI_Request request = MPI_REQUEST_NULL;
    typepack::Call call;
    call(MPI_File_iwrite_shared(handle_, buf, count, datatype, &request));
    return Request(request);
}

inline void Finalize()
{
    typepack::Call call;
    call(MPI_Finalize());
}

inline bool Is_initialized()
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Initialized(&flag));
    return flag != 0;
}

inline bool Is_finalized()
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Finalized(&flag));
    return flag != 0;
}

inline bool Is_thread_main()
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Is_thread_main(&flag));
    return flag != 0;
}

inline int Query_thread()
{
    int provided = 0;
    typepack::Call call;
    call(MPI_Query_thread(&provided));
    return provided;
}

inline void Get_version(int &version, int &subversion)
{
    typepack::Call call;
    call(MPI_Get_version(&version, &subversion));
}

inline void Get_processor_name(char *name, int &resultlen)
{
    typepack::Call call;
    call(MPI_Get_processor_name(name, &resultlen));
}

inline int Get_error_class(int errorcode)
{
    int errorclass = 0;
    typepack::Call call;
    call(MPI_Error_class(errorcode, &errorclass));
    return errorclass;
}

inline void Get_error_string(int errorcode, char *string, int &resultlen)
{
    typepack::Call call;
    call(MPI_Error_string(errorcode, string, &resultlen));
}

inline int Add_error_class()
{
    int errorclass = 0;
    typepack::Call call;
    call(MPI_Add_error_class(&errorclass));
    return errorclass;
}

inline int Add_error_code(int errorclass)
{
    int errorcode = 0;
    typepack::Call call;
    call(MPI_Add_error_code(errorclass, &errorcode));
    return errorcode;
}

inline void Add_error_string(int errorcode, const char *string)
{
    typepack::Call call;
    call(MPI_Add_error_string(errorcode, string));
}

inline void *Alloc_mem(Aint size, const Info &info)
{
    void * baseptr = 0;
    typepack::Call call;
    call(MPI_Alloc_mem(size, info, &baseptr));
    return baseptr;
}

inline void Free_mem(void *base)
{
    typepack::Call call;
    call(MPI_Free_mem(base));
}

inline double Wtime()
{
    return MPI_Wtime();
}

inline double Wtick()
{
    return MPI_Wtick();
}

inline void Open_port(const Info &info, char *port_name)
{
    typepack::Call call;
    call(MPI_Open_port(info, port_name));
}

inline void Close_port(const char *port_name)
{
    typepack::Call call;
    call(MPI_Close_port(port_name));
}

inline void Publish_name(const char *service_name, const Info &info, const char *port_name)
{
    typepack::Call call;
    call(MPI_Publish_name(service_name, info, port_name));
}

inline void Unpublish_name(const char *service_name, const Info &info, const char *port_name)
{
    typepack::Call call;
    call(MPI_Unpublish_name(service_name, info, port_name));
}

inline void Lookup_name(const char *service_name, const Info &info, char *port_name)
{
    typepack::Call call;
    call(MPI_Lookup_name(service_name, info, port_name));
}

inline Intracomm &Intracomm::Clone() const
{
    return *new Intracomm(Dup());
}

inline Intercomm &Intercomm::Clone() const
{
    return *new Intercomm(Dup());
}

inline Cartcomm &Cartcomm::Clone() const
{
    return *new Cartcomm(Dup());
}

inline Graphcomm &Graphcomm::Clone() const
{
    return *new Graphcomm(Dup());
}

inline Distgraphcomm &Distgraphcomm::Clone() const
{
    return *new Distgraphcomm(Dup());
}

inline int Comm::Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn,
    void *extra_state)
{
    typedef typepack::Attributes<Comm, MPI_Comm> Attributes;
    MPI_Comm_copy_attr_function *copy = &Attributes::on_copy;
    if (!copy_fn || copy_fn == &NULL_COPY_FN) copy = MPI_COMM_NULL_COPY_FN;
    if (copy_fn == &DUP_FN) copy = MPI_COMM_DUP_FN;
    MPI_Comm_delete_attr_function *erase = &Attributes::on_delete;
    if (!delete_fn || delete_fn == &NULL_DELETE_FN) erase = MPI_COMM_NULL_DELETE_FN;
    int keyval = MPI_KEYVAL_INVALID;
    typepack::Call call;
    call(MPI_Comm_create_keyval(copy, erase, &keyval,
        Attributes::of(copy_fn, delete_fn, extra_state)));
    return keyval;
}

inline int Datatype::Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn,
    void *extra_state)
{
    typedef typepack::Attributes<Datatype, MPI_Datatype> Attributes;
    MPI_Type_copy_attr_function *copy = &Attributes::on_copy;
    if (!copy_fn || copy_fn == &NULL_COPY_FN) copy = MPI_TYPE_NULL_COPY_FN;
    if (copy_fn == &DUP_FN) copy = MPI_TYPE_DUP_FN;
    MPI_Type_delete_attr_function *erase = &Attributes::on_delete;
    if (!delete_fn || delete_fn == &NULL_DELETE_FN) erase = MPI_TYPE_NULL_DELETE_FN;
    int keyval = MPI_KEYVAL_INVALID;
    typepack::Call call;
    call(MPI_Type_create_keyval(copy, erase, &keyval,
        Attributes::of(copy_fn, delete_fn, extra_state)));
    return keyval;
}

inline int Win::Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn,
    void *extra_state)
{
    typedef typepack::Attributes<Win, MPI_Win> Attributes;
    MPI_Win_copy_attr_function *copy = &Attributes::on_copy;
    if (!copy_fn || copy_fn == &NULL_COPY_FN) copy = MPI_WIN_NULL_COPY_FN;
    if (copy_fn == &DUP_FN) copy = MPI_WIN_DUP_FN;
    MPI_Win_delete_attr_function *erase = &Attributes::on_delete;
    if (!delete_fn || delete_fn == &NULL_DELETE_FN) erase = MPI_WIN_NULL_DELETE_FN;
    int keyval = MPI_KEYVAL_INVALID;
    typepack::Call call;
    call(MPI_Win_create_keyval(copy, erase, &keyval,
        Attributes::of(copy_fn, delete_fn, extra_state)));
    return keyval;
}

inline Errhandler Comm::Create_errhandler(Errhandler_function *function)
{
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    MPI_Comm_errhandler_function *entry = typepack::Comm_handler::entry(function);
    typepack::Call call;
    if (entry) call(MPI_Comm_create_errhandler(entry, &made));
    return Errhandler(made);
}

inline MPI_Errhandler Errhandler::of_Comm() const
{
    if (!throws_) return handle_;
    MPI_Errhandler made = throwing()[0];
    if (made) return made;
    MPI_Comm_errhandler_function *entry = typepack::Comm_handler::entry(&typepack::Comm_handler::throws);
    if (entry) MPI_Comm_create_errhandler(entry, &made);
    return once(0, made);
}

inline Errhandler File::Create_errhandler(Errhandler_function *function)
{
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    MPI_File_errhandler_function *entry = typepack::File_handler::entry(function);
    typepack::Call call;
    if (entry) call(MPI_File_create_errhandler(entry, &made));
    return Errhandler(made);
}

inline MPI_Errhandler Errhandler::of_File() const
{
    if (!throws_) return handle_;
    MPI_Errhandler made = throwing()[1];
    if (made) return made;
    MPI_File_errhandler_function *entry = typepack::File_handler::entry(&typepack::File_handler::throws);
    if (entry) MPI_File_create_errhandler(entry, &made);
    return once(1, made);
}

inline Errhandler Win::Create_errhandler(Errhandler_function *function)
{
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    MPI_Win_errhandler_function *entry = typepack::Win_handler::entry(function);
    typepack::Call call;
    if (entry) call(MPI_Win_create_errhandler(entry, &made));
    return Errhandler(made);
}

inline MPI_Errhandler Errhandler::of_Win() const
{
    if (!throws_) return handle_;
    MPI_Errhandler made = throwing()[2];
    if (made) return made;
    MPI_Win_errhandler_function *entry = typepack::Win_handler::entry(&typepack::Win_handler::throws);
    if (entry) MPI_Win_create_errhandler(entry, &made);
    return once(2, made);
}

inline MPI_Errhandler Errhandler::once(int at, MPI_Errhandler made)
{
    if (!__sync_bool_compare_and_swap(&throwing()[at], static_cast<MPI_Errhandler>(0), made)) {
        MPI_Errhandler_free(&made);
    }
    return throwing()[at];
}

inline void Errhandler::Free()
{
    typepack::Call call;
    if (!throws_) call(MPI_Errhandler_free(&handle_));
    *this = Errhandler();
}

inline Intercomm Intracomm::Spawn(const char *command, const char *argv[], int maxprocs, const Info &info,
    int root) const
{
    return Spawn(command, argv, maxprocs, info, root, MPI_ERRCODES_IGNORE);
}

inline Intercomm Intracomm::Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root,
    int array_of_errcodes[]) const
{
    MPI_Comm made = MPI_COMM_NULL;
    typepack::Call call;
    call(MPI_Comm_spawn(command, const_cast<char **>(argv), maxprocs, info, root, handle_, &made,
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
    typepack::Call call;
    call(MPI_Comm_spawn_multiple(count, const_cast<char **>(array_of_commands),
        const_cast<char ***>(array_of_argv), array_of_maxprocs, typepack::handles(array_of_info), root, handle_, &made,
        array_of_errcodes));
    return Intercomm(made);
}

inline void Distgraphcomm::Get_dist_neighbors_count(int &indegree, int &outdegree, bool &weighted) const
{
    int flag = 0;
    typepack::Call call;
    call(MPI_Dist_graph_neighbors_count(handle_, &indegree, &outdegree, &flag));
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
    typepack::Call call;
    if (entry) call(MPI_Op_create(entry, commute, &handle_));
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
    typepack::Call call;
    int code = MPI_Grequest_start(&typepack::Generalized::on_query, &typepack::Generalized::on_free,
        &typepack::Generalized::on_cancel, state, &made);
    /* Nothing calls `on_free` for a request that was not made. */
    if (made == MPI_REQUEST_NULL) delete state;
    call(code);
    return Grequest(made);
}

inline void Init() {
    typepack::Call call;
    call(MPI_Init(0, 0));
}

inline void Init(int &argc, char **&argv) {
    typepack::Call call;
    call(MPI_Init(&argc, &argv));
}

inline int Init_thread(int required)
{
    int provided = MPI_THREAD_SINGLE;
    typepack::Call call;
    call(MPI_Init_thread(0, 0, required, &provided));
    return provided;
}

inline int Init_thread(int &argc, char **&argv, int required)
{
    int provided = MPI_THREAD_SINGLE;
    typepack::Call call;
    call(MPI_Init_thread(&argc, &argv, required, &provided));
    return provided;
}

inline void Pcontrol(const int level, ...) {
    typepack::Call call;
    call(MPI_Pcontrol(level));
}

inline void Register_datarep(const char *datarep, Datarep_conversion_function *read_conversion_fn,
    Datarep_conversion_function *write_conversion_fn, Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
    typepack::Datarep *state = new typepack::Datarep;
    state->read = read_conversion_fn;
    state->write = write_conversion_fn;
    state->extent = dtype_file_extent_fn;
    state->extra_state = extra_state;
    typepack::Call call;
    int code = MPI_Register_datarep(datarep, read_conversion_fn ? &typepack::Datarep::on_read : 0,
        write_conversion_fn ? &typepack::Datarep::on_write : 0, &typepack::Datarep::on_extent, state);
    if (code != MPI_SUCCESS) delete state;
    call(code);
}

} // namespace MPI

#endif
