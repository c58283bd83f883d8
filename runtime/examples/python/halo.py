"""A halo exchange in two dimensions. The ranks stand side by side along x and exchange columns,
which are not contiguous in memory. Every rank has one column of halo cells on its left side and one
on its right side.

    mpiexec -n 4 python halo.py        (any number of ranks)
"""

import numpy
from mpi4py import MPI

NY, NX = 64, 32
world = MPI.COMM_WORLD
left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size

column = MPI.DOUBLE.Create_vector(NY, 1, NX + 2).Commit()


def own(rank):
    """Returns the values of the cells that a rank owns."""
    return 10000.0 * rank + 100.0 * numpy.arange(NY)[:, None] + numpy.arange(1, NX + 1)


cells = numpy.zeros((NY, NX + 2))
cells[:, 1:-1] = own(world.rank)
flat = cells.ravel()  # a view: flat[x:] begins at column x of the first row

# Tag 0 travels to the left, tag 1 to the right: with 2 ranks both neighbours are one rank.
requests = [
    world.Irecv([flat[0:], 1, column], source=left, tag=1),
    world.Irecv([flat[NX + 1:], 1, column], source=right, tag=0),
    world.Isend([flat[1:], 1, column], dest=left, tag=0),
    world.Isend([flat[NX:], 1, column], dest=right, tag=1),
]
# Cells that need no halo could be computed here.
MPI.Request.Waitall(requests)

assert (cells[:, 0] == own(left)[:, -1]).all(), "the left halo"
assert (cells[:, -1] == own(right)[:, 0]).all(), "the right halo"
print(f"rank {world.rank}: the halo is right")
column.Free()
