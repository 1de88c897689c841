"""Checks of what a model can do besides `mean`: each is run where the model has the abilities that it compares."""

from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from dither.models.model import estimate
from dither.testing.checking import close, farthest, require
from dither.testing.trial import Trial

OF_ARMS = ("mean", "width", "predict")  # ability(state, X)
DRAWN = {"sample": 1, "perturb": 2, "gram_sample": 2, "hessian_sample": 1}  # ability -> normals for each number of θ
RTOL = 1e-6  # of products of matrices that were inverted


class _Question(NamedTuple):
    """A model, what it knows and what it is asked."""

    model: Any
    state: Any
    X: np.ndarray

    @property
    def theta(self) -> np.ndarray:
        """θ̂."""
        return np.asarray(estimate(self.model, self.state))


def width(case: Trial) -> None:
    """Widths are finite and not negative."""
    if "width" not in case.model.abilities:
        return
    for learnt in (False, True):
        w = case.bandit(learnt=learnt).width(case.asked(8))
        require(
            np.all((w >= 0) & (w < np.inf)),
            f"a width is {float(np.ravel(w)[np.argmax(np.ravel(~((w >= 0) & (w < np.inf))))]):.3g}",
            cure="A width is a length, such as ‖F'x‖ of a factor F: differences of squares can fall below 0",
        )


def predict(case: Trial) -> None:
    """Predicted rewards are rewards: they lie in `support`."""
    low, high = case.support
    for learnt in (False, True):
        b = case.bandit(learnt=learnt)
        if "predict" not in case.model.abilities:
            return
        answer = b.predict(case.asked(8))
        require(
            np.all((answer >= low) & (answer <= high)),
            f"the predicted rewards reach from {answer.min():.4g} to {answer.max():.4g}, and `support` says "
            f"[{low:g}, {high:g}]",
            cure="`predict` gives expected rewards, `mean` may be on another scale",
        )


def scores(case: Trial) -> None:
    """The scores of θ̂ are the means, and the scores of any θ are x'θ."""
    if "scores" not in case.model.abilities:
        return
    model, state, X = question = _question(case, {"scores"})
    theta = question.theta
    answer, wanted = model.scores(theta, X), model.mean(state, X)
    require(
        close(answer, wanted, rtol=case.rtol, atol=case.rtol),
        f"scores(state.theta, X) is not mean(state, X): {farthest(answer, wanted)}",
        cure="`scores` must read the θ that it is given, and `mean` is `scores` of state.theta",
    )
    other = np.random.default_rng(6).normal(size=theta.shape)
    if other.shape[-1] != X.shape[-1]:
        return
    answer, wanted = model.scores(other, X), other @ X if case.slots is not None else X @ other
    require(
        close(answer, wanted, rtol=case.rtol, atol=case.rtol),
        f"scores(θ, X) is not x'θ: {farthest(answer, wanted)}",
        cure="Leave `scores` out of `abilities` where the mean is no product x'θ: `Disjoint` multiplies in its place",
    )


def sample(case: Trial) -> None:
    """What is drawn has its shape and no mean, and a sample of θ has the variance of the score, the squared width."""
    drawing = [name for name in DRAWN if name in case.model.abilities]
    model, state, X = question = _question(case, {*drawing, "scores", "width"})
    for name in drawing:
        shape = question.theta.shape if name in ("sample", "perturb") else (case.dim,)
        zero = np.asarray(methodcaller(name, state, np.zeros(DRAWN[name] * case.ambient))(model))
        require(
            zero.shape == shape and not zero.any(),
            f"{name} of η = 0 has shape {zero.shape} and reaches {np.max(np.abs(zero), initial=0.0):.4g}",
            cure=f"It must be {shape} and 0: a factor times η. The policy adds θ̂ itself",
        )
    if not {"sample", "scores", "width"} <= set(case.model.abilities):
        return
    moved = [model.scores(model.sample(state, eta), X) for eta in np.eye(case.ambient)]
    answer, wanted = np.sqrt(np.sum(np.square(moved), axis=0)), model.width(state, X)
    require(
        close(answer, wanted, rtol=RTOL, atol=case.rtol),
        f"with L the matrix of `sample`, √(x'LL'x) is not the width: {farthest(answer, wanted)}",
        cure="LL' = V⁻¹: with V = CC' and C of np.linalg.cholesky, L is the inverse of C' (of C it is another matrix)",
    )


def logdet(case: Trial) -> None:
    """log(det V/det λI) is one number, 0 before the first reward and more after it."""
    if "logdet" not in case.model.abilities:
        return
    for learnt in (False, True):
        model, state, _ = _question(case, {"logdet"}, learnt=learnt)
        answer = np.asarray(model.logdet(state))
        require(
            answer.shape == () and (answer > case.rtol if learnt else np.abs(answer) <= case.rtol),
            f"logdet {'after' if learnt else 'before'} the first rewards is {np.round(answer, 9).tolist()}",
            cure="It must be one number for each entry of the leading axes, 0 before the first reward and above 0 "
            "after it: log det V - d log λ",
        )


def fresh(case: Trial) -> Any:
    """A first state that can answer all that `all_answers` asks."""
    return case.fresh(needs=frozenset({*OF_ARMS, "logdet", *DRAWN} & case.model.abilities))


def all_answers(case: Trial, state: Any) -> dict[str, np.ndarray]:
    """Copies of all arrays that the model gives for a state that began with `fresh`, by the ability."""
    X, names, rng = case.asked(1)[0], case.model.abilities, np.random.default_rng(7)
    answer = {name: methodcaller(name, state, X)(case.whole) for name in OF_ARMS if name in names}
    model, state, _ = _beneath(case, state, X)
    if "logdet" in names:
        answer["logdet"] = model.logdet(state)
    for name in (name for name in DRAWN if name in names):
        answer[name] = methodcaller(name, state, rng.normal(size=DRAWN[name] * case.ambient))(model)
    return {name: np.array(A) for name, A in answer.items()}


def _question(case: Trial, needs: set[str], *, learnt: bool = True) -> _Question:
    """The model after some rewards, by its own methods, and arms; of a model on features of its own, what is beneath.

    needs : the abilities that are to be asked
    """
    state, rng = case.fresh(needs=frozenset(needs & case.model.abilities)), np.random.default_rng(5)
    X, r = case.lesson()
    for i in range(len(X) if learnt else 0):
        state = case.taught(state, X[i], r[i], i, rng)
    return _beneath(case, state, case.asked(1)[0])


def _beneath(case: Trial, state: Any, X: np.ndarray) -> _Question:
    if "beneath" in case.model.abilities:
        return _Question(*case.model.beneath(state, X))
    return _Question(case.model, state, X)
