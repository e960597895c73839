"""The circuit breaker of a channel: when it opens, what it lets through, when it closes."""

import pytest

from msgsvc_core.channels.outbound.circuit import CircuitBreaker, Permit


@pytest.fixture
def circuit() -> CircuitBreaker:
    return CircuitBreaker(failures=3, trial_calls=2)


def permit(circuit: CircuitBreaker) -> Permit:
    found = circuit.begin()
    assert found is not None
    return found


def opened(circuit: CircuitBreaker) -> CircuitBreaker:
    for _ in range(3):
        circuit.failed(permit(circuit))
    return circuit


def test_it_opens_after_so_many_failures_in_a_row(circuit: CircuitBreaker) -> None:
    opens = [circuit.failed(permit(circuit)) for _ in range(3)]

    assert opens == [False, False, True]
    assert circuit.blocks
    assert circuit.begin() is None


def test_an_answer_between_keeps_it_closed(circuit: CircuitBreaker) -> None:
    for _ in range(5):
        circuit.failed(permit(circuit))
        circuit.failed(permit(circuit))
        circuit.succeeded()

    assert not circuit.blocks


def test_calls_that_were_under_way_open_it_once(circuit: CircuitBreaker) -> None:
    permits = [permit(circuit) for _ in range(10)]

    assert sum(circuit.failed(each) for each in permits) == 1


def test_a_trial_lets_a_few_calls_through(circuit: CircuitBreaker) -> None:
    opened(circuit).synchronize(is_out=True, trial=1)

    assert [circuit.begin(), circuit.begin(), circuit.begin()] == [Permit(1), Permit(1), None]
    assert circuit.blocks


def test_one_that_succeeds_closes_it(circuit: CircuitBreaker) -> None:
    opened(circuit).synchronize(is_out=True, trial=1)
    circuit.begin()

    assert circuit.succeeded()
    assert (circuit.state, circuit.left) == ("closed", None)


def test_one_that_fails_opens_it_again(circuit: CircuitBreaker) -> None:
    opened(circuit).synchronize(is_out=True, trial=1)

    assert circuit.failed(permit(circuit))
    assert circuit.blocks


def test_a_call_from_before_the_outage_decides_no_trial(circuit: CircuitBreaker) -> None:
    before = permit(circuit)
    opened(circuit).synchronize(is_out=True, trial=1)

    assert not circuit.failed(before)
    assert circuit.state == "half_open"


def test_a_trial_call_that_shows_nothing_may_be_made_again(circuit: CircuitBreaker) -> None:
    opened(circuit).synchronize(is_out=True, trial=1)
    for _ in range(5):
        circuit.released(permit(circuit))

    assert circuit.left == 2


def test_the_same_trial_is_not_begun_twice(circuit: CircuitBreaker) -> None:
    opened(circuit).synchronize(is_out=True, trial=1)
    circuit.begin()
    circuit.synchronize(is_out=True, trial=1)
    left = circuit.left
    circuit.synchronize(is_out=True, trial=2)

    assert (left, circuit.left) == (1, 2)


def test_another_process_may_end_the_outage(circuit: CircuitBreaker) -> None:
    opened(circuit).synchronize(is_out=False, trial=0)

    assert circuit.state == "closed"
    assert not circuit.failed(permit(circuit))
