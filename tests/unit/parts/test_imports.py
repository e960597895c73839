"""How a file of people is read, and which files are refused at once."""

import pytest

from msgsvc_core.kernel.errors import PayloadTooLarge, ValidationFailed
from msgsvc_core.subscribers.imports import PeopleImports
from msgsvc_core.subscribers.imports.models import ImportQuery
from msgsvc_core.subscribers.imports.parsing import (
    MOST_BROKEN,
    SLICE,
    UNREADABLE,
    PeopleFile,
    read_mapping,
)
from msgsvc_devkit.core import PROJECT, memory_core


async def test_a_file_that_is_too_large_and_an_unknown_channel_are_refused() -> None:
    async with memory_core(limits={"import_bytes": 1024}) as core:
        imports = core.service.get(PeopleImports)
        with pytest.raises(PayloadTooLarge):
            await imports.prepare(PROJECT, b"a" * 1025, ImportQuery())
        with pytest.raises(ValidationFailed):
            await imports.prepare(PROJECT, b"address\na", ImportQuery(channel="fax"))


def test_rows_keep_the_lines_that_they_have_in_the_file() -> None:
    content = 'address,first_name\n"a","two\nlines"\n\n , \nb,\'=sum\nc,d,e\n'
    parsed = PeopleFile(content.encode(), {}, most=10)

    assert [(row.line, row.cells) for rows in parsed.slices() for row in rows] == [
        (3, {"address": "a", "first_name": "two\nlines"}),
        (6, {"address": "b", "first_name": "=sum"}),
        (7, {"": "3"}),
    ]


def test_a_mapped_column_stands_for_one_of_ours_of_that_name() -> None:
    mapping = read_mapping('{"E-Mail ": "address"}')
    parsed = PeopleFile(b"address;e-mail\nsome street 1;a@b.example\n", mapping, most=1)

    [[row]] = parsed.slices()

    assert row.cells == {"address": "a@b.example"}
    assert (parsed.columns, parsed.ignored) == ({"address": "e-mail"}, ("address",))


def test_slices_have_all_rows_once() -> None:
    count = 2 * SLICE + 1
    content = "address\n" + "".join(f"{number}\n" for number in range(count))
    slices = list(PeopleFile(content.encode(), {}, most=count).slices())

    assert [len(rows) for rows in slices] == [SLICE, SLICE, 1]
    assert [row.cells["address"] for rows in slices for row in rows] == [
        str(number) for number in range(count)
    ]


@pytest.mark.parametrize("first", ["sep=;\r\n", '\ufeff"sep=;"\n', "SEP=;\n"])
def test_the_first_line_of_excel_names_the_separator(first: str) -> None:
    content = f"{first}address;first_name\na;Ann, the first\n"
    parsed = PeopleFile(content.encode(), {}, most=10)

    assert [(row.line, row.cells) for rows in parsed.slices() for row in rows] == [
        (3, {"address": "a", "first_name": "Ann, the first"})
    ]


@pytest.mark.parametrize("broken", ['"Ann" Smith', '"never closed'])
def test_a_cell_that_is_broken_costs_its_row(broken: str) -> None:
    content = f'address,first_name\na,{broken}\nb,"Bob"\nc,"two\nlines"\n'
    parsed = PeopleFile(content.encode(), {}, most=10)

    assert [(row.line, row.cells) for rows in parsed.slices() for row in rows] == [
        (2, {"": UNREADABLE}),
        (3, {"address": "b", "first_name": "Bob"}),
        (5, {"address": "c", "first_name": "two\nlines"}),
    ]


def test_a_file_of_broken_rows_is_refused() -> None:
    content = "address,first_name\n" + 'a,"open\n' * (MOST_BROKEN + 1)
    parsed = PeopleFile(content.encode(), {}, most=10_000)

    with pytest.raises(ValidationFailed, match="can't be read"):
        list(parsed.slices())


@pytest.mark.parametrize("content", [b"," * 300_000, b"address\n" + b'"",' * 100_000])
def test_a_line_is_not_split_that_is_longer_than_any_row(content: bytes) -> None:
    with pytest.raises(ValidationFailed, match="longer than 262144 characters"):
        list(PeopleFile(content, {}, most=10).slices())
