"""Make the reference from docstrings, and from the facts that many of them share: a page for each public name.

`names` lists what is public, `facts` reads what stands beside the docstrings, `sections` puts both together, and `pages` writes what Sphinx
reads. ``python -m xpgrad_reference xpgrad.linalg`` (in `docs/_ext`) says what is missing below a name, and runs its examples.
"""

from __future__ import annotations
