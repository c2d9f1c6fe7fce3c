"""Self-contained pages for a browser: their frame, prose, and shared style for light and dark mode."""

from __future__ import annotations

from html import escape

#: Each colour has a `-soft` variant for backgrounds.
_STYLE = """
:root { color-scheme: light dark; --back: #fbfbfa; --card: #ffffff; --text: #1c2430; --faint: #667085; --line: #e3e6ea; --soft: #f5f6f8;
  --error: #c62828; --error-soft: #fdecea; --warning: #a15c00; --warning-soft: #fff4dc; --note: #2c5c9c; --note-soft: #e8f0fb;
  --ok: #1b7f3b; --ok-soft: #e2f5e7; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --card: #1b2027; --text: #e6eaf0; --faint: #98a2b3; --line: #2c333d;
  --soft: #20262e; --error: #ff8a80; --error-soft: #3b1f1f; --warning: #ffc66b; --warning-soft: #3a2d16; --note: #8fbcff;
  --note-soft: #1d2b40; --ok: #7ddc98; --ok-soft: #173122; } }
* { box-sizing: border-box; }
body { background: var(--back); color: var(--text); font: 15px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 62rem;
  padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.45rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .7rem; } p { margin: .4rem 0; }
code, pre, .code { font: 13px/1.55 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.faint { color: var(--faint); } .grid { stroke: var(--line); }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 8px; margin: .8rem 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
@media (max-width: 40rem) { body { padding: 1rem .75rem 2rem; } }
"""


def page(title: str, *body: str, style: str = "", script: str = "") -> str:
    """Return a whole page. `style` is appended to the shared style; empty parts of the body are left out."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + (f"\n<script>{script}</script>" if script else "")
        + "\n</body>\n</html>\n"
    )


def prose(text: str) -> str:
    """Return a text as HTML, with its parts in backticks as code."""
    return "".join(f"<code>{p}</code>" if k % 2 else p for k, p in enumerate(escape(text).split("`")))


def section(name: str, title: str, body: str) -> str:
    """Return a section of a page with an anchor and a heading; an empty string without a body."""
    return f'<section id="{name}"><h2>{title}</h2>\n{body}</section>' if body else ""
