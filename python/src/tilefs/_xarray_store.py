"""The store of a Zarr group whose boxes of values are read without Zarr.

zarr decodes whole chunks, whatever is needed of them, and copies them together. Names, attributes, coordinates and
encodings are those of the group; only the values of a dense array that Zarr has as they are stored come another way.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from xarray import Variable
from xarray.backends.zarr import ZarrArrayWrapper, ZarrStore
from xarray.core import indexing

from ._arrays import Array, open
from ._zarr_store import TreeStore


class DirectArray(ZarrArrayWrapper):
    """The values of an attribute, which are also an array of Zarr."""

    __slots__ = ("_attribute",)

    def __init__(self, zarr_array: Any, attribute: Any) -> None:
        super().__init__(zarr_array)
        self._attribute = attribute

    def __getitem__(self, key: Any) -> Any:
        # Lists of positions are read chunk by chunk.
        if not isinstance(key, indexing.BasicIndexer):
            return super().__getitem__(key)
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._attribute.__getitem__)


class DirectStore(ZarrStore):
    """A Zarr group of an array."""

    #: The attributes that may be read directly, by name.
    direct: Mapping[str, Any] = {}

    @classmethod
    def open_tree(cls, tree: TreeStore, group: Optional[str], direct: Mapping[str, Any]) -> "DirectStore":
        """Opens a group of the tree."""
        # Otherwise zarr looks for the files of version 2 as well.
        store: DirectStore = cls.open_group(tree, mode="r", group=group, consolidated=False, zarr_format=3)
        store.direct = direct
        return store

    def open_store_variable(self, name: str, *arguments: Any) -> Any:
        variable = super().open_store_variable(name, *arguments)
        zarr_array, attribute = self.members[name], self.direct.get(name)
        # The domain may be shown in part.
        if attribute is None or attribute.shape != zarr_array.shape or attribute.dtype != zarr_array.dtype:
            return variable
        values = indexing.LazilyIndexedArray(DirectArray(zarr_array, attribute))
        return Variable(variable.dims, values, variable.attrs, variable.encoding)


def direct_attributes(uri: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the attributes of a dense array that are stored as Zarr has them."""
    opened = open(uri, **options)
    if not isinstance(opened, Array) or opened.is_sparse:
        return {}
    attributes = {name: opened[name] for name in opened.attributes}
    return {name: one for name, one in attributes.items() if not one.nullable and one.enumeration is None and not one.isvar}
