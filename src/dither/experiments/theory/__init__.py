"""What the command `dither theory` measures and draws: the paper's analysis (`dither.theory`) against simulation.

play            the rounds of some runs, with what was known before each
coverage        the events Ê_t and Ẽ_t
optimism        the probability of optimism
width           what TS and FP must control as d grows
slopes          the regret and the bound of Theorem 1 against T
curvature       the regret against κ_*
illustrations   figures 1 and 2a
parts           all of them by name, and the files they become
"""
