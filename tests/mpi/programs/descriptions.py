# SPDX-License-Identifier: MIT
"""Contents of datatypes, Fortran's parametrized types, data representations, error classes of a program's own."""

import os
import tempfile

from mpi4py import MPI


def refused(error_class, call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        assert error.Get_error_class() == error_class, error
        return True
    return False


def contents():
    """Each type that Get_contents gives is the caller's, also one that is in it twice, or that was freed."""
    old = MPI.INT.Create_vector(2, 1, 3)
    made = MPI.Datatype.Create_struct([1, 2], [0, 64], [old, old])
    for round_ in range(2):
        *_, inner = made.Get_contents()
        assert len({each.handle for each in inner} | {old.handle}) == 3
        for each in inner:
            assert each.Get_envelope()[-1] == MPI.COMBINER_VECTOR
            assert [2, 1, 3] in each.Get_contents() and each.extent == 16
            each.Free()
        if round_ == 0:
            assert old.Get_size() == 8
            old.Free()
    made.Free()


def pairs():
    """A pair has two elements, its value and its index; a status may have a value without one."""
    status, items = MPI.Status(), bytearray(32)
    request = MPI.COMM_SELF.Irecv([items, 2, MPI.DOUBLE_INT], source=0)
    MPI.COMM_SELF.Send([bytearray(32), 2, MPI.DOUBLE_INT], dest=0)
    request.Wait(status)
    assert (status.Get_count(MPI.DOUBLE_INT), status.Get_elements(MPI.DOUBLE_INT)) == (2, 4)
    for elements in (0, 1, 5):
        status.Set_elements(MPI.DOUBLE_INT, elements)
        assert status.Get_elements(MPI.DOUBLE_INT) == elements
    assert status.Get_count(MPI.DOUBLE_INT) == MPI.UNDEFINED


def parametrized():
    for digits, bytes_ in ((1, 1), (3, 2), (9, 4), (10, 8), (18, 8)):
        made = MPI.Datatype.Create_f90_integer(digits)
        assert made.Get_size() == bytes_
        assert made == MPI.Datatype.Create_f90_integer(digits)
        assert made.Get_envelope() == (1, 0, 0, 0, MPI.COMBINER_F90_INTEGER)
        assert made.Get_contents()[0] == [digits]
    assert refused(MPI.ERR_ARG, MPI.Datatype.Create_f90_integer, 19)
    for arguments, bytes_ in (
        ((6, 37), 4),
        ((7, MPI.UNDEFINED), 8),
        ((MPI.UNDEFINED, 38), 8),
        ((15, 307), 8),
    ):
        for create, combiner, parts in (
            (MPI.Datatype.Create_f90_real, MPI.COMBINER_F90_REAL, 1),
            (MPI.Datatype.Create_f90_complex, MPI.COMBINER_F90_COMPLEX, 2),
        ):
            made = create(*arguments)
            assert made.Get_size() == parts * bytes_ and made.Get_contents()[0] == list(arguments)
            assert made.Get_envelope() == (2, 0, 0, 0, combiner)
    assert MPI.Datatype.Create_f90_real(6, 30) != MPI.Datatype.Create_f90_real(6, 31)
    assert refused(MPI.ERR_ARG, MPI.Datatype.Create_f90_real, 1000, 1)
    assert refused(MPI.ERR_ARG, MPI.Datatype.Create_f90_real, MPI.UNDEFINED, MPI.UNDEFINED)
    assert refused(MPI.ERR_TYPE, made.Free)

    numbers = bytearray(8)
    made = MPI.Datatype.Create_f90_integer(9)
    MPI.COMM_SELF.Allreduce([b"\x01\0\0\0\x02\0\0\0", 2, made], [numbers, 2, made])
    assert numbers == b"\x01\0\0\0\x02\0\0\0"


def representations():
    """Those that change nothing work; others are refused where they would be used."""
    MPI.Register_datarep("same", None, None, lambda datatype: datatype.extent)
    MPI.Register_datarep("wider", None, None, lambda datatype: 2 * datatype.extent)
    MPI.Register_datarep("converts", lambda *_: None, None, lambda datatype: datatype.extent)
    for name in ("same", "native"):
        assert refused(MPI.ERR_DUP_DATAREP, MPI.Register_datarep, name, None, None, lambda _: 0)
    with tempfile.TemporaryDirectory() as folder:
        file = MPI.File.Open(MPI.COMM_SELF, os.path.join(folder, "data"), MPI.MODE_CREATE | MPI.MODE_RDWR)
        for name in ("wider", "converts", "unknown"):
            assert refused(MPI.ERR_UNSUPPORTED_DATAREP, file.Set_view, 0, MPI.INT, MPI.INT, name)
        pair = MPI.INT.Create_contiguous(2)
        file.Set_view(0, MPI.INT, pair, "same")
        pair.Free()
        disp, etype, filetype, name = file.Get_view()
        assert (disp, etype, filetype.Get_size(), name) == (0, MPI.INT, 8, "same")
        filetype.Free()
        file.Close()


def error_classes():
    mine = MPI.Add_error_class()
    code = MPI.Add_error_code(mine)
    assert MPI.ERR_LASTCODE < mine < code == MPI.COMM_WORLD.Get_attr(MPI.LASTUSEDCODE)
    assert MPI.Get_error_class(code) == MPI.Get_error_class(mine) == mine
    MPI.Add_error_string(code, "too cold")
    assert str(MPI.Exception(code)) == "too cold"
    assert refused(MPI.ERR_OTHER, MPI.Remove_error_class, mine)
    assert refused(MPI.ERR_OTHER, MPI.Remove_error_code, code)
    assert refused(MPI.ERR_ARG, MPI.Remove_error_code, mine)
    MPI.Remove_error_string(code)
    MPI.Remove_error_code(code)
    MPI.Remove_error_class(mine)
    assert refused(MPI.ERR_ARG, MPI.Remove_error_class, mine)
    assert MPI.COMM_WORLD.Get_attr(MPI.LASTUSEDCODE) == MPI.ERR_LASTCODE


contents()
pairs()
parametrized()
representations()
error_classes()
