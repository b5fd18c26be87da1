// Runs the script of a page as a browser would, and prints the caption of its picture: node run_picture.js URL
const { readFileSync } = require("node:fs");
const url = process.argv[2];
const get = globalThis.fetch;
globalThis.fetch = (path) => get(url + path);
const element = () => ({
  dataset: {},
  getContext: () => ({ createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }), putImageData: () => {} }),
  append: (...parts) => console.log(parts[1].textContent),
});
globalThis.document = { getElementById: element, createElement: element };
eval(readFileSync(`${__dirname}/../../src/serve/folder/picture.js`, "utf8"));
