"""The parts of Telegram's objects that we read (Bot API 10.1); everything else is ignored."""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from msgsvc_core.channels import ChannelUser


def _storable(text: str) -> str:
    # JSON can spell halves of characters and zeros, which databases refuse. Telegram sends neither.
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


Text = Annotated[str, AfterValidator(_storable)]

#: Ids have at most 52 significant bits.
Id = Annotated[int, Field(strict=True, ge=-(2**52), le=2**52)]


class _Object(BaseModel):
    model_config = ConfigDict(frozen=True)


class User(_Object):
    id: Id
    is_bot: bool = False
    first_name: Text
    username: Text | None = None
    language_code: Text | None = None

    def channel_user(self) -> ChannelUser:
        return ChannelUser(str(self.id), self.first_name, self.username, self.language_code)


class Chat(_Object):
    id: Id
    type: str


class InlineButton(_Object):
    text: Text
    callback_data: str | None = None


class Keyboard(_Object):
    inline_keyboard: list[list[InlineButton]] = []


class Attachment(_Object):
    """A file of any kind: PhotoSize, Video, Document, Audio, Voice and so on."""

    file_id: Text
    file_name: Text | None = None
    mime_type: Text | None = None
    file_size: Id | None = None
    width: Id = 0
    height: Id = 0

    @property
    def pixels(self) -> int:
        return self.width * self.height


def _if_readable(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """None for a file without an id, say: the words beside it are worth to be taken all the same."""
    try:
        return read(value)
    except ValidationError:
        return None


Photo = Annotated[list[Attachment] | None, WrapValidator(_if_readable)]
File = Annotated[Attachment | None, WrapValidator(_if_readable)]


class RepliedMessage(_Object):
    """The message that another one replies to."""

    message_id: Id


class Message(_Object):
    """Also an inaccessible message, which has only its id and chat."""

    message_id: Id
    chat: Chat
    sender: User | None = Field(None, alias="from")
    text: Text | None = None
    caption: Text | None = None
    reply_markup: Keyboard | None = None
    reply_to_message: RepliedMessage | None = None
    message_thread_id: Id | None = None
    is_topic_message: bool = False
    photo: Photo = None
    video: File = None
    animation: File = None
    video_note: File = None
    voice: File = None
    audio: File = None
    document: File = None

    @property
    def topic(self) -> str | None:
        """The topic that it is in. Elsewhere too a `message_thread_id` may name what is replied to."""
        thread = self.message_thread_id
        return str(thread) if self.is_topic_message and thread is not None else None


class CallbackQuery(_Object):
    id: Text
    sender: User = Field(alias="from")
    message: Message | None = None
    data: Text | None = None


class ChatMember(_Object):
    status: str


class ChatMemberUpdated(_Object):
    chat: Chat
    sender: User = Field(alias="from")
    new_chat_member: ChatMember


class ManagedBotUpdated(_Object):
    """A bot that this one manages was made, or has another token or owner."""

    user: User
    bot: User


class RawUpdate(_Object):
    """Messages are kept raw too, to detect their kind."""

    update_id: Id
    message: dict[str, Any] | None = None
    edited_message: dict[str, Any] | None = None
    callback_query: CallbackQuery | None = None
    my_chat_member: ChatMemberUpdated | None = None
    managed_bot: ManagedBotUpdated | None = None
