/* For MPI libraries of older versions of the standard: the functions of MPI-4 that the programs of this folder call,
 * made from functions of MPI-3. Under each of its two names, a function calls the older function of the same name.
 */
#define OLDER_FUNCTION __attribute__((unused)) static int

#if MPI_VERSION < 4
#define OLDER(P) \
    OLDER_FUNCTION P##MPI_Pack_c(const void *in, MPI_Count n, MPI_Datatype type, void *out, MPI_Count size, \
        MPI_Count *at, MPI_Comm comm) \
    { \
        int narrow = (int)*at, code = P##MPI_Pack(in, (int)n, type, out, (int)size, &narrow, comm); \
        *at = narrow; \
        return code; \
    } \
    OLDER_FUNCTION P##MPI_Unpack_c(const void *in, MPI_Count size, MPI_Count *at, void *out, MPI_Count n, \
        MPI_Datatype type, MPI_Comm comm) \
    { \
        int narrow = (int)*at, code = P##MPI_Unpack(in, (int)size, &narrow, out, (int)n, type, comm); \
        *at = narrow; \
        return code; \
    } \
    OLDER_SENDS(P, Send, Isend) OLDER_SENDS(P, Ssend, Issend) OLDER_SENDS(P, Rsend, Irsend) \
    OLDER_SENDS(P, Bsend, Ibsend) \
    OLDER_FORM(P, Recv, (void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
        MPI_Status *s), (buf, (int)n, type, source, tag, comm, s)) \
    OLDER_FORM(P, Irecv, (void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
        MPI_Request *q), (buf, (int)n, type, source, tag, comm, q)) \
    OLDER_FORM(P, Recv_init, (void *buf, MPI_Count n, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
        MPI_Request *q), (buf, (int)n, type, source, tag, comm, q)) \
    OLDER_FORM(P, Mrecv, (void *buf, MPI_Count n, MPI_Datatype type, MPI_Message *m, MPI_Status *s), \
        (buf, (int)n, type, m, s)) \
    OLDER_FORM(P, Imrecv, (void *buf, MPI_Count n, MPI_Datatype type, MPI_Message *m, MPI_Request *q), \
        (buf, (int)n, type, m, q)) \
    OLDER_FORM(P, Sendrecv, (const void *out, MPI_Count n, MPI_Datatype from, int dest, int there, void *in, \
        MPI_Count m, MPI_Datatype to, int source, int here, MPI_Comm comm, MPI_Status *s), \
        (out, (int)n, from, dest, there, in, (int)m, to, source, here, comm, s)) \
    OLDER_FORM(P, Isendrecv, (const void *out, MPI_Count n, MPI_Datatype from, int dest, int there, void *in, \
        MPI_Count m, MPI_Datatype to, int source, int here, MPI_Comm comm, MPI_Request *q), \
        (out, (int)n, from, dest, there, in, (int)m, to, source, here, comm, q)) \
    OLDER_FORM(P, Sendrecv_replace, (void *buf, MPI_Count n, MPI_Datatype type, int dest, int there, int source, \
        int here, MPI_Comm comm, MPI_Status *s), (buf, (int)n, type, dest, there, source, here, comm, s))
/* The form of a function with large counts. */
#define OLDER_FORM(P, f, parameters, arguments) \
    OLDER_FUNCTION P##MPI_##f##_c parameters { return P##MPI_##f arguments; }
#define OLDER_SENDS(P, now, later) \
    OLDER_FORM(P, now, (const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
        (buf, (int)n, type, dest, tag, comm)) \
    OLDER_FORM(P, later, (const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
        MPI_Request *q), (buf, (int)n, type, dest, tag, comm, q)) \
    OLDER_FORM(P, now##_init, (const void *buf, MPI_Count n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
        MPI_Request *q), (buf, (int)n, type, dest, tag, comm, q))
OLDER(P)
OLDER()

#define PMPI_Type_get_extent_c PMPI_Type_get_extent_x
#define PMPI_Type_get_true_extent_c PMPI_Type_get_true_extent_x
#define MPI_Type_get_extent_c MPI_Type_get_extent_x
#define MPI_Type_get_true_extent_c MPI_Type_get_true_extent_x
#define PMPI_Type_create_resized_c PMPI_Type_create_resized
#define PMPI_Type_vector_c PMPI_Type_vector

OLDER_FUNCTION PMPI_Type_create_hindexed_c(MPI_Count n, const MPI_Count *lengths, const MPI_Count *places,
    MPI_Datatype inner, MPI_Datatype *made)
{
    int narrow[64];
    MPI_Aint bytes[64];
    for (int i = 0; i < n; i++) narrow[i] = (int)lengths[i], bytes[i] = (MPI_Aint)places[i];
    return PMPI_Type_create_hindexed((int)n, narrow, bytes, inner, made);
}

OLDER_FUNCTION PMPI_Type_create_subarray_c(int n, const MPI_Count *sizes, const MPI_Count *subsizes, 
    const MPI_Count *starts, int order, MPI_Datatype inner, MPI_Datatype *made)
{
    int narrow[3][8];
    for (int i = 0; i < n; i++)
        narrow[0][i] = (int)sizes[i], narrow[1][i] = (int)subsizes[i], narrow[2][i] = (int)starts[i];
    return PMPI_Type_create_subarray(n, narrow[0], narrow[1], narrow[2], order, inner, made);
}

OLDER_FUNCTION PMPI_Pack_size_c(MPI_Count n, MPI_Datatype type, MPI_Comm comm, MPI_Count *size)
{
    int narrow = 0, code = PMPI_Pack_size((int)n, type, comm, &narrow);
    *size = narrow;
    return code;
}
#endif

#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
#define OLDER_STATUS(P) \
    OLDER_FUNCTION P##MPI_Request_get_status_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses) \
    { \
        *flag = 1; \
        for (int i = 0; i < n && *flag; i++) \
            P##MPI_Request_get_status(requests[i], flag, \
                statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]); \
        return MPI_SUCCESS; \
    } \
    OLDER_FUNCTION P##MPI_Request_get_status_any(int n, MPI_Request *requests, int *index, int *flag, \
        MPI_Status *status) \
    { \
        *flag = 0; \
        for (int i = 0; i < n && !*flag; i++) \
            if (requests[i] != MPI_REQUEST_NULL) P##MPI_Request_get_status(requests[*index = i], flag, status); \
        return MPI_SUCCESS; \
    } \
    OLDER_FUNCTION P##MPI_Request_get_status_some(int n, MPI_Request *requests, int *done, int *indices, \
        MPI_Status *statuses) \
    { \
        *done = 0; \
        for (int i = 0; i < n; i++) { \
            int flag = 0; \
            if (requests[i] == MPI_REQUEST_NULL) continue; \
            P##MPI_Request_get_status(requests[i], &flag, \
                statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[*done]); \
            if (flag) indices[(*done)++] = i; \
        } \
        return MPI_SUCCESS; \
    }
OLDER_STATUS(P)
OLDER_STATUS()
#endif
