"""A disk that forgets: what was written and not synced may be lost, in any part, when the power is cut.

`Disk` stands between a program and one folder. Contents count as durable when their file was synced, names when their
folder was. `after_a_cut` is what may then be found: of the rest any part, whole sectors at a time, in any order.
"""

from __future__ import annotations

import os
import random
import stat

SECTOR = 512


class Contents:
    """What a file holds: durable bytes, and writes and truncations since the last sync."""

    def __init__(self):
        self.durable, self.since = b"", []

    def sync(self):
        self.durable, self.since = self.found(lambda: True), []

    def found(self, keep):
        """The bytes, with those parts of what is not durable that `keep` says."""
        disk = bytearray(self.durable)
        for at, data in self.since:
            if data is None:  # a truncation
                if keep():
                    del disk[at:]
                continue
            for a in range(0, len(data), SECTOR):
                if keep():
                    part = data[a : a + SECTOR]
                    disk.extend(bytes(max(0, at + a - len(disk))))
                    disk[at + a : at + a + len(part)] = part
        return bytes(disk)


class Disk:
    """The folder `root`, which must not exist yet, with what is durable in it.

    Attributes
    ----------
    note : callable
        Called after each change, so that a test can look at what a power cut would leave.
    """

    CHANGES = ("open", "close", "write", "pwrite", "ftruncate", "fsync", "fdatasync", "replace", "unlink", "mkdir")

    def __init__(self, root, monkeypatch, note):
        self.root, self.note = str(root), note
        self.durable, self.since = {}, []  # names: path -> Contents, or "folder"; and (folder, changes) not yet durable
        self.names, self.files, self.ends = {}, {}, {}
        self.real = {name: getattr(os, name) for name in self.CHANGES}
        for name in self.CHANGES:
            monkeypatch.setattr(os, name, getattr(self, name))

    def mine(self, path):
        path = os.path.realpath(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else ""
        return path if path == self.root or path.startswith(self.root + os.sep) else None

    def rename(self, folder, **changes):
        """Note changes of names in a folder, which happen together or not at all."""
        for path, what in changes["to"].items():
            if what is None:
                self.names.pop(path, None)
            else:
                self.names[path] = what
        self.since.append((folder, changes["to"]))
        self.note(self)

    def after_a_cut(self, rng):
        """Files that may be found when the power comes back: path in the root -> bytes, or None for a folder."""
        often = rng.choice((0.0, 0.3, 0.7, 1.0))
        names = dict(self.durable)
        for _, changes in self.since:
            if rng.random() < often:
                for path, what in changes.items():
                    names.pop(path, None)
                    names |= {} if what is None else {path: what}
        found = {}
        for path, what in names.items():
            parents = [p for p in names if names[p] == "folder" and path.startswith(p + os.sep)]
            if len(parents) == os.path.relpath(path, os.path.dirname(self.root)).count(os.sep):
                name = os.path.relpath(path, self.root)
                found[name] = None if what == "folder" else what.found(lambda: rng.random() < often)
        return found

    # ------------------------------------------------------------ what a program calls

    def open(self, path, flags, mode=0o777, **more):
        mine = self.mine(path)
        new = mine is not None and not os.path.lexists(path)
        file = self.real["open"](path, flags, mode, **more)
        if mine is not None:
            self.files[file], self.ends[file] = mine, 0
            if new:
                self.rename(os.path.dirname(mine), to={mine: Contents()})
        return file

    def close(self, file):
        self.real["close"](file)
        self.files.pop(file, None)

    def pwrite(self, file, data, at):
        done = self.real["pwrite"](file, data, at)
        if file in self.files:
            self.names[self.files[file]].since.append((at, bytes(data[:done])))
            self.note(self)
        return done

    def write(self, file, data):
        done = self.real["write"](file, data)
        if file in self.files:
            self.names[self.files[file]].since.append((self.ends[file], bytes(data[:done])))
            self.ends[file] += done
            self.note(self)
        return done

    def ftruncate(self, file, size):
        self.real["ftruncate"](file, size)
        if file in self.files:
            self.names[self.files[file]].since.append((size, None))
            self.note(self)

    def fdatasync(self, file):
        self.note(self)  # before it, too
        if file in self.files:
            self.names[self.files[file]].sync()
        self.note(self)

    def fsync(self, file):
        folder = os.readlink(f"/proc/self/fd/{file}")
        if stat.S_ISDIR(os.fstat(file).st_mode):
            for where, changes in self.since:
                if where == folder:
                    for path, what in changes.items():
                        self.durable.pop(path, None)
                        self.durable |= {} if what is None else {path: what}
            self.since = [each for each in self.since if each[0] != folder]
            self.note(self)
        else:
            self.fdatasync(file)

    def replace(self, old, new, **more):
        self.real["replace"](old, new, **more)
        if self.mine(new):
            old, new = self.mine(old), self.mine(new)
            self.rename(os.path.dirname(new), to={old: None, new: self.names[old]})

    def unlink(self, path, **more):
        mine = self.mine(os.path.dirname(path) or ".")
        self.real["unlink"](path, **more)
        if mine is not None:
            path = os.path.join(mine, os.path.basename(path))
            self.rename(mine, to={path: None})

    def mkdir(self, path, mode=0o777, **more):
        self.real["mkdir"](path, mode, **more)
        if self.mine(path):
            self.rename(os.path.dirname(self.mine(path)), to={self.mine(path): "folder"})


def put(files, folder):
    """Write what was found after a cut to a folder."""
    os.makedirs(folder)
    for name in sorted(files, key=len):
        path = os.path.join(folder, name)
        if files[name] is None:
            os.makedirs(path, exist_ok=True)
        else:
            with open(path, "wb") as file:
                file.write(files[name])


def some_cuts(disk, seed, count):
    """Several disks that a cut at this moment may leave; each kind of loss with its own chance."""
    rng = random.Random(seed)
    return [disk.after_a_cut(rng) for _ in range(count)]
