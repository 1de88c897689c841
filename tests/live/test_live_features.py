"""Other features for a running bandit. The oracle: a plain bandit that learns all rewards from the records."""

import json
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log
from dither.features import Hashed, Numeric, Standard
from livings import Away

pytestmark = pytest.mark.usefixtures("closing")
COUNTRIES, TOPICS = ["se", "de"], ["art", "war"]


def first(**settings):
    return dither.Features(
        **{
            "context": {"country": COUNTRIES},
            "arm": {"topic": TOPICS, "words": Numeric(mean=0, scale=1)},
            "cross": [("country", "topic")],
        }
        | settings
    )


def second():
    """A field more on both sides, another scale, a country more."""
    return first(
        context={"country": [*COUNTRIES, "fr"], "age": Standard(mean=40, scale=10)},
        arm={"topic": TOPICS, "words": Numeric(mean=1, scale=2), "by": Hashed(width=4)},
        cross=[("country", "topic"), ("age", "topic")],
    )


def begin(features, **settings):
    return dither.LinFP(**{"features": features, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def request(rng):
    who = {"country": str(rng.choice(COUNTRIES)), "age": int(rng.integers(20, 60)), "user": f"u{rng.integers(9)}"}
    arms = [{"topic": t, "words": float(np.round(rng.normal(), 2)), "by": f"b{rng.integers(5)}"} for t in TOPICS]
    return who, arms


def play(live, n, seed=0, *, rewarded=True):
    """n decisions; -> (id, context, arms, place, reward) of each."""
    rng, made = np.random.default_rng([n, seed]), []
    for _ in range(n):
        who, arms = request(rng)
        d = live.choose(who, arms)
        r = float(np.round(rng.normal(), 3))
        if rewarded:
            live.reward(d.id, r)
        made.append((d.id, who, arms, d.place, r))
    return made


def taught(bandit, made, *batches):
    """The oracle: each decision in a batch of its own, then batches of several."""
    for batch in [*([one] for one in made), *batches]:
        x = np.stack([bandit.features.encode(who, arms)[place] for _, who, arms, place, _ in batch])
        r = np.array([one[-1] for one in batch])
        bandit.update(x if len(r) > 1 else x[0], r if len(r) > 1 else r[0])
    return bandit


def true(*lives):
    """What was learnt is that of a replay, and each row has the propensity of the bandit that it names."""
    for live in lives:
        assert live.to_bytes() == live.replay(live.batch).to_bytes()
    rows = lives[0].read(features="then").frame.to_dicts()
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        then = lives[0].replay(row["learnt"])
        p = then.propensities(np.array(row["features"]))[row["arm"]]
        assert_allclose(row["propensity"], p, rtol=0, atol=1e-9)


def test_a_bandit_of_other_features_says_how_they_are_changed(tmp_path):
    home, more = tmp_path / "a.db", dither.Features(context={"country": ["AT", "CH", "DE"]}, form="disjoint")
    first = dither.LinFP(
        features=dither.Features(context={"country": ["AT", "CH"]}, form="disjoint"), disjoint=2, floor=0.1
    )
    dither.Live(home, bandit=first).close()
    other = dither.LinFP(features=more, disjoint=2, floor=0.1)
    with pytest.raises(
        ValueError, match=r"another bandit: its Features differ \(the field 'country'.*features="
    ) as told:
        dither.Live(home, bandit=other)
    assert len(str(told.value).replace(str(home), "")) < 400
    with (
        dither.Live(home) as live,
        pytest.raises(ValueError, match=r"'country' .*: change\(features=..., bandit=...\)"),
    ):
        live.change(bandit=other)
    lesser = dither.LinFP(features=first.features, disjoint=2, floor=0.1, lam=7.0)
    with pytest.raises(
        ValueError, match=r"model is \{'model': \{'lam': .*\}\} there and \{'model': \{'lam': 7.0\}\} in"
    ):
        dither.Live(home, bandit=lesser)
    # seen red: both configurations whole


def test_what_was_learnt_is_learnt_again_from_the_records(shared):
    one = dither.Live(shared, bandit=begin(first()), store="records", snapshot_batches=3)
    two = dither.Live(shared, learn=False, store="records")
    made, both = play(one, 6), play(two, 2)
    one.learn()  # both at once
    late = play(one, 2, 1, rewarded=False)
    two.change(features=second(), author="eve")
    event = two.events()[-1]
    assert (event.what, event.author, event.details["rows"]) == (
        "features",
        "eve",
        {"learnt again": 8, "carried over": 0, "left out": 0},
    )
    assert "age" in event.details["new columns"]
    assert event.details["columns that went"] == []
    for live in (one, two):
        d = live.choose(*request(np.random.default_rng(3)))
        assert live.bandit.features == second()
        assert live.read(since="2000-01-01").frame["learnt"][-1] == event.batch
    for id, *_, r in late:
        two.reward(id, r)
    one.learn()
    batches = [made, both, late]
    assert one.to_bytes() == taught(begin(second()), *batches).to_bytes()
    batches += [[one] for one in play(one, 3, 2)]
    assert one.to_bytes() == taught(begin(second()), *batches).to_bytes()
    assert one.replay(5).to_bytes() == taught(begin(first()), made[:5]).to_bytes()
    assert d.propensity > 0
    true(one, two)
    one.close(), two.close()
    with dither.Live(shared) as again:  # from a snapshot, and by the bandit of now
        assert again.to_bytes() == taught(begin(second()), *batches).to_bytes()
    with dither.Live(shared, bandit=begin(second())) as again:
        assert again.bandit.features == second()


def test_with_a_catalogue_both_have_the_new_features(shared):
    arms = {
        "a1": {"topic": "art", "words": 1.0},
        "a2": {"topic": "war", "words": 2.0},
        "a3": {"topic": "art", "words": 3},
    }
    by = {"a1": {"by": "ann"}, "a2": {"by": "bob"}, "a3": {"by": "ann", "words": 99, "odd": 1}}
    shop = dither.Catalogue(first(), arms)
    one = dither.Live(shared, bandit=begin(first()), catalogue=shop, store="records")
    two = dither.Live(shared, store="records")
    rng, made = np.random.default_rng(5), []

    def some(live, n, ids):
        for _ in range(n):
            who, _ = request(rng)
            d = live.choose(who, ids)
            r = float(np.round(rng.normal(), 3))
            live.reward(d.id, r)
            made.append((who, [{**shop.at(shop.version).records[id], **by.get(id, {})} for id in ids], d.place, r))

    some(one, 4, ["a1", "a2"])
    shop.change("a1", {"words": 7.0})
    shop.retire("a2")
    some(one, 4, ["a1", "a3"])
    who, ages = {"country": "de", "age": 30}, {"a3": {"words": 50.0}, "a1": {}}
    d = one.choose(who, ages)
    one.reward(d.id, 0.25)
    made.append((who, [{**shop.records[id], **by[id], **ages[id]} for id in ages], d.place, 0.25))
    with pytest.raises(ValueError, match=r"refuse an arm of the catalogue: arm 'a1' has no field 'by'.*arms=\{id"):
        one.change(features=second())
    with pytest.raises(LookupError, match="no arm 'a4'"):
        one.change(features=second(), arms=by | {"a4": {"by": "x"}})
    assert one.events() == []
    one.change(features=second(), arms=by)
    assert shop.features == second()
    assert shop.records["a3"] == {"topic": "art", "words": 3, "by": "ann"}
    assert one.catalogue is shop
    two.catalogue.add("a4", {"topic": "war", "words": 0.5, "by": "cid"})  # it takes the new features first
    by["a4"] = {}
    for live in (one, two):
        live.choose(made[0][0])
        assert live.catalogue.to_bytes() == shop.to_bytes()
    some(one, 3, ["a3", "a4"])

    oracle = begin(second())
    for who, records, place, r in made:
        words = [record | {"words": 3 if record["words"] == 99 else record["words"]} for record in records]
        oracle.update(second().encode(who, words)[place], r)
    assert one.to_bytes() == oracle.to_bytes()
    true(one)
    X = one.read().X
    assert X.shape[2] == second().dim
    assert_array_equal(X[0][:2], second().encode(made[0][0], made[0][1]))
    one.close(), two.close()
    with dither.Live(shared, bandit=begin(second()), catalogue=shop) as again:
        assert again.to_bytes() == oracle.to_bytes()
    with pytest.raises(ValueError, match="are not those of the catalogue"):
        dither.Live(shared, catalogue=dither.Catalogue(first(), arms))


SAME = {"intercept", *(f"country={c}" for c in COUNTRIES), *(f"topic={t}" for t in TOPICS)}
SAME |= {f"country={c}*topic={t}" for c in COUNTRIES for t in TOPICS}  # not `words`, whose scale is another one


def carried(x):
    """A row of `first` as `second` has it without records, by names."""
    old = dict(zip(first().columns, x, strict=True))
    return np.array([old[name] if name in SAME else 0.0 for name in second().columns])


def test_rows_without_records_carry_over_what_means_the_same():
    live = dither.Live(None, bandit=begin(first()))
    bare, late = play(live, 3), play(live, 1, 1, rewarded=False)
    oracle = begin(second())
    for _, who, arms, place, r in bare:
        oracle.update(carried(first().encode(who, arms)[place]), r)
    live.change(features=second())
    assert live.events()[0].details["rows"] == {"learnt again": 0, "carried over": 3, "left out": 0}
    assert live.to_bytes() == oracle.to_bytes()
    ((id, who, arms, place, r),) = late
    live.reward(id, r)
    oracle.update(carried(first().encode(who, arms)[place]), r)
    assert live.to_bytes() == oracle.to_bytes()
    X = live.read().X
    assert_array_equal(X[3], [carried(x) for x in first().encode(who, arms)])
    true(live)
    # seen red: columns of equal names whose scales differ


def test_a_row_of_which_nothing_is_left_is_left_out():
    live = dither.Live(None, bandit=begin(first()))
    play(live, 3)
    other = dither.Features(context={"age": Standard(mean=40, scale=10)}, arm={"by": Hashed(width=4)}, cross="all")
    live.change(features=other)
    assert live.events()[0].details["rows"] == {"learnt again": 0, "carried over": 0, "left out": 3}
    assert (live.bandit.observations, live.replay().observations) == (0, 0)
    assert live.read().frame["features"].null_count() == 3


def test_features_that_refuse_a_record_change_nothing():
    live = dither.Live(None, bandit=begin(first()), store="records")
    made = play(live, 3)
    live.choose({"country": "se"}, made[0][2], id="early")  # before the application sent the age
    before = live.to_bytes()
    with pytest.raises(
        ValueError, match=r"refuse what decision 'early' was made of: context has no field 'age'.*carry"
    ):
        live.change(features=second())
    assert (live.events(), live.to_bytes(), live.bandit.features) == ([], before, first())
    live.change(features=second(), carry=True)
    assert live.events()[0].details["rows"] == {"learnt again": 3, "carried over": 0, "left out": 0}
    live.reward("early", 1.0)
    x = carried(first().encode({"country": "se"}, made[0][2])[live.read().a[3]])
    oracle = taught(begin(second()), made)
    oracle.update(x, 1.0)
    assert live.to_bytes() == oracle.to_bytes()
    # seen red: `carry` that is never looked at


def test_a_field_that_older_records_lack_may_be_missing_there():
    live = dither.Live(None, bandit=begin(first()), store="records")
    arms = play(live, 1)[0][2]
    live.reward(live.choose({"country": "se"}, arms, id="early").id, 1.0)
    new = dither.Features(**{side: getattr(second(), side) for side in ("context", "arm", "cross")}, absent="missing")
    live.change(features=new)
    assert live.events()[0].details["rows"]["learnt again"] == 2
    assert_array_equal(live.read().X[1], new.encode({"country": "se"}, arms))


def test_a_rollback_has_the_features_of_then(tmp_path):
    shared = tmp_path / "a.db"
    shop = dither.Catalogue(first(), {"a1": {"topic": "art", "words": 1.0}, "a2": {"topic": "war", "words": 2.0}})
    live = dither.Live(shared, bandit=begin(first()), catalogue=shop, store="records")
    second_shadow = begin(first(), lam=3.0)
    live.replace_shadow(second_shadow)
    rng, made = np.random.default_rng(7), []

    def some(n):
        for _ in range(n):
            who, _ = request(rng)
            d = live.choose(who)
            r = float(np.round(rng.normal(), 3))
            live.reward(d.id, r)
            arms = [dict(live.catalogue.records[id]) for id in ("a1", "a2")]
            made.append((d.id, who, arms, d.place, r))

    some(3)
    live.change(features=second(), arms={"a1": {"by": "ann"}, "a2": {"by": "bob"}})
    assert live.shadow is None
    live.replace_shadow(begin(second(), lam=3.0))
    some(3)
    names = [{"by": "ann"}, {"by": "bob"}]
    after = [(*one[:2], [a | b for a, b in zip(one[2], names, strict=True)], *one[3:]) for one in made]
    assert live.to_bytes() == taught(begin(second()), after).to_bytes()
    assert live.to_bytes("shadow") == taught(begin(second(), lam=3.0), after).to_bytes()
    assert live.replay(2, of="shadow").to_bytes() == taught(begin(second(), lam=3.0), after[:2]).to_bytes()
    assert live.replay(2).to_bytes() == taught(begin(first()), after[:2]).to_bytes()
    live.rollback(3)
    assert (live.shadow, shop.features, live.bandit.features) == (None, first(), first())
    assert live.to_bytes() == taught(begin(first()), after[:3]).to_bytes()
    late = live.choose({"country": "se"})  # without the age, which `first` does not need
    live.relearn()
    assert live.to_bytes() == taught(begin(first()), after).to_bytes()  # three of them were made by `second`
    assert live.read().X.shape[2] == first().dim
    live.reward(late.id, 1.0)
    true(live)
    with dither.Live(shared) as again:
        assert again.catalogue.features == first()
        assert again.to_bytes() == live.to_bytes()
    # seen red: a rollback that leaves the features in force


def test_corrections_and_erasures_of_earlier_decisions():
    live = dither.Live(None, bandit=begin(first()), store="records")
    made = play(live, 6)
    live.change(features=second())
    made += play(live, 2, 1)
    live.correct(made[1][0], 9.0)
    made[1] = (*made[1][:4], 9.0)
    assert live.to_bytes() == taught(begin(second()), made).to_bytes()
    assert live.erase([made[4][0]]) == 1
    assert live.to_bytes() == taught(begin(second()), made[:4] + made[5:]).to_bytes()
    assert live.replay(3).observations == 3
    assert live.read().frame["features"].null_count() == 1
    true_rows = live.read(records=True).frame
    assert true_rows["raw_context"].null_count() == 1


def test_a_log_of_two_widths_is_read_and_written_in_one(tmp_path):
    live = dither.Live(None, bandit=begin(first()), store="records", probabilities=True)
    made = play(live, 3)
    live.ledger.export(tmp_path / "log")
    live.change(features=second())
    made += play(live, 2, 1)
    for rows in (live.read(), log.read(live.ledger.export(tmp_path / "log")[0].parent)):
        assert rows.names == second().columns
        assert rows.encoded_by == second().fingerprint
        assert_array_equal(rows.X, [second().encode(who, arms) for _, who, arms, _, _ in made])
        assert_array_equal(rows.r, [one[-1] for one in made])
    widths = [len(row[0]) for row in live.read(features="then").frame["features"]]
    assert widths == [first().dim] * 3 + [second().dim] * 2
    with pytest.raises(ValueError, match="features must be one of 'now', 'then'"):
        live.read(features="first")
    with dither.Live(None, bandit=begin(second())) as other:
        other.ledger.take_over(tmp_path / "log")
        other.learn()
        assert_allclose(other.bandit.theta, live.bandit.theta, atol=1e-12)
    with pytest.raises(ValueError, match="other Features made the features"):
        dither.Live(None, bandit=begin(first())).ledger.take_over(tmp_path / "log")
    other = dither.Live(None, bandit=begin(second()))
    play(other, 2, 3)
    other.ledger.export(tmp_path / "more")
    assert live.ledger.take_over(tmp_path / "more") == 2  # whose rows have the features of now
    live.learn()
    assert live.bandit.observations == 7
    assert live.to_bytes() == live.replay().to_bytes()
    assert_array_equal(live.read().X[-2:], other.read().X)
    # seen red: days of before that are not written again; rows taken over as those of the first features


@pytest.mark.parametrize("form", ["disjoint", "hybrid"])
def test_slots_stay_those_of_their_arms(form):
    def made_of(**context):
        more = {} if form == "disjoint" else {"arm": {"topic": TOPICS}, "slots": 3, "cross": ()}
        return dither.Features(context=context, form=form, **more)

    old = made_of(age=Numeric(mean=40, scale=10))
    new = made_of(age=Numeric(mean=30, scale=5), country=COUNTRIES)
    shop = dither.Catalogue(old, {"a": {"topic": "art"}, "b": {"topic": "war"}})
    slots = {"disjoint": 2} if form == "disjoint" else {}
    live = dither.Live(None, bandit=begin(old, **slots), catalogue=shop, store="records")
    rng, made = np.random.default_rng(1), []

    def some(n):
        for _ in range(n):
            who, _ = request(rng)
            d = live.choose(who, ["b", *shop.ids[2:], "a"])
            live.reward(d.id, float(d.place))
            made.append((who, d.arm, float(d.place)))

    some(4)
    shop.add("c", {"topic": "art"})
    some(4)
    live.change(features=new)
    some(3)
    oracle = begin(new, **slots)
    if form == "disjoint":
        oracle.grow(3)
    for who, arm, r in made:
        x = shop.encode(who, [arm])
        oracle.update(x if form == "disjoint" else x[0], r, arm=shop.slot(arm) if form == "disjoint" else None)
    assert_allclose(live.bandit.theta, oracle.theta, atol=1e-12)
    assert live.bandit.observations == 11
    assert live.to_bytes() == live.replay().to_bytes()
    # seen red: the place of an arm in the request as its slot


def test_the_shadow_of_new_features_is_promoted_with_them():
    live = dither.Live(None, bandit=begin(first()), store="records")
    made = play(live, 3)
    live.change(features=second())
    live.replace_shadow(begin(second(), lam=5.0))
    made += play(live, 2, 1)
    live.promote(keep=True)
    made += play(live, 2, 2)
    assert live.to_bytes() == taught(begin(second(), lam=5.0), made).to_bytes()
    assert live.to_bytes("shadow") == taught(begin(second()), made).to_bytes()
    live.change(c=2.0)
    made += play(live, 1, 3)
    assert live.bandit.policy.c == 2.0
    assert live.replay().to_bytes() == live.to_bytes()
    live.change(lam=2.0)
    assert_allclose(live.bandit.theta, taught(begin(second(), lam=2.0), made).theta, atol=1e-12)


def test_a_bandit_may_come_with_its_features():
    live = dither.Live(None, bandit=begin(first()), store="records")
    made = play(live, 3)
    live.change(features=second(), bandit=dither.Greedy(features=second(), lam=2.0, seed=4, floor=0.2))
    made += play(live, 2, 1)
    oracle = taught(dither.Greedy(features=second(), lam=2.0, seed=4, floor=0.2), made)
    assert live.to_bytes() == oracle.to_bytes()
    true(live)


def test_what_cannot_take_their_place_is_refused():
    live = dither.Live(None, bandit=begin(first()), store="records")
    play(live, 2)
    before = live.to_bytes()
    disjoint = dither.Features(context={"country": COUNTRIES}, form="disjoint")
    cases = [
        (dict(features=first(), bandit=begin(first(), lam=3.0)), ValueError, "that the ledger has: pass bandit= alone"),
        (dict(features=disjoint), ValueError, "form of the features is 'shared'.*'disjoint'.*new ledger"),
        (dict(features=first(context={"country": "category"})), ValueError, "'country' must be fitted first"),
        (dict(features=second(), bandit=begin(first())), ValueError, "bandit= must have the features that are passed"),
        (dict(features=second(), arms={"a": {}}), ValueError, "for a catalogue, and the ledger has none"),
        (dict(features=second(), c=2.0), TypeError, "features= is an event by itself: change c by"),
        (dict(carry=True), TypeError, r"arms= and carry= go with features="),
        (dict(features=second(), carry="yes"), ValueError, "carry must be True or False"),
        (dict(features={"age": "numeric"}), TypeError, "features must be dither.Features"),
        (dict(features=second(), author=""), ValueError, "author must be a text"),
    ]
    live.change(features=first())  # which are in force: no event, so a script may say so at every start
    for given, kind, words in cases:
        with pytest.raises(kind, match=words):
            live.change(**given)
    assert (live.events(), live.to_bytes()) == ([], before)
    plain = dither.Live(None, bandit=dither.LinFP(dim=3))
    with pytest.raises(ValueError, match=r"gets X itself.*store='records'"):
        plain.change(features=second())


def test_calls_go_on_while_the_features_change():
    """With and without a catalogue: no call meets half of a change."""
    both = {"a1": {"topic": "art", "words": 1.0, "by": "ann"}, "a2": {"topic": "war", "words": 2.0, "by": "bob"}}
    for shop, arms in ((dither.Catalogue(first(), both), None), (None, list(both.values()))):
        live, done, odd = (
            dither.Live(None, bandit=begin(first()), catalogue=shop, store="records"),
            threading.Event(),
            [],
        )

        def visits(seed, live=live, arms=arms, done=done, odd=odd):
            rng = np.random.default_rng(seed)
            while not done.is_set():
                try:
                    live.reward(live.choose(request(rng)[0], arms).id, 1.0)
                except Exception as error:
                    odd.append(error)
                    return

        threads = [threading.Thread(target=visits, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        by = {} if shop is None else {"arms": {id: {"by": one["by"]} for id, one in both.items()}}
        for features, more in ((second(), by), (first(), {}), (second(), {})):
            live.change(features=features, **more)
        done.set()
        for thread in threads:
            thread.join()
        assert odd == []
        assert len(live.events()) == 3
        true(live)
    # seen red: a catalogue of other columns than the bandit has, which is told to the caller


@pytest.mark.parametrize("told", [True, False])
def test_who_is_killed_in_a_change_has_made_it_or_not(tmp_path, told):
    shared = tmp_path / "a.db"
    settings = {"bandit": begin(first()), "store": "records", "lease_seconds": 1e-6}
    one, rng = Away(shared, settings), np.random.default_rng(0)
    for i in range(5):
        one.call("choose", *request(rng), id=f"d{i}")
        one.call("reward", f"d{i}", float(i))
    if told:
        one.call("event", "change", features=second())
        one.kill()
    else:
        one.kill("event", "change", features=second())
    with dither.Live(shared, store="records") as live:
        assert len(live.events()) == 1 or not told
        features = second() if live.events() else first()
        rows = live.read(records=True).frame
        made = [
            (None, json.loads(who), json.loads(arms), place, float(i))
            for i, (who, arms, place) in enumerate(zip(rows["raw_context"], rows["raw_arms"], rows["arm"], strict=True))
        ]
        assert live.to_bytes() == taught(begin(features), made).to_bytes()
        assert len(rows["features"][0][0]) == features.dim


def test_a_decision_is_explained_by_the_features_that_made_it():
    live = dither.Live(None, bandit=begin(first()), store="records")
    early = play(live, 2)[1][0]
    live.change(features=second())
    late = play(live, 1, 1)[0][0]
    for id, features in ((early, first()), (late, second())):
        assert live.explain(id).to_dict()["versions"]["features"] == features.fingerprint
    rows = live.read()
    log.warm_start(plain := begin(second()), rows)
    assert_allclose(plain.theta, live.bandit.theta, atol=1e-12)
