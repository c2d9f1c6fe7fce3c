"""Make the reference from docstrings: a page for each public name.

`names` lists what is public, `facts` reads what a docstring does not hold (deviations from PyTorch, texts of constants), `sections` reads
docstrings, and `pages` writes what Sphinx reads. ``python -m xpgrad_reference xpgrad.linalg`` (in `docs/_ext`) lists what is missing below
a name, and runs its examples.
"""

from __future__ import annotations
