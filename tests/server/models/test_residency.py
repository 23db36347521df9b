"""Which model makes room for another, by hand-computable stays."""

from dragoman_server.models.on_demand import STAY_LOADS, Residency, choose_leaving, next_choice


def stay(*, since: float = 0.0, load: float = 1.0, used: float = 0.0, inside: int = 0) -> Residency:
    return Residency(since=since, load_seconds=load, used_at=used, num_inside=inside)


def test_the_least_recently_used_idle_model_goes() -> None:
    stays = {"a": stay(used=3.0), "b": stay(used=1.0, inside=1), "c": stay(used=2.0)}
    assert choose_leaving(stays, now=100.0) == "c"


def test_of_models_that_are_always_in_use_the_one_there_longest_goes_once_its_loading_was_worth_it() -> None:
    stays = {"a": stay(since=10.0, load=2.0, inside=3), "b": stay(since=11.0, load=0.5, inside=1)}
    assert next_choice(stays) == 11.0 + STAY_LOADS * 0.5
    assert choose_leaving(stays, now=11.0 + STAY_LOADS * 0.5 - 0.1) is None
    assert choose_leaving(stays, now=11.0 + STAY_LOADS * 0.5) == "b"
    assert choose_leaving(stays, now=10.0 + STAY_LOADS * 2.0) == "a"


def test_what_is_leaving_is_chosen_no_second_time() -> None:
    leaving = stay()
    leaving.is_leaving = True
    assert choose_leaving({"a": leaving}, now=100.0) is None
    assert next_choice({"a": leaving}) is None
    assert choose_leaving({"a": leaving, "b": stay(used=5.0)}, now=100.0) == "b"
