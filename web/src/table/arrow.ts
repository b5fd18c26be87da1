// Reads rows of an Arrow IPC file by ranges: the footer once, and then only the bytes of the rows and columns that are
// shown. The field numbers are those of "Message.fbs" and "File.fbs" of the Arrow columnar format.
import { Ranges, type Names } from "../server";
import { dateText, floatText, timeText } from "../values";

/** A table of a flatbuffer. */
class Table {
  constructor(readonly view: DataView, readonly at: number) {}

  private place(field: number): number {
    const vtable = this.at - this.view.getInt32(this.at, true);
    const place = 4 + 2 * field;
    return place < this.view.getUint16(vtable, true) ? this.view.getUint16(vtable + place, true) : 0;
  }
  number(field: number, bytes: 1 | 2 | 4, usual = 0): number {
    const place = this.place(field);
    if (!place) return usual;
    const at = this.at + place;
    return bytes === 1 ? this.view.getUint8(at) : bytes === 2 ? this.view.getInt16(at, true) : this.view.getInt32(at, true);
  }
  long(field: number): number {
    const place = this.place(field);
    return place ? Number(this.view.getBigInt64(this.at + place, true)) : 0;
  }
  private target(field: number): number {
    const place = this.place(field);
    return place ? this.at + place + this.view.getUint32(this.at + place, true) : 0;
  }
  table(field: number): Table | null {
    const target = this.target(field);
    return target ? new Table(this.view, target) : null;
  }
  text(field: number): string {
    const target = this.target(field);
    if (!target) return "";
    const length = this.view.getUint32(target, true);
    return new TextDecoder().decode(new Uint8Array(this.view.buffer, this.view.byteOffset + target + 4, length));
  }
  tables(field: number): Table[] {
    const target = this.target(field);
    const length = target ? this.view.getUint32(target, true) : 0;
    return Array.from({ length }, (_, number) => {
      const at = target + 4 + 4 * number;
      return new Table(this.view, at + this.view.getUint32(at, true));
    });
  }
  /** Returns the 64-bit words of a vector of structs. */
  structs(field: number, words: number): number[][] {
    const target = this.target(field);
    const length = target ? this.view.getUint32(target, true) : 0;
    return Array.from({ length }, (_, number) =>
      Array.from({ length: words }, (_, word) => Number(this.view.getBigInt64(target + 4 + 8 * (number * words + word), true))));
  }
}

function rootOf(bytes: Uint8Array): Table {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return new Table(view, view.getUint32(0, true));
}

/** A column of the table. */
export interface Column {
  name: string;
  kind: "integer" | "float" | "boolean" | "text" | "bytes" | "date" | "time" | "list";
  /** What a header shows of its type. */
  type: string;
  /** Turns a number as stored into text. */
  show: (value: Cell) => string;
  node: FieldNode;
}

/** A value as it is compared; null is null. */
export type Cell = number | bigint | string | boolean | Cell[] | null;

interface FieldNode {
  type: number;
  width: number;
  isSigned: boolean;
  unit: string;
  dictionary: number | null;
  children: FieldNode[];
}

const T = { int: 2, float: 3, binary: 4, utf8: 5, bool: 6, date: 8, time: 9, timestamp: 10, list: 12, fixedBinary: 15, fixedList: 16, duration: 18, largeBinary: 19, largeUtf8: 20, largeList: 21 };
const UNITS = ["s", "ms", "us", "ns"];

function nodeOf(field: Table): FieldNode {
  const children = field.tables(5).map(nodeOf);
  const dictionary = field.table(4);
  const node = typeNode(field.number(2, 1), field.table(3), children);
  if (!dictionary) return node;
  // What is stored are the codes; the type of the field is that of the labels.
  const index = dictionary.table(1);
  const codes = typeNode(T.int, index, []);
  if (!index) Object.assign(codes, { width: 4, isSigned: true });
  return { ...codes, dictionary: dictionary.long(0), children: [node] };
}

