! The module mpi: integers for handles, buffers of any type and rank. Two ranks.
program old_module
  use mpi
  implicit none
  integer :: ierr, rank, other, status(MPI_STATUS_SIZE), i, requests(2), statuses(MPI_STATUS_SIZE, 2)
  integer :: comm, dims(2), newtype, n, keyval
  integer(MPI_ADDRESS_KIND) :: lower, extent, value
  logical :: periods(2), flag
  real(8) :: a(4, 4), s
  character(len=8) :: text
  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  other = 1 - rank
  a = rank
  call MPI_IRECV(s, 1, MPI_REAL8, other, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_ISEND(a(2, 2), 1, MPI_REAL8, other, 1, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_WAITALL(2, requests, statuses, ierr)
  if (s /= other .or. statuses(MPI_SOURCE, 1) /= other) error stop 'isend'
  text = 'hello'
  if (rank == 1) text = ' '
  call MPI_BCAST(text, 8, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
  if (text /= 'hello') error stop 'bcast of characters'
  call MPI_TYPE_CREATE_RESIZED(MPI_REAL8, 0_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND, newtype, ierr)
  call MPI_TYPE_COMMIT(newtype, ierr)
  call MPI_TYPE_GET_EXTENT(newtype, lower, extent, ierr)
  if (lower /= 0 .or. extent /= 24) error stop 'extent'
  call MPI_TYPE_FREE(newtype, ierr)
  if (newtype /= MPI_DATATYPE_NULL) error stop 'type_free'
  dims = 0
  call MPI_DIMS_CREATE(2, 2, dims, ierr)
  if (product(dims) /= 2) error stop 'dims'
  call MPI_CART_CREATE(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., comm, ierr)
  call MPI_CART_GET(comm, 2, dims, periods, status, ierr)
  if (.not. periods(1) .or. periods(2)) error stop 'periods'
  call MPI_COMM_FREE(comm, ierr)
  i = rank
  call MPI_REDUCE(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_SELF, ierr)
  call MPI_ALLREDUCE(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (i /= 1) error stop 'in place'
  flag = rank == 0
  call MPI_ALLREDUCE(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  if (flag) error stop 'land'
  flag = rank == 0
  call MPI_ALLREDUCE(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  if (.not. flag) error stop 'lor'
  call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 0, ierr)
  call MPI_ATTR_PUT(MPI_COMM_WORLD, keyval, -3, ierr)
  call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
  call MPI_ATTR_GET(comm, keyval, n, flag, ierr)
  if (.not. flag .or. n /= -3) error stop 'attr_get'
  call MPI_COMM_GET_ATTR(comm, keyval, value, flag, ierr)
  if (.not. flag .or. value /= -3) error stop 'comm_get_attr'
  call MPI_COMM_FREE(comm, ierr)
  call MPI_FINALIZE(ierr)
end program
