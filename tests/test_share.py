"""Sharing: what is sent, what never is, and every error. Nothing here reaches the network: the
function that would is replaced, and its replacement has the signature of trace-util's own."""

import hashlib
import inspect
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import NamedTuple

import pytest
from build import ROOT, forward, story, trace, write

from common import share
from common.cli import UserError
from common.compare.claims import Expectation
from common.lesson import Lesson, Options, run
from common.record.harness import Subject
from common.show.words import size

httpx2 = pytest.importorskip("httpx2", reason="huggingface_hub is not installed")

BUCKET = "me/traces"
NEWER = pytest.mark.skipif(sys.version_info < (3, 12), reason="trace-util needs Python 3.12")


class TraceLink(NamedTuple):
    path: str
    perfetto_url: str


class Bucket:
    """Stands in for trace-util, as the bucket that it sends to."""

    def __init__(self) -> None:
        self.files = {"somebody/else.json": b"{}"}
        self.calls = []
        self.error = None

    def upload_traces(
        self,
        bucket_name: str,
        folder_path: str | Path,
        *,
        token: str | None = None,
        delete: bool = True,
        do_login: bool = True,
        recursive: bool = True,
    ) -> list[TraceLink]:
        print("Syncing")  # as huggingface_hub does, on stdout
        self.calls.append((bucket_name, delete, do_login))
        if self.error:
            raise self.error
        folder = Path(folder_path)
        sent = [path for path in folder.rglob("*") if path.is_file()]
        if delete:
            self.files.clear()
        self.files |= {path.relative_to(folder).as_posix(): path.read_bytes() for path in sent}
        return [TraceLink(path, f"https://ui.perfetto.dev/#!/?url={path}") for path in self.files]


@pytest.fixture
def bucket(monkeypatch):
    made = Bucket()
    module = types.ModuleType("trace_util")
    module.upload_traces = made.upload_traces
    monkeypatch.setitem(sys.modules, "trace_util", module)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "a token")
    return made


@NEWER
def test_the_stand_in_has_the_signature_of_trace_util():
    from trace_util import TraceLink as Real
    from trace_util import upload_traces

    real, ours = inspect.signature(upload_traces), inspect.signature(Bucket().upload_traces)
    assert [(p.name, p.kind, p.default) for p in real.parameters.values()] == [
        (p.name, p.kind, p.default) for p in ours.parameters.values()
    ]
    assert real.parameters["delete"].default is True  # it mirrors unless told not to
    assert Real._fields == TraceLink._fields


def named(path: Path, folder: str = "") -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    stem, dot, ending = path.name.partition(".")
    return f"{folder}{stem}-{digest}{dot}{ending}"


def test_only_these_files_are_sent_and_nothing_is_deleted(tmp_path, bucket, capsys):
    path = write(tmp_path, trace(forward(100, ("mul", "k", 5))), "run.json")
    table = write(tmp_path, b"the table", "run.txt")
    write(tmp_path, b"{}", "another.json")
    links = share.upload([path, table], BUCKET, "04_x")
    assert bucket.calls == [(BUCKET, False, False)]
    assert bucket.files == {
        "somebody/else.json": b"{}",
        named(path, "04_x/"): path.read_bytes(),
        named(table, "04_x/"): b"the table",
    }
    assert links == [f"https://ui.perfetto.dev/#!/?url={named(path, '04_x/')}"]
    out, err = capsys.readouterr()
    assert out == ""
    said = err.splitlines()
    assert said[0].startswith(f"note: sending to huggingface.co/buckets/{BUCKET}, ")
    assert said[1] == f"note:   {named(path, '04_x/')}, {size(path.stat().st_size)}"
    assert said[2] == f"note:   {named(table, '04_x/')}, 9 B"
    assert said[3] == "Syncing"  # after it was said what is sent


def test_nothing_that_is_there_is_ever_replaced(tmp_path, bucket):
    """The same place on the disk, another content: both stay."""
    for us in (5, 6):
        share.upload([write(tmp_path, trace(forward(100, ("mul", "k", us))))], BUCKET)
    assert len(bucket.files) == 3
    share.upload([write(tmp_path, trace(forward(100, ("mul", "k", 6))))], BUCKET)
    assert len(bucket.files) == 3  # the same content has the same name


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"host_name": "worker-17"}, '1 host name (in "host_name": w…)'),
        ({"traceName": "/home/alice/run.json"}, '1 personal path (in "traceName": /home/…)'),
    ],
)
def test_a_trace_that_names_somebody_is_not_sent(tmp_path, bucket, capsys, content, words):
    path = write(tmp_path, trace(forward(100, ("mul", "k", 5))) | content, "run.json")
    with pytest.raises(UserError) as error:
        share.upload([path], BUCKET)
    assert str(error.value).startswith(f"nothing was sent: {path} holds {words}; ")
    assert bucket.calls == [] and capsys.readouterr().err == ""


def test_neither_is_a_table_or_a_name(tmp_path, bucket):
    path = write(tmp_path, trace(forward(100, ("mul", "k", 5))), "run.json")
    table = write(tmp_path, b"| /home/alice/x.py(3): f |", "run.txt")
    with pytest.raises(UserError, match=r"nothing was sent: .*run\.txt holds 1 personal path"):
        share.upload([path, table], BUCKET)
    path = path.rename(tmp_path / "worker-17_42.1790000000000000000.pt.trace.json")
    with pytest.raises(UserError, match=r"""holds 1 host name \(in "the file's name": w…\)"""):
        share.upload([path], BUCKET)
    assert bucket.calls == []


