// Reads Arrow files of pyarrow with the page's own reader, whole and in parts, and compares the values.
//
// usage: arrow.mjs FOLDER EXPECTED
//
// EXPECTED is a file with the output of arrow.py. Prints each check, and ends with 1 if one failed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";

const [, , folder, expectedFile] = process.argv;
const expected = JSON.parse(readFileSync(expectedFile, "utf8"));

// What the modules need of a browser: the address of the page, and a server that sends ranges.
globalThis.document = { documentElement: { dataset: {} } };
globalThis.location = new URL("http://host/");
let requests = 0;
globalThis.fetch = async (url, { headers = {} } = {}) => {
  requests++;
  const bytes = readFileSync(join(folder, decodeURIComponent(new URL(url).pathname)));
  const ranges = /^bytes=(.*)$/.exec(headers.Range ?? "")?.[1].split(",").map((range) => range.split("-").map(Number)).map(([start, end]) => [start, Math.min(end, bytes.length - 1)]);
  if (!ranges) return new Response(bytes);
  if (ranges.length === 1) {
    const [[start, end]] = ranges;
    return new Response(bytes.subarray(start, end + 1), { status: 206, headers: { "Content-Range": `bytes ${start}-${end}/${bytes.length}` } });
  }
  const parts = ranges.flatMap(([start, end]) => [Buffer.from(`\r\n--b\r\nContent-Type: x\r\nContent-Range: bytes ${start}-${end}/${bytes.length}\r\n\r\n`), bytes.subarray(start, end + 1)]);
  return new Response(Buffer.concat([...parts, Buffer.from("\r\n--b--\r\n")]), { status: 206, headers: { "Content-Type": "multipart/byteranges; boundary=b" } });
};

const bundle = await build({
  configFile: false, logLevel: "error", root: new URL("..", import.meta.url).pathname,
  build: { write: false, minify: false, target: "es2022", lib: { entry: "src/table/arrow.ts", formats: ["es"] } },
});
const code = [bundle].flat()[0].output[0].code;
const { ArrowFile } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

/** Returns a value as arrow.py writes it. */
function plain(value, type) {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item) => plain(item, /<\w+: (.*?)>/.exec(type)?.[1] ?? type));
  if (/float|halffloat|double/.test(type)) return Number.isFinite(value) ? value : Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  return typeof value === "bigint" || typeof value === "number" ? String(value) : value;
}

let failures = 0;
const check = async (name, work) => {
  try {
    await work();
    console.log(`ok: ${name}`);
  } catch (error) {
    failures++;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
};

for (const [path, { rows, columns }] of Object.entries(expected)) {
  await check(path, async () => {
    const file = await ArrowFile.open([], path);
    assert.equal(file.rows, rows);
    assert.deepEqual(file.columns.map((column) => column.name), columns.map((column) => column.name));
    for (const [at, { name, type, values }] of columns.entries()) {
      // Bytes are shown as text if they are text, which these are not, except by chance.
      const wanted = values.map((value) => (value === -0 ? 0 : value));
      for (const [from, to] of [[0, rows], [1, 2], [7, 9], [8, 65], [rows - 1, rows], [3, 3]]) {
        if (from < 0 || to > rows) continue;
        const [read] = await file.read(from, to, [at]);
        const shown = read.map((value) => plain(value, type)).map((value) => (value === -0 ? 0 : value));
        if (/binary/.test(type)) assert.ok(shown.every((value, row) => (value === null) === (wanted[from + row] === null) && (value === null || value === wanted[from + row] || !/^[0-9a-f]*$/.test(value))), `${name} from ${from} to ${to}`);
        else assert.deepEqual(shown, wanted.slice(from, to), `${name} from ${from} to ${to}`);
      }
      if (rows && /string|binary$/.test(type) && !/list|dictionary|fixed/.test(type)) {
        const stored = await file.bytes(rows - 1, at);
        const last = values[rows - 1];
        assert.equal(stored && (/binary/.test(type) ? Buffer.from(stored).toString("hex") : new TextDecoder().decode(stored)), last, `bytes of ${name}`);
      }
      // Numbers of a whole column, as they are sorted and counted.
      const numbers = await file.numbers(0, rows, at);
      const labels = file.labels(at);
      if (numbers === null) continue;
      assert.equal(numbers.length, rows);
      const again = [...numbers].map((number) => (labels ? plain(labels[number] ?? null, type) : number));
      again.forEach((value, row) => {
        const one = labels ? wanted[row] : wanted[row] === null || wanted[row] === "nan" ? NaN : Number({ inf: Infinity, "-inf": -Infinity }[wanted[row]] ?? wanted[row]);
        assert.ok(Object.is(value, one) || value === one, `${name} in row ${row}: ${value}, not ${one}`);
      });
    }
    // A row of all columns takes a few requests, however many columns there are.
    requests = 0;
    if (rows) await file.read(rows - 1, rows, columns.map((_, at) => at));
    assert.ok(requests <= 12, `${requests} requests`);
  });
}
await check("a type that is not read is an error", () => assert.rejects(ArrowFile.open([], "struct.arrow"), /does not read/));
process.exit(failures ? 1 : 0);
