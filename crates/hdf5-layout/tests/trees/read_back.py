"""Reads HDF5 files with h5py and compares them with their expected contents.

Each line of the standard input names a file and a JSON text (support/expected.rs); each line of the output says "same",
or names the difference.
"""

import json
import sys
import traceback

import h5py
import numpy as np


def dtype_of(kind):
    if "numpy" in kind:
        return np.dtype(kind["numpy"])
    if "enumeration" in kind:
        return dtype_of(kind["base"])
    if "array" in kind:
        return np.dtype((dtype_of(kind["array"]), tuple(kind["shape"])))
    if "compound" in kind:
        formats = [dtype_of(member) for member in kind["formats"]]
        return np.dtype({"names": kind["compound"], "formats": formats, "offsets": kind["offsets"], "itemsize": kind["size"]})
    raise ValueError(kind)


def check(is_so, *what):
    if not is_so:
        raise AssertionError(" ".join(str(word) for word in what))


def check_array(found, expected, where):
    """Checks that the bytes are the same, except in the gaps of compound types."""
    if expected.dtype.names:
        for name in expected.dtype.names:
            check_array(found[name], expected[name], f"{where}.{name}")
        return
    check(found.shape == expected.shape, where, "has the shape", found.shape, "not", expected.shape)
    same = np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()
    check(same, where, "is", found, "not", expected)


def from_hex(kind, digits, shape):
    dtype = dtype_of(kind)
    data = bytes.fromhex(digits)
    shape = tuple(shape)
    while dtype.subdtype:
        dtype, more = dtype.subdtype
        shape += more
    return np.frombuffer(data, dtype).reshape(shape)


def check_elements(expected, found, dtype, shape, where):
    kind, wanted = expected["type"], expected["shape"]
    if wanted is None:
        check(isinstance(found, h5py.Empty), where, "is not null")
        return
    wanted = tuple(wanted)
    check(shape is None or shape == wanted, where, "has the shape", shape, "not", wanted)
    if "string" in kind:
        check(dtype.itemsize == kind["string"], where, "has the type", dtype)
        size = kind["string"]
        data = bytes.fromhex(expected["elements"])
        texts = [data[at : at + size].rstrip(b"\0 ") for at in range(0, len(data), size)]
        check(np.asarray(found).ravel().tolist() == texts, where, "is", found, "not", texts)
    elif "text" in kind:
        info = h5py.check_string_dtype(dtype)
        check(info == (kind["text"], None), where, "has the type", dtype, info)
        texts = [bytes.fromhex(digits) for digits in expected["elements"]]
        found = [found] if wanted == () else np.asarray(found, dtype=object).ravel().tolist()
        found = [text.encode() if isinstance(text, str) else text for text in found]
        check(found == texts, where, "is", found, "not", texts)
    elif "sequence" in kind:
        check(h5py.check_vlen_dtype(dtype) is not None, where, "has the type", dtype)
        found = [found] if wanted == () else np.asarray(found, dtype=object).ravel().tolist()
        check(len(found) == len(expected["elements"]), where, "has", len(found), "elements")
        for number, (one, digits) in enumerate(zip(found, expected["elements"])):
            base = dtype_of(kind["sequence"])
            length = len(digits) // 2 // base.itemsize
            check_array(np.asarray(one), from_hex(kind["sequence"], digits, (length,)), f"{where}[{number}]")
    else:
        wanted_dtype = dtype_of(kind)
        check(dtype is None or dtype == wanted_dtype, where, "has the type", dtype, "not", wanted_dtype)
        if "enumeration" in kind and dtype is not None:
            found_members = h5py.check_enum_dtype(dtype)
            check(found_members == dict(kind["enumeration"]), where, "has the members", found_members)
        check_array(np.asarray(found), from_hex(kind, expected["elements"], wanted), where)


def names_of(identifier, module, order):
    names = []
    if module is h5py.h5a:
        h5py.h5a.iterate(identifier, lambda name: names.append(name.decode()), index_type=order)
    else:
        identifier.links.iterate(lambda name: names.append(name.decode()), idx_type=order)
    return names


def check_object(file, expected):
    path = expected["path"]
    found = file[path]
    names = [attribute["name"] for attribute in expected["attributes"]]
    of_scales = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"}
    created = [name for name in names_of(found.id, h5py.h5a, h5py.h5.INDEX_CRT_ORDER) if name not in of_scales]
    check(created == names, path, "has the attributes", created, "not", names)
    for attribute in expected["attributes"]:
        name = attribute["name"]
        where = f"{path} @{name}"
        identifier = h5py.h5a.open(found.id, name.encode())
        check_elements(attribute, found.attrs[name], identifier.dtype, identifier.shape, where)
    if "members" in expected:
        members = expected["members"]
        created = names_of(found.id, h5py.h5g, h5py.h5.INDEX_CRT_ORDER)
        check(created == members, path, "has the members", created, "not", members)
        by_name = names_of(found.id, h5py.h5g, h5py.h5.INDEX_NAME)
        check(by_name == sorted(members, key=str.encode), path, "has the members", by_name)
        return
    dataset = expected["dataset"]
    check_elements(dataset, found[()], found.dtype, found.shape, path)
    if dataset["shape"] is None:
        return
    chunks = expected["chunks"]
    check(found.chunks == (chunks and tuple(chunks)), path, "has the chunks", found.chunks, "not", chunks)
    # h5py does not support fill values of array types.
    if expected["fill_value"] is not None and "array" not in dataset["type"]:
        fill_value = from_hex(dataset["type"], expected["fill_value"], ())
        check_array(np.asarray(found.fillvalue), fill_value, f"{path} fill value")
    if expected["scale"] is not None:
        scale = file[expected["scale"]]
        check(found.dims[0][0] == scale, path, "has the scale", found.dims[0])
        check(scale.is_scale, scale, "is no scale")
        users = [(file[reference], axis) for reference, axis in scale.attrs["REFERENCE_LIST"]]
        check((found, 0) in users, scale, "is used by", users)


for line in sys.stdin:
    path, json_path = line.split()
    try:
        with h5py.File(path, "r") as file, open(json_path, encoding="utf-8") as text:
            for expected in json.load(text):
                check_object(file, expected)
        print("same", flush=True)
    except Exception:
        print(json.dumps(traceback.format_exc()), flush=True)
