// Values: arrays of bytes as numbers, and numbers, dates and texts as people read them.
import type { Scalar } from "./schema";

/** The arrays that hold the numbers of a file, by its extension. */
const ARRAYS = {
  i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array, i32: Int32Array, u32: Uint32Array,
  i64: BigInt64Array, u64: BigUint64Array, f32: Float32Array, f64: Float64Array, bool: Uint8Array,
} as const;

export type Extension = keyof typeof ARRAYS;
export type Numbers = InstanceType<(typeof ARRAYS)[Extension]>;
export type Value = number | bigint | string | null;

/** Returns the extension of a file of numbers; null if it holds something else. */
export function extensionOf(file: string): Extension | null {
  const extension = file.slice(file.lastIndexOf(".") + 1);
  return extension in ARRAYS ? (extension as Extension) : null;
}

export function sizeOf(extension: Extension): number {
  return ARRAYS[extension].BYTES_PER_ELEMENT;
}

/** Returns the numbers in little-endian bytes. */
export function numbersIn(bytes: ArrayBuffer | Uint8Array, extension: Extension): Numbers {
  const array = ARRAYS[extension];
  // A view must begin at a multiple of its size, so parts of other buffers are copied.
  const buffer = bytes instanceof Uint8Array ? (bytes.slice().buffer as ArrayBuffer) : bytes;
  return new array(buffer, 0, Math.floor(buffer.byteLength / array.BYTES_PER_ELEMENT));
}

/** Milliseconds in a unit of dates and times; coarser calendar units are handled apart. */
const MILLISECONDS: Record<string, number> = {
  W: 604_800_000, D: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, ns: 1e-6, ps: 1e-9, fs: 1e-12, as: 1e-15,
};
/** Decimal digits of a second in a unit. */
const DIGITS: Record<string, number> = { s: 0, ms: 3, us: 6, ns: 9, ps: 12, fs: 15, as: 18 };
/** The least 64-bit integer means "not a time". */
const NOT_A_TIME = -(2n ** 63n);

/** Returns a date as milliseconds since 1970. */
export function milliseconds(count: number | bigint, unit: string): number {
  if (unit === "Y") return Date.UTC(1970 + Number(count), 0);
  if (unit === "M") return Date.UTC(1970, Number(count));
  return Number(count) * MILLISECONDS[unit];
}

/** Returns a date in ISO 8601, with the digits of its unit. */
export function dateText(value: number | bigint, unit: string): string {
  const count = BigInt(value);
  if (count === NOT_A_TIME) return "NaT";
  if (unit === "Y") return String(1970n + count).padStart(4, "0");
  const digits = DIGITS[unit];
  const day = digits === undefined ? milliseconds(count, unit) : Number(floorDivide(count, 10n ** BigInt(digits))) * 1000;
  const date = new Date(day);
  if (Number.isNaN(date.getTime())) return `${count}${unit}`;
  const iso = date.toISOString();
  const dayText = iso.slice(0, iso.indexOf("T"));
  if (unit === "M") return dayText.slice(0, -3);
  if (unit === "D" || unit === "W") return dayText;
  const time = iso.slice(iso.indexOf("T") + 1, -5);
  if (digits === undefined) return `${dayText} ${time.slice(0, 5)}`;
  const part = digits ? "." + String(modulo(count, 10n ** BigInt(digits))).padStart(digits, "0") : "";
  // Midnight and whole seconds need no zeros.
  const shown = time + part.replace(/\.?0+$/, "");
  return shown === "00:00:00" ? dayText : `${dayText} ${shown}`;
}

/** Returns a time of day. */
export function timeText(value: number | bigint, unit: string): string {
  const count = BigInt(value);
  if (count === NOT_A_TIME) return "NaT";
  const digits = DIGITS[unit];
  const seconds = digits === undefined ? count * BigInt(MILLISECONDS[unit] / 1000) : floorDivide(count, 10n ** BigInt(digits));
  const two = (number: bigint) => String(number).padStart(2, "0");
  const sign = seconds < 0n ? "-" : "";
  const absolute = seconds < 0n ? -seconds : seconds;
  const part = digits ? "." + String(modulo(count, 10n ** BigInt(digits))).padStart(digits, "0").replace(/0+$/, "") : "";
  return `${sign}${two(absolute / 3600n)}:${two((absolute / 60n) % 60n)}:${two(absolute % 60n)}${part === "." ? "" : part}`;
}

function floorDivide(value: bigint, by: bigint): bigint {
  return (value - modulo(value, by)) / by;
}

function modulo(value: bigint, by: bigint): bigint {
  return ((value % by) + by) % by;
}

/** Returns the shortest number that is the same float32. */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "-inf";
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}

/** Returns a value of a TileDB type as text. */
export function valueText(value: Value | undefined, datatype: string, unit?: string): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return value;
  if (unit && datatype.startsWith("DATETIME")) return dateText(value, unit);
  if (unit && datatype.startsWith("TIME")) return timeText(value, unit);
  if (datatype === "BOOL") return value ? "true" : "false";
  if (datatype === "FLOAT32") return floatText(Number(value));
  if (datatype === "FLOAT64") {
    const number = Number(value);
    return Number.isNaN(number) ? "NaN" : number === Infinity ? "inf" : number === -Infinity ? "-inf" : String(number);
  }
  return String(value);
}

/** Returns a number with separators between thousands. */
export function grouped(value: number | bigint): string {
  return value.toLocaleString("en-US");
}

/** Returns a number of bytes as people read it. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? grouped(value) : value.toPrecision(3)} ${units[unit]}`;
}

/** Returns a type of TileDB in the words of NumPy. */
export function typeText(datatype: string, unit?: string, count: number | "variable" = 1): string {
  const times = count === "variable" || count === 1 ? "" : ` × ${count}`;
  if (unit && datatype.startsWith("DATETIME")) return `date [${unit}]${times}`;
  if (unit && datatype.startsWith("TIME")) return `time [${unit}]${times}`;
  if (/^(STRING_UTF8|STRING_ASCII|CHAR)$/.test(datatype)) return "text";
  if (datatype.startsWith("STRING")) return `text (${datatype.slice(7)})`;
  const many = count === "variable" ? "list of " : "";
  return many + datatype.toLowerCase().replace("blob", "bytes") + times;
}

/** Returns the number of an integer of JSON, which may be text if it is long. */
export function integer(value: Scalar | undefined): bigint {
  try {
    return BigInt(value ?? 0);
  } catch {
    return 0n;
  }
}

/** Characters that change how the text around them is shown, instead of being shown themselves, as Unicode's category Cf and controls. */
const STEERING = /[\x00-\x1f\x7f-\x9f\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/gu;

/** Returns a stored text as it is safe to show: what would turn its direction, or cannot be seen, is an escape. */
export function shown(text: string): string {
  return text.replace(STEERING, (one) => ({ "\n": "\\n", "\r": "\\r", "\t": "\\t" })[one] ?? `\\u{${one.codePointAt(0)!.toString(16)}}`);
}

/** Returns a text of several lines as it is safe to show: breaks of lines and tabs stay. */
export function shownLines(text: string): string {
  return text.replace(/[^\n\t]+/g, shown);
}
