"""Keep: which code made a result, is it whole, and what was asked for?"""
