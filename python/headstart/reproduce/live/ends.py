"""The two ends of live connections: `ends.py server PORT` and `ends.py client PLAN.json`.

Run as a program, inside the namespaces of `headstart path`; it uses nothing but the standard
library, so that it starts at once. The client asks and the server sends; what they say of it is who
asked for what, the times of the transfers are the wire's (wire.py).

A request is one line, `BYTES CONTROL HINT`, filled up with spaces to the length that the plan
gives: BYTES to be sent (`-1`: until the end, `-2`: nothing, the client sends), the congestion
control that the server is to choose for the connection (`-`: as it is), and whether to tell it the
size before.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HINT_OPTION = 0x4853
"""As in `headstart_kernel`: by which a program says how large its next transfer is."""

SO_RCVBUFFORCE = 33
"""asm-generic/socket.h; Python has no name for it."""

FULL_PAYLOAD_BYTES, PACKET_MEMORY_BYTES = 1448, 2304
"""Of a full packet: its payload, and what it takes in the receiver's memory (as headstart-path)."""

PIECE = bytes(1 << 16)
ENDLESS, UPLOAD = -1, -2
PATIENCE_S = 60.0
"""How long the client looks for the server's ports: the kernel's verifier may take its time."""


def serve(port: int) -> None:
    """Serves connections until it is killed."""
    listener = socket.create_server(("", port), backlog=512)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """Answers the requests of one connection."""
    try:
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                size, control, hint = line.split()
                if control != b"-":
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
                if hint == b"1":
                    connection.setsockopt(socket.IPPROTO_TCP, HINT_OPTION, int(size))
                if int(size) == UPLOAD:
                    while connection.recv(1 << 18):
                        pass
                send(connection, int(size))
    except OSError:
        pass  # the client has gone: the run is over


def send(connection: socket.socket, size: int) -> None:
    """Sends `size` bytes, or without end."""
    left = size
    while size == ENDLESS or left > 0:
        piece = PIECE if size == ENDLESS or left >= len(PIECE) else PIECE[:left]
        connection.sendall(piece)
        left -= len(piece)


