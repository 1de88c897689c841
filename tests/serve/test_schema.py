"""Whatever the OpenAPI document allows, and much that it does not: no answer is an error of the code (schemathesis)."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
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
CONTEXT = {"country": "AT", "age": 1.0}
ONE = {"catalogue": {"context": CONTEXT}, "X": {"X": [[1.0], [2.0]]}}
MANY = {"catalogue": {"contexts": [CONTEXT, CONTEXT]}, "X": {"X": [[[1.0], [2.0]]] * 2}}
SENT = {  # path -> a body that is taken, as often as it is sent
    "/decide": lambda kind: ONE[kind] | {"extra": {"user": "u7"}},
    "/decide/many": lambda kind: MANY[kind],
    "/reward": lambda kind: {"id": "v1", "reward": 1.0},
    "/reward/many": lambda kind: {"ids": ["v1", "v2"], "rewards": [1.0, 0.0]},
    "/correct": lambda kind: {"id": "v1", "reward": 0.5},
    "/erase": lambda kind: {"where": {"user": "nobody"}},
}
ASKED = ["/explain", "/events", "/health", "/ready", "/metrics", "/status"]
GENERATED = [(path, mode) for path in (*SENT, "/explain") for mode in schemathesis.GenerationMode]
GENERATED += [(path, schemathesis.GenerationMode.POSITIVE) for path in ASKED[1:]]  # they have no parameters
REFUSED = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": [400, 404, 413, 422]}}}
)
SEVERAL = [checks.positive_data_acceptance]  # not asked for: which fields go together, `Live` says


@pytest.fixture(scope="module", params=LIVES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def schema(kind):
    live = LIVES[kind]()
    for id in ("v1", "v2"):
        live.choose(*((CONTEXT,) if kind == "catalogue" else ([[1.0], [2.0]],)), id=id, extra={"user": "u8"})
    live.reward(["v1", "v2"], [1.0, 0.0])
    app = serve.app(live, mounted=True, may_erase=True)  # schemathesis asks from no address, and by no name
    return schemathesis.openapi.from_asgi("/openapi.json", app, config=REFUSED)


@pytest.mark.parametrize(("path", "mode"), GENERATED)
def test_no_answer_is_an_error_of_the_code(schema, path, mode):
    """And each has a status, a type and a form that the document says, whether what is sent is what it says, or not."""
    operation = schema[path]["POST" if path in SENT else "GET"]

    @FEW
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case):
        case.call_and_validate(excluded_checks=SEVERAL)

    asked()


@pytest.mark.parametrize("path", SENT)
def test_what_is_nearly_right(schema, kind, path):
    """A body that is taken, but for a field or two: so it comes further than one made by chance."""
    taken = SENT[path](kind)

    @FEW
    @given(case=schema[path]["POST"].as_strategy(), fields=st.data())
    def asked(case, fields):
        odd = fields.draw(st.lists(st.sampled_from(sorted(case.body)), max_size=2)) if case.body else []
        case.body = taken | {name: case.body[name] for name in odd}
        response = case.call_and_validate(excluded_checks=SEVERAL)
        assert odd or response.status_code == 200

    asked()
