// Run the examples of the first pages in Pyodide, without a browser: `node tests/browser/run.mjs WHEEL [FOLDER]`.
//
// Needs the npm package `pyodide` (`npm i pyodide@314.0.7`; XPGRAD_NPM names the folder that has `node_modules`, by default the current one).
// FOLDER has wheels of NumPy for Pyodide, pluggy and array-api-compat, and may have matplotlib's and SciPy's; without it, Pyodide fetches
// its own NumPy and pluggy, and array-api-compat from PyPI.
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [wheel, folder] = process.argv.slice(2).map((path) => resolve(path));
if (!wheel) {
  console.error("usage: node tests/browser/run.mjs WHEEL [FOLDER]");
  process.exit(2);
}
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const find = createRequire(join(resolve(process.env.XPGRAD_NPM ?? "."), "package.json"));

const start = performance.now();
const seconds = () => ((performance.now() - start) / 1000).toFixed(2).padStart(6);
const { loadPyodide, version } = await import(pathToFileURL(find.resolve("pyodide/pyodide.mjs")));
const python = await loadPyodide();
console.log(`${seconds()} s  Pyodide ${version} is loaded`);

// A missing package is an error here: Pyodide itself only prints it.
async function load(names) {
  let failed = "";
  await python.loadPackage(names, { checkIntegrity: false, messageCallback() {}, errorCallback: (text) => (failed += text) });
  if (failed) throw new Error(failed.trim());
}

try {
  if (folder) {
    await load(readdirSync(folder).filter((name) => name.endsWith(".whl")).map((name) => pathToFileURL(join(folder, name)).href));
  } else {
    await load(["numpy", "pluggy", "micropip"]);
    await python.pyimport("micropip").install("array-api-compat");
  }
} catch (error) {
  console.error(error.message.trim().split("\n").pop());
  process.exit(3); // not run
}
if (!python.runPython("import importlib.util; bool(importlib.util.find_spec('numpy'))")) {
  console.error("there is no NumPy for Pyodide in the folder");
  process.exit(3);
}
await load([pathToFileURL(wheel).href]);
console.log(`${seconds()} s  NumPy and xpgrad are installed`);
if (!folder) await load(["matplotlib", "scipy"]).catch((error) => console.log(`not run, what needs them: ${error.message}`));
python.mountNodeFS("/repository", root);
process.exitCode = python.runPython(`
import sys
sys.path.insert(0, "/repository/tests/browser")
import examples
min(examples.main(), 1)
`);
