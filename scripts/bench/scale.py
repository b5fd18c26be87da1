"""Measures how the cost of opening and of first reads grows with the array: on generated arrays (examples/generated),
near and distant, and on real arrays, compared with libtiledb.

  TILEFS_BENCH_SHAPES    some of appended, overlapping and table (all)
  TILEFS_BENCH_CELLS     numbers of cells of generated arrays (1e9 1e10 1e11)
  TILEFS_BENCH_LATENCY   latencies of a request in milliseconds (0 50)
  TILEFS_BENCH_COMMITS   one or both of consolidated (one file has all commits, another all footers) and plain
                         (consolidated)
  TILEFS_BENCH_LIMIT     seconds after which a measurement ends (60); an operation that took longer is not tried with
                         more cells
  TILEFS_BENCH_STREAM    bytes to read sequentially while measuring memory (1e9)
  TILEFS_BENCH_REAL      cells of each array that TileDB-Py writes (1e7); 0 for none
"""

import contextlib
import ctypes
import os
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.request

import numpy as np
import tiledb

from .cloud import example, process, settings
from .common import RUNS, TILEFS, Mount, made, show, table, timed, warm

SHAPES = os.environ.get("TILEFS_BENCH_SHAPES", "appended overlapping table").split()
CELLS = [int(float(count)) for count in os.environ.get("TILEFS_BENCH_CELLS", "1e9 1e10 1e11").split()]
LATENCIES = [int(number) for number in os.environ.get("TILEFS_BENCH_LATENCY", "0 50").split()]
COMMITS = os.environ.get("TILEFS_BENCH_COMMITS", "consolidated").split()
LIMIT = float(os.environ.get("TILEFS_BENCH_LIMIT", "60"))
STREAM = int(float(os.environ.get("TILEFS_BENCH_STREAM", "1e9")))
REAL = int(float(os.environ.get("TILEFS_BENCH_REAL", "1e7")))

CHECKED = 10**6
ROW = 500  # cells in each row of a matrix
OVERLAPPING = 20  # fragments over the same rows
KINDS = ["bold", "calm", "dark", "even", "fair"]


def run():
    with tempfile.TemporaryDirectory() as folder:
        if CELLS:
            check(folder)
        for latency in LATENCIES if CELLS else []:
            with server(latency, folder) as (port, options):
                for shape in SHAPES:
                    for commits in COMMITS:
                        generated(shape, commits, latency, port, options)
        if REAL:
            real()


class Slow(Exception):
    """An operation took longer than the limit."""


