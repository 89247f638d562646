# SPDX-License-Identifier: MIT
"""NET_INT and NET_DOUBLE: their bytes, when they convert, how they are kept. test_net_types_oracle.py."""

import contextlib
import copy
import gc
import math
import os
import pickle
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

import spcomm
from net_arrays import KINDS, LIKE, OTHER, OWN, WAYS, WIDE, element, foreign, mixed, own, read_only, unaligned
from nodetools import refused
from spcomm import NET_DOUBLE, NET_INT, NetDouble, NetInt

NUMBERS = {"int": [0, 1, -1, 258, 2**31 - 1, -(2**31)], "double": [0.0, -0.0, 1.5, math.inf, 5e-324, -1e300]}
both = pytest.mark.parametrize("kind", KINDS)
SCALARS = {"int": NetInt, "double": NetDouble}


# ---- bytes


@pytest.mark.smoke
@both
def test_the_bytes(kind):
    for number in NUMBERS[kind]:
        array = np.array([number], LIKE[kind]).astype(KINDS[kind])
        assert array.tobytes() == element(kind, OWN, number) == SCALARS[kind](number).tobytes()
        array = np.zeros(1, KINDS[kind])
        array[0] = number
        assert array.tobytes() == element(kind, OWN, number)
        assert array.byteswap().tobytes() == element(kind, OTHER, number)
        assert array.byteswap().byteswap().tobytes() == array.tobytes()


def test_sizes_and_names():
    assert (NET_INT.itemsize, NET_INT.alignment, NET_DOUBLE.itemsize, NET_DOUBLE.alignment) == (8, 4, 16, 8)
    assert (repr(NET_INT), str(NET_DOUBLE), NET_INT.kind) == ("NET_INT", "NET_DOUBLE", "V")
    assert NET_INT.type is NetInt and NET_DOUBLE.type is NetDouble
    aligned = np.dtype([("a", "u1"), ("i", NET_INT), ("b", "u1"), ("d", NET_DOUBLE)], align=True)
    assert [aligned.fields[name][1] for name in "aibd"] == [0, 4, 12, 16] and aligned.itemsize == 32


@both
def test_all_zeros_are_zero_on_every_machine(kind):
    array = np.zeros(3, KINDS[kind])
    assert array.tobytes() == bytes(array.nbytes) and array.tolist() == [0, 0, 0]
    assert spcomm.foreign_count(array) == 0
    assert spcomm.foreign_count(array.byteswap()) == 3 and array.byteswap().sum() == 0


def test_a_nan_keeps_its_bits():
    bits = 0x7FF4_0000_0000_0123  # a signalling one, which arithmetic would make quiet
    data = bytearray(b"B" + bytes(7) + struct.pack(">Q", bits) + b"L" + bytes(7) + struct.pack("<Q", bits))
    array = spcomm.localize(np.frombuffer(data, NET_DOUBLE))
    assert array.view("u8")[1::2].tolist() == [bits] * 2


# ---- conversion


@pytest.mark.smoke
@both
@pytest.mark.parametrize("way", WAYS)
def test_every_way_reads_right(kind, way):
    array = WAYS[way](kind, NUMBERS[kind])
    values = array.astype(LIKE[kind])
    assert values.tobytes() == np.array(NUMBERS[kind], LIKE[kind]).tobytes()
    assert repr(array.tolist()) == repr(NUMBERS[kind])


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="NET_DOUBLE stays as it is here"
)
@both
def test_reading_one_element_converts_it_in_place(kind):
    array = foreign(kind, NUMBERS[kind])
    before = array.tobytes()
    assert array[3] == NUMBERS[kind][3] and type(array[3]) is SCALARS[kind]
    size = array.itemsize
    assert array.tobytes()[3 * size : 4 * size] == element(kind, OWN, NUMBERS[kind][3])
    assert array.tobytes()[: 3 * size] == before[: 3 * size] and spcomm.foreign_count(array) == 5
    assert array.tolist() == NUMBERS[kind] and spcomm.foreign_count(array) == 0


@both
def test_computing_and_copying_change_nothing(kind):
    array = foreign(kind, [3, 1, 2])
    bytes_before = array.tobytes()
    assert array.sum() == 6 and (array + 1).tolist() == [4, 2, 3] and array.max() == 3
    for other in (array.copy(), array[:], np.concatenate([array, array])[:3], array[[0, 1, 2]]):
        assert other.tobytes() == bytes_before
    assert array.tobytes() == bytes_before


