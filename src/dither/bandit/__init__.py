"""`Bandit`, and the files that hold one."""
