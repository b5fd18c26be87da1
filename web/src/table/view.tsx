// The rows of an array in a list that reads only what is in sight. Conditions are the server's; sorting, searching and
// counting go through all rows, file by file, and can be cancelled.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { complain, setting } from "../address";
import { Busy, Trouble, useWork } from "../parts";
import { go, here, remember, selectionIn } from "../place";
import type { Schema } from "../schema";
import { labelsOf } from "../schema";
import { whyAbsent, type Names } from "../server";
import { dateText, grouped, shown } from "../values";
import type { Cell } from "./arrow";
import { RowInFull, TableCell } from "./cell";
import { orderOf, readColumn, rowsWith } from "./columns";
import { boxesOf, canSelect, selectionOf } from "./conditions";
import { ColumnValues } from "./facets";
import { Head } from "./head";
import { Rows, type Progress } from "./rows";
import { Running } from "./running";

const ROW = 28, HEAD = 108, BLOCK = 128, MOST_KEPT = 25_600;
/** Browsers limit the height of elements. Beyond this, a pixel of the scroll bar stands for more of the list. */
const MOST_HEIGHT = 6_000_000;
/** Columns that are shown at once. */
const COLUMNS = 24;
/** Rows are counted without being asked if there can be at most so many. */
const MOST_COUNTED = 64_000_000;

interface Props {
  names: Names;
  schema: Schema;
  state: URLSearchParams;
}

export function TableView({ names, schema, state }: Props) {
  const { result: rows, error } = useWork(() => Rows.open(names, schema), [names]);
  if (error !== undefined) return <Trouble error={error} />;
  if (!rows) return <p class="status"><Busy /></p>;
  if (rows.columns.length === 0) return <p class="quiet">No column of this array fits into a table.</p>;
  return <Listing key={names.join("/")} rows={rows} names={names} schema={schema} state={state} />;
}

interface Sorting {
  column: number;
  isDown: boolean;
}

/** Work over all rows. */
interface Work {
  label: string;
  progress: Progress;
}

/** Returns the sorting that the address asks for. */
function sortingIn(state: URLSearchParams, rows: Rows): Sorting | null {
  const place = (text: string) => rows.columns.findIndex((column) => column.name === text.replace(/^-/, "") || column.name === text);
  const text = setting(state, "sort", (text) => place(text) >= 0, `write the name of a column, with - before it for the other way`);
  return text === null ? null : { column: place(text), isDown: text.startsWith("-") && rows.columns[place(text)].name !== text };
}

/** Sorts and searches: returns the numbers of the rows to show, null for all in their order, and the work that is going on. */
function useArrangement(rows: Rows, columns: number[], sorting: Sorting | null, find: string, onCancel: () => void) {
  const [picked, setPicked] = useState<Uint32Array | null>(null);
  const [work, setWork] = useState<Work | null>(null);
  const [trouble, setTrouble] = useState<unknown>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => {
    const mine = (abort.current = new AbortController());
    setTrouble(null);
    if (!sorting && !find) {
      setPicked(null);
      setWork(null);
      return;
    }
    const arrange = async () => {
      const found = find ? await rowsWith(rows, find, columns, mine.signal, (progress, count) => setWork({ label: `searching, ${grouped(count)} found`, progress })) : null;
      if (!sorting) return found!;
      const values = await readColumn(rows, sorting.column, mine.signal, (progress) => setWork({ label: "sorting all rows", progress }));
      const order = orderOf(values, sorting.isDown);
      if (!found) return order;
      const has = new Uint8Array(order.length);
      for (const row of found) has[row] = 1;
      return order.filter((row) => has[row]);
    };
    setWork({ label: find ? "searching" : "sorting all rows", progress: { done: 0, all: 1 } });
    arrange().then((order) => {
      if (mine.signal.aborted) return;
      setPicked(order);
      setWork(null);
    }, (error) => {
      if (mine.signal.aborted) return;
      setWork(null);
      setTrouble(error);
    });
    return () => mine.abort();
  }, [rows, sorting?.column, sorting?.isDown, find, find && columns]);
  const cancel = () => {
    abort.current?.abort();
    setWork(null);
    onCancel();
  };
  return { picked, work, trouble, cancel };
}

/** Counts the rows where their number is not known, and tells how far that is. */
function useCount(rows: Rows, isAsked: boolean): { progress: Progress | null; trouble: unknown; cancel: () => void } {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [trouble, setTrouble] = useState<unknown>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => {
    if (rows.isExact || !isAsked) return;
    const mine = (abort.current = new AbortController());
    const count = async () => {
      for await (const _ of rows.each(mine.signal, setProgress));
      setProgress(null);
    };
    count().catch((error) => mine.signal.aborted || setTrouble(error));
    return () => mine.abort();
  }, [rows, isAsked]);
  return { progress, trouble, cancel: () => {
    abort.current?.abort();
    setProgress(null);
  } };
}