function typeNode(type: number, table: Table | null, children: FieldNode[]): FieldNode {
  if (!Object.values(T).includes(type)) throw new Error(`an Arrow file with a column of type ${type}, which this page does not read`);
  const node: FieldNode = { type, width: 0, isSigned: true, unit: "", dictionary: null, children };
  if (type === T.int) {
    node.width = (table?.number(0, 4) ?? 32) / 8;
    node.isSigned = !!table?.number(1, 1);
  } else if (type === T.float) node.width = [2, 4, 8][table?.number(0, 2) ?? 1];
  else if (type === T.date) {
    const unit = table?.number(0, 2, 1) ?? 1;
    Object.assign(node, { width: unit === 0 ? 4 : 8, unit: unit === 0 ? "D" : "ms" });
  } else if (type === T.time) {
    Object.assign(node, { width: (table?.number(1, 4, 32) ?? 32) / 8, unit: UNITS[table?.number(0, 2, 1) ?? 1] });
  } else if (type === T.timestamp || type === T.duration) {
    Object.assign(node, { width: 8, unit: UNITS[table?.number(0, 2, type === T.duration ? 1 : 0) ?? 0] });
  } else if (type === T.fixedBinary || type === T.fixedList) node.width = table?.number(0, 4) ?? 0;
  return node;
}

interface Block {
  offset: number;
  metadata: number;
  body: number;
}

interface Batch {
  first: number;
  rows: number;
  buffers: { offset: number; length: number }[];
}

/** The bytes at the beginning of a file among which the schema and the first batch of rows are expected. */
const HEAD = 4096;
/** The bytes at the end of a file among which the footer is expected, if the beginning does not tell where it is. */
const TAIL = 32 << 10;
/** A longer text of a cell is cut. */
const MOST_TEXT = 10_000;
/** Texts of one request that are longer together are not read. */
const MOST_BYTES = 8 << 20;

/** The rows of one Arrow file. */
export class ArrowFile {
  columns: Column[] = [];
  rows = 0;
  private batches: Batch[] = [];
  private dictionaries = new Map<number, Cell[]>();

  private constructor(private readonly ranges: Ranges) {}

  static async open(folder: Names, path: string, signal?: AbortSignal): Promise<ArrowFile> {
    const file = new ArrowFile(new Ranges(folder, path, signal));
    await file.readFooter();
    return file;
  }

