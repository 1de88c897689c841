"""The template engine of the texts that are written beside pictures: Markdown and LaTeX."""

from typing import Any

import jinja2


def environment(**how: Any) -> jinja2.Environment:
    """Templates of this folder, which may name only what they are given. how : as jinja2 takes it"""
    strict: dict[str, Any] = dict(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    loader = jinja2.PackageLoader("dither_bench.show", "")
    return jinja2.Environment(loader=loader, keep_trailing_newline=True, **strict, **how)