@both
def test_read_only_memory_is_never_written(kind, tmp_path):
    """The file is mapped for reading: a write would end the process."""
    path = tmp_path / "numbers"
    path.write_bytes(read_only(kind, NUMBERS[kind]).tobytes())
    mapped = np.memmap(path, KINDS[kind], mode="r")
    assert mapped.tolist() == NUMBERS[kind] and mapped[1] == NUMBERS[kind][1] and repr(mapped)
    assert np.sort(mapped).tolist() == sorted(NUMBERS[kind]) and spcomm.foreign_count(mapped) == 6
    with refused(ValueError, "read-only", "6 of its elements", "a.copy()"):
        spcomm.localize(mapped)
    writable = np.memmap(path, KINDS[kind], mode="r+")
    spcomm.localize(writable).flush()
    assert path.read_bytes() == own(kind, NUMBERS[kind]).tobytes()


def test_an_int_between_multiples_of_8_converts_without_writing():
    array = np.frombuffer(bytearray(4) + element("int", OTHER, 7) + bytes(4), "u1")[4:12].view(NET_INT)
    if array.ctypes.data % 8 == 0:
        pytest.skip("memory came at an odd multiple of 4")
    assert array[0] == 7 and spcomm.foreign_count(array) == 1
    assert spcomm.foreign_count(spcomm.localize(array)) == 0 and array[0] == 7


@both
@pytest.mark.parametrize("way", ["foreign", "mixed", "strided", "unaligned"])
def test_localize(kind, way):
    array = WAYS[way](kind, NUMBERS[kind])
    assert spcomm.foreign_count(array) == (2 if way == "mixed" else 6)
    assert spcomm.localize(array) is array and spcomm.foreign_count(array) == 0
    assert array.astype(KINDS[kind]).tobytes() == own(kind, NUMBERS[kind]).tobytes()
    two = np.frombuffer(bytearray(foreign(kind, range(24)).tobytes()), KINDS[kind]).reshape(4, 6)
    assert spcomm.foreign_count(two[1:3, ::2].T) == 6
    spcomm.localize(two[1:3, ::2])
    assert spcomm.foreign_count(two) == 18 and two.ravel().tolist() == list(range(24))
    assert spcomm.localize(np.zeros((0, 2), KINDS[kind])).size == 0


@pytest.mark.parametrize("function", [spcomm.localize, spcomm.foreign_count])
def test_what_has_no_byte_order(function):
    for given in (np.zeros(2), np.zeros(2, [("a", "i4")]), np.zeros(1, object), [1], NetInt(1), None):
        with refused(TypeError, function.__name__, "NET_INT"):
            function(given)


