"""What MPI handles stand for, in gdb: datatypes, communicators and requests of programs that use typepack.

    (gdb) source PREFIX/share/typepack/gdb/typepack.py
    (gdb) print request
    $1 = 0xc0000000 Irecv from 3, tag 7, at most 1.2 MB of vector(9375, 16, 32, double); no message has come

gdb asks the library of the stopped process (`typepack_describe_handle`), so it needs no symbols of the library. The
library waits for no lock: if a thread was stopped in the middle of a call, the answer may be that it is busy. Without a
process, as with a core file, only the number is shown.
"""

import gdb

# The types of mpi.h, and the number of the kind of their handles in the library.
KINDS = {"MPI_Datatype": 1, "MPI_Comm": 2, "MPI_Request": 3}

# Other threads must not run while gdb asks, and a signal in the answer must not change where the process stands.
SETTINGS = (("scheduler-locking", "on"), ("unwindonsignal", "on"), ("print thread-events", "off"))


def set_parameters(values):
    """Sets parameters of gdb, and returns those that they had before."""
    before = []
    for name, value in values:
        old = gdb.parameter(name)
        before.append((name, {True: "on", False: "off"}.get(old, old)))
        gdb.execute(f"set {name} {value}", to_string=True)
    return before


def describe(kind, handle):
    """Returns what the library says about a handle, or why it says nothing."""
    if not gdb.selected_inferior().pid:
        return "(no process)"
    before = []
    try:
        before = set_parameters(SETTINGS)
        call = f"((const char *(*)(int, unsigned long))typepack_describe_handle)({kind}, {handle}UL)"
        text = gdb.parse_and_eval(call)
        return text.string() if int(text) else "(unknown kind)"
    except gdb.error as error:
        return f"({error})"
    finally:
        set_parameters(before)


class Handle:
    """Prints a handle as its number and what it stands for."""

    def __init__(self, kind, value):
        self.kind = kind
        self.value = value

    def to_string(self):
        number = int(self.value) & 0xFFFFFFFFFFFFFFFF
        return f"{number:#x} {describe(self.kind, number)}"


def printer(value):
    """Returns the printer of a value, if it is a handle."""
    kind = value.type
    while kind.code == gdb.TYPE_CODE_TYPEDEF:
        if kind.unqualified().name in KINDS:
            break
        kind = kind.target()
    name = kind.unqualified().name
    if name is None and kind.code == gdb.TYPE_CODE_PTR:
        # A program may use the pointer itself.
        name = (kind.target().unqualified().name or "").replace("MPI_ABI_", "MPI_")
    return Handle(KINDS[name], value) if name in KINDS else None


printer.name = "typepack"
gdb.pretty_printers.insert(0, printer)
