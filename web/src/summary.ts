// One line that says what a node is.
import type { Schema } from "./schema";
import { bytesText, extensionOf, grouped, shown, sizeOf, typeText } from "./values";

/** Returns what an array is, in a few words. */
export function arrayLine(schema: Schema): string {
  const types = [...new Set(schema.attributes.map((one) => typeText(one.datatype, one.unit, one.values_per_cell)))];
  const count = schema.attributes.length;
  const many = `, ${grouped(count)} attributes${types.length === 1 ? ` of ${types[0]}` : ""}`;
  const type = count === 1 ? ` ${types[0]}` : many;
  if (schema.array_type === "dense") return `dense${type}, ${(schema.shape ?? []).map(grouped).join(" × ")}`;
  const rows = schema.rows ?? schema.rows_at_most;
  const rowCount = rows === undefined || rows === null ? "" : `, ${schema.rows == null ? "at most " : ""}${grouped(rows)} row${rows === 1 ? "" : "s"}`;
  const axes = shown(schema.dimensions.map((one) => one.name).join(", "));
  return `sparse${type}${rowCount}, by ${axes}`;
}

/** Returns the size of all values as they are decoded; null if cells have no fixed size. */
export function decodedBytes(schema: Schema): number | null {
  const cells = schema.array_type === "dense" ? schema.shape?.reduce((product, length) => product * length, 1) : schema.rows;
  if (cells === null || cells === undefined) return null;
  let row = 0;
  for (const one of schema.attributes) {
    const extension = extensionOf(one.files[0] ?? "");
    if (one.values_per_cell === "variable") return null;
    row += (extension ? sizeOf(extension) : 1) * one.values_per_cell;
  }
  return cells * row;
}

/** Returns the line about the writes of an array, and its sizes. */
export function writesLine(schema: Schema, stored: number | null): string {
  const last = schema.time.last_commit;
  const decoded = decodedBytes(schema);
  const parts = [
    `${grouped(schema.fragments)} write${schema.fragments === 1 ? "" : "s"}${last && schema.fragments > 0 ? `, ${schema.fragments === 1 ? "" : "the last "}on ${last.slice(0, 16).replace("T", " ")} UTC` : ""}`,
    stored !== null && `${bytesText(stored)} stored`,
    decoded !== null && `${bytesText(decoded)} decoded`,
  ];
  return parts.filter(Boolean).join(" · ");
}
