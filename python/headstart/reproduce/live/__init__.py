"""A scenario's traffic on the live kernel, over emulated paths: what `--on kernel` runs by.

`headstart path` makes the path, `headstart exec` loads the start-up in the server's namespace, and
`ends.py` is server and client. The answer has a simulation's frames, as far as the wire has them.
"""

from headstart.reproduce.live.plan import LiveError
from headstart.reproduce.live.run import LiveResult, live_sweep

__all__ = ["LiveError", "LiveResult", "live_sweep"]
