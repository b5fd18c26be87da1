// Points in the plane, coloured by a value: cells of sparse arrays, and embeddings.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { scaleLinear, scaleUtc } from "d3-scale";
import { category, categoryPixels, placeOf, pixel, statistics, tableOf } from "./colour";
import { complain } from "./address";
import { remember } from "./place";
import { grouped, shown as safe } from "./values";
import { rounded, useDark } from "./parts";

const LEFT = 70, BOTTOM = 34, TOP = 8, RIGHT = 14;
/** The part of the colour map that stands out from a dark page, and from a light one. style.css has it as `--ramp`. */
const ON_DARK = [0.25, 1], ON_LIGHT = [0, 0.93];

export interface Points {
  x: Float64Array;
  y: Float64Array;
  xName: string;
  yName: string;
  /** How to write a coordinate; dates are milliseconds. */
  xText: (value: number) => string;
  yText: (value: number) => string;
  xIsDate?: boolean;
  yIsDate?: boolean;
  /** What the points are, for the reader. */
  note: string;
  /** Whether there are more points than these. */
  isSample: boolean;
}

export interface Colouring {
  name: string;
  values: Float64Array;
  labels: string[] | null;
  text: (value: number) => string;
}

export function Scatter({ points: given, colouring, square, hide, hasEqualUnits }: {
  points: Points; colouring: Colouring | null; square?: boolean; hide: string | null; hasEqualUnits?: boolean;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const [cursor, setCursor] = useState<number | null>(null);
  const [hidden, setHidden] = useHidden(colouring, hide);
  const count = useMemo(() => (colouring && hidden.size ? colouring.values.reduce((sum, value) => sum + Number(!hidden.has(value)), 0) : given.x.length), [colouring, hidden, given]);
  const isDark = useDark();
  const [isSwapped, setSwapped] = useState(false);
  const points = useMemo((): Points => (!isSwapped ? given : {
    ...given, x: given.y, y: given.x, xName: given.yName, yName: given.xName, xText: given.yText, yText: given.xText, xIsDate: given.yIsDate, yIsDate: given.xIsDate,
  }), [given, isSwapped]);
  const x = useMemo(() => statistics(points.x), [points]);
  const y = useMemo(() => statistics(points.y), [points]);
  const range = useMemo(() => {
    const pad = (low: number, high: number) => [low - (high - low || 1) * 0.03, high + (high - low || 1) * 0.03] as [number, number];
    return x && y ? { x: pad(x.least, x.greatest), y: pad(y.least, y.greatest) } : null;
  }, [x, y]);
  const [flips, setFlips] = useState([false, false]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setSize([element.clientWidth, Math.round(Math.max(260, Math.min(innerHeight * 0.62, square ? element.clientWidth : element.clientWidth * 0.62)))]);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [square]);
  const known = useMemo(() => (colouring && !colouring.labels ? statistics(colouring.values) : null), [colouring]);
  const inner = [size[0] - LEFT - RIGHT, size[1] - TOP - BOTTOM];
  const whole = useMemo(() => {
    if (!range || inner[0] <= 0) return null;
    const sides = hasEqualUnits ? evened(range, inner) : range;
    const turned = ([low, high]: [number, number], isFlipped: boolean): [number, number] => (isFlipped ? [high, low] : [low, high]);
    return { x: turned(sides.x, flips[0]), y: turned(sides.y, flips[1]) };
  }, [range, hasEqualUnits, inner[0], inner[1], flips]);
  const [view, setView] = useState(whole);
  useEffect(() => setView(whole), [whole]);
  useEffect(() => {
    if (canvas.current && view && inner[0] > 0) draw(canvas.current, size, view, points, colouring, known, hidden, cursor, isDark);
  }, [size, view, points, colouring, hidden, cursor, isDark]);

  const zoom = (by: number, atX = 0.5, atY = 0.5) => setView((before) => {
    if (!before) return before;
    const side = ([low, high]: [number, number], at: number): [number, number] => {
      const place = low + at * (high - low);
      return [place - (place - low) / by, place + (high - place) / by];
    };
    return { x: side(before.x, atX), y: side(before.y, 1 - atY) };
  });
  const pan = (byX: number, byY: number) => setView((before) => before && {
    x: before.x.map((one) => one + byX * (before.x[1] - before.x[0])) as [number, number],
    y: before.y.map((one) => one - byY * (before.y[1] - before.y[0])) as [number, number],
  });
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const place = element.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * 0.002), (event.clientX - place.left - LEFT) / inner[0], (event.clientY - place.top - TOP) / inner[1]);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const drag = useRef<[number, number] | null>(null);
  const point = (event: PointerEvent) => {
    if (!view || !canvas.current) return;
    const place = canvas.current.getBoundingClientRect();
    const [px, py] = [event.clientX - place.left, event.clientY - place.top];
    setCursor(nearest(points, view, px, py, inner));
  };
  const keys = (event: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "0") setView(whole);
    else if (moves[event.key]) pan(...moves[event.key]);
    else if (event.key === "n" || event.key === "p") setCursor((before) => Math.max(0, Math.min(points.x.length - 1, (before ?? -1) + (event.key === "n" ? 1 : -1))));
    else return;
    event.preventDefault();
  };
  const at = cursor;
  return (
    <div class="picture" ref={box}>
      <canvas ref={canvas} tabIndex={0} role="application" style={{ height: `${size[1]}px` }}
        aria-label={`${points.xName} and ${points.yName} as points. Plus and minus zoom, arrow keys pan, 0 shows all, n and p go from point to point.`}
        onKeyDown={keys}
        onPointerDown={(event) => {
          drag.current = [event.clientX, event.clientY];
          canvas.current?.setPointerCapture(event.pointerId);
          point(event);
        }}
        onPointerMove={(event) => {
          if (!drag.current) return point(event);
          pan((drag.current[0] - event.clientX) / inner[0], (drag.current[1] - event.clientY) / inner[1]);
          drag.current = [event.clientX, event.clientY];
        }}
        onPointerUp={() => (drag.current = null)}
        onPointerLeave={() => drag.current || setCursor(null)} />
      <div class="zoom">
        <button onClick={() => zoom(1.6)} aria-label="Zoom in" title="Zoom in (+)">+</button>
        <button onClick={() => zoom(1 / 1.6)} aria-label="Zoom out" title="Zoom out (-)">−</button>
        <button onClick={() => setView(whole)} aria-label="Show all" title="Show all (0)">⤢</button>
      </div>
      <p class="bar">
        <button onClick={() => setSwapped(!isSwapped)}>swap axes</button>
        {["across", "up"].map((name, at) => <label class="tick" key={name}><input type="checkbox" checked={flips[at]} onChange={() => setFlips(flips.map((one, side) => (side === at ? !one : one)))} /> flip {safe(at ? points.yName : points.xName)}</label>)}
      </p>
      <p class="readout" aria-live="polite">
        {at !== null ? <><span class="quiet">{safe(points.xName)} = {points.xText(points.x[at])}, {safe(points.yName)} = {points.yText(points.y[at])}</span>{" "}
          {colouring && <output class="value">{safe(colouring.labels ? colouring.labels[colouring.values[at]] ?? "null" : colouring.text(colouring.values[at]))}</output>}</>
          : <span class="quiet">Point at a point to read it</span>}
      </p>
      <p class="status"><span data-sampled={points.isSample ? "yes" : "no"}>{points.note}{count < points.x.length && `; ${grouped(count)} of them shown, the others are hidden in the legend`}</span></p>
      {colouring?.labels && <Legend labels={colouring.labels} values={colouring.values} hidden={hidden} onHide={setHidden} />}
      {known && !colouring?.labels && <p class="scale"><span>{rounded(known.low)}</span><i class="ramp" /><span>{rounded(known.high)}</span><span class="quiet">{safe(colouring?.name ?? "")}</span></p>}
    </div>
  );
}

