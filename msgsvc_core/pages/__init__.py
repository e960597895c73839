"""Common parts of web pages: layout, headers, language selection."""

from msgsvc_core.pages.codes import qr_code
from msgsvc_core.pages.endpoints import page_endpoint, request_id
from msgsvc_core.pages.headers import NO_DEVICES, page_headers
from msgsvc_core.pages.icons import icon
from msgsvc_core.pages.languages import known, preferred, read_language
from msgsvc_core.pages.posting import check_text, file_name, posted_parts, urlencoded_pairs
from msgsvc_core.pages.rendering import SHARED, new_templates, static_files

__all__ = [
    "NO_DEVICES",
    "SHARED",
    "check_text",
    "file_name",
    "icon",
    "known",
    "new_templates",
    "page_endpoint",
    "page_headers",
    "posted_parts",
    "preferred",
    "qr_code",
    "read_language",
    "request_id",
    "static_files",
    "urlencoded_pairs",
]
