import numpy as np
import polars as pl
import pytest

K = 4


@pytest.fixture(scope="session")
def arrays():
    """A log as arrays: r, a, p, P, Q, M, user; the logging policy differs from row to row, and so do Q and M."""
    rng = np.random.default_rng(0)
    n = 1500
    P = 0.2 / K + 0.8 * rng.dirichlet(np.ones(K), n)
    a = np.minimum((P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), K - 1)
    user = rng.integers(0, 60, n)
    r = rng.normal(size=n) + a + np.sin(user)
    Q, M = rng.dirichlet(np.ones(K), n), rng.normal(size=(n, K)) + np.arange(K)
    return {"r": r, "a": a, "p": P[np.arange(n), a], "P": P, "Q": Q, "M": M, "user": user}


@pytest.fixture(scope="session")
def frame(arrays):
    """The same as a table, with lists and with the plain columns that stand for them."""
    Q, M, a = arrays["Q"], arrays["M"], arrays["a"]
    rows = np.arange(len(a))
    return pl.DataFrame(
        {
            "id": [f"d{i}" for i in rows],
            "arm": a,
            "K": np.full(len(a), K),
            "propensity": arrays["p"],
            "probabilities": arrays["P"].tolist(),
            "reward": arrays["r"],
            "user": arrays["user"],
            "Q": Q.tolist(),
            "M": pl.Series(M),  # arrays of fixed size, as polars writes NumPy's
            "q": Q[rows, a],
            "m_shown": M[rows, a],
            "m_policy": (Q * M).sum(axis=1),
        }
    )


@pytest.fixture(scope="session")
def path(frame, tmp_path_factory):
    """The table as a Parquet file."""
    found = tmp_path_factory.mktemp("log") / "log.parquet"
    frame.write_parquet(found)
    return found
