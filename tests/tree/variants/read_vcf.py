"""Prints as JSON what pysam reads from the VCF files of a folder: the types of their fields, and each record.

usage: read_vcf.py FOLDER
"""

import json
import os
import sys
from urllib.parse import unquote

import pysam


def plain(value):
    return list(value) if isinstance(value, tuple) else value


def info_of(record, name, text):
    if name == "END":
        # pysam shows END only as the end of the record.
        return int(text)
    if record.header.info[name].number == "G":
        # pysam treats fields with one value per genotype as fields of samples.
        convert = {"Integer": int, "Float": float}.get(record.header.info[name].type, str)
        return [None if one == "." else convert(one) for one in text.split(",")]
    return plain(record.info[name])


def record_of(record, has_sample):
    columns = str(record).rstrip("\n").split("\t")
    items = [] if columns[7] == "." else [item.partition("=") for item in columns[7].split(";")]
    ends = [int(text) for name, _, text in items if name == "END"]
    # pysam finds the end only where the header defines END.
    stop = ends[0] if ends else record.pos - 1 + len(columns[3])
    info = {name: info_of(record, name, text) for name, _, text in items}
    format, phased = {}, None
    if has_sample:
        call = record.samples[0]
        format = {name: plain(call[name]) for name in record.format.keys()}
        if len(format.get("GT") or ()) > 1:
            phased = call.phased
    return {
        "contig": record.contig, "start": record.pos, "stop": stop, "id": record.id or ".",
        "alleles": list(record.alleles), "qual": record.qual, "filters": list(record.filter.keys()) or None,
        "info": info, "fmt": format, "phased": phased, "line": columns,
    }


def main():
    files = []
    for name in sorted(os.listdir(sys.argv[1])):
        if not name.endswith(".vcf"):
            continue
        with pysam.VariantFile(f"{sys.argv[1]}/{name}") as file:
            types = {
                kind: {name: [str(field.number), field.type] for name, field in fields.items()}
                for kind, fields in [("info", file.header.info), ("fmt", file.header.formats)]
            }
            has_sample = len(file.header.samples) > 0
            records = [record_of(record, has_sample) for record in file]
        files.append({"sample": unquote(name.removesuffix(".vcf")), "types": types, "records": records})
    json.dump(files, sys.stdout)


main()
