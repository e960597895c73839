"""For each alert a situation in which it must fire, and one like it in which it must not.

Series are written as promtool reads them, a value a minute: `0x3` is 0 four times, `0+5x3` is 0 5 10 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Series by name and labels, with their values.
Series = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Situation:
    """`trouble` makes the alert fire from minute `fires_m` on, and not a minute earlier; `calm` never does.

    `labels` are those of the alert that fires, without its severity.
    """

    alert: str
    trouble: Series
    fires_m: int
    calm: Series
    labels: Mapping[str, str] = field(default_factory=dict)


A = 'instance="a:8000",job="msgsvc"'
B = 'instance="b:8001",job="msgsvc"'
OF_A = {"instance": "a:8000", "job": "msgsvc"}
TELEGRAM = {"channel": "telegram"}

#: Messages that are sent all the time, and none for as long.
SENT = 'msgsvc_deliveries_total{channel="telegram",outcome="sent",reason=""}'
OLDEST = 'msgsvc_channel_oldest_due_age_seconds{channel="telegram"}'

SITUATIONS = (
    Situation(
        "MsgsvcDown",
        trouble={f"up{{{A}}}": "1 1 0x20", f"up{{{B}}}": "1x20"},
        fires_m=4,
        labels=OF_A,
        # Restarted within a scrape or two; and another program.
        calm={f"up{{{A}}}": "1 1 0 1 0 1 0 1x20", 'up{job="node"}': "0x20"},
    ),
    Situation(
        "MsgsvcNotScraped",
        trouble={'up{job="node"}': "1x20"},
        fires_m=5,
        labels={"job": "msgsvc"},
        calm={f"up{{{A}}}": "0x60"},
    ),
    Situation(
        "MsgsvcRestarts",
        trouble={f"process_start_time_seconds{{{A}}}": "100 100 220 220 340 340 460x20"},
        fires_m=6,
        labels=OF_A,
        # An upgrade, and a second start because of a setting.
        calm={f"process_start_time_seconds{{{A}}}": "100 100 220 220 340x20"},
    ),
    Situation(
        "MsgsvcVersionsDiffer",
        trouble={
            f'msgsvc_build_info{{{A},version="0.1.0"}}': "1x200",
            f'msgsvc_build_info{{{B},version="0.2.0"}}': "_x9 1x190",
        },
        fires_m=69,
        # One process after another, in half an hour.
        calm={
            f'msgsvc_build_info{{{A},version="0.1.0"}}': "1x40",
            f'msgsvc_build_info{{{B},version="0.2.0"}}': "_x9 1x190",
        },
    ),
    Situation(
        "MsgsvcConnectionsRunOut",
        trouble={
            f"msgsvc_http_connections{{{A}}}": "100 8100x20",
            f"msgsvc_http_connections_max{{{A}}}": "10000x20",
        },
        fires_m=6,
        labels=OF_A,
        calm={
            f"msgsvc_http_connections{{{A}}}": "8000x20",
            f"msgsvc_http_connections_max{{{A}}}": "10000x20",
        },
    ),
    Situation(
        "MsgsvcDatabaseAway",
        trouble={f"msgsvc_database_up{{{A}}}": "1 0x20", f"msgsvc_database_up{{{B}}}": "1x20"},
        fires_m=3,
        labels=OF_A,
        calm={f"msgsvc_database_up{{{A}}}": "1 0 0 1x20"},
    ),
    Situation(
        "MsgsvcWritesFail",
        trouble={f"msgsvc_database_failed_writes_total{{{A}}}": "0 0 0+3x20"},
        fires_m=5,
        labels=OF_A,
        calm={f"msgsvc_database_failed_writes_total{{{A}}}": "7x20"},
    ),
    Situation(
        "MsgsvcPoolExhausted",
        trouble={f"msgsvc_database_connections_waiting{{{A}}}": "0 3x20"},
        # All of the last five minutes, for five minutes.
        fires_m=11,
        labels=OF_A,
        calm={f"msgsvc_database_connections_waiting{{{A}}}": "0 9 9 9 0 9 9 9 0 9 9 9 0 9 9 9 0"},
    ),
    Situation(
        "MsgsvcRedisAway",
        trouble={f"msgsvc_redis_up{{{A}}}": "1 0x20"},
        fires_m=6,
        labels=OF_A,
        calm={f"msgsvc_redis_up{{{A}}}": "1 0 0 0 0 1x20"},
    ),
    Situation(
        "MsgsvcFailing",
        trouble={
            'msgsvc_http_requests_total{endpoint="/v1/send",status="202"}': "0+97x30",
            'msgsvc_http_requests_total{endpoint="/v1/send",status="503"}': "0+3x30",
        },
        fires_m=6,
        # One in a hundred; and requests that are the clients' fault.
        calm={
            'msgsvc_http_requests_total{endpoint="/v1/send",status="202"}': "0+50x30",
            'msgsvc_http_requests_total{endpoint="/v1/send",status="422"}': "0+49x30",
            'msgsvc_http_requests_total{endpoint="/v1/send",status="503"}': "0+1x30",
        },
    ),
    Situation(
        "MsgsvcSlow",
        trouble={
            'msgsvc_http_request_duration_seconds_bucket{method="POST",le="1.0"}': "0+90x30",
            'msgsvc_http_request_duration_seconds_bucket{method="POST",le="2.5"}': "0+100x30",
            'msgsvc_http_request_duration_seconds_bucket{method="POST",le="+Inf"}': "0+100x30",
        },
        fires_m=11,
        # Long polls wait by design.
        calm={
            'msgsvc_http_request_duration_seconds_bucket{method="POST",le="1.0"}': "0+96x30",
            'msgsvc_http_request_duration_seconds_bucket{method="POST",le="+Inf"}': "0+100x30",
            'msgsvc_http_request_duration_seconds_bucket{method="GET",le="1.0"}': "0+1x30",
            'msgsvc_http_request_duration_seconds_bucket{method="GET",le="+Inf"}': "0+100x30",
        },
    ),
    Situation(
        "MsgsvcNobodySignsIn",
        trouble={
            'msgsvc_auth_sign_ins_total{outcome="begun",channel=""}': "0+30x60",
            'msgsvc_auth_sign_ins_total{outcome="confirmed",channel=""}': "0x60",
            'msgsvc_auth_sign_ins_total{outcome="confirmed",channel="telegram"}': "900x60",
        },
        fires_m=11,
        # At night two people open the page and go away.
        calm={
            'msgsvc_auth_sign_ins_total{outcome="begun",channel=""}': "0 1 2x60",
            'msgsvc_auth_sign_ins_total{outcome="confirmed",channel=""}': "0x60",
        },
    ),
    Situation(
        "MsgsvcNoRunner",
        # Both processes read it from the database that they share.
        trouble={
            f"msgsvc_job_runners{{{A}}}": "1 0x20",
            f"msgsvc_job_runners{{{B}}}": "1 0x20",
        },
        fires_m=3,
        calm={f"msgsvc_job_runners{{{A}}}": "1 0 1x20"},
    ),
    Situation(
        "MsgsvcWorkWaits",
        trouble={'msgsvc_jobs_oldest_due_age_seconds{lane="default"}': "0+60x20"},
        # More than two minutes old from the third on.
        fires_m=8,
        labels={"lane": "default"},
        calm={
            'msgsvc_jobs_oldest_due_age_seconds{lane="default"}': "110x20",
            'msgsvc_jobs_oldest_due_age_seconds{lane="channel"}': "0+60x20",
            'msgsvc_jobs_oldest_due_age_seconds{lane="webhook"}': "0+60x20",
        },
    ),
    Situation(
        "MsgsvcDeadLetters",
        trouble={
            f'msgsvc_jobs{{{A},lane="default",state="dead"}}': "0 2x20",
            f'msgsvc_jobs{{{B},lane="default",state="dead"}}': "0 2x20",
        },
        fires_m=11,
        calm={f'msgsvc_jobs{{{A},lane="default",state="ready"}}': "5x20"},
    ),
    Situation(
        "MsgsvcMessagesWait",
        trouble={
            OLDEST: "0+60x20",
            'msgsvc_channels_stopped{channel="telegram"}': "0x20",
            'msgsvc_channels_stopped{channel="max"}': "1x20",
            'msgsvc_channel_unavailable_since_timestamp_seconds{channel="telegram"}': "0x20",
            'msgsvc_channel_paused_until_timestamp_seconds{channel="telegram"}': "30x20",
            SENT: "500x20",
        },
        fires_m=8,
        labels=TELEGRAM,
        # Each has a reason of its own: messages that go out, a stopped bot, an outage, a pause.
        calm={
            OLDEST: "0+60x20",
            SENT: "0+60x20",
            'msgsvc_channel_oldest_due_age_seconds{channel="max"}': "0+60x20",
            'msgsvc_channels_stopped{channel="max"}': "1x20",
            'msgsvc_channel_oldest_due_age_seconds{channel="shop"}': "0+60x20",
            'msgsvc_channel_unavailable_since_timestamp_seconds{channel="shop"}': "30x20",
            'msgsvc_channel_oldest_due_age_seconds{channel="news"}': "0+60x20",
            'msgsvc_channel_paused_until_timestamp_seconds{channel="news"}': "9000x20",
        },
    ),
    Situation(
        "MsgsvcBacklog",
        trouble={OLDEST: "0 1000x40", SENT: "0+60x40"},
        fires_m=16,
        labels=TELEGRAM,
        # A burst that is worked off; and one of which nothing is sent, for which another alert is.
        calm={
            OLDEST: "0 1000x10 0x30",
            SENT: "0+60x40",
            'msgsvc_channel_oldest_due_age_seconds{channel="max"}': "1000x40",
            'msgsvc_deliveries_total{channel="max",outcome="sent",reason=""}': "7x40",
        },
    ),
    Situation(
        "MsgsvcDeliveriesFail",
        trouble={
            SENT: "0+10x60",
            'msgsvc_deliveries_total{channel="telegram",outcome="failed",reason="invalid_message"}': (
                "0+5x60"
            ),
        },
        fires_m=16,
        labels=TELEGRAM,
        calm={
            SENT: "0+10x60",
            'msgsvc_deliveries_total{channel="telegram",outcome="failed",reason="user_blocked_bot"}': (
                "0+50x60"
            ),
            'msgsvc_deliveries_total{channel="telegram",outcome="skipped",reason=""}': "0+50x60",
        },
    ),
    Situation(
        "MsgsvcBotStopped",
        trouble={
            'msgsvc_channels_stopped{channel="telegram"}': "0 1x20",
            'msgsvc_channels_stopped{channel="max"}': "0x20",
        },
        fires_m=2,
        labels=TELEGRAM,
        # A project was notified of its own bot.
        calm={'msgsvc_channels_stopped{channel="own"}': "3x20"},
    ),
    Situation(
        "MsgsvcMessengerAway",
        trouble={
            'msgsvc_channel_unavailable_since_timestamp_seconds{channel="telegram"}': "0 60x20"
        },
        # More than two minutes after second 60.
        fires_m=4,
        labels=TELEGRAM,
        calm={
            'msgsvc_channel_unavailable_since_timestamp_seconds{channel="telegram"}': (
                "0 60 60 0 240 240 0x20"
            )
        },
    ),
    Situation(
        "MsgsvcReceptionInterrupted",
        trouble={
            'msgsvc_channel_reception_interrupted_since_timestamp_seconds{channel="telegram"}': (
                "0 60x20"
            )
        },
        fires_m=4,
        labels=TELEGRAM,
        calm={
            'msgsvc_channel_reception_interrupted_since_timestamp_seconds{channel="telegram"}': (
                "0 60 60 0x20"
            ),
            'msgsvc_channel_reception_interrupted_since_timestamp_seconds{channel="own"}': "60x20",
        },
    ),
    Situation(
        "MsgsvcUpdatesFail",
        trouble={
            'msgsvc_channel_updates_total{channel="telegram",outcome="failed"}': "0 0 1x20",
            'msgsvc_channel_updates_total{channel="telegram",outcome="handled"}': "0+9x20",
        },
        fires_m=2,
        labels=TELEGRAM,
        calm={
            'msgsvc_channel_updates_total{channel="telegram",outcome="failed"}': "4x20",
            'msgsvc_channel_updates_total{channel="telegram",outcome="handled"}': "0+9x20",
        },
    ),
    Situation(
        "MsgsvcBotPaused",
        trouble={'msgsvc_channel_paused_until_timestamp_seconds{channel="telegram"}': "0 3600x20"},
        fires_m=1,
        labels=TELEGRAM,
        # 30 seconds, again and again.
        calm={
            'msgsvc_channel_paused_until_timestamp_seconds{channel="telegram"}': "0 90 150 210 270 330x20"
        },
    ),
    Situation(
        "MsgsvcWebhooksFail",
        trouble={
            'msgsvc_webhooks_attempts_total{outcome="delivered"}': "0+4x90",
            'msgsvc_webhooks_attempts_total{outcome="retried"}': "0+4x90",
            'msgsvc_webhooks_attempts_total{outcome="failed"}': "0+1x90",
        },
        fires_m=31,
        calm={
            'msgsvc_webhooks_attempts_total{outcome="delivered"}': "0+5x90",
            'msgsvc_webhooks_attempts_total{outcome="retried"}': "0+4x90",
            'msgsvc_webhooks_attempts_total{outcome="gone"}': "0+9x90",
        },
    ),
    Situation(
        "MsgsvcWebhooksWait",
        trouble={'msgsvc_jobs_oldest_due_age_seconds{lane="webhook"}': "0 1000x30"},
        fires_m=11,
        calm={
            'msgsvc_jobs_oldest_due_age_seconds{lane="webhook"}': "800x30",
            'msgsvc_jobs_oldest_due_age_seconds{lane="default"}': "1000x30",
        },
    ),
    Situation(
        "MsgsvcWebhookDisabled",
        trouble={
            'msgsvc_webhooks_disabled_total{reason="failing"}': "0 0 1x20",
            'msgsvc_webhooks_disabled_total{reason="gone"}': "0x20",
        },
        fires_m=2,
        labels={"reason": "failing"},
        calm={'msgsvc_webhooks_disabled_total{reason="failing"}': "5x20"},
    ),
)
