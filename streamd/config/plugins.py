"""The two kinds of plug-in streamd has, and their entry-point groups."""

from streamd.cc.api import ControllerSpec
from streamd.link.queue import QueueSpec
from streamd.registry import Registry

CONTROLLERS: Registry[ControllerSpec] = Registry(
    "streamd.congestion_controllers", kind="congestion controller", spec_type=ControllerSpec
)
QUEUES: Registry[QueueSpec] = Registry(
    "streamd.queue_disciplines", kind="queue discipline", spec_type=QueueSpec
)
