"""What a text column of both databases can hold."""


def is_storable(text: str) -> bool:
    r"""False with the character NUL (PostgreSQL refuses it) or half of a surrogate pair (no UTF-8 has it).

    >>> is_storable("fièvre 38 °C"), is_storable("a\x00b"), is_storable("a\ud83d")
    (True, False, False)
    """
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
