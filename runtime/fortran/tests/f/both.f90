! Both modules in one file. Any number of ranks.
subroutine with_mpi(rank)
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer, intent(out) :: rank
  integer :: ierr
  integer(MPI_ADDRESS_KIND) :: address
  type(c_ptr) :: pointer
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  call MPI_ALLOC_MEM(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierr)
  if (address == 0) error stop 'an address as an integer'
  call MPI_ALLOC_MEM(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, pointer, ierr)
  if (.not. c_associated(pointer)) error stop 'an address as a pointer'
end subroutine
program both
  use mpi_f08
  implicit none
  integer :: one, other
  call MPI_Init()
  call with_mpi(one)
  call MPI_Comm_rank(MPI_COMM_WORLD, other)
  if (one /= other) error stop 'rank'
  call MPI_Finalize()
end program
