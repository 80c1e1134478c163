"""Inputs from public bug reports: each answers as `expected` in data/cases/index.json says.

The fault's whole kind, beyond the one file, is tested with the module that meets it.
"""

import json
import unicodedata

import pytest
from build import CASES

from common.cli import one_line_errors, parse
from common.look import Options, look
from common.read.observe import observe
from common.read.trace import read

INDEX = {case["id"]: case for case in json.loads((CASES / "index.json").read_text())}

# What an error or warning must say, where the expected text is a description and no quotation.
ERRORS = {
    "t01-bare-inf": ["not valid JSON", "unexpected token `inf`"],
    "t03-control-char": ["not valid JSON", "raw control character", "in a string"],
    "t05-backslash-path": ["not valid JSON", "invalid \\escape", "unescaped Windows path"],
    "t07-python-true": ["not valid JSON", "unexpected token `True`"],
    "t08-truncated": ["truncated JSON", "unterminated string at end of file", "looks incomplete"],
    "t09-no-bracket": ["JSON", "unexpected end of file", "missing ]"],
    "t10-gzip-of-nothing": ["empty trace (0 bytes after decompression)"],
    "t16-empty-trace": ["the trace holds no events"],
    "t17-metadata-only": ["no timed events (only metadata)"],
    "t22-gpu-only": [
        "region 'attn_fwd' not found",
        "the trace has 2 kernels but no CPU events (profile with CPU activity too)",
    ],
    "t26-2021-schema": ["unsupported old Kineto schema", "Kernel", "Runtime", "Operator"],
}
WARNINGS = {
    "t02-nan-token": ["non-finite number", "treated as missing"],
    "t31-unfinished-dur": ["1 region has a negative", "(unfinished)"],
}
# The index asks for none, and a reader is better off with one.
MORE_WARNINGS = {
    "t37-leak-from-warmup": ["2 GPU events without a launch in the file, left out"],
    "t44-id-namespaces-collide": ["the forwards differ"],
}
# Of the others what is expected is told in words, or is a part of what is answered: what is asked
# (its own region where it names one), and what `--json` must hold, piece by piece.
CLOCKS = "the clocks of CPU and GPU disagree: kernels start 2 s before their launches"
BY_ID = "launches are stamped outside the op that their External id names; the id decides"
COUNTED = {"kernels_per_forward": 3, "other_threads_gpu_events": 0}
ANSWERS = {
    "n02": {**COUNTED, "cuda_sum_us": 270, "gpu": {"idle_us": 360, "idle_launch_bound_us": None},
            "warnings": [CLOCKS]},
    "n03": {**COUNTED, "launches_per_forward": 3, "warnings": [f"9 {BY_ID}"]},
    "n04": {**COUNTED, "launches_per_forward": 3, "warnings": [f"9 {BY_ID}"]},
    "n14": {**COUNTED, "steps": [{"ops": ["aten::bmm"]}, {"ops": ["aten::_softmax"]},
                                 {"ops": ["aten::bmm"]}], "warnings": [f"9 {BY_ID}"]},
    "n15": {**COUNTED, "regions": 4, "warnings": []},
    "n17": {**COUNTED, "warnings": []},
    "n19": {"labels": [{"name": "attn", "gpu_us": 180}, {"name": "mlp", "gpu_us": 180}],
            "ops": [{"name": "aten::bmm", "gpu_us": 240},
                    {"name": "aten::_softmax", "gpu_us": 120}],
            "warnings": [f"18 {BY_ID}"]},
    "no_label": {**INDEX["no_label"]["expected"], "warnings": [], "unlabelled_gpu_us": 80},
    "one_incidental_label": {**INDEX["one_incidental_label"]["expected"], "warnings": [],
                             "unlabelled_gpu_us": 100},
    "backward_on_autograd_thread": {
        "labels": INDEX["backward_on_autograd_thread"]["expected"]["labels"],
        "unlabelled_gpu_us": 0, "warnings": [],
    },
    "communication_not_nccl": {**INDEX["communication_not_nccl"]["expected"], "warnings": []},
    "stream_capture": {"region": "capture", "kernels_per_forward": 3, "lost_launches": 0,
                       "captured_launches": 3, "warnings": []},
    "nested_same_label": {  # in order of time, and of two as long the longer on the CPU is first
        "labels": INDEX["nested_same_label"]["expected"]["labels"][::-1], "warnings": [],
    },
    "mtia": {**INDEX["mtia"]["expected"], "warnings": []},
    "idle_in_blocking_copy": {
        "gpu": {"span_us": 935, "busy_us": 125, "idle_us": 810,
                "idle_by": [{"what": "cudaMemcpyAsync", "us": 790, "count": 1, "longest_us": 790},
                            {"what": "aten::copy_", "us": 20, "count": 1, "longest_us": 20}]},
        "warnings": [],
    },
    "sorted-ranks-wrong": {
        "kernels_per_forward": None, "copies_per_forward": None, "cuda_us_per_forward": None,
        "streams": None, "distinct_kernels": None, "undecided_gpu_events": 2, "gpu": None,
        "warnings": ["2 GPU events of a correlation id that several calls carry"],
    },
    "mean-leaves-out-idle-forwards": {"kernels_per_forward": [1, 0], "cuda_us_per_forward": 5,
                                      "cuda_sum_us": 10, "warnings": ["the forwards differ"]},
    "negative-ts": {"gpu_busy_us": 10, "gpu": {"busy_us": 10}, "warnings": []},
    "survey-unknown-0": {
        "labels": [{"name": "b", "gpu_us": None, "gpu_busy_us": None},
                   {"name": "never_ended", "gpu_us": None, "cpu_us": None}],
        "kernels": [{"name": "lost", "gpu_us": None}], "gpu": None, "unlabelled_gpu_us": None,
        "warnings": ["1 GPU event of unknown time"],
    },
    "survey-incredible": {"labels": [{"name": "a", "gpu_us": None}, {"name": "b", "gpu_us": 0}],
                          "warnings": ["1 GPU event of no credible duration"]},
    "other-threads-false": {"kernels_per_forward": 1, "other_threads_gpu_events": 0,
                            "warnings": []},
    "lost-doubled": {"launches_per_forward": 2, "lost_launches": 1,
                     "trust": "1 of 2 launches lost their GPU record, so GPU times and counts are "
                              "lower bounds", "warnings": ["1 launch has no kernel record"]},
    "about-peak": {"kernels_per_forward": 1, "warnings": []},
    "terminal-escape": {"kernels_per_forward": 1, "warnings": []},
}  # fmt: skip
ERRORS |= {
    "n07": ["a tar archive"],
    "n12": ["no trace of torch.profiler", "JAX"],
    "n20": ["a second JSON document", "in line 407, column 1"],
    "n21": ["NUL bytes behind its end", "in line 407, column 1"],
    "terminal-escape-error": ["region 'nope' not found"],
}
# What is wrong in the file, so that the line and column named can be looked up.
OFFENDERS = {
    "t01-bare-inf": b"inf",
    "t03-control-char": b"\x01",
    "t05-backslash-path": b"\\",
    "t07-python-true": b"True",
}


