"""Whatever the OpenAPI document allows, and much that it does not: no answer is an error of the code (schemathesis)."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi import checks

import dither
import longer
from dither import serve

FIELDS = {"context": {"country": ["AT", "CH"], "age": dither.features.Numeric(mean=0, scale=1)}}
FEW = settings(
    max_examples=longer.size(4, longer=500),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=True,
)
pytestmark = pytest.mark.filterwarnings("ignore")  # schemathesis asks by a client that Starlette calls old


def of_catalogue():
    features = dither.Features(**FIELDS, arm={"topic": ["art", "war"]}, cross=[("country", "topic")])
    stock = dither.Catalogue(features, {"a17": {"topic": "art"}, "a23": {"topic": "war"}})
    bandit = dither.LinFP(features=features, floor=0.3, seed=0)
    budgets = {"a17": dither.Budget(10)}
    return dither.Live(None, bandit=bandit, catalogue=stock, budgets=budgets, store="records")


def of_X():
    return dither.Live(None, bandit=dither.LinFP(dim=1, lam=1.0, floor=0.3, seed=0), horizon=60, default=0.0)


LIVES = {"catalogue": of_catalogue, "X": of_X}
SENT = ["/decide", "/decide/many", "/reward", "/reward/many", "/correct", "/erase"]
ASKED = ["/explain", "/events", "/health", "/ready", "/metrics", "/status"]


@pytest.fixture(scope="module", params=LIVES)
def schema(request):
    app = serve.app(LIVES[request.param](), mounted=True)  # schemathesis asks from no address, and by no name
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.parametrize("path", SENT + ASKED)
def test_no_answer_is_an_error_of_the_code(schema, path):
    """And each has a status, a type and a form that the document says."""
    operation = schema[path]["POST" if path in SENT else "GET"]

    @FEW
    @given(case=operation.as_strategy())
    def asked(case):
        case.call_and_validate(
            excluded_checks=[checks.positive_data_acceptance]
        )  # which fields go together, `Live` says

    asked()
