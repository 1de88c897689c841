"""`ALGORITHMS`: one dict, name -> constructor. The CLI, the docs, the tests and the errors' near matches all read it.

There are four presets: the default; this library's runs of the paper's figures ("paper"); the code that the paper's
curves follow ("as_run"); and the method's own paper ("own_paper"). A preset has only the settings that differ. All
others are the defaults of the policy or of the model.
Bounds are those of the paper's Table A.1; for linear models, those of its text.
"""

import copyreg
from typing import Any

from dither import links, models, policies
from dither.algorithms.algorithm import PRESETS, Algorithm, Values
from dither.algorithms.fp import FP
from dither.algorithms.networks import NETWORKS
from dither.base import errors

LINEAR = dict.fromkeys(("fig3-linear", "h1", "h2"), "GLM-FP (ours)") | {"h3": "LinFP (ours)"}
LOGISTIC = ("fig3-logistic", "h4", "h5")
GREEK = "ε-Greedy"


# The default where it is not that of the classes. λ follows from the first rows, and means are about the mean of the
# rewards where slots have a constant column. Exploration finds its own scale (docs/scale.md) where none is set.
DATA = {"lam": "auto", "centre": True}
OWN = {"sigma": "auto"}
BONUS = {"beta", "radius", "sigma", "S", "Lam", "sigma_again", "kappa", "gram"}  # of UCB and RandUCB; horizon is told


def _scaled(dim: int, settings: Values) -> Values:
    """The default of what has a scale c."""
    return DATA if settings.keys() & {"c", "sigma"} else DATA | OWN


def _bonus(dim: int, settings: Values) -> Values:
    """The default of LinUCB and RandLinUCB: one width, unless something of the bonus is set."""
    named = {name for name, value in settings.items() if (name, value) != ("sigma", "auto")}
    return DATA if named & BONUS else DATA | OWN | {"beta": 1.0}


def _linked(dim: int, settings: Values) -> Values:
    """The default behind a link whose scores have a scale: where rewards lie in [0, 1] (docs/glm.md)."""
    return {"lam": "auto"} if settings.get("link", "logit") in ("logit", "probit") else {}


def _theorem(dim: int, settings: Values) -> Values:
    """Theorem 1 of the paper: β_t(δ/4T), and λ = O(d)."""
    return {"c": "theory", "lam": float(dim)}


def _ancestor(dim: int, settings: Values) -> Values:
    """The code that the curves follow has the Gram matrix 1e-4 I + Σ x x'/σ². That is V/σ² with λ = σ² 1e-4."""
    sigma = settings.get("sigma", 1.0)
    return {"lam": 1e-4 * (1.0 if isinstance(sigma, str) else sigma) ** 2}


def _of_curves(dim: int, settings: Values) -> Values:
    """The same for LinUCB and RandLinUCB, whose σ that code counts twice."""
    return {"S": None, "sigma_again": True, **_ancestor(dim, settings)}


def _level(dim: int, settings: Values) -> Values:
    """OFUGLB's estimate over ‖θ‖ <= S. OFUGLB has no ridge; 1e-6 is used so that the minimiser is unique."""
    S = settings.get("S", 1.0)
    errors.positive("S", S)
    return {"constrain": S, "ridge": 1e-6}


def _relaxed(dim: int, settings: Values) -> Values:
    """OFUGLB-e: the same estimate, and widths in ℓI + Σ μ'(x'θ̂) xx' with ℓ = 1/(8S²(1 + S))."""
    level = _level(dim, settings)
    S = level["constrain"]
    return {**level, "lam": 1 / (8 * S**2 * (1 + S)), "S": S, "radius": "ofuglb"}


# UCB-GLM's bonus. The preset "own_paper" takes the least slope of μ for ‖θ‖ <= S, not the largest.
LI = {"radius": "ucb-glm", "sigma": 0.5, "gram": True}


def _li(dim: int, settings: Values) -> Values:
    return {**LI, "kappa": _link(settings).kappa(settings.get("S") or 1.0)}


def _filippi(dim: int, settings: Values) -> Values:
    return {"c_mu": _link(settings).kappa(1.0)}


def _link(settings: Values) -> Any:
    return links.find(settings.get("link", "logit"))


def _above(S: float) -> float:
    """The bound on ‖θ*‖ that OFUGLB's authors use in their simulations."""
    return S + 1


