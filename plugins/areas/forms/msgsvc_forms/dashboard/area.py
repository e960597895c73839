"""The area of the pages of forms."""

from msgsvc_core.dashboard import Pages

pages = Pages("forms", package="msgsvc_forms.dashboard", styles=("forms.css",))
