"""Compares the tables of the variant calls of a dataset with what pysam reads from its VCF files.

usage: compare.py FOLDER LAYOUT

The folder has `records.json`, which read_vcf.py printed, and the table: cells.parquet, part.parquet, cells.arrow and cells.tsv.
"""

import csv
import json
import math
import sys

import duckdb
import numpy as np
import pyarrow.ipc
import pyarrow.parquet


def types_of(files):
    """Returns the type of each field, and whether it is a list, from all headers together."""
    all = {"info": {}, "fmt": {}}
    for file in files:
        for kind, fields in file["types"].items():
            for name, (number, type) in fields.items():
                type = {"Integer": "int", "Float": "float", "Flag": "flag"}.get(type, "text")
                is_list = type != "flag" and number not in ("0", "1")
                if (kind, name) == ("fmt", "GT"):
                    type, is_list = "int", True
                known, was_list = all[kind].get(name, (type, is_list))
                all[kind][name] = (type if known == type else "text", is_list or was_list)
    return all


def in_text(value):
    if isinstance(value, float):
        return np.format_float_positional(np.float32(value), trim="-")
    return "." if value is None else str(value)


def expected(value, type, is_list, is_genotype):
    if type == "flag":
        return bool(value)
    if type == "text" and value is not None and not isinstance(value, (str, list)):
        value = "true" if value is True else in_text(value)
    if is_list:
        if type == "text" and isinstance(value, list):
            # pysam does not convert a missing text in a list of texts.
            value = [None if one == "." else one for one in value]
        if value is None or (value == [None] and not is_genotype):
            return None
        # A field without a value.
        return list(value) if isinstance(value, list) else [value] if value else []
    if isinstance(value, list):
        assert len(value) <= 1 or type == "text", value
        value = ",".join(map(in_text, value)) if type == "text" and value != [None] else (value or [None])[0]
    return value


def same(found, wanted):
    if isinstance(wanted, list) or isinstance(found, list):
        both = isinstance(wanted, list) and isinstance(found, list)
        return both and len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float) and found is not None:
        return math.isnan(found) and math.isnan(wanted) or np.float32(found) == np.float32(wanted)
    return found == wanted


def place(row, layout):
    """Returns the sample, contig and first position, counted from 1."""
    if layout == 4:
        return row["sample"], row["contig"], row["real_start_pos"] + 1
    return row["sample_name"], row["contig"], row["pos_start"]


def is_anchor(row, layout):
    return row["end_pos"] != row["real_end"] if layout == 2 else row["start_pos"] != row["real_start_pos"]


def check_rows(rows, files, layout, what):
    types = types_of(files)
    found = {}
    for row in rows:
        if not is_anchor(row, layout):
            found.setdefault((*place(row, layout), *row["alleles"]), []).append(row)
    count = 0
    for file in files:
        sample = "" if file["sample"] == "" else file["sample"]
        for record in file["records"]:
            key = (sample, record["contig"], record["start"], *record["alleles"])
            candidates = found.get(key)
            assert candidates, (what, key, list(found)[:5])
            row = candidates.pop(0)
            count += 1
            assert row["id"] == record["id"], (what, key)
            assert same(row["qual"], record["qual"]), (what, key, row["qual"], record["qual"])
            assert row["filters"] == record["filters"], (what, key, row["filters"], record["filters"])
            end = row["pos_end"] if layout < 4 else row["end_pos"] + 1
            assert end == record["stop"], (what, key, end, record["stop"])
            for kind, fields in types.items():
                for name, (type, is_list) in fields.items():
                    is_genotype = (kind, name) == ("fmt", "GT")
                    wanted = expected(record[kind].get(name), type, is_list, is_genotype)
                    value = row[f"{kind}_{name}"]
                    # Early releases do not store it, and the VCF file has the end of the record.
                    if (kind, name) == ("info", "END") and value is None:
                        continue
                    assert same(value, wanted), (what, key, kind, name, value, wanted)
            if "GT" in types["fmt"]:
                assert row["fmt_GT_phased"] == record["phased"], (what, key)
            assert row["info_other"] is None and row["fmt_other"] is None
    left = [key for key, rows in found.items() if rows]
    assert not left, (what, left)
    return count


