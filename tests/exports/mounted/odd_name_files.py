"""Arrays and groups in which everything has an odd name. Each view shows all of them to its readers. The values
identify the attribute or dimension of a name, and no name may prevent another from being read.

An attribute with the number n holds 1000 n, 1000 n + 1, ...; a dimension with the number n of a sparse array has the
coordinates 10 n, 10 n + 1, ...
"""

import csv
import json
import os
import subprocess
import sys
import warnings

import duckdb
import netCDF4
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import rasterio
import SimpleITK
import tiledb
import xarray
import zarr

warnings.simplefilter("ignore")
SimpleITK.ProcessObject.SetGlobalWarningDisplay(False)

# Names that are odd to file systems, shells, XML, CSV or one of the formats.
ODD = """. .. ... .a a. a\\b \\ \\\\ a\\ \\a a/b / // a//b /a a/ ./a ../a a/.. a:b :: C:\\x a::b * a*b ? [a] [ ] {a} % %% %5C %~ a%b
 é É ß SS ss ABC abc Abc 日本 😀 zarr.json c .zgroup .zarray .zattrs .zmetadata _ _x zarr meta dims labels enums npy text
 netcdf arrow parquet tiff F slice islice nonempty by-row contents schema README fragments cells crs spatial_ref _index
 _FillValue _ARRAY_DIMENSIONS _NCProperties _Encoding coordinates grid_mapping ancillary_variables units calendar
 scale_factor add_offset missing_value valid_range long_name Conventions left_out a_valid a_values a_labels a_label NaN
 null nan true 0 1 -1 -x ~ ~a $a $(a) `a` a;b a'b a"b " ' "" a,b , a|b a&b <a> &amp; ]]> <!-- # #a @ a@b a=b =1 +1 (a)
 byte float select rowid index""".split()
BLANK = [" ", "  ", " a", "a ", "a b", "a\nb", "a\tb", "a\r\nb", "a\rb", "\u2028", "\ufeff", "\u200b", "\u00a0", "\x85"]
# Pairs that are equal in Unicode's normalization form C, or except for case.
ALIKE = ["\u00e9", "e\u0301", "\u00c5", "\u212b", "K", "\u212a", "k", "\u1112\u1161\u11ab", "\ud55c", "\u0928\u093c", "\u0929"]
LONG = [part * count for part in "xä/\\ ._%" for count in (113, 224, 225, 255, 256)]
LONG += ["a" * 255 + "b", "a" * 255 + "c", "a" * 256 + "c"]
BYTES = [chr(byte) for byte in range(1, 128) if not chr(byte).isalnum()] + ["a", "A", "5"]
NAMES = list(dict.fromkeys(BYTES + ODD + BLANK + ALIKE + LONG))
# The library reserves these names.
NAMES = [name for name in NAMES if not name.startswith("__")]
ROWS, COLUMNS, CELLS = 4, 3, 5
VALUES = ["FIRST", "SECOND"]


def parts(names, count):
    return [names[first : first + count] for first in range(0, len(names), count)]


def create(path, dimensions, attributes, enumerations=(), sparse=False):
    domain = tiledb.Domain(*(tiledb.Dim(name, (0, end), end + 1, dtype="i8") for name, end in dimensions))
    tiledb.Array.create(path, tiledb.ArraySchema(domain, attributes, sparse=sparse, enums=enumerations))


def numbers(names, count):
    return {name: np.arange(count, dtype="i4") + 1000 * number for number, name in enumerate(names)}


def integers(names):
    return [tiledb.Attr(name, dtype="i4") for name in names]


