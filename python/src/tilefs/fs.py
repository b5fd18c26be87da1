"""The fsspec filesystem ``tilefs``: the files of a mount, without mounting.

``fsspec.open("tilefs://parquet/cells.parquet", uri="cells.tdb")``, or as a chain of URLs:
``"tilefs://parquet/cells.parquet::file:///data/cells.tdb"``. A chain needs fsspec's package for the last protocol, such
as ``s3fs`` for ``s3://``; ``uri=`` needs none. Without either, the path begins with that of the array:
``tilefs:///data/cells.tdb/parquet/cells.parquet``, ``tilefs://s3/bucket/cells.tdb/parquet/cells.parquet``.
"""

from __future__ import annotations

import concurrent.futures
import datetime
import errno
import os
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Sequence, Set, Tuple

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from . import _options, _tilefs
from ._errors import NotFoundError, UsageError

# The number of concurrent reads. Most of them wait, for storage or for a tile that another one decodes.
_AT_ONCE = 16

# Options of every fsspec filesystem, which libraries pass on and tilefs ignores.
_FOR_FSSPEC = ("asynchronous", "batch_size", "loop", "skip_instance_cache", "use_listings_cache")

# The schemes of object stores with which a path can begin.
_SCHEMES = ("s3", "gs", "gcs", "azure")

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class TilefsFileSystem(AbstractFileSystem):
    """The files of an array, a group or a folder of these; read-only.

    :param uri: a path or URI, as for :func:`tilefs.open`. In a chain of URLs, ``fo``, ``target_protocol`` and
        ``target_options`` replace it. Without one, each path begins with that of an array or a group.
    :param options: as for :func:`tilefs.open`: ``at``, ``key``, ``cache_size``, ``config``, ``anonymous`` ...
    """

    protocol = "tilefs"
    root_marker = ""
    cachable = True

    def __init__(
        self,
        uri: Any = None,
        *,
        fo: Optional[str] = None,
        target_protocol: Optional[str] = None,
        target_options: Optional[Dict[str, Any]] = None,
        **options: Any,
    ) -> None:
        super().__init__()
        for name in _FOR_FSSPEC:
            options.pop(name, None)
        #: The trees that were opened, by the part of a path that names their arrays or groups.
        self._trees: Dict[str, _tilefs.Tree] = {}
        self._options = options
        self.uri = ""
        if uri is None:
            if fo is None:
                return
            uri = fo if target_protocol in (None, "file", "local") else f"{target_protocol}://{fo}"
            options = {**_of_target(target_options or {}), **options}
        self.uri = os.fspath(uri)
        self._trees[""] = _options.opened(_tilefs.Tree, self.uri, options)

    def _at(self, path: Any) -> Tuple[_tilefs.Tree, str]:
        """Returns the tree that a path leads into, and the path in it."""
        path = self._strip_protocol(path)
        if self.uri:
            return self._trees[""], path
        names = path.split("/")
        for count in range(1, len(names) + 1):
            root = "/".join(names[:count])
            if root in self._trees:
                return self._trees[root], "/".join(names[count:])
        for count in range(1, len(names) + 1):
            root = "/".join(names[:count])
            uri = _uri(names[:count])
            if uri is not None and _options.opened(_tilefs.object_type, uri, self._options) is not None:
                self._trees[root] = _options.opened(_tilefs.Tree, uri, self._options)
                return self._trees[root], "/".join(names[count:])
        raise NotFoundError(
            f"no array or group on the way to /{path}: write tilefs:///ARRAY/FILE or tilefs://s3/BUCKET/ARRAY/FILE, or give uri=..."
        )

    def __reduce__(self) -> Any:
        make, (kind, arguments, options) = super().__reduce__()
        return make, (kind, arguments, _options.to_pickle(options))

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        prefix = f"{cls.protocol}:"
        return (path[len(prefix) :] if path.startswith(prefix) else path).strip("/")

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> List[Any]:
        """Returns the entries of a folder, as in a mount, or a file itself. Files that are not listed can be opened by
        name."""
        path = self._strip_protocol(path)
        tree, inner = self._at(path)
        if not detail:
            names = tree.names(inner)
            return [path] if names is None else [_join(path, name) for name, _ in names]
        entries = tree.list(inner)
        if entries is None:
            return [self.info(path)]
        return [_info(_join(path, name), *outline) for name, outline in entries]

    def walk(self, path: str, maxdepth: Optional[int] = None, topdown: bool = True, on_error: Any = "omit", **kwargs: Any) -> Iterator[Any]:
        """Returns the folders and files below a path, as :func:`os.walk` does. Names of groups may double at each level, so a
        group is entered under the first of its names only."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        yield from self._walk(self._strip_protocol(path), maxdepth, topdown, on_error, set(), **kwargs)

    def _walk(
        self, path: str, maxdepth: Optional[int], topdown: bool, on_error: Any, entered: Set[Tuple[Any, str]], **kwargs: Any
    ) -> Iterator[Any]:
        try:
            tree, inner = self._at(path)
            group = tree.group(inner)
            if (tree, group) in entered:
                return
            # One level, as fsspec has it.
            level, folders, files = next(super().walk(path, 1, True, "raise", **kwargs))
        except OSError as error:
            if on_error == "raise":
                raise
            if callable(on_error):
                on_error(error)
            return
        if group is not None:
            entered.add((tree, group))
        if topdown:
            yield level, folders, files
        if maxdepth is None or maxdepth > 1:
            for name in list(folders):
                below = f"{path}/{name}" if path else name
                yield from self._walk(below, maxdepth and maxdepth - 1, topdown, on_error, entered, **kwargs)
        if not topdown:
            yield level, folders, files

    def info(self, path: str, **kwargs: Any) -> Dict[str, Any]:
        """Returns the name, type, size and modification time of a file or folder."""
        path = self._strip_protocol(path)
        tree, inner = self._at(path)
        return _info(path, *tree.info(inner))

    # fsspec's own take any exception for an answer, also that of Ctrl-C.

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Returns whether there is a file or folder, listed or not."""
        try:
            self.info(path)
        except (OSError, ValueError):
            return False
        return True

    def isfile(self, path: str) -> bool:
        """Returns whether there is a file, listed or not."""
        try:
            return bool(self.info(path)["type"] == "file")
        except (OSError, ValueError):
            return False

    def modified(self, path: str) -> datetime.datetime:
        """Returns the time of the last commit to the data that a file or folder shows."""
        return _EPOCH + datetime.timedelta(seconds=self.info(path)["mtime"])

    def created(self, path: str) -> datetime.datetime:
        """Returns the same as :meth:`modified`."""
        return self.modified(path)

    def ukey(self, path: str) -> str:
        """Returns a text that changes when the file does."""
        info = self.info(path)
        return f"{self.uri} {info['name']} {info['size']} {info['mtime']}"

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any) -> bytes:
        """Returns the bytes of a file, or of a range, which is clipped to the file."""
        tree, inner = self._at(path)
        return tree.read(inner, start, end)

    def cat_ranges(
        self,
        paths: List[str],
        starts: Any,
        ends: Any,
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> List[Any]:
        """Returns the bytes of ranges of files, which are read concurrently. ``max_gap`` is ignored: ranges in the same
        tile share its decoded cells anyway."""
        if not isinstance(paths, list):
            raise TypeError("paths must be a list")
        starts, ends = (list(one) if isinstance(one, (list, tuple)) else [one] * len(paths) for one in (starts, ends))
        if not len(starts) == len(ends) == len(paths):
            raise ValueError("as many starts and ends as paths")
        return self._read_all(list(zip(paths, starts, ends)), on_error)

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        """Returns the bytes of a file, or of several files by path, which are read concurrently."""
        paths = self.expand_path(path, recursive=recursive)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0], **kwargs)
        if recursive:
            paths = [one for one in paths if self.isfile(one)]
        found = self._read_all([(one, None, None) for one in paths], "raise" if on_error == "raise" else "return")
        pairs = zip(paths, found)
        return {one: read for one, read in pairs if on_error != "omit" or not isinstance(read, Exception)}

    def _read_all(self, ranges: Sequence[Tuple[str, Optional[int], Optional[int]]], on_error: str) -> List[Any]:
        cancellation = _tilefs.Cancellation()

        def read(path: str, start: Optional[int], end: Optional[int]) -> Any:
            try:
                tree, inner = self._at(path)
                return tree.read(inner, start, end, cancellation)
            except Exception as error:
                if on_error == "raise":
                    raise
                return error

        threads = concurrent.futures.ThreadPoolExecutor(_AT_ONCE, "tilefs")
        try:
            return list(threads.map(lambda one: read(*one), ranges))
        except BaseException:
            # Only this thread handles signals, and leaving the pool waits for the others.
            cancellation.cancel()
            raise
        finally:
            threads.shutdown(cancel_futures=True)

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **kwargs: Any) -> "TilefsFile":
        if mode != "rb":
            _refuse(path)
        if self.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        size: Any = self.blocksize if block_size in (None, "default") else block_size
        return TilefsFile(self, path, mode, size, **kwargs)

    def invalidate_cache(self, path: Optional[str] = None) -> None:
        """Shows what has been committed since the filesystem was made, unless it was made with ``at``."""
        for tree in self._trees.values():
            tree.refresh()
        super().invalidate_cache(path)

    # Refuse all writes. fsspec's own methods do nothing or write through `open`.

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        _refuse(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if not (exist_ok and self.isdir(path)):
            _refuse(path)

    def rmdir(self, path: str) -> None:
        _refuse(path)

    def _rm(self, path: str) -> None:
        _refuse(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: Optional[int] = None) -> None:
        _refuse(path)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        _refuse(path2)

    def mv(self, path1: Any, path2: Any, *args: Any, **kwargs: Any) -> None:
        _refuse(path1)

    def put_file(self, lpath: str, rpath: str, *args: Any, **kwargs: Any) -> None:
        _refuse(rpath)

    def pipe_file(self, path: str, value: bytes, *args: Any, **kwargs: Any) -> None:
        _refuse(path)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        _refuse(path)


class TilefsFile(AbstractBufferedFile):
    """A file that is open for reading."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)  # type: ignore[no-any-return]


def _refuse(path: Any) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def _uri(names: List[str]) -> Optional[str]:
    """Returns the URI of a bucket's folder if a path begins with the scheme of one, or a local path; ``None`` for a
    scheme alone."""
    if names[0] not in _SCHEMES:
        return "/" + "/".join(names)
    return f"{names[0]}://{'/'.join(names[1:])}" if len(names) > 1 else None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _info(path: str, size: Optional[int], mtime: float) -> Dict[str, Any]:
    kind = "directory" if size is None else "file"
    return {"name": path, "size": size or 0, "type": kind, "mtime": mtime}


def _of_target(options: Dict[str, Any]) -> Dict[str, Any]:
    """Converts options of the fsspec filesystem of an object store to those of tilefs."""
    ours: Dict[str, Any] = {}
    for name, value in options.items():
        if name == "anon":
            ours["anonymous"] = bool(value)
        elif name == "endpoint_url":
            ours["config"] = {"vfs.s3.endpoint_override": value}
        elif name not in _FOR_FSSPEC:
            raise UsageError(f"tilefs has no option for the target option {name!r}: give uri=... and its own options")
    return ours
