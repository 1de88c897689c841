"""The template engine of everything that is written as text: pages, tables, TeX.

`shell.css` and `theme.js` beside this file are the style that all pages share, and the button for light and dark.
"""

from typing import Any

import jinja2

HERE = "dither.base"


def environment(*packages: str, **how: Any) -> jinja2.Environment:
    """Templates of the folders of these packages, which may name only what they are given. how : as jinja2 takes it"""
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader(place, "") for place in dict.fromkeys((*packages, HERE))])
    strict: dict[str, Any] = dict(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return jinja2.Environment(loader=loader, **strict, **how)
