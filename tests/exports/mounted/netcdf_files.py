"""SciPy, netCDF4 and xarray open netcdf/array.nc of a mount: all values equal those that libtiledb reads."""

import netCDF4
import numpy as np
import scipy.io
import xarray

from expected import arrays, same

array = arrays()
checked = 0


def check(part, field, value_of, reader):
    """Compares a field; `value_of` returns a variable's values in the machine's byte order."""
    global checked
    what, valid = f"{part} {field.name} by {reader}", part.valid(field)
    if field.count is None and f"{field.name}_length" in lengths:
        # All texts are padded with zeros to the length of the longest.
        text = np.ascontiguousarray(value_of(field.name)).tobytes()
        width = lengths[f"{field.name}_length"]
        for row, (cell, there) in enumerate(zip(part.cells(field), valid)):
            got = text[row * width : (row + 1) * width]
            assert not there or got == cell.ljust(width, b"\0"), f"{what}: {got}, not {cell}"
    elif field.count:
        got = np.ascontiguousarray(value_of(field.name)).ravel()
        if field.dtype.kind in "mM":
            got = got.astype("<i8").view(field.dtype)
        elif field.dtype.itemsize == got.dtype.itemsize:
            # Unsigned numbers are stored as signed ones if the format has no unsigned type.
            got = got.view(field.dtype)
        else:
            got = got.astype(field.dtype)
        same(got.reshape(-1, field.count)[valid], part.cells(field)[valid], what)
    else:
        text, ends = np.ascontiguousarray(value_of(field.name)).tobytes(), value_of(f"{field.name}_offsets").tolist()
        for cell, start, end, there in zip(part.cells(field), ends, ends[1:], valid):
            assert not there or text[start:end] == cell, f"{what}: {text[start:end]}, not {cell}"
    if field.valid is not None:
        same(np.ascontiguousarray(value_of(f"{field.name}_valid")).ravel().astype("?"), valid, f"{what} valid")
    checked += 1


def native(value):
    value = np.array(value)
    return value.astype(value.dtype.newbyteorder("="))


for part in array.parts():
    path = f"{part.folder}netcdf/array.nc"
    fields = [field for field in array.fields if field.count or field.type.startswith(("STRING_ASCII", "STRING_UTF8", "CHAR"))]
    data = netCDF4.Dataset(path)
    data.set_auto_mask(False)
    data.set_auto_chartostring(False)
    lengths = {name: len(dimension) for name, dimension in data.dimensions.items()}
    for field in fields:
        check(part, field, lambda name: data[name][:], "netCDF4")
    # The form with 64-bit integers is only used for attributes that have them; SciPy supports only the other form.
    wide = any(not field.is_dimension and field.dtype.itemsize == 8 and field.dtype.kind != "f" for field in fields)
    assert data.data_model == ("NETCDF3_64BIT_DATA" if wide else "NETCDF3_64BIT_OFFSET"), f"{part}: {data.data_model}"
    if not wide:
        for mapped in True, False:
            file = scipy.io.netcdf_file(path, mmap=mapped, maskandscale=False)
            for field in fields:
                check(part, field, lambda name: native(file.variables[name][:]), "SciPy")
            file.close()
    frame = xarray.open_dataset(path, engine="netcdf4", mask_and_scale=False, decode_times=False, decode_cf=False)
    for field in fields:
        check(part, field, lambda name: frame[name].values, "xarray")
    frame = xarray.open_dataset(path, engine="netcdf4", decode_timedelta=True)
    for axis, dimension in enumerate(array.schema["dims"] if array.dense else []):
        same(frame[dimension["name"]].values.astype(part.coordinates(axis).dtype), part.coordinates(axis), f"{part} {dimension['name']}")
        checked += 1
print(checked)
