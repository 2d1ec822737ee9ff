"""`python -m atlas`."""

import sys

try:
    from atlas.cli import main

    main()
except KeyboardInterrupt:  # before the command line is there to take it
    sys.exit(130)
