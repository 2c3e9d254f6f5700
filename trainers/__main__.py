"""``python -m trainers`` is the command ``ltr``."""

import sys

from trainers.cli import main

sys.exit(main())
