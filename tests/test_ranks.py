"""The ranks of a job: who waits for whom, whatever order and however many processes read them."""

import random
from functools import reduce

import pytest
from build import ROOT, region, tool, trace, write

from common.cli import UserError
from common.read.ranks import Ranks, job, ranks_of
from common.read.trace import read
from common.show.ranks import ranks_json, show_ranks
from common.show.terminal import console

made = tool("make_ranks")
REAL = sorted((ROOT / "tests" / "data" / "ranks").glob("*.json.gz"))
STEPS, LAYERS = 3, made.LAYERS


def values(paths):
    return [ranks_of(read(path), path.name) for path in paths]


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    return values(made.write(folder, 8, STEPS, straggler=5))


def whole(parts):
    return job(reduce(Ranks.merged, parts, Ranks()))


def test_everybody_waits_for_the_straggler(eight):
    """Though their clocks are seconds apart."""
    seen = whole(eight)
    late = round(1000 * made.LATE) * STEPS * LAYERS
    assert (seen.straggler, seen.last, seen.collectives) == (
        "rank 5",
        STEPS * LAYERS,
        STEPS * LAYERS,
    )
    for row in seen.rows:
        straggles = row.rank == 5
        assert row.waited == pytest.approx(0 if straggles else late, abs=1000)
        assert row.waited_for == pytest.approx(7 * late if straggles else 0, abs=8000)
        compute = made.COMPUTE + made.LATE * straggles
        assert row.compute == pytest.approx(1000 * compute * STEPS * LAYERS, rel=1e-3)
        assert row.exposed == pytest.approx(row.communication, rel=1e-3)
    assert sum(wait.total for wait in seen.waits) == sum(row.waited for row in seen.rows)


def test_any_order_and_grouping_merges_to_the_same(eight):
    expected = reduce(Ranks.merged, eight, Ranks())
    chance = random.Random(3)
    for _ in range(5):
        left = list(eight)
        while len(left) > 1:
            one, other = (left.pop(chance.randrange(len(left))) for _ in "ab")
            left.append(one.merged(other))
        assert left[0] == expected


def test_what_merges_does_not_grow_with_the_ranks(eight):
    """But for a line of each rank."""
    few, many = reduce(Ranks.merged, eight[:2]), reduce(Ranks.merged, eight)
    assert {k: len(v) for k, v in few.met.items()} == {k: len(v) for k, v in many.met.items()}


def test_a_missing_rank_is_named(eight):
    seen = whole(eight[:3] + eight[4:])
    assert seen.missing == (3,) and "rank 3 is not among the files" in ranks_json(seen)["warnings"]


def test_other_counts_are_not_matched(tmp_path, eight):
    short = values(made.write(tmp_path, 8, STEPS - 1, straggler=5))[0]
    seen = whole([short, *eight[1:]])
    assert seen.collectives == 0 and seen.straggler is None and seen.rows[0].waited is None
    assert "so which belong together is unknown" in ranks_json(seen)["warnings"][0]


def test_an_unknown_group_is_not_matched(tmp_path):
    paths = []
    for rank in range(2):
        file = made.rank_file(rank, 2, 1, 1)
        del file["distributedInfo"]["pg_count"]
        for event in file["traceEvents"]:
            for name in ("Process Group Name", "Process Group Description"):
                event["args"].pop(name, None)
        paths.append(write(tmp_path, file, f"{rank}.json"))
    seen = whole(values(paths))
    assert seen.collectives == 0 and [row.untold for row in seen.rows] == [LAYERS, LAYERS]


def test_files_of_two_jobs_or_twice_of_a_rank(tmp_path, eight):
    with pytest.raises(UserError, match="both of rank 0"):
        whole([eight[0], eight[0]])
    other = values(made.write(tmp_path, 2, 1, 1))
    with pytest.raises(UserError, match="jobs of 2 and 8 ranks"):
        whole([eight[0], other[1]])
    with pytest.raises(UserError, match="none of 1 files could be read: b is empty"):
        job(Ranks(unread=(("b", "b is empty"),)))


def test_two_real_ranks_over_gloo():
    """Rank 1 slept for 30 ms in its data loader, in the fourth of six steps, three all-reduces
    each."""
    seen = whole(values(REAL))
    assert (seen.straggler, seen.size, seen.collectives) == ("rank 1", 2, 18)
    longest = seen.waits[0]
    assert (longest.last, longest.whose, longest.number) == ("rank 1", "rank 0", 10)
    assert 30e6 < longest.total < 35e6
    for row in seen.rows:
        assert row.exposed + row.overlapped == row.communication  # on the CPU, beside the GPU


def test_report_and_json(eight, capsys):
    seen = whole(eight)
    show_ranks(console(), seen)
    out = capsys.readouterr().out
    assert "rank 5 is the straggler: it came last in 36 of 36 collectives" in out
    assert "it computes 30 % more than the others" in " ".join(out.split())
    less = ranks_json(seen, 2)
    assert less["ranks"][0]["rank"] == 5 and less["left_out"] == {"ranks": 6, "waits": 34}


def test_no_collective_no_waits(tmp_path):
    seen = whole(values([write(tmp_path, trace(region(0, 10)), "a.json")]))
    assert (seen.collectives, seen.rows[0].waited, seen.rows[0].communication) == (0, None, None)
    assert seen.rows[0].who == "a.json"
