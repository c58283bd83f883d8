/* A tool between the interposed library and the host, which makes calls of the host fail.
 *
 * The program sets `tool_mode`: PASS, or how the calls that complete requests fail. With -DNATIVE, external32 has the
 * byte order of the machine. With -DUNFIT, the host says that it is typepack. With -DCOUNT, the tool counts the types
 * that are freed by PMPI_Type_free, and those of them that another thread than the main one frees. With -DDEVICE, only
 * the host's packing calls can access the memory at `tool_device`. With -DLOOKS, the tool counts the looks at the
 * loaded objects.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

/* EARLY: the call does nothing and returns an error. LATE: the call does its work, and returns an error if it has
 * completed anything. PARTLY: MPI_Startall starts all requests but the last, and returns an error. CUT: MPI_Recv
 * returns MPI_ERR_TRUNCATE, with the status of the message, and writes nothing. */
enum { PASS, EARLY, LATE, PARTLY, CUT };
int tool_mode;

/* Does `call` as the mode says; `done` says whether it has completed anything. */
#define TOOL(call, done) \
    do { \
        if (tool_mode == EARLY) return MPI_ERR_OTHER; \
        int code = call; \
        return code == MPI_SUCCESS && tool_mode == LATE && (done) ? MPI_ERR_OTHER : code; \
    } while (0)

int MPI_Wait(MPI_Request *q, MPI_Status *s) { TOOL(PMPI_Wait(q, s), 1); }
int MPI_Test(MPI_Request *q, int *flag, MPI_Status *s) { TOOL(PMPI_Test(q, flag, s), *flag); }
int MPI_Waitall(int n, MPI_Request q[], MPI_Status s[]) { TOOL(PMPI_Waitall(n, q, s), 1); }
int MPI_Testall(int n, MPI_Request q[], int *flag, MPI_Status s[]) { TOOL(PMPI_Testall(n, q, flag, s), *flag); }
int MPI_Waitany(int n, MPI_Request q[], int *at, MPI_Status *s) { TOOL(PMPI_Waitany(n, q, at, s), 1); }
int MPI_Testany(int n, MPI_Request q[], int *at, int *flag, MPI_Status *s)
{
    TOOL(PMPI_Testany(n, q, at, flag, s), *flag);
}
int MPI_Waitsome(int n, MPI_Request q[], int *done, int at[], MPI_Status s[])
{
    TOOL(PMPI_Waitsome(n, q, done, at, s), 1);
}
int MPI_Testsome(int n, MPI_Request q[], int *done, int at[], MPI_Status s[])
{
    TOOL(PMPI_Testsome(n, q, done, at, s), *done > 0);
}

int MPI_Recv(void *to, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *s)
{
    static char other[1 << 16];
    if (tool_mode != CUT) return PMPI_Recv(to, n, type, source, tag, comm, s);
    PMPI_Recv(other, sizeof other, MPI_PACKED, source, tag, comm, s);
    return MPI_ERR_TRUNCATE;
}

/* The messages that MPI_Send has sent as packed bytes. */
int tool_packed;
int MPI_Send(const void *from, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    tool_packed += type == MPI_PACKED;
    return PMPI_Send(from, n, type, dest, tag, comm);
}

int MPI_Startall(int n, MPI_Request q[])
{
    if (tool_mode != PARTLY) return PMPI_Startall(n, q);
    PMPI_Startall(n - 1, q);
    return MPI_ERR_OTHER;
}

#ifdef NATIVE
int PMPI_Pack_external_c(const char *name, const void *from, MPI_Count n, MPI_Datatype type, void *to, MPI_Count size,
    MPI_Count *at)
{
    (void)name;
    return PMPI_Pack_c(from, n, type, to, size, at, MPI_COMM_SELF);
}
int PMPI_Unpack_external_c(const char *name, const void *from, MPI_Count size, MPI_Count *at, void *to, MPI_Count n,
    MPI_Datatype type)
{
    (void)name;
    return PMPI_Unpack_c(from, size, at, to, n, type, MPI_COMM_SELF);
}
int MPI_Pack_external(const char *name, const void *from, int n, MPI_Datatype type, void *to, MPI_Aint size,
    MPI_Aint *at)
{
    MPI_Count end = *at;
    int code = PMPI_Pack_external_c(name, from, n, type, to, size, &end);
    *at = (MPI_Aint)end;
    return code;
}
int MPI_Unpack_external(const char *name, const void *from, MPI_Aint size, MPI_Aint *at, void *to, int n,
    MPI_Datatype type)
{
    MPI_Count end = *at;
    int code = PMPI_Unpack_external_c(name, from, size, &end, to, n, type);
    *at = (MPI_Aint)end;
    return code;
}
#endif

#ifdef UNFIT
int PMPI_Get_library_version(char *text, int *length)
{
    const char *name = "typepack, says the tool";
    for (*length = 0; name[*length]; ++*length) text[*length] = name[*length];
    text[*length] = 0;
    return MPI_SUCCESS;
}
#endif

#ifdef COUNT
int tool_freed, tool_strangers;
int PMPI_Type_free(MPI_Datatype *type)
{
    int (*host)(MPI_Datatype *) = (int (*)(MPI_Datatype *))dlsym(RTLD_NEXT, "PMPI_Type_free");
    tool_freed++;
    tool_strangers += gettid() != getpid();
    return host(type);
}
#endif

#ifdef DEVICE
void *tool_device;
size_t tool_device_bytes;
int PMPI_Pack_c(const void *in, MPI_Count n, MPI_Datatype type, void *out, MPI_Count size, MPI_Count *at, MPI_Comm comm)
{
    __typeof__(&PMPI_Pack_c) host = (__typeof__(host))dlsym(RTLD_NEXT, "PMPI_Pack_c");
    if (tool_device) mprotect(tool_device, tool_device_bytes, PROT_READ);
    int code = host(in, n, type, out, size, at, comm);
    if (tool_device) mprotect(tool_device, tool_device_bytes, PROT_NONE);
    return code;
}
int PMPI_Unpack_c(const void *in, MPI_Count size, MPI_Count *at, void *out, MPI_Count n, MPI_Datatype type,
    MPI_Comm comm)
{
    __typeof__(&PMPI_Unpack_c) host = (__typeof__(host))dlsym(RTLD_NEXT, "PMPI_Unpack_c");
    if (tool_device) mprotect(tool_device, tool_device_bytes, PROT_READ | PROT_WRITE);
    int code = host(in, size, at, out, n, type, comm);
    if (tool_device) mprotect(tool_device, tool_device_bytes, PROT_NONE);
    return code;
}
#endif

#ifdef LOOKS
int tool_looks;
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
    __typeof__(&dl_iterate_phdr) real = (__typeof__(real))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    tool_looks++;
    return real(each, data);
}
#endif
