"""Servers of a bar's own: PostgreSQL, PgBouncer and Redis, each on a free port in a temporary folder, ended by its pid.

They can be frozen (SIGSTOP: connections stay, nothing answers), crashed and started again with what they had stored.
"""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_S = 20.0
"""How long a server may take to answer, in seconds."""


class Missing(Exception):
    """A server's program is not installed here."""


def program(name: str) -> str:
    """Where a program is; Debian keeps PostgreSQL's out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parts[-2]))
    for folder in (*os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin", *map(str, reversed(places))):
        if (found := Path(folder, name)).is_file():
            return str(found)
    raise Missing(f"{name} is not installed; on Debian: apt-get install postgresql pgbouncer redis-server")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def family(pid: int) -> list[int]:
    """A process and its children."""
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                children.append(int(stat.parent.name))
    return [pid, *children]


class Server:
    """One server. ``with Redis() as redis: ...`` starts and ends it."""

    unprivileged = False
    """Whether it refuses to run as root."""
    goodbye = signal.SIGTERM
    """What ends it at once."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="bars-")
        self.folder = Path(self._folder.name)
        self._user = self._other_user()
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)

    def __enter__(self) -> Self:
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def prepare(self) -> None:
        """What is made once, before the first start."""

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def ready(self) -> bool:
        return answers(self.port)

    @property
    def url(self) -> str:
        raise NotImplementedError

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = self._popen(self.command())
        give_up = time.monotonic() + START_S
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"{type(self).__name__} did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.02)

    def crash(self) -> None:
        """End it as a crash would: nothing is written any more, every connection breaks."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let nothing answer; connections stay as they are."""
        for pid in family(self.pid):
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in family(self.pid):
            os.kill(pid, signal.SIGCONT)

    @property
    def pid(self) -> int:
        assert self.process is not None, "started before"
        return self.process.pid

    def close(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.thaw()
            self._end(self.goodbye)
        self._folder.cleanup()

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _popen(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        user: dict[str, Any] = {}
        if self._user is not None:
            user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **user,
            )

    def _end(self, how: signal.Signals) -> None:
        assert self.process is not None, "started before"
        pids = family(self.process.pid)
        self.process.send_signal(how)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        give_up = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids[1:]) and time.monotonic() < give_up:
            time.sleep(0.02)  # its children notice that it is gone
        self.process = None

    def _other_user(self) -> pwd.struct_passwd | None:
        if not self.unprivileged or os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            with suppress(KeyError):
                return pwd.getpwnam(name)
        raise Missing("there is no user to run a server as")


class Redis(Server):
    """Redis that keeps everything on disk, and evicts only when told so."""

    def __init__(self, policy: str = "noeviction") -> None:
        super().__init__()
        self.policy = policy

    def command(self) -> Sequence[str]:
        settings = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": self.policy,
        }
        return [
            program("redis-server"),
            *(str(part) for name, value in settings.items() for part in (f"--{name}", value)),
        ]

    def ready(self) -> bool:
        if not answers(self.port):
            return False
        with socket.create_connection(("127.0.0.1", self.port), 2) as line:
            line.sendall(b"PING\r\n")
            return line.recv(64).startswith(b"+PONG")  # not while it reads its log

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class Postgres(Server):
    """A PostgreSQL cluster with durable settings."""

    unprivileged = True
    goodbye = signal.SIGQUIT

    def __init__(self, connections: int = 100) -> None:
        super().__init__()
        self.connections = connections

    def prepare(self) -> None:
        made = self._popen([program("initdb"), "-A", "trust", "-U", "postgres", "-D", str(self._cluster)])
        if made.wait(60):
            raise RuntimeError(f"initdb failed: {self._log.read_text()[-2000:]}")

    def command(self) -> Sequence[str]:
        settings = {
            "max_connections": self.connections,
            "listen_addresses": "127.0.0.1",
            "recovery_init_sync_method": "syncfs",  # else a crash takes seconds to come back from, file by file
        }
        chosen = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        place = ["-D", str(self._cluster), "-p", str(self.port), "-k", str(self.folder)]
        return [program("postgres"), *place, *chosen]

    def ready(self) -> bool:
        return (
            answers(self.port)
            and subprocess.call([program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]) == 0
        )

    def crash(self) -> None:
        self._end(self.goodbye)  # leaves what a crash leaves, and no children as SIGKILL would

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def _cluster(self) -> Path:
        return self.folder / "cluster"


class PgBouncer(Server):
    """PgBouncer in transaction mode before a PostgreSQL server, with fewer server connections than clients.

    It knows the databases `bar0`, `bar1` and so on: each is the schema of that name, since a pooler in transaction mode
    keeps no search_path of a client.
    """

    unprivileged = True
    schemas = 1000

    def __init__(self, behind: Postgres) -> None:
        super().__init__()
        self.behind = behind

    def prepare(self) -> None:
        server = f"host=127.0.0.1 port={self.behind.port} dbname=postgres user=postgres"
        names = [f"bar{number}" for number in range(self.schemas)]
        known = [f"{name} = {server} connect_query='SET search_path TO {name}'" for name in names]
        (self.folder / "pgbouncer.ini").write_text(f"""
[databases]
{os.linesep.join(known)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_idle_timeout = 1
max_client_conn = 500
""")

    def command(self) -> Sequence[str]:
        return [program("pgbouncer"), str(self.folder / "pgbouncer.ini")]

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/bar0"
