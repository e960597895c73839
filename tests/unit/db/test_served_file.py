"""A SQLite file that two services serve is noticed."""

from pathlib import Path

from msgsvc_core.db.served_file import ServedFile


def test_a_file_is_marked_by_one_service_until_it_stops(tmp_path: Path) -> None:
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    path.touch()
    other.touch()
    first, second, third = ServedFile(path), ServedFile(path), ServedFile(other)

    assert (first.acquire(), second.acquire(), third.acquire()) == (True, False, True)
    third.release()
    second.release()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_file_by_another_name_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    (tmp_path / "link.db").symlink_to(path)
    first = ServedFile(path)

    assert first.acquire()
    assert not ServedFile(tmp_path / "link.db").acquire()
    first.release()


def test_where_there_is_no_file_nothing_is_claimed(tmp_path: Path) -> None:
    assert ServedFile(tmp_path / "none.db").acquire()
