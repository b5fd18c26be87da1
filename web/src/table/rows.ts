// All rows of a table, whether they are one Arrow file or many parts of one.
import { list, type Names } from "../server";
import type { Schema } from "../schema";
import { ArrowFile, type Cell, type Column } from "./arrow";

/** A table of more rows, or of an unknown number, is read through its parts. */
const MOST_WHOLE = 1 << 20;
/** The file of all rows. */
const WHOLE = "arrow/cells.arrow";
/** The first part of a table, however many there are. */
const FIRST_PART = "arrow/parts/000000000000000.arrow";
/** Files that are kept open. */
const MOST_OPEN = 64;

/** A file with some of the rows, and the number of its first row. */
interface Part {
  first: number;
  path: string;
}

/** The files with rows, in their order. */
class Parts {
  private listed: Promise<Part[]> | null = null;
  private readonly spread = new Map<number, Promise<Part[]>>();

  /** `rows` is the most rows that there can be. */
  constructor(readonly names: Names, readonly schema: Schema, readonly rows: number) {}

  /** Whether there may be more files than the first. */
  get areSeveral(): boolean {
    return this.rows > MOST_WHOLE;
  }

  get first(): Part {
    return this.areSeveral ? (this.isDense ? this.slice(0) : { first: 0, path: FIRST_PART }) : { first: 0, path: WHOLE };
  }

  private get isDense(): boolean {
    return this.schema.array_type === "dense";
  }

  private slice(number: number): Part {
    const first = number * MOST_WHOLE;
    return { first, path: `islice/${first}:${Math.min(this.rows, first + MOST_WHOLE)}/arrow/cells.arrow` };
  }

  /** Returns all of them. A list may be long, so it is asked for when another than the first is needed. */
  private all(): Promise<Part[]> {
    this.listed ??= partsIn(this.names, "?json");
    this.listed.catch(() => (this.listed = null));
    return this.listed;
  }

  /** Returns some of them, spread evenly, the first included: all if there are at most so many. */
  some(most: number): Promise<Part[]> {
    let some = this.spread.get(most);
    if (!some) {
      some = this.spreadOver(most);
      some.catch(() => this.spread.delete(most));
      this.spread.set(most, some);
    }
    return some;
  }

  private async spreadOver(most: number): Promise<Part[]> {
    if (!this.areSeveral) return [this.first];
    if (!this.isDense) return partsIn(this.names, most === Infinity ? "?json" : `?json&most=${most}`);
    const count = Math.ceil(this.rows / MOST_WHOLE);
    return Array.from({ length: Math.min(count, most) }, (_, at) => this.slice(Math.floor((at * count) / Math.min(count, most))));
  }

  /** Returns those with rows of a range. */
  async of(from: number, to: number, first: ArrowFile): Promise<Part[]> {
    // A part may have fewer rows than were possible; the next one tells.
    if (!this.areSeveral || to <= first.rows) return [this.first];
    if (this.isDense) {
      const [start, end] = [Math.floor(from / MOST_WHOLE), Math.ceil(to / MOST_WHOLE)];
      return Array.from({ length: Math.max(0, end - start) }, (_, at) => this.slice(start + at));
    }
    const all = await this.all();
    let [low, high] = [0, all.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (all[middle].first <= from) low = middle;
      else high = middle - 1;
    }
    let end = low + 1;
    while (end < all.length && all[end].first < to) end++;
    return all.slice(low, end);
  }
}

/** Lists parts of a sparse array. */
async function partsIn(names: Names, query: string): Promise<Part[]> {
  const listed = (await list([...names, "arrow", "parts"], undefined, query)).filter((entry) => entry.name.endsWith(".arrow"));
  return listed.map((entry) => ({ first: parseInt(entry.name, 10), path: `arrow/parts/${entry.name}` }));
}

/** How far a pass over the files of a table is. */
export interface Progress {
  done: number;
  all: number;
}

/** Files of which the next ones are opened while one is looked at: each waits for the server to find its rows. */
const AHEAD = 3;

export class Rows {
  private files = new Map<string, Promise<ArrowFile>>();
  /** The files whose rows were counted, from the first on, and where each begins. */
  private counted: { part: Part; start: number; rows: number }[] = [];

