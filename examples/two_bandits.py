"""Two live bandits: which of 30 articles a reader is shown, and which of 5 prices a customer is offered.

python examples/two_bandits.py news.db prices.db        or postgresql://user@host/database, one each
"""

import sys
from typing import Any

import numpy as np

import dither

TOPICS, COUNTRIES, PRICES = ["news", "science", "sport"], ["AT", "CH", "DE"], np.array([5.0, 8.0, 12.0, 18.0, 25.0])
ARTICLES: dict[str, dict[str, Any]] = {f"a{n}": {"topic": TOPICS[n % 3], "words": 300 + 50 * n} for n in range(30)}
FEATURES = dither.Features(
    context={"country": COUNTRIES}, arm={"topic": TOPICS, "words": "numeric"}, cross=[("country", "topic")]
).fit(arms=ARTICLES)
HOUR = 3600


def news(home: str, rng: np.random.Generator, n: int = 300) -> tuple[float, float]:
    """Articles: a click within an hour is a 1, and none is a 0. -> the shares of clicks in the two halves."""
    bandit, clicked = dither.GLMFP(features=FEATURES, floor=0.1, seed=0), []
    shop = dither.Catalogue(FEATURES, ARTICLES)
    with dither.Live(home, bandit=bandit, catalogue=shop, horizon=HOUR, default=0.0) as live:
        for now in range(n):
            reader = {"country": COUNTRIES[rng.integers(3)]}
            d = live.choose(reader, time=now, extra={"user": f"u{now % 50}"})
            likes = TOPICS.index(ARTICLES[d.arm]["topic"]) == COUNTRIES.index(reader["country"])
            clicked.append(rng.random() < (0.6 if likes else 0.05))
            if clicked[-1]:
                live.reward(d.id, 1.0, time=now)
            if now % 50 == 49:
                live.expire(now - 20 + HOUR)  # an hour after each click that did not come; a job does it now and then
        shop.retire("a0")
        live.erase(user="u7")  # who asks for it is forgotten, and so is what was learnt from them
    return float(np.mean(clicked[: n // 2])), float(np.mean(clicked[n // 2 :]))


def prices(home: str, rng: np.random.Generator, n: int = 300) -> float:
    """Prices: what is learnt is the purchase, and what is wanted is the revenue. -> the mean revenue of a customer."""
    X, revenue = np.column_stack([np.ones(5), PRICES / 10]), []
    with dither.Live(home, bandit=dither.GLMFP(dim=2, floor=0.1, seed=0)) as live:
        for _ in range(n):
            d = live.choose(X, arms=[f"{price:g} €" for price in PRICES], values=PRICES)
            price = PRICES[d.place]
            bought = rng.random() < 1 / (1 + np.exp(price / 6 - 2))
            live.reward(d.id, float(bought))
            revenue.append(price * bought)
    return float(np.mean(revenue))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    print("clicks in the first and in the second half:", *news(sys.argv[1], rng))
    print("revenue of a customer:", prices(sys.argv[2], rng))
