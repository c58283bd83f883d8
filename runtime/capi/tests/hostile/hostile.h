/* The hostile calls: a call in the making, and the kinds of arguments that it is made of.

   hostile.rs writes calls.c from calls.csv; driver.c makes each call with valid arguments and with one
   that is wrong; kinds.c knows what is valid and what is wrong. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <mpi.h>
#include <stdint.h>

enum { ARGUMENTS = 12, CLASSES = 8, AREA = 4096 };

/* What an argument register holds, whatever its type. */
typedef uintptr_t word;

/* All functions of the face take integers and addresses; what is too much is not looked at. */
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word);

typedef struct call call;

/* Writes argument `at`: the valid value (variant 0), or one that is wrong (1, 2, ...), with its label
   and the classes that it may raise. 0 when there is no such variant. */
typedef int kind(call *call, int at, int variant);

/* What the table says of an argument. */
struct argument {
    kind *kind;
    int bytes;            /* of the C type, or of an array's elements */
    int classes[CLASSES]; /* that a wrong value raises, instead of the kind's; ends with 0 */
};

/* How a call with valid arguments is taken. */
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

/* Ends with a row without a name. */
extern const struct row rows[];

struct call {
    const struct row *row;
    word words[ARGUMENTS];
    unsigned char *areas[ARGUMENTS]; /* AREA bytes each, then nothing */
    const char *label;
    int classes[CLASSES];
};

/* Makes the objects that arguments name; after MPI_Init. */
void make_objects(void);

/* The kinds that the table has. */
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
