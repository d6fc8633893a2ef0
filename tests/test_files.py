"""Model files: the container, and replacing a file whatever happens in the middle of it."""

import errno
import fcntl
import hashlib
import io
import json
import os
import pickle
import re
import resource
import shutil
import signal
import stat
import struct
import tempfile
import time
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import fork, in_a_fork
from hindsight.errors import ModelError
from hindsight.storage import container as files
from hindsight.storage.container import read, replace, write

OLD, NEW = b"old " * 100, b"new!" * 150
ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "counts": np.array([-1, 2**62]), "text": np.frombuffer(b"ab", "u1")}


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a
    )


def sealed(text: bytes, data: bytes = b"", length=None) -> bytes:
    """A file with this header and these data, and a right seal."""
    body = struct.pack("<Q", len(text) if length is None else length) + text + data
    return body + hashlib.sha256(body).digest()


def header(tensors, **metadata) -> bytes:
    known = {"format": "hindsight", "schema": "2", "kind": "model", "document": "{}"}
    return json.dumps({"__metadata__": known | metadata, **tensors}).encode()


def seal_at(place: int) -> dict:
    return {"sha256": {"dtype": "U8", "shape": [32], "data_offsets": [place, place + 32]}}


# ---------------------------------------------------------------- the container


def test_what_is_written_is_read(tmp_path):
    write(tmp_path / "m", "model", '{"a":1}', ARRAYS)
    kind, document, tensors = read(tmp_path / "m", ["model"])
    assert (kind, document) == ("model", '{"a":1}')
    assert same(tensors, ARRAYS)
    assert all(t.flags.writeable and t.flags.owndata and t.flags.aligned for t in tensors.values())


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5).filter(lambda k: k not in ("sha256", "__metadata__")),
        st.tuples(st.sampled_from(["f8", "i8", "u1"]), st.lists(st.integers(0, 4), max_size=3), st.randoms()),
        max_size=5,
    ),
    st.text(max_size=30),
)
def test_any_tensors_and_text_come_back_bit_for_bit(tmp_path_factory, tensors, document):
    path = tmp_path_factory.getbasetemp() / "any"
    made = {}
    for name, (dtype, shape, random) in tensors.items():
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        made[name] = np.frombuffer(random.randbytes(count), dtype).reshape(shape)  # NaN payloads, -0, subnormals
    write(path, "model", document, made)
    _, found, back = read(path, ["model"])
    assert found == document and same(back, made)


def test_the_safetensors_library_reads_our_files(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    from safetensors.numpy import load_file

    strided = np.arange(20.0)[::2]
    write(tmp_path / "m", "model", "{}", {**ARRAYS, "strided": strided, "empty": np.zeros((0, 3))})
    found = load_file(tmp_path / "m")
    seal = found.pop("sha256")
    assert same(found, {**ARRAYS, "strided": strided, "empty": np.zeros((0, 3))})
    assert seal.tobytes() == hashlib.sha256((tmp_path / "m").read_bytes()[:-32]).digest()
    with safetensors.safe_open(tmp_path / "m", "numpy") as file:
        assert file.metadata() == {"format": "hindsight", "schema": "2", "kind": "model", "document": "{}"}


def test_other_types_are_not_written(tmp_path):
    for array in (np.zeros(2, np.float32), np.zeros(2, ">f8"), np.array(["a"]), np.array([None])):
        with pytest.raises(ModelError, match=r"m: tensor 'a' of .* cannot be saved"):
            write(tmp_path / "m", "model", "{}", {"a": array})
    assert not os.listdir(tmp_path)


def test_what_could_not_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "HEADER", 400)
    write(tmp_path / "m", "model", "x" * 100, {})
    with pytest.raises(ModelError, match="exceeds the limits of 400"):
        write(tmp_path / "m", "model", "x" * 400, {})
    monkeypatch.setattr(files, "TENSORS", 3)
    with pytest.raises(ModelError, match="for 4 tensors"):
        write(tmp_path / "m", "model", "", ARRAYS)
    assert read(tmp_path / "m", ["model"])[1] == "x" * 100