@both
def test_threads_that_read_at_once(kind):
    """Two convert elements, two add all up: nobody sees a half-converted one."""
    count, rounds = 2000, 20
    numbers = [(i * 7919) % 100_003 + 0x0102 for i in range(count)]
    expected, wrong = sum(numbers), []
    for _round in range(rounds):
        array = foreign(kind, numbers)
        start = threading.Barrier(4)

        def read(array=array, start=start):
            start.wait()
            if [int(number) for number in array] != numbers:
                wrong.append("an element")

        def add(array=array, start=start):
            start.wait()
            for _ in range(20):
                if array.sum() != expected or np.sort(array)[-1] != max(numbers):
                    wrong.append("a sum")

        threads = [threading.Thread(target=work) for work in (read, add, read, add)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# ---- scalars


@both
def test_scalars_are_numbers(kind):
    scalar = SCALARS[kind](5)
    native = int if kind == "int" else float
    assert isinstance(scalar, native) and isinstance(scalar, np.number) and scalar.dtype is KINDS[kind]
    assert type(scalar + 1) is native and (scalar + 1, 7 - scalar, scalar**2, scalar // 2) == (6, 2, 25, 2)
    assert hash(scalar) == hash(5) and {5: "five"}[scalar] == "five" and f"{scalar:4}|" == f"{native(5):4}|"
    assert scalar == np.int32(5) and scalar < 5.5 and bool(SCALARS[kind]()) is False
    assert (
        scalar.byteswap() == 5
        and scalar.item() == 5
        and scalar.nbytes == KINDS[kind].itemsize
        and scalar.astype("f4") == 5
        and np.asarray(scalar).dtype is KINDS[kind]
    )
    assert SCALARS[kind]("12") == 12 and SCALARS[kind](np.float32(2.5)) == native(2.5)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(scalar, protocol))
        assert type(again) is SCALARS[kind] and again == 5
    assert type(copy.deepcopy(scalar)) is SCALARS[kind]
    assert (scalar[()], scalar.sum(), scalar.T, scalar.reshape(1).tolist(), scalar.ndim) == (5, 5, 5, [5], 0)
    assert scalar.__array__().dtype is KINDS[kind] and type(scalar.astype("f4")) is np.float32
    for name in dir(np.generic):  # NumPy 2.0 would crash
        if not name.startswith("_"):
            with contextlib.suppress(AttributeError, TypeError, ValueError, NotImplementedError):
                attribute = getattr(scalar, name)
                attribute() if callable(attribute) and name not in ("tofile", "dump") else None
    with pytest.raises((AttributeError, TypeError)):
        scalar.value = 3
    with pytest.raises(TypeError):
        type("Other", (SCALARS[kind],), {})
    with pytest.raises(TypeError, match="immutable"):
        SCALARS[kind].other = 3


def test_scalars_at_the_limits():
    for number in (0, 1, -1, 2**30 - 1, 2**30, -(2**30), 2**31 - 1, -(2**31)):
        assert int(NetInt(number)) == number and repr(NetInt(number)) == repr(number)
        assert (
            NetInt(number) + 0 == number
            and -NetInt(number) == -number
            and NetInt(number).bit_length() == number.bit_length()
        )
    for number in (2**31, -(2**31) - 1, 10**30, 1e10):
        with refused(OverflowError, repr(number), "-2147483648 to 2147483647"):
            NetInt(number)
    assert range(10)[NetInt(3)] == 3 and np.arange(5)[NetInt(2)] == 2
    assert repr(NetDouble("nan")) == "nan" and NetDouble(5e-324) == 5e-324
    for bad in (None, [], 1j, "x"):
        for scalar in SCALARS.values():
            with pytest.raises((TypeError, ValueError)):
                scalar(bad)


# ---- keeping them


@both
@pytest.mark.parametrize("way", WAYS)
def test_pickle_and_copy(kind, way):
    array = WAYS[way](kind, NUMBERS[kind])
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(array, protocol))
        assert again.dtype is KINDS[kind] and again.tobytes() == array.tobytes()
        assert pickle.loads(pickle.dumps(KINDS[kind], protocol)) is KINDS[kind]
    buffers = []
    data = pickle.dumps({"a": array}, 5, buffer_callback=buffers.append)
    assert pickle.loads(data, buffers=buffers)["a"].tobytes() == array.tobytes()
    assert copy.deepcopy(array).tobytes() == array.tobytes() and copy.copy(KINDS[kind]) is KINDS[kind]


@both
def test_files(kind, tmp_path):
    array = mixed(kind, NUMBERS[kind])
    array.tofile(tmp_path / "raw")
    assert np.fromfile(tmp_path / "raw", KINDS[kind]).tobytes() == array.tobytes()
    with pytest.warns(UserWarning, match="pickle"):
        np.save(tmp_path / "a.npy", array)
    assert np.load(tmp_path / "a.npy", allow_pickle=True).tobytes() == array.tobytes()
    np.savetxt(tmp_path / "text", array)
    assert np.loadtxt(tmp_path / "text").tolist() == NUMBERS[kind]
    assert np.loadtxt(["1 2", "3 4"], dtype=KINDS[kind]).tolist() == [[1, 2], [3, 4]]
    assert np.fromstring("1 2 3", KINDS[kind], sep=" ").tolist() == [1, 2, 3]
    assert np.fromiter([1, 2], KINDS[kind]).tolist() == [1, 2]


