// A dataset of TileDB-VCF: its samples, and the records of a region with their genotypes.
import { useEffect, useState } from "preact/hooks";
import { Busy, Choice, Trouble, useWork } from "../parts";
import { remember } from "../place";
import { length, text, urlOf, type Names } from "../server";
import { CopyAs, literal, shellWord } from "../share";
import { bytesText, grouped, shown } from "../values";

/** The bytes of records, and of the list of samples, that are read. */
const MOST_RECORDS = 1 << 20, MOST_NAMES = 1 << 18;
/** Samples whose genotypes are shown, and records. */
const MOST_SAMPLES = 50, MOST_ROWS = 500;

/** Positions of a contig that are shown when nobody has asked for others. */
const MOST_POSITIONS = 100_000;

interface Contig {
  name: string;
  length: number | null;
}

export function VariantsView({ names, state }: { names: Names; state: URLSearchParams }) {
  const [region, setRegion] = useState(state.get("region") ?? "");
  const [asked, setAsked] = useState(region);
  const known = useWork(async (signal) => {
    const [listed, isAll] = await text(names, "vcf/samples.txt", MOST_NAMES, signal);
    // A name ends with its line; the last one may have been cut. The empty name is a name, too.
    const samples = listed.split("\n").slice(0, -1);
    // A region without records is a header, which names the contigs.
    const [header] = await text(names, `vcf/slice/1:1-1/${fileName(samples[0])}.vcf`, MOST_NAMES, signal);
    const contigs = [...header.matchAll(/^##contig=<ID=([^,>]+)(?:.*?length=(\d+))?/gm)].map(([, name, length]): Contig => ({ name, length: length ? Number(length) : null }));
    return { samples, isAll, contigs };
  }, [names]);
  const records = useWork(async (signal) => (asked ? readRecords(names, asked, signal) : null), [names, asked]);
  const first = known.result?.contigs[0];
  useEffect(() => {
    // There is something to see before anybody has asked for a region.
    if (!first || asked) return;
    setRegion(start(first));
    setAsked(start(first));
  }, [first]);
  if (known.error !== undefined) return <Trouble error={known.error} />;
  if (!known.result) return <p class="status"><Busy /></p>;
  const { samples, isAll, contigs } = known.result;
  const apply = (next: string) => {
    // Positions may have separators between thousands.
    const plain = next.trim().replace(/:[\d,\s-]+$/, (positions) => positions.replace(/[,\s]/g, ""));
    setRegion(next);
    setAsked(plain);
    remember({ region: plain || null });
  };
  return (
    <section>
      <p class="summary">{isAll ? "" : "more than "}{grouped(samples.length)} sample{samples.length === 1 ? "" : "s"}: {samples.slice(0, 12).map((sample) => shown(sample) || "(no name)").join(", ")}{samples.length > 12 && ", …"}</p>
      <form class="ranges" onSubmit={(event) => {
        event.preventDefault();
        apply(region);
      }}>
        <label class="choice"><span>Region</span><input value={region} placeholder="1:12000-13000" onInput={(event) => setRegion(event.currentTarget.value)} /></label>
        <button type="submit">Show</button>
        {contigs.slice(0, 26).map((contig) => <button type="button" class="link" key={contig.name} title={contig.length ? `${grouped(contig.length)} positions` : undefined}
          onClick={() => apply(start(contig))}>{shown(contig.name)}</button>)}
      </form>
      {records.error !== undefined ? <Trouble error={records.error} /> : asked && !records.result ? <p class="status"><Busy /></p> : records.result && <Records {...records.result} />}
      {asked && records.result && <Elsewhere names={names} region={asked} />}
    </section>
  );
}

/** Returns the region at the start of a contig. */
function start({ name, length }: Contig): string {
  return `${name}:1-${Math.min(length ?? MOST_POSITIONS, MOST_POSITIONS)}`;
}

/** Shows commands that read a region, and files of it with their sizes. */
function Elsewhere({ names, region }: { names: Names; region: string }) {
  const path = (ending: string) => `vcf/merged/${region}.${ending}`;
  const endings = ["vcf", "vcf.gz", "bcf"];
  const url = urlOf(names, path("bcf"));
  const commands: [string, string][] = [
    ["bcftools", `bcftools view ${shellWord(url)}`],
    ["Path in a mount", shellWord(["MNT", ...names, path("vcf.gz")].join("/"))],
    ["curl", `curl -o region.vcf ${shellWord(urlOf(names, path("vcf")))}`],
    ["Python", `import pysam\nv = pysam.VariantFile(${literal(url)})`],
  ];
  const { result: sizes } = useWork((signal) => Promise.all(endings.map((ending) => length(names, path(ending), signal).catch(() => null))), [names, region]);
  return (
    <section class="share" aria-label="Use it elsewhere">
      <CopyAs commands={commands} />
      <h2>Download this region</h2>
      <ul class="files">
        {endings.map((ending, at) => <li key={ending}><a download href={urlOf(names, path(ending))}>{ending}</a><span class="size">{sizes?.[at] == null ? "" : bytesText(sizes[at]!)}</span></li>)}
      </ul>
    </section>
  );
}

/** Returns the name of a sample's files. */
function fileName(sample: string): string {
  return sample === "" ? "%" : sample.replace(/[%/\\\x00-\x1f\x7f]|^\./g, (one) => "%" + one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0"));
}

interface Read {
  columns: string[];
  rows: string[][];
  isAll: boolean;
}

async function readRecords(names: Names, region: string, signal: AbortSignal): Promise<Read> {
  const [read, isAll] = await text(names, `vcf/merged/${region}.vcf`, MOST_RECORDS, signal);
  const lines = read.split("\n");
  // The last line may have been cut.
  lines.pop();
  const head = lines.find((line) => line.startsWith("#CHROM")) ?? "";
  const rows = lines.filter((line) => line && !line.startsWith("#")).map((line) => line.split("\t"));
  return { columns: head.slice(1).split("\t"), rows: rows.slice(0, MOST_ROWS), isAll: isAll && rows.length <= MOST_ROWS };
}

/** Returns the frequencies of the other alleles among the genotypes of a record, which have them by their numbers. */
function frequencies(row: string[]): string {
  const place = (row[8] ?? "").split(":").indexOf("GT");
  const count = row[4] === "." ? 0 : (row[4] ?? "").split(",").length;
  const alleles = place < 0 ? [] : row.slice(9).flatMap((sample) => (sample.split(":")[place] ?? "").split(/[/|]/)).filter((allele) => /^\d+$/.test(allele));
  if (alleles.length === 0) return "";
  return Array.from({ length: count }, (_, at) => String(Number((alleles.filter((allele) => Number(allele) === at + 1).length / alleles.length).toFixed(3)))).join(", ");
}

function Records({ columns, rows, isAll }: Read) {
  const keys = [...new Set(rows.flatMap((row) => (row[8] ? row[8].split(":") : [])))];
  const [field, setField] = useState("GT");
  const key = keys.includes(field) ? field : keys[0] ?? "GT";
  const fixed = columns.slice(0, 8);
  const samples = columns.slice(9, 9 + MOST_SAMPLES);
  if (rows.length === 0) return <p class="quiet">No record overlaps this region.</p>;
  return (
    <>
      {keys.length > 1 && <div class="controls"><Choice label="Field of samples" value={key} options={keys} onChange={setField} /></div>}
      <div class="scroll" tabIndex={0} role="region" aria-label="Records">
        <table class="grid">
          <thead><tr>{fixed.map((name, column) => <th key={name} scope="col" class={isNumber(column) ? "" : "text"}>{name}</th>)}<th scope="col">frequency</th>{samples.map((name) => <th key={name} scope="col">{shown(name) || "(no name)"}</th>)}</tr></thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {fixed.map((name, column) => <td key={name} class={isNumber(column) ? "" : name === "INFO" ? "text info" : "text"} title={shown(row[column]?.slice(0, 2000) ?? "")}>{shown(row[column]?.slice(0, 60) ?? "")}</td>)}
                <td>{frequencies(row)}</td>
                {samples.map((name, sample) => {
                  const own = row[8]?.split(":") ?? [];
                  const genotype = row[9 + sample]?.split(":")[own.indexOf(key)] ?? "";
                  return <td key={name} class={key === "GT" ? `genotype ${kindOf(genotype)}` : "genotype"} title={shown(`${row[8]} ${row[9 + sample]}`.slice(0, 400))}>{shown(genotype)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="status"><span>{isAll ? `${grouped(rows.length)} records` : `the first ${grouped(rows.length)} records`}{columns.length - 9 > MOST_SAMPLES && `, ${MOST_SAMPLES} of ${grouped(columns.length - 9)} samples`}</span></p>
    </>
  );
}

/** Returns whether a column of VCF, POS or QUAL, has numbers. */
function isNumber(column: number): boolean {
  return column === 1 || column === 5;
}

/** Returns how many of the alleles differ from the reference. */
function kindOf(genotype: string): string {
  const alleles = genotype.split(/[/|]/);
  if (!genotype || alleles.every((allele) => allele === ".")) return "missing";
  const carried = alleles.filter((allele) => allele !== "0" && allele !== ".").length;
  return carried === 0 ? "reference" : carried === alleles.length ? "both" : "carrier";
}
