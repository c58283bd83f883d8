"""A 2-D array in a file. The ranks stand in a grid, and each of them writes its block of the array. The
file has the whole array, row by row, whatever the number of ranks. Then every rank reads the whole array,
and rank 0 reads it with numpy alone.

    mpiexec -n 4 python array.py array.bin        (any number of ranks)
"""

import sys

import numpy
from mpi4py import MPI

SHAPE = [8, 12]
world = MPI.COMM_WORLD
path = sys.argv[1] if len(sys.argv) > 1 else "array.bin"

# This rank has the rows and columns from starts[d] on, subsizes[d] of them.
dims = MPI.Compute_dims(world.size, 2)
place = [world.rank // dims[1], world.rank % dims[1]]
starts = [n * p // d for n, p, d in zip(SHAPE, place, dims)]
subsizes = [n * (p + 1) // d - start for n, p, d, start in zip(SHAPE, place, dims, starts)]
wanted = numpy.fromfunction(lambda row, column: 100 * row + column, SHAPE)
mine = wanted[starts[0] :, starts[1] :][: subsizes[0], : subsizes[1]].copy()

# The filetype selects the block in the array of the file.
block = MPI.DOUBLE.Create_subarray(SHAPE, subsizes, starts).Commit()

file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
# An older file of this name may be longer.
file.Set_size(wanted.nbytes)
file.Set_view(0, MPI.DOUBLE, block)
file.Write_all(mine)
file.Close()

# Without a view, the file is a sequence of bytes.
everything = numpy.zeros(SHAPE)
file = MPI.File.Open(world, path, MPI.MODE_RDONLY)
file.Read_at_all(0, everything)
file.Close()
assert (everything == wanted).all()
print(f"rank {world.rank}: wrote {subsizes} values, read {SHAPE}")

# The file is plain rows of doubles, which any program reads.
if world.rank == 0:
    array = numpy.fromfile(path).reshape(SHAPE)
    assert (array == wanted).all()
block.Free()
