"""strobe.compare and python -m strobe, with peers that compute in NumPy."""

import json
import os
import subprocess
import sys

import pytest

import strobe
from numpy_peer import NumPyPeer
from strobe import peers

pytest.importorskip("strobe._laboratory", reason="built without the laboratory")

SMALL = "b1 sq40 h2 d16 fp32"


def compare(*own, problem=SMALL, **options):
    """The records of these peers and of flash, by implementation."""
    names = [*(peer.name for peer in own), "flash"]
    records = strobe.compare(problem, implementations=names, repeats=2, **options)
    assert [record["implementation"] for record in records] == names
    return {record["implementation"]: record for record in records}


def test_a_peer_is_a_row_like_any_other(capfd):
    peer = NumPyPeer()
    records = compare(peer, problem=SMALL + " causal", threads=1, verbose=True)
    printed = capfd.readouterr().out
    theirs, ours = records[peer.name], records["flash"]
    assert theirs.keys() == ours.keys()
    assert theirs["status"] == "ok" and len(theirs["samples"]) == 2
    assert theirs["error"]["rule"] == "pass" and 0 < theirs["error"]["max"] < 1e-5
    assert theirs["sampling"]["interleaved_with"] == 1
    assert theirs["plan"] == {"library": "numpy", "threads": "1"}
    assert theirs["command"].startswith("python -m strobe compare --problem ")
    assert (peer.conditions.device, peer.conditions.threads) == ("cpu", 1)
    assert peer.name in printed and "Fastest" in printed


def test_nothing_is_printed_unless_asked_for(capfd):
    compare(NumPyPeer())
    assert capfd.readouterr() == ("", "")


def test_a_peer_that_is_wrong_fails_the_rule():
    class Wrong(NumPyPeer):
        def compute(self, problem, q, k, v):
            return super().compute(problem, q, k, v) + 0.01

    peer = Wrong()
    records = compare(peer)
    assert records[peer.name]["status"] == "failed"
    assert records[peer.name]["error"]["rule"] == "fail"
    assert records["flash"]["status"] == "ok"


def test_a_peer_that_delivers_nothing_is_not_believed():
    class Lazy(NumPyPeer):
        def compute(self, problem, q, k, v):
            return None

    peer = Lazy()
    assert "had not written out" in compare(peer)[peer.name]["reason"]


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (RuntimeError("on fire\nstack"), "failed", "RuntimeError: on fire"),
        (MemoryError("2 GB needed"), "out-of-memory", "2 GB needed"),
        (NotImplementedError("heads of dim 16"), "unsupported", "heads of dim 16"),
    ],
)
def test_an_error_is_a_row_and_the_others_go_on(error, status, reason):
    class Raising(NumPyPeer):
        runs = 0

        def compute(self, problem, q, k, v):
            self.runs += 1
            if self.runs > 3:  # amid the samples
                raise error
            return super().compute(problem, q, k, v)

    peer = Raising()
    records = compare(peer)
    assert records[peer.name]["status"] == status
    assert records[peer.name]["reason"].endswith(reason)
    assert records["flash"]["status"] == "ok"


def test_an_interrupt_is_no_error():
    class Interrupted(NumPyPeer):
        def compute(self, problem, q, k, v):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(Interrupted())


def test_what_a_peer_lacks_is_named():
    peer = NumPyPeer()
    record = compare(peer, problem=SMALL, passes="backward")[peer.name]
    assert record["status"] == "unsupported" and "other than fp32" in record["reason"]


def test_a_peer_that_breaks_the_interface_is_a_row():
    class Raising(NumPyPeer):
        def missing(self, problem, device):
            raise RuntimeError("on fire")

    class Mumbling(NumPyPeer):
        def missing(self, problem, device):
            return 5

    raising, mumbling = Raising(), Mumbling()
    records = compare(raising, mumbling)
    assert "on fire" in records[raising.name]["reason"]
    assert "another type" in records[mumbling.name]["reason"]
    assert records["flash"]["status"] == "ok"


