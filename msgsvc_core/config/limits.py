"""The section `[limits]`: what projects may have, and for how long it is kept."""

from pydantic import Field

from msgsvc_core.config.sections import OWN_USERS, Section


class LimitSettings(Section):
    """Limits of a project.

    The defaults are those of decision 0075.
    """

    requests_per_minute: int = Field(
        300,
        ge=1,
        description="API requests per project and minute.",
        json_schema_extra={OWN_USERS: 3000},
    )
    text_length: int = Field(
        4000,
        ge=1,
        description="Characters of a message's text, without its markup. With it a text may be twice as "
        "long.",
    )
    button_rows: int = Field(3, ge=1, description="Rows of buttons under a message.")
    buttons_per_row: int = Field(3, ge=1, description="Buttons in a row.")
    tags: int = Field(20, ge=1, description="Tags per project.", json_schema_extra={OWN_USERS: 500})
    permissions: int = Field(
        20, ge=1, description="Permissions per project.", json_schema_extra={OWN_USERS: 100}
    )
    templates: int = Field(
        100, ge=1, description="Templates per project.", json_schema_extra={OWN_USERS: 1000}
    )
    routes: int = Field(
        20, ge=1, description="Routes per project.", json_schema_extra={OWN_USERS: 200}
    )
    route_steps: int = Field(5, ge=1, le=20, description="Steps of a route.")
    route_wait_s: int = Field(
        86_400,
        ge=5,
        le=7 * 86_400,
        description="Seconds that a step of a route may wait before the next one is tried.",
    )
    logo_bytes: int = Field(
        65_536,
        ge=1024,
        le=1_048_576,
        description="Bytes of a project's logo, which every visitor of its public pages loads.",
    )
    preferences_days: int = Field(
        90,
        ge=1,
        le=3650,
        description="Days for which a link to somebody's preferences page works (`preferences_url`).",
    )
    preferences_in_broadcasts: bool = Field(
        False,
        description="Whether broadcasts and recurring messages end with a link to the recipient's preferences"
        " page, unless their text has one.",
    )
    qr_per_minute_per_address: int = Field(
        60,
        ge=1,
        description="QR codes rendered per client address and minute; cached ones do not count.",
    )
    personal_link_s: int = Field(
        24 * 3600,
        ge=60,
        le=366 * 24 * 3600,
        description="Seconds for which a subscription link with an `external_id` works, unless the"
        " request says otherwise.",
    )
    attributes_bytes: int = Field(
        8192, ge=2, description="Bytes of a subscriber's attributes as JSON."
    )
    mini_app_hours: int = Field(
        24,
        ge=1,
        description="Hours for which a mini app's signed data identifies the user who opened it.",
    )
    event_properties_bytes: int = Field(
        8192, ge=2, description="Bytes of the properties of `POST /v1/events` as JSON."
    )
    batch_messages: int = Field(
        500, ge=1, le=3_000, description="Messages of one `POST /v1/send/batch`."
    )
    broadcast_recipients: int = Field(100_000, ge=1, description="Recipients of one mailing.")
    bulk_action_subscribers: int = Field(
        100_000, ge=1, description="Subscribers whom one bulk action may change."
    )
    import_rows: int = Field(
        100_000, ge=1, description="Rows of a file with which people are imported."
    )
    import_bytes: int = Field(
        10_485_760,
        ge=1024,
        le=104_857_600,
        description="Bytes of a file with which people are imported; never more than `media` allows.",
    )
    import_days: int = Field(
        30, ge=1, description="Days for which an import and its report are kept."
    )
    broadcast_ids: int = Field(
        10_000, ge=1, le=20_000, description="Ids that an audience may name."
    )
    recipient_days: int = Field(
        90, ge=1, description="Days for which the recipients of a mailing are kept."
    )
    answer_hours: int = Field(
        24,
        ge=1,
        description="Hours for which a numbered reply is accepted as a button press, on platforms "
        "without buttons.",
    )
    button_page_days: int = Field(
        30,
        ge=1,
        description="Days for which a button in an email, or on another platform whose buttons only open "
        "pages, can be pressed.",
    )
    idempotency_hours: int = Field(24, ge=1, description="Hours that idempotency keys are kept.")
    event_days: int = Field(30, ge=1, description="Days for which events stay in the feed.")
    message_days: int = Field(
        0,
        ge=0,
        description="Days for which messages are kept, if their delivery has ended; 0 keeps all.",
    )
    automatic_answers_per_hour: int = Field(
        1,
        ge=0,
        description="Answers of one kind, such as that a message has arrived, that a bot gives by itself "
        "in one chat within an hour. Another program may answer each of them.",
    )
    automatic_answers_per_day: int = Field(
        4, ge=0, description="The same within 24 hours, counted from the first."
    )
    exports_per_project: int = Field(
        2,
        ge=1,
        description="Exports of one project (CSV files, and all that is stored about a person) that a "
        "process works on at a time. Further ones get 429.",
    )
    exports_per_process: int = Field(
        8, ge=1, description="Exports of all projects that a process works on at a time."
    )
    shelf_days: int = Field(
        30,
        ge=1,
        description="Days for which an item that could not be read or processed stays on a channel's shelf.",
    )
    shelf_items: int = Field(
        500,
        ge=1,
        description="Items on the shelf of one channel; the oldest are deleted for newer ones.",
    )
    shelf_bytes: int = Field(
        20_971_520,
        ge=1024,
        description="Bytes of the items on the shelf of one channel; the oldest are deleted for newer ones.",
    )
    shelf_item_bytes: int = Field(
        1_048_576,
        ge=1024,
        le=16_777_216,
        description="Bytes that are kept of one item on a shelf. A larger one can be looked at, and not"
        " be taken anyway.",
    )
    delivery_attempts: int = Field(
        8, ge=1, description="Attempts per message before it fails permanently."
    )
    delivery_hours: int = Field(
        24,
        ge=1,
        description="Hours after which a message fails if its platform is still rate limiting or "
        "unavailable, or its bot is stopped, counted from when it was first held up. Until then, "
        "this does not use up its attempts.",
    )
