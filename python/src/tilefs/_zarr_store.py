"""The Zarr group of an array or a group, for zarr: the files of the tree, without fsspec between, which takes longer to
import and to call than the group's metadata to read."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Dict, Iterable, List, NoReturn, Optional, Tuple

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

from . import _options, _tilefs

#: The folder of the tree.
_FOLDER = "zarr"


class TreeStore(Store):
    """The files below ``zarr/`` in the tree of an array or a group."""

    supports_writes = False
    supports_deletes = False
    supports_partial_writes = False
    supports_listing = True

    def __init__(self, uri: str, options: Dict[str, Any]) -> None:
        super().__init__(read_only=True)
        self._origin = (uri, options)
        self._tree = _options.opened(_tilefs.Tree, uri, options)

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        uri, options = self._origin
        return TreeStore, (uri, _options.to_pickle(options))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeStore) and self._origin == other._origin

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Returns the bytes of a file or of a part of it; ``None`` if there is no such file."""
        try:
            # The files of several keys are read at the same time.
            found = await asyncio.to_thread(self._tree.read, _path(key), *_ends(byte_range))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        return prototype.buffer.from_bytes(found)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[Tuple[str, Any]]) -> List[Any]:
        return list(await asyncio.gather(*(self.get(key, prototype, byte_range) for key, byte_range in key_ranges)))

    async def exists(self, key: str) -> bool:
        try:
            size, _ = await asyncio.to_thread(self._tree.info, _path(key))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return size is not None

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name, _ in await self._names(prefix):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        folders = [prefix.rstrip("/")]
        while folders:
            folder = folders.pop()
            for name, is_folder in await self._names(folder):
                path = f"{folder}/{name}" if folder else name
                if is_folder:
                    folders.append(path)
                else:
                    yield path

    def list(self) -> AsyncIterator[str]:
        return self.list_prefix("")

    async def _names(self, folder: str) -> List[Tuple[str, bool]]:
        """Returns the name of each entry of a folder, and whether it is a folder."""
        try:
            return await asyncio.to_thread(self._tree.names, _path(folder)) or []
        except (FileNotFoundError, NotADirectoryError):
            return []

    async def set(self, key: str, value: Any) -> NoReturn:
        raise _read_only()

    async def delete(self, key: str) -> NoReturn:
        raise _read_only()

    async def set_partial_values(self, key_start_values: Any) -> NoReturn:
        raise _read_only()


def _read_only() -> ValueError:
    # As zarr's own stores.
    return ValueError("store was opened in read-only mode and does not support writing")


def _path(key: str) -> str:
    key = key.strip("/")
    return f"{_FOLDER}/{key}" if key else _FOLDER


def _ends(byte_range: Any) -> Tuple[Optional[int], Optional[int]]:
    """Returns the first byte of a range, which counts from the end if it is negative, and the one after its last."""
    if isinstance(byte_range, RangeByteRequest):
        return byte_range.start, byte_range.end
    if isinstance(byte_range, OffsetByteRequest):
        return byte_range.offset, None
    return (-byte_range.suffix, None) if isinstance(byte_range, SuffixByteRequest) else (None, None)
