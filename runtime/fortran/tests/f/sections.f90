! Array sections in messages, collectives, packing and reductions. Two ranks; the oracle is array assignment.
program sections
  use mpi_f08
  implicit none
  integer, parameter :: n = 16
  integer :: rank, other, i, j, position, code, class
  real(8) :: a(n, n), b(n, n), want(n, n), line(n * n), packed(n * n)
  real(8) :: cube(4, 5, 6), box(4, 5, 6)
  type(MPI_Request) :: requests(2)
  type(MPI_Datatype) :: pair, vector
  type(MPI_Status) :: status
  integer :: k, x(24), y(24)
  integer(MPI_ADDRESS_KIND) :: wide
  integer(MPI_ADDRESS_KIND), parameter :: wide_size = 32
  character :: turned(wide_size)
  type(MPI_Info) :: info
  character(len=40) :: text
  logical :: flag
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  other = 1 - rank
  do j = 1, n
    do i = 1, n
      a(i, j) = 1000 * i + j
    end do
  end do

  b = -1; want = -1; want(2:9, 3:12) = a(1:16:2, 4:13)
  call exchange_rows()
  if (any(b /= want)) error stop 'a section to a section'

  b = -1; want = -1; want(16:1:-1, 5) = a(7, :)
  call MPI_Irecv(b(16:1:-1, 5), n, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(a(7, :), n, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (any(b /= want)) error stop 'a negative stride'

  ! A count below the number of elements, which ends inside a row.
  b = -1; want = -1; want(1:5:2, 1) = a(1:5:2, 1); want(1:3:2, 2) = a(1:3:2, 2)
  call MPI_Sendrecv(a(1:5:2, 1:4), 5, MPI_DOUBLE_PRECISION, other, 3, &
    b(1:5:2, 1:4), 5, MPI_DOUBLE_PRECISION, other, 3, MPI_COMM_WORLD, status)
  if (any(b /= want)) error stop 'a part of a section'

  ! A datatype of two elements with a gap takes the elements of the section: the first and the third.
  x = [(i, i = 1, 24)]; y = -1
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, vector)
  call MPI_Type_commit(vector)
  call MPI_Sendrecv(x(1:24:2), 2, vector, other, 4, y, 4, MPI_INTEGER, other, 4, MPI_COMM_WORLD, status)
  if (any(y(1:4) /= [1, 5, 7, 11])) error stop 'a datatype with a gap'
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  y = -1
  call MPI_Sendrecv(x(1:24:3), 4, pair, other, 5, y(24:1:-2), 8, MPI_INTEGER, other, 5, MPI_COMM_WORLD, status)
  if (any(y(24:10:-2) /= x(1:24:3)) .or. any(y(23:1:-2) /= -1)) error stop 'a datatype of two elements'
  ! The values of such types are numbers, not bytes: external32 turns them, an update adds them.
  wide = 0
  call MPI_Pack_external('external32', x(1:24:3), 4, pair, turned, wide_size, wide)
  if (wide /= 32) error stop 'external32: position'
  wide = 0; y = -1
  call MPI_Unpack_external('external32', turned, wide_size, wide, y(24:1:-2), 4, pair)
  if (any(y(24:10:-2) /= x(1:24:3)) .or. any(y(23:1:-2) /= -1)) error stop 'external32'
  if (iachar(turned(4)) /= 1 .or. iachar(turned(8)) /= 4) error stop 'external32: order of bytes'
  call one_sided()
  call MPI_Type_free(pair)
  call MPI_Type_free(vector)
  ! Elements of a derived type that is larger than its values.
  call structures()

  ! Packing.
  position = 0; packed = 0
  call MPI_Pack(a(2:10:4, 3:8:5), 6, MPI_DOUBLE_PRECISION, packed, 8 * n * n, position, MPI_COMM_WORLD)
  if (position /= 48) error stop 'pack: position'
  if (any(packed(1:6) /= reshape(a(2:10:4, 3:8:5), [6]))) error stop 'pack'
  position = 0; b = -1; want = -1; want(1:3, 1:3:2) = a(2:10:4, 3:8:5)
  call MPI_Unpack(packed, 48, position, b(1:3, 1:3:2), 6, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  if (any(b /= want)) error stop 'unpack'

  ! Packing into a section, at three positions, and unpacking from it.
  b = -1; want = -1; position = 0
  do i = 1, 3
    call MPI_Pack(a(i:2*i:i, 3), 2, MPI_DOUBLE_PRECISION, b(1:16:5, 2:4), 96, position, MPI_COMM_WORLD)
    if (position /= 16 * i) error stop 'pack into a section: position'
  end do
  want(1:16:5, 2) = [a(1, 3), a(2, 3), a(2, 3), a(4, 3)]; want(1:6:5, 3) = [a(3, 3), a(6, 3)]
  if (any(b /= want)) error stop 'pack into a section'
  position = 16; line = -1
  call MPI_Unpack(b(1:16:5, 2:4), 96, position, line, 3, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  if (position /= 40 .or. any(line(1:3) /= [a(2, 3), a(4, 3), a(3, 3)]) .or. any(line(4:) /= -1)) error stop 'unpack from it'
  wide = 8; b = -1; line = -1
  call MPI_Pack_external('external32', a, 2, MPI_DOUBLE_PRECISION, b(1:16:5, 2:4), 96_MPI_ADDRESS_KIND, wide)
  if (wide /= 24 .or. count(b /= -1) /= 2 .or. any(b(6:11:5, 2) == -1)) error stop 'pack_external into a section'
  wide = 8
  call MPI_Unpack_external('external32', b(1:16:5, 2:4), 96_MPI_ADDRESS_KIND, wide, line, 2, MPI_DOUBLE_PRECISION)
  if (wide /= 24 .or. any(line(1:2) /= a(1:2, 1)) .or. line(3) /= -1) error stop 'unpack_external from a section'

  ! Blocks to send that overlap: each rank gets elements 3 to 8, or 1 to 6.
  x = [(100 * rank + i, i = 1, 24)]; y = -1
  call MPI_Alltoallv(x(24:1:-3), [6, 6], [2, 0], MPI_INTEGER, y(1:24:2), [6, 6], [0, 6], MPI_INTEGER, MPI_COMM_WORLD)
  if (rank == 0) then
    if (any(y(1:11:2) /= [(i, i = 18, 3, -3)]) .or. any(y(13:23:2) /= [(100 + i, i = 18, 3, -3)])) error stop 'overlap'
  else if (any(y(1:11:2) /= [(i, i = 24, 9, -3)]) .or. any(y(13:23:2) /= [(100 + i, i = 24, 9, -3)])) then
    error stop 'overlap'
  end if

  ! A collective call.
  b = -1
  if (rank == 0) b(1:16:3, 2:3) = a(1:16:3, 2:3)
  call MPI_Bcast(b(1:16:3, 2:3), 12, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  want = -1; want(1:16:3, 2:3) = a(1:16:3, 2:3)
  if (any(b /= want)) error stop 'bcast'

  ! A halo exchange in three dimensions.
  cube = rank; box = cube
  cube(1, :, :) = 10 + rank; cube(:, 1, :) = 20 + rank; cube(:, :, 1) = 30 + rank
  call MPI_Sendrecv(cube(1, :, :), 30, MPI_DOUBLE_PRECISION, other, 6, &
    cube(4, :, :), 30, MPI_DOUBLE_PRECISION, other, 6, MPI_COMM_WORLD, status)
  box(1, :, :) = 10 + other; box(:, 1, :) = 20 + other; box(:, :, 1) = 30 + other
  if (any(cube(4, :, :) /= box(1, :, :))) error stop 'halo'

  ! Elements of an array, assumed-size arrays, and what has no element.
  line = 0
  call of_old(a, line)
  if (any(line(1:n) /= a(:, 1))) error stop 'assumed size'
  k = 5
  call MPI_Sendrecv(a(3:2, :), 0, MPI_DOUBLE_PRECISION, other, 9, b(1:k:7, 3:2), 0, MPI_DOUBLE_PRECISION, &
    other, 9, MPI_COMM_WORLD, status)

  ! A section that is too short.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Send(a(1:16:2, 1), 9, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_COUNT) error stop 'a short section'
  call MPI_Comm_attach_buffer(MPI_COMM_WORLD, a(1:16:2, :), 800, code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_BUFFER) error stop 'a section as memory'

  ! No value lies in two elements that do not follow each other. The error belongs to the communicator of the call.
  call MPI_Send(x(1:24:2), 2, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_TYPE) error stop 'a value in two elements'
  ! A length beyond any value.
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'key', 'value')
  call MPI_Info_get(info, 'key', huge(1), text, flag)
  if (.not. flag .or. text /= 'value') error stop 'a huge length'
  call MPI_Info_free(info)

  ! Calls that take several blocks from one buffer, or apply an operation.
  b = -1; want = -1; want(:, 2) = 2 * a(3, :)
  call MPI_Allreduce(a(3, :), b(:, 2), n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (any(b /= want)) error stop 'a section in a reduction'
  b = -1; want = -1; want(5, :) = [a(1:8, 1), a(1:8, 1)]
  call MPI_Allgather(a(1:8, 1), 8, MPI_DOUBLE_PRECISION, b(5, :), 8, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  if (any(b /= want)) error stop 'a section of blocks'
  call short_blocks()
  call at_the_root()
  call starts()
  call partitions()
  call others()

  ! An array that only the root has.
  call of_the_root()
  call MPI_Finalize()
contains
  ! Sections that are too short for all blocks: an error before anything is sent.
  subroutine short_blocks()
    integer(MPI_COUNT_KIND) :: huge_count
    b = -1; want = -1
    call MPI_Allreduce(a(1:16:2, 1), b(1, :), 9, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    call refused(MPI_ERR_COUNT, 'a short section of an operation')
    call MPI_Allreduce(a(1, :), b(1:16:2, 1), 9, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    call refused(MPI_ERR_COUNT, 'a short section for the result')
    call MPI_Iallgather(a, 5, MPI_DOUBLE_PRECISION, b(1:16:2, 1), 5, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, &
      requests(1), code)
    call refused(MPI_ERR_COUNT, 'a short section of blocks')
    call MPI_Allgatherv(a, 1, MPI_DOUBLE_PRECISION, b(1:16:2, 1), [1, 1], [0, 8], MPI_DOUBLE_PRECISION, &
      MPI_COMM_WORLD, code)
    call refused(MPI_ERR_COUNT, 'a block behind the section')
    call MPI_Allgatherv(a, 1, MPI_DOUBLE_PRECISION, b(1:16:2, 1), [1, 1], [-1, 0], MPI_DOUBLE_PRECISION, &
      MPI_COMM_WORLD, code)
    call refused(MPI_ERR_BUFFER, 'a block before the section')
    huge_count = huge(huge_count) / 2
    call MPI_Alltoall(a(1:16:2, :), huge_count, MPI_DOUBLE_PRECISION, b, 0_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, &
      MPI_COMM_WORLD, code)
    call refused(MPI_ERR_COUNT, 'a huge count')
    call MPI_Psend_init(a(1:16:2, 1), 3, 3_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, &
      MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), code)
    call refused(MPI_ERR_COUNT, 'a short section of partitions')
    call MPI_Psend_init(a(1:16:2, 1), huge(1), huge_count, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, &
      MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), code)
    call refused(MPI_ERR_COUNT, 'huge partitions')
    position = 0
    call MPI_Pack(a, 3, MPI_DOUBLE_PRECISION, packed(1:4:2), 24, position, MPI_COMM_WORLD, code)
    call refused(MPI_ERR_COUNT, 'a short section of packed bytes')
  end subroutine
  subroutine refused(wanted, what)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: what
    call MPI_Error_class(code, class)
    if (class /= wanted .or. any(b /= want)) error stop what
  end subroutine
  ! Other ranks than the root have no buffer for all blocks, or it does not count. Two groups: so do some roots.
  subroutine at_the_root()
    type(MPI_Comm) :: alone, between
    b = -1; want = -1
    if (rank == 1) want(4, 1:8:2) = [a(1:2, 1), a(1:2, 1)]
    call MPI_Gather(a(1:2, 1), 2, MPI_DOUBLE_PRECISION, b(4, 1:(1 + 6 * rank):2), 2, MPI_DOUBLE_PRECISION, 1, &
      MPI_COMM_WORLD)
    if (any(b /= want)) error stop 'gather'
    b = -1; want = -1
    want(1:2, 2) = a(3, 1 + 4 * rank:3 + 4 * rank:2)
    call MPI_Scatter(a(3, 1:(3 - 2 * rank) + 4:2), 2, MPI_DOUBLE_PRECISION, b(1:2, 2), 2, MPI_DOUBLE_PRECISION, 0, &
      MPI_COMM_WORLD)
    if (rank == 0 .and. any(b /= want)) error stop 'scatter'
    call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, alone)
    call MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, other, 5, between)
    b = -1; want = -1
    if (rank == 0) then
      want(2, 1:6:2) = a(5, 1:3)
      call MPI_Gather(a(1:3:2, 1), 3, MPI_DOUBLE_PRECISION, b(2, 1:6:2), 3, MPI_DOUBLE_PRECISION, MPI_ROOT, between)
      call MPI_Reduce(a(1:3:2, 1), b(2, 1:6:2), 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_ROOT, between)
    else
      call MPI_Gather(a(5, 1:3), 3, MPI_DOUBLE_PRECISION, b(1:3:2, 1), 3, MPI_DOUBLE_PRECISION, 0, between)
      call MPI_Reduce(a(5, 1:3), b(1:3:2, 1), 3, MPI_DOUBLE_PRECISION, MPI_SUM, 0, between)
    end if
    if (any(b /= want)) error stop 'a root of another group'
    b = -1; want = -1
    want(2, 1:3) = a(5, 1:3)
    call MPI_Allreduce(a(5, 1:3), b(2, 1:3), 3, MPI_DOUBLE_PRECISION, MPI_MAX, between)
    if (any(b /= want)) error stop 'another group'
    call MPI_Comm_free(between)
    call MPI_Comm_free(alone)
  end subroutine
  ! Each start takes the numbers that the section has then.
  subroutine starts()
    type(MPI_Request) :: sum
    real(8), asynchronous :: from(8), to(8)
    logical :: done
    from = 1; to = 0
    call MPI_Allreduce_init(from(1:8:2), to(8:1:-2), 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
      MPI_INFO_NULL, sum)
    do i = 1, 3
      from = [(i * 10 + k, k = 1, 8)]
      call MPI_Start(sum)
      call MPI_Wait(sum, MPI_STATUS_IGNORE)
      if (any(to(8:1:-2) /= 2 * from(1:8:2)) .or. any(to(1:8:2) /= 0)) error stop 'a start'
      ! What is complete is the program's own.
      to = 0
      call MPI_Wait(sum, MPI_STATUS_IGNORE)
      call MPI_Request_get_status(sum, done, MPI_STATUS_IGNORE)
      if (.not. done .or. any(to /= 0)) error stop 'a wait for nothing'
    end do
    call MPI_Request_free(sum)
  end subroutine
  ! Partitions are sent as they are when they are ready, and can be read when they have arrived.
  subroutine partitions()
    real(8), asynchronous :: from(8), to(12)
    logical :: arrived
    call MPI_Psend_init(from(1:8:2), 2, 2_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(1), code)
    ! A library may be without partitions.
    if (code == MPI_ERR_UNSUPPORTED_OPERATION) return
    call MPI_Precv_init(to(12:1:-3), 2, 2_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(2))
    do i = 1, 2
      from = 0; to = -1
      call MPI_Startall(2, requests)
      from(5:8) = [(i * 10 + k, k = 5, 8)]
      call MPI_Pready(1, requests(1))
      from(1:4) = [(i * 10 + k, k = 1, 4)]
      call MPI_Pready(0, requests(1))
      arrived = .false.
      do while (.not. arrived)
        call MPI_Parrived(requests(2), 1, arrived)
      end do
      if (any(to(6:1:-3) /= i * 10 + [5, 7])) error stop 'a partition that has arrived'
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      if (any(to(12:1:-3) /= i * 10 + [1, 3, 5, 7]) .or. any(to(1:12:3) /= -1)) error stop 'partitions'
      to = 0
      call MPI_Parrived(requests(2), 0, arrived)
      if (.not. arrived .or. any(to /= 0)) error stop 'a partition of the past'
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine
  ! The program may use elements that the call does not take, while the call goes on.
  subroutine others()
    real(8), asynchronous :: to(20)
    type(MPI_Datatype) :: wide
    call MPI_Type_create_resized(MPI_DOUBLE_PRECISION, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, wide)
    call MPI_Type_commit(wide)
    to = 0
    call MPI_Iallgather(a(1, 1), 1, MPI_DOUBLE_PRECISION, to(1:20:2), 1, wide, MPI_COMM_WORLD, requests(1))
    to(3) = 7; to(9) = 8
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (any(to(1:9:2) /= [a(1, 1), 7d0, a(1, 1), 0d0, 8d0])) error stop 'elements of the program'
    call MPI_Type_free(wide)
  end subroutine
  subroutine one_sided()
    integer, asynchronous :: memory(8)
    type(MPI_Win) :: window
    memory = 100
    call MPI_Win_create(memory, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Accumulate(x(1:24:3), 4, pair, other, 0_MPI_ADDRESS_KIND, 8, MPI_INTEGER, MPI_SUM, window)
    call MPI_Win_fence(0, window)
    if (any(memory /= 100 + x(1:24:3))) error stop 'an update'
    call MPI_Win_fence(0, window)
    ! One element of a section, which is no value of a larger type.
    call MPI_Fetch_and_op(x(2:24:3), y(3:24:2), MPI_INTEGER, other, 0_MPI_ADDRESS_KIND, MPI_REPLACE, window)
    call MPI_Win_fence(0, window)
    if (memory(1) /= x(2) .or. y(3) /= 100 + x(1)) error stop 'one element'
    call MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN)
    call MPI_Fetch_and_op(x(2:24:3), y, MPI_INTEGER8, other, 0_MPI_ADDRESS_KIND, MPI_REPLACE, window, code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_BUFFER) error stop 'a value in two elements of a section'
    call MPI_Win_fence(0, window)
    call MPI_Win_free(window)
  end subroutine
  subroutine structures()
    type, bind(c) :: particle
      real(8) :: place
      integer(4) :: kind
    end type
    type(particle) :: p(10), q(10)
    type(MPI_Datatype) :: fields, whole
    p = [(particle(i, 2 * i), i = 1, 10)]
    q = particle(-1, -1)
    call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], &
      [MPI_DOUBLE_PRECISION, MPI_INTEGER], fields)
    call MPI_Type_create_resized(fields, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, whole)
    call MPI_Type_commit(whole)
    call MPI_Sendrecv(p(1:9:2), 5, whole, other, 10, q(10:2:-2), 5, whole, other, 10, MPI_COMM_WORLD, status)
    if (any(q(10:2:-2)%place /= p(1:9:2)%place) .or. any(q(10:2:-2)%kind /= p(1:9:2)%kind)) error stop 'structures'
    if (any(q(1:9:2)%kind /= -1)) error stop 'structures: other elements'
    call MPI_Type_free(fields)
    call MPI_Type_free(whole)
  end subroutine
  subroutine of_the_root()
    real(8), allocatable :: all(:)
    if (rank == 0) allocate(all(2))
    call MPI_Gather(real(rank, 8), 1, MPI_DOUBLE_PRECISION, all, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, code)
    if (code /= MPI_SUCCESS) error stop 'an array of the root'
    if (rank == 0) then
      if (any(all /= [0d0, 1d0])) error stop 'gather'
    end if
  end subroutine
  subroutine exchange_rows()
    call MPI_Sendrecv(a(1:16:2, 4:13), 80, MPI_DOUBLE_PRECISION, other, 1, &
      b(2:9, 3:12), 80, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, status)
  end subroutine
  subroutine of_old(from, to)
    real(8) :: from(*), to(*)
    call MPI_Sendrecv(from, n, MPI_DOUBLE_PRECISION, other, 8, to, n, MPI_DOUBLE_PRECISION, other, 8, &
      MPI_COMM_WORLD, status)
  end subroutine
end program
