// What is known of the cells and axes of a dense array beside its values: markers of missing cells, colours and names of
// classes, the size of a pixel, and coordinates. All of it is optional and small.
import { rgb } from "../colour";
import { jsonIfThere, text as readText, type Names } from "../server";
import type { Attribute, Group, Metadatum, Schema } from "../schema";
import { rounded } from "../parts";
import { extensionOf } from "../values";
import { readCells, type Axis } from "./read";

export interface CellNotes {
  /** Numbers that stand for no value. */
  missing: number[];
  /** The colours of the numbers from 0 on, as pixels. */
  palette: Uint32Array | null;
  /** The names of the numbers from 0 on. */
  classes: string[] | null;
  /** How many times as high as wide a cell of the raster is. */
  aspect: number;
  /** The coordinates at positions of a dimension, as text, where they are not those of the dimension itself. */
  coordinates: (((position: number) => string) | null)[];
}

/** The most bytes of a description of a raster, and coordinates of an axis, that are read. */
const MOST_BYTES = 1 << 18, MOST_COORDINATES = 100_000;

/** Reads the notes. Those that cannot be read are left out: the cells can be shown without them. */
export async function readNotes(names: Names, attribute: Attribute, axes: Axis[], signal: AbortSignal): Promise<CellNotes> {
  const notes: CellNotes = { missing: [], palette: null, classes: null, aspect: 1, coordinates: axes.map(() => null) };
  const optional = (work: Promise<void>) => work.catch(() => undefined);
  const tiff = attribute.files.find((file) => file.startsWith("tiff/"));
  await Promise.all([
    optional(fromMetadata(notes, names, attribute, signal)),
    tiff && axes.length <= 3 ? optional(fromRaster(notes, [...names, "tiff"], tiff.slice(5), axes, signal)) : null,
    optional(fromMembers(notes, names, axes, signal)),
  ]);
  return notes;
}

/** Adds the markers of missing cells by the conventions of netCDF. */
async function fromMetadata(notes: CellNotes, names: Names, attribute: Attribute, signal: AbortSignal): Promise<void> {
  const metadata = (await jsonIfThere<Record<string, Metadatum>>(names, "meta.json", signal)) ?? {};
  for (const key of ["_FillValue", "missing_value"]) {
    const found = metadata[`__tiledb_attr.${attribute.name}.${key}`] ?? metadata[key];
    for (const value of found?.values ?? []) if (value !== null && Number.isFinite(Number(value))) notes.missing.push(Number(value));
  }
}

/** Adds what GDAL knows of a raster, from the file beside its picture. */
async function fromRaster(notes: CellNotes, folder: Names, file: string, axes: Axis[], signal: AbortSignal): Promise<void> {
  const [xml, isWhole] = await readText(folder, `${file}.aux.xml`, MOST_BYTES, signal);
  if (!isWhole) return;
  const tree = new DOMParser().parseFromString(xml, "application/xml");
  const band = tree.querySelector("PAMRasterBand");
  const marker = band?.querySelector("NoDataValue")?.textContent;
  if (marker && Number.isFinite(Number(marker))) notes.missing.push(Number(marker));
  const entries = [...(band?.querySelectorAll("ColorTable > Entry") ?? [])];
  const part = (entry: Element, name: string) => Number(entry.getAttribute(name) ?? 255);
  if (entries.length) notes.palette = Uint32Array.from(entries, (entry) => rgb(part(entry, "c1"), part(entry, "c2"), part(entry, "c3"), part(entry, "c4")));
  const classes = [...(band?.querySelectorAll("CategoryNames > Category") ?? [])].map((category) => category.textContent ?? "");
  if (classes.length) notes.classes = classes;
  const place = (tree.querySelector("GeoTransform")?.textContent ?? "").split(",").map(Number);
  const [left, width, turn, top, tilt, height] = place;
  if (place.length !== 6 || !place.every(Number.isFinite) || turn !== 0 || tilt !== 0 || !width || !height) return;
  notes.aspect = Math.min(4, Math.max(0.25, Math.abs(height / width)));
  const [rows, columns] = axes.map((axis) => axis.dimension).filter((dimension) => !/^bands?$/i.test(axes[dimension].name)).slice(-2);
  notes.coordinates[columns] = (position) => rounded(left + (position + 0.5) * width);
  notes.coordinates[rows] = (position) => rounded(top + (position + 0.5) * height);
}

