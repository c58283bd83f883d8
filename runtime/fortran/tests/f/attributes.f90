! The nine pairs of MPI-5.0 section 19.3.7: an attribute is set as a pointer of C, as an INTEGER (MPI_ATTR_PUT), or as an
! integer of the width of an address (MPI_COMM_SET_ATTR), and read in each of these ways. Any number of ranks.
module sides
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_intptr_t) function c_pointer() bind(C)
      import :: c_intptr_t
    end function
    subroutine c_set(kind, object, keyval) bind(C)
      integer, value :: kind, object, keyval
    end subroutine
    integer function c_reads_pointer(kind, object, keyval) bind(C)
      integer, value :: kind, object, keyval
    end function
    integer function c_reads_integer(kind, object, keyval) bind(C)
      integer, value :: kind, object, keyval
    end function
    integer(c_intptr_t) function c_reads_address(kind, object, keyval) bind(C)
      import :: c_intptr_t
      integer, value :: kind, object, keyval
    end function
  end interface
  integer, parameter :: of_comm = 0, of_type = 1, of_win = 2
  ! The pairs that have been tried: set as a pointer, INTEGER, or address; read as one.
  logical :: tried(3, 3) = .false.
contains
  subroutine check(set, read, right)
    integer, intent(in) :: set, read
    logical, intent(in) :: right
    if (.not. right) then
      print *, 'set as', set, 'and read as', read
      error stop 'an attribute is wrong'
    end if
    tried(set, read) = .true.
  end subroutine
  ! The INTEGER that has the low bits of a large one.
  integer function low(value)
    integer(c_intptr_t), intent(in) :: value
    integer(c_intptr_t) :: bits
    bits = iand(value, int(z'ffffffff', c_intptr_t))
    if (bits > huge(1)) bits = bits - 2_c_intptr_t ** 32
    low = int(bits)
  end function
end module

! The module mpi has both forms.
subroutine with_mpi()
  use mpi
  use sides
  implicit none
  integer :: comm, keyval, small, ierr, values(4), i
  integer(MPI_ADDRESS_KIND) :: large, wide(4)
  logical :: flag
  call MPI_COMM_DUP(MPI_COMM_SELF, comm, ierr)
  call MPI_COMM_CREATE_KEYVAL(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)

  call c_set(of_comm, comm, keyval)
  call check(1, 1, c_reads_pointer(of_comm, comm, keyval) == 1)
  call MPI_ATTR_GET(comm, keyval, small, flag, ierr)
  call check(1, 2, flag .and. small == low(c_pointer()))
  call MPI_COMM_GET_ATTR(comm, keyval, large, flag, ierr)
  call check(1, 3, flag .and. large == c_pointer())

  values = [7, -7, huge(1), 0]
  do i = 1, 4
    call MPI_ATTR_PUT(comm, keyval, values(i), ierr)
    call check(2, 1, c_reads_integer(of_comm, comm, keyval) == values(i))
    call MPI_ATTR_GET(comm, keyval, small, flag, ierr)
    call check(2, 2, flag .and. small == values(i))
    call MPI_COMM_GET_ATTR(comm, keyval, large, flag, ierr)
    call check(2, 3, flag .and. large == values(i))
  end do

  wide = [42_MPI_ADDRESS_KIND, -42_MPI_ADDRESS_KIND, 2_MPI_ADDRESS_KIND ** 40 + 5, 0_MPI_ADDRESS_KIND]
  do i = 1, 4
    call MPI_COMM_SET_ATTR(comm, keyval, wide(i), ierr)
    call check(3, 1, c_reads_address(of_comm, comm, keyval) == wide(i))
    call MPI_ATTR_GET(comm, keyval, small, flag, ierr)
    call check(3, 2, flag .and. small == low(wide(i)))
    call MPI_COMM_GET_ATTR(comm, keyval, large, flag, ierr)
    call check(3, 3, flag .and. large == wide(i))
  end do

  ! A predefined attribute is the address of a number in C, and the number in Fortran.
  call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, small, flag, ierr)
  if (.not. flag .or. small < 32767) error stop 'MPI_TAG_UB by MPI_ATTR_GET'
  call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, large, flag, ierr)
  if (.not. flag .or. large /= small) error stop 'MPI_TAG_UB'
  if (c_reads_integer(of_comm, MPI_COMM_WORLD, MPI_TAG_UB) /= small) error stop 'MPI_TAG_UB in C'
  call MPI_COMM_FREE_KEYVAL(keyval, ierr)
  call MPI_COMM_FREE(comm, ierr)
