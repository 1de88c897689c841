"""The commands that run and show experiments: `figures`, `reproduce`, `compare`, `report`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dither import datasets, errors
from dither.algorithms import spec
from dither.cli import analysis, inventory, render, terminal
from dither.experiments import asked, environments, figures, run, words
from dither.experiments.panels import Figure

Runs = Annotated[
    int | None, typer.Option(help="Runs of each algorithm; what is stored counts.", show_default="the figure's")
]
Seed = Annotated[int, typer.Option(help="Seed of all random streams.")]
Jobs = Annotated[int, typer.Option(help="Processes.")]
Block = Annotated[
    int | None,
    typer.Option(
        help="Runs computed at once and stored in one file: an interruption loses at most these. "
        f"If left out, up to {run.BLOCK * run.AT_ONCE} are computed at once, which is quickest, and {run.BLOCK} stand "
        "in a file.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option(help="Folder of results; an earlier one is added to.")]
Band = Annotated[str, typer.Option(help="Band of the plots: se (±1 standard error) or quantiles (quartiles).")]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept-other-code",
        help="Take stored runs as they are although other code made them; by default they are computed anew.",
    ),
]
Log = Annotated[bool, typer.Option("--log", help="Logarithmic axes.")]

_LINEAR = environments.describe("linear")


def list_figures(
    table: Annotated[
        bool, typer.Option("--table", help="Instead, the algorithms: where each is random, and what is known of it.")
    ] = False,
) -> None:
    """List what can be reproduced, with the time it takes."""
    (render.taxonomy if table else render.catalogue)(terminal.console())


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Figures, as 'dither figures' lists them.")],
    runs: Runs = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    block: Block = None,
    out: Out = Path("results"),
    panel: Annotated[list[str] | None, typer.Option(help="Only this panel, for example d=10; may be repeated.")] = None,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="Only this one, or another, for example LinFP:c=0.3; may be repeated.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Another horizon.", show_default="the paper's")] = None,
    accept: Accept = False,
    band: Band = "se",
    log: Log = False,
) -> None:
    """Reproduce figures: what is missing is computed, then tables and plots are made. Interrupt and resume at will."""
    drawn = [name for name in names if name in analysis.DRAWN]
    chosen = [
        figures.select(figures.find(name), panels=panel, algorithms=algorithm, rounds=rounds)
        for name in names
        if name not in drawn
    ]
    if drawn:
        analysis.theory(drawn, seed=seed, out=out / "theory")
    for figure in chosen:
        _run(figure, seed=seed, out=out, band=band, log=log, runs=runs, jobs=jobs, block=block, accept=accept)


def compare(
    algorithms: Annotated[list[str], typer.Argument(metavar="ALGORITHM...", help="NAME or NAME:setting=value,...")],
    env: Annotated[
        str | None,
        typer.Option(help=f"Environment: {inventory.either(environments.ENVIRONMENTS)}.", show_default="linear"),
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
    rounds: Annotated[int, typer.Option(help="Horizon.")] = 2000,
    runs: Annotated[int, typer.Option(help="Runs of each algorithm; what is stored counts.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = 1,
    block: Block = None,
    out: Out = Path("results"),
    accept: Accept = False,
    band: Band = "se",
    log: Log = False,
) -> None:
    """Compare algorithms on the same contexts and rewards with LinFP or GLMFP, or else with the first."""
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
    figure = figures.adhoc(environments.describe(name, **given), algorithms, rounds=rounds, runs=runs)
    _run(figure, seed=seed, out=out, band=band, log=log, runs=runs, jobs=jobs, block=block, accept=accept)


def write_report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("report.html"),
    band: Band = "se",
    log: Log = False,
) -> None:
    """Write one HTML file with all figures and tables of a folder of results; it needs nothing beside it."""
    from dither.cli import report

    terminal.written(terminal.console(), [report.write(folder, output, band=band, log=log)])


def _run(figure: Figure, *, seed: int, out: Path, band: str, log: bool, **how: Any) -> None:
    """Compute what is missing; show what was asked, and write what the folder then holds of the figure.

    how : runs, jobs, block and accept, as `run.reproduce` takes them
    """
    from dither.experiments import outputs, tables  # matplotlib takes a second to import

    errors.among("band", band, words.BANDS)
    console = terminal.console()
    of_codes: list[str] = []

    def tell_of_codes(sentence: str) -> None:
        of_codes.append(sentence)
        terminal.said(terminal.console(stderr=True), [sentence])  # before it takes its time

    try:
        with terminal.progress(figure.name) as tell:
            run.reproduce(figure, out=out, seed=seed, on_progress=tell, on_other_code=tell_of_codes, **how)
    except KeyboardInterrupt:
        terminal.interrupted(console, out)
        raise typer.Exit(130) from None
    (whole,) = asked.figures(out, only=figure.name)
    made = outputs.write(whole, out, band=band, log=log)
    values, differences = tables.values(figure, made.curves), tables.differences(figure, made.curves)
    render.results(console, figure, values, differences, seed=seed)
    terminal.said(console, of_codes)
    terminal.written(console, made.paths)
    terminal.said(console, filter(None, [words.earlier(figure, whole.figure)]))