def path_of(case):
    return CASES / INDEX[case]["file"]


def ask(case, capsys, form=("--json",)):
    """The command's exit code, output and error output."""
    more = ["--region", "attn_fwd"] if case == "t22-gpu-only" else []
    more += INDEX[case].get("args", "").split()
    code = 0
    try:
        with one_line_errors():
            look(parse(Options, "", "", [*form, *more, str(path_of(case))]))
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def fails(case) -> bool:
    return case not in ANSWERS and (
        isinstance(INDEX[case]["expected"], str) or case == "t26-2021-schema"
    )


def test_every_case_is_asked():
    assert {path_of(case) for case in INDEX} == {
        path for path in CASES.iterdir() if path.name != "index.json"
    }
    assert {case for case in INDEX if fails(case)} == set(ERRORS)


@pytest.mark.parametrize("case", ERRORS)
def test_case_stops_with_one_line(case, capsys):
    code, out, err = ask(case, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1
    assert INDEX[case]["file"] in err
    for words in ERRORS[case]:
        assert words in err
    if offender := OFFENDERS.get(case):
        place = err.rsplit(" in line ", 1)[1]
        line, column = map(int, place.split(", column "))
        text = path_of(case).read_bytes().split(b"\n")[line - 1]
        assert text[column - 1 :].startswith(offender)


@pytest.mark.parametrize("case", [c for c in INDEX if not fails(c) and c not in ANSWERS])
def test_case_answers(case, capsys):
    code, out, err = ask(case, capsys)
    assert (code, err) == (0, "")
    found, expected = json.loads(out), dict(INDEX[case]["expected"])
    warnings = "\n".join(found["warnings"])
    warning = expected.pop("warning", None)
    for words in WARNINGS.get(case, warning.split("; ") if warning else []):
        assert words in warnings
    for words in MORE_WARNINGS.get(case, []):
        assert words in warnings
    said = bool(warning) or case in MORE_WARNINGS
    assert said == bool(found["warnings"]), "neither silent nor crying wolf"
    expected.pop("acceptable", None)

    by_region = expected.pop("kernel_by_region", None)
    if by_region:
        forwards = observe(read(path_of(case))).forwards
        assert [step.name for forward in forwards for step in forward.steps] == by_region
    kernels = [step for step in found["steps"] if step["block"] or step["grid"]]
    # The occupancy that a file lacks is the profiler's; ours is computed from the footprint.
    of_kernels = {"registers", "shared_memory", "grid", "occupancy_pct"} & expected.keys()
    for key in of_kernels:
        wanted = expected.pop(key)
        key = key.replace("occupancy_pct", "occupancy_reported_pct")
        values = [step[key] for step in kernels]
        # A list of registers is one for each kernel; a grid is a list itself.
        several = key == "registers" and isinstance(wanted, list)
        assert values == wanted if several else wanted in values, key
        if wanted is None:
            assert set(values) == {None}, key
    for key, wanted in expected.items():
        if isinstance(wanted, list) and len(set(wanted)) == 1:
            wanted = wanted[0]  # all forwards agree: one number
        assert found[key] == wanted, key
        assert (found[key] is None) == (wanted is None), "null is unknown and not 0"


def holds(found, expected, where="") -> None:
    """All that is expected, and of a list as many."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        for key, wanted in expected.items():
            if key != "exit":
                holds(found[key], wanted, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, (one, wanted) in enumerate(zip(found, expected, strict=True)):
            if where == ".warnings":
                assert wanted in one
            else:
                holds(one, wanted, f"{where}[{number}]")
    else:
        assert found == expected, where
        assert (found is None) == (expected is None), where


@pytest.mark.parametrize("case", ANSWERS)
def test_case_holds_what_is_expected(case, capsys):
    code, out, err = ask(case, capsys)
    assert (code, err) == (0, "")
    holds(json.loads(out), ANSWERS[case])


@pytest.mark.parametrize("form", [(), ("--json",), ("--survey",), ("--survey", "--json")])
@pytest.mark.parametrize("case", ["terminal-escape", "terminal-escape-error"])
def test_no_name_writes_to_the_terminal(case, form, capsys):
    """ESC, BEL, C1 and what changes the direction of text, in names and in error lines."""
    if case == "terminal-escape-error" and "--survey" in form:
        return
    text = "".join(ask(case, capsys, form)[1:])
    told = [c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"]
    assert text and not told
