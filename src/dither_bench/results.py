"""What a comparison found, in Python: tables, a picture, files, and the code that made it.

`compare` makes them (module `comparing`), and `Comparison.of` makes them of what `simulate` returned.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from dither.algorithms import Spec
from dither.base import files, notebook
from dither.simulation.simulate import Results
from dither_bench.define.figures import from_data, to_data
from dither_bench.define.panels import Figure, Panel, reference
from dither_bench.judge import tables, words
from dither_bench.keep import asked, provenance
from dither_bench.keep.store import STORE, Store, parquet, versions

ROWS, ABOUT = "results.parquet", "results.json"
Code = Mapping[str, tuple[str, ...]]  # name of an algorithm -> the fingerprints of the code of its runs; () for unknown


def labelled(labels: Iterable[Any]) -> tuple[Spec, ...]:
    """What stands for the algorithms of these labels in tables, where each has the name of its label.

    Raises TypeError for a label that is no text, and ValueError for one that a table would write otherwise.
    """
    names: dict[Spec, str] = {}
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(f"the label of an algorithm is a text, got {label!r}: write {str(label)!r}")
        spec = Spec.shown(label)
        if not label.strip() or str(spec) != label:
            raise ValueError(f"the label {label!r} would stand as {str(spec)!r} in tables: give another label")
        if spec in names:
            raise ValueError(f"the labels {names[spec]!r} and {label!r} name the same settings: give other labels")
        names[spec] = label
    return tuple(names)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What algorithms did in the same environment, on the same contexts and rewards.

    All tables are polars frames, and `to_pandas` makes one of pandas. Its name in `dither.experiments` is `Results`.
    """

    figure: Figure  # what was run
    curves: pl.DataFrame  # columns panel, algorithm, run, round, regret: cumulative, of the means
    seed: int
    code: Code  # results of one fingerprint were made by the same code; a comment does not change it
    versions: Mapping[str, str] = field(default_factory=versions)  # of the packages that the numbers may depend on

    @classmethod
    def of(
        cls, results: Results, *, panel: str = "", env: Mapping[str, Any] | None = None, code: Code | None = None
    ) -> "Comparison":
        """Of what `dither.simulate` returned.

        panel : what the comparison is called; env : the environment as data; code : as of the field
        """
        T, specs = int(results.rounds[-1]), labelled(results.algorithms)
        of = Panel(panel or f"simulated, T={T}", env or {"name": "simulated"}, T, specs, chance=results.chance)
        figure = Figure("compare", "Comparison", (of,), runs=len(results.runs))
        curves = results.table().select(pl.lit(of.name).alias("panel"), pl.all())
        return cls(figure, curves, results.seed, code or dict.fromkeys(results.algorithms, ()))

    @classmethod
    def load(cls, folder: str | Path, figure: str | None = None) -> "Comparison":
        """Of a folder that `save` wrote, or that the commands `compare` and `reproduce` filled.

        figure : which figure of a folder of a command; None: the one that it has

        Raises ValueError where the folder holds no results, or several figures and none is named.
        """
        folder = Path(folder)
        if not (folder / ABOUT).exists():
            return cls._stored(folder, figure)
        try:
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            curves = pl.read_parquet(folder / ROWS)
            code = {name: tuple(of) for name, of in about["code"].items()}
            return cls(from_data(about["figure"]), curves, about["seed"], code, about["versions"])
        except (ValueError, KeyError, TypeError, OSError, pl.exceptions.PolarsError) as error:
            raise ValueError(f"{folder} holds no whole results ({error!r}): save them again") from None

    @classmethod
    def _stored(cls, folder: Path, name: str | None) -> "Comparison":
        requests = {request.figure.name: request for request in asked.figures(folder, only=name)}
        if len(requests) != 1:
            has = "has none"
            if requests:
                has = f"has {', '.join(requests)}: name one, as in figure={next(iter(requests))!r}"
            one = "one figure" if name is None else f"one figure {name}"
            raise ValueError(f"{folder} must hold results of {one}, and {has}")
        (request,) = requests.values()
        return cls.stored(folder, request.figure, seed=request.seed)

    @classmethod
    def stored(cls, folder: Path, figure: Figure, *, seed: int) -> "Comparison":
        """Of this figure, or a part of it, in a folder of a command that was asked for it."""
        (request,) = asked.figures(folder, only=figure.name, seed=seed)
        store = Store(folder / STORE)
        origin = provenance.of(asked.FigureRequest(figure, seed, request.codes), store)
        code: dict[str, dict[str, None]] = {}
        for (_, name), codes in origin.codes.items():
            code.setdefault(name, {}).update(dict.fromkeys(codes))
        curves = tables.curves(figure, store, seed=seed, codes=request.codes)
        return cls(figure, curves, seed, {name: tuple(codes) for name, codes in code.items()}, origin.newest)

    def values(self) -> pl.DataFrame:
        """The regret of each algorithm at the horizon: mean, standard error, runs and more (`tables.values`)."""
        return tables.values(self.figure, self.curves)

    def differences(self) -> pl.DataFrame:
        """The difference of each algorithm from the reference, paired by run, with its 95 % interval.

        The reference is the chosen one, or else LinFP, GLMFP or DeepFP, or else the first algorithm.
        """
        return tables.differences(self.figure, self.curves)

    def summary(self) -> pl.DataFrame:
        """Every recorded round: columns panel, algorithm, round, mean, se, low, high (the quartiles), runs."""
        return tables.summary(self.curves)

    def plot(self, **look: Any) -> Any:
        """The curves as a matplotlib figure: `.savefig(path)` writes it.

        look : band, log, width and names, as `pictures.PictureLook` takes them; title, caption, labels (algorithm ->
            label), xlabel, ylabel, xlim, ylim, xscale and yscale, as `frames.PictureFrame` does
        """
        from dither_bench.show import pictures, plots  # matplotlib takes a second to import

        return plots.draw(self.figure, self.curves, pictures.PictureLook(**look))

    def to_polars(self) -> pl.DataFrame:
        """A row for each algorithm, run and recorded round."""
        return self.curves

    def to_pandas(self) -> Any:
        """The same as a frame of pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError("this needs pandas, which is not installed: install it with pip") from None
        return pandas.DataFrame({column.name: column.to_numpy() for column in self.curves})

    def save(self, folder: str | Path) -> Path:
        """Write all of it into the folder, for `load`; return the folder."""
        folder = Path(folder)
        about = {"figure": to_data(self.figure), "seed": self.seed}
        about |= {"code": {name: list(of) for name, of in self.code.items()}, "versions": dict(self.versions)}
        content = parquet(self.curves)
        files.replace(folder / ROWS, lambda file: file.write(content), parents=True)
        files.text(folder / ABOUT, json.dumps(about, indent=1, ensure_ascii=False))
        return folder

    def __repr__(self) -> str:
        values, gaps = self.values(), self.differences()
        return "\n".join(line for panel in self.figure.panels for line in self._lines(panel, values, gaps))

    def _repr_html_(self) -> str:
        """What a notebook shows: a table for each panel, and what it says."""
        values, gaps = self.values(), self.differences()
        return "\n".join(self._html(panel, values, gaps) for panel in self.figure.panels)

    def _html(self, panel: Panel, values: pl.DataFrame, differences: pl.DataFrame) -> str:
        section = words.section(panel, panel.rounds, values, differences)
        base = str(reference(panel))
        rows = []
        for row in section.rows:
            gap = words.interval(row["gap"]) if row["gap"] else "reference" * (row["algorithm"] == base)
            rows.append((row["algorithm"], words.with_error(row), row["runs"], gap))
        heads = ["algorithm", f"regret at round {panel.rounds:,} ± se", "runs", f"difference to {base} [95 %]"]
        title = f"{panel.name}: {words.SHOWS[self.figure.shows]}, seed {self.seed}"
        return notebook.table(heads, rows, title=title, says=[section.verdict])

    def _lines(self, panel: Panel, values: pl.DataFrame, differences: pl.DataFrame) -> list[str]:
        """A line for each algorithm of a panel, and what they say."""
        section = words.section(panel, panel.rounds, values, differences)
        wide = max((len(row["algorithm"]) for row in section.rows), default=0)
        lines = [f"{panel.name}: {words.SHOWS[self.figure.shows]}, seed {self.seed}"]
        for row in section.rows:
            than = f"   {words.interval(row['gap'])} against {reference(panel)}" if row["gap"] else ""
            lines.append(f"  {row['algorithm']:{wide}}  {words.with_error(row)}, {row['runs']} runs{than}")
        return [*lines, section.verdict]