_ALL = (
    Algorithm(
        "LinFP",
        policies.FeaturePerturbation,
        summary="Linear feature perturbation (paper, Algorithm C.2).",
        source="Yi, Oh 2025",
        bound="d√T",
        presets={"default": _scaled, "paper": {}, "own_paper": _theorem},
        told=("horizon",),
        labels=LINEAR,
    ),
    Algorithm(
        "LinTS",
        policies.ThompsonSampling,
        summary="Linear Thompson sampling (Agrawal, Goyal 2013; Abeille, Lazaric 2017).",
        source="Agrawal, Goyal 2013; Abeille, Lazaric 2017",
        bound="d^{3/2}√T/κ",
        presets={"default": _scaled, "paper": {}, "as_run": _ancestor, "own_paper": {"c": "anytime", "lam": 1.0}},
        told=("horizon",),
    ),
    Algorithm(
        "LinPHE",
        policies.PerturbedHistory,
        summary="Linear perturbed-history exploration (Kveton et al., UAI 2019).",
        source="Kveton, Szepesvári, Ghavamzadeh, Boutilier 2019",
        bound="d√(T log K)",
        presets={
            "default": DATA,
            "paper": {},
            "as_run": {"a": 0.5, "inflate": False, "forced": True, "jitter": 1e-6},
            "own_paper": {"a": 2.0},
        },
        policy_of={"as_run": policies.PseudoRewards, "own_paper": policies.PseudoRewards},
    ),
    Algorithm(
        "RandLinUCB",
        policies.RandUCB,
        summary="Randomised LinUCB (Vaswani, Mehrabian, Durand, Kveton 2020).",
        source="Vaswani, Mehrabian, Durand, Kveton 2020",
        bound="d√T",
        presets={
            "default": _bonus,
            "paper": {},
            "as_run": _of_curves,
            "own_paper": {"lam": 1.0},  # one λ, as in β; all else is the default
        },
        told=("horizon",),
    ),
    Algorithm(
        "LinUCB",
        policies.UCB,
        summary="LinUCB, also known as OFUL (Abbasi-Yadkori, Pál, Szepesvári 2011).",
        source="Abbasi-Yadkori, Pál, Szepesvári 2011",
        bound="d√T",
        presets={"default": _bonus, "paper": {}, "as_run": _of_curves, "own_paper": {"radius": "oful", "lam": 1.0}},
        told=("horizon",),
    ),
    Algorithm(
        "EpsGreedy",
        policies.EpsGreedy,
        summary="ε-greedy with an annealed ε.",
        source="common practice",
        presets={"default": DATA, "paper": {}, "own_paper": {"decay": "text"}},
        told=("horizon",),
        labels=dict.fromkeys(LINEAR, GREEK),
    ),
    Algorithm(
        "Greedy",
        policies.Greedy,
        summary="No exploration: the arm of the highest mean.",
        source="common practice",
        presets={"default": DATA, "paper": {}},
    ),
    Algorithm(
        "GLMFP",
        policies.FeaturePerturbation,
        summary="Feature perturbation in generalised linear models (paper, Algorithm 1).",
        source="Yi, Oh 2025",
        bound="d√(κ* T) + d²/κ",
        model=models.GLM,
        presets={"default": _linked, "paper": {}, "own_paper": _theorem},
        told=("horizon",),
        labels=dict.fromkeys(LOGISTIC, "GLM-FP (ours)"),
    ),
    Algorithm(
        "LogEpsGreedy",
        policies.EpsGreedy,
        summary="ε-greedy with an annealed ε, on a generalised linear model.",
        source="common practice",
        model=models.GLM,
        presets={"default": _linked, "paper": {}, "own_paper": {"decay": "text"}},
        told=("horizon",),
        labels=dict.fromkeys(LOGISTIC, GREEK),
    ),
    Algorithm(
        "LogGreedy",
        policies.Greedy,
        summary="No exploration, on a generalised linear model.",
        source="common practice",
        model=models.GLM,
        presets={"default": _linked, "paper": {}},
    ),
    Algorithm(
        "OFUGLB",
        policies.OFUGLB,
        summary="Optimism over the likelihood's confidence set (Lee, Yun, Jun 2024): slow, for small problems.",
        source="Lee, Yun, Jun 2024",
        bound="d√(κ* T) + d²/κ",
        model=models.GLM,
        presets=dict.fromkeys(PRESETS, _level),
        told={"horizon": int, "S": _above},
    ),
    Algorithm(
        "OFUGLB-e",
        policies.UCB,
        summary="OFUGLB with its confidence set relaxed to an ellipsoid (Lee, Yun, Jun 2024).",
        source="Lee, Yun, Jun 2024",
        bound="d√(κ* T) + d²/κ",
        model=models.GLM,
        presets=dict.fromkeys(PRESETS, _relaxed),
        told={"horizon": int, "S": _above},
    ),
    Algorithm(
        "LogTS",
        policies.ThompsonSampling,
        summary="GLM-TSL: Thompson sampling from Laplace's approximation (Kveton et al. 2020).",
        source="Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh, Boutilier 2020",
        bound="d^{3/2}√T/κ",
        model=models.GLM,
        presets={"default": _linked, "paper": {}},
    ),
    Algorithm(
        "LogFPL",
        policies.PerturbedRewards,
        summary="GLM-FPL: follow the perturbed leader (Kveton et al. 2020).",
        source="Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh, Boutilier 2020",
        bound="d^{3/2}√T/κ",
        model=models.GLM,
        presets={"as_run": {"a": 1.0, "forced": True}},
    ),
    Algorithm(
        "LogPHE",
        policies.PseudoSuccesses,
        summary="Perturbed-history exploration in logistic models (Kveton et al., UAI 2019).",
        source="Kveton, Szepesvári, Ghavamzadeh, Boutilier 2019",
        model=models.GLM,
        presets={  # "counts": equal feature vectors share their pseudo-trials, whose number is rounded up
            "default": {"a": 0.5, "solver": "counts"},
            "as_run": {"a": 0.5, "forced": True, "jitter": 1e-6, "solver": "counts"},
            "own_paper": {"a": 2.0, "solver": "counts"},
        },
    ),
    Algorithm(
        "RandUCBLog",
        policies.RandUCB,
        summary="Randomised UCB-GLM (Vaswani, Mehrabian, Durand, Kveton 2020).",
        source="Vaswani, Mehrabian, Durand, Kveton 2020",
        bound="d√T/κ",
        model=models.GLM,
        presets={"default": LI, "as_run": LI, "own_paper": _li},
        told=("horizon",),
    ),
    Algorithm(
        "UCB-GLM",
        policies.UCB,
        summary="UCB-GLM (Li, Lu, Zhou 2017), without its first uniform rounds.",
        source="Li, Lu, Zhou 2017",
        bound="d√T/κ",
        model=models.GLM,
        presets={"default": LI, "as_run": LI, "own_paper": _li},
        told=("horizon",),
    ),
    Algorithm(
        "GLM-UCB",
        policies.GLMUCB,
        summary="GLM-UCB (Filippi, Cappé, Garivier, Szepesvári 2010), without its first rounds and its projection.",
        source="Filippi, Cappé, Garivier, Szepesvári 2010",
        bound="d√T/κ",
        model=models.GLM,
        presets={"own_paper": _filippi},
        told=("horizon",),
    ),
    Algorithm(
        "Logistic-UCB-2",
        policies.LogisticUCB2,
        summary="A variance-sensitive bonus around an admissible estimate (Faury et al. 2020): for small problems.",
        source="Faury, Abeille, Calauzènes, Fercoq 2020",
        bound="d√T + d²/κ",
        model=models.Admissible,
        presets={"own_paper": {"M": 0.5}},  # its ¼, without the ½ of Taylor's second term
        told={"horizon": int, "S": _above},
    ),
    Algorithm(
        "GLOC",
        policies.GLOC,
        summary="Optimism over a confidence set from an online learner, in constant memory (Jun et al. 2017).",
        source="Jun, Bhargava, Nowak, Willett 2017",
        bound="d√T/κ",
        model=models.OnlineNewton,
        told={"horizon": int, "S": _above},
    ),
    Algorithm(
        "EVILL",
        policies.LossPerturbation,
        summary="Exploration by a random linear term in the loss (Janz et al. 2024), without its warm-up.",
        source="Janz, Liu, Ayoub, Szepesvári 2024",
        bound="d^{3/2}√T",
        model=models.GLM,
        presets={preset: {"lam": 1.0} for preset in PRESETS},
    ),
    FP,
    *NETWORKS,
    # New ones come last: the place of an algorithm is its colour and marker in every picture.
    Algorithm(
        "Softmax",
        policies.Softmax,
        summary="Boltzmann exploration: the softmax of the predicted rewards.",
        source="common practice",
        presets={"default": DATA, "paper": {}},
    ),
    Algorithm(
        "SquareCB",
        policies.SquareCB,
        summary="Inverse gap weighting on a ridge regression (Foster, Rakhlin 2020).",
        source="Foster, Rakhlin 2020; Abe, Long 1999",
        bound="√(K T d)",
        presets={"default": DATA, "paper": {}, "own_paper": {"gamma": "theory"}},
        told=("horizon",),
    ),
)

BUILT_IN = frozenset(_ALL)  # without those that a program adds to the table
ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ALL}


def find(name: str) -> Algorithm:
    """The algorithm of that name, or an error with the nearest one."""
    errors.among("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def _pickled(algorithm: Algorithm) -> Any:
    """By name, since the table has the rest; one that is not of this library goes whole."""
    return (find, (algorithm.name,)) if algorithm in BUILT_IN else algorithm.__reduce_ex__(2)


for _kind in {type(algorithm) for algorithm in BUILT_IN}:
    copyreg.pickle(_kind, _pickled)
