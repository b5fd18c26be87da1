"""Writes datasets of TileDB-VCF that other tests do not have.

usage: make_datasets.py FOLDER

`types` has two files whose headers differ, and a field that neither defines. `statistics` has the arrays of statistics. Each
`broken_NAME` has a cell whose value is malformed, in its second fragment.
"""

import os
import struct
import sys

import numpy as np
import tiledb

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../fixtures/generators"))
import variants

START = "##fileformat=VCFv4.2\n##FILTER=<ID=PASS,Description=\"x\">\n"
END = "##contig=<ID=1,length=1000>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
FIRST = """##FILTER=<ID=low,Description="x">
##INFO=<ID=A,Number=1,Type=Integer,Description="x">
##INFO=<ID=B,Number=1,Type=Float,Description="x">
##INFO=<ID=C,Number=2,Type=Integer,Description="x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="x">
##FORMAT=<ID=phased,Number=1,Type=Integer,Description="x">
"""
SECOND = """##INFO=<ID=B,Number=2,Type=Float,Description="x">
##INFO=<ID=A,Number=.,Type=Float,Description="x">
##FILTER=<ID=low,Description="x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="x">
##FORMAT=<ID=GT_phased,Number=1,Type=String,Description="x">
"""


def vcf(sample, definitions, records):
    lines = "\n".join(record.replace(" ", "\t") for record in records)
    return variants.Vcf(f"{START}{definitions}{END}{sample}\n{lines}\n")


def types(path):
    first = ["1 10 . A C 5 low A=1;B=0.5;C=1,2;NEW=x GT:phased 0|1:3", "1 20 rs1 A . . . NEW=y;OTHER GT:MORE ./1:7"]
    second = ["1 10 . A C,G 6 low;PASS A=0.25,2;B=1,2 GT:GT_phased 1/2:t", "1 30 . A C . PASS C=4 GT 1"]
    variants.write_dataset(path, [vcf("a", FIRST, first), vcf("b", SECOND, second)], batch=1)


def statistics(path):
    types(path)
    with tiledb.Group(path, "w") as group:
        for name, texts, numbers in [
            ("variant_stats", ["allele"], ["ac", "n_hom"]), ("allele_count", ["ref", "alt", "filter", "gt"], ["count"]),
        ]:
            dimensions = [tiledb.Dim("contig", domain=(None, None), tile=None, dtype="ascii"),
                          tiledb.Dim("pos", domain=(0, 1000), tile=1000, dtype=np.uint32)]
            attributes = [tiledb.Attr(text, dtype="S0", var=True) for text in texts]
            attributes += [tiledb.Attr(number, dtype=np.int32) for number in numbers]
            tiledb.Array.create(f"{path}/{name}", tiledb.ArraySchema(
                domain=tiledb.Domain(*dimensions), attrs=attributes, sparse=True, allows_duplicates=True))
            with tiledb.open(f"{path}/{name}", "w") as array:
                data = {text: variants.objects([b"A,C", b"ref"]) for text in texts}
                array[variants.objects([b"1", b"1"]), np.array([9, 9], np.uint32)] = data | {
                    number: np.array([3, -1], np.int32) for number in numbers}
            group.add(name, name=name, relative=True)


def numbers(*values):
    return struct.pack(f"<{len(values)}i", *values)


BROKEN = {
    "count": {"info": numbers(2) + b"A\0" + numbers(1, 1, 7)},
    "length": {"info": numbers(1) + b"A\0" + numbers(1, 2, 7)},
    "kind": {"info": numbers(1) + b"A\0" + numbers(9, 1, 7)},
    "twice": {"info": numbers(2) + 2 * (b"A\0" + numbers(1, 1, 7))},
    "allele": {"fmt": numbers(1) + b"GT\0" + numbers(1, 2, 2, -6)},
    "filter": {"filter_ids": np.array([1, 77], np.int32)},
    "alleles": {"alleles": b"A,C"},
}


def broken(path, change):
    sound = vcf("a", FIRST, ["1 10 . A C 5 PASS A=1 GT 0/1", "1 12 . A C 5 PASS A=1 GT 0/1"])
    original = variants.cell

    def cell(record, extract, with_end):
        made = original(record, extract, with_end)
        return made | change if record.start == 11 else made

    variants.cell = cell
    variants.write_dataset(path, [sound, vcf("b", FIRST, ["1 50 . A C 5 PASS A=1 GT 1/1"])], batch=1)
    variants.cell = original


def main():
    types(f"{sys.argv[1]}/types")
    statistics(f"{sys.argv[1]}/statistics")
    for name, change in BROKEN.items():
        broken(f"{sys.argv[1]}/broken_{name}", change)


main()
