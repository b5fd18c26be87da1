// Builds the page into two files with fixed names, and compresses them: the program embeds `dist/page.js.gz` and
// `dist/page.css.gz`.
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig } from "vite";

const compress = {
  name: "compress",
  closeBundle() {
    for (const name of ["page.js", "page.css"]) {
      const path = new URL(`dist/${name}`, import.meta.url);
      writeFileSync(new URL(`dist/${name}.gz`, import.meta.url), gzipSync(readFileSync(path), { level: 9 }));
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
