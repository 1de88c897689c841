"""`dither compare --config`: a set of comparisons in one file."""

from pathlib import Path

import polars as pl
import pytest

from dither_bench.define import comparisons

ROOT = Path(__file__).parents[2]
TOP = 'rounds = 30\nruns = 2\nalgorithms = ["LinFP", "LinTS"]\n'


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "set.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_example_runs(dither, tmp_path):
    code, _, err = dither(
        "compare", "--config", ROOT / "examples" / "comparisons.toml", "--rounds", 20, "--runs", 2, "--out", tmp_path
    )
    assert code == 0, err
    table = pl.read_csv(tmp_path / "compare.csv")
    assert {name: set(of["algorithm"]) for (name,), of in table.group_by("panel")} == {
        "few features": {"LinFP", "LinTS", "Greedy"},
        "many features": {"LinFP", "LinTS", "Greedy"},
        "clicks": {"GLMFP", "LogTS"},
    }
    assert set(table["runs"]) == {2}
    gaps = pl.read_csv(tmp_path / "compare-differences.csv")
    assert set(gaps.filter(panel="many features")["reference"]) == {"LinTS"}
    assert dither("report", tmp_path, "-o", tmp_path / "r.html")[0] == 0


def test_what_stands_at_the_top_holds_unless_a_comparison_says_it_itself(config):
    """Seen red with the settings of one comparison taken for the next."""
    one = "[[comparison]]\nwith = { dim = 3 }\nrounds = 9\n"
    figure = comparisons.read(config(TOP + one + '[[comparison]]\nenv = "logistic"\nalgorithms = ["GLMFP"]\n'))
    first, second = figure.panels
    assert (first.env["name"], first.env["dim"], first.rounds, len(first.algorithms)) == ("linear", 3, 9, 2)
    assert (second.env["name"], second.rounds, list(map(str, second.algorithms))) == ("logistic", 30, ["GLMFP"])
    assert figure.runs == 2
    assert comparisons.read(config(TOP + one), rounds=5, runs=3).panels[0].rounds == 5


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("rounds = ", ValueError, "is no TOML"),
        (TOP, ValueError, "has no comparison"),
        (TOP + "[comparison]\n", TypeError, "comparison is a list"),
        ('algoritms = ["LinFP"]\n[[comparison]]\n', TypeError, "algorithms"),
        (TOP + "[[comparison]]\nround = 3\n", TypeError, "comparison 1.*rounds"),
        (TOP + '[[comparison]]\nrounds = "3"\n', TypeError, "rounds is a whole number; got '3'"),
        (TOP + "[[comparison]]\nrounds = true\n", TypeError, "rounds is a whole number; got True"),
        (TOP + "[[comparison]]\nrounds = 0\n", ValueError, "rounds"),
        (TOP + "[[comparison]]\nalgorithms = [3]\n", TypeError, "algorithms are texts"),
        (TOP + "[[comparison]]\nalgorithms = []\n", ValueError, "name at least one algorithm"),
        (TOP + '[[comparison]]\nalgorithms = ["LinFp"]\n', LookupError, "LinFP"),
        (TOP + '[[comparison]]\nalgorithms = ["LinFP:c=1|2"]\n', ValueError, "names several settings"),
        (TOP + '[[comparison]]\nenv = "linar"\n', LookupError, "linear"),
        (TOP + "[[comparison]]\nwith = { dims = 3 }\n", TypeError, "dim"),
        (TOP + '[[comparison]]\nreference = "Greedy"\n', LookupError, "Greedy"),
        (TOP + "[[comparison]]\n[[comparison]]\n", ValueError, "two comparisons called"),
        ("runs = 0\n" + TOP.replace("runs = 2\n", "") + "[[comparison]]\n", ValueError, "runs"),
    ],
)
def test_what_is_no_set_is_refused_with_the_place(config, text, kind, says):
    """Seen red with each check left out."""
    with pytest.raises(kind, match=f"(?s){says}"):
        comparisons.read(config(text))


def test_a_file_says_alone_what_is_compared(dither, config, tmp_path):
    path = config(TOP + "[[comparison]]\n")
    for beside in (["LinUCB"], ["--env", "logistic"], ["--dim", 3], ["--with", "norm=2"], ["--reference", "LinFP"]):
        code, _, err = dither("compare", *beside, "--config", path, "--out", tmp_path / "r")
        assert (code, "says what is compared: leave out" in err) == (2, True)
    code, _, err = dither("compare", "--out", tmp_path / "r")
    assert (code, "--config FILE.toml" in err) == (2, True)
    code, _, err = dither("compare", "--config", tmp_path / "none.toml")
    assert (code, "none.toml" in err) == (2, True)
    assert not (tmp_path / "r").exists()
