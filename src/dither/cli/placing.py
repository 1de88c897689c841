"""Where a command writes its page and its tables: folders that are missing are made, by `base.files`."""

from pathlib import Path


def fits(*, html: Path | None, out: Path | None = None) -> None:
    """Raise ValueError for places that cannot be written to, before any work. html : a file; out : a folder"""
    if html is not None and html.is_dir():
        raise ValueError(f"--html must name a file, and {html} is a folder: write --html {html / 'report.html'}")
    for option, folder in (("out", out), ("html", None if html is None else html.parent)):
        held = next((part for part in (folder, *folder.parents) if part.exists()), None) if folder else None
        if held is not None and not held.is_dir():
            raise ValueError(f"--{option} needs a folder, and {held} is a file: name another place")
