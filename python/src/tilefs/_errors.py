"""The exceptions of tilefs. Each carries the program's message, which names the place of the error."""

from __future__ import annotations

import contextlib
from typing import Iterator


class Error(OSError):
    """Something could not be read. The base of all exceptions of tilefs."""


class UsageError(Error, ValueError):
    """An argument, time or selection does not parse or does not fit the array."""


class NotFoundError(Error, FileNotFoundError):
    """There is no array or group, or no such file in its tree."""


class DamagedError(Error):
    """Stored bytes are missing, or contradict the format or each other."""


class UnsupportedError(Error):
    """The stored data are of a kind that tilefs cannot read."""


class EncryptionError(Error):
    """The key of an encrypted array is missing or wrong."""


class MountError(Error):
    """The array could not be mounted or unmounted."""


# How the messages begin that have passed through a stream of Arrow, which keeps only their text.
_KINDS = {"damaged data: ": DamagedError, "missing: ": DamagedError, "not supported: ": UnsupportedError}
_OF_ARROW = "External error: "


@contextlib.contextmanager
def of_streams() -> Iterator[None]:
    """Raises the errors of tilefs that a stream of Arrow turns into those of pyarrow."""
    import pyarrow

    try:
        yield
    except pyarrow.ArrowException as error:
        text = str(error)
        if not text.startswith(_OF_ARROW):
            raise
        text = text[len(_OF_ARROW) :]
        kind = next((kind for begin, kind in _KINDS.items() if text.startswith(begin)), Error)
        raise kind(text) from None
