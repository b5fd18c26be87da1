#!/usr/bin/env python3
"""Writes datasets of TileDB-VCF from VCF files, in its layouts 2, 3 and 4, cell by cell as TileDB-VCF does.

usage: scripts/variants.py DATASET VCF... [--layout N] [--anchor-gap N] [--extract ATTRIBUTE,...] [--without-end] [--batch N]

The tests of tilefs use it, because there are no packages of TileDB-VCF for current versions of Python. The VCF files
must have at most one sample and be plain text. Needs the packages tiledb and numpy. Only the order of fragments, and
which records share one, differ from TileDB-VCF.
"""

import argparse
import base64
import struct

import numpy as np

MISSING_INT, MISSING_FLOAT = -(2**31), 0x7F800001
LAST_POSITION = 2**32 - 2


class Vcf:
    """A VCF file of one sample or none: its header as TileDB-VCF stores it, and its records."""

    def __init__(self, text):
        lines = text.splitlines()
        self.meta = [line for line in lines if line.startswith("##")]
        columns = next(line for line in lines if line.startswith("#CHROM")).split("\t")
        assert len(columns) in (8, 10), "one sample or none"
        self.sample = columns[9] if len(columns) == 10 else ""
        if not any(line.startswith("##FILTER=<ID=PASS,") for line in self.meta):
            self.meta.insert(1, '##FILTER=<ID=PASS,Description="All filters passed">')
        self.types, self.numbers, self.contigs = {}, {"PASS": 0}, []
        for line in self.meta:
            kind, _, attributes = line[2:].partition("=<")
            attributes = dict(split_attributes(attributes[:-1])) if attributes else {}
            if kind in ("INFO", "FORMAT", "FILTER"):
                self.numbers.setdefault(attributes["ID"], len(self.numbers))
                self.types.setdefault((kind, attributes["ID"]), attributes.get("Type"))
            if kind == "contig":
                self.contigs.append((attributes["ID"], int(attributes.get("length", 0))))
        self.header = "\n".join(self.meta + ["#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"]) + "\n"
        self.records = [Record(self, line.split("\t")) for line in lines if line and not line.startswith("#")]


def split_attributes(text):
    """Yields the keys and values in `ID=a,Description="b, c"`."""
    while text:
        key, _, text = text.partition("=")
        if text.startswith('"'):
            end = 1
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            value, text = text[1:end], text[end + 2:]
        else:
            value, _, text = text.partition(",")
        yield key, value


class Record:
    """The values of a record as htslib holds them in memory, which is how TileDB-VCF stores them."""

    def __init__(self, vcf, fields):
        self.contig, position, self.id, ref, alt, qual, filters, info = fields[:8]
        self.start = int(position) - 1
        self.alleles = ref if alt == "." else f"{ref},{alt}"
        self.quality = MISSING_FLOAT if qual == "." else float_bits(qual)
        self.filters = [] if filters == "." else [vcf.numbers[name] for name in filters.split(";")]
        self.info = []
        self.end = self.start + len(ref) - 1
        for item in [] if info == "." else info.split(";"):
            name, equals, text = item.partition("=")
            self.info.append((name, encode(vcf.types.get(("INFO", name), "String"), text, bool(equals))))
            if name == "END":
                self.end = int(text) - 1
        self.format = []
        if len(fields) == 10 and fields[8] != ".":
            names, texts = fields[8].split(":"), fields[9].split(":")
            # Fields may be left out at the end; their values are missing.
            texts += ["."] * (len(names) - len(texts))
            for name, text in zip(names, texts):
                kind = "Genotype" if name == "GT" else vcf.types.get(("FORMAT", name), "String")
                self.format.append((name, encode(kind, text, True)))


def float_bits(text):
    if text == ".":
        return MISSING_FLOAT
    return struct.unpack("<I", struct.pack("<f", float(text)))[0]


def encode(kind, text, has_value):
    """Returns the type, the number of values, and the values of a field."""
    if kind == "Flag":
        return struct.pack("<IIi", 0, 1, 1)
    if kind == "Genotype":
        alleles, phased = [], 0
        while text:
            end = next((at for at, character in enumerate(text) if character in "/|"), len(text))
            alleles.append((0 if text[:end] == "." else int(text[:end]) + 1) * 2 | phased)
            phased, text = int(text[end:end + 1] == "|"), text[end + 1:]
        return struct.pack(f"<II{len(alleles)}i", 1, len(alleles), *alleles)
    if kind in ("Integer", "Float"):
        texts = text.split(",") if has_value else []
        if kind == "Float":
            return struct.pack(f"<II{len(texts)}I", 2, len(texts), *map(float_bits, texts))
        return struct.pack(f"<II{len(texts)}i", 1, len(texts), *(MISSING_INT if one == "." else int(one) for one in texts))
    return struct.pack("<II", 3, len(text.encode())) + text.encode()


