"""What MPI handles stand for, in gdb: datatypes, communicators and requests of programs that use typepack.

    (gdb) source PREFIX/share/typepack/gdb/typepack.py
    (gdb) print request
    $1 = 0xc0000000 Irecv from 3, tag 7, at most 1.2 MB of vector(9375, 16, 32, double); no message has come

gdb asks the library of the stopped process (`typepack_describe_handle`), so it needs no symbols of the library. The
library waits for no lock of its own: if a thread was stopped in the middle of a call, the answer may be that it is busy.
If a thread was stopped inside the allocator (malloc), the call may not return; Ctrl-C ends it. Without a process that can
run, as with a core file, only the number is shown.
"""

import gdb

# The types of mpi.h, and the number of the kind of their handles in the library.
KINDS = {"MPI_Datatype": 1, "MPI_Comm": 2, "MPI_Request": 3}

# Other threads must not run while gdb asks, and a signal in the answer must not change where the process stands.
SETTINGS = (("scheduler-locking", "on"), ("unwindonsignal", "on"), ("print thread-events", "off"))


def set_parameters(values, before):
    """Sets parameters of gdb, and adds those that they had before to a list, each as soon as it is about to change."""
    for name, value in values:
        old = gdb.parameter(name)
        before.append((name, {True: "on", False: "off"}.get(old, old)))
        gdb.execute(f"set {name} {value}", to_string=True)


def restore(before):
    """Gives parameters of gdb the values that they had before."""
    for name, value in before:
        try:
            gdb.execute(f"set {name} {value}", to_string=True)
        except gdb.error:
            # Without a process, some parameters have no other value than their first one.
            pass


def can_run():
    """Returns whether there is a process, and gdb can call a function in it; a core file has a process that is over."""
    if not gdb.selected_inferior().pid or gdb.selected_thread() is None:
        return False
    # gdb before version 11 does not tell; it then refuses the call itself.
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return connection is None or connection.type != "core"


def describe(kind, handle):
    """Returns what the library says about a handle, or why it says nothing."""
    if not can_run():
        return "(no process)"
    before = []
    try:
        set_parameters(SETTINGS, before)
        call = f"((const char *(*)(int, unsigned long))typepack_describe_handle)({kind}, {handle}UL)"
        text = gdb.parse_and_eval(call)
        return text.string() if int(text) else "(unknown kind)"
    except gdb.error as error:
        return f"({error})"
    finally:
        restore(before)


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
