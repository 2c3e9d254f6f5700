"""The checkout, and the paper's data: the folder `LTR_DATA`, or shared/data beside the checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("LTR_DATA") or ROOT.parent / "shared" / "data")
