"""The three built-in clips as libavfilter graphs: what is in the picture and how it moves.

Theory of operation.  A scene is drawn at twice the final size in 4:4:4, so that
motion has half-pixel steps after scaling down, as a camera's has.  Its parts
are stills, drawn once and repeated: textures with the spectrum of natural
surfaces (Perlin noise over six octaves), lit from one side, cut to ellipses, or
with boxes painted on.  Per frame only positions change, which costs about a
millisecond.  All motion is made of sines with a whole number of periods in the
clip, so it repeats without a seam, except for a little sensor noise.

The amplitudes are tuned so that the mean temporal information (ITU-T P.910, as
libavfilter's `siti` measures it) is that of the clips which the SCReAM video
paper's table 2 names low, medium and high motion: 2.99, 7.86 and 17.20.
"""

FPS = 30
FRAMES = 300
WIDTH = 352
HEIGHT = 288
TEMPORAL_INFORMATION = {"low": 2.99, "medium": 7.86, "high": 17.20}
"""Mean TI each clip is tuned to (akiyo, news and foreman in that table)."""

_CANVAS = (2 * WIDTH, 2 * HEIGHT)
_LIVELY = "(0.25+pow(sin(PI*n/100),2))"
_CALM = "(0.25+pow(cos(PI*n/100),2))"
"""Envelopes: three bursts of motion in the clip, with near stillness between them."""


def graph(name: str) -> str:
    """The filter graph of clip "low", "medium" or "high"; KeyError for any other name."""
    return {"low": _low, "medium": _medium, "high": _high}[name]()


def _low() -> str:
    """A speaker before a shelf and a window; the camera stands still."""
    wall = (
        _box(40, 60, 150, 400, "304050", 0.6),
        _box(56, 76, 118, 100, "906030", 0.6),
        _box(56, 190, 118, 80, "3070a0", 0.5),
        _box(56, 284, 118, 160, "306040", 0.5),
        _box(520, 40, 150, 220, "90b0d0", 0.55),
        _box(520, 40, 150, 220, "d0d0d0", 0.8, border=6),
        _box(592, 40, 6, 220, "d0d0d0", 0.8),
    )
    return ";".join(
        [
            _texture("wall", 11, _CANVAS, cell=2.5, contrast=1.1, color=(100, 134, 122)),
            _still("wall", "back", wall),
            *_person("a", 21, at=(252, 86), amplitude=10, envelope=_LIVELY, under="back"),
            _finish("a", noise=1),
        ]
    )


def _medium() -> str:
    """Two speakers and, between them, a screen that shows moving pictures with cuts."""
    frame = (
        _box(0, 0, 704, 32, "203050", 0.8),
        _box(172, 40, 360, 288, "c0c0c0", 0.9),
        _box(0, 540, 704, 36, "705030", 0.9),
    )
    film = (
        _box(300, 200, 160, 300, "c04030", 0.6),
        _box(700, 100, 200, 500, "3050c0", 0.6),
        _box(60, 500, 500, 120, "e0c040", 0.6),
        _box(560, 60, 40, 820, "f0f0e0", 0.7),
        _box(940, 400, 220, 60, "102010", 0.7),
    )
    # A cut every two seconds: the window on the film jumps to another place.
    x = f"170+mod(floor(n/60)*347,600)+60*{_wave(5)}+14*{_CALM}*{_wave(17)}"
    y = f"130+mod(floor(n/60)*211,340)+36*{_wave(8, 1)}+12*{_CALM}*{_wave(23)}"
    return ";".join(
        [
            _texture("wall", 111, _CANVAS, cell=2.5, contrast=1.0, color=(90, 140, 118)),
            _still("wall", "back", frame),
            _texture("film", 171, (1200, 900), cell=6, contrast=2.2, color=(120, 128, 128)),
            _still("film", "reel", film),
            f"[reel]crop=344:272:x='{x}':y='{y}'[screen]",
            "[back][screen]overlay=180:48:format=yuv444[studio]",
            *_person(
                "a", 201, at=(96, 190), amplitude=10, envelope=_LIVELY, under="studio", scale=0.7
            ),
            *_person("b", 301, at=(470, 190), amplitude=10, envelope=_CALM, under="a", scale=0.7),
            _finish("b", noise=2),
        ]
    )


def _high() -> str:
    """A speaker on a building site, filmed from the hand: shake, nods and a long pan."""
    beams = (
        *(_box(x, 80, 24, 820, "e8e0d0", 0.7) for x in (100, 1100)),
        *(_box(x, 40, 30, 860, "403020", 0.7) for x in (420, 1040)),
        _box(700, 120, 260, 500, "d0d8e0", 0.7),
        *(_box(x, y, 60, 120, "304060", 0.7) for x in (740, 860) for y in (160, 340)),
        _box(1200, 200, 300, 60, "b05030", 0.7),
        *(_box(x, 260, 30, 600, "705030", 0.7) for x in (1250, 1420)),
        *(_box(180, y, 200, 24, "e8e0d0", 0.7) for y in (300, 500)),
        _box(0, 700, 1600, 40, "907050", 0.7),
    )
    x = f"448+320*{_wave(1)}*{_LIVELY}+20*{_LIVELY}*{_wave(29)}+6*{_wave(47, 2)}"
    y = f"160+14*{_LIVELY}*{_wave(37, 1)}+30*{_wave(6)}"
    return ";".join(
        [
            _texture("site", 411, (1600, 900), cell=4, contrast=1.6, color=(125, 128, 124)),
            _still("site", "yard", beams),
            f"[yard]crop={_CANVAS[0]}:{_CANVAS[1]}:x='{x}':y='{y}'[back]",
            *_person(
                "a", 501, at=(240, 96), amplitude=14, envelope=_LIVELY, under="back", scale=1.1
            ),
            _finish("a", noise=2),
        ]
    )


