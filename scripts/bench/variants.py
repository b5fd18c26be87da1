"""Reads a TileDB-VCF dataset of a cohort of 280 samples with 100,000 records each: compares `tilefs cat` of all samples
merged with `bcftools merge -m none` of their files, and reads the file of one sample through a fresh mount. The second
table has the processor time of `tilefs cat`, beside that of an older binary if TILEFS_OLD names one.

TILEFS_BENCH_SAMPLES and TILEFS_BENCH_RECORDS change the size."""

import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

from .common import HOME, TILEFS, alternate, made, mounted, ratio, seconds, table, timed, warm

SAMPLES = int(os.environ.get("TILEFS_BENCH_SAMPLES", 280))
RECORDS = int(os.environ.get("TILEFS_BENCH_RECORDS", 100_000))
# The cohort has this many sites for each record of a sample.
SPARSITY = 4
CONTIGS = {"1": 249250621, "2": 243199373}
BASES = np.array(list("ACGT"))
HEADER = """##fileformat=VCFv4.2
##FILTER=<ID=PASS,Description="All filters passed">
##FILTER=<ID=LowQual,Description="Low quality">
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">
##INFO=<ID=AF,Number=A,Type=Float,Description="Allele frequency">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="Depths of alleles">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Quality of the genotype">
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Likelihoods">
""" + "".join(f"##contig=<ID={name},length={length}>\n" for name, length in CONTIGS.items())


