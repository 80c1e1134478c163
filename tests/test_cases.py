"""Inputs from public bug reports: each answers as `expected` in data/cases/index.json says.

The fault's whole kind, beyond the one file, is tested with the module that meets it.
"""

import json

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
# What is wrong in the file, so that the line and column named can be looked up.
OFFENDERS = {
    "t01-bare-inf": b"inf",
    "t03-control-char": b"\x01",
    "t05-backslash-path": b"\\",
    "t07-python-true": b"True",
}


def path_of(case):
    return CASES / INDEX[case]["file"]


def ask(case, capsys):
    """The command's exit code, output and error output."""
    more = ["--region", "attn_fwd"] if case == "t22-gpu-only" else []
    code = 0
    try:
        with one_line_errors():
            look(parse(Options, "", "", ["--json", *more, str(path_of(case))]))
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def fails(case) -> bool:
    return isinstance(INDEX[case]["expected"], str) or case == "t26-2021-schema"


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


@pytest.mark.parametrize("case", [case for case in INDEX if not fails(case)])
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
