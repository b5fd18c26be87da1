// What is known of the cells and axes of a dense array beside its values: markers of missing cells, colours and names of
// classes, the size of a pixel, and coordinates. All of it is optional and small.
import { rgb } from "../colour";
import { jsonIfThere, list, textIfThere, type Names } from "../server";
import type { Attribute, DimensionLabel, Metadatum, Schema } from "../schema";
import { extensionOf, milliseconds, valueText } from "../values";
import { NORTHINGS, readCells, readFiles, valueAt, type Axis, type Cells, type Coordinates } from "./read";

export interface CellNotes {
  /** Numbers that stand for no value. */
  missing: number[];
  /** The colours of the numbers from 0 on, as pixels. */
  palette: Uint32Array | null;
  /** The names of the numbers from 0 on. */
  classes: string[] | null;
  /** How many times as high as wide a cell of the raster is. */
  aspect: number;
  /** The coordinates along each dimension, where they are not those of the dimension itself. */
  coordinates: (Coordinates | null)[];
}

/** The most bytes of a description of a raster, and coordinates of an axis, that are read. */
const MOST_BYTES = 1 << 18, MOST_COORDINATES = 100_000;

/** Reads the notes. Those that cannot be read are left out: the cells can be shown without them. */
export async function readNotes(names: Names, schema: Schema, attribute: Attribute, axes: Axis[], signal: AbortSignal): Promise<CellNotes> {
  const notes: CellNotes = { missing: [], palette: null, classes: null, aspect: 1, coordinates: axes.map(() => null) };
  const ofLabels = axes.map<Coordinates | null>(() => null);
  const optional = (work: Promise<void>) => work.catch(() => undefined);
  const tiff = attribute.files.find((file) => file.startsWith("tiff/"));
  await Promise.all([
    optional(fromMetadata(notes, names, attribute, signal)),
    tiff && axes.length <= 3 ? optional(fromRaster(notes, [...names, "tiff"], tiff.slice(5), axes, signal)) : null,
    optional(fromMembers(notes, names, axes, signal)),
    optional(fromLabels(ofLabels, names, schema.dimension_labels ?? [], axes, signal)),
  ]);
  // What the array says itself comes first.
  notes.coordinates = notes.coordinates.map((found, dimension) => ofLabels[dimension] ?? found);
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
  const xml = await textIfThere(folder, `${file}.aux.xml`, MOST_BYTES, signal);
  if (xml === null) return;
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
  const along = (first: number, step: number, isNorthing: boolean): Coordinates => {
    const number = (position: number) => first + (position + 0.5) * step;
    return { name: "", number, text: (position) => coordinateText(number(position), Math.abs(step)), isDate: false, isNorthing };
  };
  notes.coordinates[columns] = along(left, width, false);
  notes.coordinates[rows] = along(top, height, true);
}

/** Adds coordinates from arrays beside this one that have the names of its dimensions, as in groups of netCDF and CF. */
async function fromMembers(notes: CellNotes, names: Names, axes: Axis[], signal: AbortSignal): Promise<void> {
  const own = names.at(-1);
  await Promise.all(axes.map(async (axis) => {
    if (own === undefined || own === axis.name || !/^\w[\w .-]*$/.test(axis.name) || axis.length > MOST_COORDINATES) return;
    const folder = [...names.slice(0, -1), axis.name];
    // Not from the list of members: a group may have very many.
    const [schema, metadata] = await Promise.all([
      jsonIfThere<Schema>(folder, "schema.json", signal), jsonIfThere<Record<string, Metadatum>>(folder, "meta.json", signal),
    ]);
    const attribute = schema?.attributes[0];
    if (!schema || !attribute || schema.array_type !== "dense" || schema.shape?.length !== 1 || schema.shape[0] !== axis.length || !extensionOf(attribute.files[0] ?? "")) return;
    const cells = await readCells(folder, attribute, [{ start: 0, count: axis.length, step: 1 }], signal);
    const note = (key: string) => metadata?.[`__tiledb_attr.${attribute.name}.${key}`]?.text ?? metadata?.[key]?.text;
    notes.coordinates[axis.dimension] = coordinatesOf(axis.name, axis, attribute, cells, note);
  }));
}

/** Adds the labels of dimensions that the array stores; of several, the first of numbers or dates, otherwise of text. */
async function fromLabels(found: (Coordinates | null)[], names: Names, labels: DimensionLabel[], axes: Axis[], signal: AbortSignal): Promise<void> {
  if (labels.length === 0) return;
  const isNumber = (label: DimensionLabel) => /INT|FLOAT|TIME/.test(label.datatype);
  const chosen = axes.map((axis) => {
    const own = labels.filter((label) => label.dimension_number === axis.dimension && axis.length <= MOST_COORDINATES);
    return own.find(isNumber) ?? own[0];
  });
  const files = await list([...names, "labels"], signal);
  // Each label has a folder of its own, in the order of the labels, and files with its name.
  const stems = files.filter((file) => file.type === "directory").map((file) => file.name);
  const metadata = (await jsonIfThere<Record<string, Metadatum>>(names, "meta.json", signal)) ?? {};
  await Promise.all(axes.map(async (axis) => {
    const label = chosen[axis.dimension];
    if (!label) return;
    const stem = stems[labels.indexOf(label)];
    const has = (ending: string) => files.some((file) => file.name === stem + ending);
    const values = files.find((file) => file.name.startsWith(`${stem}.`) && /^\.([iuf]\d+|bytes|bool)$/.test(file.name.slice(stem.length)));
    if (!values) return;
    const others = [".offsets.u64", ".valid.u8"].filter(has);
    const attribute: Attribute = {
      ...label, values_per_cell: has(".offsets.u64") ? "variable" : 1, nullable: has(".valid.u8"), fill: null,
      files: [values.name, ...others.map((ending) => stem + ending)], filters: [],
    };
    const cells = await readFiles([...names, "labels"], attribute, [{ start: 0, count: axis.length, step: 1 }], signal);
    found[axis.dimension] = coordinatesOf(label.name, axis, attribute, cells, (key) => metadata[`__tiledb_dim.${label.name}.${key}`]?.text);
  }));
}

