"""The comparison of answers finds what differs, and nothing is explained that does not."""

from tests.upgrades.comparison import ABSENT, Difference, Explanation, compare, unexplained

BEFORE = {"/v1/tags": {"status": 200, "body": {"data": [{"tag": "vip", "count": 1}]}}}
AFTER = {"/v1/tags": {"status": 200, "body": {"data": [{"tag": "vip", "count": 2, "new": True}]}}}

COUNTED = Difference("/v1/tags", "body.data.0.count", 1, 2)
ADDED = Difference("/v1/tags", "body.data.0.new", ABSENT, True)


def test_what_changed_and_what_was_added_are_differences() -> None:
    assert compare(BEFORE, AFTER) == [COUNTED, ADDED]
    assert compare(BEFORE, BEFORE) == []


def test_an_answer_that_is_missing_is_a_difference() -> None:
    assert compare(BEFORE, {}) == [
        Difference("/v1/tags", "body.data.0.count", 1, ABSENT),
        Difference("/v1/tags", "body.data.0.tag", "vip", ABSENT),
        Difference("/v1/tags", "status", 200, ABSENT),
    ]


def test_a_list_that_became_empty_is_a_difference() -> None:
    before, after = {"/": {"body": {"data": [1]}}}, {"/": {"body": {"data": []}}}

    assert compare(before, after) == [
        Difference("/", "body.data", ABSENT, []),
        Difference("/", "body.data.0", 1, ABSENT),
    ]


def test_an_explanation_is_needed_for_each_difference_and_a_difference_for_each_explanation() -> (
    None
):
    needed = Explanation("/v1/*", "body.data.*.new", "Tags tell whether they are new.")
    unneeded = Explanation("/v1/forms", "*", "Forms changed.")

    assert unexplained([COUNTED, ADDED], [needed, unneeded]) == ([COUNTED], [unneeded])
