"""Time from the request of an address to the first picture or rows on the page of `tilefs serve`, in Chromium, and the
time that the page's requests take without a browser: one after another, in the order in which it asked.

The arrays have 2^40 cells on a local disk, and 10^11 cells in a bucket that examples/generated simulates, without delay
and with 50 ms for each request. Each run starts a server, whose caches are empty. Needs Node.js, Chromium and the
packages of web/ (`npm ci`).

  TILEFS_BENCH_LATENCY   latencies of a request in milliseconds (0 50)
  TILEFS_BENCH_CHROMIUM  the browser (/usr/bin/chromium)"""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import numpy as np
import tiledb

from .common import RUNS, TILEFS, made, show, table
from .scale import LATENCIES, server, take

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
CHROMIUM = os.environ.get("TILEFS_BENCH_CHROMIUM", "/usr/bin/chromium")
SIDE, TILE, WRITTEN = 1 << 20, 1024, 8192
CELLS = 10**11


def run():
    if not shutil.which("node") or not os.path.exists(CHROMIUM) or not (WEB / "node_modules/playwright-core").exists():
        return print("\npage: skipped, because node, chromium or web/node_modules is missing")
    rows = [measured("2^40 cells, one box written", large(), [], None), measured("the box", large(), [], None, "nonempty/")]
    with tempfile.TemporaryDirectory() as folder:
        for latency in LATENCIES:
            with server(latency, folder) as (port, options):
                for shape in ["appended", "table"]:
                    array = f"s3://bench/{shape}-{CELLS}-consolidated"
                    rows.append(measured(f"{shape}, 10^11 cells, {latency} ms", array, options, port))
    header = ["array", "first picture or rows: median (best)", "requests of the page", "without a browser", "to the bucket: requests, MB, dependent"]
    table("page: from the request of the address", header, rows)


def large():
    def make(path):
        dims = [tiledb.Dim(name, domain=(0, SIDE - 1), tile=TILE, dtype=np.int64) for name in "yx"]
        attr = tiledb.Attr("v", dtype=np.float32, filters=tiledb.FilterList([tiledb.ZstdFilter()]))
        tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [attr]))
        y, x = np.ogrid[0:WRITTEN, 0:WRITTEN]
        with tiledb.open(path, "w") as array:
            array[:WRITTEN, :WRITTEN] = (np.sin(y / 300) * np.cos(x / 200)).astype(np.float32)

    return made("page-large", make)


@contextlib.contextmanager
def serving(array, options):
    """Starts `tilefs serve`, and yields its URL."""
    process = subprocess.Popen([TILEFS, "serve", array, *options, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def measured(title, array, options, port, path=""):
    """Returns the row of an array. `port` is that of the bucket, which counts the server's requests."""
    shown, replayed, requests, counts = [], [], [], None
    # The simulated bucket makes the metadata of fragments when they are first read.
    for run in range(-1 if port else 0, RUNS):
        with serving(array, options) as url:
            if port:
                take(port)
            found = json.loads(subprocess.run(["node", WEB / "tests/first_picture.mjs", CHROMIUM, url + path], stdout=subprocess.PIPE, check=True).stdout)
            counts = take(port) if port else None
        if run < 0:
            continue
        shown.append(found["milliseconds"] / 1000)
        requests = [(request["url"].removeprefix(url), request["range"]) for request in found["requests"]]
        with serving(array, options) as url:
            replayed.append(replay(url, requests))
    to_bucket = "" if counts is None else f"{counts[0]}, {counts[1] / 1e6:.1f}, {counts[2]}"
    times = [f"{show(statistics.median(one))} ({show(min(one))})" for one in (shown, replayed)]
    return [title, times[0], len(requests), times[1], to_bucket]


def replay(url, requests):
    """Returns the seconds that requests, each a path and a range, take one after another."""
    start = time.perf_counter()
    for path, wanted in requests:
        request = urllib.request.Request(url + path, headers={"Range": wanted} if wanted else {})
        # The page also asks for files that may be missing.
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request) as answer:
            answer.read()
    return time.perf_counter() - start
