"""What both HTML pages share: the template engine, its strictness, and how a picture becomes a part of the page."""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import jinja2

from dither import _version, drawing


def page(name: str, *, filters: Mapping[str, Callable[..., str]], **content: Any) -> str:
    """The template of that name, filled in. It knows the version of dither and the time besides its content."""
    env = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters |= filters
    template = env.from_string(resources.files("dither.cli").joinpath(name).read_text("utf-8"))
    return template.render(version=_version.__version__, now=datetime.now(UTC), **content)


def embedded(canvas: Any) -> str:
    """A picture as the text that a page holds."""
    return base64.b64encode(drawing.png(canvas)).decode()