F8 = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
WRONG = {  # each with a right seal: a lie in the header must be found for itself
    "dtype": (header({"a": F8 | {"dtype": "F32"}, **seal_at(16)}), 16, "dtype 'F32', F64, I64, U8 expected"),
    "dtype-list": (header({"a": F8 | {"dtype": ["F64"]}, **seal_at(16)}), 16, "dtype"),
    "bool": (header({"a": F8 | {"dtype": "BOOL"}, **seal_at(16)}), 16, "dtype 'BOOL'"),
    "hole": (header({"a": F8 | {"data_offsets": [8, 24]}, **seal_at(24)}), 24, "'a' has wrong offsets"),
    "overlap": (header({"a": F8, "b": F8, **seal_at(16)}), 16, "'b' has wrong offsets"),
    "beyond": (header({"a": F8 | {"shape": [200], "data_offsets": [0, 1600]}, **seal_at(1600)}), 16, "wrong offsets"),
    "shape": (header({"a": F8 | {"shape": [3]}, **seal_at(16)}), 16, "wrong offsets"),
    "negative": (header({"a": F8 | {"shape": [-2, -1]}, **seal_at(16)}), 16, "an invalid shape"),
    "huge": (header({"a": F8 | {"shape": [2**63, 2]}, **seal_at(16)}), 16, "an invalid shape"),
    "wraps": (header({"a": F8 | {"shape": [2**40, 2**40, 2]}, **seal_at(16)}), 16, "wrong offsets"),
    "empty": (header({"a": F8 | {"shape": [0] + [2**47] * 7, "data_offsets": [0, 0]}, **seal_at(0)}), 0, "has shape"),
    "true": (header({"a": F8 | {"shape": [2, True]}, **seal_at(16)}), 16, "an invalid shape"),
    "float": (header({"a": F8 | {"shape": [2.0]}, **seal_at(16)}), 16, "an invalid shape"),
    "dimensions": (header({"a": F8 | {"shape": [2] + [1] * 8}, **seal_at(16)}), 16, "an invalid shape"),
    "offsets": (header({"a": F8 | {"data_offsets": [0, 16, 16]}, **seal_at(16)}), 16, "an invalid shape"),
    "fields": (header({"a": F8 | {"more": 1}, **seal_at(16)}), 16, "must have data_offsets"),
    "no-tensor": (header({"a": 3, **seal_at(0)}), 0, "must have data_offsets"),
    "unsealed": (header({"a": F8 | {"shape": [6], "data_offsets": [0, 48]}}), 16, "do not fill the file"),
    "seal-first": (header({**seal_at(0), "a": F8 | {"data_offsets": [32, 48]}}), 16, "do not fill the file"),
    "twice": (header({"a": F8})[:-1] + b', "a": ' + json.dumps(F8).encode() + b"}", 16, "not valid JSON"),
    "deep": (b"[" * 100_000, 0, "not valid JSON"),
    "digits": (b'{"a":' + b"9" * 5000 + b"}", 0, "not valid JSON"),
    "bytes": (b"\xff\xfe{}", 0, "not valid JSON"),
    "list": (b"[]", 0, "not written by hindsight"),
    "stranger": (json.dumps({"__metadata__": {"format": "pt"}, **seal_at(0)}).encode(), 0, "not written by hindsight"),
    "number": (header(seal_at(0), schema=1), 0, "not written by hindsight"),
    "kind": (header(seal_at(0), kind="checkpoint"), 0, "its kind is 'checkpoint', model expected"),
    "format": (header(seal_at(0), format="foresight"), 0, "not written by hindsight"),
    "newer": (header(seal_at(0), schema="3"), 0, "its schema is '3', and this version reads 2: upgrade hindsight"),
    "older": (header(seal_at(0), schema="1"), 0, "its schema is '1', and this version reads 2: train it again"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_header_that_lies_is_refused(tmp_path, case):
    text, room, message = WRONG[case]
    (tmp_path / "m").write_bytes(sealed(text, bytes(room)))
    with pytest.raises(ModelError, match=message) as error:
        read(tmp_path / "m", ["model"])
    assert str(error.value).startswith(f"{tmp_path / 'm'}: ") and "\n" not in str(error.value)


def test_the_right_header_of_those_lies_is_read(tmp_path):
    (tmp_path / "m").write_bytes(sealed(header({"a": F8, **seal_at(16)}), bytes(16)))
    assert same(read(tmp_path / "m", ["model"])[2], {"a": np.zeros(2)})


def test_sizes_are_checked_before_anything_is_read(tmp_path, monkeypatch):
    """Files of a terabyte that are all holes: what they claim is refused after 8 bytes, or after a small header."""
    asked = []

    def fill(stream, out, seal):
        asked.append(out.size)
        return real(stream, out, seal)

    real = files._fill
    monkeypatch.setattr(files, "_fill", fill)
    size = 1 << 40
    small = header({"a": {"dtype": "F64", "shape": [1 << 37], "data_offsets": [0, 1 << 40]}, **seal_at(1 << 40)})
    many = header({f"t{k}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for k in range(70_000)})
    for start, most in (
        (struct.pack("<Q", files.HEADER + 1), 8),
        (struct.pack("<Q", size - 8), 8),
        (struct.pack("<Q", len(small)) + small, len(small)),
        (struct.pack("<Q", len(many)) + many, len(many)),
    ):
        with open(tmp_path / "m", "wb") as file:
            file.write(start)
            file.truncate(size)
        asked.clear()
        with pytest.raises(ModelError, match="not a complete model file"):
            read(tmp_path / "m", ["model"])
        assert max(asked) <= most


def test_every_truncation_and_every_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "m"
    write(path, "model", '{"a":1}', {"weights": np.ones(2), "text": np.arange(3, dtype=np.uint8)})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError):
            read(path, ["model"])
    path.write_bytes(whole + b"\0")
    with pytest.raises(ModelError):
        read(path, ["model"])
    path.write_bytes(whole)
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                with pytest.raises(ModelError):
                    read(path, ["model"])
            os.pwrite(file.fileno(), bytes([byte]), place)
    read(path, ["model"])


class Bomb:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_or_a_zip_runs_nothing(tmp_path):
    path, mark = tmp_path / "m", tmp_path / "ran"
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Bomb(mark)))
        archive.writestr("__main__.py", f"import os; os.mkdir({str(mark)!r})")
    array = io.BytesIO()
    np.save(array, np.array([Bomb(mark)], object), allow_pickle=True)
    arrays = io.BytesIO()
    np.savez(arrays, a=np.array([Bomb(mark)], object))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(mark), protocol))
        with pytest.raises(ModelError, match="not a complete model file"):
            read(path, ["model"])
    script = f"import os; os.mkdir({str(mark)!r})".encode()
    for content in (zipped.getvalue(), array.getvalue(), arrays.getvalue(), script):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="not a complete model file"):
            read(path, ["model"])
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark)))  # the trap itself works
    assert mark.exists()


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink("nowhere", tmp_path / "dangling")
    for path, message in (
        (tmp_path, "not a regular file|directory"),
        (tmp_path / "pipe", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (tmp_path / "dangling", "No such file"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(ModelError, match=f"{re.escape(str(path))}: .*({message})"):
            read(path, ["model"])
    for path, message in (
        (tmp_path, "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
        ("/dev/null", "not a regular file"),
        (tmp_path / "none" / "m", "No such file"),
        (tmp_path / ("n" * 300), "name too long"),
    ):
        with pytest.raises(ModelError, match=f"{re.escape(str(path))}: .*{message}"):
            write(path, "model", "{}", {})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# ---------------------------------------------------------------- replacing a file, come what may

CALLS = ("stat", "access", "listdir", "open", "chmod", "write", "fsync", "close", "replace", "unlink")


class Layer:
    """`os` for the module under test, with a hook at every call that reaches the file system."""

    def __init__(self, hook):
        self.hook, self.log = hook, []

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*args, **kwargs):
            self.log.append(name)
            return self.hook(len(self.log), name, lambda: real(*args, **kwargs), args)

        return call


def killing(last):
    """A hook that ends the process after the last of so many calls."""

    def hook(k, name, real, args):
        try:
            return real()
        finally:
            if k == last:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def through(monkeypatch, hook, path, content):
    layer = Layer(hook)
    with monkeypatch.context() as patch:
        patch.setattr(files, "os", layer)
        replace(str(path), content)
    return layer.log


def pieces(content: bytes) -> list[bytes]:
    return [content[a : a + 100] for a in range(0, len(content), 100)]


@pytest.fixture
def small(monkeypatch):
    """Blocks so small that a file takes several writes."""
    monkeypatch.setattr(files, "PIECE", 256)


@pytest.fixture
def log(tmp_path, monkeypatch, small):
    """The calls of an undisturbed replacement."""
    (tmp_path / "dry").mkdir()
    path = tmp_path / "dry" / "m"
    path.write_bytes(OLD)
    calls = through(monkeypatch, lambda k, name, real, args: real(), path, pieces(NEW))
    assert path.read_bytes() == NEW and os.listdir(path.parent) == ["m"]
    assert calls.count("write") >= 3 and calls[-4:] == ["replace", "open", "fsync", "close"]
    assert calls.index("fsync") > max(k for k, name in enumerate(calls) if name == "write")
    return calls


@pytest.mark.parametrize("exists", [True, False])
def test_killed_after_any_call_the_old_or_the_new_file_stands_there(tmp_path, monkeypatch, log, exists):
    seen, calls = set(), len(log) if exists else len(log) - log.count("access") - log.count("chmod")
    for last in range(1, calls + 1):
        path = tmp_path / str(last) / "m"
        path.parent.mkdir()
        if exists:
            path.write_bytes(OLD)
        killed = in_a_fork(lambda path=path, last=last: through(monkeypatch, killing(last), path, pieces(NEW)))
        assert killed == -signal.SIGKILL
        found = path.read_bytes() if path.exists() else None
        assert found in ((OLD if exists else None), NEW)
        seen.add(found)
        replace(str(path), pieces(NEW))  # nothing in the way, and what was left behind is gone
        assert path.read_bytes() == NEW and os.listdir(path.parent) == ["m"]
    assert seen == {(OLD if exists else None), NEW}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_an_error_of_any_call_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path, monkeypatch, log, number):
    after = len(log) - 3  # calls that come once the new file stands there
    for bad, name in enumerate(log, 1):
        path = tmp_path / f"{number}-{bad}" / "m"
        path.parent.mkdir()
        path.write_bytes(OLD)

        def hook(k, name, real, args, bad=bad):
            if k == bad:
                if name == "close":
                    real()  # a close that fails has closed
                raise OSError(number, os.strerror(number))
            return real()

        if name == "listdir":  # leftovers are not looked for then
            through(monkeypatch, hook, path, pieces(NEW))
            continue
        with pytest.raises(ModelError, match=re.escape(f"{path}: cannot be written: {os.strerror(number)}")):
            through(monkeypatch, hook, path, pieces(NEW))
        assert path.read_bytes() == (NEW if bad > after else OLD), name
        assert os.listdir(path.parent) == ["m"]


def test_a_folder_that_cannot_be_synced_is_no_error(tmp_path, monkeypatch, log):
    (tmp_path / "m").write_bytes(OLD)

    def hook(k, name, real, args):
        if k == len(log) - 1:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real()

    assert through(monkeypatch, hook, tmp_path / "m", pieces(NEW))[-2:] == ["fsync", "close"]
    assert (tmp_path / "m").read_bytes() == NEW


def test_short_writes_are_gone_on_with(tmp_path, monkeypatch, small):
    def hook(k, name, real, args):
        return os.write(args[0], args[1][:7]) if name == "write" else real()

    through(monkeypatch, hook, tmp_path / "m", pieces(NEW))
    assert (tmp_path / "m").read_bytes() == NEW
    with pytest.raises(ModelError, match="nothing could be written"):
        through(monkeypatch, lambda k, name, real, args: 0 if name == "write" else real(), tmp_path / "m", [NEW])
    assert (tmp_path / "m").read_bytes() == NEW


def test_a_limit_of_the_system_on_the_size_of_files(tmp_path):
    """A write that the kernel itself cuts short, and then refuses."""
    path = tmp_path / "m"
    path.write_bytes(OLD)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (450, 450))
        with pytest.raises(ModelError, match=f"^{path}: cannot be written: {os.strerror(errno.EFBIG)}$"):
            replace(str(path), [NEW])

    assert in_a_fork(limited) == 0
    assert path.read_bytes() == OLD and os.listdir(tmp_path) == ["m"]


class Disk:
    """A disk that may lose, at a power cut, whatever was not synced: contents of files, and names in the folder."""

    def __init__(self, name: str):
        self.name = name  # of the file under test
        self.durable = {name: {OLD}}  # what each file may hold after a cut
        self.written, self.files, self.pending = {}, {}, []

    def hook(self, k, name, real, args):
        out = real()
        if name == "open":
            self.files[out] = args[0]
            if str(args[0]).endswith(".tmp"):
                self.written[args[0]] = b""
        elif name == "write":
            path = self.files[args[0]]
            self.written[path] += bytes(args[1])
            self.durable[path] = {b"", self.written[path][:-1], bytes(len(self.written[path])), self.written[path]}
        elif name == "fsync":
            path = self.files[args[0]]
            if path in self.written:
                self.durable[path] = {self.written[path]}
            else:
                for move in self.pending:
                    self.durable[self.name] = self.durable[move]
                self.pending = []
        elif name == "replace":
            assert args[1] == self.name
            self.pending.append(args[0])
        return out

    def after_a_cut(self):
        found = set(self.durable[self.name])
        for move in self.pending:
            found |= self.durable[move]
        return found


def test_a_power_cut_after_any_call_leaves_the_old_or_the_new_file(tmp_path, monkeypatch, log):
    path = str(tmp_path / "m")
    (tmp_path / "m").write_bytes(OLD)
    disk, found = Disk(path), []

    def hook(*args):
        out = disk.hook(*args)
        found.append(disk.after_a_cut())
        return out

    through(monkeypatch, hook, path, pieces(NEW))
    assert all(states <= {OLD, NEW} for states in found)
    assert found[0] == {OLD} and found[-1] == {NEW}  # and once it has returned, the new one is safe


def test_the_model_of_the_disk_finds_a_missing_sync(tmp_path, monkeypatch, log):
    """The test above must be able to fail: without either fsync it does."""
    for which in (0, 1):
        path = str(tmp_path / "m")
        (tmp_path / "m").write_bytes(OLD)
        disk, found, syncs = Disk(path), [], []

        def hook(k, name, real, args, which=which, disk=disk, found=found, syncs=syncs):
            if name == "fsync":
                syncs.append(k)
                if len(syncs) == which + 1:
                    return None
            out = disk.hook(k, name, real, args)
            found.append(disk.after_a_cut())
            return out

        through(monkeypatch, hook, path, pieces(NEW))
        assert not all(states <= {OLD, NEW} for states in found) or found[-1] != {NEW}


def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch, log):
    for bad in range(1, len(log) - 3):
        (tmp_path / "m").write_bytes(OLD)

        def hook(k, name, real, args, bad=bad):
            if k == bad and name != "open":
                raise KeyboardInterrupt
            return real()

        if log[bad - 1] == "open":
            continue
        with pytest.raises(KeyboardInterrupt):
            through(monkeypatch, hook, tmp_path / "m", pieces(NEW))
        assert (tmp_path / "m").read_bytes() == OLD
        assert sorted(os.listdir(tmp_path)) == ["dry", "m"]


