"""A bake-off in one small text file: every shuffle's loss, so that its tables and pictures can be made again.

    bakeoff.json   sets (name, rows, arms, dim, worst, random, rounds), algorithms, and loss (S, R, A)

Numbers have five digits. It also says which code made the runs, with which versions, and where.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dither.algorithms import Spec
from dither.base import files
from dither_bench.define.bake_sets import SetFacts
from dither_bench.define.panels import Figure, Panel, reference
from dither_bench.judge import duel_words, duels, set_losses, tables
from dither_bench.judge.profiles import ProfileScores
from dither_bench.judge.set_losses import SetLosses
from dither_bench.keep import provenance
from dither_bench.keep.asked import FigureRequest
from dither_bench.keep.store import Store

NAME = "bakeoff"
DIGITS = 5


@dataclass(frozen=True)
class BakeSummary:
    """A bake-off as it was run."""

    losses: SetLosses
    base: str  # the algorithm that the others are compared with
    seed: int
    title: str
    code: Mapping[str, tuple[str, ...]]  # algorithm -> fingerprints of the codes that ran it
    versions: tuple[str, ...]
    processor: str
    day: str

    @property
    def figure(self) -> Figure:
        """The figure, whose panels know their names and rounds alone."""
        specs = tuple(map(Spec.shown, self.losses.algorithms))
        rounds = self.losses.rounds.tolist()
        panels = tuple(
            Panel(of.name, {"name": NAME}, T, specs, reference=self.base)
            for of, T in zip(self.losses.sets, rounds, strict=True)
        )
        return Figure(NAME, self.title, panels, runs=self.losses.shuffles)

    @property
    def scores(self) -> ProfileScores:
        """The regrets, as a profile takes them."""
        of = self.losses
        worst = np.array([one.worst for one in of.sets])
        regret = (of.loss * (of.rounds * worst)[:, None, None]).transpose(2, 0, 1)
        figure = self.figure
        names = tuple(panel.name for panel in figure.panels)
        return ProfileScores(regret, regret[of.index(self.base)], figure.algorithms, names, ())

    @property
    def table(self) -> list[list[str]]:
        """The rows of the table of the page, the heads first; the best ratio first."""
        heads = [
            "loss",
            "normalised",
            "ratio",
            "largest",
            f"better–worse than {self.base}",
            "t: lower–higher",
            "median",
        ]
        rows = [["", *heads]]
        rows.append(["---"] * len(rows[0]))
        for row in self.losses.table().sort("ratio", maintain_order=True).iter_rows(named=True):
            name = row["algorithm"]
            against = ["–"] * 3
            if name != self.base:
                duel, size = duels.duel(self.losses, name, self.base), duels.sizes(self.losses, name, self.base)
                against = [f"{duel.wins}–{duel.losses}", f"{size.lower}–{size.higher}", f"{100 * size.median:+.1f} %"]
            numbers = [f"{row['loss']:.3f}", f"{row['normalised']:.3f}", f"{row['ratio']:.2f}", f"{row['largest']:.2f}"]
            rows.append([f"`{name}`", *numbers, *against])
        return rows

    @property
    def says(self) -> list[str]:
        """What it says, in sentences."""
        return list(duel_words.sentences(self.losses, self.base))


def of_request(request: FigureRequest, store: Store, *, processor: str) -> BakeSummary:
    """The summary of what is stored of a bake-off."""
    figure = request.figure
    curves = tables.curves(figure, store, seed=request.seed, codes=request.codes)
    origin = provenance.of(request, store)
    code: dict[str, dict[str, None]] = {}
    for (_, name), codes in origin.codes.items():
        code.setdefault(name, {}).update(dict.fromkeys(codes))
    return BakeSummary(
        set_losses.of_curves(figure, curves),
        str(reference(figure.panels[0])),
        request.seed,
        figure.title,
        {name: tuple(codes) for name, codes in code.items()},
        origin.versions,
        processor,
        origin.created[1].partition(" ")[0] if origin.created else "",
    )


def write(summary: BakeSummary, folder: Path) -> Path:
    """Write it as bakeoff.json."""
    of = summary.losses
    head = {name: getattr(summary, name) for name in ("base", "seed", "title", "versions", "processor", "day", "code")}
    sets = [asdict(one) | {"rounds": int(T)} for one, T in zip(of.sets, of.rounds, strict=True)]
    loss = [[[float(f"{x:.{DIGITS}g}") for x in row] for row in rows] for rows in of.loss.tolist()]
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in head.items()]
    lines.append(f'"algorithms": {json.dumps(of.algorithms, ensure_ascii=False)}')
    lines += [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"
        for name, rows in (("sets", sets), ("loss", loss))
    ]
    return files.text(folder / f"{NAME}.json", "{\n" + ",\n".join(lines) + "\n}\n")


def read(path: Path) -> BakeSummary:
    """The summary in a file. Raises ValueError where it is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
        rounds = np.array([row.pop("rounds") for row in data["sets"]])
        sets = tuple(SetFacts(**row) for row in data["sets"])
        losses = SetLosses(np.array(data["loss"], dtype=float), rounds, sets, tuple(data["algorithms"]))
        if losses.loss.shape[::2] != (len(sets), len(losses.algorithms)):
            raise ValueError(f"losses of shape {losses.loss.shape}")
        code = {name: tuple(codes) for name, codes in data["code"].items()}
        head = (data["base"], data["seed"], data["title"], code, tuple(data["versions"]))
        return BakeSummary(losses, *head, data["processor"], data["day"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no bake-off ({error!r}): make it anew with 'dither gallery'") from None
