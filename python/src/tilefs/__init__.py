"""Reads TileDB arrays without the TileDB library.

* :func:`open` an array or a group: ``array["temp"][10:20, ::2]`` is a NumPy array, ``array.read(rows=...)`` an Arrow
  table
* :func:`mount` an array as a folder of plain files
* the fsspec filesystem ``tilefs``, which opens the same files without a mount
"""

from __future__ import annotations

try:
    from . import _tilefs
except ImportError as error:
    import sysconfig

    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise
    # Its interpreters find no modules of the stable interface, of which there is one for all others.
    raise ImportError(
        "tilefs does not run in free-threaded Python yet: use an ordinary interpreter, such as python3.13 instead of python3.13t"
    ) from error

from ._arrays import Array, Group, Metadata, open
from ._attributes import Attribute
from ._datasets import Dataset, scan_polars
from ._errors import (
    DamagedError,
    EncryptionError,
    Error,
    MountError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from ._mount import Mount, mount
from ._objects import Fragment, FragmentInfoList, array_fragments, ls, object_type, walk
from ._queries import Query
from ._rows import Rows
from ._schema import Dimension, DimensionLabel, Domain, Enumeration, Schema
from ._tilefs import __version__

__all__ = [
    "Array",
    "Attribute",
    "DamagedError",
    "Dataset",
    "Dimension",
    "DimensionLabel",
    "Domain",
    "EncryptionError",
    "Enumeration",
    "Error",
    "Fragment",
    "FragmentInfoList",
    "Group",
    "Metadata",
    "Mount",
    "MountError",
    "NotFoundError",
    "Query",
    "Rows",
    "Schema",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "array_fragments",
    "ls",
    "mount",
    "object_type",
    "open",
    "scan_polars",
    "walk",
]
