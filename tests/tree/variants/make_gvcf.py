"""Writes a gVCF file of random blocks and variants, the reference genome of its contigs, and a dataset of TileDB-VCF.

usage: make_gvcf.py FOLDER SEED LAYOUT [overlapping | long]

The folder gets `dataset` and `ref.fa`. No two records begin at the same position. Each begins after the end of the
previous one, unless they are `overlapping`. `long` has fewer records, and blocks of hundreds of thousands of sites.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../fixtures/generators"))
import variants

HEAD = """##fileformat=VCFv4.2
##FILTER=<ID=PASS,Description="All filters passed">
##FILTER=<ID=low,Description="x">
##INFO=<ID=DP,Number=1,Type=Integer,Description="x">
##INFO=<ID=END,Number=1,Type=Integer,Description="x">
##INFO=<ID=NOTE,Number=1,Type=String,Description="x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="x">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=GQ,Number=1,Type=Float,Description="x">
"""
BLOCKS = ["<NON_REF>", ".", "<*>", "<X>", "<DEL>,<*>", "<NON_REF>,A"]
OTHERS = ["A", "A,<NON_REF>", "<DEL>", "<INV>,<DEL>", "*,<*>"]


def reference(choose, contigs, path):
    """Writes a FASTA file with lines of any length, and returns the sequences."""
    sequences = {}
    with open(path, "w", newline="") as file:
        for contig, length in contigs:
            line_break, width = choose.choice(["\n", "\r\n"]), choose.choice([1, 7, 60, length + 5])
            bases = "".join(choose.choices("ACGTacgtNnRYKM", k=length))
            file.write(f">{contig} a contig{line_break}")
            file.writelines(bases[at:at + width] + line_break for at in range(0, length, width))
            sequences[contig] = bases
    return sequences


def records(choose, contig, bases, kind, longest):
    at, taken = choose.randint(0, 3), set()
    while at < len(bases):
        is_block = choose.random() < 0.6
        alt = choose.choice(BLOCKS if is_block else OTHERS)
        length = min(choose.choice([1, 2, 9, 60, longest]), len(bases) - at)
        ref, info = bases[at], [f"DP={choose.randint(0, 99)}"]
        if not is_block and choose.random() < 0.5:
            # The reference allele has the length, where no END says it.
            length = min(length, 9)
            ref = bases[at:at + length]
        elif alt[0] in "<." and choose.random() < 0.9:
            info.insert(choose.randint(0, 1), f"END={at + length}")
        else:
            length = 1
        if choose.random() < 0.3:
            info.append("NOTE=x")
        sample = choose.choice(["GT\t0/0", "GT:DP:GQ\t0|0:7:0.5", "DP\t."])
        if at not in taken:
            yield f"{contig}\t{at + 1}\t.\t{ref}\t{alt}\t.\t{choose.choice(['.', 'PASS', 'low'])}\t{';'.join(info)}\t{sample}"
            taken.add(at)
        if kind == "overlapping":
            at += choose.choice([0, 1, 5, 40])
        else:
            at += length + choose.choice([0, 0, 1, 30])


def main():
    folder, seed, layout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kind = sys.argv[4] if len(sys.argv) > 4 else ""
    choose = random.Random(seed)
    contigs = [("chr2", 900), ("chr10", 2000), ("chr1", 300)]
    if kind == "long":
        contigs = [("chr2", 700_000), ("chr10", 300_000)]
    sequences = reference(choose, contigs, f"{folder}/ref.fa")
    longest = 290_000 if kind == "long" else 400
    lines = [line for contig, _ in contigs for line in records(choose, contig, sequences[contig], kind, longest)]
    head = HEAD + "".join(f"##contig=<ID={contig},length={length}>\n" for contig, length in contigs)
    columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts"
    file = variants.Vcf(head + "\n".join([columns, *lines]) + "\n")
    variants.write_dataset(f"{folder}/dataset", [file], layout, gap=50 if kind != "long" else 1000)


main()
