"""What arrays, groups, rows and schemas look like in a terminal and in a notebook.

Little is read for it: schemas, footers of up to some hundred fragments, and tiles of some MiB for a picture and the first
rows. What cannot be read is replaced by the reason, so that a damaged array can be looked at, too.
"""

from __future__ import annotations

import functools
import html
import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from . import _pictures, _wording
from ._errors import Error

if TYPE_CHECKING:
    import pyarrow

    from ._arrays import Array, Group
    from ._attributes import Attribute
    from ._rows import Rows
    from ._schema import Dimension, Schema

#: How many fields, members or metadata are shown.
_MOST_LINES = 30

#: How many fragments' footers are read.
_MOST_FRAGMENTS = 256

#: How many rows and columns of a table are shown.
_ROWS, _COLUMNS = 5, 16

#: The most rows that may have to be sorted or merged before the first ones are known, and the most bytes of the tile that
#: holds these.
_MOST_MERGED, _MOST_DECODED = 1 << 18, 16 << 20

#: The bytes that a value of variable size is expected to have.
_USUAL_TEXT = 32

#: The longest line of the first rows in a terminal, and a text that the page may cut, in letters.
_WIDEST, _LONG = 120, 40

# Colours are inherited from the page, or mix with what is behind them: there are as many names for the colours of themes as
# there are programs, and pages with widgets of Jupyter define some of these although their theme is another.
_STYLE = """
.tilefs{font-size:13px;line-height:1.45;color:inherit}
.tilefs .tilefs-head{font-weight:600;margin-bottom:4px}
.tilefs .tilefs-faint{opacity:.68}
.tilefs .tilefs-side{display:flex;gap:4px 28px;align-items:flex-start;flex-wrap:wrap}
.tilefs table{width:auto;border-collapse:collapse;margin:2px 0 6px 0;border:none;font-size:12px}
.tilefs table th,.tilefs table td{text-align:left!important;padding:2px 10px 2px 0;border:none;background:none;vertical-align:top;
white-space:nowrap;color:inherit;max-width:32em;overflow:hidden;text-overflow:ellipsis}
.tilefs table .tilefs-number{text-align:right!important;font-variant-numeric:tabular-nums}
.tilefs thead{background:none}
.tilefs div:has(>table){overflow-x:auto}
.tilefs thead th{border-bottom:1px solid rgba(128,128,128,.5)}
.tilefs tbody tr{background:none}
.tilefs tbody tr:nth-child(even){background:rgba(128,128,128,.10)}
.tilefs summary{cursor:pointer;display:list-item;opacity:.85}
.tilefs figure{margin:4px 0}
.tilefs figcaption{font-size:11px;opacity:.75}
"""


def _text(make: Callable[[Any], str]) -> Callable[[Any], str]:
    """Returns a function that makes a text, which is about the error if the object cannot be read: ``repr`` raises none."""

    @functools.wraps(make)
    def text(shown: Any) -> str:
        try:
            return make(shown)
        except Error as error:
            return f"<tilefs.{type(shown).__name__}: {error}>"

    return text


def _page(make: Callable[[Any], str]) -> Callable[[Any], Optional[str]]:
    """Returns a function that makes a page, or nothing if the object is closed or cannot be read: notebooks show its text
    then."""

    @functools.wraps(make)
    def page(shown: Any) -> Optional[str]:
        try:
            return f'<div class="tilefs"><style>{_STYLE}</style>{make(shown)}</div>'
        except Error:
            return None

    return page


@_text
def array_text(array: "Array") -> str:
    """Returns the text of an array: its axes and tiles, its attributes, and how large it is."""
    head = f"<tilefs.Array {array.uri!r}: {_kind(array)} ({_axes(array)})>"
    fields = [(_wording.name(name), _type(one), _filters(one)) for name, one in _some(array.attributes.items())]
    return "\n".join([head, *_columns(fields), *_rest(len(array.attributes)), f"  {_size(array, is_short=True)}"])


@_text
def attribute_text(attribute: "Attribute") -> str:
    """Returns the text of an attribute."""
    array = attribute._array
    lines = [f"<tilefs.Attribute {attribute.name!r} of {array.uri!r}: {_type(attribute)} ({_axes(array)})>"]
    return "\n".join([*lines, f"  filters: {_filters(attribute) or 'none'}"])


