"""Which machine: the name both ends of a session on one kernel share."""

from pathlib import Path

from streamd.daemon.machine import cname, machine_id


def test_one_start_of_a_kernel_has_one_name_and_the_id_itself_is_not_told(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.write_text("0b4d1e0c-5a52-4f43-a8a6-0c7a4fd5f6a1\n")
    there.write_text("7a4fd5f6-5a52-4f43-a8a6-0b4d1e0c0c7a\n")
    assert cname("sender", here) == f"sender@{machine_id(here)}"
    assert cname("receiver", here).partition("@")[2] == machine_id(here)
    assert machine_id(here) != machine_id(there)
    name = machine_id(here)
    assert name is not None
    assert len(name) == 16
    assert name not in here.read_text()


def test_a_machine_that_does_not_tell_has_only_a_role(tmp_path: Path) -> None:
    assert cname("sender", tmp_path / "missing") == "sender"
