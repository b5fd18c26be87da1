"""zarr-python, xarray and dask open zarr/ of a mount: all values equal those that libtiledb reads."""

import json
import os
import warnings

import dask.array
import numpy as np
import xarray
import zarr

from expected import arrays, same

warnings.simplefilter("ignore")
array = arrays()
checked = 0
TEXT = ("STRING_ASCII", "STRING_UTF8", "GEOM_WKT")
DAYS = {"Y", "M", "W"}


def stored(field, cells):
    """Returns the values of cells as the arrays have them: dates in CF's units."""
    if field.dtype.kind not in "mM":
        return cells
    unit = np.datetime_data(field.dtype)[0]
    days = cells.astype("M8[D]") if unit in DAYS and field.dtype.kind == "M" else cells
    return days.astype("<i8")


def is_text(field):
    return field.type.startswith(("STRING", "CHAR", "GEOM_WKT")) and field.dtype == "u1"


def check(part, field, got, valid, marked, reader):
    """Compares the cells of an array with those that libtiledb read, including the values of nulls unless a marker
    replaces them."""
    global checked
    what = f"{part} {field.name} by {reader}"
    cells = part.cells(field)
    if field.count and is_text(field):
        same(np.ascontiguousarray(got).view("u1").reshape(-1, field.count)[valid], cells[valid], what)
    elif field.count:
        got = np.ascontiguousarray(got).reshape(-1, field.count)
        expected = stored(field, cells)
        same((got.astype(expected.dtype) if got.dtype.kind in "iub" else got)[valid], expected[valid], what)
        if marked is not None:
            nulls = got[~valid]
            assert ((nulls == marked) | ((nulls != nulls) & (marked != marked))).all(), what
    else:
        decoded = [cell.decode() if field.type in TEXT else cell for cell in cells]
        for value, cell, there in zip(np.asarray(got).ravel().tolist(), decoded, valid):
            assert not there or value == cell, f"{what}: {value!r}, not {cell!r}"
    checked += 1


def fill_value(attributes, kind):
    """Returns `_FillValue` as xarray decodes it."""
    if "_FillValue" not in attributes:
        return None
    from xarray.backends.zarr import FillValueCoder

    return FillValueCoder.decode(attributes["_FillValue"], kind)


def own_name(name):
    """Returns the name of the array of an attribute or dimension: that of its files, unless Zarr reserves it."""
    offsets = ".offsets.u64"
    files = [file.removeprefix("npy/").removeprefix("dims/") for file in array.files[name]]
    stems = [file[: -len(offsets)] for file in files if file.endswith(offsets)]
    stems += [file[:-4] for file in files if file.endswith(".npy") and not file.endswith(".valid.npy")]
    return stems[0].removeprefix("_") if stems[0].startswith("__") else stems[0]


def has_days(field):
    """Returns whether 64 bits can count the days of all dates of a field; other dates cannot be shown."""
    if np.datetime_data(field.dtype)[0] not in DAYS if field.dtype.kind == "M" else True:
        return True
    values = field.cells.astype("<i8")
    return (abs(values[values != np.iinfo("<i8").min].astype(float)) < 2**32).all()


def tree(folder):
    return sorted(os.path.relpath(f"{at}/{name}", folder) for at, _, names in os.walk(folder) for name in names)


for part in array.parts():
    path = f"{part.folder}zarr"
    assert "zarr" not in os.listdir(part.folder or ".")
    # fsspec would read a path with `::` as a chain of stores.
    store = zarr.storage.LocalStore(path, read_only=True)
    group = zarr.open_group(store, mode="r")
    alone = zarr.open_group(store, mode="r", use_consolidated=False)
    assert sorted(group.array_keys()) == sorted(alone.array_keys())
    consolidated = json.load(open(f"{path}/zarr.json"))["consolidated_metadata"]["metadata"]
    assert sorted(consolidated) == sorted(group.array_keys())
    for name, member in group.arrays():
        assert json.load(open(f"{path}/{name}/zarr.json")) == consolidated[name], f"{path}/{name}"
        grid = [-(-length // chunk) for length, chunk in zip(member.shape, member.chunks)]
        names = ["c/" + "/".join(map(str, number)) for number in np.ndindex(*grid)] if member.shape else ["c"]
        assert tree(f"{path}/{name}") == sorted(["zarr.json", *names]), f"{path}/{name}"
        if member.dtype.kind not in "OT":
            size = int(np.prod(member.chunks)) * member.dtype.itemsize
            assert {os.path.getsize(f"{path}/{name}/{chunk}") for chunk in names} <= {size}, f"{path}/{name}"
    without_days = {own_name(field.name) for field in array.fields if not has_days(field)}
    second = zarr.open_group(zarr.storage.LocalStore(f"{part.folder}zarr2", read_only=True), mode="r", zarr_format=2)
    assert second.metadata.consolidated_metadata is not None and second.attrs.asdict() == group.attrs.asdict()
    assert sorted(second.array_keys()) == sorted(group.array_keys())
    for name, member in group.arrays():
        twin = second[name]
        assert (twin.shape, twin.chunks, twin.metadata.zarr_format) == (member.shape, member.chunks, 2), f"{path} {name}"
        assert list(twin.attrs["_ARRAY_DIMENSIONS"]) == list(member.metadata.dimension_names)
        names = ["/".join(map(str, number)) for number in np.ndindex(*member.cdata_shape)] if member.shape else ["0"]
        assert tree(f"{part.folder}zarr2/{name}") == sorted([".zarray", ".zattrs", *names]), f"{path} {name}"
        if name in without_days:
            continue
        got, wanted = np.asarray(twin[...]), np.asarray(member[...])
        is_same = got.tolist() == wanted.tolist() if wanted.dtype.kind in "OT" else got.tobytes() == wanted.tobytes()
        assert is_same, f"{path} {name}"
    fields = [field for field in array.fields if (field.count or field.dtype == "u1") and has_days(field)]
    assert fields or not array.fields
    for field in fields:
        name = own_name(field.name)
        member = group[name]
        valid = part.valid(field)
        if field.valid is not None:
            same(np.ascontiguousarray(group[f"{name}_valid"][...]).ravel(), valid, f"{part} {name}_valid")
        missing = fill_value(member.attrs, member.dtype) if field.valid is not None else None
        check(part, field, member[...], valid, missing, "zarr")
        if member.dtype.kind not in "OT":
            check(part, field, dask.array.from_zarr(member).compute(scheduler="threads"), valid, missing, "dask")
    whole = xarray.open_zarr(store, mask_and_scale=False, decode_times=False, decode_cf=False)
    for field in fields:
        name = own_name(field.name)
        if field.count or field.type in TEXT:
            check(part, field, whole[name].values, part.valid(field), None, "xarray")
    # Attributes may have dates that NumPy cannot represent.
    attributes = [own_name(field.name) for field in array.fields if not field.is_dimension]
    decoded = xarray.open_zarr(store, decode_timedelta=True, drop_variables=attributes)
    for axis, dimension in enumerate(array.schema["dims"] if array.dense else []):
        name = own_name(dimension["name"] or f"__dim_{axis}")
        same(decoded[name].values.astype(part.coordinates(axis).dtype), part.coordinates(axis), f"{part} {name}")
        checked += 1
print(checked)
