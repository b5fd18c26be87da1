"""nibabel opens nifti/NAME.nii of a mount: all values equal those that libtiledb reads, with the axes of the array, or
reversed if the last one is x."""

import os

import nibabel
import numpy as np

from expected import arrays, same

array = arrays()
checked = 0
for part in array.parts():
    assert "nifti" not in os.listdir(part.folder)
    for field in array.fields:
        name = next((file for file in array.files[field.name] if file.startswith("nifti/")), None)
        if not name:
            continue
        path = f"{part.folder}{name}"
        image = nibabel.load(path)
        assert image.header["magic"].item() in (b"n+1", b"n+2\0\r\n\x1a\n"), path
        got = np.asanyarray(image.dataobj)
        wanted = part.cells(field).reshape(*part.index.shape, field.count)
        if array.schema["dims"][-1]["name"].lower() == "x":
            wanted = wanted.transpose(*reversed(range(part.index.ndim)), part.index.ndim)
        if field.count > 1:
            assert got.dtype.names == ("R", "G", "B", "A")[: field.count], path
            got = np.stack([got[colour] for colour in got.dtype.names], -1)
        assert got.shape == wanted.shape[: part.index.ndim] + got.shape[part.index.ndim :], f"{path}: {got.shape}"
        same(got.reshape(wanted.shape), wanted.view(got.dtype) if wanted.dtype.kind == "b" else wanted, path)
        checked += 1
print(checked)
