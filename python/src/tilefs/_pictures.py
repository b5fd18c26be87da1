"""Pictures for notebooks: tiles as SVG, drawn like the chunks of dask, and rasters as PNG."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Sequence, Tuple

from . import _wording

if TYPE_CHECKING:
    import numpy

    from ._attributes import Attribute

#: The most bytes of tiles that are decoded for a picture.
_MOST_DECODED = 8 << 20

#: The longest side of a picture of cells, in cells, and in pixels of the page.
_MOST_CELLS, _SIDE = 256, 240

#: The longest side of a drawing of tiles in pixels, and the shortest.
_LONGEST, _SHORTEST = 160, 14

#: How many lines are drawn along an axis. Where there are more tiles, some lines stand for all.
_MOST_LINES = 24

#: The colours of small, middle and large values: dark blue, green, yellow.
_COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))

_FILL, _EDGE, _LINE = "rgba(236,138,56,0.45)", "currentColor", "rgba(128,128,128,0.75)"


class DrawnAxis(NamedTuple):
    """An axis of a drawing."""

    name: str
    size: int
    #: Where tiles end, between 0 and the size.
    cuts: Sequence[int]
    #: Whether the size is told.
    is_counted: bool = True


class _Point(NamedTuple):
    x: float
    y: float


class _Face(NamedTuple):
    """A parallelogram that shows two axes."""

    origin: _Point
    #: Along the first axis, and along the second.
    down: _Point
    across: _Point
    cuts: Tuple[List[float], List[float]]

    def drawn(self) -> str:
        """Returns its area, the ends of tiles, and its edge."""
        corners = (self._at(0, 0), self._at(0, 1), self._at(1, 1), self._at(1, 0))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        lines = [_line(self._at(cut, 0), self._at(cut, 1)) for cut in self.cuts[0]]
        lines += [_line(self._at(0, cut), self._at(1, cut)) for cut in self.cuts[1]]
        edge = f'<polygon points="{points}" style="fill:none;stroke:{_EDGE};stroke-width:1.4"/>'
        return f'<polygon points="{points}" style="fill:{_FILL};stroke:none"/>{"".join(lines)}{edge}'

    def _at(self, down: float, across: float) -> _Point:
        x = self.origin.x + down * self.down.x + across * self.across.x
        return _Point(x, self.origin.y + down * self.down.y + across * self.across.y)


def tiles(axes: Sequence[DrawnAxis]) -> str:
    """Returns a drawing of an array and its tiles: of up to three axes as one body, of more as several."""
    if not axes or any(axis.size < 1 for axis in axes):
        return ""
    first = len(axes) % 3 or 3
    groups = [axes[:first], *(axes[at : at + 3] for at in range(first, len(axes), 3))]
    return "".join(_body(group) for group in groups[:4])


def _body(axes: Sequence[DrawnAxis]) -> str:
    lengths = _lengths([axis.size for axis in axes])
    cuts = [_shown_cuts(axis) for axis in axes]
    if len(axes) == 1:
        axes, lengths, cuts = (DrawnAxis("", 1, ()), *axes), [26.0, *lengths], [[], *cuts]
    *depths, height, width = lengths
    depth = _Point(depths[0] * 0.62, depths[0] * 0.5) if depths else _Point(0, 0)
    left, top = 6.0, 6.0
    front = _Point(left + depth.x, top + depth.y)
    down, across = _Point(0, height), _Point(width, 0)
    faces = [_Face(front, down, across, (cuts[-2], cuts[-1]))]
    if depths:
        behind = _Point(left, top)
        faces += [_Face(behind, depth, across, (cuts[0], cuts[-1])), _Face(behind, depth, down, (cuts[0], cuts[-2]))]
    labels = [_label(axes[-1], front.x + width / 2, front.y + height + 16, "middle")]
    if axes[-2].name:
        labels.append(_label(axes[-2], front.x + width + 6, front.y + height / 2 + 4, "start"))
    if depths:
        labels.append(_label(axes[0], left + depth.x / 2 - 4, top + height + depth.y / 2 + 14, "end"))
    margin = max((len(_named(axis)) * 6.4 for axis in axes[:-1]), default=0) if axes[-2].name else 0
    start = min(0.0, left + depth.x / 2 - 4 - 6.4 * len(_named(axes[0]))) if depths else 0.0
    start = min(start, front.x + width / 2 - 3.3 * len(_named(axes[-1])))
    right = max(front.x + width + 10 + margin, front.x + width / 2 + 3.3 * len(_named(axes[-1])))
    box = (start, right - start, front.y + height + 24)
    # Spaces, because pages that are not trusted show the labels without the drawing.
    body = "".join(face.drawn() for face in faces) + " ".join(reversed(labels))
    return (
        f'<svg width="{box[1]:.0f}" height="{box[2]:.0f}" viewBox="{box[0]:.0f} 0 {box[1]:.0f} {box[2]:.0f}" '
        f'role="img" aria-label="tiles">{body}</svg>'
    )


def _lengths(sizes: Sequence[int]) -> List[float]:
    """Returns the lengths in pixels. Ratios are compressed, so that a short axis beside a long one is still seen."""
    longest = max(sizes)
    return [max(_SHORTEST, _LONGEST * (size / longest) ** (1 if longest / size < 8 else 0.6)) for size in sizes]


def _shown_cuts(axis: DrawnAxis) -> List[float]:
    step = max(1, math.ceil(len(axis.cuts) / _MOST_LINES))
    return [cut / axis.size for cut in axis.cuts[::step]]


def _line(start: _Point, end: _Point) -> str:
    return f'<line x1="{start.x:.1f}" y1="{start.y:.1f}" x2="{end.x:.1f}" y2="{end.y:.1f}" style="stroke:{_LINE}"/>'


def _label(axis: DrawnAxis, x: float, y: float, anchor: str) -> str:
    # The name comes from the array.
    text = _named(axis).replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="font-size:11px;fill:currentColor">{text}</text>'


def _named(axis: DrawnAxis) -> str:
    name = _wording.plain(axis.name if len(axis.name) <= 16 else f"{axis.name[:15]}…")
    return f"{name}: {_wording.number(axis.size)}" if axis.name and axis.is_counted else name


class Picture(NamedTuple):
    """A picture of cells."""

    #: The bytes of a PNG.
    png: bytes
    #: The height and the width in cells.
    shape: Tuple[int, int]
    #: Which cells it shows, as a subscript.
    cells: str
    #: The smallest and the largest value that colours tell apart; ``None`` for a picture in its own colours.
    range: Optional[Tuple[Any, Any]]

    def drawn(self) -> str:
        """Returns it for a page."""
        height, width = (max(1, side) for side in self.shape)
        scale = _SIDE / max(height, width)
        data = base64.b64encode(self.png).decode()
        return (
            f'<img src="data:image/png;base64,{data}" width="{max(8, round(width * scale))}" '
            f'height="{max(8, round(height * scale))}" style="image-rendering:pixelated" alt="cells"/>'
        )


def picture(attribute: "Attribute") -> Optional[Picture]:
    """Returns a picture of a raster, or of tiles in its middle if all take long to decode; ``None`` if cells are no numbers
    along two axes."""
    import numpy

    array = attribute._array
    written = None if array.is_sparse or attribute._value_dtype.kind not in "biuf" else array.nonempty
    if written is None:
        return None
    channels = _channels(attribute)
    if attribute._cell_shape and channels is None:
        return None
    axes = [axis for axis in range(array.ndim) if axis != channels][-2:]
    if len(axes) < 2 or any(written[axis].stop - written[axis].start < 2 for axis in axes):
        return None
    chosen = _window(attribute, written, axes, channels)
    if chosen is None:
        return None
    steps = {axis: -(-(chosen[axis].stop - chosen[axis].start) // _MOST_CELLS) for axis in axes}
    key = [slice(one.start, one.stop, steps[axis]) if axis in steps else one for axis, one in enumerate(chosen)]
    values = attribute[tuple(key)]
    if channels is not None:
        # A cell of several values has them as its last axis already.
        values = values if channels == array.ndim else numpy.moveaxis(values, channels, -1)
        values = values.reshape(values.shape[-3:])
    else:
        values = values.reshape(values.shape[-2:])
    png, ends = (_in_own_colours(values), None) if channels is not None else _in_colours(attribute, values)
    places = (f"{one.start}:{one.stop}" if one.stop - one.start > 1 else str(one.start) for one in chosen)
    is_all = all(one.start == 0 and one.stop == size for one, size in zip(chosen, array.shape))
    return Picture(png, values.shape[:2], "" if is_all else f"[{', '.join(places)}]", ends)


def _channels(attribute: "Attribute") -> Optional[int]:
    """Returns the axis of red, green and blue, and perhaps opacity, if there is one."""
    array = attribute._array
    if attribute._value_dtype.str != "|u1":
        return None
    if attribute._cell_shape:
        return array.ndim if attribute._cell_shape[0] in (3, 4) else None
    return next((axis for axis in (2, 0) if array.ndim == 3 and array.shape[axis] in (3, 4)), None)


def _window(attribute: "Attribute", written: Sequence[slice], axes: Sequence[int], channels: Optional[int]) -> Optional[List[slice]]:
    """Returns the written cells, or the middle of them if their tiles are too large together. Of axes that the picture
    does not have, it is the first position."""
    array = attribute._array
    cell = attribute._value_dtype.itemsize * math.prod(attribute._cell_shape)
    chosen, cost = [], cell
    for axis, one in enumerate(written):
        if axis not in axes and axis != channels:
            one = slice(one.start, one.start + 1)
        chosen.append(one)
        if axis not in axes:
            extent = array.dimensions[axis]._extent_in_cells or array.shape[axis]
            cost *= min(array.shape[axis], ((one.stop - 1) // extent - one.start // extent + 1) * extent)
    extents = [min(array.dimensions[axis]._extent_in_cells or array.shape[axis], array.shape[axis]) for axis in axes]
    most = _MOST_DECODED // (cost * math.prod(extents))
    if most < 1:
        return None
    # One tile more along each axis, because the cells may begin within one.
    counts = [-(-(chosen[axis].stop - chosen[axis].start) // extent) + 1 for axis, extent in zip(axes, extents)]
    if math.prod(counts) <= most:
        return chosen
    high = min(counts[0], max(1, math.isqrt(most)))
    wide = min(counts[1], max(1, most // high))
    high = min(counts[0], max(1, most // wide))
    for axis, extent, count in zip(axes, extents, (high, wide)):
        # Whole tiles from the middle; tiles are counted from the low end.
        one = chosen[axis]
        middle = ((one.start + one.stop) // 2 // extent - (count - 1) // 2) * extent
        start = max(one.start, min(middle, one.stop - 1))
        chosen[axis] = slice(start, min(one.stop, start + count * extent))
    return chosen


def _in_colours(attribute: "Attribute", values: Any) -> Tuple[bytes, Optional[Tuple[Any, Any]]]:
    import numpy

    shown = numpy.ma.getdata(values).astype("f8")
    is_missing = numpy.ma.getmaskarray(values) | ~numpy.isfinite(shown) | (numpy.ma.getdata(values) == attribute._fill_values)
    present = shown[~is_missing]
    if not present.size:
        return _png(numpy.zeros((*shown.shape, 4), dtype="u1")), None
    # A few extreme values leave the others their colours.
    low, high = numpy.percentile(present, [1, 99])
    if low == high:
        low, high = present.min(), present.max()
    with numpy.errstate(all="ignore"):
        level = numpy.clip((shown - low) / (high - low or 1), 0, 1)
    level[is_missing] = 0
    places = numpy.linspace(0, 1, len(_COLOURS))
    rgb = [numpy.interp(level, places, [colour[part] for colour in _COLOURS]) for part in range(3)]
    rgba = numpy.stack([*rgb, numpy.where(is_missing, 0, 255)], axis=-1).astype("u1")
    return _png(rgba), (low, high)


def _in_own_colours(values: Any) -> bytes:
    import numpy

    colours = numpy.ma.getdata(values)
    if colours.shape[-1] == 3:
        colours = numpy.concatenate([colours, numpy.full((*colours.shape[:-1], 1), 255, dtype="u1")], axis=-1)
    return _png(colours)


def _png(pixels: "numpy.ndarray[Any, Any]") -> bytes:
    """Returns a PNG of pixels of red, green, blue and opacity."""
    height, width, _ = pixels.shape
    # Each line begins with the number of its filter: none.
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
