"""What both HTML pages share: the template engine, its strictness, and what a page carries in itself.

`shell.html.jinja` is the frame of both: the style (`shell.css`), the button for light and dark (`theme.js`), and a rule
by which the browser refuses every request that the page might make.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import jinja2
import markupsafe

from dither import _version
from dither.base import drawing, errors


def page(name: str, *, filters: Mapping[str, Callable[..., str]], **content: Any) -> str:
    """The template of that name, filled in. It knows the version of dither and the time besides its content."""
    loader = jinja2.PackageLoader("dither.cli", "")
    env = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    env.filters |= filters
    env.globals["file"] = file
    return env.get_template(name).render(version=_version.__version__, now=datetime.now(UTC), **content)


def file(name: str) -> markupsafe.Markup:
    """A style or a script of this folder, as it stands."""
    return markupsafe.Markup(resources.files("dither.cli").joinpath(name).read_text("utf-8"))


def plotly() -> markupsafe.Markup:
    """The script that draws the plots."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise errors.missing_extra("plotly", extra="experiments") from None
    return markupsafe.Markup(get_plotlyjs())


def embedded(canvas: Any) -> str:
    """A picture as the text that a page holds."""
    return base64.b64encode(drawing.png(canvas)).decode()
