// The rows of an array in a list that reads only what is in sight, and works with what it has read: sorts, filters, counts.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { statistics } from "../colour";
import { Busy, Trouble, useWork } from "../parts";
import type { Schema } from "../schema";
import type { Names } from "../server";
import { grouped } from "../values";
import type { Cell, Column } from "./arrow";
import { Rows } from "./rows";

const ROW = 28, HEAD = 78, BLOCK = 128, MOST_BLOCKS = 200;
/** Browsers limit the height of elements. Beyond this, a pixel of the scroll bar stands for more of the list. */
const MOST_HEIGHT = 6_000_000;
/** Columns that are shown at once. */
const COLUMNS = 24;
/** Rows that a click loads for sorting and filtering. */
const MORE = 5000;

type Row = { number: number; cells: Cell[] };

export function TableView({ names, schema }: { names: Names; schema: Schema }) {
  const { result: rows, error } = useWork(() => Rows.open(names, schema), [names]);
  if (error !== undefined) return <Trouble error={error} />;
  if (!rows) return <p class="status"><Busy /></p>;
  if (rows.columns.length === 0) return <p class="quiet">No column of this array fits into a table.</p>;
  return <Listing key={names.join("/")} rows={rows} />;
}

function Listing({ rows }: { rows: Rows }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(480);
  const [group, setGroup] = useState(0);
  const [loaded, setLoaded] = useState(new Map<number, (Cell[] | undefined)[]>());
  const [trouble, setTrouble] = useState<unknown>(null);
  const [order, setOrder] = useState<{ column: number; isDown: boolean } | null>(null);
  const [filter, setFilter] = useState("");
  const [reading, setReading] = useState(0);
  const wanted = useRef(new Set<number>());

  const columns = useMemo(() => Array.from({ length: Math.min(COLUMNS, rows.columns.length - group) }, (_, at) => group + at), [group]);
  useEffect(() => {
    setLoaded(new Map());
    wanted.current.clear();
    setOrder(null);
  }, [group]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const isLocal = order !== null || filter !== "";
  const local = useMemo(() => (isLocal ? arranged(loaded, rows.columns, columns, order, filter) : []), [loaded, order, filter, columns]);
  const count = isLocal ? local.length : rows.count;
  const visible = Math.max(1, Math.ceil((height - HEAD) / ROW));
  const total = Math.min(count * ROW, MOST_HEIGHT);
  const isScaled = count * ROW > MOST_HEIGHT;
  const last = Math.max(0, count - visible + 1);
  const start = Math.min(Math.floor(first), last);

  const load = async (block: number) => {
    if (wanted.current.has(block)) return;
    wanted.current.add(block);
    setReading((before) => before + 1);
    try {
      const read = await rows.read(block * BLOCK, Math.min(rows.count, (block + 1) * BLOCK), columns);
      setLoaded((before) => {
        const next = new Map(before).set(block, read);
        while (next.size > MOST_BLOCKS) {
          const oldest = next.keys().next().value!;
          next.delete(oldest);
          wanted.current.delete(oldest);
        }
        return next;
      });
      setTrouble(null);
    } catch (error) {
      wanted.current.delete(block);
      setTrouble(error);
    } finally {
      setReading((before) => before - 1);
    }
  };
  useEffect(() => {
    if (isLocal || count === 0) return;
    const wait = setTimeout(() => {
      for (let block = Math.floor(start / BLOCK); block <= Math.floor(Math.min(count - 1, start + visible) / BLOCK); block++) void load(block);
    }, loaded.size ? 80 : 0);
    return () => clearTimeout(wait);
  }, [start, visible, isLocal, columns, loaded.size === 0]);

  const goTo = (row: number) => {
    const place = Math.max(0, Math.min(row, last));
    setFirst(place);
    const element = scroller.current;
    if (element) element.scrollTop = isScaled ? (place / Math.max(1, last)) * (element.scrollHeight - element.clientHeight) : place * ROW;
  };
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const place = isScaled ? (element.scrollTop / Math.max(1, element.scrollHeight - element.clientHeight)) * last : element.scrollTop / ROW;
    // A pixel of a scaled list is many rows: small moves come from the wheel and keys.
    if (!isScaled || Math.abs(place - first) > last / (element.scrollHeight - element.clientHeight)) setFirst(place);
  };
  useEffect(() => {
    const element = scroller.current;
    if (!element || !isScaled) return;
    const wheel = (event: WheelEvent) => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) return;
      event.preventDefault();
      goTo(start + Math.round(event.deltaY / ROW) || start + Math.sign(event.deltaY));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const keys = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: visible - 1, PageUp: 1 - visible, Home: -Infinity, End: Infinity };
    if (!(event.key in by) || event.target !== scroller.current) return;
    event.preventDefault();
    goTo(event.key === "Home" ? 0 : event.key === "End" ? last : start + by[event.key]);
  };

  const shown = isLocal ? local.slice(start, start + visible + 1) : window(loaded, start, Math.min(count, start + visible + 1));
  const offset = isScaled ? (scroller.current?.scrollTop ?? 0) : start * ROW;
  const loadedRows = useMemo(() => [...loaded.values()].flat().filter((row) => row !== undefined) as Cell[][], [loaded]);
  return (
    <div>
      <div class="bar">
        <label class="choice"><span>Find in what is loaded</span><input type="search" value={filter} onInput={(event) => {
          setFilter(event.currentTarget.value);
          goTo(0);
        }} /></label>
        <label class="choice number"><span>Go to row</span><input inputMode="numeric" placeholder={String(start)} onChange={(event) => goTo(Number(event.currentTarget.value) || 0)} /></label>
        {rows.columns.length > COLUMNS && <>
          <button disabled={group === 0} onClick={() => setGroup(Math.max(0, group - COLUMNS))}>‹ columns</button>
          <button disabled={group + COLUMNS >= rows.columns.length} onClick={() => setGroup(group + COLUMNS)}>columns ›</button>
          <span class="quiet">{grouped(group + 1)} to {grouped(group + columns.length)} of {grouped(rows.columns.length)} columns</span>
        </>}
      </div>
      <div class="scroll rows" ref={scroller} onScroll={onScroll} onKeyDown={keys} tabIndex={0} role="region" aria-label="Rows">
        <table class="grid" aria-rowcount={count + 1}>
          <thead>
            <tr>
              <th scope="col">row</th>
              {columns.map((column, at) => <Head key={column} column={rows.columns[column]} values={loadedRows} at={at} order={order?.column === at ? order.isDown : null}
                onOrder={() => setOrder((before) => (before?.column !== at ? { column: at, isDown: false } : before.isDown ? null : { column: at, isDown: true }))} />)}
            </tr>
          </thead>
          <tbody>
            <tr aria-hidden="true" style={{ height: `${offset}px` }}><td colSpan={columns.length + 1} class="space" /></tr>
            {shown.map((row, at) => (
              <tr key={row?.number ?? `${start + at}`} aria-rowindex={start + at + 2} class="row">
                <th scope="row">{grouped(row?.number ?? start + at)}</th>
                {columns.map((column, place) => <TableCell key={column} column={rows.columns[column]} value={row?.cells[place]} isKnown={!!row} />)}
              </tr>
            ))}
            <tr aria-hidden="true" style={{ height: `${Math.max(0, total - offset - shown.length * ROW)}px` }}><td colSpan={columns.length + 1} class="space" /></tr>
          </tbody>
        </table>
      </div>
      <p class="status">
        {reading > 0 && <Busy />}
        {isLocal
          ? <span>{grouped(local.length)} of the {grouped(loadedRows.length)} rows that are loaded{order && `, by ${rows.columns[columns[order.column]].name}`}; the table has {rows.isExact ? "" : "at most "}{grouped(rows.count)}</span>
          : <span>{rows.isExact ? "" : "at most "}{grouped(rows.count)} rows; {grouped(loadedRows.length)} loaded</span>}
        {loadedRows.length < rows.count && isLocal && <button class="link" disabled={reading > 0} onClick={() => {
          const from = Math.floor(loadedRows.length / BLOCK);
          const fresh = Array.from({ length: Math.ceil(rows.count / BLOCK) - from > 0 ? Math.ceil(MORE / BLOCK) : 0 }, (_, at) => from + at);
          for (const block of fresh) if (block * BLOCK < rows.count) void load(block);
        }}>load {grouped(Math.min(MORE, rows.count - loadedRows.length))} more</button>}
      </p>
      {trouble !== null && <Trouble error={trouble} />}
    </div>
  );
}

