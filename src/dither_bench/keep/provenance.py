"""Where the results of a figure come from: settings, codes, versions, processors, seed, runs and time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dither_bench.keep.asked import FigureRequest
from dither_bench.keep.store import Made, Store, of_panel

NOT_RECORDED = "not recorded"  # earlier versions of the store said less


@dataclass(frozen=True)
class Configured:
    """An algorithm as it ran in the first panel that has runs of it."""

    name: str
    preset: str
    codes: tuple[str, ...]  # fingerprints of the codes that made its runs
    model: str
    policy: str


@dataclass(frozen=True)
class Provenance:
    """What the files of a figure say about themselves."""

    seed: int
    chance: tuple[str, ...]  # what the runs of the panels are drawn by, each kind once
    algorithms: tuple[Configured, ...]
    codes: Mapping[tuple[str, str], tuple[str, ...]]  # panel and algorithm -> fingerprints of the codes of its runs
    versions: tuple[str, ...]  # each set of versions once
    newest: Mapping[str, str]  # the versions of the last file
    processors: tuple[str, ...]
    created: tuple[str, str] | None  # the times of the first and of the last file, UTC; None where there is none
    accepted: tuple[str, ...]  # algorithms with runs of other code than that of the request


def of(request: FigureRequest, store: Store) -> Provenance:
    """Read it off all files that the request takes results from."""
    files: list[Made] = []
    algorithms: dict[str, Configured] = {}
    accepted: dict[str, None] = {}
    codes: dict[tuple[str, str], tuple[str, ...]] = {}
    for panel in request.figure.panels:
        for name, cell in of_panel(panel, seed=request.seed).items():
            wanted = request.codes.get(cell.key)
            about = store.about(cell, wanted)
            files += about
            codes[panel.name, name] = of_cell = tuple(dict.fromkeys(file["code"] for file in about))
            if about and name not in algorithms:
                recorded = tuple(code or NOT_RECORDED for code in of_cell)
                how = (about[0]["model"], about[0]["policy"])
                algorithms[name] = Configured(name, cell.algorithm.preset, recorded, *how)
            if wanted and any(code != wanted[0] for code in of_cell):
                accepted[name] = None
    files.sort(key=lambda file: file["created"])
    return Provenance(
        seed=request.seed,
        chance=_each(panel.chance for panel in request.figure.panels),
        algorithms=tuple(algorithms.values()),
        codes=codes,
        versions=_each(", ".join(f"{k} {v}" for k, v in file["versions"].items()) for file in files),
        newest=files[-1]["versions"] if files else {},
        processors=_each(file.get("processor", NOT_RECORDED) for file in files),
        created=(_minute(files[0]), _minute(files[-1])) if files else None,
        accepted=tuple(accepted),
    )


def _each(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))


def _minute(file: Made) -> str:
    return file["created"][:16].replace("T", " ")
