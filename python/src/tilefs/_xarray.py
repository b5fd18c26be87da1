"""The engine ``tilefs`` of xarray: ``xarray.open_dataset("dem.tdb")`` and ``xarray.open_datatree("s3://bucket/group")``.

A dataset is the Zarr group of the tree, which has the tiles as chunks, with the coordinates, units, fill values and times
that Zarr's users know. It is read without zarr.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint

from ._arrays import Array, open
from ._errors import Error
from ._objects import object_type
from ._xarray_store import GroupStore, Source

if TYPE_CHECKING:
    import xarray

    from ._options import Key, Time

# Where there may be arrays and groups. Others, such as `https://`, are files of other formats.
_REMOTE = ("s3://", "gs://", "gcs://", "azure://", "file://")


class TilefsBackendEntrypoint(BackendEntrypoint):
    """Opens arrays and groups of TileDB, from disks and object stores."""

    description = "Open arrays and groups of TileDB without its library"
    url = "https://github.com/tilefs/tilefs"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Returns whether there is an array or a group."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        uri = os.fspath(filename_or_obj)
        if not isinstance(uri, str) or "::" in uri or ("://" in uri and not uri.startswith(_REMOTE)):
            return False
        try:
            return object_type(uri) is not None
        except (Error, ValueError):
            return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: Union[str, Iterable[str], None] = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: Optional[str] = None,
        timestamp: Union[int, Tuple[Optional[int], Optional[int]], None] = None,
        at: "Optional[Time]" = None,
        key: "Optional[Key]" = None,
        cache_size: Optional[int] = None,
        config: Optional[Mapping[str, Any]] = None,
        anonymous: Optional[bool] = None,
    ) -> "xarray.Dataset":
        """Opens an array, or a group within the group ``group``. A group of arrays whose dimensions of the same name have
        the same coordinates is one dataset. The other options are those of :func:`tilefs.open` and of xarray's engine
        for Zarr."""
        options = {name: value for name, value in locals().items() if name not in ("self", "filename_or_obj")}
        dataset = _decoded(_store(filename_or_obj, options, group), options)
        coordinates = None if dataset.variables or group is not None else _coordinates(filename_or_obj, options)
        if coordinates is not None:
            dataset = _merged(dataset, self.open_groups_as_dict(filename_or_obj, **options), coordinates)
        return dataset

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> "xarray.DataTree":
        """Opens a group as a tree of datasets."""
        import xarray

        return xarray.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def open_groups_as_dict(self, filename_or_obj: Any, **options: Any) -> "Dict[str, xarray.Dataset]":
        """Opens the groups of a group by their paths."""
        groups = _store(filename_or_obj, options, options.get("group")).groups()
        return {path: _decoded(store, options) for path, store in groups}


# The most arrays that are looked at to see whether they are one dataset.
_MOST_VARIABLES = 1024


def _coordinates(uri: Any, options: Mapping[str, Any]) -> Optional[List[str]]:
    """Returns the names in the attribute ``coordinates`` of a group; ``None`` if there is no group of arrays alone."""
    with open(uri, **{name: value for name, value in options.items() if name in _OURS}) as opened:
        members = () if isinstance(opened, Array) else opened.members
        if not 0 < len(members) <= _MOST_VARIABLES or any(kind != "array" for _, kind, _ in members):
            return None
        stored = opened.metadata.get("coordinates", "")
        names = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else stored
    return names.split() if isinstance(names, str) else []


def _merged(root: "xarray.Dataset", datasets: "Mapping[str, xarray.Dataset]", coordinates: List[str]) -> "xarray.Dataset":
    """Returns the variables of all datasets as one, some of which are coordinates; ``root`` if they contradict each
    other."""
    import xarray

    found: "Dict[Any, xarray.Variable]" = {}
    sizes: Dict[Any, int] = {}
    names = set()
    for path, dataset in datasets.items():
        for name, variable in dataset.variables.items():
            if name in dataset.dims:
                # Positions from 0 need no coordinates.
                is_plain = variable.dtype.kind in "iu" and (variable.values == range(variable.size)).all()
                if not is_plain and not _identical(variable, found.setdefault(name, variable)):
                    return root
            elif name in found:
                return root
            else:
                found[name] = variable
                names.update({name} & set((*dataset.coords, *coordinates)))
        if any(sizes.setdefault(name, size) != size for name, size in dataset.sizes.items()):
            return root
    merged: "xarray.Dataset" = xarray.Dataset(found, attrs=root.attrs).set_coords(names)
    merged.set_close(root.close)
    return merged


def _identical(one: Any, other: Any) -> bool:
    return bool(one.identical(other))


# The options of tilefs; the others are xarray's.
_OURS = ("timestamp", "at", "key", "cache_size", "config", "anonymous")


def _store(uri: Any, options: Mapping[str, Any], group: Optional[str]) -> GroupStore:
    """Opens a group in the tree of an array or a group."""
    from . import _options

    ours = {name: options.get(name) for name in _OURS}
    from_, at = _options.times(ours.pop("timestamp"), None, ours.pop("at"))
    ours.update(from_=from_, at=at)
    return GroupStore(Source(os.fspath(uri), {name: value for name, value in ours.items() if value is not None}), group or "")


def _decoded(store: GroupStore, options: Mapping[str, Any]) -> "xarray.Dataset":
    """Returns a group as a dataset, decoded as the options of xarray say."""
    theirs = {name: value for name, value in options.items() if name not in (*_OURS, "group")}
    return StoreBackendEntrypoint().open_dataset(store, **theirs)
