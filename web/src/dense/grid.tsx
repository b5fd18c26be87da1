// A block of cells as a grid of exact values, for text and for reading numbers.
import { useEffect, useState } from "preact/hooks";
import { Busy, Trouble, useWork } from "../parts";
import type { Attribute, Scalar } from "../schema";
import type { Names } from "../server";
import { grouped, shown, valueText } from "../values";
import { readCells, valueAt, type Axis, type Pick } from "./read";

const ROWS = 30, COLUMNS = 12;

interface Props {
  names: Names;
  attribute: Attribute;
  axes: Axis[];
  rows: number;
  /** The dimension of columns; null if there is only one dimension. */
  columns: number | null;
  fixed: number[];
  labels: Scalar[] | null;
  start: [number, number];
}

export function Grid({ names, attribute, axes, rows, columns, fixed, labels, start }: Props) {
  const [place, setPlace] = useState(start);
  useEffect(() => setPlace(start), [start[0], start[1]]);
  const [rowAxis, columnAxis] = [axes[rows], columns === null ? null : axes[columns]];
  const most = [rowAxis.length, columnAxis?.length ?? 1];
  const from = [Math.min(place[0], Math.max(0, most[0] - ROWS)), Math.min(place[1], Math.max(0, most[1] - COLUMNS))];
  const shape = [Math.min(ROWS, most[0] - from[0]), Math.min(COLUMNS, most[1] - from[1])];
  const pick: Pick = fixed.slice();
  pick[rows] = { start: from[0], count: shape[0], step: 1 };
  if (columns !== null) pick[columns] = { start: from[1], count: shape[1], step: 1 };
  const { result: cells, error } = useWork((signal) => readCells(names, attribute, pick, signal), [names, attribute.name, pick]);
  const index = (row: number, column: number) => (columns === null || rows < columns ? row * shape[1] + column : column * shape[0] + row);
  const text = (at: number) => {
    if (!cells) return "";
    const parts = Array.from({ length: Math.min(cells.perCell, 4) }, (_, part) => {
      const value = valueAt(cells, at, part);
      const label = labels && value !== null ? labels[Number(value)] : null;
      return label ?? valueText(value, attribute.datatype, attribute.unit);
    });
    return shown(parts.join(", ").slice(0, 400)) + (cells.perCell > 4 ? ", …" : "");
  };
  const move = (row: number, column: number) =>
    setPlace([Math.max(0, Math.min(from[0] + row, most[0] - 1)), Math.max(0, Math.min(from[1] + column, most[1] - 1))]);
  return (
    <div>
      <div class="bar">
        <button disabled={from[0] === 0} onClick={() => move(-ROWS, 0)}>↑ up</button>
        <button disabled={from[0] + shape[0] >= most[0]} onClick={() => move(ROWS, 0)}>↓ down</button>
        {columnAxis && <>
          <button disabled={from[1] === 0} onClick={() => move(0, -COLUMNS)}>← left</button>
          <button disabled={from[1] + shape[1] >= most[1]} onClick={() => move(0, COLUMNS)}>→ right</button>
        </>}
        <span class="quiet">
          {rowAxis.name} {rowAxis.text(from[0])} to {rowAxis.text(from[0] + shape[0] - 1)} of {grouped(most[0])}
          {columnAxis && `, ${columnAxis.name} ${columnAxis.text(from[1])} to ${columnAxis.text(from[1] + shape[1] - 1)} of ${grouped(most[1])}`}
        </span>
      </div>
      {error !== undefined ? <Trouble error={error} /> : !cells ? <p class="status"><Busy /></p> : (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Values of ${attribute.name}`}>
          <table class="grid">
            <thead>
              <tr>
                <th scope="col">{shown(rowAxis.name)}{columnAxis && ` \\ ${shown(columnAxis.name)}`}</th>
                {Array.from({ length: shape[1] }, (_, column) => <th key={column} scope="col">{columnAxis ? columnAxis.text(from[1] + column) : shown(attribute.name) || "value"}</th>)}
              </tr>
            </thead>
            <tbody>
              {Array.from({ length: shape[0] }, (_, row) => (
                <tr key={row}>
                  <th scope="row">{rowAxis.text(from[0] + row)}</th>
                  {Array.from({ length: shape[1] }, (_, column) => <td key={column} class={cells.texts || labels ? "text" : ""}>{text(index(row, column))}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
