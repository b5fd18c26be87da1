"""Tests that indices have the same meaning as in NumPy."""

import random

import numpy as np
import pytest

import tilefs
from conftest import tiledb, write_dense
from tilefs._indices import cells_of, is_advanced, resolve, resolve_advanced


def taken(values, key):
    """Returns the values at the positions along each axis that `key` selects."""
    axes, shaping = resolve(key, values.shape)
    for axis, (first, step, count) in enumerate(axes):
        values = values.take([first + step * number for number in range(count)], axis)
    return values[shaping]


def random_key(rng, rank):
    def one():
        def end():
            return rng.choice([None, rng.randint(-9, 9)])

        return rng.choice(
            [rng.randint(-7, 7), slice(end(), end(), rng.choice([None, 1, 2, 3, -1, -2, 9, -9])), None, Ellipsis, slice(None)]
        )

    key = tuple(one() for _ in range(rng.randint(0, rank + 2)))
    return key[0] if len(key) == 1 and rng.random() < 0.5 else key


@pytest.mark.parametrize("shape", [(7,), (5, 6), (4, 1, 5), (3, 0)])
def test_random_indices_are_those_of_numpy(shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    rng = random.Random(5)
    outcomes = {True: 0, False: 0}
    for _ in range(3000):
        key = random_key(rng, len(shape))
        try:
            expected = values[key]
        except IndexError:
            with pytest.raises(IndexError):
                taken(values, key)
            outcomes[False] += 1
            continue
        found = taken(values, key)
        assert found.shape == expected.shape and np.array_equal(found, expected), key
        outcomes[True] += 1
    assert min(outcomes.values()) > 100, outcomes


def selected(values, key):
    """Returns what `resolve_advanced` selects: a box of ranges, and an index of it."""
    axes, index = resolve_advanced(key, values.shape)
    for axis, ranges in enumerate(axes):
        values = values.take([first + step * number for first, step, count in ranges for number in range(count)], axis)
    assert all(values.shape[axis] == sum(one[2] for one in ranges) for axis, ranges in enumerate(axes))
    found = values[index]
    assert cells_of(axes, index) == found.size
    return found


def random_advanced_key(rng, shape):
    def one(size):
        positions = [rng.randint(-size - (rng.random() < 0.05), size) if size else 0 for _ in range(rng.randint(0, 4))]
        table = np.array([[rng.randint(-size, max(size - 1, 0)) for _ in range(2)] for _ in range(2)])
        return rng.choice([rng.randint(-size, size), slice(None), slice(rng.randint(-4, 4), None, rng.choice([1, 2, -1])), Ellipsis, None, positions, np.array(positions, dtype="i2"), table, np.array([rng.random() < 0.5 for _ in range(size)])])

    key = [one(size) for size in shape[: rng.randint(1, len(shape))]]
    if rng.random() < 0.1:
        key = [np.array([rng.random() < 0.5 for _ in range(np.prod(shape))], dtype=bool).reshape(shape)]
    return tuple(key)


@pytest.mark.parametrize("shape", [(7,), (5, 6), (4, 1, 5), (3, 4, 2)])
def test_random_lists_and_masks_are_those_of_numpy(shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    rng = random.Random(11)
    outcomes = {True: 0, False: 0}
    for _ in range(3000):
        key = random_advanced_key(rng, shape)
        if not is_advanced(key):
            continue
        try:
            expected = values[key]
        except IndexError:
            with pytest.raises(IndexError):
                selected(values, key)
            outcomes[False] += 1
            continue
        try:
            found = selected(values, key)
        except IndexError:
            # NumPy does not check positions if no cells are selected.
            assert expected.size == 0, key
            continue
        assert found.shape == expected.shape and np.array_equal(found, expected), key
        outcomes[True] += 1
    assert min(outcomes.values()) > 50, outcomes


def test_lists_and_masks_select_cells(tmp_path):
    values = np.random.default_rng(3).normal(size=(17, 11))
    temp = tilefs.open(write_dense(tmp_path / "a", values, low=-4))["a"]
    warm = values > 0.5
    for key in ([1, 5, 2], np.array([16, -1, 0]), (slice(None), [3, 3]), ([1, 2], [3, 4]), (2, [7, 1]), warm, (warm[:, 0], slice(2, 4)), (..., [1]), ([[1, 2], [3, 4]], None), []):
        np.testing.assert_array_equal(temp[key], values[key])
    for key, reason in (([17], "out of bounds"), (warm[:3], "does not fit"), ([1.5], "integers or booleans"), (True, "a mask has an axis")):
        with pytest.raises(IndexError, match=reason):
            temp[key]


def test_single_cells_of_a_large_box_are_refused(tmp_path):
    path = str(tmp_path / "a")
    dims = [tiledb.Dim(name, domain=(0, 99_999), tile=100, dtype="i4") for name in "yx"]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype="u1")]))
    places = np.arange(0, 99_999, 9)
    with pytest.raises(IndexError, match="array.multi_index"):
        tilefs.open(path)["a"][places, places]


def test_integers_of_numpy_are_indices_and_others_are_not():
    values = np.arange(12).reshape(3, 4)
    assert taken(values, (np.int8(-1), np.uint64(2))) == values[-1, 2]
    for key in [True, np.True_, 1.0, "a"]:
        with pytest.raises(IndexError, match="read a box"):
            resolve(key, values.shape)


def test_messages_are_those_of_numpy():
    values = np.arange(12).reshape(3, 4)
    for key in [(3,), (0, -5), (0, 0, 0)]:
        with pytest.raises(IndexError) as ours:
            resolve(key, values.shape)
        with pytest.raises(IndexError) as theirs:
            values[key]
        assert str(ours.value) == str(theirs.value)


def test_axes_may_be_longer_than_any_list():
    assert resolve(slice(None, None, -(2**61)), [2**62])[0] == [(2**62 - 1, -(2**61), 2)]
    assert resolve(-1, [2**64])[0] == [(2**64 - 1, 1, 1)]
    assert resolve(slice(5, None, 2**70), [2**64])[0] == [(5, 1, 1)]