@_text
def schema_text(schema: "Schema") -> str:
    """Returns the text of a schema."""
    array = schema._array
    lines = [f"<tilefs.Schema of {array.uri!r}: {'sparse' if schema.sparse else 'dense'}, format version {schema.version}>"]
    lines += ["  dimensions:", *_columns([_dimension(one) for one in array.dimensions], 4)]
    fields = [(_wording.name(name), _type(one), _filters(one)) for name, one in _some(array.attributes.items())]
    lines += ["  attributes:", *_columns(fields, 4), *_rest(len(array.attributes))]
    return "\n".join([*lines, *(f"  {name}: {value}" for name, value in _orders(schema))])


@_text
def group_text(group: "Group") -> str:
    """Returns the text of a group: its members and their types."""
    members = group.members
    lines = _columns([(name, kind or "array or group") for name, kind, _ in members[:_MOST_LINES]])
    return "\n".join([f"<tilefs.Group {group.uri!r}: {_wording.counted(len(members), 'member')}>", *lines, *_rest(len(members))])


@_text
def rows_text(rows: "Rows") -> str:
    """Returns the text of rows: their number and columns, and the first ones."""
    names = _column_names(rows)
    lines = [f"<tilefs.Rows of {rows._array.uri!r}: {_row_count(rows)}, {_wording.counted(len(names), 'column')}>"]
    found = _or_reason(lambda: _first_rows(rows))
    if isinstance(found, str):
        return "\n".join([*lines, f"  {_wording.plain(', '.join(names[:_MOST_LINES]))}", f"  {found}"])
    columns, numbers = _cells(found), _numbers(found)
    # As many columns as fit a line, but at least one.
    widths = [2 + max(map(len, (_wording.value(name), *cells))) for name, cells in columns.items()]
    fit = max(1, sum(total <= _WIDEST for total in itertools.accumulate(widths)))
    shown = dict(list(columns.items())[:fit])
    table = [tuple(map(_wording.value, shown)), *zip(*shown.values())]
    right = [number for number, name in enumerate(shown) if name in numbers]
    more = len(names) - len(shown)
    return "\n".join([*lines, *_columns(table, right=right), *([f"  and {_wording.counted(more, 'column')} more"] if more else [])])


@_page
def array_page(array: "Array") -> str:
    """Returns an array for a notebook."""
    parts = [_head("tilefs.Array", array.uri), _faint(f"{_kind(array)} array: {_size(array)}")]
    dimensions = [_dimension(one) for one in array.dimensions]
    attributes = [(_wording.name(name), _type(one), _filters(one)) for name, one in _some(array.attributes.items())]
    left = _table(("dimension", "type", "domain", "tiles"), dimensions)
    left += _table(("attribute", "type", "filters"), attributes) + "".join(map(_faint, _rest(len(array.attributes))))
    parts.append(f'<div class="tilefs-side"><div>{left}</div><div>{_tiles(array)}</div>{_raster(array)}</div>')
    if array.is_sparse:
        parts.append(f"<details open><summary>first rows</summary>{_first_rows_page(array.read())}</details>")
    return "".join([*parts, _fragments(array), _metadata(array.metadata)])


@_page
def attribute_page(attribute: "Attribute") -> str:
    """Returns an attribute for a notebook."""
    array = attribute._array
    facts = [("type", _type(attribute)), ("filters", _filters(attribute) or "none"), ("fill", _wording.value(attribute.fill))]
    if not array.is_sparse:
        facts.insert(1, ("shape", " × ".join(map(_wording.number, attribute.shape))))
        size = _decoded_per_cell([attribute])[0]
        if size:
            facts.append(("decoded", _wording.size(size * math.prod(array.shape))))
    left = f"<div>{_table((), facts)}</div><div>{_tiles(array)}</div>"
    picture = _or_reason(lambda: _picture_of(attribute))
    return f'{_head(f"tilefs.Attribute {_wording.name(attribute.name)}", array.uri)}<div class="tilefs-side">{left}{picture}</div>'


