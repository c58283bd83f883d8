! Messages, statuses, requests and large counts, through mpi_f08. Two ranks.
program messages
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, other, n, index, outcount, indices(4), i, size, source
  integer(MPI_COUNT_KIND) :: many
  real(8) :: a(10), b(10)
  type(MPI_Status) :: status, statuses(4)
  type(MPI_Request) :: requests(4), request
  type(MPI_Message) :: message
  logical :: flag
  real(8), pointer :: memory(:)
  type(c_ptr) :: address
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  other = 1 - rank
  a = [(rank * 100 + i, i = 1, 10)]
  b = -1
  if (rank == 0) then
    call MPI_Send(a, 10, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD)
    call MPI_Recv(b, 10, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
  else
    call MPI_Recv(b, 10_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, status)
    call MPI_Send(a, 10_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD)
  end if
  if (any(b /= [(other * 100 + i, i = 1, 10)])) error stop 'wrong data'
  if (status%MPI_SOURCE /= other .or. status%MPI_TAG /= 7) error stop 'status'
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, n)
  if (n /= 10) error stop 'count'
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, many)
  if (many /= 10) error stop 'large count'
  do i = 1, 2
    call MPI_Irecv(b(5 * i - 4), 5, MPI_DOUBLE_PRECISION, other, i, MPI_COMM_WORLD, requests(i))
    call MPI_Isend(a(5 * i - 4), 5, MPI_DOUBLE_PRECISION, other, i, MPI_COMM_WORLD, requests(i + 2))
  end do
  call MPI_Waitall(4, requests, statuses)
  if (any([(requests(i) /= MPI_REQUEST_NULL, i = 1, 4)])) error stop 'waitall: requests'
  if (statuses(2)%MPI_TAG /= 2) error stop 'waitall: statuses'
  if (any(b /= [(other * 100 + i, i = 1, 10)])) error stop 'waitall: data'
  requests = MPI_REQUEST_NULL
  call MPI_Waitany(4, requests, index, MPI_STATUS_IGNORE)
  if (index /= MPI_UNDEFINED) error stop 'waitany of nothing'
  call MPI_Isend(a, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(3))
  call MPI_Waitany(4, requests, index, MPI_STATUS_IGNORE)
  if (index /= 3) error stop 'waitany counts from 1'
  call MPI_Isend(a, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(2))
  call MPI_Isend(a, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(4))
  call MPI_Waitsome(4, requests, outcount, indices, MPI_STATUSES_IGNORE)
  if (outcount < 1 .or. indices(1) < 2) error stop 'waitsome counts from 1'
  call MPI_Testall(4, requests, flag, MPI_STATUSES_IGNORE)
  call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
  call MPI_Isend(a, 1, MPI_DOUBLE_PRECISION, other, 11, MPI_COMM_WORLD, request)
  call MPI_Mprobe(other, 11, MPI_COMM_WORLD, message, status)
  call MPI_Mrecv(b, 1, MPI_DOUBLE_PRECISION, message, MPI_STATUS_IGNORE)
  if (message /= MPI_MESSAGE_NULL) error stop 'mrecv'
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Sendrecv_replace(a, 10, MPI_DOUBLE_PRECISION, other, 3, other, 3, MPI_COMM_WORLD, status)
  if (a(10) /= other * 100 + 10) error stop 'sendrecv_replace'
  call MPI_Sizeof(a, size)
  if (size /= 8) error stop 'sizeof'
  call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, address)
  call c_f_pointer(address, memory, [10])
  memory = a
  call MPI_Allreduce(MPI_IN_PLACE, memory, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (any(memory /= [(100 + 2 * i, i = 1, 10)])) error stop 'allreduce in place'
  call MPI_Free_mem(memory)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Send(a, 1, MPI_DOUBLE_PRECISION, 99, 0, MPI_COMM_WORLD, n)
  if (n == MPI_SUCCESS) error stop 'rank 99'
  call MPI_Error_class(n, source)
  if (source /= MPI_ERR_RANK) error stop 'class'
  call MPI_Finalize()
end program
