/* Makes every call of the table `rows`, first with valid arguments, then with one wrong argument at a
   time. A call with a wrong argument must return an error of the right class and write nothing. Each
   function is tested in a child process, so that the driver can report the function and the argument if
   the child crashes or hangs.

   usage: driver [FUNCTION]...   (without an argument: all functions) */
#define _GNU_SOURCE
#include "hostile.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 240 };

/* Memory that the driver shares with its children. A child writes here which call it makes next, and the
   driver reads this if the child has died. */
static struct {
    char text[256];
    long calls, failures;
} *place;

static void complain(const call *call, int at, const char *what)
{
    fprintf(stderr, "%s: argument %d (%s): %s\n", call->row->name, at + 1, call->label, what);
    place->failures++;
}

/* Returns AREA bytes of memory. An unmapped page follows them, so that an access beyond their end crashes. */
static unsigned char *guarded(void)
{
    unsigned char *pages =
        mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + AREA, AREA, PROT_NONE) != 0) abort();
    return pages;
}

static const char *class_name(int class)
{
    static char text[MPI_MAX_ERROR_STRING];
    int length;
    if (MPI_Error_string(class, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "?");
    return text;
}

/* Writes the arguments of a call. All are valid if `variant` is 0; otherwise argument `at` has the wrong
   value with this number. Returns 0 if the argument has no such wrong value. */
static int arrange(call *call, int at, int variant)
{
    call->label = "valid";
    call->classes[0] = 0;
    for (int i = 0; i < call->row->count; i++) {
        memset(call->areas[i], 0xab, AREA);
        call->words[i] = 0;
        call->row->arguments[i].kind(call, i, 0);
    }
    if (variant == 0) return 1;
    const struct argument *argument = &call->row->arguments[at];
    if (!argument->kind(call, at, variant)) return 0;
    if (argument->classes[0] != 0)
        memcpy(call->classes, argument->classes, sizeof call->classes);
    return 1;
}

static int make(const call *call)
{
    const word *w = call->words;
    place->calls++;
    return (int)call->row->function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9],
                                    w[10], w[11], w[12]);
}

/* Makes a call whose argument `at` has the wrong value number `variant`, and checks the result. Returns 0
   if the argument has no such wrong value. */
static int hostile_call(call *call, int at, int variant)
{
    static unsigned char before[ARGUMENTS][AREA];
    if (!arrange(call, at, variant)) return 0;
    int count = call->row->count;
    for (int i = 0; i < count; i++) memcpy(before[i], call->areas[i], AREA);
    snprintf(place->text, sizeof place->text, "%s: argument %d (%s)", call->row->name, at + 1,
             call->label);
    forget_handlers();
    int code = make(call), class = code;
    if (call->row->mode == VALUE) return 1;
    const char *wrong = call->row->handler ? wrong_handler(call->row->handler, code) : NULL;
    if (wrong != NULL) complain(call, at, wrong);
    MPI_Error_class(code, &class);
    int right = 0;
    for (int i = 0; i < CLASSES && call->classes[i] != 0; i++)
        right |= call->classes[i] == class || call->classes[i] == code;
    if (!right) complain(call, at, class_name(code));
    for (int i = 0; i < count; i++)
        if (memcmp(before[i], call->areas[i], AREA) != 0) {
            char text[64];
            snprintf(text, sizeof text, "argument %d was written", i + 1);
            complain(call, at, text);
        }
    return 1;
}

static void valid_call(call *call)
{
    arrange(call, 0, 0);
    snprintf(place->text, sizeof place->text, "%s with valid arguments", call->row->name);
    if (call->row->mode == BAD) return;
    int code = make(call), class = -1;
    if (call->row->mode == VALUE) return;
    MPI_Error_class(code, &class);
    int wanted = call->row->mode == REFUSED ? call->row->refused : MPI_SUCCESS;
    if (class != wanted) complain(call, -1, class_name(code));
}

/* Checks that the process still works: it can make and use a datatype, can send a message, and has no
   message that nobody sent. */
static void still_works(const call *call)
{
    int in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0}, flag = 1, bad = 0;
    MPI_Datatype type;
    bad |= MPI_Type_vector(4, 1, 2, MPI_INT, &type) != MPI_SUCCESS;
    bad |= MPI_Type_commit(&type) != MPI_SUCCESS;
    bad |= MPI_Sendrecv(in, 1, type, 0, 3, out, 4, MPI_INT, 0, 3, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE) != MPI_SUCCESS;
    bad |= MPI_Type_free(&type) != MPI_SUCCESS;
    bad |= out[0] != 1 || out[1] != 3 || out[2] != 5 || out[3] != 7 || out[4] != 0;
    bad |= MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE) !=
           MPI_SUCCESS;
    if (bad || flag) complain(call, -1, "the process does not work any more");
}

/* Returns the largest resident size of this process so far, in kilobytes. */
static long peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void limit_memory(void)
{
#ifndef UNLIMITED_MEMORY
    /* The process may map one more gigabyte of memory. If the library trusted a wrong length, it would need more. */
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld", &pages) != 1) abort();
    fclose(file);
    struct rlimit limit = {(rlim_t)pages * 4096 + (1ul << 30), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) abort();
#endif
}

static void child(const struct row *row)
{
    call call = {.row = row};
    signal(SIGALRM, SIG_DFL);
    alarm(SECONDS);
    for (int i = 0; i < ARGUMENTS; i++) call.areas[i] = guarded();
    snprintf(place->text, sizeof place->text, "%s: before it", row->name);
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) exit(1);
    set_handlers();
    make_objects();
    limit_memory();
    valid_call(&call);
    long before = peak();
    for (int at = 0; at < row->count; at++)
        for (int variant = 1; hostile_call(&call, at, variant); variant++) {}
    if (peak() - before > 256 << 10) complain(&call, -1, "more than 256 MiB were used");
    valid_call(&call);
    still_works(&call);
    snprintf(place->text, sizeof place->text, "%s: after it", row->name);
    if (row->mode != VALUE && row->mode != REFUSED) {
        /* If a valid call had left a pending request, MPI_Finalize would wait for it, and the driver would
           report a hang. */
        if (MPI_Finalize() != MPI_SUCCESS) complain(&call, -1, "MPI_Finalize failed");
    }
    fflush(stderr);
    _exit(0);
}

/* Tests one function in a child process. Returns 0 if all checks hold. */
static int run(const struct row *row)
{
    long failures = place->failures;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) child(row);
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) abort();
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: %s\n", place->text,
                WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        fprintf(stderr, "%s: exit code %d\n", place->text, WEXITSTATUS(status));
    return status != 0 || place->failures != failures;
}

int main(int argc, char **argv)
{
    place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return 1;
    int wrong = 0, functions = 0;
    for (const struct row *row = rows; row->name != NULL; row++) {
        int asked = argc == 1;
        for (int i = 1; i < argc; i++) asked |= strcmp(argv[i], row->name) == 0;
        if (!asked) continue;
        functions++;
        wrong += run(row);
    }
    printf("%d functions, %ld calls, %d functions failed\n", functions, place->calls, wrong);
    return wrong != 0 || functions == 0;
}
