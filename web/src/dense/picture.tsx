// A plane of cells as a picture: zoomed by wheel, fingers, keys and buttons down to single cells, refined as it is read.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { categoryPixels, statistics, type Scale, type Statistics } from "../colour";
import type { Scalar } from "../schema";
import { remember } from "../place";
import { grouped, shown as safe } from "../values";
import { meantText } from "./numbers";
import { BUDGETS, goesNorth, placeText, type Axis } from "./read";
import { ticks, title } from "./ticks";
import { cellAt, coloured, layersOf, type Layer, type Plane, type Source, type Window } from "./layer";
import { Busy, Trouble, copyText, useDark } from "../parts";

/** Space for the axes, in pixels of CSS. */
const LEFT = 78, BOTTOM = 34, TOP = 8, RIGHT = 14;
/** A view shows at most this many pixels for a cell. */
const MOST_ZOOM = 120;
/** The most cells along a side of a layer that are wanted. */
const MOST_SIDE = 2048;
/** The most cells that are all read, even if there are fewer pixels, so that each can be pointed at. */
const MOST_EXACT = 100_000;
/** An array whose sides differ by more than this is stretched to the panel. */
const MOST_RATIO = 12;

/** The line and the column at the top left of the view, and the pixels of CSS that a cell takes. */
interface View {
  top: number;
  left: number;
  height: number;
  width: number;
}

interface Props {
  sources: Source[];
  plane: Plane;
  axes: Axis[];
  scale: Scale | null;
  labels: Scalar[] | null;
  /** The colours of numbers, if they have their own. */
  palette: Uint32Array | null;
  /** How many times as high as wide a cell is. */
  aspect: number;
  window: Window | null;
  /** Whether rows, and columns, are drawn the other way. */
  flip: [boolean, boolean];
  onStatistics: (statistics: Statistics | null, isSample: boolean) => void;
  onWindow: (window: Window) => void;
}

