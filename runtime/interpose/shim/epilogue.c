
#ifndef TYPEPACK_TABLE
/* ---- beginning ---- */

static int missing(const char *name)
{
    fprintf(stderr, "typepack-interpose: %s was called, but no MPI library is loaded that has it\n", name);
    return MPI_ERR_OTHER;
}

/* Finds the functions of the host. */
static void find_host(void)
{
    /* Only MPI libraries define this name. */
    if (!dlsym(RTLD_NEXT, "PMPI_Comm_rank")) private_host = find_object("PMPI_Comm_rank");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (symbols[i].real) *symbols[i].real = look(symbols[i].name);
    find_fortran();
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_host);
}

/* Returns the function of the host with the types of the ABI. */
static void *converting(const char *name)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (symbols[i].converting && !strcmp(symbols[i].name, name)) return symbols[i].converting;
    return NULL;
}

/* Opens the core. Returns why that is not possible; null if it is done. */
static const char *open_core(void)
{
    open_table();
    if (!table) return dlerror();
    Dl_info linked, used;
    void *own = dlsym(table, "PMPI_Comm_rank"), *next = look("PMPI_Comm_rank");
    if (!own || !next || !dladdr(own, &linked) || !dladdr(next, &used) || linked.dli_fbase != used.dli_fbase)
        return "the program uses another MPI library than the one for which this shim was compiled";
    struct row rows[256];
    int (*fill)(struct row *, int) = (int (*)(struct row *, int))dlsym(table, "typepack_shim_rows");
    host_function = (void *(*)(enum function))dlsym(table, "typepack_shim_function");
    if (!fill || !host_function) return "libtypepack_shim_host.so is not that of this shim";
    int n = fill(rows, 256);
    for (int i = 0; i < n && i < 256; i++) {
        if (rows[i].host < PREDEFINED && rows[i].host) return "the MPI library has handles like those of the ABI";
        learn(&rows[i]);
    }
    /* A predefined handle that the host does not have becomes its null handle. */
    static const handle nulls[KINDS] = {ABI_COMM_NULL, ABI_DATATYPE_NULL, ABI_OP_NULL, ABI_REQUEST_NULL, ABI_MESSAGE_NULL,
        ABI_GROUP_NULL};
    for (int kind = 0; kind < KINDS; kind++)
        for (handle abi = 1; abi < PREDEFINED; abi++)
            if (!forward[kind][abi]) forward[kind][abi] = forward[kind][nulls[kind]];
    void *core = dlopen(TYPEPACK_CORE, RTLD_NOW | RTLD_LOCAL);
    if (!core) return dlerror();
    int (*attach)(const char *, void *(*)(const char *), const unsigned char **);
    attach = (__typeof__(attach))dlsym(core, "typepack_interpose_attach");
    core_meet = (void (*)(void))dlsym(core, "typepack_interpose_meet");
    const unsigned char *flag = NULL;
    if (!attach || !core_meet) return "the interposer has another version than this shim; run `typepack shim` again";
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (!symbols[i].core || (*symbols[i].core = dlsym(core, symbols[i].name))) continue;
        /* The function for calls of Fortran routines. */
        char name[128];
        snprintf(name, sizeof name, "typepack_%s", symbols[i].name);
        *symbols[i].core = dlsym(core, name);
    }
    switch (attach(TYPEPACK_VERSION, converting, &flag)) {
    case 0: break;
    case 1: return "the interposer has another version than this shim; run `typepack shim` again";
    default: return "the interposer is loaded twice";
    }
    __atomic_store_n(&active, flag, __ATOMIC_RELEASE);
    return NULL;
}

static void attach_once(void)
{
    const char *why = open_core();
    if (why) say(why);
    is_attached = !why;
    /* Without the core, an MPI library that the table has loaded is of no use. */
    if (why && table) dlclose(table);
}

/* Opens the core, in the first call that initialises MPI. Returns whether the core is there. */
static int attached(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach_once);
    return is_attached;
}
#endif
