"""The plugin's objects one by one."""

from msgsvc_sandbox.wakeups import Wakeups


def test_a_change_wakes_the_pages_of_its_person() -> None:
    wakeups = Wakeups()
    with wakeups.expect("ann") as of_ann, wakeups.expect("bob") as of_bob:
        wakeups.ring("ann")
        woken = of_ann.is_set(), of_bob.is_set()
        wakeups.ring_all()

        assert woken == (True, False)
        assert of_bob.is_set()