  private async readFooter(): Promise<void> {
    // The end of a file holds cells that nobody looks at, which would be decoded if more than the footer were read.
    const [head, total] = await this.ranges.first(HEAD);
    const after = endOfMessages(head);
    const start = after <= total && total - after <= TAIL ? after : Math.max(0, total - TAIL);
    const tail = await this.ranges.read(start, total - start);
    const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength);
    const length = view.getInt32(tail.length - 10, true);
    const end = start + tail.length - 10;
    const footerBytes = length <= end - start ? tail.subarray(end - start - length, end - start) : await this.ranges.read(end - length, length);
    const footer = rootOf(footerBytes.slice());
    const schema = footer.table(1);
    const fields = schema?.tables(1) ?? [];
    const nodes = fields.map(nodeOf);
    this.columns = fields.map((field, number) => columnOf(field.text(0), nodes[number]));
    const blocks = (field: number): Block[] => footer.structs(field, 3).map(([offset, metadata, body]) => ({ offset, metadata: metadata & 0x7fffffff, body }));
    const [dictionaries, batches] = [blocks(2), blocks(3)];
    const messages = await Promise.all([...dictionaries, ...batches].map((block) => this.ranges.read(block.offset, block.metadata)));
    const header = (message: Uint8Array) => rootOf(message.slice(8)).table(2);
    await Promise.all(dictionaries.map(async (block, number) => {
      const message = header(messages[number]);
      const data = message?.table(1);
      if (!message || !data) return;
      const id = message.long(0);
      const column = nodes.find((node) => node.dictionary === id)?.children[0];
      const batch = batchOf(data, block, 0);
      if (column) this.dictionaries.set(id, await this.readNode(column, batch, { at: 0 }, 0, batch.rows));
    }));
    batches.forEach((block, number) => {
      const message = header(messages[dictionaries.length + number]);
      if (!message) return;
      const batch = batchOf(message, block, this.rows);
      this.batches.push(batch);
      this.rows += batch.rows;
    });
  }

  /** Reads some columns of rows. */
  async read(from: number, to: number, columns: number[]): Promise<Cell[][]> {
    const parts = await Promise.all(this.batches.filter((batch) => batch.first < to && batch.first + batch.rows > from).map((batch) => {
      const [first, last] = [Math.max(0, from - batch.first), Math.min(batch.rows, to - batch.first)];
      return Promise.all(columns.map((column) => {
        const start = { at: this.columns.slice(0, column).reduce((sum, one) => sum + buffersOf(one.node), 0) };
        return this.readNode(this.columns[column].node, batch, start, first, last);
      }));
    }));
    return columns.map((_, number) => parts.flatMap((part) => part[number]));
  }

  /** Reads a column of numbers; nulls are NaN, and labels their codes. Null if it holds something else. */
  async numbers(from: number, to: number, column: number): Promise<Float64Array | null> {
    const { node } = this.columns[column];
    if (node.type === T.bool) return Float64Array.from((await this.read(from, to, [column]))[0], (value) => (value === null ? NaN : Number(value)));
    if (![T.int, T.float, T.date, T.time, T.timestamp, T.duration].includes(node.type)) return null;
    const out = new Float64Array(Math.max(0, Math.min(to, this.rows) - from));
    const first = this.columns.slice(0, column).reduce((sum, one) => sum + buffersOf(one.node), 0);
    await Promise.all(this.batches.map(async (batch) => {
      const [start, end] = [Math.max(0, from - batch.first), Math.min(batch.rows, to - batch.first)];
      if (start >= end) return;
      const [validity, values] = [batch.buffers[first], batch.buffers[first + 1]];
      const [bits, bytes] = await Promise.all([
        validity.length ? this.ranges.read(validity.offset + (start >> 3), (end >> 3) - (start >> 3) + 1) : null,
        this.ranges.read(values.offset + start * node.width, (end - start) * node.width),
      ]);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let row = start; row < end; row++) {
        const isNull = bits && !((bits[(row >> 3) - (start >> 3)] >> (row & 7)) & 1);
        out[batch.first + row - from] = isNull ? NaN : Number(numberAt(view, (row - start) * node.width, node));
      }
    }));
    return out;
  }

  /** Reads the bytes of one cell of text or bytes as they are stored, at most `MOST_BYTES`; null for null and other types. */
  async bytes(row: number, column: number): Promise<Uint8Array | null> {
    const { node } = this.columns[column];
    const batch = this.batches.find((batch) => batch.first <= row && row < batch.first + batch.rows);
    if (!batch || node.dictionary !== null || ![T.utf8, T.binary, T.largeUtf8, T.largeBinary].includes(node.type)) return null;
    const first = this.columns.slice(0, column).reduce((sum, one) => sum + buffersOf(one.node), 0);
    const [validity, offsets, values] = batch.buffers.slice(first, first + 3);
    const [at, width] = [row - batch.first, node.type >= T.largeBinary ? 8 : 4];
    const [bits, ends] = await Promise.all([
      validity.length ? this.ranges.read(validity.offset + (at >> 3), 1) : null,
      this.ranges.read(offsets.offset + at * width, 2 * width),
    ]);
    if (bits && !((bits[0] >> (at & 7)) & 1)) return null;
    const view = new DataView(ends.buffer, ends.byteOffset, ends.byteLength);
    const [start, end] = width === 8 ? [Number(view.getBigUint64(0, true)), Number(view.getBigUint64(8, true))] : [view.getUint32(0, true), view.getUint32(4, true)];
    return this.ranges.read(values.offset + start, Math.min(end - start, MOST_BYTES));
  }

  /** Returns the labels of a column of labels. */
  labels(column: number): Cell[] | null {
    const { dictionary } = this.columns[column].node;
    return dictionary === null ? null : this.dictionaries.get(dictionary) ?? [];
  }

  /** Reads the values of a field from its buffers, of which `next` is the first. */
  private async readNode(node: FieldNode, batch: Batch, next: { at: number }, from: number, to: number): Promise<Cell[]> {
    const count = Math.max(0, to - from);
    const buffer = (number: number) => batch.buffers[number] ?? { offset: 0, length: 0 };
    const read = (number: number, offset: number, length: number) => {
      const place = buffer(number);
      return this.ranges.read(place.offset + offset, Math.min(length, Math.max(0, place.length - offset)));
    };
    const bits = (number: number) => (buffer(number).length ? read(number, from >> 3, (to >> 3) - (from >> 3) + 1) : null);
    const first = next.at;
    next.at += buffersOf(node);
    const validity = bits(first);
    const bit = (bytes: Uint8Array, row: number) => (bytes[((from + row) >> 3) - (from >> 3)] >> ((from + row) & 7)) & 1;
    const values = await this.readValues(node, batch, first, from, to, read, bits, bit);
    const valid = await validity;
    const labels = node.dictionary === null ? null : this.dictionaries.get(node.dictionary) ?? [];
    for (let row = 0; row < count; row++) {
      if (valid && !bit(valid, row)) values[row] = null;
      else if (labels) values[row] = labels[Number(values[row])] ?? null;
    }
    return values;
  }

  private async readValues(
    node: FieldNode, batch: Batch, first: number, from: number, to: number,
    read: (number: number, offset: number, length: number) => Promise<Uint8Array>,
    bits: (number: number) => Promise<Uint8Array> | null,
    bit: (bytes: Uint8Array, row: number) => number,
  ): Promise<Cell[]> {
    const count = Math.max(0, to - from);
    const rows = (make: (row: number) => Cell) => Array.from({ length: count }, (_, row) => make(row));
    switch (node.type) {
      case T.bool: {
        const bytes = (await bits(first + 1)) ?? new Uint8Array(count);
        return rows((row) => !!bit(bytes, row));
      }
      case T.fixedBinary: {
        const bytes = await read(first + 1, from * node.width, count * node.width);
        return rows((row) => shownBytes(bytes.subarray(row * node.width, (row + 1) * node.width), false));
      }
      case T.fixedList: {
        const items = await this.readNode(node.children[0], batch, { at: first + 1 }, from * node.width, to * node.width);
        return rows((row) => items.slice(row * node.width, (row + 1) * node.width));
      }
      case T.utf8: case T.binary: case T.list: case T.largeUtf8: case T.largeBinary: case T.largeList: {
        const width = node.type >= T.largeBinary ? 8 : 4;
        const ends = await read(first + 1, from * width, (count + 1) * width);
        const view = new DataView(ends.buffer, ends.byteOffset, ends.byteLength);
        const end = (row: number) => (ends.length < (row + 1) * width ? 0 : width === 8 ? Number(view.getBigUint64(row * 8, true)) : view.getUint32(row * 4, true));
        const [start, last] = [end(0), end(count)];
        if (node.type === T.list || node.type === T.largeList) {
          const items = await this.readNode(node.children[0], batch, { at: first + 2 }, start, Math.min(last, start + 100_000));
          return rows((row) => items.slice(end(row) - start, end(row + 1) - start));
        }
        if (last - start > MOST_BYTES) return rows((row) => `(${end(row + 1) - end(row)} bytes)`);
        const bytes = await read(first + 2, start, last - start);
        const isText = node.type === T.utf8 || node.type === T.largeUtf8;
        return rows((row) => shownBytes(bytes.subarray(end(row) - start, end(row + 1) - start), isText));
      }
      default: {
        const bytes = await read(first + 1, from * node.width, count * node.width);
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        return rows((row) => (bytes.length < (row + 1) * node.width ? null : numberAt(view, row * node.width, node)));
      }
    }
  }
}

