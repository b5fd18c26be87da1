// Compares how pages look in Chromium with pictures of how they looked when a person found them right.
//
// usage: looks.mjs CONFIGURATION
//
// The configuration is JSON: the `port` of a server of the folder that browser.rs makes, the `executable` of the
// browser, the folder `kept` with the pictures, the folder `made` for those that differ, and whether to `accept` what is
// seen now. Prints each comparison, and ends with 1 if one failed.
//
// The pictures are small: a comparison takes the mean colours of blocks, which other shapes of the same letters hardly
// change, and which a missing part, another colour scheme, or text that flows elsewhere does change.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { port, executable, kept, made, accept } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const only = process.env.ONLY;

/** The pages: a name, a path, what is there when all of it is, and settings. */
const PAGES = [
  ["raster", "terrain/", ".histogram", {}],
  ["photograph", "photograph/", "[data-sampled]", {}],
  ["line", "schools/", "[data-sampled]", {}],
  ["points", "points/", "[data-sampled]", {}],
  ["table", "stocks/", "tr.row", {}],
  ["experiment", "experiment/", ".legend li", {}],
  ["variants", "variants/?region=chr1:1-100000", "td.genotype", {}],
  ["map", "climate/", ".histogram", {}],
  ["listing", "stocks/", ".listing a", { javaScriptEnabled: false }],
  ["absent", "stocsk/", "h1", {}],
];
const SIZES = [[360, 740], [1024, 768], [1920, 1080]];
/** How many times smaller a picture is than the page, by its width. */
const SCALES = { 360: 3, 1024: 3, 1920: 4 };
/** A long page is seen so far. */
const MOST_HEIGHT = 2000;
/** Sides of blocks in pixels of the picture, and how much longer or shorter it may be. */
const BLOCK = 8;
/** The most that the mean of a block may differ, of 255, and the most that all may, on average. */
const MOST_OF_BLOCK = 24, MOST_OF_ALL = 2;

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--hide-scrollbars", "--disable-lcd-text", "--force-color-profile=srgb",
  // So that texts have no number of a port.
  `--host-resolver-rules=MAP localhost:80 127.0.0.1:${port}`];
const browser = await chromium.launch({ executablePath: executable, args: FLAGS });
const workshop = await browser.newPage();

/** Returns how a page looks once it changes no more, as PNG. */
async function look(path, ready, options, [width, height], colorScheme) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(`http://localhost/${path}`);
  await page.waitForSelector(`${ready} >> visible=true`);
  const take = async () => {
    await page.waitForLoadState("networkidle");
    await page.waitForSelector(".busy", { state: "detached" });
    const full = Math.min(MOST_HEIGHT, await page.evaluate("document.documentElement.scrollHeight"));
    return page.screenshot({ animations: "disabled", caret: "hide", fullPage: true, clip: { x: 0, y: 0, width, height: Math.max(height, full) } });
  };
  let [before, now] = [null, await take()];
  // What is read in several steps is drawn in several.
  for (let rounds = 0; !before?.equals(now) && rounds < 60; rounds++) {
    await page.waitForTimeout(250);
    [before, now] = [now, await take()];
  }
  const excess = (await page.evaluate("document.documentElement.scrollWidth")) - width;
  await context.close();
  return { png: now, excess };
}

/** Makes a picture smaller, in a form that takes few bytes. */
const small = (png, scale) => workshop.evaluate(async ([data, scale]) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const canvas = new OffscreenCanvas(Math.ceil(image.width / scale), Math.ceil(image.height / scale));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, image.width / scale, image.height / scale);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/webp", quality: 0.4 })).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}, [png.toString("base64"), scale]).then((text) => Buffer.from(text, "base64"));

/** Returns how much the blocks of two pictures differ: the most, where that is, and on average; and the pixels by which one is longer. */
const difference = (one, other) => workshop.evaluate(async ([pictures, block]) => {
  const images = await Promise.all(pictures.map(async (data) => createImageBitmap(await (await fetch(`data:image/webp;base64,${data}`)).blob())));
  const [width, height] = ["width", "height"].map((side) => Math.floor(Math.min(...images.map((image) => image[side])) / block));
  const means = images.map((image) => {
    const canvas = new OffscreenCanvas(width * block, height * block);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const sums = new Float64Array(width * height * 4);
    for (let at = 0; at < data.length; at++) {
      const pixel = at >> 2, [x, y] = [pixel % canvas.width, Math.floor(pixel / canvas.width)];
      sums[(Math.floor(y / block) * width + Math.floor(x / block)) * 4 + (at & 3)] += data[at] / (block * block);
    }
    return sums;
  });
  let [most, place, sum] = [0, 0, 0];
  for (let at = 0; at < means[0].length; at++) {
    const differs = Math.abs(means[0][at] - means[1][at]);
    sum += differs;
    if (differs > most) [most, place] = [differs, at >> 2];
  }
  const longer = Math.abs(images[0].height - images[1].height);
  return { most, x: (place % width) * block, y: Math.floor(place / width) * block, mean: sum / means[0].length, longer };
}, [[one, other].map((picture) => picture.toString("base64")), BLOCK]);

let failures = 0;
mkdirSync(kept, { recursive: true });
mkdirSync(made, { recursive: true });
for (const [name, path, ready, options] of PAGES) {
  for (const size of SIZES) {
    for (const scheme of ["light", "dark"]) {
      const title = `${name}-${size[0]}-${scheme}`, file = join(kept, `${title}.webp`);
      if (only && !title.includes(only)) continue;
      const { png, excess } = await look(path, ready, options, size, scheme);
      const scale = SCALES[size[0]], now = await small(png, scale);
      writeFileSync(join(made, `${title}.png`), png);
      const wrong = [];
      let known = "";
      if (excess > 0) wrong.push(`it is ${excess} pixels wider than the window`);
      if (accept) writeFileSync(file, now);
      else if (!existsSync(file)) wrong.push("there is no picture of it");
      else {
        const { most, x, y, mean, longer } = await difference(readFileSync(file), now);
        const told = `at most ${most.toFixed(1)} (at ${x * scale}, ${y * scale}), on average ${mean.toFixed(2)}`;
        if (longer > BLOCK) wrong.push(`it is ${longer * scale} pixels longer or shorter than ${file}`);
        if (most > MOST_OF_BLOCK || mean > MOST_OF_ALL) wrong.push(`it differs from ${file}: ${told}`);
        else known = `: ${told}`;
      }
      if (wrong.length) {
        failures++;
        console.log(`FAILED: ${title}: ${wrong.join("; ")}; see ${join(made, `${title}.png`)}`);
      } else console.log(`ok: ${title}${known}`);
    }
  }
}
await browser.close();
process.exit(failures ? 1 : 0);
