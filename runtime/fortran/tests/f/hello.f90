! The world, its size, names and clocks, through mpi_f08.
program hello
  use mpi_f08
  implicit none
  integer :: rank, size, length, version, subversion, ierr
  logical :: flag
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=20) :: short
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
  type(MPI_Comm) :: copy
  call MPI_Initialized(flag)
  if (flag) error stop 'initialized before init'
  call MPI_Init(ierr)
  if (ierr /= MPI_SUCCESS) error stop 'init'
  call MPI_Initialized(flag)
  if (.not. flag) error stop 'not initialized'
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (rank < 0 .or. rank >= size) error stop 'rank'
  call MPI_Get_processor_name(name, length)
  if (len_trim(name) /= length .or. length == 0) error stop 'name'
  call MPI_Get_version(version, subversion)
  if (version /= MPI_VERSION) error stop 'version'
  call MPI_Get_library_version(library, length)
  if (len_trim(library) < 3) error stop 'library'
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  if (copy == MPI_COMM_WORLD .or. copy == MPI_COMM_NULL) error stop 'dup'
  call MPI_Comm_set_name(copy, '  a name with blanks  ')
  name = 'x'
  call MPI_Comm_get_name(copy, name, length)
  if (name /= '  a name with blanks' .or. length /= 20) error stop 'comm name'
  short = 'xxxxxxxxxxxxxxxxxxxx'
  call MPI_Comm_get_name(copy, short(1:5), length)
  if (short /= '  a nxxxxxxxxxxxxxxx') error stop 'a name that is cut'
  call MPI_Comm_free(copy)
  if (copy /= MPI_COMM_NULL) error stop 'free'
  if (MPI_Wtime() <= 0d0 .or. MPI_Wtick() <= 0d0) error stop 'clocks'
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Finalize(ierr)
  if (ierr /= MPI_SUCCESS) error stop 'finalize'
end program
