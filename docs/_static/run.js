// A "Run" button below each example (div.run). The first click loads Pyodide, NumPy and xpgrad; until then nothing is fetched.
// The examples of a page are one program: a click also runs the earlier ones that have not run yet.
const site = document.querySelector("script[data-wheel]").dataset;
const blocks = [];
let loading = null, busy = false;

// After each example, the pictures that it wrote are shown.
const SETUP = `
import os
os.environ["MPLBACKEND"] = "agg"
_seen = {}
def _pictures():
    found = []
    for name in sorted(os.listdir()):
        changed = os.stat(name).st_mtime_ns
        if name.endswith((".png", ".svg")) and _seen.get(name) != changed:
            _seen[name] = changed
            with open(name, "rb") as file:
                found.append((name, file.read()))
    return found
`;

async function load(say) {
  say("Loading Python (some 20 MB, once) …");
  const { loadPyodide } = await import(site.pyodide + "pyodide.mjs");
  const python = await loadPyodide({ indexURL: site.pyodide });
  say("Loading NumPy and xpgrad …");
  await python.loadPackage("micropip", { messageCallback() {} });
  await python.pyimport("micropip").install(new URL(site.wheel, document.baseURI).href);
  python.runPython(SETUP);
  return python;
}

async function runBlock(python, block) {
  block.text.textContent = "";
  block.pictures.replaceChildren();
  python.setStdout({ batched: (line) => (block.text.textContent += line + "\n") });
  await python.loadPackagesFromImports(block.code, { messageCallback() {} });
  await python.runPythonAsync(block.code);
  for (const [name, data] of python.runPython("_pictures()").toJs()) {
    const file = new Blob([data], { type: name.endsWith(".svg") ? "image/svg+xml" : "image/png" });
    block.pictures.append(Object.assign(new Image(), { src: URL.createObjectURL(file), alt: name }));
  }
  if (!block.text.textContent && !block.pictures.childElementCount) block.text.textContent = "(no output)";
  block.done = true;
}

async function run(wanted) {
  if (busy) return;
  busy = true;
  let at = wanted;
  const say = (text) => (wanted.text.textContent = text);
  wanted.output.hidden = false;
  try {
    const python = await (loading ??= load(say)).catch((error) => {
      loading = null; // the next click tries again
      throw new Error(`Python could not be loaded, which needs a connection to ${new URL(site.pyodide).host} and the Python package index. `
        + `Try again later, or run the example on your computer.\n(${error.message.trim().split("\n").pop()})`);
    });
    say("Running …");
    await new Promise((go) => setTimeout(go, 20)); // shows this before Python keeps the page busy
    for (at of blocks.slice(0, wanted.index + 1).filter((block) => block === wanted || !block.done)) {
      at.output.hidden = false;
      await runBlock(python, at);
    }
  } catch (error) {
    if (error.name !== "PythonError") say("");
    at.text.textContent += error.message;
    if (at !== wanted) say("An example above raised an error.");
  }
  busy = false;
}

for (const node of document.querySelectorAll("div.run")) {
  const [button, output, text, pictures] = ["button", "div", "pre", "div"].map((name) => document.createElement(name));
  const block = { index: blocks.length, code: node.querySelector("pre").textContent, output, text, pictures, done: false };
  blocks.push(block);
  Object.assign(button, { type: "button", className: "run-button", textContent: "Run", ariaLabel: `Run example ${blocks.length}` });
  Object.assign(output, { className: "run-output", hidden: true, role: "status" });
  output.append(text, pictures);
  button.addEventListener("click", () => run(block));
  node.append(button, output);
}
