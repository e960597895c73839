"""Forms, on web sites and in messengers, as a plugin of msgsvc."""