def test_guests_are_there_to_be_compared_with(draw):
    peer = NumPyPeer()
    assert peer.name in strobe.implementations()
    q = draw(1, 8, 1, 8)
    assert strobe.explain(q, q, q).implementation == "flash"
    with pytest.raises(ValueError, match=r"^implementation is .* compared with"):
        strobe.attention(q, q, q, implementation=peer.name)
    with pytest.raises(ValueError, match="registered already"):
        peers.join(peer)


def test_a_problem_by_its_sizes_or_as_an_object():
    options = {"implementations": "flash", "repeats": 2}
    (record,) = strobe.compare(seqlen=40, nheads=2, kv_heads=1, headdim=16, batch=1, **options)
    assert record["problem"] == "b1 sq40 h2 hk1 d16 fp32"
    problem = peers.Problem(SMALL)
    assert (problem.seqlen_k, problem.window, problem.scale) == (40, (-1, -1), 0.25)
    both = strobe.compare([problem, SMALL + " causal"], passes="both", **options)
    assert [record["pass"] for record in both] == ["forward", "backward"] * 2


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"problems": 3}, TypeError, "^problems is of type int"),
        ({"problems": [3]}, TypeError, "^problems has a int"),
        ({"problems": "b1 s64 what"}, ValueError, "what"),
        ({"implementations": ["flush"]}, ValueError, "^implementation 'flush' is not known"),
        ({"implementations": []}, ValueError, "^implementations is empty"),
        ({"implementations": 5}, TypeError, "^implementations is of type int"),
        ({"passes": "sideways"}, ValueError, "passes"),
        ({"threads": 0}, ValueError, "threads"),
        ({"threads": [2]}, TypeError, "^threads is of type list"),
        ({"device": "tpu"}, ValueError, "^device is 'tpu'"),
        ({"seqlen": -1}, ValueError, "^seqlen is '-1'"),
        ({"heads": 2}, TypeError, "^there is no argument heads"),
        ({"json": "/nowhere/at/all"}, ValueError, "^json "),
    ],
)
def test_wrong_arguments_are_named(arguments, error, match):
    with pytest.raises(error, match=match):
        strobe.compare(**arguments)


@pytest.mark.skipif(bool(strobe.info()["gpus"]), reason="there is a GPU")
def test_a_device_that_is_not_there_is_named():
    with pytest.raises(RuntimeError, match=r"^device is cuda:0, but no GPU can be used"):
        strobe.compare(SMALL, device="cuda")


def test_records_are_kept_where_asked_for(tmp_path):
    path = tmp_path / "records.jsonl"
    records = compare(json=path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [*records.values()]
    with pytest.raises(ValueError, match=r"^json .*exists already"):
        compare(json=path)
    compare(json=path, force=True)


def program(*arguments, **options):
    command = [sys.executable, "-m", "strobe", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_program_writes_records_that_its_report_draws(tmp_path):
    outcome = program("compare", "--repeats", "2", "--problem", SMALL, "--json", "-")
    assert outcome.returncode == 0, outcome.stderr
    records = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert {"flash", "standard"} <= {record["implementation"] for record in records}
    path, page = tmp_path / "records.jsonl", tmp_path / "page.html"
    path.write_text(outcome.stdout)
    assert program("report", str(path), "-o", str(page)).returncode == 0
    drawn = page.read_text()
    assert all(peer.name in drawn for peer in peers.found().values() if "cpu" in peer.devices)


def test_the_program_says_what_is_wrong_and_what_is_absent():
    outcome = program("compare", "--threads", "none")
    assert outcome.returncode == 2 and outcome.stderr.startswith("strobe: ")
    listed = program("list", env={**os.environ, "PYTHONWARNINGS": "ignore"}).stdout
    assert all(f"{library} is not here: " in listed for library in peers.absent())
