"""A log whose arms had values: that rewards are counted as they came is said, and the cure that is named works."""

import numpy as np
import polars as pl
import pytest

import dither as library
from dither import log, ope
from dither.ope import worth

PRICES = np.array([5.0, 12.0, 25.0])


def a_shop(n=600, *, values=True):
    """What three prices sold: the cheapest sells most, and earns least."""
    rng = np.random.default_rng(0)
    X, chance = np.column_stack([np.ones(3), PRICES / 10]), np.array([0.5, 0.4, 0.3])
    shop = library.Live(None, bandit=library.GLMFP(dim=2, seed=0, floor=1.0), apprentice=lambda X, mask: 0, explore=1.0)
    with shop:
        for _ in range(n):
            d = shop.choose(X, arms=["5", "12", "25"], values=PRICES if values else None)
            shop.reward(d.id, float(rng.random() < chance[d.place]))
        return shop.read()


@pytest.fixture(scope="module")
def shop():
    return a_shop()


def test_the_cure_that_the_note_names_judges_the_money(shop):
    judged = ope.evaluate(shop, ["arm:5", "arm:25"], ["ips"])
    assert judged.notes().count(worth.AS_THEY_CAME) == 1  # seen red: no such note
    assert worth.MONEY in worth.AS_THEY_CAME
    assert worth.AS_THEY_CAME in worth.TUNED
    money = eval(worth.MONEY, {"rows": shop, "pl": pl, "log": log})
    told = ope.evaluate(money, ["arm:5", "arm:25"], ["ips"])
    assert worth.AS_THEY_CAME not in told.notes()
    for place, arm in ((0, "arm:5"), (2, "arm:25")):
        by_hand = np.mean(np.where(shop.a == place, shop.r * PRICES[place] / shop.p, 0.0))
        assert told.estimates[arm, "ips"].value == pytest.approx(by_hand, rel=1e-12)
    order = [e.estimates["arm:5", "ips"].value > e.estimates["arm:25", "ips"].value for e in (judged, told)]
    assert order == [True, False]


def test_it_is_said_by_the_command_and_on_the_page(shop, dither, tmp_path):
    shop.write(tmp_path / "shop.parquet")
    code, out, err = dither("evaluate", tmp_path / "shop.parquet", "--policy", "arm:5", "--html", tmp_path / "v.html")
    assert code == 0, err
    says = "The rewards are counted as they came, not times the value of the arm that was shown"
    assert says in " ".join(out.split())
    assert says in (tmp_path / "v.html").read_text()
    code, out, err = dither("tune", tmp_path / "shop.parquet", "Greedy", "LinFP", "--floor", 0.1)
    assert code == 0, err
    assert f"{says} (the log has" in " ".join(out.split())
    assert "tune chooses by these rewards and knows no values" in " ".join(out.split())


def test_one_piece_that_has_values_is_enough(shop):
    parts = [shop.filter(np.arange(len(shop)) % 2 == k) for k in (0, 1)]
    bare = log.read(parts[0].frame.drop("values"))
    question = ope.question.Question(
        ope.candidates.policies(["arm:5"], draws=1), (ope.judge.NamedEstimator.parse("ips"),)
    )
    for pieces, said in (([bare, parts[1]], True), ([parts[1], bare], True), ([bare], False)):
        assert ope.judge.judged(iter(pieces), question).valued is said


def test_without_values_nothing_is_said():
    rows = a_shop(60, values=False)
    assert not rows.valued
    frame = rows.frame.drop("values", strict=False)
    for other in (pl.lit(None, dtype=pl.List(pl.Float64)), pl.lit(3.0)):  # nobody gave any; a column of the user's own
        judged = ope.evaluate(log.read(frame.with_columns(values=other)), ["arm:5"])
        assert not any("as they came" in note for note in judged.notes())
