"""What the commands that serve a ledger to a browser or a program take alike: where they listen."""

from collections.abc import Callable
from typing import Annotated, TypeAlias

import typer

Port: TypeAlias = Annotated[int, typer.Option(help="Port on which it answers.", min=1, max=65535)]
Host: TypeAlias = Annotated[
    str, typer.Option(help="Address on which it listens; another one than this needs DITHER_TOKEN.")
]
Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--name", help="Name by which it is reached, such as bandit.example.org; may be repeated.", show_default=False
    ),
]


def told(host: str, port: int) -> Callable[[], None]:
    """What says where it listens, once it does."""
    from dither.cli.terminal import console

    return lambda: console().print(f"http://{host}:{port}  (Ctrl-C ends it)", highlight=False)
