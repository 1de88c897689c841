"""The paper's figures of networks on real data, and the search for the scales of their exploration."""

from collections.abc import Iterable

from dither.algorithms import Spec, specs
from dither_bench.define.environments import describe
from dither_bench.define.panels import Figure, Note, Panel, with_shared

PAPER = specs("DeepFP", "DeepEpsGreedy", "NeuralUCB", "NeuralTS", "FTPL")  # the legend of Figure 3 (bottom)
# The paper does not say which λ and ν it has, so this reading runs too.
GUESSED = specs("NeuralUCB:preset=as_run", "NeuralTS:preset=as_run")
OURS = specs("DeepGreedy")
SETS = ("shuttle", "isolet", "mushroom")
SHALLOW = "hidden=100"
CNN = "convolutions=32x64,hidden=128,image=28x28"


def _panels(
    sets: Iterable[str], *, algorithms: tuple[Spec, ...], rounds: int = 20_000, shared: str = ""
) -> tuple[Panel, ...]:
    """A panel for each data set with standardised columns, and one with rows of unit length."""
    names = _all(algorithms, shared)
    return tuple(
        Panel(name + suffix, describe(name, preprocessing=preprocessing), rounds, names, drawn=name if suffix else "")
        for preprocessing, suffix in (("standard", ""), ("paper", ", unit length"))
        for name in sets
    )


def _each(name: str, setting: str, values: Iterable[float], *, also: str = "") -> tuple[Spec, ...]:
    """The algorithm with each of these values of a setting."""
    return _all(specs(*(f"{name}:{setting}={value}" for value in values)), also)


def _all(algorithms: Iterable[Spec], shared: str) -> tuple[Spec, ...]:
    return tuple(with_shared(spec, shared) for spec in algorithms)


_CERTAIN = Note("A label is certain, so that the realised regret, which the paper shows, is the regret: wrong labels.")
_HORIZON = Note(
    "ε-greedy is told the horizon: ε_t = (ε/2) √(T/t) with ε = 0.05 and the T of the panel, half of what the paper's "
    "text states for its linear bandits, where the half fits its curves. For networks the paper states no ε."
)
_PRESETS = Note(
    "λ and ν of NeuralUCB and NeuralTS are not in the paper. Both readings run: λ = ν = 1e-5, those of the published "
    "runs of the code that the paper's text follows (preset default), and λ = 0.001, ν = 1, the defaults of that code "
    "(preset as_run). A published curve stands beside both."
)
_COLLAPSE = Note(
    "A run is marked * as collapsed where it errs more than twice as often as the median run over the last tenth of "
    "the rounds, and more than 20 times. It makes a mean of few runs meaningless: read the runs."
)
_SLOT = Note(
    "DeepFP moves each arm's own features (the paper's Section 7.2; its appendix says those of the chosen arm, though "
    "all arms are scored first)."
)
_OUTPUT = Note(
    "The paper's text ends its networks in a softmax over their one output, which is constantly 1. Here the output is "
    "the number itself and the loss is squared; the paper states no loss."
)
_UNSTATED = {  # what the paper does not say besides -> of which algorithms
    "": specs("DeepFP"),
    ", nor ε": specs("DeepEpsGreedy"),
    ", nor λ and ν": (*specs("NeuralUCB", "NeuralTS"), *GUESSED),
    ", nor the noise on the rewards": specs("FTPL"),
}
_ALWAYS = (_CERTAIN, _OUTPUT, _HORIZON, _PRESETS, _SLOT, _COLLAPSE)

