/* A shim between one MPI library without the MPI 5 standard ABI, the host, and libtypepack_interpose.so, the core.
 *
 * `typepack shim` makes this file: this text, then the functions that the tables of the ABI give. The file is compiled
 * twice with the host's own compiler:
 *
 * - with -DTYPEPACK_TABLE into libtypepack_shim_host.so, which is linked with the host and has its predefined handles
 *   (in some hosts, they are addresses of variables);
 * - into libtypepack_shim.so, which is linked with no MPI library, so that programs without MPI load none. This library
 *   is preloaded. Its functions MPI_X take the arguments of a program of the host, convert them to the ABI, and call
 *   MPI_X of the core. For the core, it has functions with the types of the ABI, which convert back and call the host.
 *
 * A handle of the ABI is the host's handle as an address-sized number, except predefined handles, which have the
 * ABI's numbers (all below 4096). Hosts have addresses there, or numbers above 4096. Arguments that the core only
 * passes on are not converted.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CONSTANTS */

/* A handle of the ABI or of the host, as a number. A host whose handles are `int` gets the lower half of the register
 * or of the place on the stack, as in a call without the shim. */
typedef uintptr_t handle;

/* The kinds of handles that are converted. */
enum kind { COMM, TYPE, OP, REQUEST, MESSAGE, GROUP, KINDS };

/* One predefined handle. */
struct row {
    enum kind kind;
    handle abi, host;
};

/* The functions of the host that are values of arguments. */
enum function { COMM_DUP, COMM_NULL_DELETE, COMM_NULL_COPY, TYPE_NULL_COPY };

#ifdef TYPEPACK_TABLE
#define ROW(kind, abi, name) {kind, abi, (handle)(name)},
#else

/* All predefined handles of the ABI lie below this number. */
#define PREDEFINED 0x400

_Static_assert(MPI_UNDEFINED == -32766, "the host has another MPI_UNDEFINED than the ABI");
_Static_assert(sizeof(MPI_Aint) == sizeof(handle) && sizeof(MPI_Count) == 8, "the host has no 64-bit numbers");
_Static_assert(sizeof(MPI_Datatype) == sizeof(int) || sizeof(MPI_Datatype) == sizeof(handle), "odd handles");
_Static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= 8192, "the host's version is a longer text than the ABI allows");

/* ---- lines on standard error ---- */

static int is_one(const char *name)
{
    const char *value = getenv(name);
    return value && !strcmp(value, "1");
}

/* As `say.rs` of the core: only rank 0 says something, as far as the launcher tells the rank, unless a report is wanted. */
static void say(const char *line)
{
    static const char *const ranks[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
    const char *other = NULL;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks && !other; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank && strcmp(rank, "0")) other = rank;
    }
    if (is_one("TYPEPACK_QUIET") || (other && !is_one("TYPEPACK_REPORT"))) return;
    fprintf(stderr, "typepack-interpose: %s%s%s%s; the job goes on without typepack\n", other ? "rank " : "",
        other ? other : "", other ? ": " : "", line);
}

/* ---- predefined handles ---- */

/* From the ABI to the host. */
static handle forward[KINDS][PREDEFINED];

/* From the host to the ABI: a hash table. */
#define SLOTS 1024
static struct { int used; struct row row; } slots[SLOTS];

static inline size_t hash(handle host) { return (size_t)((host * 0x9e3779b97f4a7c15u) >> 40); }

static void learn(const struct row *row)
{
    forward[row->kind][row->abi] = row->host;
    for (size_t at = hash(row->host);; at++) {
        if (!slots[at % SLOTS].used) {
            slots[at % SLOTS].row = *row;
            slots[at % SLOTS].used = 1;
            return;
        }
        /* Two names of one handle: the first name of the table stands for it. */
        if (slots[at % SLOTS].row.host == row->host && slots[at % SLOTS].row.kind == row->kind) return;
    }
}