def _person(
    tag: str,
    seed: int,
    *,
    at: tuple[int, int],
    amplitude: float,
    envelope: str,
    under: str,
    scale: float = 1.0,
) -> list[str]:
    """Shoulders, hair, face and a talking mouth over `under`; the result is called `tag`.

    `at` is where the face's left edge and the hair's top are, in canvas pixels.
    """
    x, y = at
    sway = f"{amplitude}*{envelope}*({_wave(6)}+0.5*{_wave(13, 0.5)})"
    nod = f"{amplitude}*{envelope}*(0.5*{_wave(9, 1)}+0.25*{_wave(21)})"
    talk = f"6*{envelope}*{_wave(43)}"
    # Size, offset, texture cell, contrast, (luma, cb, cr), how far it follows the head.
    parts = (
        ((560, 300), (-180, 304), 5.0, 0.7, (58, 110 + seed % 40, 120), 0.5, "0"),
        ((240, 180), (-20, 0), 14.0, 1.2, (48, 124, 134), 1.0, "0"),
        ((200, 260), (0, 48), 3.0, 0.7, (150, 112, 150), 1.0, "0"),
        ((80, 32), (60, 226), 6.0, 0.5, (95, 118, 165), 1.0, talk),
    )
    lines, below = [], under
    for number, (size, offset, cell, contrast, color, follow, extra) in enumerate(parts):
        part, above = f"{tag}{number}", f"{tag}{number}o" if number < 3 else tag
        width, height = (int(side * scale) // 2 * 2 for side in size)
        dx, dy = (int(side * scale) // 2 * 2 for side in offset)
        lines += [
            _texture(part, seed + 3 * number, (width, height), cell, contrast, color, chroma=0.1),
            _ellipse(part, f"{part}e", eyes=number == 2),
            f"[{below}][{part}e]overlay=x='{x + dx}+{follow}*{sway}'"
            f":y='{y + dy}+{follow}*{nod}+{extra}':format=yuv444[{above}]",
        ]
        below = above
    return lines


def _texture(
    out: str,
    seed: int,
    size: tuple[int, int],
    cell: float,
    contrast: float,
    color: tuple[int, int, int],
    chroma: float = 0.2,
) -> str:
    """One picture of mottled surface; a larger `cell` number makes a finer grain."""
    planes = zip("yuv", color, (cell, cell / 3, cell / 3), (contrast, chroma, chroma), strict=True)
    lines = []
    for number, (plane, level, scale, gain) in enumerate(planes):
        lines.append(
            f"perlin=s={size[0]}x{size[1]}:r={FPS}:octaves={6 if number == 0 else 3}"
            f":persistence=0.6:xscale={scale}:yscale={scale}:random_mode=seed:seed={seed + number}"
            f",trim=end_frame=1,lutyuv=y='clip((val-128)*{gain}+{level},16,235)'[{out}{plane}]"
        )
    merge = f"[{out}y][{out}u][{out}v]mergeplanes=0x001020:yuv444p[{out}t]"
    return ";".join([*lines, merge])


def _still(texture: str, out: str, boxes: tuple[str, ...]) -> str:
    return f"[{texture}t]{','.join([*boxes, 'loop=-1:1'])}[{out}]"


def _ellipse(texture: str, out: str, eyes: bool) -> str:
    """The texture cut to the ellipse that fills it, lit from the left, with or without eyes."""
    light = "lum(X,Y)*(0.75+0.35*(1-X/W))"
    if eyes:
        light += "*(1-0.7*clip(40*(0.085-hypot(abs(X/W-0.5)-0.19,1.9*(Y/H-0.4))),0,1))"
    alpha = "255*clip(14*(1-hypot(2*X/W-1,2*Y/H-1)),0,1)"
    shade = f"geq=lum='{light}':cb='cb(X,Y)':cr='cr(X,Y)':a='{alpha}'"
    return f"[{texture}t]format=yuva444p,{shade},loop=-1:1[{out}]"


def _box(x: int, y: int, width: int, height: int, rgb: str, alpha: float, border: int = 0) -> str:
    thickness = border or "fill"
    return f"drawbox={x}:{y}:{width}:{height}:color=0x{rgb}@{alpha}:t={thickness}"


def _wave(periods: int, phase: float = 0.0) -> str:
    """A sine with this many periods in the clip; `n` is the frame number."""
    return f"sin(2*PI*{periods}*n/{FRAMES}+{phase})"


def _finish(source: str, noise: int) -> str:
    """Down to the final size, with a trace of sensor noise; ends after the last frame."""
    return (
        f"[{source}]scale={WIDTH}:{HEIGHT}:flags=bicubic+accurate_rnd+bitexact,format=yuv420p,"
        f"noise=c0s={noise}:c0f=t:c0_seed=5,trim=end_frame={FRAMES}"
    )
