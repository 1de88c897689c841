"""What scikit-learn's transformers learn from values, as plain numbers and texts, which a file can hold without pickle.

`StandardScaler` gives mean and scale, `OneHotEncoder` the categories, `CountVectorizer` the vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither.base import errors


def moments(x: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of x (n,) without its NaN; the latter is 1 where all values are equal."""
    if np.isnan(x).all():
        raise ValueError("has no value to be fitted to: state mean and scale, as in Numeric(mean=40, scale=15)")
    scaler = _sklearn("preprocessing").StandardScaler().fit(x[:, None])
    return float(scaler.mean_[0]), float(scaler.scale_[0])


def categories(names: Sequence[str], *, most: int | None, least: int) -> tuple[str, ...]:
    """The different names, sorted; without those that came less than `least` times; of the rest the `most` frequent.

    The transformer counts the infrequent values together as one category more, which `most` does not count.
    """
    if not names:
        raise ValueError("has no value to be fitted to: state its values, as in Category(values=['a', 'b'])")
    limit = None if most is None or most >= len(set(names)) else most + 1
    options = dict(max_categories=limit, min_frequency=least, handle_unknown="infrequent_if_exist")
    encoder = _sklearn("preprocessing").OneHotEncoder(**options).fit(np.array(names, dtype=object)[:, None])
    rare = encoder.infrequent_categories_[0]
    frequent = set(encoder.categories_[0]).difference(() if rare is None else rare)
    if not frequent:
        raise ValueError(f"has no value that came at least {least} times: lower `least`")
    return tuple(sorted(map(str, frequent)))


def vocabulary(bags: Sequence[Mapping[str, int]], *, most: int | None, least: int) -> tuple[str, ...]:
    """The words of the bags, sorted; without those in less than `least` bags; of the rest the `most` frequent."""
    counter = _sklearn("feature_extraction.text").CountVectorizer(
        analyzer=lambda bag: [word for word, n in bag.items() for _ in range(n)], max_features=most, min_df=least
    )
    try:
        counter.fit(bags)
    except ValueError:  # no word at all
        raise ValueError(
            f"has no word in at least {least} texts to be fitted to: state a vocabulary, as in Words(['a', 'b'])"
        ) from None
    return tuple(sorted(counter.vocabulary_))


def _sklearn(module: str) -> Any:
    return errors.imported(f"sklearn.{module}", "scikit-learn", extra="features")
