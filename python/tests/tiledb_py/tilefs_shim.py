"""A plugin of pytest that runs TileDB-Py's own tests with tilefs as the reader: each read of a local array goes to both,
the results are compared, and the test goes on with what tilefs returned.

``pytest -p tilefs_shim --pyargs tiledb.tests.test_multi_index`` writes one line of JSON for each read to
``TILEFS_SHIM_LOG``: the test, the call, and ``equal``, ``both refuse``, ``tilefs answers``, ``tilefs fails``,
``different`` or ``left out``, with the reason.
"""

import json
import math
import os
import traceback

import numpy
import pytest
import tiledb
from tiledb.multirange_indexing import DataFrameIndexer, EmptyRange, LabelAggregation, LabelIndexer, MultiRangeAggregation, MultiRangeIndexer

import tilefs

LOG = os.environ.get("TILEFS_SHIM_LOG")
_test = ""
_opened = {}


class LeftOut(Exception):
    """A read that tilefs has no counterpart of; the reason."""


def _note(call, outcome, reason=""):
    if LOG:
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(json.dumps({"test": _test, "call": call, "outcome": outcome, "reason": str(reason)[:300]}) + "\n")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    global _test
    _test = f"{item.path.name}::{item.nodeid.split('::', 1)[-1]}"
    _opened.clear()
    yield


def _ours(array):
    if array.mode != "r":
        raise LeftOut("only arrays opened for reading")
    uri = array.uri
    if uri.startswith("file://"):
        uri = uri[len("file://") :]
    if "://" in uri:
        raise LeftOut(f"storage of {uri.split('://')[0]}://")
    if _current_domain(array.schema) != _current_domain(tiledb.ArraySchema.load(uri, ctx=array.ctx)):
        raise LeftOut("a current domain that was set in memory, and is not stored")
    times = array.timestamp_range
    key = array.ctx.config().dict().get("sm.encryption_key") or None
    # Attributes without a name are "" here, and have an inner name there.
    shown = None if callable(array.view_attr) else array.view_attr
    shown = "" if shown == "__attr" else shown
    identity = (uri, times, key, shown)
    if identity not in _opened:
        _opened[identity] = tilefs.open(uri, timestamp=tuple(times), key=key and key.encode(), attr=shown)
    return _opened[identity]


def _current_domain(schema):
    current = schema.current_domain
    return None if current.is_empty else [current.ndrectangle.range(number) for number in range(schema.ndim)]


def _values(one):
    """Returns an array as a list in which NaN equals NaN, and nulls are None."""
    nulls = numpy.ma.getmaskarray(one).ravel()
    data = numpy.ma.getdata(one).ravel()
    if data.dtype.kind in "mM":
        data = data.astype("i8")
    # Blobs are bytes or, in TileDB-Py, views of memory.
    data = [bytes(value) if isinstance(value, memoryview) else value for value in data.tolist()]
    return [
        None if is_null else [repr(x) for x in value] if isinstance(value, numpy.ndarray) else repr(value)
        for is_null, value in zip(nulls, data)
    ]


def _differs(ours, theirs, is_sorted):
    """Returns how two results differ; an empty text if they do not."""
    if isinstance(theirs, dict):
        if list(ours) != list(theirs):
            return f"columns {list(ours)}, not {list(theirs)}"
        if not is_sorted and theirs:
            ours, theirs = _by_row(ours), _by_row(theirs)
        return next((f"{name}: {how}" for name in theirs if (how := _differs(ours[name], theirs[name], True))), "")
    if type(theirs).__name__ == "DataFrame":
        import pandas

        try:
            if not is_sorted:
                ours, theirs = (_sorted(one) for one in (ours, theirs))
            pandas.testing.assert_frame_equal(ours, theirs)
        except NotImplementedError:
            # Columns of a type that pandas does not compare.
            return "" if ours.to_dict().__repr__() == theirs.to_dict().__repr__() else "frames differ"
        except (AssertionError, TypeError) as error:
            return str(error)
        return ""
    if type(theirs).__name__ == "Table":
        return "" if ours.to_pydict() == theirs.to_pydict() else "tables differ"
    if isinstance(ours, float) and isinstance(theirs, float):
        # Sums of floats depend on the order of their terms.
        return "" if math.isclose(ours, theirs, rel_tol=1e-12) or math.isnan(ours) and math.isnan(theirs) else f"{ours!r}, not {theirs!r}"
    if not isinstance(theirs, numpy.ndarray):
        return "" if ours == theirs and type(ours) is type(theirs) else f"{ours!r}, not {theirs!r}"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if ours.dtype != theirs.dtype and theirs.size:
        return f"type {ours.dtype}, not {theirs.dtype}"
    if isinstance(ours, numpy.ma.MaskedArray) and not isinstance(theirs, numpy.ma.MaskedArray):
        # TileDB-Py drops the mask in multi_index: what it has for nulls is the stored value.
        theirs = numpy.ma.MaskedArray(theirs, mask=numpy.ma.getmaskarray(ours))
    return "" if _values(ours) == _values(theirs) else f"values {_values(ours)[:8]}, not {_values(theirs)[:8]}"


