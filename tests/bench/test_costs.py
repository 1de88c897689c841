import pytest

from dither.algorithms import Spec
from dither_bench.define.environments import describe, outline
from dither_bench.plan import costs


@pytest.mark.parametrize("algorithm", ["GLMFP:solver=counts", "LogPHE"])
def test_a_round_costs_more_the_longer_the_history_that_it_reads(algorithm):
    def a_round(contexts, rounds):
        env = outline(describe("logistic", dim=10, contexts=contexts))
        return costs.microseconds(env, Spec.parse(algorithm), rounds=rounds) / rounds

    assert a_round(None, 32_000) > 2 * a_round(None, 2000)
    assert a_round(5, 32_000) < a_round(5, 2000)  # equal rows share a count, so they are few
    # seen red: solver="counts" estimated as with a fixed set of arms in every environment
