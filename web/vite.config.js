// Builds the page into files with fixed names in `dist`, and compresses them where the program includes them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { defineConfig } from "vite";

const kept = new URL("../src/serve/folder/built/", import.meta.url);

const compress = {
  name: "compress",
  closeBundle() {
    mkdirSync(kept, { recursive: true });
    for (const [name, folder] of [["page.js", "dist"], ["page.css", "dist"], ["icon.svg", "src"]]) {
      const text = readFileSync(new URL(`${folder}/${name}`, import.meta.url));
      const file = new URL(`${name}.gz`, kept);
      // Other releases of zlib compress to other bytes: a file that has the same text stays.
      if (existsSync(file) && gunzipSync(readFileSync(file)).equals(text)) continue;
      writeFileSync(file, gzipSync(text, { level: 9 }));
    }
  },
};

export default defineConfig({
  plugins: [compress],
  build: {
    outDir: "dist",
    emptyOutDir: false,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: "src/main.tsx",
      output: { entryFileNames: "page.js", assetFileNames: "page.[ext]", format: "es" },
    },
  },
});
