"""Make the pictures of this folder with Pillow: python3 make.py. Pixels follow from their places.

tests/unit/test_picture_formats.c computes them again.
"""
import struct

from PIL import Image

W, H = 13, 9


def rgba(x, y):
    return x * 19 % 256, y * 28 % 256, x * y * 5 % 256, (x * 20 + y) % 256


def make(mode):
    image = Image.new("RGBA", (W, H))
    image.putdata([rgba(x, y) for y in range(H) for x in range(W)])
    return image if mode == "RGBA" else image.convert(mode)


def bmp(name, bits, packing, masks, pixels, down):
    """A BMP whose head has masks (Pillow writes none)."""
    size = 56 if masks else 40
    data = b"".join(b"".join(row) + b"\0" * (-sum(map(len, row)) % 4)
                    for row in (pixels if down else pixels[::-1]))
    head = struct.pack("<IiiHHIIiiII", size, W, -H if down else H, 1, bits, packing, len(data), 0, 0, 0, 0)
    head += b"".join(struct.pack("<I", m) for m in masks)
    with open(name, "wb") as f:
        f.write(b"BM" + struct.pack("<IHHI", 14 + size + len(data), 0, 0, 14 + size) + head + data)


rgb = Image.new("RGB", (W, H))
rgb.putdata([rgba(x, y)[:3] for y in range(H) for x in range(W)])
rgb.save("rgb24.bmp")
grey = Image.new("L", (W, H))
grey.putdata([rgba(x, y)[0] for y in range(H) for x in range(W)])
grey.save("grey8.bmp")
bits = Image.new("1", (W, H))
bits.putdata([255 * ((x + y) % 2) for y in range(H) for x in range(W)])
bits.save("bits1.bmp")
places = [[rgba(x, y) for x in range(W)] for y in range(H)]
bmp("masks32.bmp", 32, 3, (0xff, 0xff00, 0xff0000, 0xff000000), [[bytes(p) for p in row] for row in places], True)
bmp("five16.bmp", 16, 0, (), [[struct.pack("<H", (p[0] >> 3) << 10 | (p[1] >> 3) << 5 | p[2] >> 3) for p in row]
                            for row in places], False)
make("RGBA").save("rgba.webp", lossless=True, exact=True)
smooth = Image.new("RGB", (W, H))
smooth.putdata([(10 * x + 20, 20 * y + 5, 100) for y in range(H) for x in range(W)])
smooth.save("lossy.webp", quality=95)
make("RGBA").save("rgba.png")
two = Image.new("LA", (W, H))
two.putdata([rgba(x, y)[::3] for y in range(H) for x in range(W)])
two.save("grey_alpha.png")
make("RGBA").save("rgba.tif")
palette = Image.new("P", (W, H))
palette.putpalette([v for i in range(64) for v in (i, 2 * i, 3 * i)])
palette.putdata([(x + W * y) % 64 for y in range(H) for x in range(W)])
palette.save("palette.png", transparency=bytes(4 * i for i in range(64)))
