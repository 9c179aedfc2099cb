"""Write the letters of legends: pictures of the printable ASCII characters, as coverage from 0 to 255.

``python tools/glyphs.py`` needs Pillow and Matplotlib, which brings the font DejaVu Sans.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIZE = 15
FIRST, LAST = 32, 126
TARGET = Path(__file__).parents[1] / "src" / "gmil" / "heatmaps" / "glyphs.npz"


def main() -> None:
    """Write one row of letters side by side, and where each begins."""
    import matplotlib as mpl
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), SIZE)
    above, below = font.getmetrics()
    parts = []
    for code in range(FIRST, LAST + 1):
        picture = Image.new("L", (max(1, round(font.getlength(chr(code)))), above + below), 0)
        ImageDraw.Draw(picture).text((0, 0), chr(code), fill=255, font=font)
        parts.append(np.asarray(picture))
    starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])])
    np.savez_compressed(TARGET, letters=np.hstack(parts), starts=starts.astype(np.int32))


if __name__ == "__main__":
    main()
