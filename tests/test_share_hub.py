"""The whole upload, through trace-util and huggingface_hub, to a small hub on loopback: what is
sent, under which names, and one line for every refusal and every odd answer."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from build import ROOT, forward, trace, write

pytest.importorskip("trace_util", reason="trace-util is not installed: it needs Python 3.12")

BUCKET = "me/traces"


class Hub(BaseHTTPRequestHandler):
    """Answers as the Hub does; of `odd`, (part of a path, status, body), otherwise."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *said):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server, path = self.server, self.path
        here = f"http://127.0.0.1:{server.server_port}"
        server.asked.append((self.command, path))
        status, said = 200, {}
        if path == f"/api/buckets/{BUCKET}" and self.command == "POST":
            said = {"url": f"{here}/buckets/{BUCKET}", "id": BUCKET, "name": BUCKET}
        elif "xet-write-token" in path:
            said = {"casUrl": here, "accessToken": "x", "exp": 9999999999}
        elif "/tree" in path:
            when = "2026-01-01T00:00:00.000Z"
            said = [
                {"type": "file", "path": name, "size": 1, "xetHash": "0" * 64, "mtime": when,
                 "uploadedAt": when}
                for name in server.files
            ]  # fmt: skip
        elif path.endswith("/batch"):
            for line in body.decode().splitlines():
                told = json.loads(line)
                server.told.append(told["type"])
                if told["type"] == "addFile":
                    server.files.append(told["path"])
            said = {"success": True, "processed": 1, "succeeded": 1, "failed": []}
        elif "/v1/xorbs/" in path:
            server.sent += len(body)
            said = {"was_inserted": True}
        elif path.endswith("/shards") and "/v2/" not in path:
            said = {"result": 1}
        else:
            status, said = 404, {"error": "not here"}
        text = json.dumps(said).encode()
        if server.odd and server.odd[0] in path:
            status, text = server.odd[1:]
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.asked, server.files, server.told, server.sent, server.odd = [], ["old.json"], [], 0, None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def share(hub, tmp_path, *files) -> subprocess.CompletedProcess:
    code = (
        "import sys; from pathlib import Path\n"
        "from common import share\n"
        "from common.cli import one_line_errors\n"
        "with one_line_errors():\n"
        f"    share.require({BUCKET!r})\n"
        f"    links = share.upload([Path(x) for x in sys.argv[1:]], {BUCKET!r}, '04_x')\n"
        "    print(*links, sep='\\n')\n"
    )
    environment = os.environ | {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_TOKEN": "hf_of_no_one",
        "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, files)], cwd=ROOT, env=environment, timeout=120,
        capture_output=True, text=True,
    )  # fmt: skip


def recording(tmp_path, **more):
    return write(tmp_path, trace(forward(100, ("mul", "k", 5))) | more, "run.json")


def test_a_whole_upload(hub, tmp_path):
    table = write(tmp_path, b"the table", "run.txt")
    done = share(hub, tmp_path, recording(tmp_path), table)
    assert done.returncode == 0, done.stderr
    assert hub.files[0] == "old.json" and set(hub.told) == {"addFile"}  # nothing is deleted
    sent = sorted(hub.files[1:])
    assert sorted(name.rpartition(".")[2] for name in sent) == ["json", "txt"]
    assert all(name.startswith("04_x/run-") for name in sent) and hub.sent > 100
    [link] = done.stdout.splitlines()
    assert link.startswith("https://ui.perfetto.dev/#!/?url=") and "04_x/run-" in link


def test_what_names_somebody_does_not_leave_this_machine(hub, tmp_path):
    done = share(hub, tmp_path, recording(tmp_path, host_name="worker-17"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was sent" in done.stderr and done.stderr.count("\n") == 1
    assert not hub.sent and not any(command == "POST" for command, _ in hub.asked)


@pytest.mark.parametrize(
    ("where", "status", "answer"),
    [
        ("/api/buckets", 401, b'{"error": "Invalid username or password."}'),
        ("/api/buckets", 403, b'{"error": "Forbidden"}'),
        ("/api/buckets", 404, b"{}"),
        ("/api/buckets", 200, b"[]"),
        ("/api/buckets", 200, b"{}"),
        ("/api/buckets", 200, b"<html>Log in</html>"),
        ("/api/buckets", 200, b""),
        ("/tree", 200, b"{}"),
        ("/tree", 200, b'[{"type": "file"}]'),
        ("/batch", 400, b'{"error": "\\u001b[2J\\n no"}'),
    ],
)
def test_refusals_and_odd_answers_are_one_line(hub, tmp_path, where, status, answer):
    hub.odd = where, status, answer
    done = share(hub, tmp_path, recording(tmp_path))
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert lines[-1].startswith(("error: --upload me/traces: ", "error: sent, but "))
    assert not any(line.startswith("error") for line in lines[:-1])
    assert "\x1b" not in done.stderr and "hf_of_no_one" not in done.stderr