/** Reads rows as they are needed, and keeps some. */
function useLoaded(rows: Rows, columns: number[]) {
  const kept = useRef(new Map<number, Cell[] | null>());
  const asked = useRef(new Set<number>());
  const [version, setVersion] = useState(0);
  const [reading, setReading] = useState(0);
  const [trouble, setTrouble] = useState<unknown>(null);
  const key = columns.join(",");
  const current = useRef(key);
  if (current.current !== key) {
    current.current = key;
    kept.current = new Map();
    asked.current = new Set();
  }
  const load = async (from: number, to: number) => {
    for (let row = from; row < to; row++) asked.current.add(row);
    setReading((before) => before + 1);
    try {
      const read = await rows.read(from, to, columns);
      if (current.current !== key) return;
      read.forEach((cells, at) => kept.current.set(from + at, cells ?? null));
      for (const oldest of kept.current.keys()) {
        if (kept.current.size <= MOST_KEPT) break;
        kept.current.delete(oldest);
        asked.current.delete(oldest);
      }
      setTrouble(null);
      setVersion((before) => before + 1);
    } catch (error) {
      for (let row = from; row < to; row++) asked.current.delete(row);
      setTrouble(error);
    } finally {
      setReading((before) => before - 1);
    }
  };
  /** Reads those of some rows that nobody has asked for: neighbours together. */
  const want = (numbers: number[]) => {
    const missing = numbers.filter((row) => !asked.current.has(row)).sort((a, b) => a - b);
    for (let at = 0; at < missing.length; ) {
      let end = at + 1;
      while (end < missing.length && missing[end] === missing[end - 1] + 1) end++;
      void load(missing[at], missing[end - 1] + 1);
      at = end;
    }
  };
  return { kept: kept.current, version, isReading: reading > 0, trouble, want };
}

