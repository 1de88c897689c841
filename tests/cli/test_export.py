"""What a ledger exports is a log for the commands."""

import re

import numpy as np
import pytest

import dither as library
from dither import log, ope


def test_the_commands_read_what_a_ledger_exported(dither, tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "export"
    live = library.Live(None, bandit=library.LinFP(dim=3, floor=0.3, seed=0))
    for _ in range(200):
        X = rng.normal(size=(4, 3))
        d = live.choose(X)
        live.reward(d.id, float(X[d.arm, 0] > 0))
    live.ledger.export(folder)
    live.close()
    whole = log.read(folder)
    ips = ope.ips(whole.r, whole.a, whole.p, np.full((200, 4), 0.25))
    code, out, err = dither("evaluate", folder, "--policy", "uniform", "--estimator", "ips")
    assert code == 0, err
    shown = re.search(r"uniform +ips +(0\.\d+)", out)
    assert shown is not None
    assert abs(float(shown[1]) - ips.value) < 1e-3
    code, out, err = dither("tune", folder, "LinFP:c=0.3|1", "--floor", 0.3, "--reward-range", 0, 1)
    assert code == 0, err
    assert f"Chosen: {ope.tune(whole, ['LinFP:c=0.3|1'], floor=0.3, reward_range=(0, 1)).chosen}" in out
    code, _, err = dither("evaluate", folder, "--policy", "uniform", "--arms", 4)
    assert code == 2
    assert "how many arms were on offer: leave out --arms" in err
    # seen red: "holds no Parquet files: there is nothing to evaluate"


def test_a_database_is_refused_with_the_way_to_a_log(dither, tmp_path):
    with library.Live(tmp_path / "news.db", bandit=library.LinFP(dim=2, floor=0.3, seed=0)) as live:
        live.reward(live.choose(np.eye(2)).id, 1.0)
    for name in (tmp_path / "news.db", "postgresql://me:secret@127.0.0.1/news"):
        for command in (("evaluate", name, "--policy", "uniform"), ("tune", name, "LinFP")):
            code, _, err = dither(*command)
            assert code == 2
            assert "export(folder)" in " ".join(err.split())
            assert "secret" not in err
        with pytest.raises(ValueError, match=r"Ledger\(...\)\.read\(\)"):
            log.read(name)
    # seen red: "must be a CSV"; "no log at postgresql:/me:secret@127.0.0.1/news"
