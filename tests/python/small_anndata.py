"""As much of the package anndata as tests of fathom.spatial need, where it is not installed: objects with X, layers, obs,
obsm, var, var_names, varm and uns, read from h5ad files as `fathom spatial toy` writes them."""
import numpy as np


class Sparse:
    """A SciPy matrix, as far as it is looked at."""

    def __init__(self, format, data, indices, indptr, shape):
        self.format, self.data, self.indices, self.indptr = format, data, indices, indptr
        self.shape = tuple(int(n) for n in shape)

    def toarray(self):
        out = np.zeros(self.shape if self.format == "csr" else self.shape[::-1], self.data.dtype)
        for i in range(len(out)):
            part = slice(self.indptr[i], self.indptr[i + 1])
            np.add.at(out[i], self.indices[part], self.data[part])
        return out if self.format == "csr" else out.T

    def tocsr(self):
        return self if self.format == "csr" else sparse(self.toarray())


def sparse(dense, format="csr"):
    dense = np.asarray(dense)
    lines = dense if format == "csr" else dense.T
    at, indices = np.nonzero(lines)
    indptr = np.searchsorted(at, np.arange(len(lines) + 1))
    return Sparse(format, lines[at, indices], indices.astype(np.int32), indptr.astype(np.int32), dense.shape)


class Categorical:
    """A categorical column of pandas, as far as it is looked at; compares and lists like an array of its labels."""

    def __init__(self, codes, categories):
        self.codes, self.categories, self.cat = np.asarray(codes), list(categories), self

    def __array__(self, dtype=None):
        return np.array([self.categories[c] if c >= 0 else None for c in self.codes], dtype=dtype or object)

    def __eq__(self, other):
        return np.asarray(self) == other

    def __len__(self):
        return len(self.codes)


class Aligned(dict):
    """Arrays with a row for each cell or gene; anndata refuses others, too."""

    def __init__(self, n, values):
        self.n = n
        super().__init__(values)

    def __setitem__(self, key, value):
        if len(value) != self.n:
            raise ValueError(f"'{key}' has {len(value)} rows, not {self.n}")
        super().__setitem__(key, value)


class AnnData:
    isbacked, is_view, filename = False, False, None

    def __init__(self, X, obs=None, obsm=None, var_names=None, obs_names=None):
        self.shape = tuple(int(n) for n in X.shape)
        self.X, self.obs, self.layers, self.uns = X, dict(obs or {}), {}, {}
        self.var = Aligned(self.shape[1], {})
        self.obsm, self.varm = Aligned(self.shape[0], obsm or {}), Aligned(self.shape[1], {})
        self.n_obs, self.n_vars = self.shape
        self.var_names = np.array(var_names if var_names is not None else [f"g{i}" for i in range(self.n_vars)])
        self.obs_names = np.array(obs_names if obs_names is not None else [f"c{i}" for i in range(self.n_obs)])


def read_h5ad(path, backed=None):
    import h5py
    with h5py.File(path) as f:
        def texts(name):
            return [t.decode() for t in f[name][:]]
        x = f["X"]
        parts = [None if backed else x[name][:] for name in ("data", "indices", "indptr")]
        codes, categories = f["obs/group/codes"][:], texts("obs/group/categories")
        out = AnnData(Sparse("csr", *parts, x.attrs["shape"]), {"group": Categorical(codes, categories)},
                      {"spatial": f["obsm/spatial"][:]}, texts("var/" + f["var"].attrs["_index"]),
                      texts("obs/" + f["obs"].attrs["_index"]))
    if backed:
        out.X, out.isbacked, out.filename = None, True, path
    return out
