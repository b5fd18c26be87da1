// A column of a table as a whole: its values, read file by file, their order, and what they are like.
import { statistics, type Statistics } from "../colour";
import type { Cell, Column } from "./arrow";
import type { Progress, Rows } from "./rows";

/** Texts are read so many rows at a time, and of so many rows at most. */
const TEXTS_AT_ONCE = 8192, MOST_TEXTS = 2_000_000;
/** The most numbers: each takes eight bytes. */
const MOST_NUMBERS = 50_000_000;
/** The most different values that are counted one by one, and the most that numbers may have for that. */
const MOST_DIFFERENT = 2000, MOST_SMALL = 50;

/** The values of a column: numbers, of which those that are missing are not-a-number, or texts. */
export interface Values {
  numbers: Float64Array | null;
  texts: (string | null)[] | null;
  /** The labels that the numbers stand for. */
  labels: Cell[] | null;
}

/** Reads all values of a column. */
export async function readColumn(rows: Rows, column: number, signal: AbortSignal, tell: (progress: Progress) => void): Promise<Values> {
  const numbers: Float64Array[] = [];
  const texts: (string | null)[] = [];
  const isText = !hasNumbers(rows.columns[column]);
  let labels: Cell[] | null = null;
  let count = 0;
  for await (const [file] of rows.each(signal, tell)) {
    count += file.rows;
    if (count > (isText ? MOST_TEXTS : MOST_NUMBERS)) {
      throw new Error(`This is for up to ${(isText ? MOST_TEXTS : MOST_NUMBERS).toLocaleString("en-US")} rows. Select fewer by a condition first.`);
    }
    labels = file.labels(column);
    if (!isText) numbers.push((await file.numbers(0, file.rows, column)) ?? new Float64Array(file.rows).fill(NaN));
    for (let from = 0; isText && from < file.rows; from += TEXTS_AT_ONCE) {
      const [cells] = await file.read(from, Math.min(file.rows, from + TEXTS_AT_ONCE), [column]);
      for (const cell of cells) texts.push(cell === null ? null : rows.columns[column].show(cell));
      signal.throwIfAborted();
    }
  }
  return { numbers: isText ? null : joined(numbers), texts: isText ? texts : null, labels };
}

/** Returns whether the values of a column are numbers, or labels, which are numbers as they are stored. */
export function hasNumbers({ kind, type }: Column): boolean {
  return type === "label" || /integer|float|boolean|date|time/.test(kind);
}