static inline handle to_abi(enum kind kind, handle host)
{
    for (size_t at = hash(host);; at++) {
        if (!slots[at % SLOTS].used) return host;
        if (slots[at % SLOTS].row.host == host && slots[at % SLOTS].row.kind == kind) return slots[at % SLOTS].row.abi;
    }
}

static inline handle to_host(enum kind kind, handle abi) { return abi < PREDEFINED ? forward[kind][abi] : abi; }

/* ---- numbers ---- */

/* Returns the second number of the pair whose first number is `value`; `missing` if there is none. */
static int paired(const int (*pairs)[2], size_t n, int from, int value, int missing)
{
    for (size_t i = 0; i < n; i++)
        if (pairs[i][from] == value) return pairs[i][!from];
    return missing;
}
#define PAIRED(pairs, from, value, missing) paired(pairs, sizeof(pairs) / sizeof *(pairs), from, value, missing)

/* A negative number without a meaning in the host must not get one in the ABI. */
#define NO_MEANING 0x10000000
static inline int meaningless(int value) { return value < -NO_MEANING ? value : value - NO_MEANING; }
static inline int meaningful(int value) { return value < -NO_MEANING && value >= -2 * NO_MEANING ? value + NO_MEANING : value; }

static inline int abi_rank(int rank)
{
    if (rank >= 0) return rank;
    if (rank == MPI_PROC_NULL) return ABI_PROC_NULL;
    if (rank == MPI_ANY_SOURCE) return ABI_ANY_SOURCE;
    return rank == MPI_ROOT ? ABI_ROOT : meaningless(rank);
}

static inline int host_rank(int rank)
{
    if (rank >= 0) return rank;
    if (rank == ABI_PROC_NULL) return MPI_PROC_NULL;
    if (rank == ABI_ANY_SOURCE) return MPI_ANY_SOURCE;
    return rank == ABI_ROOT ? MPI_ROOT : meaningful(rank);
}

static inline int abi_tag(int tag) { return tag >= 0 ? tag : tag == MPI_ANY_TAG ? ABI_ANY_TAG : meaningless(tag); }
static inline int host_tag(int tag) { return tag >= 0 ? tag : tag == ABI_ANY_TAG ? MPI_ANY_TAG : meaningful(tag); }

static inline void *abi_memory(const void *memory)
{
    if (memory == MPI_IN_PLACE) return (void *)ABI_IN_PLACE;
    return memory == MPI_BOTTOM ? (void *)ABI_BOTTOM : (void *)memory;
}

static inline void *host_memory(const void *memory)
{
    if (memory == (void *)ABI_IN_PLACE) return MPI_IN_PLACE;
    return memory == (void *)ABI_BOTTOM ? MPI_BOTTOM : (void *)memory;
}

/* Error codes. The standard's classes are converted. All numbers up to this one belong to the ABI's classes, so other
 * small codes of the host become negative. Large codes (MPICH has them) are the same on both sides. */
#define LAST_CLASS 0x3fff

static int abi_code(int code)
{
    if (code == MPI_SUCCESS) return ABI_SUCCESS;
    int other = code > 0 && code <= LAST_CLASS ? code + INT_MIN : code;
    return PAIRED(classes, 1, code, other);
}

static int host_code(int code)
{
    if (code == ABI_SUCCESS) return MPI_SUCCESS;
    if (code < INT_MIN + LAST_CLASS + 1) return code - INT_MIN;
    return PAIRED(classes, 0, code, code > 0 && code <= LAST_CLASS ? MPI_ERR_OTHER : code);
}

/* ---- statuses ---- */

/* A status of the ABI. */
struct status {
    int source, tag, error, internal[5];
};

#define WORDS (sizeof(MPI_Status) / sizeof(int))
_Static_assert(sizeof(MPI_Status) % sizeof(int) == 0 && WORDS <= 8, "the host's status does not fit in that of the ABI");

static inline int is_public(size_t word)
{
    return word == offsetof(MPI_Status, MPI_SOURCE) / sizeof(int) || word == offsetof(MPI_Status, MPI_TAG) / sizeof(int)
        || word == offsetof(MPI_Status, MPI_ERROR) / sizeof(int);
}

