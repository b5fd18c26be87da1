"""Converts selections of rows by coordinates to the text that names a folder in ``slice/``."""

from __future__ import annotations

import datetime
import numbers
from typing import Any, Mapping, Optional, Sequence

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def text_of(rows: Any, dimensions: Sequence[str]) -> Optional[str]:
    """Returns the selection of ``rows``. These are text, which stays as it is; a mapping of names to ranges; a tuple of
    ranges in the order of the dimensions; or the range of the first dimension. ``None`` selects everything."""
    if rows is None or isinstance(rows, str):
        return rows
    if isinstance(rows, Mapping):
        parts = [f"{_escaped(name)}={_ranges(chosen)}" for name, chosen in rows.items() if not _is_whole(chosen)]
    else:
        chosen = rows if isinstance(rows, tuple) else (rows,)
        if len(chosen) > len(dimensions):
            raise ValueError(f"{len(chosen)} ranges for {len(dimensions)} dimensions")
        parts = [_ranges(one) for one in chosen]
    return ",".join(parts) or None


def _is_whole(chosen: Any) -> bool:
    return chosen is None or (isinstance(chosen, slice) and chosen == slice(None))


def _ranges(chosen: Any) -> str:
    if _is_whole(chosen):
        return ".."
    if isinstance(chosen, (list, set, frozenset, range)) or type(chosen).__name__ == "ndarray":
        parts = [_range(one) for one in chosen]
        if not parts:
            raise ValueError("an empty list of coordinates selects nothing")
        return "+".join(parts)
    return _range(chosen)


def _range(chosen: Any) -> str:
    if not isinstance(chosen, slice):
        return _value(chosen)
    low, high = ("" if end is None else _value(end) for end in (chosen.start, chosen.stop))
    step = "" if chosen.step is None else f"..{_value(chosen.step)}"
    return f"{low}..{high}{step}"


def _value(value: Any) -> str:
    # NumPy scalars that are not Python numbers have a kind. A datetime64 prints as ISO 8601.
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, (str, bytes)):
        return _escaped(value) or "%"
    if kind == "M":
        return str(value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return str(value.isoformat())
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        # Remove `+`, which joins ranges in selections.
        return repr(float(value)).replace("e+", "e")
    raise TypeError(f"a coordinate is a number, a date or text, not {type(value).__name__}")


def _escaped(text: Any) -> str:
    stored = text.encode() if isinstance(text, str) else bytes(text)
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in stored)
