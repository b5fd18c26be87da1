"""How numbers, sizes, times and texts of an array are written for a person, in a terminal or a notebook."""

from __future__ import annotations

import re
from typing import Any, List, Sequence

#: The longest text of one value.
_MOST_LETTERS = 60

#: Characters that move the cursor of a terminal, or turn the direction of the text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

#: Units of time from the largest on, and what they are called.
_UNITS = {"D": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


def plain(text: str) -> str:
    """Returns a text without characters that would change how what is around it looks."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1] if found[0] < " " else f"\\u{ord(found[0]):04x}", text)


def value(cell: Any) -> str:
    """Returns a value, cut where it is long."""
    kind = getattr(getattr(cell, "dtype", None), "kind", "")
    text = plain(f"{cell:.6g}" if isinstance(cell, float) or kind == "f" and cell.ndim == 0 else str(cell))
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"


def name(field: str) -> str:
    """Returns the name of a field; TileDB calls those without one anonymous."""
    return field or "(anonymous)"


def number(count: int) -> str:
    """Returns a whole number with groups of three digits."""
    return f"{count:,}".replace(",", "\u202f")


def counted(count: int, what: str) -> str:
    """Returns how many of something there are."""
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Returns a number of bytes in the unit that fits."""
    if count < 1024:
        return counted(count, "byte")
    found, units = float(count), ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while found >= 1024 and units:
        found, unit = found / 1024, units.pop(0)
    return f"{found:.3g} {unit}" if found < 1000 else f"{found:.0f} {unit}"


def time(milliseconds: int) -> str:
    """Returns a time since 1970 without its fraction of a second."""
    import numpy

    return str(numpy.datetime64(milliseconds, "ms")).replace("T", " ")[:19]


def coordinates(ends: Sequence[Any]) -> List[str]:
    """Returns coordinates. Of dates, the zeros at the end are left out that all of them have."""
    texts = [str(end) for end in ends]
    if any(getattr(getattr(end, "dtype", None), "kind", "") != "M" for end in ends):
        return texts
    fractions = [len(text.partition(".")[2].rstrip("0")) for text in texts]
    left_out = max((len(text.partition(".")[2]) for text in texts), default=0) - max(fractions, default=0)
    if not any(text.partition("T")[2].strip("0:.") for text in texts if text != "NaT"):
        return [text if text == "NaT" else text.partition("T")[0] for text in texts]
    return [text if text == "NaT" else text[: len(text) - left_out].rstrip(".").replace("T", " ") for text in texts]


def length(extent: Any) -> str:
    """Returns the length of a tile; one of time in the largest unit of which it is a whole number."""
    import numpy

    is_time = getattr(getattr(extent, "dtype", None), "kind", "") == "m" and not numpy.isnat(extent)
    if not is_time or numpy.datetime_data(extent.dtype)[0] not in _UNITS:
        return str(extent)
    for unit, what in _UNITS.items():
        one = numpy.ones((), f"m8[{unit}]")[()]
        count = extent // one
        if count and count * one == extent:
            return counted(int(count), what)
    return str(extent)