def test_names_in_the_bucket_lead_nowhere_else(tmp_path, bucket):
    path = write(tmp_path, trace(forward(100, ("mul", "k", 5))), "my run.json")
    share.upload([path], BUCKET, "../../etc")
    [name] = set(bucket.files) - {"somebody/else.json"}
    assert name == named(path).replace(" ", "-").join(("-..-etc/", ""))


@pytest.mark.parametrize(
    "name", ["traces", "me/", "/traces", "me/traces/x", "<you>/traces", "a b/c"]
)
def test_a_name_that_is_no_buckets(bucket, name):
    with pytest.raises(UserError, match="no bucket's name; write <user>/<bucket>"):
        share.require(name)


def test_no_token(bucket, monkeypatch):
    share.require(BUCKET)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(
        UserError, match=r"me/traces: no Hugging Face token; .*auth login.*HF_TOKEN"
    ):
        share.require(BUCKET)


def test_python_3_11_cannot_and_says_how(monkeypatch):
    monkeypatch.setitem(sys.modules, "trace_util", None)  # its import fails
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    monkeypatch.setattr(sys, "argv", ["/some/where/04_a_naive_attention.py", "--upload", BUCKET])
    with pytest.raises(UserError) as error:
        share.require(BUCKET)
    assert str(error.value) == (
        "--upload goes through trace-util, which needs Python 3.12, and this is 3.11: "
        "uv run --python 3.12 04_a_naive_attention.py …"
    )
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    with pytest.raises(UserError, match="trace-util: .*uv sync installs it"):
        share.require(BUCKET)


def http_error(status: int):
    from huggingface_hub.errors import HfHubHTTPError

    request = httpx2.Request("POST", "https://huggingface.co/api/buckets/me/traces")
    response = httpx2.Response(status, request=request)
    return HfHubHTTPError("first\nsecond", response=response)


def offline():
    from huggingface_hub.errors import OfflineModeIsEnabled

    return OfflineModeIsEnabled("Cannot reach it: offline mode is enabled.")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (lambda: http_error(401), "the token is not valid; log in again"),
        (lambda: http_error(403), "the token may not write there"),
        (lambda: http_error(404), "there is no such user or organisation"),
        (lambda: http_error(503), "the server answers 503"),
        (lambda: httpx2.ConnectError("Name or service not known"), "huggingface.co cannot be reache"
         r"d \(Name or service not known\); the recording is kept"),
        (lambda: httpx2.ReadTimeout("timed out"), r"cannot be reached \(timed out\)"),
        (offline, "Cannot reach it: offline mode is enabled"),
        (lambda: RuntimeError("in the middle\nof it"), "in the middle$"),
        (lambda: OSError("disk"), "disk"),
    ],
)  # fmt: skip
def test_what_goes_wrong_on_the_way_is_one_line(tmp_path, bucket, error, words):
    bucket.error = error()
    with pytest.raises(UserError, match=f"^--upload me/traces: .*{words}"):
        share.upload([write(tmp_path, trace(forward(100, ("mul", "k", 5))))], BUCKET)


def test_what_the_bucket_does_not_list_was_not_shared(tmp_path, bucket, monkeypatch):
    monkeypatch.setattr(sys.modules["trace_util"], "upload_traces", lambda *a, **k: [])
    with pytest.raises(UserError, match="sent, but me/traces does not list trace-"):
        share.upload([write(tmp_path, trace(forward(100, ("mul", "k", 5))))], BUCKET)


def lesson(folder: Path, **more) -> None:
    content = trace(forward(100, ("mul", "k", 5)), about=story(script="04_x", variant=""))
    path = write(folder, content, "run.json")
    expected = Expectation("mul")
    test = Lesson(Subject("test", "fwd"), expected, expected, pytest.fail)
    run("04_x", test, Options(replay=str(path), **more))


def test_a_script_shares_after_its_report(tmp_path, bucket, capsys):
    lesson(tmp_path, upload=BUCKET)
    [name] = set(bucket.files) - {"somebody/else.json"}
    assert name.startswith("04_x/run-")
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"shared https://ui.perfetto.dev/#!/?url={name}"


def test_with_json_there_is_one_object_on_stdout(tmp_path, bucket, capsys):
    lesson(tmp_path, upload=BUCKET, json=True)
    out, err = capsys.readouterr()
    assert json.loads(out)["region"] == "fwd"
    assert "note: shared https://ui.perfetto.dev/" in err


def test_nothing_is_sent_unasked(tmp_path, bucket):
    lesson(tmp_path)
    assert bucket.calls == []


def test_a_bad_name_is_said_before_anything_is_read(tmp_path, bucket):
    with pytest.raises(UserError, match="no bucket's name"):
        run("04_x", None, Options(replay="no/such/file", upload="traces"))


def command(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_starting_up_imports_nothing_of_it():
    done = command(
        "import common.lesson, sys; print({'trace_util', 'huggingface_hub'} & set(sys.modules))"
    )
    assert done.stdout == "set()\n", done.stderr


def test_through_the_command_line_without_a_token(tmp_path):
    """As a newcomer has it: Python 3.11, or no token. One line, and nothing before it."""
    environment = {"HF_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "04_a_naive_attention.py", "--replay", "--upload", BUCKET],
        cwd=ROOT, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    why = "needs Python 3.12" if sys.version_info < (3, 12) else "no Hugging Face token"
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert why in done.stderr
