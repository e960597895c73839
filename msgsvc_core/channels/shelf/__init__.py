"""The shelf of a channel: what arrived and could not be read or processed."""

from msgsvc_core.channels.shelf.item_taker import ItemTaker
from msgsvc_core.channels.shelf.models import ShelvedItem
from msgsvc_core.channels.shelf.service import Shelf

__all__ = ["ItemTaker", "Shelf", "ShelvedItem"]
