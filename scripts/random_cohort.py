#!/usr/bin/env python3
"""Writes the VCF files of a random cohort, one per sample, for tests of merging.

usage: scripts/random_cohort.py FOLDER SEED [--samples N] [--distinct-cells GAP]

There are few positions, so many samples have records at the same ones: SNPs, insertions and deletions, several alleles,
symbolic and spanning ones, breakends, reference blocks, records without an alternative allele. Genotypes have any
ploidy up to 3, are phased or not, and may have missing alleles. Headers differ in their definitions and their order.
With `--distinct-cells`, no two records of a sample have a cell at the same position if anchors are GAP apart. Layout 2
requires this.

The cohort has nothing that `bcftools merge` 1.16 refuses (values for each genotype of three alleles, texts for each
genotype) or loses (values of INFO fields after a missing one).
"""

import argparse
import os
import random

CONTIGS = ["chr2", "chr10", "chr1"]
LENGTH = 120
INFO = {
    "DP": "Number=1,Type=Integer", "DP4": "Number=4,Type=Integer", "END": "Number=1,Type=Integer",
    "AF": "Number=A,Type=Float", "AD": "Number=R,Type=Integer", "GC": "Number=G,Type=Integer",
    "SA": "Number=A,Type=String", "DB": "Number=0,Type=Flag", "NOTE": "Number=1,Type=String",
    "MQ": "Number=1,Type=Float", "AC": "Number=A,Type=Integer", "AN": "Number=1,Type=Integer",
    "L": "Number=.,Type=Integer",
}
FORMAT = {
    "GT": "Number=1,Type=String", "DP": "Number=1,Type=Integer", "AD": "Number=R,Type=Integer",
    "AF": "Number=A,Type=Float", "PL": "Number=G,Type=Integer", "GP": "Number=G,Type=Float", "FT": "Number=1,Type=String",
    "SA": "Number=A,Type=String", "SR": "Number=R,Type=String", "PS": "Number=.,Type=Integer",
}
FILTERS = ["q10", "s50", "LowQual"]


