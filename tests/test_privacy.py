"""What a trace tells of its maker is found, and nothing else is taken for it."""

import codecs
import gzip
import json
import re

import pytest
from build import CASES, RECORDED, ROOT, forward, region, trace, write

from common.look import Options, look
from common.read import privacy
from common.read.privacy import MOST, Finding, scan, scan_file
from common.read.trace import read
from common.show.words import private

TOKEN = "hf_" + "aB3" * 12  # of no one


def one(text: str, key: str = "name") -> list[tuple]:
    """(kind, example, key) of what is found in a trace that holds this string."""
    data = json.dumps({"head": {}, "traceEvents": [{"ph": "X", key: text}]}).encode()
    return [(found.kind, found.example, found.key) for found in scan([data])]


@pytest.mark.parametrize(
    ("text", "kind", "example"),
    [
        ("/home/alice/attention/train.py(12): step", "personal path", "/home/…"),
        ("/Users/alice/train.py", "personal path", "/Users/…"),
        ("/usr/local/google/home/alice/train.py", "personal path", "/home/…"),
        ("/root/train.py(3): <module>", "personal path", "/root/…"),
        ("/root/.cache/torch/x", "personal path", "/root/…"),
        (r"C:\Users\alice\train.py", "personal path", r"C:\Users\…"),
        ("C:/Users/alice/train.py", "personal path", "/Users/…"),
        (r"D:\work\train.py(3): step", "path", r"D:\…"),
        ("file:///home/alice/x", "personal path", "/home/…"),
        ("/tmp/torchinductor_alice/ab/cab.py", "personal path", "/tmp/torchinductor_…"),
        ("/workspace/secret/train.py(3): step", "path", "/workspace/…"),
        ("/tmp/alice/trace.json", "path", "/tmp/…"),
        ("/mnt/disk/run/trace.json", "path", "/mnt/…"),
        ("torch/nn/module.py(3): f;/data/alice/x.py(4): g;", "path", "/data/…"),
        ("first\n/home/alice/x.py", "personal path", "/home/…"),
        ("run of alice.b+c@lab.example.org", "e-mail address", "a…@…"),
    ],
)
def test_found_in_any_string(text, kind, example):
    assert one(text) == [(kind, example, "name")]
    assert one(text, "Call stack") == [(kind, example, "Call stack")]


@pytest.mark.parametrize(
    ("key", "text", "kind", "example"),
    [
        ("host_name", "worker-17", "host name", "w…"),
        ("hostname", "worker", "host name", "w…"),
        ("user", "alice", "user name", "a…"),
        ("username", "alice", "user name", "a…"),
        ("traceName", "/tmp/traces/run.json", "path", "/tmp/…"),
        ("traceName", "worker-17_4242.1790000000000000000.pt.trace.json", "host name", "w…"),
        ("init_method", "tcp://10.0.12.7:29500", "IP address", "10.…"),
        ("master", "192.168.1.20", "IP address", "192.…"),
        ("environment", f"HF_TOKEN={TOKEN}", "token", "hf_…"),
    ],
)
def test_found_in_metadata(key, text, kind, example):
    assert one(text, key) == [(kind, example, key)]


@pytest.mark.parametrize(
    "text",
    [
        "aten::div",
        "aten::true_divide",
        "memory bandwidth (GB/s)",
        "Torch-Compiled Region: 0/0",
        "torch/nn/modules/module.py(1791): _call_impl",
        "train.py(12): step",
        "<frozen importlib._bootstrap>(1053): _handle_fromlist",
        "<built-in method relu of type object at 0x7f3a754bc100>",
        "/usr/lib/python3.12/threading.py(1): run",
        "/opt/conda/lib/python3.11/site-packages/torch/nn/functional.py(3): relu",
        "/tmp/trace.json",
        "/tmp/tmpx5qz1t66.json",
        "/model/layers.0/self_attn/q_proj/MatMul",
        "forward / backward",
        "https://ui.perfetto.dev/#!/viewer",
        "https://example.org/home/page",
        "void at::native::(anonymous namespace)::copy<float, at::native::/*lambda*/>",
        "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_bf16_64x64_32x6_tn_align8>",
        "aten::add@overload",
        "lambda@0x7f00.b",
        "a 1.2.3 b 12.4.127 c 5159178145.002",
        "127.0.0.1:29500",
        "0.0.0.0",
        "9.1.0.70.1",
        "nvidia-cudnn-cu12==9.1.0.70",
        "hf_attention_forward",
        "hf_hub_download_of_a_model",
        "Host: launch",
        "a:\n",
        "a:\\n",
    ],
)
def test_no_false_alarm(text):
    assert one(text) == []


