"""`dither evaluate`: what other policies would have earned, from a log of any length; table, picture, page, verdict."""
