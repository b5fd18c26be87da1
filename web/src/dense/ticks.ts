// Marks of an axis: positions where its coordinates are round, or labels as far apart as they fit.
import { scaleLinear, scaleUtc } from "d3-scale";
import { coordinateText } from "./notes";
import type { Axis, Coordinates } from "./read";
import { shown } from "../values";

/** A position, which may be between two cells, and the text that stands there. */
export type Tick = [number, string];

/** Returns what an axis shows: its name, that of its coordinates, and the ends of dates, whose marks may not say the year. */
export function title(axis: Axis, from: number, to: number): string {
  const { coordinates, name } = axis;
  const own = coordinates && coordinates.name !== name && coordinates.name ? `${name}: ${coordinates.name}` : name;
  if (!(coordinates ? coordinates.isDate : axis.isDate)) return shown(own);
  const text = coordinates?.text ?? axis.text;
  return `${shown(own)}, ${text(Math.max(0, Math.floor(from)))} to ${text(Math.min(axis.length - 1, Math.ceil(to) - 1))}`;
}

/** Returns about as many ticks as wanted, from one position to another. */
export function ticks(axis: Axis, from: number, to: number, most: number): Tick[] {
  const count = Math.max(2, Math.floor(most));
  const first = Math.max(0, Math.floor(from)), last = Math.min(axis.length - 1, Math.ceil(to) - 1);
  if (axis.coordinates?.number && last > first) return ofNumbers(axis.coordinates, axis.coordinates.number, first, last, count);
  if (axis.coordinates) return ofTexts(axis.coordinates.text, first, last, count);
  const [low, high] = [axis.number(from), axis.number(to - 1)];
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [];
  const slope = (axis.number(axis.length - 1) - axis.number(0)) / Math.max(1, axis.length - 1) || 1;
  const position = (coordinate: number) => (coordinate - axis.number(0)) / slope;
  if (axis.isDate) return ofDates(low, high, count).map(([date, text]) => [position(date), text]);
  const marks = low === high ? [low] : round(low, high, count);
  const isPlain = axis.step === 1n && !/[:-]./.test(axis.text(0).slice(1));
  return marks.filter((mark) => Number.isInteger(mark)).map((mark) => {
    const at = position(mark);
    return [at, Number.isSafeInteger(mark) && isPlain ? String(mark) : axis.text(at)];
  });
}

/** Returns about as many round numbers between two as wanted, at least two, the ends included if they are round. */
function round(low: number, high: number, count: number): number[] {
  const scale = scaleLinear().domain([low - (high - low) * 1e-9, high + (high - low) * 1e-9]);
  for (let more = count; more < count + 4; more++) if (scale.ticks(more).length > 1) return scale.ticks(more);
  return scale.ticks(count);
}

/** Returns round numbers or dates between the coordinates of two positions, at the places between cells where they are. */
function ofNumbers({ isDate }: Coordinates, number: (position: number) => number, first: number, last: number, count: number): Tick[] {
  const [low, high] = [number(first), number(last)];
  const place = (wanted: number) => placeOf(number, first, last, wanted);
  if (isDate) return ofDates(low, high, count).map(([date, text]) => [place(date), text]);
  const marks = round(low, high, count);
  const step = marks.length > 1 ? Math.abs(marks[1] - marks[0]) : Math.abs(high - low) || 1;
  return marks.map((mark) => [place(mark), coordinateText(mark, step)]);
}

function ofDates(low: number, high: number, count: number): Tick[] {
  const scale = scaleUtc().domain([low, high]);
  const text = scale.tickFormat(count);
  return scale.ticks(count).map((date) => [date.getTime(), text(date)]);
}

function ofTexts(text: (position: number) => string, first: number, last: number, count: number): Tick[] {
  const step = Math.max(1, Math.ceil((last - first) / count));
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, at) => [first + at * step, shown(text(first + at * step))]);
}

/** Returns the place between positions where numbers that grow or fall reach a value. */
function placeOf(number: (position: number) => number, first: number, last: number, wanted: number): number {
  const isBefore = (position: number) => (number(first) < number(last) ? number(position) <= wanted : number(position) >= wanted);
  let [low, high] = [first, last];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isBefore(middle)) low = middle;
    else high = middle;
  }
  const [before, after] = [number(low), number(high)];
  return low + (after === before ? 0 : (wanted - before) / (after - before)) * (high - low);
}
