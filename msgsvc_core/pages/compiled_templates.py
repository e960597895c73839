"""Compiled templates that the services of a process share.

This module loads jinja2, so import it late: it takes 2 MiB that a process without pages does not need.
"""

from types import CodeType

from jinja2.bccache import Bucket, BytecodeCache


class CompiledTemplates(BytecodeCache):
    """Keeps compiled templates by name, file and content.

    Environments that share one must compile alike: the same delimiters, extensions and escaping.
    """

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._codes[bucket.key, bucket.checksum] = bucket.code


#: For `new_templates`.
PAGES = CompiledTemplates()
