"""NumPy maps the raw files and the .npy files of a mount: all values equal those that libtiledb reads."""

import numpy as np

from expected import arrays, same

array = arrays()
checked = 0


def raw(path, dtype):
    """Reads a file, and compares it with a mapping; NumPy cannot map empty files."""
    read = np.fromfile(path, dtype)
    if read.size:
        same(np.memmap(path, dtype, "r"), read, path)
    return read


def loaded(path):
    mapped, read = np.load(path, mmap_mode="r"), np.load(path)
    assert mapped.shape == read.shape and mapped.dtype == read.dtype and mapped.tobytes() == read.tobytes(), path
    return mapped


def fixed(part, field, files, where=""):
    """Checks the raw file and the .npy of a field of fixed size; in the folder `where`, both are column-major."""
    global checked
    cells, valid, what = part.cells(field), part.valid(field), f"{part}{where} {field.name}"
    shape = (*part.index.shape, field.count)
    got = raw(part.folder + files[0], "u1" if field.dtype.kind == "b" else field.dtype).view(field.dtype)
    if where:
        got = np.moveaxis(got.reshape(*part.index.shape[::-1], field.count), -1, 0).T.reshape(shape) if field.count == 1 else \
            got.reshape(*part.index.shape[::-1], field.count).transpose(*range(part.index.ndim)[::-1], part.index.ndim)
    same(got.reshape(-1, field.count)[valid], cells[valid], what)
    npy = [file for file in files if file.endswith(".npy") and not file.endswith(".valid.npy")]
    for file in npy:
        values = loaded(part.folder + file)
        assert values.shape == part.index.shape, f"{what}: {values.shape}"
        if field.count == 1 and field.dtype.kind in "mMbiuf" and not field.type.startswith(("CHAR", "STRING", "BLOB", "GEOM")):
            assert values.dtype == field.dtype, f"{what}: {values.dtype}, not {field.dtype}"
        if field.count > 1 and field.dtype.kind in "Mf":
            assert len(values.dtype.names) == field.count, f"{what}: {values.dtype} is not structured"
        flat = np.frombuffer(np.ascontiguousarray(values).tobytes(), field.dtype)
        same(flat.reshape(-1, field.count)[valid], cells[valid], f"{what} as npy")
        checked += 1
    checked += 1


def variable(part, field, files):
    global checked
    values = next(file for file in files if ".offsets." not in file and not file.startswith(("npy", "text")))
    text, ends = raw(part.folder + values, "u1").tobytes(), raw(part.folder + values.rsplit(".", 1)[0] + ".offsets.u64", "<u8").tolist()
    cells, valid = part.cells(field), part.valid(field)
    assert len(ends) == len(cells) + 1 and ends[0] == 0 and ends[-1] == len(text), part
    for cell, start, end, there in zip(cells, ends, ends[1:], valid):
        assert not there or text[start:end] == cell, f"{part} {field.name}: {text[start:end]}, not {cell}"
    checked += 1


for part in array.parts():
    for field in array.fields:
        files = array.files[field.name]
        column_major = [file for file in files if file.startswith("F/")]
        plain = [file for file in files if not file.startswith("F/")]
        if field.count:
            fixed(part, field, plain)
        else:
            variable(part, field, plain)
        if column_major:
            fixed(part, field, column_major, "F/")
        if field.valid is not None:
            stem = plain[0].rsplit(".", 1)[0]
            same(raw(f"{part.folder}{stem}.valid.u8", "u1").view("?"), part.valid(field), f"{part} {field.name} valid")
            mask = loaded(f"{part.folder}npy/{stem}.valid.npy")
            assert mask.shape == part.index.shape and mask.dtype == bool, f"{part} {field.name}: {mask.shape} {mask.dtype}"
            same(mask, part.valid(field), f"{part} {field.name} mask")
    if array.dense:
        for axis, dimension in enumerate(array.schema["dims"]):
            file, coordinates = array.files[dimension["name"]][0], part.coordinates(axis)
            same(raw(part.folder + file, coordinates.dtype), coordinates, f"{part} {file}")
            checked += 1
print(checked)