/** Returns where the last of the messages ends that the beginning of a file tells of. */
function endOfMessages(head: Uint8Array): number {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  // The magic number comes first, then for each message a marker, the length of its metadata, these, and its body.
  let at = 8;
  while (at + 8 <= head.length && view.getInt32(at, true) === -1) {
    const length = view.getInt32(at + 4, true);
    if (length <= 0 || at + 8 + length > head.length) break;
    at += 8 + length + rootOf(head.subarray(at + 8, at + 8 + length)).long(3);
  }
  return at;
}

function batchOf(message: Table, block: Block, first: number): Batch {
  const body = block.offset + block.metadata;
  const buffers = message.structs(2, 2).map(([offset, length]) => ({ offset: body + offset, length }));
  return { first, rows: message.long(0), buffers };
}

/** Returns how many buffers a field and its items have. */
function buffersOf(node: FieldNode): number {
  if (node.dictionary !== null) return 2;
  const inner = node.children.reduce((sum, child) => sum + buffersOf(child), 0);
  switch (node.type) {
    case T.fixedList: return 1 + inner;
    case T.list: case T.largeList: return 2 + inner;
    case T.utf8: case T.binary: case T.largeUtf8: case T.largeBinary: return 3;
    default: return 2;
  }
}

function numberAt(view: DataView, at: number, node: FieldNode): number | bigint {
  if (node.type === T.float && node.width === 2) return halfAt(view, at);
  if (node.type === T.float) return node.width === 4 ? view.getFloat32(at, true) : view.getFloat64(at, true);
  const signed = node.isSigned || node.type !== T.int;
  switch (node.width) {
    case 1: return signed ? view.getInt8(at) : view.getUint8(at);
    case 2: return signed ? view.getInt16(at, true) : view.getUint16(at, true);
    case 4: return signed ? view.getInt32(at, true) : view.getUint32(at, true);
    default: return signed ? view.getBigInt64(at, true) : view.getBigUint64(at, true);
  }
}