def make():
    made = []
    # Also the empty name: it becomes `data`, so no other file has that name.
    names = ["", *NAMES]
    create("dense", [("ROWS", ROWS - 1), ("COLUMNS", COLUMNS - 1)], integers(names))
    with tiledb.open("dense", "w") as array:
        array[:] = {name: cells.reshape(ROWS, COLUMNS) for name, cells in numbers(names, ROWS * COLUMNS).items()}
        for number, name in enumerate(NAMES):
            array.meta[name] = number
    create("sparse", [("ROWS", 99)], integers(names), sparse=True)
    with tiledb.open("sparse", "w") as array:
        array[np.arange(CELLS)] = numbers(names, CELLS)
    made += ["dense", "sparse"]
    for number, names in enumerate(parts(NAMES, 10)):
        create(f"axes_{number}", [(name, 1) for name in names], integers(VALUES))
        with tiledb.open(f"axes_{number}", "w") as array:
            array[:] = {name: cells.reshape([2] * len(names)) for name, cells in numbers(VALUES, 2 ** len(names)).items()}
        made.append(f"axes_{number}")
    for number, names in enumerate(parts(NAMES, 60)):
        create(f"cells_{number}", [(name, 9999) for name in names], integers(VALUES), sparse=True)
        with tiledb.open(f"cells_{number}", "w") as array:
            array[tuple(np.arange(CELLS) + 10 * axis for axis in range(len(names)))] = numbers(VALUES, CELLS)
        made.append(f"cells_{number}")
    labelled = [tiledb.Attr(f"e{number}", dtype="i4", enum_label=name) for number, name in enumerate(NAMES)]
    labels = [tiledb.Enumeration(name, True, values=["LOW", "HIGH", f"is {name}"]) for name in NAMES]
    create("codes", [("ROWS", 2)], labelled, labels)
    with tiledb.open("codes", "w") as array:
        array[:] = {f"e{number}": np.arange(3, dtype="i4") for number in range(len(NAMES))}
    tiledb.Group.create("group")
    with tiledb.Group("group", "w") as group:
        for number, name in enumerate(NAMES):
            create(f"group/{number}", [("ROWS", 3)], integers(["FIRST"]))
            with tiledb.open(f"group/{number}", "w") as array:
                array[:] = np.arange(4, dtype="i4") + 1000 * number
            group.add(f"group/{number}", name=name)
            group.meta[name] = number
    print(*made, "codes", "group")


def numbered(got, count, total, what, step=1000):
    """Checks that each number has exactly one of these names, and that the values of the name are those of the
    number."""
    found = {}
    for name, values in got:
        values = np.asarray(values).ravel()
        number = int(values[0]) // step
        assert np.array_equal(values, np.arange(total) + step * number), f"{what} {name!r}: {values}"
        assert found.setdefault(number, name) == name, f"{what}: {name!r} and {found[number]!r} are the same"
    missing = [(NAMES + [""])[number - 1] for number in range(count) if number not in found]
    assert not missing and len(found) == count, f"{what}: {len(missing)} are missing, {missing[:9]}"


def zarr_arrays(path):
    """Returns the arrays of a group as zarr-python lists them, and checks each by its name, with and without
    consolidated metadata."""
    store = zarr.storage.LocalStore(path, read_only=True)
    for consolidated in (True, False):
        group = zarr.open_group(store, mode="r", use_consolidated=consolidated)
        listed = {name: array[...] for name, array in group.arrays()}
        assert all(np.array_equal(group[name][...], values) for name, values in listed.items())
        yield listed
    names = xarray.open_zarr(store).variables
    assert set(names) == set(listed), set(names) ^ set(listed)


def netcdf_variables(folder):
    path = f"{folder}/netcdf/array.nc"
    path = path if os.path.exists(path) else f"{folder}/netcdf/cells.nc"
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        found = {name: (variable.dimensions, variable[...]) for name, variable in file.variables.items()}
        attributes = {name: file.getncattr(name) for name in file.ncattrs()}
    with xarray.open_dataset(path, engine="netcdf4") as file:
        assert set(file.variables) == set(found)
    # ncdump opens all variables by name.
    dumped = subprocess.run(["ncdump", path], capture_output=True)
    assert dumped.returncode == 0, dumped.stderr
    return found, attributes


def table_columns(folder):
    """Yields the columns of the tables as each reader returns them, with their names."""
    parquet, arrow = f"{folder}/parquet/cells.parquet", f"{folder}/arrow/cells.arrow"
    frames = {"pyarrow, Parquet": pyarrow.parquet.read_table(parquet), "pyarrow, Arrow": pyarrow.ipc.open_file(arrow).read_all()}
    for what, table in frames.items():
        yield what, table.column_names, [column.to_numpy() for column in table.columns]
    for what, frame in {"Polars, Parquet": polars.read_parquet(parquet), "Polars, Arrow": polars.read_ipc(arrow)}.items():
        yield what, frame.columns, [column.to_numpy() for column in frame]
    # DuckDB does not distinguish names by case, and adds numbers to equal ones.
    columns = duckdb.sql(f"select * from read_parquet('{parquet}')").fetchnumpy()
    yield "DuckDB", None, list(columns.values())
    for name, separator in (("csv", ","), ("tsv", "\t")):
        path = f"{folder}/text/cells.{name}"
        frame = pandas.read_csv(path, sep=separator)
        with open(path, newline="") as file:
            head = next(csv.reader(file)) if name == "csv" else None
        yield f"pandas, {name}", head, [frame.iloc[:, number].to_numpy() for number in range(frame.shape[1])]
        read = "read.csv" if name == "csv" else "read.delim"
        read = f"write.table({read}('{path}', check.names=FALSE), 'r.txt', row.names=FALSE, col.names=FALSE)"
        subprocess.run(["Rscript", "-e", read], check=True, capture_output=True)
        yield f"R, {name}", None, list(np.loadtxt("r.txt", dtype="i8").T)


