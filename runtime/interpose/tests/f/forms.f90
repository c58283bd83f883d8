! Messages, packing and collective calls with types that have gaps, in one of the three forms that MPI has in Fortran:
! ./forms mpif.h|mpi|mpi_f08, on two ranks.
subroutine old_form(wrong_in_all)
    implicit none
    include 'mpif.h'
    integer :: wrong_in_all, part, struct, row, requests(2)
    include 'exchange.inc'
    wrong_in_all = wrong
end subroutine

subroutine module_form(wrong_in_all)
    use mpi
    implicit none
    integer :: wrong_in_all, part, struct, row, requests(2)
    include 'exchange.inc'
    wrong_in_all = wrong
end subroutine

subroutine new_form(wrong_in_all)
    use mpi_f08
    implicit none
    integer :: wrong_in_all
    type(MPI_Datatype) :: part, struct, row
    type(MPI_Request) :: requests(2)
    include 'exchange.inc'
    wrong_in_all = wrong
end subroutine

program forms
    use mpi
    implicit none
    integer :: ierr, wrong
    character(len=10) :: form
    call get_command_argument(1, form)
    call MPI_Init(ierr)
    wrong = -1
    if (form == 'mpif.h') call old_form(wrong)
    if (form == 'mpi') call module_form(wrong)
    if (form == 'mpi_f08') call new_form(wrong)
    if (wrong == 0) print '(a)', 'forms: no difference'
    if (wrong /= 0) print '(a,i0)', 'forms: wrong numbers: ', wrong
    call MPI_Finalize(ierr)
end program