def test_links_and_permissions_stay(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "m").write_bytes(OLD)
    os.chmod(tmp_path / "real" / "m", 0o640)
    os.symlink(tmp_path / "real" / "m", tmp_path / "link")
    replace(str(tmp_path / "link"), [NEW])
    assert os.path.islink(tmp_path / "link") and (tmp_path / "real" / "m").read_bytes() == NEW
    assert stat.S_IMODE(os.stat(tmp_path / "real" / "m").st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        replace(str(tmp_path / "new"), [NEW])
    finally:
        os.umask(mask)
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o640


def test_no_permission():
    """As someone who is not root."""
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
        assert in_a_fork(lambda: (os.setuid(65534), no_permission(folder))) == 0
    else:
        no_permission(folder)
    shutil.rmtree(folder)


def no_permission(folder: str) -> None:
    m, n = os.path.join(folder, "m"), os.path.join(folder, "n")
    with open(m, "wb") as file:
        file.write(OLD)
    os.chmod(m, 0o000)
    with pytest.raises(ModelError, match="m: cannot be read: Permission denied"):
        read(m, ["model"])
    os.chmod(m, 0o444)
    with pytest.raises(ModelError, match="m: cannot be written: Permission denied"):
        replace(m, [NEW])
    os.chmod(folder, 0o555)
    with pytest.raises(ModelError, match="n: cannot be written: Permission denied"):
        replace(n, [NEW])
    os.chmod(folder, 0o755)
    with open(m, "rb") as file:
        assert file.read() == OLD


def test_only_leftovers_that_nobody_writes_are_removed(tmp_path):
    """Whoever writes holds a lock, in any container; what another host locks may not be seen, so it must be old."""
    mine, other = (f".hindsight-{host}-0000000{{}}.tmp" for host in (files.HOST, "elsewhere"))
    names = {"gone": mine.format(1), "writing": mine.format(2), "new": other.format(1), "old": other.format(2)}
    names |= {"old but writing": other.format(3), "a user's": ".hindsight-x.tmp"}
    for name in names.values():
        (tmp_path / name).write_bytes(b"")
    for what in ("old", "old but writing"):
        os.utime(tmp_path / names[what], (time.time() - 2 * files.OLD,) * 2)
    held = [(tmp_path / names[what]).open("wb") for what in ("writing", "old but writing")]
    os.utime(tmp_path / names["old but writing"], (time.time() - 2 * files.OLD,) * 2)
    for file in held:
        fcntl.flock(file, fcntl.LOCK_EX)
    replace(str(tmp_path / "m"), [NEW])
    assert set(os.listdir(tmp_path)) == {"m", *names.values()} - {names["gone"], names["old"]}
    for file in held:
        file.close()
    replace(str(tmp_path / "m"), [NEW])
    assert set(os.listdir(tmp_path)) == {"m", names["new"], names["a user's"]}


def test_two_that_write_do_not_remove_each_others_files(tmp_path):
    """Many at once in one folder, as from several hosts and containers."""
    children = []
    for k in range(4):
        child = fork()
        if child == 0:
            good = False
            try:
                for _ in range(200):
                    replace(str(tmp_path / f"m{k}"), [NEW])
                good = True
            finally:
                os._exit(0 if good else 1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert sorted(os.listdir(tmp_path)) == [f"m{k}" for k in range(4)]
