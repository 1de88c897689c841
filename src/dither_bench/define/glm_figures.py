"""The paper's figures of logistic bandits, and one of Poisson bandits: the paper has their theory and no runs."""

from collections.abc import Iterable

from dither.algorithms import Spec, specs
from dither_bench.define.panels import Figure, Note, Panel, over

# The legends of Figures 3 (middle), H.4 and H.5: {} is LogFPL in the first, and LogPHE in the others.
_LEGEND = ("GLMFP", "LogEpsGreedy", "OFUGLB-e", "LogTS", "{}", "RandUCBLog")
_OURS = specs("LogGreedy", "UCB-GLM")
_COUNTS = specs(*(f"{spec}:solver=counts" for spec in _OURS))


def _paper(perturbed: str, *, settings: str = "") -> tuple[Spec, ...]:
    """The paper's algorithms, with the one that perturbs rewards."""
    return specs(*(name.format(perturbed) + settings for name in _LEGEND))


def _one_set(dims: Iterable[int], *, norm: float, rounds: int) -> tuple[Panel, ...]:
    """A panel for each number of features, with one fixed set of arms."""
    algorithms = _paper("LogPHE", settings=":solver=counts") + _COUNTS
    return over(dims, "logistic", contexts=1, norm=norm, rounds=rounds, algorithms=algorithms)


_INFERRED = specs(  # OFUGLB-e has a λ by its formula
    *(name if name == "OFUGLB-e" else f"{name.format('LogFPL')}:lam=0.1" for name in (*_LEGEND, "LogGreedy", "UCB-GLM"))
)
_UNTUNED = Note("What a name does not set is the algorithm's default: nothing was tuned, to the setting or to a curve.")
_LABELS = Note(
    "LogFPL (normal noise on the rewards, Figure 3) and LogPHE (pseudo-rewards, Figures H.4 and H.5) are two "
    "algorithms, which the paper's text gives one name and one source. Each figure has the one of its legend."
)
_FIXED = Note(
    "The arms are few and fixed, so that estimates are exact from a count and a sum for each arm (solver=counts)."
)
_FIRST = Note(
    "GLM-FP, OFUGLB-e and RandUCBLog begin with a regret of exactly 0 in every published panel: their first round is "
    "not counted there, or it showed the best arm. Here it counts, which adds at most one round's regret."
)

FIGURES = (
    Figure(
        "fig3-logistic",
        "Figure 3, middle: logistic bandits, new arms in each round",
        over((10, 20, 40), "logistic", norm=4.0, rounds=10_000, algorithms=_paper("LogFPL") + _OURS),
        compares="order",
        extra=_OURS,
        notes=(
            Note(
                "What runs here is the setting that the paper describes: K = 100 unit arms, ‖θ*‖ <= 4, T = 10,000. "
                "The published curves do not come from it (the figure fig3-logistic-inferred has a setting that comes "
                "near them). In round 1, before anything is known, they lose 0.62 to 0.74 (ε-greedy, LogFPL, "
                "RandUCBLog), while a uniform choice costs 0.44, 0.39 and 0.32 on average at d = 10, 20 and 40. GLM-FP "
                "and OFUGLB-e lose 0.00 in round 1 in all runs, and at d = 10 GLM-FP goes on at 0.05 a round to round "
                "13. The regret moves in whole steps, as realised regret does, and never falls, as realised regret "
                "would."
            ),
            Note("So orders and shapes are compared here, and values stand side by side without a verdict."),
            Note(
                "The published panels end at rounds 500, 3,000 and 10,000, where the text says T = 10,000 for all. "
                "All run to 10,000 here, are told that horizon, and are compared where the published curve ends. "
                "A curve that leaves the drawing is known there by a lower bound only (> value)."
            ),
            _LABELS,
            _UNTUNED,
        ),
    ),
    Figure(
        "fig3-logistic-inferred",
        "Figure 3, middle, by an inferred setting: the mean is x'θ* cut to [0, 1]",
        over((10, 20, 40), "clipped", norm=4.0, rounds=10_000, algorithms=_INFERRED),
        runs=20,
        drawn="fig3-logistic",
        extra=_INFERRED[len(_LEGEND) :],
        notes=(
            Note(
                "This setting is inferred, not stated. It is the best of 40 settings, listed before they were run with "
                "3 runs each on another seed (docs/differences.md, benchmarks/figure3_middle.py). The list was written "
                "with the knowledge of an earlier search, whose record was lost. A setting is the same for all "
                "algorithms."
            ),
            Note(
                "The text says that the reward is 1 with probability 1/(1 + e^{-x'θ*}), and λ = 1e-4. Here it is 1 "
                "with probability x'θ* cut to [0, 1], and λ = 0.1; OFUGLB-e has the λ of its own formula. All else is "
                "as the text says."
            ),
            Note(
                "The published panels end at rounds 500, 3,000 and 10,000. All run to 10,000 here, are told that "
                "horizon, and are compared where the published curve ends."
            ),
            Note(
                "GLM-FP and OFUGLB-e begin with a regret of exactly 0 in the published panels. Here the first round "
                "counts, which adds about 0.7. GLM-FP also loses 0.05 a round to round 13 of the published d = 10, "
                "where nothing can be known yet; ours does not, and what is lost there stays (docs/differences.md)."
            ),
            _LABELS,
        ),
    ),
    Figure(
        "h4",
        "Figure H.4: logistic bandits, one fixed set of arms, ‖θ*‖ = 1",
        _one_set((10, 20, 40), norm=1.0, rounds=20_000),
        extra=_COUNTS,
        notes=(
            Note("The caption says d = 5, 10, 20 and the panels are titled d = 10, 20, 40: the panels run here."),
            Note("The published curves of the panel d = 20 were not read off: ours stand alone there."),
            _FIXED,
            _FIRST,
            _LABELS,
            _UNTUNED,
        ),
    ),
    Figure(
        "h5",
        "Figure H.5: logistic bandits, one fixed set of arms, ‖θ*‖ = 4",
        _one_set((5, 10, 20), norm=4.0, rounds=10_000),
        extra=_COUNTS,
        notes=(
            Note("The published curves of the panel d = 20 were not read off: ours stand alone there."),
            _FIXED,
            _FIRST,
            _LABELS,
            _UNTUNED,
        ),
    ),
    Figure(
        "poisson",
        "Poisson bandits: counts, new arms in each round",
        over(
            (10, 20),
            "poisson",
            norm=1.0,
            rounds=10_000,
            algorithms=specs(
                *(f"{name}:link=log" for name in ("GLMFP", "LogEpsGreedy", "LogGreedy", "LogTS", "EVILL"))
            ),
        ),
        notes=(
            Note("Not in the paper, whose theory covers Poisson rewards and whose experiments do not."),
            Note("The algorithms are those that fit any link; each is told the link."),
            _UNTUNED,
        ),
    ),
)
