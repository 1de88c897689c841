"""Run: which block, and by whom?"""
