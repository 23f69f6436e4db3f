"""``python -m lossratio``: the command line, where the script ``lossratio`` is not on the path."""

from lossratio.commands import main

if __name__ == "__main__":
    main()
