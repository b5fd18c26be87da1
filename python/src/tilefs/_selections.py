"""Converts selections of rows by coordinates to the text that names a folder in ``slice/``."""

from __future__ import annotations

import datetime
import numbers
from typing import TYPE_CHECKING, Any, Mapping, Optional

from ._errors import UsageError

if TYPE_CHECKING:
    import numpy

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def text_of(rows: Any, dimensions: "Mapping[str, numpy.dtype[Any]]") -> Optional[str]:
    """Returns the selection of ``rows`` among dimensions, given as their types by name. The rows are text, which stays
    as it is; a mapping of names to ranges; a tuple of ranges in the order of the dimensions; or the range of the first
    dimension. ``None`` selects everything."""
    if rows is None or isinstance(rows, str):
        return rows
    if isinstance(rows, Mapping):
        chosen = [(name, one) for name, one in rows.items() if not _is_whole(one)]
        parts = [f"{_escaped(name)}={_Coordinates(name, dimensions.get(name)).ranges(one)}" for name, one in chosen]
    else:
        ordered = rows if isinstance(rows, tuple) else (rows,)
        if len(ordered) > len(dimensions):
            raise ValueError(f"{len(ordered)} ranges for {len(dimensions)} dimensions")
        parts = [_Coordinates(*dimension).ranges(one) for dimension, one in zip(dimensions.items(), ordered)]
    return ",".join(parts) or None


def _is_whole(chosen: Any) -> bool:
    return chosen is None or (isinstance(chosen, slice) and chosen == slice(None))


class _Coordinates:
    """Converts coordinates of a dimension to text."""

    def __init__(self, name: str, dtype: "Optional[numpy.dtype[Any]]") -> None:
        self._name = name
        self._dtype = dtype
        self._has_dates = dtype is not None and dtype.kind == "M"

    def ranges(self, chosen: Any) -> str:
        if _is_whole(chosen):
            return ".."
        if isinstance(chosen, (list, set, frozenset, range)) or type(chosen).__name__ == "ndarray":
            parts = [self._range(one) for one in chosen]
            if not parts:
                raise ValueError("an empty list of coordinates selects nothing")
            return "+".join(parts)
        return self._range(chosen)

    def _range(self, chosen: Any) -> str:
        if not isinstance(chosen, slice):
            return self._value(chosen)
        low, high = ("" if end is None else self._value(end) for end in (chosen.start, chosen.stop))
        # A step is a number, of days for example, and no date.
        step = "" if chosen.step is None else f"..{_number(chosen.step)}"
        return f"{low}..{high}{step}"

    def _value(self, value: Any) -> str:
        if isinstance(value, (str, bytes)):
            return _escaped(value) or "%"
        if getattr(getattr(value, "dtype", None), "kind", "") == "M":
            return self._instant(value)
        if isinstance(value, (datetime.datetime, datetime.date)):
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
            return str(value.isoformat())
        if self._dtype is not None and self._dtype == object:
            raise UsageError(f"dimension {self._name} has texts, not {value!r}")
        if self._has_dates:
            raise TypeError(
                f"the coordinates of {self._name} are dates, not numbers: {value!r} could be a year or a count; "
                'write a date of Python or NumPy, or text such as "2020-01-31"'
            )
        return _number(value)

    def _instant(self, value: Any) -> str:
        """Returns the text of a ``datetime64``: its first instant, as where NumPy compares it, and not all of the year
        or day."""
        if value != value:
            raise ValueError(f"NaT is no coordinate of {self._name}")
        if self._has_dates:
            finer = value.astype(self._dtype)
            # NumPy wraps around if the unit of the dimension cannot hold the date, and cuts one of a finer unit.
            if finer.astype(value.dtype) == value:
                return _date_text(finer)
        # A year and a month would mean all of their days.
        is_long = value.dtype.str[1:] in ("M8[Y]", "M8[M]")
        return _date_text(value.astype("datetime64[D]") if is_long else value)


def _date_text(date: Any) -> str:
    """Returns the text of a ``datetime64``, whose year has at least four digits, and a sign if it has more."""
    text = str(_in_days(date))
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    year, dash, rest = text.partition("-")
    if not sign and len(year) > 4:
        sign = "%2B"
    return f"{sign}{year.rjust(4, '0')}{dash}{rest}"


def _in_days(date: Any) -> Any:
    """Returns weeks as days, of which NumPy's text of weeks is made: those further away wrap around there."""
    if date.dtype.str[1:] != "M8[W]":
        return date
    days = date.astype("datetime64[D]")
    if days.astype(date.dtype) != date:
        raise UsageError(f"{int(date.astype('int64'))} weeks from 1970 are no date: their days have more than 64 bits")
    return days


def _number(value: Any) -> str:
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        # Remove `+`, which joins ranges in selections.
        return repr(float(value)).replace("e+", "e")
    raise TypeError(f"a coordinate is a number, a date or text, not {type(value).__name__}")


def _escaped(text: Any) -> str:
    stored = text.encode() if isinstance(text, str) else bytes(text)
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in stored)
