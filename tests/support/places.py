"""Where the ledger of kills.py is: how it is backed up and put back, and how its disk becomes full.

File       a SQLite file
Served     a PostgreSQL server of its own
Address    a database that others serve: it can only be used
"""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import databases

ROOM = 300_000  # bytes that are left on a disk before it is full, at most
SCARCE = ROOM // 3  # the same for a server, which writes more for each call


class Disk:
    """A small disk of its own (tmpfs), where this process may mount one."""

    def __init__(self, folder, owner=None):
        user = f",uid={pwd.getpwnam(owner).pw_uid},mode=700" if owner and os.getuid() == 0 else ""
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size=1g{user}", "tmpfs", str(folder)]
        self.mounted = os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0

    def leave(self, room):
        """Have so many bytes left."""
        disk = os.statvfs(self.folder)
        self._resize((disk.f_blocks - disk.f_bfree) * disk.f_frsize + room)

    def empty(self):
        self._resize(1 << 30)

    def _resize(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)

    def unmount(self):
        if self.mounted:
            subprocess.run(["umount", self.folder], check=True)


class Address:
    """A ledger in a database that others serve."""

    def __init__(self, home):
        self.home = home
        self.said = ""  # what was done in this round

    def stop(self):
        pass


class File(Address):
    """A ledger in a SQLite file."""

    def __init__(self, home, disk=None):
        """disk : the disk of its folder; None: it cannot become full, and a limit on the size of files does for it."""
        super().__init__(home)
        self._copy, self._disk = Path(f"{home}.copy"), disk

    def back_up(self, luck):
        self._copy.unlink(missing_ok=True)
        in_a_child(_copy_pages, self.home, self._copy)

    def put_back(self, luck):
        """By SQLite's backup API, or in place of the file."""
        by_pages = luck.random() < 0.5
        in_a_child(*(_copy_pages, self._copy, self.home) if by_pages else (_swap, self._copy, self.home))
        self.said = " by the backup API" if by_pages else " in place of the file"

    def fill(self, luck):
        """-> the bytes that a file of the processes may have; None: the disk has no more room."""
        room = luck.randrange(ROOM)
        if self._disk is not None:
            return self._disk.leave(room)
        files = Path(self.home).parent.glob(f"{Path(self.home).name}*")
        return max(path.stat().st_size for path in files) + room

    def make_room(self):
        if self._disk is not None:
            self._disk.empty()


class Served(Address):
    """A ledger in a PostgreSQL server of its own. Its data and its WAL have a disk each, where there may be such."""

    def __init__(self, *, small=False):
        """small : whether its disks are to become full"""
        self._folder = Path(tempfile.mkdtemp(prefix="dither-place-"))
        self._folder.chmod(0o755)
        self._disks, folders = [], {}
        if small:
            folders = {name: self._folder / name for name in ("data", "wal")}
            self._disks = [Disk(folder, owner=databases.USER) for folder in folders.values()]
        self.small = all(disk.mounted for disk in self._disks)
        self.server = databases.Server(**folders if self.small else {})
        self._full = 0
        self._name = self.server.new_name()
        self.server.execute(f"CREATE DATABASE {self._name}")
        super().__init__(self.server.address(self._name))

    def back_up(self, luck):
        self._dumped = luck.random() < 0.5
        if self._dumped:
            self.server.dump(self._name)
        else:
            self.server.copy()

    def put_back(self, luck):
        """By pg_dump and psql, in one transaction, or with another folder of data, for which the server is stopped."""
        if self._dumped:
            self.server.put_back_dump(self._name)
        else:
            self.server.put_back_copy()
        self.said = " by pg_dump and psql" if self._dumped else " by another folder of data"

    def fill(self, luck):
        """The disk of the data, and in the next round that of the WAL."""
        self._full = 1 - self._full
        room = luck.randrange(20_000, SCARCE)
        if self._full:
            self.server.use_up_wal(room)
        self._disks[self._full].leave(room)
        self.said = (" of the data", " of the WAL")[self._full]
        self._panics = self.server.panics()

    def make_room(self):
        for disk in self._disks:
            disk.empty()
        if self.server.panics() > self._panics:
            self.said += " (PANIC)"
            self.server.restart()

    def stop(self):
        self.server.stop()
        for disk in self._disks:
            disk.unmount()
        shutil.rmtree(self._folder)


def _copy_pages(source, target):
    with sqlite3.connect(source, timeout=60) as here, sqlite3.connect(target, timeout=60) as there:
        here.backup(there)
    here.close()
    there.close()
    return 0


def _swap(copy, home):
    """The file is another one, and has no journal."""
    shutil.copy(copy, f"{home}.new")
    for end in ("-wal", "-shm"):
        Path(f"{home}{end}").unlink(missing_ok=True)
    os.replace(f"{home}.new", home)
    return 0


def in_a_child(call, *arguments):
    """Call in a fork, so that this process has no connection that its next forks would share; -> the answer."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, str(call(*arguments)).encode())
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answer = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the check failed")
    return int(answer)