def check_described(folder, attributes, dimensions):
    told = json.load(open(f"{folder}/schema.json"))
    assert [attribute["name"] for attribute in told["attributes"]] == attributes
    assert [dimension["name"] for dimension in told["dimensions"]] == dimensions
    paths = [path for field in ("attributes", "dimensions") for one in told[field] for path in one["files"]]
    assert paths and not [path for path in paths if not os.path.exists(f"{folder}/{path}")]


def check_attributes(folder, total, sparse):
    names = ["", *NAMES]
    raw = [name for name in os.listdir(folder) if name.endswith(".i32")]
    numbered([(name, np.fromfile(f"{folder}/{name}", "<i4")) for name in raw], len(names), total, "raw")
    arrays = {name: np.load(f"{folder}/npy/{name}") for name in os.listdir(f"{folder}/npy") if name.endswith(".npy")}
    numbered([(name, array) for name, array in arrays.items() if array.dtype == "i4"], len(names), total, "npy")
    for listed in zarr_arrays(f"{folder}/zarr"):
        numbered([(name, array) for name, array in listed.items() if array.dtype == "i4"], len(names), total, "zarr")
    variables, attributes = netcdf_variables(folder)
    axes = {"ROWS", "COLUMNS"}
    numbered([(name, cells) for name, (_, cells) in variables.items() if name not in axes], len(names), total, "netCDF")
    return variables, attributes


def check_dense():
    folder = "mnt_dense"
    _, attributes = check_attributes(folder, ROWS * COLUMNS, False)
    check_described(folder, ["", *NAMES], ["ROWS", "COLUMNS"])
    for pattern, kind in ((".i32", ".hdr"), (".tif", "")):
        place = f"{folder}/tiff" if pattern == ".tif" else folder
        pictures = [f"{place}/{name}" for name in os.listdir(place) if name.endswith(pattern)]
        opened = [(path, rasterio.open(path)) for path in pictures]
        numbered([(path, picture.read()) for path, picture in opened], len(NAMES) + 1, ROWS * COLUMNS, f"GDAL {pattern}{kind}")
    # These files are not listed, but found by name.
    described = json.load(open(f"{folder}/schema.json"))["files"]
    pictures = [file["path"] for file in described if file["path"].endswith(".vrt")]
    opened = [(path, rasterio.open(f"{folder}/{path}")) for path in pictures]
    numbered([(path, picture.read()) for path, picture in opened], len(NAMES) + 1, ROWS * COLUMNS, "GDAL .vrt")
    # These readers reject some names, but must not open the file of another name.
    numbers_of = {name: number for number, name in enumerate(["", *NAMES])}
    for kind in ".nhdr", ".mhd":
        right = 0
        for file in (file for file in described if file["path"].endswith(kind)):
            try:
                first = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(f"{folder}/{file['path']}")).ravel()[0]
            except RuntimeError:
                continue
            assert first == 1000 * numbers_of[file["field"]], f"{file['path']!r} shows {first}"
            right += 1
        assert right > 140, f"{kind}: {right}"
    # The metadata: in a text, in files, and as attributes of netCDF and Zarr.
    told = json.load(open(f"{folder}/meta.json"))
    assert set(told) == set(NAMES)
    texts = sorted(int(open(f"{folder}/meta/{name}").read()) for name in os.listdir(f"{folder}/meta"))
    assert texts == list(range(len(NAMES)))
    assert set(range(len(NAMES))) <= {int(value) for value in attributes.values() if isinstance(value, np.integer)}
    group = zarr.open_group(zarr.storage.LocalStore(f"{folder}/zarr", read_only=True), mode="r")
    assert {name: group.attrs[name] for name in NAMES} == {name: number for number, name in enumerate(NAMES)}


