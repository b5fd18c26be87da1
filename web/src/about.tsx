// What is known of a node beside its values: schema, metadata, writes, and all files with the programs that open them.
import { useEffect, useState } from "preact/hooks";
import { Busy, Trouble, useWork } from "./parts";
import { jsonIfThere, length, list, urlOf, type Names } from "./server";
import { labelsOf, type Dimension, type Metadatum, type Schema } from "./schema";
import { bytesText, grouped, shown, shownLines, typeText } from "./values";

/** Lines of a table that are shown before the reader asks for more. */
const MOST_LINES = 100;

/** Shows a long list in pieces. */
function useSome<T>(all: T[]): [T[], preact.JSX.Element | null] {
  const [most, setMost] = useState(MOST_LINES);
  const more = all.length > most ? <button class="link" onClick={() => setMost(most * 5)}>{grouped(all.length - most)} more</button> : null;
  return [all.slice(0, most), more];
}

export function SchemaView({ schema }: { schema: Schema }) {
  const [attributes, more] = useSome(schema.attributes);
  return (
    <>
      <h2>Dimensions</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Dimensions">
        <table class="plain">
          <thead><tr><th scope="col">name</th><th scope="col">type</th><th scope="col">domain</th><th scope="col">tile</th><th scope="col">filters</th></tr></thead>
          <tbody>{schema.dimensions.map((dimension) => (
            <tr key={dimension.name}>
              <th scope="row">{shown(dimension.name)}</th><td>{typeText(dimension.datatype, dimension.unit)}</td><td>{domainText(dimension)}</td>
              <td>{dimension.tile_extent === null ? "" : String(dimension.tile_extent)}</td><td>{dimension.filters.map((filter) => filter.name.toLowerCase()).join(", ")}</td>
            </tr>))}</tbody>
        </table>
      </div>
      <h2>Attributes</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Attributes">
        <table class="plain">
          <thead><tr><th scope="col">name</th><th scope="col">type</th><th scope="col">null</th><th scope="col">fill</th><th scope="col">labels</th><th scope="col">filters</th></tr></thead>
          <tbody>{attributes.map((attribute) => (
            <tr key={attribute.name}>
              <th scope="row">{shown(attribute.name) || "(no name)"}</th><td>{typeText(attribute.datatype, attribute.unit, attribute.values_per_cell)}</td><td>{attribute.nullable ? "yes" : ""}</td>
              <td>{shown(String(attribute.fill).slice(0, 40))}</td>
              <td>{attribute.enumeration ? shown(labelsOf(schema, attribute)?.slice(0, 5).join(", ") ?? attribute.enumeration) : ""}</td>
              <td>{attribute.filters.map((filter) => filter.name.toLowerCase()).join(", ")}</td>
            </tr>))}</tbody>
        </table>
      </div>
      {more}
      <p class="quiet">{schema.tile_order} tiles, {schema.cell_order} cells, format version {schema.format_version}{schema.allows_duplicates ? ", duplicates allowed" : ""}</p>
      {schema.warnings.map((warning) => <p key={warning} class="trouble">{shown(warning)}</p>)}
    </>
  );
}

function domainText(dimension: Dimension): string {
  const range = dimension.current_domain_text ?? dimension.current_domain ?? dimension.domain_text ?? dimension.domain;
  return range ? shown(`${range[0]} to ${range[1]}`) : "any text";
}

export function MetadataView({ names, metadata }: { names: Names; metadata?: Record<string, Metadatum> }) {
  const { result, error } = useWork(async (signal) => metadata ?? (await jsonIfThere<Record<string, Metadatum>>(names, "meta.json", signal)) ?? {}, [names]);
  const [entries, more] = useSome(Object.entries(result ?? {}));
  if (error !== undefined) return <Trouble error={error} />;
  if (!result) return <p class="status"><Busy /></p>;
  if (entries.length === 0) return <p class="quiet">There is no metadata.</p>;
  return (
    <>
      <dl class="metadata">
        {entries.map(([key, value]) => <div key={key}><dt>{shown(key)}</dt><dd><pre tabIndex={0}>{shownLines(metadatumText(value))}</pre></dd></div>)}
      </dl>
      {more}
    </>
  );
}

