// What is shown, for other programs: commands that read the same selection, and downloads in other formats.
import { useEffect, useState } from "preact/hooks";
import { selection, type Pick } from "./dense/read";
import { takesLong } from "./about";
import { copyText, useWork } from "./parts";
import { selectionIn, timeIn } from "./place";
import { length, urlOf, type Names } from "./server";
import type { Attribute, Schema } from "./schema";
import { pythonCondition } from "./table/conditions";
import { shown, bytesText } from "./values";

interface Props {
  names: Names;
  schema: Schema;
  /** The part of a dense array that is drawn. */
  attribute?: Attribute;
  pick?: Pick;
}

/** Formats that hold an attribute, and those that hold the table: what they are for, and their paths. */
function formats(schema: Schema, attribute?: Attribute): [string, string][] {
  const has = (path: string) => attribute?.files.includes(path) || schema.files.some((file) => file.path === path);
  const name = attribute?.files.find((file) => file.startsWith("npy/"))?.slice(4, -4) ?? "";
  const all: [string, string][] = [
    ["NumPy", `npy/${name}.npy`],
    ["values, little-endian", attribute?.files[0] ?? ""],
    ["text", `text/${name}.txt`],
    ["CSV", "text/cells.csv"],
    ["TSV", "text/cells.tsv"],
    ["Parquet", "parquet/cells.parquet"],
    ["Arrow", "arrow/cells.arrow"],
    ["TIFF", `tiff/${name}.tif`],
    ["netCDF", "netcdf/array.nc"],
    ["netCDF-4", "netcdf4/array.nc"],
    ["HDF5", "hdf5/array.h5"],
  ];
  return all.filter(([, path]) => path && has(path));
}

/**
 * Returns a text as a word of a shell. What would not be shown as it is, or would end the line, is an escape between `$'`
 * and `'`, as bash, zsh and ksh read it.
 */
export function shellWord(text: string): string {
  if (/^[\w@%+:,./-]+$/.test(text)) return text.startsWith("-") ? `./${text}` : text;
  if (shown(text) === text) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = text.replace(/[\\']/g, "\\$&").replace(/./gsu, (one) => {
    if (shown(one) === one) return one;
    const bytes = new TextEncoder().encode(one);
    return Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  });
  return `$'${escaped}'`;
}

/** Returns a text as a literal in double quotes, as Python, R and JSON read it. What would not be shown as it is, is an escape. */
export function literal(text: string): string {
  return JSON.stringify(text).replace(/./gsu, (one) =>
    shown(one) === one ? one : Array.from({ length: one.length }, (_, at) => `\\u${one.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));
}

/** Returns commands that read what is shown. */
function commands(folder: Names, schema: Schema, attribute?: Attribute): [string, string][] {
  const all = new Map(formats(schema, attribute));
  const url = (path: string) => urlOf(folder, path);
  const path = (file: string) => ["MNT", ...folder, file].join("/");
  const [npy, tiff, parquet, csv, raw] = ["NumPy", "TIFF", "Parquet", "CSV", "values, little-endian"].map((name) => all.get(name));
  const one = npy ?? raw ?? csv ?? "";
  const condition = schema.array_type === "sparse" ? pythonCondition(selectionIn(folder).selection, schema) : null;
  const lines: [string, string | undefined][] = [
    ["Path in a mount", one && shellWord(path(one))],
    ["curl", one && `curl -O ${shellWord(url(one))}`],
    ["Python", npy ? `import io, urllib.request, numpy as np\na = np.load(io.BytesIO(urllib.request.urlopen(${literal(url(npy))}).read()))`
      : parquet && `import pandas as pd\nd = pd.read_parquet(${literal(url(parquet))})`],
    ["R", csv ? `d <- read.csv(${literal(url(csv))}, na.strings = "")` : all.get("text") && `m <- as.matrix(read.table(${literal(url(all.get("text")!))}))`],
    ["GDAL", tiff && `gdalinfo ${shellWord(`/vsicurl/${url(tiff)}`)}`],
    ["DuckDB", parquet && `duckdb -c ${shellWord(`SELECT * FROM '${url(parquet).replaceAll("'", "''")}' LIMIT 10`)}`],
    ["Condition in Python", condition ? `import tilefs\nd = tilefs.open(PATH).query(cond=${literal(condition)})[:]` : undefined],
    ["xarray", schema.array_type === "dense" ? `import xarray as xr\nd = xr.open_zarr(${literal(url("zarr"))}, consolidated=False)` : undefined],
  ];
  return lines.filter((line): line is [string, string] => !!line[1]);
}

export function Share({ names, schema, attribute, pick }: Props) {
  const isPart = pick && schema.shape && pick.some((one, at) => (typeof one === "number" ? schema.shape![at] > 1 : one.count < schema.shape![at]));
  const folder = isPart ? [...names, "islice", selection(pick)] : names;
  const all = commands(folder, schema, attribute);
  return (
    <section class="share" aria-label="Use it elsewhere">
      <CopyAs commands={all} />
      <h2>Download {isPart ? "this part" : "all of it"}</h2>
      <Downloads folder={folder} files={formats(schema, attribute)} isLong={takesLong(schema)} />
    </section>
  );
}

/** A command to copy, for a program to choose. */
export function CopyAs({ commands: all }: { commands: [string, string][] }) {
  const [chosen, setChosen] = useState(0);
  const [isCopied, setCopied] = useState(false);
  const [name, text] = all[Math.min(chosen, all.length - 1)] ?? ["", ""];
  useEffect(() => setCopied(false), [text]);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
  };
  return (
    <>
      <h2>Copy as</h2>
      <div class="bar">
        <select aria-label="Program" value={String(chosen)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
          {all.map(([name], at) => <option key={name} value={String(at)}>{name}</option>)}
        </select>
        <button onClick={copy} aria-label={`Copy as ${name}`}>{isCopied ? "copied" : "copy"}</button>
      </div>
      <pre class="command" tabIndex={0}>{text}</pre>
    </>
  );
}

/** Files to download, with their sizes once they are unfolded. */
export function Downloads({ folder, files, isLong }: { folder: Names; files: [string, string][]; isLong: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const sizes = useWork(async (signal) => {
    if (!isOpen) return new Map<string, number | null>();
    const known = new Map<string, number | null>();
    for (const [, path] of files) known.set(path, await length(folder, path, signal).catch(() => null));
    return known;
  }, [folder, isOpen, files.map(([, path]) => path)]);
  const at = timeIn(folder).time;
  return (
    <details class="downloads" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{files.length} format{files.length === 1 ? "" : "s"}{at ? `, as of ${at}` : ""}</summary>
      {isLong && <p class="quiet small">The size of a long table is known after a pass over its cells; a download begins with that.</p>}
      <ul class="files">
        {files.map(([name, path]) => (
          <li key={path}>
            <a href={urlOf(folder, path)} download={path.slice(path.lastIndexOf("/") + 1)}>{name}</a>
            <span class="quiet">{shown(path.slice(path.lastIndexOf("/") + 1))}</span>
            <span class="size">{!isOpen || !sizes.result ? "" : sizes.result.get(path) == null ? "cannot be read" : bytesText(sizes.result.get(path)!)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
