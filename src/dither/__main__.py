"""`python -m dither`: the command line."""

from dither.cli import main

if __name__ == "__main__":
    main()
