// All values of a column: how many rows have each, or a histogram; a click makes a condition of them.
import { useEffect, useRef, useState } from "preact/hooks";
import { Trouble, rounded } from "../parts";
import { grouped, shown } from "../values";
import type { Column } from "./arrow";
import { readColumn, summaryOf, type Facet, type Summary } from "./columns";
import { typedValue } from "./conditions";
import { Running } from "./running";
import type { Progress, Rows } from "./rows";

/** Values that are listed before the reader asks for more. */
const MOST_LISTED = 40;

interface Props {
  rows: Rows;
  column: number;
  /** Makes a condition; null if there can be none. */
  onCondition: ((text: string) => void) | null;
  onClose: () => void;
}

export function ColumnValues({ rows, column, onCondition, onClose }: Props) {
  const own = rows.columns[column];
  const [summary, setSummary] = useState<Summary | null>(null);
  const [labels, setLabels] = useState<unknown[] | null>(null);
  const [progress, setProgress] = useState<Progress>({ done: 0, all: 1 });
  const [trouble, setTrouble] = useState<unknown>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => {
    const mine = (abort.current = new AbortController());
    readColumn(rows, column, mine.signal, setProgress).then((values) => {
      if (mine.signal.aborted) return;
      setLabels(values.labels);
      setSummary(summaryOf(values, own));
    }, (error) => mine.signal.aborted || setTrouble(error));
    return () => mine.abort();
  }, [rows, column]);
  const valueOf = (facet: Facet) => (typeof facet.value === "number" && labels ? String(labels[facet.value] ?? `code ${facet.value}`) : facet.value);
  const text = (facet: Facet) => {
    const value = valueOf(facet);
    return value === null ? "null" : typeof value === "number" ? (own.kind === "boolean" ? String(!!value) : own.show(own.kind === "date" || own.kind === "time" ? BigInt(value) : value)) : value || "(empty)";
  };
  return (
    <section class="values" aria-label={`Values of ${shown(own.name)}`}>
      <div class="bar"><h2>{shown(own.name) || "(no name)"}</h2><button onClick={onClose}>Close</button></div>
      {trouble !== null && <Trouble error={trouble} />}
      {!summary && trouble === null && <Running label="reading all rows" progress={progress} onCancel={onClose} />}
      {summary && <p class="quiet small">{grouped(summary.rows)} rows{summary.missing > 0 && `, ${grouped(summary.missing)} of them without a value`}{summary.facets && `, ${grouped(summary.facets.length)} different value${summary.facets.length === 1 ? "" : "s"}`}</p>}
      {summary?.statistics && <NumberHistogram summary={summary} column={own} onCondition={onCondition} />}
      {summary?.facets && <Facets facets={summary.facets} rows={summary.rows} text={text} onChoose={onCondition && ((facet) => onCondition(typedValue(valueOf(facet) as Facet["value"], labels ? { ...own, kind: "text" } : own)))} />}
      {summary && !summary.facets && !summary.statistics && <p class="quiet">Too many different values to list.</p>}
    </section>
  );
}

function Facets({ facets, rows, text, onChoose }: { facets: Facet[]; rows: number; text: (facet: Facet) => string; onChoose: ((facet: Facet) => void) | null }) {
  const [most, setMost] = useState(MOST_LISTED);
  return (
    <>
      <ul class="facets">
        {facets.slice(0, most).map((facet) => (
          <li key={`${typeof facet.value} ${facet.value}`}>
            <button disabled={!onChoose} onClick={() => onChoose?.(facet)} title="Only these rows">
              <i style={{ width: `${(100 * facet.count) / Math.max(1, facets[0].count)}%` }} /><span>{shown(text(facet)).slice(0, 120)}</span> <span class="quiet">{grouped(facet.count)} <small>({((100 * facet.count) / Math.max(1, rows)).toPrecision(2)} %)</small></span>
            </button>
          </li>
        ))}
      </ul>
      {facets.length > most && <button class="link" onClick={() => setMost(most * 5)}>{grouped(facets.length - most)} more</button>}
    </>
  );
}

function NumberHistogram({ summary, column, onCondition }: { summary: Summary; column: Column; onCondition: ((text: string) => void) | null }) {
  const { bins, least, greatest, mean } = summary.statistics!;
  const most = Math.max(...bins, 1);
  const isWhole = column.kind !== "float";
  const text = (value: number) => (column.kind === "date" || column.kind === "time" ? column.show(BigInt(Math.round(value))) : rounded(value));
  const typed = (value: number) => (isWhole ? typedValue(BigInt(Math.round(value)), column) : typedValue(column.node.width === 4 ? Math.fround(value) : value, column));
  const choose = (bin: number) => {
    const side = (greatest - least) / bins.length;
    const [low, high] = [least + bin * side, bin === bins.length - 1 ? greatest : least + (bin + 1) * side];
    // Whole numbers on the upper edge belong to the next bin.
    onCondition?.(isWhole ? `${typed(Math.ceil(low))}..${typed(Math.max(Math.ceil(low), bin === bins.length - 1 ? greatest : Math.ceil(high) - 1))}` : `${typed(low)}..${typed(high)}`);
  };
  return (
    <figure class="histogram">
      <div class="bins">
        {bins.map((bin, at) => <button key={at} disabled={!onCondition} aria-label={`${text(least + (at * (greatest - least)) / bins.length)} and more: ${grouped(bin)} rows`} title={`${grouped(bin)} rows from ${text(least + (at * (greatest - least)) / bins.length)}`} onClick={() => choose(at)}>
          <i style={{ height: `${bin === 0 ? 0 : Math.max(2, (100 * bin) / most)}%` }} /></button>)}
      </div>
      <figcaption><span>{text(least)}</span><span class="quiet">{column.kind === "date" || column.kind === "time" ? "" : `mean ${rounded(mean)}`}</span><span>{text(greatest)}</span></figcaption>
    </figure>
  );
}
