"""The checker as a program, ``python ltr/verify FILE``, which needs nothing of the package around this folder."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

spec = spec_from_file_location("verify", Path(__file__).with_name("__init__.py"))
assert spec is not None
assert spec.loader is not None
verify = sys.modules["verify"] = module_from_spec(spec)
spec.loader.exec_module(verify)
sys.exit(verify.main())
