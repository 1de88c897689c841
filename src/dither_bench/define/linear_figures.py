"""The paper's figures of linear bandits, and the digits that scikit-learn bundles."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dither.algorithms import Spec, specs
from dither_bench.define.environments import describe
from dither_bench.define.panels import Figure, Note, Panel, over, with_shared

PAPER = specs("LinFP", "EpsGreedy", "LinUCB", "LinTS", "LinPHE", "RandLinUCB")
OURS = specs("Greedy")


def _linear(dims: Iterable[int], *, algorithms: tuple[Spec, ...], rounds: int = 20_000, **settings: Any):
    return over(dims, "linear", algorithms=algorithms, rounds=rounds, **settings)


def _told(sigma: float, *, algorithms: Iterable[Spec]) -> tuple[Spec, ...]:
    """The algorithms, with σ for those that ask for it."""
    return tuple(with_shared(spec, f"sigma={sigma}") if spec.algorithm.knows("sigma") else spec for spec in algorithms)


_AS_RUN = specs(  # of Figure H.3
    "LinFP:sigma=0.1",
    "EpsGreedy",
    *(f"{name}:S=0.01,sigma=0.1,preset=as_run" for name in ("LinUCB", "RandLinUCB")),
    "LinTS:sigma=0.1,preset=as_run",
    "LinPHE:preset=as_run",
)

FIGURES = (
    Figure(
        "fig2b",
        "Figure 2b: regret against d, one fixed set of arms",
        _linear(
            range(1, 16),
            arms=50,
            contexts=1,
            rounds=200_000,
            algorithms=specs("LinFP:c=oful,lam=1.0", "LinTS:c=oful,lam=1.0"),
        ),
        x="dim",
        notes=(
            Note(
                "The paper states the horizon, the number of arms and the runs. One fixed set of unit arms, ‖θ*‖ = 1, "
                "λ = 1 and the scale c_t of both algorithms are inferred from the curves, where c_t = 1 or new arms in "
                "each round end more than ten times too low. With them the ends are above the published values where d "
                "is small and below them where it is large, so some setting of the paper's must differ still."
            ),
            Note(
                "At d = 1 there are two kinds of arms, x and −x, and little to lose (0.6 and 17.7 published): a ratio "
                "says little there.",
                algorithms=specs("LinFP:c=oful,lam=1.0", "LinTS:c=oful,lam=1.0"),
                panels=("d=1",),
            ),
        ),
    ),
    Figure(
        "fig3-linear",
        "Figure 3, top: linear bandits, new arms in each round",
        _linear((10, 20, 40), algorithms=PAPER + OURS),
        extra=OURS,
        notes=(
            Note("‖θ*‖ = 1 is not stated in the paper; the regret of the first round fits it."),
            Note(
                "ε-greedy: the published curve fits half the schedule of the paper's text, and that half is the "
                "default here. The schedule of the text (EpsGreedy:decay=text) ends 1.7 times as high at d = 10."
            ),
            Note(
                "Which bound S on ‖θ*‖ LinUCB and RandLinUCB were given is not stated: the published curves fit S = 1 "
                "(the default) at d = 10, and S = √d better at d = 20.",
                algorithms=specs("LinUCB", "RandLinUCB"),
                panels=("d=20", "d=40"),
            ),
            Note(
                "LinPHE has two forms, centred noise (the default) and pseudo-rewards. They end alike at d = 10; at "
                "d = 20 and 40 the published curve lies between the two.",
                algorithms=specs("LinPHE"),
                panels=("d=20", "d=40"),
            ),
            Note(
                "The paper's text says that FP is lowest at every d. In its own figure FP and RandLinUCB differ by "
                "less than the error of their difference at d = 10 and d = 40."
            ),
        ),
    ),
    Figure(
        "h1",
        "Figure H.1: linear bandits, one fixed set of arms",
        _linear((5, 10, 20), contexts=1, algorithms=(*PAPER, *specs("LinPHE:preset=as_run"), *OURS)),
        extra=OURS,
        notes=(
            Note(
                "LinPHE: both forms run here, centred noise (the default) and uncentred pseudo-rewards "
                "(LinPHE:preset=as_run). In both, a few runs stay with a bad arm and carry the mean, so that a mean of "
                "20 runs says little."
            ),
            Note(
                "Which bound S on ‖θ*‖ RandLinUCB was given is not stated. With S = √d (RandLinUCB:preset=as_run) it "
                "ends within two errors of the published curve in all panels (docs/differences.md).",
                algorithms=specs("RandLinUCB"),
                panels=("d=20",),
            ),
        ),
    ),
    Figure(
        "h2",
        "Figure H.2: linear bandits, ‖θ*‖ = 2",
        _linear((10, 20, 40), norm=2.0, algorithms=PAPER + OURS),
        extra=OURS,
    ),
    Figure(
        "h3",
        "Figure H.3: linear bandits, reward noise of sd 0.1",
        tuple(
            replace(panel, drawn=f"d={panel.env['dim']}")
            for S in (2.0, 1.0)
            for panel in _linear(
                (10, 20, 40), norm=S, noise=0.1, prefix=f"S={S:g}, ", algorithms=_told(0.1, algorithms=PAPER + OURS)
            )
        ),
        extra=OURS,
        notes=(
            Note("The caption says ‖θ*‖ = 2, the slopes of the first rounds fit ‖θ*‖ = 1: both are here."),
            Note("The published curves of the panel d = 20 were not read off: ours stand alone there."),
            Note("The published curves fit algorithms that were told σ = 0.1, so those that take σ are told it here."),
            Note(
                "The published LinUCB and RandLinUCB keep growing. With new arms in each round, as the caption says, "
                "they do not. The figure h3-inferred has the variant that comes nearest to the published curves."
            ),
        ),
    ),
    Figure(
        "h3-inferred",
        "Figure H.3 by an inferred setting: one fixed set of arms, ‖θ*‖ = 1, reward noise of sd 0.1",
        _linear((10, 20, 40), contexts=1, noise=0.1, algorithms=_AS_RUN),
        runs=20,
        drawn="h3",
        notes=(
            Note(
                "This setting is inferred, not stated. It is the best of 12 variants, listed before they were run with "
                "10 runs each on another seed (docs/differences.md, benchmarks/figures_h1_h3.py). The list was written "
                "with the knowledge of an earlier search, whose record was lost."
            ),
            Note(
                "The caption says new arms in each round, ‖θ*‖ = 2. Here: one fixed set of arms, ‖θ*‖ = 1, the "
                "preset as_run, and S = √λ = 0.01 in the radius of LinUCB and RandLinUCB, which is then too small: "
                "a few runs settle on a wrong arm, so that means keep growing and errors are large."
            ),
            Note("The published curves of the panel d = 20 were not read off: ours stand alone there."),
        ),
    ),
    Figure(
        "digits",
        "Handwritten digits: real data, 10 arms, one regret for each wrong label",
        (
            Panel(
                "digits",
                describe("digits"),
                5000,
                specs(
                    "LinFP",
                    "LinFP:c=0.1",
                    "Greedy",
                    "EpsGreedy",
                    "LinTS",
                    "LinTS:c=0.1",
                    "LinPHE",
                    "RandLinUCB",
                    "LinUCB",
                ),
            ),
        ),
        runs=20,
        notes=(
            Note("Not in the paper: its data sets are not bundled with a package. 5,000 rounds are 2.8 passes."),
            Note(
                "c = 1 is the scale for reward noise of sd 1, and a label is nearly certain; c = 0.1, a tenth of it, "
                "was set beforehand and is not tuned."
            ),
        ),
    ),
)
