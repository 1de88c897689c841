"""Checks of the parts that you write yourself."""
