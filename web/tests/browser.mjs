// Looks at the page in Chromium as a person would, and compares what it shows with what TileDB reads.
//
// usage: browser.mjs CONFIGURATION
//
// The configuration is JSON: `urls` of servers of the demo array, of the folder of real data, of hostile arrays, of a
// dataset of variants and of the demo with a token; the `token`; and `expected`, the output of arrays.py. Prints each check, and ends with 1 if one failed.
//
// With the variable ONLY, only checks run whose names have its text. With PAGE, a folder such as web/dist, the page comes
// from there: for work on the page without a build of the program.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { interpolateGreys, interpolateViridis } from "d3-scale-chromatic";
import { chromium } from "playwright-core";

const { urls, token, expected, executable } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const only = process.env.ONLY;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: executable, args: FLAGS });
const checks = [];
const check = (name, work) => checks.push([name, work]);

/** Opens a page; everything that a page must never do is an error. */
async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1024, height: 800 }, ...options });
  // What is drawn on a canvas as text, with its place in pixels of CSS, until it is cleared.
  await context.addInitScript(() => {
    const width = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
    Object.defineProperty(HTMLCanvasElement.prototype, "width", {
      ...width,
      set(value) {
        this.texts = [];
        width.set.call(this, value);
      },
    });
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
      const place = this.getTransform().transformPoint({ x, y });
      this.canvas.texts.push({ text, x: place.x / devicePixelRatio, y: place.y / devicePixelRatio });
      fill.call(this, text, x, y, ...rest);
    };
  });
  const page = await context.newPage();
  page.wrong = [];
  page.setDefaultTimeout(120_000);
  page.on("pageerror", (error) => page.wrong.push(`error: ${error.message}`));
  // Nothing that the page asks for by itself is missing.
  page.on("console", (message) => message.type() === "error" && page.wrong.push(`console: ${message.text()} ${message.location().url}`));
  if (process.env.PAGE) {
    await context.route(/\.tilefs\/page\/page\.(js|css)/, (route) => route.fulfill({ path: join(process.env.PAGE, new URL(route.request().url()).pathname.split("/").at(-1)) }));
  }
  page.on("dialog", (dialog) => page.wrong.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("console", (message) => /Content Security Policy/.test(message.text()) && page.wrong.push(message.text()));
  page.on("request", (request) => new URL(request.url()).host === new URL(url).host || page.wrong.push(`asks ${request.url()}`));
  await page.goto(url);
  await page.waitForSelector("h1 >> visible=true");
  return page;
}

async function close(page) {
  assert.equal(await page.evaluate("window.ran"), undefined, "a script of a name ran");
  assert.deepEqual(page.wrong, []);
  await page.context().close();
}

/** Moves to a cell by keys, and returns its coordinates and its value as the page says them. */
async function cell(page, ...keys) {
  await page.waitForSelector("[data-sampled]");
  await page.focus(".picture canvas");
  for (const key of keys) await page.keyboard.press(key);
  const text = await page.locator(".readout .quiet").innerText();
  const coordinates = [...text.matchAll(/= (-?\d+)/g)].map((match) => Number(match[1]));
  return [coordinates, await page.locator(".readout output").innerText()];
}

const valueAt = ({ shape, values }, ...index) => values[index.reduce((at, one, axis) => at * shape[axis] + one, 0)];
/** Compares a float32 as the page writes it, perhaps with a unit, with the double that Python wrote. */
const sameFloat = (shown, value) => assert.equal(Math.fround(Number(shown.split(" ")[0])), Math.fround(value));

/** Waits until all rows in sight are there. */
async function settled(page) {
  await page.waitForFunction(() => !document.querySelector(".busy, .running") && document.querySelector("tr.row") && ![...document.querySelectorAll("tr.row td")].some((cell) => cell.textContent === "…"));
}

