"""Imports point one way, extras are imported where they are used, public names explain themselves."""

import graphlib
import importlib.util
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import dither

ROOT = Path(__file__).parents[2]
EXTRAS = (
    "torch",
    "polars",
    "matplotlib",
    "typer",
    "sklearn",
    "pandas",
    "narwhals",
    "joblib",
    "jinja2",
    "plotly",
    "rich",
    "pyarrow",
    "sqlalchemy",
    "alembic",
    "psycopg",
    "starlette",
    "uvicorn",
)


def python(code):
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_imports_point_one_way():
    pytest.importorskip("importlinter")
    code = """
import sys
from importlinter.cli import lint_imports
sys.exit(lint_imports(config_filename="pyproject.toml", no_cache=True))
"""
    assert "kept" in python(code).lower()


PAGE = ROOT / "docs" / "architecture.md"


def layers(*containers):
    """The layers of the contract of these containers, from the top; of none: that of the rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [c for c in contracts["contracts"] if c.get("containers", []) == list(containers)]
    return [layer.replace("dither.", "") for layer in contract["layers"]]


def section(title):
    """A section of the page on the architecture, without what is below another heading of its level."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")
    return rest.partition("\n## ")[0]


def test_the_page_has_the_layers_of_the_contract():
    rooms, stations = re.findall(r"```text\n(.*?)\n```", section("Layers"), re.DOTALL)
    assert rooms.split("\n") == layers()
    assert stations.split("\n") == layers("dither_bench")
    # seen red: `features` and `deciding` changed about, on the page and in the contract; `plan` left out


def test_the_page_describes_every_room_from_the_bottom():
    described = re.findall(r"^### (\w+)$", section("Rooms"), re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "src" / "dither").glob("*/__init__.py")}
    assert set(described) == folders - {"experiments"}  # a name of the bench, in the library
    floors = [layer.split(" | ") for layer in layers()][::-1]
    at = {room: n for n, floor in enumerate(floors) for room in floor}
    assert [at[room] for room in described] == sorted(at[room] for room in described)
    # seen red: without `drift`; `log` after `live`


def test_the_page_names_the_files_whose_name_is_used_twice():
    files = [path for path in (ROOT / "src").rglob("*.py") if not {"versions", "__pycache__"} & set(path.parts)]
    names = Counter(path.name for path in files if not path.name.startswith("__"))
    assert len(names) > 200
    (said,) = re.findall(r"The exceptions are (.*?)\. Scripts", section("Names of files"), re.DOTALL)
    assert sorted(re.findall(r"`([^`]+)`", said)) == sorted(name for name, times in names.items() if times > 1)
    # seen red: without `tuning.py`


