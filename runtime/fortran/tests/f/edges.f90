! Sections whose datatypes are odd: datatypes of two numbers, markers of bounds; and sections before init, in a session.
program edges
  use mpi_f08
  implicit none
  call in_a_session()
  call MPI_Init()
  call two_numbers()
  call markers()
  call too_long()
  call MPI_Finalize()

contains

  ! A program with sessions only has no MPI_COMM_SELF, so the library finds out without it what a datatype is.
  subroutine in_a_session()
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    type(MPI_Comm) :: own
    type(MPI_Datatype) :: pair
    type(MPI_Request) :: request
    integer :: x(24), y(24), want(24), i
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Group_from_session_pset(session, 'mpi://SELF', group)
    call MPI_Comm_create_from_group(group, 'edges', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, own)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    x = [(i, i = 1, 24)]; y = 0; want = 0; want(2:24:3) = x(1:24:3)
    call MPI_Irecv(y(2:24:3), 4, pair, 0, 1, own, request)
    call MPI_Send(x(1:24:3), 4, pair, 0, 1, own)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(y /= want)) error stop 'a section in a session'
    call MPI_Type_free(pair)
    call MPI_Comm_free(own)
    call MPI_Group_free(group)
    call MPI_Session_finalize(session)
  end subroutine in_a_session

  ! Each number of MPI_2INTEGER may lie elsewhere.
  subroutine two_numbers()
    integer :: a(5, 2), b(5, 2), want(5, 2), i
    double precision :: c(5, 2), d(5, 2)
    type(MPI_Request) :: request
    a = reshape([(i, i = 1, 10)], [5, 2]); b = 0; want = 0; want(4, :) = a(2, :)
    call MPI_Irecv(b(4, :), 1, MPI_2INTEGER, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(a(2, :), 1, MPI_2INTEGER, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(b /= want)) error stop 'MPI_2INTEGER over a row'
    c = a; d = 0
    call MPI_Irecv(d(4, :), 1, MPI_2DOUBLE_PRECISION, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(c(2, :), 1, MPI_2DOUBLE_PRECISION, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(d /= want)) error stop 'MPI_2DOUBLE_PRECISION over a row'
  end subroutine two_numbers

  ! The element of the datatype is two elements of the section, and the marker has no bytes.
  subroutine markers()
    type(MPI_Datatype) :: odd
    type(MPI_Request) :: request
    integer :: x(24), y(24), want(24), i, made, code
    external :: MPI_TYPE_STRUCT
    call MPI_TYPE_STRUCT(3, [1, 1, 1], [0, 4, 8], &
      [MPI_INTEGER%MPI_VAL, MPI_INTEGER%MPI_VAL, int(z'1211')], made, code)
    if (code /= MPI_SUCCESS) error stop 'MPI_TYPE_STRUCT'
    odd%MPI_VAL = made
    call MPI_Type_commit(odd)
    x = [(i, i = 1, 24)]; y = 0; want = 0; want(2:24:3) = x(1:24:3)
    call MPI_Irecv(y(2:24:3), 4, odd, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(x(1:24:3), 4, odd, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(y /= want)) error stop 'a datatype with a marker'
    call MPI_Type_free(odd)
  end subroutine markers

  ! A datatype that is much longer than the section takes no memory of its length.
  subroutine too_long()
    type(MPI_Datatype) :: far
    integer :: x(24), code, class
    integer(MPI_ADDRESS_KIND) :: places(2)
    places = [0_MPI_ADDRESS_KIND, 10_MPI_ADDRESS_KIND**13]
    call MPI_Type_create_hindexed(2, [1, 1], places, MPI_INTEGER, far)
    call MPI_Type_commit(far)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    x = 0
    call MPI_Send(x(1:24:3), 1, far, MPI_PROC_NULL, 1, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_COUNT) error stop 'a datatype that is longer than the section'
    call MPI_Type_free(far)
  end subroutine too_long
end program edges
