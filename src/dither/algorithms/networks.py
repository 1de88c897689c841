"""The algorithms on networks, as `table.py` has the others (paper, Section 7.2 and Appendix H.1.2).

All share the network and the training of the paper's Figure 3: 2 x 50 units, and in each round one step of Adam on the
32 most recent observations.

The paper does not state λ and ν of NeuralUCB and NeuralTS. The preset "as_run" has the defaults of the code that the
paper's text follows. "default" has the values of that code's published runs. "own_paper" has λ = ν = 1, which is a
guess, since those two papers tune both. It has nothing else of those papers: no full U, no pull towards θ_0, no start
where f is 0. For a network of width m, the bonus here is that of their λ' and ν' where λ = m λ' and ν = ν'²/m.
"""

from dither import models, policies
from dither.algorithms.algorithm import Algorithm

FIGURES = ("fig3-neural", "h6", "h7")
_GUESS = {"lam": 1e-3, "nu": 1.0}
_SCRIPTS = {"lam": 1e-5, "nu": 1e-5}
_OWN = {"lam": 1.0, "nu": 1.0}
_FPL = {"a": 0.5}
_RIQUELME = {"lam": 0.25, "hidden": (50,), "batch": 512, "window": None, "every": 50, "steps": 100}

NETWORKS = (
    Algorithm(
        "DeepFP",
        policies.GeneralFeaturePerturbation,
        summary="Feature perturbation in a neural network (paper, Section 7.2).",
        source="Yi, Oh 2025",
        model=models.Network,
        labels=dict.fromkeys(FIGURES, "DeepFP (ours)"),
    ),
    Algorithm(
        "DeepFP-scalar",
        policies.Sensitivity,
        summary="DeepFP to first order: each arm's score moves by its network's sensitivity to the arm's features.",
        source="this library",
        model=models.Network,
    ),
    Algorithm(
        "DeepEpsGreedy",
        policies.EpsGreedy,
        summary="ε-greedy on a neural network.",
        source="common practice",
        model=models.Network,
        presets={"own_paper": {"decay": None, "hidden": (100,)}},  # the ε-greedy of NeuralTS's authors
        told=("horizon",),
        labels=dict.fromkeys(FIGURES, "deep ε-Greedy") | {"h7": "ε-Greedy"},
    ),
    Algorithm(
        "DeepGreedy",
        policies.Greedy,
        summary="No exploration, on a neural network.",
        source="common practice",
        model=models.Network,
    ),
    Algorithm(
        "NeuralUCB",
        policies.NeuralUCB,
        summary="NeuralUCB (Zhou, Li, Gu 2020), with the diagonal of U.",
        source="Zhou, Li, Gu 2020",
        model=models.Network,
        presets={"default": _SCRIPTS, "as_run": _GUESS, "own_paper": _OWN},
    ),
    Algorithm(
        "NeuralTS",
        policies.NeuralTS,
        summary="NeuralTS (Zhang, Zhou, Li, Gu 2021), with the diagonal of U.",
        source="Zhang, Zhou, Li, Gu 2021",
        model=models.Network,
        presets={"default": _SCRIPTS, "as_run": _GUESS, "own_paper": _OWN},
    ),
    Algorithm(
        "FTPL",
        policies.PerturbedLeader,
        summary="Follow the perturbed leader: a network trained on noisy rewards (Kveton et al. 2020).",
        source="Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh, Boutilier 2020",
        model=models.Network,
        presets={"default": _FPL, "as_run": _FPL, "own_paper": {"a": 0.5, "once": True}},
    ),
    Algorithm(
        "NeuralLinear",
        policies.ThompsonSampling,
        summary="Thompson sampling from a ridge regression on the network's last hidden layer (Riquelme et al. 2018).",
        source="Riquelme, Tucker, Snoek 2018",
        model=models.NeuralLinear,
        # "own_paper" leaves out RMSProp, the two first pulls of each arm, and the regression for each arm.
        presets={"own_paper": _RIQUELME},
        told=("horizon",),
    ),
    Algorithm(
        "NeuralLinearFP",
        policies.FeaturePerturbation,
        summary="Feature perturbation of the network's last hidden layer: NeuralLinear with LinFP on top.",
        source="this library",
        model=models.NeuralLinear,
        presets={"own_paper": _RIQUELME},
        told=("horizon",),
    ),
)
