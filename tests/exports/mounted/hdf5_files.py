"""h5py and netCDF4 open hdf5/array.h5 and netcdf4/array.nc of a mount: all values equal those that libtiledb reads."""

import h5py
import netCDF4
import numpy as np

from expected import arrays, same

array = arrays()
checked = 0


def check(part, field, value_of, names, reader):
    """Compares a field; `value_of` returns the values of a variable, given one of the `names`."""
    global checked
    what, valid = f"{part} {field.name} by {reader}", part.valid(field)
    is_text = field.type.startswith(("STRING_ASCII", "STRING_UTF8", "CHAR"))
    if field.count is None and f"{field.name}_offsets" not in names:
        texts = np.asarray(value_of(field.name), object).ravel()
        assert is_text and len(texts) == len(part.cells(field)), what
        for got, cell, there in zip(texts, part.cells(field), valid):
            got = got.encode() if isinstance(got, str) else got
            # Readers do not see NULs at the end.
            assert not there or got == cell.rstrip(b"\0"), f"{what}: {got}, not {cell}"
    elif field.count:
        got = np.ascontiguousarray(value_of(field.name)).ravel()
        if got.dtype.kind == "S" and is_text:
            got = np.frombuffer(got.tobytes(), "u1")
        elif field.dtype.kind in "mM":
            got = got.astype("<i8").view(field.dtype)
        else:
            assert got.dtype.itemsize == field.dtype.itemsize, f"{what}: {got.dtype}"
            got = got.view(field.dtype)
        same(got.reshape(-1, field.count)[valid], part.cells(field)[valid], what)
    else:
        values, ends = np.ascontiguousarray(value_of(field.name)).tobytes(), value_of(f"{field.name}_offsets").tolist()
        for cell, start, end, there in zip(part.cells(field), ends, ends[1:], valid):
            assert not there or values[start:end] == cell, f"{what}: {values[start:end]}, not {cell}"
    if field.valid is not None:
        same(np.ascontiguousarray(value_of(f"{field.name}_valid")).ravel().astype("?"), valid, f"{what} valid")
    checked += 1


for part in array.parts():
    fields = [field for field in array.fields if field.count or field.type.startswith(("STRING_ASCII", "STRING_UTF8", "CHAR"))]
    with netCDF4.Dataset(f"{part.folder}netcdf4/array.nc") as data:
        assert data.data_model == "NETCDF4"
        data.set_auto_mask(False)
        data.set_auto_chartostring(False)
        for field in fields:
            check(part, field, lambda name: data[name][:], set(data.variables), "netCDF4")
    with h5py.File(f"{part.folder}hdf5/array.h5") as data:
        for field in fields:
            check(part, field, lambda name: data[name][()], set(data), "h5py")
        for axis, dimension in enumerate(array.schema["dims"] if array.dense else []):
            got = data[dimension["name"]][()]
            same(got.astype("<i8").view(part.coordinates(axis).dtype) if got.dtype.itemsize == 8 else got, part.coordinates(axis), f"{part} {dimension['name']}")
            checked += 1
print(checked)