@_page
def schema_page(schema: "Schema") -> str:
    """Returns a schema for a notebook."""
    array = schema._array
    attributes = [
        (_wording.name(name), _type(one), "yes" if one.nullable else "", _wording.value(one.fill), _filters(one))
        for name, one in _some(array.attributes.items())
    ]
    tables = _table(("dimension", "type", "domain", "tiles", "filters"), [(*_dimension(one), _filters(one)) for one in array.dimensions])
    tables += _table(("attribute", "type", "null", "fill", "filters"), attributes) + "".join(map(_faint, _rest(len(array.attributes))))
    kind = "sparse" if schema.sparse else "dense"
    parts = [_head("tilefs.Schema", array.uri), _faint(f"{kind}, format version {schema.version}")]
    return "".join([*parts, f'<div class="tilefs-side"><div>{tables}{_table((), _orders(schema))}</div><div>{_tiles(array)}</div></div>'])


@_page
def group_page(group: "Group") -> str:
    """Returns a group for a notebook."""
    members = group.members
    table = _table(("member", "kind", "address"), [(name, kind or "array or group", uri) for name, kind, uri in members[:_MOST_LINES]])
    rest = "".join(map(_faint, _rest(len(members))))
    return f"{_head('tilefs.Group', group.uri)}{_faint(_wording.counted(len(members), 'member'))}{table}{rest}{_metadata(group.metadata)}"


@_page
def rows_page(rows: "Rows") -> str:
    """Returns rows for a notebook."""
    facts = f"{_row_count(rows)}, {_wording.counted(len(_column_names(rows)), 'column')}"
    return _head("tilefs.Rows", rows._array.uri) + _faint(facts) + _first_rows_page(rows)


def _head(kind: str, uri: str) -> str:
    name = uri.rstrip("/").rsplit("/", 1)[-1]
    return f'<div class="tilefs-head" title="{_escaped(uri)}">{_escaped(kind)} <span class="tilefs-faint">{_escaped(name)}</span></div>'


def _faint(text: str) -> str:
    return f'<div class="tilefs-faint">{_escaped(text.strip())}</div>'


def _escaped(text: str) -> str:
    return html.escape(_wording.plain(text))


def _table(names: Sequence[str], lines: Iterable[Sequence[Any]], numbers: Collection[str] = ()) -> str:
    """Returns a table; without names, the first column has them. Columns of numbers end at the right."""

    def cell(tag: str, text: str, column: int) -> str:
        kind = ' class="tilefs-number"' if column < len(names) and names[column] in numbers else ""
        # A long text is cut by the page, and shown as a whole under the pointer.
        title = f' title="{_escaped(text)}"' if len(text) > _LONG else ""
        return f"<{tag}{kind}{title}>{_escaped(text)}</{tag}>"

    def row(tag: str, texts: Iterable[Any]) -> str:
        return f"<tr>{''.join(cell(tag, str(text), column) for column, text in enumerate(texts))}</tr>"

    head = f"<thead>{row('th', names)}</thead>" if names else ""
    return f"<table>{head}<tbody>{''.join(row('td', line) for line in lines)}</tbody></table>"


def _columns(lines: Sequence[Sequence[str]], indent: int = 2, right: Collection[int] = ()) -> List[str]:
    """Returns lines whose columns are aligned, those with these numbers at the right."""
    texts = [[_wording.plain(one) for one in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts)]
    aligned = [[one.rjust(width) if number in right else one.ljust(width) for number, (one, width) in enumerate(zip(line, widths))] for line in texts]
    return [(" " * indent + "  ".join(line)).rstrip() for line in aligned]


def _some(items: Iterable[Tuple[str, Any]]) -> List[Tuple[str, Any]]:
    return list(items)[:_MOST_LINES]


def _rest(count: int) -> List[str]:
    return [f"  and {count - _MOST_LINES} more"] if count > _MOST_LINES else []


def _kind(array: "Array") -> str:
    return "sparse" if array.is_sparse else "dense"


def _axes(array: "Array") -> str:
    if array.is_sparse:
        return _wording.plain(", ".join(one.name for one in array.dimensions))
    return _wording.plain(", ".join(f"{one.name}: {size}" for one, size in zip(array.dimensions, array.shape)))


def _type(attribute: "Attribute") -> str:
    kind = attribute.datatype if attribute.values_per_cell is None or attribute._value_dtype.kind == "V" else str(attribute._value_dtype)
    count = "" if not attribute._cell_shape else f" × {attribute._cell_shape[0]}"
    labels = "" if attribute.enumeration is None else f", labels {attribute.enumeration!r}"
    return f"{kind}{count}{' or null' if attribute.nullable else ''}{labels}"


