! A halo exchange in two dimensions with array sections. The ranks stand in a periodic grid, and every rank has one layer
! of halo cells on each side of its block. The columns and rows of cells are sections of the array: they go to the library
! as they are, and nobody copies them to contiguous memory first.
!
!     mpifort halo.f90 -o halo && mpiexec -n 4 ./halo        (any number of ranks)
program halo
  use mpi_f08
  implicit none
  integer, parameter :: nx = 32, ny = 64
  ! The exchange runs while other statements run, so the compiler must not move accesses of the array across it.
  real(8), asynchronous :: cells(0:nx+1, 0:ny+1)
  type(MPI_Comm) :: grid
  type(MPI_Request) :: r(8)
  integer :: dims(2), west, east, south, north, rank, ranks, x, y, wrong

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .true.], .false., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_shift(grid, 0, 1, west, east)
  call MPI_Cart_shift(grid, 1, 1, south, north)

  cells = -1
  do y = 1, ny
    do x = 1, nx
      cells(x, y) = cell(rank, x, y)
    end do
  end do

  ! Each direction has its tag: with 1 or 2 ranks along a dimension, both neighbours are the same rank.
  call MPI_Irecv(cells(0,    1:ny), ny, MPI_REAL8, west,  1, grid, r(1))
  call MPI_Irecv(cells(nx+1, 1:ny), ny, MPI_REAL8, east,  2, grid, r(2))
  call MPI_Irecv(cells(1:nx, 0   ), nx, MPI_REAL8, south, 3, grid, r(3))
  call MPI_Irecv(cells(1:nx, ny+1), nx, MPI_REAL8, north, 4, grid, r(4))
  call MPI_Isend(cells(nx,   1:ny), ny, MPI_REAL8, east,  1, grid, r(5))
  call MPI_Isend(cells(1,    1:ny), ny, MPI_REAL8, west,  2, grid, r(6))
  call MPI_Isend(cells(1:nx, ny  ), nx, MPI_REAL8, north, 3, grid, r(7))
  call MPI_Isend(cells(1:nx, 1   ), nx, MPI_REAL8, south, 4, grid, r(8))
  ! Cells that need no halo could be computed here.
  call MPI_Waitall(8, r, MPI_STATUSES_IGNORE)

  wrong = 0
  do y = 1, ny
    if (cells(0, y) /= cell(west, nx, y)) wrong = wrong + 1
    if (cells(nx+1, y) /= cell(east, 1, y)) wrong = wrong + 1
  end do
  do x = 1, nx
    if (cells(x, 0) /= cell(south, x, ny)) wrong = wrong + 1
    if (cells(x, ny+1) /= cell(north, x, 1)) wrong = wrong + 1
  end do
  print '(a,i0,a,i0,a)', 'rank ', rank, ': ', wrong, ' wrong halo cells'
  if (wrong /= 0) error stop 1

  call MPI_Comm_free(grid)
  call MPI_Finalize()
contains
  ! The value of a cell of a rank.
  real(8) function cell(rank, x, y)
    integer, intent(in) :: rank, x, y
    cell = 10000d0 * rank + 100d0 * x + y
  end function
end program
