"""python -m strobe: the program, with the attention of other libraries beside ours."""

import signal
import sys

from strobe._compare import main

if __name__ == "__main__":
    # Python's own handler would only be asked after the program is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        sys.exit(main(sys.argv[1:]))
    except NotImplementedError as error:
        print(f"strobe: {error}", file=sys.stderr)
        sys.exit(3)  # not possible here, as the program's own status
