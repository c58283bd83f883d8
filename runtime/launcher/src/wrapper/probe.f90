! Finds out whether libmpifort_abi understands how this compiler passes arrays. The last line that the program prints is
! what is not understood; it is "ok" if all is understood. The program does not initialize MPI.
module facts
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine look(x, words) bind(C, name="typepack_descriptor_f08ts_")
      import
      type(*), dimension(..), intent(in), asynchronous :: x
      integer(c_int64_t), intent(out) :: words(*)
    end subroutine
  end interface
contains
  ! Compares what the library sees with what is right: base, bytes of an element, rank, extents and byte strides.
  subroutine compare(words, right, name)
    integer(c_int64_t), intent(in) :: words(:), right(:)
    character(len=*), intent(in) :: name
    if (any(words(1:size(right)) /= right)) then
      print '(a)', name
      stop
    end if
  end subroutine

  function place(address)
    type(c_ptr), intent(in) :: address
    integer(c_int64_t) :: place
    place = transfer(address, 0_c_intptr_t)
  end function

  subroutine assumed(x, base)
    real(c_double), intent(in) :: x(*)
    integer(c_int64_t), intent(in) :: base
    integer(c_int64_t) :: words(33)
    call look(x, words)
    call compare(words, [base, 8_c_int64_t, 1_c_int64_t, -1_c_int64_t], 'an array of assumed size')
  end subroutine
end module

program probe
  use facts
  use mpi_f08, only : MPI_Sizeof, MPI_COMM_WORLD, MPI_COMM_SELF, operator(==)
  real(c_double), target :: a(64,64)
  integer(c_int64_t) :: words(33)
  integer :: bytes
  call look(a(5,1), words)
  call compare(words, [place(c_loc(a(5,1))), 8_c_int64_t, 0_c_int64_t], 'an element of an array')
  call look(a(1:63:2,3:40), words)
  call compare(words, [place(c_loc(a(1,3))), int([8, 2, 32, 16, 38, 512], c_int64_t)], 'a section of an array')
  call look(a(64:1:-1,2), words)
  call compare(words, [place(c_loc(a(64,2))), int([8, 1, 64, -8], c_int64_t)], 'a section in reverse order')
  call assumed(a(1,2), place(c_loc(a(1,2))))
  call MPI_Sizeof(a, bytes)
  if (bytes /= 8) then
    print '(a)', 'MPI_Sizeof'
  else if (MPI_COMM_WORLD == MPI_COMM_SELF .or. .not. MPI_COMM_WORLD == MPI_COMM_WORLD) then
    print '(a)', 'LOGICAL results'
  else
    print '(a)', 'ok'
  end if
end program
