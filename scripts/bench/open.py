"""Time from the start of the command to the first byte of an attribute, compared with a new Python process that opens the array."""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import tiledb

from .common import TILEFS, alternate, made, mounted, ratio, seconds, table, timed, warm

CELLS = 16  # in each fragment


def with_fragments(count):
    """A 1-D array of `count` fragments, each over its own cells."""

    def make(path):
        dim = tiledb.Dim("x", domain=(0, CELLS * max(count, 100) - 1), tile=CELLS, dtype=np.int64)
        attr = tiledb.Attr("v", dtype=np.float32, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), [attr]))
        with tiledb.open(path, "w") as array:
            for i in range(count):
                array[CELLS * i : CELLS * (i + 1)] = np.full(CELLS, i, np.float32)

    return made(f"fragments-{count}", make)


def with_consolidated_metadata(count):
    """The same array with consolidated fragment metadata: one file with copies of all footers."""

    def make(path):
        shutil.copytree(with_fragments(count), path)
        tiledb.consolidate(path, config=tiledb.Config({"sm.consolidation.mode": "fragment_meta"}))

    return made(f"fragments-{count}-consolidated", make)


def group_of(count):
    def make(path):
        tiledb.Group.create(path)
        for i in range(count):
            dim = tiledb.Dim("x", domain=(0, 99), tile=10, dtype=np.int32)
            tiledb.Array.create(f"{path}/a{i:04}", tiledb.ArraySchema(tiledb.Domain(dim), [tiledb.Attr("v", dtype=np.float32)]))
            with tiledb.open(f"{path}/a{i:04}", "w") as array:
                array[:] = np.arange(100, dtype=np.float32) + i
        with tiledb.Group(path, "w") as group:
            for i in range(count):
                group.add(f"a{i:04}", name=f"a{i:04}", relative=True)

    return made(f"group-{count}", make)


def first_byte_mounted(array, file):
    """Mounts in the background, reads four bytes, and unmounts; unmounting is not timed."""
    with tempfile.TemporaryDirectory(prefix="tilefs-bench-") as folder:
        start = time.perf_counter()
        subprocess.run([TILEFS, "mount", array, folder], check=True)
        with open(f"{folder}/{file}", "rb", buffering=0) as opened:
            assert len(opened.read(4)) == 4
        elapsed = time.perf_counter() - start
        subprocess.run([TILEFS, "umount", folder], check=True)
    return elapsed


def first_byte_cat(array, file):
    def action():
        with subprocess.Popen([TILEFS, "cat", array, file], stdout=subprocess.PIPE) as process:
            assert len(process.stdout.read(4)) == 4
            process.stdout.close()

    return timed(action)


def first_byte_python(code):
    return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL))


def run():
    cases = []
    arrays = [(f"{count:,} fragment{'s' * (count > 1)}", with_fragments(count)) for count in (1, 1_000, 10_000)]
    arrays.append(("10,000 and consolidated metadata", with_consolidated_metadata(10_000)))
    for name, path in arrays:
        cases.append((name, path, "v.f32", f"import tiledb; print(tiledb.open({path!r})[0:1])"))
    path = group_of(1_000)
    code = f"import tiledb; print(tiledb.open(tiledb.Group({path!r})['a0500'].uri)[0:1])"
    cases.append(("group of 1,000 arrays", path, "a0500/v.f32", code))
    rows = []
    for name, path, file, code in cases:
        warm(path)
        try:
            mount, direct, python = alternate(
                lambda: first_byte_mounted(path, file), lambda: first_byte_cat(path, file), lambda: first_byte_python(code))
        except subprocess.CalledProcessError as error:
            rows.append([name, f"failed with status {error.returncode}", "", "", "", ""])
            continue
        rows.append([name, seconds(mount), seconds(direct), seconds(python), ratio(mount, python), ratio(direct, python)])
    header = ["array", "tilefs mount: median (best)", "tilefs cat", "python -c", "mount faster by", "cat faster by"]
    table("open: start of the command to the first bytes of one attribute", header, rows)
    memory()


def memory():
    """Measures the memory that a mount needs per fragment if nobody reads the fragments."""
    held = {}
    for count in (1, 10_000):
        sizes = []
        for _ in range(3):
            with mounted(with_fragments(count)) as mount:
                with open(f"{mount.path}/v.f32", "rb", buffering=0) as file:
                    file.read(4)
                sizes.append(mount.memory("VmRSS"))
        held[count] = statistics.median(sizes)
    each = (held[10_000] - held[1]) * 1024 * 1024 / 10_000
    rows = [[f"{held[1]:.1f} MiB", f"{held[10_000]:.1f} MiB", f"{each:.0f} bytes"]]
    table("open: resident memory after the first byte", ["1 fragment", "10,000 fragments", "a fragment"], rows)
