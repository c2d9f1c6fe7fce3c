"""The style and the few lines of script of the report for a browser; nothing is loaded from elsewhere."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root { color-scheme: light dark; --line: #d9dde3; --ink: #1c2430; --soft: #667; --page: #fff; --head: #f5f7f9;
  --good: #e3f5e8; --goodink: #11612c; --bad: #fde4e1; --badink: #9c1c10; --warn: #fff2d6; --warnink: #7a5200; }
@media (prefers-color-scheme: dark) { :root { --line: #333b46; --ink: #e3e7ec; --soft: #99a3b0; --page: #14181d; --head: #1c2229;
  --good: #14351f; --goodink: #8fdca6; --bad: #451a16; --badink: #ffb0a7; --warn: #3b2e10; --warnink: #f0cf85; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 90rem; font: 15px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--page); }
h1 { margin: 0; font-size: 1.5rem; } header p { margin: .2rem 0 1rem; color: var(--soft); } label { margin-right: 1rem; }
input[type=search] { padding: .3rem .6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--page); color: inherit; }
main { margin: 1rem 0; overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { position: sticky; top: 0; background: var(--head); } thead small { display: block; font-weight: normal; color: var(--soft); }
th[scope=row] { font-weight: normal; white-space: nowrap; }
summary { cursor: pointer; list-style: none; } summary::-webkit-details-marker { display: none; }
summary:focus-visible { outline: 2px solid currentColor; }
td.passed summary { color: var(--goodink); } td.writes summary, td.constant summary { color: var(--goodink); font-style: italic; }
td.failed { background: var(--bad); } td.failed summary { color: var(--badink); font-weight: 600; }
td.known { background: var(--warn); } td.known summary { color: var(--warnink); }
td.lacks, td.not-run { color: var(--soft); } td.passed, td.writes, td.constant { background: var(--good); }
dl { margin: .4rem 0; max-width: 34rem; font-size: .85rem; color: var(--ink); } dt { font-weight: 500; } dt i { font-weight: normal; }
dd { margin: 0 0 .35rem 1rem; overflow-wrap: anywhere; } footer { color: var(--soft); font-size: .85rem; } footer b { color: var(--ink); }
footer h2 { font-size: 1rem; } footer ul { padding-left: 1.1rem; columns: 28rem; }
"""

SCRIPT = """
const only = document.getElementById('only'), find = document.getElementById('find');
function show() {
  for (const row of document.querySelectorAll('tbody tr'))
    row.hidden = (only.checked && !row.classList.contains('bad')) || !row.textContent.toLowerCase().includes(find.value.toLowerCase());
}
only.onchange = find.oninput = show;
"""
