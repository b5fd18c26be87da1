#!/usr/bin/env python3
"""Makes tests/fixtures/variants.tar.zst: datasets of TileDB-VCF, and the VCF file of each sample that tilefs must show.

usage: scripts/make_variant_fixtures.py [--venv FOLDER]

Needs the packages of make_fixtures.py; with --venv, makes an environment there that has them and runs in it. The datasets are written by
variants.py. Names on disk differ in each run; everything else is the same.

The expected files are the files from which the datasets were made, with two differences. INFO and FORMAT fields that
have attributes of their own come after the others, in the order of the attributes; GT stays first. Layouts 2 and 3
store no END; the source files have it last, and only where it does not follow from the reference allele.
"""

import os
import shutil

from make_fixtures import MADE, PACKAGES, options_of, pack, remove_empty_folders

CONTIGS = [("chr10", 133_797_422), ("chr2", 242_193_529), ("chr1", 248_956_422), ("chrEmpty", 1000), ("HLA:01:01", 5000)]

HEADER = """##fileformat=VCFv4.2
##FILTER=<ID=PASS,Description="All filters passed">
##ALT=<ID=NON_REF,Description="Any allele, \\"<*>\\" elsewhere">
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">
##FILTER=<ID=q10,Description="Quality below 10, ID=x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">
##FILTER=<ID=s50,Description="Half of the samples">
##INFO=<ID=END,Number=1,Type=Integer,Description="Last position">
##INFO=<ID=AF,Number=A,Type=Float,Description="Frequencies">
##INFO=<ID=DB,Number=0,Type=Flag,Description="In dbSNP">
##INFO=<ID=ANN,Number=.,Type=String,Description="Annotation">
##INFO=<ID=SVTYPE,Number=1,Type=String,Description="Kind">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="Depths of alleles">
##FORMAT=<ID=GP,Number=G,Type=Float,Description="Probabilities">
##FORMAT=<ID=FT,Number=1,Type=String,Description="Filter">
##FORMAT=<ID=PS,Number=1,Type=Integer,Description="Phase set">
"""

# Contig, position, identifier, alleles, quality, filters, INFO, FORMAT and values. Layouts 2 and 3 keep the order of
# records at the same position only if their ends are in that order, too.
FIRST = """
chr10 5 . A C 30.5 PASS DP=12;AF=0.25;DB GT:DP:AD 0/1:12:6,6
chr10 7 rs1;rs2 G T,<NON_REF> . q10;s50 AF=0.00001,.;ANN=T|stop,lost|x=y GT:AD:GP:FT 1|2:.,3,.:0.5,.,1e+20,-3.25,.:q10
chr10 7 . GA G 0 . . GT ./.
chr10 40 . N <DEL> 99 PASS SVTYPE=DEL;END=1240 GT:DP 1:3
chr10 90 . C <NON_REF> . . END=450 GT:DP 0/0:20
chr10 95 . T . . PASS DP=. GT:PS 0|0:.
chr10 1300 . A *,AT 7.1 PASS DB GT:AD 0/1/2|1:1,2,3
chr2 17 . A C . PASS AF=0.125 DP:FT 4:a;b=c
chr2 1000000 . A C 3 PASS DP=7 GT .
chr1 1 first A G 0.0001 PASS . GT:DP:AD:GP 0|1:2147483647:-2147483640,0:0.1,0.2,0.7
chr1 248956422 last T C 3.4e+38 s50 DP=-5;ANN=é GT:PS 1/1:77
HLA:01:01 100 . T C 1 PASS . GT:DP 1|0:.
"""

SECOND = """
chr10 5 . A C . PASS . GT:DP 0/0:1
chr10 41 . G <NON_REF> . . END=340 GT:DP 0/0:5
chr10 42 . G A 55 PASS DB GT:DP 1/1:6
chr1 100 . CAG C . PASS . . .
"""

# Only in layout 4: a contig that the header does not name.
UNNAMED = "chrUn 50 . A T . PASS . GT:DP 0/1:8\n"

NAMELESS = """
chr10 5 rs9 A C 30.5 PASS AF=0.25
chr1 6 . A C . . .
"""


# Contigs without records, for one of the datasets. They make its headers longer than libtiledb's chunks, as in datasets
# of human genomes.
DECOYS = [(f"chrUn_KI27{number:04}v1_decoy", 1000 + number) for number in range(2500)]


def vcf(sample, records, end_first=False, decoys=()):
    """Returns the text of a VCF file; with `None` as the sample, the file has no sample."""
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO"] + ([] if sample is None else ["FORMAT", sample])
    lines = ["\t".join(line.split(" ")) for line in records.strip().split("\n")]
    if end_first:
        lines = [reordered(line, 7, ";", lambda name: name != "END") for line in lines]
    contigs = "".join(f"##contig=<ID={name},length={length}>\n" for name, length in [*CONTIGS, *decoys])
    return HEADER + contigs + "\n".join(["\t".join(columns), *lines]) + "\n"


def reordered(line, column, separator, key):
    """Sorts the fields in a column of a line. If that is FORMAT, reorders the values in the next column accordingly."""
    fields = line.split("\t")
    names = fields[column].split(separator)
    order = sorted(range(len(names)), key=lambda at: key(names[at].split("=")[0]))
    for number in range(column, column + (2 if column == 8 else 1)):
        values = fields[number].split(separator)
        fields[number] = separator.join(values[at] for at in order)
    return "\t".join(fields)


def shown(text, extract):
    """Returns the file that tilefs shows: fields with attributes of their own come last."""
    def place(kind, name):
        attribute = f"{kind}_{name}"
        return (name != "GT" or kind == "info", extract.index(attribute) + 1 if attribute in extract else 0)

    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            line = reordered(line, 7, ";", lambda name: place("info", name))
            if line.count("\t") > 8:
                line = reordered(line, 8, ":", lambda name: place("fmt", name))
        lines.append(line + "\n")
    return "".join(lines)


def main():
    root = options_of(__doc__, "variants", PACKAGES)
    from variants import Vcf, write_dataset

    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    datasets = {
        "v2": (2, 100, ()), "v3": (3, 100, ()), "v4": (4, 100, ()),
        "extracted": (4, 10_000, ("fmt_DP", "info_AF", "fmt_GT", "info_DB")),
    }
    for name, (layout, gap, extract) in datasets.items():
        decoys = DECOYS if name == "extracted" else ()
        second = SECOND + (UNNAMED if layout == 4 else "")
        files = {"NA/1": vcf("NA/1", FIRST, layout == 4, decoys), "B 2": vcf("B 2", second, layout == 4, decoys)}
        if layout == 4:
            files["%"] = vcf(None, NAMELESS, False, decoys)
        # Each sample has its own fragments, so that those of layout 4 overlap.
        write_dataset(f"{root}/{name}", [Vcf(text) for text in files.values()], layout, gap, extract, batch=1)
        os.makedirs(f"{root}/expected/{name}")
        for sample, text in files.items():
            with open(f"{root}/expected/{name}/{sample.replace('/', '%2F')}.vcf", "w") as file:
                file.write(shown(text, extract))
    remove_empty_folders(root)
    pack("variants", os.path.dirname(root), os.path.basename(root))


if __name__ == "__main__":
    main()