/** Returns stored values, one for each position, as coordinates. `note` returns what CF calls their attributes. */
function coordinatesOf(name: string, axis: Axis, attribute: Attribute, cells: Cells, note: (key: string) => string | undefined): Coordinates {
  const { datatype, unit } = attribute;
  const within = (position: number) => Math.min(axis.length - 1, Math.max(0, Math.round(position)));
  const stored = (position: number) => valueAt(cells, within(position));
  const asText = (position: number) => valueText(stored(position), datatype, unit);
  const isNorthing = /^degrees?_?n(orth)?$/i.test(note("units") ?? "") || /^(latitude|grid_latitude|projection_y_coordinate)$/.test(note("standard_name") ?? "") ||
    note("axis") === "Y" || NORTHINGS.test(name) || NORTHINGS.test(axis.name);
  if (!cells.numbers) return { name, text: asText, number: null, isDate: false, isNorthing: false };
  const isDate = !!unit && datatype.startsWith("DATETIME");
  const date = dateOf(note("units"), note("calendar"));
  const number = (position: number) => {
    const value = stored(position);
    return value === null ? NaN : isDate ? milliseconds(value as bigint, unit) : date ? date(Number(value)) : Number(value);
  };
  const numbers = Float64Array.from({ length: axis.length }, (_, position) => number(position));
  const step = leastStep(numbers);
  const isPlain = !unit && !date && datatype.startsWith("FLOAT") && step > 0;
  return {
    name,
    text: date ? (position) => momentText(number(position)) ?? asText(position) : isPlain ? (position) => coordinateText(number(position), step) : asText,
    number: isMonotonic(numbers) ? (position) => numbers[within(position)] : null,
    isDate: isDate || !!date,
    isNorthing,
  };
}

/** Returns the least difference of neighbours; 0 if there is none. */
function leastStep(numbers: Float64Array): number {
  let least = Infinity;
  for (let at = 1; at < numbers.length; at++) {
    const step = Math.abs(numbers[at] - numbers[at - 1]);
    if (step > 0 && step < least) least = step;
  }
  return Number.isFinite(least) ? least : 0;
}

function isMonotonic(numbers: Float64Array): boolean {
  const way = Math.sign(numbers[numbers.length - 1] - numbers[0]);
  return way !== 0 && numbers.every((number, at) => at === 0 || Math.sign(number - numbers[at - 1]) === way);
}

/** Returns a coordinate in the digits that tell it from its neighbours. */
export function coordinateText(value: number, step: number): string {
  if (!Number.isFinite(value)) return "NaN";
  const digits = Math.min(20, Math.max(0, Math.ceil(-Math.log10(step)) + 2));
  return String(Number(value.toFixed(digits)));
}

/** Milliseconds in the units of CF whose length does not vary. */
const UNITS: [RegExp, number][] = [[/^d(ays?)?$/i, 86_400_000], [/^h((ou)?rs?)?$/i, 3_600_000], [/^min(ute)?s?$/i, 60_000], [/^s(ec(ond)?s?)?$/i, 1000]];

/** Returns how numbers of CF's `days since 2000-01-01` become milliseconds since 1970; null for other units and calendars. */
function dateOf(units?: string, calendar = "standard"): ((value: number) => number) | null {
  const parts = /^\s*(\w+) since (\d{1,4}-\d{1,2}-\d{1,2})(?:[T ](\d{1,2}:\d{2}(?::\d{2})?)\S*)?/.exec(units ?? "");
  const unit = UNITS.find(([name]) => name.test(parts?.[1] ?? ""))?.[1];
  if (!parts || !unit || !/^(standard|gregorian|proleptic_gregorian)$/i.test(calendar)) return null;
  const [year, month, day] = parts[2].split("-");
  const start = Date.parse(`${year.padStart(4, "0")}-${month.padStart(2, "0")}-${day.padStart(2, "0")}T${(parts[3] ?? "00:00").padStart(5, "0")}Z`);
  return (value) => start + value * unit;
}

/** Returns a moment in ISO 8601; null if it is outside the calendar. */
function momentText(milliseconds: number): string | null {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? null : date.toISOString().replace(/T00:00:00\.000Z$|\.000Z$|Z$/, "").replace("T", " ");
}

/** Returns axes whose positions have these coordinates as well. */
export function withCoordinates(axes: Axis[], notes: CellNotes): Axis[] {
  return axes.map((axis) => ({ ...axis, coordinates: notes.coordinates[axis.dimension] ?? undefined }));
}