/* The host's own words go into `internal`. Callers also convert statuses without values, so that a call that does not
 * write a status leaves it as it was. */
static void abi_status(const MPI_Status *from, struct status *to)
{
    int words[WORDS], *internal = to->internal;
    memcpy(words, from, sizeof words);
    memset(to, 0, sizeof *to);
    to->source = abi_rank(from->MPI_SOURCE);
    to->tag = abi_tag(from->MPI_TAG);
    to->error = abi_code(from->MPI_ERROR);
    for (size_t i = 0; i < WORDS; i++)
        if (!is_public(i)) *internal++ = words[i];
}

static void host_status(const struct status *from, MPI_Status *to)
{
    int words[WORDS];
    const int *internal = from->internal;
    for (size_t i = 0; i < WORDS; i++) words[i] = is_public(i) ? 0 : *internal++;
    memcpy(to, words, sizeof words);
    to->MPI_SOURCE = host_rank(from->source);
    to->MPI_TAG = host_tag(from->tag);
    to->MPI_ERROR = host_code(from->error);
}

/* Converts a status back if it has changed since `before`. Calls that complete one operation leave the error alone. */
static void host_changed(const struct status *status, const struct status *before, MPI_Status *to)
{
    if (!memcmp(status, before, sizeof *status)) return;
    int error = to->MPI_ERROR;
    host_status(status, to);
    if (status->error == before->error) to->MPI_ERROR = error;
}

static void abi_changed(const MPI_Status *status, const MPI_Status *before, struct status *to)
{
    if (!memcmp(status, before, sizeof *status)) return;
    int error = to->error;
    abi_status(status, to);
    if (status->MPI_ERROR == before->MPI_ERROR) to->error = error;
}

/* ---- arrays ---- */

/* Room for converted arrays of a call. Long arrays are on the heap. */
#define SHORT 16
struct room {
    void *heap;
    long long words[SHORT * sizeof(struct status) * 2 / sizeof(long long)];
};

/* Returns `bytes` bytes; null without memory. */
static void *room(struct room *room, size_t bytes)
{
    if (bytes <= sizeof room->words) return room->words;
    return room->heap = malloc(bytes);
}

/* A negative length is an error of the program, which the host reports. */
static inline size_t length(long long n) { return n > 0 ? (size_t)n : 0; }

static handle *abi_requests(struct room *r, size_t n, const MPI_Request *from)
{
    handle *to = room(r, n * sizeof *to);
    for (size_t i = 0; to && i < n; i++) to[i] = to_abi(REQUEST, (handle)from[i]);
    return to;
}

static MPI_Request *host_requests(struct room *r, size_t n, const handle *from)
{
    MPI_Request *to = room(r, n * sizeof *to);
    for (size_t i = 0; to && i < n; i++) to[i] = (MPI_Request)to_host(REQUEST, from[i]);
    return to;
}

/* Only requests that have changed are written: another thread may use the others. */
static void requests_back(size_t n, const handle *from, MPI_Request *to)
{
    for (size_t i = 0; i < n; i++)
        if (from[i] != to_abi(REQUEST, (handle)to[i])) to[i] = (MPI_Request)to_host(REQUEST, from[i]);
}

static void abi_requests_back(size_t n, const MPI_Request *from, handle *to)
{
    for (size_t i = 0; i < n; i++) {
        handle now = to_abi(REQUEST, (handle)from[i]);
        if (now != to[i]) to[i] = now;
    }
}

/* The statuses, and behind them the same statuses as they were before the call. */
static struct status *abi_statuses(struct room *r, size_t n, const MPI_Status *from)
{
    struct status *to = room(r, 2 * n * sizeof *to);
    for (size_t i = 0; to && i < n; i++) abi_status(&from[i], &to[i]), to[n + i] = to[i];
    return to;
}

