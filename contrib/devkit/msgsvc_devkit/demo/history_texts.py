"""What is written and said in the demo's month."""

from typing import Any

AGENT = "Clemens"

#: Names and languages of readers, in the order in which they come.
READERS = [
    ("Maria", "en"),
    ("Jonas", "en"),
    ("Ольга", "ru"),
    ("Priya", "en"),
    ("Tom", "en"),
    ("Иван", "ru"),
    ("Lena", "en"),
    ("Omar", "en"),
    ("Sofia", "en"),
    ("Анна", "ru"),
    ("Felix", "en"),
    ("Nora", "en"),
    ("Пётр", "ru"),
    ("Aiko", "en"),
    ("Lucas", "en"),
    ("Emma", "en"),
    ("Дарья", "ru"),
    ("Noah", "en"),
    ("Chloe", "en"),
    ("Ravi", "en"),
    ("Ирина", "ru"),
    ("Hugo", "en"),
    ("Zoe", "en"),
    ("Samir", "en"),
    ("Vera", "en"),
    ("Максим", "ru"),
    ("Ines", "en"),
    ("Paul", "en"),
    ("Юлия", "ru"),
    ("Carla", "en"),
    ("Ben", "en"),
    ("Mina", "en"),
]

TAGS = ("novels", "poems", "children", "science")

BOOKS = (
    "Emma",
    "Walden",
    "The Trial",
    "Middlemarch",
    "Dubliners",
    "Dead Souls",
    "Candide",
    "Hamlet",
)

GENRES = ("novels", "poems", "science")

YES = {"en": "Yes", "ru": "Да"}

WELCOME: dict[str, Any] = {
    "name": "Welcome",
    "trigger": {"on": "subscription"},
    "steps": [
        {
            "delay": {"minutes": 10},
            "message": {
                "text": {
                    "en": "Welcome, {{ first_name }}! Your library card works from today.",
                    "ru": "Здравствуйте, {{ first_name }}! Читательский билет уже действует.",
                }
            },
        },
        {
            "delay": {"days": 3},
            "message": {
                "text": {
                    "en": "You may borrow ten books at once, for four weeks each.",
                    "ru": "Можно взять десять книг сразу, каждую на четыре недели.",
                }
            },
        },
    ],
}

REMINDER: dict[str, Any] = {
    "key": "reminder",
    "text": {
        "en": "**{{ book }}** is due in three days.",
        "ru": "Через три дня пора вернуть «{{ book }}».",
    },
    "format": "markdown",
}

CANNED = {
    "key": "hours",
    "title": "Opening hours",
    "text": "We are open from 10 to 19, on Saturdays to 16.",
}

FORM: dict[str, Any] = {
    "slug": "wishes",
    "title": {"en": "What should we buy?", "ru": "Что нам купить?"},
    "thanks": {"en": "Thank you!", "ru": "Спасибо!"},
    "min_fill_seconds": 0,
    "fields": [
        {
            "key": "genre",
            "type": "choice",
            "label": {"en": "Of what kind?", "ru": "Какого рода?"},
            "required": True,
            "options": [
                {"value": "novels", "label": {"en": "Novels", "ru": "Романы"}},
                {"value": "poems", "label": {"en": "Poems", "ru": "Стихи"}},
                {"value": "science", "label": {"en": "Science", "ru": "Наука"}},
            ],
        },
        {"key": "name", "type": "text", "label": {"en": "Your name", "ru": "Ваше имя"}},
    ],
}

ANNOUNCEMENTS = [
    {
        "en": "New on the shelves: twelve novels from Portugal.",
        "ru": "Новинки: двенадцать романов из Португалии.",
    },
    {
        "en": "Reading night on Friday at 19:00. Bring a friend, {{ first_name }}!",
        "ru": "В пятницу в 19:00 читаем вслух. Приходите с друзьями!",
    },
    {
        "en": "We are closed on Monday: the heating is repaired.",
        "ru": "В понедельник закрыто: чиним отопление.",
    },
    {
        "en": "The winter reading challenge begins. Five books until March?",
        "ru": "Начинаются зимние чтения. Пять книг до марта?",
    },
]

QUESTIONS = {
    "en": [
        "Can I renew Middlemarch once more?",
        "Do you have the third volume of this series?",
        "I lost my card. What now?",
        "Is the reading room open on Saturday?",
        "The e-book link does not open on my phone.",
        "Could you keep Walden for me until Thursday?",
    ],
    "ru": [
        "Можно продлить книгу ещё раз?",
        "Есть ли у вас детские книги на английском?",
        "Я потеряла билет. Что делать?",
        "Работает ли читальный зал в субботу?",
    ],
}

REPLIES = [
    "Done: you have it for two more weeks.",
    "Yes, it is at the desk under your name.",
    "Please come by with any document, a new card takes a minute.",
    "Thank you for telling us, we have repaired it.",
]
