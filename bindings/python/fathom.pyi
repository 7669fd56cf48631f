# fathom.pyi - types of fathom.py, for editors and type checkers.
# Made by tools/gen_stub (make docs) from fathom.py: change that.
import os
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

__version__: str
DTYPES: dict[str, tuple[int, str, int]]

Axes = Union[str, Sequence[str]]
Number = Union[bool, int, float, complex, np.generic]
Operand = Union[Value, Number]
Size = Union[int, str, None]
Path = Union[str, os.PathLike[str]]
Data = Union[np.ndarray[Any, Any], Tensor, Source, Path, tuple[Path, str], Any]
Into = Union[np.ndarray[Any, Any], Path, tuple[Path, str], Callable[[tuple[int, ...], np.ndarray[Any, Any]], Any]]
DType = Union[str, type[Any], np.dtype[Any]]


class Place(NamedTuple):
    """A line of a program: its file and number."""
    file: str
    line: int


class Frame(NamedTuple):
    """A line of the library that an error passed, and what was being done there."""
    file: str
    line: int
    note: str


class Error(Exception):
    """What the library refused. `text` is what was wanted and found, `hint` one thing to do; `status` is a
    name like "AXIS_MISMATCH", `code` like "FTH-AXIS-003" (docs/errors.md), `exit_code` what the program
    would end with; `site` is the line of your program, `frames` where the library was."""
    status: str
    code: str
    exit_code: int
    text: str
    hint: str
    site: Place
    frames: tuple[Frame, ...]
    def __init__(self, text: str, status: str = 'USAGE', hint: Optional[str] = None, site: Optional[Place] = None, frames: Iterable[Frame] = ()) -> None: ...


class Context:
    """Memory budget, workers and device; shared by graphs."""
    trace: Optional[Trace]
    def __init__(self, memory: Size = None, threads: int = 0, device: Optional[str] = None, scratch: Optional[Path] = None, trace: Optional[Trace] = None, log: Optional[Callable[[str, str], Any]] = None, log_level: str = 'info', device_memory: Size = None, plain_products: bool = False, cache: Optional[Path] = None) -> None:
        """memory="8G" is for everything: data, and what libraries may take (default: 90 % of what is
        free); threads, 0: one per core; device "cpu", "cuda", "cuda:1" or "auto", and
        device_memory="8G" the budget there; scratch is a folder for what is spilled. `trace` is a
        Trace; log(level, line) gets lines up to log_level: "error", "warn", "info" or "debug". With
        plain_products a GPU makes products of f32 without its matrix units. In the folder `cache` are
        kernels compiled for a GPU, and the rates of this machine that `fathom doctor --calibrate`
        measured; by default the program's, $XDG_CACHE_HOME/fathom or ~/.cache/fathom."""
        ...
    @property
    def device(self) -> str:
        """Where runs compute: "cpu" or "cuda:0"."""
        ...
    @property
    def device_reason(self) -> str:
        """Why that device: "auto: this build has no CUDA backend"."""
        ...
    @property
    def threads(self) -> int:
        """How many workers a run has."""
        ...
    def tensor(self, shape: Union[int, Sequence[int]], dtype: DType = 'f32', label: str = 'tensor') -> Tensor:
        """A block of the budget, of a shape and dtype, named `label` in messages; np.asarray(t) and any
        DLPack consumer see its memory."""
        ...
    def close(self) -> None:
        """Destroy now; raises LEAK, and destroys nothing, while tensors, graphs or batches live."""
        ...


class Trace:
    """A timeline of runs for Perfetto or chrome://tracing; its file never passes max_bytes."""
    def __init__(self, max_bytes: Size = 0) -> None:
        """max_bytes="64M" bounds the file; 0: the default of the library."""
        ...
    def write(self, path: Path) -> None:
        """Save at `path`: JSON, whole or not at all; packed when the name ends in ".gz"."""
        ...


class Tensor:
    """Memory of the library's, with a shape. Context.tensor makes one."""
    context: Context
    shape: tuple[int, ...]
    dtype: str
    def __init__(self, context: Context, shape: Union[int, Sequence[int]], dtype: DType = 'f32', label: str = 'tensor') -> None: ...
    def numpy(self) -> np.ndarray[Any, Any]:
        """An array over the same memory."""
        ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(self, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None) -> Any: ...


class Source:
    """Data made or fetched when asked for. `read(lo, n)` returns the rectangle [lo, lo+n);
    `read_rows(index)`, for Batches, those rows of the first axis: without it, read serves."""
    shape: tuple[int, ...]
    dtype: DType
    read: Callable[[tuple[int, ...], tuple[int, ...]], Any]
    read_rows: Optional[Callable[[np.ndarray[Any, Any]], Any]]
    def __init__(self, shape: Sequence[int], dtype: DType, read: Callable[[tuple[int, ...], tuple[int, ...]], Any], read_rows: Optional[Callable[[np.ndarray[Any, Any]], Any]] = None) -> None: ...


class Batches:
    """Mini-batches of the rows of `data`, read one step ahead by a thread of the library's. `data`
    is whatever Graph.input takes; `rows` is the most a batch can have; `bytes` is what the two
    buffers take from the budget. Between an ask and its take nobody else may use the data.

        b = fathom.Batches(context, data, rows=256)
        b.ask(order[0])
        x = g.input("x", b.take(), "row col")
        plan = ...
        for rows in order[1:]:
            b.ask(rows)          # is read while the plan runs
            plan.run()
            x.set(b.take())"""
    bytes: int
    def __init__(self, context: Context, data: Data, rows: int, dtype: Optional[DType] = None) -> None: ...
    def ask(self, index: Any) -> None:
        """Start reading the rows `index`, in this order. The batch before stays until this one is
        taken."""
        ...
    def take(self) -> np.ndarray[Any, Any]:
        """Wait for the batch asked for: an array over memory of the library's, as it is until the
        next take. What went wrong while reading is raised here."""
        ...


