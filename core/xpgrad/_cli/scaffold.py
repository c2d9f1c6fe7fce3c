"""`xpgrad backends new NAME`: write a complete, working plugin project to start from."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from xpgrad import registry
from xpgrad.backend import API_VERSION

#: The newest version with a date in the changelog, which a new project requires: the version in development cannot be installed.
RELEASED = "0.1.0"
#: The project's files, each with ``.txt`` added to its name, so that no tool takes them for modules of xpgrad.
TEMPLATE = Path(__file__).parent / "template"


def new_project(name: str, directory: str) -> Path:
    """Write a plugin project.

    Parameters
    ----------
    name : str
        The backend's name: a lower-case identifier.
    directory : str
        The parent of the new folder ``xpgrad-NAME``.

    Returns
    -------
    Path
        The new folder.

    Raises
    ------
    ValueError
        The name is invalid, or another backend or package has it.
    FileExistsError
        The folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        msg = f"{name!r} cannot name a backend: use lower-case letters, digits and underscores, beginning with a letter"
        raise ValueError(msg)
    taken = registry.providers(name)
    if taken or importlib.util.find_spec(f"xpgrad_{name}") is not None:
        where = "; ".join(p.origin for p in taken) or f"a package `xpgrad_{name}`"
        raise ValueError(f"{name!r} is taken by {where}; choose another name")
    root = Path(directory) / f"xpgrad-{name}"
    if root.exists():
        msg = f"{root} already exists; choose another name or --directory"
        raise FileExistsError(msg)
    values = {"@NAME@": name, "@CLASS@": "".join(p.capitalize() for p in name.split("_")) + "Backend", "@API@": str(API_VERSION)}
    values["@VERSION@"] = RELEASED
    for source in sorted(TEMPLATE.rglob("*.txt")):
        path, text = source.relative_to(TEMPLATE).as_posix().removesuffix(".txt"), source.read_text(encoding="utf-8")
        for key, value in values.items():
            path, text = path.replace(key, value), text.replace(key, value)
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root
