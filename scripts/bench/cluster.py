"""Reduces a raster of 10^9 cells with workers of dask, which read it from a bucket with the Python package, without mounts:
the speed by the number of workers, beside the rate of the link and what the processors allow.

The hosts are network namespaces on one bridge: the bucket's, the scheduler's and the client's, and two of workers. The
bucket's interface sends MEGABITS a second (tc tbf) to all, and the answer to each request comes MILLISECONDS later
(examples/slow_link.rs), as in an object store. Each worker has one thread, and all start afresh for each row. Needs root, ip
and tc."""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
from typing import NamedTuple

import tiledb

from .cloud import example, process, settings
from .common import made, show, table, warm
from .previews import SIDE, TILE, raster

MEGABITS, MILLISECONDS = 300, 50
LINK = MEGABITS / 8
WORKERS = [1, 2, 4, 8]
#: Little, and enough for two lines of tiles: no task reads what another one has read.
CACHE = 64 << 20
BUCKET, SCHEDULER, *READERS = HOSTS = ["bucket", "scheduler", "workers-1", "workers-2"]
SCHEDULER_PORT = 8786
#: Seconds between two looks at what the bucket has sent.
INTERVAL = 0.5

READ = """
    import json, sys, time
    import dask.array, distributed, tilefs

    scheduler, count, chunks, options, kills = json.loads(sys.argv[1])

    def processor():
        # Imports are not counted.
        import dask.array, tilefs
        return time.process_time()

    with distributed.Client(scheduler) as client:
        client.wait_for_workers(count)
        before = client.run(processor)
        start = time.perf_counter()
        values = tilefs.open("s3://bench/raster", **options).attr(0).to_dask_array(chunks)
        total = client.compute(values.sum(dtype="u8"))
        if kills:
            time.sleep(3)
            assert not total.done()
            print("kill", flush=True)
            sys.stdin.readline()
        total = int(total.result())
        elapsed = time.perf_counter() - start
        after = client.run(processor)
        assert len(after) == count - kills
        print(json.dumps([elapsed, total, values.npartitions, sum(after[one] - before[one] for one in after)]), flush=True)
"""


class Network:
    """Hosts that a bridge joins: network namespaces of this process."""

    def __init__(self):
        self.prefix = f"tilefs-bench-{os.getpid()}"

    def __enter__(self):
        self.ip("netns", "add", self.namespace("bridge"))
        self.ip("link", "add", "name", "bridge", "type", "bridge", host="bridge")
        self.ip("link", "set", "bridge", "up", host="bridge")
        for host in HOSTS:
            self.ip("netns", "add", self.namespace(host))
            self.ip("link", "set", "lo", "up", host=host)
            self.ip("link", "add", "eth0", "type", "veth", "peer", "name", host, "netns", self.namespace("bridge"), host=host)
            self.ip("address", "add", f"{self.address(host)}/24", "dev", "eth0", host=host)
            self.ip("link", "set", "eth0", "up", host=host)
            self.ip("link", "set", host, "master", "bridge", "up", host="bridge")
        return self

    def __exit__(self, *_):
        for host in ("bridge", *HOSTS):
            subprocess.run(["ip", "netns", "delete", self.namespace(host)], stderr=subprocess.DEVNULL)

    def namespace(self, host):
        return f"{self.prefix}-{host}"

    def address(self, host):
        return f"10.77.0.{1 + HOSTS.index(host)}"

    def ip(self, *arguments, host=None):
        subprocess.run(["ip", *(("-n", self.namespace(host)) if host else ()), *arguments], check=True)

    def limited(self, megabits):
        """Limits what the bucket sends to all."""
        limit = ["root", "tbf", "rate", f"{megabits}mbit", "burst", "256kb", "latency", "50ms"]
        subprocess.run(["tc", "-n", self.namespace(BUCKET), "qdisc", "add", "dev", "eth0", *limit], check=True)

    def command(self, host, *arguments):
        """Returns the command that runs another one on a host."""
        return ["ip", "netns", "exec", self.namespace(host), *arguments]

    @contextlib.contextmanager
    def watched(self):
        """Yields a list of how many bytes the bucket has sent, with the headers of packets: at the beginning, twice a second,
        and at the end."""
        file, found, is_over = "/sys/class/net/eth0/statistics/tx_bytes", [], threading.Event()
        with process(*self.command(BUCKET, "sh", "-c", f"while read -r _; do cat {file}; done")) as shell:

            def look():
                shell.stdin.write(b"\n")
                shell.stdin.flush()
                found.append(int(shell.stdout.readline()))

            def watch():
                while not is_over.wait(INTERVAL):
                    look()

            look()
            watching = threading.Thread(target=watch)
            watching.start()
            try:
                yield found
            finally:
                is_over.set()
                watching.join()
                look()


class Measured(NamedTuple):
    """What a cluster needed."""

    seconds: float
    chunks: int
    #: The processor time of the workers that lived to the end.
    processor: float
    #: Megabytes a second that the bucket sent: in all, and the median of half-seconds, which leaves out begin and end.
    mean: float
    usual: float

    def row(self):
        """Returns the cells of a table."""
        rates = [f"{self.mean:.1f}", f"{self.usual:.1f}"]
        return [show(self.seconds), f"{SIDE**2 / self.seconds / 1e6:.1f}", *rates, self.chunks, show(self.processor)]


