"""Helpers of all sections: paths, mounting, timing two programs alternately, tables."""

import contextlib
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HOME = os.environ["TILEFS_BENCH_DIR"]
TILEFS = os.environ["TILEFS"]
TOY = os.environ["TILEFS_TOY"]
RUNS = int(os.environ["TILEFS_BENCH_RUNS"])


def print_machine():
    import tiledb

    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
    memory = int(next(line.split()[1] for line in open("/proc/meminfo"))) >> 20
    libtiledb = ".".join(map(str, tiledb.libtiledb.version()))
    print(f"{os.cpu_count()} x {model}, {memory} GiB, Linux {platform.release()}; libtiledb {libtiledb}; {RUNS} runs a side, alternating")


def made(name, make):
    """Returns the path of the data set called `name`, and makes it first with `make(path)` if it does not exist yet."""
    path = os.path.join(HOME, name)
    if not os.path.exists(path):
        print(f"making {name} ...", file=sys.stderr, flush=True)
        unfinished = path + ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        make(unfinished)
        os.rename(unfinished, path)
    return path


class Mount:
    """An array mounted somewhere, and the process that serves it."""

    def __init__(self, process, path):
        self.process, self.path = process, path

    def memory(self, field="VmHWM"):
        """Returns the resident memory of the process in MiB: VmHWM is the peak, VmRSS the current value."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def mounted(array, *options, binary=TILEFS):
    """Mounts an array afresh, with empty caches."""
    with served([binary, "mount", "-f", *options, array]) as mount:
        yield mount


@contextlib.contextmanager
def served(command):
    """Yields the mount made by a command whose last argument is the mount point."""
    with tempfile.TemporaryDirectory(prefix="tilefs-bench-") as folder:
        process = subprocess.Popen([*command, folder], stderr=subprocess.PIPE)
        try:
            while not os.path.ismount(folder):
                if process.poll() is not None:
                    sys.exit(f"bench: the mount failed: {process.stderr.read().decode()}")
                time.sleep(0.002)
            yield Mount(process, folder)
        finally:
            process.terminate()
            process.wait()


def cat(*files):
    """Returns the seconds that `cat` takes to read the files."""
    start = time.perf_counter()
    subprocess.run(["cat", *files], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def first_part(file, size):
    """Returns the seconds it takes to read the first `size` bytes of a file in blocks as large as those of `cat`."""
    count = size >> 17
    return timed(lambda: subprocess.run(["dd", f"if={file}", "of=/dev/null", "bs=128k", f"count={count}"], stderr=subprocess.DEVNULL, check=True))


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def warm(path):
    """Reads all stored files, so that both sides find them in the page cache."""
    for folder, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                while file.read(1 << 22):
                    pass


def alternate(*sides, runs=None):
    """Calls the sides in turn, and reverses their order after each round, so that none is always first. Each side
    returns its seconds. Returns a list of these for each side."""
    times = [[] for _ in sides]
    turn = list(zip(sides, times))
    for _ in range(runs or RUNS):
        for side, seconds in turn:
            seconds.append(side())
        turn.reverse()
    return times


def seconds(times):
    """Formats the median and the best time for a table."""
    return f"{show(statistics.median(times))} ({show(min(times))})"


def show(value):
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def ratio(ours, theirs):
    """Formats how many times faster tilefs is, by the medians."""
    return f"{statistics.median(theirs) / statistics.median(ours):.2f}x"


def table(title, header, rows):
    rows = [list(map(str, row)) for row in rows]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}\n")
    for row in (header, ["-" * w for w in widths], *rows):
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
    sys.stdout.flush()
