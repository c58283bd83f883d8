/* What the programs about the tool interface share. */
#ifndef TOOLS_H
#define TOOLS_H

#include "check.h"

/* Checks that a call of the tool interface returns `wanted`. */
#define T(wanted, call)                                                                       \
    do {                                                                                      \
        int code_ = (call);                                                                   \
        if (code_ != (wanted)) {                                                              \
            fprintf(stderr, "%s:%d: code %d, not %s: %s\n", __FILE__, __LINE__, code_, #wanted, #call); \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

#define DONE(call) T(MPI_SUCCESS, call)

typedef unsigned long long whole;

static inline int setting(const char *name)
{
    int at = -1;
    DONE(MPI_T_cvar_get_index(name, &at));
    return at;
}

static inline MPI_T_cvar_handle open_setting(const char *name)
{
    MPI_T_cvar_handle handle;
    int count = 0;
    DONE(MPI_T_cvar_handle_alloc(setting(name), NULL, &handle, &count));
    CHECK(handle != MPI_T_CVAR_HANDLE_NULL && count >= 1);
    return handle;
}

static inline int counter_of(const char *name, int class)
{
    int at = -1;
    DONE(MPI_T_pvar_get_index(name, class, &at));
    return at;
}

struct open {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

static inline struct open open_counter(MPI_T_pvar_session session, const char *name, int class, void *object)
{
    struct open open = {session, MPI_T_PVAR_HANDLE_NULL};
    int count = 0;
    DONE(MPI_T_pvar_handle_alloc(session, counter_of(name, class), object, &open.handle, &count));
    CHECK(open.handle != MPI_T_PVAR_HANDLE_NULL && count == 1);
    return open;
}

static inline whole value_of(struct open open)
{
    whole value = 77;
    DONE(MPI_T_pvar_read(open.session, open.handle, &value));
    return value;
}

#endif
