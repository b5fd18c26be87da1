// Layers of a picture: cells of a part of the plane at some step, as colours.
import { placeOf, rgb, tableOf, type Scale } from "../colour";
import type { Attribute, Schema } from "../schema";
import type { Names } from "../server";
import { preview, readAhead, readCells, refinements, valueAt, type Cells, type Pick, type Positions } from "./read";
import { drawn } from "./numbers";
import type { Value } from "../values";

/** An array whose cells fill the plane. A level of a pyramid has fewer: one for `scale` of the finest. */
export interface Source {
  names: Names;
  schema: Schema;
  attribute: Attribute;
  scale: number;
}

/** The colour of a channel at its greatest number; none at its least. */
export interface Channel {
  name: string;
  colour: [number, number, number];
  least: number;
  greatest: number;
  /** Whether it is not drawn. */
  isOff?: boolean;
}

/** The most bands that are one picture, as they are and as channels. */
const MOST_BANDS = 4;
export const MOST_CHANNELS = 8;

/** What of an array the plane shows. */
export interface Plane {
  rows: number;
  columns: number;
  /** A position for each dimension; those of rows, columns and bands do not count. */
  fixed: number[];
  /** The dimension whose positions are red, green, blue and perhaps opacity. */
  bands: number | null;
  /** The colours of bands that are added; null if bands are red, green and blue. */
  channels: Channel[] | null;
  component: number;
}