class Value:
    """A handle into a graph. Arithmetic and comparisons build; numbers take the value's dtype. Builders
    that start with a value are methods too: v.exp(), v.sum("axis"), a.dot(b, "axis"). Of == and != only
    v == None stays Python's, False; arrays, lists and text are refused."""
    graph: Graph
    id: int
    def __init__(self, graph: Graph, id: int) -> None: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any: ...
    @property
    def dtype(self) -> str:
        """The name of its dtype: "f32"."""
        ...
    @property
    def axes(self) -> tuple[str, ...]:
        """Names of its axes, outermost first."""
        ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its axes, as its array will have them."""
        ...
    def __add__(self, other: Operand) -> Value: ...
    def __radd__(self, other: Operand) -> Value: ...
    def __sub__(self, other: Operand) -> Value: ...
    def __rsub__(self, other: Operand) -> Value: ...
    def __mul__(self, other: Operand) -> Value: ...
    def __rmul__(self, other: Operand) -> Value: ...
    def __truediv__(self, other: Operand) -> Value: ...
    def __rtruediv__(self, other: Operand) -> Value: ...
    def __floordiv__(self, other: Operand) -> Value: ...
    def __rfloordiv__(self, other: Operand) -> Value: ...
    def __mod__(self, other: Operand) -> Value: ...
    def __rmod__(self, other: Operand) -> Value: ...
    def __rpow__(self, other: Operand) -> Value: ...
    def __and__(self, other: Operand) -> Value: ...
    def __rand__(self, other: Operand) -> Value: ...
    def __or__(self, other: Operand) -> Value: ...
    def __ror__(self, other: Operand) -> Value: ...
    def __xor__(self, other: Operand) -> Value: ...
    def __rxor__(self, other: Operand) -> Value: ...
    def __eq__(self, other: Operand) -> Value: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> Value: ...  # type: ignore[override]
    def __lt__(self, other: Operand) -> Value: ...
    def __le__(self, other: Operand) -> Value: ...
    def __gt__(self, other: Operand) -> Value: ...
    def __ge__(self, other: Operand) -> Value: ...
    def __pow__(self, other: Operand) -> Value: ...
    def __neg__(self) -> Value: ...
    def __abs__(self) -> Value: ...
    def __invert__(self) -> Value: ...
    def __hash__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def sum(self, axes: Optional[Axes] = None) -> Value:
        """Sum over `axes`, over all where none are given. Of bool and integers i64; f16, bf16 and f32 are
        added up in f64 along an axis, and rounded before the next one: merge them to add up at once.

        dtypes: all; gradient: yes"""
        ...
    def prod(self, axes: Optional[Axes] = None) -> Value:
        """Product over `axes`, over all where none are given. Of bool and integers i64.

        dtypes: all; gradient: yes"""
        ...
    def min(self, axes: Optional[Axes] = None) -> Value:
        """Smallest element over `axes`, over all where none are given; NaN if any is.

        dtypes: integers reals; gradient: yes"""
        ...
    def max(self, axes: Optional[Axes] = None) -> Value:
        """Largest element over `axes`, over all where none are given; NaN if any is.

        dtypes: integers reals; gradient: yes"""
        ...
    def any(self, axes: Optional[Axes] = None) -> Value:
        """Whether any element over `axes` holds, over all where none are given. Of bool: write the
        comparison.

        dtypes: bool; gradient: yes"""
        ...
    def all(self, axes: Optional[Axes] = None) -> Value:
        """Whether every element over `axes` holds, over all where none are given. Of bool: write the
        comparison.

        dtypes: bool; gradient: yes"""
        ...
    def slice(self, axis: str, start: int, into: str) -> Value:
        """As many elements along `axis` as the axis `into` has, from `start` on. Also fathom.slice_axis."""
        ...
    def label(self, text: str) -> Value:
        """Name the value `text` in plans and messages; returns it."""
        ...
    def out(self, i: int) -> Value:
        """Output i of the operation that made this value."""
        ...
    def numpy(self, **limits: Any) -> np.ndarray[Any, Any]:
        """Plan and run just this value: an array. `limits` are those of Graph.plan."""
        ...
    def show(self, rows: int = 10) -> str:
        """Plan and run just this value; its first `rows` rows as text."""
        ...
    def item(self) -> Any:
        """The number of a value without axes, planned and run."""
        ...
    def neg(self) -> Value:
        """-v

        dtypes: integers reals complex; gradient: yes"""
        ...
    def abs(self) -> Value:
        """|v|; of complex numbers real.

        dtypes: integers reals complex; gradient: yes"""
        ...
    def sqr(self) -> Value:
        """v * v

        dtypes: integers reals complex; gradient: yes"""
        ...
    def sqrt(self) -> Value:
        """The square root.

        dtypes: reals complex; gradient: yes"""
        ...
    def rsqrt(self) -> Value:
        """1 / sqrt(v)

        dtypes: reals; gradient: yes"""
        ...
    def recip(self) -> Value:
        """1 / v

        dtypes: reals complex; gradient: yes"""
        ...
    def exp(self) -> Value:
        """e to the power of v.

        dtypes: reals complex; gradient: yes"""
        ...
    def expm1(self) -> Value:
        """exp(v) - 1, exact near 0.

        dtypes: reals; gradient: yes"""
        ...
    def log(self) -> Value:
        """The natural logarithm.

        dtypes: reals complex; gradient: yes"""
        ...
    def log1p(self) -> Value:
        """log(1 + v), exact near 0.

        dtypes: reals; gradient: yes"""
        ...
    def sin(self) -> Value:
        """The sine of v in radians.

        dtypes: reals; gradient: yes"""
        ...
    def cos(self) -> Value:
        """The cosine of v in radians.

        dtypes: reals; gradient: yes"""
        ...
    def tanh(self) -> Value:
        """The hyperbolic tangent.

        dtypes: reals; gradient: yes"""
        ...
    def sigmoid(self) -> Value:
        """1 / (1 + exp(-v))

        dtypes: reals; gradient: yes"""
        ...
    def softplus(self) -> Value:
        """log(1 + exp(v)), without overflow.

        dtypes: reals; gradient: yes"""
        ...
    def relu(self) -> Value:
        """max(v, 0); NaN stays NaN.

        dtypes: reals; gradient: yes"""
        ...
    def lgamma(self) -> Value:
        """The logarithm of |gamma(v)|.

        dtypes: reals; gradient: yes"""
        ...
    def digamma(self) -> Value:
        """The derivative of lgamma.

        dtypes: reals; gradient: yes"""
        ...
    def trigamma(self) -> Value:
        """The derivative of digamma.

        dtypes: reals; gradient: no"""
        ...
    def erf(self) -> Value:
        """The error function.

        dtypes: reals; gradient: yes"""
        ...
    def floor(self) -> Value:
        """The largest whole number up to v.

        dtypes: reals; gradient: no"""
        ...
    def ceil(self) -> Value:
        """The least whole number from v on.

        dtypes: reals; gradient: no"""
        ...
    def round(self) -> Value:
        """The nearest whole number, halves to the even one.

        dtypes: reals; gradient: no"""
        ...
    def sign(self) -> Value:
        """-1, 0 or 1; of complex numbers v / |v|.

        dtypes: integers reals complex; gradient: yes"""
        ...
    def isnan(self) -> Value:
        """Whether v is NaN, bool.

        dtypes: reals complex; gradient: no"""
        ...
    def isfinite(self) -> Value:
        """Whether v is neither infinite nor NaN, bool.

        dtypes: reals complex; gradient: no"""
        ...
    def conj(self) -> Value:
        """The complex conjugate; reals as they are.

        dtypes: reals complex; gradient: yes"""
        ...
    def real(self) -> Value:
        """The real part.

        dtypes: complex; gradient: yes"""
        ...
    def imag(self) -> Value:
        """The imaginary part.

        dtypes: complex; gradient: yes"""
        ...
    def arg(self) -> Value:
        """The angle of a complex number, from -pi to pi.

        dtypes: complex; gradient: yes"""
        ...
    def abs2(self) -> Value:
        """|v| squared, real.

        dtypes: reals complex; gradient: yes"""
        ...
    def expand(self, axes: Axes) -> Value:
        """Repeat v along new axes, which come outermost, in their order.

        axes: new axes, "y x" or ["y", "x"], declared before
        dtypes: all; gradient: yes"""
        ...
    def rename(self, old: Axes, new: Axes) -> Value:
        """Other names for axes: rename(v, "a b", "c d").

        old: axes of v, "y x" or ["y", "x"]
        new: as many declared axes of the same sizes
        dtypes: all; gradient: yes"""
        ...
    def layout(self, axes: Axes) -> Value:
        """The same axes in this order in memory.

        axes: all axes of v in the order that is wanted
        dtypes: all; gradient: yes"""
        ...
    def merge(self, axes: Axes, into: str) -> Value:
        """One axis of several: merge(v, "group chan", "patch"). split undoes it.

        axes: axes of v, neighbours in this order
        into: their product, declared before
        dtypes: all; gradient: yes"""
        ...
    def mark(self, triangle: str, row: str, col: str) -> Value:
        """Say that v is "lower" or "upper" triangular over (row, col).

        triangle: "lower" or "upper"
        row: axis of the rows
        col: axis of the columns
        dtypes: all; gradient: yes"""
        ...
    def stop_gradient(self) -> Value:
        """The value itself; no gradient flows back through it.

        dtypes: all; gradient: yes"""
        ...
    def mean(self, axes: Optional[Axes] = None) -> Value:
        """Mean: the sum, in the dtype of v, divided; cast integers, and f32 of which the sum is
        infinite, to f64 first.

        axes: axes of v, "y x" or ["y", "x"]; all where none are given
        dtypes: reals complex; gradient: yes"""
        ...
    def count(self, axes: Optional[Axes] = None) -> Value:
        """How many elements are not zero, i64.

        axes: axes of v, "y x" or ["y", "x"]; all where none are given
        dtypes: all; gradient: yes"""
        ...
    def variance(self, axes: Optional[Axes] = None) -> Value:
        """Mean squared distance from the mean: divided by n, not n-1.

        axes: axes of v, "y x" or ["y", "x"]; all where none are given
        dtypes: reals; gradient: yes"""
        ...
    def histogram(self, axis: str, bin_axis: str, lo: float, hi: float) -> Value:
        """Counts in equal bins of [lo, hi), i64 [.. bin_axis].

        axis: an axis of v; of several, merge them first
        bin_axis: axis of the bins: its size is how many there are
        lo: where the first bin begins
        hi: where the last bin ends; what lies outside is not counted, nor is hi itself, which NumPy
            counts
        dtypes: integers reals; gradient: no"""
        ...
    def gather(self, axis: str, index: Value) -> Value:
        """out[..i..] = v[..index[i]..]

        axis: an axis of v
        index: i32, u32 or i64; its axes take the place of the axis, those that v has too are batches
        dtypes: all; gradient: yes"""
        ...
    def column(self, axis: str, at: int) -> Value:
        """Element `at` of an axis, without that axis.

        axis: an axis of v
        at: which element of the axis: from 0 to its size less one
        dtypes: all; gradient: yes"""
        ...
    def scatter_add(self, axis: Axes, index: Value, into: str) -> Value:
        """out[..index[i]..] += v[..i..]

        axis: the axis of the index, or several of them, outermost first
        index: i32, u32 or i64: where each row goes
        into: axis of the sums, declared before
        dtypes: all; gradient: yes"""
        ...
    def compact(self, axis: str, mask: Value, into: str) -> Value:
        """Rows of v where the mask holds; the size of `into` must be their count.

        axis: an axis of v
        mask: bool, over the axis
        into: an axis of the size that the result has, declared before
        dtypes: all; gradient: yes"""
        ...
    def spread(self, entries: str) -> Value:
        """Entries take the value of the row that owns them.

        entries: an axis of Graph.axis_ragged
        dtypes: all; gradient: yes"""
        ...
    def collect(self, entries: str) -> Value:
        """Rows get the sum of the entries they own.

        entries: an axis of Graph.axis_ragged
        dtypes: all; gradient: yes"""
        ...
    def slice_step(self, axis: str, start: int, step: int, into: str) -> Value:
        """Every `step`th element from `start` on.

        axis: an axis of v
        start: the first element
        step: how far it is to the next
        into: an axis of as many elements as are wanted, declared before
        dtypes: all; gradient: yes"""
        ...
    def window(self, axis: str, lo: int, tap: str, border: str = 'zero') -> Value:
        """Neighbours along an axis as a new one: out[.. x t] = v[x + t - lo].

        axis: an axis of v
        lo: how many elements before x the window begins
        tap: axis of the window: its size is how many elements it has
        border: what lies beyond the ends: "zero", "clamp", "reflect", "mirror" or "wrap"
        dtypes: all; gradient: yes"""
        ...
    def correlate(self, axes: Axes, weights: Value, taps: Axes, border: str = 'zero') -> Value:
        """Sum over the taps of v[x + t - n/2] weights[t], for each axis with its taps.

        axes: axes of v, "y x" or ["y", "x"]
        weights: a value over the taps
        taps: an axis of the weights for each of the axes
        border: what lies beyond the ends: "zero", "clamp", "reflect", "mirror" or "wrap"
        dtypes: all; gradient: yes"""
        ...
    def flip(self, axis: str) -> Value:
        """The last element first.

        axis: an axis of v
        dtypes: all; gradient: yes"""
        ...
    def roll(self, axis: str, by: int) -> Value:
        """out[i + by] = v[i], around the end.

        axis: an axis of v
        by: how far; may be negative
        dtypes: all; gradient: yes"""
        ...
    def searchsorted(self, axis: str, v: Value, right: bool = False) -> Value:
        """How many along the axis, which ascends, come before each element of v, i64.

        sorted: what is searched
        axis: axis of `sorted`; others that both have are batches
        v: what is looked up, of the same dtype
        right: count those that are equal, too
        dtypes: bool integers reals; gradient: no"""
        ...
    def quantile(self, axis: str, q: float) -> Value:
        """Between the sorted elements next to it, as numpy.quantile.

        axis: an axis of v
        q: from 0 to 1
        dtypes: integers reals; gradient: yes"""
        ...
    def upsample(self, axis: str, factor: int, into: str) -> Value:
        """Repeat each element `factor` times.

        axis: an axis of v
        factor: how often each element is repeated
        into: an axis of the size that the result has, declared before
        dtypes: all; gradient: yes"""
        ...
    def dot(self, b: Value, axes: Axes) -> Value:
        """Sum of a*b over the axes; others that both have are batches.

        a: its own axes take the place of the first summed one in the result
        b: its axes are those of the result
        axes: axes that both have
        dtypes: reals complex; gradient: yes"""
        ...
    def dot_triangle(self, b: Value, axes: Axes, triangle: str, row: str, col: str) -> Value:
        """A dot of which only the "lower" or "upper" triangle over (row, col) is wanted.

        axes: axes that both have
        triangle: "lower" or "upper"
        row: axis of the rows
        col: axis of the columns
        dtypes: reals complex; gradient: yes"""
        ...
    def cholesky(self, row: str, col: str) -> Value:
        """The lower factor of positive definite matrices, marked as lower; only the lower triangle of a
        is read.

        row: axis of the rows
        col: axis of the columns
        dtypes: f32 f64 complex; gradient: yes"""
        ...
    def clip(self, lo: float, hi: float) -> Value:
        """min(max(v, lo), hi); an infinite end is none.

        lo: the least number; -math.inf: none
        hi: the largest number; math.inf: none. Of i64 any i64

        dtypes: integers reals; gradient: yes"""
        ...
    def pad(self, axis: str, before: int, into: str, value: float = 0.0) -> Value:
        """Longer along an axis, by elements of one value.

        axis: an axis of v
        before: elements before the first; as many after the last as `into` has room for
        into: an axis of the size that the result has, declared before
        value: what they are; of i64 any i64

        dtypes: all; gradient: yes"""
        ...
    def cast(self, dtype: DType) -> Value:
        """v with another dtype, "f32" or np.float32: the only way to change one. Real to integer truncates, and
        NaN or a number out of range fails the run; to bool it gives v != 0.

        dtypes: bool integers reals; gradient: yes"""
        ...
    def split(self, axis: str, into: Optional[Axes] = None) -> Value:
        """Undo a merge: `axis` becomes the axes that were merged, or the axes `into` of the same sizes.

        dtypes: all; gradient: yes"""
        ...
    def logsumexp(self, axes: Optional[Axes] = None) -> Value:
        """log of the sum of exp(v) over `axes`, over all where none are given; nothing overflows.

        dtypes: reals; gradient: yes"""
        ...
    def argmin(self, axis: Optional[str] = None) -> Value:
        """Position of the smallest element along `axis`, i64; the first of equals, that of the first NaN if there
        is one. A value with one axis needs no name.

        dtypes: bool integers reals; gradient: no"""
        ...
    def argmax(self, axis: Optional[str] = None) -> Value:
        """Position of the largest element along `axis`, i64; the first of equals, that of the first NaN if there
        is one. A value with one axis needs no name.

        dtypes: bool integers reals; gradient: no"""
        ...
    def scan(self, axis: str, reduction: str = 'sum', exclusive: bool = False, reverse: bool = False) -> Value:
        """Running `reduction` ("sum", "prod", "min" or "max") along `axis`; `exclusive` leaves each element itself
        out, `reverse` goes from the end. Gradients are of sums.

        dtypes: all; gradient: yes"""
        ...
    def cumsum(self, axis: str) -> Value:
        """Running sum along `axis`.

        dtypes: all; gradient: yes"""
        ...
    def eigh(self, row: str, col: str) -> tuple[Value, Value]:
        """(values, vectors) of symmetric or Hermitian matrices over (row, col), of at most 64 rows; the lower
        triangle is read. Values ascend along `row`; vector `row` has its components along `col`, norm 1, and
        its largest component positive.

        dtypes: f32 f64 complex; gradient: yes"""
        ...
    def inverse(self, row: str, col: str) -> tuple[Value, Value]:
        """(inverse, log |determinant|) of matrices over (row, col), of at most 64 rows.

        dtypes: f32 f64 complex; gradient: yes"""
        ...
    def sort(self, axis: str, descending: bool = False) -> tuple[Value, Value]:
        """(sorted along `axis`, the order as i64): stable, from small to large or `descending`; NaN last.

        dtypes: bool integers reals; gradient: yes"""
        ...
    def topk(self, axis: str, into: str, largest: bool = True) -> tuple[Value, Value]:
        """(the largest or smallest along `axis`, in order; their positions as i64); the size of the axis `into`
        is how many. With largest=False the smallest. NaN comes last.

        dtypes: bool integers reals; gradient: yes"""
        ...
    def collect_max(self, entries: str) -> tuple[Value, Value]:
        """(largest entry of each row, its position along the axis `entries` as i64); -inf and -1 for a row
        without entries, NaN if any entry is.

        dtypes: bool integers reals; gradient: yes"""
        ...
    def collect_min(self, entries: str) -> tuple[Value, Value]:
        """(smallest entry of each row, its position along the axis `entries` as i64); inf and -1 for a row
        without entries, NaN if any entry is.

        dtypes: bool integers reals; gradient: yes"""
        ...
    def scatter(self, axis: Axes, index: Value, into: str, how: str = 'set', fill: float = 0.0) -> Value:
        """out[..index[i]..] = v[..i..], the last i; with how="min" or "max" the smallest or largest of them. `axis`
        is that of `index`, or several, outermost first; the axis `into` takes its place. Rows begin as
        `fill`, which the dtype must hold and which takes part in a minimum or maximum; math.inf is the last
        number of integers, -math.inf the first. Of i64 it is any i64.

        dtypes: all; gradient: yes"""
        ...
    def median(self, axis: str) -> Value:
        """Median along `axis`, between the two middle elements, as numpy.median; NaN if any is.

        dtypes: integers reals; gradient: yes"""
        ...
    def fft(self, axes: Axes, into: Axes) -> Value:
        """Discrete Fourier transform over one to three `axes` of v, "x", "y x" or "z y x"; the axes `into`, of
        the same sizes, take their place. Of complex numbers: cast reals, or write rfft.

        dtypes: complex; gradient: yes"""
        ...
    def ifft(self, axes: Axes, into: Axes) -> Value:
        """Inverse of fft, from `axes` to the axes `into`, divided by the number of points.

        dtypes: complex; gradient: yes"""
        ...
    def rfft(self, axes: Axes, into: Axes) -> Value:
        """Transform of reals over `axes`; the last axis of `into` has n//2 + 1 elements.

        dtypes: f32 f64; gradient: yes"""
        ...
    def irfft(self, axes: Axes, into: Axes) -> Value:
        """Inverse of rfft, from `axes` to the axes `into`: the last of `axes` has n//2 + 1 elements for the n of
        `into`. Divided by the number of points.

        dtypes: complex; gradient: yes"""
        ...
    def pool_mean(self, axis: str, factor: int, into: str) -> Value:
        """Mean of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
        elements.

        dtypes: reals complex; gradient: yes"""
        ...
    def pool_sum(self, axis: str, factor: int, into: str) -> Value:
        """Sum of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
        elements.

        dtypes: reals complex; gradient: yes"""
        ...
    def pool_max(self, axis: str, factor: int, into: str) -> Value:
        """Maximum of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
        elements.

        dtypes: integers reals; gradient: yes"""
        ...


class Param(Value):
    """A named block that a run may change (Graph.param); `array` is its memory."""
    name: str
    array: np.ndarray[Any, Any]


class Input(Value):
    """Data from outside (Graph.input)."""
    name: str
    def set(self, data: Data) -> None:
        """Other `data` of the same dtype and sizes for the next runs: the next batch, another file of
        a series. What a plan used in place must be an array again."""
        ...


class Scalar(Value):
    """A number that may change from run to run (Graph.scalar)."""
    name: str
    array: np.ndarray[Any, Any]
    def set(self, x: Number) -> None:
        """The number of the next runs is x; refused where its dtype does not hold it."""
        ...


class Graph:
    """Values with named axes. It grows only; a plan says how some of them are computed.

        g = fathom.Graph(memory="1G")
        g.axes(row=1000, col=50)
        x = g.input("x", array, "row col")
        print(g.plan(x.mean("row")).run())

    print(g) lists its values; `params` has the arrays of its parameters."""
    context: Context
    params: dict[str, np.ndarray[Any, Any]]
    def __init__(self, context: Optional[Context] = None, **options: Any) -> None:
        """In a context; without one it makes its own from `options`, which are those of Context."""
        ...
    @property
    def text(self) -> str:
        """Every value: its number and label, what makes it, dtype, axes and line."""
        ...
    def clear_errors(self) -> None:
        """Not needed any more: a mistake is raised where it was made, and forgotten."""
        ...
    def axis(self, name: str, size: int) -> None:
        """Declare the axis `name` once, with its size."""
        ...
    def axis_at_most(self, name: str, bound: int) -> None:
        """An axis `name` of which only a bound is known: plans can be printed, not run."""
        ...
    def axis_like(self, name: str, like: str) -> None:
        """A second `name` for the size of the axis `like`."""
        ...
    def axis_ragged(self, name: str, rows: str, row_ptr: Any) -> None:
        """An axis `name` of the entries of the axis `rows`: row r owns entries row_ptr[r] to row_ptr[r+1]-1, as the
        indptr of a scipy.sparse.csr_matrix says."""
        ...
    def axes(self, **sizes: int) -> None:
        """Declare axes with their `sizes`: g.axes(cell=1000, dim=2)"""
        ...
    def axis_size(self, name: str) -> Optional[int]:
        """The size of the axis `name`; None if there is none of that name."""
        ...
    def input(self, name: str, data: Data, axes: Axes, dtype: Optional[DType] = None) -> Input:
        """`data` from outside, over `axes` in the order in which it lies in memory: an array (C-contiguous ones are
        used in place; others, and those of the other byte order, are read in pieces; a dataset of h5py or zarr is
        read whole: give its file and name), a Source, "x.npy", "x.zarr", (file, name) with a file x.npz, x.safetensors, x.h5
        or x.zarr, or anything with __dlpack__ or a buffer. `name` is that in messages; `dtype` says
        what bits are where NumPy has no name for them: uint16 may be "bf16"."""
        ...
    def scalar(self, name: str, value: Number, dtype: DType = 'f64') -> Scalar:
        """A number of a dtype, first `value`, that may change from run to run: s.set(x). `name` is that in
        messages."""
        ...
    def param(self, name: str, data: Data, axes: Axes, dtype: Optional[DType] = None) -> Param:
        """A persistent block over `axes` that begins as `data`. A writable C-contiguous array is used in
        place, and assigns change it; anything else is copied, files and Sources too. The memory is
        param.array; `name` is that in messages and of g.params; `dtype` is as of input."""
        ...
    def const(self, value: Number, dtype: DType = 'f32') -> Value:
        """The number `value`, without axes; refused where the dtype does not hold it."""
        ...
    def index(self, axis: str) -> Value:
        """Global index along an axis, i64."""
        ...
    def uniform(self, axes: Axes, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0, stream: int = 0, dtype: DType = 'f32') -> Value:
        """Numbers in [0, 1) over `axes`, of dtype f32 or f64: a function of (seed, stream, iteration, index);
        seed and iteration may be scalars of the graph, i64."""
        ...
    def normal(self, axes: Axes, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0, stream: int = 0, dtype: DType = 'f32') -> Value:
        """Normal numbers of mean 0 and variance 1 over `axes`, a function of (seed, stream, iteration,
        index), of dtype f32 or f64; as uniform otherwise."""
        ...
    def random_bits(self, axes: Axes, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0, stream: int = 0) -> Value:
        """Random integers over `axes`, i64, a function of (seed, stream, iteration, index); as uniform
        otherwise."""
        ...
    def plan(self, outputs: Union[Value, Sequence[Value], Mapping[Any, Value]], updates: Iterable[Value] = (), into: Union[Into, Mapping[Any, Into], None] = None, **limits: Any) -> Plan:
        """Plan what is wanted. `outputs` is a value, a list or a dict of values, and run() gives
        back the same form; `updates` are assigns. `into` says where outputs go, by key or position: an
        array, a function of (lo, array), "x.npy", "x.zarr", or (file, name) with a file x.npz,
        x.safetensors or x.h5; several may share one, which appears whole or not at all. For one
        value it is the place alone, for a list of them a list or {0: place}, for a dict also one
        file, "x.npz", that takes all by their keys. run() gives back the place. `limits`: memory="1G", scratch="8G" (bytes; the folder is the
        context's), threads, stream="axis", no_recompute, no_spill, no_fuse."""
        ...


class Plan:
    """Everything that will happen (Graph.plan). print(plan) shows it; run() does it, as often as you like,
    and leaves its numbers in `report`, which is empty before."""
    graph: Graph
    report: dict[str, Any]
    def __init__(self, graph: Graph, outputs: Any, updates: Iterable[Value], into: Any, limits: dict[str, Any]) -> None: ...
    @property
    def info(self) -> dict[str, Any]:
        """Bytes, passes, chunks, steps and flops as a dict."""
        ...
    @property
    def text(self) -> str:
        """The plan as text: budget, passes, steps with their lines, blocks over time."""
        ...
    @property
    def json(self) -> dict[str, Any]:
        """The same for programs, as a dict."""
        ...
    def run(self, progress: Optional[Callable[[Progress], Any]] = None) -> Any:
        """Run and return the outputs, in the form they were asked for. `progress(p)` gets
        .fraction, .elapsed_s, .remaining_s, .rate and .what, some 40 times a second inside a long
        step too; returning False cancels, an exception (or Ctrl-C) cancels and is raised again.
        plan.report holds the numbers of the run."""
        ...


class Progress(NamedTuple):
    """How far a run is: `fraction` of its predicted seconds, never less than before and 1 at the end, seconds so far
    and left, `rate` in elements of the streaming axis per second, and `what` that axis is."""
    fraction: float
    elapsed_s: float
    remaining_s: float
    rate: float
    what: str


def neg(v: Value) -> Value:
    """-v

    dtypes: integers reals complex; gradient: yes"""
    ...


def abs(v: Value) -> Value:
    """|v|; of complex numbers real.

    dtypes: integers reals complex; gradient: yes"""
    ...


def sqr(v: Value) -> Value:
    """v * v

    dtypes: integers reals complex; gradient: yes"""
    ...


def sqrt(v: Value) -> Value:
    """The square root.

    dtypes: reals complex; gradient: yes"""
    ...


def rsqrt(v: Value) -> Value:
    """1 / sqrt(v)

    dtypes: reals; gradient: yes"""
    ...


def recip(v: Value) -> Value:
    """1 / v

    dtypes: reals complex; gradient: yes"""
    ...


def exp(v: Value) -> Value:
    """e to the power of v.

    dtypes: reals complex; gradient: yes"""
    ...


def expm1(v: Value) -> Value:
    """exp(v) - 1, exact near 0.

    dtypes: reals; gradient: yes"""
    ...


def log(v: Value) -> Value:
    """The natural logarithm.

    dtypes: reals complex; gradient: yes"""
    ...


def log1p(v: Value) -> Value:
    """log(1 + v), exact near 0.

    dtypes: reals; gradient: yes"""
    ...


def sin(v: Value) -> Value:
    """The sine of v in radians.

    dtypes: reals; gradient: yes"""
    ...


def cos(v: Value) -> Value:
    """The cosine of v in radians.

    dtypes: reals; gradient: yes"""
    ...


def tanh(v: Value) -> Value:
    """The hyperbolic tangent.

    dtypes: reals; gradient: yes"""
    ...


def sigmoid(v: Value) -> Value:
    """1 / (1 + exp(-v))

    dtypes: reals; gradient: yes"""
    ...


def softplus(v: Value) -> Value:
    """log(1 + exp(v)), without overflow.

    dtypes: reals; gradient: yes"""
    ...


def relu(v: Value) -> Value:
    """max(v, 0); NaN stays NaN.

    dtypes: reals; gradient: yes"""
    ...


def lgamma(v: Value) -> Value:
    """The logarithm of |gamma(v)|.

    dtypes: reals; gradient: yes"""
    ...


def digamma(v: Value) -> Value:
    """The derivative of lgamma.

    dtypes: reals; gradient: yes"""
    ...


def trigamma(v: Value) -> Value:
    """The derivative of digamma.

    dtypes: reals; gradient: no"""
    ...


def erf(v: Value) -> Value:
    """The error function.

    dtypes: reals; gradient: yes"""
    ...


def floor(v: Value) -> Value:
    """The largest whole number up to v.

    dtypes: reals; gradient: no"""
    ...


def ceil(v: Value) -> Value:
    """The least whole number from v on.

    dtypes: reals; gradient: no"""
    ...


def round(v: Value) -> Value:
    """The nearest whole number, halves to the even one.

    dtypes: reals; gradient: no"""
    ...


def sign(v: Value) -> Value:
    """-1, 0 or 1; of complex numbers v / |v|.

    dtypes: integers reals complex; gradient: yes"""
    ...


def isnan(v: Value) -> Value:
    """Whether v is NaN, bool.

    dtypes: reals complex; gradient: no"""
    ...


def isfinite(v: Value) -> Value:
    """Whether v is neither infinite nor NaN, bool.

    dtypes: reals complex; gradient: no"""
    ...


def logical_not(v: Value) -> Value:
    """What does not hold; of integers every bit inverted.

    dtypes: bool integers; gradient: no"""
    ...


def conj(v: Value) -> Value:
    """The complex conjugate; reals as they are.

    dtypes: reals complex; gradient: yes"""
    ...


def real(v: Value) -> Value:
    """The real part.

    dtypes: complex; gradient: yes"""
    ...


def imag(v: Value) -> Value:
    """The imaginary part.

    dtypes: complex; gradient: yes"""
    ...


def arg(v: Value) -> Value:
    """The angle of a complex number, from -pi to pi.

    dtypes: complex; gradient: yes"""
    ...


def abs2(v: Value) -> Value:
    """|v| squared, real.

    dtypes: reals complex; gradient: yes"""
    ...


def minimum(a: Operand, b: Operand) -> Value:
    """The smaller of a and b, element by element; NaN if either is. One may be a number.

    dtypes: integers reals; gradient: yes"""
    ...


def maximum(a: Operand, b: Operand) -> Value:
    """The larger of a and b, element by element; NaN if either is. One may be a number.

    dtypes: integers reals; gradient: yes"""
    ...


def atan2(y: Operand, x: Operand) -> Value:
    """The angle of the point (x, y), from -pi to pi. One may be a number.

    dtypes: reals; gradient: yes"""
    ...


def complex_of(re: Operand, im: Operand) -> Value:
    """re + i im: f32 give c64, f64 c128. One may be a number.

    dtypes: f32 f64; gradient: yes"""
    ...


def fma(a: Operand, b: Operand, c: Operand) -> Value:
    """a*b + c with one rounding. Up to two may be numbers.

    dtypes: integers reals complex; gradient: yes"""
    ...


def where(condition: Value, a: Operand, b: Operand) -> Value:
    """a where the bool `condition` holds, else b, which is never NaN's business: nothing is computed with
    what is not taken. One of a and b may be a number.

    dtypes: all; gradient: yes"""
    ...


def expand(v: Value, axes: Axes) -> Value:
    """Repeat v along new axes, which come outermost, in their order.

    axes: new axes, "y x" or ["y", "x"], declared before
    dtypes: all; gradient: yes"""
    ...


def rename(v: Value, old: Axes, new: Axes) -> Value:
    """Other names for axes: rename(v, "a b", "c d").

    old: axes of v, "y x" or ["y", "x"]
    new: as many declared axes of the same sizes
    dtypes: all; gradient: yes"""
    ...


def layout(v: Value, axes: Axes) -> Value:
    """The same axes in this order in memory.

    axes: all axes of v in the order that is wanted
    dtypes: all; gradient: yes"""
    ...


def merge(v: Value, axes: Axes, into: str) -> Value:
    """One axis of several: merge(v, "group chan", "patch"). split undoes it.

    axes: axes of v, neighbours in this order
    into: their product, declared before
    dtypes: all; gradient: yes"""
    ...


def mark(v: Value, triangle: str, row: str, col: str) -> Value:
    """Say that v is "lower" or "upper" triangular over (row, col).

    triangle: "lower" or "upper"
    row: axis of the rows
    col: axis of the columns
    dtypes: all; gradient: yes"""
    ...


def stop_gradient(v: Value) -> Value:
    """The value itself; no gradient flows back through it.

    dtypes: all; gradient: yes"""
    ...


def mean(v: Value, axes: Optional[Axes] = None) -> Value:
    """Mean: the sum, in the dtype of v, divided; cast integers, and f32 of which the sum is
    infinite, to f64 first.

    axes: axes of v, "y x" or ["y", "x"]; all where none are given
    dtypes: reals complex; gradient: yes"""
    ...


def count(v: Value, axes: Optional[Axes] = None) -> Value:
    """How many elements are not zero, i64.

    axes: axes of v, "y x" or ["y", "x"]; all where none are given
    dtypes: all; gradient: yes"""
    ...


def variance(v: Value, axes: Optional[Axes] = None) -> Value:
    """Mean squared distance from the mean: divided by n, not n-1.

    axes: axes of v, "y x" or ["y", "x"]; all where none are given
    dtypes: reals; gradient: yes"""
    ...


def histogram(v: Value, axis: str, bin_axis: str, lo: float, hi: float) -> Value:
    """Counts in equal bins of [lo, hi), i64 [.. bin_axis].

    axis: an axis of v; of several, merge them first
    bin_axis: axis of the bins: its size is how many there are
    lo: where the first bin begins
    hi: where the last bin ends; what lies outside is not counted, nor is hi itself, which NumPy
        counts
    dtypes: integers reals; gradient: no"""
    ...


def gather(v: Value, axis: str, index: Value) -> Value:
    """out[..i..] = v[..index[i]..]

    axis: an axis of v
    index: i32, u32 or i64; its axes take the place of the axis, those that v has too are batches
    dtypes: all; gradient: yes"""
    ...


def column(v: Value, axis: str, at: int) -> Value:
    """Element `at` of an axis, without that axis.

    axis: an axis of v
    at: which element of the axis: from 0 to its size less one
    dtypes: all; gradient: yes"""
    ...


def scatter_add(v: Value, axis: Axes, index: Value, into: str) -> Value:
    """out[..index[i]..] += v[..i..]

    axis: the axis of the index, or several of them, outermost first
    index: i32, u32 or i64: where each row goes
    into: axis of the sums, declared before
    dtypes: all; gradient: yes"""
    ...


def compact(v: Value, axis: str, mask: Value, into: str) -> Value:
    """Rows of v where the mask holds; the size of `into` must be their count.

    axis: an axis of v
    mask: bool, over the axis
    into: an axis of the size that the result has, declared before
    dtypes: all; gradient: yes"""
    ...


def spread(v: Value, entries: str) -> Value:
    """Entries take the value of the row that owns them.

    entries: an axis of Graph.axis_ragged
    dtypes: all; gradient: yes"""
    ...


def collect(v: Value, entries: str) -> Value:
    """Rows get the sum of the entries they own.

    entries: an axis of Graph.axis_ragged
    dtypes: all; gradient: yes"""
    ...


def slice_step(v: Value, axis: str, start: int, step: int, into: str) -> Value:
    """Every `step`th element from `start` on.

    axis: an axis of v
    start: the first element
    step: how far it is to the next
    into: an axis of as many elements as are wanted, declared before
    dtypes: all; gradient: yes"""
    ...


def window(v: Value, axis: str, lo: int, tap: str, border: str = 'zero') -> Value:
    """Neighbours along an axis as a new one: out[.. x t] = v[x + t - lo].

    axis: an axis of v
    lo: how many elements before x the window begins
    tap: axis of the window: its size is how many elements it has
    border: what lies beyond the ends: "zero", "clamp", "reflect", "mirror" or "wrap"
    dtypes: all; gradient: yes"""
    ...


def correlate(v: Value, axes: Axes, weights: Value, taps: Axes, border: str = 'zero') -> Value:
    """Sum over the taps of v[x + t - n/2] weights[t], for each axis with its taps.

    axes: axes of v, "y x" or ["y", "x"]
    weights: a value over the taps
    taps: an axis of the weights for each of the axes
    border: what lies beyond the ends: "zero", "clamp", "reflect", "mirror" or "wrap"
    dtypes: all; gradient: yes"""
    ...


def flip(v: Value, axis: str) -> Value:
    """The last element first.

    axis: an axis of v
    dtypes: all; gradient: yes"""
    ...


def roll(v: Value, axis: str, by: int) -> Value:
    """out[i + by] = v[i], around the end.

    axis: an axis of v
    by: how far; may be negative
    dtypes: all; gradient: yes"""
    ...


def searchsorted(sorted: Value, axis: str, v: Value, right: bool = False) -> Value:
    """How many along the axis, which ascends, come before each element of v, i64.

    sorted: what is searched
    axis: axis of `sorted`; others that both have are batches
    v: what is looked up, of the same dtype
    right: count those that are equal, too
    dtypes: bool integers reals; gradient: no"""
    ...


def quantile(v: Value, axis: str, q: float) -> Value:
    """Between the sorted elements next to it, as numpy.quantile.

    axis: an axis of v
    q: from 0 to 1
    dtypes: integers reals; gradient: yes"""
    ...


def upsample(v: Value, axis: str, factor: int, into: str) -> Value:
    """Repeat each element `factor` times.

    axis: an axis of v
    factor: how often each element is repeated
    into: an axis of the size that the result has, declared before
    dtypes: all; gradient: yes"""
    ...


def dot(a: Value, b: Value, axes: Axes) -> Value:
    """Sum of a*b over the axes; others that both have are batches.

    a: its own axes take the place of the first summed one in the result
    b: its axes are those of the result
    axes: axes that both have
    dtypes: reals complex; gradient: yes"""
    ...


def dot_triangle(a: Value, b: Value, axes: Axes, triangle: str, row: str, col: str) -> Value:
    """A dot of which only the "lower" or "upper" triangle over (row, col) is wanted.

    axes: axes that both have
    triangle: "lower" or "upper"
    row: axis of the rows
    col: axis of the columns
    dtypes: reals complex; gradient: yes"""
    ...


def cholesky(a: Value, row: str, col: str) -> Value:
    """The lower factor of positive definite matrices, marked as lower; only the lower triangle of a
    is read.

    row: axis of the rows
    col: axis of the columns
    dtypes: f32 f64 complex; gradient: yes"""
    ...


def clip(v: Value, lo: float, hi: float) -> Value:
    """min(max(v, lo), hi); an infinite end is none.

    lo: the least number; -math.inf: none
    hi: the largest number; math.inf: none. Of i64 any i64

    dtypes: integers reals; gradient: yes"""
    ...


def pad(v: Value, axis: str, before: int, into: str, value: float = 0.0) -> Value:
    """Longer along an axis, by elements of one value.

    axis: an axis of v
    before: elements before the first; as many after the last as `into` has room for
    into: an axis of the size that the result has, declared before
    value: what they are; of i64 any i64

    dtypes: all; gradient: yes"""
    ...


def cast(v: Value, dtype: DType) -> Value:
    """v with another dtype, "f32" or np.float32: the only way to change one. Real to integer truncates, and
    NaN or a number out of range fails the run; to bool it gives v != 0.

    dtypes: bool integers reals; gradient: yes"""
    ...


def split(v: Value, axis: str, into: Optional[Axes] = None) -> Value:
    """Undo a merge: `axis` becomes the axes that were merged, or the axes `into` of the same sizes.

    dtypes: all; gradient: yes"""
    ...


def logsumexp(v: Value, axes: Optional[Axes] = None) -> Value:
    """log of the sum of exp(v) over `axes`, over all where none are given; nothing overflows.

    dtypes: reals; gradient: yes"""
    ...


def argmin(v: Value, axis: Optional[str] = None) -> Value:
    """Position of the smallest element along `axis`, i64; the first of equals, that of the first NaN if there
    is one. A value with one axis needs no name.

    dtypes: bool integers reals; gradient: no"""
    ...


def argmax(v: Value, axis: Optional[str] = None) -> Value:
    """Position of the largest element along `axis`, i64; the first of equals, that of the first NaN if there
    is one. A value with one axis needs no name.

    dtypes: bool integers reals; gradient: no"""
    ...


def scan(v: Value, axis: str, reduction: str = 'sum', exclusive: bool = False, reverse: bool = False) -> Value:
    """Running `reduction` ("sum", "prod", "min" or "max") along `axis`; `exclusive` leaves each element itself
    out, `reverse` goes from the end. Gradients are of sums.

    dtypes: all; gradient: yes"""
    ...


def cumsum(v: Value, axis: str) -> Value:
    """Running sum along `axis`.

    dtypes: all; gradient: yes"""
    ...


def solve(a: Value, b: Value, row: str, col: str) -> Value:
    """x with a x = b, where a is triangular over (row, col) and marked so (`cholesky` and `mark` do that): b
    has the axis `row`, and x has `col` in its place.

    dtypes: f32 f64 complex; gradient: yes"""
    ...


def solve_t(a: Value, b: Value, row: str, col: str) -> Value:
    """x with the transpose of a (the conjugate transpose of complex ones), a triangular over (row, col): b has
    the axis `col`, and x has `row` in its place. solve and then solve_t with a Cholesky factor L apply
    the inverse of L L^H.

    dtypes: f32 f64 complex; gradient: yes"""
    ...


def eigh(a: Value, row: str, col: str) -> tuple[Value, Value]:
    """(values, vectors) of symmetric or Hermitian matrices over (row, col), of at most 64 rows; the lower
    triangle is read. Values ascend along `row`; vector `row` has its components along `col`, norm 1, and
    its largest component positive.

    dtypes: f32 f64 complex; gradient: yes"""
    ...


def inverse(a: Value, row: str, col: str) -> tuple[Value, Value]:
    """(inverse, log |determinant|) of matrices over (row, col), of at most 64 rows.

    dtypes: f32 f64 complex; gradient: yes"""
    ...


def concat(values: Iterable[Value], axes: Axes, into: str) -> Value:
    """`values` one behind the other along `axes`, one of each: concat([a, b], "m n", "mn") has a's axis m, then
    b's axis n, as `into`, whose size is the sum. One name serves all.

    dtypes: all; gradient: yes"""
    ...


def stack(values: Iterable[Value], axis: str) -> Value:
    """stack([a, b], "layer"): `values` of the same axes along a new `axis`, the outermost.

    dtypes: all; gradient: yes"""
    ...


def slice_axis(v: Value, axis: str, start: int, into: str) -> Value:
    """As many elements along `axis` as the axis `into` has, from `start` on. As a method: v.slice.

    dtypes: all; gradient: yes"""
    ...


def sort(v: Value, axis: str, descending: bool = False) -> tuple[Value, Value]:
    """(sorted along `axis`, the order as i64): stable, from small to large or `descending`; NaN last.

    dtypes: bool integers reals; gradient: yes"""
    ...


def topk(v: Value, axis: str, into: str, largest: bool = True) -> tuple[Value, Value]:
    """(the largest or smallest along `axis`, in order; their positions as i64); the size of the axis `into`
    is how many. With largest=False the smallest. NaN comes last.

    dtypes: bool integers reals; gradient: yes"""
    ...


def collect_max(v: Value, entries: str) -> tuple[Value, Value]:
    """(largest entry of each row, its position along the axis `entries` as i64); -inf and -1 for a row
    without entries, NaN if any entry is.

    dtypes: bool integers reals; gradient: yes"""
    ...


def collect_min(v: Value, entries: str) -> tuple[Value, Value]:
    """(smallest entry of each row, its position along the axis `entries` as i64); inf and -1 for a row
    without entries, NaN if any entry is.

    dtypes: bool integers reals; gradient: yes"""
    ...


def scatter(v: Value, axis: Axes, index: Value, into: str, how: str = 'set', fill: float = 0.0) -> Value:
    """out[..index[i]..] = v[..i..], the last i; with how="min" or "max" the smallest or largest of them. `axis`
    is that of `index`, or several, outermost first; the axis `into` takes its place. Rows begin as
    `fill`, which the dtype must hold and which takes part in a minimum or maximum; math.inf is the last
    number of integers, -math.inf the first. Of i64 it is any i64.

    dtypes: all; gradient: yes"""
    ...


def median(v: Value, axis: str) -> Value:
    """Median along `axis`, between the two middle elements, as numpy.median; NaN if any is.

    dtypes: integers reals; gradient: yes"""
    ...


def fft(v: Value, axes: Axes, into: Axes) -> Value:
    """Discrete Fourier transform over one to three `axes` of v, "x", "y x" or "z y x"; the axes `into`, of
    the same sizes, take their place. Of complex numbers: cast reals, or write rfft.

    dtypes: complex; gradient: yes"""
    ...


def ifft(v: Value, axes: Axes, into: Axes) -> Value:
    """Inverse of fft, from `axes` to the axes `into`, divided by the number of points.

    dtypes: complex; gradient: yes"""
    ...


def rfft(v: Value, axes: Axes, into: Axes) -> Value:
    """Transform of reals over `axes`; the last axis of `into` has n//2 + 1 elements.

    dtypes: f32 f64; gradient: yes"""
    ...


def irfft(v: Value, axes: Axes, into: Axes) -> Value:
    """Inverse of rfft, from `axes` to the axes `into`: the last of `axes` has n//2 + 1 elements for the n of
    `into`. Divided by the number of points.

    dtypes: complex; gradient: yes"""
    ...


def conv2d(v: Value, w: Value, y: str = 'y', x: str = 'x', chan: str = 'chan', ky: str = 'ky', kx: str = 'kx', out_y: Optional[str] = None, out_x: Optional[str] = None, stride: int = 1, dilation: int = 1, pad_y: int = 0, pad_x: int = 0, tiled: bool = False) -> Value:
    """Convolve images v [b chan y x] with weights w [out chan ky kx]: [b out out_y out_x]. Axes have the names
    that are given; out_y and out_x, which say how large the result is, are y and x where they are not. `stride` and `dilation` are for
    both directions, pad_y and pad_x zeros before the first row and column; after the last there are
    as many as needed. With tiled=True a CPU may go by Winograd's way, which is faster for f32 and windows
    of 3 by 3.

    dtypes: f32 f64; gradient: yes"""
    ...


def pool_mean(v: Value, axis: str, factor: int, into: str) -> Value:
    """Mean of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
    elements.

    dtypes: reals complex; gradient: yes"""
    ...


def pool_sum(v: Value, axis: str, factor: int, into: str) -> Value:
    """Sum of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
    elements.

    dtypes: reals complex; gradient: yes"""
    ...


def pool_max(v: Value, axis: str, factor: int, into: str) -> Value:
    """Maximum of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
    elements.

    dtypes: integers reals; gradient: yes"""
    ...


def poisson(rate: Value, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0, stream: int = 0) -> Value:
    """One draw per element of `rate`, i64: a function of (seed, stream, iteration, index), of which seed and
    iteration may be scalars of the graph.

    dtypes: f32 f64; gradient: yes"""
    ...


def grad(loss: Value, wrt: Union[Value, Iterable[Value]]) -> Any:
    """Gradients of the real scalar `loss` with respect to `wrt`, a value or a list of values: a value or a list
    of values, which are planned like any other. For complex ones dL/dRe + i dL/dIm."""
    ...


def assign(param: Param, value: Value) -> Value:
    """After every read of the parameter, put `value` there; give what it returns to plan(updates=...). A run
    that fails changes no parameter; `param` is assigned once per graph."""
    ...


def adam(param: Param, gradient: Value, rate: Value, step: Value, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, decay: float = 0.0) -> list[Value]:
    """The three assigns of one Adam step of `param` by its `gradient`, for plan(updates=...). `rate` (f64) and
    `step` (i64, from 1) are scalars of the graph; the moments, with the factors beta1 and beta2, become
    parameters "<name>.m" and "<name>.v". `eps` is added to the root of the second; `decay` is that of AdamW."""
    ...


def optimizer(kind: str, param: Param, gradient: Value, rate: Value, beta1: Value, step: Value, product: Optional[Value] = None) -> list[Value]:
    """The assigns of one step of `param` by its `gradient`, of the kind "adam", "adamw", "nadam", "sgd" or
    "rmsprop". `rate` and `beta1` (f64; the momentum of sgd) and `step` (i64, from 1) are scalars of the
    graph, which may change from run to run; nadam needs the `product` of its momenta too. What is
    carried becomes the parameters "<name>.first" and "<name>.second"."""
    ...


def schedule(kind: str, step: int, rate: float, last: float = 0.0, steps: int = 1, warmup: int = 0, rise: float = 0.3) -> float:
    """The learning rate at a `step` (from 0), of the kind "constant", "exponential", "cosine", "linear" or
    "one_cycle": from `rate` to `last` in so many `steps`, after `warmup` steps from 0; one_cycle rises
    for the fraction `rise` of the steps."""
    ...


class Op:
    """An operation that C code made: Op("libmine.so", "second_difference"), where the `symbol` is what
    FTH_OP_EXPORT made (then its version is checked) or an fth_op. `where` is a path, or the address of
    an fth_op: Op(address)."""
    name: str
    def __init__(self, where: Union[Path, int], symbol: Optional[str] = None) -> None: ...


def axis_id(graph: Graph, name: str) -> int:
    """The number of the axis `name` of `graph`, as attributes of operations hold it (fth_axis_id)."""
    ...


def custom(op: Op, values: Union[Value, Iterable[Value]], attr: bytes = b'', outputs: int = 1) -> Any:
    """Add `op`, an operation of your own, to the graph of its operands `values`. `attr` are the bytes of
    its attribute (struct.pack, bytes of a ctypes.Structure); gives a value, or a tuple of so many
    `outputs`."""
    ...


def op_check(op: Op, values: Union[Value, Iterable[Value]], attr: bytes = b'', inputs: Iterable[Any] = (), seed: int = 0, cuts: int = 0, threads: int = 0, gradient: float = 0.0) -> dict[str, Any]:
    """Try `op` on `values`, with its `attr`, in every way that a plan may use it; fathom.Error says what
    it got wrong. It is cut at so many places (`cuts`, drawn by `seed`) and run by so many `threads`; 0 is
    the default of each. `inputs` are arrays for the operands, None for random ones; `gradient` is how far
    gradients may be from differences, negative: they are not compared. Gives what was tried: calls, axes,
    joins, gradient_error."""
    ...


def free_memory() -> int:
    """Bytes that could be taken now without swapping."""
    ...


def version() -> str:
    """The version of the library that is running."""
    ...


class _Bragg:
    """Diffraction images of small crystals. Every flag of nanoBragg is a keyword, without its
    dash; a switch is True, several values are a list, and `lambda_` is lambda:

        image = fathom.bragg(cell=[70, 80, 90, 75, 85, 95], default_F=100, N=5, lambda_=1.0,
                             distance=100, detpixels=1024)

    Files are written where they are named (floatfile, intfile, noisefile, pgmfile, smv32, cbf, dump),
    and only there. N, xtalsize, detpixels and detsize are one number, or a list with one for each edge.

    compat="c" is nanoBragg with its defects, quirks={"phi-carryover": True} switches one of
    them; seed is that of all random streams; precision="f32" is faster. Memory, threads and device
    are as in Context."""
    def __call__(self, compat: str = 'spec', quirks: Optional[Mapping[str, bool]] = None, context: Optional[Context] = None, memory: Size = None, threads: int = 0, device: Optional[str] = None, **flags: Any) -> np.ndarray[Any, Any]:
        """Expected photons per pixel: float32 [slow, fast]."""
        ...
    def jacobian(self, params: Union[str, Iterable[str]], compat: str = 'spec', quirks: Optional[Mapping[str, bool]] = None, context: Optional[Context] = None, memory: Size = None, threads: int = 0, device: Optional[str] = None, **flags: Any) -> np.ndarray[Any, Any]:
        """Derivatives of the image by parameters such as "a", "mx" or "dist", each in the unit in
        which it is typed (see `params`): float64 [slow, fast, parameter]."""
        ...
    @property
    def params(self) -> dict[str, str]:
        """{"a": "A", ...}: what an image can be differentiated by, and the units."""
        ...


bragg: _Bragg


class Focused:
    """What became of z-stacks: `image`, `index` (plane of each pixel, counted from 0), `depth` (um, or
    planes where the step is not known), `confidence`, each None where the method has none, and
    `metrics`, a dict of numbers. Several stacks have one more axis in front, and lists of numbers."""
    image: np.ndarray[Any, Any]
    index: Any
    depth: Any
    confidence: Any
    metrics: dict[str, Any]
    def __init__(self, image: np.ndarray[Any, Any], index: Optional[np.ndarray[Any, Any]], depth: Optional[np.ndarray[Any, Any]], confidence: Optional[np.ndarray[Any, Any]], metrics: dict[str, Any]) -> None: ...


class _Focus:
    """Fuse z-stacks into images that are sharp everywhere:

        sharp = fathom.focus(stack, method="log-smooth")
        sharp = fathom.focus("plate.nd2", method="cwt", times="0:1", channel="BF")

    A stack is an array z y x of uint8, uint16 or float32 (b z y x: several), or a path or list of paths.
    Every option of `fathom focus stack` is a keyword, dashes as underscores; a switch is True. The image
    is uint16, scaled; with scale="none" the fused values as they are. Memory, threads and device are as
    in Context."""
    def __call__(self, stack: Any, context: Optional[Context] = None, memory: Size = None, threads: int = 0, device: Optional[str] = None, **options: Any) -> Focused:
        """The stack in focus: what the class says."""
        ...


focus: _Focus


class Reconstruction:
    """Object and probe of a scan: `object` [row, col], `probe` [mode, row, col] or [row, col], `positions`
    [scan, xy], `canvas_origin` (x, y of pixel (0, 0)), `error_history`; None where there is none. `arrays`
    has all that reconstruction.npz holds."""
    arrays: dict[str, np.ndarray[Any, Any]]
    object: np.ndarray[Any, Any]
    probe: Any
    positions: Any
    canvas_origin: Any
    error_history: Any
    def __init__(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None: ...


class PtychoModel:
    """A trained network: `history` {"loss": [...], "val_loss": [...]}, and the file `path`, which goes with
    this object unless it was saved."""
    path: str
    history: dict[str, list[float]]
    def __init__(self, path: str, history: dict[str, list[float]]) -> None: ...
    def save(self, path: Path) -> Path:
        """Copy the file to `path`, which it returns."""
        ...


class _Ptycho:
    """Ptychography, arrays in and arrays out:

        scan = fathom.ptycho.simulate(N=64, size=160, n_images=200)
        result = fathom.ptycho.solve(scan, algorithm="lsqml", iterations=60)
        metrics = fathom.ptycho.evaluate(result, scan)

    A scan is a path, or a dict of arrays with the names of an NPZ scan: diff3d, xcoords, ycoords, probeGuess.
    Every key of `fathom config docs ptycho` is a keyword, its dots as underscores. Memory, threads and device
    are as in Context. Arrays pass through files in a folder of their own, which is removed."""
    def simulate(self, context: Optional[Context] = None, **keys: Any) -> dict[str, np.ndarray[Any, Any]]:
        """A made-up scan as a dict of arrays."""
        ...
    def solve(self, scan: Any, context: Optional[Context] = None, **keys: Any) -> Reconstruction:
        """Object and probe of a scan, iteratively: a Reconstruction."""
        ...
    def train(self, scan: Any, context: Optional[Context] = None, **keys: Any) -> PtychoModel:
        """A network that was trained on a scan: a PtychoModel."""
        ...
    def infer(self, model: Union[PtychoModel, Path], scan: Any, context: Optional[Context] = None, **keys: Any) -> Reconstruction:
        """The object of a scan by a trained network, a PtychoModel or a path: a Reconstruction."""
        ...
    def evaluate(self, recon: Any, truth: Any, context: Optional[Context] = None, **keys: Any) -> dict[str, Any]:
        """What metrics.json holds: {"mae": [amplitude, phase], ...}. Both are a Reconstruction, a scan, an
        array or a path."""
        ...
    def op(self, name: str, arrays: Optional[Mapping[str, Any]] = None, context: Optional[Context] = None, **keys: Any) -> dict[str, np.ndarray[Any, Any]]:
        """The building block `name` on a dict of arrays; a dict of what it writes."""
        ...


ptycho: _Ptycho


class SplatModel:
    """Gaussians: `means`, `sh0`, `shN`, `scaling`, `rotation` and `opacity`, float32 and before activation,
    also as model["means"]; `degree` of the spherical harmonics. save(path) writes .ply, .splat, .spz, .sog or
    .html; render(camera, ...) is fathom.splat.render of it. They are read-only: another model is made by
    fathom.splat.model({**model, "opacity": changed})."""
    names: tuple[str, ...]
    means: np.ndarray[Any, Any]
    sh0: np.ndarray[Any, Any]
    shN: np.ndarray[Any, Any]
    scaling: np.ndarray[Any, Any]
    rotation: np.ndarray[Any, Any]
    opacity: np.ndarray[Any, Any]
    degree: int
    def __init__(self, splat: Any, context: Context, p: int) -> None: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getitem__(self, name: str) -> np.ndarray[Any, Any]: ...
    def keys(self) -> tuple[str, ...]:
        """Names of the arrays, as of a dict."""
        ...
    def __len__(self) -> int: ...
    def save(self, path: Path) -> Path:
        """Write `path` as .ply, .splat, .spz, .sog or .html, by its ending; the path."""
        ...
    def render(self, camera: Mapping[str, Any], **options: Any) -> Any:
        """The image of a `camera`: fathom.splat.render of this model, with its options."""
        ...


class _Splat:
    """3D Gaussian splatting:

        model = fathom.splat.load("model.ply")            # or .splat, .spz, .sog, or a checkpoint
        image = fathom.splat.render(model, {"width": 640, "height": 480, "fx": 600, "w2c": pose})

    A model is a path, what `load` gave, or a dict of arrays with the names of SplatModel."""
    def checkpoint(self, path: Path) -> dict[str, Any]:
        """All arrays of a checkpoint, or of that in the folder of a training, by their names, and its metadata as
        "__metadata__"."""
        ...
    def load(self, path: Path, context: Optional[Context] = None, memory: Size = None, threads: int = 0, device: Optional[str] = None) -> SplatModel:
        """The model in a file, .ply, .splat, .spz, .sog or a checkpoint; memory, threads and device are as in
        Context."""
        ...
    def model(self, arrays: Any, context: Optional[Context] = None, memory: Size = None, threads: int = 0, device: Optional[str] = None) -> SplatModel:
        """A model of arrays; shN may be missing, sh0 may be [g, 1, c]."""
        ...
    def render(self, model: Any, camera: Mapping[str, Any], background: Sequence[float] = (0, 0, 0), alpha: bool = False, depth: bool = False, raster: str = 'fast', context: Optional[Context] = None, memory: Size = None, threads: int = 0, device: Optional[str] = None, antialiased: bool = False, gut: bool = False) -> Any:
        """The image, float32 [i, j, c], the background in it, not clamped; with `alpha` or `depth` a tuple of it
        and these, [i, j]; depth is the sum of weight times depth. A camera is a dict: width, height, fx, fy (fx
        by itself), cx, cy (the middle), w2c: world to camera, 4x4 or 3x4, x right, y down, z forward; and with
        gut=True (3DGUT) model, a camera model of COLMAP such as "OPENCV" or "OPENCV_FISHEYE", and distortion,
        its coefficients in their order."""
        ...


splat: _Splat


class SpatialProgress(NamedTuple):
    """Where a fit is: its `stage`, steps `done` of `total`, seconds that remain, `what` it does, and `numbers`
    such as the objective, by name."""
    stage: str
    done: int
    total: int
    remaining_s: float
    what: str
    numbers: dict[str, float]


class SpatialFit:
    """A fitted model, and the folder of its results.

    factors     float32 [cell, factor]: exp of the mean of each factor; the most spatial factor is the first
    scales      float32 [cell, factor]: standard deviation of the log-factor
    loadings    float32 [gene, factor], genes as gene_names
    gene_names  of the genes that were kept; None: there are no data beside the model
    elbo        float64 [step]: the objective while training
    moran       float64 [factor]: Moran's I
    rows        int64 [cell]: which row of the object, or of the file, each cell is; others were dropped
    held_out    bool [cell]: cells that training did not see; None: there are none
    size_factors float32 [cell]: sizes of cells; None: the model has none
    dispersions  float64 [gene]: theta of the negative binomial; None: counts are Poisson
    metrics     dict: reconstruction error, deviance, Moran's I with p-values, held-out deviance
    settings    dict: what the model was made with
    model_path  model.safetensors, which all commands of `fathom spatial` read
    output_dir  the folder of all that, temporary unless fit was given one
    log         lines that the stages wrote"""
    name: str
    output_dir: str
    model_path: str
    log: list[str]
    factors: np.ndarray[Any, Any]
    scales: Optional[np.ndarray[Any, Any]]
    loadings: np.ndarray[Any, Any]
    gene_names: Optional[list[str]]
    elbo: Optional[np.ndarray[Any, Any]]
    moran: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    held_out: Optional[np.ndarray[Any, Any]]
    size_factors: Optional[np.ndarray[Any, Any]]
    dispersions: Optional[np.ndarray[Any, Any]]
    metrics: dict[str, Any]
    settings: dict[str, Any]
    group_names: list[str]
    section_names: list[str]
    def __init__(self, spatial: Any, folder: str, log: Iterable[str] = ()) -> None: ...
    def predict(self, xy: Any, groups: Union[str, Iterable[str], None] = None, scales: bool = False, memory: Size = None, threads: int = 0, device: Optional[str] = None, section: Optional[str] = None) -> Any:
        """Factors at other places, float32 [place, factor]; with scales=True, a tuple of them and their scales.

        xy      positions [place, 2], in the unit of the object's
        groups  of models with groups: the name of the group of each place, or one name for all
        section of models of several sections: the name of the section of the places"""
        ...
    def figures(self, memory: Size = None, threads: int = 0, **keys: Any) -> list[str]:
        """Draw the figures of `fathom spatial figures`; the paths of the files. Keys are those of the section
        figures: which="all", dpi=300, formats=["svg"]."""
        ...
    def save(self, folder: Path) -> Path:
        """Copy the results to `folder`, which fathom.spatial.read and the program open; `folder` itself."""
        ...


class _Spatial:
    """Factor models of spatial transcriptomics:

        result = fathom.spatial.fit(adata, "mggp_svgp", n_components=10, groups="cell_type")
        adata.obsm["fathom_factors"], adata.varm["fathom_loadings"], adata.uns["fathom"]
        result.predict(xy), result.save("results"), fathom.spatial.read("results")

    docs/spatial-tutorial.md goes through it; docs/spatial.md has the models and the program."""
    def fit(self, adata: Any, model: str = 'svgp', n_components: int = 10, *, spatial_key: str = 'spatial', layer: Optional[str] = None, groups: Optional[str] = None, section: Optional[str] = None, seed: int = 0, memory: Size = None, device: str = 'auto', threads: int = 0, progress: Optional[Callable[[SpatialProgress], Any]] = None, key_added: str = 'fathom', **keys: Any) -> SpatialFit:
        """Fit a factor model to the counts of an AnnData object, and write the results into it.

        adata         the object, or anything with its X, layers, obs, obsm, var, var_names, varm and uns. One that is
                      backed is read by the library from its file; nothing of it is loaded here
        model         "pnmf", "svgp", "mggp_svgp", "lcgp" or "mggp_lcgp"
        n_components  factors
        spatial_key   positions in obsm
        layer         where the counts are; None: X. They are whole numbers from 0
        groups        column of obs with the cell types, which the models mggp_* need
        section       column of obs with the tissue sections, which share loadings and have maps of their own;
                      sections=["A", "B"] chooses some
        seed          of all random numbers
        memory        most memory to use, "8G"; device "cpu" or "cuda"; threads, 0: one per core
        progress      called with a SpatialProgress a few times a second; returning False stops the fit
        key_added     how the names of results start
        **keys        every key of `fathom config docs spatial` by its last word: lengthscale=16, max_iter=2000,
                      num_inducing=500, batch_size=7000, holdout_fraction=0.05, output_dir="outputs/tissue"

        Keys that are not given have the defaults of that page, but for lengthscale=8 and loadings_mode=
        "multiplicative", which `fathom spatial info` proposes, and init="nmf", as `generate` writes. It adds

            obsm["fathom_factors"], obsm["fathom_scales"]    of every cell; NaN where it was dropped
            varm["fathom_loadings"]                          of every gene; NaN where it was dropped
            obs["fathom_kept"], obs["fathom_held_out"]       the second one with holdout_fraction
            obs["fathom_size_factor"]                        with size_factors="total"; NaN where it was dropped
            var["fathom_dispersion"]                         with likelihood="nb"; NaN where it was dropped
            uns["fathom"]                                    model, settings, elbo, moran, metrics, version

        and returns a SpatialFit. With key_added="fathom_svgp" the arrays have the names of `fathom spatial export`.
        Results are those of the program with the config output_dir/MODEL.yaml, bit for bit.

        Counts are not copied in memory, but for CSC matrices, which become CSR; they are written to output_dir
        twice, as they are and preprocessed. Ctrl+C saves a resumable state: the same call with the output_dir
        that the warning names goes on from there. Without an output_dir, files go when the SpatialFit does."""
        ...
    def read(self, path: Path) -> SpatialFit:
        """The results in the output directory of a fit, of `fathom run` or of SpatialFit.save, or in the folder of
        one model in it."""
        ...


spatial: _Spatial


__all__ = ["Batches", "Context", "DTYPES", "Error", "Focused", "Frame", "Graph", "Input", "Op", "Param", "Place", "Plan", "Progress", "PtychoModel", "Reconstruction", "Scalar", "Source", "SpatialFit", "SpatialProgress", "SplatModel", "Tensor", "Trace", "Value", "abs", "abs2", "adam", "arg", "argmax", "argmin", "assign", "atan2", "axis_id", "bragg", "cast", "ceil", "cholesky", "clip", "collect", "collect_max", "collect_min", "column", "compact", "complex_of", "concat", "conj", "conv2d", "correlate", "cos", "count", "cumsum", "custom", "digamma", "dot", "dot_triangle", "eigh", "erf", "exp", "expand", "expm1", "fft", "flip", "floor", "fma", "focus", "free_memory", "gather", "grad", "histogram", "ifft", "imag", "inverse", "irfft", "isfinite", "isnan", "layout", "lgamma", "log", "log1p", "logical_not", "logsumexp", "mark", "maximum", "mean", "median", "merge", "minimum", "neg", "op_check", "optimizer", "pad", "poisson", "pool_max", "pool_mean", "pool_sum", "ptycho", "quantile", "real", "recip", "relu", "rename", "rfft", "roll", "round", "rsqrt", "scan", "scatter", "scatter_add", "schedule", "searchsorted", "sigmoid", "sign", "sin", "slice_axis", "slice_step", "softplus", "solve", "solve_t", "sort", "spatial", "splat", "split", "spread", "sqr", "sqrt", "stack", "stop_gradient", "tanh", "topk", "trigamma", "upsample", "variance", "version", "where", "window"]