function Listing({ rows, names, schema, state }: Props & { rows: Rows }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [height, setHeight] = useState(480);
  const [group, setGroup] = useState(0);
  const [sorting, setSorting] = useState(() => sortingIn(state, rows));
  const [find, setFind] = useState(state.get("find") ?? "");
  const [marked, setMarked] = useState<number | null>(() => {
    const text = setting(state, "row", (text) => /^\d+$/.test(text), "write the number of a row, from 0 on");
    return text === null ? null : Number(text);
  });
  const [wrongRow, setWrongRow] = useState<string | null>(null);
  const [openColumn, setOpenColumn] = useState<number | null>(null);
  const isSelected = selectionIn(names).selection !== null;
  const [isCounting, setCounting] = useState(isSelected || (schema.rows_at_most ?? 0) <= MOST_COUNTED);
  const columns = useMemo(() => Array.from({ length: Math.min(COLUMNS, rows.columns.length - group) }, (_, at) => group + at), [group]);
  const arranged = useArrangement(rows, columns, sorting, find, () => {
    setSorting(null);
    setFind("");
    remember({ sort: null, find: null });
  });
  const counted = useCount(rows, isCounting);
  const loaded = useLoaded(rows, columns);
  const conditions = useConditions(names, schema);
  const { picked } = arranged;

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const isPartial = !rows.isExact && isCounting;
  const all = isPartial ? rows.found : rows.count;
  const count = picked ? picked.length : all;
  const visible = Math.max(1, Math.ceil((height - HEAD) / ROW));
  const total = Math.min(count * ROW, MOST_HEIGHT);
  const isScaled = count * ROW > MOST_HEIGHT;
  const last = Math.max(0, count - visible + 1);
  const start = Math.min(Math.floor(first), last);
  const end = Math.min(count, start + visible + 1);
  const numberAt = (place: number) => (picked ? picked[place] : place);

  useEffect(() => {
    if (count === 0) return;
    const wait = setTimeout(() => {
      const numbers: number[] = [];
      // Rows in their order are read in blocks; others, one by one.
      const [from, to] = picked ? [start, end] : [Math.floor(start / BLOCK) * BLOCK, Math.min(all, Math.ceil(end / BLOCK) * BLOCK)];
      for (let place = from; place < to; place++) numbers.push(numberAt(place));
      loaded.want(numbers);
    }, loaded.kept.size ? 80 : 0);
    return () => clearTimeout(wait);
  }, [start, end, picked, columns, count === 0, all]);

  const goTo = (place: number) => {
    const to = Math.max(0, Math.min(place, last));
    setFirst(to);
    const element = scroller.current;
    if (element) element.scrollTop = isScaled ? (to / Math.max(1, last)) * (element.scrollHeight - element.clientHeight) : to * ROW;
  };
  useEffect(() => goTo(0), [picked]);
  /** Shows a row by its number, wherever the order puts it. */
  const goToRow = (text: string) => {
    const row = /^\s*[\d,]+\s*$/.test(text) ? Number(text.replace(/[,\s]/g, "")) : NaN;
    const place = picked && !Number.isNaN(row) ? picked.indexOf(row) : row;
    if (!(row < all)) return setWrongRow(all ? `Write a number from 0 to ${grouped(all - 1)}.` : "There are no rows.");
    if (place < 0) return setWrongRow(`Row ${grouped(row)} is not among the rows that were found.`);
    setWrongRow(null);
    setMarked(row);
    remember({ row: String(row) });
    goTo(place);
  };
  // The row of the address, once it is known where it is.
  const isPlaced = useRef(marked === null);
  useEffect(() => {
    if (isPlaced.current || arranged.work || (sorting && !picked) || count === 0) return;
    const place = picked ? picked.indexOf(marked!) : marked!;
    if (place >= count && isPartial) return;
    isPlaced.current = true;
    if (place < 0 || place >= count) complain("row", String(marked), `there are ${grouped(count)} rows`);
    else setTimeout(() => goTo(place));
  }, [picked, arranged.work, count]);

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
  const sortBy = (column: number) => {
    const next = sorting?.column !== column ? { column, isDown: false } : sorting.isDown ? null : { column, isDown: true };
    setSorting(next);
    remember({ sort: next && (next.isDown ? "-" : "") + rows.columns[column].name });
  };

  const places = Array.from({ length: Math.max(0, end - start) }, (_, at) => start + at);
  const offset = isScaled ? (scroller.current?.scrollTop ?? 0) : start * ROW;
  const inSight = useMemo(() => [...loaded.kept.values()].filter((row) => row !== null) as Cell[][], [loaded.version, columns]);
  return (
    <div>
      <div class="bar">
        <label class="choice"><span>Find in all rows</span><input type="search" value={find} onChange={(event) => {
          setFind(event.currentTarget.value);
          remember({ find: event.currentTarget.value || null });
        }} /></label>
        <label class="choice number"><span>Go to row</span><input inputMode="numeric" placeholder={String(count ? numberAt(start) : 0)} aria-invalid={wrongRow !== null} onChange={(event) => goToRow(event.currentTarget.value)} /></label>
        {rows.columns.length > COLUMNS && <>
          <button disabled={group === 0} onClick={() => setGroup(Math.max(0, group - COLUMNS))}>‹ columns</button>
          <button disabled={group + COLUMNS >= rows.columns.length} onClick={() => setGroup(group + COLUMNS)}>columns ›</button>
          <span class="quiet">{grouped(group + 1)} to {grouped(group + columns.length)} of {grouped(rows.columns.length)} columns</span>
        </>}
        {isSelected && <button onClick={() => conditions.clear()}>All rows</button>}
      </div>
      {wrongRow && <p class="trouble" role="alert">{wrongRow}</p>}
      {conditions.wrong && <p class="trouble" role="alert">{shown(conditions.wrong.name)}: {shown(conditions.wrong.reason)}</p>}
      {[loaded.trouble, arranged.trouble, counted.trouble].filter((one) => one !== null).map((one, at) => <Trouble key={at} error={one} />)}
      {openColumn !== null && <ColumnValues rows={rows} column={openColumn} onClose={() => setOpenColumn(null)}
        onCondition={canSelect(schema, rows.columns[openColumn].name) ? (text) => void conditions.apply(rows.columns[openColumn].name, text) : null} />}
      <div class="scroll rows" ref={scroller} onScroll={onScroll} onKeyDown={keys} tabIndex={0} role="region" aria-label="Rows">
        <table class="grid" aria-rowcount={count + 1}>
          <thead>
            <tr>
              <th scope="col">row</th>
              {columns.map((column, at) => <Head key={column} column={rows.columns[column]} loaded={inSight.slice(0, 20_000).map((row) => row[at])}
                order={sorting?.column === column ? (sorting.isDown ? "down" : "up") : null} condition={conditions.boxOf(rows.columns[column].name)} isOpen={openColumn === column}
                onOrder={() => sortBy(column)} onCondition={(text) => void conditions.apply(rows.columns[column].name, text)} onOpen={() => setOpenColumn(openColumn === column ? null : column)} />)}
            </tr>
          </thead>
          <tbody>
            <tr aria-hidden="true" style={{ height: `${offset}px` }}><td colSpan={columns.length + 1} class="space" /></tr>
            {places.map((place) => {
              const number = numberAt(place);
              const cells = loaded.kept.get(number);
              return (
                <tr key={number} aria-rowindex={place + 2} class={number === marked ? "row marked" : "row"}>
                  <th scope="row"><button class="link" aria-label={`Row ${grouped(number)}`} onClick={() => {
                    setMarked(number);
                    remember({ row: String(number) });
                  }}>{grouped(number)}</button></th>
                  {columns.map((column, at) => <TableCell key={column} column={rows.columns[column]} value={cells?.[at]} isKnown={cells !== undefined} />)}
                </tr>
              );
            })}
            <tr aria-hidden="true" style={{ height: `${Math.max(0, total - offset - places.length * ROW)}px` }}><td colSpan={columns.length + 1} class="space" /></tr>
          </tbody>
        </table>
      </div>
      <p class="status">
        {loaded.isReading && <Busy />}
        {picked ? <span>{grouped(picked.length)} of {grouped(all)} rows{find && ` with “${shown(find)}”`}{sorting && `, by ${shown(rows.columns[sorting.column].name)}`}</span>
          : <span>{rows.isExact ? "" : isPartial ? "so far " : "at most "}{grouped(count)} row{count === 1 ? "" : "s"}{isSelected && rows.isExact && " selected"}</span>}
        {arranged.work && <Running label={arranged.work.label} progress={arranged.work.progress} onCancel={arranged.cancel} />}
        {counted.progress && <Running label="counting" progress={counted.progress} onCancel={() => {
          counted.cancel();
          setCounting(false);
        }} />}
        {!rows.isExact && !isCounting && <button class="link" onClick={() => setCounting(true)}>count them</button>}
      </p>
      {marked !== null && marked < all && <RowInFull rows={rows} row={marked} columns={columns} onClose={() => {
        setMarked(null);
        remember({ row: null });
      }} />}
    </div>
  );
}

