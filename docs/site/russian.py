"""The configuration of the Russian pages: a build of its own, so that the theme speaks Russian there.

It is that of the English ones with these lines changed. What is there in English alone is linked by its
address on the site.
"""

_CHANGED = {
    "site_description: Notifications and sign-in through messengers, self-hosted.": (
        "site_description: Уведомления и вход через мессенджеры на вашем сервере."
    ),
    "  name: material": "  name: material\n  language: ru",
    "        name: Switch to light mode": "        name: Включить светлую тему",
    "        name: Switch to dark mode": "        name: Включить тёмную тему",
    "        name: Switch to the system's mode": "        name: Тема как в системе",
    '  up: ""': "  up: ../",
    '  here: ""': "  here: ru/",
    "    twin: This page as Markdown": "    twin: Эта страница в Markdown",
    "    version: Version": "    version: Версия",
    "    outdated: This is the documentation of an older version. Read that of": (
        "    outdated: Это документация более старой версии. Читайте документацию версии"
    ),
    "    other_language: Русский": "    other_language: English",
    "    other_code: ru": "    other_code: en",
}

#: Words of the search that the theme has in its script, in no list of translations.
_SEARCH = {
    '"aria-label":"Search",': '"aria-label":"Поиск",',
    'placeholder:"Search"': 'placeholder:"Поиск"',
    '"aria-label":"Search results"': '"aria-label":"Результаты поиска"',
    '`${new Intl.NumberFormat("en-US").format(i)} ${i===1?"result":"results"}`': (
        "`Результатов: ${i}`"
    ),
    '"No results"': '"Ничего не найдено"',
    r'"Loading search\u2026"': '"Поиск загружается…"',
    '"aria-label":"Close search"': '"aria-label":"Закрыть поиск"',
    '"aria-label":"Filters"': '"aria-label":"Фильтры"',
    'children:"Filters"': 'children:"Фильтры"',
    'children:"Tags"': 'children:"Метки"',
    (
        "Use Up and Down arrow keys to move between tags. Press Space or Enter to toggle a tag."
    ): "Стрелки вверх и вниз выбирают метку, пробел или Enter включает её.",
}

_NAV = """nav:
  - Главная: index.md
  - Учебник: tutorial.md
  - Подключение (англ.): ../guides/clients.html
  - Эксплуатация (англ.): ../install.html
  - Расширение (англ.): ../guides/write-a-channel.html
  - Понятия (англ.): ../concepts.html
  - API (англ.): ../api/index.html
  - Справочник (англ.): ../reference/index.html
"""


def russian(config: str) -> str:
    """Raises `ValueError` if the English configuration has no such line any more."""
    lines = config[: config.index("\nnav:\n") + 1].splitlines()
    for line, changed in _CHANGED.items():
        if lines.count(line) != 1:
            raise ValueError(f"mkdocs.yml has no line for the Russian pages to change: {line!r}")
        lines[lines.index(line)] = changed
    return "\n".join(lines) + "\n" + _NAV


def with_russian_search(script: str) -> str:
    """The theme's script. Raises `ValueError` if it has no such words, as a later version may."""
    for words, changed in _SEARCH.items():
        if words not in script:
            raise ValueError(f"the theme's script has no {words} to be in Russian")
        script = script.replace(words, changed)
    return script