/** Returns the codes of hidden labels, which the address has by their names, and a function that sets them. */
function useHidden(colouring: Colouring | null, asked: string | null): [Set<number>, (hidden: Set<number>) => void] {
  const [hidden, setHidden] = useState(new Set<number>());
  const first = useRef<string | null>(asked);
  const name = useRef<string | null>(null);
  const labels = colouring?.labels ?? null;
  useEffect(() => {
    if (!colouring) return;
    const wanted = (name.current === null && first.current?.split(",").map(unescaped)) || [];
    name.current = colouring.name;
    const codes = wanted.map((label) => labels?.indexOf(label) ?? -1);
    wanted.forEach((label, at) => codes[at] < 0 && complain("hide", label, `${colouring.name} has no such label`));
    setHidden(new Set(codes.filter((code) => code >= 0)));
  }, [colouring?.name]);
  return [hidden, (next) => {
    setHidden(next);
    remember({ hide: [...next].map((code) => (labels?.[code] ?? "").replace(/[%,]/g, encodeURIComponent)).join(",") || null });
  }];
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The most categories that a legend lists. */
const MOST_LISTED = 60;

function Legend({ labels, values, hidden, onHide }: { labels: string[]; values: Float64Array; hidden: Set<number>; onHide: (hidden: Set<number>) => void }) {
  const counts = useMemo(() => {
    const counts = new Map<number, number>();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    return counts;
  }, [values]);
  const codes = [...counts.keys()].filter((code) => !Number.isNaN(code)).sort((a, b) => a - b);
  const shown = codes.slice(0, MOST_LISTED);
  return (
    <ul class="legend">
      {shown.map((code) => (
        <li key={code}>
          <button aria-pressed={!hidden.has(code)} onClick={() => {
            const next = new Set(hidden);
            if (!next.delete(code)) next.add(code);
            onHide(next);
          }}><i style={{ background: category(code) }} />{safe(labels[code] ?? `code ${code}`)} <span class="quiet">{grouped(counts.get(code) ?? 0)}</span></button>
        </li>
      ))}
      {codes.length > shown.length && <li class="quiet">and {grouped(codes.length - shown.length)} more</li>}
    </ul>
  );
}

/** Returns ranges in which a unit takes as many pixels across as upwards. */
function evened({ x, y }: View, inner: number[]): View {
  const unit = Math.max((x[1] - x[0]) / inner[0], (y[1] - y[0]) / inner[1]);
  const wider = ([low, high]: [number, number], pixels: number): [number, number] => {
    const [middle, half] = [(low + high) / 2, (unit * pixels) / 2];
    return [middle - half, middle + half];
  };
  return { x: wider(x, inner[0]), y: wider(y, inner[1]) };
}

type View = { x: [number, number]; y: [number, number] };

function nearest(points: Points, view: View, px: number, py: number, inner: number[]): number | null {
  let [best, least] = [-1, 400];
  for (let at = 0; at < points.x.length; at++) {
    const dx = LEFT + ((points.x[at] - view.x[0]) / (view.x[1] - view.x[0])) * inner[0] - px;
    const dy = TOP + (1 - (points.y[at] - view.y[0]) / (view.y[1] - view.y[0])) * inner[1] - py;
    const far = dx * dx + dy * dy;
    if (far < least) [best, least] = [at, far];
  }
  return best < 0 ? null : best;
}

function draw(
  canvas: HTMLCanvasElement, size: [number, number], view: View, points: Points, colouring: Colouring | null,
  known: { low: number; high: number } | null, hidden: Set<number>, cursor: number | null, isDark: boolean,
): void {
  const density = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.round(size[0] * density);
  canvas.height = Math.round(size[1] * density);
  const context = canvas.getContext("2d");
  if (!context) return;
  const [width, height] = [Math.round((size[0] - LEFT - RIGHT) * density), Math.round((size[1] - TOP - BOTTOM) * density)];
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const style = getComputedStyle(canvas);
  const plain = pixel(style.accentColor === "auto" ? "#2f6fb5" : style.accentColor);
  const table = tableOf("viridis");
  const scale = known && { low: known.low, high: known.high, map: "viridis", curve: "linear" as const };
  const [darkest, brightest] = isDark ? ON_DARK : ON_LIGHT;
  const palette = categoryPixels(colouring?.labels?.length ?? 0);
  const missing = pixel("rgb(150,150,150)");
  const radius = Math.round((points.x.length > 100_000 ? 0.5 : points.x.length > 5000 ? 1 : 2.2) * density);
  for (let at = 0; at < points.x.length; at++) {
    const px = Math.round(((points.x[at] - view.x[0]) / (view.x[1] - view.x[0])) * width);
    const py = Math.round((1 - (points.y[at] - view.y[0]) / (view.y[1] - view.y[0])) * height);
    if (!(px >= 0 && py >= 0 && px < width && py < height)) continue;
    let colour = plain;
    if (colouring) {
      const value = colouring.values[at];
      if (hidden.has(value)) continue;
      if (Number.isNaN(value)) colour = missing;
      else if (colouring.labels) colour = palette[Math.abs(value) % palette.length];
      else if (scale) colour = table[Math.min(255, Math.floor((darkest + placeOf(value, scale) * (brightest - darkest)) * 256))];
    }
    for (let dy = -radius; dy <= radius; dy++) {
      for (let dx = -radius; dx <= radius; dx++) {
        const [x, y] = [px + dx, py + dy];
        if (dx * dx + dy * dy <= radius * radius + 1 && x >= 0 && y >= 0 && x < width && y < height) pixels[y * width + x] = colour;
      }
    }
  }
  context.putImageData(image, Math.round(LEFT * density), Math.round(TOP * density));
  context.scale(density, density);
  context.strokeStyle = context.fillStyle = style.color;
  context.font = "12px system-ui, sans-serif";
  const inner = [size[0] - LEFT - RIGHT, size[1] - TOP - BOTTOM];
  context.globalAlpha = 0.35;
  context.strokeRect(LEFT - 0.5, TOP - 0.5, inner[0] + 1, inner[1] + 1);
  context.globalAlpha = 1;
  const marks = (range: [number, number], isDate: boolean | undefined, most: number): [number, string][] => {
    const scale = isDate ? scaleUtc().domain(range) : scaleLinear().domain(range);
    const text = scale.tickFormat(most) as (value: number | Date) => string;
    return (scale.ticks(most) as (number | Date)[]).map((mark) => [Number(mark), isDate ? text(mark) : rounded(Number(mark))]);
  };
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const [value, text] of marks(view.x, points.xIsDate, Math.max(2, inner[0] / 100))) {
    const at = LEFT + ((value - view.x[0]) / (view.x[1] - view.x[0])) * inner[0];
    context.fillRect(at - 0.5, TOP + inner[1], 1, 4);
    context.fillText(text, at, TOP + inner[1] + 6);
  }
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const [value, text] of marks(view.y, points.yIsDate, Math.max(2, inner[1] / 50))) {
    const at = TOP + (1 - (value - view.y[0]) / (view.y[1] - view.y[0])) * inner[1];
    context.fillRect(LEFT - 5, at - 0.5, 4, 1);
    context.fillText(text, LEFT - 8, at, LEFT - 10);
  }
  context.globalAlpha = 0.75;
  context.textAlign = "center";
  context.textBaseline = "bottom";
  context.fillText(safe(points.xName), LEFT + inner[0] / 2, size[1]);
  context.save();
  context.translate(14, TOP + inner[1] / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(safe(points.yName), 0, 2);
  context.restore();
  context.globalAlpha = 1;
  if (cursor !== null) {
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(LEFT + ((points.x[cursor] - view.x[0]) / (view.x[1] - view.x[0])) * inner[0], TOP + (1 - (points.y[cursor] - view.y[0]) / (view.y[1] - view.y[0])) * inner[1], 6, 0, 7);
    context.stroke();
  }
}
