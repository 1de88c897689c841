"""Sphinx: the pages of this folder and the docstrings of the public names."""

import dither

project, author, copyright = "dither", "the dither developers", "2026, the dither developers"
release = dither.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
suppress_warnings = ["ref.python", "docutils"]
