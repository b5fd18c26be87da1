"""Compares what exits give with what was stored."""

import math

import numpy as np


def differences(one, shown):
    """Returns the cells of a field that an exit shows differently: what it should show, and what it shows."""
    wanted = one.in_form(shown.form)
    if len(wanted) != len(shown.values):
        return [(f"{len(wanted)} cells", f"{len(shown.values)} cells")]
    same_cell = {"padded": _padded, "nan": _or_nan}.get(shown.form, same)
    return [(want, got) for want, got in zip(wanted, shown.values) if not same_cell(want, got)]


def _padded(stored, shown):
    """Texts whose length is filled up with NULs."""
    return same(stored, shown) or isinstance(stored, bytes) and isinstance(shown, bytes) and stored.rstrip(b"\0") == shown.rstrip(b"\0")


def _or_nan(stored, shown):
    """Floats whose nulls are no numbers."""
    if isinstance(stored, list) and isinstance(shown, list):
        return len(stored) == len(shown) and all(map(_or_nan, stored, shown))
    is_nan = isinstance(shown, float) and math.isnan(shown)
    is_all = isinstance(shown, list) and shown and all(isinstance(one, float) and math.isnan(one) for one in shown)
    return stored is None and (is_nan or is_all) or same(stored, shown)


def same(stored, shown):
    """Returns whether two values are the same: floats to the bit, but for the bits of a NaN; truth values are no numbers."""
    if isinstance(stored, list):
        return isinstance(shown, list) and len(stored) == len(shown) and all(map(same, stored, shown))
    if isinstance(stored, np.float32):
        if isinstance(shown, np.float32):
            return same(float(stored), float(shown))
        return isinstance(shown, float) and same(float(stored), float(np.float32(shown)))
    if isinstance(stored, float) and isinstance(shown, float):
        if math.isnan(stored) or math.isnan(shown):
            return math.isnan(stored) and math.isnan(shown)
        return stored == shown and math.copysign(1, stored) == math.copysign(1, shown)
    if isinstance(stored, int) and isinstance(shown, int):
        return isinstance(stored, bool) == isinstance(shown, bool) and stored == shown
    return type(stored) is type(shown) and stored == shown
