"""Tests that a mount of `tilefs.mount` is ready at once, and gone afterwards, however the block or the interpreter
ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import tilefs

from conftest import write_dense
from forks import in_child

pytestmark = pytest.mark.usefixtures("mountable")


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def is_mounted(path):
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == str(path) for line in mounts)


def test_a_block_has_a_mount(demo):
    with tilefs.mount(demo) as path:
        assert is_mounted(path) and np.fromfile(path / "temp.f32", "<f4")[1] == np.float32(20.01)
    assert not path.exists() and not is_mounted(path)


def test_the_options_are_those_of_the_program(demo, tmp_path):
    options = {"slices": {"corner": "0..1,0..2"}, "show": ["zarr", "csv"], "cache_size": "64M", "umask": "077", "follow_links": True}
    mount = tilefs.mount(demo, at="2100-01-01", path=tmp_path, **options)
    with pytest.raises(tilefs.MountError):
        mount.path
    with mount as path:
        assert path == tmp_path == mount.path and os.listdir(path / "slice") == ["corner"]
        assert (path / "slice/corner/temp.f32").stat().st_size == 24 and "zarr" in os.listdir(path)
        with pytest.raises(tilefs.MountError, match="already"):
            mount.__enter__()
    assert tmp_path.is_dir() and os.listdir(tmp_path) == []
    with mount as path:
        assert is_mounted(path)


def test_a_key_is_passed_without_a_file(tmp_path):
    key = b"0123456789abcdeF0123456789abcdeF"
    path = write_dense(tmp_path / "array", np.arange(5), key=key.decode())
    with tilefs.mount(path, key=key) as mounted:
        assert np.fromfile(mounted / "a.i64", "<i8").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(tilefs.EncryptionError, match="key"):
        tilefs.mount(path).__enter__()


def test_failures_are_exceptions_with_the_message_of_the_program(demo, tmp_path, monkeypatch):
    folders = set(os.listdir(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wrong = [
        (tilefs.NotFoundError, "cannot open it", {"uri": demo.parent / "dmeo"}),
        (tilefs.UsageError, "slice s", {"uri": demo, "slices": {"s": "500,0"}}),
        (tilefs.UsageError, "--none", {"uri": demo, "none": True}),
        (tilefs.UsageError, "yesterday", {"uri": demo, "at": "yesterday"}),
        (tilefs.MountError, "none", {"uri": demo, "path": tmp_path / "none"}),
    ]
    for kind, message, arguments in wrong:
        with pytest.raises(kind, match=message) as found:
            with tilefs.mount(**arguments):
                pass
        assert not str(found.value).startswith("tilefs:")
    with pytest.raises(TypeError):
        tilefs.mount(5)
    assert set(os.listdir(tmp_path)) == folders
    monkeypatch.setenv("TILEFS_COMMAND", "")
    monkeypatch.setenv("PATH", "")
    # The program of a wheel that is installed here.
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    with pytest.raises(tilefs.NotFoundError, match="PATH"):
        tilefs.mount(demo).__enter__()


def test_an_exception_in_the_block_unmounts(demo):
    with pytest.raises(ZeroDivisionError):
        with tilefs.mount(demo) as path:
            1 / 0
    assert not path.exists()


def test_a_mount_in_use_ends_for_its_users(demo):
    with tilefs.mount(demo) as path:
        file = open(path / "temp.f32", "rb")
    assert not path.exists() and not is_mounted(path)
    file.close()


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)", "sys.exit(0)", "raise KeyboardInterrupt"])
def test_the_end_of_the_interpreter_unmounts(demo, end):
    script = f"""
        import os, signal, sys, tilefs
        mount = tilefs.mount({str(demo)!r})
        print(mount.__enter__(), flush=True)
        {end}
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    path = ran.stdout.strip()
    assert path.startswith("/"), ran
    wait_until(lambda: not is_mounted(path))


def test_ctrl_c_is_for_the_block(demo):
    script = f"""
        import time, tilefs
        try:
            with tilefs.mount({str(demo)!r}) as path:
                print(path, flush=True)
                time.sleep(60)
        except KeyboardInterrupt:
            print(path.exists(), flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    path = process.stdout.readline().strip()
    assert is_mounted(path)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline().strip() == "False" and process.wait(30) == 0


def test_a_forked_child_does_not_end_the_mount_of_its_parent(demo):
    mount = tilefs.mount(demo)
    with mount as path:

        def leave():
            mount.__exit__(None, None, None)
            assert (path / "temp.f32").stat().st_size == 80_000

        assert in_child(leave) == 0
        assert is_mounted(path) and (path / "temp.f32").stat().st_size == 80_000
    assert not path.exists()


# Mounts, forks a child that ends as Python usually does, or one that outlives its parent.
FORKS = """
    import os, signal, sys, time, tilefs
    mount = tilefs.mount(sys.argv[1])
    path = mount.__enter__()
    if sys.argv[2] == "ends":
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        print(path, os.path.ismount(path), flush=True)
    elif os.fork() == 0:
        os.close(1)
        sys.stdin.read()
    else:
        print(path, os.path.ismount(path), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("child", ["ends", "outlives its parent"])
def test_a_mount_lasts_as_long_as_the_process_that_mounted(demo, child):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORKS), str(demo), child]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    path, was_mounted = process.stdout.readline().split()
    assert was_mounted == "True"
    process.wait(60)
    wait_until(lambda: not is_mounted(path))
    process.stdin.close()