/** Returns a number of 16 bits: a sign, five bits of an exponent, and ten of a fraction. */
function halfAt(view: DataView, at: number): number {
  const bits = view.getUint16(at, true);
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

function shownBytes(bytes: Uint8Array, isText: boolean): string {
  const shown = bytes.subarray(0, MOST_TEXT);
  const more = bytes.length > MOST_TEXT ? "…" : "";
  if (!isText) {
    const picture = pictureKind(bytes);
    if (picture) return `(${picture} picture, ${bytes.length} bytes)`;
    // Text whose encoding nobody stated is mostly text.
    const text = decoded(shown);
    if (text !== null) return text + more;
    return Array.from(shown.subarray(0, 200), (byte) => byte.toString(16).padStart(2, "0")).join("") + (bytes.length > 200 ? "…" : "");
  }
  return new TextDecoder().decode(shown) + more;
}

/** Returns the format of a picture that browsers show, by its first bytes; null for other bytes. */
export function pictureKind(bytes: Uint8Array): string | null {
  const begins = (text: string, at = 0) => [...text].every((one, place) => bytes[at + place] === one.charCodeAt(0));
  if (begins("\x89PNG\r\n\x1a\n")) return "PNG";
  if (begins("\xff\xd8\xff")) return "JPEG";
  if (begins("GIF87a") || begins("GIF89a")) return "GIF";
  return begins("RIFF") && begins("WEBP", 8) ? "WebP" : null;
}

function decoded(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return /[\0-\x08\x0e-\x1f]/.test(text.replace(/\0+$/, "")) ? null : text.replace(/\0+$/, "");
  } catch {
    return null;
  }
}

function columnOf(name: string, node: FieldNode): Column {
  const [kind, type] = kindOf(node);
  const base = node.dictionary === null ? node : node.children[0];
  const show = (value: Cell): string => {
    if (value === null) return "null";
    if (Array.isArray(value)) return value.map((item) => columnOf("", base.children[0]).show(item)).join(", ");
    if (typeof value === "string" || typeof value === "boolean") return String(value);
    if (kind === "date") return dateText(value, base.unit);
    if (kind === "time") return timeText(value, base.unit);
    if (base.type === T.float && base.width === 4) return floatText(Number(value));
    if (typeof value === "number" && !Number.isFinite(value)) return floatText(value);
    return String(value);
  };
  return { name, kind, type, show, node };
}

function kindOf(node: FieldNode): [Column["kind"], string] {
  if (node.dictionary !== null) return [kindOf(node.children[0])[0], "label"];
  switch (node.type) {
    case T.int: return ["integer", `${node.isSigned ? "" : "u"}int${node.width * 8}`];
    case T.float: return ["float", `float${node.width * 8}`];
    case T.bool: return ["boolean", "boolean"];
    case T.utf8: case T.largeUtf8: return ["text", "text"];
    case T.date: case T.timestamp: return ["date", `date [${node.unit}]`];
    case T.duration: case T.time: return ["time", `time [${node.unit}]`];
    case T.list: case T.largeList: case T.fixedList: return ["list", `list of ${kindOf(node.children[0])[1]}`];
    default: return ["bytes", "bytes"];
  }
}