function joined(parts: Float64Array[]): Float64Array {
  const out = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Returns the numbers of rows in the order of their values. Missing ones come last either way; equal ones stay in their order. */
export function orderOf(values: Values, isDown: boolean): Uint32Array {
  if (values.numbers) return orderOfNumbers(values.labels ? ranked(values.numbers, values.labels) : values.numbers, isDown);
  const texts = values.texts ?? [];
  const way = isDown ? -1 : 1;
  const order = Uint32Array.from(texts, (_, row) => row);
  return order.sort((a, b) => {
    const [first, second] = [texts[a], texts[b]];
    if (first === null || second === null) return Number(first === null) - Number(second === null) || a - b;
    return (first < second ? -way : first > second ? way : 0) || a - b;
  });
}

/** Replaces codes by the places of their labels among all labels in order. */
function ranked(codes: Float64Array, labels: Cell[]): Float64Array {
  const order = labels.map((_, code) => code).sort((a, b) => {
    const [first, second] = [labels[a] ?? "", labels[b] ?? ""];
    return first < second ? -1 : first > second ? 1 : 0;
  });
  const ranks = new Float64Array(labels.length);
  order.forEach((code, rank) => (ranks[code] = rank));
  return codes.map((code) => ranks[code] ?? NaN);
}

/** Sorts by the bits of the numbers, 16 at a time, which takes the same time for any numbers. */
function orderOfNumbers(numbers: Float64Array, isDown: boolean): Uint32Array {
  const count = numbers.length;
  const words = new Uint32Array(2 * count);
  const floats = new Float64Array(words.buffer);
  for (let at = 0; at < count; at++) {
    floats[at] = numbers[at] === 0 ? 0 : numbers[at];
    const [low, high] = [words[2 * at], words[2 * at + 1]];
    // Negative numbers grow with their bits in the other direction; the greatest of all is for missing ones.
    const isNegative = high >>> 31 === 1;
    let [first, second] = isNegative ? [~low >>> 0, ~high >>> 0] : [low, (high | 0x80000000) >>> 0];
    if (isDown) [first, second] = [~first >>> 0, ~second >>> 0];
    const isMissing = Number.isNaN(numbers[at]);
    words[2 * at] = isMissing ? 0xffffffff : first;
    words[2 * at + 1] = isMissing ? 0xffffffff : second;
  }
  let from = Uint32Array.from({ length: count }, (_, row) => row);
  let to = new Uint32Array(count);
  for (let digit = 0; digit < 4; digit++) {
    const [word, shift] = [digit >> 1, (digit & 1) * 16];
    const starts = new Uint32Array(65537);
    for (let at = 0; at < count; at++) starts[((words[2 * at + word] >>> shift) & 0xffff) + 1]++;
    for (let value = 0; value < 65536; value++) starts[value + 1] += starts[value];
    for (let at = 0; at < count; at++) to[starts[(words[2 * from[at] + word] >>> shift) & 0xffff]++] = from[at];
    [from, to] = [to, from];
  }
  return from;
}

/** A value, and how many rows have it. The value of nulls is null. */
export interface Facet {
  value: number | string | null;
  count: number;
}

/** What the values of a column are like. */
export interface Summary {
  rows: number;
  missing: number;
  /** Values with their numbers of rows, the most frequent first; null if there are too many different ones. */
  facets: Facet[] | null;
  statistics: Statistics | null;
}

/** Summarizes a column. */
export function summaryOf(values: Values, column: Column): Summary {
  const rows = values.numbers?.length ?? values.texts?.length ?? 0;
  const counts = new Map<number | string | null, number>();
  let missing = 0;
  for (let row = 0; row < rows; row++) {
    const value = values.numbers ? values.numbers[row] : values.texts![row];
    const known = value === null || (typeof value === "number" && Number.isNaN(value)) ? null : value;
    if (known === null) missing++;
    if (counts.size <= MOST_DIFFERENT || counts.has(known)) counts.set(known, (counts.get(known) ?? 0) + 1);
  }
  const isNumber = values.numbers !== null && values.labels === null && column.kind !== "boolean";
  // Integers that are rounded to doubles would be facets of values that may not be there.
  const areExact = [...counts.keys()].every((one) => typeof one !== "number" || column.kind === "float" || Math.abs(one) <= Number.MAX_SAFE_INTEGER);
  const most = isNumber ? (column.kind === "float" ? 0 : MOST_SMALL) : MOST_DIFFERENT;
  const facets = !areExact || counts.size - Number(missing > 0) > most ? null : [...counts].map(([value, count]) => ({ value, count })).sort((a, b) => b.count - a.count);
  return { rows, missing, facets, statistics: isNumber ? statistics(values.numbers!) : null };
}

/** Returns the rows in which a text is in one of the columns, in any case of letters. */
export async function rowsWith(rows: Rows, wanted: string, columns: number[], signal: AbortSignal, tell: (progress: Progress, found: number) => void): Promise<Uint32Array> {
  const found: number[] = [];
  const text = wanted.toLowerCase();
  let last: Progress = { done: 0, all: 1 };
  for await (const [file, start] of rows.each(signal, (progress) => tell((last = progress), found.length))) {
    if (start + file.rows > MOST_TEXTS) throw new Error(`A text is searched in up to ${MOST_TEXTS.toLocaleString("en-US")} rows. Select fewer by a condition first.`);
    for (let from = 0; from < file.rows; from += TEXTS_AT_ONCE) {
      const read = await file.read(from, Math.min(file.rows, from + TEXTS_AT_ONCE), columns);
      signal.throwIfAborted();
      const count = read[0]?.length ?? 0;
      for (let row = 0; row < count; row++) {
        if (columns.some((column, at) => rows.columns[column].show(read[at][row]).toLowerCase().includes(text))) found.push(start + from + row);
      }
      tell(last, found.length);
    }
  }
  return Uint32Array.from(found);
}