end subroutine

! The module mpi_f08 has only the large form; for communicators, datatypes and windows.
subroutine with_mpi_f08()
  use mpi_f08
  use sides
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Datatype) :: datatype
  type(MPI_Win) :: win
  integer :: keyval, memory(4)
  integer(MPI_ADDRESS_KIND) :: value, zero, size
  logical :: flag
  zero = 0; size = 16
  call MPI_Comm_dup(MPI_COMM_SELF, comm)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, zero)
  call c_set(of_comm, comm%MPI_VAL, keyval)
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(1, 3, flag .and. value == c_pointer())
  call MPI_Comm_set_attr(comm, keyval, 2_MPI_ADDRESS_KIND ** 40 + 6)
  call check(3, 1, c_reads_address(of_comm, comm%MPI_VAL, keyval) == 2_MPI_ADDRESS_KIND ** 40 + 6)
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(3, 3, flag .and. value == 2_MPI_ADDRESS_KIND ** 40 + 6)
  call MPI_Comm_free_keyval(keyval)
  call MPI_Comm_free(comm)

  call MPI_Type_dup(MPI_INTEGER, datatype)
  call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, keyval, zero)
  call c_set(of_type, datatype%MPI_VAL, keyval)
  call check(1, 1, c_reads_pointer(of_type, datatype%MPI_VAL, keyval) == 1)
  call MPI_Type_get_attr(datatype, keyval, value, flag)
  call check(1, 3, flag .and. value == c_pointer())
  call MPI_Type_set_attr(datatype, keyval, -9_MPI_ADDRESS_KIND)
  call check(3, 1, c_reads_address(of_type, datatype%MPI_VAL, keyval) == -9)
  call MPI_Type_get_attr(datatype, keyval, value, flag)
  call check(3, 3, flag .and. value == -9)
  call MPI_Type_free(datatype)
  call MPI_Type_free_keyval(keyval)

  call MPI_Win_create(memory, size, 4, MPI_INFO_NULL, MPI_COMM_SELF, win)
  call MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, keyval, zero)
  call c_set(of_win, win%MPI_VAL, keyval)
  call check(1, 1, c_reads_pointer(of_win, win%MPI_VAL, keyval) == 1)
  call MPI_Win_get_attr(win, keyval, value, flag)
  call check(1, 3, flag .and. value == c_pointer())
  call MPI_Win_set_attr(win, keyval, 11_MPI_ADDRESS_KIND)
  call check(3, 1, c_reads_address(of_win, win%MPI_VAL, keyval) == 11)
  call MPI_Win_get_attr(win, keyval, value, flag)
  call check(3, 3, flag .and. value == 11)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
  if (.not. flag .or. value /= 16) error stop 'MPI_WIN_SIZE'
  if (c_reads_address(of_win, win%MPI_VAL, MPI_WIN_SIZE) /= 16) error stop 'MPI_WIN_SIZE in C'
  call MPI_Win_free(win)
  call MPI_Win_free_keyval(keyval)
end subroutine

program attributes
  use mpi_f08
  use sides
  implicit none
  call MPI_Init()
  call with_mpi()
  if (count(tried) /= 9) error stop 'not all of the nine pairs'
  call with_mpi_f08()
  call MPI_Finalize()
end program