def coordinates(layout, gap, start, end):
    """Returns the coordinates of a record's cells. The first is the record itself in layouts 3 and 4, the last in
    layout 2; the others are anchors."""
    if layout == 2:
        return [start + gap * number for number in range(1, 1 + max(0, end - start - 1) // gap)] + [end]
    return [start] + list(range(start + gap, end, gap))


def blob(fields):
    return struct.pack("<I", len(fields)) + b"".join(name.encode() + b"\0" + values for name, values in fields)


def cell(record, extract, with_end):
    """Returns the attributes of a record, without its positions but with the extracted ones."""
    info = [field for field in record.info if with_end or field[0] != "END"]
    attributes = {
        "qual": record.quality,
        "alleles": record.alleles.encode() + b"\0",
        "id": record.id.encode() + b"\0",
        "filter_ids": np.array([len(record.filters), *record.filters], dtype=np.int32),
        "info": blob([field for field in info if f"info_{field[0]}" not in extract]),
        "fmt": blob([field for field in record.format if f"fmt_{field[0]}" not in extract]),
    }
    own = {f"info_{name}": values for name, values in info} | {f"fmt_{name}": values for name, values in record.format}
    return attributes | {name: own.get(name, b"\0") for name in extract}


def write_dataset(path, vcfs, layout=4, gap=1000, extract=(), with_end=None, batch=10):
    """Writes a dataset of some files. Every `batch` files share two fragments, one of their records and one of their
    anchors."""
    import tiledb

    with_end = layout == 4 if with_end is None else with_end
    tiledb.Group.create(path)
    tiledb.Group.create(f"{path}/metadata")
    samples = {vcf.sample: number for number, vcf in enumerate(vcfs)}
    offsets, total = {}, 0
    for name, length in vcfs[0].contigs:
        if layout < 4 and length == 0:
            raise ValueError(f"the contig {name} has no length, which layouts 2 and 3 need")
        offsets[name] = total
        total += length
    zstd = tiledb.FilterList([tiledb.ZstdFilter(4)])
    position = "end_pos" if layout == 2 else "start_pos"
    number = {"dtype": np.uint32, "filters": zstd}
    along = tiledb.Dim(position, domain=(0, LAST_POSITION), tile=LAST_POSITION + 1, **number)
    text = {"domain": (None, None), "tile": None, "dtype": "ascii", "filters": zstd}
    if layout == 4:
        dimensions, order = [tiledb.Dim("contig", **text), along, tiledb.Dim("sample", **text)], "row-major"
    else:
        dimensions, order = [tiledb.Dim("sample", domain=(0, LAST_POSITION - 10), tile=10, **number), along], "col-major"
    start, end = ("pos", "real_end") if layout == 2 else ("real_start_pos", "end_pos")
    attributes = [tiledb.Attr(start, **number), tiledb.Attr(end, **number), tiledb.Attr("qual", dtype=np.float32, filters=zstd)]
    attributes += [tiledb.Attr(name, dtype="S0", var=True, filters=zstd) for name in ("alleles", "id")]
    attributes.append(tiledb.Attr("filter_ids", dtype=np.int32, var=True, filters=zstd))
    attributes += [tiledb.Attr(name, dtype=np.uint8, var=True, filters=zstd) for name in ("info", "fmt", *extract)]
    tiledb.Array.create(f"{path}/data", tiledb.ArraySchema(
        domain=tiledb.Domain(*dimensions), attrs=attributes, sparse=True, cell_order=order, tile_order=order,
        allows_duplicates=layout > 2, capacity=10000))

    def write(cells, time):
        """Writes cells, each a (sample, coordinate, record)."""
        if not cells:
            return
        shift = [0 if layout == 4 else offsets[record.contig] for _, _, record in cells]
        rows = [cell(record, extract, with_end) for _, _, record in cells]
        where = np.array([at + by for (_, at, _), by in zip(cells, shift)], dtype=np.uint32)
        data = {name: [row[name] for row in rows] for name in rows[0]}
        data["qual"] = np.array(data["qual"], dtype=np.uint32).view(np.float32)
        data[start] = np.array([record.start + by for (_, _, record), by in zip(cells, shift)], dtype=np.uint32)
        data[end] = np.array([record.end + by for (_, _, record), by in zip(cells, shift)], dtype=np.uint32)
        for name in data:
            if name not in ("qual", start, end):
                kind = {"filter_ids": np.int32, "alleles": "S", "id": "S"}.get(name, np.uint8)
                data[name] = objects([np.frombuffer(v, np.uint8) if kind is np.uint8 else v for v in data[name]])
        with tiledb.open(f"{path}/data", "w", timestamp=time) as array:
            if layout == 4:
                array[objects([r.contig.encode() for _, _, r in cells]), where, objects([s.encode() for s, _, _ in cells])] = data
            else:
                array[np.array([samples[s] for s, _, _ in cells], dtype=np.uint32), where] = data

    for first in range(0, len(vcfs), batch):
        records, anchors = [], []
        for vcf in vcfs[first:first + batch]:
            for record in vcf.records:
                where = coordinates(layout, gap, record.start, record.end)
                own = len(where) - 1 if layout == 2 else 0
                records.append((vcf.sample, where.pop(own), record))
                anchors += [(vcf.sample, at, record) for at in where]
        write(records, 2 * first + 1)
        write(anchors, 2 * first + 2)

    headers = f"{path}/metadata/vcf_headers"
    header = [tiledb.Attr("header", dtype="S0", var=True, filters=zstd)]
    if layout == 4:
        tiledb.Array.create(headers, tiledb.ArraySchema(
            domain=tiledb.Domain(tiledb.Dim("sample", **text)), attrs=header, sparse=True))
        with tiledb.open(headers, "w", timestamp=1) as array:
            array[objects([vcf.sample.encode() for vcf in vcfs])] = {"header": objects([vcf.header.encode() for vcf in vcfs])}
    else:
        dimension = tiledb.Dim("sample", domain=(0, LAST_POSITION - 10), tile=10, dtype=np.uint32)
        tiledb.Array.create(headers, tiledb.ArraySchema(domain=tiledb.Domain(dimension), attrs=header))
        with tiledb.open(headers, "w", timestamp=1) as array:
            array[0:len(vcfs)] = objects([vcf.header.encode() for vcf in vcfs])

    def listed(values):
        return np.bytes_(base64.b64encode(",".join(values).encode()))

    with tiledb.open(f"{path}/data", "w", timestamp=1) as array:
        def put(key, value, kind):
            array.meta[key] = kind(value)
        put("version", layout, np.uint32)
        put("anchor_gap", gap, np.uint32)
        put("tile_capacity", 10000, np.uint64)
        array.meta["extra_attributes"] = listed(extract)
        if layout < 4:
            put("row_tile_extent", 10, np.uint32)
            put("free_sample_id", len(samples), np.uint32)
            put("total_contig_length", total, np.uint32)
            array.meta["all_samples"] = listed(samples)
            array.meta["sample_ids"] = listed(f"{name}\t{number}" for name, number in sorted(samples.items()))
            array.meta["contig_offsets"] = listed(f"{name}\t{offset}" for name, offset in sorted(offsets.items()))
            array.meta["contig_lengths"] = listed(f"{name}\t{length}" for name, length in sorted(vcfs[0].contigs))
    with tiledb.Group(path, "w") as group:
        for name in ("data", "metadata"):
            group.add(name, name=name, relative=True)
        group.meta["dataset_type"] = "vcf"
    with tiledb.Group(f"{path}/metadata", "w") as group:
        group.add("vcf_headers", name="vcf_headers", relative=True)


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("vcfs", nargs="+")
    parser.add_argument("--layout", type=int, default=4, choices=(2, 3, 4))
    parser.add_argument("--anchor-gap", type=int, default=1000)
    parser.add_argument("--extract", default="", help="attributes of their own, such as fmt_GT,info_DP")
    parser.add_argument("--without-end", action="store_true", help="store no END, as early releases did")
    parser.add_argument("--batch", type=int, default=10, help="files that are written together")
    options = parser.parse_args()
    vcfs = []
    for name in options.vcfs:
        with open(name) as file:
            vcfs.append(Vcf(file.read()))
    write_dataset(options.dataset, vcfs, options.layout, options.anchor_gap, tuple(filter(None, options.extract.split(","))),
                  options.layout == 4 and not options.without_end, options.batch)


if __name__ == "__main__":
    main()