export function Picture({ sources, plane, axes, scale, labels, palette, aspect, window: asked, flip, onStatistics, onWindow }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const [view, setView] = useState<View | null>(null);
  const [layers, setLayers] = useState<Layer[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<unknown>(null);
  const [budgets, setBudgets] = useState(BUDGETS);
  const [cursor, setCursor] = useState<[number, number] | null>(null);
  const isDark = useDark();
  const [rowAxis, columnAxis] = [axes[plane.rows], axes[plane.columns]];
  const [rows, columns] = [rowAxis.length, columnAxis.length];
  const inner: [number, number] = [size[0] - LEFT - RIGHT, size[1] - TOP - BOTTOM];
  // North is up: rows that go there are drawn from the bottom. A view is in lines, from the top; all else is in positions.
  const lines = turnsOf(rowAxis, columnAxis, flip);
  const key = JSON.stringify([sources.map((one) => one.names), sources[0].attribute.name, plane]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const width = element.clientWidth;
      const ratio = (rows * aspect) / columns;
      const wanted = ratio > MOST_RATIO || ratio < 1 / MOST_RATIO ? 420 : (width - LEFT - RIGHT) * ratio + TOP + BOTTOM;
      setSize([width, Math.round(Math.max(180, Math.min(wanted, innerHeight * 0.66, 900)))]);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [rows, columns, aspect]);

  /** The part that is being read, or was read last. */
  const reading = useRef({ wanted: "", abort: new AbortController() });
  /** Whether somebody moved the view: only then is it another one than the address says. */
  const isMoved = useRef(false);
  // The first view is the window of the address, or everything. In a panel of another size, everything stays in sight.
  const sizeBefore = useRef(inner);
  useEffect(() => {
    if (inner[0] <= 0) return;
    const all = { top: 0, left: 0, bottom: rows, right: columns };
    setView((before) => {
      if (!before) return fit(asked ? lines.window(asked) : all, inner, rows, columns, aspect);
      const seen = windowOf(before, sizeBefore.current, rows, columns);
      const isAll = seen.top === 0 && seen.left === 0 && seen.bottom >= rows && seen.right >= columns;
      return isAll ? fit(all, inner, rows, columns, aspect) : bounded(before, inner, rows, columns, aspect);
    });
    sizeBefore.current = inner;
  }, [size[0], size[1], rows, columns, aspect]);

  useEffect(() => {
    setLayers([]);
    setBudgets(BUDGETS);
  }, [key]);

  const seen = view && lines.window(windowOf(view, inner, rows, columns));
  const seenKey = seen && JSON.stringify(seen);
  useEffect(() => {
    if (!seen) return;
    // A panel has other sides than the window of the address, and shows a little more: that does not change the address.
    if (isMoved.current && view) {
      const isAll = seen.top === 0 && seen.left === 0 && seen.bottom >= rows && seen.right >= columns;
      remember({ window: isAll ? null : windowText(lines.window(sidesOf(view, inner, rows, columns)), seen) });
    }
    onWindow(seen);
    const wait = setTimeout(async () => {
      const density = Math.min(devicePixelRatio || 1, 2);
      // A small part is read as a whole, so that every cell can be pointed at.
      const isSmall = (seen.bottom - seen.top) * (seen.right - seen.left) <= MOST_EXACT;
      // One cell for each pixel that the part takes on the screen.
      const sides = [(seen.bottom - seen.top) * view!.height, (seen.right - seen.left) * view!.width];
      const most = sides.map((side, at) => (isSmall ? Infinity : Math.min(MOST_SIDE, Math.ceil(Math.min(side, inner[1 - at]) * density)))) as [number, number];
      // What is on its way is not asked for again because the panel moved.
      const steps = [seen.bottom - seen.top, seen.right - seen.left].map((length, at) => Math.max(1, Math.floor(length / most[at])));
      const wanted = JSON.stringify([seen, key, budgets, steps]);
      if (wanted === reading.current.wanted) return;
      reading.current.abort.abort();
      const abort = new AbortController();
      reading.current = { wanted, abort };
      try {
        setBusy(true);
        for await (const layer of layersOf(sources, plane, seen, most, budgets, abort.signal)) {
          setTrouble(null);
          setLayers((before) => [...before.filter((one) => keeps(one, layer)).slice(-2), layer]);
        }
      } catch (error) {
        if (abort.signal.aborted) return;
        reading.current.wanted = "";
        setTrouble(error);
      } finally {
        if (!abort.signal.aborted) setBusy(false);
      }
    }, reading.current.wanted ? 120 : 0);
    return () => clearTimeout(wait);
  }, [seenKey, key, budgets, size[0], size[1]]);
  useEffect(() => () => reading.current.abort.abort(), []);

  const top = layers.at(-1);
  useEffect(() => {
    if (top) onStatistics(statistics(top.values), !isWhole(top));
  }, [top]);
  const colours = useMemo(() => {
    const categories = palette ?? (labels ? categoryPixels(labels.length) : null);
    return scale ? layers.map((layer) => coloured(layer, scale, categories, !palette)) : [];
  }, [layers, scale, palette, labels]);

  useEffect(() => {
    const element = canvas.current;
    if (element && view && inner[0] > 0) {
      draw(element, size, view, layers, colours, rowAxis, columnAxis, lines, cursor);
    }
  }, [size, view, layers, colours, cursor, isDark, flip[0], flip[1]]);

  const change = (make: (view: View) => View) => {
    isMoved.current = true;
    setView((before) => before && bounded(make(before), inner, rows, columns, aspect));
  };
  const zoom = (by: number, x = inner[0] / 2, y = inner[1] / 2) =>
    change((view) => {
      // A side that is stretched stays stretched until single cells are square.
      const width = Math.min(view.width * by, MOST_ZOOM), height = Math.min(view.height * by, MOST_ZOOM);
      return {
        width, height,
        left: view.left + x / view.width - x / width,
        top: view.top + y / view.height - y / height,
      };
    });
  const pan = (x: number, y: number) =>
    change((view) => ({ ...view, left: view.left + x / view.width, top: view.top + y / view.height }));
  const whole = () => change(() => fit({ top: 0, left: 0, bottom: rows, right: columns }, inner, rows, columns, aspect));
  const cellOf = (x: number, y: number): [number, number] | null => view && [lines.at(Math.floor(view.top + y / view.height)), lines.column(Math.floor(view.left + x / view.width))];
  const pointers = usePointers(canvas, pan, zoom, (x, y) => setCursor(cellOf(x, y)), (x, y) => setPinned(cellOf(x, y)));
  const [pinned, setPinned] = useState<[number, number] | null>(null);
  const [isCopied, setCopied] = useState(false);

  // Not through Preact, whose handlers for the wheel cannot keep the page from scrolling.
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const place = element.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.clientX - place.left - LEFT, event.clientY - place.top - TOP);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });

  const keys = (event: KeyboardEvent) => {
    const step: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [way, side] = lines.ways;
    const move = step[event.key];
    if (move && event.shiftKey) pan(move[1] * inner[0] * 0.2, move[0] * inner[1] * 0.2);
    else if (move && view && seen) {
      const stride = [top?.rowStep ?? 1, top?.columnStep ?? 1];
      const [row, column] = cursor ?? [Math.floor((seen.top + seen.bottom) / 2), Math.floor((seen.left + seen.right) / 2)];
      setCursor([clamp(row + way * move[0] * stride[0], 0, rows - 1), clamp(column + side * move[1] * stride[1], 0, columns - 1)]);
    } else if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else if (event.key === "0" || event.key === "Home") whole();
    else return;
    event.preventDefault();
  };

  const attribute = sources[0].attribute;
  /** Returns where a cell is, and its value; null if it is not drawn. */
  const read = (place: [number, number] | null): [string, string] | null => {
    const layer = place && layers.findLast((one) => cellAt(one, plane, place[0], place[1]));
    const shown = place && layer ? cellAt(layer, plane, place[0], place[1]) : null;
    if (!shown) return null;
    const value = shown.values.map((one) => labelled(one, labels) ?? meantText(one, attribute)).join(", ");
    const note = shown.values.length === 1 && attribute.missing?.includes(Number(shown.values[0])) ? " (no data)" : "";
    return [safe(`${rowAxis.name} = ${placeText(rowAxis, shown.row)}, ${columnAxis.name} = ${placeText(columnAxis, shown.column)}`), safe(value + note)];
  };
  const [shown, kept] = [read(cursor), read(pinned)];
  const isCoarse = !!top && !!seen && top.source.scale === 1 &&
    Math.max(top.rowStep * view!.height, top.columnStep * view!.width) > 2.1 && Math.max(top.rowStep, top.columnStep) > 1;

  return (
    <div class="picture" ref={box}>
      {trouble !== null && <Trouble error={trouble} />}
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Picture of ${attribute.name}. Arrow keys move over cells, plus and minus zoom, shift and arrows pan, 0 shows all.`}
        style={{ height: `${size[1]}px` }}
        onKeyDown={keys}
        onPointerLeave={() => pointers.count() === 0 && setCursor(null)}
        {...pointers.handlers}
      />
      <div class="zoom">
        <button onClick={() => zoom(2)} title="Zoom in (+)" aria-label="Zoom in">+</button>
        <button onClick={() => zoom(0.5)} title="Zoom out (-)" aria-label="Zoom out">−</button>
        <button onClick={whole} title="Show all (0)" aria-label="Show all">⤢</button>
        <button onClick={() => void (document.fullscreenElement ? document.exitFullscreen() : box.current?.requestFullscreen())} title="Full screen" aria-label="Full screen">⛶</button>
        <button onClick={() => canvas.current && savePicture(canvas.current, attribute.name || "picture")} title="Save as PNG, with its axes" aria-label="Save as PNG">⤓</button>
      </div>
      <p class="readout" aria-live="polite">
        {shown ? <><span class="quiet">{shown[0]}</span> <output class="value">{shown[1]}</output></> : <span class="quiet">Point at a cell to read it</span>}
      </p>
      {kept && <p class="pinned">pinned: <span class="quiet">{kept[0]}</span> <b>{kept[1]}</b>{" "}
        <button class="link" onClick={() => void copyText(`${kept[0]}: ${kept[1]}`).then(() => setCopied(true))}>{isCopied ? "copied" : "copy"}</button>
        <button class="link" onClick={() => setPinned(null)}>remove</button></p>}
      <p class="status">
        {isBusy && <Busy />}
        {top && <span data-sampled={isWhole(top) ? "no" : "yes"}>{sampled(top, rowAxis, columnAxis)}</span>}
        {isCoarse && !isBusy && (
          <button class="link" onClick={() => setBudgets((before) => [before[before.length - 1] * 4])}>finer</button>
        )}
      </p>
    </div>
  );
}

/** Saves what is drawn, on the colour of the page. */
function savePicture(canvas: HTMLCanvasElement, name: string): void {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext("2d");
  if (!context) return;
  context.fillStyle = getComputedStyle(document.documentElement).backgroundColor || "white";
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => {
    if (!blob) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name.replace(/[^\w.-]+/g, "_")}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}

function labelled(value: unknown, labels: Scalar[] | null): string | null {
  if (!labels || value === null) return null;
  const label = labels[Number(value)];
  return label === undefined || label === null ? `code ${String(value)}, without a label` : String(label);
}

function isWhole(layer: Layer): boolean {
  return layer.rows.step === 1 && layer.columns.step === 1 && layer.source.scale === 1;
}

/** Says how many of the cells a layer has. */
function sampled(layer: Layer, rowAxis: Axis, columnAxis: Axis): string {
  const count = `${grouped(layer.rows.count)} × ${grouped(layer.columns.count)} cells`;
  if (layer.source.scale !== 1) return `${count} of the level that is ${grouped(Math.round(layer.source.scale))} times smaller`;
  const parts = [
    layer.rows.step > 1 && `1 in ${grouped(layer.rows.step)} along ${safe(rowAxis.name)}`,
    layer.columns.step > 1 && `1 in ${grouped(layer.columns.step)} along ${safe(columnAxis.name)}`,
  ].filter(Boolean);
  return parts.length ? `Sampled: ${parts.join(", ")} (${count})` : `${count}, each one drawn`;
}

/** Returns whether an older layer is of use beside a new one: it covers more. */
function keeps(old: Layer, layer: Layer): boolean {
  const ends = (one: Layer) => [one.top + one.rows.count * one.rowStep, one.left + one.columns.count * one.columnStep];
  const [bottom, right] = ends(old);
  const [newBottom, newRight] = ends(layer);
  return old.top < layer.top || old.left < layer.left || bottom > newBottom || right > newRight;
}

/** How rows are lines of the picture, from the top, and columns its columns, from the left; the same functions lead back. */
interface Turns {
  /** The way that positions go along with lines and columns: 1 or -1. */
  ways: [number, number];
  at: (position: number) => number;
  column: (position: number) => number;
  window: (window: Window) => Window;
}

function turnsOf(rows: Axis, columns: Axis, flip: [boolean, boolean]): Turns {
  const [isTurned, isMirrored] = [goesNorth(rows) !== flip[0], flip[1]];
  return {
    ways: [isTurned ? -1 : 1, isMirrored ? -1 : 1],
    at: (position) => (isTurned ? rows.length - 1 - position : position),
    column: (position) => (isMirrored ? columns.length - 1 - position : position),
    window: ({ top, bottom, left, right }) => ({
      ...(isTurned ? { top: rows.length - bottom, bottom: rows.length - top } : { top, bottom }),
      ...(isMirrored ? { left: columns.length - right, right: columns.length - left } : { left, right }),
    }),
  };
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

/** Returns the least width and height of a cell: all cells are then in sight. They have their aspect, unless the sides differ too much. */
function leastSides(inner: [number, number], rows: number, columns: number, aspect: number): [number, number] {
  const sides = [inner[0] / columns, inner[1] / rows].map((side) => Math.min(side, MOST_ZOOM)) as [number, number];
  const ratio = (rows * aspect) / columns;
  const width = Math.min(sides[0], sides[1] / aspect);
  return ratio > MOST_RATIO || ratio < 1 / MOST_RATIO ? sides : [width, width * aspect];
}

/** Returns the view of a window. */
function fit(window: Window, inner: [number, number], rows: number, columns: number, aspect: number): View {
  const [width, height] = leastSides(inner, rows, columns, aspect);
  const by = Math.min(
    inner[0] / Math.max(1, window.right - window.left) / width,
    inner[1] / Math.max(1, window.bottom - window.top) / height,
  );
  const view = { top: window.top, left: window.left, width: width * by, height: height * by };
  return bounded(view, inner, rows, columns, aspect);
}

/** Keeps the plane within the panel: it is never smaller than all of it, and never out of sight. */
function bounded(view: View, inner: [number, number], rows: number, columns: number, aspect: number): View {
  const least = leastSides(inner, rows, columns, aspect);
  const width = clamp(view.width, least[0], MOST_ZOOM), height = clamp(view.height, least[1], MOST_ZOOM);
  const place = (start: number, seen: number, length: number) =>
    seen >= length ? (length - seen) / 2 : clamp(start, 0, length - seen);
  return { width, height, top: place(view.top, inner[1] / height, rows), left: place(view.left, inner[0] / width, columns) };
}

/** Returns where the sides of a view are, which may be within cells. */
function sidesOf(view: View, inner: [number, number], rows: number, columns: number): Window {
  return {
    top: clamp(view.top, 0, rows - 1),
    left: clamp(view.left, 0, columns - 1),
    bottom: clamp(view.top + inner[1] / view.height, 1, rows),
    right: clamp(view.left + inner[0] / view.width, 1, columns),
  };
}

/** Returns the cells that are in sight, if only in part. */
function windowOf(view: View, inner: [number, number], rows: number, columns: number): Window {
  const { top, left, bottom, right } = sidesOf(view, inner, rows, columns);
  return { top: Math.floor(top), left: Math.floor(left), bottom: Math.ceil(bottom), right: Math.ceil(right) };
}

/** Returns a window for the address: to the nearest cell, so that it neither grows nor shrinks when it is opened again. */
function windowText(sides: Window, seen: Window): string {
  const [top, left] = [Math.round(sides.top), Math.round(sides.left)];
  return [top, Math.max(top + 1, Math.min(seen.bottom, Math.round(sides.bottom))), left, Math.max(left + 1, Math.min(seen.right, Math.round(sides.right)))].join(",");
}

/** Follows fingers and the mouse: one pans, two zoom, none points. */
function usePointers(
  canvas: { current: HTMLCanvasElement | null },
  pan: (x: number, y: number) => void,
  zoom: (by: number, x: number, y: number) => void,
  point: (x: number, y: number) => void,
  click: (x: number, y: number) => void,
) {
  const moved = useRef(0);
  const down = useRef(new Map<number, [number, number]>());
  const place = (event: PointerEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left - LEFT, event.clientY - box.top - TOP];
  };
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      moved.current = 0;
      down.current.set(event.pointerId, place(event));
      canvas.current?.setPointerCapture(event.pointerId);
      point(...place(event));
    },
    onPointerMove: (event: PointerEvent) => {
      const now = place(event);
      const before = down.current.get(event.pointerId);
      if (!before) return point(...now);
      moved.current += Math.hypot(now[0] - before[0], now[1] - before[1]);
      down.current.set(event.pointerId, now);
      const other = [...down.current].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const far = (one: [number, number]) => Math.hypot(one[0] - other[0], one[1] - other[1]);
        zoom(far(now) / Math.max(1, far(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else pan(before[0] - now[0], before[1] - now[1]);
    },
    onPointerUp: (event: PointerEvent) => {
      if (down.current.delete(event.pointerId) && moved.current < 4) click(...place(event));
    },
    onPointerCancel: (event: PointerEvent) => down.current.delete(event.pointerId),
  };
  return { handlers, count: () => down.current.size };
}

function draw(
  canvas: HTMLCanvasElement,
  size: [number, number],
  view: View,
  layers: Layer[],
  colours: Uint32Array[],
  rowAxis: Axis,
  columnAxis: Axis,
  lines: Turns,
  cursor: [number, number] | null,
): void {
  const density = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.round(size[0] * density);
  canvas.height = Math.round(size[1] * density);
  const context = canvas.getContext("2d");
  if (!context) return;
  const [width, height] = [Math.round((size[0] - LEFT - RIGHT) * density), Math.round((size[1] - TOP - BOTTOM) * density)];
  if (width <= 0 || height <= 0) return;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  layers.forEach((layer, number) => paint(pixels, width, height, density, view, lines, layer, colours[number]));
  context.putImageData(image, Math.round(LEFT * density), Math.round(TOP * density));
  context.scale(density, density);
  const style = getComputedStyle(canvas);
  const inner: [number, number] = [size[0] - LEFT - RIGHT, size[1] - TOP - BOTTOM];
  axis(context, style.color, view, lines, inner, rowAxis, columnAxis);
  if (cursor) {
    context.strokeStyle = style.color;
    context.lineWidth = 1.5;
    const x = LEFT + (lines.column(cursor[1]) - view.left) * view.width, y = TOP + (lines.at(cursor[0]) - view.top) * view.height;
    if (view.width >= 6 && view.height >= 6) context.strokeRect(x, y, view.width, view.height);
  }
}

function paint(pixels: Uint32Array, width: number, height: number, density: number, view: View, lines: Turns, layer: Layer, colours?: Uint32Array): void {
  if (!colours) return;
  const columns = new Int32Array(width);
  for (let x = 0; x < width; x++) {
    columns[x] = Math.floor((lines.column(Math.floor(view.left + (x + 0.5) / density / view.width)) - layer.left) / layer.columnStep);
  }
  for (let y = 0; y < height; y++) {
    const line = Math.floor(view.top + (y + 0.5) / density / view.height);
    const row = Math.floor((lines.at(line) - layer.top) / layer.rowStep);
    if (row < 0 || row >= layer.rows.count) continue;
    const [from, to] = [row * layer.columns.count, y * width];
    for (let x = 0; x < width; x++) {
      const column = columns[x];
      if (column >= 0 && column < layer.columns.count) pixels[to + x] = colours[from + column];
    }
  }
}

/** Draws the lines and coordinates of both axes. */
function axis(context: CanvasRenderingContext2D, colour: string, view: View, lines: Turns, inner: [number, number], rowAxis: Axis, columnAxis: Axis): void {
  context.fillStyle = context.strokeStyle = colour;
  context.font = "12px system-ui, sans-serif";
  context.lineWidth = 1;
  const left = Math.max(0, -view.left * view.width), up = Math.max(0, -view.top * view.height);
  const right = Math.min(inner[0], (columnAxis.length - view.left) * view.width);
  const bottom = Math.min(inner[1], (rowAxis.length - view.top) * view.height);
  context.globalAlpha = 0.35;
  context.strokeRect(LEFT + left - 0.5, TOP + up - 0.5, right - left + 1, bottom - up + 1);
  context.globalAlpha = 1;
  context.textAlign = "center";
  context.textBaseline = "top";
  let taken = -Infinity;
  const across = lines.window({ top: 0, bottom: 0, left: view.left + left / view.width, right: view.left + right / view.width });
  const marks = ticks(columnAxis, across.left, across.right, (right - left) / 90).map(([position, text]) => [lines.column(position), text] as const).sort((a, b) => a[0] - b[0]);
  for (const [position, text] of marks) {
    const x = LEFT + (position + 0.5 - view.left) * view.width;
    const half = context.measureText(text).width / 2;
    if (x - half < taken + 10 || x > LEFT + inner[0]) continue;
    context.fillRect(x - 0.5, TOP + bottom, 1, 4);
    context.fillText(text, x, TOP + bottom + 6);
    taken = x + half;
  }
  context.textAlign = "right";
  context.textBaseline = "middle";
  const drawn = lines.window({ top: view.top + up / view.height, bottom: view.top + bottom / view.height, left: 0, right: 0 });
  for (const [position, text] of ticks(rowAxis, drawn.top, drawn.bottom, (bottom - up) / 40)) {
    const y = TOP + (lines.at(position) + 0.5 - view.top) * view.height;
    if (y > TOP + inner[1]) continue;
    context.fillRect(LEFT + left - 5, y - 0.5, 4, 1);
    context.fillText(text, LEFT + left - 8, y, LEFT - 12);
  }
  context.textAlign = "center";
  context.textBaseline = "bottom";
  context.globalAlpha = 0.75;
  const [start, end] = [across.left, across.right];
  context.fillText(title(columnAxis, start, end), LEFT + (left + right) / 2, TOP + bottom + BOTTOM, inner[0]);
  context.translate(LEFT + left - 66, TOP + (up + bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(title(rowAxis, drawn.top, drawn.bottom), 0, 6, Math.max(40, bottom - up));
  context.globalAlpha = 1;
}
