"""The area that the pages of forms belong to."""

from msgsvc_core.dashboard import Pages

pages = Pages("forms", package="msgsvc_forms.dashboard", styles=("forms.css",))
