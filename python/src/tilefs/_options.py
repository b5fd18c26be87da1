"""Converts the options of opening to the form that the extension module takes."""

from __future__ import annotations

import datetime
import logging
import numbers
import os
import re
from typing import Any, Callable, Dict, Mapping, TypeVar, Union

from . import _tilefs
from ._errors import EncryptionError, UsageError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

# The settings of TileDB that hold what others must not see, and the one with the key of an encrypted array.
_SECRET = re.compile("key|secret|token|password|credential", re.IGNORECASE)
_ENCRYPTION_KEY = "sm.encryption_key"

# What other settings mean here. Those that begin like these only tune TileDB.
_COUNTERPARTS = {"sm.mem.total_budget": "cache_size", "sm.tile_cache_size": "cache_size", "sm.compute_concurrency_level": "threads"}
_TUNING = ("sm.", "py.", "config.", "rest.", "filestore.", "soma.", "vfs.min_", "vfs.read_ahead_", "vfs.file.", "vfs.max_batch_size")
_WRITING = re.compile(r"^vfs\.\w+\.(use_)?(multi_?part|block_list)|canned_acl|\.sse|storage_class|sigpipe|logging_level|skip_init")
_RENAMED = {"ssl.ca_file": "vfs.s3.ca_file", "ssl.verify": "vfs.s3.verify_ssl"}

_LOG = logging.getLogger("tilefs")

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
    if not isinstance(uri, (str, bytes, os.PathLike)):
        raise TypeError(f"uri is a path or a URI, not {uri!r}")
    uri = os.fspath(uri)
    options = with_settings(options)
    key = options.get("key")
    if isinstance(key, (bytes, bytearray)):
        with KeyPipe(bytes(key)) as pipe:
            return call(uri, _made({**options, "key": pipe.path}))
    return call(uri, _made(options))


def _checked(name: str, value: Any) -> Any:
    """Returns an option of opening in the form that the extension module takes.

    :raises UsageError: with the name of the argument, and what it takes
    """
    if name in ("at", "from_"):
        found = milliseconds(value)
        if isinstance(found, str) or _whole(found, 2**64):
            return found
        named = "at (or timestamp)" if name == "at" else name
        raise UsageError(f"{named} is a number of milliseconds since 1970, a date, or text such as \"2030-01-31\", not {value!r}")
    if name in ("cache_size", "disk_cache_size"):
        return _bytes(name, value)
    if name == "threads" and not _whole(value, 2**16):
        raise UsageError(f"threads is a whole number up to 65535, not {value!r}")
    if name == "io_timeout" and not (isinstance(value, numbers.Real) and not isinstance(value, bool)):
        raise UsageError(f"io_timeout is a number of seconds, not {value!r}")
    return value


def _whole(value: Any, end: int) -> bool:
    """Returns whether a value is a whole number from 0 to below ``end``."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and 0 <= int(value) < end


def _bytes(name: str, value: Any) -> int:
    """Returns a number of bytes, which may be text such as ``"1G"``; units are powers of 1024."""
    if _whole(value, 2**64):
        return int(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        raise OverflowError(f"{name} is a number of bytes from 0 to 2^64, not {value!r}")
    parts = re.fullmatch(r"\s*([0-9]+)\s*([KMGT]?)(i?B)?\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    found = int(parts[1]) << 10 * " KMGT".index(parts[2].upper() or " ") if parts else 2**64
    if found >= 2**64:
        raise UsageError(f"{name} is a number of bytes, or text such as \"512M\" or \"1G\", not {value!r}")
    return found


def with_settings(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns options whose settings are a dictionary, or a file's path. Of a configuration of TileDB-Py, which lists all
    settings, these are the ones that were changed. The key of an encrypted array becomes the option ``key``."""
    found = dict(options)
    config: Any = options.get("config")
    if callable(getattr(config, "dict", None)):
        usual = type(config)().dict()
        config = {name: value for name, value in config.dict().items() if usual.get(name) != value}
    if isinstance(config, Mapping):
        found["config"] = {str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}
        key = found["config"].pop(_ENCRYPTION_KEY, "")
        if key and found.get("key") is None:
            found["key"] = key.encode()
    return found


def _set(arguments: Dict[str, Any], name: str, value: str) -> None:
    """Sets what a setting of TileDB means here."""
    if name in _COUNTERPARTS:
        if not value.isascii() or not value.isdigit():
            raise UsageError(f"the setting {name} must be a number, not {value!r}")
        most = 2**16 - 1 if _COUNTERPARTS[name] == "threads" else 2**63
        arguments.setdefault(_COUNTERPARTS[name], min(int(value), most))
    elif name.startswith(_TUNING) or _WRITING.search(name):
        _LOG.debug("the setting %s tunes TileDB, and makes no difference here", name)
    else:
        arguments.setdefault("settings", []).append((_RENAMED.get(name, name), value))


def _made(options: Mapping[str, Any]) -> "_tilefs.Options":
    arguments: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    arguments = {name: _checked(name, value) for name, value in arguments.items()}
    config = arguments.pop("config", None)
    if isinstance(config, Mapping):
        for name, value in config.items():
            _set(arguments, str(name), str(value))
    elif config is not None and not isinstance(config, (str, bytes, os.PathLike)):
        raise UsageError(f"config is a mapping, a tiledb.Config, or the path of a file, not {type(config).__name__}")
    elif config is not None:
        arguments["config"] = os.fspath(config)
    if "key" in arguments:
        path = os.fspath(arguments.pop("key"))
        if not os.path.exists(path):
            # The text may be the key itself, which no error repeats.
            raise EncryptionError('key is the path of a file, and there is no such file; the key itself is given as bytes: key=b"..."')
        arguments["key_file"] = path
    return _tilefs.Options(**arguments)


def to_pickle(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns options without a key in memory and secret settings, which get into no pickle; the paths of files may."""
    kept = {name: value for name, value in with_settings(options).items() if not (name == "key" and isinstance(value, (bytes, bytearray)))}
    if isinstance(kept.get("config"), Mapping):
        kept["config"] = {name: value for name, value in kept["config"].items() if not _SECRET.search(name)}
    return kept


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
