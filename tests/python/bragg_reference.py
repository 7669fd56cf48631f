"""A second simulator, written from the specification alone, for comparison.

It follows the rules one sample at a time in the order of the text, vectorised over pixels only, with
every quirk that concerns the image. It shares no code with the instrument, so the two cannot share a
mistake. All public golden images come out of it within their tolerance (test_bragg_random.py).
"""
import math
from types import SimpleNamespace

import numpy as np

THOMSON, AVOGADRO, FLUENCE = 7.94079248018965e-30, 6.02214179e23, 125932015286227086360700780544.0
RTD = 180.0 * 0.31830988618379067154
TINY = 2.2250738585072014e-308
AXES = {
    "adxv": ((0, 0, 1), (1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (1, 0, 0), (1, 0, 0)),
    "mosflm": ((1, 0, 0), (0, 0, 1), (0, -1, 0), (1, 0, 0), (0, 0, -1), (0, 0, 1), (0, 0, 1)),
    "denzo": ((1, 0, 0), (0, 0, 1), (0, -1, 0), (1, 0, 0), (0, 0, -1), (0, 0, 1), (0, 0, 1)),
    "xds": ((0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (1, 0, 0), (1, 0, 0)),
    "dials": ((0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0)),
    "custom": ((1, 0, 0), (0, 0, 1), (0, -1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1)),
}
VECTORS = ["beam", "fdet", "sdet", "odet", "twotheta", "polar", "spindle"]
QUIRKS = {"phi-carryover", "interp-latch", "running-sum", "last-layer", "layer-step", "water-scale", "equal-weights",
          "cstar-z", "misset-90rad", "pivot-by-convention", "pix0-ignored", "curved-labyz", "header-substring",
          "nopolar-undone"}


def atof(text):
    """strtod's longest valid start, 0 when there is none."""
    text = text.strip()
    for n in range(len(text), 0, -1):
        try:
            return float(text[:n].replace("_", "?"))
        except ValueError:
            pass
    return 0.0


def atoi(text):
    text, n = text.strip(), 0
    if text[:1] in "+-" and text[:1]:
        n = 1
    while n < len(text) and text[n].isdigit():
        n += 1
    try:
        return int(text[:n])
    except ValueError:
        return 0


class Ran1:
    def __init__(self):
        self.iy, self.iv = 0, [0] * 32

    def draw(self, seed):
        """One deviate (float32) and the new seed of the stream."""
        def step(i):
            k = i // 127773
            i = 16807 * (i - k * 127773) - 2836 * k
            return i + 2147483647 if i < 0 else i
        if seed <= 0 or self.iy == 0:
            seed = 1 if -seed < 1 else -seed
            for j in range(39, -1, -1):
                seed = step(seed)
                if j < 32:
                    self.iv[j] = seed
            self.iy = self.iv[0]
        seed = step(seed)
        j = self.iy // 67108864
        self.iy, self.iv[j] = self.iv[j], seed
        t = np.float32((1.0 / 2147483647) * self.iy)
        top = 1.0 - 1.2e-7
        return (np.float32(top) if float(t) > top else t), seed


def cap(ran, m, seed):
    r = []
    for _ in range(3):
        u, seed = ran.draw(seed)
        r.append(2.0 * float(u) - 1.0)
    xy = math.sqrt(1.0 - r[1] * r[1])
    rot = float(np.float32(m) * np.power(np.float32(1.0 - r[2] * r[2]), np.float32(1 / 3)))
    v = np.array([xy * math.sin(math.pi * r[0]), xy * math.cos(math.pi * r[0]), r[1]])
    c, s = math.cos(rot), math.sin(rot)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return c * np.eye(3) + (1 - c) * np.outer(v, v) + s * cross, seed


def rotate(v, x, y, z):
    for t, i, j in ((x, 1, 2), (y, 2, 0), (z, 0, 1)):
        if t != 0.0:
            v = np.array(v, float)
            c, s = math.cos(t), math.sin(t)
            v[i], v[j] = c * v[i] - s * v[j], s * v[i] + c * v[j]
    return np.array(v, float)


def turn(v, u, t):
    """Rodrigues; v may be [..., 3] and t an array."""
    v, u, t = np.asarray(v, float), np.asarray(u, float), np.asarray(t, float)[..., None]
    along = (v * u).sum(-1, keepdims=True)
    return u * along * (1 - np.cos(t)) + v * np.cos(t) + np.cross(np.broadcast_to(u, v.shape), v) * np.sin(t)


def unit(v):
    v = np.asarray(v, float)
    n = math.sqrt((v * v).sum())
    return v / n if n > 0 else v


class Settings:
    """Everything typed, in SI units; the defaults of the reference."""

    def __init__(self, quirks):
        self.quirks, self.pix0, self.pivot_typed = quirks, None, False
        self.hkl = self.mat = self.mask = self.img = self.sourcefile = None
        self.default_F = 0.0
        self.cell = [0.0] * 6
        self.misset, self.misset_random = None, False
        self.N = [1, 1, 1]
        self.sample = [0.0, 0.0, 0.0]
        self.shape, self.fudge, self.interpolate = "square", 1.0, 2
        self.mosaic, self.domains = -1.0, -1
        self.lam, self.dispersion, self.dispsteps = 1e-10, 0.0, -1
        self.range, self.step, self.count = [-1.0, -1.0], [-1.0, -1.0], [-1, -1]
        self.round_div = True
        self.fluence, self.flux, self.exposure, self.beamsize = FLUENCE, 0.0, 1.0, 1e-4
        self.kahn, self.nopolar = 0.0, False
        self.pixel, self.detsize, self.detpixels = 1e-4, [0.1024, 0.1024], [0, 0]
        self.distance, self.close = 0.1, None
        self.xbeam = self.ybeam = self.xclose = self.yclose = self.orgx = self.orgy = None
        self.pivot, self.convention = "beam", "mosflm"
        self.vector = dict(zip(VECTORS, AXES["custom"]))
        self.rot, self.twotheta = [0.0] * 3, 0.0
        self.curved = self.point = False
        self.mu, self.thick, self.thicksteps = -1.0, 0.0, -1
        self.roi = [-1, -1, -1, -1]
        self.phi, self.osc, self.phistep, self.phisteps = 0.0, -1.0, -1.0, -1
        self.dmin, self.oversample = 0.0, -1
        self.over = {"thick": False, "polar": False, "omega": False}
        self.water = 0.0
        self.seed, self.mosaic_seed, self.misset_seed = -1, -12345678, -1

    def _custom(self, name, words):
        if self.convention != "custom":  # after a named one, vectors start from the custom axes
            self.convention = "custom"
        self.vector[name] = tuple(atof(w) for w in words)

    def parse(self, words):
        number = lambda i, k=1: atof(words[i + k])
        for i, w in enumerate(words):
            if not w.startswith("-"):
                continue
            left = len(words) - i - 1
            has = lambda *names: any(n in w for n in names)
            if has("-img") and left: self.img = words[i + 1]
            if has("-mask") and left: self.mask = words[i + 1]
            if has("-hkl") and left: self.hkl = words[i + 1]
            if has("-default_F") and left: self.default_F = number(i)
            if has("-mat") and left: self.mat = words[i + 1]
            if has("-cell") and left:
                typed = []
                for t in words[i + 1:i + 7]:
                    if t.startswith("-"):
                        break
                    typed.append(atof(t))
                for k, v in enumerate(typed):
                    self.cell[k] = v if k < 3 else v / RTD
            if has("-misset") and left:
                if "rand" in words[i + 1]:
                    self.misset_random = True
                elif left >= 3:
                    self.misset = [number(i, k) / RTD for k in (1, 2, 3)]
                    self.misset_random = False
            for k, n in enumerate(("-Na", "-Nb", "-Nc")):
                if has(n) and left: self.N[k] = atoi(words[i + 1])
            if w == "-N" and left: self.N = [atoi(words[i + 1])] * 3
            if has("-samplesize", "-sample_size", "-xtalsize", "-xtal_size") and left:
                self.sample = [number(i) / 1000] * 3
            if has("-sample_thick", "-sample_x", "-xtal_thick", "-xtal_x") and left: self.sample[0] = number(i) / 1000
            if has("-sample_width", "-sample_y", "-xtal_width", "-xtal_y", "-width") and left: self.sample[1] = number(i) / 1000
            if has("-sample_heigh", "-sample_z", "-xtal_heigh", "-xtal_z", "-heigh") and left: self.sample[2] = number(i) / 1000
            if has("-square_xtal"): self.shape = "square"
            if has("-round_xtal"): self.shape = "round"
            if has("-gauss_xtal"): self.shape = "gauss"
            if has("-tophat_spots", "-binary_spots"): self.shape = "tophat"
            if has("-fudge") and left: self.fudge = number(i)
            if has("-interpolate"): self.interpolate = 1
            if has("-nointerpolate"): self.interpolate = 0
            if ((w == "-mosaic") or has("-mosaici", "-mosaic_spr")) and left: self.mosaic = number(i) / RTD
            if has("-mosaic_dom") and left: self.domains = atoi(words[i + 1])
            if has("-lambda", "-wave") and left: self.lam = number(i) / 1e10
            if has("-energy") and left: self.lam = (12398.42 / number(i)) / 1e10
            if has("-dispersion") and left: self.dispersion = number(i) / 100
            if has("-dispsteps") and left: self.dispsteps = atoi(words[i + 1])
            if has("-divergence") and left: self.range = [number(i) / 1000] * 2
            for k, n in enumerate("hv"):
                if has(f"-{n}divrange") and left: self.range[k] = number(i) / 1000
                if f"-{n}divstep" in w and len(w) == 9 and left: self.step[k] = number(i) / 1000
                if has(f"-{n}divsteps", "-divsteps") and left: self.count[k] = atoi(words[i + 1])
            if has("-round_div"): self.round_div = True
            if has("-square_div"): self.round_div = False
            if has("-sourcefile") and left: self.sourcefile = words[i + 1]
            if has("-fluence") and left: self.fluence = number(i)
            if has("-flux") and left: self.flux = number(i)
            if has("-exposure") and left: self.exposure = number(i)
            if has("-beamsize") and left: self.beamsize = number(i) / 1000
            if "-polar" in w and len(w) == 6 and left: self.kahn, self.nopolar = number(i), False
            if has("-nopolar"): self.nopolar = True
            if has("-pixel") and left: self.pixel = number(i) / 1000
            if "-detsize" in w and len(w) == 8 and left: self.detsize = [number(i) / 1000] * 2
            if has("-detsize_f") and left: self.detsize[0] = number(i) / 1000
            if has("-detsize_s") and left: self.detsize[1] = number(i) / 1000
            if "-detpixels" in w and len(w) == 10 and left: self.detpixels = [atoi(words[i + 1])] * 2
            if has("-detpixels_f", "-detpixels_x") and left: self.detpixels[0] = atoi(words[i + 1])
            if has("-detpixels_s", "-detpixels_y") and left: self.detpixels[1] = atoi(words[i + 1])
            if has("-distance") and left: self.distance, self.pivot = number(i) / 1000, "beam"
            if has("-close_distance") and left: self.close, self.pivot = number(i) / 1000, "sample"
            for n in ("Xbeam", "Ybeam"):
                if has("-" + n) and left:
                    setattr(self, n.lower(), number(i) / 1000)
                    self.pivot = "beam"
            for n in ("Xclose", "Yclose"):
                if has("-" + n) and left:
                    setattr(self, n.lower(), number(i) / 1000)
                    self.pivot = "sample"
            for n in ("ORGX", "ORGY"):
                if has("-" + n) and left:
                    setattr(self, n.lower(), number(i))
                    self.pivot = "sample"
            if has("-pivot") and left:
                for p in ("sample", "beam"):
                    if p in words[i + 1]: self.pivot, self.pivot_typed = p, True
            for n, p in (("mosflm", "beam"), ("xds", "sample"), ("adxv", "beam"), ("denzo", "beam"), ("dials", "beam")):
                if has("-" + n): self.convention, self.pivot = n, p
            if left >= 3:
                for flag, n in (("fdet_vector", "fdet"), ("sdet_vector", "sdet"), ("odet_vector", "odet"), ("beam_vector", "beam"),
                                ("polar_vector", "polar"), ("spindle_axis", "spindle"), ("twotheta_axis", "twotheta")):
                    if has("-" + flag): self._custom(n, words[i + 1:i + 4])
                if has("-pix0_vector"):
                    self.convention = "custom"
                    unit_ = 1000.0 if w == "-pix0_vector_mm" else 1.0
                    self.pix0 = np.array([number(i, k) / unit_ for k in (1, 2, 3)])
            for k, n in enumerate("xyz"):
                if has("-detector_rot" + n) and left: self.rot[k] = number(i) / RTD
            if has("-twotheta") and left: self.twotheta, self.pivot = number(i) / RTD, "sample"
            if has("-curved_det") and left: self.curved = True
            if has("-point_pixel"): self.point = True
            if has("-detector_abs") and left:
                x = number(i)
                if "inf" in words[i + 1] or x == 0.0: self.mu, self.thick = 0.0, 0.0
                else: self.mu = 1.0 / (x * 1e-6)
            if "-detector_thick" in w and len(w) == 15 and left: self.thick = number(i) * 1e-6
            if has("-detector_thicksteps", "-thicksteps") and left: self.thicksteps = atoi(words[i + 1])
            if has("-roi") and left >= 4: self.roi = [atoi(x) for x in words[i + 1:i + 5]]
            if "-phi" in w and len(w) == 4 and left: self.phi = number(i) / RTD
            if has("-osc") and left: self.osc = number(i) / RTD
            if "-phistep" in w and len(w) == 8 and left: self.phistep = number(i) / RTD
            if has("-phisteps") and left: self.phisteps = atoi(words[i + 1])
            if has("-dmin") and left: self.dmin = number(i) / 1e10
            if w == "-oversample" and left: self.oversample = atoi(words[i + 1])
            for n in self.over:
                if has("-oversample_" + n): self.over[n] = True
            if has("-water") and left: self.water = number(i) / 1e6
            if w == "-seed" and left: self.seed = -atoi(words[i + 1])
            if has("-mosaic_seed") and left: self.mosaic_seed = -atoi(words[i + 1])
            if has("-misset_seed") and left: self.misset_seed = -atoi(words[i + 1])


def read_smv(path):
    raw = open(path, "rb").read()
    size = int(raw[raw.index(b"HEADER_BYTES=") + 13:].split(b";")[0])
    head = raw[:size].decode("latin1")

    def get(key):
        at = head.rfind(key)
        if at < 0: return None
        return atof(head[head.index("=", at) + 1:])
    return get, raw[size:]


def take_header(s, path, is_mask):
    get, data = read_smv(path)
    size = [get("SIZE1"), get("SIZE2")]
    if size[0] is None: size = [get("DETECTOR_DIMENSIONS")] * 2
    if size[0]: s.detpixels = [int(size[0]), int(size[1])]
    for key, name, scale in (("PIXEL_SIZE", "pixel", 1e3), ("DISTANCE", "distance", 1e3), ("CLOSE_DISTANCE", "close", 1e3),
                             ("WAVELENGTH", "lam", 1e10), ("BEAM_CENTER_X", "xbeam", 1e3), ("ORGX", "orgx", 1),
                             ("ORGY", "orgy", 1), ("PHI", "phi", RTD), ("OSC_RANGE", "osc", RTD)):
        if get(key) is not None: setattr(s, name, get(key) / scale)
    if get("BEAM_CENTER_Y") is not None:
        y = get("BEAM_CENTER_Y") / 1e3
        s.ybeam = s.detpixels[1] * s.pixel - y if is_mask else y
    return data


def steps(n, rng, st, lone):
    """Divergence and dispersion (model 3.5)."""
    if n <= 0:
        if rng < 0: n, rng, st = (1, 0.0, 0.0) if st <= 0 else (2, st, st)
        elif st <= 0: st, n = rng, 2
        else: n = math.ceil(rng / st)
    elif rng < 0:
        if st <= 0: rng = lone; st = rng / n
        else: rng, n = st, 2
    elif st <= 0:
        n = max(n, 2); st = rng / (n - 1)
    if rng <= 0 or st <= 0 or n <= 0: return 1, 0.0, 0.0
    return n, rng, st


def read_hkl(path, default):
    numbers = []
    for w in open(path).read().split():
        try: numbers.append(float(w))
        except ValueError: break
    rows = [numbers[i:i + 4] for i in range(0, len(numbers) - 3, 4)]
    low = [min(int(r[k]) for r in rows) for k in range(3)]
    high = [max(int(r[k]) for r in rows) for k in range(3)]
    n = [high[k] - low[k] + 1 for k in range(3)]
    table = np.zeros((n[0] + 1, n[1] + 1, n[2] + 1))
    table[:n[0], :n[1], :n[2]] = default
    for r in rows: table[tuple(int(r[k]) - low[k] for k in range(3))] = r[3]
    return table, low, high, len(rows)


def cell_vectors(s):
    """a b c in Angstrom and a* b* c* in 1/Angstrom, docs/bragg-model.md 5."""
    volume = None
    star = np.zeros((3, 3))
    if s.cell[0] > 0:
        a, b, c, al, be, ga = s.cell
        b, c = b if b > 0 else a, c if c > 0 else a
        al, be, ga = (x if x > 0 else math.pi / 2 for x in (al, be, ga))
        s.cell = [a, b, c, al, be, ga]
        sig = (al + be + ga) / 2
        volume = 2 * a * b * c * math.sqrt(abs(math.sin(sig) * math.sin(sig - al) * math.sin(sig - be) * math.sin(sig - ga)))
        sa, sb, sc = b * c * math.sin(al) / volume, c * a * math.sin(be) / volume, a * b * math.sin(ga) / volume
        sin_g = min(1.0, max(-1.0, c * (1 / volume) / (sa * sb)))
        cosine = lambda x, y, z: (math.cos(y) * math.cos(z) - math.cos(x)) / (math.sin(y) * math.sin(z))
        cos_a, cos_b, cos_g = cosine(al, be, ga), cosine(be, al, ga), cosine(ga, al, be)
        star[0] = (sa, 0, 0)
        star[1] = (sb * cos_g, sb * sin_g, 0)
        star[2] = (sc * cos_b, sc * (cos_a - cos_b * cos_g) / sin_g, sc * volume / (a * b * c * sin_g) if "cstar-z" in s.quirks else 1 / c)
    if s.mat:
        m = [float(x) for x in open(s.mat).read().split()[:9]]
        star = np.array(m).reshape(3, 3).T * (1e-10 / s.lam)
    if s.misset is not None: star = np.array([rotate(v, *s.misset) for v in star])
    x = [np.cross(star[1], star[2]), np.cross(star[2], star[0]), np.cross(star[0], star[1])]
    vstar = star[0] @ x[0]
    if volume is not None:
        vstar = 1 / volume
        x = [x[k] * (s.cell[k] / volume / math.sqrt(x[k] @ x[k])) for k in range(3)]
    v = 1 / vstar
    abc = np.array([v * x[k] for k in range(3)])
    star = vstar * np.array([np.cross(abc[1], abc[2]), np.cross(abc[2], abc[0]), np.cross(abc[0], abc[1])])
    return abc, star


def place(s):
    """Detector (model 4): pix0, f, s, o, close, distance, b, polar, vert, spindle."""
    vec = s.vector if s.convention == "custom" else dict(zip(VECTORS, AXES[s.convention]))
    b, f, sl, o, p, u = (unit(vec[n]) for n in ("beam", "fdet", "sdet", "odet", "polar", "spindle"))
    if math.sqrt(sum(x * x for x in vec["odet"])) != 1.0: o = unit(np.cross(f, sl))
    ax = np.array(vec["twotheta"], float)
    vert = unit(np.cross(b, p))
    px, (df, ds) = s.pixel, s.detsize
    fc = (s.orgx - 0.5) * px if s.orgx is not None else df / 2
    sc = (s.orgy - 0.5) * px if s.orgy is not None else ds / 2
    xc, yc = fc if s.xclose is None else s.xclose, sc if s.yclose is None else s.yclose
    default = {"adxv": ((df + px) / 2, (ds - px) / 2), "mosflm": ((ds + px) / 2, (df + px) / 2),
               "denzo": ((ds + px) / 2, (df + px) / 2)}.get(s.convention, (xc, yc))
    xb, yb = default[0] if s.xbeam is None else s.xbeam, default[1] if s.ybeam is None else s.ybeam
    fb, sb = {"adxv": (xb, ds - yb), "mosflm": (yb + px / 2, xb + px / 2), "denzo": (yb, xb)}.get(s.convention, (xb, yb))
    if s.convention == "custom": fc, sc = xb, yb
    pivot = {"custom": s.pivot, "xds": "sample", "dials": "sample"}.get(s.convention, "beam")
    if s.pivot_typed and "pivot-by-convention" not in s.quirks: pivot = s.pivot
    if "pivot-by-convention" not in s.quirks: ax = unit(ax)
    move = lambda v: turn(rotate(v, *s.rot), ax, s.twotheta)
    ratio = b @ rotate(o, *s.rot) or TINY
    close = s.close if s.close is not None else abs(ratio * s.distance)
    distance = close / ratio
    pix0 = move(-fc * f - sc * sl + close * o)
    f, sl, o = move(f), move(sl), move(o)
    if s.pix0 is not None and "pix0-ignored" not in s.quirks: pix0 = s.pix0
    elif pivot == "beam": pix0 = -fb * f - sb * sl + distance * b
    close = pix0 @ o
    return pix0, f, sl, o, close, close / ratio, b, p, vert, u


def make_sources(s, b, p, vert):
    if s.sourcefile:
        out = []
        for line in open(s.sourcefile):
            for c in ",;:!\t": line = line.replace(c, " ")
            w = [atof(x) for x in line.split()][:5]
            if not w: continue
            d = list(-10 * b)
            d[:len(w[:3])] = w[:3]
            out.append((unit(d), w[4] if len(w) > 4 else s.lam, w[3] if len(w) > 3 else 1.0))
        return out
    hn, hr, hs = steps(s.count[0], s.range[0], s.step[0], 1.0)
    vn, vr, vs = steps(s.count[1], s.range[1], s.step[1], 1.0)
    dn, dr, dst = steps(s.dispsteps, s.dispersion, -1.0, 1.0)
    out = []
    for ih in range(hn):
        for iv in range(vn):
            hd, vd = hs * ih - hr / 2, vs * iv - vr / 2
            if hr and vr and s.round_div:
                q = (hd * hd - hs * hs / 4 * (1 - hn % 2)) / hr**2 + (vd * vd - vs * vs / 4 * (1 - vn % 2)) / vr**2
                if 4 * q > 1.1: continue
            v = turn(turn(-10 * b, p, vd), vert, hd)
            for i in range(dn): out.append((unit(v), s.lam * (1 + dst * i - dr / 2), 1.0))
    return out


def spindle(s):
    n, osc, st = s.phisteps, s.osc, s.phistep
    if n < 0:
        if osc < 0: n, osc, st = (1, 0.0, 0.0) if st <= 0 else (2, st, st)
        elif st <= 0: n, st = 2, osc / 2
        else: n = math.ceil(osc / st)
    else:
        n = max(n, 1)
        if osc < 0:
            if st <= 0: osc = 1 / RTD; st = osc / n
            else: osc, n = st, 2
        elif st < 0: st = osc / n
    return [s.phi + st * i for i in range(n)]


def layers(s):
    n, rng, st, mu = s.thicksteps, s.thick, -1.0, s.mu
    if n <= 0:
        if rng < 0: n, rng, st = 1, 0.0, 0.0
        else: n, st = 2, rng / 2
    elif rng < 0: rng = 0.5e-6; st = rng / n
    else:
        if "layer-step" in s.quirks: n = max(n, 2)
        st = rng / (n - 1 if "layer-step" in s.quirks else n)
    if rng <= 0 or st <= 0 or n <= 0: n, rng, st = 1, 0.0, 0.0
    if rng > 0 and mu < 0: mu = 1 / rng
    return n, rng, st, mu


class Lattice:
    """|F|^2 of all pixels for one rotated cell; keeps what the interpolation latch needs."""

    def __init__(self, s, star):
        self.s, self.star = s, star
        self.N = [max(1, n) for n in s.N]
        self.table = None
        if s.hkl: self.table, self.low, self.high, self.count = read_hkl(s.hkl, s.default_F)

    def squared(self, h, interpolate):
        s, N = self.s, np.array(self.N, float)
        h0 = np.ceil(h - 0.5)
        if s.shape == "square":
            f = np.ones(h.shape[:-1])
            for k in range(3):
                if N[k] > 1:
                    x = math.pi * h[..., k]
                    with np.errstate(all="ignore"):
                        f = f * np.where(x == 0, N[k], np.sin(N[k] * x) / np.sin(x))
        elif s.shape == "round":
            x = math.pi * np.sqrt(s.fudge * (((h - h0) * N) ** 2).sum(-1))
            with np.errstate(all="ignore"):
                f = N.prod() * 0.723601254558268 * np.where(x == 0, 1.0, 3 * (np.sin(x) / x - np.cos(x)) / x**2)
        else:
            g = (h - h0) @ self.star
            rs = (g * g).sum(-1) * N.prod() ** 2
            f = N.prod() * (np.exp(-(rs / 0.63 * s.fudge)) if s.shape == "gauss" else (rs * s.fudge < 0.3969) * 1.0)
        F = np.full(f.shape, s.default_F)
        unsafe = np.zeros(f.shape, bool)
        if self.table is not None:
            low, high = np.array(self.low), np.array(self.high)
            inside = ((h0 >= low) & (h0 <= high)).all(-1)
            i = np.where(inside[..., None], h0 - low, 0).astype(int)
            F = np.where(inside, self.table[i[..., 0], i[..., 1], i[..., 2]], s.default_F)
            if interpolate is not False:
                size = high - low + 1
                unsafe = ((h - low + 3 > size) | (h - 2 < low)).any(-1)
                safe = ~unsafe & interpolate
                base = np.where(safe[..., None], np.floor(h), low + 1)
                t = np.where(safe[..., None], h - base, 0)
                w = np.stack([-t * (t - 1) * (t - 2) / 6, (t + 1) * (t - 1) * (t - 2) / 2,
                              -(t + 1) * t * (t - 2) / 2, (t + 1) * t * (t - 1) / 6], -1)
                i = (base - low - 1).astype(int)
                cubic = np.zeros(f.shape)
                for a in range(4):
                    for b in range(4):
                        for c in range(4):
                            cubic += w[..., 0, a] * w[..., 1, b] * w[..., 2, c] * self.table[i[..., 0] + a, i[..., 1] + b, i[..., 2] + c]
                F = np.where(safe, cubic, F)
        return F * F, f * f, unsafe & (f != 0) if s.water == 0 else unsafe


def image(words, quirks=QUIRKS):
    """The float image of a command, [slow fast] as float64. Compat c has all quirks, spec none."""
    s, first = Settings(quirks), Settings(quirks)
    first.parse(words)
    mask = None
    if first.mask: mask = take_header(s, first.mask, True)
    if first.img: take_header(s, first.img, False)
    s.parse(words)
    for k in range(2):
        if s.detpixels[k] > 0: s.detsize[k] = s.pixel * s.detpixels[k]
    F_, S_ = (math.ceil(s.detsize[k] / s.pixel - 0.5) for k in range(2))
    if s.flux != 0.0 and s.exposure > 0 and s.beamsize >= 0: s.fluence = s.flux * s.exposure / s.beamsize / s.beamsize
    if s.beamsize >= 0: s.sample[1], s.sample[2] = min(s.sample[1], s.beamsize), min(s.sample[2], s.beamsize)
    interpolate = s.interpolate if s.interpolate != 2 else int(min(s.N) <= 2)
    pix0, f, sl, o, close, distance, b, p, vert, u = place(s)
    ran = Ran1()
    if s.misset_random:
        U, _ = cap(ran, 90.0, s.misset_seed)
        if U[2, 0] ** 2 < 1:
            s.misset = [math.atan2(U[2, 1], U[2, 2]), math.atan2(-U[2, 0], math.hypot(U[2, 1], U[2, 2])), math.atan2(U[1, 0], U[0, 0])]
        else: s.misset = [math.pi, math.pi / 2, math.atan2(U[0, 1], -U[1, 1])]
    abc, star = cell_vectors(s)
    edges = [math.sqrt(v @ v) * 1e-10 for v in abc]
    for k in range(3):
        if s.sample[k] > 0: s.N[k] = math.ceil(s.sample[k] / edges[k])
        s.N[k] = max(1, s.N[k])
    abc = abc * 1e-10
    over = s.oversample
    if over <= 0: over = max(1, math.ceil(3.0 * max(edges[k] * s.N[k] for k in range(3)) / (s.lam * distance / s.pixel)))
    domains, spread = s.domains, s.mosaic
    if domains <= 0: domains, spread = (1, 0.0) if spread <= 0 else (10, spread)
    elif spread <= 0: domains, spread = 1, 0.0
    U, seed = [], s.mosaic_seed
    for i in range(domains):
        m, seed = cap(ran, spread, seed)
        U.append(np.eye(3) if i == 0 else m)
    phis, (T, thick, tstep, mu), sources = spindle(s), layers(s), make_sources(s, b, p, vert)
    J, I, M, O = len(sources), len(phis), domains, over
    lattice = Lattice(s, star)
    use = bool(interpolate) and lattice.table is not None
    S, Fa = np.mgrid[0:S_, 0:F_]
    lim = [d if v < 0 else v for v, d in zip(s.roi, (0, F_, 0, S_))]
    live = (Fa >= lim[0]) & (Fa <= lim[1]) & (S >= lim[2]) & (S <= lim[3])
    if mask is not None: live &= np.frombuffer(mask, "<u2", S_ * F_).reshape(S_, F_) != 0
    render = lambda latch: accumulate(SimpleNamespace(**scene), latch)
    scene = dict(s=s, S=S, Fa=Fa, live=live, T=T, thick=thick, tstep=tstep, mu=mu, sources=sources, phis=phis, U=U, O=O,
                     abc=abc, u=u, b=b, p=p, f=f, sl=sl, o=o, pix0=pix0, close=close, distance=distance, lattice=lattice,
                     spread=spread, steps=float(J * I * M * O * O))
    if not use: return render(None)[0]
    image_, first_bad = render(np.iinfo(np.int64).max)
    return render(first_bad)[0] if "interp-latch" in quirks else image_


def accumulate(x, latch):
    """The sum over samples (model 9). latch None: no interpolation; else samples with an index below it are interpolated."""
    s = x.s
    quirk = s.quirks.__contains__
    J, I, M, O, T = len(x.sources), len(x.phis), len(x.U), x.O, x.T
    bg = 2.57**2 * THOMSON * s.fluence * s.water**3 * 1e6 * AVOGADRO / 18
    total = np.full(x.S.shape, bg if quirk("water-scale") else 0.0)
    weights, caps = sum(w for _, _, w in x.sources), 0.0
    polar = np.full(x.S.shape, 1.0 if s.nopolar else 0.0)
    omega = np.zeros(x.S.shape)
    pix = x.S * x.S.shape[1] + x.Fa
    nonzero = [a for a in x.phis if a != 0.0]
    bad = np.iinfo(np.int64).max
    first_alive = None  # (pixel, layer, subs, subf, source) that executes first
    if x.phis[0] == 0.0 and nonzero and quirk("phi-carryover"): first_alive = find_first(x)
    for t in range(T):
        cap_ = np.full(x.S.shape, 1.0 if x.thick == 0 else 0.0)
        for ss in range(O):
            for sf in range(O):
                sub = s.pixel / O
                Fd, Sd = sub * (x.Fa * O + sf) + sub / 2, sub * (x.S * O + ss) + sub / 2
                P = Fd[..., None] * x.f + Sd[..., None] * x.sl + t * x.tstep * x.o + x.pix0
                if s.curved:
                    v = turn(np.broadcast_to(x.distance * x.b, P.shape), x.sl, P[..., 1] / x.distance)
                    P = turn(v, x.f, P[..., 2] / x.distance)
                R = np.sqrt((P * P).sum(-1))
                d = P / R[..., None]
                new = 1 / R**2 if s.point else s.pixel**2 / R**2 * x.close / R
                omega = np.where((omega == 0) | s.over["omega"], new, omega)
                if x.thick > 0 or (s.over["thick"] and quirk("last-layer")):
                    rho = d @ x.o
                    c = np.exp(-t * x.tstep * x.mu / rho) - np.exp(-(t + 1) * x.tstep * x.mu / rho)
                    cap_ = np.where((cap_ == 0) | s.over["thick"], c, cap_)
                for j, (direction, lam, weight) in enumerate(x.sources):
                    inc = -direction
                    q = (d - inc) / lam
                    stol = np.sqrt((q * q).sum(-1)) / 2
                    with np.errstate(all="ignore"):
                        alive = ~((s.dmin > 0) & (stol > 0) & (s.dmin > 0.5 / stol))
                    c2 = d @ inc
                    k2 = 0.0
                    if s.kahn != 0:
                        B = unit(np.cross(x.p, inc)); Ev = unit(np.cross(inc, B))
                        k2 = s.kahn * np.cos(2 * -np.arctan2(d @ B, d @ Ev)) * (1 - c2**2)
                    pol = (1 + c2**2 - k2) / 2
                    if not s.nopolar or (s.over["polar"] and quirk("nopolar-undone")):
                        polar = np.where(alive & ((polar == 0) | s.over["polar"]), pol, polar)
                    for i, angle in enumerate(x.phis):
                        if angle != 0.0 or not quirk("phi-carryover"): eff = angle
                        elif i > 0: eff = x.phis[i - 1]
                        else: eff = nonzero[-1] if nonzero else 0.0
                        for m in range(M):
                            n0 = (((((pix * T + t) * O + ss) * O + sf) * J + j) * I + i) * M + m
                            h = hkl_of(x, eff, m, q)
                            if i == 0 and first_alive is not None and first_alive[1:] == (t, ss, sf, j):
                                one = hkl_of(x, 0.0, m, q)
                                h = np.where((pix == first_alive[0])[..., None], one, h)
                            FF, ff, unsafe = x.lattice.squared(h, False if latch is None else n0 < latch)
                            if latch is not None:
                                hit = n0[unsafe & alive & x.live]
                                if hit.size: bad = min(bad, int(hit.min()))
                            run = alive & ((ff != 0) | (s.water != 0))
                            term = FF * ff * (1 if quirk("equal-weights") else J * weight / weights)
                            factors = [(n, by) for n, by in (("thick", cap_), ("polar", polar), ("omega", omega)) if s.over[n]]
                            if not quirk("last-layer"): term = term * cap_
                            if not quirk("running-sum"):
                                for name, by in factors:
                                    if name != "thick" or quirk("last-layer"): term = term * by
                            total = np.where(run, total + term, total)
                            if quirk("running-sum"):
                                for name, by in factors:
                                    if name != "thick" or quirk("last-layer"): total = np.where(run, total * by, total)
        caps = caps + cap_
    val = THOMSON * s.fluence * total / x.steps
    for name, by in (("thick", cap_), ("polar", polar), ("omega", omega)):
        if not s.over[name] and (name != "thick" or quirk("last-layer")): val = val * by
    if not quirk("water-scale"): val = val + bg * polar * omega * caps
    return np.where(x.live, val, 0.0), bad


def hkl_of(x, angle, m, q):
    cell = x.abc if angle == 0.0 else turn(x.abc, x.u, angle)
    if x.spread > 0: cell = cell @ x.U[m].T
    return q @ cell.T


def find_first(x):
    s = x.s
    rows, cols = np.nonzero(x.live)
    for S, F in zip(rows, cols):
        for t in range(x.T):
            for ss in range(x.O):
                for sf in range(x.O):
                    sub = s.pixel / x.O
                    P = (sub * (F * x.O + sf) + sub / 2) * x.f + (sub * (S * x.O + ss) + sub / 2) * x.sl + t * x.tstep * x.o + x.pix0
                    if s.curved: P = turn(turn(x.distance * x.b, x.sl, P[1] / x.distance), x.f, P[2] / x.distance)
                    d = P / math.sqrt(P @ P)
                    for j, (direction, lam, _) in enumerate(x.sources):
                        q = (d + direction) / lam
                        stol = math.sqrt(q @ q) / 2
                        if not (s.dmin > 0 and stol > 0 and s.dmin > 0.5 / stol):
                            return (int(S) * x.S.shape[1] + int(F), t, ss, sf, j)
    return None