  private constructor(
    readonly names: Names,
    readonly columns: Column[],
    /** The number of rows, or the most that there can be. */
    public count: number,
    public isExact: boolean,
    /** The file with the first rows. */
    readonly first: ArrowFile,
    private readonly parts: Parts,
  ) {}

  /** Opens the first file. Finds `some` of the files meanwhile, if so many will be needed. */
  static async open(names: Names, schema: Schema, some = 0): Promise<Rows> {
    const known = schema.array_type === "dense" ? schema.shape?.[0] ?? 0 : schema.rows ?? null;
    const parts = new Parts(names, schema, known ?? schema.rows_at_most ?? MOST_WHOLE);
    if (some) void parts.some(some).catch(() => undefined);
    // Later reads outlive the signal of who opened it.
    const first = await ArrowFile.open(names, parts.first.path);
    return new Rows(names, first.columns, parts.areSeveral ? parts.rows : first.rows, known !== null || !parts.areSeveral, first, parts);
  }

  private file({ path }: Part): Promise<ArrowFile> {
    if (path === this.parts.first.path) return Promise.resolve(this.first);
    let file = this.files.get(path);
    if (!file) {
      file = ArrowFile.open(this.names, path);
      file.catch(() => this.files.delete(path));
      if (this.files.size >= MOST_OPEN) this.files.delete(this.files.keys().next().value!);
      this.files.set(path, file);
    }
    return file;
  }

  /** The rows that were found so far, of a table whose rows are being counted. */
  get found(): number {
    const last = this.counted.at(-1);
    return this.isExact ? this.count : last ? last.start + last.rows : 0;
  }

  /** Goes through all files, in their order, each with the number of its first row. */
  async *each(signal: AbortSignal, tell: (progress: Progress) => void = () => {}): AsyncGenerator<[ArrowFile, number]> {
    const parts = await this.parts.some(Infinity);
    const files = parts.slice(0, AHEAD).map((part) => this.file(part));
    let start = 0;
    for (let at = 0; at < parts.length; at++) {
      tell({ done: at, all: parts.length });
      const file = await files[at];
      signal.throwIfAborted();
      if (at + AHEAD < parts.length) files.push(this.file(parts[at + AHEAD]));
      if (at === this.counted.length) this.counted.push({ part: parts[at], start, rows: file.rows });
      yield [file, start];
      start += file.rows;
    }
    [this.count, this.isExact] = [start, true];
    tell({ done: parts.length, all: parts.length });
  }

  /** Opens some of the files, spread evenly. */
  async some(most: number): Promise<ArrowFile[]> {
    return Promise.all((await this.parts.some(most)).map((part) => this.file(part)));
  }

  /** Returns the files with rows of a range, and the number of the first row of each. */
  private async filesOf(from: number, to: number): Promise<[Part, number][]> {
    if (to <= this.found && this.counted.length) {
      return this.counted.filter(({ start, rows }) => start < to && start + rows > from).map(({ part, start }) => [part, start]);
    }
    return (await this.parts.of(from, to, this.first)).map((part) => [part, part.first]);
  }

  /** Reads the bytes of one cell as they are stored; null if it is null, or no text and no bytes. */
  async bytes(row: number, column: number): Promise<Uint8Array | null> {
    const [[part, first]] = await this.filesOf(row, row + 1);
    return (await this.file(part)).bytes(row - first, column);
  }

  /** Reads rows, as arrays of columns' values; undefined where a part has fewer rows than were possible. */
  async read(from: number, to: number, columns: number[]): Promise<(Cell[] | undefined)[]> {
    const out: (Cell[] | undefined)[] = new Array(Math.max(0, to - from)).fill(undefined);
    for (const [part, first] of await this.filesOf(from, to)) {
      const file = await this.file(part);
      const [start, end] = [Math.max(0, from - first), Math.min(file.rows, to - first)];
      if (start >= end) continue;
      const values = await file.read(start, end, columns);
      for (let row = start; row < end; row++) out[first + row - from] = values.map((column) => column[row - start]);
    }
    return out;
  }
}
