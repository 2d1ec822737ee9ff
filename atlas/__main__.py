"""`python -m atlas`."""

from atlas.cli import main

main()
