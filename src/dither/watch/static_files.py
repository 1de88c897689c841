"""The styles, scripts and pictures of the page: held in memory, compressed once, and kept by a browser for a year.

An address says what its file has (`?v=`). So a browser asks once for each file of a version, and keeps Plotly in the
form that it has compiled, which is a second of its work. Only an address of another version is to be asked again.
"""

import functools
import gzip
import hashlib
import re
from importlib import resources
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

HERE = "dither.watch"
FILES = {  # name -> package, file and type
    "shell.css": ("dither.base", "shell.css", "text/css"),
    "theme.js": ("dither.base", "theme.js", "text/javascript"),
    "screen.css": (HERE, "screen.css", "text/css"),
    "screen.js": (HERE, "screen.js", "text/javascript"),
    "icon.svg": (HERE, "icon.svg", "image/svg+xml"),
    "plotly.js": ("plotly", "package_data/plotly.min.js", "text/javascript"),
}
LEVEL = 4  # of gzip: 4.8 MB become 1.5 MB in 0.07 s; the highest level gains 4 % more in 0.18 s
YEAR = 31_536_000  # seconds
_OWN_STYLE = re.compile(rb'document\.getElementById\("([0-9a-f]{64})"\)')


class StaticFile(NamedTuple):
    """A file as it is sent."""

    type: str
    zipped: bytes
    version: str  # of what it has
    style_id: str  # see `style_id`


@functools.cache
def read(name: str) -> StaticFile:
    """One of `FILES`. Raises KeyError for another one."""
    package, file, type = FILES[name]
    text = resources.files(package).joinpath(file).read_bytes()
    style = _OWN_STYLE.search(text)
    version = hashlib.sha256(text).hexdigest()[:12]
    return StaticFile(type, gzip.compress(text, LEVEL, mtime=0), version, "" if style is None else style[1].decode())


def place(name: str) -> str:
    """Where it is, with its version."""
    return f"static/{name}?v={read(name).version}"


def style_id() -> str:
    """The id by which Plotly finds whether its style for maps, which the content policy refuses, is there already."""
    return read("plotly.js").style_id


def response(name: str, request: Request) -> Response:
    """What answers a request for one of `FILES`."""
    file = read(name)
    new = request.query_params.get("v") == file.version
    kept = f"private, max-age={YEAR}, immutable" if new else "no-cache"
    headers = {"Cache-Control": kept, "ETag": f'"{file.version}"', "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(file.zipped), media_type=file.type, headers=headers)
    return Response(file.zipped, media_type=file.type, headers=headers | {"Content-Encoding": "gzip"})
