// Requests to the server: URLs of the tree, errors, and ranges of files.

/** The names on the way from the root of the tree to a node. */
export type Names = string[];

/** The root of the tree. The page says where it is, because a proxy may serve it under a prefix. */
export const root = new URL(document.documentElement.dataset.root ?? "./", location.href.split(/[?#]/)[0]);

/** A refusal of the server, with its reason in one line. */
export class Refused extends Error {
  constructor(readonly status: number, reason: string) {
    super(reason);
  }
}

/** Returns a name as a segment of a URL. Characters of selections stay readable. */
export function encodeName(name: string): string {
  return encodeURIComponent(name).replace(/%2C|%3D|%2B|%3A/g, decodeURIComponent);
}

/** Returns the URL of a file, or of a folder if the path ends with a slash, in a folder of the tree. */
export function urlOf(folder: Names, path = ""): string {
  const names = [...folder, ...path.split("/").filter(Boolean)].map(encodeName);
  const slash = names.length && (path === "" || path.endsWith("/")) ? "/" : "";
  // A first segment with a colon would be taken for a scheme.
  return new URL("./" + names.join("/") + slash, root).href;
}

async function request(url: string, headers: Record<string, string>, signal?: AbortSignal, method = "GET") {
  const reply = await fetch(url, { headers, signal, method }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Error("The server does not answer. Is `tilefs serve` still running?");
  });
  if (!reply.ok) {
    const text = method === "HEAD" ? "" : (await reply.text()).split("\n")[0];
    throw new Refused(reply.status, text || `status ${reply.status}`);
  }
  return reply;
}

/** Reads a file of JSON. */
export async function json<T>(folder: Names, path: string, signal?: AbortSignal): Promise<T> {
  const reply = await request(urlOf(folder, path), {}, signal);
  // A member of a group may have the name of a file; then it is a folder.
  if (reply.redirected) throw new Refused(404, `${path} is a folder`);
  return exact(await reply.text()) as T;
}

/** Parses JSON; integers that doubles cannot hold are big. */
function exact(text: string): unknown {
  const reviver = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context!.source!) : value;
  return /\d{16}/.test(text) ? JSON.parse(text, reviver) : JSON.parse(text);
}

/** The query of a request for a file that need not exist: if there is none, the answer is 204, which no console lists as an error. */
const OPTIONAL = "?optional";

/** Reads a file of JSON; null if there is none. */
export async function jsonIfThere<T>(folder: Names, path: string, signal?: AbortSignal): Promise<T | null> {
  const reply = await request(urlOf(folder, path) + OPTIONAL, {}, signal);
  // A member of a group may have the name of a file; then it is a folder.
  return reply.status === 204 || reply.redirected ? null : (exact(await reply.text()) as T);
}

/** Returns why there is no such file; null if there is one. */
export async function whyAbsent(folder: Names, path: string): Promise<string | null> {
  const reply = await request(urlOf(folder, path) + OPTIONAL, {}, undefined, "HEAD");
  return reply.status === 204 ? decodeURIComponent(reply.headers.get("Tilefs-Reason") ?? "there is nothing") : null;
}

/** Lists a folder. The query may ask for some of its names. */
export async function list(folder: Names, signal?: AbortSignal, query = "?json"): Promise<{ name: string; type: string; size?: number }[]> {
  return (await request(urlOf(folder) + query, { Accept: "application/json" }, signal)).json();
}

/** A reply of fewer bytes tells nothing of the link. */
const TELLING = 16_384;
let measured: number | null = null;

/** Returns how many bytes per second the link has brought; Infinity if that is not known. */
export function linkSpeed(): number {
  if (measured !== null) return measured;
  const script = performance.getEntriesByType("resource").find((one) => one.name.endsWith("/page.js")) as PerformanceResourceTiming | undefined;
  // A script from the cache was not transferred.
  if (!script || script.transferSize < TELLING) return Infinity;
  return (1000 * script.transferSize) / Math.max(1, script.responseEnd - script.responseStart);
}

/** A link that brings fewer bytes per second is slow. */
export const SLOW = 1e6;

/** Lets what is looked at first come first over a slow link. */
export async function calm(): Promise<void> {
  if (linkSpeed() < SLOW) await new Promise((done) => setTimeout(done, 1500));
}

/** Reads a file as a whole. */
export async function bytes(folder: Names, path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  const reply = await request(urlOf(folder, path), {}, signal);
  const begin = performance.now();
  const read = await reply.arrayBuffer();
  if (read.byteLength >= TELLING) measured = (1000 * read.byteLength) / Math.max(1, performance.now() - begin);
  return read;
}

/** Reads a file of text, at most its first bytes. Says whether that was all of it. */
export async function text(folder: Names, path: string, most: number, signal?: AbortSignal): Promise<[string, boolean]> {
  const reply = await request(urlOf(folder, path), { Range: `bytes=0-${most - 1}` }, signal);
  const total = Number(reply.headers.get("Content-Range")?.split("/")[1] ?? 0);
  return [await reply.text(), total <= most];
}

/** Returns the length of a file in bytes; not-a-number for a folder. */
export async function length(folder: Names, path: string, signal?: AbortSignal): Promise<number> {
  const reply = await request(urlOf(folder, path), {}, signal, "HEAD");
  return reply.redirected ? NaN : Number(reply.headers.get("Content-Length"));
}

/** Returns whether there is such a file. */
export async function isThere(folder: Names, path: string, signal?: AbortSignal): Promise<boolean> {
  return (await request(urlOf(folder, path) + OPTIONAL, {}, signal, "HEAD")).status === 200;
}

/** Reads a file of text that need not exist, at most its first bytes; null if there is none, or if it is longer. */
export async function textIfThere(folder: Names, path: string, most: number, signal?: AbortSignal): Promise<string | null> {
  const reply = await request(urlOf(folder, path) + OPTIONAL, { Range: `bytes=0-${most - 1}` }, signal);
  const total = Number(reply.headers.get("Content-Range")?.split("/")[1] ?? 0);
  return reply.status === 204 || total > most ? null : reply.text();
}

/** The most parts that the server puts into one reply. */
const MOST_PARTS = 32;
/** Ranges that are closer than this are read as one. */
const GAP = 4096;

interface Wanted {
  start: number;
  end: number;
  done: (bytes: Uint8Array) => void;
  failed: (reason: unknown) => void;
}

/** Reads ranges of a file. Those that are asked for at the same time come in one reply. */
export class Ranges {
  private wanted: Wanted[] = [];
  /** The first bytes of the file, once they were read. */
  private head = new Uint8Array(0);
  constructor(readonly folder: Names, readonly path: string, readonly signal?: AbortSignal) {}

  /** Reads bytes at an offset. */
  read(offset: number, length: number): Promise<Uint8Array> {
    if (length <= 0) return Promise.resolve(new Uint8Array(0));
    if (offset + length <= this.head.length) return Promise.resolve(this.head.subarray(offset, offset + length));
    return new Promise((done, failed) => {
      if (this.wanted.push({ start: offset, end: offset + length, done, failed }) === 1) {
        setTimeout(() => this.send());
      }
    });
  }

  /** Reads the first bytes of the file, and keeps them. Returns them with the length of the file. */
  async first(count: number): Promise<[Uint8Array, number]> {
    const reply = await request(urlOf(this.folder, this.path), { Range: `bytes=0-${count - 1}` }, this.signal);
    this.head = new Uint8Array(await reply.arrayBuffer());
    return [this.head, Number(reply.headers.get("Content-Range")?.split("/")[1] ?? this.head.length)];
  }

  private send(): void {
    const wanted = this.wanted.sort((a, b) => a.start - b.start);
    this.wanted = [];
    const groups: Wanted[][] = [];
    let end = -Infinity;
    for (const one of wanted) {
      if (one.start <= end + GAP) groups[groups.length - 1].push(one);
      else groups.push([one]);
      end = Math.max(end, one.end);
    }
    for (let at = 0; at < groups.length; at += MOST_PARTS) void this.fetch(groups.slice(at, at + MOST_PARTS));
  }

  private async fetch(groups: Wanted[][]): Promise<void> {
    const spans = groups.map((group) => [group[0].start, Math.max(...group.map((one) => one.end))]);
    try {
      const range = "bytes=" + spans.map(([start, end]) => `${start}-${end - 1}`).join(",");
      const reply = await request(urlOf(this.folder, this.path), { Range: range }, this.signal);
      const parts = partsOf(reply, new Uint8Array(await reply.arrayBuffer()));
      groups.forEach((group, number) => {
        const [start, end] = spans[number];
        const part = parts.find((part) => part.start <= start && part.start + part.bytes.length >= end);
        if (!part) throw new Error("the server's reply lacks a range");
        for (const one of group) one.done(part.bytes.subarray(one.start - part.start, one.end - part.start));
      });
    } catch (error) {
      for (const one of groups.flat()) one.failed(error);
    }
  }
}

/** Returns the parts of a reply to a request for ranges. */
function partsOf(reply: Response, body: Uint8Array): { start: number; bytes: Uint8Array }[] {
  if (reply.status !== 206) return [{ start: 0, bytes: body }];
  const place = /^bytes (\d+)-/.exec(reply.headers.get("Content-Range") ?? "");
  if (place) return [{ start: Number(place[1]), bytes: body }];
  const parts = [];
  const decoder = new TextDecoder("latin1");
  let at = 0;
  for (;;) {
    // The header of a part is short.
    const head = decoder.decode(body.subarray(at, at + 400));
    const range = /Content-Range: bytes (\d+)-(\d+)\/\d+\r\n\r\n/i.exec(head);
    if (!range) return parts;
    const start = at + range.index + range[0].length;
    const count = Number(range[2]) - Number(range[1]) + 1;
    parts.push({ start: Number(range[1]), bytes: body.subarray(start, start + count) });
    at = start + count;
  }
}
