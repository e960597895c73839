"""Models of branding: internal, of pages, and of the API."""

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Url
from msgsvc_core.projects.branding.colours import Scheme, shades_of

#: Height of a logo on pages, in CSS pixels.
SHOWN_HEIGHT = 40

#: Largest width of a logo on pages, in CSS pixels.
SHOWN_WIDTH = 200


@dataclass(frozen=True, slots=True)
class Logo:
    """A stored logo, and its size in CSS pixels."""

    logo_id: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PageBrand:
    """The branding in the templates of `frame.html`. Addresses are empty for what there is not."""

    name: str
    colours: str = ""
    logo: str = ""
    logo_width: int = 0
    logo_height: int = 0


@dataclass(frozen=True, slots=True)
class Branding:
    """What a project has set; None for the service's own."""

    #: Name shown to people instead of the project's.
    sender_name: str | None = None
    #: `#rrggbb` in lower case.
    accent: str | None = None
    logo: Logo | None = None

    @classmethod
    def read(cls, column: str | None) -> "Branding":
        """The value of `core_projects.branding`."""
        if column is None:
            return cls()
        values = json.loads(column)
        logo = values["logo"]
        return cls(values["sender_name"], values["accent"], None if logo is None else Logo(**logo))

    def on_page(self, name: str, root: str = "") -> PageBrand:
        """For pages of an application mounted at `root`."""
        colours = "" if self.accent is None else f"{root}/brand/{self.accent[1:]}.css"
        if self.logo is None:
            return PageBrand(name, colours)
        scale = min(SHOWN_HEIGHT / self.logo.height, SHOWN_WIDTH / self.logo.width)
        return PageBrand(
            name,
            colours,
            logo=f"{root}/brand/{self.logo.logo_id}",
            logo_width=max(1, round(self.logo.width * scale)),
            logo_height=max(1, round(self.logo.height * scale)),
        )


ACCENT = "#7b2fbe"

HexColour = Annotated[str, StringConstraints(pattern="^#[0-9a-fA-F]{6}$")]


class ColorSchemeAnswer(ResponseModel):
    """Colours of one scheme, `#rrggbb`."""

    accent: str = Field(description="Buttons and choices.", examples=["#7b2fbe"])
    on_accent: str = Field(description="Text on the accent.", examples=["#ffffff"])
    link: str = Field(description="Links.", examples=["#7b2fbe"])

    @classmethod
    def of(cls, scheme: Scheme) -> "ColorSchemeAnswer":
        return cls(accent=scheme.accent, on_accent=scheme.on_accent, link=scheme.link)


class ColorShadesAnswer(ResponseModel):
    """What pages make of an accent colour, so that it is read in light and dark."""

    light: ColorSchemeAnswer = Field(description="In light pages.")
    dark: ColorSchemeAnswer = Field(description="In dark pages.")


class BrandingAnswer(ResponseModel):
    """How a project looks on its public pages."""

    sender_name: str | None = Field(
        description="Name shown to people on pages and in messages; null for the project's name.",
        examples=["Example Shop"],
    )
    accent: str | None = Field(
        description="The accent colour as `#rrggbb`; null for the service's own.", examples=[ACCENT]
    )
    shades: ColorShadesAnswer | None = Field(
        description="The colours that pages use: the accent, darker or lighter where it could not be told"
        " apart from the page (WCAG 2.2 AA). Null without an accent."
    )
    logo_url: Url | None = Field(
        description="Address of the logo; null without one. It changes with the logo.",
        examples=["https://msgsvc.example/brand/lgo_032aJamqr5AivmtULYtOMF"],
    )

    @classmethod
    def of(cls, branding: Branding, base_url: str) -> "BrandingAnswer":
        shades = None if branding.accent is None else shades_of(branding.accent)
        return cls(
            sender_name=branding.sender_name,
            accent=branding.accent,
            shades=shades
            and ColorShadesAnswer(
                light=ColorSchemeAnswer.of(shades.light), dark=ColorSchemeAnswer.of(shades.dark)
            ),
            logo_url=branding.on_page("", base_url).logo or None,
        )


class UpdateBrandingBody(RequestModel):
    """Changes; omitted fields stay unchanged. Null removes a value."""

    sender_name: str | None = Field(
        None,
        description="Name shown to people instead of the project's: 1-64 printable characters.",
        examples=["Example Shop"],
    )
    accent: HexColour | None = Field(
        None,
        description="Accent colour as `#rrggbb`. Pages use shades of it that are read in light and dark.",
        examples=[ACCENT],
    )
