"""How a file of people is read, and which files are refused at once."""

import pytest

from msgsvc_core.kernel.errors import PayloadTooLarge, ValidationFailed
from msgsvc_core.subscribers.imports.models import ImportQuery
from msgsvc_core.subscribers.imports.parsing import SLICE, PeopleFile, read_mapping
from msgsvc_devkit.core import PROJECT, memory_core


async def test_a_file_that_is_too_large_and_an_unknown_channel_are_refused() -> None:
    async with memory_core(limits={"import_bytes": 1024}) as core:
        imports = core.service.people_imports
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
