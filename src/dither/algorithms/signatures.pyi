"""The algorithms of the table, each with its settings. Made of the table by `make stubs`: do not edit."""

# mypy: disable-error-code="override"
# An algorithm takes the settings of its own model and policy, and `Algorithm` those of any.

from collections.abc import Callable
from typing import Any, Literal

from dither.algorithms.algorithm import Algorithm
from dither.algorithms.fp import General
from dither.bandit.bandit import Bandit
from dither.deciding.baseline import Baseline
from dither.features.encoder import Features
from dither.noise.custom import Custom
from dither.noise.laws import Ball, Gaussian, Points

__all__: list[str] = [
    "EVILL",
    "FP",
    "FTPL",
    "GLMFP",
    "GLMUCB",
    "GLOC",
    "OFUGLB",
    "UCBGLM",
    "DeepEpsGreedy",
    "DeepFP",
    "DeepFPScalar",
    "DeepGreedy",
    "EpsGreedy",
    "Greedy",
    "LinFP",
    "LinPHE",
    "LinTS",
    "LinUCB",
    "LogEpsGreedy",
    "LogFPL",
    "LogGreedy",
    "LogPHE",
    "LogTS",
    "LogisticUCB2",
    "NeuralLinear",
    "NeuralLinearFP",
    "NeuralTS",
    "NeuralUCB",
    "OFUGLBe",
    "RandLinUCB",
    "RandUCBLog",
    "Softmax",
    "SquareCB",
]

