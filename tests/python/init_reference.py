# init_reference.py - start values by NNDSVD from the golden counts, printed as the tables of
# tests/unit/test_spatial_init.c.
#
# Run by hand (python3 tests/python/init_reference.py) when they have to be made again. The singular
# vectors are those of LAPACK, whole; the rest is written from the equations.
import numpy as np

Y = np.load("tests/golden/spatial/data.npz")["Y"].astype(float)
L = 3


def parts(Y, L):
    U, S, V = np.linalg.svd(Y, full_matrices=False)
    U = U * S  # as the reference feeds it
    F, W = np.zeros((len(Y), L)), np.zeros((Y.shape[1], L))
    F[:, 0], W[:, 0] = np.sqrt(S[0]) * abs(U[:, 0]), np.sqrt(S[0]) * abs(V[0])
    for j in range(1, L):
        best = None
        for sign in (1, -1):
            x, y = np.maximum(sign * U[:, j], 0), np.maximum(sign * V[j], 0)
            sigma = np.linalg.norm(x) * np.linalg.norm(y)
            if best is None or sigma > best[0]:
                best = sigma, x / np.linalg.norm(x), y / np.linalg.norm(y)
        sigma, x, y = best
        F[:, j], W[:, j] = np.sqrt(S[j] * sigma) * x, np.sqrt(S[j] * sigma) * y
    F[F < 1e-6] = 0
    W[W < 1e-6] = 0
    return F, W


def rescale(F0, W0):
    z = np.log(F0 + 1e-8)
    if z.std() >= 1e-6:
        z = (z - z.mean()) / z.std()
    F1 = np.exp(z)
    return F1, W0 / (F1.mean() / (F0.mean() + 1e-12))


for name in ("nndsvd", "nndsvda"):
    F, W = parts(Y, L)
    if name == "nndsvda":
        F[F == 0] = Y.mean()
        W[W == 0] = Y.mean()
    F1, W = rescale(F, W)
    mean = np.log(F1.T + 1e-8)
    print(f"static const double {name}_W[GENES * L] = {{" +
          ", ".join(f"{x:.15g}" for x in W.ravel()) + "};")
    print(f"static const double {name}_mean[L][6] = {{ /* of cells 0, 50, 100.. */")
    for row in mean[:, ::50]:
        print("    {" + ", ".join(f"{x:.15g}" for x in row) + "},")
    print("};")
