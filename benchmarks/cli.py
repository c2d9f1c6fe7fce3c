"""The command line: options, the progress bar, the tables and the JSON file."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.contestants import Contestant, installed
from benchmarks.measure import agree, count_leftovers, import_times, peak_arrays, ratio, steps_of, take_turns
from benchmarks.workloads import WORKLOADS

__all__ = ["main", "measure"]

EXTRAS = ("held", "import")
IMPORT_TARGET = 1.15


class Progress:
    """A progress bar: tqdm's if installed, otherwise a simple line; nothing if the output is not a terminal."""

    def __init__(self, total: int) -> None:
        self.bar: Any = None
        self.total, self.done, self.what = total, 0, ""
        self.quiet = not sys.stderr.isatty()
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self.bar = tqdm(total=total, disable=None, leave=False, bar_format="{desc:12} {percentage:3.0f}%|{bar}| {elapsed}")

    def start(self, what: str) -> None:
        self.what = what
        if self.bar is not None:
            self.bar.set_description_str(what)
        else:
            self._draw()

    def to(self, fraction: float) -> None:
        """Set the progress within the current part, which has `total` steps."""
        if self.bar is not None:
            self.bar.n = self.done + fraction
            self.bar.refresh()
        else:
            self._draw()

    def finish_part(self) -> None:
        self.done += 1
        self.to(0.0)

    def _draw(self) -> None:
        if not self.quiet:
            print(f"\r{self.what:12} {self.done}/{self.total}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        elif not self.quiet:
            print(file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks; return 0, or 1 with ``--check`` if a target was missed."""
    names = [*WORKLOADS, *EXTRAS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="xpgrad's times as ratios to hand-written NumPy (forward and backward), one thread, side by side "
        "with the other libraries that are installed. All gradients are compared before anything is timed.",
    )
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help=f"one of: {', '.join(names)}")
    parser.add_argument("--against", metavar="LIBRARIES", help="comma-separated, e.g. torch,jax (default: what is installed)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller workloads: for a first look")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds per workload (default 25, quick 7)")
    parser.add_argument("--seconds", type=float, metavar="S", help="time per workload, about (default 20, quick 3)")
    parser.add_argument("--markdown", action="store_true", help="print a table to paste into a document")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all times too")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target was missed")
    args = parser.parse_args(argv)
    chosen = args.only or names
    rounds = args.repeat or (7 if args.quick else 25)
    seconds = args.seconds or (3.0 if args.quick else 20.0)
    if rounds < 1:
        parser.error("--repeat must be at least 1")
    available = installed()
    if args.against is not None:
        wanted = {"numpy", "xpgrad", *filter(None, args.against.split(","))}
        unknown = wanted - set(available)
        if unknown:
            parser.error(f"not installed: {', '.join(sorted(unknown))}; there are {', '.join(available)}")
        available = {key: c for key, c in available.items() if key in wanted}
    results = measure(chosen, available, rounds=rounds, seconds=seconds, quick=args.quick)
    print(markdown(results) if args.markdown else plain(results))
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if args.check and find_missed_targets(results) else 0


def measure(names: list[str], available: Any, *, rounds: int, seconds: float, quick: bool) -> dict[str, Any]:
    """Run the named benchmarks; return what ``--json`` writes."""
    contestants: dict[str, Contestant] = {key: c() for key, c in available.items()}
    results: dict[str, Any] = {
        "machine": {"processor": processor(), "system": platform.system(), "python": platform.python_version(), "threads": 1},
        "libraries": {key: {"title": c.title, "version": c.version()} for key, c in available.items()},
        "quick": quick,
        "workloads": {},
    }
    progress = Progress(len(names))
    try:
        for name in names:
            progress.start(name)
            if name == "held":
                results["held"] = count_leftovers()
            elif name == "import":
                results["import"] = import_times(5 if quick else max(15, rounds), lambda: None)
            else:
                results["workloads"][name] = _one(name, contestants, rounds, seconds, quick, progress)
            progress.finish_part()
    finally:
        progress.close()
    return results


def _one(name: str, contestants: Any, rounds: int, seconds: float, quick: bool, progress: Progress) -> dict[str, Any]:
    workload = WORKLOADS[name]
    steps, missing = steps_of(workload, contestants, workload.sizes[1 if quick else 0])
    agree(steps, contestants, tolerance=workload.tolerance)
    turn = 0

    def tick() -> None:
        nonlocal turn
        turn += 1
        progress.to(min(1.0, turn / rounds))

    times = take_turns(steps, rounds, seconds, tick)
    found: dict[str, Any] = {
        "title": workload.title, "target": workload.target, "size": workload.sizes[1 if quick else 0],
        "missing": missing, "seconds": times, "ratios": {key: ratio(t, times["numpy"]) for key, t in times.items()},
    }  # fmt: skip
    if workload.memory is not None:
        nbytes = workload.sizes[1 if quick else 0] * 8
        found["memory_target"] = workload.memory
        fresh, _ = steps_of(workload, {key: c for key, c in contestants.items() if c.traced}, found["size"])
        found["memory"] = {key: peak_arrays(step, nbytes) for key, step in fresh.items()}
    return found


# -- reports -------------------------------------------------------------------------------------------------------------


def find_missed_targets(results: dict[str, Any]) -> list[str]:
    """Return a sentence for each missed target."""
    out = []
    for name, w in results["workloads"].items():
        mine = w["ratios"]["xpgrad"][0]
        if mine > w["target"]:
            out.append(f"{name}: {mine:.2f} > {w['target']:g}")
        other = w["ratios"].get("torch")
        if other is not None and mine >= other[0]:
            out.append(f"{name}: {mine:.2f} is not faster than PyTorch's {other[0]:.2f}")
        if "memory" in w and w["memory"]["xpgrad"] > w["memory_target"]:
            out.append(f"{name}: {w['memory']['xpgrad']:.1f} arrays at the peak > {w['memory_target']:g}")
    if any(results.get("held", {}).values()):
        out.append(f"held after backward: {results['held']}")
    if "import" in results:
        r = ratio(results["import"]["import xpgrad"], results["import"]["import numpy"])[0]
        if r > IMPORT_TARGET:
            out.append(f"import: {r:.2f} > {IMPORT_TARGET}")
    return out


def caption(results: dict[str, Any]) -> str:
    """Return a description of the machine and the versions."""
    machine = results["machine"]
    versions = ", ".join(f"{library['title']} {library['version']}" for library in results["libraries"].values())
    quick = "; quick run" if results["quick"] else ""
    return f"{machine['processor']}, one thread, {machine['system']}, Python {machine['python']}; {versions}{quick}"


def _cell(found: list[float] | tuple[float, float, float] | None, spread: bool) -> str:
    if found is None:
        return "-"
    middle, low, high = found
    digits = 1 if middle >= 20 else 2
    return f"{middle:.{digits}f}" + (f" ({low:.{digits}f}-{high:.{digits}f})" if spread else "")


def rows(results: dict[str, Any], spread: bool) -> list[list[str]]:
    """Return the table: a header, then one row per workload."""
    others = [key for key in results["libraries"] if key != "numpy"]
    table = [["forward + backward", "by hand", "target", *(results["libraries"][key]["title"] for key in others)]]
    for w in results["workloads"].values():
        base = statistics.median(w["seconds"]["numpy"])
        cells = [_cell(w["ratios"].get(key), spread and key == "xpgrad") for key in others]
        table.append([w["title"], f"{base * 1e3:.3g} ms", f"{w['target']:g}", *cells])
        if "memory" in w:
            memory = w["memory"]
            cells = [f"{memory[key]:.1f}" if key in memory else "-" for key in others]
            table.append(["… its peak memory, in arrays", f"{memory['numpy']:.1f}", f"{w['memory_target']:g}", *cells])
    return table


def notes(results: dict[str, Any]) -> list[str]:
    """Return the remarks that do not fit into the table."""
    out = []
    deep5, deep = (results["workloads"].get(name) for name in ("deep5", "deep"))
    if deep5 and deep:
        per_op = [statistics.median(w["seconds"]["xpgrad"]) / w["size"] * 1e6 for w in (deep5, deep)]
        out.append(f"depth: {per_op[0]:.2f} us per operation at {deep5['size']:.0e} of them, {per_op[1]:.2f} us at {deep['size']:.0e}")
    if "held" in results:
        h = results["held"]
        out.append(
            f"held after backward (collector off): {h['saved']} bytes of saved values while the loss lives; then {h['nodes']} nodes, "
            f"{h['tensors']} Tensors, {h['arrays']} arrays; growth per step {h['growth']} bytes"
        )
    if "import" in results:
        times = results["import"]
        base = times["import numpy"]
        parts = []
        for title, t in times.items():
            if title.startswith("import numpy"):
                continue
            target = f" (target {IMPORT_TARGET})" if title == "import xpgrad" else ""
            r = ratio(t, base)
            parts.append(f"{title} {_cell(r, True)}{target}")
        out.append(f"in units of `import numpy` ({statistics.median(base) * 1e3:.0f} ms): " + ", ".join(parts))
    return out


def plain(results: dict[str, Any]) -> str:
    """Return the table for the terminal: xpgrad's ratios with quartiles, and the missed targets."""
    lines = []
    if results["workloads"]:
        table = rows(results, spread=True)
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        lines += ["  ".join(c.ljust(n) if k == 0 else c.rjust(n) for k, (c, n) in enumerate(zip(r, widths))) for r in table]
        lines.append("")
    lines += notes(results)
    lines.append(caption(results))
    bad = find_missed_targets(results)
    lines += ["", *(f"MISSED  {m}" for m in bad)] if bad else ["", "all targets met"]
    return "\n".join(lines)


def markdown(results: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    lines = []
    if results["workloads"]:
        head, *body = rows(results, spread=False)
        lines += ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
        lines += ["| " + " | ".join(row) + " |" for row in body]
        lines.append("")
    lines += [f"* {note}" for note in notes(results)]
    lines += ["", f"Ratios to hand-written NumPy, lower is better. {caption(results)}."]
    return "\n".join(lines)


def processor() -> str:
    """Return the processor's model, but not the machine's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()
