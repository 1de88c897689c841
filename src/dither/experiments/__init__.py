"""The paper's figures as data, the store of results, tables, plots and the report (extra "experiments").

figures -> run -> store -> tables -> plots, report. Each imports those before it; only `commands` and `render` print.
"""
