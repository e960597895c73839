"""Channels that read addresses and ids wrongly, or offer wrong bots, and the checks that have to notice."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgsvc_core.channels import Budget
from msgsvc_core.kernel.errors import InvalidValue
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel


class Addressed(PigeonChannel):
    capabilities = replace(PigeonChannel.capabilities, addresses=True)


@breaks("test_an_address_has_one_normal_form")
class ChangesTheAddressOfUpdates(Addressed):
    def parse_address(self, text: str) -> str:
        return f"pigeon:{text}"


@breaks("test_an_address_has_one_normal_form")
class HasChatsBesideAddresses(Addressed):
    def parse_address(self, text: str) -> str:
        return text


@breaks("test_what_is_no_address_is_refused_without_repeating_it")
class TakesAnyAddress(Addressed):
    def parse_address(self, text: str) -> str:
        return text


@breaks("test_what_is_no_address_is_refused_without_repeating_it")
class RepeatsTheAddress(Addressed):
    def parse_address(self, text: str) -> str:
        raise InvalidValue(f"{text} is no address")


@breaks("test_the_id_of_a_person_is_taken_as_other_programs_have_it")
class ImportsSomebodyElse(PigeonChannel):
    def parse_chat_id(self, text: str) -> str:
        return f"c{text}"


@breaks("test_the_id_of_a_person_is_taken_as_other_programs_have_it")
class FailsOnStrangeIds(PigeonChannel):
    def parse_chat_id(self, text: str) -> str:
        return str(int(text))


class Maker:
    """Makes bots all of one name."""

    def suggest(self, name: str, random: str) -> str:
        return "pigeon_bot"

    def link(self, username: str, title: str) -> str:
        return f"https://pigeon.example/new/{username}"

    async def settings_of(self, account: str) -> Mapping[str, Any]:
        return {"token": account}


class Unquoted(Maker):
    """Puts the title into its link as it is."""

    def suggest(self, name: str, random: str) -> str:
        return f"pigeon_{random}_bot"

    def link(self, username: str, title: str) -> str:
        return f"https://pigeon.example/new/{username}?name={title}"


@breaks("test_a_bot_to_be_made_has_a_name_of_its_own_and_a_link")
class MakesBotsOfOneName(PigeonChannel):
    bot_maker = Maker()


@breaks("test_a_bot_to_be_made_has_a_name_of_its_own_and_a_link")
class QuotesNoTitle(PigeonChannel):
    bot_maker = Unquoted()


@breaks("test_what_the_channel_declares_makes_sense")
class HasABudgetOfNothingInParticular(PigeonChannel):
    budget = Budget(most=10, unit="")
