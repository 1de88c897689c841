"""The decision log: what was decided, with which probability, and what came of it (docs/log.md).

Log                                 the writer of a folder: decide, record, reward
Ledger                              decisions and rewards in a database that several processes share
read, batches                       a log with NumPy views, whole or in pieces of constant memory
from_columns, open_bandit           tables that others wrote
dsjson, vw_text                     logs of Vowpal Wabbit
coba                                results of coba
criteo, kuairand, yahoo             Criteo's counterfactual text, KuaiRand, Yahoo's R6A and R6B
FORMATS                             all readers by name, as `dither evaluate --format` takes them
Trouble                             what failed beside a call of a ledger that was answered
receipt                             the least exposure that each arm had
warm_start                          teach a bandit the rewards of a log
"""

from dither.log.arm_days import ArmDay, ArmDays
from dither.log.check import Finding, Report
from dither.log.coba_results import coba
from dither.log.criteo_text import criteo
from dither.log.exposure import Receipt, receipt
from dither.log.foreign import from_columns, open_bandit
from dither.log.kuairand_table import kuairand
from dither.log.ledger import Ledger, Pending
from dither.log.logged import ByArm, Logged
from dither.log.reader import batches, read
from dither.log.record import Recorded, RecordedMany
from dither.log.sources import FORMATS
from dither.log.troubles import Trouble
from dither.log.vw_json import dsjson
from dither.log.vw_text import vw_text
from dither.log.warm import Learnt, RewardWarning, warm_start
from dither.log.writer import Log
from dither.log.yahoo_today import yahoo

__all__ = [
    "FORMATS",
    "ArmDay",
    "ArmDays",
    "ByArm",
    "Finding",
    "Learnt",
    "Ledger",
    "Log",
    "Logged",
    "Pending",
    "Receipt",
    "Recorded",
    "RecordedMany",
    "Report",
    "RewardWarning",
    "Trouble",
    "batches",
    "coba",
    "criteo",
    "dsjson",
    "from_columns",
    "kuairand",
    "open_bandit",
    "read",
    "receipt",
    "vw_text",
    "warm_start",
    "yahoo",
]
