"""Where the tests find the paper's data: `LTR_DATA`, or a folder shared/data beside the checkout."""

import os
from pathlib import Path

BESIDE = Path(__file__).parents[2] / "shared" / "data"

if BESIDE.is_dir():
    os.environ.setdefault("LTR_DATA", str(BESIDE))
