! A rank whose array section is too short, or may not be a section, refuses a call that the other rank makes. The other
! rank must not wait for it, and the next calls must match. Two ranks.
program refused
  use mpi_f08
  implicit none
  integer, parameter :: n = 32
  ! The sections of a rank that refuses have 4 elements, all others have n.
  integer, save, target :: x(2 * n), y(2 * n)
  integer :: rank, culprit, turn, last, code, class, sent
  integer, save, target :: counts(2) = n / 2, places(2) = [0, n / 2]
  logical :: guilty
  type(MPI_Request) :: request
  type(MPI_File) :: file
  type(MPI_Win) :: win
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  x = rank
  ! The first calls go by messages, later ones through memory that the ranks share.
  do turn = 1, 8
    do culprit = 0, 1
      guilty = rank == culprit
      last = merge(8, 2 * n, guilty)
      call blocking()
      call nonblocking()
      call persistent()
    end do
  end do
  do culprit = 0, 1
    guilty = rank == culprit
    last = merge(8, 2 * n, guilty)
    call files()
    call windows()
  end do
  call MPI_Finalize()
contains
  subroutine blocking()
    call MPI_Allreduce(x(1:last:2), y, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call judge('MPI_Allreduce, send', .true.)
    call MPI_Allreduce(x, y(1:last:2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call judge('MPI_Allreduce, receive', .true.)
    call MPI_Reduce(x(1:last:2), y, n, MPI_INTEGER, MPI_SUM, 1 - culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Reduce', .true.)
    call MPI_Reduce(x, y(1:last:2), n, MPI_INTEGER, MPI_SUM, culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Reduce at the root', .false.)
    call MPI_Scan(x(1:last:2), y, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call judge('MPI_Scan', culprit == 0)
    call MPI_Reduce_scatter_block(x(1:last:2), y, n / 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call judge('MPI_Reduce_scatter_block', .true.)
    call MPI_Allgather(x, n / 2, MPI_INTEGER, y(1:last:2), n / 2, MPI_INTEGER, MPI_COMM_WORLD, code)
    call judge('MPI_Allgather', .true.)
    call MPI_Allgatherv(x(1:last:2), n / 2, MPI_INTEGER, y, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
    call judge('MPI_Allgatherv', .true.)
    call MPI_Alltoall(x(1:last:2), n / 2, MPI_INTEGER, y, n / 2, MPI_INTEGER, MPI_COMM_WORLD, code)
    call judge('MPI_Alltoall', .true.)
    call MPI_Alltoallv(x(1:last:2), counts, places, MPI_INTEGER, y, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
    call judge('MPI_Alltoallv, send', .true.)
    call MPI_Alltoallv(x, counts, places, MPI_INTEGER, y(1:last:2), counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
    call judge('MPI_Alltoallv, receive', .true.)
    call MPI_Gatherv(x, n / 2, MPI_INTEGER, y(1:last:2), counts, places, MPI_INTEGER, culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Gatherv at the root', .false.)
    call MPI_Gather(x(1:last:2), n / 2, MPI_INTEGER, y, n / 2, MPI_INTEGER, 1 - culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Gather', .true.)
    call MPI_Scatter(x(1:last:2), n / 2, MPI_INTEGER, y, n / 2, MPI_INTEGER, culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Scatter at the root', .true.)
    call MPI_Bcast(x(1:last:2), n, MPI_INTEGER, culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Bcast at the root', .true.)
    call MPI_Bcast(y(1:last:2), n, MPI_INTEGER, 1 - culprit, MPI_COMM_WORLD, code)
    call judge('MPI_Bcast', .false.)
  end subroutine

  subroutine nonblocking()
    call MPI_Iallreduce(x(1:last:2), y, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, code)
    call finish('MPI_Iallreduce', .true.)
    call MPI_Ialltoallv(x, counts, places, MPI_INTEGER, y(1:last:2), counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
      request, code)
    call finish('MPI_Ialltoallv', .true.)
    call MPI_Igather(x(1:last:2), n / 2, MPI_INTEGER, y, n / 2, MPI_INTEGER, 1 - culprit, MPI_COMM_WORLD, request, code)
    call finish('MPI_Igather', .true.)
    call MPI_Ibcast(x(1:last:2), n, MPI_INTEGER, culprit, MPI_COMM_WORLD, request, code)
    call finish('MPI_Ibcast', .true.)
  end subroutine

  ! Preparing tells nobody anything, but the next calls match.
  subroutine persistent()
    call MPI_Allreduce_init(x(1:last:2), y, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, code)
    call judge('MPI_Allreduce_init', .false.)
    if (.not. guilty) call MPI_Request_free(request)
    y = -1
    call MPI_Allreduce_init(x, y, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(y(1:n) /= 1)) error stop 'the next persistent call'
    call MPI_Request_free(request)
  end subroutine

  subroutine files()
    call MPI_File_open(MPI_COMM_WORLD, 'refused.data', ior(ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_MODE_DELETE_ON_CLOSE), &
      MPI_INFO_NULL, file)
    call MPI_File_write_at_all(file, 0_MPI_OFFSET_KIND, x(1:last:2), n, MPI_INTEGER, MPI_STATUS_IGNORE, code)
    call judge('MPI_File_write_at_all', .false.)
    call MPI_File_close(file)
  end subroutine

  subroutine windows()
    integer(MPI_ADDRESS_KIND) :: size
    size = 4 * n
    if (guilty) then
      call MPI_Win_create(x(1:2 * n:2), size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, code)
      call MPI_Error_class(code, class)
      if (class /= MPI_ERR_BUFFER) error stop 'MPI_Win_create of a section'
    else
      call MPI_Win_create(x, size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, code)
      if (code == MPI_SUCCESS) error stop 'MPI_Win_create beside a section'
    end if
    call match('MPI_Win_create')
  end subroutine

  subroutine finish(what, depends)
    character(len=*), intent(in) :: what
    logical, intent(in) :: depends
    if (code == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call judge(what, depends)
  end subroutine

  ! The rank that refuses has the error of its section. The other one has an error if it depends on its data.
  subroutine judge(what, depends)
    character(len=*), intent(in) :: what
    logical, intent(in) :: depends
    call MPI_Error_class(code, class)
    if (guilty .and. class /= MPI_ERR_COUNT) then
      print *, what, turn, culprit, class
      error stop 'the rank with the short section'
    else if (.not. guilty .and. depends .and. code == MPI_SUCCESS) then
      print *, what, turn, culprit
      error stop 'the other rank has no error'
    end if
    call match(what)
  end subroutine
  subroutine match(what)
    character(len=*), intent(in) :: what
    sent = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, sent, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    if (code /= MPI_SUCCESS .or. sent /= 3) then
      print *, what, turn, culprit, code, sent
      error stop 'the next call'
    end if
  end subroutine
end program