def limited(command, limit=LIMIT):
    """Returns the seconds that a shell command takes. Kills the command and its child processes after the limit."""
    start = time.perf_counter()
    running = subprocess.Popen(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        _, complaint = running.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        raise Slow from None
    if running.returncode != 0:
        raise RuntimeError(complaint.decode(errors="replace").strip() or f"exit status {running.returncode}")
    return time.perf_counter() - start


@contextlib.contextmanager
def mounted(array, *options):
    """Mounts an array, and yields the mount and the seconds until it answers."""
    with tempfile.TemporaryDirectory(prefix="tilefs-bench-") as folder:
        start = time.perf_counter()
        serving = subprocess.Popen([TILEFS, "mount", "-f", *options, array, folder], stderr=subprocess.DEVNULL)
        try:
            while not os.path.ismount(folder):
                if serving.poll() is not None:
                    raise RuntimeError(f"the mount ended with {serving.returncode}")
                if time.perf_counter() - start > LIMIT:
                    raise Slow
                time.sleep(0.001)
            yield Mount(serving, folder), time.perf_counter() - start
        finally:
            serving.terminate()
            serving.wait()


@contextlib.contextmanager
def server(latency, folder):
    """Starts a server of generated arrays, and yields its port and the options with which tilefs finds it."""
    with process(example("generated"), "--latency", str(latency)) as running:
        port = int(running.stdout.readline())
        config = f"{folder}/config-{latency}"
        with open(config, "w") as file:
            file.writelines(f"{name} {value}\n" for name, value in settings(port).items())
        yield port, ["--config", config]


def take(port):
    """Returns the requests, the bytes and the dependent steps since the last call."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/statistics") as answer:
        return [int(number) for number in answer.read().split()]


def check(folder):
    """Compares what tilefs reads from small generated arrays, in files and on the server, with what libtiledb reads."""
    names = [f"{shape}-{CHECKED}" for shape in SHAPES]
    subprocess.run([example("generated"), "--write", folder, *names], check=True)
    with server(0, folder) as (_, options):
        for name in names:
            with tiledb.open(f"{folder}/{name}") as array:
                # Rows come in the global order; for a table that is the order of its ids.
                expected = array[:] if name.startswith("table") else array.query(order="G")[:]
            if name.startswith("table"):
                columns = {"dims/id.i64": "id", "count.i32": "count", "kind.bytes": "kind"}
            else:
                columns = {"dims/obs.i64": "obs", "dims/var.i64": "var", "data.f32": "data"}
            files = {file: expected[column].tobytes() for file, column in columns.items()}
            if name.startswith("table"):
                files["name.bytes"] = "".join(expected["name"]).encode()
            count = len(next(iter(expected.values())))
            assert count == rows_of(name.split("-")[0], CHECKED), f"{name} has {count} rows"
            for where in ([f"{folder}/{name}"], [*options, f"s3://bench/{name}"]):
                for file, values in files.items():
                    read = subprocess.run([TILEFS, "cat", *where, file], stdout=subprocess.PIPE, check=True).stdout
                    assert read == values, f"{file} of {name} is not what libtiledb reads"
    print(f"scale: generated arrays of {CHECKED:,} cells are what libtiledb reads of them: {', '.join(names)}")


def rows_of(shape, cells):
    """Returns the number of cells without those that a newer fragment overwrites: in every tenth row, every second
    fragment overwrites the cells of the one before."""
    return cells - cells // 20 if shape == "overlapping" else cells


def operations(shape, cells):
    """Returns the measured operations, each with its name and a shell command on an array or in a mount, and what the
    sequential read reads: a file with a value for each cell, or a folder of parts of the table."""
    if shape == "table":
        row, column, file = cells // 2 * 3, "count.i32", "dims/id.i64"
        box = f"{row // 65536 * 65536}..{row // 65536 * 65536 + 65535}"
    else:
        rows = cells // ROW // (OVERLAPPING if shape == "overlapping" else 1)
        # With overlapping fragments, the size of a column is known only after a pass over all cells.
        row, column, file = rows // 2, "data.f32", "arrow/parts" if shape == "overlapping" else "dims/obs.i64"
        box = f"{row // 2048 * 2048}..{row // 2048 * 2048 + 2047},2400..4799"
    has_some = "| wc -c | grep -qvx 0"
    return [
        ("info", "{tilefs} info {array}"),
        ("first row, `tilefs cat \\| head`", "{tilefs} cat {array} text/cells.tsv | head -2 | grep -q ."),
        ("`ls` of all folders", "ls -R {mnt}"),
        ("`ls -l` of all folders", "ls -lR {mnt}"),
        ("README.txt", "cat {mnt}/README.txt"),
        ("schema.json", "cat {mnt}/schema.json"),
        ("first row, text/cells.tsv", "head -2 {mnt}/text/cells.tsv | grep -q ."),
        # Without `ls -l`: requesting the sizes of all parts reads the whole table.
        ("first row, first part", "head -2 {mnt}/text/parts/$(ls {mnt}/text/parts | head -1) | grep -q ."),
        ("one row", f"cat {{mnt}}/slice/{row}/{column} {has_some}"),
        ("one space tile", f"cat {{mnt}}/slice/{box}/{column} {has_some}"),
    ], file


def measure(array, options, command, begin=lambda: None):
    """Returns the seconds that an operation takes, without the mount that it may need, or None if its files do not
    exist. Calls `begin` at the start of the operation."""
    if "{mnt}" not in command:
        begin()
        return limited(command.format(tilefs=TILEFS, array=" ".join([*options, f"'{array}'"])))
    with mounted(array, *options) as (mount, _):
        if "/parts" in command and not os.path.isdir(f"{mount.path}/text/parts"):
            return None
        begin()
        return limited(command.format(mnt=mount.path))


def generated(shape, commits, latency, port, options):
    """Prints a table of the cost of each operation by the number of cells."""
    costs = {}
    for cells in CELLS:
        array = f"s3://bench/{shape}-{cells}" + ("-consolidated" if commits == "consolidated" else "")
        # The server generates the array's metadata before it starts to count.
        limited(f"{TILEFS} ls {' '.join(options)} {array}", limit=600)
        named, file = operations(shape, cells)
        for name, command in [("mount", None), *named, (f"memory, {STREAM / 1e9:g} GB of {file}", file)]:
            known = costs.setdefault(name, [])
            known.append(cost(name, command, array, options, port, known))
    header = ["", *(f"{cells:.0e} cells".replace("e+", "e") for cells in CELLS), "times, for ten times the cells"]
    rows = [[name, *(text for _, text in known), growth([value for value, _ in known])] for name, known in costs.items()]
    title = f"scale: {shape}, {commits} commits, {latency} ms a request: seconds (requests, MB, dependent steps)"
    table(title, header, rows)


def cost(name, command, array, options, port, known):
    """Measures one operation. Returns its cost (None if there is none) and the text for the table."""
    if any(text.startswith(">") for _, text in known):
        return None, "-"
    take(port)
    try:
        if command is None:
            with mounted(array, *options) as (_, seconds):
                value = seconds
        elif name.startswith("memory"):
            return memory(array, options, command)
        else:
            # The server computes the metadata of fragments on the first read, so measure again once they are known. In
            # slow operations this time hardly counts.
            value = measure(array, options, command, lambda: take(port))
            if value is not None and value < LIMIT / 4:
                value = measure(array, options, command, lambda: take(port))
    except Slow:
        requests, size, steps = take(port)
        return None, f"> {LIMIT:g} s ({requests}, {size / 1e6:.0f} MB, {steps})"
    except RuntimeError as error:
        return None, f"fails: {str(error)[:80]}"
    if value is None:
        return None, "not there"
    requests, size, steps = take(port)
    return value, f"{show(value)} ({requests}, {size / 1e6:.1f} MB, {steps})"


def memory(array, options, file):
    """Returns the peak memory of a mount during a sequential read of a file, or of the files in a folder one after
    another."""
    with mounted(array, *options) as (mount, _):
        text = ""
        try:
            path = f"{mount.path}/{file}"
            read = f"cd {path}; ls | xargs cat 2> /dev/null" if os.path.isdir(path) else f"cat {path} 2> /dev/null"
            seconds = limited(f"({read}) | head -c {STREAM}", limit=max(LIMIT, STREAM / 20e6))
            text = f" ({STREAM / 1e6 / seconds:.0f} MB/s)"
        except Slow:
            text = " (unread)"
        value = mount.memory()
        return value, f"{value:.0f} MiB{text}"


def growth(values):
    """Returns the factor by which a cost grows if the number of cells grows tenfold."""
    known = [(np.log10(cells), np.log10(value)) for cells, value in zip(CELLS, values) if value]
    if len(known) < 2:
        return "-"
    return f"{10 ** ((known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])):.2f}"


def matrix_cells(fragment, count, overlapping):
    """Returns the same coordinates as tests/support/generated/matrix.rs, row by row."""
    rows = fragment // overlapping * (count // ROW) + np.arange(count // ROW, dtype=np.int64)
    slots, member = np.arange(ROW, dtype=np.int64), fragment % overlapping
    shift = 7 * np.where(rows % 10 == 0, member - member % 2, member)
    columns = 120 * slots + (37 * rows[:, None] + 11 * slots + shift[:, None]) % 120
    return np.repeat(rows, ROW), columns.reshape(-1)


def written(shape):
    """Returns the path of an array of one of the shapes, which TileDB-Py writes with Zstandard."""

    def make(path):
        zstd = tiledb.FilterList([tiledb.ZstdFilter()])
        fragments = OVERLAPPING if shape == "overlapping" else 10
        count = REAL // fragments
        rng = np.random.default_rng(7)
        if shape == "table":
            dims = [tiledb.Dim("id", domain=(0, 2**42 - 1), tile=65536, dtype=np.int64, filters=zstd)]
            attrs = [tiledb.Attr("count", dtype=np.int32, filters=zstd), tiledb.Attr("kind", dtype="S4", filters=zstd)]
            attrs.append(tiledb.Attr("name", dtype=str, var=True, filters=zstd))
        else:
            dims = [tiledb.Dim("obs", domain=(0, 2**32 - 1), tile=2048, dtype=np.int64, filters=zstd)]
            dims.append(tiledb.Dim("var", domain=(0, 59_999), tile=2400, dtype=np.int64, filters=zstd))
            attrs = [tiledb.Attr("data", dtype=np.float32, filters=zstd)]
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), attrs, sparse=True, capacity=65536))
        for fragment in range(fragments):
            with tiledb.open(path, "w", timestamp=1_600_000_000_000 + fragment) as array:
                numbers = rng.integers(0, 10**9, count)
                if shape == "table":
                    names = np.array([f"cell_{number:x}" for number in numbers], dtype=object)
                    kinds = np.array(KINDS, "S4")[numbers % len(KINDS)]
                    ids = 3 * (fragment * count + np.arange(count, dtype=np.int64))
                    array[ids] = {"count": (numbers % 1009).astype(np.int32), "kind": kinds, "name": names}
                else:
                    rows, columns = matrix_cells(fragment, count, fragments if shape == "overlapping" else 1)
                    array[rows, columns] = (numbers % 1021 / 8).astype(np.float32)

    return made(f"scale-{shape}-{REAL}", make)


BATCH = 10 << 20  # bytes of each buffer, as in TileDB-Py
COLUMNS = {"table": {"id": 8, "count": 4, "kind": 4, "name": None}}
MATRIX_COLUMNS = {"obs": 8, "var": 8, "data": 4}


def first_batch(path, shape):
    """Returns the seconds that libtiledb takes to open an array and to fill small buffers once, and the number of cells
    in the buffers."""
    from fixtures.arrays import Opened
    from fixtures.capi import FOREVER, READ, Tiledb

    start = time.perf_counter()
    db = Tiledb()
    with Opened(db, path, READ, 0, FOREVER) as array:
        buffers = []
        query = db.make("query_alloc", array, READ)
        db.query_set_layout(query, 3)
        for name, size in COLUMNS.get(shape, MATRIX_COLUMNS).items():
            data, filled = np.empty(BATCH, "u1"), np.array([BATCH], "<u8")
            db.query_set_data_buffer(query, name, data, filled)
            buffers.append((data, filled))
            if size is None:
                offsets, filled = np.empty(BATCH // 8, "<u8"), np.array([BATCH], "<u8")
                db.query_set_offsets_buffer(query, name, offsets, filled)
                buffers.append((offsets, filled))
        db.query_submit(query)
        db.get("query_get_status", query, kind=ctypes.c_int)
        return time.perf_counter() - start, int(buffers[0][1][0]) // 8


def one_row(path, shape):
    """Returns the seconds that libtiledb takes to open an array and to read one row."""
    row = REAL // 2 * 3 if shape == "table" else REAL // ROW // (OVERLAPPING if shape == "overlapping" else 1) // 2

    def read():
        with tiledb.open(path) as array:
            cells = array.multi_index[row:row]
            assert len(cells["id" if shape == "table" else "obs"])

    return timed(read)


def real():
    """Measures the operations on arrays that TileDB-Py wrote, and compares them with libtiledb."""
    rows = []
    for shape in SHAPES:
        path = written(shape)
        warm(path)
        named, _ = operations(shape, REAL)
        theirs = {}
        # For overlapping fragments, libtiledb may take minutes to return its first batch.
        batch = f"import sys; sys.argv = []; from bench import scale; print(*scale.first_batch({path!r}, {shape!r}))"
        try:
            batches = [subprocess.run([os.sys.executable, "-c", batch], stdout=subprocess.PIPE, check=True, timeout=LIMIT).stdout.split() for _ in range(RUNS)]
            median = statistics.median(float(seconds) for seconds, _ in batches)
            theirs["first row, `tilefs cat \\| head`"] = f"{show(median)}, first batch of {int(batches[0][1]):,} cells"
        except subprocess.TimeoutExpired:
            theirs["first row, `tilefs cat \\| head`"] = f"> {LIMIT:g} s, first batch"
        theirs["one row"] = show(statistics.median(one_row(path, shape) for _ in range(RUNS)))
        for name, command in named:
            try:
                times = [measure(path, [], command) for _ in range(RUNS)]
                ours = "not there" if None in times else show(statistics.median(times))
            except Slow:
                ours = f"> {LIMIT:g} s"
            rows.append([shape, name, ours, theirs.get(name, "")])
    table(f"scale: {REAL:,} cells that TileDB-Py wrote, on the local disk", ["array", "", "tilefs, median", "libtiledb in memory, median"], rows)
