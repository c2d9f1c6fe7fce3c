"""Configure Sphinx: ``python -m sphinx -W --keep-going docs docs/_build/html`` builds the site, as CONTRIBUTING.md says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("DASK_SCHEDULER", "synchronous")  # read as dask's backend loads
os.environ.setdefault("NPROC", "16")  # JAX's threads: with as many as two cores, four devices may wait for each other for ever

import xpgrad  # noqa: E402

project = "xpgrad"
author = "The xpgrad authors"
project_copyright = author
version = release = xpgrad.__version__

extensions = [
    "myst_parser",  # the pages are Markdown, which is read in the repository, too
    "sphinx.ext.autodoc",
    "numpydoc",  # the form of the docstrings
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",  # runs examples/gallery
    "sphinx_design",  # the cards of the first page
    "sphinx_copybutton",
    "xpgrad_reference.extension",
    "xpgrad_reference.leaving",
    "xpgrad_reference.running",
]
exclude_patterns = ["_build", "_ext", "conformance", "gallery/*.md5", "**/GALLERY_HEADER.txt"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".txt": "markdown"}
highlight_language = "shell"  # of blocks that do not say their language: most are commands
default_role = "py:obj"  # a name in backticks is a link where there is a page of that name
nitpicky = False  # most names in backticks are parameters
suppress_warnings = ["config.cache"]  # sphinx-gallery's own configuration holds functions
python_use_unqualified_type_names = True
add_module_names = False
python_maximum_signature_line_length = 100  # longer ones have a line for each parameter
autodoc_typehints = "signature"
autodoc_preserve_defaults = True  # the name of a function that is a default, not its address
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"_program",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("xpgrad",),
    "reference_url": {"xpgrad": None},
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # pages that load scripts from elsewhere
    "show_signature": False,
    "thumbnail_size": (400, 280),
    "matplotlib_animations": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "xpgrad"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"xpgrad {release}", "alt_text": ""},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_depth": 2,
    "collapse_navigation": True,  # beside a function only those of its chapter, not all 800: the site is three fifths as large
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search the documentation",
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
    "secondary_sidebar_items": {"**": ["page-toc"], "cheat-sheet": []},  # its tables need the width
}
html_sidebars: dict[str, list[str]] = {"index": [], "performance": []}
