"""Names of files from strangers."""

import pytest

from msgsvc_core.files.names import MAX_NAME_BYTES, attachment, safe_name, with_suffix


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("photo.jpg", "photo.jpg"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\win.ini", "win.ini"),
        ("a\r\nSet-Cookie: b.txt", "aSet-Cookie: b.txt"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("half\ud800.txt", "half.txt"),
        (".htaccess", "htaccess"),
        ("name. ", "name"),
        ("a \t b.txt", "a b.txt"),
        ("<script>alert(1)</script>.png", "script>.png"),
        ("Отчёт.pdf", "Отчёт.pdf"),
        ("", "file"),
        ("///", "file"),
        ("..", "file"),
        (None, "file"),
    ],
)
def test_a_name_is_the_last_part_of_a_path_without_what_nobody_sees(
    given: str | None, safe: str
) -> None:
    assert safe_name(given, "file") == safe


@pytest.mark.parametrize("name", ["я" * 300 + ".pdf", "x" * 500, "x." + "y" * 500])
def test_a_long_name_is_cut_between_letters_and_keeps_a_short_ending(name: str) -> None:
    cut = safe_name(name, "file")

    assert len(cut.encode()) <= MAX_NAME_BYTES
    assert cut.endswith(".pdf") is name.endswith(".pdf")


@pytest.mark.parametrize(
    ("name", "mime_type", "whole"),
    [
        ("image", "image/jpeg", "image.jpg"),
        ("scan.pdf", "image/jpeg", "scan.pdf"),
        ("file", "text/html", "file"),
        ("file", "image/svg+xml", "file"),
        ("file", "application/octet-stream", "file"),
    ],
)
def test_a_name_without_an_ending_gets_that_of_its_content_unless_it_is_a_page(
    name: str, mime_type: str, whole: str
) -> None:
    assert with_suffix(name, mime_type) == whole


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("photo.jpg", 'attachment; filename="photo.jpg"'),
        (
            "Шум 1.pdf",
            "attachment; filename=\"___ 1.pdf\"; filename*=UTF-8''%D0%A8%D1%83%D0%BC%201.pdf",
        ),
        ('a"b\\c.txt', "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt"),
        ("50%.txt", "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"),
    ],
)
def test_a_header_names_the_file_plainly_and_as_it_is(name: str, header: str) -> None:
    assert attachment(name) == header
