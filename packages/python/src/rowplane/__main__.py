"""`python -m rowplane` is the program `rowplane`."""

import subprocess
import sys

from rowplane import find_program

try:
    sys.exit(subprocess.call([find_program(), *sys.argv[1:]]))
except KeyboardInterrupt:
    # The program was told, too.
    sys.exit(130)
