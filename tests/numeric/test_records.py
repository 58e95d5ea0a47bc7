"""Records that compiled code reads by name, through one pointer each."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from counterlvq.numeric.jit import jit, part
from counterlvq.numeric.records import Record


@dataclass(frozen=True, eq=False)
class Mixture(Record):
    """One field of each kind that kernels use."""

    flag: bool
    share: float
    matrix: NDArray[np.float64]
    places: NDArray[np.int64]
    chosen: NDArray[np.bool_]
    cube: NDArray[np.float64]
    count: int


def mixture(scale: float = 1.0) -> Mixture:
    return Mixture(
        flag=True,
        share=0.1,
        matrix=scale * np.arange(6.0).reshape(2, 3),
        places=np.array([5, -7]),
        chosen=np.array([False, True, True]),
        cube=scale * np.arange(24.0).reshape(2, 3, 4),
        count=-3,
    )


@jit
def _weighed(record, out):
    out[0] = record.matrix[1, 2] + record.cube[1, 2, 3]
    out[1] = record.places[1] + record.count
    out[2] = record.share if record.flag and record.chosen[2] and not record.chosen[0] else -1.0
    out[3] = record.matrix.shape[0] + 10 * record.matrix.shape[1] + 100 * record.cube.shape[2]
    record.matrix[0, 1] = 99.0


@part
def _inner(x):
    return x + 1.0


@jit
def _outer(x):
    return _inner(x)


def test_compiled_code_reads_each_field_and_writes_into_arrays() -> None:
    record, out = mixture(), np.zeros(4)
    _weighed(record, out)
    assert out.tolist() == [5.0 + 23.0, -10.0, 0.1, 432.0]
    assert record.matrix[0, 1] == 99.0


def test_another_record_of_the_same_layout_is_not_compiled_again() -> None:
    out = np.zeros(4)
    for scale in (1.0, 2.0):
        _weighed(mixture(scale), out)
        assert out[0] == scale * 28.0
    assert len(_weighed.dispatcher.signatures) == 1


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))]
)
def test_a_copy_has_a_table_of_its_own(copied) -> None:
    record = mixture()
    other = copied(record) if record.address else None
    assert other.address != record.address
    out = np.zeros(4)
    other.matrix[1, 2] = 1000.0
    _weighed(other, out)
    assert out[0] == 1023.0


def test_an_array_that_is_not_in_one_piece_is_refused() -> None:
    record = Mixture(True, 0.1, np.zeros((3, 2)).T, *[np.zeros(0)] * 2, np.zeros((1, 1, 1)), 0)
    with pytest.raises(ValueError, match=r"Mixture\.matrix is not C-contiguous"):
        _ = record.address


def test_a_number_that_no_kernel_takes_is_refused() -> None:
    with pytest.raises(KeyError):
        _ = Mixture(True, "0.1", *[np.zeros(0)] * 4, 0).layout  # type: ignore[arg-type]


def test_memory_is_that_of_the_arrays() -> None:
    assert mixture().nbytes == 8 * 6 + 8 * 2 + 3 + 8 * 24


def test_the_interpreter_is_kept_from_calling_a_part() -> None:
    assert _outer(1.0) == 2.0
    with pytest.raises(TypeError, match="_inner is a part of other kernels"):
        _inner(1.0)


def test_a_record_made_of_another_is_read_like_one_made_alone() -> None:
    first, out = mixture(), np.zeros(4)
    matrix, places = 3.0 * np.arange(8.0).reshape(2, 4), np.array([1, 11])
    made = first.replaced(matrix=matrix, places=places, share=0.5)
    _weighed(made, out)
    assert out.tolist() == [matrix[1, 2] + 23.0, 8.0, 0.5, 2 + 40 + 400]
    assert made.layout is first.layout
    assert made.cube is first.cube
    matrix[0, 1] = 1.0
    first.matrix[0, 1] = 1.0
    _weighed(first, out)  # which has not changed
    assert out.tolist() == [5.0 + 23.0, -10.0, 0.1, 2 + 30 + 400]


def test_a_record_with_fields_of_another_kind_has_a_layout_of_its_own() -> None:
    first = mixture()
    made = first.replaced(matrix=np.array([4.0]))
    assert made.layout is not first.layout
    assert {name: size for name, _, size in made.layout}["matrix"] == 1


def test_a_record_refuses_what_does_not_lie_in_one_piece() -> None:
    with pytest.raises(ValueError, match=r"Mixture\.matrix is not C-contiguous"):
        mixture().replaced(matrix=np.zeros((3, 2)).T)


def test_empty_and_read_only_arrays_are_read_too() -> None:
    first, out = mixture(), np.zeros(4)
    fixed = 3.0 * np.arange(24.0).reshape(2, 3, 4)
    fixed.setflags(write=False)
    _weighed(first.replaced(cube=fixed), out)
    assert out[0] == 5.0 + 69.0
    assert first.replaced(places=np.zeros(0, dtype=np.int64)).address
