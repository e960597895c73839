"""How a file of people is read, and which files are refused at once."""

import pytest

from msgsvc_core.kernel.errors import PayloadTooLarge, ValidationFailed
from msgsvc_core.subscribers.imports import PeopleImports
from msgsvc_core.subscribers.imports.models import ImportParts
from msgsvc_core.subscribers.imports.parsing import (
    MOST_BROKEN,
    NOT_UTF_8,
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
            await imports.prepare(PROJECT, b"a" * 1025, ImportParts())
        with pytest.raises(ValidationFailed):
            await imports.prepare(PROJECT, b"address\na", ImportParts(channel="fax"))


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


@pytest.mark.parametrize("name", ["Jörg".encode("latin-1"), b"\xed\xa0\x80", b'"J\xf6rg"', b"\xc3"])
def test_a_cell_that_is_not_utf_8_costs_its_row(name: bytes) -> None:
    content = b"address,first_name\na,Ann\nb," + name + b"\nc,J\xc3\xb6rg\n"
    parsed = PeopleFile(content, {}, most=10)

    assert [(row.line, row.cells) for rows in parsed.slices() for row in rows] == [
        (2, {"address": "a", "first_name": "Ann"}),
        (3, {"": NOT_UTF_8}),
        (4, {"address": "c", "first_name": "Jörg"}),
    ]


def test_a_column_that_nobody_reads_may_be_in_any_encoding() -> None:
    parsed = PeopleFile(b"address,city\na,K\xf6ln\n", {}, most=10)

    assert [row.cells for rows in parsed.slices() for row in rows] == [{"address": "a"}]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("address,Größe\na,1\n".encode("latin-1"), 1),
        ("sep=;\naddress;Größe\na;1\n".encode("latin-1"), 2),
        ("address\na\n".encode("utf-16"), 1),
    ],
)
def test_a_header_that_is_not_utf_8_refuses_the_file_with_its_line(
    content: bytes, line: int
) -> None:
    with pytest.raises(ValidationFailed, match=f"line {line} is not UTF-8"):
        PeopleFile(content, {}, most=10)


@pytest.mark.parametrize(
    ("row", "why"), [(b'a,"open\n', "can't be read"), (b"a,J\xf6rg\n", "is not UTF-8")]
)
def test_a_file_of_broken_rows_is_refused(row: bytes, why: str) -> None:
    content = b"address,first_name\n" + row * (MOST_BROKEN + 1)
    parsed = PeopleFile(content, {}, most=10_000)

    with pytest.raises(ValidationFailed, match=why):
        list(parsed.slices())


@pytest.mark.parametrize("content", [b"," * 300_000, b"address\n" + b'"",' * 100_000])
def test_a_line_is_not_split_that_is_longer_than_any_row(content: bytes) -> None:
    with pytest.raises(ValidationFailed, match="longer than 262144 characters"):
        list(PeopleFile(content, {}, most=10).slices())
