! Random array sections of one to seven dimensions, of three types of elements, in every class of routines. Two ranks
! draw the same numbers. The oracle is array assignment; all elements around a section must stay what they were.
! The first argument is the number of turns, the second the seed, the third the number of seconds after which it ends.
module campaign_state
  use mpi_f08
  implicit none
  integer, parameter :: size_of(7) = [6, 5, 4, 3, 2, 2, 2], all = 2880, shift = 3000
  ! The dimensions of each case, as a row of bits.
  integer, parameter :: dimensions(10) = [1, 4, 3, 18, 11, 15, 31, 63, 127, 126]
  type, bind(c) :: element
    real(8) :: place
    integer(4) :: kind
  end type
  interface numbers
    procedure of_real, of_small, of_element
  end interface
  interface values
    procedure to_real, to_small, to_element
  end interface
  integer(8) :: state
  integer :: rank, other, turn, routine, mode, kind
  integer :: case_of(2), f(7), l(7), s(7), g(7), h(7), t(7), many(7)
  ! The numbers of elements, and the elements as numbers: sent, in the target before, and expected there.
  integer :: n, m
  real(8) :: sent(0:all - 1), had(0:all - 1), got(0:all - 1)
  ! The datatype: its extent in elements, the places of its values, the bytes of an element.
  type(MPI_Datatype) :: datatype, base(3), types(4, 3)
  integer :: extent, places(2), values_of, width, form
contains
  elemental real(8) function of_real(x)
    real(8), intent(in) :: x
    of_real = x
  end function
  elemental real(8) function of_small(x)
    integer(2), intent(in) :: x
    of_small = x
  end function
  elemental real(8) function of_element(x)
    type(element), intent(in) :: x
    of_element = x%place
    if (real(x%kind, 8) /= x%place) of_element = huge(1d0)
  end function
  elemental real(8) function to_real(x, mold)
    real(8), intent(in) :: x, mold
    to_real = x + 0 * mold
  end function
  elemental integer(2) function to_small(x, mold)
    real(8), intent(in) :: x
    integer(2), intent(in) :: mold
    to_small = int(x, 2) + 0_2 * mold
  end function
  elemental type(element) function to_element(x, mold)
    real(8), intent(in) :: x
    type(element), intent(in) :: mold
    to_element%place = x
    to_element%kind = int(x) + 0 * mold%kind
  end function
  ! A random number from low to high.
  integer function draw(low, high)
    integer, intent(in) :: low, high
    state = mod(state * 1103515245_8 + 12345_8, 2147483648_8)
    draw = low + int(mod(state / 65536_8, int(high - low + 1, 8)))
  end function
  ! A random section, and the number of its elements.
  subroutine section(which, first, last, step, number)
    integer, intent(out) :: which, first(7), last(7), step(7), number
    integer :: d, k
    which = draw(1, 10)
    number = 1
    many = 1
    do d = 1, 7
      step(d) = 1
      first(d) = draw(1, size_of(d))
      last(d) = first(d)
      if (.not. btest(dimensions(which), d - 1)) cycle
      k = draw(1, size_of(d))
      if (draw(0, 40) == 0) k = 0
      many(d) = k
      number = number * k
      step(d) = draw(1, max(1, (size_of(d) - 1) / max(k - 1, 1)))
      first(d) = draw(1, size_of(d) - max(k - 1, 0) * step(d))
      last(d) = first(d) + (k - 1) * step(d)
      if (k > 0 .and. draw(0, 2) == 0) then
        first(d) = last(d)
        last(d) = first(d) - (k - 1) * step(d)
        step(d) = -step(d)
      end if
    end do
  end subroutine
  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print *, 'wrong ', what, ' in turn ', turn, ' on rank ', rank, ': routine ', routine, ' mode ', mode, ' kind ', &
      kind, ' datatype ', form
    print *, 'case ', case_of(1), ': ', f, ' to ', l, ' by ', s
    print *, 'case ', case_of(2), ': ', g, ' to ', h, ' by ', t
    flush (6)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end module

module campaign_calls
  use campaign_state
  implicit none
  type(MPI_Comm) :: near
  type(MPI_Op) :: adding
  type(MPI_File) :: file
  type(MPI_Win) :: window
  logical :: has_partitions
  integer, asynchronous :: store(4 * all)
  integer(8) :: packed(2, 2 * all), buffer(2 * all)
