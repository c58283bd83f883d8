! A halo exchange by one collective call, prepared once and started in every step. The four faces of a block are datatypes,
! and each of them goes to the neighbour on its side.
!
!     mpifort neighbors.f90 -o neighbors && mpiexec -n 4 ./neighbors        (any number of ranks)
program neighbors
  use mpi_f08
  implicit none
  integer, parameter :: nx = 8, ny = 12, sizes(2) = [nx + 2, ny + 2]
  ! The neighbours in the order of the standard: before and after in each dimension.
  integer, parameter :: lengths(2, 4) = reshape([1, ny, 1, ny, nx, 1, nx, 1], [2, 4])
  integer, parameter :: to(2, 4) = reshape([1, 1, nx, 1, 1, 1, 1, ny], [2, 4])
  integer, parameter :: from(2, 4) = reshape([0, 1, nx + 1, 1, 1, 0, 1, ny + 1], [2, 4])
  integer, parameter :: ones(4) = 1
  integer(MPI_ADDRESS_KIND), parameter :: nowhere(4) = 0
  real(8), asynchronous :: cells(0:nx+1, 0:ny+1)
  type(MPI_Comm) :: grid
  type(MPI_Datatype) :: sent(4), received(4)
  type(MPI_Request) :: exchange
  integer :: dims(2), near(4), rank, ranks, side, step, x, y, wrong

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .true.], .false., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_shift(grid, 0, 1, near(1), near(2))
  call MPI_Cart_shift(grid, 1, 1, near(3), near(4))

  do side = 1, 4
    call MPI_Type_create_subarray(2, sizes, lengths(:, side), to(:, side), MPI_ORDER_FORTRAN, MPI_REAL8, sent(side))
    call MPI_Type_create_subarray(2, sizes, lengths(:, side), from(:, side), MPI_ORDER_FORTRAN, MPI_REAL8, &
      received(side))
    call MPI_Type_commit(sent(side))
    call MPI_Type_commit(received(side))
  end do
  call MPI_Neighbor_alltoallw_init(cells, ones, nowhere, sent, cells, ones, nowhere, received, grid, &
    MPI_INFO_NULL, exchange)

  wrong = 0
  do step = 1, 3
    cells = -1
    do y = 1, ny
      do x = 1, nx
        cells(x, y) = cell(rank, x, y)
      end do
    end do
    call MPI_Start(exchange)
    ! Cells that need no halo could be computed here.
    call MPI_Wait(exchange, MPI_STATUS_IGNORE)
    do y = 1, ny
      if (cells(0, y) /= cell(near(1), nx, y)) wrong = wrong + 1
      if (cells(nx+1, y) /= cell(near(2), 1, y)) wrong = wrong + 1
    end do
    do x = 1, nx
      if (cells(x, 0) /= cell(near(3), x, ny)) wrong = wrong + 1
      if (cells(x, ny+1) /= cell(near(4), x, 1)) wrong = wrong + 1
    end do
  end do
  print '(a,i0,a,i0,a)', 'rank ', rank, ': ', wrong, ' wrong halo cells'
  if (wrong /= 0) error stop 1

  call MPI_Request_free(exchange)
  do side = 1, 4
    call MPI_Type_free(sent(side))
    call MPI_Type_free(received(side))
  end do
  call MPI_Comm_free(grid)
  call MPI_Finalize()
contains
  ! The value of a cell of a rank in this step.
  real(8) function cell(rank, x, y)
    integer, intent(in) :: rank, x, y
    cell = 1d6 * step + 10000d0 * rank + 100d0 * x + y
  end function
end program
