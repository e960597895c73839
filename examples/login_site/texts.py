"""Everything a person reads on the site, in English and Russian.

One typed field a text, so that mypy finds a translation that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Texts:
    """The texts of one language; `{...}` holes are filled where the text is used."""

    lang: str
    # The frame of every page.
    skip_to_content: str
    language: str
    events_link: str
    home_link: str
    example_note: str
    # Signed out.
    welcome: str
    welcome_lead: str
    sign_in: str
    #: What happens, step by step: a title and a sentence each.
    steps: tuple[tuple[str, str], ...]
    messenger: str
    # Signed in.
    hello: str
    hello_lead: str
    your_account: str
    username: str
    subscriber_id: str
    notify: str
    notify_lead: str
    notification: str
    notified: str
    not_notified: str
    sign_out: str
    signed_out: str
    # When it did not work.
    problem_title: str
    code_refused: str
    state_refused: str
    no_code: str
    back_home: str
    # Received webhooks.
    events_title: str
    events_lead: str
    events_none: str
    events_live: str
    events_paused: str
    event_refused: str
    signature_valid: str
    signature_invalid: str
    tries: str
    show_data: str


EN = Texts(
    lang="en",
    skip_to_content="Skip to content",
    language="Language",
    events_link="Received webhooks",
    home_link="Home",
    example_note="An example site that signs people in through a messenger, without passwords.",
    welcome="Welcome to {site}",
    welcome_lead="Sign in with the messenger you already use. Nothing to remember.",
    sign_in="Sign in with a messenger",
    steps=(
        ("Open your messenger", "By its link on this device, or by the QR code on your phone."),
        ("Choose the number", "The bot asks who signs in. Choose the number that you see here."),
        ("You are in", "The page goes on by itself, on the device where you began."),
    ),
    messenger="Messenger",
    hello="Hello, {name}!",
    hello_lead="You are signed in through {messenger}.",
    your_account="What the site knows about you",
    username="Username",
    subscriber_id="Subscriber ID",
    notify="Send me a notification",
    notify_lead="It arrives in the chat where you confirmed.",
    notification="Hello, {name}! This is a notification from {site}.",
    notified="On its way to your messenger ({message_id}).",
    not_notified="The notification was not sent: {error}",
    sign_out="Sign out",
    signed_out="You are signed out. See you!",
    problem_title="That did not work",
    code_refused="The messenger's confirmation could not be used. "
    "It works once, and only for a few minutes.",
    state_refused="This confirmation belongs to a sign-in that was not started in this browser. "
    "If somebody sent you this link, don't use it. "
    "If it was you, go back to the browser where you began.",
    no_code="This address is where the messenger brings people back after a Yes. "
    "There was no confirmation in it.",
    back_home="Back to sign-in",
    events_title="Received webhooks",
    events_lead="What msgsvc told this site, newest first. Each delivery is checked against the "
    "shared secret, and a repeated one is counted rather than listed again.",
    events_none="Nothing yet. Sign in, or send yourself a notification.",
    events_live="Live",
    events_paused="Connection lost, trying again",
    event_refused="Refused, content not kept",
    signature_valid="Signature valid",
    signature_invalid="Signature invalid",
    tries="tries",
    show_data="Data",
)

RU = Texts(
    lang="ru",
    skip_to_content="К содержанию",
    language="Язык",
    events_link="Полученные вебхуки",
    home_link="Главная",
    example_note="Пример сайта, на который входят через мессенджер, без паролей.",
    welcome="Добро пожаловать в {site}",
    welcome_lead="Войдите через привычный мессенджер. Запоминать ничего не нужно.",
    sign_in="Войти через мессенджер",
    steps=(
        ("Откройте мессенджер", "По ссылке на этом устройстве или по QR-коду на телефоне."),
        ("Выберите число", "Бот спросит, вы ли входите. Выберите число, которое видите здесь."),
        ("Готово", "Страница продолжит сама, на том устройстве, где вы начали."),
    ),
    messenger="Мессенджер",
    hello="Здравствуйте, {name}!",
    hello_lead="Вы вошли через {messenger}.",
    your_account="Что сайт знает о вас",
    username="Имя пользователя",
    subscriber_id="ID подписчика",
    notify="Прислать мне уведомление",
    notify_lead="Оно придёт в чат, где вы подтвердили вход.",
    notification="Здравствуйте, {name}! Это уведомление от {site}.",
    notified="Уже на пути в ваш мессенджер ({message_id}).",
    not_notified="Уведомление не отправлено: {error}",
    sign_out="Выйти",
    signed_out="Вы вышли. До встречи!",
    problem_title="Не получилось",
    code_refused="Подтверждение из мессенджера не подошло. "
    "Оно действует один раз и всего несколько минут.",
    state_refused="Это подтверждение относится ко входу, начатому в другом браузере. "
    "Если ссылку вам прислали, не пользуйтесь ей. "
    "Если это были вы, вернитесь в тот браузер, где начали.",
    no_code="По этому адресу мессенджер возвращает людей после «Да». Подтверждения в нём не было.",
    back_home="Вернуться ко входу",
    events_title="Полученные вебхуки",
    events_lead="Что msgsvc сообщил этому сайту, новые сверху. Подпись каждой доставки проверена "
    "общим секретом, а повторная доставка только считается.",
    events_none="Пока пусто. Войдите или пришлите себе уведомление.",
    events_live="Обновляется",
    events_paused="Связь потеряна, пробуем ещё раз",
    event_refused="Отклонено, содержимое не сохранено",
    signature_valid="Подпись верна",
    signature_invalid="Подпись неверна",
    tries="попытки",
    show_data="Данные",
)

LANGUAGES: dict[str, Texts] = {texts.lang: texts for texts in (EN, RU)}


def choose(wanted: str | None, accept_language: str) -> Texts:
    """The texts a person asked for: `?lang=` or cookie first, then the browser's header.

    Of the header only the order counts; browsers write the languages by falling preference.
    """
    offered = [part.split(";")[0].strip() for part in accept_language.split(",")]
    for tag in [wanted or "", *offered]:
        texts = LANGUAGES.get(tag.lower().split("-")[0])
        if texts is not None:
            return texts
    return EN