STRUCTURES = {
    "packed": np.dtype([("tag", "u1"), ("id", NET_INT), ("x", NET_DOUBLE)]),
    "aligned": np.dtype([("tag", "u1"), ("id", NET_INT), ("x", NET_DOUBLE)], align=True),
    "nested": np.dtype([("tag", "u1"), ("id", NET_INT), ("in", [("ids", NET_INT, (3,)), ("x", NET_DOUBLE)])]),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_fields_of_structures(structure):
    dtype = STRUCTURES[structure]
    array = np.zeros(3, dtype)
    inner = array["in"] if structure == "nested" else array
    array["id"] = [3, 1, 2]
    inner["x"] = foreign("double", [0.5, 1.5, 2.5])
    if structure == "nested":
        inner["ids"] = foreign("int", range(9)).reshape(3, 3)
    array["id"][1:] = foreign("int", [1, 2])
    assert spcomm.foreign_count(array) == (14 if structure == "nested" else 5)
    assert array["id"].sum() == 6 and inner["x"].tolist() == [0.5, 1.5, 2.5] and array[1]["id"] == 1
    assert np.sort(array, order="id")["id"].tolist() == [1, 2, 3]
    again = pickle.loads(pickle.dumps(array))
    assert again.dtype == dtype and (again == array).all() and np.concatenate([array, again]).shape == (6,)
    assert np.frombuffer(array.tobytes(), dtype)["id"].tolist() == [3, 1, 2]
    assert spcomm.foreign_count(spcomm.localize(array)) == 0 and array["id"].tolist() == [3, 1, 2]
    array[0] = (1, 7, ([1, 2, 3], 0.25)) if structure == "nested" else (1, 7, 0.25)
    assert array[0]["id"] == 7 and inner["x"][0] == 0.25 and "7" in repr(array)
    assert np.rec.array(array).id[0] == 7
    assert array.astype([(name, dtype[name]) for name in dtype.names])["id"].tolist() == [7, 1, 2]
    plain = np.zeros(2, [("a", "i8"), ("b", "f4")]).astype([("a", NET_INT), ("b", NET_DOUBLE)])
    assert plain["a"].dtype is NET_INT and plain.tolist() == [(0, 0.0)] * 2


# ---- cost


def rounds_of_everything(array, structure, times):
    for _ in range(times):
        array[0], array[1:3] = 5, array[3:5]
        assert ((array + 1) * 2 == array.byteswap()).shape == (300,)
        (
            array.sum(),
            array.max(),
            array @ array,
            np.sort(array),
            array.argsort(),
            np.where(array > 1, array, 0),
        )
        array.astype(object), array.astype(str).astype(array.dtype), pickle.loads(pickle.dumps(array, 5))
        array.tolist(), [*array], repr(array), spcomm.localize(array.byteswap()), spcomm.foreign_count(array)
        array.dtype.type(3) + 1, hash(array[2]), copy.deepcopy(structure), structure["a"].sum()
        for bad in ("x", None):
            try:
                array[0] = bad
            except (TypeError, ValueError):
                pass
        try:
            spcomm.localize(3)
        except TypeError:
            pass


GROWTH = """
import sys
sys.path[:0] = {path!r}
import numpy as np, spcomm, gc
from test_net_types import rounds_of_everything
for dtype in (spcomm.NET_INT, spcomm.NET_DOUBLE):
    array, structure = np.arange(300).astype(dtype), np.zeros(9, [("a", dtype)])
    objects = [dtype, dtype.type, type(dtype), *map(np.dtype, (np.int64, np.float64, object, "U"))]
    def pages():
        return int(open("/proc/self/statm").read().split()[1])
    rounds_of_everything(array, structure, {warm})
    gc.collect(); before, counts, blocks = pages(), [sys.getrefcount(o) for o in objects], sys.getallocatedblocks()
    rounds_of_everything(array, structure, {times})
    gc.collect(); after, later = pages(), [sys.getrefcount(o) for o in objects]
    grown = [(o, a, b) for o, a, b in zip(objects, counts, later) if abs(a - b) > 20]
    assert not grown, grown
    assert sys.getallocatedblocks() - blocks < {times} // 2, sys.getallocatedblocks() - blocks
    assert (after - before) * 4096 < 2 << 20, (before, after)
"""


@pytest.mark.slow
def test_nothing_grows():
    """In an interpreter of its own; CHECK_SCALE=10 makes it 20,000 rounds of all that is above."""
    path = [entry for entry in sys.path if entry.endswith(("tests", "core", "api"))]
    code = GROWTH.format(path=path, warm=200, times=2000 * int(os.environ.get("CHECK_SCALE", "1")))
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=150)
    assert answer.returncode == 0, answer.stderr


def test_wide_of_each_kind():
    """The other test files take this for granted."""
    gc.collect()
    assert {kind: (np.zeros(1, KINDS[kind]) + 0).dtype for kind in KINDS} == WIDE
    assert unaligned("int", [1])[0] == 1