function window(loaded: Map<number, (Cell[] | undefined)[]>, from: number, to: number): (Row | undefined)[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, at) => {
    const cells = loaded.get(Math.floor((from + at) / BLOCK))?.[(from + at) % BLOCK];
    return cells && { number: from + at, cells };
  });
}

/** Returns the loaded rows that have a text, in an order. */
function arranged(
  loaded: Map<number, (Cell[] | undefined)[]>, all: Column[], columns: number[],
  order: { column: number; isDown: boolean } | null, filter: string,
): Row[] {
  const wanted = filter.toLowerCase();
  const found: Row[] = [];
  for (const [block, rows] of [...loaded].sort((a, b) => a[0] - b[0])) {
    rows.forEach((cells, at) => {
      if (!cells) return;
      if (!wanted || cells.some((cell, place) => all[columns[place]].show(cell).toLowerCase().includes(wanted))) found.push({ number: block * BLOCK + at, cells });
    });
  }
  if (order) {
    const way = order.isDown ? -1 : 1;
    found.sort((a, b) => way * compared(a.cells[order.column], b.cells[order.column]) || a.number - b.number);
  }
  return found;
}

/** Compares values; nulls and NaN come last in ascending order. */
function compared(a: Cell, b: Cell): number {
  const isLast = (cell: Cell) => cell === null || (typeof cell === "number" && Number.isNaN(cell));
  if (isLast(a) || isLast(b)) return Number(isLast(a)) - Number(isLast(b));
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (Array.isArray(a) || Array.isArray(b)) return String(a) < String(b) ? -1 : 1;
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

function TableCell({ column, value, isKnown }: { column: Column; value: Cell | undefined; isKnown: boolean }) {
  if (!isKnown || value === undefined) return <td class="quiet">{isKnown ? "" : "…"}</td>;
  if (value === null) return <td class="null">null</td>;
  const isGenotype = column.name === "fmt_GT" && Array.isArray(value);
  const shown = column.show(value);
  const kind = column.kind === "text" || column.kind === "bytes" || column.kind === "list" || column.type === "label" ? "text" : "";
  const allele = isGenotype ? (value.every((one) => Number(one) === 0) ? " reference" : " carrier") : "";
  return <td class={kind + allele} title={shown.length > 40 ? shown.slice(0, 2000) : undefined}>{shown.slice(0, 200)}</td>;
}

function Head({ column, values, at, order, onOrder }: { column: Column; values: Cell[][]; at: number; order: boolean | null; onOrder: () => void }) {
  const own = values.slice(0, 20_000).map((row) => row[at]);
  const nulls = own.filter((value) => value === null).length;
  const known = column.type !== "label" && /integer|float|date|time/.test(column.kind) ? statistics(own.map((value) => (typeof value === "bigint" || typeof value === "number" ? Number(value) : NaN)), 16) : null;
  const most = known ? Math.max(...known.bins) : 1;
  return (
    <th scope="col" aria-sort={order === null ? "none" : order ? "descending" : "ascending"}>
      <button class="name" onClick={onOrder} title="Sort what is loaded">{column.name || "(no name)"}{order === null ? "" : order ? " ↓" : " ↑"}</button>
      <span class="quiet type">{column.type}{own.length > 0 && nulls > 0 && `, ${Math.round((100 * nulls) / own.length)} % null`}</span>
      <svg class="spark" viewBox="0 0 64 14" aria-hidden="true">
        {known?.bins.map((bin, place) => <rect key={place} x={place * 4} width="3.4" y={14 - (bin / most) * 14} height={(bin / most) * 14} />)}
      </svg>
    </th>
  );
}
