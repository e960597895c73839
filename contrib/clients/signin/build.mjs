// Builds dist/ and the copy that the hosted sign-in page serves, and fails over the promised size.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";
import { minify } from "terser";

/** With `--check` nothing is written: what is there must be what would be. */
const CHECKS = process.argv.includes("--check");
const MAX_GZIPPED_BYTES = 6_000;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const HOSTED = here("../../../plugins/areas/auth/msgsvc_auth/hosted/static/msgsvc-signin.js");

const styleSheets = {
  name: "style-sheets",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      // In variables the spaces are left.
      return { contents: code.trim().replace(/([:,]) /g, "$1"), loader: "text" };
    });
  },
};

const types = CHECKS ? ["--noEmit"] : [];
execFileSync(here("node_modules/.bin/tsc"), ["--project", here("."), ...types], { stdio: "inherit" });
const bundle = await build({
  entryPoints: [here("src/index.ts")],
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  format: "esm",
  target: "es2022",
  plugins: [styleSheets],
});
// 2-4 % smaller than by esbuild alone.
const { code } = await minify(bundle.outputFiles[0].text, {
  module: true,
  ecma: 2020,
  compress: { passes: 3, unsafe_arrows: true },
  format: { comments: false, preamble: "/* msgsvc, Apache-2.0 */" },
});
const text = `${code}\n`;
const gzipped = gzipSync(text, { level: 9 }).length;
console.log(`msgsvc-signin.js: ${Buffer.byteLength(text)} bytes, ${gzipped} gzipped (at most ${MAX_GZIPPED_BYTES})`);
if (gzipped > MAX_GZIPPED_BYTES) process.exit(1);
for (const path of [here("dist/msgsvc-signin.js"), HOSTED]) {
  if (!CHECKS) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) throw new Error(`${path} is out of date: run make clients`);
}
