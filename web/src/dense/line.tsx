// Cells along one axis as a line: each column of pixels spans the least and the greatest value in it.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { scaleLinear } from "d3-scale";
import { curved, statistics, type Curve, type Statistics } from "../colour";
import { remember } from "../place";
import { Busy, Trouble, rounded, useDark } from "../parts";
import type { Attribute, Scalar, Schema } from "../schema";
import type { Names } from "../server";
import { grouped, shown as safe } from "../values";
import { drawn, meantText } from "./numbers";
import { ticks, title } from "./ticks";
import { BUDGETS, placeText, readCells, refinements, valueAt, type Axis, type Cells, type Pick, type Positions } from "./read";

const LEFT = 78, BOTTOM = 34, TOP = 12, RIGHT = 14, HEIGHT = 380;
/** The most cells that one view reads. */
const MOST_CELLS = 250_000;

interface Props {
  names: Names;
  schema: Schema;
  attribute: Attribute;
  axis: Axis;
  fixed: number[];
  component: number;
  labels: Scalar[] | null;
  curve: Curve;
  window: [number, number] | null;
  onStatistics: (statistics: Statistics | null, isSample: boolean) => void;
}

interface Line {
  cells: Cells;
  values: Float64Array;
  positions: Positions;
}

export function LinePlot({ names, schema, attribute, axis, fixed, component, labels, curve, window: asked, onStatistics }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [range, setRange] = useState<[number, number]>(() => {
    const inside = asked && [Math.min(asked[0], axis.length - 1), Math.min(asked[1], axis.length)] as [number, number];
    return inside ?? [0, axis.length];
  });
  /** Whether somebody moved the view: only then is it another one than the address says. */
  const isMoved = useRef(false);
  const show = (next: [number, number]) => {
    isMoved.current = true;
    setRange(next);
  };
  const [line, setLine] = useState<Line | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<unknown>(null);
  const isDark = useDark();
  const drag = useRef<[number, [number, number]] | null>(null);

  useLayoutEffect(() => {
    if (!box.current) return;
    const element = box.current;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);

  const key = JSON.stringify([names, attribute.name, fixed, component, range]);
  useEffect(() => {
    const isAll = range[0] <= 0 && range[1] >= axis.length;
    if (isMoved.current) remember({ window: isAll ? null : range.map(Math.round).join(",") });
    const abort = new AbortController();
    const wait = setTimeout(async () => {
      try {
        setBusy(true);
        const one = { dimension: axis.dimension, start: Math.floor(range[0]), end: Math.min(Math.ceil(range[1]), axis.length), most: MOST_CELLS };
        for (const pick of refinements(schema, attribute, fixed as Pick, [one], BUDGETS)) {
          const cells = await readCells(names, attribute, pick, abort.signal);
          setTrouble(null);
          setLine({ cells, values: drawn(cells, attribute, component), positions: pick[axis.dimension] as Positions });
        }
      } catch (error) {
        if (!abort.signal.aborted) setTrouble(error);
      } finally {
        if (!abort.signal.aborted) setBusy(false);
      }
    }, line ? 120 : 0);
    return () => {
      clearTimeout(wait);
      abort.abort();
    };
  }, [key]);

  const known = line && statistics(line.values);
  useEffect(() => {
    if (line) onStatistics(known, line.positions.step > 1);
  }, [line]);
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, width, range, line, known, axis, curve, cursor);
  }, [width, range, line, cursor, curve, isDark]);

  const inner = width - LEFT - RIGHT;
  const bounded = (from: number, to: number) => {
    const count = Math.min(axis.length, Math.max(2, to - from));
    const start = Math.min(Math.max(0, from), axis.length - count);
    show([start, start + count]);
  };
  const zoom = (by: number, at = 0.5) => {
    const place = range[0] + at * (range[1] - range[0]);
    bounded(place - (place - range[0]) / by, place + (range[1] - place) / by);
  };
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * 0.002), (event.clientX - element.getBoundingClientRect().left - LEFT) / inner);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const place = (event: PointerEvent) => (event.clientX - canvas.current!.getBoundingClientRect().left - LEFT) / inner;
  const point = (at: number) => setCursor(Math.min(axis.length - 1, Math.max(0, Math.floor(range[0] + at * (range[1] - range[0])))));
  const keys = (event: KeyboardEvent) => {
    const step = line?.positions.step ?? 1;
    const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (way && event.shiftKey) bounded(range[0] + way * 0.2 * (range[1] - range[0]), range[1] + way * 0.2 * (range[1] - range[0]));
    else if (way) setCursor((before) => Math.min(axis.length - 1, Math.max(0, (before ?? Math.floor((range[0] + range[1]) / 2)) + way * step)));
    else if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else if (event.key === "0") show([0, axis.length]);
    else return;
    event.preventDefault();
  };

  let readout = null;
  if (cursor !== null && line) {
    const { start, step, count } = line.positions;
    const at = Math.min(count - 1, Math.max(0, Math.round((cursor - start) / step)));
    const value = valueAt(line.cells, at, Math.min(component, line.cells.perCell - 1));
    const label = labels && value !== null ? labels[Number(value)] : null;
    readout = (
      <><span class="quiet">{safe(`${axis.name} = ${placeText(axis, start + at * step)}`)}</span>{" "}
        <output class="value">{safe(String(label ?? meantText(value, attribute)))}</output></>
    );
  }
  return (
    <div class="picture" ref={box}>
      {trouble !== null && <Trouble error={trouble} />}
      <canvas
        ref={canvas} tabIndex={0} role="application" style={{ height: `${HEIGHT}px` }}
        aria-label={`Line of ${attribute.name} along ${axis.name}. Arrow keys move over cells, plus and minus zoom, 0 shows all.`}
        onKeyDown={keys}
        onPointerDown={(event) => {
          drag.current = [place(event), range];
          canvas.current?.setPointerCapture(event.pointerId);
          point(place(event));
        }}
        onPointerMove={(event) => {
          if (!drag.current) return point(place(event));
          const [from, [start, end]] = drag.current;
          const by = (from - place(event)) * (end - start);
          bounded(start + by, end + by);
        }}
        onPointerUp={() => (drag.current = null)}
        onPointerLeave={() => drag.current || setCursor(null)}
      />
      <div class="zoom">
        <button onClick={() => zoom(2)} title="Zoom in (+)" aria-label="Zoom in">+</button>
        <button onClick={() => zoom(0.5)} title="Zoom out (-)" aria-label="Zoom out">−</button>
        <button onClick={() => show([0, axis.length])} title="Show all (0)" aria-label="Show all">⤢</button>
      </div>
      <p class="readout" aria-live="polite">{readout ?? <span class="quiet">Point at the line to read it</span>}</p>
      <p class="status">
        {isBusy && <Busy />}
        {line && <span data-sampled={line.positions.step > 1 ? "yes" : "no"}>
          {line.positions.step > 1 ? `Sampled: 1 in ${grouped(line.positions.step)} (${grouped(line.positions.count)} cells)` : `${grouped(line.positions.count)} cells, each one drawn`}
        </span>}
      </p>
    </div>
  );
}

