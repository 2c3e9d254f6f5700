"""``python -m trainers`` is the command ``ltr``."""

import sys

from trainers.cli import command

if __name__ == "__main__":
    sys.exit(command())
