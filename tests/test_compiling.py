"""Compiled kernels: where none can be kept they still run, and compiling is said and left out of timings."""

import errno
import logging
import signal
import time

import numba.core.caching
import numba.core.event
import pytest

import ltr.compiling
from ltr.compiling import clock, njit


@pytest.fixture
def watch(monkeypatch):
    """As in a new process, that has said nothing yet."""
    monkeypatch.setattr(ltr.compiling._WATCH, "_announced", False)
    monkeypatch.setattr(ltr.compiling._WATCH, "_said_in_memory", False)
    return ltr.compiling._WATCH


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where numba keeps what it compiles."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def kernel():
    def add_one(x):
        return x + 1

    add_one.__module__ = "ltr.made_up"
    return njit(cache=True, nogil=True)(add_one)


def test_where_nothing_can_be_kept_kernels_are_compiled_in_memory(watch, monkeypatch, caplog):
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    one, other = kernel(), kernel()
    assert (one(1), other(2.5)) == (2, 3.5)
    assert caplog.messages == [
        "ltr: compiled kernels cannot be kept (no folder for them can be written), so that every process compiles its "
        "own; NUMBA_CACHE_DIR=FOLDER names another place",
        "ltr: compiling, in memory, about two minutes",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_full_disk_costs_the_cache_alone(watch, folder, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)
    assert kernel()(1) == 2
    assert caplog.messages[0] == "ltr: compiling, once, about two minutes"
    assert "cannot be kept (No space left on device)" in caplog.messages[1]


def test_what_is_kept_is_not_compiled_again_and_nothing_is_said(watch, folder, caplog):
    assert kernel()(1) == 2
    assert caplog.messages == ["ltr: compiling, once, about two minutes"]
    watch._announced = False
    caplog.clear()
    assert kernel()(1) == 2
    assert caplog.messages == []


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x04."])
def test_a_damaged_cache_is_compiled_anew(watch, folder, content):
    assert kernel()(1) == 2
    kept = list(folder.rglob("*.nb?"))
    assert len(kept) == 2
    for path in kept:
        path.write_bytes(content)
    assert kernel()(1) == 2


def test_the_clock_stands_still_while_kernels_are_compiled(watch, folder):
    began, real = clock(), time.perf_counter()
    assert kernel()(1) == 2
    compiled, passed = clock() - began, time.perf_counter() - real
    assert 0 <= compiled < passed
    time.sleep(0.05)
    assert clock() - began >= compiled + 0.05


def test_a_users_own_kernels_are_none_of_ours(watch, caplog):
    began = watch._total
    assert numba.njit(lambda x: x + 2)(1) == 3
    assert caplog.messages == []
    assert watch._total == began


class Presses(numba.core.event.Listener):
    """Presses Ctrl-C in the middle of a compilation, and notes what came through."""

    def __init__(self):
        self.through = []

    def on_start(self, event):
        try:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            self.through.append(event)

    def on_end(self, event):
        pass


@pytest.mark.parametrize("raising", [True, False])
def test_ctrl_c_waits_until_a_kernel_is_compiled(watch, folder, raising):
    noted = []
    handler = signal.default_int_handler if raising else lambda number, frame: noted.append(number)
    before = signal.signal(signal.SIGINT, handler)
    try:
        add_one = kernel()
        with numba.core.event.install_listener("numba:compile", Presses()) as presses:
            if raising:
                with pytest.raises(KeyboardInterrupt):
                    add_one(1)
            else:
                assert add_one(1) == 2
        assert presses.through == []
        assert noted == ([] if raising else [signal.SIGINT] * 2)
        assert signal.getsignal(signal.SIGINT) is handler
        assert (add_one(1), add_one(1.5)) == (2, 2.5)
    finally:
        signal.signal(signal.SIGINT, before)
