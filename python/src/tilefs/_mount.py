"""Mounts an array as a folder of plain files for the duration of a ``with`` block."""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import socket
import subprocess
import tempfile
import weakref
from typing import Any, Dict, IO, List, Mapping, Optional, Sequence, Union

from . import _command, _options
from ._errors import (
    DamagedError,
    EncryptionError,
    Error,
    MountError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)

# The exit statuses of the program; see its manual.
_BY_STATUS = {
    2: UsageError,
    3: NotFoundError,
    4: DamagedError,
    5: UnsupportedError,
    6: EncryptionError,
    7: MountError,
    8: MountError,
}

# The seconds between checks of whether the program still runs, until it is ready.
_LOOK = 0.2

# Terminate the program after this many seconds if the mount is still in use.
_PATIENCE = 10.0


def mount(
    uri: Any,
    *,
    slices: Union[Mapping[str, str], Sequence[str], None] = None,
    at: Optional[_options.Time] = None,
    key: Optional[_options.Key] = None,
    path: Any = None,
    **options: Any,
) -> "Mount":
    """Mounts an array or a group: ``with tilefs.mount("dem.tdb") as path:``. The folder is a temporary one, and is
    ready when the block begins. It is unmounted at the end of the block, and also when this process ends in any way.

    :param uri: a path or URI, as for :func:`tilefs.open`
    :param slices: named slices, which ``slice/`` lists: ``{"alps": "y=4000..5999,x=1000..2999"}``
    :param at: show the array as of this time
    :param key: the key of an encrypted array: the path of a file, or the key itself as ``bytes``
    :param path: an empty folder to mount on, instead of a temporary one
    :param options: further options of ``tilefs mount``, with underscores: ``cache_size="2G"``, ``refresh=10``,
        ``allow_other=True``, ``show=["zarr", "parquet"]``
    :raises Error: if it cannot be mounted, with the program's message; the subclass says why
    """
    return Mount(uri, slices=slices, at=at, key=key, path=path, **options)


class Mount:
    """A mount. Entering it returns the path of its folder."""

    def __init__(self, uri: Any, **options: Any) -> None:
        self._uri = os.fspath(uri)
        self._options = options
        self._closing: Any = None

    def __enter__(self) -> pathlib.Path:
        if self._closing is not None:
            raise MountError(f"{self._uri} is mounted already")
        with contextlib.ExitStack() as undo:
            self._path = self._folder(undo)
            self._start(undo)
            # From here on, leaving the block undoes everything, and so does the end of the interpreter.
            self._closing = weakref.finalize(self, _close, undo.pop_all(), os.getpid())
        return self._path

    def __exit__(self, *_: object) -> None:
        if self._closing is not None:
            self._closing()
            self._closing = None

    @property
    def path(self) -> pathlib.Path:
        """The folder, while it is mounted."""
        if self._closing is None:
            raise MountError(f"{self._uri} is not mounted")
        return self._path

    def _folder(self, undo: contextlib.ExitStack) -> pathlib.Path:
        given = self._options["path"]
        if given is not None:
            return pathlib.Path(given)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tilefs-"))
        # Not recursive, so that a folder that is still mounted stays.
        undo.callback(_remove, folder)
        return folder

    def _start(self, undo: contextlib.ExitStack) -> None:
        messages = undo.enter_context(tempfile.TemporaryFile())
        with contextlib.ExitStack() as until_ready:
            descriptors: List[int] = []
            key = self._options["key"]
            if isinstance(key, (bytes, bytearray)):
                pipe = until_ready.enter_context(_options.KeyPipe(bytes(key)))
                descriptors.append(pipe.descriptor)
                key = pipe.path
            listener, address = _notifications(until_ready)
            # The program unmounts when this pipe is closed, and the kernel closes it when this process dies.
            process = subprocess.Popen(
                [_command.path(), "mount", "--foreground", "--until-eof", *_arguments({**self._options, "key": key})]
                + ["--", self._uri, str(self._path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                pass_fds=descriptors,
                env={**os.environ, "NOTIFY_SOCKET": address},
                # Only Python receives Ctrl-C, and then unmounts.
                start_new_session=True,
            )
            undo.callback(_end, process, self._path)
            _pipes.add(process.stdin)
            while not select.select([listener], [], [], _LOOK)[0]:
                if process.poll() is not None:
                    raise _failure(process.returncode, messages, self._uri)


def _notifications(undo: contextlib.ExitStack) -> "tuple[socket.socket, str]":
    """Returns a socket to which the program reports that it is ready, as it does to systemd, and the socket's
    address."""
    listener = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    # Let Linux choose an abstract address, which begins with a zero byte.
    listener.bind("")
    return listener, "@" + listener.getsockname()[1:].decode("ascii")


def _arguments(options: Dict[str, Any]) -> List[str]:
    slices, at, key = options.pop("slices"), options.pop("at"), options.pop("key")
    del options["path"]
    arguments: List[str] = []
    if isinstance(slices, Mapping):
        slices = [f"{name}={selection}" for name, selection in slices.items()]
    for one in slices or []:
        arguments += ["--slice", one]
    if at is not None:
        time = _options.milliseconds(at)
        # Some integers are years or dates if they stand alone.
        arguments += ["--at", time if isinstance(time, str) else f"ms-{time}"]
    if key is not None:
        arguments += ["--key-file", os.fspath(key)]
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            arguments += [f"{option}={one}" for one in value]
        elif value is not False and value is not None:
            arguments.append(f"{option}={value}")
    return arguments


def _failure(status: int, messages: IO[bytes], uri: str) -> Error:
    messages.seek(0)
    lines = messages.read().decode(errors="replace").strip().splitlines()
    reason = lines[-1] if lines else f"tilefs ended with status {status} before {uri} was mounted"
    prefix = "tilefs: "
    return _BY_STATUS.get(status, Error)(reason[len(prefix) :] if reason.startswith(prefix) else reason)


# The pipes that end the mounts of this process. A forked child must not keep them open: the mounts belong to its parent
# and end with it.
_pipes: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _close_pipes() -> None:
    for pipe in list(_pipes):
        with contextlib.suppress(OSError):
            pipe.close()


os.register_at_fork(after_in_child=_close_pipes)


def _close(undo: contextlib.ExitStack, owner: int) -> None:
    """Unmounts in the process that mounted. A forked child that leaves the block, or ends, changes nothing."""
    if os.getpid() == owner:
        undo.close()


def _end(process: "subprocess.Popen[bytes]", path: pathlib.Path) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        # The mount is still in use. It is already detached; a second request ends it for its users, too.
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if os.path.ismount(path):
        # The program was killed, and left a dead mount.
        subprocess.run([_command.path(), "umount", str(path)], stderr=subprocess.DEVNULL, check=False)


def _remove(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