def check_text(path, files, layout):
    """Checks a text table: lists are as in VCF, and nulls are empty."""
    types = types_of(files)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    found = {}
    for row in rows:
        for name in ("start_pos", "end_pos", "real_start_pos", "real_end", "pos_start"):
            if name in row:
                row[name] = int(row[name])
        if not is_anchor(row, layout):
            found.setdefault((*place(row, layout), row["alleles"]), []).append(row)
    for file in files:
        for record in file["records"]:
            line = record["line"]
            alleles = line[3] if line[4] == "." else f"{line[3]},{line[4]}"
            row = found[(file["sample"], record["contig"], record["start"], alleles)].pop(0)
            assert row["filters"] == line[6].removesuffix(".") if line[6] == "." else row["filters"] == line[6]
            items = [] if line[7] == "." else [item.partition("=") for item in line[7].split(";")]
            info = {name: value for name, _, value in items}
            format = dict(zip(line[8].split(":"), line[9].split(":"))) if len(line) > 9 and line[8] != "." else {}
            for kind, texts in [("info", info), ("fmt", format)]:
                for name, (type, is_list) in types[kind].items():
                    value, text = row[f"{kind}_{name}"], texts.get(name, "")
                    if type == "flag":
                        assert value == ("true" if name in texts else "false")
                    elif (kind, name) == ("info", "END"):
                        assert value in ("", text)
                    elif text == "." and (kind, name) != ("fmt", "GT"):
                        assert value == "", (path, name, value)
                    elif type == "float" and text:
                        numbers = lambda text: [None if one == "." else float(one) for one in text.split(",")]
                        assert same(numbers(value), numbers(text)), (path, name, value, text)
                    else:
                        assert value == text, (path, kind, name, value, text)


def check_carriers(path, files):
    """Checks the number of samples that carry the first alternative allele."""
    query = f"SELECT count(DISTINCT SAMPLE) FROM '{path}' WHERE list_contains(fmt_GT, 1)"
    sample = "sample" if "sample_name" not in pyarrow.parquet.read_schema(path).names else "sample_name"
    [(count,)] = duckdb.sql(query.replace("SAMPLE", sample)).fetchall()
    carriers = {file["sample"] for file in files for record in file["records"] if 1 in (record["fmt"].get("GT") or ())}
    assert count == len(carriers), (count, carriers)
    alleles = f"SELECT count(*) FROM '{path}' WHERE len(list_filter(fmt_GT, lambda a: a IS NULL)) > 0"
    assert duckdb.sql(alleles).fetchall()[0][0] >= 0


def main():
    folder, layout = sys.argv[1], int(sys.argv[2])
    with open(f"{folder}/records.json") as file:
        files = json.load(file)
    for file in files:
        # "%" is the name of the file of a nameless sample.
        file["sample"] = "" if file["sample"] == "%" else file["sample"]
    tables = {
        "parquet": pyarrow.parquet.read_table(f"{folder}/cells.parquet"),
        "part": pyarrow.parquet.read_table(f"{folder}/part.parquet"),
        "arrow": pyarrow.ipc.open_file(f"{folder}/cells.arrow").read_all(),
        "duckdb": duckdb.sql(f"SELECT * FROM '{folder}/cells.parquet'").to_arrow_table(),
    }
    counts = set()
    for what, table in tables.items():
        table.validate(full=True)
        assert not {"info", "fmt"} & set(table.column_names), table.column_names
        counts.add(check_rows(table.to_pylist(), files, layout, what))
    assert tables["arrow"].schema.field("alleles").type.value_type == pyarrow.large_string()
    check_text(f"{folder}/cells.tsv", files, layout)
    check_carriers(f"{folder}/cells.parquet", files)
    [count] = counts
    print(count)


main()
