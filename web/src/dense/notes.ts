// What is known of the cells and axes of a dense array beside its values: markers of missing cells, colours and names of
// classes, the size of a pixel, and coordinates. All of it is optional and small.
import { rgb } from "../colour";
import { jsonIfThere, list, type Names } from "../server";
import type { Attribute, DimensionLabel, Group, Metadatum, Schema } from "../schema";
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
  /** A value means `offset` plus `scale` times what is stored, in this unit; an empty one is not known. */
  scale: number;
  offset: number;
  unit: string;
  /** The coordinate system of the raster; null if it has none. */
  system: string | null;
  /** How many positions along a dimension belong to the raster, where others are padding. */
  lengths: Map<number, number>;
  /** The coordinates along each dimension, where they are not those of the dimension itself. */
  coordinates: (Coordinates | null)[];
}

/** The most coordinates of an axis that are read, and members of a group among which they are looked for. */
const MOST_COORDINATES = 100_000, MOST_MEMBERS = 40;

/** Reads the notes. Those that cannot be read are left out: the cells can be shown without them. */
export async function readNotes(names: Names, schema: Schema, attribute: Attribute, axes: Axis[], signal: AbortSignal): Promise<CellNotes> {
  const notes: CellNotes = { missing: [], palette: null, classes: null, aspect: 1, scale: 1, offset: 0, unit: "", system: null, lengths: new Map(), coordinates: axes.map(() => null) };
  const ofLabels = axes.map<Coordinates | null>(() => null);
  const optional = (work: Promise<void>) => work.catch(() => undefined);
  const raster = axes.length > 1 ? jsonIfThere<Raster>(names, "raster.json", signal) : Promise.resolve(null);
  raster.catch(() => undefined);
  await Promise.all([
    // What is known of a raster is more than what its metadata say. Both are asked for together.
    optional(fromMetadata(notes, names, attribute, signal)).then(() => optional(fromRaster(notes, raster, attribute, axes))),
    optional(fromMembers(notes, names, axes, signal)),
    optional(fromLabels(ofLabels, names, schema.dimension_labels ?? [], axes, signal)),
  ]);
  // What the array says itself comes first.
  notes.coordinates = notes.coordinates.map((found, dimension) => ofLabels[dimension] ?? found);
  return notes;
}

/** Adds the markers of missing cells, units and factors by the conventions of netCDF. */
async function fromMetadata(notes: CellNotes, names: Names, attribute: Attribute, signal: AbortSignal): Promise<void> {
  const metadata = (await jsonIfThere<Record<string, Metadatum>>(names, "meta.json", signal)) ?? {};
  for (const key of ["_FillValue", "missing_value"]) {
    const found = metadata[`__tiledb_attr.${attribute.name}.${key}`] ?? metadata[key];
    for (const value of found?.values ?? []) if (value !== null && Number.isFinite(Number(value))) notes.missing.push(Number(value));
  }
  const own = (key: string) => metadata[`__tiledb_attr.${attribute.name}.${key}`] ?? metadata[key];
  const number = (key: string) => Number(own(key)?.values?.[0] ?? own(key)?.text ?? NaN);
  if (Number.isFinite(number("scale_factor"))) notes.scale = number("scale_factor");
  if (Number.isFinite(number("add_offset"))) notes.offset = number("add_offset");
  notes.unit = own("units")?.text ?? "";
}

/** What raster.json says of a band. */
interface Band {
  no_data?: string;
  unit?: string;
  scale?: number;
  offset?: number;
  palette?: number[][];
  categories?: string[];
}

/** What raster.json says: the facts of the tags of TIFF files. */
interface Raster {
  row_dimension?: number;
  column_dimension?: number;
  transform?: number[];
  system?: string;
  has_labels?: boolean;
  attributes: { name: string; rows?: number; columns?: number; no_data?: string; bands: Band[] }[];
}

/** Adds what is known of an attribute as a raster. */
async function fromRaster(notes: CellNotes, asked: Promise<Raster | null>, attribute: Attribute, axes: Axis[]): Promise<void> {
  const raster = await asked;
  const own = raster?.attributes.find((one) => one.name === attribute.name) ?? raster?.attributes.find((one) => one.bands.length > 0 && raster.attributes.length === 1);
  if (!raster || !own) return;
  /** What all bands say. */
  const shared = <K extends keyof Band>(key: K): Band[K] | undefined => {
    const first = own.bands[0]?.[key];
    return own.bands.every((band) => JSON.stringify(band[key]) === JSON.stringify(first)) ? first : undefined;
  };
  const marker = own.no_data ?? shared("no_data");
  if (marker !== undefined && Number.isFinite(Number(marker))) notes.missing.push(Number(marker));
  const palette = shared("palette");
  if (palette) notes.palette = Uint32Array.from(palette, ([red, green, blue, alpha]) => rgb(red, green, blue, alpha ?? 255));
  notes.classes = shared("categories") ?? null;
  notes.scale = Number(shared("scale") ?? notes.scale);
  notes.offset = Number(shared("offset") ?? notes.offset);
  notes.unit = shared("unit") ?? notes.unit;
  const [rows, columns] = [raster.row_dimension, raster.column_dimension];
  const plain = axes.map((axis) => axis.dimension).filter((dimension) => !/^bands?$/i.test(axes[dimension].name)).slice(-2);
  const [rowsHere, columnsHere] = [rows ?? plain[0], columns ?? plain[1]];
  if (own.rows) notes.lengths.set(rowsHere, own.rows);
  if (own.columns) notes.lengths.set(columnsHere, own.columns);
  const place = raster.transform ?? [];
  const [left, width, turn, top, tilt, height] = place.map(Number);
  if (rows === undefined || columns === undefined || place.length !== 6 || !place.every((one) => Number.isFinite(Number(one))) || turn !== 0 || tilt !== 0 || !width || !height) return;
  notes.aspect = Math.min(4, Math.max(0.25, Math.abs(height / width)));
  notes.system = systemName(raster.system);
  if (raster.has_labels) return;
  const isGeographic = /^\s*GEO(G|D)/i.test(raster.system ?? "");
  const isProjected = /^\s*(PROJ|COMPD)/i.test(raster.system ?? "");
  const along = (first: number, step: number, isNorthing: boolean): Coordinates => {
    const number = (position: number) => first + (position + 0.5) * step;
    const name = isGeographic ? (isNorthing ? "latitude" : "longitude") : isProjected ? (isNorthing ? "northing" : "easting") : "";
    return { name, number, text: (position) => coordinateText(number(position), Math.abs(step)), isDate: false, isNorthing };
  };
  notes.coordinates[columns] = along(left, width, false);
  notes.coordinates[rows] = along(top, height, true);
}

