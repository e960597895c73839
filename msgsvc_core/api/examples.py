"""Values of the examples in the API description: one story throughout.

Ann writes with the bot of a shop, whose own id of her is `user-42`. Ids have the form of `kernel/ids.py`.
"""

#: The service, and the site that uses it.
BASE_URL = "https://msgsvc.example"
SITE_URL = "https://shop.example"

#: The shop's bot, and what a subscription link starts it with.
BOT_URL = "https://t.me/example_bot"
START = "sub_1lgLbJbfmZ9Zc2sAiVBqFW"

#: What a messenger signs for the page of a mini app, shortened.
INIT_DATA = "query_id=AAHd&user=%7B%22id%22%3A42%7D&auth_date=1772357400&hash=5257a8"

#: A channel by its name in the configuration.
CHANNEL = "telegram"

PROJECT_ID = "prj_032KwAtFuR6PR37b3x2Pp3"
SUBSCRIBER_ID = "sub_032aJamqrBeOkgXDU14hTS"
EXTERNAL_ID = "user-42"
MESSAGE_ID = "msg_032aJamqr6fEXIaCqDv5me"
BULK_ACTION_ID = "blk_032aJamqrKGYAzFHeN9gn9"
BATCH_ID = "bat_032aJamqrKGYAzFHeN9gn9"
JOB_ID = "job_032aJamqrHJHdNg4bInY7j"
EVENT_ID = "evt_032aJamqqzSvKd4eKyZSsW"
FILE_ID = "fil_032aJamqr5AivmtULYtOMF"
MEMBER_ID = "mem_032PUt3EK2cmwfF2t44HeH"
CHANNEL_REQUEST_ID = "chr_032KwAtFuQ9d7TzXb4mLs1"

#: What a file holds.
FILE = "Order 1042: two cups, a teapot.\n"

#: Tags and permissions of the shop.
TAG = "vip"
PERMISSION = "news"

#: When something happens, is done, was set up, and ends.
TIME = "2026-03-01T09:30:00.000Z"
DONE = "2026-03-01T09:30:01.250Z"
EARLIER = "2026-02-10T10:00:00.000Z"
LATER = "2026-03-02T09:30:00.000Z"

#: The signed URL of a stored file, valid for a week after `TIME`.
FILE_URL = f"{BASE_URL}/files/{FILE_ID}/1772964000-3nQ7xYb0Zt5GmWcR8dKf2A"
FILE_URL_EXPIRES_AT = "2026-03-08T10:00:00.000Z"
