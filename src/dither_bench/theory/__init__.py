"""The command `dither theory`: the paper's analysis (`dither.theory`), measured in simulations and drawn.

play            the rounds of some runs, with all that was known before each round
coverage        the events Ê_t and Ẽ_t
optimism        the probability of optimism
width           what TS and FP must control as d grows
slopes          the regret and the bound of Theorem 1 against T
curvature       the regret against κ_*
illustrations   figures 1 and 2a
part            what each of these returns: rows of a table, a picture and sentences
catalogue       all parts by name, and the files that they become
"""
