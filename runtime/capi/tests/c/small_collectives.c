/* Counts the allocations and the system calls of two ranks in small collective calls. Once the ranks have made some
   calls, there must be none while both ranks are busy.

   A rank whose partner does not run would sleep after some time, and the partner would wake the rank. So the caller lets
   the ranks spin for minutes (TYPEPACK_SPIN_US): then no rank sleeps, however late its partner gets the CPU.

   The kernel tells the program about each system call (Syscall User Dispatch). Where the kernel cannot do that, the
   program counts only the allocations and says so. */
#define _GNU_SOURCE
#include "allocating.h"
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { WARM = 100, COUNTED = 500, LONGEST = 1024, SIZE = 2 };

/* ---- system calls ---- */

/* While `stops` is 1, the kernel sends a signal instead of making a system call. */
static volatile char stops;
static volatile long waits, others, last_other;
static int clock_needs_calls;

/* Counts a system call and lets this rank repeat it. Up to the end of the collective call, further system calls do not
   count. */
static void stopped(int number, siginfo_t *info, void *context)
{
    (void)number;
    stops = 0;
    long call = info->si_syscall;
    /* A rank that is about to sleep may first execute a fence in the other ranks. */
    if (call == SYS_futex || call == SYS_sched_yield || call == SYS_membarrier) {
        waits++;
    } else if (call == SYS_gettid) {
        /* The first long wait of a thread: the rank tells mpiexec which thread waits. */
    } else if (call != SYS_clock_gettime || !clock_needs_calls) {
        others++;
        last_other = call;
    }
#ifdef __x86_64__
    /* The kernel has restored the registers of the system call. Its instruction has two bytes. */
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] -= 2;
#else
    (void)context;
#endif
}

/* Returns whether the kernel tells this thread about its system calls. */
static int watch(void)
{
#ifdef __x86_64__
    enum { SET_DISPATCH = 59, ON = 1 }; /* PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON */
    struct sigaction action = {.sa_sigaction = stopped, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    return prctl(SET_DISPATCH, ON, 0, 0, &stops) == 0;
#else
    return 0;
#endif
}

/* Checks that system calls are seen, and finds out whether the machine has a clock that needs none. */
static void try_out(void)
{
    struct timespec now;
    clock_needs_calls = 0;
    stops = 1;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    stops = 0;
    clock_needs_calls = others > 0;
    others = 0, stops = 1;
    CHECK(syscall(SYS_getppid) == getppid());
    stops = 0;
    CHECK(others == 1 && last_other == SYS_getppid);
    waits = others = 0;
}

/* ---- the calls ---- */

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, GATHER, ALLGATHER, ALLTOALL, KINDS };
static const char *const names[KINDS] = {"barrier", "bcast", "reduce", "allreduce", "scan", "gather", "allgather",
                                         "alltoall"};

static int rank;
static _Alignas(64) char out[SIZE * LONGEST], in[SIZE * LONGEST];

/* Checks that a call succeeds. OK asks for the class of the code, which allocates. */
#define DONE(call) CHECK((call) == MPI_SUCCESS)

static void make(enum kind kind, int count, MPI_Datatype type, int root)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (kind) {
    case BARRIER: DONE(MPI_Barrier(comm)); break;
    case BCAST: DONE(MPI_Bcast(rank == root ? out : in, count, type, root, comm)); break;
    case REDUCE: DONE(MPI_Reduce(out, in, count, type, MPI_SUM, root, comm)); break;
    case ALLREDUCE: DONE(MPI_Allreduce(out, in, count, type, MPI_SUM, comm)); break;
    case SCAN: DONE(MPI_Scan(out, in, count, type, MPI_SUM, comm)); break;
    case GATHER: DONE(MPI_Gather(out, count, type, in, count, type, root, comm)); break;
    case ALLGATHER: DONE(MPI_Allgather(out, count, type, in, count, type, comm)); break;
    default: DONE(MPI_Alltoall(out, count, type, in, count, type, comm));
    }
}

