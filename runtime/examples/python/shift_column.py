"""A first datatype. Rank 0 sends the first column of a matrix, and rank 1 receives it as the last
column of its own matrix. No loop copies anything, because the datatype says which doubles make up a
column.

    mpiexec -n 2 python shift_column.py
"""

import numpy
from mpi4py import MPI

ROWS, COLUMNS = 4, 6
world = MPI.COMM_WORLD

# 4 blocks of 1 double; each block starts 6 doubles after the one before it.
column = MPI.DOUBLE.Create_vector(ROWS, 1, COLUMNS).Commit()

matrix = numpy.zeros((ROWS, COLUMNS))
if world.rank == 0:
    matrix[:, 0] = 1 + numpy.arange(ROWS)
    world.Send([matrix, 1, column], dest=1)
elif world.rank == 1:
    # The view begins at the first element of the last column.
    world.Recv([matrix.ravel()[COLUMNS - 1:], 1, column], source=0)
    assert (matrix[:, COLUMNS - 1] == 1 + numpy.arange(ROWS)).all(), matrix
    print(matrix)

column.Free()
