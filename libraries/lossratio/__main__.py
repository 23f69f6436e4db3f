"""The program ``lossratio``, and ``python -m lossratio``."""

import sys

from lossratio.values import ExitStatus


def main() -> None:
    """Runs the command line. Ctrl-C also ends it in order while its modules are imported."""
    try:
        from lossratio.commands import main as run
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(ExitStatus.INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
