"""peak: does working in place save memory? Naive and in-place attention, each as the scripts have
it and with the scores forgotten before the last matmul."""

from collections.abc import Sequence

from ..cli import UserError
from ..compare.claims import score_bytes
from ..show.words import mebibytes
from . import Asked, Recipe, Recorded, Result

SCRIPTS = {"naive": "04_a_naive_attention", "in-place": "04_b_inplace_ops_attention"}
FORGETS = "-del"
CLOSE = 0.01  # of the score matrix: the allocator rounds up


def read(seen: Sequence[Recorded]) -> Result:
    by = {s.variant: s for s in seen}
    lines, found, peaks = [], [], {}
    for name in (n + end for n in SCRIPTS for end in ("", FORGETS)):
        if name not in by:
            continue
        story = by[name].story
        if story.peak_bytes is None:
            raise UserError(f"{by[name].file}: it does not tell the peak; recorded without a GPU?")
        scores, output = _sizes(by[name])
        peaks[name] = story.peak_bytes
        held = _held(story.peak_bytes, scores, output)
        lines.append(
            [
                name.removesuffix(FORGETS),
                "forgotten" if name.endswith(FORGETS) else "still named",
                mebibytes(story.peak_bytes),
                held or "unknown",
            ]
        )
        found.append(
            {
                "file": by[name].file,
                "variant": name.removesuffix(FORGETS),
                "scores_forgotten": name.endswith(FORGETS),
                "peak_bytes": story.peak_bytes,
                "score_matrix_bytes": scores,
                "output_bytes": output,
                "held_at_the_peak": held,
            }
        )
    if len(peaks) < 2:
        raise UserError("peak lays recordings side by side, and there are fewer than two here")
    heads = ("attention", "scores, at the\nlast matmul", "peak\nMiB", "which is")
    return Result(heads, lines, found, _conclusions(by, peaks))


def _sizes(one: Recorded) -> tuple[int, int]:
    """Bytes of the score matrix of all heads, and of the output."""
    scores = score_bytes(one.story)
    _, _, seq, head_dim = one.story.shape
    return scores, scores // seq * head_dim


def _held(peak: int, scores: int, output: int) -> str | None:
    """The sum of whole tensors that the peak is; None where it is none of these."""
    for count in (1, 2, 3):
        for more, words in ((output, " and the output"), (0, "")):
            if abs(peak - count * scores - more) <= CLOSE * scores:
                return f"{count} score-sized tensor{'s' * (count > 1)}{words}"
    return None


def _conclusions(by: dict[str, Recorded], peaks: dict[str, int]) -> list[str]:
    said = []
    if {"naive", "in-place"} <= peaks.keys():
        less = peaks["naive"] - peaks["in-place"]
        how = f"{abs(less) / 2**20:,.0f} MiB {'lower' if less > 0 else 'higher'}"
        said.append(f"In place, the peak is {how if less else 'where it was'}.")
    for name in SCRIPTS:
        if not {name, name + FORGETS} <= peaks.keys():
            continue
        less = peaks[name] - peaks[name + FORGETS]
        scores, output = _sizes(by[name])
        if less <= 0:
            said.append(f"{name}: forgetting the scores does not lower the peak.")
            continue
        line = f"{name}: with the scores forgotten the peak is {less / 2**20:,.0f} MiB lower"
        if abs(less - output) <= CLOSE * scores:
            line += (
                ", the size of the output. So the peak stood at the last matmul, where scores, "
                "weights and output are there at once; what is left is that of an op that holds "
                "its input and its result, such as mul and softmax"
            )
        said.append(line + ".")
    return said


def recipes(asked: Asked) -> list[Recipe]:
    import torch

    from .. import scripts
    from ..lesson import Options

    def forgetting(attention, fill):
        def forward(q, k, v):
            scores = torch.matmul(q, k.transpose(-2, -1))
            scores = torch.mul(scores, attention.scale)
            scores = fill(scores, attention.mask, float("-inf"))
            weights = torch.softmax(scores, dim=-1)
            del scores
            return torch.matmul(weights, v)

        return forward

    fills = {"naive": torch.Tensor.masked_fill, "in-place": torch.Tensor.masked_fill_}
    found = []
    for name, script in SCRIPTS.items():
        lesson = scripts.load(script).lesson(Options())
        attention = lesson.build(asked.work)
        found.append(Recipe(name, asked.work, attention, lesson.subject))
        forgets = forgetting(attention, fills[name])
        found.append(Recipe(name + FORGETS, asked.work, forgets, lesson.subject))
    return found