contains
  ! A Fortran operation on pairs of reals.
  subroutine add(invec, inoutvec, len, of)
    use iso_c_binding
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: of
    real(8), pointer :: x(:), y(:)
    if (of == base(1)) return
    call c_f_pointer(invec, x, [2 * len])
    call c_f_pointer(inoutvec, y, [2 * len])
    y = y + x
  end subroutine
  ! Elements that come from the sections sent by a rank, or are in its target section.
  subroutine arrive(at, from, begin, number)
    integer, intent(in) :: at, from, begin, number
    integer :: i, j
    do i = 0, number - 1
      do j = 1, values_of
        got((at + i) * extent + places(j)) = sent((begin + i) * extent + places(j)) + (from - rank) * shift
      end do
    end do
  end subroutine
  subroutine stay(at, from, begin, number)
    integer, intent(in) :: at, from, begin, number
    integer :: i, j
    do i = 0, number - 1
      do j = 1, values_of
        got((at + i) * extent + places(j)) = had((begin + i) * extent + places(j)) - (from - rank) * shift
      end do
    end do
  end subroutine
  ! Sums of the elements of ranks up to `last`, into the target; from the target if `in_place`.
  subroutine sums(at, begin, number, last, in_place)
    integer, intent(in) :: at, begin, number, last
    logical, intent(in) :: in_place
    integer :: i, j, r
    do i = 0, number - 1
      do j = 1, values_of
        associate (to => got((at + i) * extent + places(j)), k => (begin + i) * extent + places(j))
          to = 0
          do r = 0, last
            if (in_place) to = to + had(k) - (r - rank) * shift
            if (.not. in_place) to = to + sent(k) + (r - rank) * shift
          end do
        end associate
      end do
    end do
  end subroutine
  ! Completes an operation in one of many ways.
  subroutine complete(request)
    type(MPI_Request), intent(inout) :: request
    type(MPI_Request) :: list(3)
    type(MPI_Status) :: status, statuses(3)
    logical :: flag
    integer :: index, number, indices(3)
    list = MPI_REQUEST_NULL
    list(2) = request
    flag = .false.
    select case (draw(0, 11))
    case (0)
      call MPI_Waitall(3, list, statuses)
    case (1)
      call MPI_Waitany(3, list, index, status)
      if (index /= 2) call wrong('index')
    case (2)
      call MPI_Waitsome(3, list, number, indices, MPI_STATUSES_IGNORE)
      if (number /= 1 .or. indices(1) /= 2) call wrong('indices')
    case (3)
      do while (.not. flag)
        call MPI_Test(list(2), flag, MPI_STATUS_IGNORE)
      end do
    case (4)
      do while (.not. flag)
        ! MPI_Testall of MPICH 5.0.2 refuses requests of persistent collective operations.
        if (mode == 2) call MPI_Test(list(2), flag, MPI_STATUS_IGNORE)
        if (mode /= 2) call MPI_Testall(3, list, flag, MPI_STATUSES_IGNORE)
      end do
    case (5)
      do while (.not. flag)
        call MPI_Testany(3, list, index, flag, status)
      end do
    case (6)
      number = 0
      do while (number == 0)
        call MPI_Testsome(3, list, number, indices, statuses)
      end do
    case (7)
      do while (.not. flag)
        call MPI_Request_get_status(list(2), flag, status)
      end do
      call MPI_Wait(list(2), status)
    case default
      call MPI_Wait(list(2), MPI_STATUS_IGNORE)
    end select
    request = list(2)
  end subroutine
  ! Completes a nonblocking operation; starts and frees a persistent one.
  subroutine finish(request, again)
    type(MPI_Request), intent(inout) :: request
    logical, intent(in) :: again
    type(MPI_Request) :: list(1)
    if (mode == 1) then
      call complete(request)
      return
    end if
    call MPI_Start(request)
    call complete(request)
    if (again) then
      list = request
      call MPI_Startall(1, list)
      call complete(request)
    end if
    call MPI_Request_free(request)
  end subroutine
  ! Calls a routine with a section to send and a section to receive into, and says what the latter then has.
  subroutine act(x, y)
    type(*), dimension(..), intent(in), asynchronous :: x
    type(*), dimension(..), asynchronous :: y
    type(MPI_Request) :: request, requests(2)
    integer :: a, b, c, i, j, k, root, to(0:1), from(0:1), counts(0:1, 0:1), outs(0:1), ins(0:1), position
    integer(MPI_ADDRESS_KIND) :: wide_to(0:1), wide_from(0:1), wide, nothing
    integer(MPI_OFFSET_KIND), parameter :: start = 0
    logical :: flag, place
    type(MPI_Datatype) :: of(0:1)
    type(MPI_Info) :: info
    type(MPI_Op) :: op
    info = MPI_INFO_NULL
    ! How many elements of the datatype fit.
    a = n / extent
    b = m / extent
    root = draw(0, 1)
    place = draw(0, 3) == 0
    of = datatype
    ! One block each.
    c = draw(0, min(a, b))
    if (draw(0, 1) == 0) c = min(a, b)
    nothing = 0
    select case (routine)
    case (0)
      call arrive(0, other, 0, c)
      select case (mode)
      case (0)
        call MPI_Sendrecv(x, c, datatype, other, 1, y, c, datatype, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      case (1)
        call MPI_Irecv(y, c, datatype, other, 1, MPI_COMM_WORLD, requests(1))
        call MPI_Isend(x, c, datatype, other, 1, MPI_COMM_WORLD, requests(2))
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      case (2)
        call MPI_Recv_init(y, c, datatype, other, 1, MPI_COMM_WORLD, requests(1))
        call MPI_Send_init(x, c, datatype, other, 1, MPI_COMM_WORLD, requests(2))
        call MPI_Startall(2, requests)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
        call MPI_Request_free(requests(1))
        call MPI_Request_free(requests(2))
      end select
    case (1)
      ! Partitions; the receiver has as many elements in others.
      if (.not. has_partitions) return
      k = draw(1, 4)
      c = min(a, b) / k
      i = merge(1, k, draw(0, 1) == 0)
      call arrive(0, other, 0, k * c)
      call MPI_Psend_init(x, k, int(c, MPI_COUNT_KIND), datatype, other, 2, MPI_COMM_WORLD, info, requests(1))
      call MPI_Precv_init(y, i, int(k * c / i, MPI_COUNT_KIND), datatype, other, 2, MPI_COMM_WORLD, info, requests(2))
      do j = 0, draw(0, 1)
        call MPI_Startall(2, requests)
        select case (draw(0, 2))
        case (0)
          call MPI_Pready_range(0, k - 1, requests(1))
        case (1)
          call MPI_Pready_list(k, [(position, position = k - 1, 0, -1)], requests(1))
        case (2)
          do position = 0, k - 1
            call MPI_Pready(position, requests(1))
          end do
        end select
        flag = .false.
        do while (.not. flag .and. mode > 0)
          call MPI_Parrived(requests(2), i - 1, flag)
        end do
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      end do
      call MPI_Request_free(requests(1))
      call MPI_Request_free(requests(2))
    case (2)
      call stay(0, other, 0, min(c, b))
      call MPI_Sendrecv_replace(y, c, datatype, other, 3, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (3)
      call stay(0, root, 0, c)
      if (mode == 0) call MPI_Bcast(y, c, datatype, root, MPI_COMM_WORLD)
      if (mode == 1) call MPI_Ibcast(y, c, datatype, root, MPI_COMM_WORLD, request)
      if (mode == 2) call MPI_Bcast_init(y, c, datatype, root, MPI_COMM_WORLD, info, request)
      if (mode > 0) call finish(request, .true.)
    case (4)
      c = draw(0, min(a, b / 2))
      if (rank == root) then
        do i = 0, 1
          call arrive(i * c, i, 0, c)
        end do
      end if
      if (mode == 0) call MPI_Gather(x, c, datatype, y, c, datatype, root, MPI_COMM_WORLD)
      if (mode == 1) call MPI_Igather(x, c, datatype, y, c, datatype, root, MPI_COMM_WORLD, request)
      if (mode == 2) call MPI_Gather_init(x, c, datatype, y, c, datatype, root, MPI_COMM_WORLD, info, request)
      if (mode > 0) call finish(request, .true.)
    case (5)
      c = draw(0, min(a / 2, b))
      call arrive(0, root, rank * c, c)
      if (mode == 0) call MPI_Scatter(x, c, datatype, y, c, datatype, root, MPI_COMM_WORLD)
      if (mode == 1) call MPI_Iscatter(x, c, datatype, y, c, datatype, root, MPI_COMM_WORLD, request)
      if (mode == 2) call MPI_Scatter_init(x, c, datatype, y, c, datatype, root, MPI_COMM_WORLD, info, request)
      if (mode > 0) call finish(request, .true.)
    case (6)
      c = draw(0, min(a, b / 2))
      if (place) then
        call stay(other * c, other, other * c, c)
        if (mode == 0) call MPI_Allgather(MPI_IN_PLACE, c, datatype, y, c, datatype, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Iallgather(MPI_IN_PLACE, c, datatype, y, c, datatype, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Allgather_init(MPI_IN_PLACE, c, datatype, y, c, datatype, MPI_COMM_WORLD, info, request)
      else
        do i = 0, 1
          call arrive(i * c, i, 0, c)
        end do
        if (mode == 0) call MPI_Allgather(x, c, datatype, y, c, datatype, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Iallgather(x, c, datatype, y, c, datatype, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Allgather_init(x, c, datatype, y, c, datatype, MPI_COMM_WORLD, info, request)
      end if
      if (mode > 0) call finish(request, .true.)
    case (7)
      c = draw(0, min(a / 2, b / 2))
      if (place) then
        call stay(other * c, other, rank * c, c)
        if (mode == 0) call MPI_Alltoall(MPI_IN_PLACE, c, datatype, y, c, datatype, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Ialltoall(MPI_IN_PLACE, c, datatype, y, c, datatype, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Alltoall_init(MPI_IN_PLACE, c, datatype, y, c, datatype, MPI_COMM_WORLD, info, request)
      else
        do i = 0, 1
          call arrive(i * c, i, rank * c, c)
        end do
        if (mode == 0) call MPI_Alltoall(x, c, datatype, y, c, datatype, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Ialltoall(x, c, datatype, y, c, datatype, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Alltoall_init(x, c, datatype, y, c, datatype, MPI_COMM_WORLD, info, request)
      end if
      if (mode > 0) call finish(request, .not. place)
    case (8:14)
      ! Counts for each pair of ranks, and displacements in two halves of each section, in a random order.
      a = a / 2
      b = b / 2
      c = min(a, b)
      do i = 0, 1
        do j = 0, 1
          counts(i, j) = draw(0, c)
        end do
      end do
      k = draw(0, 1)
      to = [(a * merge(i, 1 - i, k == 0) + draw(0, a - c), i = 0, 1)]
      k = draw(0, 1)
      from = [(b * merge(i, 1 - i, k == 0) + draw(0, b - c), i = 0, 1)]
      wide_to = int(to * extent * width, MPI_ADDRESS_KIND)
      wide_from = int(from * extent * width, MPI_ADDRESS_KIND)
      ! `to`: where the blocks to send begin; `from`: where received ones begin.
      outs = counts(rank, :)
      ins = counts(:, rank)
      select case (routine)
      case (8)
        outs = counts(0, 0)
        ins = counts(:, 0)
        if (rank == root) then
          do i = 0, 1
            call arrive(from(i), i, 0, ins(i))
          end do
        end if
        c = ins(rank)
        if (mode == 0) call MPI_Gatherv(x, c, datatype, y, ins, from, datatype, root, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Igatherv(x, c, datatype, y, ins, from, datatype, root, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Gatherv_init(x, c, datatype, y, ins, from, datatype, root, MPI_COMM_WORLD, info, request)
      case (9)
        outs = counts(0, :)
        c = outs(rank)
        call arrive(0, root, to(rank), c)
        if (mode == 0) call MPI_Scatterv(x, outs, to, datatype, y, c, datatype, root, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Iscatterv(x, outs, to, datatype, y, c, datatype, root, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Scatterv_init(x, outs, to, datatype, y, c, datatype, root, MPI_COMM_WORLD, info, request)
      case (10)
        ins = counts(:, 0)
        c = ins(rank)
        do i = 0, 1
          call arrive(from(i), i, 0, ins(i))
        end do
        if (mode == 0) call MPI_Allgatherv(x, c, datatype, y, ins, from, datatype, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Iallgatherv(x, c, datatype, y, ins, from, datatype, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Allgatherv_init(x, c, datatype, y, ins, from, datatype, MPI_COMM_WORLD, info, request)
      case (11)
        do i = 0, 1
          call arrive(from(i), i, to(rank), ins(i))
        end do
        if (mode == 0) call MPI_Alltoallv(x, outs, to, datatype, y, ins, from, datatype, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Ialltoallv(x, outs, to, datatype, y, ins, from, datatype, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Alltoallv_init(x, outs, to, datatype, y, ins, from, datatype, MPI_COMM_WORLD, info, request)
      case (12)
        do i = 0, 1
          call arrive(from(i), i, to(rank), ins(i))
        end do
        to = int(wide_to)
        from = int(wide_from)
        if (mode == 0) call MPI_Alltoallw(x, outs, to, of, y, ins, from, of, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Ialltoallw(x, outs, to, of, y, ins, from, of, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Alltoallw_init(x, outs, to, of, y, ins, from, of, MPI_COMM_WORLD, info, request)
      case (13)
        ! The neighbours are the other rank, and the rank itself. They get the same numbers of elements.
        counts(1, 1) = counts(0, 0)
        counts(1, 0) = counts(0, 1)
        outs = [counts(0, 1), counts(0, 0)]
        call arrive(from(0), other, to(0), outs(0))
        call arrive(from(1), rank, to(1), outs(1))
        if (mode == 0) call MPI_Neighbor_alltoallv(x, outs, to, datatype, y, outs, from, datatype, near)
        if (mode == 1) call MPI_Ineighbor_alltoallv(x, outs, to, datatype, y, outs, from, datatype, near, request)
        if (mode == 2) call MPI_Neighbor_alltoallv_init(x, outs, to, datatype, y, outs, from, datatype, near, info, request)
      case (14)
        outs = [counts(0, 1), counts(0, 0)]
        call arrive(from(0), other, to(0), outs(0))
        call arrive(from(1), rank, to(1), outs(1))
        if (mode == 0) call MPI_Neighbor_alltoallw(x, outs, wide_to, of, y, outs, wide_from, of, near)
        if (mode == 1) call MPI_Ineighbor_alltoallw(x, outs, wide_to, of, y, outs, wide_from, of, near, request)
        if (mode == 2) call MPI_Neighbor_alltoallw_init(x, outs, wide_to, of, y, outs, wide_from, of, near, info, request)
      end select
      if (mode > 0) call finish(request, .true.)
    case (15)
      c = draw(0, min(a, b / 2))
      call arrive(0, other, 0, c)
      call arrive(c, rank, 0, c)
      if (mode == 0) call MPI_Neighbor_allgather(x, c, datatype, y, c, datatype, near)
      if (mode == 1) call MPI_Ineighbor_allgather(x, c, datatype, y, c, datatype, near, request)
      if (mode == 2) call MPI_Neighbor_allgather_init(x, c, datatype, y, c, datatype, near, info, request)
      if (mode > 0) call finish(request, .true.)
    case (16)
      c = draw(0, min(a / 2, b / 2))
      call arrive(0, other, 0, c)
      call arrive(c, rank, c, c)
      if (mode == 0) call MPI_Neighbor_alltoall(x, c, datatype, y, c, datatype, near)
      if (mode == 1) call MPI_Ineighbor_alltoall(x, c, datatype, y, c, datatype, near, request)
      if (mode == 2) call MPI_Neighbor_alltoall_init(x, c, datatype, y, c, datatype, near, info, request)
      if (mode > 0) call finish(request, .true.)
    case (17)
      c = draw(0, min(a, b / 2))
      outs = c
      from = [c, 0]
      call arrive(c, other, 0, c)
      call arrive(0, rank, 0, c)
      if (mode == 0) call MPI_Neighbor_allgatherv(x, c, datatype, y, outs, from, datatype, near)
      if (mode == 1) call MPI_Ineighbor_allgatherv(x, c, datatype, y, outs, from, datatype, near, request)
      if (mode == 2) call MPI_Neighbor_allgatherv_init(x, c, datatype, y, outs, from, datatype, near, info, request)
      if (mode > 0) call finish(request, .true.)
    case (18:24)
      ! Operations take numbers, or pairs of them.
      op = MPI_SUM
      if (kind == 3) return
      if (kind == 1 .and. form == 2) then
        op = adding
      else if (form > 1) then
        return
      end if
      select case (routine)
      case (18)
        if (rank == root) call sums(0, 0, c, 1, place)
        if (place .and. rank == root) then
          if (mode == 0) call MPI_Reduce(MPI_IN_PLACE, y, c, datatype, op, root, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce(MPI_IN_PLACE, y, c, datatype, op, root, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_init(MPI_IN_PLACE, y, c, datatype, op, root, MPI_COMM_WORLD, info, request)
        else if (place) then
          if (mode == 0) call MPI_Reduce(y, nothing, c, datatype, op, root, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce(y, nothing, c, datatype, op, root, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_init(y, nothing, c, datatype, op, root, MPI_COMM_WORLD, info, request)
        else
          if (mode == 0) call MPI_Reduce(x, y, c, datatype, op, root, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce(x, y, c, datatype, op, root, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_init(x, y, c, datatype, op, root, MPI_COMM_WORLD, info, request)
        end if
      case (19)
        call sums(0, 0, c, 1, place)
        if (place) then
          if (mode == 0) call MPI_Allreduce(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Iallreduce(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Allreduce_init(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD, info, request)
        else
          if (mode == 0) call MPI_Allreduce(x, y, c, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Iallreduce(x, y, c, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Allreduce_init(x, y, c, datatype, op, MPI_COMM_WORLD, info, request)
        end if
      case (20)
        call sums(0, 0, c, rank, place)
        if (place) then
          if (mode == 0) call MPI_Scan(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Iscan(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Scan_init(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD, info, request)
        else
          if (mode == 0) call MPI_Scan(x, y, c, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Iscan(x, y, c, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Scan_init(x, y, c, datatype, op, MPI_COMM_WORLD, info, request)
        end if
      case (21)
        place = .false.
        if (rank == 1) call sums(0, 0, c, 0, .false.)
        if (mode == 0) call MPI_Exscan(x, y, c, datatype, op, MPI_COMM_WORLD)
        if (mode == 1) call MPI_Iexscan(x, y, c, datatype, op, MPI_COMM_WORLD, request)
        if (mode == 2) call MPI_Exscan_init(x, y, c, datatype, op, MPI_COMM_WORLD, info, request)
      case (22)
        c = draw(0, min(a / 2, b))
        if (place) c = min(c, b / 2)
        call sums(0, rank * c, c, 1, place)
        if (place) then
          if (mode == 0) call MPI_Reduce_scatter_block(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce_scatter_block(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_scatter_block_init(MPI_IN_PLACE, y, c, datatype, op, MPI_COMM_WORLD, info, request)
        else
          if (mode == 0) call MPI_Reduce_scatter_block(x, y, c, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce_scatter_block(x, y, c, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_scatter_block_init(x, y, c, datatype, op, MPI_COMM_WORLD, info, request)
        end if
      case (23)
        ins = [draw(0, min(a / 2, b / 2)), draw(0, min(a / 2, b / 2))]
        call sums(0, rank * ins(0), ins(rank), 1, place)
        if (place) then
          if (mode == 0) call MPI_Reduce_scatter(MPI_IN_PLACE, y, ins, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce_scatter(MPI_IN_PLACE, y, ins, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_scatter_init(MPI_IN_PLACE, y, ins, datatype, op, MPI_COMM_WORLD, info, request)
        else
          if (mode == 0) call MPI_Reduce_scatter(x, y, ins, datatype, op, MPI_COMM_WORLD)
          if (mode == 1) call MPI_Ireduce_scatter(x, y, ins, datatype, op, MPI_COMM_WORLD, request)
          if (mode == 2) call MPI_Reduce_scatter_init(x, y, ins, datatype, op, MPI_COMM_WORLD, info, request)
        end if
      case (24)
        do i = 0, c * extent - 1
          got(i) = had(i) + sent(i)
        end do
        call MPI_Reduce_local(x, y, c, datatype, op)
        return
      end select
      if (mode > 0) call finish(request, .not. place)
    case (25)
      call arrive(0, rank, 0, c)
      call MPI_Pack_size(c, datatype, MPI_COMM_WORLD, k)
      k = (k + 7) / 8
      position = 0
      wide = 0
      packed = -1
      ! MPI_Pack_external of MPICH 5.0.2 crashes with a structure.
      if (kind == 3) mode = min(mode, 1)
      select case (mode)
      case (0)
        call MPI_Pack(x, c, datatype, buffer, 8 * k, position, MPI_COMM_WORLD)
        position = 0
        call MPI_Unpack(buffer, 8 * k, position, y, c, datatype, MPI_COMM_WORLD)
      case (1)
        call MPI_Pack(x, c, datatype, packed(1, 2:k + 1), 8 * k, position, MPI_COMM_WORLD)
        position = 0
        call MPI_Unpack(packed(1, 2:k + 1), 8 * k, position, y, c, datatype, MPI_COMM_WORLD)
        if (any(packed(2, :) /= -1) .or. any(packed(1, k + 2:) /= -1)) call wrong('packed')
      case (2)
        call MPI_Pack_external('external32', x, c, datatype, packed(1, 2:k + 1), int(8 * k, MPI_ADDRESS_KIND), wide)
        i = int(wide)
        wide = 0
        call MPI_Unpack_external('external32', packed(1, 2:k + 1), int(8 * k, MPI_ADDRESS_KIND), wide, y, c, datatype)
        if (i /= wide .or. any(packed(2, :) /= -1)) call wrong('packed')
      end select
    case (26)
      call arrive(0, rank, 0, c)
      select case (mode)
      case (0)
        call MPI_File_write_at(file, start, x, c, datatype, MPI_STATUS_IGNORE)
        call MPI_File_read_at(file, start, y, c, datatype, MPI_STATUS_IGNORE)
      case (1)
        call MPI_File_iwrite_at(file, start, x, c, datatype, request)
        call complete(request)
        call MPI_File_iread_at(file, start, y, c, datatype, request)
        call complete(request)
      case (2)
        call MPI_File_write_at_all_begin(file, start, x, c, datatype)
        call MPI_File_write_at_all_end(file, x, MPI_STATUS_IGNORE)
        call MPI_File_read_at_all(file, start, y, c, datatype, MPI_STATUS_IGNORE)
      end select
    case (27)
      call arrive(0, rank, 0, c)
      select case (mode)
      case (0)
        call MPI_Win_fence(0, window)
        call MPI_Put(x, c, datatype, other, nothing, c, datatype, window)
        call MPI_Win_fence(0, window)
        call MPI_Get(y, c, datatype, other, nothing, c, datatype, window)
        call MPI_Win_fence(0, window)
      case (1)
        call MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window)
        call MPI_Rput(x, c, datatype, other, nothing, c, datatype, window, request)
        call complete(request)
        call MPI_Win_flush(other, window)
        call MPI_Rget(y, c, datatype, other, nothing, c, datatype, window, request)
        call complete(request)
        call MPI_Win_unlock(other, window)
        call MPI_Barrier(MPI_COMM_WORLD)
      case (2)
        if (kind == 3) then
          got = had
          return
        end if
        call MPI_Win_fence(0, window)
        call MPI_Accumulate(x, c, datatype, other, nothing, c, datatype, MPI_REPLACE, window)
        call MPI_Win_fence(0, window)
        call MPI_Get_accumulate(x, c, datatype, y, c, datatype, other, nothing, c, datatype, MPI_REPLACE, window)
        call MPI_Win_fence(0, window)
      end select
    end select
  end subroutine
end module

program campaign
  use campaign_calls
  implicit none
  integer, parameter :: routines = 28, extents(4) = [1, 2, 3, 2], numbers_of(4) = [1, 2, 2, 1], seconds_of(4) = [0, 1, 2, 0]
  integer, parameter :: widths(3) = [8, 2, 16]
  real(8) :: ra(6, 5, 4, 3, 2, 2, 2), rb(6, 5, 4, 3, 2, 2, 2)
  integer(2) :: ia(6, 5, 4, 3, 2, 2, 2), ib(6, 5, 4, 3, 2, 2, 2)
  type(element) :: ea(6, 5, 4, 3, 2, 2, 2), eb(6, 5, 4, 3, 2, 2, 2)
  real(8) :: ra_before(6, 5, 4, 3, 2, 2, 2), rb_before(6, 5, 4, 3, 2, 2, 2)
  integer(8) :: started, now, rate
  integer :: turns, seconds, i
  asynchronous :: ra, rb, ia, ib, ea, eb
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  other = 1 - rank
  turns = argument(1, 20000)
  state = argument(2, 12345)
  seconds = argument(3, 0)
  call prepare()
  call system_clock(started, rate)
  do turn = 1, turns
    routine = draw(0, routines - 1)
    mode = draw(0, 2)
    kind = draw(1, 3)
    form = draw(1, 4)
    datatype = types(form, kind)
    extent = extents(form)
    values_of = numbers_of(form)
    places = [0, seconds_of(form)]
    width = widths(kind)
    call section(case_of(1), f, l, s, n)
    call section(case_of(2), g, h, t, m)
    select case (kind)
    case (1)
      rb = rb_before
      call from_real(ra)
      if (any(ra /= ra_before)) call wrong('section that was sent')
    case (2)
      ib = int(rb_before, 2)
      call from_small(ia)
      if (any(ia /= int(ra_before, 2))) call wrong('section that was sent')
    case (3)
      eb = values(rb_before, example())
      call from_element(ea)
      if (any(numbers(ea) /= ra_before)) call wrong('section that was sent')
    end select
    if (seconds > 0 .and. mod(turn, 1000) == 0) then
      call system_clock(now)
      i = merge(1, 0, now - started > seconds * rate)
      call MPI_Bcast(i, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
      if (i == 1) exit
    end if
  end do
  if (rank == 0) print *, 'campaign: ', min(turn, turns), ' turns'
  call MPI_File_close(file)
  call MPI_Win_free(window)
  call MPI_Finalize()
contains
  integer function argument(place, default)
    integer, intent(in) :: place, default
    character(len=20) :: text
    argument = default
    if (command_argument_count() >= place) then
      call get_command_argument(place, text)
      read (text, *) argument
    end if
  end function
  type(element) function example()
    example%place = 0
    example%kind = 0
  end function
  ! Datatypes, the numbers in the arrays, and what the routines need.
  subroutine prepare()
    type(element) :: two(2)
    integer(MPI_ADDRESS_KIND) :: places_of(3)
    type(MPI_Datatype) :: parts
    type(MPI_Request) :: request
    integer :: k, code
    ! A library may be without partitions.
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Psend_init(k, 1, 1_MPI_COUNT_KIND, MPI_INTEGER, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, request, code)
    has_partitions = code == MPI_SUCCESS
    if (has_partitions) call MPI_Request_free(request)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    base(1:2) = [MPI_REAL8, MPI_INTEGER2]
    call MPI_Get_address(two(1)%place, places_of(1))
    call MPI_Get_address(two(1)%kind, places_of(2))
    call MPI_Get_address(two(2), places_of(3))
    places_of = places_of - places_of(1)
    call MPI_Type_create_struct(2, [1, 1], places_of(1:2), [MPI_REAL8, MPI_INTEGER4], parts)
    call MPI_Type_create_resized(parts, 0_MPI_ADDRESS_KIND, places_of(3), base(3))
    call MPI_Type_free(parts)
    do k = 1, 3
      types(1, k) = base(k)
      call MPI_Type_contiguous(2, base(k), types(2, k))
      call MPI_Type_vector(2, 1, 2, base(k), types(3, k))
      call MPI_Type_create_resized(base(k), 0_MPI_ADDRESS_KIND, int(2 * widths(k), MPI_ADDRESS_KIND), types(4, k))
      do i = 1, 4
        if (i > 1 .or. k == 3) call MPI_Type_commit(types(i, k))
      end do
    end do
    ra = reshape([(real(i + rank * shift, 8), i = 1, all)], [6, 5, 4, 3, 2, 2, 2])
    ra_before = ra
    rb_before = -ra
    ia = int(ra, 2)
    ea = values(ra, example())
    call MPI_Op_create(add, .true., adding)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, [other, rank], MPI_UNWEIGHTED, 2, [other, rank], &
      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., near)
    call MPI_File_open(MPI_COMM_SELF, 'campaign-' // achar(48 + rank) // '.data', &
      ior(MPI_MODE_RDWR, ior(MPI_MODE_CREATE, MPI_MODE_DELETE_ON_CLOSE)), MPI_INFO_NULL, file)
    call MPI_Win_create(store, int(16 * all, MPI_ADDRESS_KIND), 1, MPI_INFO_NULL, MPI_COMM_WORLD, window)
  end subroutine
  subroutine from_real(a)
    real(8), asynchronous :: a(6, 5, 4, 3, 2, 2, 2)
    include 'campaign_from.inc'
  end subroutine
  subroutine from_small(a)
    integer(2), asynchronous :: a(6, 5, 4, 3, 2, 2, 2)
    include 'campaign_from.inc'
  end subroutine
  subroutine from_element(a)
    type(element), asynchronous :: a(6, 5, 4, 3, 2, 2, 2)
    include 'campaign_from.inc'
  end subroutine
  subroutine with_target(x)
    type(*), dimension(..), intent(in), asynchronous :: x
    select case (kind)
    case (1)
      call to_reals(x, rb)
    case (2)
      call to_smalls(x, ib)
    case (3)
      call to_elements(x, eb)
    end select
  end subroutine
  subroutine to_reals(x, b)
    type(*), dimension(..), intent(in), asynchronous :: x
    real(8), asynchronous :: b(6, 5, 4, 3, 2, 2, 2)
    real(8) :: want(6, 5, 4, 3, 2, 2, 2)
    want = b
    include 'campaign_to.inc'
    if (any(b /= want)) call wrong('target')
  end subroutine
  subroutine to_smalls(x, b)
    type(*), dimension(..), intent(in), asynchronous :: x
    integer(2), asynchronous :: b(6, 5, 4, 3, 2, 2, 2)
    integer(2) :: want(6, 5, 4, 3, 2, 2, 2)
    want = b
    include 'campaign_to.inc'
    if (any(b /= want)) call wrong('target')
  end subroutine
  subroutine to_elements(x, b)
    type(*), dimension(..), intent(in), asynchronous :: x
    type(element), asynchronous :: b(6, 5, 4, 3, 2, 2, 2)
    type(element) :: want(6, 5, 4, 3, 2, 2, 2)
    want = b
    include 'campaign_to.inc'
    if (any(numbers(b) /= numbers(want))) call wrong('target')
  end subroutine
end program
