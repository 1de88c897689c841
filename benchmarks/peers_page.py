"""The page docs/peers.md and its picture, from the lines of peers.jsonl: `python benchmarks/peers.py --page`."""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs" / "peers.md", ROOT / "docs" / "peers.png"
STORE = Path(__file__).with_name("peers.jsonl")
ARMS, DIMS = (5, 10, 100, 1000), (10, 40, 200)
CELLS = [(K, d) for K in ARMS for d in DIMS]
LIMIT = 100_000.0  # µs, at which `peer_players.py` stops
PLAIN = (("DITHER_COMPILED", "0"),)
KINDS = {
    "whole": "joint, with a covariance",
    "each": "joint, a scale for each feature",
    "disjoint": "disjoint, with covariances",
}
Line = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A library, or a way to use this one, and what the page says of it."""

    name: str
    package: str
    kind: str  # of KINDS
    model: str
    takes: str  # the form of a request
    propensity: str
    player: str = ""  # of `peer_players.py`, where it has another name
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def ours(self) -> bool:
        """Whether it is this library."""
        return self.package == "dither"


def _plain(name: str, of: Peer) -> Peer:
    """The same without the compiled step."""
    return Peer(name, of.package, of.kind, "the same, `DITHER_COMPILED=0`", of.takes, of.propensity, of.name, PLAIN)


_FOUND = Peer("dither", "dither", "whole", "`LinFP(dim=d)`, which finds its scale", "array", "exact")
_SET = Peer("dither, scale set", "dither", "whole", "`LinFP(dim=d, sigma=1.0, lam=1.0)`", "array", "exact")
_SLOTS = Peer("dither, slots", "dither", "disjoint", "`LinFP(dim=d, disjoint=K)`", "array", "exact")
ALL = (
    _FOUND,
    _plain("dither in NumPy", _FOUND),
    _SET,
    _plain("dither in NumPy, scale set", _SET),
    Peer("bayesianbandits", "bayesianbandits", "whole", "Thompson, a regressor that all arms share", "array", "none"),
    Peer("coba", "coba", "whole", "LinUCB on the features of actions", "lists", "of ties alone"),
    Peer("gittins", "gittins", "each", "ε-greedy on a hashed diagonal ridge, in Rust", "dicts", "exact, of its ε"),
    Peer("Vowpal Wabbit", "vowpalwabbit", "each", "ε-greedy on hashed adaptive SGD, in C++", "text", "exact, of its ε"),
    _SLOTS,
    _plain("dither in NumPy, slots", _SLOTS),
    Peer("contextualbandits", "contextualbandits", "disjoint", "LinTS, with Cython", "array", "none"),
    Peer("mabwiser", "mabwiser", "disjoint", "LinUCB, inverted anew at each reward", "array", "none"),
    Peer("river", "river", "disjoint", "LinUCB of Bayesian regressions", "dict", "none"),
)
BY_NAME = {peer.name: peer for peer in ALL}


def stored() -> list[Line]:
    """The committed lines: the first says what was measured, and where."""
    return [json.loads(line) for line in STORE.read_text(encoding="utf-8").splitlines()] if STORE.exists() else []


def times(lines: Iterable[Line]) -> dict[tuple[str, int, int], float]:
    """(name, K, d) -> µs, the lower of the passes; infinity where a limit was met."""
    lowest: dict[tuple[str, int, int], float] = {}
    for line in lines:
        if line["what"] == "cell":
            where = line["name"], line["K"], line["d"]
            lowest[where] = min(lowest.get(where, math.inf), line.get("us", math.inf))
    return lowest


def limits(lines: Iterable[Line]) -> dict[tuple[str, int, int], str]:
    """(name, K, d) -> the limit that it met."""
    return {(line["name"], line["K"], line["d"]): line["over"] for line in lines if "over" in line}


def peers_of(lines: Iterable[Line], *kinds: str) -> list[Peer]:
    """Those of some kinds (all where none is named) that were measured, in the order of `ALL`."""
    names = {line["name"] for line in lines if line["what"] == "cell"}
    return [peer for peer in ALL if peer.name in names and (not kinds or peer.kind in kinds)]


def number(x: float) -> str:
    """Three digits: 4.93, 86.1, 1,960."""
    if x < 99.95:
        return f"{x:#.3g}"
    digits = len(str(int(x)))
    return f"{round(x, 3 - digits):,.0f}"


def ratio(x: float) -> str:
    """Two digits: 0.19, 1.1, 23, 120."""
    return f"{float(f'{x:.2g}'):,.0f}" if x >= 9.95 else f"{x:.1f}" if x >= 0.995 else f"{x:#.2g}"


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def table(lines: Sequence[Line], *kinds: str) -> str:
    """Time of a decision with its reward, a row for each K and d, a column for each way; in brackets over the first."""
    peers, us, over = peers_of(lines, *kinds), times(lines), limits(lines)

    def text(peer: Peer, K: int, d: int) -> str:
        where = peer.name, K, d
        if where not in us:
            return ""
        if where in over:
            return f"over {over[where]}"
        base = us.get((peers[0].name, K, d), math.inf)
        return number(us[where]) + ("" if peer is peers[0] else f" ({ratio(us[where] / base)})")

    rows = [[f"{K:,}", str(d), *(text(peer, K, d) for peer in peers)] for K, d in CELLS]
    return _rows(["K", "d", *(peer.name for peer in peers)], rows)


def first(lines: Sequence[Line], name: str, rivals: Sequence[Peer]) -> str:
    """In how many cells a way to use this library takes the least time; who takes least elsewhere, and what share."""
    us = times(lines)
    cells = [(K, d) for K, d in CELLS if (name, K, d) in us]
    losses = []
    for K, d in cells:
        best = min(rivals, key=lambda peer: us.get((peer.name, K, d), math.inf))
        theirs = us.get((best.name, K, d), math.inf)
        if theirs < us[name, K, d]:
            losses.append(f"{K:,} × {d} ({best.name}, {ratio(theirs / us[name, K, d])})")
    if not losses:
        return f"`{name}` is first in all {len(cells)} cells."
    ahead = f"`{name}` is first in {len(cells) - len(losses)} of {len(cells)} cells"
    return f"{ahead}; not in {', '.join(losses)}."


def verdicts(lines: Sequence[Line]) -> str:
    """Who is first, among whom."""
    measured = peers_of(lines)
    ways = [peer for peer in measured if peer.ours]

    def rivals(*kinds: str) -> list[Peer]:
        return [peer for peer in peers_of(lines, *kinds) if not peer.ours]

    groups = [
        ("whole", ("whole",), "the joint linear models with a covariance"),
        ("whole", ("whole", "each"), "all joint linear models"),
        ("disjoint", ("disjoint",), "the disjoint models"),
        ("whole", (), "all peers, whatever their model"),
    ]
    out = []
    for kind, kinds, what in groups:
        others, mine = rivals(*kinds), [way for way in ways if way.kind == kind]
        if others and mine:
            out.append(f"**Among {what}** ({', '.join(peer.name for peer in others)}):")
            out.append("\n".join(f"- {first(lines, way.name, others)}" for way in mine))
    return "\n\n".join(out)


def models(lines: Sequence[Line]) -> str:
    """What each is, and how much it learnt."""
    versions = lines[0]["versions"]
    shares = {line["name"]: line["share"] for line in lines if line["what"] == "check"}
    rows = [
        [
            peer.name,
            versions[peer.package],
            KINDS[peer.kind],
            peer.model,
            peer.takes,
            peer.propensity,
            f"{shares[peer.name]:.2f}" if peer.name in shares else "",
        ]
        for peer in peers_of(lines)
    ]
    return _rows(["", "version", "kind of model", "what was called", "request", "propensity", "regret"], rows)


STATES = ((100, 40), (1000, 40), (1000, 200))


def costs(lines: Sequence[Line]) -> str:
    """Start, and memory there and in some cells."""
    rows = []
    for peer in peers_of(lines):
        starts = [line for line in lines if line["what"] == "start" and line["name"] == peer.name]
        row = [peer.name, f"{min(line['seconds'] for line in starts):.2f}" if starts else ""]
        row.append(f"{statistics.median(line['memory'] for line in starts):,.0f}" if starts else "")
        for K, d in STATES:
            peaks = [
                line["memory"]
                for line in lines
                if line["what"] == "cell" and (line["name"], line["K"], line["d"]) == (peer.name, K, d)
                if "memory" in line
            ]
            row.append(number(max(peaks)) if peaks else "")
        rows.append(row)
    return _rows(["", "start, s", "MB there", *(f"MB at K = {K:,}, d = {d}" for K, d in STATES)], rows)


def agreement(lines: Sequence[Line]) -> str:
    """How far the passes are from each other."""
    both: dict[tuple[str, int, int], list[float]] = {}
    for line in lines:
        if line["what"] == "cell" and "us" in line:
            both.setdefault((line["name"], line["K"], line["d"]), []).append(line["us"])
    apart = sorted(max(pair) / min(pair) - 1 for pair in both.values() if len(pair) > 1)
    twice = f"{len(apart)} of {len(both)} cells were measured twice."
    if not apart:
        return twice
    middle, most = statistics.median(apart), apart[int(0.9 * len(apart))]
    return (
        f"{twice} The two differ by {100 * middle:.0f} % in the middle, by {100 * most:.0f} % or more in one of ten,"
        f" by {100 * apart[-1]:.0f} % at most."
    )


def circumstances(lines: Sequence[Line]) -> str:
    """Where and when, and how much the numbers are to be believed."""
    about, loads = lines[0], [line["load"] for line in lines[1:]]
    step = f"The compiled step was there ({about['arithmetic']})"
    if about["arithmetic"] == "numpy":
        step = "The compiled step was not there: `dither` is NumPy alone"
    where = f"{about['processor']}, {about['cores']} cores, Python {about['python']}"
    return (
        f"- {where}, NumPy {about['versions']['numpy']} for all, {about['date']}.\n"
        f"- The load was {min(loads)} to {max(loads)}.\n- {step}.\n- {agreement(lines)}"
    )


PARTS = {
    "verdicts": verdicts,
    "joint": lambda lines: table(lines, "whole", "each"),
    "disjoint": lambda lines: table(lines, "disjoint"),
    "models": models,
    "costs": costs,
    "circumstances": circumstances,
}


def page(lines: Sequence[Line], text: str) -> str:
    """The text of the page, in which each part between its marks is made anew."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{PAGE.name}: part {name} has not one mark {begin.strip()} and one {end.strip()}")
        before, _, rest = text.partition(begin)
        text = before + begin + part(lines) + end + rest.partition(end)[2]
    return text


