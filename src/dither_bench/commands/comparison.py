"""The command `compare`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dither import datasets
from dither.algorithms import grids, spec
from dither.cli import inventory
from dither.cli.computing import Backend, Cluster
from dither_bench.commands import running
from dither_bench.commands.options import (
    Accept,
    Band,
    Block,
    Called,
    Earlier,
    Fair,
    Formats,
    Jobs,
    Latex,
    Log,
    Out,
    Profile,
    Seed,
    Sweep,
    Title,
    Tries,
    Width,
)
from dither_bench.define import environments, figures
from dither_bench.show import pictures
from dither_bench.show.pictures import Look

_LINEAR = environments.describe("linear")


def compare(
    algorithms: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM...",
            help="NAME, NAME:setting=value,... or, tried one by one, 'NAME:setting=value|value'; FILE.py:NAME for a "
            "NAME of one of your own.",
        ),
    ],
    env: Annotated[
        str | None,
        typer.Option(
            help=f"Environment: {inventory.either(environments.ENVIRONMENTS)}; FILE.py:NAME for one of your own.",
            show_default="linear",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="A setting of the environment that has no option of its own here; may be repeated.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="A table as the environment: a CSV or Parquet file, or openml:ID.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of labels (table).", show_default="openml:ID: the one stated there")
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Missing values (table): refuse, impute or drop.", show_default="refuse")
    ] = None,
    preprocessing: Annotated[
        str | None,
        typer.Option(
            help=f"Of the features (table and data sets): {inventory.either(datasets.PREPROCESSING)}.",
            show_default="standard",
        ),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Features d (no data set).", show_default=str(_LINEAR["dim"]))] = None,
    arms: Annotated[int | None, typer.Option(help="Arms K (no data set).", show_default=str(_LINEAR["arms"]))] = None,
    contexts: Annotated[
        int | None, typer.Option(help="Fixed sets of arms (no data set).", show_default="new arms each round")
    ] = None,
    norm: Annotated[
        float | None, typer.Option(help="Length of θ* (no data set).", show_default=str(_LINEAR["norm"]))
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Sd of the reward noise (linear).", show_default=str(_LINEAR["noise"]))
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Scaling of the features (digits): standard or unit.", show_default="unit")
    ] = None,
    sweep: Sweep = None,
    tries: Tries = None,
    fair: Fair = False,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ALGORITHM",
            help="The algorithm that the others are compared with.",
            show_default="LinFP or GLMFP, or else the first",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Horizon.")] = 2000,
    runs: Annotated[int, typer.Option(help="Runs of each algorithm; what is stored counts.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    cluster: Cluster = None,
    block: Block = None,
    out: Out = Path("results"),
    accept: Accept = False,
    earlier: Earlier = False,
    band: Band = "se",
    log: Log = False,
    width: Width = None,
    title: Title = True,
    called: Called = "code",
    form: Formats = "png,pdf",
    latex: Latex = False,
    profile: Profile = False,
) -> None:
    """Compare algorithms on the same contexts and rewards with a reference: LinFP or GLMFP, or else the first."""
    look = Look(band, log, width, title, called, pictures.formats(form), latex, profile)
    given = {"dim": dim, "arms": arms, "contexts": contexts, "norm": norm, "noise": noise, "scale": scale}
    given |= {"data": data, "target": target, "missing": missing, "preprocessing": preprocessing}
    given = {k: v for k, v in given.items() if v is not None}
    for setting, value in spec.settings(",".join(option or [])).items():
        if setting in given:
            raise ValueError(f"{setting} is given twice: by --{setting} and by --with")
        given[setting] = value
    if data is not None and env not in (None, "table"):
        raise ValueError(f"--data is an environment of its own: leave out --env {env}")
    name = env or ("linear" if data is None else "table")
    described = environments.describe(name, **given)
    how: dict[str, Any] = dict(runs=runs, jobs=jobs, backend=backend, cluster=cluster, block=block, accept=accept)
    shown: dict[str, Any] = dict(look=look, earlier=earlier)
    if sweep or fair or tries is not None or any(grids.Grid.parse(text).axes for text in algorithms):
        from dither_bench.commands import sweeping  # SciPy's statistics take their time to import

        chosen = sweeping.Chosen(sweep or [], tries, fair)
        sweeping.show(
            described, algorithms, chosen, rounds=rounds, seed=seed, out=out, reference=reference, **shown, **how
        )
        return
    figure = figures.adhoc(described, algorithms, rounds=rounds, runs=runs, reference=reference)
    running.show(figure, seed=seed, out=out, **shown, **how)
