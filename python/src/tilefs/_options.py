"""Converts the options of opening to the form that the extension module takes."""

from __future__ import annotations

import datetime
import os
from typing import Any, Callable, Dict, Mapping, TypeVar, Union

from . import _tilefs
from ._errors import UsageError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

T = TypeVar("T")
Time = Union[int, str, datetime.datetime, datetime.date]
Key = Union[str, "os.PathLike[str]", bytes]


def milliseconds(time: Any) -> Any:
    """Converts a time to milliseconds since 1970; text stays as it is. As in the program, a time without a zone is
    UTC."""
    if type(time).__name__ == "datetime64":
        return int(time.astype("datetime64[ms]").astype("int64"))
    if isinstance(time, datetime.datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=datetime.timezone.utc)
        return (zoned - _EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(time, datetime.date):
        return time.isoformat()
    return time


def times(timestamp: Any, from_: Any, at: Any) -> Any:
    """Returns the first and the last time to show, of which TileDB-Py's ``timestamp`` gives the last one, or both."""
    if timestamp is None:
        return from_, at
    if from_ is not None or at is not None:
        raise UsageError("give timestamp=, or from_= and at=, not both")
    if not isinstance(timestamp, tuple):
        return None, timestamp
    if len(timestamp) != 2:
        raise UsageError(f"timestamp is a number of milliseconds, or a pair of first and last, not {timestamp!r}")
    return timestamp


def opened(call: Callable[[str, "_tilefs.Options"], T], uri: Any, options: Mapping[str, Any]) -> T:
    """Calls ``call`` with a URI and options. A key in memory goes through a pipe, because the extension module reads
    keys from files."""
    uri = os.fspath(uri)
    key = options.get("key")
    if isinstance(key, (bytes, bytearray)):
        with KeyPipe(bytes(key)) as pipe:
            return call(uri, _made({**options, "key": pipe.path}))
    return call(uri, _made(options))


def _made(options: Mapping[str, Any]) -> "_tilefs.Options":
    arguments: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in ("at", "from_"):
        if name in arguments:
            arguments[name] = milliseconds(arguments[name])
    config = arguments.pop("config", None)
    if callable(getattr(config, "dict", None)):
        # A configuration of TileDB-Py lists all settings. Of those that were changed, these are about reading.
        usual = type(config)().dict()
        changed = {name: value for name, value in config.dict().items() if usual.get(name) != value}
        config = {name: value for name, value in changed.items() if name.startswith(("vfs.", "ssl."))}
    if isinstance(config, Mapping):
        arguments["settings"] = [(str(name), str(value)) for name, value in config.items()]
    elif config is not None:
        arguments["config"] = os.fspath(config)
    if "key" in arguments:
        arguments["key_file"] = os.fspath(arguments.pop("key"))
    return _tilefs.Options(**arguments)


def to_pickle(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns options without a key in memory, which gets into no pickle; the path of a key file may."""
    return {name: value for name, value in options.items() if not (name == "key" and isinstance(value, (bytes, bytearray)))}


class KeyPipe:
    """A pipe that holds a key, so that the key is in no file on disk. ``path`` is its name in this process."""

    def __init__(self, key: bytes) -> None:
        if len(key) > 1024:
            raise ValueError("a key has 32 bytes, or 64 hexadecimal digits")
        self.descriptor, writer = os.pipe()
        try:
            os.write(writer, key)
        finally:
            os.close(writer)
        self.path = f"/dev/fd/{self.descriptor}"

    def __enter__(self) -> "KeyPipe":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
