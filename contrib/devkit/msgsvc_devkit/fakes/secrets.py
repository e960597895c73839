"""Secrets and texts: the core's own, which need only a key and the catalogues."""

from functools import cache
from pathlib import Path

import msgsvc_core
from msgsvc_core.kernel.i18n import CORE, Texts
from msgsvc_core.security import SecretBox

#: The secret key of tests.
SECRET_KEY = "a-key-for-tests-only-a-key-for-tests-only"


@cache
def fake_secrets() -> SecretBox:
    """Encrypts and signs with the key of tests."""
    return SecretBox([SECRET_KEY])


@cache  # compiling the catalogues takes longer than all the rest of a unit test
def fake_texts(*folders: tuple[str, Path], default_lang: str = "en") -> Texts:
    """The core's texts in English and Russian, and those of `folders`: a package and its `locale`."""
    core = Path(msgsvc_core.__file__).parent / "locale"
    return Texts([(CORE, core), *folders], default_lang)