function metadatumText(value: Metadatum): string {
  const text = value.text ?? value.values?.join(", ") ?? value.hex ?? "";
  return text.length > 5000 ? `${text.slice(0, 5000)}… (${grouped(text.length)} characters)` : text;
}

/** The formats of schema.json in the order in which people look for them, with programs that open each. */
const PROGRAMS: Record<string, string> = {
  raw: "NumPy (fromfile, memmap), R (readBin), Fortran, C", npy: "NumPy, Julia", text: "awk, gnuplot, R", "netCDF": "ncdump, xarray, CDO, Panoply",
  "netCDF-4": "xarray, ncdf4, Panoply", HDF5: "h5py, MATLAB, IDL, R", Zarr: "xarray, zarr, napari", "Zarr, version 2": "zarr-python 2, GDAL", BigTIFF: "QGIS, GDAL, ImageJ",
  Parquet: "DuckDB, Polars, Spark, pandas", Arrow: "pyarrow, Polars, R", "ENVI header": "ENVI, GDAL, QGIS", "GDAL virtual raster": "QGIS, GDAL", coordinates: "as for values",
};

interface Listed {
  name: string;
  type: string;
  size?: number;
}

/** Returns whether the size of a text of the table takes a long pass. */
export function takesLong(schema: Schema): boolean {
  return schema.array_type === "sparse" && (schema.rows ?? Infinity) > 1 << 20;
}

/** Asks for the sizes of files, one after the other; a text says why there is none. */
function useSizes(names: Names, files: string[], isAsked: boolean): Map<string, number | string> {
  const [sizes, setSizes] = useState(new Map<string, number | string>());
  const key = JSON.stringify([names, files, isAsked]);
  useEffect(() => {
    const abort = new AbortController();
    const ask = async () => {
      for (const file of isAsked ? files.filter((file) => !sizes.has(file)) : []) {
        const size = await length(names, file, abort.signal).catch(() => "cannot be read");
        if (abort.signal.aborted) return;
        setSizes((before) => new Map(before).set(file, size));
      }
    };
    void ask();
    return () => abort.abort();
  }, [key]);
  return sizes;
}

export function FilesView({ names, schema, entries }: { names: Names; schema?: Schema; entries?: Listed[] }) {
  const { result, error } = useWork(async (signal) => (schema ? schema.files.map((file) => ({ name: file.path, note: PROGRAMS[file.format] ?? file.format, size: file.bytes }))
    : (entries ?? (await list(names, signal))).map((entry) => ({ name: entry.name + (entry.type === "directory" ? "/" : ""), note: "", size: entry.size ?? null }))), [names]);
  const [files, more] = useSome(result ?? []);
  const [isAsked, setAsked] = useState(!schema || !takesLong(schema));
  const sizes = useSizes(names, files.filter((file) => file.size === null && !file.name.endsWith("/")).map((file) => file.name), isAsked);
  const sizeText = (name: string, size: number | null) => {
    const known = size ?? sizes.get(name);
    return known === undefined || known === null ? "" : typeof known === "string" ? known : Number.isNaN(known) ? "folder" : bytesText(known);
  };
  if (error !== undefined) return <Trouble error={error} />;
  if (!result) return <p class="status"><Busy /></p>;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Files">
        <table class="plain">
          <thead><tr><th scope="col">file</th><th scope="col">opened by</th><th scope="col">size</th></tr></thead>
          <tbody>{files.map((file) => (
            <tr key={file.name}><th scope="row"><a href={urlOf(names, file.name)}>{shown(file.name)}</a></th><td>{file.note}</td><td>{sizeText(file.name, file.size)}</td></tr>
          ))}</tbody>
        </table>
      </div>
      {more}
      {!isAsked && <p><button class="link" onClick={() => setAsked(true)}>Measure the others</button> <span class="quiet small">The size of a long table is known after a pass over its cells.</span></p>}
      {!!schema?.files_left_out && <p class="quiet">{grouped(schema.files_left_out)} files of further attributes are not in this list.</p>}
      {schema && schema.not_listed.length > 0 && <details><summary>{grouped(schema.not_listed.length + (schema.not_listed_left_out ?? 0))} formats cannot hold this array</summary>
        <ul>{schema.not_listed.slice(0, MOST_LINES).map((one) => <li key={one.path}>{shown(one.path)}: <span class="quiet">{shown(one.reason)}</span></li>)}</ul></details>}
    </>
  );
}
