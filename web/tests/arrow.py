"""Writes Arrow files with columns of every type that the page reads, and prints what pyarrow reads from them.

usage: arrow.py FOLDER
"""

import datetime
import json
import pathlib
import sys

import numpy as np
import pyarrow as pa

folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(3)
TEXTS = ["", "a", "größe", "日本", "two\nlines", "x" * 300, "null"]


def column(kind, count, has_nulls):
    """Returns a column of random values, whose nulls come at any places."""
    def some(make):
        return [None if has_nulls and random.random() < 0.2 else make() for _ in range(count)]

    if pa.types.is_boolean(kind):
        return pa.array(some(lambda: bool(random.random() < 0.5)), kind)
    if pa.types.is_integer(kind):
        low, high = np.iinfo(kind.to_pandas_dtype()).min, np.iinfo(kind.to_pandas_dtype()).max
        return pa.array(some(lambda: [low, high, 0, int(random.integers(max(low, -2**62), min(high, 2**62)))][random.integers(4)]), kind)
    if pa.types.is_floating(kind):
        dtype = kind.to_pandas_dtype()
        return pa.array(some(lambda: dtype([0.1, -0.0, float("inf"), float("nan"), 6e-5, random.normal()][random.integers(6)])), kind)
    if pa.types.is_temporal(kind):
        if kind in (pa.date32(), pa.date64()):
            return pa.array(some(lambda: datetime.date(1950, 1, 1) + datetime.timedelta(days=int(random.integers(40_000)))), kind)
        most = 2**31 - 1 if kind.bit_width == 32 else 2**45
        most = 86_399 if kind == pa.time32("s") else 86_399_999 if kind == pa.time32("ms") else 10**10 if pa.types.is_time(kind) else most
        return pa.array(some(lambda: int(random.integers(most))), pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)
    if pa.types.is_dictionary(kind):
        labels = column(kind.value_type, 5, False)
        codes = pa.array(some(lambda: int(random.integers(5))), kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, labels)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array(some(lambda: random.bytes(kind.byte_width)), kind)
    if pa.types.is_fixed_size_list(kind):
        values = column(kind.value_type, count * kind.list_size, has_nulls)
        return pa.FixedSizeListArray.from_arrays(values, kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = random.integers(0, 4, count)
        items = column(kind.value_type, int(lengths.sum()), has_nulls).to_pylist()
        ends = [0, *lengths.cumsum().tolist()]
        rows = [None if has_nulls and random.random() < 0.2 else items[ends[row]:ends[row + 1]] for row in range(count)]
        return pa.array(rows, kind)
    if kind in (pa.binary(), pa.large_binary()):
        return pa.array(some(lambda: bytes([255, 0]) + random.bytes(int(random.integers(9)))), kind)
    return pa.array(some(lambda: TEXTS[random.integers(len(TEXTS))]), kind)


INTEGERS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
SCALARS = [
    pa.bool_(), *INTEGERS, pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    *[make(unit) for make in (pa.timestamp, pa.duration) for unit in ("s", "ms", "us", "ns")],
]
KINDS = [
    *SCALARS, *[pa.dictionary(index, pa.string()) for index in (pa.int8(), pa.uint16(), pa.int32())], pa.dictionary(pa.int16(), pa.float64()),
    pa.list_(pa.int32()), pa.list_(pa.string()), pa.large_list(pa.float64()), pa.list_(pa.uint8(), 3), pa.list_(pa.list_(pa.int16())),
]


def plain(value, kind):
    """Returns a value as the page holds it: numbers as they are stored, integers of 64 bits as text."""
    if value is None:
        return None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [plain(item, kind.value_type) for item in value]
    if pa.types.is_floating(kind):
        value = float(value)
        return value if np.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if pa.types.is_integer(kind) else value


def expected(array):
    kind = array.type
    if pa.types.is_dictionary(kind):
        kind, array = kind.value_type, array.cast(kind.value_type)
    if pa.types.is_temporal(kind):
        array, kind = array.cast(pa.int64() if kind.bit_width == 64 else pa.int32()), pa.int64()
    return [plain(value, kind) for value in array.to_pylist()]


files = {}
for has_nulls in (False, True):
    for name, batches in [("one", [70]), ("several", [1, 0, 9, 64, 33]), ("none", [0])]:
        path = f"{name}_{'nulls' if has_nulls else 'full'}.arrow"
        arrays = [[column(kind, count, has_nulls) for kind in KINDS] for count in batches]
        # A file has one dictionary for a column.
        for number, kind in enumerate(KINDS):
            if pa.types.is_dictionary(kind):
                first = arrays[0][number].dictionary
                for batch in arrays:
                    batch[number] = pa.DictionaryArray.from_arrays(batch[number].indices, first)
        schema = pa.schema([(f"{number} {kind}", kind) for number, kind in enumerate(KINDS)])
        with pa.OSFile(str(folder / path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in arrays:
                writer.write_batch(pa.record_batch(batch, schema=schema))
        with pa.ipc.open_file(str(folder / path)) as reader:
            table = reader.read_all()
        files[path] = {"rows": table.num_rows, "columns": [{"name": name, "type": str(table.schema.field(name).type), "values": expected(table.column(name).combine_chunks() if table.num_rows else pa.array([], table.schema.field(name).type))} for name in table.column_names]}
# A type that the page does not read is an error, not other values.
with pa.OSFile(str(folder / "struct.arrow"), "wb") as sink, pa.ipc.new_file(sink, pa.schema([("s", pa.struct([("a", pa.int8())]))])) as writer:
    writer.write_batch(pa.record_batch([pa.array([{"a": 1}], pa.struct([("a", pa.int8())]))], names=["s"]))
json.dump(files, sys.stdout)