class Cohort:
    def __init__(self, seed, gap):
        self.random = random.Random(seed)
        self.gap = gap
        self.reference = {contig: "".join(self.random.choice("ACGT") for _ in range(LENGTH + 20)) for contig in CONTIGS}
        # The positions, and for each the records that samples choose from.
        self.sites = {contig: sorted(self.random.sample(range(LENGTH), self.random.randint(1, 25))) for contig in CONTIGS}
        self.pools = {(contig, at): self.pool(contig, at) for contig in CONTIGS for at in self.sites[contig]}

    def pool(self, contig, at):
        """Returns some records for a position: reference, alternative alleles, and length on the contig."""
        choose, reference = self.random, self.reference[contig]
        base = reference[at]
        other = [one for one in "ACGT" if one != base]
        pool = []
        for _ in range(choose.randint(1, 4)):
            length = choose.choice([1, 1, 1, 2, 3, 5])
            ref = reference[at:at + length]
            kind = choose.random()
            if kind < 0.35:
                length, ref = 1, base
                alt = choose.sample(other, choose.choice([1, 1, 1, 2, 3]))
            elif kind < 0.6:
                alt = sorted({base + "".join(choose.choice("ACGT") for _ in range(choose.randint(0, 3))) for _ in range(choose.randint(1, 3))} - {ref})
            elif kind < 0.7:
                alt = [choose.choice(other) + ref[1:], ref[:-1] + choose.choice("ACGT") if length > 1 else other[0]]
                alt = sorted(set(alt) - {ref})
            elif kind < 0.8:
                alt, length = [choose.choice(["<DEL>", "<INV>", "<DUP:TANDEM>"])], choose.randint(1, 40)
                ref = base
            elif kind < 0.92:
                ref, length = base, choose.choice([1, 7, 60])
                alt = ["<NON_REF>"]
            else:
                alt = [choose.choice(["*", f"{base}[chr1:50[", f"]chr2:7]{base}"])]
            if choose.random() < 0.15 and kind < 0.8:
                alt = alt + ["<NON_REF>"]
            if choose.random() < 0.1 and alt and alt[0][0] not in "<*[]" and "[" not in alt[0]:
                alt = alt + ["*"]
            if choose.random() < 0.08:
                alt = []
            if choose.random() < 0.05:
                ref = ref.lower()
            pool.append((ref, alt, length))
        return pool

    def vcf(self, sample):
        choose = self.random
        ploidy = choose.choice([2, 2, 2, 2, 1, 3])
        columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + sample
        lines, taken = [], set()
        chance = choose.choice([0.3, 0.7, 1.0])
        for contig in CONTIGS:
            for at in self.sites[contig]:
                if choose.random() > chance:
                    continue
                pool = self.pools[contig, at]
                for ref, alt, length in choose.sample(pool, min(len(pool), choose.choice([1, 1, 1, 2, 3]))):
                    alt = choose.sample(alt, len(alt)) if choose.random() < 0.2 else alt
                    alt = alt[:1] if len(alt) > 1 and choose.random() < 0.2 else alt
                    line, end = self.record(contig, at, ref, alt, length, ploidy)
                    if self.gap:
                        cells = {(contig, cell) for cell in [*range(at + self.gap, end - 1, self.gap), end - 1]}
                        if cells & taken:
                            continue
                        taken |= cells
                    lines.append(line)
        head = ["##fileformat=VCFv4.2", '##FILTER=<ID=PASS,Description="All filters passed">', f"##source={sample}"]
        definitions = [f'##INFO=<ID={name},{kind},Description="{name}, of a record">' for name, kind in INFO.items()]
        definitions += [f'##FORMAT=<ID={name},{kind},Description="{name} of a sample">' for name, kind in FORMAT.items()]
        definitions += [f'##FILTER=<ID={name},Description="{name}">' for name in FILTERS]
        definitions += ['##ALT=<ID=DEL,Description="Deletion">', f"##own{choose.randint(0, 2)}=x=1", f'##META=<ID={sample},x="y, z">']
        if choose.random() < 0.5:
            choose.shuffle(definitions)
        head += definitions + [f"##contig=<ID={contig},length=1000>" for contig in CONTIGS]
        return "\n".join(head + [columns] + lines) + "\n"

    def record(self, contig, at, ref, alt, length, ploidy):
        choose = self.random
        alleles, end = 1 + len(alt), at + len(ref)
        info, symbolic = [], any(one[0] == "<" for one in alt)
        numbers = lambda count: ",".join(str(choose.randint(0, 60)) for _ in range(count))
        floats = lambda count: ",".join(str(choose.randint(0, 64) / 64) for _ in range(count))
        words = lambda count: ",".join(choose.choice(["a", "bb", "c-c", "."]) for _ in range(count)) if count else "."
        genotypes = alleles * (alleles + 1) // 2
        possible = {
            "DP": lambda: numbers(1), "DP4": lambda: numbers(4), "MQ": lambda: floats(1), "NOTE": lambda: choose.choice(["x", "y%3Bz"]),
            "AF": lambda: choose.choice([floats(len(alt)), "."]), "AD": lambda: numbers(alleles), "GC": lambda: numbers(genotypes),
            "SA": lambda: words(len(alt)), "L": lambda: choose.choice([numbers(choose.randint(1, 4)), f"{numbers(1)},."]),
            "AC": lambda: numbers(len(alt)), "AN": lambda: numbers(1), "DB": lambda: None,
        }
        for name in choose.sample(sorted(possible), choose.randint(0, 6)):
            if name in ("AF", "SA", "AC") and not alt:
                continue
            value = possible[name]()
            info.append(name if value is None else f"{name}={value}")
        if symbolic and length > 1 or choose.random() < 0.03:
            end = at + max(length, 1)
            info.insert(choose.randint(0, len(info)), f"END={end}")
        own = choose.choice([ploidy, ploidy, ploidy, ploidy, 2]) if ploidy != 2 else 2
        fields = {}
        for name in ["GT"] * (choose.random() < 0.9) + choose.sample([name for name in FORMAT if name != "GT"], choose.randint(0, 5)):
            of_genotypes = {1: alleles, 2: genotypes}.get(own)
            if name in ("PL", "GP") and (of_genotypes is None or "GT" not in fields):
                continue
            if name in ("AF", "SA") and not alt:
                continue
            fields[name] = {
                "GT": lambda: "".join(
                    (choose.choice("/|") if place else "") + choose.choice([".", *map(str, range(alleles)), "0"]) for place in range(own)),
                "DP": lambda: choose.choice([numbers(1), "."]), "AD": lambda: choose.choice([numbers(alleles), "."]),
                "AF": lambda: choose.choice([floats(len(alt)), "."]), "FT": lambda: choose.choice(["PASS", "q10", "."]),
                "PL": lambda: choose.choice([numbers(of_genotypes), "."]), "GP": lambda: floats(of_genotypes),
                "SA": lambda: words(len(alt)), "SR": lambda: words(alleles), "PS": lambda: choose.choice([numbers(choose.randint(1, 3)), "."]),
            }[name]()
        quality = choose.choice([".", str(choose.randint(1, 99)), "30.5"])
        names = choose.choice([".", ".", "rs1", f"rs{choose.randint(2, 5)};x"])
        filters = choose.choice([".", "PASS", "PASS", ";".join(choose.sample(FILTERS, choose.randint(1, 2)))])
        format_ = ":".join(fields) or "."
        values = ":".join(fields.values()) or "."
        columns = [contig, str(at + 1), names, ref, ",".join(alt) or ".", quality, filters, ";".join(info) or ".", format_, values]
        return "\t".join(columns), end


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("seed", type=int)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--distinct-cells", type=int, metavar="GAP")
    options = parser.parse_args()
    cohort = Cohort(options.seed, options.distinct_cells)
    os.makedirs(options.folder, exist_ok=True)
    for number in range(options.samples or cohort.random.randint(2, 7)):
        with open(f"{options.folder}/S{number}.vcf", "w") as file:
            file.write(cohort.vcf(f"S{number}"))


if __name__ == "__main__":
    main()