function draw(
  canvas: HTMLCanvasElement, width: number, range: [number, number], line: Line | null, known: Statistics | null,
  axis: Axis, curve: Curve, cursor: number | null,
): void {
  const density = Math.min(devicePixelRatio || 1, 2);
  canvas.width = width * density;
  canvas.height = HEIGHT * density;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(density, density);
  const style = getComputedStyle(canvas);
  const [inner, height] = [width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM];
  const x = (position: number) => LEFT + ((position + 0.5 - range[0]) / (range[1] - range[0])) * inner;
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = context.strokeStyle = style.color;
  context.textAlign = "center";
  context.textBaseline = "top";
  let taken = -Infinity;
  for (const [position, text] of ticks(axis, range[0], range[1], inner / 90)) {
    const [at, half] = [x(position), context.measureText(text).width / 2];
    if (at - half < taken + 10 || at > LEFT + inner + 1 || at < LEFT - 1) continue;
    context.fillRect(at - 0.5, TOP + height, 1, 4);
    context.fillText(text, at, TOP + height + 6);
    taken = at + half;
  }
  context.globalAlpha = 0.75;
  context.textBaseline = "bottom";
  context.fillText(title(axis, range[0], range[1]), LEFT + inner / 2, HEIGHT, inner);
  context.globalAlpha = 0.35;
  context.strokeRect(LEFT - 0.5, TOP - 0.5, inner + 1, height + 1);
  context.globalAlpha = 1;
  if (!line || !known) return;
  const useLog = curve === "log" && known.positive < Infinity;
  const biggest = Math.max(Math.abs(known.least), Math.abs(known.greatest));
  const change = (value: number) => (useLog ? Math.log10(Math.max(value, known.positive)) : curve === "log" ? value : curved(value, curve, biggest));
  /** The number whose place this is. */
  const back = (place: number) => (curve === "square root" ? Math.sign(place) * place * place
    : curve === "symlog" ? Math.sign(place) * (10 ** Math.abs(place) - 1) * (biggest / 1000 || 1) : place);
  const [least, greatest] = [change(known.least), change(known.greatest)];
  const pad = (greatest - least || Math.abs(greatest) || 1) * 0.05;
  const scale = scaleLinear().domain([least - pad, greatest + pad]).range([TOP + height, TOP]);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const mark of scale.ticks(6)) {
    context.globalAlpha = 0.12;
    context.fillRect(LEFT, scale(mark) - 0.5, inner, 1);
    context.globalAlpha = 1;
    context.fillText(useLog ? `10^${rounded(mark)}` : rounded(Number(back(mark).toPrecision(3))), LEFT - 8, scale(mark), LEFT - 12);
  }
  context.save();
  context.beginPath();
  context.rect(LEFT, TOP, inner, height);
  context.clip();
  context.strokeStyle = context.fillStyle = style.accentColor === "auto" ? style.color : style.accentColor;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.beginPath();
  const { start, step } = line.positions;
  const isSparse = (range[1] - range[0]) / step < inner / 8;
  let [column, low, high, isOpen] = [NaN, 0, 0, false];
  const flush = () => {
    if (Number.isNaN(column)) return;
    if (isOpen) context.lineTo(column, low); else context.moveTo(column, low);
    if (high !== low) context.lineTo(column, high);
    isOpen = true;
  };
  for (let at = 0; at < line.values.length; at++) {
    const value = line.values[at];
    const place = isSparse ? x(start + at * step) : Math.round(x(start + at * step));
    if (Number.isNaN(value)) {
      flush();
      [column, isOpen] = [NaN, false];
      continue;
    }
    const y = scale(change(value));
    if (place === column) {
      low = Math.min(low, y);
      high = Math.max(high, y);
    } else {
      flush();
      [column, low, high] = [place, y, y];
    }
    if (isSparse) context.fillRect(place - 2, y - 2, 4, 4);
  }
  flush();
  context.stroke();
  context.restore();
  if (cursor !== null) {
    context.globalAlpha = 0.5;
    context.fillRect(x(cursor) - 0.5, TOP, 1, height);
  }
}