def test_the_picture_of_the_rooms_is_that_of_the_contract():
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "architecture.py")
    rooms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rooms)
    assert rooms.draw() == (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    # seen red: a room on another floor of the contract


def circle(imports):
    """A circle of modules, each of which imports the one before it; () where there is none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return tuple(error.args[1])
    return ()


def test_no_modules_import_each_other_in_a_circle():
    grimp = pytest.importorskip("grimp")
    # Imports in functions count.
    graph = grimp.build_graph("dither", "dither_bench", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 200
    assert circle(imports) == ()
    imports["dither.algorithms.algorithm"] |= {"dither.algorithms.table"}  # as it was, for pickling
    assert {"dither.algorithms.algorithm", "dither.algorithms.table"} <= set(circle(imports))


def test_the_core_imports_no_extra():
    found = python(f"import sys, dither; print([name for name in {EXTRAS!r} if name in sys.modules])")
    assert found.strip() == "[]"
    # seen red: polars imported at the top


def test_importing_dither_loads_no_more_than_a_live_bandit_needs():
    late = ("scipy.optimize", "scipy.spatial", "scipy.fft", "scipy.sparse", "scipy.linalg", "matplotlib", "polars")
    late += ("sklearn", "torch", "dither.ope", "dither.log", "dither.datasets", "dither.envs", "dither.experiments")
    late += ("dither.testing", "dither_bench")
    live = "b = dither.LinFP(dim=2, seed=0); d = b.choose([[1.0, 0.0], [0.0, 1.0]]); b.update([1.0, 0.0], 1.0)"
    for code in ("pass", live):
        names = [name for name in late if code == "pass" or name != "scipy.linalg"]  # which the rule of λ needs
        found = python(f"import sys, dither; {code}; print([name for name in {names!r} if name in sys.modules])")
        assert found.strip() == "[]"
    # seen red: `from scipy import optimize` at the top of `policies/ofuglb.py`; sparse in `inputs.py`


def test_a_command_about_logs_loads_nothing_of_the_bench():
    code = """
import sys
from dither import cli
sys.argv = ["dither", "evaluate", "--help"]
try: cli.main()
except SystemExit as end: assert not end.code
print([name for name in sys.modules if name.startswith("dither_bench")])
"""
    assert python(code).splitlines()[-1] == "[]"
    # seen red: `import dither_bench` in `cli.evaluate`


def test_modules_that_come_late_are_there_when_asked_for():
    code = """
import dither
assert {"ope", "log", "datasets", "envs", "testing", "LinFP"} <= set(dir(dither))
assert callable(dither.ope.ips) and dither.envs.Linear(dim=2).dim == 2
assert dither.datasets is __import__("sys").modules["dither.datasets"]
from dither import *
assert callable(log.read)
try: dither.opa
except AttributeError as error: assert "opa" in str(error)
else: raise SystemExit("dither.opa")
"""
    python(code)  # seen red: `__getattr__` without log


def test_an_extra_that_is_missing_is_named():
    code = """
import sys
for name in ("polars", "joblib", "torch", "narwhals", "sqlalchemy", "starlette"): sys.modules[name] = None
import dither, numpy as np
env = dither.envs.Linear(dim=2, arms=2)
calls = {"polars": lambda: dither.simulate(env, ["Greedy"], runs=1, rounds=2).table(),
         "joblib": lambda: dither.simulate(env, ["Greedy"], runs=2, rounds=2, batch=1, jobs=2),
         "torch": lambda: dither.simulate(env, ["Greedy"], runs=1, rounds=2, device="cpu"),
         "sqlalchemy": lambda: dither.log.Ledger(),
         "starlette": lambda: dither.watch.app("news.db")}
for name, call in calls.items():
    try: call()
    except ImportError as e: assert name in str(e) and "dither[" in str(e), e
    else: raise SystemExit(name)
"""
    python(code)


def public():
    yield "dither", dither
    for name in dither.__all__:
        value = getattr(dither, name)
        yield name, value
        if inspect.ismodule(value):
            names = getattr(value, "__all__", [n for n in vars(value) if not n.startswith("_")])
            for inner in names:
                thing = getattr(value, inner)
                if getattr(thing, "__module__", "").startswith(value.__name__):
                    yield f"{name}.{inner}", thing


@pytest.mark.parametrize(
    ("name", "value"),
    [p for p in public() if not isinstance(p[1], (str, dict, float))],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_public_names_have_docstrings(name, value):
    own = value.__doc__
    assert own
    assert len(own.split()) >= 3
    if inspect.isclass(value):
        assert not own.startswith(f"{value.__name__}(")  # what a dataclass writes by itself
        for method, function in vars(value).items():
            if not method.startswith("_") and inspect.isfunction(function):
                assert inspect.getdoc(getattr(value, method)), f"{name}.{method}"


def test_the_public_names_are_there():
    linear = ["LinFP", "LinTS", "LinPHE", "RandLinUCB", "LinUCB", "EpsGreedy", "Greedy"]
    assert list(dither.ALGORITHMS)[:7] == linear
    assert set(dither.ALGORITHMS) - set(linear) == {
        *("Softmax", "SquareCB", "GLMFP", "LogEpsGreedy", "LogGreedy", "OFUGLB", "OFUGLB-e", "LogTS"),
        *("LogFPL", "LogPHE", "RandUCBLog", "UCB-GLM", "GLM-UCB", "Logistic-UCB-2", "GLOC", "EVILL"),
        *("FP", "DeepFP", "DeepFP-scalar", "DeepEpsGreedy", "DeepGreedy", "NeuralUCB", "NeuralTS", "FTPL"),
        *("NeuralLinear", "NeuralLinearFP"),
    }
    public = {name.lower(): name for name in dither.__all__}  # DeepFPScalar of DeepFP-scalar
    for name, algorithm in dither.ALGORITHMS.items():
        assert getattr(dither, public[name.replace("-", "").lower()]) is algorithm
    assert dither.OFUGLBe is dither.ALGORITHMS["OFUGLB-e"]
    assert repr(dither.OFUGLBe) == "dither.OFUGLBe"  # seen red: the name in the table, which Python cannot read
    assert dither.DeepFPScalar is dither.ALGORITHMS["DeepFP-scalar"]
    assert {"Bandit", "Decision", "load", "from_bytes", "simulate", "Results", "ALGORITHMS"} <= set(dither.__all__)
    assert sorted(dither.__all__) == sorted(set(dither.__all__))
