// Conditions on columns, one box each: together they are a selection of the tree, and a condition in Python.
import type { Attribute, Schema } from "../schema";
import { labelsOf } from "../schema";
import { dateText } from "../values";
import type { Column } from "./arrow";

/** The text that selects nulls. */
export const NULL = "%null";

/** Returns the ranges of each column in a selection of `slice/`. Those without a name are of the dimensions in their order. */
export function boxesOf(selection: string | null, schema: Schema): Map<string, string> {
  const boxes = new Map<string, string>();
  if (!selection?.startsWith("slice/")) return boxes;
  selection.slice("slice/".length).split(",").forEach((part, place) => {
    const at = part.indexOf("=");
    if (at >= 0) boxes.set(unescaped(part.slice(0, at)), part.slice(at + 1));
    else if (schema.dimensions[place]) boxes.set(schema.dimensions[place].name, part);
  });
  return boxes;
}

function unescaped(text: string): string {
  try {
    return text === "%" ? "" : decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the selection of boxes; null if all are empty. */
export function selectionOf(boxes: Map<string, string>): string | null {
  const parts = [...boxes].flatMap(([name, typed]) => {
    // In a box, these can only be part of a value.
    const text = typed.trim().replace(/[,=/]/g, encodeURIComponent);
    return text ? [`${name.replace(/[,+=%/]/g, encodeURIComponent)}=${text}`] : [];
  });
  return parts.length ? parts.join(",") : null;
}

/** Returns a value as it is typed in a box. */
export function typedValue(value: number | bigint | string | null, column: Column): string {
  if (value === null) return NULL;
  if (typeof value === "string") return value === "" ? "%" : value.replace(/[,+=%/.\p{Cc}\p{Cf}]/gu, (one) => (one === "." ? "%2E" : encodeURIComponent(one))).replace(/^\s+|\s+$/g, encodeURIComponent);
  if (column.kind === "date") return dateText(value, column.node.unit).replace(" ", "T");
  if (column.kind === "boolean") return value ? "true" : "false";
  return String(value).replace("e+", "e");
}

/** Returns whether rows can be selected by the values of a column. */
export function canSelect(schema: Schema, name: string): boolean {
  if (schema.array_type !== "sparse") return false;
  if (schema.dimensions.some((dimension) => dimension.name === name)) return true;
  const attribute = schema.attributes.find((one) => one.name === name);
  if (!attribute) return false;
  return isText(attribute.datatype) || attribute.values_per_cell === 1;
}

function isText(datatype: string): boolean {
  return /^(STRING_UTF8|STRING_ASCII|CHAR|BLOB)$/.test(datatype);
}

/** Returns a selection as a condition of TileDB-Py and of tilefs; null for what it cannot say. */
export function pythonCondition(selection: string | null, schema: Schema): string | null {
  const parts: string[] = [];
  for (const [name, typed] of boxesOf(selection, schema)) {
    const dimension = schema.dimensions.find((one) => one.name === name);
    const attribute = schema.attributes.find((one) => one.name === name);
    const datatype = (dimension ?? attribute)?.datatype;
    if (!datatype || /DATETIME|TIME/.test(datatype) || dimension?.unit) return null;
    const field = /^[a-z_]\w*$/i.test(name) && !PYTHON.test(name) ? name : `${dimension ? "dim" : "attr"}(${JSON.stringify(name)})`;
    const ranges = typed.split("+").map((range) => pythonRange(field, range, datatype, attribute && !dimension ? attribute : null, schema));
    if (ranges.some((range) => range === null)) return null;
    parts.push(ranges.length === 1 ? ranges[0]! : `(${ranges.join(" or ")})`);
  }
  return parts.length ? parts.join(" and ") : null;
}

const PYTHON = /^(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield|attr|dim|val)$/;

function pythonRange(field: string, range: string, datatype: string, attribute: Attribute | null, schema: Schema): string | null {
  if (range === NULL) return `${field} == None`;
  const labels = attribute?.enumeration ? labelsOf(schema, attribute) : null;
  const isQuoted = attribute?.enumeration ? typeof labels?.[0] === "string" : isText(datatype);
  const value = (text: string) => {
    const plain = unescaped(text);
    if (isQuoted) return JSON.stringify(plain);
    if (plain === "true" || plain === "false") return plain === "true" ? "True" : "False";
    return /^-?(0|[1-9]\d*)(\.\d+)?(e[-+]?\d+)?$/i.test(plain) ? plain : null;
  };
  const ends = range.split("..");
  if (ends.length > 2 || (!isQuoted && range.includes(":"))) return null;
  if (ends.length === 1) {
    const only = value(range);
    return only && `${field} == ${only}`;
  }
  if (attribute?.enumeration && (ends[0] || ends[1])) return null;
  if (!ends[0] && !ends[1]) return `${field} != None`;
  const [low, high] = ends.map((end) => (end ? value(end) : ""));
  if (low === null || high === null) return null;
  const both = [low && `${field} >= ${low}`, high && `${field} <= ${high}`].filter(Boolean);
  return both.length === 2 ? `(${both.join(" and ")})` : both[0]!;
}
