"""``python -m trainers`` is the command ``ltr``."""

import os
import signal
import sys
import threading

from trainers.stopping import complain, stop_once


def command() -> int:
    """Run the command ``ltr`` as a process of its own; Ctrl-C and SIGTERM stop it once, and cannot disturb its end."""

    def failed(failure: threading.ExceptHookArgs) -> None:
        # no traceback of TensorBoard's writer on a full disk: the run reports the same error
        if not issubclass(failure.exc_type, OSError):
            threading.__excepthook__(failure)

    threading.excepthook = failed
    stop_once()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # to look for them takes a tenth of a second
    try:
        from ltr.checks import PLACES
        from trainers import cli

        PLACES.append("")  # losses of the user's own may stand in the working folder
        return cli.main()
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python's own end puts back what kills


if __name__ == "__main__":
    sys.exit(command())
