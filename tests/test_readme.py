"""What the documents print is what the commands print; their figures and pictures are current.

uv run tests/test_readme.py        writes the printed output anew, in all of them
"""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.png"))
# from "X" leaves out the lines before the one that begins with X; to "X" that one and what follows.
BLOCK = re.compile(
    r'(<!-- output of: (.+?)(?:, from "(.+?)")?(?:, to "(.+?)")? -->\n```console\n)(.*?)```',
    re.DOTALL,
)
# Figures that a new recording would change; in the guide, in any of its languages, each must stand
# in printed output.
MEASURED = ("docs/guide.md", *(path.name for path in sorted(ROOT.glob("README.*.md"))))
FIGURE = re.compile(
    r"(?<![\w.,-])\+?\d[\d.,]*(?: ±[ \d.]+)?\s?"
    r"(?:µs|ms|[KMG]?i?B\b|%|TFLOP/s|kernels?\b|cop(?:y|ies)\b|memsets?\b|registers?\b|threads?\b"
    r"|warps?\b|blocks?\b|of \d+ warps)"
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def output(command: str) -> str:
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(command: str, first: str, last: str) -> str:
    lines = output(command).splitlines()
    at = [number for number, line in enumerate(lines) if first and line.startswith(first)]
    lines = lines[at[0] :] if first else lines
    end = [number for number, line in enumerate(lines) if last and line.startswith(last)]
    if last:
        lines = ["\n".join(lines[: end[0]]).rstrip(), "…"]
    return "\n".join([f"$ uv run {command}", *lines, ""])


def blocks() -> list:
    return [
        pytest.param(command, first, last, shown, id=f"{path.name}-{command}")
        for path in DOCUMENTS
        for _, command, first, last, shown in BLOCK.findall(path.read_text())
    ]


@pytest.mark.parametrize(("command", "first", "last", "shown"), blocks())
def test_printed_output_is_current(command, first, last, shown):
    assert shown == printed(command, first, last), "stale: uv run tests/test_readme.py"


def prose(text: str) -> str:
    """Without code, comments and addresses, and on one line."""
    text = re.sub(r"<!--.*?-->|```.*?```|`[^`]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    return " ".join(text.split())


def stray_figures(text: str) -> list[str]:
    """Figures in the prose of a document that stand in no printed output of their section, nor in
    the table of all variants."""
    found = [(command, " ".join(shown.split())) for _, command, *_, shown in BLOCK.findall(text)]
    table = "".join(shown for command, shown in found if command.startswith("-m common.glance"))
    stray = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        known = table + " ".join(" ".join(shown.split()) for *_, shown in BLOCK.findall(section))
        for figure in FIGURE.findall(prose(section)):
            if not re.search(rf"(?<![\w.,]){re.escape(figure)}", known):
                stray.append(f"{section.splitlines()[0]}: {figure}")
    return stray


@pytest.mark.parametrize("document", MEASURED)
def test_every_figure_in_prose_is_one_that_was_printed(document):
    assert stray_figures((ROOT / document).read_text()) == []


def test_a_stale_figure_is_noticed():
    block = "<!-- output of: x -->\n```console\n$ uv run x\nGPU 936 µs\n5 kernels a forward\n```\n"
    text = f"## A\n{block}It takes 936 µs for 5\nkernels. {{}}\n## B\n"
    assert stray_figures(text.format("")) == []
    assert stray_figures(text.format("Not 937 µs.")) == ["A: 937 µs"]
    assert stray_figures(text.format("Not 36 µs, nor 25 kernels.")) == ["A: 36 µs", "A: 25 kernels"]
    assert stray_figures(text.format("") + "Here nobody printed 936 µs.") == ["B: 936 µs"]
    table = block.replace("output of: x", "output of: -m common.glance")
    assert stray_figures(text.format("") + "But 936 µs.\n## C\n" + table) == []


def anchors(text: str) -> list[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_what_a_document_points_to_exists(document):
    text = document.read_text()
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if "://" not in target:
            there = document.parent / target if target else document
            assert there.exists(), target
            assert not anchor or anchor in anchors(there.read_text()), anchor
    for module in re.findall(r"common/[\w/]+\.py|tests/[\w/]+\.py|\b04_\w+\.py", text):
        assert (ROOT / module).exists(), module
    for module in re.findall(r"-m (common\.\w+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


def test_every_module_stands_in_the_readme():
    """And nothing else does: those of a folder by name, below it or behind it."""
    text = (ROOT / "README.md").read_text()
    tree = text[text.index("    common/cli.py") :].split("\n\n")[0]
    told = set(re.findall(r"common/\w+\.py", tree))
    for folder, lines in re.findall(r"^    (common/\w+)/(.*(?:\n      .*)*)", tree, re.MULTILINE):
        there = {path.stem for path in (ROOT / folder).glob("[!_]*.py")}
        named = set(re.findall(r"\w+", lines)) & there
        named |= {word for line in lines.split("\n")[1:] for word in line[:32].split()}
        told |= {f"{folder}/{name}.py" for name in named}
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "common").glob("**/[!_]*.py")}
    assert told == modules


def test_every_picture_is_shown_small_and_of_the_recording_that_is_shipped():
    shown = {Path(p).name for d in DOCUMENTS for p in re.findall(r"\((\S+\.png)\)", d.read_text())}
    assert {picture.name for picture in PICTURES} == shown
    for picture in PICTURES:
        data = picture.read_bytes()
        recording, digest = re.search(rb"(traces/\S+) sha256 (\w{64})", data).groups()
        current = hashlib.sha256((ROOT / recording.decode()).read_bytes()).hexdigest()
        assert digest.decode() == current, f"stale: tests/tools/pictures.py {picture.stem}"
        assert len(data) < 150_000


def write_anew() -> None:
    for path in DOCUMENTS:
        path.write_text(
            BLOCK.sub(lambda m: f"{m[1]}{printed(*m.group(2, 3, 4))}```", path.read_text())
        )


if __name__ == "__main__":
    write_anew()
