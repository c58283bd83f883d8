! Random array sections, each sent from one rank to the other and back, packed, and broadcast. The oracle is array
! assignment. The first argument is the number of turns, the second the seed.
program campaign
  use mpi_f08
  implicit none
  integer, parameter :: most = 9
  integer :: rank, other, turns, turn, n, count, position, i
  integer :: f(3), l(3), s(3), shape(3), g(3), h(3), t(3)
  integer(8) :: state
  real(8), allocatable :: a(:, :, :), b(:, :, :), want(:, :, :), flat(:), from(:), packed(:)
  integer(2), allocatable :: c(:, :, :), d(:, :, :)
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
  character(len=20) :: text
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  other = 1 - rank
  turns = 3000
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) turns
  end if
  state = 12345
  if (command_argument_count() > 1) then
    call get_command_argument(2, text)
    read (text, *) state
  end if
  allocate (a(most, most, most), b(most, most, most), want(most, most, most), packed(most**3))
  allocate (c(most, most, most), d(most, most, most))
  a = reshape([(real(i, 8), i = 1, most**3)], [most, most, most])
  c = int(a, 2)
  do turn = 1, turns
    do i = 1, 3
      shape(i) = draw(0, 4)
      if (draw(0, 3) > 0) shape(i) = max(shape(i), 1)
      call section(shape(i), f(i), l(i), s(i))
      call section(shape(i), g(i), h(i), t(i))
    end do
    n = product(shape)
    count = n
    if (draw(0, 3) == 0) count = draw(0, n)
    ! The sequence of the section's elements, and what the other section then has.
    if (allocated(flat)) deallocate (flat, from)
    allocate (flat(n), from(n))
    from = reshape(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), [n])
    want = -1
    flat = -1
    flat(1:count) = from(1:count)
    want(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)) = reshape(flat, shape)
    b = -1
    select case (draw(0, 6))
    case (0)
      call MPI_Sendrecv(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), count, MPI_REAL8, other, 1, &
        b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), count, MPI_REAL8, other, 1, MPI_COMM_WORLD, status)
    case (1)
      call MPI_Irecv(b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), count, MPI_REAL8, other, 2, &
        MPI_COMM_WORLD, requests(1))
      call MPI_Isend(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), count, MPI_REAL8, other, 2, &
        MPI_COMM_WORLD, requests(2))
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    case (2)
      position = 0
      call MPI_Pack(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), count, MPI_REAL8, packed, 8 * most**3, &
        position, MPI_COMM_WORLD)
      if (position /= 8 * count .or. any(packed(1:count) /= from(1:count))) call wrong('pack')
      position = 0
      call MPI_Unpack(packed, 8 * most**3, position, b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), count, &
        MPI_REAL8, MPI_COMM_WORLD)
    case (3)
      ! The bytes of a message need not be whole elements.
      call MPI_Sendrecv(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), 8 * count, MPI_BYTE, other, 3, &
        b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), 8 * count, MPI_BYTE, other, 3, MPI_COMM_WORLD, status)
    case (4)
      if (rank == 0) b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)) = reshape(flat, shape)
      call MPI_Bcast(b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), count, MPI_REAL8, 0, MPI_COMM_WORLD)
    case (5)
      if (rank == 0) b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)) = reshape(flat, shape)
      call MPI_Ibcast(b(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), count, MPI_REAL8, 0, MPI_COMM_WORLD, &
        requests(1))
      call MPI_Wait(requests(1), status)
    case (6)
      ! Elements of two bytes, also in another order.
      d = -1
      call MPI_Sendrecv(c(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), count, MPI_INTEGER2, other, 4, &
        d(g(1):h(1):t(1), g(2):h(2):t(2), g(3):h(3):t(3)), count, MPI_INTEGER2, other, 4, MPI_COMM_WORLD, status)
      b = d
    end select
    if (any(b /= want)) call wrong('data')
  end do
  call MPI_Finalize()
contains
  ! A random number from low to high. Both ranks draw the same.
  integer function draw(low, high)
    integer, intent(in) :: low, high
    state = mod(state * 1103515245_8 + 12345_8, 2147483648_8)
    draw = low + int(mod(state / 65536_8, int(high - low + 1, 8)))
  end function
  ! A random section of a given number of elements.
  subroutine section(number, first, last, step)
    integer, intent(in) :: number
    integer, intent(out) :: first, last, step
    step = draw(1, 2)
    first = draw(1, most - max(number - 1, 0) * step)
    last = first + (number - 1) * step
    if (number > 0 .and. draw(0, 2) == 0) then
      i_swap: block
        integer :: keep
        keep = first
        first = last
        last = keep
        step = -step
      end block i_swap
    end if
  end subroutine
  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print *, 'wrong ', what, ' in turn ', turn, ': ', f, l, s, ' to ', g, h, t, ' count ', count
    error stop 1
  end subroutine
end program
