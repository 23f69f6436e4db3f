"""``python -m lossratio``: the command line, even if the script ``lossratio`` is not on the path."""

from lossratio.commands import main

if __name__ == "__main__":
    main()
