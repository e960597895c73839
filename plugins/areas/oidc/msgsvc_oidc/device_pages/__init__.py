"""The page on which a person enters or confirms the code of their device."""