async function rowsShown(page) {
  await page.waitForFunction(() => [...document.querySelectorAll("tr.row td")].some((cell) => cell.textContent !== "…"));
  return page.$$eval("tr.row", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
}

async function accessible(page) {
  // The policy of the page lets no script in, so this one comes from outside.
  await page.evaluate(axe);
  const { violations } = await page.evaluate("axe.run()");
  const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" ; ")}`), []);
}

check("a picture has the values of the array, and goes back in time", async () => {
  const page = await open(urls.demo);
  const [[y, x], value] = await cell(page, "ArrowRight", "ArrowDown");
  sameFloat(value, valueAt(expected.demo, y, x));
  assert.match(await page.innerText(".summary"), /100 × 200.*2 writes/);
  assert.equal(await page.title(), "demo");
  // The last ten rows were written on the second day.
  for (let at = 0; at < 50; at++) await page.keyboard.press("ArrowDown");
  const [[last], after] = await cell(page, "ArrowRight");
  assert.ok(last >= 90);
  assert.notEqual(after, "NaN");
  await page.click("[aria-label=Earlier]");
  await page.waitForURL(/\.history\/20240102/);
  await page.click("[aria-label=Earlier]");
  await page.waitForURL(/\.history\/20240101/);
  await page.waitForSelector("[data-sampled]");
  await page.focus(".picture canvas");
  for (let at = 0; at < 60; at++) await page.keyboard.press("ArrowDown");
  const [[row, column], before] = await cell(page, "ArrowRight");
  assert.ok(row >= 90 && valueAt(expected.demo_before, row, column) === null);
  assert.equal(before, "NaN");
  await page.goBack();
  await page.goBack();
  await page.waitForFunction(() => document.querySelector(".time output")?.textContent === "now");
  await accessible(page);
  await close(page);
});

check("a picture is zoomed down to single cells, and the address brings the view back", async () => {
  const page = await open(`${urls.real}dem_jacksboro/`);
  const [[y, x], value] = await cell(page, "ArrowRight");
  assert.equal(Number(value), valueAt(expected.elevation, y, x));
  for (let at = 0; at < 7; at++) await page.click("[aria-label='Zoom in']");
  await page.waitForURL(/window=/);
  await page.waitForFunction(() => document.querySelector("[data-sampled=no]"));
  const [[row, column], single] = await cell(page, "ArrowLeft");
  assert.equal(Number(single), valueAt(expected.elevation, row, column));
  await page.selectOption("label:has-text('Colours') select", "magma");
  await page.waitForURL(/map=magma/);
  await page.reload();
  await page.waitForSelector("[data-sampled=no]");
  assert.equal(await page.locator("label:has-text('Colours') select").inputValue(), "magma");
  // What is copied and downloaded is the part in the window.
  const command = await page.innerText(".command");
  const selection = /islice\/([\d:,]+)\//.exec(command)[1].split(",").map((part) => part.split(":").map(Number));
  assert.ok(selection.every(([start, end]) => end - start < 60), command);
  await page.selectOption("[aria-label=Program]", { label: "curl" });
  const url = /http\S+/.exec(await page.innerText(".command"))[0].replace(/'$/, "");
  const part = await fetch(url).then((reply) => reply.arrayBuffer());
  const stored = new Int16Array(part.slice(part.byteLength - 2));
  assert.equal(stored[0], valueAt(expected.elevation, selection[0][1] - 1, selection[1][1] - 1));
  await page.click(".downloads summary");
  await page.waitForFunction(() => [...document.querySelectorAll(".files .size")].every((size) => /bytes|kB|MB/.test(size.textContent)));
  await close(page);
});

check("limits, logarithms and maps decide the colour of a number", async () => {
  // Its numbers grow from 0 by one from cell to cell, and its cells are some pixels wide.
  const [height, width] = [36, 60], count = height * width;
  const page = await open(`${urls.hostile}labels/`);
  await page.waitForSelector("[data-sampled=no]");
  const at = (share) => share * (count - 1);
  const [low, high] = [600, 1500];
  const select = (name, label) => page.selectOption(`label:has-text('${name}') select`, { label });
  /** Compares colours at some places; `most` is how much a byte of a colour may differ. */
  const compare = async (map, placeOf, most = 3) => {
    await page.waitForTimeout(400);
    for (const [x, y] of [[180, 60], [260, 150], [330, 240], [420, 90], [500, 300]]) {
      // Cells may be smoothed where they meet.
      const rowAt = async (y) => (await pointed(page, x, y)).places[0][0];
      let inside = y;
      while ((await rowAt(inside - 3)) !== (await rowAt(inside + 3))) inside += 3;
      const { places: [[row], [column]], pixel, value } = await pointed(page, x, inside);
      assert.equal(Number(value), row * width + column);
      const place = Math.min(1, Math.max(0, placeOf(Number(value))));
      const colour = map(Math.min(255, Math.floor(place * 256)) / 255);
      const wanted = colour.startsWith("#") ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/\d+/g).map(Number);
      assert.ok(wanted.every((part, at) => Math.abs(part - pixel[at]) <= most), `${value} is ${pixel}, not ${wanted}`);
    }
  };
  const linear = (low, high) => (value) => (value - low) / (high - low);
  await compare(interpolateViridis, linear(at(0.02), at(0.98)));
  await select("Limits", "least to greatest");
  await compare(interpolateViridis, linear(at(0), at(1)));
  await select("Colours", "grey");
  await compare((place) => interpolateGreys(1 - place), linear(at(0), at(1)));
  await select("Limits", "by hand");
  for (const [number, value] of [low, high].entries()) {
    await page.locator(".controls input[inputmode=decimal]").nth(number).fill(String(value));
    await page.keyboard.press("Enter");
  }
  await compare((place) => interpolateGreys(1 - place), linear(low, high));
  await select("Scale", "log");
  await compare((place) => interpolateGreys(1 - place), (value) => Math.log(value / low) / Math.log(high / low));
  // The address has it all.
  await page.waitForURL(/limits=/);
  await page.reload();
  await page.waitForSelector("[data-sampled=no]");
  await compare((place) => interpolateGreys(1 - place), (value) => Math.log(value / low) / Math.log(high / low));
  await close(page);
});

check("commands and downloads are those of the programs that read what is shown", async () => {
  for (const [url, programs, formats] of [
    [`${urls.real}dem_jacksboro/`, ["Path in a mount", "curl", "Python", "R", "GDAL", "xarray"], ["NumPy", "text", "TIFF", "netCDF", "netCDF-4", "HDF5"]],
    [`${urls.real}stocks/`, ["Path in a mount", "curl", "Python", "R", "DuckDB"], ["CSV", "TSV", "Parquet", "Arrow", "netCDF", "HDF5"]],
    [`${urls.real}pbmc_soma/`, ["Python", "curl", "Path in a mount"], ["h5ad of RNA"]],
    [urls.variants, ["bcftools", "Path in a mount", "curl", "Python"], ["vcf", "vcf.gz", "bcf"]],
  ]) {
    const page = await open(url);
    await page.waitForSelector(".share .command");
    const shown = await page.$$eval("[aria-label=Program] option", (options) => options.map((option) => option.textContent));
    assert.deepEqual(programs.filter((program) => !shown.includes(program)), [], url);
    if (await page.locator(".downloads summary").count()) await page.click(".downloads summary");
    await page.waitForFunction(() => [...document.querySelectorAll(".files .size")].every((size) => /bytes|kB|MB/.test(size.textContent)));
    const files = await page.$$eval(".share .files li", (items) => items.map((item) => [item.querySelector("a").textContent, item.querySelector("a").href, item.querySelector(".size").textContent]));
    assert.deepEqual(formats.filter((format) => !files.some(([name]) => name === format)), [], url);
    // The size before the click is that of what is downloaded.
    for (const [name, href, size] of files) {
      const { byteLength } = await fetch(href).then((reply) => reply.arrayBuffer());
      const [number, unit] = size.split(" ");
      assert.ok(Math.abs(Number(number.replace(/[^\d.]/g, "")) * { bytes: 1, kB: 1e3, MB: 1e6 }[unit] - byteLength) <= byteLength / 100, `${url} ${name}: ${size}, ${byteLength}`);
    }
    await close(page);
  }
});

check("a value is pinned by a click, maps and scales are changed, and a picture is saved", async () => {
  const page = await open(`${urls.hostile}warm/?map=viridis-inverted&curve=symlog`);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(300);
  assert.ok(await page.isChecked("label:has-text('inverted') input"));
  assert.equal(await page.locator("label:has-text('Scale') select").inputValue(), "symlog");
  const there = await pointed(page, 400, 200);
  await page.mouse.down();
  await page.mouse.up();
  await page.mouse.move(5, 5);
  assert.ok((await page.innerText(".pinned")).includes(there.value));
  const kelvins = (page) => pointed(page, 400, 200).then(({ pixel }) => pixel);
  // The other way round, the least is as bright as the greatest was.
  await page.selectOption("label:has-text('Limits') select", "all");
  await page.selectOption("label:has-text('Scale') select", "linear");
  await page.waitForTimeout(300);
  const value = parseFloat(there.value);
  const [least, greatest] = await page.$$eval(".histogram figcaption span", (spans) => [spans[0].textContent, spans[2].textContent].map(parseFloat));
  for (const isInverted of [true, false]) {
    await page.setChecked("label:has-text('inverted') input", isInverted);
    await page.waitForTimeout(300);
    const place = Math.floor(((value - least) / (greatest - least)) * 256) / 255;
    const wanted = interpolateViridis(isInverted ? 1 - place : place).slice(1).match(/../g).map((part) => parseInt(part, 16));
    const pixel = await kelvins(page);
    assert.ok(wanted.every((part, at) => Math.abs(part - pixel[at]) <= 4), `${pixel} ${wanted}`);
  }
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Save as PNG']")]);
  assert.equal(saved.suggestedFilename(), "TDB_VALUES.png");
  const bytes = readFileSync(await saved.path());
  const size = await page.locator(".picture canvas").evaluate((canvas) => [canvas.width, canvas.height]);
  assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], size);
  await accessible(page);
  await close(page);
  // Channels are left out one by one.
  const stains = await open(`${urls.hostile}stains/`);
  await stains.waitForSelector("[data-sampled=no]");
  await stains.click("[aria-label=Channels] li:first-child button");
  await stains.waitForTimeout(500);
  const { pixel, places: [[row], [column]] } = await pointed(stains, 400, 150);
  const { color, min, max } = expected.channels[1];
  const share = Math.min(1, Math.max(0, (valueAt(expected.stains, 1, row, column) - min) / (max - min)));
  assert.deepEqual(pixel, [...["red", "green", "blue"].map((name) => Math.round(share * color[name])), 255]);
  await close(stains);
});

check("bands of a photograph are its colours", async () => {
  const page = await open(`${urls.real}photo_china_rgb/`);
  const [[y, x], value] = await cell(page, "ArrowRight");
  assert.deepEqual(value.split(", ").map(Number), [0, 1, 2].map((band) => valueAt(expected.photo, y, x, band)));
  await page.selectOption("label:has-text('Bands') select", "no");
  await page.locator("input[aria-label=band], .slider input").last().fill("2");
  await page.waitForURL(/at=/);
  await close(page);
});

/** Points at a place of the picture; returns what is read there, and the pixel. */
async function pointed(page, x, y) {
  const canvas = page.locator(".picture canvas");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + x, box.y + y);
  await page.waitForSelector(".readout output");
  const text = await page.locator(".readout .quiet").innerText();
  const places = [...text.matchAll(/= (-?\d+)(?: \(([^)]*)\))?/g)].map((match) => [Number(match[1]), match[2]]);
  const pixel = await canvas.evaluate((element, [x, y]) => [...element.getContext("2d").getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data], [x, y]);
  return { places, pixel, value: await page.locator(".readout output").innerText() };
}

check("colours, names, missing cells, pixels and places of a raster are those that it notes", async () => {
  const page = await open(`${urls.hostile}classes/`);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(300);
  for (const [x, y] of [[300, 40], [400, 100], [500, 160], [620, 60]]) {
    const { places: [[row, latitude], [column, longitude]], pixel, value } = await pointed(page, x, y);
    const kind = valueAt(expected.classes, row, column);
    assert.equal(value, expected.class_names[kind]);
    assert.deepEqual(pixel, [...expected.palette[kind], 255], `${row} ${column}`);
    assert.equal(Number(latitude), 50 - (row + 0.5) * 0.25);
    assert.equal(Number(longitude), 10 + (column + 0.5) * 0.5);
  }
  const missing = await pointed(page, 100, 16);
  assert.match(missing.value, /no data/);
  assert.equal(missing.pixel[3], 0);
  // Pixels are half as high as wide.
  const at = async (x, y) => (await pointed(page, x, y)).places.map(([place]) => place);
  const [[top, left], [bottom], [, right]] = [await at(300, 20), await at(300, 170), await at(450, 20)];
  assert.ok(Math.abs((bottom - top) / (right - left) - 2) < 0.25, `${top} ${bottom} ${left} ${right}`);
  await page.selectOption("label:has-text('Colours') select", "grey");
  await page.waitForURL(/map=grey/);
  await accessible(page);
  await close(page);
});

check("a raster has eastings, northings, values with their unit, a legend, and no padding", async () => {
  let page = await open(`${urls.hostile}warm/`);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(400);
  assert.match(await page.innerText("[data-sampled]"), /^50 × 90 cells/);
  const meant = (row, column) => `${Number((valueAt(expected.warm, row, column) * 0.01 + 273.15).toPrecision(12))} K`;
  for (const [x, y] of [[200, 60], [400, 200], [700, 300]]) {
    const { places: [[row, northing], [column, easting]], value } = await pointed(page, x, y);
    assert.equal(value, meant(row, column));
    assert.equal(Number(northing), 5600000 - (row + 0.5) * 30);
    assert.equal(Number(easting), 500000 + (column + 0.5) * 30);
  }
  assert.match((await pointed(page, 85, 14)).value, /^-9999 \(no data\)$/);
  const texts = await page.locator(".picture canvas").evaluate((canvas) => canvas.texts.map((one) => one.text));
  assert.ok(texts.some((text) => text.includes("easting")) && texts.some((text) => text.includes("northing")), texts.join(" "));
  assert.match(await page.innerText("#panel"), /ETRS89 \/ UTM zone 32N \(EPSG:25832\)/);
  // The colour bar has the values of the raster: none of the padding, none of what is missing.
  const all = Array.from({ length: 50 * 90 }, (_, at) => valueAt(expected.warm, Math.floor(at / 90), at % 90)).filter((value) => value !== -9999).map((value) => value * 0.01 + 273.15);
  const ends = await page.$$eval(".histogram figcaption span", (spans) => [spans[0].textContent, spans[2].textContent]);
  ends.forEach((text, at) => assert.ok(text.endsWith(" K") && Math.abs(parseFloat(text) - (at ? Math.max(...all) : Math.min(...all))) < 0.01, ends.join(" ")));
  await accessible(page);
  // Axes are swapped and flipped, and values stay with their cells.
  const before = await pointed(page, 200, 60);
  await page.check("label:has-text('flip columns') input");
  await page.waitForURL(/flip=columns/);
  await page.waitForTimeout(300);
  const after = await pointed(page, 200, 60);
  assert.equal(after.places[0][0], before.places[0][0]);
  assert.ok(Math.abs(after.places[1][0] - (89 - before.places[1][0])) <= 1);
  assert.equal(after.value, meant(after.places[0][0], after.places[1][0]));
  await page.check("label:has-text('flip rows') input");
  await page.click("button:has-text('swap axes')");
  await page.waitForURL(/rows=/);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(400);
  const swapped = await pointed(page, 300, 200);
  const [column, row] = swapped.places.map(([place]) => place);
  assert.equal(swapped.value, meant(row, column));
  await close(page);
  page = await open(`${urls.hostile}classes/`);
  await page.waitForSelector("[aria-label=Classes] li");
  const legend = await page.$$eval("[aria-label=Classes] li", (items) => items.map((item) => [item.textContent, item.querySelector("i").style.background]));
  assert.deepEqual(legend, expected.class_names.map((name, at) => [name, `rgb(${expected.palette[at].join(", ")})`]));
  await close(page);
});

check("a group of CF whose variables are collected has names, coordinates and a map", async () => {
  const page = await open(`${urls.hostile}collected/?field=pr`);
  assert.equal(await page.locator("[role=tab][aria-selected=true]").innerText(), "Map");
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(400);
  const { places: [[row, latitude], [column, longitude]], value } = await pointed(page, 400, 150);
  assert.equal(Number(latitude), 72.5 - 5 * row);
  assert.equal(Number(longitude), 7.5 * column - 180);
  assert.match(value, / mm$/);
  sameFloat(value, valueAt(expected.pr, row, column));
  await checkRows(page, Array.from({ length: 30 }, (_, at) => 72.5 - 5 * at));
  await close(page);
});

check("points of GDAL have X to the right, at equal scales", async () => {
  const page = await open(`${urls.hostile}gdal_points/`);
  await page.waitForFunction(() => document.querySelector(".status")?.textContent.includes("4 cells"));
  await page.waitForTimeout(300);
  const texts = await page.locator(".picture canvas").evaluate((canvas) => canvas.texts);
  assert.ok(texts.some((one) => one.text === "_X") && texts.some((one) => one.text === "_Y"));
  const places = (fits) => texts.filter(fits).map((one) => ({ ...one, number: Number(one.text.replace("\u2212", "-")) })).filter((one) => Number.isFinite(one.number));
  const most = Math.max(...texts.map((one) => one.y));
  const across = places((one) => one.y > most - 30 && one.y < most - 5 && one.x > 75), up = places((one) => one.x < 75);
  const scale = (marks, side) => (marks.at(-1)[side] - marks[0][side]) / (marks.at(-1).number - marks[0].number);
  assert.ok(across.length > 1 && up.length > 1 && Math.abs(scale(across, "x") / -scale(up, "y") - 1) < 0.03, JSON.stringify([across, up]));
  await close(page);
});

check("channels of a pyramid have the colours and ranges that its metadata say", async () => {
  const page = await open(`${urls.hostile}stains/`);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(300);
  for (const [x, y] of [[200, 40], [400, 150], [500, 250], [600, 300]]) {
    const { places: [[row], [column]], pixel, value } = await pointed(page, x, y);
    const values = [0, 1].map((channel) => valueAt(expected.stains, channel, row, column));
    assert.deepEqual(value.split(", ").map(Number), values);
    const part = (name) => values.reduce((sum, one, at) => {
      const { color, min, max } = expected.channels[at];
      return sum + Math.min(1, Math.max(0, (one - min) / (max - min))) * color[name];
    }, 0);
    assert.deepEqual(pixel, [...["red", "green", "blue"].map((name) => Math.min(255, Math.round(part(name)))), 255]);
  }
  assert.deepEqual(await page.$$eval(".legend li", (items) => items.map((item) => item.textContent)), expected.channels.map((one) => one.name));
  await accessible(page);
  await close(page);
});

check("a group of CF opens with a map of its field", async () => {
  const page = await open(`${urls.hostile}cf/`);
  assert.equal(await page.locator("[role=tab][aria-selected=true]").innerText(), "Map");
  await page.waitForSelector("[data-sampled=no]");
  await page.click("[aria-label='time: on']");
  await page.waitForFunction(() => document.querySelector(".slider:not(.time) output")?.textContent.includes("(2020-02-01)"));
  await page.waitForTimeout(500);
  const { places: [[row, latitude], [column]], value } = await pointed(page, 400, 150);
  assert.match(value, / K$/);
  sameFloat(value, valueAt(expected.tas, 1, row, column));
  assert.equal(Number(latitude), 72.5 - 5 * row);
  await page.click("[role=tab]:has-text('Members')");
  assert.equal(await page.locator(".members li").count(), 4);
  await accessible(page);
  await close(page);
});

check("a field of a group of CF has a slider of dates, and coordinates at its axes", async () => {
  const page = await open(`${urls.hostile}cf/tas/`);
  await page.waitForSelector("[data-sampled=no]");
  for (const date of ["2020-02-01", "2020-03-01", "2020-03-31 12:00:00"]) {
    await page.click("[aria-label='time: on']");
    await page.waitForFunction((date) => document.querySelector(".slider:not(.time) output")?.textContent.includes(`(${date})`), date);
  }
  await page.waitForURL(/at=time:3/);
  await page.waitForTimeout(500);
  const { places: [[row, latitude], [column, longitude]], value } = await pointed(page, 400, 150);
  sameFloat(value, valueAt(expected.tas, 3, row, column));
  assert.equal(Number(latitude), 72.5 - 5 * row);
  assert.equal(Number(longitude), 7.5 * column - 180);
  assert.equal((await pointed(page, 85, 14)).value, "-999 (no data)");
  // The least value is none of the missing ones.
  assert.ok(parseFloat(await page.locator(".histogram figcaption span").first().innerText()) >= 0);
  await close(page);
});

/** Returns the marks of both axes of a picture, without the names of the axes: those on the left, and those below. */
async function marks(page) {
  const texts = await page.locator(".picture canvas").evaluate((canvas) => canvas.texts);
  const rows = texts.filter((one) => one.x < 90 && one.x > 20), most = Math.max(...texts.map((one) => one.y));
  return [rows, texts.filter((one) => !rows.includes(one) && one.x >= 90 && one.y > most - 30 && one.y < most - 5)];
}

/** Checks that marks on the left stand beside the rows whose coordinates they are. */
async function checkRows(page, coordinates) {
  const [rows] = await marks(page);
  assert.ok(rows.length >= 3, JSON.stringify(rows));
  for (const { text, y } of rows) {
    const { places: [[row, shown]] } = await pointed(page, 300, y);
    assert.ok(Math.abs(Number(shown) - coordinates[row]) < 1e-9, `${shown} at row ${row}`);
    const steps = [row - 1, row + 1].map((other) => Math.abs(coordinates[other] - coordinates[row])).filter(Number.isFinite);
    assert.ok(Math.abs(Number(text.replace("\u2212", "-")) - coordinates[row]) <= Math.max(...steps), `${text} beside ${coordinates[row]}`);
  }
  // The north is up.
  const numbers = rows.sort((a, b) => a.y - b.y).map((one) => Number(one.text.replace("\u2212", "-")));
  assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a));
}

check("the north is up, whichever way rows go, and values stay with their cells", async () => {
  for (const [name, north] of [["cf", 72.5], ["south", -72.5]]) {
    const page = await open(`${urls.hostile}${name}/tas/?at=time:2`);
    await page.waitForSelector("[data-sampled=no]");
    await page.waitForTimeout(300);
    const latitudes = Array.from({ length: 30 }, (_, row) => north - Math.sign(north) * 5 * row);
    const colours = [];
    for (const [x, y] of [[200, 20], [300, 100], [400, 200], [500, 300]]) {
      const { places: [[row, latitude], [column, longitude]], value, pixel } = await pointed(page, x, y);
      sameFloat(value, valueAt(expected.tas, 2, row, column));
      assert.equal(Number(latitude), latitudes[row]);
      assert.equal(Number(longitude), 7.5 * column - 180);
      colours.push([parseFloat(value), pixel]);
    }
    // Greater numbers are brighter: the pixel is that of the cell.
    colours.sort((a, b) => a[0] - b[0]);
    assert.ok(colours.every(([, pixel], at) => at === 0 || pixel[1] >= colours[at - 1][1][1]), JSON.stringify(colours));
    await checkRows(page, latitudes);
    // Keys go where they point.
    const before = (await pointed(page, 300, 200)).places[0][1];
    await page.focus(".picture canvas");
    await page.keyboard.press("ArrowUp");
    const after = /\(([^)]*)\)/.exec(await page.locator(".readout .quiet").innerText())[1];
    assert.equal(Number(after), Number(before) + 5);
    // A window keeps its cells when the address is opened again.
    for (let at = 0; at < 3; at++) await page.click("[aria-label='Zoom in']");
    await page.mouse.move(500, 300);
    await page.waitForURL(/window=/);
    await page.waitForTimeout(400);
    const zoomed = await pointed(page, 400, 200);
    await page.reload();
    await page.waitForSelector("[data-sampled=no]");
    await page.waitForTimeout(400);
    const again = await pointed(page, 400, 200);
    assert.ok(zoomed.places.every(([place], axis) => Math.abs(place - again.places[axis][0]) <= 1), JSON.stringify([zoomed.places, again.places]));
    sameFloat(again.value, valueAt(expected.tas, 2, again.places[0][0], again.places[1][0]));
    await close(page);
  }
});

check("labels of dimensions stand at the axes", async () => {
  let page = await open(`${urls.hostile}labels/`);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(300);
  const { places: [[row, latitude], [column, day]], value } = await pointed(page, 400, 150);
  assert.equal(Number(value), row * 60 + column);
  assert.equal(Number(latitude), expected.latitudes[row]);
  assert.equal(day, expected.days[column]);
  await checkRows(page, expected.latitudes);
  const [, columns] = await marks(page);
  assert.ok(columns.some(({ text }) => /2020|Jan|February/.test(text)), JSON.stringify(columns));
  await page.selectOption("label:has-text('Show as') select", "line");
  await page.waitForSelector("[data-sampled=no]");
  await page.focus(".picture canvas");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".readout").innerText(), /x = 31 \(2020-01-30\)\s+31/);
  await close(page);
  page = await open(`${urls.hostile}genes/`);
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(300);
  const texts = await page.locator(".picture canvas").evaluate((canvas) => canvas.texts.map((one) => one.text));
  for (const gene of expected.genes) assert.ok(texts.includes(gene), `${gene} in ${texts}`);
  await page.focus(".picture canvas");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".readout").innerText(), /g = 3 \(TP53\)\s+30/);
  await close(page);
});

check("a table has the rows of the array, from any place in it", async () => {
  const page = await open(`${urls.real}stocks/`);
  await page.waitForSelector("tr.row");
  const same = (row) => {
    const number = Number(row[0]);
    const [date, ...prices] = expected.stocks[number];
    assert.equal(row[1], date);
    prices.forEach((price, at) => (price === null ? assert.equal(row[2 + at], "NaN") : assert.equal(Number(row[2 + at]), price)));
    return number;
  };
  assert.deepEqual((await rowsShown(page)).slice(0, 9).map(same), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  await page.fill("label:has-text('Go to row') input", "500");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll("tr.row th")].some((head) => head.textContent === "510"));
  await page.waitForFunction(() => ![...document.querySelectorAll("tr.row td")].some((cell) => cell.textContent === "…"));
  assert.ok((await rowsShown(page)).map(same).includes(510));
  // A range of the dimension is a selection of the tree.
  await page.fill("[aria-label='Range of Date']", "2000..2001-06");
  await page.keyboard.press("Enter");
  await page.waitForURL(/slice\/Date=2000\.\.2001-06/);
  const selected = expected.stocks.filter(([date]) => date >= "2000" && date < "2001-07").length;
  await page.waitForFunction((count) => document.querySelector(".status:has(+ *), .status")?.textContent.includes(`${count} rows`), selected);
  await close(page);
});

check("labels, nulls and texts of a data frame are sorted and searched, all of them", async () => {
  const page = await open(`${urls.real}pbmc_soma/obs/`);
  const shown = await rowsShown(page);
  shown.slice(0, 10).forEach((row) => assert.deepEqual(row.slice(1, 5), expected.obs[Number(row[0])].map(String)));
  await page.fill("input[type=search]", "dendritic");
  await page.keyboard.press("Enter");
  const found = expected.obs.filter((row) => row[2] === "Dendritic");
  await page.waitForFunction((count) => document.querySelector(".status").textContent.startsWith(`${count} of `), found.length);
  assert.match(await page.locator(".status").first().innerText(), new RegExp(`^${found.length} of ${expected.obs.length} rows with “dendritic”`));
  await page.click("th:has-text('n_genes') button.name");
  await page.waitForFunction(() => document.querySelector(".status").textContent.includes("by n_genes"));
  await settled(page);
  const sorted = (await rowsShown(page)).map((row) => Number(row[4]));
  assert.deepEqual(sorted, found.map((row) => row[3]).sort((a, b) => a - b).slice(0, sorted.length));
  await page.waitForURL(/find=dendritic&sort=n_genes/);
  await accessible(page);
  await close(page);
});

check("the address of a window stays as it is, and each step back leaves one step", async () => {
  const page = await open(`${urls.real}dem_jacksboro/?window=19,75,36,152`);
  await page.waitForSelector("[data-sampled=no]");
  const window = () => new URL(page.url()).searchParams.get("window");
  for (const act of [() => page.reload(), () => page.setViewportSize({ width: 700, height: 900 }), () => page.reload(), () => page.setViewportSize({ width: 1024, height: 800 })]) {
    await act();
    await page.waitForSelector("[data-sampled=no]");
    await page.waitForTimeout(600);
    assert.equal(window(), "19,75,36,152");
  }
  // Each step is one entry of the history.
  await page.click("[aria-label='Zoom in']");
  await page.waitForFunction(() => !location.search.includes("window=19,75,36,152"));
  const zoomed = window();
  await page.waitForTimeout(1200);
  await page.selectOption("label:has-text('Colours') select", "magma");
  await page.waitForURL(/map=magma/);
  await page.waitForTimeout(1200);
  await page.selectOption("label:has-text('Show as') select", "grid");
  await page.waitForURL(/as=grid/);
  await page.goBack();
  await page.waitForSelector("[data-sampled=no]");
  assert.equal(await page.locator("label:has-text('Colours') select").inputValue(), "magma");
  await page.goBack();
  await page.waitForFunction(() => document.querySelector(".controls select") && !location.search.includes("magma"));
  await page.waitForSelector("[data-sampled=no]");
  assert.equal(await page.locator("label:has-text('Colours') select").inputValue(), "viridis");
  assert.equal(window(), zoomed);
  // What is zoomed is the same when it is opened again.
  await page.reload();
  await page.waitForSelector("[data-sampled=no]");
  await page.waitForTimeout(600);
  assert.equal(window(), zoomed);
  await page.goBack();
  await page.waitForFunction(() => location.search.includes("window=19,75,36,152"));
  await close(page);
});

check("a wrong setting of the address is named, and the others count", async () => {
  let page = await open(`${urls.real}dem_jacksboro/?map=rainbow&limits=300,500&window=9,2,0,4&zoom=3&as=cube&rows=z`);
  await page.waitForSelector("[data-sampled]");
  const notes = await page.innerText(".notes");
  for (const wrong of ["map=rainbow: write one of viridis", "window=9,2,0,4: write four positions", "zoom=3: no view has such a setting", "as=cube: write one of picture, line, grid", "rows=z: write one of"]) {
    assert.ok(notes.includes(wrong), `${wrong} in ${notes}`);
  }
  assert.ok(!notes.includes("limits"));
  assert.deepEqual(await page.$$eval(".controls input[inputmode=decimal]", (inputs) => inputs.map((input) => input.value)), ["300", "500"]);
  await accessible(page);
  await close(page);
  page = await open(`${urls.hostile}cf/tas/?at=time:2,lat:99,x:1`);
  await page.waitForSelector("[data-sampled=no]");
  assert.match(await page.innerText(".notes"), /at=lat:99: write a position from 0 to 29[\s\S]*at=x:1: write NAME:POSITION/);
  assert.match(await page.locator(".slider:not(.time) output").innerText(), /^2 /);
  await close(page);
  page = await open(`${urls.hostile}people/?sort=nothing&row=x`);
  await settled(page);
  assert.match(await page.innerText(".notes"), /sort=nothing: write the name of a column[\s\S]*row=x: write the number of a row/);
  await close(page);
});

check("hidden labels are in the address, and what is drawn is said", async () => {
  let page = await open(`${urls.real}pbmc_soma/`);
  await page.waitForSelector(".legend li");
  const labels = expected.obs.map((row) => row[2]);
  const hidden = [...new Set(labels)].sort()[0];
  await page.click(`.legend button:has-text("${hidden}")`);
  await page.waitForURL(/hide=/);
  const left = labels.filter((label) => label !== hidden).length;
  await page.reload();
  await page.waitForFunction((left) => document.querySelector("[data-sampled]")?.textContent.includes(`${left} of them shown`), left);
  assert.equal(await page.locator(`.legend button:has-text("${hidden}")`).getAttribute("aria-pressed"), "false");
  await close(page);
  page = await open(`${urls.real}pbmc_soma/?hide=nobody`);
  await page.waitForSelector(".notes");
  assert.match(await page.innerText(".notes"), /hide=nobody: .* has no such label/);
  await close(page);
});

check("files have sizes, and commands are quoted for a shell", async () => {
  let page = await open(`${urls.real}stocks/?tab=Files`);
  await page.waitForFunction(() => document.querySelectorAll("table.plain tbody tr").length > 5 && [...document.querySelectorAll("table.plain tbody tr")].every((row) => row.lastChild.textContent !== ""));
  const files = await page.$$eval("table.plain tbody tr", (rows) => rows.slice(0, 12).map((row) => [row.querySelector("a").href, row.lastChild.textContent]));
  for (const [url, size] of files.filter(([, size]) => /bytes|kB|MB/.test(size))) {
    const { byteLength } = await fetch(url).then((reply) => reply.arrayBuffer());
    const [number, unit] = size.split(" ");
    assert.ok(Math.abs(Number(number.replace(/[^\d.]/g, "")) * { bytes: 1, kB: 1e3, MB: 1e6 }[unit] - byteLength) <= byteLength / 100, `${url}: ${size}, ${byteLength}`);
  }
  await close(page);
  // A shell reads back the names that are stored, whatever is in them.
  page = await open(`${urls.hostile}names/`);
  await page.waitForSelector("[data-sampled]");
  await page.waitForSelector(".command");
  for (const name of expected.names) {
    await page.selectOption("label:has-text('Attribute') select", { label: safe(name) });
    await page.waitForFunction((name) => document.querySelector("label select").selectedOptions[0].textContent === name, safe(name));
    await page.waitForTimeout(100);
    const command = await page.innerText(".command");
    assert.ok(!command.includes("\u202e"));
    const path = execFileSync("bash", ["-c", `printf %s ${command}`], { encoding: "utf8" });
    const known = await fetch(urls.hostile + path.split("/").slice(1).map(encodeURIComponent).join("/"), { method: "HEAD" });
    assert.equal(known.status, 200, command);
  }
  await close(page);
});

/** Returns the numbers of rows for which a condition holds, of the table of all kinds. */
const chosen = (condition) => expected.people.flatMap((row, number) => (condition(row) ? [number] : []));

check("conditions on any column select rows in the server, and values are those of TileDB", async () => {
  const base = `${urls.hostile}people/`;
  const ids = async (selection) => {
    const reply = await fetch(`${base}slice/${selection.split("/").map(encodeURIComponent).join("/")}/dims/id.i64`);
    if (!reply.ok) return (await reply.text()).trim();
    return [...new BigInt64Array(await reply.arrayBuffer())].map(Number);
  };
  const escape = (text) => (text === "" ? "%" : text.replace(/[%,+=/.]/g, (one) => `%${one.charCodeAt(0).toString(16)}`));
  const within = (value, low, high) => value !== null && (low === null || value >= low) && (high === null || value <= high);
  const cases = [
    ["n=-3..4", (row) => within(row.n, -3, 4)], ["n=..-8+5+9..", (row) => row.n <= -8 || row.n === 5 || row.n >= 9], ["n=0:3", (row) => within(row.n, 0, 2)],
    ["x=0.5..1.25", (row) => within(row.x, 0.5, 1.25)], ["x=%null", (row) => row.x === null], ["x=..", (row) => row.x !== null], ["x=%null+2..", (row) => row.x === null || row.x >= 2],
    ["ok=true,n=1..", (row) => row.ok && row.n >= 1], ["ok=false", (row) => !row.ok], ["day=2020-03", (row) => row.day.startsWith("2020-03")], ["day=2020-12-30..2021", (row) => row.day >= "2020-12-30"],
    ["text=%null", (row) => row.text === null], ["text=plain+null", (row) => row.text === "plain" || row.text === "null"], ["text=p..t", (row) => row.text !== null && row.text >= "p" && row.text <= "t"],
    ["id=1500..,n=7", (row) => row.id >= 1500 && row.n === 7], ["100..1200,ok=true,x=..0", (row) => row.id >= 100 && row.id <= 1200 && row.ok && row.x !== null && row.x <= 0],
    ["n=100", () => false],
    ...[...new Set(expected.people.map((row) => row.shape))].map((shape) => [`shape=${escape(shape)}`, (row) => row.shape === shape]),
  ];
  for (const [selection, condition] of cases) {
    assert.deepEqual(await ids(selection), chosen(condition).map((number) => expected.people[number].id), selection);
  }
  // Other formats, and the rows in order, have the same rows.
  const csv = (await fetch(`${base}slice/${encodeURIComponent("shape=circle,ok=true")}/text/cells.csv`).then((reply) => reply.text())).trimEnd().split("\n");
  assert.equal(csv.filter((line) => line.includes("circle")).length, chosen((row) => row.shape === "circle" && row.ok).length);
  for (const [selection, reason] of [
    ["n=abc", /n: not an integer.*5\.\.9/], ["n=4-9", /write 4\.\.9|not an integer/], ["n=%null", /none of its values is null/], ["shape=oval", /no such label.*circle/], ["x=one", /not a number.*0\.5\.\.9/],
    ["n=1,n=2", /joined by/], ["n=last", /leave the end out/], ["nobody=1", /no such dimension/], ["day=2020-13", /day/], ["n=1..9..2", /without steps/], ["picture=1..2,n=zz", /not an integer/],
  ]) assert.match(String(await ids(selection)), reason, selection);
});

check("a box for each column selects, a wrong text stays in it, and the address and downloads have the selection", async () => {
  const page = await open(`${urls.hostile}people/`);
  await settled(page);
  const set = async (label, text) => {
    await page.fill(`[aria-label='${label}']`, text);
    await page.keyboard.press("Enter");
  };
  await set("Values of n", "4-9");
  await page.waitForSelector(".trouble");
  assert.match(await page.innerText(".trouble"), /^n: .*5\.\.9/);
  assert.equal(await page.inputValue("[aria-label='Values of n']"), "4-9");
  await set("Values of n", "4..9");
  await page.waitForURL(/slice\/n=4\.\.9\//);
  await settled(page);
  await set("Values of shape", "square, <b>");
  await page.waitForURL(/slice\/n=4\.\.9,shape=/);
  await settled(page);
  const wanted = chosen((row) => row.n >= 4 && row.n <= 9 && row.shape === "square, <b>").map((number) => expected.people[number]);
  await page.waitForFunction((count) => document.querySelector(".status").textContent.includes(`${count} rows selected`), wanted.length);
  const head = await page.$$eval(".rows thead th .name", (names) => names.map((name) => name.textContent));
  for (const row of (await rowsShown(page)).slice(0, 8)) {
    const own = wanted[Number(row[0])];
    const cell = (name) => row[1 + head.indexOf(name)];
    assert.equal(Number(cell("id")), own.id);
    assert.equal(Number(cell("n")), own.n);
    assert.equal(cell("shape"), own.shape);
    assert.equal(cell("x"), own.x === null ? "null" : String(own.x));
    assert.equal(cell("day"), own.day);
    assert.equal(cell("ok"), String(own.ok));
    assert.equal(cell("text"), own.text === null ? "null" : safe(own.text.replace("\n", " ↵ ")).slice(0, 200) + (own.text.length > 200 ? "…" : ""));
    assert.equal(cell("picture"), own.id % 50 === 0 ? `(PNG picture, ${own.picture.length / 2} bytes)` : own.picture);
  }
  await accessible(page);
  // What is copied and downloaded is the selection.
  await page.selectOption("[aria-label=Program]", { label: "Condition in Python" });
  assert.match(await page.innerText(".command"), /query\(cond="\(n >= 4 and n <= 9\) and shape == \\"square, <b>\\""\)/);
  await page.click(".downloads summary");
  const link = await page.locator(".share .files li:has-text('CSV') a").first().getAttribute("href");
  const lines = (await fetch(new URL(link, page.url())).then((reply) => reply.text())).trimEnd().split(/\r?\n/);
  assert.equal(lines.filter((line) => line.includes("square, <b>")).length, wanted.length);
  assert.ok(await page.locator(".share .files li:has-text('Parquet')").count());
  // Back leaves the last condition.
  await page.goBack();
  await page.waitForURL(/slice\/n=4\.\.9\/$/);
  await page.click("button:has-text('All rows')");
  await page.waitForURL(/people\/$/);
  await close(page);
});

check("values of all rows are counted, and a click selects them", async () => {
  const page = await open(`${urls.hostile}people/`);
  await settled(page);
  const counts = (key) => {
    const all = new Map();
    for (const row of expected.people) all.set(row[key], (all.get(row[key]) ?? 0) + 1);
    return all;
  };
  for (const key of ["shape", "n", "ok", "text"]) {
    await page.click(`[aria-label='Values of all rows: ${key}']`);
    await page.waitForSelector(".facets li");
    const shown = await page.$$eval(".facets button", (buttons) => buttons.map((button) => [button.querySelector("span").textContent, Number(/^[\d,]+/.exec(button.querySelector(".quiet").textContent)[0].replace(/,/g, ""))]));
    const wanted = [...counts(key)].map(([value, count]) => [value === null ? "null" : value === "" ? "(empty)" : safe(String(value).replaceAll("\n", "\\n")).slice(0, 120), count]);
    assert.deepEqual(shown.sort(), wanted.sort(), key);
    await page.click(".values button:has-text('Close')");
  }
  await page.click("[aria-label='Values of all rows: x']");
  await page.waitForSelector(".bins");
  assert.match(await page.innerText(".values"), new RegExp(`${counts("x").get(null)} of them without a value`));
  const ends = await page.$$eval(".values figcaption span", (spans) => [spans[0].textContent, spans[2].textContent].map(Number));
  const numbers = expected.people.map((row) => row.x).filter((x) => x !== null);
  assert.deepEqual(ends, [Math.min(...numbers), Math.max(...numbers)]);
  await accessible(page);
  await page.click(".values button:has-text('Close')");
  await page.click("[aria-label='Values of all rows: shape']");
  await page.click(".facets button:has-text('50%')");
  await page.waitForURL(/slice\/shape=50%2525\//);
  await page.waitForFunction((count) => document.querySelector(".status")?.textContent.includes(`${count} rows selected`), chosen((row) => row.shape === "50%").length);
  await close(page);
});

check("a row has an address, also while rows are sorted, and shows what is in it", async () => {
  const page = await open(`${urls.hostile}people/`);
  await settled(page);
  await page.click("th:has-text('text') button.name");
  await page.waitForURL(/sort=text/);
  await page.waitForFunction(() => document.querySelector(".status").textContent.includes("by text"));
  await page.fill("label:has-text('Go to row') input", "five");
  await page.keyboard.press("Enter");
  assert.match(await page.innerText(".trouble"), /Write a number from 0 to/);
  const number = expected.people.findIndex((row, number) => number > 900 && row.text === "two\nlines" && row.id % 50 === 0);
  await page.fill("label:has-text('Go to row') input", String(number));
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`row=${number}`));
  await page.waitForSelector("tr.marked");
  await page.reload();
  await page.waitForSelector("tr.marked");
  await settled(page);
  assert.equal(await page.innerText("tr.marked th"), number.toLocaleString("en-US"));
  // The rows around it are sorted, and equal texts are in the order of their numbers.
  const rows = await rowsShown(page);
  const numbers = rows.map((row) => Number(row[0].replace(/,/g, "")));
  const wanted = expected.people.map((row, at) => [row.text, at]).filter(([text]) => text !== null).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1])).map(([, at]) => at);
  const from = wanted.indexOf(numbers[0]);
  assert.deepEqual(numbers, wanted.slice(from, from + numbers.length));
  await page.waitForSelector("canvas.cell");
  const full = await page.innerText("section[aria-label^='Row ']");
  assert.ok(full.includes("two\nlines"), full);
  assert.match(full, /PNG, \d+ bytes/);
  assert.deepEqual(await page.$eval("canvas.cell", (canvas) => [canvas.width, canvas.height]), [2, 2]);
  await accessible(page);
  await close(page);
});

check("long tables are counted, sorted and selected as a whole", async () => {
  const { rows, groups, greatest, least, above, in_group } = expected.long;
  const page = await open(`${urls.hostile}long/?as=table`);
  await settled(page);
  assert.match(await page.innerText(".status"), new RegExp(`^${rows.toLocaleString("en-US")} rows`));
  await page.click("[aria-label='Values of all rows: group']");
  await page.waitForSelector(".facets li");
  const shown = await page.$$eval(".facets button", (buttons) => buttons.map((button) => [Number(button.querySelector("span").textContent), Number(/^[\d,]+/.exec(button.querySelector(".quiet").textContent)[0].replace(/,/g, ""))]));
  assert.deepEqual(shown.sort((a, b) => a[0] - b[0]), groups.map((count, group) => [group, count]));
  await page.click(".values button:has-text('Close')");
  for (const first of [least, greatest]) {
    await page.click("th:has-text('x') button.name");
    await page.waitForFunction((first) => !document.querySelector(".running") && document.querySelector("tr.row th")?.textContent === first, first.toLocaleString("en-US"));
  }
  await page.fill("[aria-label='Values of x']", "3.5..");
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => document.querySelector(".status")?.textContent.includes(text), `${above.toLocaleString("en-US")} of ${above.toLocaleString("en-US")} rows`);
  await page.goto(`${urls.hostile}long/slice/group=3,x=2../?as=table`);
  await page.waitForFunction((text) => document.querySelector(".status")?.textContent.includes(text), `${in_group.toLocaleString("en-US")} rows selected`);
  // Counting and sorting can be ended.
  await close(page);
});

check("an experiment opens with its embedding", async () => {
  const page = await open(`${urls.real}pbmc_soma/`);
  await page.waitForSelector(".legend li");
  const counts = await page.$$eval(".legend li", (items) => items.map((item) => item.textContent));
  const labels = expected.obs.map((row) => row[2]);
  for (const label of new Set(labels)) assert.ok(counts.includes(`${label} ${labels.filter((one) => one === label).length}`), label);
  await page.focus(".picture canvas");
  await page.keyboard.press("n");
  assert.equal(await page.locator(".readout output").innerText(), labels[0]);
  await page.fill("label:has-text('gene') input", "CD3D");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".scale") || document.querySelector(".trouble"));
  await page.click(".downloads summary");
  await page.waitForFunction(() => [...document.querySelectorAll(".files .size")].some((size) => /kB|MB/.test(size.textContent)));
  await accessible(page);
  await close(page);
});

check("a pyramid is one picture, with the values of its finest level", async () => {
  const page = await open(`${urls.real}bioimg/`);
  const [coordinates, value] = await cell(page, "ArrowRight");
  assert.equal(coordinates.length, 2);
  assert.equal(value.split(", ").length, 3);
  await close(page);
});

check("cubes have sliders, numbers beyond 2^53 are exact, and other shapes have views of their own", async () => {
  let page = await open(`${urls.hostile}cube/`);
  await page.click("[aria-label='d0: on']");
  await page.waitForURL(/at=d0:1/);
  await page.waitForTimeout(300);
  const [[d1, d2], value] = await cell(page, "ArrowLeft");
  assert.equal(BigInt(value), 2n ** 53n + BigInt(35 + d1 * 7 + d2));
  await page.selectOption("label:has-text('Show as') select", "grid");
  await page.waitForSelector("table.grid td");
  assert.equal(await page.locator("table.grid td").first().innerText(), String(2n ** 53n + 35n));
  await close(page);
  page = await open(`${urls.hostile}single/`);
  await page.waitForFunction(() => document.querySelector(".single output")?.textContent === "0.1");
  await close(page);
  page = await open(`${urls.hostile}complex/`);
  const [[row, column], number] = await cell(page, "ArrowLeft");
  assert.deepEqual(number.split(", ").map(Number), [row * 4 + column, -2 * (row * 4 + column) + 0]);
  await close(page);
  page = await open(`${urls.hostile}times/?as=grid`);
  await page.waitForSelector("table.grid td");
  assert.deepEqual(await page.$$eval("table.grid tbody th", (heads) => heads.map((head) => head.textContent)),
    Array.from({ length: 10 }, (_, at) => `2020-01-01 00:00:00.1234567${String(at + 1).padStart(2, "0").replace(/0$/, "")}`));
  await close(page);
  page = await open(`${urls.hostile}texts/`);
  await page.waitForSelector("table.grid td");
  assert.equal(await page.locator("table.grid td").first().innerText(), `${expected.names[0]}00`);
  await close(page);
});

check("cells of a sparse array are points", async () => {
  const page = await open(`${urls.hostile}points/`);
  await page.waitForFunction(() => document.querySelector(".status")?.textContent.includes("500 cells"));
  await page.focus(".picture canvas");
  await page.keyboard.press("n");
  assert.match(await page.locator(".readout").innerText(), /x = 998, y = 0.*0/);
  await close(page);
});

check("a dataset of variants shows the records of a region", async () => {
  const page = await open(`${urls.variants}?region=chr1:1-100000`);
  await page.waitForSelector("td.genotype");
  const merged = await fetch(`${urls.variants}vcf/merged/chr1:1-100000.vcf`).then((reply) => reply.text());
  const records = merged.split("\n").filter((line) => line && !line.startsWith("#")).map((line) => line.split("\t"));
  const shown = await page.$$eval(".grid tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.equal(shown.length, records.length);
  shown.forEach((row, at) => {
    assert.deepEqual(row.slice(0, 5), records[at].slice(0, 5).map((text) => text.slice(0, 60)));
    const genotype = records[at][8].split(":").indexOf("GT");
    const genotypes = records[at].slice(9).map((text) => (genotype < 0 ? "" : text.split(":")[genotype]));
    assert.deepEqual(row.slice(9), genotypes);
    // Frequencies are those of the alleles in the genotypes.
    const called = genotypes.flatMap((one) => one.split(/[/|]/)).filter((one) => /^\d+$/.test(one));
    const wanted = records[at][4] === "." || called.length === 0 ? "" : records[at][4].split(",").map((_, allele) => called.filter((one) => Number(one) === allele + 1).length / called.length);
    assert.deepEqual(row[8] === "" ? "" : row[8].split(", ").map(Number), wanted === "" ? "" : wanted.map((one) => Number(one.toFixed(3))));
  });
  // Genotypes have a colour by how many of their alleles are not the reference.
  const colours = await page.$$eval("td.genotype", (cells) => cells.map((cell) => [cell.textContent, getComputedStyle(cell).backgroundColor]));
  const kindOf = (genotype) => {
    const alleles = genotype.split(/[/|]/).filter((allele) => allele && allele !== ".");
    const carried = alleles.filter((allele) => allele !== "0").length;
    return carried === 0 ? "none" : carried === genotype.split(/[/|]/).length ? "all" : "some";
  };
  const byKind = new Map();
  for (const [genotype, colour] of colours) byKind.set(kindOf(genotype), (byKind.get(kindOf(genotype)) ?? new Set()).add(colour));
  assert.ok(byKind.size > 1 && [...byKind.values()].every((some) => some.size === 1), JSON.stringify(colours));
  assert.equal(new Set([...byKind.values()].map((some) => [...some][0])).size, byKind.size);
  // Separators between thousands, and other fields of samples.
  await page.selectOption("label:has-text('Field of samples') select", { index: 1 });
  const key = await page.locator("label:has-text('Field of samples') select").inputValue();
  const others = await page.$$eval(".grid tbody tr", (rows) => rows.map((row) => [...row.children].slice(9).map((cell) => cell.textContent)));
  others.forEach((row, at) => assert.deepEqual(row, records[at].slice(9).map((text) => text.split(":")[records[at][8].split(":").indexOf(key)] ?? "")));
  await page.fill(".ranges input", "chr1:1-100,000");
  await page.keyboard.press("Enter");
  await page.waitForSelector("td.genotype");
  assert.equal(new URL(page.url()).searchParams.get("region"), "chr1:1-100000");
  assert.match(await page.innerText(".command"), /^bcftools view http\S+vcf\/merged\/chr1:1-100000\.bcf$/);
  await page.waitForFunction(() => [...document.querySelectorAll(".files .size")].every((size) => /bytes|kB/.test(size.textContent)));
  await accessible(page);
  await close(page);
  // Before a region was asked for, the first contig is shown.
  const first = await open(urls.variants);
  await first.waitForSelector("td.genotype");
  assert.match(await first.inputValue(".ranges input"), /^chr10:1-/);
  await close(first);
});

/** A name as the page shows it: what would turn the direction of text is an escape. */
const safe = (name) => name.replaceAll("\u202e", "\\u{202e}");

check("names and texts that are markup do nothing", async () => {
  const page = await open(urls.hostile);
  await page.waitForSelector(".members li");
  assert.ok((await page.innerText(".members")).includes("<script>"));
  await page.click(".members a:has-text('names')");
  await page.waitForSelector("[data-sampled]");
  assert.deepEqual(await page.$$eval("label:first-child select option", (options) => options.map((option) => option.textContent).slice(0, 6)), expected.names.map(safe));
  for (const name of expected.names.map(safe)) await page.selectOption("label:has-text('Attribute') select", { label: name });
  for (const tab of ["Schema", "Metadata", "Files"]) await page.click(`[role=tab]:has-text('${tab}')`);
  await page.waitForSelector("table.plain");
  await accessible(page);
  await close(page);
});

check("enormous, empty and endless arrays leave the page alive", async () => {
  for (const name of ["enormous", "empty", "nan"]) {
    const page = await open(`${urls.hostile}${name}/`);
    await page.waitForFunction(() => document.querySelector("[data-sampled], .trouble, .quiet"));
    await page.click("[role=tab]:has-text('Schema')");
    await page.waitForSelector("table.plain");
    await close(page);
  }
  const page = await open(`${urls.hostile}many/`);
  await page.waitForSelector("[data-sampled], .trouble");
  assert.match(await page.innerText(".summary"), /100,000 attributes/);
  // One of them is chosen by its name, and no list has them all.
  await page.fill("label:has-text('Attribute') input", "a054321");
  await page.keyboard.press("Enter");
  await page.waitForURL(/field=a054321/);
  await page.waitForSelector("[data-sampled], .trouble");
  await page.click(".downloads summary");
  await page.waitForFunction(() => [...document.querySelectorAll(".files a")].some((link) => link.getAttribute("href").endsWith("/npy/a054321.npy")));
  for (const tab of ["Schema", "Files"]) {
    await page.click(`[role=tab]:has-text('${tab}')`);
    await page.waitForSelector("table.plain");
    assert.ok((await page.evaluate(() => document.querySelectorAll("#page *").length)) < 3000, tab);
  }
  assert.match(await page.innerText("#panel"), /792,000 files of further attributes are not in this list/);
  await close(page);
});

check("a token in the address opens everything, and is in no address after that", async () => {
  const page = await open(`${urls.token}?token=${token}`);
  const [[y, x], value] = await cell(page, "ArrowRight");
  sameFloat(value, valueAt(expected.demo, y, x));
  await page.click("[role=tab]:has-text('Files')");
  await page.waitForURL(/tab=Files/);
  await page.reload();
  await page.waitForSelector("table.plain");
  assert.ok(!page.url().includes(token) && !(await page.content()).includes(token));
  await close(page);
  assert.equal((await fetch(`${urls.token}.tilefs/page/page.js`)).status, 401);
});

check("the page works behind a proxy with a prefix", async () => {
  const target = new URL(urls.real);
  const proxy = http.createServer((request, response) => {
    if (!request.url.startsWith("/deep/prefix/")) return response.writeHead(404).end();
    const path = request.url.slice("/deep/prefix".length);
    const passed = http.request({ host: target.hostname, port: target.port, path, method: request.method, headers: request.headers }, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  const page = await open(`http://127.0.0.1:${proxy.address().port}/deep/prefix/`);
  await page.click(".members a:has-text('photo_china_rgb')");
  await page.waitForURL(/deep\/prefix\/photo_china_rgb/);
  await page.waitForSelector("[data-sampled]");
  await close(page);
  proxy.close();
});

check("nothing is wider than a phone, in both colour schemes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const path of ["", "stocks/", "pbmc_soma/", "photo_china_rgb/", "dem_jacksboro/?tab=Schema"]) {
      const page = await open(urls.real + path, { viewport: { width: 360, height: 740 }, colorScheme });
      await page.waitForSelector("[data-sampled], tr.row, table.plain, .members li");
      assert.ok((await page.evaluate("document.documentElement.scrollWidth")) <= 360, `${path} in ${colorScheme}`);
      await accessible(page);
      await close(page);
    }
  }
});

check("without scripts, the listing is there", async () => {
  const page = await open(urls.demo, { javaScriptEnabled: false });
  assert.ok(await page.locator("a[href='temp.f32']").isVisible());
  await page.context().close();
});

let failures = 0;
for (const [name, work] of checks) {
  if (only && !name.includes(only)) continue;
  try {
    await work();
    console.log(`ok: ${name}`);
  } catch (error) {
    failures++;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
await browser.close();
process.exit(failures ? 1 : 0);
