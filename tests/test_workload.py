"""Inputs, the check against float64, and what is refused before anything runs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from common.cli import UserError
from common.record import workload
from common.record.workload import (
    Options,
    Workload,
    causal_attention_rows,
    causal_mask,
    relative_error,
)


def small(dtype="fp32", seq=33, head_dim=16):
    return Workload(2, 3, seq, head_dim, dtype, "cpu")


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_reference_is_causal_attention():
    """Against a second, slower way: every row alone, softmax over the tokens it may see."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 9, 4))
    rows = [0, 3, 8]
    for row, result in zip(rows, causal_attention_rows(q, k, v, rows), strict=True):
        weights = np.exp([q[row] @ k[j] / 2 for j in range(row + 1)])
        np.testing.assert_allclose(result, weights @ v[: row + 1] / weights.sum(), rtol=1e-12)


def test_reference_survives_scores_that_overflow_exp():
    q = np.full((2, 4), 1e3)
    assert np.isfinite(causal_attention_rows(q, q, q, [0, 1])).all()


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("seq", [1, 2, 7, 33, 100])
def test_right_results_are_within_tolerance(dtype, seq):
    q, k, v = small(dtype, seq).inputs()
    assert relative_error(sdpa(q, k, v), q, k, v) <= workload.TOLERANCE[dtype]


def wrong_scale(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2)


def not_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def sees_one_too_many(q, k, v):
    seq = q.shape[2]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(seq, seq).tril(1).bool())


def heads_swapped(q, k, v):
    return sdpa(q, k, v).flip(1)


def last_row_unwritten(q, k, v):
    output = sdpa(q, k, v)
    output[-1, -1, -1] = 0
    return output


@pytest.mark.parametrize(
    "wrong", [wrong_scale, not_causal, sees_one_too_many, heads_swapped, last_row_unwritten]
)
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_wrong_results_are_caught(wrong, dtype):
    q, k, v = small(dtype).inputs()
    assert not relative_error(wrong(q, k, v), q, k, v) <= workload.TOLERANCE[dtype]


def test_one_nan_anywhere_is_caught():
    """Also outside the slice that is compared."""
    q, k, v = small(seq=300).inputs()
    output = sdpa(q, k, v)
    output[0, 1, 77, 3] = float("nan")
    assert not relative_error(output, q, k, v) <= 1


def test_inputs_are_the_same_for_every_variant():
    first, second = small().inputs(), small().inputs()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], first[1])
    assert first[0].shape == (2, 3, 33, 16)


def test_mask_hides_what_comes_after():
    assert causal_mask(3, "cpu").tolist() == [
        [False, True, True],
        [False, False, True],
        [False, False, False],
    ]


def test_without_cuda_only_defaults_shrink(monkeypatch):
    monkeypatch.setattr(workload, "why_no_cuda", lambda: "no driver")
    work, why = workload.choose(Options(seq=77))
    assert why == "no driver" and work.device == "cpu" and work.seq == 77
    assert work.batch == workload.DEFAULT_SHAPE["cpu"][0]


def test_with_cuda_the_default_is_the_posts_shape(monkeypatch):
    monkeypatch.setattr(workload, "why_no_cuda", lambda: None)
    work, why = workload.choose(Options())
    assert (work.shape, work.device, why) == ((8, 16, 1024, 64), "cuda", None)


def test_the_cpu_can_be_asked_for(monkeypatch):
    monkeypatch.setattr(workload, "why_no_cuda", lambda: pytest.fail("nobody asked"))
    assert workload.choose(Options(device="cpu"))[0].device == "cpu"


def test_cuda_that_cannot_be_had_says_why(monkeypatch):
    monkeypatch.setattr(workload, "why_no_cuda", lambda: "the driver is too old")
    with pytest.raises(UserError, match="--device cuda: the driver is too old"):
        workload.choose(Options(device="cuda"))


BUILT = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


@pytest.mark.parametrize(
    ("capability", "built", "word"),
    [
        ((8, 0), BUILT, None),
        ((8, 9), BUILT, None),  # runs sm_86 code
        ((9, 0), [*BUILT[:3], "sm_90a"], None),
        ((7, 0), BUILT, "too old"),
        ((5, 2), BUILT, "too old"),
        ((13, 0), BUILT, "too new"),
        ((13, 0), [*BUILT, "compute_120"], None),  # the driver compiles PTX for newer GPUs
        ((10, 0), ["sm_80", "sm_90"], "too new"),
        ((8, 0), [], None),  # an unknown list refuses nobody
    ],
)
def test_a_gpu_outside_the_build_is_named(capability, built, word):
    said = workload.why_no_kernels(capability, built, "Some GPU")
    if word is None:
        assert said is None
    else:
        assert word in said and "Some GPU" in said and built[0] in said


def test_scores_that_cannot_fit_are_counted_before_trying():
    work = Workload(1, 16, 131072, 64, "bf16", "cpu")
    with pytest.raises(UserError, match=r"naive needs 512\.0 GiB for the scores"):
        workload.require_memory(work, "naive", stores_scores=True)
    workload.require_memory(work, "flash", stores_scores=False)  # q, k, v fit easily


def test_inputs_that_cannot_fit_are_counted_before_trying():
    with pytest.raises(UserError, match=r"q, k, v and the output .* need [\d.]+ GiB"):
        workload.require_memory(Workload(1, 1, 10**12, 64, "bf16", "cpu"), "flash", False)


def test_more_than_one_score_matrix_stands_at_once(monkeypatch):
    work = Workload(2, 4, 8192, 64, "bf16", "cpu")
    for share, stores, fits in ((1.2, True, False), (2.2, True, True), (1.2, 1.0, True),
                                (4.0, 4.9, False), (0.2, False, True)):  # fmt: skip
        monkeypatch.setattr(
            workload, "_free_ram", lambda share=share: int(share * work.score_bytes)
        )
        if fits:
            workload.require_memory(work, "naive", stores)
        else:
            with pytest.raises(
                UserError, match="for the scores.* times that at once, and this mac"
            ):
                workload.require_memory(work, "naive", stores)


GIB = 2**30


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_the_limits_of_a_container_count(tmp_path):
    told, root = tmp_path / "cgroup", tmp_path / "fs"
    group(root / "a/b", memory__max="max", memory__current=GIB)
    group(root / "a", memory__max=4 * GIB, memory__current=3 * GIB,
          memory__stat=f"anon 1\ninactive_file {GIB}")  # fmt: skip
    told.write_text("0::/a/b\n")
    assert list(workload._free_of_container(told, root)) == [2 * GIB]  # file pages are given back
    told.write_text("5:cpu,memory:/docker/x\n0::/\n")  # v1, seen from inside
    group(root / "memory", memory__limit_in_bytes=2 * GIB, memory__usage_in_bytes=GIB)
    assert list(workload._free_of_container(told, root)) == [GIB]
    told.write_text("0::/../outside\n")
    assert list(workload._free_of_container(told, root)) == []
    assert list(workload._free_of_container(tmp_path / "none", root)) == []
    assert 0 < workload._free_ram() <= workload._free_of_machine() * 1.5