/** Returns what a coordinate system in well-known text is called; null if there is none. */
function systemName(system: string | undefined): string | null {
  if (!system) return null;
  const name = /^[^"]*"([^"]*)"/.exec(system)?.[1] ?? system.slice(0, 40);
  const code = /(?:AUTHORITY|ID)\["(EPSG)",\s*"?(\d+)"?\]\s*\]\s*$/i.exec(system) ?? /^(EPSG):(\d+)$/i.exec(system);
  return code && !name.startsWith("EPSG") ? `${name} (EPSG:${code[2]})` : name;
}

/** Adds coordinates from arrays beside this one that have the names of its dimensions, as in groups of netCDF and CF. */
async function fromMembers(notes: CellNotes, names: Names, axes: Axis[], signal: AbortSignal): Promise<void> {
  const own = names.at(-1);
  if (own === undefined) return;
  const parent = names.slice(0, -1);
  let collected: Promise<{ name: string; schema: Schema }[]> | null = null;
  await Promise.all(axes.map(async (axis) => {
    if (own === axis.name || !/^\w[\w .-]*$/.test(axis.name) || axis.length > MOST_COORDINATES) return;
    // Not from the list of members: a group may have very many.
    const named = await jsonIfThere<Schema>([...parent, axis.name], "schema.json", signal);
    // TileDB-CF collects variables with the same dimensions in arrays with numbers.
    const others = named || !NUMBERED.test(own) ? [] : await (collected ??= numberedArrays(parent, signal));
    const found = named ? { name: axis.name, schema: named } : others.find(({ schema }) => schema.dimensions.length === 1 && schema.dimensions[0].name === axis.name && coordinateOf(schema, axis.name));
    const attribute = found && (coordinateOf(found.schema, axis.name) ?? (named ? found.schema.attributes[0] : undefined));
    if (!found || !attribute || found.schema.array_type !== "dense" || found.schema.shape?.length !== 1 || found.schema.shape[0] !== axis.length || !extensionOf(attribute.files[0] ?? "")) return;
    const folder = [...parent, found.name];
    const [metadata, cells] = await Promise.all([
      jsonIfThere<Record<string, Metadatum>>(folder, "meta.json", signal), readCells(folder, attribute, [{ start: 0, count: axis.length, step: 1 }], signal),
    ]);
    const note = (key: string) => metadata?.[`__tiledb_attr.${attribute.name}.${key}`]?.text ?? metadata?.[key]?.text;
    notes.coordinates[axis.dimension] = coordinatesOf(axis.name, axis, attribute, cells, note);
  }));
}

/** Names that TileDB-CF gives arrays of a group whose variables it collects. */
export const NUMBERED = /^array\d+$/;

/** Returns the attribute with the coordinates of a dimension, by the names that TileDB-CF gives it. */
function coordinateOf(schema: Schema, dimension: string): Attribute | undefined {
  return schema.attributes.find((one) => [dimension, `${dimension}.data`, `${dimension}.index`, `${dimension}_`].includes(one.name));
}

async function numberedArrays(group: Names, signal: AbortSignal): Promise<{ name: string; schema: Schema }[]> {
  const found = await jsonIfThere<Group>(group, ".group/group.json", signal);
  const members = (found?.members ?? []).filter((member) => member.type === "array" && NUMBERED.test(member.name)).slice(0, MOST_MEMBERS);
  const schemas = await Promise.all(members.map(({ name }) => jsonIfThere<Schema>([...group, name], "schema.json", signal).catch(() => null)));
  return members.flatMap(({ name }, at) => (schemas[at] ? [{ name, schema: schemas[at]! }] : []));
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

/** Returns axes whose positions have these coordinates as well, without those that are padding. */
export function withCoordinates(axes: Axis[], notes: CellNotes): Axis[] {
  return axes.map((axis) => ({
    ...axis, coordinates: notes.coordinates[axis.dimension] ?? undefined, length: Math.min(axis.length, notes.lengths.get(axis.dimension) ?? Infinity),
  }));
}
