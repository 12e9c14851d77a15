"""What `make down` leaves."""

from pathlib import Path

import pytest

from tools import rehearsal


class NoControlPlane:
    """None runs."""

    def stop(self, report: object) -> None:
        """Nothing to stop."""


@pytest.mark.parametrize(("holder", "kept"), [("Pulumi.local.yaml", True), ("Pulumi.mine.yaml", True), (None, False)])
def test_down_keeps_the_passphrase_while_any_stack_file_is_encrypted_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: str | None, kept: bool
) -> None:
    state, stacks = tmp_path / "state", tmp_path / "stacks"
    state.mkdir()
    stacks.mkdir()
    (state / "passphrase").write_text("a passphrase of this test")
    for name in ("Pulumi.local.yaml", "Pulumi.mine.yaml"):
        (stacks / name).write_text("encryptionsalt: v1:abc\n" if name == holder else "config: {}\n")
    monkeypatch.setattr(rehearsal, "STATE_DIRECTORY", state)
    monkeypatch.setattr(rehearsal, "STACK_FILE", stacks / "Pulumi.local.yaml")
    monkeypatch.setattr(rehearsal, "ControlPlane", NoControlPlane)
    assert rehearsal.down() == 0
    assert (state / "passphrase").exists() is kept
    assert [file.name for file in state.glob("*")] == (["passphrase"] if kept else [])
