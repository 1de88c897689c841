"""`Live`: a bandit and its ledger, one object (docs/live.md). It needs the extra `log`."""

from dither.log import ledger

ledger.needed()  # before the modules that import SQLAlchemy

from dither.live.arithmetic import RoundingWarning  # noqa: E402
from dither.live.explaining import explained  # noqa: E402
from dither.live.repeats import OtherRequest  # noqa: E402
from dither.live.serving import Live, Shown, ShownMany  # noqa: E402
from dither.log.database.ledger_events import BanditEvent  # noqa: E402

__all__ = ["BanditEvent", "Live", "OtherRequest", "RoundingWarning", "Shown", "ShownMany", "explained"]