def _sorted(frame):
    """Returns the rows of a frame in an order that their values alone determine."""
    keys = [repr(row) for row in frame.itertuples(index=False)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    # pandas does not rearrange columns of cells with several numbers.
    return frame if order == list(range(len(keys))) else frame.iloc[order]


def _by_row(columns):
    lists = {name: _values(column) for name, column in columns.items()}
    count = min(map(len, lists.values()))
    order = sorted(range(count), key=lambda row: [str(one[row]) for one in lists.values()])
    return {name: column[order] if column.ndim and len(column) == count else column for name, column in columns.items()}


def _compared(call, array, theirs, ours, is_sorted):
    """Runs both reads, notes how they compare, and returns what tilefs does."""
    try:
        opened = _ours(array)
    except LeftOut as reason:
        _note(call, "left out", reason)
        return theirs()
    except tilefs.Error as error:
        _note(call, "tilefs fails", f"open: {error}")
        raise
    try:
        expected, refusal = theirs(), None
    except Exception as error:
        expected, refusal = None, error
    try:
        found = ours(opened)
    except LeftOut as reason:
        _note(call, "left out", reason)
        if refusal is not None:
            raise refusal
        return expected
    except Exception as error:
        if refusal is not None:
            _note(call, "both refuse", f"{type(refusal).__name__}: {refusal} / {type(error).__name__}: {error}")
            raise refusal
        _note(call, "tilefs fails", f"{type(error).__name__}: {error} {traceback.format_exc()[-200:]}")
        raise
    if refusal is not None:
        _note(call, "tilefs answers", f"{type(refusal).__name__}: {refusal}")
        raise refusal
    how = _differs(found, expected, is_sorted)
    _note(call, "different" if how else "equal", how)
    return found


def _query(opened, query, **more):
    """Returns the query of tilefs for one of TileDB-Py."""
    if query is None:
        return opened.query(**more)
    options = {name: getattr(query, name) for name in ("attrs", "cond", "order", "index_col", "return_arrow", "return_incomplete")}
    if query.dims is not None:
        options["dims"] = query.dims
    elif query.has_coords is not None:
        options["coords"] = query.has_coords
    return opened.query(**options)


def _order(array, query):
    return not array.schema.sparse or (query is not None and query.order == "C")


def _patch(owner, name, make):
    original = getattr(owner, name)
    setattr(owner, name, make(original))


def _of_array(original):
    def get(self, key):
        return _compared("A[...]", self, lambda: original(self, key), lambda opened: opened[key], not self.schema.sparse)

    return get


def _of_query(original):
    def get(self, key):
        return _compared(
            "query[...]", self.array, lambda: original(self, key), lambda opened: _query(opened, self)[key], _order(self.array, self)
        )

    return get


def _of_indexer(kind):
    def make(original):
        def get(self, given):
            def ours(opened):
                # TileDB-Py's own word for no range.
                key = [] if given is EmptyRange else given
                if kind == "label_index":
                    labels = list(self._labels.values())
                    return (_query(opened, self.query) if self.query else opened).label_index(labels)[key]
                if kind == "df" and self.query is None:
                    return opened.df[key]
                query = _query(opened, self.query)
                return (query.df if kind == "df" else query.multi_index)[key]

            if self.return_incomplete:
                return _InParts(f"{kind} in parts", original(self, given), ours)
            return _compared(kind, self.array, lambda: original(self, given), ours, _order(self.array, self.query))

        return get

    return make


class _InParts:
    """What an indexer returns for ``return_incomplete=True``: the parts of tilefs, once these are those of TileDB-Py."""

    def __init__(self, call, indexer, ours):
        self._call, self._indexer, self._ours = call, indexer, ours

    def __iter__(self):
        def joined(parts):
            parts = list(parts)
            if isinstance(parts[0], dict):
                return {name: numpy.ma.concatenate([one[name] for one in parts]) for name in parts[0]}
            import pandas
            import pyarrow

            return pyarrow.concat_tables(parts) if isinstance(parts[0], pyarrow.Table) else pandas.concat(parts)

        whole = _compared(self._call, self._indexer.array, lambda: joined(self._indexer), lambda opened: joined(self._ours(opened)), False)
        return iter([whole])

    def __getattr__(self, name):
        return getattr(self._indexer, name)


def _of_aggregation(has_ranges):
    def make(original):
        def get(self, given):
            query = self.query.query if has_ranges else self.query
            wanted = self.query.attr_to_aggs if has_ranges else self.attr_to_aggs

            def ours(opened):
                found = opened.query(cond=query.cond).agg({name: list(one) for name, one in wanted.items()})
                if isinstance(self, LabelAggregation):
                    return found.label_index(list(self._labels.values()))[given]
                return found.multi_index[given] if has_ranges else found[given]

            return _compared("agg", query.array, lambda: original(self, given), ours, True)

        return get

    return make


def _of_written(original):
    def get(self):
        if self.mode != "r":
            return original(self)
        return _compared("nonempty_domain", self, lambda: original(self), lambda opened: opened.nonempty_domain(), True)

    return get


def pytest_configure(config):
    _patch(tiledb.DenseArrayImpl if hasattr(tiledb, "DenseArrayImpl") else tiledb.dense_array.DenseArrayImpl, "__getitem__", _of_array)
    _patch(tiledb.SparseArrayImpl if hasattr(tiledb, "SparseArrayImpl") else tiledb.sparse_array.SparseArrayImpl, "__getitem__", _of_array)
    _patch(tiledb.query.Query, "__getitem__", _of_query)
    # The indexers share a method, so each gets its own.
    for owner, kind in ((MultiRangeIndexer, "multi_index"), (DataFrameIndexer, "df"), (LabelIndexer, "label_index")):
        base = owner.__getitem__
        owner.__getitem__ = _of_indexer(kind)(getattr(base, "_original", base))
        owner.__getitem__._original = getattr(base, "_original", base)
    _patch(tiledb.Array, "nonempty_domain", _of_written)
    _patch(tiledb.aggregation.Aggregation, "__getitem__", _of_aggregation(False))
    _patch(MultiRangeAggregation, "__getitem__", _of_aggregation(True))
