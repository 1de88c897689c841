"""Where the results of a figure come from: settings, codes, versions, processors, seed, runs and time."""

from dataclasses import dataclass
from typing import Any

from dither_bench.keep.asked import Request
from dither_bench.keep.cells import of_panel
from dither_bench.keep.store import Store

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
    algorithms: tuple[Configured, ...]
    versions: tuple[str, ...]  # each set of versions once
    processors: tuple[str, ...]
    created: tuple[str, str] | None  # the times of the first and of the last file, UTC; None where there is none
    accepted: tuple[str, ...]  # algorithms with runs of other code than that of the request


def of(request: Request, store: Store) -> Provenance:
    """Read it off all files that the request takes results from."""
    files: list[dict[str, Any]] = []
    algorithms: dict[str, Configured] = {}
    accepted: dict[str, None] = {}
    for panel in request.figure.panels:
        for name, cell in of_panel(panel, seed=request.seed).items():
            codes = request.codes.get(cell.key)
            made = store.about(cell, codes)
            files += made
            if made and name not in algorithms:
                own = tuple(dict.fromkeys(about["code"] or NOT_RECORDED for about in made))
                algorithms[name] = Configured(name, cell.algorithm.preset, own, made[0]["model"], made[0]["policy"])
            if codes and any(about["code"] != codes[0] for about in made):
                accepted[name] = None
    times = sorted(about["created"] for about in files)
    return Provenance(
        seed=request.seed,
        algorithms=tuple(algorithms.values()),
        versions=_each(", ".join(f"{k} {v}" for k, v in about["versions"].items()) for about in files),
        processors=_each(about.get("processor", NOT_RECORDED) for about in files),
        created=(_minute(times[0]), _minute(times[-1])) if times else None,
        accepted=tuple(accepted),
    )


def _each(found: Any) -> tuple[str, ...]:
    return tuple(sorted(set(found)))


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")
