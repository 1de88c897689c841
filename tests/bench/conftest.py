"""Own parts of one test are not there in the next: neither in this process, nor in workers that stay between calls."""

import sys

import pytest

from dither.base import parts


@pytest.fixture(autouse=True)
def own_parts_are_forgotten():
    yield
    if not parts._LOADED:
        return
    folders = {path.rpartition("/")[0] for path in parts._LOADED}
    parts._LOADED.clear()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if any(file.startswith(folder + "/") for folder in folders):
            del sys.modules[name]
    if "joblib" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True, kill_workers=True)
