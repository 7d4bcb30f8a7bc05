"""The payload formats by the names streamd uses for codecs."""

from streamd.wire.payload import PayloadFormat
from streamd.wire.payload.h264 import H264
from streamd.wire.payload.raw import Raw
from streamd.wire.payload.vp8 import Vp8
from streamd.wire.payload.vp9 import Vp9

RAW = Raw()
FORMATS: dict[str, PayloadFormat] = {
    "raw": RAW,
    "synthetic": RAW,
    "vp8": Vp8(),
    "vp9": Vp9(),
    "h264": H264(),
}