static MPI_Status *host_statuses(struct room *r, size_t n, const struct status *from)
{
    MPI_Status *to = room(r, 2 * n * sizeof *to);
    for (size_t i = 0; to && i < n; i++) host_status(&from[i], &to[i]), to[n + i] = to[i];
    return to;
}

/* ---- the functions of the host and of the core ---- */

/* One function: the host's for the core, the host's own, and the core's for the program. */
struct symbol {
    const char *name;
    void *converting;
    void **real;
    void **core;
};

/* libtypepack_shim_host.so; null if it was not opened. */
static void *table;

/* The name of the folder of this library. */
static char folder[4096];

static void open_table(void)
{
    Dl_info info;
    char path[sizeof folder + 64];
    if (table || !dladdr((void *)open_table, &info) || !info.dli_fname) return;
    const char *end = strrchr(info.dli_fname, '/');
    size_t bytes = end ? (size_t)(end - info.dli_fname) + 1 : 0;
    if (bytes >= sizeof folder) return;
    memcpy(folder, info.dli_fname, bytes);
    snprintf(path, sizeof path, "%slibtypepack_shim_host.so", folder);
    table = dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* A host that the program has loaded for itself alone, as Python does; null if the host is behind this library. */
static void *private_host;

/* Names of the loaded objects. */
struct names {
    size_t n;
    char *name[1024];
};

static int collect(struct dl_phdr_info *info, size_t size, void *to)
{
    (void)size;
    struct names *names = to;
    /* The main program has no name, and is no library. */
    if (info->dlpi_name && *info->dlpi_name && names->n < sizeof names->name / sizeof *names->name)
        names->name[names->n++] = strdup(info->dlpi_name);
    return 0;
}

/* Returns the first object that has a function, itself or through the libraries that it needs; null if there is none. */
static void *find_object(const char *name)
{
    struct names names = {0};
    void *found = NULL;
    dl_iterate_phdr(collect, &names);
    for (size_t i = 0; i < names.n; i++) {
        void *object = names.name[i] && !found ? dlopen(names.name[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (object && dlsym(object, name)) found = object;
        else if (object) dlclose(object);
        free(names.name[i]);
    }
    return found;
}

/* Returns the function behind this library, or that of a private host. */
static void *look(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found || !private_host ? found : dlsym(private_host, name);
}

/* ---- Fortran routines of the host ---- */

/* Some hosts have Fortran routines that call PMPI_Send where the program has called MPI_SEND, so that a library in front
 * of the host sees nothing. They have converted all arguments then. So a call of such a name counts as one of the program
 * if it comes from a library that has the routine pmpi_send, in one of the spellings of compilers. */
static struct code { uintptr_t begin, bytes; } fortran[2];

static inline int is_fortran(const void *caller)
{
    return (uintptr_t)caller - fortran[0].begin < fortran[0].bytes || (uintptr_t)caller - fortran[1].begin < fortran[1].bytes;
}

/* Widens `to`, which begins with the address of a function, to the segment that contains the function. */
static int widen(struct dl_phdr_info *info, size_t size, void *to)
{
    (void)size;
    struct code *code = to;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || code->begin - begin >= info->dlpi_phdr[i].p_memsz) continue;
        code->begin = begin;
        code->bytes = info->dlpi_phdr[i].p_memsz;
        return 1;
    }
    return 0;
}

/* Finds the code of the Fortran routines. A host whose C functions lie in the same library is left alone: it may call
 * them itself. */
static void find_fortran(void)
{
    static const char *const names[2][4] = {
        {"pmpi_send_", "pmpi_send", "pmpi_send__", "PMPI_SEND"},
        {"pmpi_send_f08_", "pmpi_send_f08ts_"},
    };
    uintptr_t own = (uintptr_t)look("PMPI_Send");
    for (int i = 0; i < 2; i++) {
        void *found = NULL;
        for (int j = 0; j < 4 && names[i][j] && !found; j++) {
            found = look(names[i][j]);
            void *object = found || !private_host ? NULL : find_object(names[i][j]);
            if (object) found = dlsym(object, names[i][j]);
        }
        struct code code = {(uintptr_t)found, 0};
        if (found) dl_iterate_phdr(widen, &code);
        if (own - code.begin >= code.bytes) fortran[i] = code;
    }
}

static int absent(void)
{
    static int said;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) say("a function was called that the MPI library does not have");
    return ABI_ERR_UNSUPPORTED_OPERATION;
}

