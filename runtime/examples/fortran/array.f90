! A 2-D array in a file. The ranks stand in a grid, and each of them writes its block of the array. In memory the block has
! halo cells around it, which do not go to the file: the buffer is a section. The file has the whole array in the order of
! Fortran, whatever the number of ranks. Then every rank reads the whole array.
!
!     mpifort array.f90 -o array && mpiexec -n 4 ./array array.bin        (any number of ranks)
program array
  use mpi_f08
  implicit none
  integer, parameter :: sizes(2) = [12, 8]
  real(8) :: all(sizes(1), sizes(2))
  real(8), allocatable :: mine(:, :)
  type(MPI_Datatype) :: block
  type(MPI_File) :: file
  integer :: rank, ranks, dims(2), place(2), starts(2), n(2), x, y, wrong
  character(1000) :: path

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  path = 'array.bin'
  if (command_argument_count() > 0) call get_command_argument(1, path)

  ! The errors of files are returned by default. In this program, an error ends the job.
  call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL)

  ! This rank has n(d) rows and columns after the first starts(d) ones.
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  place = [rank / dims(2), mod(rank, dims(2))]
  starts = sizes * place / dims
  n = sizes * (place + 1) / dims - starts
  allocate (mine(0:n(1)+1, 0:n(2)+1))
  mine = -1
  do y = 1, n(2)
    do x = 1, n(1)
      mine(x, y) = value(starts(1) + x, starts(2) + y)
    end do
  end do

  ! The filetype selects the block in the array of the file.
  call MPI_Type_create_subarray(2, sizes, n, starts, MPI_ORDER_FORTRAN, MPI_REAL8, block)
  call MPI_Type_commit(block)

  call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file)
  ! An older file of this name may be longer.
  call MPI_File_set_size(file, int(storage_size(all) / 8 * size(all), MPI_OFFSET_KIND))
  call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_REAL8, block, 'native', MPI_INFO_NULL)
  call MPI_File_write_all(file, mine(1:n(1), 1:n(2)), product(n), MPI_REAL8, MPI_STATUS_IGNORE)
  call MPI_File_close(file)

  ! Without a view, the file is a sequence of bytes.
  call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, file)
  call MPI_File_read_at_all(file, 0_MPI_OFFSET_KIND, all, size(all), MPI_REAL8, MPI_STATUS_IGNORE)
  call MPI_File_close(file)
  wrong = 0
  do y = 1, sizes(2)
    do x = 1, sizes(1)
      if (all(x, y) /= value(x, y)) wrong = wrong + 1
    end do
  end do
  print '(3(a,i0),a)', 'rank ', rank, ': wrote ', product(n), ' values, ', wrong, ' wrong in the file'
  if (wrong /= 0) error stop 1

  call MPI_Type_free(block)
  call MPI_Finalize()
contains
  ! The value of an element of the whole array.
  real(8) function value(x, y)
    integer, intent(in) :: x, y
    value = 100 * y + x
  end function
end program
