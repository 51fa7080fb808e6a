"""The clients behind one path of scripts/experiment_run.py: they ask until the time is over.

A client is a /24 of its own: an address of this host that connections are bound to. It opens a
page: of the port of Web search one response, of the port of tiles several at once, each over a
connection of its own. The next page comes when the one before is there, and is of a client drawn by
chance: so how often an arm is asked does not depend on how fast it is.
"""

import argparse
import json
import os
import random
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SERVICES = {
    # port: (share of the pages, mean bytes, sigma of the logarithm, most responses at once)
    8080: (0.6, 10_500, 0.83, 1),
    8081: (0.4, 6_400, 1.0, 6),
}
"""Web search and tiles of maps, of the IW10 paper: section 4.1 has the means; 90 % of Web search
fit in 15 KB (section 1). Browsers open four to six connections a domain (section 4.1)."""

PATIENCE_S = 30.0

LAST_WORDS_S = 3.0
"""Until the path may go: the last ACKs are on their way to the server."""

READ_BYTES = 1 << 16
LEAST_BYTES, MOST_BYTES = 200, 1_000_000


def fetch(source: str, server: str, port: int, size: int) -> bool:
    """One response over a new connection; whether it came whole."""
    request = (
        f"GET /data HTTP/1.1\r\nHost: {server}\r\nRange: bytes=0-{size - 1}\r\n"
        "Connection: close\r\n\r\n"
    )
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE_S)
            connection.bind((source, 0))
            connection.connect((server, port))
            connection.sendall(request.encode())
            got = 0
            while part := connection.recv(READ_BYTES):
                got += len(part)
            return got >= size
    except OSError:
        return False


def draw_size(chance: random.Random, mean: float, sigma: float) -> int:
    """A lognormal size of this mean."""
    # The mean of a lognormal distribution is the median times exp(sigma^2 / 2).
    size = chance.lognormvariate(0.0, sigma) * mean / 2.718281828459045 ** (sigma * sigma / 2)
    return int(min(max(size, LEAST_BYTES), MOST_BYTES))


def main() -> int:
    """Runs until the time is over, and writes what was asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", required=True, help="the first two numbers of the addresses")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--until", type=float, required=True, help="CLOCK_MONOTONIC, in s")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    server = os.environ["HEADSTART_SERVER"]
    chance = random.Random(given.seed)
    asked = failed = pages = 0
    most = max(service[3] for service in SERVICES.values())
    with ThreadPoolExecutor(most) as pool:
        while time.monotonic() < given.until:
            source = f"{given.network}.{chance.randrange(given.clients)}.1"
            port = chance.choices(
                list(SERVICES), weights=[service[0] for service in SERVICES.values()]
            )[0]
            _, mean, sigma, together = SERVICES[port]
            sizes = [draw_size(chance, mean, sigma) for _ in range(chance.randint(1, together))]
            got = list(pool.map(lambda size, to=(source, server, port): fetch(*to, size), sizes))
            asked, failed, pages = asked + len(got), failed + got.count(False), pages + 1
    time.sleep(LAST_WORDS_S)
    given.out.write_text(json.dumps({"pages": pages, "asked": asked, "failed": failed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
