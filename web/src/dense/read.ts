// Cells of a dense array: which to read for a view, and how to get them in bounded work.
import { SLOW, bytes, linkSpeed, type Names } from "../server";
import { extents, type Attribute, type Schema } from "../schema";
import { dateText, extensionOf, integer, milliseconds, numbersIn, sizeOf, timeText, type Numbers, type Value } from "../values";

/** Every `step`-th position from `start`. */
export interface Positions {
  start: number;
  count: number;
  step: number;
}

/** For each dimension one position, or several. */
export type Pick = (number | Positions)[];

/** Cells along the picked positions, in row-major order. */
export interface Cells {
  pick: Pick;
  /** Numbers of positions along each dimension. */
  shape: number[];
  numbers: Numbers | null;
  texts: string[] | null;
  /** 1 for a value, 0 for null. */
  valid: Uint8Array | null;
  /** How many numbers a cell has. */
  perCell: number;
}

/** Returns a selection by positions. */
export function selection(pick: Pick): string {
  return pick
    .map((one) => {
      if (typeof one === "number") return String(one);
      const end = one.start + (one.count - 1) * one.step + 1;
      return one.step === 1 ? `${one.start}:${end}` : `${one.start}:${end}:${one.step}`;
    })
    .join(",");
}

/** Reads the picked cells of an attribute. */
export function readCells(names: Names, attribute: Attribute, pick: Pick, signal?: AbortSignal): Promise<Cells> {
  const key = keyOf(names, attribute, pick);
  const begun = ahead.get(key);
  ahead.delete(key);
  return begun ?? readFiles([...names, "islice", selection(pick)], attribute, pick, signal);
}

/** Reads the files of an attribute in a folder, which has the picked cells. */
export async function readFiles(folder: Names, attribute: Attribute, pick: Pick, signal?: AbortSignal): Promise<Cells> {
  const shape = pick.map((one) => (typeof one === "number" ? 1 : one.count));
  const count = shape.reduce((product, length) => product * length, 1);
  const read = (file: string) => bytes(folder, file, signal);
  const validity = attribute.nullable ? attribute.files.find((file) => file.endsWith(".valid.u8")) : undefined;
  const offsets = attribute.files.find((file) => file.endsWith(".offsets.u64"));
  const [data, ends, valid] = await Promise.all([
    read(attribute.files[0]),
    offsets ? read(offsets) : null,
    validity ? read(validity).then((read) => new Uint8Array(read)) : null,
  ]);
  const extension = extensionOf(attribute.files[0]);
  const numbers = extension ? numbersIn(data, extension) : null;
  const perCell = attribute.values_per_cell === "variable" ? 1 : attribute.values_per_cell;
  let texts: string[] | null = null;
  if (ends && numbers && extension) {
    const size = sizeOf(extension);
    texts = cut(ends, count, (start, end) => numbers.subarray(start / size, end / size).join(" "));
  } else if (ends) {
    texts = cut(ends, count, (start, end) => bytesAsText(new Uint8Array(data, start, end - start), attribute.datatype));
  } else if (!numbers) {
    const size = Math.floor(data.byteLength / Math.max(count, 1));
    texts = Array.from({ length: count }, (_, at) =>
      bytesAsText(new Uint8Array(data, at * size, size), attribute.datatype).replace(/\0+$/, ""),
    );
  }
  return { pick, shape, numbers: texts ? null : numbers, texts, valid, perCell };
}

function cut(ends: ArrayBuffer, count: number, text: (start: number, end: number) => string): string[] {
  const offsets = new BigUint64Array(ends);
  return Array.from({ length: count }, (_, at) => text(Number(offsets[at]), Number(offsets[at + 1])));
}

/** Returns stored bytes as text: hexadecimal if they are no text. */
export function bytesAsText(bytes: Uint8Array, datatype: string): string {
  if (/BLOB|WKB/.test(datatype)) return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return new TextDecoder().decode(bytes);
}

/** Returns one value of cells: the number as stored, or the text; null at nulls. */
export function valueAt(cells: Cells, at: number, component = 0): Value {
  if (cells.valid && !cells.valid[at]) return null;
  if (cells.texts) return cells.texts[at];
  return cells.numbers?.[at * cells.perCell + component] ?? null;
}

/** How long the axes are, and what stands at their positions. */
export interface Axis {
  dimension: number;
  name: string;
  length: number;
  /** The coordinate at a position, as text. */
  text: (position: number) => string;
  /** The coordinate as a number, and whether it is a date in milliseconds. */
  number: (position: number) => number;
  isDate: boolean;
  /** Whether numbers are the coordinates from `first` on, with equal steps. */
  first: bigint;
  step: bigint;
  /** What else stands at its positions. */
  coordinates?: Coordinates;
}

/** What stands at the positions of an axis beside its own numbers: places on the Earth, dates, labels. */
export interface Coordinates {
  /** What they are called; empty if they have no name. */
  name: string;
  text: (position: number) => string;
  /** Numbers that grow or fall from each position to the next, dates in milliseconds; null for others. */
  number: ((position: number) => number) | null;
  isDate: boolean;
  /** Whether they grow to the north. */
  isNorthing: boolean;
}

/** Returns what stands at a position, for people. */
export function placeText(axis: Axis, position: number): string {
  return axis.text(position) + (axis.coordinates ? ` (${axis.coordinates.text(position)})` : "");
}