/** A part of the plane, in positions of the finest level. */
export interface Window {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

/** Cells of a part of the plane. Edges and steps are in positions of the finest level. */
export interface Layer {
  source: Source;
  cells: Cells;
  top: number;
  left: number;
  rowStep: number;
  columnStep: number;
  rows: Positions;
  columns: Positions;
  /** A number for each cell, row by row; NaN is missing. */
  values: Float64Array;
  /** Pixels, if bands are colours. */
  pixels: Uint32Array | null;
  bands: number;
}

/** Yields layers of a part of the plane, coarse first. */
export async function* layersOf(
  sources: Source[],
  plane: Plane,
  window: Window,
  most: [number, number],
  budgets: number[],
  signal: AbortSignal,
): AsyncGenerator<Layer> {
  const source = levelFor(sources, window, most);
  const { schema, attribute, scale } = source;
  const shape = schema.shape ?? [];
  const range = (dimension: number, from: number, to: number, most: number) => ({
    dimension,
    start: Math.max(0, Math.floor(from / scale)),
    end: Math.min(shape[dimension], Math.max(Math.ceil(to / scale), Math.floor(from / scale) + 1)),
    most,
  });
  const fixed = fixedOf(shape, plane);
  const ranges = [
    range(plane.rows, window.top, window.bottom, most[0]),
    range(plane.columns, window.left, window.right, most[1]),
  ];
  for (const pick of refinements(schema, attribute, fixed, ranges, budgets)) {
    const cells = await readCells(source.names, attribute, pick, signal);
    yield layer(source, plane, cells, ranges[0].start, ranges[1].start);
  }
}

/** Returns a pick of one position along each dimension, and of all bands that are drawn. */
function fixedOf(shape: number[], plane: Plane): Pick {
  const fixed: Pick = plane.fixed.map((position, dimension) => Math.min(position, shape[dimension] - 1));
  if (plane.bands !== null) fixed[plane.bands] = { start: 0, count: Math.min(plane.channels ? MOST_CHANNELS : MOST_BANDS, shape[plane.bands]), step: 1 };
  return fixed;
}

/** Begins to read the first picture of the whole plane that a slow link gets. */
export function beginFirst({ names, schema, attribute }: Source, plane: Plane): void {
  const shape = schema.shape ?? [];
  const range = (dimension: number) => ({ dimension, start: 0, end: shape[dimension] });
  readAhead(names, attribute, preview(attribute, fixedOf(shape, plane), [range(plane.rows), range(plane.columns)]));
}

/** Returns the coarsest level that still has a cell for each pixel. */
function levelFor(sources: Source[], window: Window, most: [number, number]): Source {
  const step = Math.max((window.bottom - window.top) / most[0], (window.right - window.left) / most[1]);
  const fits = sources.filter((source) => source.scale <= Math.max(1, step) * 1.01);
  return fits.reduce((best, source) => (source.scale > best.scale ? source : best), sources[0]);
}

function layer(source: Source, plane: Plane, cells: Cells, top: number, left: number): Layer {
  const rows = cells.pick[plane.rows] as Positions;
  const columns = cells.pick[plane.columns] as Positions;
  const stored = drawn(cells, source.attribute, plane.component);
  const bands = plane.bands === null ? 1 : cells.shape[plane.bands];
  const values = new Float64Array(rows.count * columns.count);
  const pixels = plane.bands === null || (bands < 3 && !plane.channels) ? null : new Uint32Array(values.length);
  const most = pixels ? brightest(stored, source.attribute.datatype) : 1;
  for (let row = 0, at = 0; row < rows.count; row++) {
    for (let column = 0; column < columns.count; column++, at++) {
      const index = (band: number) => cellIndex(cells, plane, row, column, band);
      values[at] = stored[index(0)];
      if (pixels) {
        const part = (band: number) => (255 * stored[index(band)]) / most;
        const isMissing = Number.isNaN(values[at]);
        if (plane.channels) pixels[at] = added(plane.channels, (band) => stored[index(band)]);
        else pixels[at] = isMissing ? 0 : rgb(part(0), part(1), part(2), bands > 3 ? part(3) : 255);
      }
    }
  }
  return {
    source, cells, rows, columns, values, pixels, bands,
    top: top * source.scale, left: left * source.scale,
    rowStep: rows.step * source.scale, columnStep: columns.step * source.scale,
  };
}

/** Returns the sum of the colours of channels; of those without a value, there is none. */
function added(channels: Channel[], value: (band: number) => number): number {
  const sum = [0, 0, 0];
  channels.forEach(({ colour, least, greatest, isOff }, band) => {
    if (isOff) return;
    const share = Math.min(1, Math.max(0, (value(band) - least) / (greatest - least || 1))) || 0;
    colour.forEach((part, at) => (sum[at] += share * part));
  });
  const [red, green, blue] = sum.map((part) => Math.min(255, Math.round(part)));
  return rgb(red, green, blue);
}

/** Returns the number that is full brightness: that of the type, or the greatest of wider types. */
function brightest(values: Float64Array, datatype: string): number {
  if (datatype === "UINT8") return 255;
  const greatest = values.reduce((most, value) => (value > most ? value : most), 0);
  return datatype.startsWith("FLOAT") && greatest <= 1 ? 1 : greatest <= 255 ? 255 : greatest;
}

function cellIndex(cells: Cells, plane: Plane, row: number, column: number, band: number): number {
  return cells.shape.reduce((at, length, dimension) => {
    const place = dimension === plane.rows ? row : dimension === plane.columns ? column : dimension === plane.bands ? band : 0;
    return at * length + place;
  }, 0);
}

/** The cell that a layer shows at a position of the plane. */
export interface Shown {
  row: number;
  column: number;
  values: Value[];
}

/** Returns the cell that a layer shows at a position; null outside. */
export function cellAt(layer: Layer, plane: Plane, row: number, column: number): Shown | null {
  const place = [Math.floor((row - layer.top) / layer.rowStep), Math.floor((column - layer.left) / layer.columnStep)];
  if (place[0] < 0 || place[1] < 0 || place[0] >= layer.rows.count || place[1] >= layer.columns.count) return null;
  const count = layer.source.attribute.values_per_cell;
  const parts = layer.pixels ? layer.bands : count === "variable" ? 1 : Math.min(count, 4);
  const values = Array.from({ length: parts }, (_, part) =>
    layer.pixels
      ? valueAt(layer.cells, cellIndex(layer.cells, plane, place[0], place[1], part), plane.component)
      : valueAt(layer.cells, cellIndex(layer.cells, plane, place[0], place[1], 0), part),
  );
  const { scale } = layer.source;
  return {
    row: (layer.rows.start + place[0] * layer.rows.step) * scale,
    column: (layer.columns.start + place[1] * layer.columns.step) * scale,
    values,
  };
}

/** Returns a pixel for each cell of a layer: by the scale, or by the colours of its numbers, which may repeat. */
export function coloured(layer: Layer, scale: Scale, categories: Uint32Array | null, repeats: boolean): Uint32Array {
  if (layer.pixels) return layer.pixels;
  const table = categories ?? tableOf(scale.map);
  return Uint32Array.from(layer.values, (value) => {
    if (Number.isNaN(value)) return 0;
    if (categories && !repeats) return categories[value] ?? 0;
    if (categories) return categories[((value % categories.length) + categories.length) % categories.length];
    return table[Math.min(255, Math.floor(placeOf(value, scale) * 256))];
  });
}
