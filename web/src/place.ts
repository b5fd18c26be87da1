// Where the page is: the folder that it shows, and the state of the view, both in the address.
import { root, urlOf, type Names } from "./server";

/** A folder of the tree, and the state of its view. */
export interface Place {
  names: Names;
  state: URLSearchParams;
}

/** The folder of an array's or group's past, and the folders that select a part of it. */
const HISTORY = ".history";
const SELECTIONS = ["slice", "islice"];

/** Returns the place in the address. */
export function here(): Place {
  const path = location.pathname.slice(root.pathname.length);
  const names = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { names, state: new URLSearchParams(location.search) };
}

/** Returns the address of a place. */
export function address(place: Place): string {
  // Characters of selections and windows stay readable.
  const query = place.state.toString().replace(/%2C|%3A|%2F/g, decodeURIComponent);
  return urlOf(place.names) + (query ? `?${query}` : "");
}

/** Goes to a place; the back button returns from it. */
export function go(place: Place): void {
  settle();
  history.pushState(null, "", address(place));
  dispatchEvent(new PopStateEvent("popstate"));
}

/** Changes that follow each other as fast as this, in milliseconds, are one step: a drag, or a few turns of a wheel. */
const STEP = 1000;
/** How long the address waits for the next change: browsers limit how often it may change. */
const QUIET = 150;

let pending: Record<string, string | null> = {};
let waiting = 0;
let lastChange = -Infinity;

/** Puts a new state of the view into the address, a little later. The back button returns to the state before. */
export function remember(change: Record<string, string | null>): void {
  clearTimeout(waiting);
  Object.assign(pending, change);
  waiting = window.setTimeout(settle, QUIET);
}

/** Puts what is pending into the address. */
function settle(): void {
  clearTimeout(waiting);
  const place = here();
  for (const [key, value] of Object.entries(pending)) {
    if (value === null) place.state.delete(key);
    else place.state.set(key, value);
  }
  pending = {};
  const next = address(place);
  if (next === address(here())) return;
  const now = performance.now();
  if (now - lastChange < STEP) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  lastChange = now;
}

addEventListener("popstate", () => {
  clearTimeout(waiting);
  pending = {};
  lastChange = -Infinity;
});

/** The time in a path: the node without it, the time, and the rest of the path below. */
export function timeIn(names: Names): { base: Names; time: string | null; rest: Names } {
  const at = names.indexOf(HISTORY);
  if (at < 0 || at + 1 >= names.length) return { base: names, time: null, rest: [] };
  return { base: names.slice(0, at), time: names[at + 1], rest: names.slice(at + 2) };
}

/** Returns the folder that lists the times of a node. */
export function historyOf(base: Names): Names {
  return [...base, HISTORY];
}

/** Returns a path as of a time; null is now. */
export function atTime(names: Names, time: string | null): Names {
  const { base, rest } = timeIn(names);
  return time === null ? [...base, ...rest] : [...base, HISTORY, time, ...rest];
}

/** Returns the array in which a path selects a part, and the selection. */
export function selectionIn(names: Names): { array: Names; selection: string | null } {
  const at = names.length - 2;
  if (at < 0 || !SELECTIONS.includes(names[at])) return { array: names, selection: null };
  return { array: names.slice(0, at), selection: `${names[at]}/${names[at + 1]}` };
}
