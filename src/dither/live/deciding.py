"""The side of `Live` that decides: a bandit with draws of its own, which follows what was learnt.

A decision has the state after some batch. A model with a half_life has faded since then, to the time of the decision.
So the state is `replay(batch)`, grown to the slots of the row, and `advance(time)`: a function of the ledger.
"""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dither import _version
from dither.bandit.bandit import Bandit, Decision
from dither.deciding import decision, inputs
from dither.deciding.demands import Demands
from dither.features import Catalogue
from dither.live import beside, requests
from dither.live.taught import Taught, grow
from dither.log import schema
from dither.log.database import entering
from dither.log.record import Maker, law
from dither.models import model as contract


class Decided(NamedTuple):
    """A decision, or a batch of them, before it is stored."""

    made: Decision
    names: tuple[str, ...] | None  # ids by position
    rows: list[dict[str, Any]]
    lessons: list[dict[str, Any]]  # for each row, what its reward teaches


class Decider:
    """Decides, and makes the rows of the ledger."""

    def __init__(
        self,
        bandit: Bandit,
        stands: Callable[[], Taught],
        *,
        rule: beside.Apprentice | None,
        shadow: Bandit | None,
        catalogue: Catalogue | None,
        named: Callable[[tuple[str, ...] | None], tuple[str, ...] | None],
        store: str,
        probabilities: bool,
    ) -> None:
        """stands : gives what was learnt; shadow : the one that was passed; named : the ids of disjoint slots."""
        self.bandit, self.rule, self.catalogue = bandit, rule, catalogue
        self._stands, self._named = stands, named
        self.shadow, self._number = shadow, 0 if shadow is None else stands().own.number
        self._clocked = False
        policy = f"{bandit.policy} on {bandit.model}" if rule is None else f"a rule, explored {rule.explore}"
        constants = {"policy": policy, "preset": None, "version": _version.__version__}
        constants["z_law"] = law(bandit.policy) if rule is None else None
        self._maker = Maker(bandit, store == "all", False, probabilities and rule is None, False, constants)
        self.show()

    def show(self) -> None:
        """Decide from what is learnt by now."""
        stands = self._stands()
        self.bandit.follow(stands.bandit)
        if stands.own.number != self._number:
            self.shadow, self._number = copy.deepcopy(stands.shadow), stands.own.number
            if self.shadow is not None:
                self.shadow.reseed()
        elif self.shadow is not None and stands.shadow is not None:
            self.shadow.follow(stands.shadow)
        judged = [one for one in (self.bandit, self.shadow) if one is not None]
        self._clocked = any(contract.clocked(one.model) for one in judged)

    def decide(self, context: Any, arms: Any, *, mask: Any, time: Any, **given: Any) -> Decided:
        """One request, or B. The arguments are those of `Live.choose`."""
        time, asked = schema.moment(time), self.ask(context, arms, mask)
        with self.bandit._lock:
            self.passes(time)
            return self.decided(asked or self.ask_now(context, arms, mask), time=time, **given)

    def ask(self, context: Any, arms: Any, mask: Any) -> requests.Asked | None:
        """The request, before any lock, as the ledger may be asked for the names; None where there is a catalogue."""
        if self.catalogue is not None:
            return None
        asked = requests.asked(self.bandit, None, context, arms, mask)
        return asked._replace(names=self._named(asked.names))

    def ask_now(self, context: Any, arms: Any, mask: Any) -> requests.Asked:
        """The request, where there is a catalogue. The bandit is locked, since it may grow. Time has passed before."""
        return requests.asked(self.bandit, self.catalogue, context, arms, mask)

    def decided(
        self,
        asked: requests.Asked,
        *,
        values: Any,
        minimum: Any,
        baseline: Any,
        id: Any,
        time: Any,
        extra: Mapping[str, Any] | None,
    ) -> Decided:
        """The decision of a request, while the bandit is locked."""
        bandit = self.bandit
        more: dict[str, Any] = {} if values is None else {"values": values}
        if minimum is not None:
            K = bandit.slots or np.shape(asked.X)[-2]
            by_id: dict[str, Any] = dict(what="minimum", default=0.0, catalogue=self.catalogue)
            more["minimum"] = requests.placed(minimum, asked.names, K, **by_id)
        if bandit.baseline is not None:
            more["baseline"] = requests.position(bandit.baseline.arm if baseline is None else baseline, asked.names)
        elif baseline is not None:
            raise ValueError("baseline= needs a bandit that keeps one: LinFP(dim=..., baseline=dither.Baseline(...))")
        demanded = None
        if minimum is not None or bandit.baseline is not None:
            if self.rule is not None:
                raise ValueError("a rule that acts has no minima: explore= says how often each arm is shown at least")
            demanded = bandit.foreseen(asked.X, mask=asked.mask, **more)
        before = (
            bandit.propensities(asked.X, mask=asked.mask, **more) if demanded and self._maker.probabilities else None
        )
        made, X, mask = self._chosen(asked.X, asked.mask, more)
        if values is not None:
            more["values"] = values = inputs.values(values, shape=bandit._shape(X), mask=mask)
        many = None if alone(made) else np.size(made.arm)
        own = self._more(X, mask, more, demanded, asked.version, extra, many)
        given = {"id": id, "time": time, "mask": mask, "arms": asked.names, "extra": own}
        if before is not None:
            given["probabilities"] = before
        elif values is not None and self._maker.probabilities:
            given["probabilities"] = bandit.propensities(X, mask=mask, values=values)
        floor = self._eps() if demanded is None else float(np.min(demanded.floor(mask)))
        rows = self._maker.rows(made, X=X, floor=floor, **given)
        batch = self._stands().batch
        return Decided(made, asked.names, rows, self._lessons(np.asarray(X, dtype=np.float64), made, batch))

    def passes(self, time: Any) -> None:
        """Let what was learnt fade to the time of a decision, where a model has a half_life. The bandit is locked."""
        if not self._clocked:
            return
        at = entering.micros(time) / 1e6
        self.show()  # from what was learnt, so that no rounding of earlier decisions is left
        for one in (self.bandit, self.shadow):
            if one is not None and contract.clocked(one.model):
                one.advance(at)

    def _chosen(self, X: Any, mask: Any, more: Mapping[str, Any]) -> tuple[Decision, Any, Any]:
        """more : values, minimum and baseline, where there are some."""
        bandit = self.bandit
        if self.rule is None:
            made = bandit.choose(X, mask=mask, **more)
            return made, *((X, None) if mask is None and inputs.plain(X) else bandit.read(X, mask))
        X, mask = bandit.read(X, mask)
        if X.ndim != (1 if bandit.slots else 2):
            raise ValueError("a rule that acts decides one request at a time: give X without a batch axis")
        return self.rule.choose(X, mask, bandit.slots or len(X)), X, mask

    def _eps(self) -> float:
        if self.rule is not None:
            return self.rule.explore
        return decision.eps(self.bandit.policy, self.bandit.t, floor=self.bandit.floor)

    def _more(
        self,
        X: Any,
        mask: Any,
        given: Mapping[str, Any],
        demanded: Demands | None,
        version: int | None,
        extra: Mapping[str, Any] | None,
        B: int | None,
    ) -> Mapping[str, Any] | None:
        """The user's columns, what was given and demanded, and what the policy that is judged would do.

        B : how many requests there are; None: one, without a batch axis
        """
        same: dict[str, Any] = {} if version is None else {beside.CATALOGUE: version}
        more: dict[str, Any] = {}
        if "values" in given:
            more[beside.VALUES] = beside.on_offer(given["values"], mask)
        if "minimum" in given:
            more[beside.MINIMUM] = beside.on_offer(np.broadcast_to(given["minimum"], self.bandit._shape(X)), mask)
        if demanded is not None and demanded.safe is not None and demanded.baseline is not None:
            more[beside.SAFE] = beside.on_offer(demanded.safe, mask)
            own = np.arange(demanded.safe.shape[-1]) == demanded.baseline[..., None]
            at = beside.on_offer(own, mask)
            more[beside.BASELINE] = at.index(True) if B is None else [row.index(True) for row in at]
        judged = self.bandit
        if self.rule is None and self.shadow is not None:
            judged, same[beside.SHADOW] = self.shadow, self._number
            grow(judged, self.bandit.slots)
        if judged is self.shadow or self.rule is not None:
            judging = {name: given[name] for name in ("values", "minimum") if name in given}
            more[beside.JUDGED] = beside.probabilities(judged, X, mask, **judging)
        more |= {name: value if B is None else [value] * B for name, value in same.items()}
        taken = [name for name in extra or {} if name in more]
        if taken:
            raise ValueError(f"extra must not have the column {taken[0]!r}, which the ledger writes: take another name")
        return dict(extra or {}) | more if more else extra

    def _lessons(self, X: np.ndarray, made: Decision, batch: int) -> list[dict[str, Any]]:
        """What the rewards of the decisions teach."""
        slots = self.bandit.slots is not None
        if alone(made):
            x = X if slots else X[made.arm]
            return [{"x": x, "slot": int(made.arm) if slots else None, "batch": batch, "width": len(x)}]
        arm = np.asarray(made.arm)
        x = X if slots else X[np.arange(len(arm)), arm]
        return [
            {"x": x[i], "slot": int(arm[i]) if slots else None, "batch": batch, "width": x.shape[1]}
            for i in range(len(arm))
        ]


def alone(made: Decision) -> bool:
    """Whether it is that of one request, and not of a batch."""
    return isinstance(made.arm, (int, np.integer))


_FIELDS = tuple(field.name for field in dataclasses.fields(Decision))


def columns(made: Decision) -> dict[str, Any]:
    """The fields of a decision by name."""
    return {name: getattr(made, name) for name in _FIELDS}
