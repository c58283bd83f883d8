/* Random datatypes, memory for their elements, and comparisons: what the programs of this folder share.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "older.h"

/* Intel MPI 2021.18 has another value for this handler than the standard. */
#ifndef ERRORS_RETURN
#define ERRORS_RETURN MPI_ERRORS_RETURN
#endif

/* u is 1 for the interposed function and 0 for the host's own. */
#define CALL(u, f) ((u) ? MPI_##f : PMPI_##f)

static int rank, failures;
static long pair_number;
static const char *doing = "";

/* Numbers that look random and are the same on both ranks. */
static uint64_t state;
static uint64_t random_bits(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static int below(int n) { return (int)(random_bits() % (uint64_t)n); }

static void fail(const char *what, long expected, long found)
{
    if (failures++ < 20) {
        printf("rank %d, pair %ld: %s: %s: expected %ld, found %ld\n", rank, pair_number, doing, what, expected, found);
        fflush(stdout);
    }
}
static void same(const char *what, long expected, long found)
{
    if (expected != found) fail(what, expected, found);
}
#define OK(call) same(#call, MPI_SUCCESS, (call))

/* ---- random types ---- */

#define BASICS 7
static MPI_Datatype basic(int which)
{
    switch (which) {
    case 0: return MPI_BYTE;
    case 1: return MPI_SHORT;
    case 2: return MPI_INT;
    case 3: return MPI_DOUBLE;
    case 4: return MPI_FLOAT;
    case 5: return MPI_INT64_T;
    default: return MPI_DOUBLE_INT;
    }
}

static void bounds(MPI_Datatype type, MPI_Count *lb, MPI_Count *extent, MPI_Count *true_lb, MPI_Count *true_extent)
{
    PMPI_Type_get_extent_c(type, lb, extent);
    PMPI_Type_get_true_extent_c(type, true_lb, true_extent);
}

/* Replaces a type by one with other bounds. All data lie between the bounds, so elements never overlap each other. */
static void pad(MPI_Datatype *type)
{
    MPI_Count lb, extent, true_lb, true_extent;
    MPI_Datatype made;
    bounds(*type, &lb, &extent, &true_lb, &true_extent);
    PMPI_Type_create_resized_c(*type, true_lb - below(3), true_extent + 2 + below(20), &made);
    PMPI_Type_free(type);
    *type = made;
}

static MPI_Datatype make(const int *signature, int length, int depth);

/* A type of `times` elements of `inner`, which it frees. */
static MPI_Datatype repeat(MPI_Datatype inner, int times)
{
    MPI_Count lb, extent, true_lb, true_extent;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int lengths[64], places[64], block = 1, n;
    MPI_Aint bytes[64];
    MPI_Count wide[64], wide_lengths[64];
    for (int b = 2; b <= times && b <= 8; b++)
        if (times % b == 0 && below(2)) block = b;
    n = times / block;
    bounds(inner, &lb, &extent, &true_lb, &true_extent);
    int step = block + below(4), sign = below(4) ? 1 : -1;
    if (n > 60) n = -1;
    int shuffle = below(2);
    for (int i = 0; i < n; i++) {
        int at = shuffle ? (i % 2 ? i - 1 : (i + 1 < n ? i + 1 : i)) : i;
        lengths[i] = block;
        wide_lengths[i] = block;
        places[i] = sign * at * step + below(2);
        if (places[i] != sign * at * step) places[i] = sign * at * step; /* keeps the draws equal for both layouts */
        bytes[i] = (MPI_Aint)(places[i] * extent);
        wide[i] = places[i] * extent;
    }
    int order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int sizes[2] = {times + below(5), 1 + below(3)}, subsizes[2] = {times, 1}, starts[2];
    starts[0] = below(sizes[0] - times + 1);
    starts[1] = below(sizes[1]);
    switch (n < 0 ? below(4) : below(12)) {
    case 0: PMPI_Type_contiguous(times, inner, &made); break;
    case 1: PMPI_Type_vector(times / block, block, sign * step, inner, &made); break;
    case 2: PMPI_Type_create_hvector(times / block, block, (MPI_Aint)(sign * step * extent), inner, &made); break;
    case 3: PMPI_Type_create_subarray(2, sizes, subsizes, starts, order, inner, &made); break;
    case 4: PMPI_Type_indexed(n, lengths, places, inner, &made); break;
    case 5: PMPI_Type_create_hindexed(n, lengths, bytes, inner, &made); break;
    case 6: PMPI_Type_create_indexed_block(n, block, places, inner, &made); break;
    case 7: PMPI_Type_create_hindexed_block(n, block, bytes, inner, &made); break;
    case 8: PMPI_Type_vector_c(n, block, sign * step, inner, &made); break;
    case 9: PMPI_Type_create_hindexed_c(n, wide_lengths, wide, inner, &made); break;
    case 10: {
        int gsizes[1] = {times}, distribs[1] = {MPI_DISTRIBUTE_BLOCK}, dargs[1] = {MPI_DISTRIBUTE_DFLT_DARG},
            psizes[1] = {1};
        PMPI_Type_create_darray(1, 0, 1, gsizes, distribs, dargs, psizes, order, inner, &made);
        break;
    }
    default: {
        MPI_Count gsizes[2] = {sizes[0], sizes[1]}, gsub[2] = {times, 1}, gstarts[2] = {starts[0], starts[1]};
        PMPI_Type_create_subarray_c(2, gsizes, gsub, gstarts, order, inner, &made);
    }
    }
    PMPI_Type_free(&inner);
    return made;
}

/* A struct of parts, in any order in memory. */
static MPI_Datatype join(const int *signature, int length, int depth)
{
    MPI_Datatype parts[4], made;
    int lengths[4], n = 2 + below(length > 3 ? 3 : 1), order[4] = {0, 1, 2, 3}, done = 0;
    MPI_Aint places[4];
    for (int i = 0; i < n; i++) {
        int left = n - i, take = i == n - 1 ? length - done : 1 + below(length - done - left + 1);
        parts[i] = make(signature + done, take, depth + 1);
        lengths[i] = 1;
        done += take;
    }
    for (int i = n - 1; i > 0; i--) {
        int other = below(i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    MPI_Aint at = below(40) - 20;
    for (int i = 0; i < n; i++) {
        MPI_Count lb, extent, true_lb, true_extent;
        bounds(parts[order[i]], &lb, &extent, &true_lb, &true_extent);
        places[order[i]] = at - (MPI_Aint)true_lb;
        at += (MPI_Aint)true_extent + (below(2) ? 0 : below(17));
    }
    PMPI_Type_create_struct(n, lengths, places, parts, &made);
    for (int i = 0; i < n; i++) PMPI_Type_free(&parts[i]);
    return made;
}

static MPI_Datatype make(const int *signature, int length, int depth)
{
    MPI_Datatype made;
    int period = length;
    for (int p = 1; p < length; p++) {
        int is = length % p == 0;
        for (int i = p; is && i < length; i++) is = signature[i] == signature[i - p];
        if (is) {
            period = p;
            break;
        }
    }
    if (length == 1) {
        PMPI_Type_contiguous(1, basic(signature[0]), &made);
    } else if (period < length && (depth > 4 || below(5))) {
        made = repeat(make(signature, period, depth + 1), length / period);
    } else {
        made = join(signature, length, depth);
    }
    MPI_Count lb, extent, true_lb, true_extent;
    bounds(made, &lb, &extent, &true_lb, &true_extent);
    int is_outside = lb > true_lb || lb + extent < true_lb + true_extent;
    if (below(3) == 0 || is_outside) pad(&made);
    if (below(9) == 0) {
        MPI_Datatype twin;
        PMPI_Type_dup(made, &twin);
        PMPI_Type_free(&made);
        made = twin;
    }
    return made;
}

/* ---- memory for elements ---- */

struct memory {
    unsigned char *base;
    size_t size;
    char *origin;
};

static struct memory memory_for(MPI_Datatype type, int count, unsigned fill)
{
    MPI_Count lb, extent, true_lb, true_extent, low, high;
    bounds(type, &lb, &extent, &true_lb, &true_extent);
    low = true_lb + (extent < 0 ? (count - 1) * extent : 0);
    high = true_lb + true_extent + (extent > 0 ? (count - 1) * extent : 0);
    struct memory m;
    m.size = (size_t)(high - low) + 64;
    m.base = malloc(m.size);
    m.origin = (char *)m.base + 32 - low;
    for (size_t i = 0; i < m.size; i++)
        m.base[i] = fill < 256 ? (unsigned char)fill : (unsigned char)(i * 2654435761u >> 13);
    return m;
}

static void same_memory(const char *what, struct memory *a, struct memory *b)
{
    for (size_t i = 0; i < a->size; i++)
        if (a->base[i] != b->base[i]) {
            fail(what, a->base[i], b->base[i]);
            printf("    at byte %zu of %zu\n", i, a->size);
            return;
        }
}
