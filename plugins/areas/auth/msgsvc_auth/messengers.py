"""What pages call a messenger: a channel's name in the API is the operator's, and not made for people."""

from msgsvc_auth.settings import AuthSettings

#: Letters of a word up to which it is taken for an abbreviation.
ABBREVIATION = 3


def messenger_name(settings: AuthSettings, channel: str) -> str:
    """As `messenger_names` has it; else `messenger_a` reads "Messenger A", and `max` "MAX"."""
    known = settings.messenger_names.get(channel)
    return known or " ".join(map(_word, channel.replace("_", " ").replace("-", " ").split()))


def _word(word: str) -> str:
    return word.upper() if len(word) <= ABBREVIATION else word.capitalize()