/* True while the core takes part. */
static const unsigned char never;
static const unsigned char *active = &never;
static inline int is_active(void) { return __atomic_load_n(__atomic_load_n(&active, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED); }

static void (*core_meet)(void);

/* ---- arrays of types ---- */

static int host_number(const char *name, handle comm)
{
    int number = 0;
    int (*real)(handle, int *) = (int (*)(handle, int *))look(name);
    return real && real(comm, &number) == MPI_SUCCESS ? number : 0;
}

/* Returns the number of blocks that a rank receives, or sends, in MPI_Alltoallw and its relatives. */
static size_t blocks(handle comm, int is_neighbour, int receives)
{
    if (!is_neighbour) return length(host_number(host_number("PMPI_Comm_test_inter", comm) ? "PMPI_Comm_remote_size" : "PMPI_Comm_size", comm));
    int topology = host_number("PMPI_Topo_test", comm);
    if (topology == MPI_CART) return 2 * length(host_number("PMPI_Cartdim_get", comm));
    int counts[3] = {0, 0, 0};
    if (topology == MPI_GRAPH) {
        int (*count)(handle, int, int *) = (int (*)(handle, int, int *))look("PMPI_Graph_neighbors_count");
        return count && count(comm, host_number("PMPI_Comm_rank", comm), counts) == MPI_SUCCESS ? length(counts[0]) : 0;
    }
    int (*count)(handle, int *, int *, int *) = (int (*)(handle, int *, int *, int *))look("PMPI_Dist_graph_neighbors_count");
    return count && count(comm, &counts[0], &counts[1], &counts[2]) == MPI_SUCCESS ? length(counts[!receives]) : 0;
}

/* The arrays of types of the present call: as the core got them, and as the program passed them. A host may read an
 * array until a nonblocking call is complete. If the core passes an array on, the host gets the program's own. */
static __thread struct { const void *abi, *host; } passed[2];

static handle *abi_types(struct room *r, int which, size_t n, const MPI_Datatype *from)
{
    handle *to = from ? room(r, n * sizeof *to) : NULL;
    for (size_t i = 0; to && i < n; i++) to[i] = to_abi(TYPE, (handle)from[i]);
    passed[which].abi = to;
    passed[which].host = from;
    return to;
}

/* An array that the core has made lives until the call is complete, and the core reads it no more. Such an array is
 * converted in its place. */
static const MPI_Datatype *host_types(size_t n, const handle *from)
{
    for (int i = 0; i < 2; i++)
        if (from && from == passed[i].abi) return passed[i].host;
    char *to = (char *)from;
    for (size_t i = 0; from && i < n; i++) {
        handle abi;
        memcpy(&abi, &from[i], sizeof abi);
        MPI_Datatype host = (MPI_Datatype)to_host(TYPE, abi);
        memcpy(to + i * sizeof host, &host, sizeof host);
    }
    return (const MPI_Datatype *)to;
}

/* ---- functions for the core that no rule of the tables gives ---- */

#define REAL(name, ...) \
    static int (*real)(__VA_ARGS__); \
    if (!real) real = (int (*)(__VA_ARGS__))look(name); \
    if (!real) return absent()

static int host_PMPI_Abi_get_version(int *major, int *minor)
{
    *major = ABI_ABI_VERSION;
    *minor = ABI_ABI_SUBVERSION;
    return ABI_SUCCESS;
}

static int host_PMPI_Error_class(int code, int *class)
{
    REAL("PMPI_Error_class", int, int *);
    int error = real(host_code(code), class);
    *class = abi_code(*class);
    return abi_code(error);
}

static int host_PMPI_Comm_call_errhandler(handle comm, int code)
{
    REAL("PMPI_Comm_call_errhandler", MPI_Comm, int);
    return abi_code(real((MPI_Comm)to_host(COMM, comm), host_code(code)));
}

static void *(*host_function)(enum function);

static int (*comm_ends)(handle, int, void *, void *);

static int comm_ended(MPI_Comm comm, int keyval, void *value, void *extra)
{
    return host_code(comm_ends(to_abi(COMM, (handle)comm), keyval, value, extra));
}

static int host_PMPI_Comm_create_keyval(void *copy, void *delete, int *keyval, void *extra)
{
    REAL("PMPI_Comm_create_keyval", void *, void *, int *, void *);
    if (copy == (void *)1 && !delete)
        return abi_code(real(host_function(COMM_DUP), host_function(COMM_NULL_DELETE), keyval, extra));
    /* The core has one such function. */
    if (copy || !delete || (comm_ends && (void *)comm_ends != delete)) return absent();
    comm_ends = (int (*)(handle, int, void *, void *))delete;
    return abi_code(real(host_function(COMM_NULL_COPY), (void *)comm_ended, keyval, extra));
}

static int (*type_ends)(handle, int, void *, void *);

static int type_ended(MPI_Datatype type, int keyval, void *value, void *extra)
{
    return host_code(type_ends(to_abi(TYPE, (handle)type), keyval, value, extra));
}

static int host_PMPI_Type_create_keyval(void *copy, void *delete, int *keyval, void *extra)
{
    REAL("PMPI_Type_create_keyval", void *, void *, int *, void *);
    /* The core has one such function. */
    if (copy || !delete || (type_ends && (void *)type_ends != delete)) return absent();
    type_ends = (int (*)(handle, int, void *, void *))delete;
    return abi_code(real(host_function(TYPE_NULL_COPY), (void *)type_ended, keyval, extra));
}

static int host_PMPI_Topo_test(handle comm, int *status)
{
    REAL("PMPI_Topo_test", handle, int *);
    int code = real(to_host(COMM, comm), status);
    *status = *status == MPI_CART ? ABI_CART : *status == MPI_GRAPH ? ABI_GRAPH : *status == MPI_DIST_GRAPH ? ABI_DIST_GRAPH : *status;
    return abi_code(code);
}

static int host_PMPI_Cart_shift(handle comm, int direction, int displacement, int *source, int *dest)
{
    REAL("PMPI_Cart_shift", handle, int, int, int *, int *);
    int code = real(to_host(COMM, comm), direction, displacement, source, dest);
    *source = abi_rank(*source);
    *dest = abi_rank(*dest);
    return abi_code(code);
}

/* MPI-3 has the forms that end in _x, MPI-4 those that end in _c. */
static int host_PMPI_Type_size_c(handle type, MPI_Count *size)
{
    REAL("PMPI_Type_size_x", handle, MPI_Count *);
    return abi_code(real(to_host(TYPE, type), size));
}

static int host_PMPI_Type_get_extent_c(handle type, MPI_Count *lb, MPI_Count *extent)
{
    REAL("PMPI_Type_get_extent_x", handle, MPI_Count *, MPI_Count *);
    return abi_code(real(to_host(TYPE, type), lb, extent));
}

static int host_PMPI_Type_get_true_extent_c(handle type, MPI_Count *lb, MPI_Count *extent)
{
    REAL("PMPI_Type_get_true_extent_x", handle, MPI_Count *, MPI_Count *);
    return abi_code(real(to_host(TYPE, type), lb, extent));
}

static int host_PMPI_Get_count_c(const struct status *status, handle type, MPI_Count *count)
{
    MPI_Status host;
    host_status(status, &host);
#ifdef HOST_HAS_MPI_Get_count_c
    REAL("PMPI_Get_count_c", const MPI_Status *, handle, MPI_Count *);
    return abi_code(real(&host, to_host(TYPE, type), count));
#else
    int narrow = 0;
    if (type == ABI_BYTE) {
        /* Each element is a byte. */
        REAL("PMPI_Get_elements_x", const MPI_Status *, handle, MPI_Count *);
        return abi_code(real(&host, to_host(TYPE, type), count));
    }
    REAL("PMPI_Get_count", const MPI_Status *, handle, int *);
    int code = real(&host, to_host(TYPE, type), &narrow);
    *count = narrow;
    return abi_code(code);
#endif
}

static int host_PMPI_Type_get_envelope_c(handle type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts,
    MPI_Count *types, int *combiner)
{
#ifdef HOST_HAS_MPI_Type_get_envelope_c
    REAL("PMPI_Type_get_envelope_c", handle, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
    int code = real(to_host(TYPE, type), integers, addresses, counts, types, combiner);
#else
    int n[3] = {0, 0, 0};
    REAL("PMPI_Type_get_envelope", handle, int *, int *, int *, int *);
    int code = real(to_host(TYPE, type), &n[0], &n[1], &n[2], combiner);
    *integers = n[0];
    *addresses = n[1];
    *counts = 0;
    *types = n[2];
#endif
    /* 0 is no combiner. */
    *combiner = PAIRED(combiners, 1, *combiner, 0);
    return abi_code(code);
}

/* Converts the constants among the integers of a type's description. */
static void convert_integers(int combiner, int *n, MPI_Count len)
{
    if (combiner == ABI_COMBINER_SUBARRAY && len > 0 && len == 3 * (MPI_Count)n[0] + 2)
        n[len - 1] = PAIRED(layouts, 1, n[len - 1], -1);
    if (combiner != ABI_COMBINER_DARRAY || len < 4 || len != 4 * (MPI_Count)n[2] + 4) return;
    for (int i = 0; i < n[2]; i++) {
        int *distribution = &n[3 + n[2] + i], *argument = &n[3 + 2 * n[2] + i];
        *distribution = PAIRED(layouts, 1, *distribution, -1);
        if (*argument == MPI_DISTRIBUTE_DFLT_DARG) *argument = ABI_DISTRIBUTE_DFLT_DARG;
    }
    n[len - 1] = PAIRED(layouts, 1, n[len - 1], -1);
}

static int host_PMPI_Type_get_contents_c(handle type, MPI_Count max_integers, MPI_Count max_addresses,
    MPI_Count max_counts, MPI_Count max_types, int *integers, MPI_Aint *addresses, MPI_Count *counts, handle *types)
{
    MPI_Count n[4];
    int combiner = 0, code = host_PMPI_Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &combiner);
    if (code != ABI_SUCCESS) return code;
    if (n[0] > max_integers || n[3] > max_types) return ABI_ERR_ARG;
    struct room r = {0};
    MPI_Datatype *found = room(&r, length(max_types) * sizeof *found);
    if (!found) return ABI_ERR_NO_MEM;
#ifdef HOST_HAS_MPI_Type_get_contents_c
    static int (*real)(handle, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *, MPI_Aint *, MPI_Count *, MPI_Datatype *);
    if (!real) real = (__typeof__(real))look("PMPI_Type_get_contents_c");
    code = real ? real(to_host(TYPE, type), max_integers, max_addresses, max_counts, max_types, integers, addresses, counts, found) : host_code(absent());
#else
    static int (*real)(handle, int, int, int, int *, MPI_Aint *, MPI_Datatype *);
    if (!real) real = (__typeof__(real))look("PMPI_Type_get_contents");
    (void)max_counts;
    (void)counts;
    code = real ? real(to_host(TYPE, type), (int)max_integers, (int)max_addresses, (int)max_types, integers, addresses, found) : host_code(absent());
#endif
    if (code == MPI_SUCCESS) {
        convert_integers(combiner, integers, n[0]);
        for (MPI_Count i = 0; i < n[3]; i++) types[i] = to_abi(TYPE, (handle)found[i]);
    }
    free(r.heap);
    return abi_code(code);
}
#endif
