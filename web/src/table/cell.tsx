// A cell in the list, and all cells of one row in full: texts with their lines, lists, and pictures.
import { useEffect, useRef } from "preact/hooks";
import { useWork } from "../parts";
import { grouped, shown, shownLines } from "../values";
import { pictureKind, type Cell, type Column } from "./arrow";
import type { Rows } from "./rows";

/** Characters of a cell in the list, and in a row in full. */
const MOST_SHOWN = 200, MOST_FULL = 100_000;
/** Values of a list that are shown in full. */
const MOST_LISTED = 1000;

export function TableCell({ column, value, isKnown }: { column: Column; value: Cell | undefined; isKnown: boolean }) {
  if (!isKnown || value === undefined) return <td class="quiet">{isKnown ? "" : "…"}</td>;
  if (value === null) return <td class="null">null</td>;
  const isGenotype = column.name === "fmt_GT" && Array.isArray(value);
  const text = column.show(value);
  const line = shown(text.slice(0, 2000).replace(/\s*\r?\n/g, " ↵ "));
  const kind = /text|bytes|list/.test(column.kind) || column.type === "label" ? "text" : "";
  const allele = isGenotype ? (value.every((one) => Number(one) === 0) ? " reference" : " carrier") : "";
  return <td class={kind + allele} title={text.length > 40 || line !== text ? line : undefined}>{line.slice(0, MOST_SHOWN)}{line.length > MOST_SHOWN && "…"}</td>;
}

/** All columns of a row. */
export function RowInFull({ rows, row, columns, onClose }: { rows: Rows; row: number; columns: number[]; onClose: () => void }) {
  const { result } = useWork(() => rows.read(row, row + 1, columns), [row, columns]);
  const cells = result?.[0];
  return (
    <section class="values" aria-label={`Row ${grouped(row)}`}>
      <div class="bar"><h2>Row {grouped(row)}</h2><button onClick={onClose}>Close</button></div>
      {cells && <dl class="metadata">
        {columns.map((column, at) => <div key={column}><dt>{shown(rows.columns[column].name) || "(no name)"}</dt><dd><FullCell rows={rows} row={row} column={column} value={cells[at]} /></dd></div>)}
      </dl>}
    </section>
  );
}

function FullCell({ rows, row, column, value }: { rows: Rows; row: number; column: number; value: Cell }) {
  const own = rows.columns[column];
  if (value === null) return <span class="null quiet">null</span>;
  if (Array.isArray(value)) {
    const item = (one: Cell) => shown(own.show([one]));
    return <>{value.length === 0 ? "(an empty list)" : <ol start={0} class="items">{value.slice(0, MOST_LISTED).map((one, at) => <li key={at}>{item(one)}</li>)}</ol>}{value.length > MOST_LISTED && <p class="quiet">of {grouped(value.length)}</p>}</>;
  }
  if (/text|bytes/.test(own.kind) && own.type !== "label") return <FullBytes rows={rows} row={row} column={column} text={own.show(value)} />;
  return <>{shown(own.show(value))}</>;
}

/** A text or bytes: as they are stored, where the list shows their beginning. */
function FullBytes({ rows, row, column, text }: { rows: Rows; row: number; column: number; text: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { result: bytes } = useWork(() => rows.bytes(row, column), [row, column]);
  const kind = bytes && rows.columns[column].kind === "bytes" ? pictureKind(bytes) : null;
  useEffect(() => {
    if (!bytes || !kind) return;
    // Drawn, not linked: the policy of the page lets in no other pictures.
    void createImageBitmap(new Blob([bytes.slice()])).then((picture) => {
      const element = canvas.current;
      if (!element) return;
      const scale = Math.min(1, 480 / Math.max(picture.width, picture.height));
      [element.width, element.height] = [Math.max(1, Math.round(picture.width * scale)), Math.max(1, Math.round(picture.height * scale))];
      element.getContext("2d")?.drawImage(picture, 0, 0, element.width, element.height);
    }).catch(() => undefined);
  }, [bytes, kind]);
  if (bytes && kind) return <><canvas ref={canvas} class="cell" role="img" aria-label={`${kind} picture`} /><p class="quiet small">{kind}, {grouped(bytes.length)} bytes</p></>;
  const isText = rows.columns[column].kind === "text" || !bytes || /[^0-9a-f…]/.test(text);
  const full = !bytes ? text : isText ? new TextDecoder().decode(bytes.subarray(0, MOST_FULL)) : hexLines(bytes);
  return <pre tabIndex={0}>{shownLines(full)}{bytes && bytes.length > MOST_FULL && `… (${grouped(bytes.length)} bytes)`}</pre>;
}

/** Returns bytes as lines of hexadecimal numbers with their offsets. */
function hexLines(bytes: Uint8Array): string {
  const some = bytes.subarray(0, 4096);
  const lines = Array.from({ length: Math.ceil(some.length / 16) }, (_, line) =>
    `${(line * 16).toString(16).padStart(4, "0")}  ${Array.from(some.subarray(line * 16, line * 16 + 16), (byte) => byte.toString(16).padStart(2, "0")).join(" ")}`);
  return lines.join("\n") + (bytes.length > some.length ? `\n… of ${grouped(bytes.length)} bytes` : "");
}
