// The numbers of cells as they are drawn: missing ones are NaN.
import type { Attribute } from "../schema";
import type { Cells } from "./read";
import { valueText, type Value } from "../values";

/** The parts of a cell of several numbers that can be shown. */
export const PARTS = ["modulus", "phase"] as const;

/** Returns whether cells are complex numbers, as TileDB-Py and xarray store them: pairs of floats. */
export function isPair(attribute: Attribute): boolean {
  return attribute.values_per_cell === 2 && attribute.datatype.startsWith("FLOAT");
}

/** Returns the names of what can be shown of a cell. */
export function componentsOf(attribute: Attribute): string[] {
  const count = attribute.values_per_cell;
  if (count === "variable" || count === 1) return [];
  const numbers = Array.from({ length: Math.min(count, 64) }, (_, number) => `value ${number + 1}`);
  return isPair(attribute) ? ["real", "imaginary", ...PARTS] : numbers;
}

/** Returns a stored value as people read it: with its factor, and its unit. */
export function meantText(value: Value, attribute: Attribute): string {
  const { scale = 1, offset = 0, valueUnit, missing } = attribute;
  if (value === null || typeof value === "string" || missing?.includes(Number(value))) return valueText(value, attribute.datatype, attribute.unit);
  const isStored = scale === 1 && offset === 0;
  const text = isStored ? valueText(value, attribute.datatype, attribute.unit) : String(Number((Number(value) * scale + offset).toPrecision(12)));
  return valueUnit && text !== "NaN" ? `${text} ${valueUnit}` : text;
}

/** Returns one number of each cell. Nulls, and fill values where they are no ordinary values, are NaN. */
export function drawn(cells: Cells, attribute: Attribute, component: number): Float64Array {
  const { numbers, valid, perCell } = cells;
  const count = cells.shape.reduce((product, length) => product * length, 1);
  const out = new Float64Array(count).fill(NaN);
  if (!numbers) return out;
  const fills = Array.isArray(attribute.fill) ? attribute.fill : [attribute.fill];
  // In types of one byte, the usual fill value is white.
  const fill = numbers.BYTES_PER_ELEMENT === 1 ? NaN : Number(fills[0]);
  const missing = new Set(attribute.missing);
  const isPart = perCell === 2 && component >= 2;
  const { scale = 1, offset = 0 } = attribute;
  for (let at = 0; at < count; at++) {
    if (valid && !valid[at]) continue;
    const first = Number(numbers[at * perCell + (isPart ? 0 : component)]);
    if (isPart) {
      const second = Number(numbers[at * perCell + 1]);
      out[at] = component === 2 ? Math.hypot(first, second) : Math.atan2(second, first);
    } else if (first !== fill && !missing.has(first)) {
      out[at] = first * scale + offset;
    }
  }
  return out;
}
