"""Arrays in a bucket. Both programs use the same S3 server, behind a link of 20 ms and 200 MB/s (examples/slow_link.rs)."""

import contextlib
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading

import tiledb

from .common import TILEFS, TOY, alternate, cat, mounted, ratio, seconds, table, timed
from .dense import SIDE, raster
from .open import with_fragments
from .python import process as seconds_of
from .sparse import matrix

MILLISECONDS, MEGABYTES = 20, 200
READS, THREADS, READ = 1_000, 16, 4096

@contextlib.contextmanager
def process(*command):
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.stdin.close()
        running.wait()


def example(name):
    # Another program may be measured than the one that was built.
    return os.path.join(os.path.dirname(TOY), name)


@contextlib.contextmanager
def server(folder):
    """Starts an S3 server (examples/bucket.rs) whose buckets are the subfolders of a folder, and yields its port."""
    with process(example("bucket"), folder) as running:
        yield int(running.stdout.readline())


@contextlib.contextmanager
def link(port):
    """Starts a slow link to another port, and yields the port of the link."""
    with process(example("slow_link"), str(port), str(MILLISECONDS), str(MEGABYTES)) as running:
        yield int(running.stdout.readline())


def settings(port):
    return {
        "vfs.s3.endpoint_override": f"127.0.0.1:{port}", "vfs.s3.scheme": "http", "vfs.s3.region": "us-east-1",
        "vfs.s3.use_virtual_addressing": "false", "vfs.s3.no_sign_request": "true",
    }


def run():
    with tempfile.TemporaryDirectory() as folder, server(folder) as direct, link(direct) as port:
        os.mkdir(f"{folder}/bench")
        config = f"{folder}/config"
        with open(config, "w") as file:
            file.writelines(f"{name} {value}\n" for name, value in settings(port).items())
        options = ["--config", config]
        image, small, many = raster("zstd"), with_fragments(1), with_fragments(1_000)
        for name, path in [("image", image), ("small", small), ("many", many), ("cells", matrix(20, 1))]:
            os.symlink(path, f"{folder}/bench/{name}")
        rows = [
            whole(options, port, image), first(options, port, "small"), first(options, port, "many"),
            scattered(options, port), kept(options, folder, image),
            python("dense", config, port, "image", "array['temp'][:]", "array[:]"),
            python("sparse", config, port, "cells", "pyarrow.table(array.read())", "array.query(order='U')[:]"),
        ]
        header = ["what", "tilefs: median (best)", "other side", "other: median (best)", "faster by", ""]
        table(f"cloud: {MILLISECONDS} ms, {MEGABYTES} MB/s, one server of S3 for both", header, rows)


def whole(options, port, local):
    """Reads a whole raster of 256 MiB. The used share of the link's bandwidth is computed from the stored bytes, which
    both programs fetch."""

    def ours():
        return timed(lambda: subprocess.run([TILEFS, "cat", *options, "s3://bench/image", "temp.f32"], stdout=subprocess.DEVNULL, check=True))

    def theirs():
        with tiledb.open("s3://bench/image", ctx=tiledb.Ctx(settings(port))) as array:
            return timed(lambda: array[:])

    here = hashlib.sha256(subprocess.run([TILEFS, "cat", local, "temp.f32"], stdout=subprocess.PIPE, check=True).stdout).digest()
    there = subprocess.run([TILEFS, "cat", *options, "s3://bench/image", "temp.f32"], stdout=subprocess.PIPE, check=True).stdout
    assert hashlib.sha256(there).digest() == here
    a, b = alternate(ours, theirs)
    stored = sum(os.path.getsize(os.path.join(f, n)) for f, _, names in os.walk(local) for n in names)
    share = stored / 1e6 / MEGABYTES / statistics.median(a)
    return ["cat, 256 MiB", seconds(a), "libtiledb into memory", seconds(b), ratio(a, b), f"{stored >> 20} MiB stored, {share:.2f} of the link"]


def python(kind, config, port, name, ours, theirs):
    """Reads a whole array in new Python processes; the imports are not counted."""

    def new_process(module, array, read):
        return seconds_of(f"""
            import {module}, pyarrow
            pyarrow.table({{"one": [1]}})
            array = {array}
            start = time.perf_counter()
            {read}
            print(time.perf_counter() - start)
        """)

    uri = f"s3://bench/{name}"
    a, b = alternate(
        lambda: new_process("tilefs", f"tilefs.open({uri!r}, config={config!r})", ours),
        lambda: new_process("tiledb", f"tiledb.open({uri!r}, ctx=tiledb.Ctx({settings(port)!r}))", theirs),
    )
    return [f"Python, {kind}: `{ours}`", seconds(a), f"`{theirs}`", seconds(b), ratio(a, b), ""]


def first(options, port, name):
    """Measures the time from the start of the command to the first value."""
    code = f"import tiledb; print(tiledb.open('s3://bench/{name}', ctx=tiledb.Ctx({settings(port)!r}))[0:1])"

    def ours():
        return timed(lambda: subprocess.run([TILEFS, "cat", *options, f"s3://bench/{name}", "slice/0/v.f32"], stdout=subprocess.DEVNULL, check=True))

    def theirs():
        return timed(lambda: subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True))

    a, b = alternate(ours, theirs)
    trips = statistics.median(a) * 1000 / MILLISECONDS
    return [f"first value, {name}", seconds(a), "new Python process", seconds(b), ratio(a, b), f"{trips:.1f} round trips of wall time"]


def scattered(options, port):
    """Random reads of 4 KiB in the raster, from several threads."""
    rows = [random.Random(5).randrange(SIDE) for _ in range(READS)]
    columns = [random.Random(6).randrange(SIDE - READ // 4) for _ in range(READS)]
    places = list(zip(rows, columns))

    def all_of(read):
        parts = [threading.Thread(target=lambda part: [read(*place) for place in part], args=[places[n::THREADS]]) for n in range(THREADS)]
        for part in parts:
            part.start()
        for part in parts:
            part.join()

    def ours():
        with mounted("s3://bench/image", *options) as mount:
            file = os.open(f"{mount.path}/temp.f32", os.O_RDONLY)
            try:
                return timed(lambda: all_of(lambda y, x: os.pread(file, READ, 4 * (SIDE * y + x))))
            finally:
                os.close(file)

    def theirs():
        with tiledb.open("s3://bench/image", ctx=tiledb.Ctx(settings(port))) as array:
            return timed(lambda: all_of(lambda y, x: array[y : y + 1, x : x + READ // 4]))

    a, b = alternate(ours, theirs, runs=2)
    return [f"{READS:,} reads of 4 KiB, {THREADS} threads", seconds(a), "libtiledb", seconds(b), ratio(a, b), ""]


def kept(options, folder, local):
    """Compares reading the whole raster from a full disk cache with reading the local array."""
    cache = ["--disk-cache", f"{folder}/cache"]
    with mounted("s3://bench/image", *options, *cache) as mount:
        cat(f"{mount.path}/temp.f32")

    def ours():
        with mounted("s3://bench/image", *options, *cache) as mount:
            return cat(f"{mount.path}/temp.f32")

    def theirs():
        with mounted(local) as mount:
            return cat(f"{mount.path}/temp.f32")

    a, b = alternate(ours, theirs)
    return ["cat, disk cache", seconds(a), "local array", seconds(b), ratio(a, b), ""]
