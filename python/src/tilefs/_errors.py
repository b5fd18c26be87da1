"""The exceptions of tilefs. Each carries the program's message, which names the place of the error."""


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
