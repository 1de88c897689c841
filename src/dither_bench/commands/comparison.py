"""The command `compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dither import datasets
from dither.algorithms import grids, spec
from dither.base import errors
from dither.cli.app import expanded
from dither_bench.commands import running
from dither_bench.commands.options import Computing, DrawnBy, Reference, Showing, Storing, Trying, keeping
from dither_bench.define import comparisons, environments, figures

_LINEAR = environments.describe("linear")


@dataclass(frozen=True)
class EnvironmentChoice:
    """The environment: its name, and its settings, which are those that are not None."""

    env: Annotated[
        str | None,
        typer.Option(
            help=f"Environment: {errors.either(environments.ENVIRONMENTS)}; FILE.py:NAME for one of your own.",
            show_default="linear",
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="A setting of the environment that has no option of its own here; may be repeated.",
            show_default=False,
        ),
    ] = None
    data: Annotated[
        str | None, typer.Option(help="A table as the environment: a CSV or Parquet file, or openml:ID.")
    ] = None
    target: Annotated[
        str | None, typer.Option(help="Column of labels (table).", show_default="openml:ID: the one stated there")
    ] = None
    missing: Annotated[
        str | None, typer.Option(help="Missing values (table): refuse, impute or drop.", show_default="refuse")
    ] = None
    preprocessing: Annotated[
        str | None,
        typer.Option(
            help=f"Of the features (table and data sets): {errors.either(datasets.PREPROCESSING)}.",
            show_default="standard",
        ),
    ] = None
    dim: Annotated[int | None, typer.Option(help="Features d (no data set).", show_default=str(_LINEAR["dim"]))] = None
    arms: Annotated[int | None, typer.Option(help="Arms K (no data set).", show_default=str(_LINEAR["arms"]))] = None
    contexts: Annotated[
        int | None, typer.Option(help="Fixed sets of arms (no data set).", show_default="new arms each round")
    ] = None
    norm: Annotated[
        float | None, typer.Option(help="Length of θ* (no data set).", show_default=str(_LINEAR["norm"]))
    ] = None
    noise: Annotated[
        float | None, typer.Option(help="Sd of the reward noise (linear).", show_default=str(_LINEAR["noise"]))
    ] = None
    scale: Annotated[
        str | None, typer.Option(help="Scaling of the features (digits): standard or unit.", show_default="unit")
    ] = None

    @property
    def described(self) -> dict[str, Any]:
        """The environment as data."""
        settings = {name: value for name, value in vars(self).items() if value is not None}
        name, options = settings.pop("env", None), settings.pop("option", [])
        for setting, value in spec.settings(",".join(options)).items():
            if setting in settings:
                raise ValueError(f"{setting} is given twice: by --{setting} and by --with")
            settings[setting] = value
        table = settings.get("data") is not None
        if table and name not in (None, *environments.CHECKSUMS):
            raise ValueError(f"--data is an environment of its own: leave out --env {name}")
        return environments.describe(name or ("table" if table else "linear"), **settings)


def _refuse_beside(
    config: Path, algorithms: list[str] | None, world: EnvironmentChoice, trying: Trying, reference: str | None
) -> None:
    """Refuse what a file of comparisons says itself."""
    asked = dict(vars(world)) | dict(vars(trying)) | {"reference": reference}
    beside = [f"--{'with' if name == 'option' else name}" for name, value in asked.items() if value]
    if beside or algorithms:
        first = beside[0] if beside else " ".join(algorithms or [])
        raise ValueError(f"{config} says what is compared: leave out {first}, or write it there")


@expanded
@keeping
def compare(
    *,
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            show_default=False,
            metavar="ALGORITHM...",
            help="NAME, NAME:setting=value,... or, tried one by one, 'NAME:setting=value|value'; FILE.py:NAME for a "
            "NAME of one of your own.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="A set of comparisons in a file, in place of algorithms and an environment: docs/bench.md.",
            show_default=False,
        ),
    ] = None,
    world: EnvironmentChoice,
    trying: Trying,
    reference: Reference = None,
    rounds: Annotated[int | None, typer.Option(help="Horizon.", show_default=str(comparisons.ROUNDS))] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Runs of each algorithm; what is stored counts.", show_default=str(comparisons.RUNS)),
    ] = None,
    computing: Computing,
    drawn_by: DrawnBy,
    storing: Storing,
    showing: Showing,
) -> None:
    """Compare algorithms on the same contexts and rewards with a reference: LinFP or GLMFP, or else the first."""
    how: dict[str, Any] = dict(look=showing.look, earlier=showing.earlier, out=storing.out, seed=computing.seed)
    how |= computing.how | dict(block=storing.block, accept=showing.accept)
    if config is not None:
        _refuse_beside(config, algorithms, world, trying, reference)
        figure = drawn_by.of(comparisons.read(config, rounds=rounds, runs=runs))
        running.show(figure, runs=figure.runs, **how)
        return
    if not algorithms:
        raise ValueError("name at least one algorithm to compare, or a file of comparisons: --config FILE.toml")
    rounds, runs = comparisons.ROUNDS if rounds is None else rounds, comparisons.RUNS if runs is None else runs
    how["runs"] = runs
    swept = trying.sweep or trying.fair or trying.tries is not None
    if swept or any(grids.Grid.parse(text).axes for text in algorithms):
        if drawn_by != DrawnBy():
            raise ValueError("a search draws from streams, in NumPy: leave out --chance and --device")
        from dither_bench.commands import sweeping  # SciPy's statistics take their time to import

        sweeping.show(world.described, algorithms, trying, rounds=rounds, reference=reference, **how)
        return
    figure = figures.adhoc(world.described, algorithms, rounds=rounds, runs=runs, reference=reference)
    running.show(drawn_by.of(figure), **how)