def sites():
    """Returns the sites of the cohort: for each contig the positions, with two bases each."""
    random = np.random.default_rng(1)
    count = RECORDS * SPARSITY // len(CONTIGS)
    found = {}
    for contig, length in CONTIGS.items():
        positions = np.sort(random.choice(length // 100, count, replace=False)) * 100 + 7
        ref = random.integers(0, 4, count)
        found[contig] = positions, ref, (ref + random.integers(1, 4, count)) % 4
    return found


def records_of(sample, all_sites):
    """Yields the records of a sample, contig by contig: positions, reference and alternative bases, genotypes and
    depths."""
    random = np.random.default_rng(1000 + sample)
    for contig, (positions, ref, alt) in all_sites.items():
        chosen = np.sort(random.choice(len(positions), RECORDS // len(CONTIGS), replace=False))
        genotype = random.integers(1, 3, len(chosen))
        depths = random.integers(5, 60, (len(chosen), 2))
        yield contig, positions[chosen], BASES[ref[chosen]], BASES[alt[chosen]], genotype, depths


def field(name, kind, *values):
    """Returns a field of each record as TileDB-VCF stores it. All have the same length."""
    count = len(values[0])
    head = np.frombuffer(name.encode() + b"\0" + np.array([kind, len(values)], "<u4").tobytes(), np.uint8)
    numbers = np.stack([np.asarray(value) for value in values], 1).astype("<f4" if kind == 2 else "<i4")
    return np.concatenate([np.tile(head, (count, 1)), numbers.view(np.uint8).reshape(count, -1)], 1)


def blobs(*fields):
    count = np.tile(np.array([len(fields)], "<u4").view(np.uint8), (len(fields[0]), 1))
    rows = np.ascontiguousarray(np.concatenate([count, *fields], 1))
    cells = np.empty(len(rows), dtype=object)
    cells[:] = list(rows)
    return cells


def write_cohort(path):
    """Writes the files of the samples (`vcf/`) and a dataset with the same records (`dataset/`)."""
    import tiledb

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/fixtures/generators"))
    from variants import Vcf, objects, write_dataset

    os.makedirs(f"{path}/vcf")
    all_sites = sites()
    columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
    names = [f"S{number:05}" for number in range(SAMPLES)]
    # Write the arrays, the headers and the metadata without records, which follow below.
    write_dataset(f"{path}/dataset", [Vcf(f"{HEADER}{columns}{name}\n") for name in names])
    for first in range(0, SAMPLES, 10):
        cells = {name: [] for name in ("contig", "start_pos", "sample", "alleles", "dp", "ad", "genotype", "pl")}
        for number in range(first, min(first + 10, SAMPLES)):
            with open(f"{path}/vcf/{names[number]}.vcf", "w") as file:
                file.write(f"{HEADER}{columns}{names[number]}\n")
                for contig, positions, ref, alt, genotype, depths in records_of(number, all_sites):
                    total = depths.sum(1)
                    quality = genotype * 30 + positions % 30
                    file.writelines(
                        f"{contig}\t{at + 1}\t.\t{r}\t{a}\t50\tPASS\tDP={dp};AF={gt / 2:g}\tGT:AD:DP:GQ:PL\t{gt - 1}/1:{one},{other}:{dp}:{gq}:{gq},0,{2 * dp}\n"
                        for at, r, a, gt, (one, other), dp, gq in zip(
                            positions.tolist(), ref, alt, genotype.tolist(), depths.tolist(), total.tolist(), quality.tolist()))
                    count = len(positions)
                    cells["contig"].append(np.full(count, contig, "S8"))
                    cells["start_pos"].append(positions)
                    cells["sample"].append(np.full(count, names[number], "S8"))
                    cells["alleles"].append(np.char.add(np.char.add(np.char.add(ref, ","), alt), "\0").astype("S4"))
                    cells["dp"].append(total)
                    cells["ad"].append(depths)
                    cells["genotype"].append(genotype)
                    cells["pl"].append(quality)
            subprocess.run(["bgzip", f"{path}/vcf/{names[number]}.vcf"], check=True)
            subprocess.run(["tabix", "-p", "vcf", f"{path}/vcf/{names[number]}.vcf.gz"], check=True)
        cells = {name: np.concatenate(parts) for name, parts in cells.items()}
        count, genotype = len(cells["dp"]), cells["genotype"]
        same = lambda value: objects([value] * count)
        filters = np.array([1, 0], np.int32)
        # NumPy mistakes a NUL at the end of a text for padding, so append it here.
        alleles = objects([allele + b"\0" for allele in cells["alleles"].tolist()])
        data = {
            "real_start_pos": cells["start_pos"].astype(np.uint32), "end_pos": cells["start_pos"].astype(np.uint32),
            "qual": np.full(count, 50, np.float32), "alleles": alleles, "id": same(b".\0"), "filter_ids": same(filters),
            "info": blobs(field("DP", 1, cells["dp"]), field("AF", 2, genotype / 2)),
            "fmt": blobs(
                field("GT", 1, genotype * 2, np.full(count, 4)), field("AD", 1, cells["ad"][:, 0], cells["ad"][:, 1]), field("DP", 1, cells["dp"]),
                field("GQ", 1, cells["pl"]), field("PL", 1, cells["pl"], np.zeros(count), 2 * cells["dp"])),
        }
        with tiledb.open(f"{path}/dataset/data", "w", timestamp=first + 1) as array:
            array[objects(cells["contig"].tolist()), cells["start_pos"].astype(np.uint32), objects(cells["sample"].tolist())] = data


def measured(command):
    """Returns the seconds and the peak memory in MiB of a program that writes to /dev/null."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        used = timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True))
        os.write(write, f"{used} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        figures = pipe.read().split()
    os.waitpid(child, 0)
    return float(figures[0]), float(figures[1])


def processor_seconds(command):
    """Returns the processor time of a program that writes to /dev/null."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processor_times(dataset):
    """Compares the processor time of two binaries, or shows that of one."""
    old = os.environ.get("TILEFS_OLD")
    rows = []
    for file in ["vcf/S00000.vcf", "vcf/S00000.bcf", "vcf/merged/all.vcf", "vcf/merged/all.bcf"]:
        cat = lambda binary: lambda: processor_seconds([binary, "cat", "--index-dir", "none", dataset, file])
        a, *b = alternate(*map(cat, [TILEFS, *filter(None, [old])]))
        rows.append([file, seconds(a), *map(seconds, b), *[ratio(a, times) for times in b]])
    table("variants: processor time of tilefs cat", ["file", "median (best)", *(["old: median (best)", "faster by"] if old else [])], rows)


def run():
    path = made(f"cohort-{SAMPLES}-{RECORDS}", write_cohort)
    warm(path)
    with tempfile.NamedTemporaryFile("w") as files:
        files.writelines(f"{path}/vcf/{name}\n" for name in sorted(os.listdir(f"{path}/vcf")) if name.endswith(".gz"))
        files.flush()
        memory = {"ours": 0.0, "theirs": 0.0}

        def side(name, command):
            used, peak = measured(command)
            memory[name] = max(memory[name], peak)
            return used

        ours = ["cat", "--cache-size", "24MiB", f"{path}/dataset", "vcf/merged/all.vcf"]
        theirs = ["bcftools", "merge", "-m", "none", "--no-version", "--threads", str(os.cpu_count()), "-l", files.name]
        a, b = alternate(lambda: side("ours", [TILEFS, *ours]), lambda: side("theirs", theirs))
    rows = [["all samples merged", seconds(a), seconds(b), ratio(a, b), f"{memory['ours']:.0f} MiB", f"{memory['theirs']:.0f} MiB"]]
    sample = "vcf/S00000.vcf"

    def one():
        with mounted(f"{path}/dataset", "--index-dir", "none") as mount:
            return timed(lambda: subprocess.run(["cat", f"{mount.path}/{sample}"], stdout=subprocess.DEVNULL, check=True))

    a, b = alternate(one, lambda: side("theirs", ["bcftools", "view", f"{path}/vcf/S00000.vcf.gz"]))
    rows.append(["one sample, fresh mount (bcftools view of its file)", seconds(a), seconds(b), ratio(a, b), "", ""])
    title = f"variants: {SAMPLES} samples x {RECORDS:,} records"
    table(title, ["what", "tilefs: median (best)", "bcftools: median (best)", "faster by", "tilefs, peak", "bcftools, peak"], rows)
    processor_times(f"{path}/dataset")