def _filters(field: "Attribute | Dimension") -> str:
    shown = []
    for one in field.filters:
        level = one.get("level")
        shown.append(str(one["name"]) + ("" if level in (None, -1) else f" {level}"))
    return ", ".join(shown)


def _dimension(dimension: "Dimension") -> Tuple[str, str, str, str]:
    domain, tile = dimension.domain, dimension.tile
    kind = dimension.datatype if dimension.dtype == object else str(dimension.dtype)
    ends = "" if domain is None else " to ".join(_wording.coordinates(domain))
    return dimension.name, kind, ends, "" if tile is None else f"tiles of {_wording.length(tile)}"


def _orders(schema: "Schema") -> List[Tuple[str, str]]:
    found = [("cell order", schema.cell_order), ("tile order", schema.tile_order)]
    if schema.sparse:
        found += [("capacity", _wording.number(schema.capacity or 0)), ("duplicates", "allowed" if schema.allows_duplicates else "none")]
    return found


def _size(array: "Array", is_short: bool = False) -> str:
    """Returns how many fragments an array has, and how large these and their cells are, as far as footers tell."""
    count = int(array.schema.get("fragments") or 0)
    parts = [_wording.counted(count, "fragment")]
    if count > _MOST_FRAGMENTS:
        return parts[0]
    found = _or_reason(lambda: array._opened.fragments())
    if isinstance(found, str):
        return f"{parts[0]}; {found}"
    parts.append(f"{_wording.size(sum(one[6] for one in found))} stored")
    if array.is_sparse:
        cells = sum(one[4] for one in found)
        parts.insert(0, f"{_wording.number(cells)} cells")
    else:
        cells = math.prod(array.shape)
        parts.insert(0, " × ".join(map(_wording.number, array.shape)) + " cells")
    size, is_whole = _decoded_per_cell(array.attributes.values())
    if array.is_sparse:
        size += sum(one.dtype.itemsize for one in array.dimensions if one.dtype != object)
        is_whole = is_whole and all(one.dtype != object for one in array.dimensions)
    parts.append(f"{_wording.size(cells * size)} decoded" + ("" if is_whole else ", without values of variable size"))
    return ", ".join(parts[1:] if is_short and not array.is_sparse else parts)


def _decoded_per_cell(attributes: "Iterable[Attribute]") -> Tuple[int, bool]:
    """Returns the bytes of a cell of fixed size, and whether there are no others."""
    size, is_whole = 0, True
    for one in attributes:
        if one.values_per_cell is None:
            is_whole = False
        else:
            size += one._value_dtype.itemsize * math.prod(one._cell_shape)
    return size, is_whole


def _tiles(array: "Array") -> str:
    """Returns a drawing of the domain and its tiles, if coordinates are integers or dates."""
    axes = []
    for one in array.dimensions:
        if one.domain is None or one.dtype.kind not in "iumM":
            return ""
        low, high = (int(end.astype("int64")) if one.dtype.kind in "mM" else int(end) for end in one.domain)
        extent = one._extent_in_cells
        cuts: Sequence[int] = range(extent - one._cells_before, high - low + 1, extent) if extent else ()
        # Nobody counts the instants of a table.
        is_counted = not array.is_sparse or one.dtype.kind not in "mM"
        axes.append(_pictures.DrawnAxis(one.name, high - low + 1, cuts, is_counted))
    return _pictures.tiles(axes)


def _raster(array: "Array") -> str:
    """Returns a picture of the first attribute of which there is one."""
    if array.is_sparse:
        return ""
    for _, attribute in _some(array.attributes.items()):
        drawn: str = _or_reason(lambda: _picture_of(attribute))
        if drawn:
            return drawn
    return ""


def _picture_of(attribute: "Attribute") -> str:
    found = _pictures.picture(attribute)
    if found is None:
        return ""
    ends = "" if found.range is None else f", {_wording.value(found.range[0])} to {_wording.value(found.range[1])}"
    caption = _escaped(f"{attribute.name}{found.cells}{ends}")
    return f"<figure>{found.drawn()}<figcaption>{caption}</figcaption></figure>"


