"""Postfix and Dovecot as processes of a test, with a configuration of their own."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgsvc_devkit.certificates import write_certificate

#: Domain of the service's mailbox, and that of people.
OURS, THEIRS = "shop.example", "people.example"

#: Domain whose server refuses every mailbox.
GONE = "gone.example"

PASSWORD = "only-for-this-test"

MAIN_CF = """
compatibility_level = 3.6
queue_directory = {home}/queue
data_directory = {home}/data
mail_owner = postfix
setgid_group = postdrop
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.shop.example
mydestination =
mynetworks =
recipient_delimiter = +
alias_maps =
local_recipient_maps =
virtual_mailbox_domains = {ours}, {theirs}
virtual_mailbox_maps = texthash:{home}/mailboxes
virtual_mailbox_base = {home}/mail
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
virtual_minimum_uid = 1
transport_maps = texthash:{home}/transport
smtpd_tls_security_level = may
smtpd_tls_chain_files = {certificate}
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = {home}/auth
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
maillog_file = {home}/mail.log
maillog_file_prefixes = /tmp, /var
"""

MASTER_CF = """
127.0.0.1:{smtp} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
virtual unix - n n - - virtual
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""

DOVECOT_CONF = """
base_dir = {home}/run
state_dir = {home}/run
protocols = imap
listen = 127.0.0.1
log_path = {home}/dovecot.log
ssl = required
ssl_cert = <{certificate}
ssl_key = <{certificate}
mail_location = maildir:{home}/mail/%u
first_valid_uid = 1
auth_mechanisms = plain login
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={home}/mail/%u
}}
service imap-login {{
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {imap}
    ssl = yes
  }}
}}
service auth {{
  unix_listener {home}/auth {{
    mode = 0666
  }}
}}
service stats {{
  chroot =
}}
"""


def why_not() -> str:
    """Why the servers can't run here; empty if they can."""
    missing = [name for name in ("postfix", "dovecot") if shutil.which(name, path=_PATH) is None]
    if missing:
        return (
            f"apt-get install {' '.join({'dovecot': 'dovecot-imapd'}.get(n, n) for n in missing)}"
        )
    return "" if os.geteuid() == 0 else "postfix only starts as root"


#: Debian keeps programs there that root runs.
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


@dataclass(frozen=True, slots=True)
class RealServers:
    """Running servers, and the folder of their mailboxes."""

    home: Path
    smtp: int
    imap: int
    certificate: Path

    @property
    def settings(self) -> Mapping[str, Any]:
        """The section `[channels.<name>]`."""
        account = {"username": f"news@{OURS}", "password": PASSWORD}
        return {
            "plugin": "email",
            "host": "127.0.0.1",
            "port": self.smtp,
            "tls": "starttls",
            "ca_file": str(self.certificate),
            "sender": f"news@{OURS}",
            "sender_name": "Shop",
            "imap": {"host": "127.0.0.1", "port": self.imap, **account},
            **account,
        }

    def mails(self, address: str) -> list[bytes]:
        """The mails in a mailbox, by their time."""
        folder = self.home / "mail" / address
        files = [*folder.glob("new/*"), *folder.glob("cur/*")]
        return [path.read_bytes() for path in sorted(files, key=lambda one: one.stat().st_mtime_ns)]

    def log(self) -> str:
        return "\n".join(
            path.read_text("utf-8") for path in self.home.glob("*.log") if path.is_file()
        )


@contextmanager
def real_servers(gone_port: int) -> Iterator[RealServers]:
    """Starts both; `gone_port` is where a server listens that refuses every mailbox."""
    home = Path(tempfile.mkdtemp(prefix="msgsvc-mail-"))
    home.chmod(0o755)
    smtp, imap = _free_port(), _free_port()
    user = pwd.getpwnam("nobody")
    certificate = write_certificate(home / "server.pem", "127.0.0.1")
    values = {
        "home": home,
        "ours": OURS,
        "theirs": THEIRS,
        "uid": user.pw_uid,
        "gid": user.pw_gid,
        "smtp": smtp,
        "imap": imap,
        "certificate": certificate,
        "password": PASSWORD,
    }
    postfix = home / "postfix"
    for folder in (postfix, home / "queue", home / "data", home / "run", home / "mail"):
        folder.mkdir(mode=0o755)
    shutil.chown(home / "data", "postfix")
    shutil.chown(home / "mail", "nobody")
    (postfix / "main.cf").write_text(MAIN_CF.format(**values), "utf-8")
    (postfix / "master.cf").write_text(MASTER_CF.format(**values), "utf-8")
    people = [f"news@{OURS}", *(f"{name}@{THEIRS}" for name in ("ann", "bob"))]
    (home / "mailboxes").write_text("".join(f"{one} {one}/\n" for one in people), "utf-8")
    (home / "transport").write_text(f"{GONE} smtp:[127.0.0.1]:{gone_port}\n", "utf-8")
    conf = home / "dovecot.conf"
    conf.write_text(DOVECOT_CONF.format(**values), "utf-8")
    environment = {**os.environ, "PATH": _PATH}
    dovecot = subprocess.Popen(["dovecot", "-F", "-c", str(conf)], env=environment)
    try:
        _run(["postfix", "-c", str(postfix), "start"], environment)
        try:
            for port in (smtp, imap):
                _wait_for(port)
            yield RealServers(home, smtp, imap, certificate)
        finally:
            _run(["postfix", "-c", str(postfix), "stop"], environment)
    finally:
        dovecot.terminate()
        dovecot.wait(10)
        shutil.rmtree(home, ignore_errors=True)


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)  # polled: the servers say nothing when they are ready
        else:
            return
    raise AssertionError(f"no server on port {port}")
