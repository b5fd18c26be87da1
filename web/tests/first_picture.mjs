// Measures how long a page takes to its first picture or rows in Chromium, and names what it asked for until then.
//
// usage: first_picture.mjs CHROMIUM URL
//
// Prints JSON: `milliseconds` from the request of the address, and `requests` in their order, each with its `url` and
// its `range`.
import { chromium } from "playwright-core";

const [executablePath, url] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
await page.addInitScript(() => {
  const isShown = () => document.querySelector("[data-sampled]") || [...document.querySelectorAll("tr.row td")].some((cell) => cell.textContent !== "…");
  const observer = new MutationObserver(() => {
    if (!isShown()) return;
    observer.disconnect();
    // The frame after the next one is drawn with it.
    requestAnimationFrame(() => requestAnimationFrame(() => (window.shownAt = performance.now())));
  });
  observer.observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
});
const requests = [];
page.on("request", (request) => requests.push({ url: request.url(), range: request.headers().range ?? null }));
await page.goto(url, { waitUntil: "commit" });
await page.waitForFunction(() => window.shownAt, null, { timeout: 120_000 });
const asked = [...requests];
console.log(JSON.stringify({ milliseconds: await page.evaluate("window.shownAt"), requests: asked }));
await browser.close();
