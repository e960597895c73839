"""What a connection costs while it is held."""

from tests.unit.server.conftest import DoorFactory

#: Attributes whose names Python 3.11 to 3.13 keep once for all objects of a class
#: (SHARED_KEYS_MAX_SIZE); with one more, every object has a table of its own.
SHARED = 30


async def test_a_connection_has_no_more_attributes_than_python_shares_the_names_of(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    await door.connect(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n")

    (connection,) = door.server.server_state.connections

    assert len(vars(connection)) <= SHARED