FIGURES = (
    Figure(
        "fig3-neural",
        "Figure 3, bottom: networks of two hidden layers on real data",
        _panels(SETS, algorithms=(*PAPER, *GUESSED, *OURS)),
        runs=5,
        extra=OURS,
        each=True,
        notes=(
            Note(
                "The preprocessing is not in the paper. Each set runs twice, with standardised columns and with rows "
                "of unit length (as in the code that the paper's text follows), and both stand beside the same "
                "published curve. In both, text is one-hot."
            ),
            Note(
                "The paper's text says T = 10,000, its figure 20,000, which runs here. Isolet has 7,797 rows and "
                "mushroom 8,124: when all have passed they are shuffled and pass again. Mushroom has 112 features in "
                "the text and 116 in the figure, which is what one-hot columns without one for '?' give."
            ),
            Note(
                "The paper's text says that DeepFP outperforms all baselines. In its own figure it does not on "
                "shuttle: FTPL ends at 696, DeepFP at 725 ± 55 (standard error). Nor are five runs the 100 of its "
                "Section 7."
            ),
            Note(
                "Not reproduced: no one setting gives the published numbers. Of our runs (seed 0) only deep ε-greedy "
                "on standardised shuttle ends near its own; the others make fewer errors there and on mushroom, and "
                "with rows of unit length on shuttle some runs go astray. DeepFP is not told apart from greedy in the "
                "panels of shuttle and mushroom, so 'DeepFP best everywhere' did not appear. Nothing was tuned for "
                "these panels; neural-tuning shows what tuning finds."
            ),
            Note("NeuralTS leaves the drawing of the mushroom panel after round 9,957: its end is a lower bound."),
            *(
                Note(f"The paper states neither the loss nor the preprocessing{more}.", algorithms=algorithms)
                for more, algorithms in _UNSTATED.items()
            ),
            *_ALWAYS,
        ),
    ),
    Figure(
        "h6",
        "Figure H.6: networks of one hidden layer of 100 units on real data",
        _panels(SETS, algorithms=(*PAPER, *GUESSED, *OURS), shared=SHALLOW),
        runs=5,
        extra=_all(OURS, SHALLOW),
        each=True,
        shared=SHALLOW,
        notes=(
            Note("The published curves of isolet were not read off: ours stand alone there."),
            Note("The preprocessing is not in the paper: each set runs twice, as in fig3-neural."),
            *_ALWAYS,
        ),
    ),
    Figure(
        "h7",
        "Figure H.7: convolutional networks on images",
        tuple(
            Panel(name, describe(name, preprocessing="raw"), rounds, _all((*PAPER, *GUESSED, *OURS), CNN), drawn=drawn)
            for name, drawn, rounds in (("mnist", "MNIST", 50_000), ("fashion-mnist", "Fashion-MNIST", 20_000))
        ),
        runs=5,
        extra=_all(OURS, CNN),
        each=True,
        shared=CNN,
        notes=(
            Note("The published curves of Fashion-MNIST were not read off: ours stand alone there."),
            Note("It needs torch (extra torch). --rounds 500 --panel mnist gives a look at it."),
            Note(
                "3 x 3 convolutions of 32 and 64 filters, 2 x 2 pooling after each, one hidden layer of 128 units and "
                "one output. Pixels lie between 0 and 1; the paper does not say how they were scaled."
            ),
            *_ALWAYS,
        ),
    ),
    Figure(
        "neural-tuning",
        "The scale of exploration in networks, on shuttle and mushroom",
        _panels(
            ("shuttle", "mushroom"),
            algorithms=(
                *_each("DeepFP", "c", (1.0, 0.03, 0.1, 0.3, 3.0)),
                *_each("DeepFP-scalar", "c", (1.0, 0.03, 0.1, 0.3, 3.0)),
                *_each("NeuralUCB", "nu", (1e-5, 1e-4, 1e-3, 1e-2, 1e-1), also="lam=0.001"),
                *_each("NeuralTS", "nu", (1e-5, 1e-4, 1e-3, 1e-2, 1e-1), also="lam=0.001"),
                *_each("FTPL", "a", (0.05, 0.1, 0.2, 0.5, 1.0)),
                *_each("DeepEpsGreedy", "epsilon", (0.003, 0.01, 0.02, 0.05, 0.1)),
                *OURS,
            ),
            rounds=5000,
        ),
        runs=3,
        x="setting",
        each=True,
        notes=(
            Note("Not in the paper: five values of each algorithm's scale, the same effort for all."),
            Note(
                "A value that is chosen here must be reported on other seeds than those it was chosen on. Run this "
                "with --seed 1000, or another that no report uses; the figures have seed 0."
            ),
            Note(
                "The bonus grows as √ν: five powers of ten of ν span as much of it as the values of c do of the jitter."
            ),
            _HORIZON,
            _COLLAPSE,
        ),
    ),
)
