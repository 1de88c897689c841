"""The paper's figures of logistic bandits, and one of Poisson bandits: the paper has their theory and no runs."""

from collections.abc import Iterable

from dither.algorithms import Spec, specs
from dither.experiments.panels import Figure, Note, Panel, over

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
                "The published curves do not come from the setting that the paper describes (K = 100 unit arms, "
                "‖θ*‖ <= 4, T = 10,000), which is what runs here. In round 1, before anything is known, they lose "
                "0.62 to 0.74 (ε-greedy, LogFPL, RandUCBLog), while a uniform choice costs 0.44, 0.39 and 0.32 on "
                "average at d = 10, 20 and 40. GLM-FP and OFUGLB-e lose 0.00 in round 1 in all runs, and at d = 10 "
                "GLM-FP goes on at 0.05 a round to round 13. The regret moves in whole steps, as realised regret "
                "does, and never falls, as realised regret would."
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
