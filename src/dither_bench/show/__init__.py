"""Show: how does it look, on a screen, in a paper and on a page?"""