HEADER = ["seconds", "million cells/s", "MB/s of the bucket", "median of half-seconds", "chunks", "processor time of the workers"]


def run():
    if os.geteuid() or not shutil.which("tc") or not shutil.which("ip"):
        return print("\ncluster: skipped, because network namespaces need root, ip and tc")
    path = made("raster-1e9", raster)
    warm(path)
    with tiledb.open(path) as array:
        expected = sum(int(array[first : first + TILE]["v"].sum(dtype="u8")) for first in range(0, SIDE, TILE))
    by_workers(path, expected)
    beside(path, expected)


def by_workers(path, expected):
    """Prints the speed by the number of workers, which read a tile in each task."""
    found = {count: measured(path, expected, count) for count in WORKERS}
    rows = []
    for count, one in found.items():
        bar = "#" * round(40 * one.usual / LINK)
        rows.append([count, *one.row(), f"{found[WORKERS[0]].seconds / one.seconds:.2f}x", f"{one.usual / LINK:.2f} {bar}"])
    link = f"{MEGABITS} Mbit/s ({LINK:.1f} MB/s) for all, and {MILLISECONDS} ms to the answer of each request"
    title = f"cluster: the sum of {SIDE**2:.3g} cells, {stored(path) / 1e6:.0f} MB in a bucket; a link of {link}"
    table(title, ["workers", *HEADER, "faster", "of the link"], rows)


def beside(path, expected):
    """Prints what the link, the chunks and the processors allow, and that the loss of a worker changes no result."""
    processors, (most, *_) = os.cpu_count(), reversed(WORKERS)
    rows = [
        [f"{most} workers, one is killed after 3 s", *measured(path, expected, most, kills=True).row()],
        ["1 worker, chunks as dask chooses them", *measured(path, expected, 1, chunks="auto").row()],
        ["1 worker, chunks of 4 x 4 tiles", *measured(path, expected, 1, chunks=[4 * TILE, 4 * TILE]).row()],
        ["2 workers, chunks of 4 x 4 tiles", *measured(path, expected, 2, chunks=[4 * TILE, 4 * TILE]).row()],
        [f"{processors} workers, a fast link, {processors} processors", *measured(path, expected, processors, is_limited=False).row()],
    ]
    table("cluster: beside these", ["", *HEADER], rows)


def stored(path):
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def measured(path, expected, count, chunks="tiles", is_limited=True, kills=False):
    """Reduces the array with so many workers, and checks the sum."""
    with Network() as network, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        if is_limited:
            network.limited(MEGABITS)
        os.mkdir(f"{folder}/bench")
        os.symlink(path, f"{folder}/bench/raster")
        start = lambda *command: running.enter_context(process(*command))
        direct = start(*network.command(BUCKET, example("bucket"), folder)).stdout.readline()
        delay = [str(MILLISECONDS if is_limited else 0), "100000", network.address(BUCKET)]
        link = start(*network.command(BUCKET, example("slow_link"), str(int(direct)), *delay))
        config = {**settings(0), "vfs.s3.endpoint_override": f"{network.address(BUCKET)}:{int(link.stdout.readline())}"}
        scheduler, workers = started(network, running, folder, count)
        argument = json.dumps([scheduler, count, chunks, {"config": config, "cache_size": CACHE}, kills])
        with network.watched() as sent:
            client = start(*network.command(SCHEDULER, sys.executable, "-c", textwrap.dedent(READ), argument))
            if kills:
                assert client.stdout.readline() == b"kill\n"
                workers[-1].kill()
                client.stdin.write(b"\n")
                client.stdin.flush()
            elapsed, total, parts, processor = json.loads(client.stdout.readline())
    assert total == expected, f"{count} workers: {total} is not the sum, {expected}"
    rates = [(high - low) / 1e6 / INTERVAL for low, high in zip(sent, sent[1:])]
    # The client imports its modules first.
    usual = statistics.median([rate for rate in rates if rate > max(rates) / 10])
    return Measured(elapsed, parts, processor, (sent[-1] - sent[0]) / elapsed / 1e6, usual)


def started(network, running, folder, count):
    """Starts a scheduler, and workers alternately on the hosts for these. Returns the scheduler's address, and the workers."""
    address = f"tcp://{network.address(SCHEDULER)}:{SCHEDULER_PORT}"

    def start(host, module, *arguments):
        command = network.command(host, sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *arguments)
        one = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running.callback(one.wait)
        running.callback(one.kill)
        return one

    start(SCHEDULER, "dask_scheduler", "--host", network.address(SCHEDULER), "--port", str(SCHEDULER_PORT))
    options = ["--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--local-directory", folder]
    hosts = [READERS[number % len(READERS)] for number in range(count)]
    return address, [start(host, "dask_worker", address, "--host", network.address(host), *options) for host in hosts]
