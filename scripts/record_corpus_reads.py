#!/usr/bin/env python3
"""Records the order in which libtiledb returns the rows of a corpus's sparse arrays, and the values of its dimension
labels.

usage: scripts/record_corpus_reads.py CORPUS OUT

CORPUS is a folder with manifest.json and manifest_real.json (tests/fixtures/corpus.tar.zst, unpacked). OUT
(tests/fixtures/corpus_reads.json) becomes one JSON object. Its `row_orders` maps each "path read" to the first 16
hexadecimal digits of a SHA-256. The hashed bytes are a list of u32: for each row of an unordered read, its number among
the sorted rows (equal rows have the number of the first of them). Its `labels` maps each path and label to the
hexadecimal bytes of all values of the label, as a read through the array returns them. Needs the `tiledb` and `numpy`
packages.
"""

import ctypes
import hashlib
import json
import os
import sys
from ctypes import byref, c_char_p

import numpy as np

from fixtures.capi import FOREVER, NAME_OF, READ, Tiledb, TileDBError, numpy_type
from fixtures.arrays import Opened
from fixtures.expect import canonical, describe, fields_of, read

VAR = 2**32 - 1


def main(corpus, out):
    orders, labels = {}, {}
    for name in ("manifest.json", "manifest_real.json"):
        with open(f"{corpus}/{name}") as file:
            objects = json.load(file)["objects"]
        for entry in objects:
            if entry["kind"] != "array" or "newest_error" in entry:
                continue
            place = os.path.abspath(f"{corpus}/{entry['path']}")
            if entry["schema"]["array_type"] == "sparse":
                for one in entry["reads"]:
                    if "fields" in one and "newest_error" not in one and not one.get("disputed"):
                        order = row_order(place, entry.get("key"), one["timestamps"])
                        if order:
                            orders[f"{entry['path']} {one['name']}"] = order
            if os.path.isdir(f"{place}/__labels"):
                labels[entry["path"]] = labels_of(place, entry["schema"]["dims"])
    with open(out, "w") as file:
        json.dump({"row_orders": orders, "labels": labels}, file, indent=0, sort_keys=True)
        file.write("\n")
    print(f"{len(orders)} row orders, labels of {len(labels)} arrays")


def row_order(place, key, window):
    db = Tiledb(key)
    try:
        with Opened(db, place, READ, *(window or (0, FOREVER))) as array:
            schema = describe(db, array)
            columns, count, order = canonical(schema, read(db, array, schema, None))
    except TileDBError as error:
        print(f"{place}: {error}", file=sys.stderr)
        return None
    if not count:
        return None
    cells = []
    for field, datatype, per_cell, _ in fields_of(schema):
        size = numpy_type(datatype).itemsize * (1 if per_cell == "var" else per_cell)
        validity = columns[field].validity
        valid = [1] * count if validity is None else list(map(int, validity))
        cells.append(list(zip(valid, columns[field].cells(size, count))))
    rows = list(zip(*cells))
    first = np.arange(count, dtype="<u4")
    for row in range(1, count):
        if rows[row] == rows[row - 1]:
            first[row] = first[row - 1]
    return hashlib.sha256(first[order].tobytes()).hexdigest()[:16]


def labels_of(place, dims):
    """Returns the values of each label, from a read of the whole array that requests only the label."""
    db, out = Tiledb(), {}
    with Opened(db, place, READ, 0, FOREVER) as array:
        schema = db.make("array_get_schema", array)
        for number in sorted(os.listdir(f"{place}/__labels")):
            label = db.make("array_schema_get_dimension_label_from_index", schema, int(number.removeprefix("l")))
            name = db.get("dimension_label_get_name", label, kind=c_char_p).decode()
            datatype = NAME_OF[db.get("dimension_label_get_label_type", label)]
            dimension = db.get("dimension_label_get_dimension_index", label)
            is_text = db.get("dimension_label_get_label_cell_val_num", label) == VAR
            low, high = dims[dimension]["domain"]
            cells = int(high) - int(low) + 1
            query, subarray = db.make("query_alloc", array, READ), db.make("subarray_alloc", array)
            db.query_set_layout(query, 0)
            for index, dim in enumerate(dims):
                ends = [np.array([end], numpy_type(dim["type"])) for end in dim["domain"]]
                db.subarray_add_range(subarray, index, *ends, None)
            db.query_set_subarray_t(query, subarray)
            data = np.zeros(1000 * cells if is_text else cells * numpy_type(datatype).itemsize, "u1")
            offsets = np.zeros(cells, "<u8")
            sizes = [np.array([buffer.nbytes], "<u8") for buffer in (data, offsets)]
            db.query_set_data_buffer(query, name, data, sizes[0])
            if is_text:
                db.query_set_offsets_buffer(query, name, offsets, sizes[1])
            db.query_submit(query)
            out[name] = {"values": data[: int(sizes[0][0])].tobytes().hex()}
            if is_text:
                out[name]["offsets"] = offsets[: int(sizes[1][0]) // 8].tolist()
    return out


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
