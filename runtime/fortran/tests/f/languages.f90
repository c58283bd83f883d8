! Mixed languages: Example 16.16 (Fortran makes the type, C sends it), handles, statuses and attributes. Two ranks.
program languages
  use mpi
  implicit none
  interface
    subroutine c_routine(type) bind(C)
      integer :: type
    end subroutine
    subroutine c_receive(r) bind(C)
      real :: r(5)
    end subroutine
    integer function c_rank_of(comm) bind(C)
      integer, value :: comm
    end function
    subroutine c_attribute(comm, keyval, value) bind(C)
      integer, value :: comm, keyval, value
    end subroutine
    integer function c_copies_pointer(comm, keyval) bind(C)
      integer, value :: comm, keyval
    end function
    integer function c_tag(status) bind(C)
      integer :: status(*)
    end function
    integer function c_handler() bind(C)
    end function
  end interface
  real :: r(5), s(5)
  integer :: type, ierr, aoblen(1), aotype(1), rank, comm, keyval, status(MPI_STATUS_SIZE), position
  integer :: i, packed(10)
  integer(MPI_ADDRESS_KIND) :: aodisp(1), value
  logical :: flag
  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) then
    r = [1.5, 2.5, 3.5, 4.5, 5.5]
    ! create an absolute datatype for array R
    aoblen(1) = 5
    call MPI_GET_ADDRESS(r, aodisp(1), ierr)
    aotype(1) = MPI_REAL
    call MPI_TYPE_CREATE_STRUCT(1, aoblen, aodisp, aotype, type, ierr)
    call c_routine(type)
    ! The same type, used in Fortran.
    call MPI_TYPE_COMMIT(type, ierr)
    position = 0
    call MPI_PACK(MPI_BOTTOM, 1, type, packed, 40, position, MPI_COMM_WORLD, ierr)
    if (position /= 20) error stop 'pack from MPI_BOTTOM'
    position = 0
    call MPI_UNPACK(packed, 40, position, s, 5, MPI_REAL, MPI_COMM_WORLD, ierr)
    if (any(s /= r)) error stop 'unpack'
    call MPI_TYPE_FREE(type, ierr)
  else
    r = 0
    call c_receive(r)
    if (any(r /= [1.5, 2.5, 3.5, 4.5, 5.5])) error stop 'example 16.16'
  end if

  call MPI_COMM_SPLIT(MPI_COMM_WORLD, 0, -rank, comm, ierr)
  if (c_rank_of(comm) /= 1 - rank) error stop 'a communicator in C'
  call MPI_SENDRECV(i, 1, MPI_INTEGER, 1 - rank, 17, position, 1, MPI_INTEGER, 1 - rank, 17, &
    MPI_COMM_WORLD, status, ierr)
  if (c_tag(status) /= 17) error stop 'a status in C'

  ! C sets an attribute; Fortran reads it as an integer.
  call MPI_COMM_CREATE_KEYVAL(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)
  call c_attribute(comm, keyval, 42)
  call MPI_COMM_GET_ATTR(comm, keyval, value, flag, ierr)
  if (.not. flag .or. value /= 42) error stop 'an attribute of C'
  ! C sets a pointer; a function of Fortran copies it.
  call MPI_COMM_CREATE_KEYVAL(copied, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)
  if (c_copies_pointer(comm, keyval) /= 1) error stop 'a pointer of C'
  ! An error handler of C is called for an error in Fortran.
  call MPI_COMM_SET_ERRHANDLER(comm, c_handler(), ierr)
  call MPI_SEND(i, 1, MPI_INTEGER, 99, 0, comm, ierr)
  if (ierr == MPI_SUCCESS) error stop 'an error handler of C'
  call MPI_COMM_FREE(comm, ierr)
  call MPI_FINALIZE(ierr)
contains
  ! Copies an attribute unchanged.
  subroutine copied(old, key, extra, from, to, flag, code)
    integer :: old, key, code
    integer(MPI_ADDRESS_KIND) :: extra, from, to
    logical :: flag
    to = from
    flag = .true.
    code = MPI_SUCCESS
  end subroutine
end program
