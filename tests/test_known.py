"""Of several numbers one may be unknown; then so is their sum, and it is never too small."""

from common.read.known import known, total


def test_a_sum_with_an_unknown_part_is_unknown():
    assert total([1, 2.5, 4]) == 7.5
    assert total([1, None, 4]) is None
    assert total(iter([None])) is None


def test_nothing_is_unknown_of_nothing():
    assert total([]) == 0
    assert known([]) == []


def test_zero_is_known():
    assert known([0, "", False]) == [0, "", False]
    assert known([0, None]) is None
