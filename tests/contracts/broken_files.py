"""Channels that break one promise each, and the checks of the kit that have to notice: people's files."""

from dataclasses import replace
from typing import IO, Any

from msgsvc_core.channels import DeliveryError, MessageEdited, MessageReceived, Reason, Update
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel


@breaks(
    "test_a_file_comes_with_its_text_and_is_fetched_whole",
    "test_a_file_that_is_larger_than_it_may_be_is_refused",
)
class LosesFiles(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, files=()) if isinstance(read, MessageReceived) else read


@breaks("test_a_file_comes_with_its_text_and_is_fetched_whole")
class TakesAllForDocuments(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        if not isinstance(read, MessageReceived):
            return read
        return replace(read, files=tuple(replace(one, type="document") for one in read.files))


@breaks(
    "test_a_file_comes_with_its_text_and_is_fetched_whole",
    "test_a_file_is_fetched_once_the_platform_is_back",
)
class FetchesTheBeginning(PigeonChannel):
    async def fetch_file(self, file_ref: str, into: IO[bytes], most_bytes: int) -> None:
        await super().fetch_file(file_ref, into, most_bytes)
        into.truncate(1000)


@breaks("test_a_file_without_a_word_has_an_empty_text_and_its_name")
class NamesFilesByThemselves(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        if not isinstance(read, MessageReceived):
            return read
        return replace(read, files=tuple(replace(one, filename="file") for one in read.files))


@breaks("test_a_file_that_is_larger_than_it_may_be_is_refused")
class FetchesWhateverComes(PigeonChannel):
    async def fetch_file(self, file_ref: str, into: IO[bytes], most_bytes: int) -> None:
        await super().fetch_file(file_ref, into, 2**40)


@breaks("test_a_file_that_is_not_there_is_refused_for_good")
class TriesForEver(PigeonChannel):
    async def fetch_file(self, file_ref: str, into: IO[bytes], most_bytes: int) -> None:
        try:
            await super().fetch_file(file_ref, into, most_bytes)
        except DeliveryError as error:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, error.text) from None


@breaks("test_a_file_is_fetched_once_the_platform_is_back")
class GivesUpAtOnce(PigeonChannel):
    async def fetch_file(self, file_ref: str, into: IO[bytes], most_bytes: int) -> None:
        try:
            await super().fetch_file(file_ref, into, most_bytes)
        except DeliveryError as error:
            raise DeliveryError(Reason.INVALID_MESSAGE, error.text) from None


@breaks("test_a_change_names_the_message_and_brings_its_new_text")
class NamesTheChange(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        if not isinstance(read, MessageEdited):
            return read
        return replace(read, message_ref=read.update_id)


@breaks("test_each_change_is_an_update_of_its_own")
class NumbersByMessage(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return (
            replace(read, update_id=f"edit-{read.message_ref}")
            if isinstance(read, MessageEdited)
            else read
        )


@breaks("test_an_answer_names_the_message_that_it_answers")
class ForgetsWhatIsAnswered(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, reply_to=None) if isinstance(read, MessageReceived) else read


@breaks("test_a_message_has_a_subject_where_the_channel_has_subjects")
class MakesSubjectsUp(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, subject=read.text) if isinstance(read, MessageReceived) else read