static void put(char *memory, long i, MPI_Datatype type, int value)
{
    if (type == MPI_DOUBLE) ((double *)memory)[i] = value;
    else ((int *)memory)[i] = value;
}

static int get(const char *memory, long i, MPI_Datatype type)
{
    return type == MPI_DOUBLE ? (int)((const double *)memory)[i] : ((const int *)memory)[i];
}

/* The value that a rank passes in place `i`. */
static int passed(int from, long i)
{
    return 1000 * (from + 1) + (int)i;
}

static void fill(int count, MPI_Datatype type)
{
    for (long i = 0; i < (long)SIZE * count; i++) put(out, i, type, passed(rank, i)), put(in, i, type, -1);
}

/* Checks what the calls have left in the receive buffer. */
static void verify(enum kind kind, int count, MPI_Datatype type, int root)
{
    for (long i = 0; i < (long)SIZE * count; i++) {
        int wanted = -1, from = (int)(i / count), is_first = i < count, sum = passed(0, i) + passed(1, i);
        switch (kind) {
        case BCAST: if (is_first && rank != root) wanted = passed(root, i); break;
        case REDUCE: if (is_first && rank == root) wanted = sum; break;
        case ALLREDUCE: if (is_first) wanted = sum; break;
        case SCAN: if (is_first) wanted = rank == 0 ? passed(0, i) : sum; break;
        case GATHER: if (rank == root) wanted = passed(from, i % count); break;
        case ALLGATHER: wanted = passed(from, i % count); break;
        case ALLTOALL: wanted = passed(from, (long)rank * count + i % count); break;
        default: break;
        }
        CHECK(get(in, i, type) == wanted);
    }
}

/* ---- one case ---- */

/* Makes the calls of a case, and returns whether all counts are as they must be. */
static int count_calls(enum kind kind, int bytes, MPI_Datatype type, int root, int watched)
{
    int size;
    OK(MPI_Type_size(type, &size));
    int count = kind == BARRIER ? 0 : bytes / size;
    fill(count, type);
    for (int i = 0; i < WARM; i++) make(kind, count, type, root);
    DONE(MPI_Barrier(MPI_COMM_WORLD));
    waits = others = 0;
    begin_to_count_allocations();
    for (int i = 0; i < COUNTED; i++) {
        stops = (char)watched;
        make(kind, count, type, root);
        stops = 0;
    }
    long allocated = end_of_counted_allocations();
    verify(kind, count, type, root);
    if (!allocated && !others && !waits) return 1;
    fprintf(stderr, "rank %d: %ld allocations, %ld sleeps and wake-ups, %ld other system calls (the last is number %ld) in "
            "%d calls of %s, %d bytes, root %d\n", rank, allocated, waits, others, last_other, COUNTED, names[kind], bytes,
            root);
    return 0;
}

int main(int argc, char **argv)
{
    int size, failed = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size == SIZE);
    cpu_set_t cpus;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    int watched = watch(), all, place = sched_getcpu(), places[SIZE];
    OK(MPI_Allgather(&place, 1, MPI_INT, places, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&watched, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (watched) try_out();
    if (!all && rank == 0) printf("SKIPPED: the kernel does not tell a program about its system calls\n");
    /* Ranks that share a CPU must wait. */
    if (all && places[0] == places[1] && CPU_COUNT(&cpus) == 1) {
        if (rank == 0) printf("SKIPPED: the ranks share a CPU, so they must wait for each other\n");
        all = 0;
    }
    for (enum kind kind = 0; kind < KINDS; kind++) {
        int roots = kind == BCAST || kind == REDUCE || kind == GATHER ? SIZE : 1;
        for (int bytes = 8; bytes <= (kind == BARRIER ? 8 : LONGEST); bytes *= LONGEST / 8)
            for (int which = 0; which < 2; which++)
                for (int root = 0; root < roots; root++)
                    failed |= !count_calls(kind, bytes, which ? MPI_INT : MPI_DOUBLE, root, all);
    }
    check_that_allocations_come_here();
    OK(MPI_Finalize());
    return failed;
}
