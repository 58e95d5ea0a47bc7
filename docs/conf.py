"""How the documentation becomes a site (`make docs`), one that asks no other server."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))

import counterlvq  # noqa: E402 - the extensions come first

project = "counterlvq"
author = "The counterlvq authors"
project_copyright = author
version = release = counterlvq.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "shell_help",
    "beyond_the_pages",
]
exclude_patterns = ["gallery/*.py", "gallery/*.ipynb", "static"]
nitpicky = True

# Markdown: formulas between dollars, as code hosts show them too, and links to headings.
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Docstrings say what arguments are in words, so annotations are not repeated.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


def _skip_foreign(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to an estimator: its own pages describe that."""
    module = getattr(obj, "__module__", None) or ""
    return True if module.startswith("sklearn") else None


def setup(app):
    app.connect("autodoc-skip-member", _skip_foreign)


sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1_000_000,  # how long an example took is no documentation
    "write_computation_times": False,
    "copyfile_regex": r"(?!)",
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "first_notebook_cell": None,
    "notebook_extensions": set(),
    "doc_module": (),
}

html_theme = "furo"
html_title = f"counterlvq {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1d5fa8",
        "color-brand-content": "#1d5fa8",
        "code-font-size": "78%",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7db4f0",
        "color-brand-content": "#7db4f0",
    },
}
