// What the address says of a view: each setting is checked, and a wrong one is named while the others count.
import { useEffect, useState } from "preact/hooks";
import { shown } from "./values";

/** The settings that some view has. */
const SETTINGS = new Set(["tab", "field", "part", "rows", "columns", "flip", "at", "as", "map", "curve", "limits", "colours", "window", "variable",
  "embedding", "colour", "gene", "hide", "region", "sort", "find", "row", "columnset"]);

let wrong: string[] = [];
let tell = () => {};
addEventListener("popstate", () => (wrong = []));

/** Names a setting of the address that cannot be used, with what could be. */
export function complain(key: string, text: string, wanted: string): void {
  const line = `${key}=${text}: ${wanted}`;
  if (wrong.includes(line)) return;
  wrong = [...wrong, line];
  queueMicrotask(() => tell());
}

/** Returns a setting of the address; null, after a complaint, if it does not fit. */
export function setting(state: URLSearchParams, key: string, fits: (text: string) => boolean, wanted: string): string | null {
  const text = state.get(key);
  if (text === null || fits(text)) return text;
  complain(key, text, wanted);
  return null;
}

/** Returns a setting that is one of some texts; null, after a complaint, if it is another. */
export function oneOf(state: URLSearchParams, key: string, options: readonly string[]): string | null {
  const some = options.slice(0, 12).map((option) => option || "(no name)").join(", ");
  const wanted = options.length > 1 ? `write one of ${some}${options.length > 12 ? ", …" : ""}` : options.length ? `write ${some}` : "nothing to choose from here";
  return setting(state, key, (text) => options.includes(text), wanted);
}

/** Returns the numbers of a list with commas; none if there are others. */
export function numbersIn(text: string | null): number[] {
  const parts = (text ?? "").split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  return text && parts.every(Number.isFinite) ? parts : [];
}

/** Lists the settings of the address that do not count, and why. */
export function Notes({ state }: { state: URLSearchParams }) {
  const [, again] = useState(0);
  useEffect(() => {
    tell = () => again((before) => before + 1);
    tell();
    return () => void (tell = () => {});
  }, []);
  const unknown = [...state.keys()].filter((key) => !SETTINGS.has(key)).map((key) => `${key}=${state.get(key)}: no view has such a setting`);
  const lines = [...new Set([...unknown, ...wrong])];
  return lines.length === 0 ? null : (
    <div class="notes" role="status">
      <p>Not everything in the address counts:</p>
      <ul>{lines.slice(0, 20).map((line) => <li key={line}>{shown(line.slice(0, 300))}</li>)}</ul>
    </div>
  );
}
