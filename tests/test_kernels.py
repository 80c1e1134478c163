"""04_d: the Triton kernel against the float64 reference, and the other ways in.

Here the kernel runs in Triton's interpreter; on a GPU the same cases run compiled, and more.
"""

import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend

from common import hard_inputs, scripts
from common.cli import UserError
from common.record.workload import TOLERANCE, Workload, relative_error

ROOT = Path(__file__).parent.parent
SCRIPT = "04_d_kernels_attention.py"
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"

CASES = [
    Workload(1, 1, 1, 16, "fp16", DEVICE),
    Workload(2, 3, 17, 64, "fp16", DEVICE),
    Workload(1, 2, 65, 40, "fp16", DEVICE),  # past one tile; head_dim no power of two
    Workload(1, 1, 100, 96, "bf16", DEVICE),
    Workload(1, 1, 33, 256, "bf16", DEVICE),
]
ON_GPU = [
    Workload(batch, heads, seq, head_dim, dtype, "cuda")
    for head_dim in (16, 40, 64, 80, 96, 128, 160, 192, 256)
    for seq in (1, 17, 64, 1000, 1023, 1025)
    for batch, heads in ((1, 3), (3, 5))
    for dtype in ("bf16", "fp16")
]


@pytest.fixture(scope="module")
def script():
    return scripts.load("04_d_kernels_attention")


def poisoned(attention, q, k, v):
    """The output, with NaN where nothing was written: the allocator hands out the freed block."""
    block = torch.full_like(q, float("nan"))
    del block
    return attention(q, k, v)


@pytest.mark.parametrize("work", CASES + (ON_GPU if CUDA else []), ids=str)
def test_triton_kernel_is_attention(script, work):
    q, k, v = work.inputs(seed=work.seq)
    output = poisoned(script.triton_attention, q, k, v)
    assert relative_error(output, q, k, v) <= TOLERANCE[work.dtype]


def test_triton_kernel_reads_any_strides(script):
    work = Workload(1, 2, 40, 32, "fp16", DEVICE)
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in work.inputs())
    assert not q.is_contiguous()
    assert relative_error(script.triton_attention(q, k, v), q, k, v) <= TOLERANCE["fp16"]
    v = v.transpose(2, 3).contiguous().transpose(2, 3)  # not even the last dimension in order
    assert relative_error(script.triton_attention(q, k, v), q, k, v) <= TOLERANCE["fp16"]


def test_triton_kernel_shares_keys_among_query_heads(script):
    q, _, _ = Workload(1, 4, 20, 16, "fp16", DEVICE).inputs(1)
    k, v, _ = Workload(1, 2, 20, 16, "fp16", DEVICE).inputs(2)
    output = script.triton_attention(q, k, v)
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    assert relative_error(output, q, k, v) <= TOLERANCE["fp16"]


needs_hopper = pytest.mark.skipif(
    not CUDA or torch.cuda.get_device_capability()[0] != 9, reason="needs a Hopper GPU"
)


@needs_hopper
@pytest.mark.parametrize("work", [w for w in ON_GPU if w.head_dim in (64, 128)], ids=str)
def test_hopper_kernel_is_attention(work):
    from common.kernels.hopper import attention

    q, k, v = work.inputs(seed=work.seq)
    output = poisoned(attention, q, k, v)
    assert relative_error(output, q, k, v) <= TOLERANCE[work.dtype]
    assert torch.equal(output, attention(q, k, v))  # a result that moves would be a race


@needs_hopper
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("seq", [1, 63, 130, 192, 321, 512, 1000, 4097])
def test_hopper_kernel_walks_over_many_tiles(head_dim, seq):
    """More tiles than the GPU has SMs, of every length."""
    from common.kernels.hopper import attention

    work = Workload(2, 40, seq, head_dim, "bf16", "cuda")
    q, k, v = work.inputs(seed=seq)
    output = poisoned(attention, q, k, v)
    assert relative_error(output, q, k, v) <= TOLERANCE["bf16"]


