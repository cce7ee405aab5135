"""Settings of Sphinx for the site that build.py makes.

Why Sphinx: it builds without a network, its theme Furo loads nothing from elsewhere, its search runs in the
browser, also from files, MyST reads the Markdown of docs/ with the anchors of GitHub, autodoc the docstrings,
and `-W` refuses a link or an anchor that leads nowhere. The last release of MkDocs is of 2024; Zensical takes
its API reference from a plugin of MkDocs, and has no hooks for generated pages yet.
"""

import re
from typing import Any

import numpy
from docutils import nodes
from sphinx.application import Sphinx

import sightline
import sightline.scoring.scorer

# The module has this name for type checkers only; the fields of its records are read with it.
sightline.scoring.scorer.Vectors = numpy.ndarray

project = "Sightline"
version = release = sightline.__version__
html_title = f"Sightline {version}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist", "attrs_inline"]
myst_heading_anchors = 4

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
smartquotes = False  # they make a dash of the hyphens of an option

# Docstrings are Markdown in one point: code stands between single backticks.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", _without_objects)
    app.connect("doctree-read", _with_dashes)


def _without_objects(app: Sphinx, what: str, name: str, *found: Any) -> tuple[str, ...]:
    """A signature with `...` for defaults that are no literals, which Sphinx cannot read."""
    return tuple(part and re.sub(r"<[^<>]*(?:<[^<>]*>)?[^<>]*>", "...", part) for part in found[2:])


def _with_dashes(app: Sphinx, page: nodes.document) -> None:
    """Dashes between arguments and their meaning, which come as hyphens without smart quotes."""
    for text in list(page.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))