/** Adds coordinates from arrays beside this one that have the names of its dimensions, as in groups of netCDF and CF. */
async function fromMembers(notes: CellNotes, names: Names, axes: Axis[], signal: AbortSignal): Promise<void> {
  if (names.length === 0) return;
  const group = await jsonIfThere<Group>(names.slice(0, -1), ".group/group.json", signal);
  if (!group) return;
  const own = names.at(-1);
  await Promise.all(axes.map(async (axis) => {
    const isThere = group.members.some((member) => member.name === axis.name && member.type === "array");
    if (!isThere || axis.name === own || axis.length > MOST_COORDINATES) return;
    const folder = [...names.slice(0, -1), axis.name];
    const [schema, metadata] = await Promise.all([
      jsonIfThere<Schema>(folder, "schema.json", signal), jsonIfThere<Record<string, Metadatum>>(folder, "meta.json", signal),
    ]);
    const attribute = schema?.attributes[0];
    if (!schema || !attribute || schema.array_type !== "dense" || schema.shape?.length !== 1 || schema.shape[0] !== axis.length || !extensionOf(attribute.files[0] ?? "")) return;
    const cells = await readCells(folder, attribute, [{ start: 0, count: axis.length, step: 1 }], signal);
    const note = (key: string) => metadata?.[`__tiledb_attr.${attribute.name}.${key}`]?.text ?? metadata?.[key]?.text;
    const date = dateOf(note("units"), note("calendar"));
    notes.coordinates[axis.dimension] = (position) => {
      const value = Number(cells.numbers?.[Math.min(axis.length - 1, Math.max(0, Math.round(position)))]);
      return date?.(value) ?? rounded(value);
    };
  }));
}

/** Milliseconds in the units of CF whose length does not vary. */
const UNITS: [RegExp, number][] = [[/^d(ays?)?$/i, 86_400_000], [/^h((ou)?rs?)?$/i, 3_600_000], [/^min(ute)?s?$/i, 60_000], [/^s(ec(ond)?s?)?$/i, 1000]];

/** Returns how numbers of CF's `days since 2000-01-01` become dates; null for other units and calendars. */
export function dateOf(units?: string, calendar = "standard"): ((value: number) => string | null) | null {
  const parts = /^\s*(\w+) since (\d{1,4}-\d{1,2}-\d{1,2})(?:[T ](\d{1,2}:\d{2}(?::\d{2})?)\S*)?/.exec(units ?? "");
  const unit = UNITS.find(([name]) => name.test(parts?.[1] ?? ""))?.[1];
  if (!parts || !unit || !/^(standard|gregorian|proleptic_gregorian)$/i.test(calendar)) return null;
  const [year, month, day] = parts[2].split("-");
  const start = Date.parse(`${year.padStart(4, "0")}-${month.padStart(2, "0")}-${day.padStart(2, "0")}T${(parts[3] ?? "00:00").padStart(5, "0")}Z`);
  return (value) => {
    const date = new Date(start + value * unit);
    return Number.isNaN(date.getTime()) ? null : date.toISOString().replace(/T00:00:00\.000Z$|\.000Z$|Z$/, "").replace("T", " ");
  };
}

/** Returns axes whose positions have these coordinates as well. */
export function withCoordinates(axes: Axis[], notes: CellNotes): Axis[] {
  return axes.map((axis) => ({ ...axis, coordinate: notes.coordinates[axis.dimension] ?? undefined }));
}
