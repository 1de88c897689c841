"""What is said of a log whose arms had values: its rewards are counted as they came, and may not be what is wanted.

The column `values` has what a unit of reward was worth for each arm on offer. Whoever wants money writes it into the
rewards, and drops the column. So a log that still has it is judged by something else, such as purchases.
"""

MONEY = (
    'log.read(rows.frame.with_columns(reward=pl.col("reward") * pl.col("values").list.get(pl.col("arm")))'
    '.drop("values"))'
)
AS_THEY_CAME = (
    "The rewards are counted as they came, not times the value of the arm that was shown (the log has a column "
    "'values'). For money, judge rewards times values: with rows = log.read(...), import polars as pl and from dither "
    f"import log, money = {MONEY}; money.write('money.parquet') makes a log for the command line (docs/values.md)."
)
TUNED = (
    f"{AS_THEY_CAME} tune chooses by these rewards and knows no values. So judge each bandit on money by its "
    'probabilities, bandit.propensities(rows.X, mask=rows.mask, values=rows.matrix("values")).'
)