def test_a_version_of_four_numbers_is_no_address():
    assert one("9.1.0.70", "cudnn_version") == []
    assert one("9.1.0.70", "address") == [("IP address", "9.…", "address")]


def test_a_host_of_this_machine_or_of_none_is_no_name():
    assert one("localhost", "host_name") == one("", "host_name") == one("0", "host") == []


def test_nothing_in_our_recordings_or_tables_of_names():
    files = [
        *RECORDED.parent.parent.glob("[re]*/**/*.json*"),
        *CASES.glob("*.json"),
        ROOT / "README.md",
    ]
    files += (ROOT / "tests" / "data").glob("*.json*")
    assert len(files) > 40
    assert {str(path): scan_file(path) for path in files if scan_file(path)} == {}


EVERYTHING = json.dumps(
    {
        "host_name": "worker-17",
        "user": "alice",
        "address": "tcp://10.0.12.7:29500",
        "traceEvents": [
            {"name": "/home/alice/attention/train.py(12): step"},
            {"name": "/workspace/secret/train.py(12): step"},
            {"name": "/usr/lib/python3.12/threading.py"},
            {"Call stack": r"C:\Users\alice\train.py(3): f;alice@lab.example.org"},
            {"token": TOKEN},
        ],
        "traceName": "worker-17_4242.1790000000000000000.pt.trace.json",
    }
).encode()
COUNTS = {
    "host name": 2, "user name": 1, "IP address": 1, "personal path": 2, "path": 1,
    "e-mail address": 1, "token": 1,
}  # fmt: skip


def counts(findings) -> dict[str, int]:
    return {found.kind: found.count for found in findings}


@pytest.mark.parametrize("whole", [True, False])
def test_a_cut_between_blocks_hides_nothing_and_doubles_nothing(whole):
    """The cut moves over every byte of the text."""
    for size in range(1, len(EVERYTHING) + 1):
        blocks = [EVERYTHING[:size], EVERYTHING[size:]]
        assert counts(scan(blocks, whole)) == COUNTS, size
        filled = b" " * 2000 + EVERYTHING + b" " * 2000
        assert counts(scan([filled[: 2000 + size], filled[2000 + size :]], whole)) == COUNTS, size


@pytest.mark.parametrize("size", [1, 100, 513, 1000, 4096])
def test_all_is_counted_once_whatever_the_size_of_the_blocks(size):
    data = b" " * 3000 + EVERYTHING + b" " * 3000
    blocks = [data[i : i + size] for i in range(0, len(data), size)]
    assert counts(scan(blocks, True)) == counts(scan(blocks, False)) == COUNTS


