"""Define: which panels? Each is an environment, a horizon and algorithms. And what the paper shows of them."""
