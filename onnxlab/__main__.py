"""`python -m onnxlab`: the command line where no script is installed."""

import sys

from onnxlab.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
