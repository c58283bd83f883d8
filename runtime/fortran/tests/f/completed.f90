! C completes operations over array sections that Fortran has begun, and starts and frees them. Two ranks.
module data
  implicit none
  ! C may change what a module has.
  integer, save, target :: x(24), y(24), want(24)
end module
program completed
  use mpi_f08
  use data
  implicit none
  interface
    subroutine c_complete(request, way) bind(C)
      integer :: request
      integer, value :: way
    end subroutine
    subroutine c_start(request) bind(C)
      integer :: request
    end subroutine
    subroutine c_free(request) bind(C)
      integer :: request
    end subroutine
  end interface
  integer, parameter :: last = 8
  integer :: rank, i, way, round, base(24)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)

  do way = 0, last
    ! A reduction.
    call fresh(way)
    want(1:24:3) = 2 * base(1:16:2) + 100
    call MPI_Iallreduce(x(1:16:2), y(1:24:3), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call complete('a reduction')
    ! A block for each rank.
    call fresh(way)
    want(24:2:-2) = [base(1:24:4), base(1:24:4) + 100]
    call MPI_Iallgather(x(1:24:4), 6, MPI_INTEGER, y(24:2:-2), 6, MPI_INTEGER, MPI_COMM_WORLD, request)
    call complete('blocks')
    ! Only the root receives.
    call fresh(way)
    if (rank == 1) want(1:24:2) = [base(1:6), base(1:6) + 100]
    call MPI_Igather(x, 6, MPI_INTEGER, y(1:24:2), 6, MPI_INTEGER, 1, MPI_COMM_WORLD, request)
    call complete('blocks at a root')
  end do

  ! A persistent operation, whose rounds C or Fortran starts and completes.
  call MPI_Allreduce_init(x(1:16:2), y(1:24:3), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
  do round = 0, 3 * last + 2
    call fresh(round)
    want(1:24:3) = 2 * base(1:16:2) + 100
    way = mod(round, last + 1)
    if (mod(round, 2) == 0) then
      call c_start(request%MPI_VAL)
    else
      call MPI_Start(request)
    end if
    if (mod(round, 3) /= 0) then
      call c_complete(request%MPI_VAL, way)
      call compare('a persistent reduction')
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('a persistent reduction after MPI_Wait')
    if (request == MPI_REQUEST_NULL) error stop 'a persistent request is gone'
  end do
  call c_free(request%MPI_VAL)
  if (request /= MPI_REQUEST_NULL) error stop 'MPI_Request_free in C'
  call MPI_Finalize()
contains
  ! Rank 1 contributes what rank 0 contributes, and 100.
  subroutine fresh(seed)
    integer, intent(in) :: seed
    base = [(1000 * seed + i, i = 1, 24)]
    x = base + 100 * rank
    y = -1
    want = -1
  end subroutine
  subroutine complete(what)
    character(len=*), intent(in) :: what
    call c_complete(request%MPI_VAL, way)
    call compare(what)
    if (way == last) call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (request /= MPI_REQUEST_NULL) error stop 'a request of C is not gone'
    call compare(what)
  end subroutine
  subroutine compare(what)
    character(len=*), intent(in) :: what
    if (any(y /= want)) then
      print *, what, way, y
      error stop 'the section of an operation is wrong'
    end if
  end subroutine
end program
