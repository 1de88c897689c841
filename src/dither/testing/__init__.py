"""Checks of the parts that you write yourself, by the rules that this library's own parts keep.

    dither.testing.check_policy(Softmax())             raises CheckFailed: which rule, the numbers, and what to do
    dither.testing.check_model(Mine())
    dither.testing.check_environment(Mine())
    dither.testing.check_estimator("mine")

Each runs its checks one after the other. They need no test runner. With pytest, a test for each check is

    @pytest.mark.parametrize("check", dither.testing.check_policy.checks(Softmax()), ids=str)
    def test_softmax(check):
        check()

A check that a part cannot pass is named with the reason: `expected_failed_checks={"batch": "draws in two orders"}`. It
must fail then. Once it passes, it is an error to leave it there.
"""

from dither.testing.checking import Check, Checker, CheckFailed
from dither.testing.environment_checks import check_environment
from dither.testing.estimator_checks import check_estimator
from dither.testing.model_checks import check_model
from dither.testing.policy_checks import check_policy

__all__ = [
    "Check",
    "CheckFailed",
    "Checker",
    "check_environment",
    "check_estimator",
    "check_model",
    "check_policy",
]
