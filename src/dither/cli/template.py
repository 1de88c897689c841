"""A page that is one file: its frame, and what it carries in itself.

`shell.html.jinja` is the frame: the style and the button for light and dark of all pages (`base.templates`), and a rule
by which the browser refuses every request that the page might make. A page of another package has its template, styles
and scripts there.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import markupsafe

from dither import _version
from dither.base import drawing, errors, templates

HERE = "dither.cli"


def page(name: str, *, filters: Mapping[str, Callable[..., str]], package: str = HERE, **content: Any) -> str:
    """The template of that name, filled in. It knows the version of dither and the time besides its content.

    package : where the template lies, with the styles and scripts that it alone has
    """
    env = templates.environment(package, HERE, autoescape=True)
    env.filters |= filters
    loader: Any = env.loader
    env.globals["file"] = lambda file: markupsafe.Markup(loader.get_source(env, file)[0])  # a style or a script
    return env.get_template(name).render(version=_version.__version__, now=datetime.now(UTC), **content)


def plotly() -> markupsafe.Markup:
    """The script that draws the plots."""
    return markupsafe.Markup(errors.imported("plotly.offline", "plotly", extra="experiments").get_plotlyjs())


def embedded(canvas: Any) -> str:
    """A picture as the text that a page holds."""
    return base64.b64encode(drawing.png(canvas)).decode()