class Client:
    """Carries out a plan: a thread a user."""

    def __init__(self, plan: dict[str, Any]) -> None:
        """Reads the plan; nothing is started."""
        self.plan = plan
        self.server = os.environ["HEADSTART_SERVER"]
        self.begin_ns = 0
        self.lock = threading.Lock()
        self.connections: dict[str, int] = {}
        self.transfers: list[dict[str, Any]] = []
        self.received: dict[int, list[int]] = {}
        self.failures: list[str] = []

    def run(self) -> dict[str, Any]:
        """All users until they are done, or until the plan's end; what there is to tell of it."""
        for port in {user["port"] for user in self.plan["users"]}:
            self.wait_for(port)
        self.begin_ns = time.monotonic_ns()
        threads = [
            (user, threading.Thread(target=self.user, args=(user,), daemon=True))
            for user in self.plan["users"]
        ]
        for _, thread in threads:
            thread.start()
        for user, thread in threads:
            if not user["endless"]:
                thread.join(max(self.left_s(), 0.0))
        if self.plan["whole"] or all(user["endless"] for user, _ in threads):
            time.sleep(max(self.left_s(), 0.0))
        with self.lock:
            return {
                "begin_ns": self.begin_ns,
                "transfers": self.transfers,
                "received": {port: count[0] for port, count in self.received.items()},
                "failures": self.failures,
            }

    def left_s(self) -> float:
        """Seconds until the plan's end."""
        return self.plan["until_s"] - (time.monotonic_ns() - self.begin_ns) / 1e9

    def wait_for(self, port: int) -> None:
        """Until something listens there."""
        patience_end = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection((self.server, port), timeout=PATIENCE_S).close()
                return
            except OSError:
                over = time.monotonic() > patience_end
                if over or Path(self.plan.get("server_ended", "/")).is_file():
                    raise
                time.sleep(0.05)

    def user(self, user: dict[str, Any]) -> None:
        """One user, from its start to its last page."""
        try:
            self.rest(user["start_s"] - (time.monotonic_ns() - self.begin_ns) / 1e9)
            kept: list[Connection] = []
            for page in user["pages"]:
                self.load(user, page["bytes"], kept)
                self.rest(page["think_s"])
        except Exception as error:
            # A thread's end is not the program's: it is told at the run's end.
            with self.lock:
                self.failures.append(f"{user['group']}: {type(error).__name__}: {error}")

    @staticmethod
    def rest(seconds: float) -> None:
        """A pause."""
        if seconds > 0:
            time.sleep(seconds)

    def load(self, user: dict[str, Any], sizes: list[int], kept: "list[Connection]") -> None:
        """One page: its objects over at most `parallel` connections at once."""
        waiting = list(sizes)
        if user["index_first"] and len(waiting) > 1:
            self.fetch_all(user, [waiting.pop(0)], kept)
        lanes = min(user["parallel"], len(waiting))
        if lanes <= 1:
            self.fetch_all(user, waiting, kept)
            return
        pools: list[list[Connection]] = [kept[lane : lane + 1] for lane in range(lanes)]
        threads = [
            threading.Thread(target=self.fetch_all, args=(user, waiting, pool), daemon=True)
            for pool in pools
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept[:] = [connection for pool in pools for connection in pool]

    def fetch_all(self, user: dict[str, Any], waiting: list[int], kept: "list[Connection]") -> None:
        """Fetches what waits, over the connection that is kept or over a new one each."""
        while True:
            with self.lock:
                if not waiting:
                    return
                size = waiting.pop(0)
            if not kept:
                kept.append(Connection(self, user))
            kept[0].fetch(size)
            if not user["persistent"]:
                kept.pop().close()


class Connection:
    """A connection to the server."""

    def __init__(self, client: Client, user: dict[str, Any]) -> None:
        """Connects, with the sizes that the plan gives to segments and window."""
        self.client, self.user = client, user
        self.socket = socket.socket()
        tcp = socket.IPPROTO_TCP
        if user["segment_bytes"]:
            self.socket.setsockopt(tcp, socket.TCP_MAXSEG, user["segment_bytes"])
        if user["window_bytes"]:
            self.bound(user["window_bytes"], user["segment_bytes"] or FULL_PAYLOAD_BYTES)
        if user["upload"] and user["control"] != "-":
            name = user["control"].encode()
            self.socket.setsockopt(tcp, socket.TCP_CONGESTION, name)
        self.socket.connect((client.server, user["port"]))
        self.port = self.socket.getsockname()[1]
        self.turn, self.offset_bytes = 0, 0
        self.count = [0]
        with client.lock:
            self.number = client.connections.get(user["group"], 0)
            client.connections[user["group"]] = self.number + 1
            client.received[self.port] = self.count

    def bound(self, window_bytes: int, segment_bytes: int) -> None:
        """Bounds the window that is offered.

        The clamp alone does not last: when the kernel learns how much memory a packet takes, it
        sets it to what the buffer has room for. So the buffer is as large as the window's packets
        are in memory, and fixed; the kernel doubles what it is told.
        """
        room = window_bytes * PACKET_MEMORY_BYTES // segment_bytes
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, room // 2)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, window_bytes)

    def fetch(self, size: int) -> None:
        """Asks for `size` bytes and reads them."""
        user = self.user
        wanted = UPLOAD if user["upload"] else size
        line = f"{wanted} {user['control']} {int(user['hint'])}"
        told = {
            "group": user["group"],
            "user": user["user"],
            "conn": self.number,
            "turn": self.turn,
            "port": self.port,
            "bytes": max(size, 0),
            "offset_bytes": self.offset_bytes,
            "request_offset_bytes": self.turn * user["request_bytes"],
            "finished": False,
        }
        with self.client.lock:
            self.client.transfers.append(told)
        self.socket.sendall(line.ljust(user["request_bytes"] - 1).encode() + b"\n")
        if user["upload"]:
            send(self.socket, size)
        else:
            self.read(size)
        self.turn += 1
        self.offset_bytes += size
        told["finished"] = True

    def read(self, size: int) -> None:
        """Reads `size` bytes, or until the end."""
        buffer = bytearray(1 << 18)
        left = size
        while size == ENDLESS or left > 0:
            got = self.socket.recv_into(buffer, min(left, len(buffer)) if left > 0 else 0)
            if got == 0:
                raise ConnectionError("the server closed a connection too early")
            left -= got
            self.count[0] += got

    def close(self) -> None:
        """Closes it."""
        self.socket.close()


def prepare(settings: dict[str, Any]) -> None:
    """Sets what the plan asks of this end's namespace: sysctls, and attributes of its route."""
    for name, value in settings["sysctls"].items():
        Path("/proc/sys", *name.split(".")).write_text(str(value), encoding="ascii")
    if settings["route"]:
        lane = os.environ["HEADSTART_LANE"]
        own = os.environ["HEADSTART_SERVER" if settings["side"] == "server" else "HEADSTART_CLIENT"]
        prefix = f"10.77.{lane}.0/24"
        command = ["ip", "route", "replace", prefix, "dev", "tun0", "src", own]
        subprocess.run([*command, *settings["route"]], check=True)


def main() -> None:
    """Server, client, or `prepare SIDE PLAN`: the settings alone."""
    role = sys.argv[1]
    if role == "server":
        serve(int(sys.argv[2]))
    plan = json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8"))
    if role == "prepare":
        prepare(plan["server"])
        return
    prepare(plan["client"])
    told = Client(plan).run()
    Path(plan["told"]).write_text(json.dumps(told), encoding="utf-8")
    # Threads may still wait for bytes without end.
    os._exit(0)


if __name__ == "__main__":
    main()
