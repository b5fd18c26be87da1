"""The table of types: what each exit gives for each type, as the programs that read it report."""

from arrays import TYPES
from readers import Refused

FORMS = {"": "one value per cell", "_several": "several values per cell (here 3)", "_var": "any number of values per cell",
         "enum": "a code per cell, and labels of the type"}
# What a form says of the type before it.
WORDS = {"codes": " codes", "counts": " counts", "units": " units", "bytes": " 0/1", "padded": "", "nan": "", "values": ""}

HEAD = """# Types

What each exit of tilefs gives for each type of TileDB. An *exit* is a form in which values leave tilefs: a file in some
format, or what the Python package returns. A test writes an array with each of these attributes, reads every exit with
the program in the first row, compares the values with what was stored, and this table with what the programs report.

* `A / B` is A for attributes that cannot be null, and B for those that can. The raw file and NumPy's file have the mask
  `NAME.valid.u8` or `NAME.valid.npy` beside them, netCDF, HDF5 and Zarr the variable `NAME_valid`.
* A null, a code without a label and "not a time" are null where a format has nulls; an empty cell of CSV, `null` in JSON.
* *codes* are the numbers of labels, which are beside them: `enums/` for raw files and NumPy, `NAME_labels` in netCDF,
  HDF5 and Zarr. *counts* are numbers of the type's unit since 1970 or midnight, where a format has no such dates. *units*
  are the numbers of 16 or 32 bits of UTF-16 and UTF-32, or bytes. *0/1* are booleans as numbers.
* `_offsets` stands for values end to end, and a variable that says where each cell begins.
* Texts and blobs of netCDF classic are padded to the longest with NULs; so are labels.
* The page takes labels and fill values from schema.json, and cells from raw and Arrow files.
* CSV and JSON have an example each, of the first cell. A number in brackets is a reason, listed below.
"""


def table(exits):
    """Returns the text of the table; `exits` has, by the name of each exit, what it gives for each field by its name."""
    reasons = {}
    text = [HEAD]
    for form, about in FORMS.items():
        text.append(f"## {about[0].upper()}{about[1:]}\n")
        text.append("| type | " + " | ".join(exits) + " |")
        text.append("| --- |" + " --- |" * len(exits))
        rows = []
        for datatype in TYPES:
            name = f"enum_{datatype.lower()}" if form == "enum" else f"{datatype.lower()}{form}"
            given = [exit.get(name) for exit in exits.values()]
            if all(one is None for one in given):
                continue
            cells = [_cell(exit.get(name), exit.get(f"{name}_null"), reasons) for exit in exits.values()]
            if rows and rows[-1][1] == cells:
                rows[-1][0].append(datatype)
            else:
                rows.append(([datatype], cells))
        text += ["| " + " | ".join([", ".join(f"`{one}`" for one in types), *cells]) + " |" for types, cells in rows]
        text.append("")
    text.append("## Reasons\n")
    text += [f"* [{number}] {reason}" for reason, number in reasons.items()]
    return "\n".join(text) + "\n"


def _cell(plain, nullable, reasons):
    words = [_word(one, reasons) for one in (plain, nullable) if one is not None]
    words = list(dict.fromkeys(words))
    return " / ".join(words) if words else "–"


def _word(one, reasons):
    if isinstance(one, Refused):
        return f"[{reasons.setdefault(one.reason, len(reasons) + 1)}]"
    return one.type.replace("|", "\\|") + WORDS[one.form]