/** The boxes of conditions: what they hold, and how a new one becomes a selection of the tree. */
function useConditions(names: Names, schema: Schema) {
  const { array, selection } = selectionIn(names);
  const boxes = boxesOf(selection, schema);
  const [wrong, setWrong] = useState<{ name: string; text: string; reason: string } | null>(null);
  const show = (names: Names) => {
    const { state } = here();
    state.delete("row");
    go({ names, state });
  };
  const apply = async (name: string, text: string) => {
    const next = selectionOf(new Map(boxes).set(name, text));
    if (next === selection?.replace(/^slice\//, "") || (next === null && selection === null)) return setWrong(null);
    if (next === null) return show(array);
    const reason = await whyAbsent([...array, "slice", next], "schema.json").catch((error: Error) => error.message);
    if (reason === null) return show([...array, "slice", next]);
    // The box keeps what is wrong.
    setWrong({ name, text, reason: reason.replace(/^selection .*?: (?:attribute|dimension|label) .*?: /, "") });
  };
  const boxOf = (name: string) => {
    if (!canSelect(schema, name)) return null;
    const at = schema.dimensions.findIndex((dimension) => dimension.name === name);
    const isWrong = wrong?.name === name;
    return { text: isWrong ? wrong.text : boxes.get(name) ?? "", label: `${at >= 0 ? "Range" : "Values"} of ${shown(name)}`, example: exampleOf(schema, name), isWrong };
  };
  return { wrong, apply, boxOf, clear: () => show(array) };
}

/** Returns what may be typed into the box of a column. */
export function exampleOf(schema: Schema, name: string): string {
  const at = schema.dimensions.findIndex((dimension) => dimension.name === name);
  const attribute = schema.attributes.find((one) => one.name === name);
  if (at < 0) {
    if (attribute?.enumeration) return String(labelsOf(schema, attribute)?.[0] ?? "label").slice(0, 14);
    return /FLOAT/.test(attribute?.datatype ?? "") ? "0.5..9" : /DATETIME/.test(attribute?.datatype ?? "") ? "2020..2021-06" : /INT|BOOL|TIME/.test(attribute?.datatype ?? "") ? "5..9" : "a..b";
  }
  const { datatype, unit } = schema.dimensions[at];
  const range = schema.non_empty_domain?.[at];
  if (!range || range[0] === null) return "low..high";
  const text = (value: unknown) => (unit && datatype.startsWith("DATETIME") ? dateText(value as bigint, unit).slice(0, 10) : String(value)).slice(0, 14);
  return `${text(range[0])}..${text(range[1])}`;
}
