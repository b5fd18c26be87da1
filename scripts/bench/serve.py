"""Downloads a 256 MiB float32 raster over HTTP from `tilefs serve`, which decodes it, and from nginx, which sends the
decoded file.

Needs the programs nginx and curl. The client is curl, which discards the body. The first download is from a server that
has just started. For the second download of the same file, most of it is decoded again and fills the cache, which keeps
values for long only once they have been read twice. The third comes from the cache."""

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from .common import TILEFS, alternate, made, ratio, seconds, table, timed, warm
from .dense import SIDE, raster, values

VARIANTS = ["none", "byteshuffle+zstd", "bitshuffle+lz4"]

CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log {folder}/errors;
worker_processes auto;
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


def run():
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not nginx or not shutil.which("curl"):
        return print("\nserve: skipped, because nginx or curl is missing")
    decoded = made("raster-decoded", decode)
    warm(decoded)
    rows = []
    with nginx_of(nginx, decoded) as theirs:
        for variant in VARIANTS:
            path = raster(variant)
            warm(path)
            first, second, third, others = download(path, theirs)
            speed = lambda times: f"{SIDE * SIDE * 4 / 1e6 / statistics.median(times):.0f} MB/s"
            ours = [first, second, third]
            rows.append([variant, *map(seconds, [*ours, others]), speed(third), speed(others), *(ratio(times, others) for times in ours)])
    header = ["stored as", "first", "second", "third", "nginx", "third", "nginx", "first is", "second is", "third is"]
    table("serve: curl of a 256 MiB raster, beside nginx with the decoded file (1.00x is as fast)", header, rows)


def decode(folder):
    os.mkdir(folder)
    values().tofile(f"{folder}/temp.f32")


def download(path, theirs):
    second, third = [], []

    def ours():
        with tilefs_of(path) as url:
            first = curl(url)
            second.append(curl(url))
            third.append(curl(url))
        return first

    first, others = alternate(ours, lambda: curl(theirs))
    return first, second, third, others


def curl(url):
    return timed(lambda: subprocess.run(["curl", "-sf", "-o", "/dev/null", url], check=True))


@contextlib.contextmanager
def tilefs_of(path):
    """Starts `tilefs serve`, and yields the URL of the raster."""
    process = subprocess.Popen([TILEFS, "serve", path, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split()[-1] + "temp.f32"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def nginx_of(program, root):
    """Starts nginx, and yields the URL of the decoded raster."""
    port = 18099
    with tempfile.TemporaryDirectory(prefix="tilefs-bench-") as folder:
        # The workers of nginx run as another user.
        os.chmod(folder, 0o755)
        configuration = f"{folder}/nginx.conf"
        with open(configuration, "w") as file:
            user = f"user {os.environ.get('USER', 'root')};" if os.geteuid() == 0 else ""
            file.write(user + CONFIGURATION.format(folder=folder, port=port, root=root))
        process = subprocess.Popen([program, "-c", configuration, "-p", folder])
        url = f"http://127.0.0.1:{port}/temp.f32"
        try:
            for _ in range(500):
                try:
                    urllib.request.urlopen(urllib.request.Request(url, method="HEAD")).close()
                    break
                except OSError:
                    time.sleep(0.01)
            else:
                sys.exit("bench: nginx does not answer")
            yield url
        finally:
            process.terminate()
            process.wait()
