"""What pages share: the template engine, its strictness, and what an HTML page carries in itself.

`shell.html.jinja` is the frame of HTML pages: the style (`shell.css`), the button for light and dark (`theme.js`), and
a rule by which the browser refuses every request that the page might make. A page of another package has its template,
styles and scripts there.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import jinja2
import markupsafe

from dither import _version
from dither.base import drawing, errors

HERE = "dither.cli"


def page(name: str, *, filters: Mapping[str, Callable[..., str]], package: str = HERE, **content: Any) -> str:
    """The template of that name, filled in. It knows the version of dither and the time besides its content.

    package : where the template lies, with the styles and scripts that it alone has
    """
    env = environment(package, HERE, autoescape=True)
    env.filters |= filters
    loader: Any = env.loader
    env.globals["file"] = lambda file: markupsafe.Markup(loader.get_source(env, file)[0])  # a style or a script
    return env.get_template(name).render(version=_version.__version__, now=datetime.now(UTC), **content)


def environment(*packages: str, **how: Any) -> jinja2.Environment:
    """Templates of the folders of these packages, which may name only what they are given. how : as jinja2 takes it"""
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader(place, "") for place in dict.fromkeys(packages)])
    strict: dict[str, Any] = dict(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return jinja2.Environment(loader=loader, **strict, **how)


def plotly() -> markupsafe.Markup:
    """The script that draws the plots."""
    return markupsafe.Markup(errors.imported("plotly.offline", "plotly", extra="experiments").get_plotlyjs())


def embedded(canvas: Any) -> str:
    """A picture as the text that a page holds."""
    return base64.b64encode(drawing.png(canvas)).decode()
