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

@define@

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
