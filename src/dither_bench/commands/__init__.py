"""The commands of `dither` that are about the paper and about comparisons."""
