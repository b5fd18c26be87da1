// The head of a column: its name, which sorts, its type, a box for a condition, and a button for all its values.
import { statistics } from "../colour";
import { shown } from "../values";
import type { Cell, Column } from "./arrow";

interface Props {
  column: Column;
  /** The values of the rows that are loaded. */
  loaded: Cell[];
  /** Whether rows are sorted by it, and which way. */
  order: "up" | "down" | null;
  /** The condition; null if there can be none. */
  condition: { text: string; label: string; example: string; isWrong: boolean } | null;
  isOpen: boolean;
  onOrder: () => void;
  onCondition: (text: string) => void;
  onOpen: () => void;
}

export function Head({ column, loaded, order, condition, isOpen, onOrder, onCondition, onOpen }: Props) {
  const nulls = loaded.filter((value) => value === null).length;
  const isNumber = column.type !== "label" && /integer|float|date|time/.test(column.kind);
  const known = isNumber ? statistics(loaded.map((value) => (typeof value === "bigint" || typeof value === "number" ? Number(value) : NaN)), 16) : null;
  const most = known ? Math.max(...known.bins) : 1;
  const name = shown(column.name) || "(no name)";
  return (
    <th scope="col" aria-sort={order === null ? "none" : order === "down" ? "descending" : "ascending"}>
      <button class="name" onClick={onOrder} title="Sort all rows">{name}{order === null ? "" : order === "down" ? " ↓" : " ↑"}</button>
      <span class="quiet type">{column.type}{loaded.length > 0 && nulls > 0 && `, ${Math.round((100 * nulls) / loaded.length)} % null`}</span>
      {condition
        ? <input class={condition.isWrong ? "condition wrong" : "condition"} value={condition.text} placeholder={condition.example} aria-label={condition.label} aria-invalid={condition.isWrong}
          title="Values such as 5..9, 5.., a+b; %null for nulls" onChange={(event) => onCondition(event.currentTarget.value)} />
        : <span class="condition" />}
      <button class="about" aria-expanded={isOpen} aria-label={`Values of all rows: ${name}`} title="Count the values of all rows" onClick={onOpen}>
        <svg class="spark" viewBox="0 0 64 14" aria-hidden="true">
          {known ? known.bins.map((bin, place) => <rect key={place} x={place * 4} width="3.4" y={14 - (bin / most) * 14} height={(bin / most) * 14} />)
            : [0, 1, 2].map((line) => <rect key={line} x="0" y={line * 5} height="3" width={[44, 26, 12][line]} />)}
        </svg>
      </button>
    </th>
  );
}
