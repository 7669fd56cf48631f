"""How far a reconstruction is from the truth once it lies on it: what ptychography cannot know is taken off."""
import numpy as np


def error(found, origin, truth, rows, cols):
    """Relative difference within rows and cols of the truth, after the shift, the phase ramp and the complex factor that
    make it least: Gauss-Newton from no shift. Pixel (0, 0) of what was found is at origin (y, x) of the truth."""
    y, x = np.meshgrid(np.arange(*rows), np.arange(*cols), indexing="ij")
    window = np.ix_(y[:, 0] - int(origin[0]), x[0] - int(origin[1]))
    want, y, x = truth[y, x].astype(complex), y - y.mean(), x - x.mean()
    fy, fx = np.fft.fftfreq(found.shape[0])[:, None], np.fft.fftfreq(found.shape[1])
    spectrum, shift, ramp = np.fft.fft2(found), np.zeros(2), np.zeros(2)
    for _ in range(100):
        moved = spectrum * np.exp(-2j * np.pi * (fy * shift[0] + fx * shift[1]))
        turned = np.exp(1j * (ramp[0] * y + ramp[1] * x))
        f, dy, dx = (np.fft.ifft2(moved * d)[window] * turned for d in (1, 2j * np.pi * fy, 2j * np.pi * fx))
        factor = np.vdot(f, want) / np.vdot(f, f)
        rest = want - factor * f
        a = factor * np.stack([-dy, -dx, 1j * y * f, 1j * x * f, f, 1j * f], -1).reshape(-1, 6)
        step = np.linalg.lstsq(np.concatenate([a.real, a.imag]), np.concatenate([rest.real, rest.imag]).ravel(), rcond=None)[0]
        shift += step[:2] * min(1, 0.5 / max(np.abs(step[:2]).max(), 1e-9))
        ramp += step[2:4]
        if np.abs(step[:4]).max() < 1e-6:
            return np.linalg.norm(rest) / np.linalg.norm(want)
    raise AssertionError("the object that was found cannot be laid on the truth")
