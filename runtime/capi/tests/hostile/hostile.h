/* Types for the hostile calls: a call, its row in the table, and the kinds of its arguments.

   hostile.rs generates calls.c, which has the table, from calls.csv. driver.c makes each call with valid
   arguments and with one wrong argument at a time. kinds.c has the valid and the wrong values. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { ARGUMENTS = 13, CLASSES = 8, AREA = 4096 };

/* The content of an argument register, for any type. */
typedef uintptr_t word;

/* All functions take only integers and addresses, so each can be called as a function of thirteen words. A
   function ignores the words after its own arguments. */
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word, word);

typedef struct call call;

/* The type of a function that writes argument `at` of a call. Variant 0 is the valid value. Variants 1, 2,
   ... are wrong values, each with a label and the error classes that the call may return. The function
   returns 0 if there is no such variant. */
typedef int kind(call *call, int at, int variant);

/* The part of a row of the table that describes one argument. */
struct argument {
    kind *kind;
    int bytes;            /* the size of an integer or of an array's integers */
    int classes[CLASSES]; /* error classes of a wrong value; if empty, those of the kind; ends with 0 */
};

/* What a call with valid arguments does. */
enum mode {
    VALID,   /* the call succeeds */
    BAD,     /* the driver does not make this call */
    VALUE,   /* the function returns no code */
    REFUSED, /* the call returns the error class `refused` of the row */
};

struct row {
    const char *name;
    function *function;
    enum mode mode;
    int refused;
    int collective;      /* whether MPI_IN_PLACE may be a buffer */
    const char *handler; /* the error handler that the call must call (handlers.csv); NULL if any */
    int count;
    struct argument arguments[ARGUMENTS];
};

/* The table in calls.c. It ends with a row without a name. */
extern const struct row rows[];

struct call {
    const struct row *row;
    word words[ARGUMENTS];
    unsigned char *areas[ARGUMENTS]; /* AREA bytes for each argument, then an unmapped page */
    const char *label;
    int classes[CLASSES];
};

/* Sets error handlers on MPI_COMM_SELF, MPI_COMM_WORLD and MPI_FILE_NULL that record how often they are called. */
void set_handlers(void);

/* Forgets the calls of error handlers so far. */
void forget_handlers(void);

/* Returns what is wrong with the error handlers that have been called since `forget_handlers`; NULL if the handler
   of the row of handlers.csv has been called once with this code. */
const char *wrong_handler(const char *wanted, int code);

/* Makes the objects whose handles are arguments of the calls. The driver calls this after MPI_Init. */
void make_objects(void);

/* All kinds of arguments in calls.csv. */
#define KINDS(X)                                                                                \
    X(any) X(out) X(ignorable) X(buffer) X(packed) X(count) X(asked) X(elements) X(length) X(number) X(counts) \
    X(displs) X(types) X(anytypes) X(root) X(dest) X(source) X(tag) X(anytag) X(level) X(size)   \
    X(memory) X(errorcode) X(errorclass) X(addedcode) X(string) X(name) X(key) X(present_key) X(value)   \
    X(partitions) X(maxprocs) X(commands) X(command_list) X(infos) X(most) X(port)               \
    X(text_length) X(text_length_at) X(nth) X(color) X(split_type) X(ranks) X(ranges)            \
    X(blocklength) X(blocklengths) X(dimensions) X(sizes) X(starts) X(order) X(grid_size)        \
    X(grid_rank) X(distributions) X(distribution_arguments) X(grid) X(cartesian_grid) X(room0) X(room1) X(room3)   \
    X(digits) X(exponent) X(typeclass) X(typesize) X(room_for_one) X(position)                   \
    X(representation) X(integer) X(status) X(attached) X(attached_size) X(nodes) X(dims)         \
    X(logical_size) X(function) X(comm) X(group) X(info) X(own_info) X(hints) X(errhandler)      \
    X(type) X(anytype) X(vector) X(op) X(anyop) X(file) X(file_at) X(filename) X(win) X(win_op) X(fresh_win) X(fresh_winkey) X(winkey) X(any_winkey) X(unit) X(window_size) \
    X(target_disp) X(target_count) X(lock_type) X(assertion) X(session) X(message) X(request)           \
    X(live_request) X(commkey) X(any_commkey) X(typekey) X(fresh_comm) X(fresh_group)            \
    X(fresh_info) X(fresh_errhandler) X(fresh_op) X(fresh_type) X(type_at) X(fresh_commkey)                  \
    X(grid_comm) X(graph_comm) X(dist_comm) X(maxdims) X(direction) X(index) X(weights) X(max_edges) \
    X(fresh_typekey) X(fresh_session) X(set) X(set_number) X(request_at) X(live_request_at) X(requests) X(live_requests) X(message_at)

#define DECLARE(name) kind kind_##name;
KINDS(DECLARE)
#undef DECLARE

#endif
