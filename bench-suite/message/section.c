/* What the rows of sections do in Fortran (section.f90). Only libraries with a Fortran wrapper have this part: it is
 * compiled with BENCH_FORTRAN. */
#include "bench.h"

#ifdef BENCH_FORTRAN

void section_open(double *out, double *in, double *packed, int dimensions, const int extents[3], const int first[3],
                  const int last[3], const int step[3], int partner);

void section_of(const struct layout *layout, char *out, char *in, char *packed, int partner)
{
  int extents[3] = {1, 1, 1}, first[3] = {1, 1, 1}, last[3] = {1, 1, 1}, step[3] = {1, 1, 1}, dimensions = 1;
  int count = (int)layout->times[2], stride = (int)layout->stride[2] / 8, block = (int)layout->length[0] / 8;
  if (layout->pieces != 1 || layout->length[0] % 8 != 0 || layout->stride[2] % 8 != 0)
    die("only a layout of doubles can be a section");
  if (layout->times[0] * layout->times[1] > 1) {
    /* The layer of a cube. The innermost dimension of C is the first one of Fortran. */
    dimensions = 3;
    for (int i = 0; i < 3; i++) {
      int of = 2 - i, inner = (int)layout->times[of];
      extents[i] = of > 0 ? (int)(layout->stride[of - 1] / layout->stride[of]) : (int)layout->times[0] + 2;
      first[i] = 2;
      last[i] = first[i] + inner - 1;
    }
  } else if (count == 1) {
    /* The row is about contiguous bytes. */
    dimensions = 0;
    extents[0] = last[0] = block;
  } else if (block == 1) {
    extents[0] = last[0] = (count - 1) * stride + 1;
    step[0] = stride;
  } else {
    dimensions = 2;
    extents[0] = stride;
    extents[1] = last[1] = count;
    last[0] = block;
  }
  section_open((double *)out, (double *)in, (double *)packed, dimensions, extents, first, last, step, partner);
}

#else

/* Answers for a library without a Fortran wrapper, which has no such rows. */
void section_of(const struct layout *layout, char *out, char *in, char *packed, int partner)
{
  (void)layout, (void)out, (void)in, (void)packed, (void)partner;
  die("the program has no Fortran");
}
int section_supported(void) { return 0; }
void section_send(void) {}
void section_receive(void) {}
void section_pack(void) {}
void section_assign(void) {}
void section_cube(void *base, int edge, const int partners[6]) { (void)base, (void)edge, (void)partners; }
void section_halo(void) {}
void section_halo_by_hand(void) {}

#endif
