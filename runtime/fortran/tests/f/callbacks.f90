! Operations, error handlers, attributes, generalized requests and names of arguments, through mpi_f08.
module functions
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: handled = 0, deleted = 0, copied = 0, freed = 0
contains
  subroutine largest(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: from(:), to(:)
    if (datatype /= MPI_INTEGER) error stop 'op: datatype'
    call c_f_pointer(invec, from, [len])
    call c_f_pointer(inoutvec, to, [len])
    to = max(from, to) + 0
  end subroutine
  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_SELF .or. error_code == MPI_SUCCESS) error stop 'handler'
    handled = handled + 1
  end subroutine
  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (extra_state /= 77) error stop 'copy: extra state'
    attribute_val_out = attribute_val_in + 1
    flag = .true.
    copied = copied + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (extra_state /= 77) error stop 'delete: extra state'
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    status%MPI_SOURCE = 5
    status%MPI_TAG = int(extra_state)
    call MPI_Status_set_cancelled(status, .false.)
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module
program callbacks
  use functions
  implicit none
  integer :: rank, size, from(3), to(3), keyval, ierr, n
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: errhandler
  type(MPI_Comm) :: other
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Info) :: info
  character(len=10) :: text
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Op_create(largest, .true., op)
  call MPI_Op_commutative(op, flag)
  if (.not. flag) error stop 'commutative'
  from = [rank, -rank, 7]
  call MPI_Allreduce(from, to, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (any(to /= [size - 1, 0, 7])) error stop 'op'
  call MPI_Op_free(op)
  call slots()
  call MPI_Comm_create_errhandler(handler, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler)
  call MPI_Send(from, 1, MPI_INTEGER, 99, 0, MPI_COMM_SELF, ierr)
  if (handled /= 1 .or. ierr == MPI_SUCCESS) error stop 'errhandler'
  call MPI_Comm_create_keyval(copy, delete, keyval, 77_MPI_ADDRESS_KIND)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag)
  if (flag) error stop 'no attribute'
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, -5000000000_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, other)
  call MPI_Comm_get_attr(other, keyval, value, flag)
  if (.not. flag .or. value /= -4999999999_MPI_ADDRESS_KIND .or. copied /= 1) error stop 'copied'
  call MPI_Comm_free(other)
  if (deleted /= 1) error stop 'deleted'
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval)
  call MPI_Comm_free_keyval(keyval)
  if (keyval /= MPI_KEYVAL_INVALID) error stop 'keyval'
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 42_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, other)
  call MPI_Comm_get_attr(other, keyval, value, flag)
  if (.not. flag .or. value /= 42) error stop 'dup fn'
  call MPI_Comm_free(other)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  if (.not. flag .or. value < 32767) error stop 'tag_ub'
  call MPI_Grequest_start(query, release, cancel, 9_MPI_ADDRESS_KIND, request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  if (status%MPI_SOURCE /= 5 .or. status%MPI_TAG /= 9 .or. n /= 3 .or. freed /= 1) error stop 'grequest'
  call MPI_Info_create(info)
  call MPI_Info_set(info, ' a key  ', '  a value ')
  n = 10
  call MPI_Info_get_string(info, 'a key', n, text, flag)
  if (.not. flag .or. text /= 'a value' .or. n /= 7) error stop 'info'
  text = 'unchanged'
  call MPI_Info_get_string(info, 'no key', n, text, flag)
  if (flag .or. text /= 'unchanged') error stop 'no key'
  call MPI_Info_get_nthkey(info, 0, text)
  if (text /= 'a key') error stop 'nth key'
  call MPI_Info_free(info)
  call MPI_Finalize()
contains
  ! The places of functions of freed operations are used again, but not while a call may have the operation.
  subroutine slots()
    procedure(MPI_User_function), pointer :: nowhere
    integer, asynchronous :: to(3)
    integer :: i
    call MPI_Op_create(largest, .true., op)
    call MPI_Allreduce_init(from, to, 3, MPI_INTEGER, op, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call MPI_Op_free(op)
    do i = 1, 200
      ! Functions that nobody calls.
      call c_f_procpointer(transfer(int(16 * i, c_intptr_t), c_null_funptr), nowhere)
      call MPI_Op_create(nowhere, .true., op)
      call MPI_Op_free(op)
    end do
    to = -99
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(to /= [size - 1, 0, 7])) error stop 'an operation that is freed'
    call MPI_Request_free(request)
  end subroutine
end program