def described(lines: Sequence[Line]) -> dict[str, float | None]:
    """The numbers of the picture, which it carries."""
    return {f"{name} {K} {d}": round(us, 1) if us < math.inf else None for (name, K, d), us in times(lines).items()}


def draw(lines: Sequence[Line], path: Path = PICTURE) -> None:
    """Write the picture."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    from dither.base import drawing

    us = times(lines)
    with mpl.rc_context(drawing.STYLE):
        canvas = Canvas(figsize=(10, 6.6), layout="constrained")
        rows = {"joint": ("whole", "each"), "disjoint": ("disjoint",)}
        for part, (title, kinds) in zip(canvas.subfigures(2, 1), rows.items(), strict=True):
            axes, peers = part.subplots(1, len(DIMS), sharex=True, sharey=True), peers_of(lines, *kinds)
            names = dict.fromkeys(
                peer.player or peer.name for peer in peers
            )  # dotted lines have the colour of the whole
            colours = dict(zip(names, drawing.PALETTE, strict=False))
            for peer in peers:
                look: Any = dict(linewidth=2.6 if peer.ours else 1.4, marker="o" if peer.ours else "s", markersize=4)
                look |= dict(color=colours[peer.player or peer.name], linestyle=":" if peer.environment else "-")
                for ax, d in zip(axes, DIMS, strict=True):
                    t = [us.get((peer.name, K, d), math.nan) for K in ARMS]
                    ax.plot(ARMS, [math.nan if x == math.inf else x for x in t], **look, label=peer.name)
                    ax.plot(ARMS, [LIMIT if x == math.inf else math.nan for x in t], "x", color=look["color"])
            for ax, d in zip(axes, DIMS, strict=True):
                ax.set(xscale="log", yscale="log", ylim=(2, LIMIT * 1.3), xlabel="arms", title=f"{title}, d = {d}")
                ax.set_xticks(ARMS, [f"{K:,}" for K in ARMS])
                ax.minorticks_off()
            axes[0].set_ylabel("µs")
            part.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=9)
        metadata = {"Description": json.dumps(described(lines)), "Software": None}
        canvas.savefig(path, dpi=110, metadata=metadata)


def write(lines: Sequence[Line]) -> None:
    """The page and its picture."""
    PAGE.write_text(page(lines, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw(lines)