class _LinFP(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        c: float | Literal["oful", "theory"] | Callable[[int], float] = 1.0,
        noise: Gaussian | Ball | Custom = ...,
        coupled: bool = True,
        form: Literal["scalar", "vector"] = "scalar",
        sigma: float | Literal["auto"] = "auto",
        S: float = 1.0,
        horizon: int | None = None,
        delta: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Linear feature perturbation (paper, Algorithm C.2).

        Its settings are those of `FeaturePerturbation` and `Ridge`.
        """

LinFP: _LinFP

class _LinTS(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        c: float | Literal["oful", "theory"] | Callable[[int], float] | Literal["anytime"] = 1.0,
        sigma: float | Literal["auto"] = "auto",
        S: float = 1.0,
        horizon: int | None = None,
        delta: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Linear Thompson sampling (Agrawal, Goyal 2013; Abeille, Lazaric 2017).

        Its settings are those of `ThompsonSampling` and `Ridge`.
        """

LinTS: _LinTS

class _LinPHE(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        a: float = 1.0,
        sigma: float = 1.0,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
        inflate: bool = True,
        forced: bool = False,
        jitter: float = 0.0,
    ) -> Bandit:
        """Linear perturbed-history exploration (Kveton et al., UAI 2019).

        Its settings are those of `PerturbedHistory` and `Ridge`.
        """

LinPHE: _LinPHE

class _RandLinUCB(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        law: Points | Gaussian | Ball | Custom = ...,
        beta: float | None = 1.0,
        radius: Literal["constant", "oful", "ucb-glm", "d-linucb", "ofuglb"] = "constant",
        sigma: float | Literal["auto"] = "auto",
        S: float | None = 1.0,
        horizon: int | None = None,
        Lam: float = 1.0,
        sigma_again: bool = False,
        kappa: float = 0.25,
        gram: bool = False,
        coupled: bool = True,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Randomised LinUCB (Vaswani, Mehrabian, Durand, Kveton 2020).

        Its settings are those of `RandUCB` and `Ridge`.
        """

RandLinUCB: _RandLinUCB

class _LinUCB(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        beta: float | None = 1.0,
        radius: Literal["constant", "oful", "ucb-glm", "d-linucb", "ofuglb"] = "constant",
        sigma: float | Literal["auto"] = "auto",
        S: float | None = 1.0,
        horizon: int | None = None,
        Lam: float = 1.0,
        sigma_again: bool = False,
        kappa: float = 0.25,
        gram: bool = False,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """LinUCB, also known as OFUL (Abbasi-Yadkori, Pál, Szepesvári 2011).

        Its settings are those of `UCB` and `Ridge`.
        """

LinUCB: _LinUCB

class _EpsGreedy(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        epsilon: float = 0.05,
        decay: Literal["half", "text"] | None = "half",
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """ε-greedy with an annealed ε.

        Its settings are those of `EpsGreedy` and `Ridge`.
        """

EpsGreedy: _EpsGreedy

class _Greedy(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """No exploration: the arm of the highest mean.

        Its settings are those of `Greedy` and `Ridge`.
        """

Greedy: _Greedy

class _GLMFP(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = "auto",
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        c: float | Literal["oful", "theory"] | Callable[[int], float] = 1.0,
        noise: Gaussian | Ball | Custom = ...,
        coupled: bool = True,
        form: Literal["scalar", "vector"] = "scalar",
        sigma: float | Literal["auto"] = 1.0,
        S: float = 1.0,
        horizon: int | None = None,
        delta: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Feature perturbation in generalised linear models (paper, Algorithm 1).

        Its settings are those of `FeaturePerturbation` and `GLM`.
        """

GLMFP: _GLMFP

class _LogEpsGreedy(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = "auto",
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        epsilon: float = 0.05,
        decay: Literal["half", "text"] | None = "half",
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """ε-greedy with an annealed ε, on a generalised linear model.

        Its settings are those of `EpsGreedy` and `GLM`.
        """

LogEpsGreedy: _LogEpsGreedy

class _LogGreedy(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = "auto",
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """No exploration, on a generalised linear model.

        Its settings are those of `Greedy` and `GLM`.
        """

LogGreedy: _LogGreedy

class _OFUGLB(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0001,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = 1.0,
        ridge: float | None = 1e-06,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        S: float = 1.0,
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Optimism over the likelihood's confidence set (Lee, Yun, Jun 2024): slow, for small problems.

        Its settings are those of `OFUGLB` and `GLM`.
        """

OFUGLB: _OFUGLB

class _OFUGLBe(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0625,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = 1.0,
        ridge: float | None = 1e-06,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        beta: float | None = None,
        radius: Literal["constant", "oful", "ucb-glm", "d-linucb", "ofuglb"] = "ofuglb",
        sigma: float | Literal["auto"] = 1.0,
        S: float | None = 1.0,
        horizon: int | None = None,
        Lam: float = 1.0,
        sigma_again: bool = False,
        kappa: float = 0.25,
        gram: bool = False,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """OFUGLB with its confidence set relaxed to an ellipsoid (Lee, Yun, Jun 2024).

        Its settings are those of `UCB` and `GLM`.
        """

OFUGLBe: _OFUGLBe

class _LogTS(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = "auto",
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        c: float | Literal["oful", "theory"] | Callable[[int], float] | Literal["anytime"] = 1.0,
        sigma: float | Literal["auto"] = 1.0,
        S: float = 1.0,
        horizon: int | None = None,
        delta: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """GLM-TSL: Thompson sampling from Laplace's approximation (Kveton et al. 2020).

        Its settings are those of `ThompsonSampling` and `GLM`.
        """

LogTS: _LogTS

class _LogFPL(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0001,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        a: float = 0.5,
        forced: bool = False,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """GLM-FPL: follow the perturbed leader (Kveton et al. 2020).

        Its settings are those of `PerturbedRewards` and `GLM`.
        """

LogFPL: _LogFPL

class _LogPHE(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0001,
        solver: Literal["certified", "exact", "counts", "online"] = "counts",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        a: float = 0.5,
        forced: bool = False,
        jitter: float = 0.0,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Perturbed-history exploration in logistic models (Kveton et al., UAI 2019).

        Its settings are those of `PseudoSuccesses` and `GLM`.
        """

LogPHE: _LogPHE

class _RandUCBLog(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0001,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        law: Points | Gaussian | Ball | Custom = ...,
        beta: float | None = None,
        radius: Literal["constant", "oful", "ucb-glm", "d-linucb", "ofuglb"] = "ucb-glm",
        sigma: float | Literal["auto"] = 0.5,
        S: float | None = 1.0,
        horizon: int | None = None,
        Lam: float = 1.0,
        sigma_again: bool = False,
        kappa: float = 0.25,
        gram: bool = True,
        coupled: bool = True,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Randomised UCB-GLM (Vaswani, Mehrabian, Durand, Kveton 2020).

        Its settings are those of `RandUCB` and `GLM`.
        """

RandUCBLog: _RandUCBLog

class _UCBGLM(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0001,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        beta: float | None = None,
        radius: Literal["constant", "oful", "ucb-glm", "d-linucb", "ofuglb"] = "ucb-glm",
        sigma: float | Literal["auto"] = 0.5,
        S: float | None = 1.0,
        horizon: int | None = None,
        Lam: float = 1.0,
        sigma_again: bool = False,
        kappa: float = 0.25,
        gram: bool = True,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """UCB-GLM (Li, Lu, Zhou 2017), without its first uniform rounds.

        Its settings are those of `UCB` and `GLM`.
        """

UCBGLM: _UCBGLM

class _GLMUCB(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 0.0001,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        rho: float | None = None,
        k_mu: float = 0.25,
        c_mu: float = 0.25,
        R: float = 1.0,
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """GLM-UCB (Filippi, Cappé, Garivier, Szepesvári 2010), without its first rounds and its projection.

        Its settings are those of `GLMUCB` and `GLM`.
        """

GLMUCB: _GLMUCB

class _LogisticUCB2(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | None = None,
        S: float = 1.0,
        kappa: float | None = None,
        M: float = 0.09622504486493763,
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """A variance-sensitive bonus around an admissible estimate (Faury et al. 2020): for small problems.

        Its settings are those of `LogisticUCB2` and `Admissible`.
        """

LogisticUCB2: _LogisticUCB2

class _GLOC(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float = 1.0,
        S: float = 1.0,
        kappa: float | None = None,
        R: float = 0.5,
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Optimism over a confidence set from an online learner, in constant memory (Jun et al. 2017).

        Its settings are those of `GLOC` and `OnlineNewton`.
        """

GLOC: _GLOC

class _EVILL(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        link: Literal["identity", "logit", "log", "probit"] = "logit",
        lam: float | Literal["auto"] = 1.0,
        solver: Literal["certified", "exact", "counts", "online"] = "certified",
        tol: float = 0.05,
        min_derivative: float = 0.0,
        constrain: float | None = None,
        ridge: float | None = None,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        gamma: float = 1.0,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Exploration by a random linear term in the loss (Janz et al. 2024), without its warm-up.

        Its settings are those of `LossPerturbation` and `GLM`.
        """

EVILL: _EVILL

class _FP(General):
    def __call__(
        self,
        model: Any = None,
        *,
        dim: int | None = None,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        Sigma: Literal["1/t", "constant", "spread"] | float | Callable[[int], Any] = "1/t",
        c: float = 1.0,
        noise: Gaussian | Ball = ...,
        coupled: bool = False,
        mask: bool | tuple[bool, ...] = True,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
        refit: Literal["doubling", "request"] | int | None = None,
        factor: float = 2.0,
        first: int = 1,
        partial: bool = False,
        encode: Literal["disjoint", "index"] = "disjoint",
        trained: bool = False,
    ) -> Bandit:
        """Feature perturbation in any class of functions (paper, Algorithm C.1), on a model of your own.

        Its settings are those of `GeneralFeaturePerturbation` and `Ridge`.
        """

FP: _FP

class _DeepFP(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.0,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        Sigma: Literal["1/t", "constant", "spread"] | float | Callable[[int], Any] = "1/t",
        c: float = 1.0,
        noise: Gaussian | Ball = ...,
        coupled: bool = False,
        mask: bool | tuple[bool, ...] = True,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Feature perturbation in a neural network (paper, Section 7.2).

        Its settings are those of `GeneralFeaturePerturbation` and `Network`.
        """

DeepFP: _DeepFP

class _DeepFPScalar(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.0,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        c: float = 1.0,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """DeepFP to first order: each arm's score moves by its network's sensitivity to the arm's features.

        Its settings are those of `Sensitivity` and `Network`.
        """

DeepFPScalar: _DeepFPScalar

class _DeepEpsGreedy(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.0,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        epsilon: float = 0.05,
        decay: Literal["half", "text"] | None = "half",
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """ε-greedy on a neural network.

        Its settings are those of `EpsGreedy` and `Network`.
        """

DeepEpsGreedy: _DeepEpsGreedy

class _DeepGreedy(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.0,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """No exploration, on a neural network.

        Its settings are those of `Greedy` and `Network`.
        """

DeepGreedy: _DeepGreedy

class _NeuralUCB(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.0,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        nu: float = 1e-05,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """NeuralUCB (Zhou, Li, Gu 2020), with the diagonal of U.

        Its settings are those of `NeuralUCB` and `Network`.
        """

NeuralUCB: _NeuralUCB

class _NeuralTS(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.0,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        nu: float = 1e-05,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """NeuralTS (Zhang, Zhou, Li, Gu 2021), with the diagonal of U.

        Its settings are those of `NeuralTS` and `Network`.
        """

NeuralTS: _NeuralTS

class _FTPL(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        a: float = 0.5,
        once: bool = False,
        lam: float = 1e-05,
        dtype: Literal["float32", "float64"] = "float32",
        convolutions: int | str | tuple[int, ...] = ...,
        image: str | tuple[int, int] | None = None,
        module: Any = None,
        device: str = "cpu",
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Follow the perturbed leader: a network trained on noisy rewards (Kveton et al. 2020).

        Its settings are those of `PerturbedLeader` and `Network`.
        """

FTPL: _FTPL

class _NeuralLinear(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        dtype: Literal["float32", "float64"] = "float32",
        lam: float = 0.25,
        refresh: int = 50,
        c: float | Literal["oful", "theory"] | Callable[[int], float] | Literal["anytime"] = 1.0,
        sigma: float | Literal["auto"] = 1.0,
        S: float = 1.0,
        horizon: int | None = None,
        delta: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Thompson sampling from a ridge regression on the network's last hidden layer (Riquelme et al. 2018).

        Its settings are those of `ThompsonSampling` and `NeuralLinear`.
        """

NeuralLinear: _NeuralLinear

class _NeuralLinearFP(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        hidden: int | str | tuple[int, ...] = ...,
        output: Literal["identity", "sigmoid", "softmax"] = "identity",
        slots: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        batch: int = 32,
        window: int | None = 32,
        every: int = 1,
        steps: int = 1,
        weight_decay: float = 0.0,
        dtype: Literal["float32", "float64"] = "float32",
        lam: float = 0.25,
        refresh: int = 50,
        c: float | Literal["oful", "theory"] | Callable[[int], float] = 1.0,
        noise: Gaussian | Ball | Custom = ...,
        coupled: bool = True,
        form: Literal["scalar", "vector"] = "scalar",
        sigma: float | Literal["auto"] = 1.0,
        S: float = 1.0,
        horizon: int | None = None,
        delta: float | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Feature perturbation of the network's last hidden layer: NeuralLinear with LinFP on top.

        Its settings are those of `FeaturePerturbation` and `NeuralLinear`.
        """

NeuralLinearFP: _NeuralLinearFP

class _Softmax(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        temperature: float = 0.1,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Boltzmann exploration: the softmax of the predicted rewards.

        Its settings are those of `Softmax` and `Ridge`.
        """

Softmax: _Softmax

class _SquareCB(Algorithm):
    def __call__(
        self,
        dim: int | None = None,
        *,
        lam: float | Literal["auto"] = "auto",
        memory: int = 268435456,
        discount: float = 1.0,
        window: int | None = None,
        half_life: float | None = None,
        centre: bool = True,
        reward_range: tuple[float, float] | None = None,
        gamma: float | Literal["theory"] = 10.0,
        power: float = 0.5,
        horizon: int | None = None,
        disjoint: int | None = None,
        diagonal: bool = False,
        preset: Literal["default", "paper", "as_run", "own_paper"] = "default",
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> Bandit:
        """Inverse gap weighting on a ridge regression (Foster, Rakhlin 2020).

        Its settings are those of `SquareCB` and `Ridge`.
        """

SquareCB: _SquareCB
