! Example 16.16 of MPI-2.2: Fortran makes a datatype, and C sends with it. The type is absolute: it has the address of the
! array r, so the C function needs nothing but the handle. languages.c has the C functions.
!
!     mpicc -c languages.c -o c.o && mpifort languages.f90 c.o -o languages && mpiexec -n 2 ./languages
program languages
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int, c_float
  implicit none
  interface
    subroutine c_send(type, to) bind(C)
      import :: c_int
      integer(c_int), value :: type, to
    end subroutine
    subroutine c_receive(from, count, r) bind(C)
      import :: c_int, c_float
      integer(c_int), value :: from
      integer(c_int) :: count
      real(c_float) :: r(*)
    end subroutine
  end interface
  real, asynchronous :: r(5)
  type(MPI_Datatype) :: type
  integer(MPI_ADDRESS_KIND) :: place(1)
  integer(c_int) :: count
  integer :: rank

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  r = 0
  count = 0
  if (rank == 0) then
    r = [1.5, 2.5, 3.5, 4.5, 5.5]
    ! An absolute datatype for the array r. C gets the integer that is the handle in Fortran.
    call MPI_Get_address(r, place(1))
    call MPI_Type_create_struct(1, [5], place, [MPI_REAL], type)
    call c_send(type%MPI_VAL, 1)
    call MPI_Type_free(type)
    print '(a)', 'rank 0: C sent a count and the array of Fortran'
  else if (rank == 1) then
    call c_receive(0, count, r)
    print '(a,i0,a,5f4.1)', 'rank 1: ', count, ' numbers:', r
    if (count /= 5 .or. any(r /= [1.5, 2.5, 3.5, 4.5, 5.5])) error stop 1
  end if
  call MPI_Finalize()
end program
