"""Any interleaving of two `Live` objects on one home, beside a slow model that solves least squares on all rewards.

On a file and in PostgreSQL each object is a process, and some are killed: between two calls, or in the middle of one.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import initialize, invariant, precondition, rule
from numpy.testing import assert_allclose, assert_array_equal

import dither
import machines
from dither.features import Numeric
from ledgers import Slow, moment
from livings import Away, Here
from machines import REWARDS, TIMES, USERS, WHICH

ARMS, HALF = ["a0", "a1", "a2", "a3", "a4"], 30.0
START = moment(0).timestamp()


class Arms:
    """A slow catalogue: a dictionary, and the list of all that it ever was."""

    def __init__(self, form):
        plain = Numeric(mean=0, scale=1)
        arm = {} if form == "disjoint" else {"x": plain, "y": plain}
        self.features = dither.Features(context={"age": plain}, arm=arm, cross=() if not arm else "all", form=form)
        self.form, self.records, self.off, self.ids, self.was = form, {}, set(), [], []
        self.happened()

    def happened(self):
        self.was.append(({id: dict(record) for id, record in self.records.items()}, set(self.off)))

    def offered(self):
        return [id for id in self.ids if id not in self.off]

    def encoded(self, age, arms, version=-1):
        records, _ = self.was[version]
        if self.form == "disjoint":
            return self.features.encode({"age": age})
        return self.features.encode({"age": age}, [records[id] for id in arms])

    def change(self, what, id, record):
        if what == "add":
            self.ids.append(id)
        if record is not None:
            self.records[id] = record
        if what in ("add", "restore"):
            self.off.discard(id)
        if what == "retire":
            self.off.add(id)
        self.happened()


class Machine(machines.Machine):
    """Closing is an orderly end. A kill leaves the lease behind, and a new process comes in its place."""

    free_parts = False

    @initialize(
        default=st.sampled_from([None, 0.0]),
        lease=st.sampled_from([1e-6, 1e6]),
        every=st.integers(1, 3),
        form=st.sampled_from(["shared", "disjoint"]),
        half_life=st.sampled_from([None, HALF]),
        parts=st.sampled_from([None, ["click", "sale"]]),
        lam=st.sampled_from([2.0, None]),
        alarm=st.sampled_from([True, None]),
    )
    def begin(self, default, lease, every, form, half_life, parts, lam, alarm):
        self.slow, self.arms = Slow("sum", 20, default, "kept", parts), Arms(form)
        self.half_life, self.lam = half_life, lam
        self.seen = {}  # id -> what was shown: x, the place, the arms and the version of the catalogue
        self.given = {"lease_seconds": lease, "snapshot_batches": every, "refresh_seconds": 1e-6, "alarm": alarm}
        shop = dither.Catalogue(self.arms.features)
        self.happens("add", "a0", shop.add)
        self.happens("add", "a1", shop.add)
        more = {"bandit": self.bandit(1.0), "catalogue": shop, "horizon": 20, "default": default, "parts": parts}
        self.held = [self.opened(**more, shadow=None if lam is None else self.bandit(lam))]
        if self.several:
            self.held.append(self.opened())

    def opened(self, **more):
        return (Away if self.several else Here)(self.where, self.given | more)

    def bandit(self, lam):
        features = self.arms.features
        slots = 1 if features.form == "disjoint" else None
        return dither.LinFP(
            features=features, disjoint=slots, seed=0, floor=0.2, lam=lam, half_life=self.half_life, centre=False
        )

    def call(self, which, name, *arguments, **settings):
        return self.one(which).call(name, *arguments, **settings)

    # Arms

    def happens(self, what, id, call):
        n = next(self.number)
        record = None
        if what in ("add", "change"):
            record = {} if self.arms.form == "disjoint" else {"x": 0.5 + n % 7, "y": (n % 5) - 2.0}
        version = call(id, record) if record is not None else call(id)
        self.arms.change(what, id, record)
        assert version == len(self.arms.was) - 1

    @rule(which=WHICH, id=st.sampled_from(ARMS), data=st.data())
    def change_an_arm(self, which, id, data):
        known, offered = id in self.arms.ids, self.arms.offered()
        whats = ["add"] if not known else ["retire"] * (len(offered) > 1) if id in offered else ["restore"]
        if known and self.arms.form == "shared":
            whats.append("change")
        if whats:
            what = data.draw(st.sampled_from(whats))
            self.happens(what, id, lambda *given: self.call(which, "change", what, *given))

    @rule(which=WHICH, data=st.data())
    def a_change_is_refused(self, which, data):
        id = data.draw(st.sampled_from(self.arms.ids))
        with pytest.raises(ValueError, match="is in the catalogue"):
            self.call(which, "change", "add", id, {"x": 1.0, "y": 1.0})
        if id in self.arms.off:
            with pytest.raises(ValueError, match="is retired"):
                self.call(which, "choose", {"age": 0.5}, [id])
        with pytest.raises(LookupError, match="no arm 'nobody'"):
            self.call(which, "choose", {"age": 0.5}, ["nobody"])

    # Decisions

    @rule(which=WHICH, time=TIMES, user=USERS, data=st.data())
    def decide(self, which, time, user, data):
        n = next(self.number)
        offered = self.arms.offered()
        some = data.draw(st.none() | st.lists(st.sampled_from(offered), min_size=1, unique=True))
        more = {"id": f"d{n}", "time": moment(time), "extra": {"user": user, "age": n % 4 / 2}}
        d = self.call(which, "choose", {"age": n % 4 / 2}, some, **more)
        assert d["arm"] in (some or offered)
        self.enters(d["id"], d["arm"], time, user, n % 4 / 2, some or offered)
        for id in {d["id"], data.draw(st.sampled_from(sorted(self.seen)))}:
            self.is_explained(which, id)

    def enters(self, id, arm, time, user, age, arms):
        version, X = len(self.arms.was) - 1, self.arms.encoded(age, arms)
        slots = self.arms.form == "disjoint"
        place = self.arms.ids.index(arm) if slots else arms.index(arm)
        self.slow.enter(id, time, user, place)
        x = X if slots else X[place]
        self.seen[id] = {"x": x, "X": X, "arm": arm, "slot": place, "age": age, "version": version}

    def rewarded(self, which):
        self.is_learnt(self.call(which, "stands"))

    def erased(self, which):
        self.learn(which)

    @rule(which=WHICH)
    def learn(self, which):
        self.call(which, "learn")
        self.is_learnt(self.call(which, "stands"), all_of_it=True)

    @rule(which=WHICH, lam=st.sampled_from([None, 0.5, 2.0]))
    def another_shadow(self, which, lam):
        self.call(which, "replace_shadow", None if lam is None else self.bandit(lam))
        self.lam = lam

    def is_learnt(self, stands, all_of_it=False):
        """The estimate is that of least squares on all rewards that count."""
        if not stands["learns"]:
            return
        paid = self.slow.learnt()
        assert stands["observations"] == len(paid)
        assert_allclose(stands["theta"], self.solved(paid, 1.0, stands["slots"]), atol=1e-8)
        if all_of_it and self.arms.form == "disjoint":
            assert stands["slots"] == len(self.arms.ids)
        if self.lam is not None and stands["shadow"] is not None and all_of_it:
            assert_allclose(stands["shadow"], self.solved(paid, self.lam, stands["slots"]), atol=1e-8)

    def solved(self, paid, lam, slots):
        """By least squares, each row with its weight; with slots each slot by itself."""
        at = {id: self.slow.decisions[id]["time"] for id in paid}
        now, each = max(at.values(), default=0), []
        for slot in range(slots or 1):
            mine = [id for id in paid if slots is None or self.seen[id]["slot"] == slot]
            w = [1.0 if self.half_life is None else 0.5 ** ((now - at[id]) / self.half_life) for id in mine]
            d = self.arms.features.dim
            root = np.sqrt(np.array(w)).reshape(-1, 1)
            A = np.vstack(
                [np.sqrt(lam) * np.eye(d), root * np.array([self.seen[id]["x"] for id in mine]).reshape(-1, d)]
            )
            b = np.r_[np.zeros(d), root[:, 0] * [paid[id] for id in mine]]
            each.append(np.linalg.lstsq(A, b)[0])
        return np.array(each) if slots else each[0]

    # Ends

    @precondition(lambda self: self.several)
    @rule(which=WHICH, kill=st.booleans())
    def reopen(self, which, kill):
        self.held[which].kill() if kill else self.held[which].close()
        self.held[which] = self.opened()

    @precondition(lambda self: self.several and self.alive())
    @rule(which=WHICH, data=st.data(), r=REWARDS, time=TIMES)
    def killed_as_it_is_rewarded(self, which, data, r, time):
        """The reward is there, or it is not."""
        id, part = data.draw(st.sampled_from(self.alive())), self.part(data)
        if self.slow.outside(id, r, part):
            return
        before = self.call(1 - which, "events_of", id)
        self.held[which].kill("reward_of", id, r, moment(time), part)
        self.held[which] = self.opened()
        after = self.call(1 - which, "events_of", id)
        if after != before:
            assert after[:-1] == before
            assert after[-1] == (part, r, self.slow.reward(id, r, part, time))
        self.call(which, "learn")
        self.is_learnt(self.call(which, "stands"))

    @rule(which=WHICH)
    def the_lease_ends(self, which):
        self.call(which, "the_lease_ends")

    # What must hold

    @rule(which=WHICH)
    def sums_are_those_of_the_rows(self, which):
        self.call(which, "sums")

    @precondition(lambda self: self.seen)
    @rule(which=WHICH)
    def look(self, which):
        for row in self.call(which, "rows"):
            one, erased = self.seen[row["id"]], self.slow.decisions[row["id"]]["erased"]
            assert row["arms"][row["arm"]] == one["arm"]
            if erased:
                assert (row["features"], row.get("catalogue")) == (None, None)
                continue
            assert row["catalogue"] == one["version"]
            assert_array_equal(np.squeeze(row["features"]), np.squeeze(one["X"]))
            again = self.call(which, "encoded", row["catalogue"], {"age": one["age"]}, row["arms"])
            assert_array_equal(again, one["X"])

    def is_explained(self, which, id):
        """The state that is made again gives the arm the probability that was stored, or it is said why it does not."""
        said, p = self.call(which, "explain", id)
        assert (said["id"], said["arm"]) == (id, self.seen[id]["arm"])
        assert said["cause"] != "unknown" or said["unknown"]
        if self.slow.decisions[id]["erased"]:
            assert said["unknown"] == ["what it was decided from, as its data was erased"]
        elif not any("erased since" in words for words in said["unknown"]):
            assert said["unknown"] == []
            assert_allclose(p, said["propensity"], rtol=1e-9)
            assert_allclose(sum(one["probability"] for one in said["arms"]), 1.0)

    @invariant()
    def what_was_learnt_is_a_function_of_the_ledger(self):
        for which in range(len(self.held)):
            assert False not in self.call(which, "stands")["same"].values()

    @invariant()
    def batches_and_versions_have_no_gaps_and_fences_grow(self):
        if self.held:
            batches, events = self.call(0, "tables")
            assert [number for number, _ in batches] == list(range(1, len(batches) + 1))
            assert [fence for _, fence in batches] == sorted(fence for _, fence in batches)
            assert [version for version, *_ in events] == list(range(1, len(self.arms.was)))


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_a_live_bandit_is_what_a_slow_one_is(kind, tmp_path, request):
    few = {"memory": 0.4, "file": 0.2, "postgres": 0.2}[kind]  # the homes differ in what they keep where
    machines.run(Machine, kind, tmp_path, request, many={"memory": 35, "file": 10, "postgres": 10}, few=few)
