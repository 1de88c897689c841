"""Plan: what is there, what is missing, and how long does it take?"""
