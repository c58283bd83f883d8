/* The hostile calls: a call, and the kinds of its arguments.

   hostile.rs writes calls.c from calls.csv. driver.c makes each call with valid arguments and with one wrong
   argument. kinds.c knows the valid and the wrong values. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <mpi.h>
#include <stdint.h>

enum { ARGUMENTS = 12, CLASSES = 8, AREA = 4096 };

/* The content of an argument register, for any type. */
typedef uintptr_t word;

/* All functions take integers and addresses. A function ignores arguments that it does not have. */
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word);

typedef struct call call;

/* Writes argument `at`: the valid value (variant 0), or a wrong one (1, 2, ...) with its label and the error
   classes that it may raise. Returns 0 if there is no such variant. */
typedef int kind(call *call, int at, int variant);

/* A row of the table for one argument. */
struct argument {
    kind *kind;
    int bytes;            /* of the C type, or of the elements of an array */
    int classes[CLASSES]; /* the error classes of a wrong value, instead of those of the kind; ends with 0 */
};

/* What a call with valid arguments does. */
enum mode {
    VALID,   /* it succeeds */
    BAD,     /* it is not made */
    VALUE,   /* the function returns no code */
    REFUSED, /* it raises the row's class */
};

struct row {
    const char *name;
    function *function;
    enum mode mode;
    int refused;
    int count;
    struct argument arguments[ARGUMENTS];
};

/* The table ends with a row without a name. */
extern const struct row rows[];

struct call {
    const struct row *row;
    word words[ARGUMENTS];
    unsigned char *areas[ARGUMENTS]; /* AREA bytes each, then an unmapped page */
    const char *label;
    int classes[CLASSES];
};

/* Makes the objects that arguments name. Called after MPI_Init. */
void make_objects(void);

/* The kinds in the table. */
#define KINDS(X)                                                                                \
    X(any) X(out) X(ignorable) X(buffer) X(packed) X(count) X(asked) X(elements) X(length) X(number) X(counts) \
    X(displs) X(types) X(anytypes) X(root) X(dest) X(source) X(tag) X(anytag) X(level) X(size)   \
    X(memory) X(errorcode) X(errorclass) X(addedcode) X(string) X(name) X(key) X(present_key) X(value)   \
    X(text_length) X(text_length_at) X(nth) X(color) X(split_type) X(ranks) X(ranges)            \
    X(blocklength) X(blocklengths) X(dimensions) X(sizes) X(starts) X(order) X(grid_size)        \
    X(grid_rank) X(distributions) X(distribution_arguments) X(grid) X(room0) X(room1) X(room3)   \
    X(digits) X(exponent) X(typeclass) X(typesize) X(room_for_one) X(position)                   \
    X(representation) X(integer) X(status) X(attached) X(attached_size) X(nodes) X(dims)         \
    X(logical_size) X(function) X(comm) X(group) X(info) X(own_info) X(hints) X(errhandler)      \
    X(type) X(anytype) X(vector) X(op) X(file) X(win) X(session) X(message) X(request)           \
    X(live_request) X(commkey) X(any_commkey) X(typekey) X(fresh_comm) X(fresh_group)            \
    X(fresh_info) X(fresh_errhandler) X(fresh_type) X(type_at) X(fresh_commkey)                  \
    X(fresh_typekey) X(request_at) X(live_request_at) X(requests) X(live_requests) X(message_at)

#define DECLARE(name) kind kind_##name;
KINDS(DECLARE)
#undef DECLARE

#endif