def _fragments(array: "Array") -> str:
    count = int(array.schema.get("fragments") or 0)
    if not 0 < count <= _MOST_FRAGMENTS:
        return ""
    found = _or_reason(lambda: array._opened.fragments())
    if isinstance(found, str):
        return _faint(found)
    lines = [
        (_wording.time(times[1]), _wording.number(cells), _wording.size(size))
        for _, times, _, _, cells, _, size in reversed(found[-_MOST_LINES:])
    ]
    table = _table(("written", "cells", "stored"), lines, ("cells", "stored")) + "".join(map(_faint, _rest(count)))
    return f"<details><summary>{_wording.counted(count, 'fragment')}</summary>{table}</details>"


def _metadata(metadata: Any) -> str:
    def lines() -> List[Tuple[str, str]]:
        return [(key, _wording.value(metadata[key])) for key in list(metadata)[:_MOST_LINES]]

    found = _or_reason(lines)
    if isinstance(found, str):
        return _faint(found)
    if not found:
        return ""
    rest = "".join(map(_faint, _rest(len(metadata))))
    return f"<details><summary>metadata ({len(metadata)})</summary>{_table((), found)}{rest}</details>"


def _column_names(rows: "Rows") -> List[str]:
    """Returns the names of columns as tables have them, which give one to a field without a name."""
    array = rows._array
    names = list(rows._columns or [*(one.name for one in array.dimensions), *array.attributes])
    stored = _or_reason(array._columns_of_tables) if "" in names else ""
    return names if isinstance(stored, str) else [stored.get(name, name) for name in names]


def _row_count(rows: "Rows") -> str:
    most, is_exact = rows._rows.known_count()
    return ("" if is_exact and rows._condition is None else "at most ") + _wording.counted(most, "row")


def _first_rows(rows: "Rows") -> "pyarrow.Table | str":
    """Returns the first rows, or the reason why these would take long to read."""
    array, names = rows._array, _column_names(rows)[:_COLUMNS]
    most, is_exact = rows._rows.known_count()
    if most > _MOST_MERGED and (not is_exact or rows._order == "row"):
        return "rows.head() reads the first rows, for which many have to be put in order"
    per_row = sum(_width(array, name) for name in names)
    in_tile = min(most, int(array.schema.capacity or 0) if array.is_sparse else array.dimensions[0]._extent_in_cells or most)
    if per_row * in_tile > _MOST_DECODED:
        return f"rows.head() reads the first rows, whose tile has {_wording.size(per_row * in_tile)}"
    return rows._with_columns(names).head(_ROWS)


def _cells(table: "pyarrow.Table") -> Dict[str, List[str]]:
    """Returns the cells of each column as text."""
    from pyarrow import types

    found = {}
    for name, column in zip(table.column_names, table.columns):
        # Dates may be further away than those of Python, and times longer.
        if types.is_timestamp(column.type) or types.is_date(column.type):
            found[name] = _wording.coordinates(list(column.to_numpy()))
        elif types.is_duration(column.type):
            found[name] = [str(one) for one in column.to_numpy()]
        else:
            found[name] = [_wording.value(one) for one in column.to_pylist()]
    return found


def _numbers(table: "pyarrow.Table") -> Set[str]:
    """Returns the names of columns of numbers and lengths of time."""
    from pyarrow import types

    is_number = (types.is_integer, types.is_floating, types.is_decimal, types.is_duration)
    return {field.name for field in table.schema if any(one(field.type) for one in is_number)}


def _first_rows_page(rows: "Rows") -> str:
    found = _or_reason(lambda: _first_rows(rows))
    if isinstance(found, str):
        return _faint(found)
    columns = _cells(found)
    more = len(_column_names(rows)) - len(columns)
    table = _table(tuple(columns), zip(*columns.values()), _numbers(found))
    return table + (_faint(f"and {_wording.counted(more, 'column')} more") if more > 0 else "")


def _width(array: "Array", name: str) -> int:
    attribute = array.attributes.get(name)
    if attribute is None and any(one.name == name for one in array.dimensions):
        dtype = array.dim(name).dtype
        return _USUAL_TEXT if dtype == object else dtype.itemsize
    if attribute is None:
        # In tables, the attribute without a name has one.
        attribute = array.attributes[""]
    return _USUAL_TEXT if attribute.values_per_cell is None else attribute._value_dtype.itemsize * math.prod(attribute._cell_shape)


def _or_reason(work: Callable[[], Any]) -> Any:
    """Returns what ``work`` does, or the text of its error."""
    try:
        return work()
    except (Error, ImportError) as error:
        return str(error)
