! The Fortran side of the rows of sections. section.c calls it, and describes the arrays.
!
! A section has one to three dimensions, each with a first and a last index and a step. Dimension 0 stands for a whole
! array, which a row of contiguous bytes sends. The arrays are the buffers of the row.
module bench_section
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  private

  real(c_double), pointer, contiguous :: whole(:), out1(:), in1(:), out2(:, :), in2(:, :), out3(:, :, :), in3(:, :, :)
  real(c_double), pointer, contiguous :: packed1(:), packed2(:, :), packed3(:, :, :)
  real(c_double), pointer, contiguous, asynchronous :: cube(:, :, :)
  real(c_double), allocatable, target, asynchronous :: leaving(:, :, :), coming(:, :, :)
  integer :: dimensions, partner, many, partners(0:5), n
  integer :: a1, b1, s1, a2, b2, s2, a3, b3, s3
  type(MPI_Datatype) :: element

contains

  ! Whether nonblocking calls may take sections.
  integer(c_int) function section_supported() bind(C)
    section_supported = merge(1, 0, MPI_SUBARRAYS_SUPPORTED)
  end function

  subroutine section_open(out, in, packed, dims, extents, first, last, step, other) bind(C)
    type(c_ptr), value :: out, in, packed
    integer(c_int), value :: dims, other
    integer(c_int), intent(in) :: extents(3), first(3), last(3), step(3)
    integer :: counts(3)
    dimensions = dims
    partner = other
    counts = (last - first) / step + 1
    many = product(counts)
    element = MPI_DOUBLE_PRECISION
    a1 = first(1); b1 = last(1); s1 = step(1)
    a2 = first(2); b2 = last(2); s2 = step(2)
    a3 = first(3); b3 = last(3); s3 = step(3)
    select case (dims)
    case (0)
      ! The same type as in C.
      element = MPI_BYTE
      many = 8 * many
      call c_f_pointer(out, whole, extents(1:1))
    case (1)
      call c_f_pointer(out, out1, extents(1:1))
      call c_f_pointer(in, in1, extents(1:1))
      call c_f_pointer(packed, packed1, counts(1:1))
    case (2)
      call c_f_pointer(out, out2, extents(1:2))
      call c_f_pointer(in, in2, extents(1:2))
      call c_f_pointer(packed, packed2, counts(1:2))
    case (3)
      call c_f_pointer(out, out3, extents)
      call c_f_pointer(in, in3, extents)
      call c_f_pointer(packed, packed3, counts)
    end select
  end subroutine

  subroutine section_send() bind(C)
    select case (dimensions)
    case (0)
      call MPI_Send(whole, many, element, partner, 0, MPI_COMM_WORLD)
    case (1)
      call MPI_Send(out1(a1:b1:s1), many, element, partner, 0, MPI_COMM_WORLD)
    case (2)
      call MPI_Send(out2(a1:b1:s1, a2:b2:s2), many, element, partner, 0, MPI_COMM_WORLD)
    case (3)
      call MPI_Send(out3(a1:b1:s1, a2:b2:s2, a3:b3:s3), many, element, partner, 0, MPI_COMM_WORLD)
    end select
  end subroutine

  subroutine section_receive() bind(C)
    select case (dimensions)
    case (1)
      call MPI_Recv(in1(a1:b1:s1), many, element, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (2)
      call MPI_Recv(in2(a1:b1:s1, a2:b2:s2), many, element, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (3)
      call MPI_Recv(in3(a1:b1:s1, a2:b2:s2, a3:b3:s3), many, element, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end select
  end subroutine

  subroutine section_pack() bind(C)
    integer :: position
    position = 0
    select case (dimensions)
    case (1)
      call MPI_Pack(out1(a1:b1:s1), many, element, packed1, 8 * many, position, MPI_COMM_WORLD)
    case (2)
      call MPI_Pack(out2(a1:b1:s1, a2:b2:s2), many, element, packed2, 8 * many, position, MPI_COMM_WORLD)
    case (3)
      call MPI_Pack(out3(a1:b1:s1, a2:b2:s2, a3:b3:s3), many, element, packed3, 8 * many, position, MPI_COMM_WORLD)
    end select
  end subroutine

  subroutine section_assign() bind(C)
    select case (dimensions)
    case (1)
      packed1 = out1(a1:b1:s1)
    case (2)
      packed2 = out2(a1:b1:s1, a2:b2:s2)
    case (3)
      packed3 = out3(a1:b1:s1, a2:b2:s2, a3:b3:s3)
    end select
  end subroutine

  ! The cube of a halo: `edge` cells in each dimension, and one cell around them.
  subroutine section_cube(base, edge, others) bind(C)
    type(c_ptr), value :: base
    integer(c_int), value :: edge
    integer(c_int), intent(in) :: others(0:5)
    real(c_double), pointer, contiguous :: cells(:, :, :)
    n = edge
    partners = others
    call c_f_pointer(base, cells, [n + 2, n + 2, n + 2])
    cube(0:n + 1, 0:n + 1, 0:n + 1) => cells
    if (allocated(leaving)) deallocate(leaving, coming)
    allocate(leaving(n, n, 0:5), coming(n, n, 0:5))
    leaving = 0
    coming = 0
  end subroutine

  ! The faces 0 to 5 lie at the low and the high x, y and z. The tag is the face through which a message leaves.
  subroutine section_halo() bind(C)
    type(MPI_Request) :: requests(12)
    integer :: all
    all = n * n
    call MPI_Irecv(cube(0, 1:n, 1:n), all, MPI_DOUBLE_PRECISION, partners(0), 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(cube(n + 1, 1:n, 1:n), all, MPI_DOUBLE_PRECISION, partners(1), 0, MPI_COMM_WORLD, requests(2))
    call MPI_Irecv(cube(1:n, 0, 1:n), all, MPI_DOUBLE_PRECISION, partners(2), 3, MPI_COMM_WORLD, requests(3))
    call MPI_Irecv(cube(1:n, n + 1, 1:n), all, MPI_DOUBLE_PRECISION, partners(3), 2, MPI_COMM_WORLD, requests(4))
    call MPI_Irecv(cube(1:n, 1:n, 0), all, MPI_DOUBLE_PRECISION, partners(4), 5, MPI_COMM_WORLD, requests(5))
    call MPI_Irecv(cube(1:n, 1:n, n + 1), all, MPI_DOUBLE_PRECISION, partners(5), 4, MPI_COMM_WORLD, requests(6))
    call MPI_Isend(cube(1, 1:n, 1:n), all, MPI_DOUBLE_PRECISION, partners(0), 0, MPI_COMM_WORLD, requests(7))
    call MPI_Isend(cube(n, 1:n, 1:n), all, MPI_DOUBLE_PRECISION, partners(1), 1, MPI_COMM_WORLD, requests(8))
    call MPI_Isend(cube(1:n, 1, 1:n), all, MPI_DOUBLE_PRECISION, partners(2), 2, MPI_COMM_WORLD, requests(9))
    call MPI_Isend(cube(1:n, n, 1:n), all, MPI_DOUBLE_PRECISION, partners(3), 3, MPI_COMM_WORLD, requests(10))
    call MPI_Isend(cube(1:n, 1:n, 1), all, MPI_DOUBLE_PRECISION, partners(4), 4, MPI_COMM_WORLD, requests(11))
    call MPI_Isend(cube(1:n, 1:n, n), all, MPI_DOUBLE_PRECISION, partners(5), 5, MPI_COMM_WORLD, requests(12))
    call MPI_Waitall(12, requests, MPI_STATUSES_IGNORE)
  end subroutine

  ! The same with loops that pack and unpack, as codes without sections have them.
  subroutine section_halo_by_hand() bind(C)
    type(MPI_Request) :: requests(12)
    integer :: face, i, j
    do face = 0, 5
      call MPI_Irecv(coming(1, 1, face), n * n, MPI_DOUBLE_PRECISION, partners(face), ieor(face, 1), MPI_COMM_WORLD, &
                     requests(face + 1))
    end do
    do j = 1, n
      do i = 1, n
        leaving(i, j, 0) = cube(1, i, j)
        leaving(i, j, 1) = cube(n, i, j)
      end do
    end do
    call send(0)
    call send(1)
    do j = 1, n
      do i = 1, n
        leaving(i, j, 2) = cube(i, 1, j)
        leaving(i, j, 3) = cube(i, n, j)
      end do
    end do
    call send(2)
    call send(3)
    do j = 1, n
      do i = 1, n
        leaving(i, j, 4) = cube(i, j, 1)
        leaving(i, j, 5) = cube(i, j, n)
      end do
    end do
    call send(4)
    call send(5)
    call MPI_Waitall(12, requests, MPI_STATUSES_IGNORE)
    do j = 1, n
      do i = 1, n
        cube(0, i, j) = coming(i, j, 0)
        cube(n + 1, i, j) = coming(i, j, 1)
      end do
    end do
    do j = 1, n
      do i = 1, n
        cube(i, 0, j) = coming(i, j, 2)
        cube(i, n + 1, j) = coming(i, j, 3)
      end do
    end do
    do j = 1, n
      do i = 1, n
        cube(i, j, 0) = coming(i, j, 4)
        cube(i, j, n + 1) = coming(i, j, 5)
      end do
    end do
  contains
    subroutine send(face)
      integer, intent(in) :: face
      call MPI_Isend(leaving(1, 1, face), n * n, MPI_DOUBLE_PRECISION, partners(face), face, MPI_COMM_WORLD, &
                     requests(face + 7))
    end subroutine
  end subroutine

end module
