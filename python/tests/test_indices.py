"""Tests that indices have the same meaning as in NumPy."""

import random

import numpy as np
import pytest

from tilefs._indices import resolve


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


def test_integers_of_numpy_are_indices_and_masks_are_not():
    values = np.arange(12).reshape(3, 4)
    assert taken(values, (np.int8(-1), np.uint64(2))) == values[-1, 2]
    for key in [True, np.True_, np.array([True, False, True]), [0, 1], 1.0, "a", (0, [1])]:
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
