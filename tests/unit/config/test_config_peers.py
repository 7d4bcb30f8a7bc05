"""A peer is somebody: a host, and a port that is not "any"."""

import pytest

from streamd.config.model import BottleneckConfig, ReceiverConfig, SenderConfig


@pytest.mark.parametrize("model", [SenderConfig, ReceiverConfig, BottleneckConfig])
@pytest.mark.parametrize("peer", [":5004", "192.0.2.1:0"])
def test_a_peer_without_host_or_port_is_refused(model: type[SenderConfig], peer: str) -> None:
    with pytest.raises(ValueError, match=r"a peer needs a host and a port above 0"):
        model.model_validate({"peer": peer})


def test_listening_everywhere_on_any_port_is_fine() -> None:
    config = ReceiverConfig.model_validate({"listen": ":0"})
    assert (config.listen.host, config.listen.port, config.peer) == ("", 0, None)