def far(text: bytes, where: str) -> list[bytes]:
    """Blocks of a large file with this text at its head, in the middle or at the end."""
    filling = b'{"name": "aten::div"},' * (4 * privacy.BLOCK // 22)
    at = {"head": 0, "middle": len(filling) // 22 // 2 * 22, "end": len(filling)}[where]
    data = filling[:at] + text + filling[at:]
    return [data[i : i + privacy.BLOCK] for i in range(0, len(data), privacy.BLOCK)]


@pytest.mark.parametrize("where", ["head", "middle", "end"])
def test_reading_finds_paths_and_mail_everywhere_and_the_rest_where_metadata_stands(where):
    found = counts(scan(far(EVERYTHING, where), whole=False))
    everywhere = {"personal path": 2, "path": 1, "e-mail address": 1}
    assert found == (everywhere if where == "middle" else COUNTS)
    assert counts(scan(far(EVERYTHING, where), whole=True)) == COUNTS


def test_counting_stops():
    events = b'{"name": "/home/alice/x.py(1): f"},' * (MOST + 5)
    [found] = scan([b'{"": "a"}, ' + events])
    assert found == Finding("personal path", MOST, True, "/home/…", "name")
    assert "at least 1000 personal paths (the first in" in private([found])


def test_no_finding_holds_what_was_found():
    words = private(scan([EVERYTHING]))
    for secret in ("worker", "alice", "10.0", "secret", "aB3", "lab.example"):
        assert secret not in words


def test_any_file_is_scanned_and_its_name(tmp_path):
    plain = write(tmp_path, EVERYTHING)
    packed = write(tmp_path, gzip.compress(EVERYTHING), "trace.json.gz")
    wide = write(tmp_path, codecs.BOM_UTF16_LE + EVERYTHING.decode().encode("utf-16-le"), "w.json")
    for path in (plain, packed, wide):
        assert counts(scan_file(path)) == COUNTS
    named = write(tmp_path, b"{}", "worker-17_4242.1790000000000000000.pt.trace.json")
    assert scan_file(named) == (Finding("host name", 1, False, "w…", "the file's name"),)


def test_a_trace_of_torch_carries_its_host(tmp_path):
    """What this torch's profiler itself writes is found."""
    from torch.profiler import ProfilerActivity, profile

    from common.record.harness import _compiler_not_imported

    with _compiler_not_imported(), profile(activities=[ProfilerActivity.CPU]) as profiler:
        pass
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    assert json.loads(path.read_text())["host_name"]
    assert "host name" in counts(scan_file(path))


def told(capsys, *paths, **more) -> str:
    look(Options(traces=list(paths), **more))
    return " ".join(capsys.readouterr().out.split())


WORDS = (
    'before you share it: the file holds 1 host name (in "host_name": w…), '
    '2 personal paths (the first in "name": /home/…)'
)


def test_look_warns_in_report_survey_comparison_and_json(tmp_path, capsys):
    named = region(900, 5, "/home/alice/train.py"), region(950, 5, "/home/alice/train.py")
    one = write(
        tmp_path, {"host_name": "worker"} | trace(forward(100, ("mul", "k", 5)), named), "one.json"
    )
    clean = write(tmp_path, trace(forward(100, ("mul", "k", 5))), "clean.json")
    assert f"warning: {WORDS}" in told(capsys, one, region="fwd")
    assert f"warning: {WORDS}" in told(capsys, one)  # two labels: a survey
    assert f"warning: B: {WORDS}" in told(capsys, clean, one, region="fwd")
    assert json.loads(told(capsys, one, region="fwd", json=True))["warnings"] == [WORDS]
    assert json.loads(told(capsys, one, json=True))["warnings"] == [WORDS]
    assert "warning" not in told(capsys, clean)


def test_reading_in_pieces_salvaging_and_reading_whole_find_the_same(tmp_path, monkeypatch):
    content = {"host_name": "worker"} | trace(
        [forward(100 * n, ("mul", "/home/alice/k", 5)) for n in range(1, 400)]
    )
    data = json.dumps(content).encode()
    whole = read(write(tmp_path, data)).private
    assert counts(whole) == {"host name": 1, "personal path": 399}
    monkeypatch.setattr("common.read.pieces.BLOCK", 1 << 14)
    assert read(write(tmp_path, data)).private == whole
    damaged = write(tmp_path, data[: data.rindex(b"]") - 5])
    assert read(damaged, salvage=True).private == whole


@pytest.mark.parametrize(
    ("secret", "example"),
    [
        ("ASIA" + "A1B2C3D4E5F6G7H8", "ASIA…"),
        ("AIza" + "a" * 35, "AIza…"),
        ("ya29." + "a" * 40, "ya29.…"),
        ("xapp-1-" + "A" * 20, "xapp-…"),
        ("xoxs-" + "1" * 20, "xoxs-…"),
        ("npm_" + "a" * 36, "npm_…"),
        ("pypi-" + "A" * 40, "pypi-…"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJ…"),
        ("-----BEGIN " + "RSA PRIVATE KEY-----", "-----BEGIN …"),
        ("https://me:secret@example.org/x", "://…:…@"),
    ],
)
def test_secrets_of_every_maker(secret, example):
    [token] = [one for one in scan([b'{"env": "' + secret.encode() + b'"}']) if one.kind == "token"]
    assert (token.example, token.count, token.key) == (example, 1, "env")


@pytest.mark.parametrize(
    "text", ["https://example.org:443/a@b", "eyJ.py", "std::pair<a>::b@c", "npm_install", "pypi-a"]
)
def test_what_looks_like_a_secret_and_is_none(text):
    assert not [one for one in scan([f'{{"k": "{text}"}}'.encode()]) if one.kind == "token"]


# ── Before an upload ──────────────────────────────────────────────────────────────────────────────

HEX, WORD = "0123456789abcdef" * 5, "aB3dE6gH9jK2" * 8
DISCLOSED = {
    "token": [
        f"xoxb-123456789012-{WORD[:24]}",
        f"xapp-1-A1B2C3-{HEX[:40]}",
        f"AIza{WORD[:35]}",
        f"ya29.{WORD[:60]}",
        f"npm_{WORD[:36]}",
        f"pypi-AgEIcHlwaS5vcmc{WORD[:80]}",
        f"sk-proj-{WORD[:40]}",
        f"sk-ant-api03-{WORD[:80]}",
        "ASIAIOSFODNN7EXAMPLE",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{WORD[:43]}",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        f"GOCSPX-{WORD[:28]}",
        f"glrt-{WORD[:20]}",
        f"SG.{WORD[:22]}.{WORD[:43]}",
        f"dapi{HEX[:32]}",
        f"hvs.{WORD[:90]}",
        f"sk_live_{WORD[:24]}",
        f"WANDB_API_KEY={HEX[:40]}",
        "--password=correct-horse",
        f"Authorization: Basic {WORD[:24]}",
        "https://me:secret@host/x",
        f"https://{WORD[:20]}@host/x.git",
        "redis://:hunter2@host:6379",
        "https://host/x?access_token=abcdef0123456789",
        f"AccountKey={WORD[:86]}==",
    ],
    "IP address": [
        "2001:db8:85a3::8a2e:370:7334",
        "tcp://[fd00:1234:5::5]:29500",
        "addr=10.1.2.3",
        "fe80:0000:0000:0000:0202:b3ff:fe1e:8329",
    ],
    "hardware address": ["02:42:ac:11:00:02"],
    "personal path": [
        "-I/home/alice/include",
        "-L/Users/alice/lib",
        r"c:\users\alice\x.py",
        "~alice/run",
        "</home/alice/x>",
        "file://localhost/home/alice/x",
        "%2Fhome%2Falice%2Fx.py",
    ],
    "path": [
        r"\\server\share\x.py",
        "//server/share/x",
        "/scratch/alice/run",
        "s3://alice-bucket/x",
        r"d:\work\alice\train",
    ],
    "host name": [
        "alice@gpu-node-17",
        "root@box:~",
        "SLURMD_NODENAME=gpu17",
        "MASTER_ADDR=gpu17",
        "SLURM_JOB_NODELIST=node[001-004]",
        "gke-main-gpu-pool-1a2b3c4d-x7z9",
        "aks-gpupool-12345678-vmss000003",
        "ip-10-0-12-34",
        "dgx-a100-012",
        "trainer-0.train.default.svc.cluster.local",
        "spec.nodeName: gpu17",
        "alices-macbook.local",
        "trainer-5f6d8c7b9d-x7z9w",
    ],
    "user name": ["SLURM_JOB_USER=alice", "LOGNAME=alice"],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in DISCLOSED.items() for text in texts]
)
def test_found_before_an_upload(tmp_path, kind, text):
    path = tmp_path / "t.json"
    for words in (text, f"run {text} now"):
        path.write_text(json.dumps({"traceEvents": [{"name": words}]}))
        kinds = [found.kind for found in scan_file(path)]
        assert kind in kinds, words
    secret = re.sub(r"\W", "", text)[-12:]
    assert not any(secret in found.example for found in scan_file(path))


def test_escaped_slashes_hide_nothing(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    for slash in (r"\/", r"\u002f", "%2f"):
        text = "/home/alice/x.py".replace("/", slash)
        for block in (1 << 20, 7):
            monkeypatch.setattr("common.read.privacy.BLOCK", block)
            path.write_text(f'{{"traceEvents": [{{"name": "{text}"}}]}}')
            (found,) = scan_file(path)
            assert (found.kind, found.count) == ("personal path", 1)


@pytest.mark.parametrize(
    "text",
    [
        "void at::native::add::bad<c10::BFloat16>",
        "std::a::b::c",
        "12:34:56",
        "0:0:0",
        "tokens=12345678",
        '"pad_token": "<|endoftext|>"',
        "threading.local",
        "self.internal",
        "torch.distributed",
        "~Foo()",
        "operator/(a, b)",
        "HOST=localhost",
        "MASTER_ADDR=127.0.0.1",
        "autograd::engine",
        "a / b",
        "key=value",
        "node 3",
        "worker_0",
        "gpu0",
        "aten::mul",
        "-DUSE_CUDA",
        "triton-3.6.0",
        "@property",
    ],
)
def test_no_false_alarm_before_an_upload(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [{"name": text}, {"name": f"x {text} y"}]}))
    assert not scan_file(path)


@pytest.mark.parametrize("path", sorted((ROOT / "traces").rglob("*.json.gz")), ids=lambda p: p.name)
def test_nothing_in_what_is_shipped_would_stop_an_upload(path):
    assert not scan_file(path)