@needs_hopper
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("seq", [64, 200])
def test_what_overflowed_is_done_again_in_whatever_round_it_was(seq, head_dim):
    """6000 heads are more than 32 rounds; in two of them weights overflow."""
    from common.kernels.hopper import attention

    q, k, v = Workload(1, 6000, seq, head_dim, "bf16", "cuda").inputs()
    hard = hard_inputs.make("strong sink at key 0", (1, 1, seq, head_dim), torch.bfloat16, "cuda")
    for head in (7, 4400):
        for whole, one in zip((q, k, v), hard, strict=True):
            whole[:, head : head + 1] = one
    output = poisoned(attention, q, k, v)
    for head in (0, 7, 8, 139, 4399, 4400, 4532, 5999):
        alone = [x[:, head : head + 1] for x in (q, k, v)]
        assert torch.equal(output[:, head : head + 1], attention(*alone)), head
        expected = hard_inputs.exact(*alone)
        assert hard_inputs.error(output[:, head : head + 1], expected) <= TOLERANCE["bf16"]


@pytest.mark.parametrize("b", [1, 2, 3, 7, 16, 132, 1000, 131_072])
def test_a_reciprocal_divides(b):
    from common.kernels.hopper import reciprocal

    largest = min((1 << 40) // b, (1 << 31) - 1, (b << 23) - 1)
    for a in {0, 1, b - 1, b, b + 1, largest // 2, largest // b * b - 1, largest - 1, largest}:
        assert a * reciprocal(b) >> 40 == a // b
        assert a * reciprocal(b) < 1 << 63


@needs_hopper
def test_hopper_kernel_shares_keys_and_reads_any_strides():
    from common.kernels.hopper import attention

    q, _, _ = Workload(2, 6, 200, 64, "bf16", "cuda").inputs(1)
    k, v, _ = Workload(2, 2, 200, 64, "bf16", "cuda").inputs(2)
    for tensors in ((q, k, v), [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]):
        wide = [x.repeat_interleave(3, dim=1) for x in tensors[1:]]
        assert relative_error(attention(*tensors), tensors[0], *wide) <= TOLERANCE["bf16"]


@needs_hopper
def test_a_launch_is_prepared_once_and_keeps_no_tensor_alive():
    from common.kernels import hopper

    hopper._launch.cache_clear()
    work = Workload(1, 2, 256, 64, "bf16", "cuda")
    outputs = []
    for seed in range(4):  # other pointers each time, and at last those of freed tensors
        q, k, v = work.inputs(seed)
        outputs.append(hopper.attention(q, k, v))
        assert relative_error(outputs[-1], q, k, v) <= TOLERANCE["bf16"]
    assert hopper._launch.cache_info().currsize == 1
    before = torch.cuda.memory_allocated()
    size = q.nbytes
    del q, k, v, outputs
    torch.cuda.synchronize()
    assert before - torch.cuda.memory_allocated() == 7 * size
    for seq in range(1, 100):
        hopper.attention(*Workload(1, 1, seq, 64, "bf16", "cuda").inputs())
    assert hopper._launch.cache_info().currsize == 64


HARD = [
    (name, shape, dtype)
    for dtype in (torch.bfloat16, torch.float16)
    for shape in ((1, 2, 1024, 64), (1, 1, 1000, 128))
    for name in hard_inputs.NAMES
] + [("one outlier", (1, 1, 16384, 64), torch.bfloat16)]


@pytest.fixture
def fixed(script, monkeypatch):
    """The Triton kernel with the diagonal's maximum for the whole row, however short it is."""
    monkeypatch.setattr(script, "FIXED_FROM", 1)
    return partial(script.triton_attention, tiles=script.TILES[0])


@needs_hopper
@pytest.mark.parametrize("kernel", ["gluon", "triton", "triton online"])
@pytest.mark.parametrize(("name", "shape", "dtype"), HARD, ids=str)
def test_no_input_makes_the_error_twice_that_of_flash(
    script, fixed, monkeypatch, kernel, name, shape, dtype
):
    from common.kernels.hopper import attention

    if kernel == "triton online":
        monkeypatch.setattr(script, "FIXED_FROM", 10**9)
    q, k, v = hard_inputs.make(name, shape, dtype, "cuda")
    expected = hard_inputs.exact(q, k, v)
    flash = hard_inputs.sdpa(SDPBackend.FLASH_ATTENTION, q, k, v)
    attend = attention if kernel == "gluon" else fixed
    output = poisoned(attend, q, k, v)
    assert hard_inputs.error(output, expected) <= 2 * hard_inputs.error(flash, expected) + 1e-9
    assert torch.equal(output, attend(q, k, v))


@needs_hopper
@pytest.mark.parametrize("kernel", ["gluon", "triton"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 3e38])
@pytest.mark.parametrize("where", ["q", "k", "v"])
def test_what_is_not_finite_stays_where_pytorchs_backends_have_it(fixed, kernel, value, where):
    """The backends differ in which rows above a bad value it reaches; agreement counts."""
    from common.kernels.hopper import attention

    q, k, v = Workload(1, 2, 512, 64, "bf16", "cuda").inputs()
    {"q": q, "k": k, "v": v}[where][0, 0, 200, 5] = value
    backends = [
        hard_inputs.sdpa(backend, q, k, v)
        for backend in (
            SDPBackend.FLASH_ATTENTION,
            SDPBackend.CUDNN_ATTENTION,
            SDPBackend.EFFICIENT_ATTENTION,
        )
    ]
    kinds = torch.stack([kind(one) for one in backends])
    agreed = (kinds == kinds[0]).all(0)
    output = (attention if kernel == "gluon" else fixed)(q, k, v)
    assert agreed.float().mean() > 0.9
    assert torch.equal(kind(output)[agreed], kinds[0][agreed])
    finite = agreed & (kinds[0] == 0)
    torch.testing.assert_close(output[finite], backends[0][finite], rtol=0.05, atol=0.05)


def kind(x: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 and 3 the infinities."""
    return x.isnan() * 1 + (x == float("inf")) * 2 + (x == float("-inf")) * 3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of what the guard is there for
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["normal", "q x 30", "each tile scores far higher",
    "strong sink at key 0", "diagonal scores of -1e4", "values at the limit, sink"])  # fmt: skip
def test_hard_inputs_without_a_gpu(fixed, name, dtype):
    q, k, v = hard_inputs.make(name, (1, 1, 130, 32), dtype, DEVICE)
    expected = hard_inputs.exact(q, k, v)
    reference = hard_inputs.sdpa(SDPBackend.MATH, q, k, v)
    found = hard_inputs.error(fixed(q, k, v), expected)
    assert found <= 2 * hard_inputs.error(reference, expected) + 1e-9


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_key_that_is_not_finite_spoils_the_rows_that_see_it_and_no_other(fixed):
    q, k, v = Workload(1, 1, 130, 32, "fp16", DEVICE).inputs()
    k[0, 0, 70, 3] = float("nan")
    output = fixed(q, k, v)
    assert output[:, :, :70].isfinite().all() and output[:, :, 70:].isnan().all()


def run(*arguments, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, SCRIPT, "--device", "cpu", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1", **environment},
    )


def release(package: str) -> tuple[int, ...]:
    return tuple(map(int, version(package).split(".")[:2]))


# Triton 3.6 makes numbers of arrays of one number, which NumPy 2.5 refuses.
interpreter = pytest.mark.skipif(
    release("triton") < (3, 7) and release("numpy") >= (2, 5),
    reason="the interpreter of Triton 3.6 does not know NumPy 2.5",
)
SMALL = ("--batch", 1, "--heads", 2, "--seq", 48, "--head-dim", 16)


@pytest.mark.parametrize("kernel", [pytest.param("triton", marks=interpreter), "flex"])
def test_recorded_without_a_gpu(tmp_path, kernel):
    done = run("--kernel", kernel, *SMALL, "--traces", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["region"] == "flash_kernel_fwd" and found["regions"] == 3
    assert found["about"]["variant"] == kernel
    assert found["about"]["relative_error"] <= TOLERANCE["bf16"]


def test_what_comes_from_the_hub_is_a_commit(script, monkeypatch):
    asked = []
    monkeypatch.setattr("kernels.get_kernel", lambda *what, **how: asked.append((what, how)))
    script.hub(None)
    [((repository,), how)] = asked
    assert repository == "kernels-community/flash-attn2"
    assert re.fullmatch("[0-9a-f]{40}", how.pop("revision")) and not how
    for name in ("a/b", "a/b@main", "a/b@81fb77c"):
        with pytest.raises(UserError, match="no commit, and what comes from the Hub is run"):
            script.hub(None, name)
    assert len(asked) == 1


KERNEL = """
import torch
def flash_attn_func(q, k, v, causal=False):
    assert q.shape == (1, 48, 2, 16), q.shape   # [batch, seq, heads, head_dim]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return out.transpose(1, 2)
"""


METADATA = {
    "name": "local",
    "id": "local",
    "version": 3,
    "license": "Apache-2.0",
    "python-depends": [],
    "backend": {"type": "cpu"},
}


@pytest.mark.parametrize(
    ("kernel", "repository"),
    [("hub", "kernels-community/flash-attn2"), ("hub:someone/theirs", "someone/theirs")],
)
def test_a_local_kernel_repository_stands_for_the_hub(tmp_path, kernel, repository):
    pytest.importorskip("kernels")
    build = tmp_path / "repository" / "build" / "torch-universal"
    build.mkdir(parents=True)
    (build / "__init__.py").write_text(KERNEL)
    (build / "metadata.json").write_text(json.dumps(METADATA))
    done = run(
        "--kernel", kernel, *SMALL, "--traces", tmp_path / "traces", "--json",
        LOCAL_KERNELS=f"{repository}={tmp_path / 'repository'}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    about = json.loads(done.stdout)["about"]
    assert about["shape"] == [1, 2, 48, 16] and about["variant"].startswith("hub")


def test_a_gpu_beside_is_no_reason_to_hand_triton_tensors_of_the_cpu(script, monkeypatch):
    monkeypatch.setattr(script, "INTERPRETED", False)
    with pytest.raises(UserError, match="TRITON_INTERPRET=1 in front"):
        script.triton_here(Workload(1, 1, 8, 16, "fp16", "cpu"))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("hub", ("kernels-community/flash-attn2", "LOCAL_KERNELS", "--kernel triton")),
        ("gluon", ("gluon", "CUDA")),
        ("fa4", ("fa4", "CUDA")),
        ("nope", ("nope", "triton, gluon, flex")),
        ("triton:x", ("triton:x",)),
    ],
)
def test_what_cannot_be_had_is_one_line(tmp_path, kernel, words):
    done = run("--kernel", kernel, *SMALL, "--traces", tmp_path, HF_HUB_OFFLINE="1")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ") and all(word in last for word in words), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("'a/b' could not verify publisher trust status. Set trust_remote_code=True",
         "the Hub does not answer"),
        ("'a/b' is not from a trusted publisher. Set trust_remote_code=True",
         "the Hub does not trust its publisher"),
        ("No kernel for this torch\nand more", "No kernel for this torch LOCAL_KERNELS=a/b=FOLDER"),
    ],
)  # fmt: skip
def test_what_the_hub_refuses_is_said_in_words_that_help(script, monkeypatch, refusal, words):
    """Its own advice is an argument, which nobody at a command line can give."""

    pytest.importorskip("kernels")

    def refuse(repository, revision):
        raise ValueError(refusal)

    monkeypatch.setattr("kernels.get_kernel", refuse)
    with pytest.raises(UserError, match=words) as refused:
        script.hub(None, f"a/b@{40 * '0'}")
    assert "trust_remote_code" not in str(refused.value)
