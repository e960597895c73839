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
    hosted_start: str
    hosted_note: str
    one_click_title: str
    one_click_lead: str
    session_title: str
    session_lead: str
    session_start: str
    session_opened: str
    recommended: str
    qr_title: str
    qr_lead: str
    qr_start: str
    qr_scan: str
    qr_alt: str
    qr_link: str
    messenger: str
    open_messenger: str
    new_tab: str
    unavailable: str
    valid_for: str
    # How a sign-in stands.
    waiting: str
    confirmed: str
    signed_in: str
    denied: str
    expired: str
    trouble: str
    try_again: str
    new_code: str
    needs_script: str
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
    not_started: str
    error_code: str
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
    hosted_start="Sign in through a messenger",
    hosted_note="The simplest way: the service's own page does the rest. "
    "Below are three ways for a site that wants pages of its own.",
    one_click_title="One click",
    one_click_lead="Open the bot, press Yes, and its button brings you back here.",
    session_title="From this browser",
    session_lead="The same, and only the browser that asked can finish signing in.",
    session_start="Sign in",
    session_opened="Confirm in your messenger; the bot's button brings you back.",
    recommended="Recommended",
    qr_title="With your phone",
    qr_lead="Scan a code and press Yes on the phone. This page goes on by itself.",
    qr_start="Show QR code",
    qr_scan="Scan the code with your phone's camera.",
    qr_alt="QR code that opens the sign-in question in {messenger}",
    qr_link="Or open {messenger} on this device",
    messenger="Messenger",
    open_messenger="Open {messenger}",
    new_tab="opens in a new tab",
    unavailable="Not available at the moment: {error}.",
    valid_for="Valid for",
    waiting="Waiting for your Yes in the messenger…",
    confirmed="Confirmed. Press the bot's button to come back here.",
    signed_in="Confirmed. Signing you in…",
    denied="Sign-in was cancelled in the messenger.",
    expired="This sign-in has run out.",
    trouble="No connection at the moment. Trying again…",
    try_again="Try again",
    new_code="Get a new code",
    needs_script="This page goes on by itself only with JavaScript switched on.",
    hello="Hello, {name}!",
    hello_lead="You are signed in through {messenger}.",
    your_account="What the site knows about you",
    username="Username",
    subscriber_id="Subscriber ID",
    notify="Send me a notification",
    notify_lead="It arrives in the chat where you pressed Yes.",
    notification="Hello, {name}! This is a notification from {site}.",
    notified="On its way to your messenger ({message_id}).",
    not_notified="The notification was not sent: {error} ({code}).",
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
    not_started="The sign-in could not be started.",
    error_code="Error code",
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
    hosted_start="Войти через мессенджер",
    hosted_note="Самый простой способ: остальное делает страница сервиса. "
    "Ниже три способа для сайта, которому нужны свои страницы.",
    one_click_title="В один клик",
    one_click_lead="Откройте бота, нажмите «Да», и его кнопка вернёт вас сюда.",
    session_title="Из этого браузера",
    session_lead="То же самое, но завершить вход сможет только этот браузер.",
    session_start="Войти",
    session_opened="Подтвердите вход в мессенджере, кнопка бота вернёт вас сюда.",
    recommended="Рекомендуем",
    qr_title="С телефона",
    qr_lead="Отсканируйте код и нажмите «Да» на телефоне. Дальше страница всё сделает сама.",
    qr_start="Показать QR-код",
    qr_scan="Наведите на код камеру телефона.",
    qr_alt="QR-код, который открывает вопрос о входе в {messenger}",
    qr_link="Или откройте {messenger} на этом устройстве",
    messenger="Мессенджер",
    open_messenger="Открыть {messenger}",
    new_tab="откроется в новой вкладке",
    unavailable="Сейчас недоступно: {error}.",
    valid_for="Действует ещё",
    waiting="Ждём вашего «Да» в мессенджере…",
    confirmed="Подтверждено. Нажмите кнопку бота, чтобы вернуться сюда.",
    signed_in="Подтверждено. Входим…",
    denied="Вход отменён в мессенджере.",
    expired="Время этого входа истекло.",
    trouble="Сейчас нет связи. Пробуем ещё раз…",
    try_again="Попробовать снова",
    new_code="Получить новый код",
    needs_script="Без JavaScript страница сама не узнает о вашем ответе.",
    hello="Здравствуйте, {name}!",
    hello_lead="Вы вошли через {messenger}.",
    your_account="Что сайт знает о вас",
    username="Имя пользователя",
    subscriber_id="ID подписчика",
    notify="Прислать мне уведомление",
    notify_lead="Оно придёт в чат, где вы нажали «Да».",
    notification="Здравствуйте, {name}! Это уведомление от {site}.",
    notified="Уже на пути в ваш мессенджер ({message_id}).",
    not_notified="Уведомление не отправлено: {error} ({code}).",
    sign_out="Выйти",
    signed_out="Вы вышли. До встречи!",
    problem_title="Не получилось",
    code_refused="Подтверждение из мессенджера не подошло. "
    "Оно действует один раз и всего несколько минут.",
    state_refused="Это подтверждение относится ко входу, начатому в другом браузере. "
    "Если ссылку вам прислали, не пользуйтесь ей. "
    "Если это были вы, вернитесь в тот браузер, где начали.",
    no_code="По этому адресу мессенджер возвращает людей после «Да». Подтверждения в нём не было.",
    not_started="Не удалось начать вход.",
    error_code="Код ошибки",
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

LANGUAGES = {texts.lang: texts for texts in (EN, RU)}


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


def messenger_name(channel: str) -> str:
    """How a channel is called on the page: `messenger_a` reads "Messenger A"."""
    return channel.replace("_", " ").replace("-", " ").title()
