// Run a Python program of this repository in Pyodide, without a browser: `node tests/browser/run.mjs WHEEL PACKAGES PROGRAM [ARGUMENT ...]`.
//
// WHEEL is xpgrad's, PACKAGES a folder with array-api-compat and pluggy (`pip install --target`), PROGRAM a path in the repository or -m
// with a module's name. Pyodide and NumPy are those of package.json: `npm install --prefix tests/browser`. XPGRAD_NPM may name another
// folder that has `node_modules`; if there is no `@emscripten-forge/numpy`, Pyodide fetches its own NumPy and, where it can, matplotlib and
// SciPy. The status is 3 if there is no NumPy.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [wheel, packages, ...program] = process.argv.slice(2);
if (!program.length) {
  console.error("usage: node tests/browser/run.mjs WHEEL PACKAGES PROGRAM [ARGUMENT ...]");
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const modules = join(resolve(process.env.XPGRAD_NPM ?? here), "node_modules");

const start = performance.now();
const seconds = () => ((performance.now() - start) / 1000).toFixed(2).padStart(6);
const { loadPyodide, version } = await import(pathToFileURL(createRequire(join(modules, "x.js")).resolve("pyodide/pyodide.mjs")));
const python = await loadPyodide();
console.log(`${seconds()} s  Pyodide ${version} is loaded`);

// A missing package is an error here: Pyodide itself only prints it.
async function load(names) {
  let failed = "";
  await python.loadPackage(names, { checkIntegrity: false, messageCallback() {}, errorCallback: (text) => (failed += text) });
  if (failed) throw new Error(failed.trim());
}

let archive;
try {
  const folder = join(modules, "@emscripten-forge", "numpy", "pkg");
  archive = join(folder, readdirSync(folder).find((name) => name.endsWith(".tar.gz")));
} catch {} // there is none
try {
  if (archive) python.unpackArchive(new Uint8Array(readFileSync(archive)), "gztar", { extractDir: "/" });
  else await load(["numpy"]);
} catch (error) {
  console.error(error.message.trim().split("\n").pop());
  process.exit(3);
}
if (!archive) await load(["matplotlib", "scipy"]).catch((error) => console.log(`not run, what needs them: ${error.message}`));
// The wheel is loaded without what it depends on: package.json's NumPy, the newest on npm, is older than what xpgrad asks for.
await load([pathToFileURL(resolve(wheel)).href]);
console.log(`${seconds()} s  NumPy and xpgrad are installed`);
python.mountNodeFS("/packages", resolve(packages));
python.mountNodeFS("/repository", dirname(dirname(here)));
python.globals.set("program", python.toPy(program));
process.exitCode = await python.runPythonAsync(`
import os, runpy, sys
os.chdir("/repository")
sys.path.append("/packages")
status = 0
try:
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path.insert(0, "")
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path.insert(0, os.path.dirname(program[0]))
        runpy.run_path(program[0], run_name="__main__")
except SystemExit as ended:
    status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
int(status)
`);