def check_sparse():
    folder = "mnt_sparse"
    check_attributes(folder, CELLS, True)
    check_described(folder, ["", *NAMES], ["ROWS"])
    for what, head, columns in table_columns(folder):
        assert head in (None, ["ROWS", "data", *NAMES]), what
        numbered(list(enumerate(columns[1:])), len(NAMES) + 1, CELLS, what)


def check_axes():
    for number, names in enumerate(parts(NAMES, 10)):
        folder, total = f"mnt_axes_{number}", 2 ** len(names)
        check_described(folder, VALUES, names)
        assert len([name for name in os.listdir(f"{folder}/dims") if name.endswith(".i64")]) == len(names)
        for listed in zarr_arrays(f"{folder}/zarr"):
            assert len(listed) == len(names) + 2, f"{folder}: {sorted(listed)}"
            numbered([(name, listed[name]) for name in VALUES], 2, total, folder)
        variables, _ = netcdf_variables(folder)
        assert len(variables) == len(names) + 2, f"{folder}: {sorted(variables)}"
        assert all(len(variables[name][0]) == len(names) for name in VALUES)
        numbered([(name, variables[name][1]) for name in VALUES], 2, total, folder)


def check_cells():
    for number, names in enumerate(parts(NAMES, 60)):
        folder = f"mnt_cells_{number}"
        check_described(folder, VALUES, names)
        for listed in zarr_arrays(f"{folder}/zarr"):
            axes = [(name, values) for name, values in listed.items() if name not in VALUES]
            numbered(axes, len(names), CELLS, folder, 10)
            assert len(listed) == len(names) + 2
        # One name with a blank must not prevent the others from being coordinates.
        dataset = xarray.open_zarr(zarr.storage.LocalStore(f"{folder}/zarr", read_only=True))
        blank = sum(any(character.isspace() for character in name) for name in dataset.variables)
        assert len(dataset.coords) == len(dataset.variables) - 2 - blank, f"{folder}: {list(dataset.data_vars)}"
        variables, _ = netcdf_variables(folder)
        assert len(variables) == len(names) + 2
        for what, head, columns in table_columns(folder):
            assert head in (None, [*names, *VALUES]), f"{folder} {what}"
            numbered(list(enumerate(columns[: len(names)])), len(names), CELLS, f"{folder} {what}", 10)
            numbered(list(enumerate(columns[len(names) :])), 2, CELLS, f"{folder} {what}")


def check_codes():
    folder = "mnt_codes"
    told = {name: open(f"{folder}/enums/{name}", newline="").read() for name in os.listdir(f"{folder}/enums")}
    assert len(told) == len(NAMES)
    assert all(text.startswith("LOW\nHIGH\nis ") for text in told.values())
    frame = pyarrow.parquet.read_table(f"{folder}/parquet/cells.parquet")
    for number, name in enumerate(NAMES):
        assert frame[f"e{number}"].to_pylist() == ["LOW", "HIGH", f"is {name}"], name
    assert all(len(listed) > 2 * len(NAMES) for listed in zarr_arrays(f"{folder}/zarr"))
    netcdf_variables(folder)


def check_group():
    folder = "mnt_group"
    members = [name for name in os.listdir(folder) if name not in ("README.txt", ".group")]
    numbered([(name, np.fromfile(f"{folder}/{name}/FIRST.i32", "<i4")) for name in members], len(NAMES), 4, "members")
    store = zarr.storage.LocalStore(f"{folder}/zarr", read_only=True)
    assert sorted(os.listdir(f"{folder}/zarr")) == sorted([*members, "zarr.json"])
    with warnings.catch_warnings():
        # zarr-python leaves out entries that it does not recognize, with a warning.
        warnings.simplefilter("error", UserWarning)
        group = zarr.open_group(store, mode="r")
        numbered([(name, group[name]["FIRST"][...]) for name, _ in group.groups()], len(NAMES), 4, "zarr of members")
    assert dict(group.attrs) == {name: number for number, name in enumerate(NAMES)}


def check():
    check_dense()
    check_sparse()
    check_axes()
    check_cells()
    check_codes()
    check_group()


{"make": make, "check": check}[sys.argv[1]]()
