// Time travel: a slider over the commits of a node.
import { useEffect, useState } from "preact/hooks";
import { useWork } from "./parts";
import { go, here, historyOf, selectionIn, timeIn } from "./place";
import { calm, list, type Names } from "./server";
import { grouped } from "./values";

/** Returns a time as the tree writes it, `20240131T101500.000Z`, for people. */
export function momentText(time: string): string {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\.\d+)?Z$/.exec(time);
  if (!parts) return time;
  const [, year, month, day, hour, minute, second, fraction] = parts;
  const rest = fraction && Number(fraction) ? fraction : "";
  return `${year}-${month}-${day} ${hour}:${minute}:${second}${rest} UTC`;
}

/** Returns the node whose times there are, the time, and the rest of the path: of a selection, the times are those of the array. */
function placeInTime(names: Names): ReturnType<typeof timeIn> {
  const found = timeIn(names);
  if (found.time !== null) return found;
  const { array, selection } = selectionIn(names);
  return { base: array, time: null, rest: selection === null ? [] : names.slice(array.length) };
}

export function TimeSlider({ names }: { names: Names }) {
  const { base, time, rest } = placeInTime(names);
  const { result: times } = useWork(async (signal) => (await calm(), await list(historyOf(base), signal)).map((entry) => entry.name), [base]);
  const at = times && time !== null ? times.indexOf(time) : -1;
  const [place, setPlace] = useState<number | null>(null);
  useEffect(() => setPlace(null), [names.join("/")]);
  if (!times || (times.length < 2 && time === null)) return null;
  const shown = place ?? (time === null ? times.length : at < 0 ? times.length : at);
  const travel = (next: number) => {
    const { state } = here();
    go({ names: next >= times.length ? [...base, ...rest] : [...historyOf(base), times[next], ...rest], state });
  };
  const label = shown >= times.length ? (time !== null && at < 0 && place === null ? `as of ${time}` : "now") : momentText(times[shown]);
  return (
    <label class="slider time">
      <span>As of <output>{label}</output></span>
      <button aria-label="Earlier" disabled={shown === 0} onClick={() => travel(Math.min(shown, times.length) - 1)}>‹</button>
      <input type="range" min={0} max={times.length} value={shown} aria-label="Time" aria-valuetext={label}
        onInput={(event) => setPlace(Number(event.currentTarget.value))} onChange={(event) => travel(Number(event.currentTarget.value))} />
      <button aria-label="Later" disabled={shown >= times.length} onClick={() => travel(shown + 1)}>›</button>
      <span class="quiet">{grouped(times.length)} commits</span>
    </label>
  );
}