/** Names of dimensions that are degrees of latitude or grow to the north. */
export const NORTHINGS = /^(lat|latitude|northing)$/i;

/** Returns whether the positions of an axis go from the south to the north. */
export function goesNorth(axis: Axis): boolean {
  const { coordinates, length } = axis;
  if (coordinates) return coordinates.isNorthing && !!coordinates.number && coordinates.number(0) < coordinates.number(length - 1);
  // A dimension that begins at 0 numbers rows, from either end.
  return NORTHINGS.test(axis.name) && axis.first < 0n;
}

/** Returns the axes of a dense array. */
export function axesOf(schema: Schema): Axis[] {
  return schema.dimensions.map((dimension, number) => {
    const { datatype, unit, shown } = dimension;
    const first = integer(shown?.first);
    const step = BigInt(Math.trunc(shown?.step ?? 1));
    const at = (position: number) => first + BigInt(Math.round(position)) * step;
    const isDate = !!unit && datatype.startsWith("DATETIME");
    return {
      dimension: number, name: dimension.name, length: schema.shape?.[number] ?? 0, isDate, first, step,
      text: (position) =>
        !unit ? String(at(position)) : isDate ? dateText(at(position), unit) : timeText(at(position), unit),
      number: (position) => {
        const exact = Number(first) + position * Number(step);
        return isDate && unit ? milliseconds(exact, unit) : exact;
      },
    };
  });
}

/** Bytes that may be decoded for the first picture, and for each finer one. */
export const BUDGETS = [16e6, 64e6, 256e6];

/** Returns the work of a pick: the bytes of all tiles that it touches. */
export function work(schema: Schema, attribute: Attribute, pick: Pick): number {
  const extension = extensionOf(attribute.files[0]);
  const size = extension ? sizeOf(extension) : 16;
  const sides = extents(schema);
  return pick.reduce<number>((product, one, number) => {
    const side = sides[number];
    if (typeof one === "number") return product * side;
    const span = (one.count - 1) * one.step + 1;
    return product * side * Math.min(one.count, Math.ceil(span / side) + 1);
  }, size * (attribute.values_per_cell === "variable" ? 1 : attribute.values_per_cell));
}

/** Returns positions in a range, at least as many as wanted and fewer than twice as many, each in the middle of the cells that it stands for. */
export function spread(start: number, end: number, wanted: number): Positions {
  const length = Math.max(1, end - start);
  const step = Math.max(1, Math.floor(length / Math.max(1, wanted)));
  const first = start + Math.min(Math.floor((step - 1) / 2), length - 1);
  return { start: first, count: Math.floor((start + length - 1 - first) / step) + 1, step };
}

/** Over a slow link, a first picture of so many bytes comes before finer ones. */
const PREVIEW_BYTES = 1 << 15;

interface Range {
  dimension: number;
  start: number;
  end: number;
}

/** Returns the bytes of the picked cells. */
function length(attribute: Attribute, pick: Pick): number {
  const extension = extensionOf(attribute.files[0]);
  const size = (extension ? sizeOf(extension) : 16) * (attribute.values_per_cell === "variable" ? 1 : attribute.values_per_cell);
  return pick.reduce<number>((product, one) => product * (typeof one === "number" ? 1 : one.count), size);
}

/** Returns a pick of few cells of ranges, whatever the size of the picture. */
export function preview(attribute: Attribute, fixed: Pick, ranges: Range[]): Pick {
  for (let wanted = ranges.length > 1 ? 64 : 4096; ; wanted *= 0.8) {
    const pick = fixed.slice();
    for (const { dimension, start, end } of ranges) pick[dimension] = spread(start, end, Math.max(1, Math.min(end - start, Math.floor(wanted))));
    if (wanted <= 1 || length(attribute, pick) <= PREVIEW_BYTES) return pick;
  }
}

const ahead = new Map<string, Promise<Cells>>();

/** Begins to read cells that will be asked for. */
export function readAhead(names: Names, attribute: Attribute, pick: Pick): void {
  const reading = readFiles([...names, "islice", selection(pick)], attribute, pick);
  reading.catch(() => undefined);
  ahead.set(keyOf(names, attribute, pick), reading);
}

function keyOf(names: Names, attribute: Attribute, pick: Pick): string {
  return JSON.stringify([names, attribute.name, selection(pick)]);
}

/** Returns how finely to read ranges of some dimensions: coarse first, each within the next budget. */
export function refinements(
  schema: Schema,
  attribute: Attribute,
  fixed: Pick,
  ranges: { dimension: number; start: number; end: number; most: number }[],
  budgets = BUDGETS,
): Pick[] {
  const picks: Pick[] = [];
  const coarser = (share: number) => {
    const pick = fixed.slice();
    for (const { dimension, start, end, most } of ranges) {
      pick[dimension] = spread(start, end, Math.max(1, Math.floor(Math.min(most, end - start) * share)));
    }
    return pick;
  };
  for (const budget of budgets) {
    let share = 1;
    let pick: Pick;
    for (;;) {
      pick = coarser(share);
      if (work(schema, attribute, pick) <= budget || share < 1e-3) break;
      share *= 0.7;
    }
    const before = picks.at(-1);
    if (!before || selection(before) !== selection(pick)) picks.push(pick);
    if (share === 1) break;
  }
  return linkSpeed() < SLOW && length(attribute, picks[0]) > 2 * PREVIEW_BYTES ? [preview(attribute, fixed, ranges), ...picks] : picks;
}
