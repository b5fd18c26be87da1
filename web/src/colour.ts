// Colours of numbers: colour maps, limits, and categories.
import {
  interpolateCividis, interpolateGreys, interpolateInferno, interpolateMagma, interpolatePlasma, interpolateRainbow,
  interpolateRdBu, interpolateTurbo, interpolateViridis, schemeTableau10,
} from "d3-scale-chromatic";

export const MAPS: Record<string, (place: number) => string> = {
  viridis: interpolateViridis,
  cividis: interpolateCividis,
  magma: interpolateMagma,
  inferno: interpolateInferno,
  plasma: interpolatePlasma,
  turbo: interpolateTurbo,
  grey: (place) => interpolateGreys(1 - place),
  "red-blue": (place) => interpolateRdBu(1 - place),
};

/** How numbers become colours. */
export interface Scale {
  low: number;
  high: number;
  map: string;
  curve: Curve;
}

/** How places on a scale grow with numbers. */
export const CURVES = ["linear", "log", "symlog", "square root"] as const;
export type Curve = (typeof CURVES)[number];

/** The end of the name of a map that goes the other way. */
export const INVERTED = "-inverted";

function mapOf(name: string): (place: number) => string {
  const plain = MAPS[name.replace(INVERTED, "")] ?? MAPS.viridis;
  return name.endsWith(INVERTED) ? (place) => plain(1 - place) : plain;
}

/** Returns what grows evenly along a scale; `most` is the greatest absolute number on it. */
export function curved(value: number, curve: Curve, most: number): number {
  switch (curve) {
    case "log": return Math.log10(value);
    // Linear within a thousandth of the greatest number.
    case "symlog": return Math.sign(value) * Math.log10(1 + Math.abs(value) / (most / 1000 || 1));
    case "square root": return Math.sign(value) * Math.sqrt(Math.abs(value));
    default: return value;
  }
}

const tables = new Map<string, Uint32Array>();

/** Returns 256 colours of a map, as pixels of a canvas. */
export function tableOf(map: string): Uint32Array {
  const known = tables.get(map);
  if (known) return known;
  const colour = mapOf(map);
  const table = Uint32Array.from({ length: 256 }, (_, at) => pixel(colour(at / 255)));
  tables.set(map, table);
  return table;
}

/** Returns a colour of CSS (`#rrggbb` or `rgb(r, g, b)`) as a pixel. */
export function pixel(colour: string): number {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  const parts = hex ? hex.slice(1).map((part) => parseInt(part, 16)) : (colour.match(/\d+/g) ?? []).map(Number);
  return rgb(parts[0], parts[1], parts[2]);
}

/** Returns a pixel of a canvas, whose bytes are red, green, blue and opacity. */
export function rgb(red: number, green: number, blue: number, opacity = 255): number {
  return ((opacity << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Returns the place of a number on a scale, from 0 to 1. */
export function placeOf(value: number, scale: Scale): number {
  const { low, high } = scale;
  if (high <= low) return 0.5;
  const curve = scale.curve === "log" && low <= 0 ? "linear" : scale.curve;
  const most = Math.max(Math.abs(low), Math.abs(high));
  const [from, to] = [curved(low, curve, most), curved(high, curve, most)];
  const place = (curved(value, curve, most) - from) / (to - from);
  return place < 0 || Number.isNaN(place) ? 0 : place > 1 ? 1 : place;
}

/** Returns the colour of a number. */
export function colourAt(value: number, scale: Scale): string {
  return mapOf(scale.map)(placeOf(value, scale));
}

/** The most categories that have a colour of their own. */
const MOST_CATEGORIES = 1024;

/** Returns the colour of a category: ten that are easy to tell apart, then hues that differ from those before them. */
export function category(number: number): string {
  const place = (Math.abs(number) || 0) % MOST_CATEGORIES;
  // Multiples of the golden ratio fall into the widest gaps that earlier ones have left.
  return schemeTableau10[place] ?? interpolateRainbow((place * 0.618034) % 1);
}

/** Returns the colours of at most so many categories, as pixels of a canvas. */
export function categoryPixels(count: number): Uint32Array {
  return Uint32Array.from({ length: Math.min(Math.max(count, 1), MOST_CATEGORIES) }, (_, number) => pixel(category(number)));
}

/** What is known of numbers that were loaded. */
export interface Statistics {
  count: number;
  missing: number;
  least: number;
  greatest: number;
  mean: number;
  /** The 2nd and the 98th percentile. */
  low: number;
  high: number;
  /** The least number above zero. */
  positive: number;
  bins: number[];
}

/** The most numbers that are sorted for percentiles. */
const MOST_SORTED = 50_000;

/** Computes statistics of numbers; those that are missing are NaN. */
export function statistics(values: ArrayLike<number>, binCount = 48): Statistics | null {
  let count = 0, least = Infinity, greatest = -Infinity, sum = 0, positive = Infinity;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (!Number.isFinite(value)) continue;
    count++;
    sum += value;
    if (value < least) least = value;
    if (value > greatest) greatest = value;
    if (value > 0 && value < positive) positive = value;
  }
  if (count === 0) return null;
  const step = Math.max(1, Math.floor(values.length / MOST_SORTED));
  const sample: number[] = [];
  for (let at = 0; at < values.length; at += step) if (Number.isFinite(values[at])) sample.push(values[at]);
  const sorted = Float64Array.from(sample).sort();
  const last = sorted.length - 1;
  const bins = new Array<number>(binCount).fill(0);
  const width = greatest - least || 1;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (Number.isFinite(value)) bins[Math.min(binCount - 1, Math.floor(((value - least) / width) * binCount))]++;
  }
  return {
    count, missing: values.length - count, least, greatest, mean: sum / count, positive, bins,
    low: last < 0 ? least : sorted[Math.floor(0.02 * last)],
    high: last < 0 ? greatest : sorted[Math.ceil(0.98 * last)],
  };
}
