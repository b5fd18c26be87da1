// All rows of a table, whether they are one Arrow file or many parts of one.
import { list, type Names } from "../server";
import type { Schema } from "../schema";
import { ArrowFile, type Cell, type Column } from "./arrow";

/** A table of more rows, or of an unknown number, is read through its parts. */
const MOST_WHOLE = 1 << 20;
/** The first part of a table, however many there are. */
const FIRST_PART = "arrow/parts/000000000000000.arrow";
/** Files that are kept open. */
const MOST_OPEN = 8;

/** A file with some of the rows, and the number of its first row. */
interface Part {
  first: number;
  path: string;
}

/** All files with rows, in their order. */
interface Parts {
  count: number;
  at: (number: number) => Part;
}

/** Returns the parts of a table, of which `count` is the number of rows, if it is known. */
async function partsOf(names: Names, schema: Schema, count: number | null, signal?: AbortSignal): Promise<Parts> {
  if (count !== null && schema.array_type === "dense" && count > MOST_WHOLE) {
    const at = (number: number) => {
      const first = number * MOST_WHOLE;
      return { first, path: `islice/${first}:${Math.min(count, first + MOST_WHOLE)}/arrow/cells.arrow` };
    };
    return { count: Math.ceil(count / MOST_WHOLE), at };
  }
  let parts: Part[] = [];
  if (count === null || count > MOST_WHOLE) {
    const listed = (await list([...names, "arrow", "parts"], signal)).filter((entry) => entry.name.endsWith(".arrow"));
    parts = listed.map((entry) => ({ first: parseInt(entry.name, 10), path: `arrow/parts/${entry.name}` }));
  }
  if (parts.length === 0) parts = [{ first: 0, path: "arrow/cells.arrow" }];
  return { count: parts.length, at: (number) => parts[number] };
}

export class Rows {
  private files = new Map<number, Promise<ArrowFile>>();

  private constructor(
    readonly names: Names,
    readonly columns: Column[],
    /** The number of rows, or the most that there can be. */
    readonly count: number,
    readonly isExact: boolean,
    readonly parts: Parts,
  ) {}

  static async open(names: Names, schema: Schema, signal?: AbortSignal): Promise<Rows> {
    const count = schema.array_type === "dense" ? schema.shape?.[0] ?? 0 : schema.rows ?? null;
    // Later reads outlive the signal. The list of parts may be long, so the first one is opened meanwhile.
    const isLong = schema.array_type === "sparse" && (count === null || count > MOST_WHOLE);
    const opening = isLong ? ArrowFile.open(names, FIRST_PART).catch(() => null) : null;
    const parts = await partsOf(names, schema, count, signal);
    const { path } = parts.at(0);
    const first = (path === FIRST_PART ? await opening : null) ?? (await ArrowFile.open(names, path));
    const atMost = Math.max(schema.rows_at_most ?? 0, parts.at(parts.count - 1).first + 1);
    const rows = new Rows(names, first.columns, parts.count === 1 ? first.rows : count ?? atMost, count !== null || parts.count === 1, parts);
    rows.files.set(0, Promise.resolve(first));
    return rows;
  }

  private partOf(row: number): number {
    let [low, high] = [0, this.parts.count - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.parts.at(middle).first <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  file(number: number): Promise<ArrowFile> {
    let file = this.files.get(number);
    if (!file) {
      file = ArrowFile.open(this.names, this.parts.at(number).path);
      file.catch(() => this.files.delete(number));
      if (this.files.size >= MOST_OPEN) this.files.delete(this.files.keys().next().value!);
      this.files.set(number, file);
    }
    return file;
  }

  /** Reads rows, as arrays of columns' values; undefined where a part has fewer rows than were possible. */
  async read(from: number, to: number, columns: number[]): Promise<(Cell[] | undefined)[]> {
    const out: (Cell[] | undefined)[] = new Array(Math.max(0, to - from)).fill(undefined);
    for (let number = this.partOf(from); number < this.parts.count && this.parts.at(number).first < to; number++) {
      const file = await this.file(number);
      const { first } = this.parts.at(number);
      const [start, end] = [Math.max(0, from - first), Math.min(file.rows, to - first)];
      if (start >= end) continue;
      const values = await file.read(start, end, columns);
      for (let row = start; row < end; row++) out[first + row - from] = values.map((column) => column[row - start]);
    }
    return out;
  }
}
