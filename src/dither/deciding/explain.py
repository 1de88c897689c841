"""Why an arm was shown: the lines of all arms over z, the corners of their envelope, and who wins between them."""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np

from dither import noise, propensity
from dither.base import arrays
from dither.deciding import causes, decision, explanation_words, line_picture, mean_parts, one_arm
from dither.deciding.answers import Kind
from dither.deciding.causes import Cause, Chosen, CoinShares
from dither.deciding.decision import Aside, Moment
from dither.deciding.demands import Demands
from dither.deciding.mean_parts import MeanParts
from dither.deciding.request import Request
from dither.models.model import link
from dither.policies.views import Lines

DRAWS = 200  # by which probabilities are estimated that have no closed form


@dataclass(frozen=True)
class StoredDecision:
    """What a ledger knows of the decision that is explained."""

    id: str
    time: datetime
    arm: str  # the id of the arm that was shown, or its position
    place: int  # its position among the arms on offer
    propensity: float  # as it was stored; NaN: it is not known
    propensity_kind: str | None
    propensity_se: float | None
    versions: Mapping[str, Any]  # of all that took part, by name; None: there is none, or it is not known


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why an arm is shown: what is known of each arm, of the chance that chose, and what the means are made of.

    Where one z moves the arms along lines m_i + z w_i, there is the interval of z in which each arm is the best. NaN
    stands for a number that is not there: the ends of an arm that is the best at no z, or of a policy without lines,
    and all of an arm that is not on offer.
    """

    m: np.ndarray  # (K,)  height at z = 0: the mean, before the link where there is one
    w: np.ndarray  # (K,)  slope: the width times the scale
    low: np.ndarray  # (K,)  the arm is the best for low <= z < high
    high: np.ndarray  # (K,)  arms that are one line have one interval and share its probability
    propensity: np.ndarray  # (K,)  with the uniform share, as `Bandit.propensities`
    corners: np.ndarray  # (C,)  z_1 < z_2 < ..., where the best arm changes
    law: Any  # the law of z; None: the policy's arms are not lines that one z moves
    uniform: float  # the share of choices that is uniform, whatever z
    z: float | None  # the value that was asked about; None: none was
    best: tuple[int, ...]  # the arms that the policy shows at z: several where they tie, none where that is not known
    mean: np.ndarray  # (K,)  expected rewards, behind the link; times the values, where arms have some
    width: np.ndarray  # (K,)  the sd of the score, if the noise has sd 1; NaN for a model that has none
    kind: Kind = "exact"  # of `propensity`
    propensity_se: np.ndarray | None = None  # (K,)  its standard errors; None where exact
    ids: tuple[str, ...] | None = None  # (K,) of the arms; None: they have only positions
    link: str = "identity"  # the name of the link
    values: np.ndarray | None = None  # (K,)  what a unit of reward is worth; None: 1
    parts: MeanParts | None = None  # what the means are made of; None: that is not known
    chosen: Chosen | None = None  # the arm that was shown, and what chose it; None: none is said to have been shown
    decision: StoredDecision | None = None  # of a ledger
    judged: np.ndarray | None = None  # (K,)  what the shadow gave to the arms, or the bandit where a rule acted
    unknown: tuple[str, ...] = ()  # what cannot be known, and why

    def table(self, *, arms: int = 20) -> str:
        """The arms that can win, from the lowest z to the highest, at most `arms` of them, as text."""
        able = np.flatnonzero(~np.isnan(self.low))
        able = able[np.lexsort((able, self.low[able]))]
        rows = [f"{'arm':>6} {'m':>12} {'w':>12} {'z from':>10} {'to':>10} {'probability':>12}"]
        for i in able[:arms]:
            mark = "  <- z" if i in self.best else ""
            rows.append(
                f"{i:>6} {self.m[i]:>12.5g} {self.w[i]:>12.5g} {self.low[i]:>10.4f} {self.high[i]:>10.4f} "
                f"{self.propensity[i]:>12.4g}{mark}"
            )
        more, never = len(able) - arms, len(self.m) - len(able)
        rows += [f"{more} more arms can win"] if more > 0 else []
        rows += [f"{never} of {len(self.m)} arms are not the best at any z"] if never else []
        rows += [f"a share {self.uniform:g} of choices is uniform"] if self.uniform else []
        return "\n".join(rows)

    def __repr__(self) -> str:
        at = f" at z = {self.z:.4f}" if self.z is not None else ""
        return f"Explanation of {len(self.m)} arms{at}, {type(self.law).__name__}\n{self.table()}"

    def __str__(self) -> str:
        return explanation_words.text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the arms, why the one was shown, and what its mean is made of. Texts are escaped."""
        return explanation_words.html(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it: texts, numbers, lists and dicts; None for what is not known, and for no end."""
        return explanation_words.as_dict(self)

    @property
    def cause(self) -> Cause | None:
        """What chose the arm that was shown, one of `causes.CAUSES`; None where no arm is said to have been shown."""
        return None if self.chosen is None else self.chosen.cause

    @property
    def why(self) -> str:
        """The same in a sentence or two; "" where no arm is said to have been shown."""
        return explanation_words.why(self)

    def of_arms(self, places: Sequence[int]) -> "Explanation":
        """The same of some of the arms, in this order. The arm that was shown is one of them."""
        at = {place: i for i, place in enumerate(places)}
        arrays_of = ("m", "w", "low", "high", "propensity", "propensity_se", "mean", "width", "values")
        cut: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[list(places)] for name in arrays_of
        }
        cut["best"] = tuple(at[i] for i in self.best)
        cut["ids"] = None if self.ids is None else tuple(self.ids[i] for i in places)
        if self.parts is not None:
            cut["parts"] = self.parts.of_arms(places)
        if self.chosen is not None:
            greedy = tuple(at[i] for i in self.chosen.greedy)
            cut["chosen"] = replace(self.chosen, arm=at[self.chosen.arm], greedy=greedy)
        return replace(self, **cut)

    def name(self, i: int) -> str:
        """The id of an arm, or its position where it has none."""
        return str(i) if self.ids is None else self.ids[i]

    def plot(self, ax: Any = None) -> Any:
        """Draw it with matplotlib: lines (those that can win in colour), envelope, density of z, and z. -> the axes

        Raises ImportError where matplotlib is not installed; TypeError where the arms are no lines that one z moves.
        """
        if self.law is None:
            raise TypeError("a picture has the lines of the arms, which one z moves, and this explanation has none")
        return line_picture.draw(self, ax)


def explain(
    now: Moment,
    request: Request,
    demands: Demands,
    *,
    z: Any = None,
    arm: int | None = None,
    shares: CoinShares,
    fields: tuple[str, ...] | None = None,
    aside: Aside | None = None,
) -> Explanation:
    """The explanation of one request, whatever the policy.

    z : what was drawn, or a value to look at; arm : the position of the arm that was shown; None: none was
    shares : of which the demands' share of uniform choices is made; fields : (d,) the field of each column of X
    aside : a stream for estimates of probabilities that are not known; None: they stay unknown

    Raises ValueError for a z that is no finite number.
    """
    if z is not None and (np.ndim(z) or not isinstance(z, numbers.Real) or not math.isfinite(z)):
        raise ValueError(f"z must be one finite number, got {z!r}; of a batch, explain one request at a time")
    view, z = now.view(request), None if z is None else float(z)
    by_policy = decision.propensities(view, mask=request.mask) if decision.exact(view) else None
    p, se, kind = _probabilities(now, view, request, demands, by_policy, aside)
    lines = decision.lines(view)
    if lines is not None:
        e = of_lines(lines, p=p, uniform=demands.uniform, z=z, mask=request.mask)
    else:
        e = _without_lines(now, view, request, p=p, uniform=demands.uniform, z=z)
    e = replace(e, kind=kind, propensity_se=se, ids=request.ids, values=request.values, **_beliefs(now, request))
    greedy = tuple(np.flatnonzero(arrays.top(np.where(np.isnan(e.mean), -np.inf, e.mean), mask=request.mask)).tolist())
    unknown = _unknown(now, kind, drawn=bool(e.best) or arm is None)
    made_of = mean_parts.parts(now, request, fields)
    if made_of is None:
        unknown += (f"what the means are made of, as those of {_name(now.model)} are no sums over features",)
    else:
        made_of = _against(made_of, now, request, e.mean, arm if arm is not None else (e.best or greedy)[0])
    e = replace(e, parts=made_of, unknown=unknown)
    if arm is None:
        return e
    drawn: Literal["z", "bonus"] | None = None
    if e.best:
        by_policy = np.isin(np.arange(len(e.m)), e.best) / len(e.best)
        drawn = "bonus" if z is None else "z"
    chosen = causes.chosen(arm, request, demands, shares, by_policy=by_policy, drawn=drawn, greedy=greedy)
    return replace(e, chosen=chosen)


def _beliefs(now: Moment, request: Request) -> dict[str, Any]:
    """What the model believes of the arms on offer."""
    model, state, X = now.model, now.state, request.X
    mean = arrays.numpy(model.predict(state, X) if "predict" in model.abilities else model.mean(state, X))
    width = arrays.numpy(model.width(state, X)) if "width" in model.abilities else np.full(request.shape, np.nan)
    mean = mean if request.values is None else mean * request.values
    on = np.ones(request.shape, dtype=bool) if request.mask is None else request.mask
    return {"mean": np.where(on, mean, np.nan), "width": np.where(on, width, np.nan), "link": link(model).name}


def _probabilities(
    now: Moment, view: Any, request: Request, demands: Demands, by_policy: np.ndarray | None, aside: Aside | None
) -> tuple[np.ndarray, np.ndarray | None, Kind]:
    """Of all arms, with the demands: p, their standard errors or None, and their kind."""
    if by_policy is not None:
        return demands.of(by_policy), None, "exact"
    if aside is None:
        return np.full(request.shape, np.nan), None, "none"
    return one_arm.ONE.probabilities(now, view, request, demands, aside, DRAWS)


def _without_lines(now: Moment, view: Any, request: Request, *, p: np.ndarray, uniform: float, z: Any) -> Explanation:
    """The explanation of a policy whose arms are not lines that one z moves."""
    nothing = np.full(request.shape, np.nan)
    m, w = decision.mean_and_width(view)
    m = arrays.numpy(now.model.mean(now.state, request.X) if m is None else m)
    w = nothing if w is None else arrays.numpy(w)
    tied = causes.best(now, view, request, z)
    best = () if tied is None else tuple(np.flatnonzero(tied).tolist())
    return Explanation(m, w, nothing, nothing, p, np.empty(0), None, uniform, z, best, nothing, nothing)


def _against(made_of: MeanParts, now: Moment, request: Request, mean: np.ndarray, arm: int) -> MeanParts:
    """The parts, with those of the difference to the best mean of the other arms, where there are others."""
    others = np.arange(len(mean)) != arm
    others &= True if request.mask is None else request.mask
    if not others.any():
        return made_of
    against = int(np.argmax(np.where(others, mean, -np.inf)))
    return mean_parts.compared(made_of, now, request, arm, against)


def _unknown(now: Moment, kind: Kind, *, drawn: bool) -> tuple[str, ...]:
    """What nobody can know of this policy. drawn : whether what it drew is known, or is not asked for"""
    name = _name(now.policy)
    said = [] if drawn else [f"what {name} drew, which is not kept"]
    if kind == "monte_carlo":
        said.append(f"the exact probabilities of {name}: they are estimated here, by {DRAWS} draws")
    elif kind == "none":
        said.append(f"the probabilities of {name}")
    return tuple(said)


def _name(part: Any) -> str:
    return type(part).__name__


def of_lines(lines: Lines, *, p: np.ndarray, uniform: float, z: float | None, mask: np.ndarray | None) -> Explanation:
    """The explanation of lines (K,) with the probabilities p (K,), of which a share is uniform."""
    m, w, slack, law, *_ = lines
    sets = propensity.settle(m[None], w[None], slack=slack or propensity.rounded(m, w, mask), mask=_row(mask))
    hull = propensity.corners(sets.m, sets.w, mask=_row(mask))
    low, high, of = np.full(m.shape, np.nan), np.full(m.shape, np.nan), sets.of[0]
    for arm, a, b in zip(hull.arm, hull.low, hull.high, strict=True):
        one = of == of[arm]
        low[one], high[one] = a, b
    best: tuple[int, ...] = ()
    if z is not None:
        if isinstance(law, noise.Points):
            tied = propensity.shared_at(m, w, z, slack=slack, mask=mask) > 0
        else:
            tied = (low <= z) & (z < high)
        best = tuple(np.flatnonzero(tied).tolist())
    return Explanation(m, w, low, high, p, hull.low[1:], law, uniform, z, best, m, np.full(m.shape, np.nan))


def _row(mask: np.ndarray | None) -> np.ndarray | None:
    return None if mask is None else mask[None]


def no_lines(policy: Any) -> TypeError:
    """The error of a policy whose arms are not lines that one z moves."""
    return TypeError(
        f"explain needs arms that one z moves along lines, which {type(policy).__name__} as it is set does not have: "
        f"FeaturePerturbation and RandUCB with coupled=True have; propensities(X) says what this policy does"
    )
