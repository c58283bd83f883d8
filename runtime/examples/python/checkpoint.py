"""A checkpoint without a file. Every rank packs its state (a step, a time, the inner cells of a
field) into one buffer and sends the buffer to its right neighbour, which keeps it. After a loss, the
neighbour sends the buffer back and the rank unpacks its state from it.

    mpiexec -n 2 python checkpoint.py        (any number of ranks)
"""

import numpy
from mpi4py import MPI

ROWS, COLUMNS = 10, 14
world = MPI.COMM_WORLD
left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size

# This datatype is the field without its outermost cells.
inner = MPI.DOUBLE.Create_subarray([ROWS, COLUMNS], [ROWS - 2, COLUMNS - 2], [1, 1]).Commit()

step = numpy.array([40])
time = numpy.array([0.125])
field = 1000.0 * world.rank + numpy.arange(ROWS * COLUMNS, dtype=float).reshape(ROWS, COLUMNS)

# Pack the state. Each call appends one part to the buffer and returns the new position.
size = MPI.INT64_T.Pack_size(1, world) + MPI.DOUBLE.Pack_size(1, world) + inner.Pack_size(1, world)
buffer = bytearray(size)
position = MPI.INT64_T.Pack(step, buffer, 0, world)
position = MPI.DOUBLE.Pack(time, buffer, position, world)
position = inner.Pack(field, buffer, position, world)

# The neighbour keeps the checkpoint; later it sends the checkpoint back.
kept = bytearray(size)
world.Sendrecv([buffer, position, MPI.PACKED], right, 0, [kept, size, MPI.PACKED], left, 0)
returned = bytearray(size)
world.Sendrecv([kept, position, MPI.PACKED], left, 1, [returned, size, MPI.PACKED], right, 1)

# Unpack into an empty state, in the order in which the state was packed. The checkpoint does not
# contain the halo cells.
new_step, new_time, new_field = numpy.zeros(1, int), numpy.zeros(1), numpy.zeros_like(field)
end = MPI.INT64_T.Unpack(returned, 0, new_step, world)
end = MPI.DOUBLE.Unpack(returned, end, new_time, world)
end = inner.Unpack(returned, end, new_field, world)

assert end == position and new_step == step and new_time == time
assert (new_field[1:-1, 1:-1] == field[1:-1, 1:-1]).all()
assert new_field.sum() == field[1:-1, 1:-1].sum(), "the halo is not in the checkpoint"
print(f"rank {world.rank}: restored step {new_step[0]} from {position} bytes")
inner.Free()
