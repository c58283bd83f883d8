! Processes that start processes: the strings of MPI_Comm_spawn and MPI_Comm_spawn_multiple. The children run this
! program, too, and check the arguments that they get.
program spawned
  use mpi_f08
  implicit none
  type(MPI_Comm) :: parent, children
  integer :: code, rank, codes(3), value, remote
  character(len=4096) :: self
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call get_command_argument(0, self)
  call MPI_Comm_get_parent(parent)
  if (parent == MPI_COMM_NULL) then
    call one_command()
    call several_commands()
    call no_command()
  else
    call child()
  end if
  call MPI_Finalize(code)
  if (code /= MPI_SUCCESS) error stop 'finalize'
contains
  subroutine one_command()
    ! The list ends with a blank string, and blanks at the ends of arguments do not count.
    character(len=20) :: arguments(4)
    arguments = [character(len=20) :: 'one', 'a b', '  front', '']
    codes = -1
    call MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes)
    if (rank == 0 .and. any(codes(1:2) /= MPI_SUCCESS)) error stop 'codes'
    call talk(2)
    call MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE)
    call talk(1)
  end subroutine

  subroutine several_commands()
    character(len=4096) :: commands(2)
    character(len=8) :: arguments(2, 3)
    integer :: most(2)
    type(MPI_Info) :: infos(2)
    commands = self
    ! Each row has the arguments of a command.
    arguments(1, :) = [character(len=8) :: 'two', 'first', '']
    arguments(2, :) = [character(len=8) :: 'three', '', '']
    most = [1, 2]
    infos = MPI_INFO_NULL
    call MPI_Comm_spawn_multiple(2, commands, arguments, most, infos, 0, MPI_COMM_WORLD, children, codes)
    if (rank == 0 .and. any(codes /= MPI_SUCCESS)) error stop 'codes of several'
    call talk(3)
    call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, children, &
                                 MPI_ERRCODES_IGNORE)
    call talk(3)
  end subroutine

  subroutine no_command()
    integer :: class
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_spawn('./no-such-program', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes, code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_SPAWN) error stop 'no error'
  end subroutine

  subroutine talk(wanted)
    integer, intent(in) :: wanted
    call MPI_Comm_remote_size(children, remote)
    if (remote /= wanted) error stop 'remote size'
    call MPI_Allreduce(1, value, 1, MPI_INTEGER, MPI_SUM, children)
    if (value /= wanted) error stop 'sum'
    call MPI_Comm_disconnect(children)
    if (children /= MPI_COMM_NULL) error stop 'disconnect'
  end subroutine

  subroutine child()
    character(len=40) :: text
    integer :: length, number
    number = command_argument_count()
    if (number > 0) then
      call get_command_argument(1, text)
      select case (text)
      case ('one')
        if (number /= 3) error stop 'number of arguments'
        call get_command_argument(2, text, length)
        if (text /= 'a b' .or. length /= 3) error stop 'second argument'
        call get_command_argument(3, text, length)
        if (text /= '  front' .or. length /= 7) error stop 'third argument'
      case ('two')
        call get_command_argument(2, text)
        if (number /= 2 .or. text /= 'first' .or. rank /= 0) error stop 'arguments of the first command'
      case ('three')
        if (number /= 1 .or. rank == 0) error stop 'arguments of the second command'
      case default
        error stop 'an unknown argument'
      end select
    end if
    call MPI_Comm_remote_size(parent, remote)
    call MPI_Allreduce(1, value, 1, MPI_INTEGER, MPI_SUM, parent)
    if (value /= remote) error stop 'sum of the parents'
    call MPI_Comm_disconnect(parent)
  end subroutine
end program
