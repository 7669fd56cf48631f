# fathom.py - Fathom from Python: one file over the shared library, nothing to build.
#
# A graph is built of values with named axes, planned to the byte, and run into NumPy arrays.
# Arrays go in without a copy; results are written in place. Every mistake is a fathom.Error
# raised at the line of the caller, and that line is the one the library reports.
#
#     import fathom, numpy as np
#     g = fathom.Graph(memory="1G")
#     g.axes(cell=x.shape[0], dim=2)
#     X = g.input("X", x, "cell dim")
#     print(g.plan((X * X).sum("dim")).run())
#
# The library is found by FATHOM_LIBRARY, beside this file, in the lib folder of the tree or
# prefix this file lies in, or by the system. NumPy is the only package needed.
from __future__ import annotations

import atexit
import csv as _csv
import ctypes as C
import ctypes.util
import inspect
import json as _json
import math
import operator
import os
import re
import reprlib
import shutil
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import warnings
import weakref
from collections import namedtuple
from typing import Any, Callable, Iterable, Mapping, NamedTuple, NoReturn, Optional, Sequence, Union

import numpy as np

__version__ = "0.1.0"

MAX_AXES, MAX_IN, MAX_OUT = 8, 48, 24
P, I, L, U, D, S, B = C.c_void_p, C.c_int, C.c_int64, C.c_uint64, C.c_double, C.c_char_p, C.c_bool


# ---- types in signatures; tools/gen_stub takes them over ------------------------------------------

Axes = Union[str, Sequence[str]]  # "y x" or ["y", "x"]
Number = Union[bool, int, float, complex, np.generic]
Operand = Union["Value", Number]
Size = Union[int, str, None]  # bytes: 512, "8G", "50%"
Path = Union[str, "os.PathLike[str]"]
Data = Union[np.ndarray, "Tensor", "Source", Path, "tuple[Path, str]", Any]  # whatever input() takes
Into = Union[np.ndarray, Path, "tuple[Path, str]", Callable[["tuple[int, ...]", np.ndarray], Any]]
DType = Union[str, type, np.dtype]


# ---- the structs of the headers; tests/python/test_abi.py holds them against a C compiler -------

class Site(C.Structure):
    _c_name_ = "fth_site"
    _fields_ = [("file", S), ("func", S), ("line", I)]


class ErrFrame(C.Structure):
    _c_name_ = "fth_err_frame"
    _fields_ = [("site", Site), ("note", C.c_char * 120)]


class Err(C.Structure):
    _c_name_ = "fth_err"
    _fields_ = [("status", I), ("n_frames", I), ("origin", Site), ("need", L),
                ("text", C.c_char * 1400), ("hint", C.c_char * 400), ("frame", ErrFrame * 6)]


class StatusInfo(C.Structure):
    _c_name_ = "fth_status_info"
    _fields_ = [("name", S), ("code", S), ("brief", S), ("hint", S), ("exit_code", I)]


class Val(C.Structure):
    _c_name_ = "fth_val"
    _fields_ = [("graph", P), ("id", C.c_uint32)]


class MemOptions(C.Structure):
    _c_name_ = "fth_mem_options"
    _fields_ = [("budget_bytes", U), ("arena_below", U), ("direct_above", U), ("fail_alloc", L),
                ("fail_write", L), ("log", P)]


class Log(C.Structure):
    _c_name_ = "fth_log"
    _fields_ = [("write", P), ("user", P), ("level", I)]


LOG_FN = C.CFUNCTYPE(None, P, I, S)
LEVELS = ["error", "warn", "info", "debug"]


FRONT_PYTHON = 1  # fth_front: refusals speak of keywords


class Options(C.Structure):
    _c_name_ = "fth_options"
    _fields_ = [("mem", MemOptions), ("threads", I), ("log", Log), ("device", S),
                ("device_memory_bytes", U), ("backend_path", S), ("backend", P),
                ("scratch_dir", S), ("trace", P), ("cache_dir", S), ("no_gpu", S),
                ("trace_kernels", C.c_bool), ("progress", P), ("progress_user", P), ("front", I),
                ("plain_products", C.c_bool), ("ranks", P), ("ranks_strict", C.c_bool),
                ("plan_ranks", I)]


READ_FN = C.CFUNCTYPE(I, P, C.POINTER(L), C.POINTER(L), P, C.POINTER(Err))
READ_ROWS_FN = C.CFUNCTYPE(I, P, C.POINTER(L), L, P, C.POINTER(Err))
COMMIT_FN = C.CFUNCTYPE(I, P, C.POINTER(Err))
DROP_FN = C.CFUNCTYPE(None, P)


class SourceStruct(C.Structure):
    _c_name_ = "fth_source"
    _fields_ = [("kind", S), ("self", P), ("dtype", I), ("n_axes", I), ("size", L * MAX_AXES),
                ("read", READ_FN), ("read_rows", READ_ROWS_FN), ("data", P),
                ("libraries", C.c_uint32), ("billed_bytes", U), ("concurrent", B),
                ("part", L * MAX_AXES), ("thread_bytes", U)]


class SinkStruct(C.Structure):
    _c_name_ = "fth_sink"
    _fields_ = [("kind", S), ("self", P), ("dtype", I), ("n_axes", I), ("size", L * MAX_AXES),
                ("write", READ_FN), ("commit", COMMIT_FN), ("abandon", DROP_FN), ("data", P),
                ("libraries", C.c_uint32), ("billed_bytes", U), ("path", S), ("writer", P),
                ("concurrent", B), ("part", L * MAX_AXES), ("thread_bytes", U)]


class FileItem(C.Structure):
    _c_name_ = "fth_file_item"
    _fields_ = [("name", S), ("dtype", I), ("n_axes", I), ("size", L * MAX_AXES), ("axes", S)]


class H5Dataset(C.Structure):
    _c_name_ = "fth_h5_dataset"
    _fields_ = [("name", S), ("dtype", I), ("n_axes", I), ("size", L * MAX_AXES),
                ("chunk", L * MAX_AXES), ("gzip", I)]


class ZarrArray(C.Structure):
    _c_name_ = "fth_zarr_array"
    _fields_ = [("format", I), ("dtype", I), ("n_axes", I), ("size", L * MAX_AXES),
                ("chunk", L * MAX_AXES), ("per_shard", L * MAX_AXES), ("packing", I),
                ("axis", S * MAX_AXES)]


class Limits(C.Structure):
    _c_name_ = "fth_limits"
    _fields_ = [("memory_bytes", U), ("device_bytes", U), ("scratch_bytes", U), ("threads", I),
                ("stream", S), ("sinks", C.POINTER(SinkStruct)), ("no_recompute", B),
                ("no_spill", B), ("no_fuse", B), ("io_threads", I), ("min_pieces", L), ("keep", B),
                ("ranks", I)]


class PlanInfo(C.Structure):
    _c_name_ = "fth_plan_info"
    _fields_ = [("peak_bytes", U), ("foreign_bytes", U), ("lower_bytes", U), ("scratch_bytes", U),
                ("allowance_bytes", U), ("passes", L), ("chunks", L), ("steps", L), ("nested", L),
                ("recomputed", L), ("spilled", L), ("flops", D), ("moved_bytes", U),
                ("on_device", B), ("ranks", I), ("shared_passes", L), ("most_parts", L),
                ("exchanged_bytes", U), ("shared_fraction", D), ("seconds_alone", D),
                ("seconds_together", D), ("seconds", D), ("touch_seconds", D)]


class ProgressStruct(C.Structure):
    _c_name_ = "fth_progress"
    _fields_ = [("fraction", D), ("elapsed_s", D), ("remaining_s", D), ("rate", D), ("what", S)]


PROGRESS_FN = C.CFUNCTYPE(B, P, C.POINTER(ProgressStruct))


class RunOptions(C.Structure):
    _c_name_ = "fth_run_options"
    _fields_ = [("progress", PROGRESS_FN), ("user", P)]


class RunReport(C.Structure):
    _c_name_ = "fth_run_report"
    _fields_ = [("planned_bytes", U), ("ledger_bytes", U), ("touched_bytes", U),
                ("growth_bytes", U), ("allowance_bytes", U), ("growth_known", B), ("kept", B),
                ("seconds", D), ("io_seconds", D), ("compute_seconds", D),
                ("read_bytes", U), ("written_bytes", U), ("on_device", B), ("device_seconds", D),
                ("bound_by", S), ("read_seconds", D), ("write_seconds", D), ("copy_seconds", D),
                ("kernel_seconds", D), ("io_threads", I), ("predicted_seconds", D)]


class Conv(C.Structure):
    _c_name_ = "fth_conv"
    _fields_ = [("y", S), ("x", S), ("out_y", S), ("out_x", S), ("chan", S), ("ky", S), ("kx", S),
                ("stride", L), ("dilation", L), ("pad_y", L), ("pad_x", L)]


class AdamStruct(C.Structure):
    _c_name_ = "fth_adam"
    _fields_ = [("beta1", D), ("beta2", D), ("eps", D), ("decay", D)]


class OptimStruct(C.Structure):
    _c_name_ = "fth_optim"
    _fields_ = [("kind", I), ("beta2", D), ("eps", D), ("decay", D), ("product", Val), ("go", Val)]


class ScheduleStruct(C.Structure):
    _c_name_ = "fth_schedule"
    _fields_ = [("kind", I), ("rate", D), ("last", D), ("steps", L), ("warmup", L),
                ("rise", D)]


# ---- numbers of the headers' enums, in order --------------------------------------------------

# ---- made by tools/gen_python (make docs) from fathom/elementwise.def: change that
EW = {name: i for i, name in enumerate(("add", "sub", "mul", "div", "idiv", "mod", "fma", "min",
                                        "max", "pow", "atan2", "neg", "abs", "sqr", "sqrt", "rsqrt",
                                        "recip", "exp", "expm1", "log", "log1p", "sin", "cos",
                                        "tanh", "sigmoid", "softplus", "relu", "lgamma", "digamma",
                                        "trigamma", "erf", "floor", "ceil", "round", "sign",
                                        "isnan", "isfinite", "eq", "ne", "lt", "le", "gt", "ge",
                                        "and", "or", "xor", "not", "select", "conj", "real", "imag",
                                        "arg", "abs2", "complex"))}
# ---- end of what is made
RED = {name: i for i, name in enumerate("sum prod min max any all logsumexp".split())}
TRIANGLE = {"full": 0, "lower": 1, "upper": 2}
BORDER = {"zero": 0, "clamp": 1, "reflect": 2, "mirror": 3, "wrap": 4}
SCATTER = {"set": 0, "min": 1, "max": 2}
FFT = {"forward": 0, "inverse": 1, "real": 2, "real_inverse": 3}
RANDOM = {"bits": 0, "uniform": 1, "normal": 2}
OPTIM = {"adam": 0, "adamw": 1, "nadam": 2, "sgd": 3, "rmsprop": 4}
SCHEDULE = {"constant": 0, "exponential": 1, "cosine": 2, "linear": 3, "one_cycle": 4}

# dtype: number, NumPy's, DLPack code. bf16 travels through NumPy as uint16 bits.
DTYPES = {"bool": (0, "?", 6), "u8": (1, "u1", 1), "u16": (2, "u2", 1), "i32": (3, "i4", 0),
          "i64": (4, "i8", 0), "f16": (5, "f2", 2), "bf16": (6, "u2", 4), "f32": (7, "f4", 2),
          "f64": (8, "f8", 2), "c64": (9, "c8", 5), "c128": (10, "c16", 5), "u32": (11, "u4", 1),
          "i16": (12, "i2", 0), "i8": (13, "i1", 0)}
_DTYPE_OF = {np.dtype(d): name for name, (_, d, _) in DTYPES.items() if name != "bf16"}
_NAME_OF = {number: name for name, (number, _, _) in DTYPES.items()}


# ---- the library --------------------------------------------------------------------------------

def _places():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("FATHOM_LIBRARY"):
        return [os.environ["FATHOM_LIBRARY"]]
    wide = "lib/" + (sysconfig.get_config_var("MULTIARCH") or "")
    found = [os.path.join(here, *up, folder, "libfathom.so")
             for up, folder in (((), ""), (("..", ".."), "build/lib"), (("..", ".."), "lib"),
                                (("..", "..", ".."), "lib"), (("..", "..", ".."), wide))]
    found = [path for path in found if os.path.exists(path)]
    system = ctypes.util.find_library("fathom")
    return found + ([system] if system else []) + ["libfathom.so"]


_V, _O, _G = Val, Site, P
_PE, _PV = C.POINTER(Err), C.POINTER(Val)
# name: (result, arguments); a builder takes its site where the header has it
_FUNCTIONS = {
    "fth_version": (S, []), "fth_status_get_info": (C.POINTER(StatusInfo), [I]),
    "fth_err_format": (C.c_size_t, [_PE, S, C.c_size_t]),
    "fth_err_set": (I, None),
    "fth_mem_parse_size": (I, [S, U, C.POINTER(U), _PE]), "fth_mem_free_now": (U, []),
    "fth_options_default": (None, [C.POINTER(Options)]),
    "fth_context_create_": (I, [C.POINTER(P), _O, C.POINTER(Options), _PE]),
    "fth_context_destroy_": (I, [P, _O, _PE]), "fth_context_mem": (P, [P]),
    "fth_context_device": (S, [P]), "fth_context_threads": (I, [P]),
    "fth_tensor_create_": (I, [C.POINTER(P), P, _O, S, I, I, C.POINTER(L), _PE]),
    "fth_tensor_wrap_": (I, [C.POINTER(P), P, _O, S, I, I, C.POINTER(L), P, DROP_FN, P, _PE]),
    "fth_tensor_retain": (P, [P]), "fth_tensor_release_": (I, [P, _O]),
    "fth_tensor_data": (P, [P]), "fth_tensor_dtype": (I, [P]), "fth_tensor_axes": (I, [P]),
    "fth_tensor_size": (L, [P, I]), "fth_tensor_bytes": (U, [P]),
    "fth_source_close": (None, [C.POINTER(SourceStruct)]),
    "fth_npy_open": (I, [C.POINTER(SourceStruct), P, S, _PE]),
    "fth_npy_create": (I, [C.POINTER(SinkStruct), P, S, I, I, C.POINTER(L), _PE]),
    "fth_sink_close": (None, [C.POINTER(SinkStruct)]),
    "fth_npz_open": (I, [C.POINTER(P), P, S, _PE]), "fth_npz_close": (None, [P]),
    "fth_npz_source": (I, [P, S, C.POINTER(SourceStruct), _PE]),
    "fth_safetensors_open": (I, [C.POINTER(P), P, S, _PE]),
    "fth_safetensors_close": (None, [P]),
    "fth_safetensors_source": (I, [P, S, C.POINTER(SourceStruct), _PE]),
    "fth_h5_open": (I, [C.POINTER(P), P, S, _PE]), "fth_h5_close": (None, [P]),
    "fth_h5_source": (I, [P, S, C.POINTER(SourceStruct), _PE]),
    "fth_zarr_open": (I, [C.POINTER(P), P, S, _PE]), "fth_zarr_close": (None, [P]),
    "fth_zarr_source": (I, [P, C.POINTER(SourceStruct), _PE]),
    "fth_npz_create": (I, [C.POINTER(P), P, S, C.POINTER(FileItem), L, _PE]),
    "fth_npz_sink": (I, [P, S, C.POINTER(SinkStruct), _PE]),
    "fth_npz_commit": (I, [P, _PE]), "fth_npz_abandon": (None, [P]),
    "fth_safetensors_create": (I, [C.POINTER(P), P, S, C.POINTER(FileItem), L, P, _PE]),
    "fth_safetensors_sink": (I, [P, S, C.POINTER(SinkStruct), _PE]),
    "fth_safetensors_commit": (I, [P, _PE]), "fth_safetensors_abandon": (None, [P]),
    "fth_h5_create": (I, [C.POINTER(P), P, S, _PE]),
    "fth_h5_sink": (I, [P, C.POINTER(H5Dataset), C.POINTER(SinkStruct), _PE]),
    "fth_h5_put_attr_texts": (I, [P, S, S, C.POINTER(S), L, _PE]),
    "fth_h5_commit": (I, [P, _PE]), "fth_h5_abandon": (None, [P]),
    "fth_zarr_create": (I, [C.POINTER(SinkStruct), P, S, C.POINTER(ZarrArray), _PE]),
    "fth_batches_bytes": (U, [P, C.POINTER(SourceStruct), L]),
    "fth_batches_create_": (I, [C.POINTER(P), P, _O, C.POINTER(SourceStruct), L, _PE]),
    "fth_batches_destroy": (None, [P]),
    "fth_batches_ask_": (I, [P, _O, C.POINTER(L), L, _PE]),
    "fth_batches_take": (I, [P, C.POINTER(SourceStruct), _PE]),
    "fth_context_device_reason": (S, [P]),
    "fth_mem_options_default": (None, [C.POINTER(MemOptions)]),
    "fth_mem_create": (I, [C.POINTER(P), C.POINTER(MemOptions), _PE]),
    "fth_mem_destroy_": (I, [P, _O, _PE]),
    "fth_trace_create": (I, [C.POINTER(P), P, U, _PE]), "fth_trace_destroy": (None, [P]),
    "fth_trace_write": (I, [P, S, _PE]),
    "fth_graph_create_": (P, [P, _O]), "fth_graph_destroy_": (I, [P, _O]),
    "fth_graph_errors": (I, [P, I, _PE]), "fth_graph_clear_errors": (None, [P]),
    "fth_axis_": (B, [_G, _O, S, L]), "fth_axis_like_": (B, [_G, _O, S, S]),
    "fth_axis_at_most_": (B, [_G, _O, S, L]), "fth_axis_ragged_": (B, [_G, _O, S, S, P]),
    "fth_axis_size": (L, [_G, S]),
    "fth_input_": (_V, [_G, _O, S, I, S, SourceStruct]),
    "fth_input_set": (I, [_G, S, SourceStruct, _PE]), "fth_param_": (_V, [_G, _O, S, S, P]),
    "fth_conv2d_tiled_": (_V, [_O, _V, _V, C.POINTER(Conv)]),
    "fth_assign_": (_V, [_O, _V, _V]), "fth_const_": (_V, [_G, _O, I, D, D]),
    "fth_const_i64_": (_V, [_G, _O, I, L]), "fth_const_like_": (_V, [_O, _V, D]), "fth_out_": (_V, [_O, _V, I]),
    "fth_label": (_V, [_V, S]), "fth_val_dtype": (I, [_V]), "fth_val_axes": (I, [_V]),
    "fth_val_axis": (S, [_V, I]), "fth_val_size": (L, [_V, I]),
    "fth_val_format": (S, [_V, S, C.c_size_t]), "fth_graph_print": (I, [P, P]), "fth_grad_": (I, [_O, _V, I, _PV, _PV]),
    "fth_plan_make_": (P, [_G, _O, _PV, I, C.POINTER(Limits), _PE]),
    "fth_plan_destroy_": (I, [P, _O]), "fth_plan_get_info": (None, [P, C.POINTER(PlanInfo)]),
    "fth_plan_print": (I, [P, P]), "fth_plan_print_json": (I, [P, P]),
    "fth_run": (I, [P, C.POINTER(SinkStruct), C.POINTER(RunOptions), C.POINTER(RunReport), _PE]),
    "fth_show": (I, [_V, L, P, _PE]),
    "fth_adam_": (I, [_O, C.POINTER(AdamStruct), _V, _V, _V, _V, _V, _V, _PV]),
    "fth_optim_default": (OptimStruct, [I]),
    "fth_optim_carries": (I, [I]),
    "fth_optim_": (I, [_O, C.POINTER(OptimStruct), _V, _V, _V, _V, _V, _V, _V, _PV]),
    "fth_schedule_rate": (D, [C.POINTER(ScheduleStruct), L]),
}


class _Library:
    """Binds a function when it is first used."""

    def __init__(self):
        tried = []
        for path in _places():
            try:
                self._dll = C.CDLL(path)
                self._path = path
                break
            except OSError as e:
                tried.append(str(e))
        else:
            raise ImportError("libfathom.so was not found; set FATHOM_LIBRARY to its path\n  "
                              + "\n  ".join(tried))
        running = self.fth_version().decode()
        if running.split(".")[:2] != __version__.split(".")[:2]:
            raise ImportError(f"fathom.py is {__version__} and the library is {running}")

    def __getattr__(self, name):
        result, arguments = _FUNCTIONS[name]
        function = getattr(self._dll, name)
        function.restype = result
        if arguments is not None:
            function.argtypes = arguments
        setattr(self, name, function)
        return function


_lib = _Library()
_libc = C.CDLL(None)
_libc.open_memstream.restype = P
_libc.open_memstream.argtypes = [C.POINTER(P), C.POINTER(C.c_size_t)]
_libc.fclose.argtypes = [P]
_libc.free.argtypes = [P]


# ---- errors ---------------------------------------------------------------------------------------

class Place(NamedTuple):
    """A line of a program: its file and number."""
    file: str
    line: int


class Frame(NamedTuple):
    """A line of the library that an error passed, and what was being done there."""
    file: str
    line: int
    note: str


def _text(b):
    return b.decode("utf-8", "replace") if b else ""


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

    def __init__(self, text: str, status: str = "USAGE", hint: Optional[str] = None,
                 site: Optional[Place] = None, frames: Iterable[Frame] = ()) -> None:
        info = _STATUS[status]
        if site is None:  # files and contexts know no line of the program
            here = _site()
            site = Place(_text(here.file), here.line)
        self.status, self.code, self.exit_code = status, info[1], info[3]
        self.text, self.hint = text, hint or info[2]
        self.site, self.frames = site, tuple(frames)
        super().__init__(f"{self.code}: {text}\n  at     {site.file}:{site.line}\n  hint   {self.hint}")


_IN_PYTHON = [(re.compile(a), b) for a, b in (
    (r"(?<!\S)--(memory|threads|device|scratch)\b", r"\1="),
    (r"^read the comment above the function in its header$", "help(fathom) says what it takes"),
    (r"\bfth_const_i64\(g, FTH_I64, ", 'g.const('),
    (r"\bfth_(axis\w*|input|param|index|const)\(g, ", r"g.\1("),
    (r"\bfth_(axis\w*|input|param|index|const)\b", r"g.\1"),
    (r"\bfth_(\w+)", r"\1"), (r"\bFTH_(LOWER|UPPER)\b", lambda m: f'"{m.group(1).lower()}"'),
    (r"\bFTH_([A-Z]\w*)\b", lambda m: m.group(1).lower()))]


def _in_python(hint):
    """What to write, as it is written here: hints of the library speak of C."""
    for pattern, words in _IN_PYTHON:
        hint = pattern.sub(words, hint)
    return hint


def _status_table():
    table, i = {}, 1
    while True:
        info = _lib.fth_status_get_info(i).contents
        name = _text(info.name)
        table[name] = (i, _text(info.code), _in_python(_text(info.hint)), info.exit_code)
        if name == "INTERNAL":
            return table
        i += 1


_STATUS = _status_table()


def _error(err):
    info = _lib.fth_status_get_info(err.status).contents
    site = Place(_text(err.origin.file), err.origin.line) if err.origin.file else None
    frames = [Frame(_text(f.site.file), f.site.line, _text(f.note))
              for f in err.frame[:err.n_frames]]
    return Error(_text(err.text), _text(info.name), _in_python(_text(err.hint)), site, frames)


def _check(status, err, cause=None):
    if status != 0:
        raise _error(err) from cause


_strings = {}  # the library keeps pointers to file names as long as a graph lives


def _keep(text):
    if text not in _strings:
        _strings[text] = C.create_string_buffer(os.fsencode(text))
    return C.cast(_strings[text], S)


_NOT_CALLERS = {__file__, "<__array_function__ internals>"}  # the second one of NumPy before 1.25


def _site():
    """The innermost line that is not in this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _NOT_CALLERS:
        frame = frame.f_back
    code = frame.f_code
    return Site(_keep(code.co_filename), _keep(code.co_name), frame.f_lineno)


_END = Site(_keep("Python's collector"), _keep("release"), 0)  # where objects end by themselves


_NO_AXES = "axes go by name, \"y x\" or [\"y\", \"x\"], not by number"


def _encoded(text, status="GRAPH_NAME", encode=str.encode):
    """Text on its way to C, which would end it at a NUL."""
    try:
        found = encode(text)
    except UnicodeEncodeError:
        _refuse(f"{ascii(text)} has half a character (a lone surrogate)", status, "give text that UTF-8 can hold")
    if b"\0" in found:
        _refuse(f"{ascii(text)} has a NUL character, where C ends a text", status, "leave that character out")
    return found


def _path(path):
    """The same for the name of a file, which may hold any other byte."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        _refuse(f"expected the path of a file, found {_shown(path)}", "USAGE", "a path is text or a pathlib.Path")
    return _encoded(path, "FILE_OPEN", os.fsencode)


def _program_cache():
    """The folder in which the program keeps compiled kernels and the rates of the machine."""
    cache, home = os.environb.get(b"XDG_CACHE_HOME", b""), os.environb.get(b"HOME", b"")
    if cache.startswith(b"/"):
        return cache + b"/fathom"
    return home + b"/.cache/fathom" if home.startswith(b"/") else None


def _axes(axes):
    """"a b", ["a", "b"] -> b"a b"."""
    if isinstance(axes, str):
        return _encoded(axes, "AXIS_NAME")
    try:
        names = list(axes)
    except TypeError:
        names = [axes]
    if not all(isinstance(name, str) for name in names):
        _refuse(f"expected names of axes, found {axes!r}", "AXIS_NAME", _NO_AXES)
    return _encoded(" ".join(names), "AXIS_NAME")


def _axis(name):
    """"a" -> b"a"."""
    if not isinstance(name, str):
        _refuse(f"expected the name of an axis, found {name!r}", "AXIS_NAME", _NO_AXES)
    return _encoded(name, "AXIS_NAME")


def _name(name, what):
    if not isinstance(name, str):
        _refuse(f"the name of {what} is {name!r}, which is no text", "GRAPH_NAME")
    return _encoded(name)


def _some(v, axes):
    """The axes of a reduction: all of v where none are given."""
    return _axes(_value("a reduction", v).axes if axes is None else axes)


def _one_of(table, word, what):
    if not isinstance(word, str) or word not in table:
        _refuse(f"{what} is {word!r}", "GRAPH_ATTR", "it is one of " + ", ".join(map(repr, table)))
    return table[word]


def _shown(x):
    """Something that was given, in a message: without the numbers of arrays."""
    if isinstance(x, np.ndarray):
        return f"{type(x).__name__} {x.dtype} {list(x.shape)}"
    return f"{type(x).__name__} {' '.join(reprlib.repr(x).split())}"


def _refuse_operand(what, x):
    _refuse(f"{what}: expected a value of the graph, found {_shown(x)}", "GRAPH_VALUE",
            "arrays become values with names of axes: g.input(name, array, axes)")


def _preformatted(text):
    """For notebooks."""
    return "<pre>" + text.replace("&", "&amp;").replace("<", "&lt;") + "</pre>"


def _readable(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n} B" if unit == "B" else f"{n:.2f} {unit}"
        n /= 1024


_RANGE = {"bool": (0, 1), "u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1),
          "i8": (-2**7, 2**7 - 1), "i16": (-2**15, 2**15 - 1), "i32": (-2**31, 2**31 - 1),
          "i64": (-2**63, 2**63 - 1)}
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38,
            "f64": sys.float_info.max, "c64": 3.4028234663852886e38, "c128": sys.float_info.max}


def _refuse(text, status, hint=None):
    site = _site()
    raise Error(text, status, hint, Place(_text(site.file), site.line)) from None


def _int(x, what, bits=64, lo=None):
    """A whole number that fits: ctypes would cut it silently."""
    lo = -2 ** (bits - 1) if lo is None else lo
    try:
        n = operator.index(x)
    except TypeError:
        if not isinstance(x, (float, np.floating)) or not float(x).is_integer():
            _refuse(f"{what} is {x!r}, which is not a whole number", "GRAPH_ATTR")
        n = int(x)
    if not lo <= n < 2 ** (bits - 1):
        _refuse(f"{what} is {n}, which is not between {lo} and {2 ** (bits - 1) - 1}", "GRAPH_ATTR")
    return n


def _whole(x, what):
    """A list of whole numbers as i64; NumPy would cut fractions and take bools for 0 and 1."""
    try:
        array = np.asarray(x)
    except (ValueError, TypeError, OverflowError):  # lists of lists of several lengths
        array = np.asarray(None)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64 and array.max() >= 2 ** 63:
        _refuse(f"{what} are {_shown(x)}: expected whole numbers, i64", "GRAPH_ATTR",
                "of a mask: np.flatnonzero(mask)" if array.dtype == np.bool_ else "convert them: x.astype(np.int64)")
    if array.ndim != 1:
        _refuse(f"{what} are a list; this has the shape {array.shape}", "USAGE", "give one dimension")
    return np.ascontiguousarray(array, dtype=np.int64)


def _is_no(answer):
    """False, NumPy's too; None and 0 go on."""
    return isinstance(answer, (bool, np.bool_)) and not answer


def _scalar(x):
    """The number of an array without axes, such as a run gives."""
    return x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x


def _real(x, what):
    """A number that C takes as a double."""
    x = _scalar(x)
    if isinstance(x, (int, np.integer)) and not -2 ** 53 <= x <= 2 ** 53:
        try:
            exact = int(float(x)) == x
        except OverflowError:
            exact = False
        if not exact:
            _refuse(f"{what} is {reprlib.repr(int(x))}, which is not a number of f64, as this must be", "GRAPH_ATTR",
                    "operators, minimum and maximum take any i64, and clip, pad and scatter of i64 do")
    if isinstance(x, (float, int, np.floating, np.integer)):
        return float(x)
    _refuse(f"{what}: expected a number, found {_shown(x)}", "GRAPH_ATTR", "a number, such as 0.5")


def _flag(x, what):
    if not isinstance(x, (bool, np.bool_)) and not (isinstance(x, int) and x in (0, 1)):
        _refuse(f"{what}: expected True or False, found {_shown(x)}", "GRAPH_ATTR", "True or False")
    return bool(x)


def _number(x, dtype, what):
    """A Python or NumPy number as one of `dtype`, refused where its value would change."""
    x = _scalar(x)
    if not isinstance(x, (bool, int, float, complex, np.number, np.bool_)):
        _refuse(f"{what}: expected a number, found {_shown(x)}", "GRAPH_ATTR", "a number, such as 0.5")
    if isinstance(x, (bool, np.bool_)):
        x = bool(x)
    if dtype in _RANGE:
        lo, hi = _RANGE[dtype]
        whole = isinstance(x, (bool, int, np.integer)) or float(x).is_integer()
        if not whole or not lo <= int(x) <= hi:
            _refuse(f"{what}: {x!r} does not fit {dtype}", "GRAPH_ATTR",
                    f"{dtype} holds whole numbers from {lo} to {hi}; numbers take the dtype of the value "
                    'beside them: v.cast("f64") where fractions are meant')
    elif isinstance(x, (int, np.integer)) and not -_LARGEST[dtype] <= int(x) <= _LARGEST[dtype] or \
            isinstance(x, (float, np.floating)) and _LARGEST[dtype] < math.fabs(x) < math.inf:
        _refuse(f"{what}: {x!r} does not fit {dtype}", "GRAPH_ATTR",
                f"the largest {dtype} is {_LARGEST[dtype]:g}")
    return x


def _dtype_number(dtype):
    name = dtype if isinstance(dtype, str) and dtype in DTYPES else None
    if name is None and dtype is not None:  # NumPy takes None for f64
        try:
            name = _DTYPE_OF.get(np.dtype(dtype).newbyteorder("="))
        except TypeError:
            name = None
    if name is None:
        shown = str(dtype) if isinstance(dtype, np.dtype) else repr(dtype)
        plain = shown.strip("<>=|'") if dtype.__class__ is not type else dtype.__name__
        instead = {"float128": 'x.astype("f8")', "longdouble": 'x.astype("f8")', "complex256": 'x.astype("c16")',
                   "clongdouble": 'x.astype("c16")'}.get(plain)
        if plain in ("u64", "u8", "uint64"):
            instead = 'x.astype("i8") holds numbers up to 2^63-1, x.astype("f8") rounds larger ones'
        raise Error(f"there is no dtype {shown}", "DTYPE_OP",
                    (f"convert an array: {instead}; " if instead else "") + "dtypes are " + " ".join(DTYPES))
    return DTYPES[name][0]


def _numpy_dtype(number):
    return np.dtype(DTYPES[_NAME_OF[number]][1])


def _printed(write):
    """What `write` puts into a C file: (its status, the text)."""
    text, size = P(), C.c_size_t()
    file = _libc.open_memstream(C.byref(text), C.byref(size))
    if not file:
        raise MemoryError()
    status = write(file)
    _libc.fclose(file)
    out = C.string_at(text, size.value).decode()
    _libc.free(text)
    return status, out


def _bytes(size):
    """512, "512M", "2GiB", "50%" -> bytes."""
    if size is None:
        return 0
    if not isinstance(size, str):
        return _int(size, "a number of bytes", 65, 0)
    err, out = Err(), U()
    _check(_lib.fth_mem_parse_size(_encoded(size, "USAGE"), _lib.fth_mem_free_now(), C.byref(out),
                                   C.byref(err)), err)
    return out.value


# ---- context, tensors and DLPack ----------------------------------------------------------------

class _Life:
    """When something of C's ends: after its owner, and after all that stands on it (a plan on its
    graph, a graph on its context). They are counted here because Python may finalise what is
    garbage together in any order, as it does with the globals of a program that ends. When Python
    ends while daemon threads live, which may still use anything, nothing ends but the process."""

    _abandoned = False

    def __init__(self, owner, needs, end, *args):
        self.users, self._needs, self._end, self._args = 1, needs and needs.hold(), end, args
        weakref.finalize(owner, self.release)  # also when Python ends, the last made first

    def hold(self):
        self.users += 1
        return self

    def disarm(self):
        self._end, self._args = lambda: None, ()

    def release(self):
        self.users -= 1
        if self.users == 0 and not _Life._abandoned:
            self._end(*self._args)
            if self._needs:
                self._needs.release()

    @staticmethod
    def at_exit():
        """Threads that Python waits for have ended by now. One that begins in this file is the
        library's and calls back: whoever owns it waits for it."""
        for thread, frame in sys._current_frames().items():
            while frame.f_back is not None:
                frame = frame.f_back
            if thread != threading.get_ident() and frame.f_code.co_filename != __file__:
                _Life._abandoned = True
        if _Life._abandoned:
            _signals.leave()


weakref.finalize(_Life, bool)  # what weakref registers to end the rest comes first,
atexit.register(_Life.at_exit)  # and what is registered last runs first


class Context:
    """Memory budget, workers and device; shared by graphs."""

    trace: Optional[Trace]

    def __init__(self, memory: Size = None, threads: int = 0, device: Optional[str] = None,
                 scratch: Optional[Path] = None, trace: Optional[Trace] = None,
                 log: Optional[Callable[[str, str], Any]] = None, log_level: str = "info",
                 device_memory: Size = None, plain_products: bool = False,
                 cache: Optional[Path] = None) -> None:
        """memory="8G" is for everything: data, and what libraries may take (default: 90 % of what is
        free); threads, 0: one per core; device "cpu", "cuda", "cuda:1" or "auto", and
        device_memory="8G" the budget there; scratch is a folder for what is spilled. `trace` is a
        Trace; log(level, line) gets lines up to log_level: "error", "warn", "info" or "debug". With
        plain_products a GPU makes products of f32 without its matrix units. In the folder `cache` are
        kernels compiled for a GPU, and the rates of this machine that `fathom doctor --calibrate`
        measured; by default the program's, $XDG_CACHE_HOME/fathom or ~/.cache/fathom."""
        self._handle, self._closed, self._pid = None, None, os.getpid()
        if not (trace is None or isinstance(trace, Trace)):
            _refuse(f"trace is {_shown(trace)}", "USAGE", "Context(trace=fathom.Trace())")
        if not (log is None or callable(log)):
            _refuse(f"log is {_shown(log)}, which is no function", "USAGE", "log(level, line)")
        self.trace = trace  # must outlive the context
        opt, err, out = Options(), Err(), P()
        _lib.fth_options_default(C.byref(opt))
        opt.front = FRONT_PYTHON
        opt.mem.budget_bytes = _bytes(memory)
        opt.device_memory_bytes = _bytes(device_memory)
        opt.plain_products = bool(plain_products)
        opt.threads = _int(threads, "threads", 32)
        opt.device = _name(device, "a device") if device else None
        opt.scratch_dir = _path(scratch) if scratch else None
        if scratch and not os.path.isdir(scratch):
            _refuse(f"{os.fspath(scratch)!r}, for what is spilled, is no folder", "SCRATCH", "make it first")
        opt.cache_dir = _path(cache) if cache else _program_cache()
        opt.trace = trace._p if trace else None
        if log:
            self._log = LOG_FN(lambda user, level, line: log(LEVELS[level], _text(line)))
            opt.log.write = C.cast(self._log, P)
            opt.log.level = _one_of({x: i for i, x in enumerate(LEVELS)}, log_level, "log_level")
        opt.progress = C.cast(_go_on, P)  # runs inside the library: bragg, show()
        _check(_lib.fth_context_create_(C.byref(out), _site(), C.byref(opt), C.byref(err)), err)
        self._handle = out.value
        self._life = _Life(self, trace._life if trace else None, Context._end, self._p,
                           getattr(self, "_log", None))

    @staticmethod
    def _end(p, _log):  # lines may be written until it is gone
        _lib.fth_context_destroy_(p, _END, None)

    @property
    def _p(self):
        """What C knows it by; every use comes through here."""
        if self._handle is None:
            _refuse("this context was " + (f"closed at {self._closed.file}:{self._closed.line}" if self._closed
                                           else "never made"), "STATE", "create another")
        return self._handle

    @property
    def device(self) -> str:
        """Where runs compute: "cpu" or "cuda:0"."""
        return _text(_lib.fth_context_device(self._p))

    @property
    def device_reason(self) -> str:
        """Why that device: "auto: this build has no CUDA backend"."""
        return _text(_lib.fth_context_device_reason(self._p))

    @property
    def threads(self) -> int:
        """How many workers a run has."""
        return _lib.fth_context_threads(self._p)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<fathom.Context, closed>"
        return f"<fathom.Context on {self.device}, {self.threads} threads>"

    @property
    def _mem(self):
        return _lib.fth_context_mem(self._p)

    def tensor(self, shape: Union[int, Sequence[int]], dtype: DType = "f32",
               label: str = "tensor") -> Tensor:
        """A block of the budget, of a shape and dtype, named `label` in messages; np.asarray(t) and any
        DLPack consumer see its memory."""
        return Tensor(self, shape, dtype, label)

    def close(self) -> None:
        """Destroy now; raises LEAK, and destroys nothing, while tensors, graphs or batches live."""
        if self._handle is None:
            return
        if self._life.users > 1:
            raise Error(f"{self._life.users - 1} tensors, graphs or batches of this context live",
                        "LEAK", "let go of them first; a context also ends by itself")
        self._life.disarm()  # the end comes here, and not again
        site, p, err = _site(), self._handle, Err()
        self._handle, self._closed = None, Place(_text(site.file), site.line)
        _check(_lib.fth_context_destroy_(p, site, C.byref(err)), err)


class Trace:
    """A timeline of runs for Perfetto or chrome://tracing; its file never passes max_bytes."""

    def __init__(self, max_bytes: Size = 0) -> None:
        """max_bytes="64M" bounds the file; 0: the default of the library."""
        opt, err, mem, out = MemOptions(), Err(), P(), P()
        _lib.fth_mem_options_default(C.byref(opt))
        _check(_lib.fth_mem_create(C.byref(mem), C.byref(opt), C.byref(err)), err)
        ledger = _Life(self, None, _lib.fth_mem_destroy_, mem.value, _END, None)
        _check(_lib.fth_trace_create(C.byref(out), mem.value, _bytes(max_bytes), C.byref(err)),
               err)
        self._p = out.value
        self._life = _Life(self, ledger, _lib.fth_trace_destroy, self._p)

    def write(self, path: Path) -> None:
        """Save at `path`: JSON, whole or not at all; packed when the name ends in ".gz"."""
        err = Err()
        _check(_lib.fth_trace_write(self._p, _path(path), C.byref(err)), err)


class DLDevice(C.Structure):
    _fields_ = [("type", C.c_int32), ("id", C.c_int32)]


class DLTensor(C.Structure):
    _fields_ = [("data", P), ("device", DLDevice), ("ndim", C.c_int32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(L)),
                ("strides", C.POINTER(L)), ("byte_offset", U)]


class DLManagedTensor(C.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", P), ("deleter", DROP_FN)]


_py = C.pythonapi
_py.PyCapsule_New.restype = C.py_object
_py.PyCapsule_New.argtypes = [P, S, P]
_py.PyCapsule_GetPointer.restype = P
_py.PyCapsule_GetPointer.argtypes = [C.py_object, S]
# in the destructor the capsule is dying: no reference to it may be made
_capsule_ptr = C.PYFUNCTYPE(P, P, S)(("PyCapsule_GetPointer", _py))
_capsule_valid = C.PYFUNCTYPE(I, P, S)(("PyCapsule_IsValid", _py))
_exports = {}  # address of a managed tensor: what must live until its deleter is called


@DROP_FN
def _dl_delete(address):
    owner = _exports.pop(address, None)
    if owner is not None:
        owner[-1].release()


@C.PYFUNCTYPE(None, P)
def _capsule_destroy(capsule):
    if _capsule_valid(capsule, b"dltensor"):  # nobody took it
        _dl_delete(_capsule_ptr(capsule, b"dltensor"))


class Tensor:
    """Memory of the library's, with a shape. Context.tensor makes one."""

    context: Context
    shape: tuple[int, ...]
    dtype: str

    def __init__(self, context: Context, shape: Union[int, Sequence[int]], dtype: DType = "f32",
                 label: str = "tensor") -> None:
        self._p = None
        self.context = context
        self.shape = tuple(int(n) for n in np.atleast_1d(np.asarray(shape, dtype=np.int64)))
        number = _dtype_number(dtype)
        self.dtype = _NAME_OF[number]
        err, out = Err(), P()
        size = (L * MAX_AXES)(*self.shape)
        _check(_lib.fth_tensor_create_(C.byref(out), context._mem, _site(), _name(label, "a tensor"), number,
                                       len(self.shape), size, C.byref(err)), err)
        self._p = out.value
        self._life = _Life(self, context._life, _lib.fth_tensor_release_, self._p, _END)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": self.shape, "data": (_lib.fth_tensor_data(self._p), False),
                "typestr": np.dtype(DTYPES[self.dtype][1]).str}

    def numpy(self) -> np.ndarray:
        """An array over the same memory."""
        return np.asarray(self)

    def __repr__(self) -> str:
        return f"<fathom.Tensor {self.dtype} {list(self.shape)}>"

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        if stream is not None or copy or (dl_device not in (None, (1, 0))):
            raise BufferError("this tensor lies in host memory and is lent without a copy")
        m = DLManagedTensor()
        shape = (L * MAX_AXES)(*self.shape)
        m.tensor.data = _lib.fth_tensor_data(self._p)
        m.tensor.device = DLDevice(1, 0)
        m.tensor.ndim = len(self.shape)
        m.tensor.code = DTYPES[self.dtype][2]
        m.tensor.bits = np.dtype(DTYPES[self.dtype][1]).itemsize * 8
        m.tensor.lanes = 1
        m.tensor.shape = C.cast(shape, C.POINTER(L))
        m.deleter = _dl_delete
        address = C.addressof(m)
        _exports[address] = (m, shape, self._life.hold())
        return _py.PyCapsule_New(address, b"dltensor", C.cast(_capsule_destroy, P))


def _from_dlpack(obj):
    """A NumPy array, or (array of bits, "bf16"), over the memory of a DLPack producer."""
    device, _ = obj.__dlpack_device__()
    if device not in (1, 3):
        raise Error(f"the array lies on DLPack device {int(device)}, not in host memory", "DEVICE",
                    "copy it to the host first")
    capsule = obj.__dlpack__()
    # Taking no ownership: the capsule itself gives the block back when it dies.
    t = DLManagedTensor.from_address(_py.PyCapsule_GetPointer(capsule, b"dltensor")).tensor
    name = next((n for n, (_, d, code) in DTYPES.items() if code == t.code
                 and np.dtype(d).itemsize * 8 == t.bits and t.lanes == 1), None)
    if name is None:
        raise Error(f"DLPack type code {t.code} with {t.bits} bits has no dtype here", "DTYPE_OP")
    item = np.dtype(DTYPES[name][1]).itemsize
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] * item for i in range(t.ndim)) if t.strides else None

    class Lent:
        __array_interface__ = {"version": 3, "shape": shape, "strides": strides,
                               "typestr": np.dtype(DTYPES[name][1]).str,
                               "data": ((t.data or 0) + t.byte_offset, False)}
    lent = Lent()
    lent.capsule, lent.owner = capsule, obj
    return np.asarray(lent), name


def _as_array(data):
    """data -> (ndarray sharing its memory, dtype name or None to take NumPy's)."""
    if isinstance(data, Value):
        raise Error(f"{data!r} is a value already", "GRAPH_VALUE", "use it as it is, or give v.numpy()")
    if isinstance(data, np.ma.MaskedArray):
        raise Error("a masked array was given, and the engine knows no masks", "GRAPH_VALUE",
                    "give array.filled(value), or the data and the mask as two inputs")
    if isinstance(data, np.ndarray):
        return data, None
    if isinstance(data, Tensor):
        return np.asarray(data), data.dtype
    if hasattr(data, "__array_interface__"):
        return np.asarray(data), None
    if hasattr(data, "__dlpack__"):
        return _from_dlpack(data)
    try:
        return np.asarray(data), None
    except ValueError as e:  # lists of lists of several lengths
        _refuse(f"{_shown(data)} is no array: {e}", "GRAPH_VALUE",
                "rows of several lengths are entries of an axis of g.axis_ragged")


# ---- signals ---------------------------------------------------------------------------------

try:  # under the module signal, whose enums take longer than a small run
    import _signal as _handlers
except ImportError:
    _handlers = signal


class _Signals:
    """Ctrl-C, and every other signal whose handler raises, while C is running. Python runs handlers
    between its own instructions, and during a run there are none but those of a callback: an
    exception that came before the first line of it would be printed and lost. So handlers run as
    they are, what they raise is kept, the run is cancelled, and then it is raised.

    All that calls back goes on inside `with _signals`. When Python ends, there must be nothing to
    call any more: runs of daemon threads are cancelled, and these threads never come back."""

    _NUMBERS = [int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM",
                                                   "SIGUSR1", "SIGUSR2", "SIGXCPU")
                if hasattr(signal, name)]

    def __init__(self):
        self._raised, self._depth, self._before = None, 0, {}
        self._calls, self._leaving = [], None  # threads inside; the one that ends Python

    @staticmethod
    def _here():
        return threading.current_thread() is threading.main_thread()  # signals are its alone

    @property
    def interrupted(self):
        """For the thread that asks; runs of others go on."""
        return self._raised is not None and self._here() or self._ends_with(threading.get_ident())

    def _ends_with(self, thread):
        return self._leaving not in (None, thread)

    def leave(self):
        """Python ends: wait until the other threads are out, but not for ever."""
        self._leaving, until = threading.get_ident(), time.monotonic() + 10
        while any(map(self._ends_with, list(self._calls))) and time.monotonic() < until:
            time.sleep(0.001)

    def _stay(self):
        """Where a daemon thread waits for the process to end, unless a call of its own waits for it."""
        thread = threading.get_ident()
        while self._ends_with(thread) and thread not in self._calls:
            time.sleep(60)

    def _handle(self, number, frame):
        try:
            self._before[number](number, frame)
        except BaseException as e:
            if self._raised is None:
                self._raised = e

    def __enter__(self):
        thread = threading.get_ident()
        self._calls.append(thread)  # before the question: leave() waits for this call, or it is not made
        if self._ends_with(thread):
            self._calls.remove(thread)
            self._stay()
            self._calls.append(thread)
        if not self._here():
            return
        self._depth += 1
        if self._depth > 1:
            return
        for number in self._NUMBERS:
            before = _handlers.getsignal(number)
            if callable(before):
                self._before[number] = before
                _handlers.signal(number, self._handle)

    def __exit__(self, kind, value, traceback):
        self._calls.remove(threading.get_ident())
        self._stay()
        if not self._here():
            return
        self._depth -= 1
        if self._depth == 0:
            for number, before in list(self._before.items()):
                if _handlers.getsignal(number) == self._handle:  # or one has put another there
                    _handlers.signal(number, before)
            self._before.clear()
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


_signals = _Signals()


@PROGRESS_FN
def _go_on(_user, _progress):
    return not _signals.interrupted


# ---- threads -------------------------------------------------------------------------------------

_inside = threading.local()  # .lock: of the graph whose run waits for the callback in this thread


class _Lock:
    """A graph, its values and its plans are used by one thread at a time: others wait."""

    def __init__(self, pid):
        self._lock, self._pid = threading.RLock(), pid

    def __enter__(self):
        if self._lock.acquire(False):
            return
        if getattr(_inside, "lock", None) is self:
            _refuse("a source or sink used the graph whose run waits for it", "STATE",
                    "use another graph there, or NumPy")
        if os.getpid() != self._pid:
            _refuse("a child of fork used a graph that another thread of its parent was using", "STATE",
                    "create a context in the child")
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


# ---- where data comes from and goes to ---------------------------------------------------------

class _Callbacks:
    """What C calls back. Holds no graph or plan, so that nothing here keeps them alive; an
    exception is kept (by `keeper`) and raised again by the run that it ended."""

    def __init__(self, keeper=None, lock=None):
        self.live, self.raised, self._keeper = [], None, keeper or self
        self._lock = keeper._lock if keeper else lock  # of the graph whose runs call

    def guard(self, kind, function):
        keeper, lock = self._keeper, self._lock
        status = "FILE_WRITE" if kind == "write" else "FILE_READ"

        def call(_self, *args):
            before, _inside.lock = getattr(_inside, "lock", None), lock
            try:
                function(*args[:-1])
                return 0
            except BaseException as e:
                keeper.raised = e
                got = _lib.fth_err_set(args[-1], Site(_keep(__file__), _keep(kind), 0),
                                       C.c_int(_STATUS[status][0]), C.c_char_p(b"%s"),
                                       C.c_char_p(f"{type(e).__name__}: {e}".encode(errors="replace")))
                args[-1].contents.hint = f"the exception came from your {kind}(): its lines are above".encode()
                return got
            finally:
                _inside.lock = before
        return call

    def take(self):
        e, self.raised = self.raised, None
        return e


class Source:
    """Data made or fetched when asked for. `read(lo, n)` returns the rectangle [lo, lo+n);
    `read_rows(index)`, for Batches, those rows of the first axis: without it, read serves."""

    shape: tuple[int, ...]
    dtype: DType
    read: Callable[[tuple[int, ...], tuple[int, ...]], Any]
    read_rows: Optional[Callable[[np.ndarray], Any]]

    def __init__(self, shape: Sequence[int], dtype: DType,
                 read: Callable[[tuple[int, ...], tuple[int, ...]], Any],
                 read_rows: Optional[Callable[[np.ndarray], Any]] = None) -> None:
        if not isinstance(shape, Iterable):
            _refuse(f"Source: the shape is {_shown(shape)}", "USAGE", "a tuple of the sizes of the axes: (4,)")
        for name, function in (("read", read), ("read_rows", read_rows)):
            if not (callable(function) or function is None):
                _refuse(f"Source: {name} is {_shown(function)}, which is no function", "USAGE", "read(lo, n)")
        self.shape, self.dtype, self.read, self.read_rows = tuple(shape), dtype, read, read_rows

    def __repr__(self) -> str:
        return f"<fathom.Source {self.dtype} {list(self.shape)}>"


def _fill_shape(s, number, shape):
    if len(shape) > MAX_AXES:
        raise Error(f"an array has {len(shape)} axes, at most {MAX_AXES} are allowed", "AXIS_LIMIT")
    s.dtype, s.n_axes = number, len(shape)
    for i, n in enumerate(shape):
        s.size[i] = _int(n, f"size {i} of an array")


def _rect(n_axes, lo, n):
    return tuple(lo[i] for i in range(n_axes)), tuple(n[i] for i in range(n_axes))


def _over(address, shape, dtype):
    """An array over memory that C lent for the length of a call."""
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype)
    buffer = (C.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(buffer, dtype, count).reshape(shape)


def _putter(array):
    def put(lo, part):
        array[tuple(slice(a, a + n) for a, n in zip(lo, part.shape))] = part
    return put


def _fitting(part, number):
    """What a callback returned as an array of this dtype; values that would change are refused."""
    part, name, dtype = np.asarray(part), _NAME_OF[number], _numpy_dtype(number)
    if part.dtype == dtype:
        return part
    if part.dtype.kind not in "biufc" or name == "bf16" or \
            part.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"read returned {part.dtype}; the source is declared {name}")
    with np.errstate(all="ignore"):
        cast = part.astype(dtype)
    changed = cast != part if dtype.kind in "biu" else np.isinf(cast) & ~np.isinf(part)
    if changed.any():
        raise ValueError(f"read returned {part[changed].flat[0]!r}, which does not fit {name}")
    return cast


def _shaped(part, size, number):
    """The same for a rectangle: of its size, or one number for all of it."""
    part = _fitting(part, number)
    if part.shape != size and part.ndim > 0:
        raise ValueError(f"read returned the shape {part.shape} where {size} was asked for")
    return part


def _settled(array):
    """Whether a bool array holds the bytes 0 and 1 alone: a view of other bytes may not."""
    return array.dtype != np.bool_ or array.size == 0 or array.view(np.uint8).max() <= 1


def _read_source(callbacks, shape, number, read, kind, read_rows=None):
    s, dtype, n_axes = SourceStruct(), _numpy_dtype(number), len(shape)
    _fill_shape(s, number, shape)
    s.kind = kind

    def fill(lo, n, dst):
        at, size = _rect(n_axes, lo, n)
        _over(dst, size, dtype)[...] = _shaped(read(at, size), size, number)

    def fill_rows(index, n, dst):
        at = np.ctypeslib.as_array(index, (n,)) if n else np.empty(0, np.int64)
        size = (n, *shape[1:])
        _over(dst, size, dtype)[...] = _shaped(read_rows(at), size, number)
    s.read = READ_FN(callbacks.guard("read", fill))
    callbacks.live.append(s.read)
    if read_rows is not None and n_axes > 0:
        s.read_rows = READ_ROWS_FN(callbacks.guard("read_rows", fill_rows))
        callbacks.live.append(s.read_rows)
    return s


def _array_source(callbacks, array, number):
    def read(lo, n):
        return array[tuple(slice(a, a + b) for a, b in zip(lo, n))]
    s = _read_source(callbacks, array.shape, number, read, b"numpy", lambda index: array[index])
    callbacks.live.append(array)
    if array.flags.c_contiguous and array.dtype.isnative and array.size and _settled(array):
        s.data = array.ctypes.data
    return s


_CONTAINERS = {".npz": "npz", ".safetensors": "safetensors", ".h5": "h5", ".hdf5": "h5",
               ".h5ad": "h5"}


def _ending(path):
    return os.path.splitext(os.fspath(path).rstrip("/"))[1].lower()


def _file_source(context, place):
    """"x.npy", "x.zarr", ("x.npz", "name"), ("x.safetensors", "name"), ("x.h5", "/dataset")."""
    path, name = place if isinstance(place, tuple) and len(place) == 2 else (place, None)
    if not isinstance(path, (str, os.PathLike)) or not (name is None or isinstance(name, str)):
        raise Error(f"{place!r} is neither a path nor (file, name)", "FILE_FORMAT", _READABLE)
    ending = _ending(path)
    s, err, box = SourceStruct(), Err(), P()
    if name is None and ending == ".npy":
        _check(_lib.fth_npy_open(C.byref(s), context._mem, _path(path), C.byref(err)), err)
        return s
    kind = "zarr" if ending == ".zarr" else _CONTAINERS.get(ending)
    if kind is None or (name is None and kind != "zarr"):
        raise Error(f"{place!r} " + ("is no file that can be read" if kind is None
                                     else "holds several arrays, and none is named"),
                    "FILE_FORMAT", _READABLE)
    if kind == "zarr" and not os.path.isdir(path):
        raise Error(f"{path}: no such folder", "FILE_OPEN")
    if kind == "zarr" and name is not None:
        path = os.path.join(path, name.strip("/"))
    status = getattr(_lib, f"fth_{kind}_open")(C.byref(box), context._mem, _path(path), C.byref(err))
    if status != 0 and kind == "zarr" and b"it is a group" in err.text:
        raise Error(_text(err.text), "FILE_FORMAT", "name an array in it: ('x.zarr', 'group/name')")
    _check(status, err)
    try:
        given = (box,) if kind == "zarr" else (box, _encoded(name))
        _check(getattr(_lib, f"fth_{kind}_source")(*given, C.byref(s), C.byref(err)), err)
    finally:
        getattr(_lib, f"fth_{kind}_close")(box)
    return s


_READABLE = ("give 'x.npy' or 'x.zarr', or (file, name) for .npz, .safetensors, .h5, .hdf5, .h5ad, .zarr; what "
             "another library reads, as TIFF, is a fathom.Source(shape, dtype, read)")


def _without_numbers(data, array):
    """What to do with an object of which NumPy makes no numbers."""
    if hasattr(array[()], "tocsr"):
        return "a sparse matrix goes by its arrays: g.axis_ragged takes indptr, g.input takes data and indices"
    if hasattr(data, "filename") and hasattr(data, "keys"):
        return "name one array of the file: ('x.h5', 'name')"
    if hasattr(data, "to_numpy"):
        return 'give columns of one dtype: x.to_numpy("f8")'
    if array.dtype == object and array.ndim > 0:
        return 'convert it: x.astype("f8")'
    return "dtypes are " + " ".join(DTYPES)


def _number_of(array, dtype, data):
    if array.dtype.kind not in "biufc":
        what = f"an array of {array.dtype}" if isinstance(data, np.ndarray) and data.ndim > 0 else _shown(data)
        raise Error(f"{what} holds no numbers", "DTYPE_OP", _without_numbers(data, array))
    number = _dtype_number(dtype if dtype else array.dtype)
    if _numpy_dtype(number) != array.dtype.newbyteorder("="):
        raise Error(f"an array of {array.dtype} cannot be {_NAME_OF[number]}", "DTYPE",
                    f'convert the array, x.astype("{_numpy_dtype(number)}"), or cast in the graph')
    return number


class _Opened:
    """The struct of a source over whatever a user may give, and what must live as long as it;
    `file` is to be closed."""

    def __init__(self, context, keeper, data, dtype=None):
        self.file, self.strided, self._callbacks = None, None, _Callbacks(keeper)
        if isinstance(data, Source):
            self.struct = _read_source(self._callbacks, data.shape,
                                       _dtype_number(dtype or data.dtype), data.read, b"python",
                                       data.read_rows)
        elif isinstance(data, (str, os.PathLike, tuple)):
            self.struct = self.file = _file_source(context, data)
            if dtype is not None:
                self._take_dtype(data, _dtype_number(dtype))
        else:
            array, own = _as_array(data)
            self.struct = _array_source(self._callbacks, array, _number_of(array, dtype or own, data))
            if not self.struct.data and array.size:
                self.strided = array

    def _take_dtype(self, data, number):
        """What the bits of a file are, as of an array."""
        held, self.struct.dtype = self.struct.dtype, number
        if _numpy_dtype(held) != _numpy_dtype(number):
            self.close()
            _refuse(f"{data!r} holds {_NAME_OF[held]}, which cannot be {_NAME_OF[number]}", "DTYPE",
                    "leave dtype= out, and cast in the graph")

    def close(self):
        if self.file is not None:
            _lib.fth_source_close(C.byref(self.file))
        self.forget()

    def array(self):
        """All of it in memory, and the name of its dtype."""
        s, err, name = self.struct, Err(), _NAME_OF[self.struct.dtype]  # of a closed one there is none
        out = np.empty(tuple(s.size[:s.n_axes]), _numpy_dtype(s.dtype))
        status = s.read(s.self, (L * MAX_AXES)(), s.size, out.ctypes.data, C.byref(err)) if out.size else 0
        self.close()
        _check(status, err, self._callbacks.take())
        return out, name

    def forget(self):
        self.strided = None
        self._callbacks.live.clear()  # they refer to each other; arrays must go now


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
            x.set(b.take())
    """

    bytes: int

    def __init__(self, context: Context, data: Data, rows: int, dtype: Optional[DType] = None) -> None:
        self._callbacks, self._lock = _Callbacks(), threading.RLock()
        rows = _int(rows, "rows of a batch")
        base, err, out = _Opened(context, self._callbacks, data, dtype), Err(), P()
        self.bytes = _lib.fth_batches_bytes(context._mem, C.byref(base.struct), rows)
        status = _lib.fth_batches_create_(C.byref(out), context._mem, _site(),
                                          C.byref(base.struct), rows, C.byref(err))
        if status != 0:
            base.close()
            raise _error(err)
        self._p = out.value
        self._life = _Life(self, context._life, Batches._end, self._p, base)

    @staticmethod
    def _end(p, base):
        _lib.fth_batches_destroy(p)  # a reader may be calling into Python until now
        base.close()

    def ask(self, index: Any) -> None:
        """Start reading the rows `index`, in this order. The batch before stays until this one is
        taken."""
        index, err = _whole(index, "the rows of a batch"), Err()
        with self._lock:
            _check(_lib.fth_batches_ask_(self._p, _site(), index.ctypes.data_as(C.POINTER(L)),
                                         len(index), C.byref(err)), err)

    def take(self) -> np.ndarray:
        """Wait for the batch asked for: an array over memory of the library's, as it is until the
        next take. What went wrong while reading is raised here."""
        s, err = SourceStruct(), Err()
        with self._lock:
            status = _lib.fth_batches_take(self._p, C.byref(s), C.byref(err))
            _check(status, err, self._callbacks.take())

        class Lent:
            __array_interface__ = {"version": 3, "shape": tuple(s.size[:s.n_axes]),
                                   "typestr": _numpy_dtype(s.dtype).str, "data": (s.data, False)}
        lent = Lent()
        lent.owner = self
        return np.asarray(lent)


# ---- files that outputs become -------------------------------------------------------------------

_WRITERS = {".npz": "npz", ".safetensors": "safetensors", ".h5": "h5", ".hdf5": "h5"}
_WRITABLE = ("give 'x.npy' or 'x.zarr' for one array, (file, name) for one of several in "
             "'x.npz', 'x.safetensors', 'x.h5' or 'x.hdf5', or a function of (lo, array) that writes elsewhere")
_LIB_HDF5 = 1 << 3  # of libraries.def
_CHUNK_BYTES = 1 << 20  # of a Zarr chunk

_Target = namedtuple("_Target", "kind path name")


def _target(where, key):
    """Which file an output becomes, and its name there."""
    path, name = where if isinstance(where, tuple) and len(where) == 2 else (where, None)
    if not isinstance(path, (str, os.PathLike)) or not (name is None or isinstance(name, str)):
        _refuse(f"output {key!r} cannot go to {where!r}: it is no array, path, (file, name) or function",
                "NO_SINK", _WRITABLE)
    _path(path), _encoded(name or "", "FILE_OPEN")
    path, ending = os.fsdecode(path), _ending(path)
    if ending in (".npy", ".zarr"):
        if name is not None:
            _refuse(f"output {key!r} cannot go to {where!r}: {ending} holds one array, which has no name",
                    "FILE_FORMAT", f"give {path!r} alone; " + _WRITABLE)
        return _Target(ending[1:], path, None)
    if ending not in _WRITERS:
        _refuse(f"output {key!r} cannot go to {where!r}: {ending or 'a name without ending'} is no "
                "format that is written", "FILE_FORMAT", _WRITABLE)
    if not name or name.strip("/") == "":
        _refuse(f"output {key!r} goes to {path!r}, which holds several arrays, without a name",
                "FILE_FORMAT", f"give ({path!r}, {str(key)!r})")
    return _Target(_WRITERS[ending], path, name)


def _identity(path):
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.realpath(folder), name


def _check_targets(targets):
    """Refuse two outputs for one place before anything runs."""
    seen = {}
    for key, target in targets.items():
        name = target.name
        if target.kind == "npz" and name.endswith(".npy"):
            name = name[:-4]
        if target.kind == "h5":
            name = "/" + "/".join(part for part in name.split("/") if part)
        for (other_file, other_name), other in seen.items():
            if other_file != _identity(target.path):
                continue
            if name == other_name:
                what = f"{target.name!r} in " if name else ""
                _refuse(f"outputs {other!r} and {key!r} would both become {what}the file "
                        f"{target.path!r}", "ALIAS",
                        "give each a name of its own")
            a, b = sorted((name, other_name))
            if target.kind == "h5" and b.startswith(a + "/"):
                _refuse(f"outputs {other!r} and {key!r}: {a!r} of {target.path!r} cannot be a dataset "
                        f"and the group of {b!r}", "ALIAS", "give each a name of its own")
        seen[_identity(target.path), name] = key


def _zarr_array(number, shape, axes):
    """Chunks of whole inner axes, of about _CHUNK_BYTES."""
    array, room = ZarrArray(dtype=number, n_axes=len(shape)), _CHUNK_BYTES
    room = max(1, room // _numpy_dtype(number).itemsize)
    for i in reversed(range(len(shape))):
        array.size[i], array.axis[i] = shape[i], axes[i].encode()
        array.chunk[i] = max(1, min(shape[i], room))
        room = max(1, room // array.chunk[i])
    return array


class _Files:
    """The files of one run. What goes to one file shares a writer, which the last of them to be
    committed ends: inside the run, when nothing else can fail, and before parameters change."""

    def __init__(self, context):
        self._mem, self._closing, self._writers, self.live = context._mem, [], {}, []

    def open(self, sinks, places, describe):
        """places: {index of a sink: target}; describe(index): number of its dtype, shape, axes."""
        shared = {}
        for i, target in places.items():
            if target.kind in ("npy", "zarr"):
                self._open_one(sinks[i], target, *describe(i))
            else:
                shared.setdefault(_identity(target.path), []).append(i)
        for members in shared.values():
            self._open_shared(sinks, members, places, describe)

    def _open_one(self, sink, target, number, shape, axes):
        err, path = Err(), _path(target.path)
        if target.kind == "npy":
            status = _lib.fth_npy_create(C.byref(sink), self._mem, path, number, len(shape),
                                         (L * MAX_AXES)(*shape), C.byref(err))
        else:
            status = _lib.fth_zarr_create(C.byref(sink), self._mem, path,
                                          C.byref(_zarr_array(number, shape, axes)), C.byref(err))
        _check(status, err)
        self._closing.append(sink)

    def _open_shared(self, sinks, members, places, describe):
        kind, path = places[members[0]].kind, _path(places[members[0]].path)
        err, box, items = Err(), P(), (FileItem * len(members))()
        for item, i in zip(items, members):
            number, shape, axes = describe(i)
            item.name, item.axes = _encoded(places[i].name), " ".join(axes).encode()
            item.dtype, item.n_axes = number, len(shape)
            item.size[:len(shape)] = shape
        given = [] if kind == "h5" else [items, len(items)] + [None] * (kind == "safetensors")
        _check(getattr(_lib, f"fth_{kind}_create")(C.byref(box), self._mem, path, *given,
                                                   C.byref(err)), err)
        self._writers[box.value] = kind
        for item, i in zip(items, members):
            sink = sinks[i]
            if kind == "h5":
                dataset = H5Dataset(item.name, item.dtype, item.n_axes, item.size)
                _check(_lib.fth_h5_sink(box, C.byref(dataset), C.byref(sink), C.byref(err)), err)
                self._label(box, item, err)
            else:
                _check(getattr(_lib, f"fth_{kind}_sink")(box, item.name, C.byref(sink),
                                                         C.byref(err)), err)
            sink.abandon = DROP_FN()  # the writer may be gone by then; close() abandons it
        self._end_with(sinks[max(members)], box.value, kind)

    @staticmethod
    def _label(box, item, err):
        """Names of axes, where h5py has them as dataset.dims[i].label."""
        axes = item.axes.split()
        if axes:
            _check(_lib.fth_h5_put_attr_texts(box, item.name, b"DIMENSION_LABELS",
                                              (S * len(axes))(*axes), len(axes), C.byref(err)), err)

    def _end_with(self, sink, box, kind):
        """Sinks are committed in order: with this one its file is complete."""
        finish = COMMIT_FN.from_buffer_copy(sink.commit)

        def commit(me, err):
            status = finish(me, err)
            if status == 0:
                del self._writers[box]
                status = getattr(_lib, f"fth_{kind}_commit")(box, err)
            return status
        sink.commit = COMMIT_FN(commit)
        self.live.append(sink.commit)

    def close(self):
        """What was not committed goes, and older files stay."""
        for box, kind in self._writers.items():
            getattr(_lib, f"fth_{kind}_abandon")(box)
        for sink in self._closing:
            _lib.fth_sink_close(C.byref(sink))
        self._writers, self._closing = {}, []
        self.live.clear()


def _plan_file(context, sink, target, number, shape, axes):
    """What a plan must know of a file before there is one: what its writing takes beside the data."""
    if target.kind == "h5":
        sink.libraries = _LIB_HDF5
    if target.kind != "zarr":
        return None
    folder, err = tempfile.mkdtemp(prefix="fathom-"), Err()
    try:  # its rooms depend on the budget: the library says
        real = SinkStruct()
        _check(_lib.fth_zarr_create(C.byref(real), context._mem,
                                    _path(os.path.join(folder, "x.zarr")),
                                    C.byref(_zarr_array(number, shape, axes)), C.byref(err)), err)
    finally:
        shutil.rmtree(folder, True)
    sink.libraries, sink.billed_bytes = real.libraries, real.billed_bytes
    return real


# ---- values ---------------------------------------------------------------------------------------

def _value(what, x):
    if not isinstance(x, Value):
        _refuse_operand(what, x)
    return x


def _add(name, *args):
    """Add an operation to the graph of its first operand."""
    first = _FUNCTIONS[name][1].index(Val) - 1  # after the site
    return _value(name[4:].strip("_"), args[first]).graph._build(name, *args)


def _map(op, a, b=None, c=None):
    return _add("fth_map_", EW[op], _value(op, a), b if b is not None else Val(), c if c is not None else Val())


def _is_two(x):
    return isinstance(_scalar(x), (int, float, complex, np.generic)) and x == 2


def _binary(op, swap=False):
    def method(self, other):
        value = self._lift(other)
        if value is NotImplemented:
            if isinstance(other, (np.ndarray, list, tuple)) or op in ("eq", "ne") and other is not None:
                _refuse_operand(op, other)  # Python would compare the objects, and say False
            return NotImplemented
        return _map(op, value, self) if swap else _map(op, self, value)
    return method


class Value:
    """A handle into a graph. Arithmetic and comparisons build; numbers take the value's dtype. Builders
    that start with a value are methods too: v.exp(), v.sum("axis"), a.dot(b, "axis"). Of == and != only
    v == None stays Python's, False; arrays, lists and text are refused."""

    graph: Graph
    id: int

    __slots__ = ("graph", "id", "__weakref__")

    def __init__(self, graph: Graph, id: int) -> None:
        self.graph, self.id = graph, id

    # np.exp(v), np.float32(2) * v and np.sum(v, "x"); arrays never become arrays of values.
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _numpy_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _numpy_function(function, args, kwargs)

    @property
    def _as_parameter_(self):
        return Val(self.graph._p, self.id)

    @property
    def dtype(self) -> str:
        """The name of its dtype: "f32"."""
        with self.graph._lock:
            return _NAME_OF[_lib.fth_val_dtype(self)]

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of its axes, outermost first."""
        with self.graph._lock:
            return tuple(_text(_lib.fth_val_axis(self, i)) for i in range(_lib.fth_val_axes(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its axes, as its array will have them."""
        with self.graph._lock:
            return tuple(_lib.fth_val_size(self, i) for i in range(_lib.fth_val_axes(self)))

    def __repr__(self) -> str:
        text = C.create_string_buffer(512)
        with self.graph._lock:
            return _text(_lib.fth_val_format(self, text, len(text)))

    def _lift(self, x):
        if isinstance(x, Value):
            return x
        x = _scalar(x)
        if isinstance(x, (bool, int, float, complex, np.generic)):
            return self.graph.const(x, self.dtype)
        return NotImplemented

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", True)
    __floordiv__, __rfloordiv__ = _binary("idiv"), _binary("idiv", True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", True)
    __rpow__ = _binary("pow", True)
    __and__, __rand__ = _binary("and"), _binary("and", True)
    __or__, __ror__ = _binary("or"), _binary("or", True)
    __xor__, __rxor__ = _binary("xor"), _binary("xor", True)
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")

    def __pow__(self, other: Operand) -> Value:
        if _is_two(other):
            return _map("sqr", self)
        return _binary("pow")(self, other)

    def __neg__(self) -> Value:
        return _map("neg", self)

    def __abs__(self) -> Value:
        return _map("abs", self)

    def __invert__(self) -> Value:
        return _map("not", self)

    # What would be a surprise: each says what to write.
    def __getitem__(self, index) -> NoReturn:
        raise TypeError("axes of a value go by name: v.slice(axis, start, into), v.slice_step, v.gather(axis, index) "
                        "or v.numpy()[...]")

    __iter__ = None

    def __matmul__(self, other) -> NoReturn:
        raise TypeError("products name what is summed: a.dot(b, axes)")

    __rmatmul__ = __matmul__

    def __array__(self, *_, **__) -> NoReturn:
        raise TypeError("a value has no numbers before it is run; write v.numpy()")

    def __float__(self) -> NoReturn:
        raise TypeError("a value has no number before it is run; write v.item()")

    __int__ = __complex__ = __index__ = __float__

    def __getattr__(self, name: str) -> NoReturn:
        """Only what is not there comes here."""
        instead = _INSTEAD.get(name)
        raise AttributeError(f"a value has no '{name}'" + (f"; instead: {instead}" if instead else ""))

    def __hash__(self) -> int:
        return hash((id(self.graph), self.id))

    def __bool__(self) -> bool:
        raise TypeError("a value has no truth before it is run; write v.item()")

    # what v.method(...) shares with fathom.method(v, ...) is filled in below

    def sum(self, axes: Optional[Axes] = None) -> Value:
        """Sum over `axes`, over all where none are given. Of bool and integers i64; f16, bf16 and f32 are
        added up in f64 along an axis, and rounded before the next one: merge them to add up at once."""
        return _reduce("sum", self, axes)

    def prod(self, axes: Optional[Axes] = None) -> Value:
        """Product over `axes`, over all where none are given. Of bool and integers i64."""
        return _reduce("prod", self, axes)

    def min(self, axes: Optional[Axes] = None) -> Value:
        """Smallest element over `axes`, over all where none are given; NaN if any is."""
        return _reduce("min", self, axes)

    def max(self, axes: Optional[Axes] = None) -> Value:
        """Largest element over `axes`, over all where none are given; NaN if any is."""
        return _reduce("max", self, axes)

    def any(self, axes: Optional[Axes] = None) -> Value:
        """Whether any element over `axes` holds, over all where none are given. Of bool: write the
        comparison."""
        return _reduce("any", self, axes)

    def all(self, axes: Optional[Axes] = None) -> Value:
        """Whether every element over `axes` holds, over all where none are given. Of bool: write the
        comparison."""
        return _reduce("all", self, axes)

    def slice(self, axis: str, start: int, into: str) -> Value:
        """As many elements along `axis` as the axis `into` has, from `start` on. Also fathom.slice_axis."""
        return slice_axis(self, axis, start, into)

    def label(self, text: str) -> Value:
        """Name the value `text` in plans and messages; returns it."""
        with self.graph._lock:
            _lib.fth_label(self, _name(text, "a label"))
        return self

    def out(self, i: int) -> Value:
        """Output i of the operation that made this value."""
        return self.graph._build("fth_out_", self, i)

    def numpy(self, **limits: Any) -> np.ndarray:
        """Plan and run just this value: an array. `limits` are those of Graph.plan."""
        return self.graph.plan(self, **limits).run()

    def show(self, rows: int = 10) -> str:
        """Plan and run just this value; its first `rows` rows as text."""
        rows, err = _int(rows, "show: rows"), Err()
        with self.graph._lock, _signals:
            status, out = _printed(lambda file: _lib.fth_show(self, rows, file, C.byref(err)))
        _check(status, err)
        return out

    def item(self) -> Any:
        """The number of a value without axes, planned and run."""
        if self.axes:
            raise Error(f"{self!r} is not one number", "DTYPE_READ",
                        "reduce it first, as in v.sum().item(), or write v.numpy()")
        return self.numpy().item()


class Param(Value):
    """A named block that a run may change (Graph.param); `array` is its memory."""

    name: str
    array: np.ndarray
    __slots__ = ("name", "array")


class Input(Value):
    """Data from outside (Graph.input)."""

    name: str
    __slots__ = ("name",)

    def set(self, data: Data) -> None:
        """Other `data` of the same dtype and sizes for the next runs: the next batch, another file of
        a series. What a plan used in place must be an array again."""
        g, err = self.graph, Err()
        opened = _Opened(g.context, g._callbacks, data,
                         None if isinstance(data, Source) else self.dtype)
        with g._lock:
            status = _lib.fth_input_set(g._p, _encoded(self.name), opened.struct, C.byref(err))
            if status != 0:
                opened.close()
                raise _error(err)
            g._inputs.pop(self.name).close()
            g._keep_input(self.name, opened)


class Scalar(Value):
    """A number that may change from run to run (Graph.scalar)."""

    name: str
    array: np.ndarray
    __slots__ = ("name", "array")

    def set(self, x: Number) -> None:
        """The number of the next runs is x; refused where its dtype does not hold it."""
        self.array[...] = _number(x, self.dtype, f"scalar '{self.name}'")


# ---- graphs ---------------------------------------------------------------------------------------

class Graph:
    """Values with named axes. It grows only; a plan says how some of them are computed.

        g = fathom.Graph(memory="1G")
        g.axes(row=1000, col=50)
        x = g.input("x", array, "row col")
        print(g.plan(x.mean("row")).run())

    print(g) lists its values; `params` has the arrays of its parameters."""

    context: Context
    params: dict[str, np.ndarray]

    def __init__(self, context: Optional[Context] = None, **options: Any) -> None:
        """In a context; without one it makes its own from `options`, which are those of Context."""
        self._p = None
        if not (context is None or isinstance(context, Context)):
            _refuse(f"expected a Context, found {context!r}", "USAGE", 'options go by name: Graph(memory="1G")')
        if context is not None and options:
            _refuse(f"a graph in a context takes no {next(iter(options))!r}", "USAGE",
                    "options are those of the context")
        self.context = context or Context(**options)
        self._lock = _Lock(self.context._pid)
        self._check_process()
        self._p = _lib.fth_graph_create_(self.context._p, _site())
        if not self._p:
            raise Error("the graph could not be created", "NOMEM")
        self._callbacks = _Callbacks(lock=self._lock)
        self._tensors, self._inputs, self._files = [], {}, {}
        self.params, self._spare, self._assigns = {}, {}, set()
        self._life = _Life(self, self.context._life, Graph._end, self._p, self._tensors,
                           self._files)

    # What C holds ends with the life of the graph; what C calls back goes with this object, so that
    # a function which refers to the graph does not keep it alive.
    @staticmethod
    def _end(p, tensors, files):
        _lib.fth_graph_destroy_(p, _END)
        for t in tensors:
            _lib.fth_tensor_release_(t, _END)
        for s in files.values():
            _lib.fth_source_close(C.byref(s))

    def __del__(self):
        for opened in getattr(self, "_inputs", {}).values():
            opened.forget()
        if hasattr(self, "_callbacks"):
            self._callbacks.live.clear()

    def _keep_input(self, name, opened):
        self._inputs[name] = opened
        self._files.pop(name, None)
        if opened.file is not None:
            self._files[name] = opened.file

    # Every builder comes through here: the site of the caller, and poison becomes an exception.
    def _build(self, name, *args, of_graph=False):
        function = getattr(_lib, name)
        args = self._fit(name, args, of_graph)
        with self._lock:
            v = function(self._p, _site(), *args) if of_graph else function(_site(), *args)
            if v.id == 0:
                raise self._last_error()
        return Value(self, v.id)

    def _declare(self, name, *args):
        with self._lock:
            if not getattr(_lib, name)(self._p, _site(), *args):
                raise self._last_error()

    @staticmethod
    def _fit(name, args, of_graph):
        """Whole numbers where C takes whole numbers, or an error: ctypes would cut them."""
        types = _FUNCTIONS[name][1][2 if of_graph else 1:]
        what, given = name[4:].strip("_"), list(args)
        for i, (t, x) in enumerate(zip(types, args)):
            if t in (I, L) and not isinstance(x, bool):
                given[i] = _int(x, f"{what}: an argument", 32 if t is I else 64)
            elif t is Val and not isinstance(x, Val):
                _value(what, x)
            elif t is D:
                given[i] = _real(x, f"{what}: an argument")
            elif t is B:
                given[i] = _flag(x, f"{what}: an argument")
        return given

    def _last_error(self):
        """The mistake just made. It is raised at its line, so the graph need not remember it: after
        `except`, a better line follows and the graph is planned as ever."""
        err = Err()
        n = _lib.fth_graph_errors(self._p, 0, C.byref(err))
        _lib.fth_graph_errors(self._p, min(n, 8) - 1, C.byref(err))
        _lib.fth_graph_clear_errors(self._p)
        if n == 0:
            self._check_process()
            return Error("a value of another graph was used", "GRAPH_VALUE")
        return _error(err)

    def _check_process(self):
        if os.getpid() != self.context._pid:
            _refuse(f"the context belongs to process {self.context._pid}, and this is a child of it "
                    "by fork", "STATE", "create a context in the child")

    @property
    def text(self) -> str:
        """Every value: its number and label, what makes it, dtype, axes and line."""
        self._check_process()
        with self._lock:
            status, out = _printed(lambda file: _lib.fth_graph_print(self._p, file))
        if status:
            raise Error("the graph could not be printed", "NOMEM")
        return out

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        first = self.text.split("\n", 1)[0] if self._p else "graph, never made"
        return f"<fathom.Graph: {first}, on {self.context.device}>"

    def _repr_html_(self) -> str:
        return _preformatted(self.text)

    def clear_errors(self) -> None:
        """Not needed any more: a mistake is raised where it was made, and forgotten."""
        _lib.fth_graph_clear_errors(self._p)

    def axis(self, name: str, size: int) -> None:
        """Declare the axis `name` once, with its size."""
        self._declare("fth_axis_", _axis(name), _int(size, f"the size of axis '{name}'"))

    def axis_at_most(self, name: str, bound: int) -> None:
        """An axis `name` of which only a bound is known: plans can be printed, not run."""
        self._declare("fth_axis_at_most_", _axis(name), _int(bound, f"the bound of axis '{name}'"))

    def axis_like(self, name: str, like: str) -> None:
        """A second `name` for the size of the axis `like`."""
        self._declare("fth_axis_like_", _axis(name), _axis(like))

    def axis_ragged(self, name: str, rows: str, row_ptr: Any) -> None:
        """An axis `name` of the entries of the axis `rows`: row r owns entries row_ptr[r] to row_ptr[r+1]-1, as the
        indptr of a scipy.sparse.csr_matrix says."""
        row_ptr, size = _whole(row_ptr, f"the row pointers of '{name}'"), self.axis_size(rows)
        if size is not None and len(row_ptr) != size + 1:
            raise Error(f"'{name}': {row_ptr.size} row pointers for {size} rows of '{rows}'",
                        "AXIS_SIZE", "there is one more than there are rows")
        self._callbacks.live.append(row_ptr)
        self._declare("fth_axis_ragged_", _axis(name), _axis(rows), row_ptr.ctypes.data)

    def axes(self, **sizes: int) -> None:
        """Declare axes with their `sizes`: g.axes(cell=1000, dim=2)"""
        for name, size in sizes.items():
            self.axis(name, size)

    def axis_size(self, name: str) -> Optional[int]:
        """The size of the axis `name`; None if there is none of that name."""
        with self._lock:
            size = _lib.fth_axis_size(self._p, _axis(name))
        return None if size < 0 else size

    def input(self, name: str, data: Data, axes: Axes, dtype: Optional[DType] = None) -> Input:
        """`data` from outside, over `axes` in the order in which it lies in memory: an array (C-contiguous ones are
        used in place; others, and those of the other byte order, are read in pieces; a dataset of h5py or zarr is
        read whole: give its file and name), a Source, "x.npy", "x.zarr", (file, name) with a file x.npz, x.safetensors, x.h5
        or x.zarr, or anything with __dlpack__ or a buffer. `name` is that in messages; `dtype` says
        what bits are where NumPy has no name for them: uint16 may be "bf16"."""
        label = _name(name, "an input")
        opened = _Opened(self.context, self._callbacks, data, dtype)
        s = opened.struct
        try:
            v = self._build("fth_input_", label, s.dtype, _axes(axes), s, of_graph=True)
        except Error:
            opened.close()
            raise
        self._keep_input(name, opened)
        out = Input(self, v.id)
        out.name = name
        return out

    def scalar(self, name: str, value: Number, dtype: DType = "f64") -> Scalar:
        """A number of a dtype, first `value`, that may change from run to run: s.set(x). `name` is that in
        messages."""
        number = _dtype_number(dtype)
        array = np.zeros((), dtype=_numpy_dtype(number))
        array[...] = _number(value, _NAME_OF[number], f"scalar '{name}'")
        s = _array_source(self._callbacks, array, number)
        v = self._build("fth_input_", _name(name, "a scalar"), number, b"", s, of_graph=True)
        out = Scalar(self, v.id)
        out.name, out.array = name, array
        return out

    def param(self, name: str, data: Data, axes: Axes, dtype: Optional[DType] = None) -> Param:
        """A persistent block over `axes` that begins as `data`. A writable C-contiguous array is used in
        place, and assigns change it; anything else is copied, files and Sources too. The memory is
        param.array; `name` is that in messages and of g.params; `dtype` is as of input."""
        if isinstance(data, (Source, str, os.PathLike, tuple)):
            array, own = _Opened(self.context, None, data, dtype).array()
        else:
            array, own = _as_array(data)
        number = _number_of(array, dtype or own, data)
        if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned and array.dtype.isnative):
            array = np.array(array, array.dtype.newbyteorder("="), order="C")
        if not _settled(array):
            array[...] = array.view(np.uint8) != 0
        err, out = Err(), P()
        size = (L * MAX_AXES)(*array.shape)
        _check(_lib.fth_tensor_wrap_(C.byref(out), self.context._mem, _site(),
                                     _name(name, "a parameter"), number, array.ndim, size, array.ctypes.data, DROP_FN(), None,
                                     C.byref(err)), err)
        self._tensors.append(out.value)
        self._callbacks.live.append(array)
        v = self._build("fth_param_", _encoded(name), _axes(axes), out, of_graph=True)
        p = Param(self, v.id)
        p.name, p.array = name, array
        self.params[name] = array
        return p

    def _carried(self, param, what):
        """The parameter of a moment; one that a refused step has left behind is used again."""
        name = f"{param.name}.{what}"
        if name not in self._spare:
            return self.param(name, np.zeros_like(param.array), param.axes)
        p = Param(self, self._spare[name])
        p.name, p.array = name, self.params[name]
        return p

    def _keep_carried(self, *params):
        self._spare.update((p.name, p.id) for p in params if p is not None)

    def _take_carried(self, *params):
        for p in params:
            if p is not None:
                self._spare.pop(p.name, None)

    def const(self, value: Number, dtype: DType = "f32") -> Value:
        """The number `value`, without axes; refused where the dtype does not hold it."""
        number = _dtype_number(dtype)
        dtype, value = _NAME_OF[number], _scalar(value)
        if not isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
            _refuse(f"const: expected a number, found {value!r}", "GRAPH_VALUE",
                    "arrays become values with names of axes: g.input(name, array, axes)")
        if isinstance(value, (float, np.floating)) and dtype in _RANGE:
            _number(value, dtype, "const")
        if isinstance(value, (bool, int, np.bool_, np.integer)):
            value = int(_number(value, dtype, "const"))
            if -2 ** 63 <= value < 2 ** 63:
                return self._build("fth_const_i64_", number, value, of_graph=True)
        if isinstance(value, (complex, np.complexfloating)) and not dtype.startswith("c"):
            raise Error(f"{value} cannot be {dtype}", "DTYPE", "cast the other operand to complex")
        value = complex(value)
        return self._build("fth_const_", number, value.real, value.imag, of_graph=True)

    def index(self, axis: str) -> Value:
        """Global index along an axis, i64."""
        return self._build("fth_index_", _axis(axis), of_graph=True)

    def _random(self, kind, axes, seed, iteration, stream, dtype):
        def number(x):
            return x if isinstance(x, Value) else self.const(_int(x, "a seed"), "i64")
        return self._build("fth_random_", RANDOM[kind], _dtype_number(dtype), _axes(axes),
                           number(seed), number(iteration), stream)

    def uniform(self, axes: Axes, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0,
                stream: int = 0, dtype: DType = "f32") -> Value:
        """Numbers in [0, 1) over `axes`, of dtype f32 or f64: a function of (seed, stream, iteration, index);
        seed and iteration may be scalars of the graph, i64."""
        return self._random("uniform", axes, seed, iteration, stream, dtype)

    def normal(self, axes: Axes, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0,
               stream: int = 0, dtype: DType = "f32") -> Value:
        """Normal numbers of mean 0 and variance 1 over `axes`, a function of (seed, stream, iteration,
        index), of dtype f32 or f64; as uniform otherwise."""
        return self._random("normal", axes, seed, iteration, stream, dtype)

    def random_bits(self, axes: Axes, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0,
                    stream: int = 0) -> Value:
        """Random integers over `axes`, i64, a function of (seed, stream, iteration, index); as uniform
        otherwise."""
        return self._random("bits", axes, seed, iteration, stream, "i64")

    def plan(self, outputs: Union[Value, Sequence[Value], Mapping[Any, Value]],
             updates: Iterable[Value] = (), into: Union[Into, Mapping[Any, Into], None] = None,
             **limits: Any) -> Plan:
        """Plan what is wanted. `outputs` is a value, a list or a dict of values, and run() gives
        back the same form; `updates` are assigns. `into` says where outputs go, by key or position: an
        array, a function of (lo, array), "x.npy", "x.zarr", or (file, name) with a file x.npz,
        x.safetensors or x.h5; several may share one, which appears whole or not at all. For one
        value it is the place alone, for a list of them a list or {0: place}, for a dict also one
        file, "x.npz", that takes all by their keys. run() gives back the place. `limits`: memory="1G", scratch="8G" (bytes; the folder is the
        context's), threads, stream="axis", no_recompute, no_spill, no_fuse."""
        return Plan(self, outputs, updates, into, limits)


class Plan:
    """Everything that will happen (Graph.plan). print(plan) shows it; run() does it, as often as you like,
    and leaves its numbers in `report`, which is empty before."""

    graph: Graph
    report: dict[str, Any]

    _FLAGS = ("no_recompute", "no_spill", "no_fuse")

    def __init__(self, graph: Graph, outputs: Any, updates: Iterable[Value], into: Any,
                 limits: dict[str, Any]) -> None:
        self._p = None
        self.graph, self.report = graph, {}
        self._form = outputs if isinstance(outputs, (Value, dict)) else \
            dict(outputs) if isinstance(outputs, Mapping) else None
        if self._form is None and isinstance(outputs, Iterable):
            outputs = list(outputs)
        self._keys, values = self._unpack(outputs)
        self._values = values
        self._dtypes = [_lib.fth_val_dtype(v) for v in values]
        self._shapes = [v.shape for v in values]
        self._into = self._given(into)
        self._targets = {key: _target(where, key) for key, where in self._into.items()
                         if not (where is None or isinstance(where, np.ndarray) or callable(where))}
        _check_targets(self._targets)
        updates = list(updates) if isinstance(updates, Iterable) else [updates]  # a Value is not
        for v in updates:
            if _value("plan: updates", v).id not in graph._assigns:
                _refuse(f"plan: {v!r} is no update", "GRAPH_VALUE",
                        "updates are what assign, adam and optimizer return; other values are outputs")
        for v in values:
            if v.graph is graph and v.id in graph._assigns:
                _refuse(f"plan: {v!r} is an update and no output", "GRAPH_VALUE",
                        "give it as plan(outputs, updates=[..]); with [] there are no outputs")
        all_values = values + updates
        self._n = len(all_values)
        self._callbacks = _Callbacks(lock=graph._lock)
        lim = Limits(memory_bytes=_bytes(limits.pop("memory", None)),
                     scratch_bytes=_bytes(limits.pop("scratch", None)),
                     threads=_int(limits.pop("threads", 0), "threads", 32))
        stream = limits.pop("stream", None)
        lim.stream = None if stream is None else _axis(stream)
        for flag in self._FLAGS:
            setattr(lim, flag, bool(limits.pop(flag, False)))
        if limits:
            raise TypeError(f"plan() has no limit called {next(iter(limits))!r}; there are memory, scratch, threads, "
                            "stream, no_recompute, no_spill and no_fuse")
        sinks, _ = self._make_sinks(planning=True)
        lim.sinks = C.cast(sinks, C.POINTER(SinkStruct))
        outs = (Val * self._n)(*[v._as_parameter_ for v in all_values])
        err = Err()
        self._keep = (sinks, lim, outs)
        held = []  # rooms that writers have in a run count while the rest of the budget is planned
        try:
            for i, key in enumerate(self._keys):
                if key in self._targets:
                    held.append(_plan_file(graph.context, sinks[i], self._targets[key],
                                           *self._describe(i)))
            with graph._lock:
                self._p = _lib.fth_plan_make_(graph._p, _site(), outs, self._n, C.byref(lim),
                                              C.byref(err))
        finally:
            for real in filter(None, held):
                _lib.fth_sink_close(C.byref(real))
        if not self._p:
            raise _error(err)
        self._life = _Life(self, graph._life, _lib.fth_plan_destroy_, self._p, _END)

    @staticmethod
    def _unpack(outputs):
        if isinstance(outputs, Value):
            return [0], [outputs]
        if not isinstance(outputs, Iterable) or isinstance(outputs, (str, np.ndarray)):
            _refuse_operand("plan", outputs)
        keys, values = (list(outputs), list(outputs.values())) if isinstance(outputs, Mapping) else \
            (None, list(outputs))
        for v in values:
            _value("plan", v)
        return keys if keys is not None else list(range(len(values))), values

    def _given(self, into):
        """{key: place} of what was given: a dict, one place for one value, or one file for a dict of
        them, which has each by its key."""
        if isinstance(into, Mapping):
            unknown = [k for k in into if k not in self._keys]
            if unknown:
                _refuse(f"'into' names {unknown[0]!r}, which is no output", "NO_SINK",
                        "outputs are " + ", ".join(map(repr, self._keys)))
            return into
        if into is None or isinstance(into, (tuple, list)) and len(into) == 0:
            return {}
        if self._form is None and isinstance(into, list):
            if len(into) != len(self._keys):
                _refuse(f"'into' has {len(into)} places for {len(self._keys)} outputs", "NO_SINK",
                        "one for each; None: an array of its own")
            return dict(enumerate(into))
        if isinstance(self._form, Value):
            return {0: into}
        if isinstance(self._form, dict) and isinstance(into, (str, os.PathLike)):
            if _ending(into) in _WRITERS:
                return {key: (into, str(key)) for key in self._keys}
            if len(self._keys) == 1 or _ending(into) not in (".npy", ".zarr"):
                return {key: into for key in self._keys}  # an unknown ending is refused by name
        _refuse(f"'into' is {_shown(into)}, which is no place for {len(self._keys)} outputs", "NO_SINK",
                "give " + ("a list of places, or {0: place, ..}" if self._form is None else
                           "{key: place}, or a file such as 'x.npz' for them all") + "; " + _WRITABLE)

    def _describe(self, i):
        return self._dtypes[i], self._shapes[i], self._values[i].axes

    def __del__(self):
        if hasattr(self, "_callbacks"):
            self._callbacks.live.clear()

    def _make_sinks(self, planning=False):
        """One sink per output, files apart, and what run() returns. While planning only the fact
        that an output goes to memory counts, not its address."""
        sinks = (SinkStruct * self._n)()
        results = []
        for i, key in enumerate(self._keys):
            s, where = sinks[i], self._into.get(key)
            dtype = _numpy_dtype(self._dtypes[i])
            _fill_shape(s, self._dtypes[i], self._shapes[i])
            result = where
            if where is None or isinstance(where, np.ndarray):
                s.kind = b"numpy"
                array = where
                if array is None:
                    array = np.empty(() if planning else self._shapes[i], dtype)
                elif array.dtype != dtype or array.shape != self._shapes[i] or \
                        not (array.flags.c_contiguous and array.flags.writeable):
                    is_not = [word for word, holds in (("read-only", not array.flags.writeable), (
                        "not C-contiguous", not array.flags.c_contiguous)) if holds]
                    raise Error(f"output {key!r} is {self._values[i]!r}; the array given for it is "
                                f"{array.dtype} {array.shape}" + "".join(f", {word}" for word in is_not), "NO_SINK",
                                "give a writable C-contiguous array of that shape and dtype")
                result = array
                s.data = array.ctypes.data
                self._write_sink(s, _putter(array), dtype, len(self._shapes[i]))
            elif callable(where):
                s.kind = b"python"
                self._write_sink(s, lambda at, part, put=where: put(at, part.copy()), dtype,
                                 len(self._shapes[i]))
            results.append(result)
        return sinks, results

    def _check_shared(self, results):
        """The library sees memory it uses in place; arrays that are read in pieces, because they
        are not contiguous, are seen here."""
        for key, result in zip(self._keys, results):
            for name, opened in self.graph._inputs.items():
                array = opened.strided
                if array is None or not isinstance(result, np.ndarray) or \
                        not np.may_share_memory(array, result):
                    continue
                raise Error(f"input '{name}' and output {key!r} share memory, and the input is not "
                            "contiguous: it is read while the output is written", "ALIAS")

    def _write_sink(self, s, write, dtype, n_axes):
        def put(lo, n, src):
            at, size = _rect(n_axes, lo, n)
            write(at, _over(src, size, dtype))
        s.write = READ_FN(self._callbacks.guard("write", put))
        self._callbacks.live.append(s.write)

    @property
    def info(self) -> dict[str, Any]:
        """Bytes, passes, chunks, steps and flops as a dict."""
        self.graph._check_process()
        i = PlanInfo()
        with self.graph._lock:
            _lib.fth_plan_get_info(self._p, C.byref(i))
        return {name: getattr(i, name) for name, _ in PlanInfo._fields_}

    def _print(self, function):
        self.graph._check_process()
        with self.graph._lock:
            status, out = _printed(lambda file: function(self._p, file))
        if status:
            raise Error("the plan could not be printed", "NOMEM")
        return out

    @property
    def text(self) -> str:
        """The plan as text: budget, passes, steps with their lines, blocks over time."""
        return self._print(_lib.fth_plan_print)

    @property
    def json(self) -> dict[str, Any]:
        """The same for programs, as a dict."""
        return _json.loads(self._print(_lib.fth_plan_print_json))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        i = self.info
        pieces = f" in {i['chunks']} pieces" if i["chunks"] > 1 else ""
        return (f"<fathom.Plan: {i['steps']} steps{pieces}, {_readable(i['peak_bytes'])} and "
                f"{_readable(i['foreign_bytes'])} of yours>")

    def _repr_html_(self) -> str:
        return _preformatted(self.text)

    def run(self, progress: Optional[Callable[[Progress], Any]] = None) -> Any:
        """Run and return the outputs, in the form they were asked for. `progress(p)` gets
        .fraction, .elapsed_s, .remaining_s, .rate and .what, some 40 times a second inside a long
        step too; returning False cancels, an exception (or Ctrl-C) cancels and is raised again.
        plan.report holds the numbers of the run."""
        with self.graph._lock:
            return self._run(progress)

    def _run(self, progress):
        ours, sources = self._callbacks, self.graph._callbacks
        ours.live.clear()
        ours.take(), sources.take()
        sinks, results = self._make_sinks()
        self._check_shared(results)
        files = _Files(self.graph.context)

        def step(_user, p):
            try:
                if _signals.interrupted:
                    return False
                if progress is None:
                    return True
                c = p.contents
                return not _is_no(progress(Progress(c.fraction, c.elapsed_s, c.remaining_s, c.rate, _text(c.what))))
            except BaseException as e:
                ours.raised = e
                return False
        # Always there: it is where Python notices Ctrl-C.
        options = RunOptions(PROGRESS_FN(step), None)
        report, err = RunReport(), Err()
        try:
            files.open(sinks, {self._keys.index(key): target for key, target in self._targets.items()},
                       self._describe)
            with _signals:
                status = _lib.fth_run(self._p, sinks, C.byref(options), C.byref(report),
                                      C.byref(err))
        finally:
            files.close()
        cause = ours.take() or sources.take()
        if status != 0 and cause is not None and _error(err).status == "CANCELLED":
            raise cause
        _check(status, err, cause)
        self.report = {name: getattr(report, name) for name, _ in RunReport._fields_}
        if report.bound_by:
            self.report["bound_by"] = _text(report.bound_by)
        if isinstance(self._form, Value):
            return results[0]
        if isinstance(self._form, dict):
            return dict(zip(self._keys, results))
        return results


class Progress(NamedTuple):
    """How far a run is: `fraction` of its predicted seconds, never less than before and 1 at the end, seconds so far
    and left, `rate` in elements of the streaming axis per second, and `what` that axis is."""
    fraction: float
    elapsed_s: float
    remaining_s: float
    rate: float
    what: str


# ---- builders: fathom.f(v, ...), and v.f(...) for those that start with a value -------------------

def _method(function, name=None):
    setattr(Value, name or function.__name__, function)
    return function


# ---- made by tools/gen_python (make docs) from fathom/elementwise.def and docs/operations.md: change that


@_method
def neg(v: Value) -> Value:
    """-v

    dtypes: integers reals complex; gradient: yes"""
    return _map("neg", v)


@_method
def abs(v: Value) -> Value:
    """|v|; of complex numbers real.

    dtypes: integers reals complex; gradient: yes"""
    return _map("abs", v)


@_method
def sqr(v: Value) -> Value:
    """v * v

    dtypes: integers reals complex; gradient: yes"""
    return _map("sqr", v)


@_method
def sqrt(v: Value) -> Value:
    """The square root.

    dtypes: reals complex; gradient: yes"""
    return _map("sqrt", v)


@_method
def rsqrt(v: Value) -> Value:
    """1 / sqrt(v)

    dtypes: reals; gradient: yes"""
    return _map("rsqrt", v)


@_method
def recip(v: Value) -> Value:
    """1 / v

    dtypes: reals complex; gradient: yes"""
    return _map("recip", v)


@_method
def exp(v: Value) -> Value:
    """e to the power of v.

    dtypes: reals complex; gradient: yes"""
    return _map("exp", v)


@_method
def expm1(v: Value) -> Value:
    """exp(v) - 1, exact near 0.

    dtypes: reals; gradient: yes"""
    return _map("expm1", v)


@_method
def log(v: Value) -> Value:
    """The natural logarithm.

    dtypes: reals complex; gradient: yes"""
    return _map("log", v)


@_method
def log1p(v: Value) -> Value:
    """log(1 + v), exact near 0.

    dtypes: reals; gradient: yes"""
    return _map("log1p", v)


@_method
def sin(v: Value) -> Value:
    """The sine of v in radians.

    dtypes: reals; gradient: yes"""
    return _map("sin", v)


@_method
def cos(v: Value) -> Value:
    """The cosine of v in radians.

    dtypes: reals; gradient: yes"""
    return _map("cos", v)


@_method
def tanh(v: Value) -> Value:
    """The hyperbolic tangent.

    dtypes: reals; gradient: yes"""
    return _map("tanh", v)


@_method
def sigmoid(v: Value) -> Value:
    """1 / (1 + exp(-v))

    dtypes: reals; gradient: yes"""
    return _map("sigmoid", v)


@_method
def softplus(v: Value) -> Value:
    """log(1 + exp(v)), without overflow.

    dtypes: reals; gradient: yes"""
    return _map("softplus", v)


@_method
def relu(v: Value) -> Value:
    """max(v, 0); NaN stays NaN.

    dtypes: reals; gradient: yes"""
    return _map("relu", v)


@_method
def lgamma(v: Value) -> Value:
    """The logarithm of |gamma(v)|.

    dtypes: reals; gradient: yes"""
    return _map("lgamma", v)


@_method
def digamma(v: Value) -> Value:
    """The derivative of lgamma.

    dtypes: reals; gradient: yes"""
    return _map("digamma", v)


@_method
def trigamma(v: Value) -> Value:
    """The derivative of digamma.

    dtypes: reals; gradient: no"""
    return _map("trigamma", v)


@_method
def erf(v: Value) -> Value:
    """The error function.

    dtypes: reals; gradient: yes"""
    return _map("erf", v)


@_method
def floor(v: Value) -> Value:
    """The largest whole number up to v.

    dtypes: reals; gradient: no"""
    return _map("floor", v)


@_method
def ceil(v: Value) -> Value:
    """The least whole number from v on.

    dtypes: reals; gradient: no"""
    return _map("ceil", v)


@_method
def round(v: Value) -> Value:
    """The nearest whole number, halves to the even one.

    dtypes: reals; gradient: no"""
    return _map("round", v)


@_method
def sign(v: Value) -> Value:
    """-1, 0 or 1; of complex numbers v / |v|.

    dtypes: integers reals complex; gradient: yes"""
    return _map("sign", v)


@_method
def isnan(v: Value) -> Value:
    """Whether v is NaN, bool.

    dtypes: reals complex; gradient: no"""
    return _map("isnan", v)


@_method
def isfinite(v: Value) -> Value:
    """Whether v is neither infinite nor NaN, bool.

    dtypes: reals complex; gradient: no"""
    return _map("isfinite", v)


def logical_not(v: Value) -> Value:
    """What does not hold; of integers every bit inverted.

    dtypes: bool integers; gradient: no"""
    return _map("not", v)


@_method
def conj(v: Value) -> Value:
    """The complex conjugate; reals as they are.

    dtypes: reals complex; gradient: yes"""
    return _map("conj", v)


@_method
def real(v: Value) -> Value:
    """The real part.

    dtypes: complex; gradient: yes"""
    return _map("real", v)


@_method
def imag(v: Value) -> Value:
    """The imaginary part.

    dtypes: complex; gradient: yes"""
    return _map("imag", v)


@_method
def arg(v: Value) -> Value:
    """The angle of a complex number, from -pi to pi.

    dtypes: complex; gradient: yes"""
    return _map("arg", v)


@_method
def abs2(v: Value) -> Value:
    """|v| squared, real.

    dtypes: reals complex; gradient: yes"""
    return _map("abs2", v)


# ---- end of what is made


def _graph_of(function, *operands):
    """The graph of the first value among operands, one of which must be."""
    for x in operands:
        if isinstance(x, Value):
            return x
    _refuse(f"{function}: none of the operands is a value", "GRAPH_VALUE",
            "make one with g.input(name, array, axes) or g.const(number)")


def _reduce(name, v, axes):
    _value(name, v)
    if axes is None and not v.axes and name in ("sum", "prod") and v.dtype in _RANGE:
        return cast(v, "i64")  # what one with axes would be
    return _add("fth_reduce_", RED[name], v, _some(v, axes))


def _lifted(what, *operands):
    """Operands as values: numbers take the dtype of the first that is one."""
    like = _graph_of(what, *operands)
    found = [like._lift(x) for x in operands]
    for x, value in zip(operands, found):
        if value is NotImplemented:
            _refuse_operand(what, x)
    return found


def minimum(a: Operand, b: Operand) -> Value:
    """The smaller of a and b, element by element; NaN if either is. One may be a number."""
    return _map("min", *_lifted("minimum", a, b))


def maximum(a: Operand, b: Operand) -> Value:
    """The larger of a and b, element by element; NaN if either is. One may be a number."""
    return _map("max", *_lifted("maximum", a, b))


def atan2(y: Operand, x: Operand) -> Value:
    """The angle of the point (x, y), from -pi to pi. One may be a number."""
    return _map("atan2", *_lifted("atan2", y, x))


def complex_of(re: Operand, im: Operand) -> Value:
    """re + i im: f32 give c64, f64 c128. One may be a number."""
    return _map("complex", *_lifted("complex_of", re, im))


def fma(a: Operand, b: Operand, c: Operand) -> Value:
    """a*b + c with one rounding. Up to two may be numbers."""
    return _map("fma", *_lifted("fma", a, b, c))


def where(condition: Value, a: Operand, b: Operand) -> Value:
    """a where the bool `condition` holds, else b, which is never NaN's business: nothing is computed with
    what is not taken. One of a and b may be a number."""
    return _map("select", _value("where", condition), *_lifted("where", a, b))


# ---- made by tools/gen_python (make docs) from fathom/ops.h, fathom/ops.def and docs/operations.md: change that

_FUNCTIONS.update({
    "fth_map_": (_V, [_O, I, _V, _V, _V]),
    "fth_clip_": (_V, [_O, _V, D, D]),
    "fth_cast_": (_V, [_O, _V, I]),
    "fth_expand_": (_V, [_O, _V, S]),
    "fth_rename_": (_V, [_O, _V, S, S]),
    "fth_layout_": (_V, [_O, _V, S]),
    "fth_merge_": (_V, [_O, _V, S, S]),
    "fth_split_": (_V, [_O, _V, S, S]),
    "fth_mark_": (_V, [_O, _V, I, S, S]),
    "fth_stop_gradient_": (_V, [_O, _V]),
    "fth_index_": (_V, [_G, _O, S]),
    "fth_reduce_": (_V, [_O, I, _V, S]),
    "fth_count_": (_V, [_O, _V, S]),
    "fth_mean_": (_V, [_O, _V, S]),
    "fth_variance_": (_V, [_O, _V, S]),
    "fth_arg_": (_V, [_O, B, _V, S]),
    "fth_histogram_": (_V, [_O, _V, S, S, D, D]),
    "fth_scan_": (_V, [_O, I, _V, S, B, B]),
    "fth_dot_": (_V, [_O, _V, _V, S]),
    "fth_dot_triangle_": (_V, [_O, _V, _V, S, I, S, S]),
    "fth_cholesky_": (_V, [_O, _V, S, S]),
    "fth_solve_": (_V, [_O, _V, _V, S, S, B]),
    "fth_eigh_": (_V, [_O, _V, S, S]),
    "fth_inverse_": (_V, [_O, _V, S, S]),
    "fth_gather_": (_V, [_O, _V, S, _V]),
    "fth_scatter_add_": (_V, [_O, _V, S, _V, S]),
    "fth_scatter_": (_V, [_O, I, _V, S, _V, S, D]),
    "fth_compact_": (_V, [_O, _V, S, _V, S]),
    "fth_spread_": (_V, [_O, _V, S]),
    "fth_collect_": (_V, [_O, _V, S]),
    "fth_collect_extreme_": (_V, [_O, B, _V, S]),
    "fth_concat_": (_V, [_O, I, _PV, C.POINTER(S), S]),
    "fth_stack_": (_V, [_O, I, _PV, S]),
    "fth_slice_": (_V, [_O, _V, S, L, S]),
    "fth_slice_step_": (_V, [_O, _V, S, L, L, S]),
    "fth_pad_": (_V, [_O, _V, S, L, S, D]),
    "fth_window_": (_V, [_O, _V, S, L, S, I]),
    "fth_correlate_": (_V, [_O, _V, S, _V, S, I]),
    "fth_flip_": (_V, [_O, _V, S]),
    "fth_roll_": (_V, [_O, _V, S, L]),
    "fth_column_": (_V, [_O, _V, S, L]),
    "fth_sort_": (_V, [_O, _V, S, B]),
    "fth_topk_": (_V, [_O, _V, S, S, B]),
    "fth_searchsorted_": (_V, [_O, _V, S, _V, B]),
    "fth_quantile_": (_V, [_O, _V, S, D]),
    "fth_fft_": (_V, [_O, I, _V, S, S]),
    "fth_conv2d_": (_V, [_O, _V, _V, C.POINTER(Conv)]),
    "fth_pool_": (_V, [_O, I, B, _V, S, L, S]),
    "fth_upsample_": (_V, [_O, _V, S, L, S]),
    "fth_random_": (_V, [_O, I, I, S, _V, _V, L]),
    "fth_poisson_": (_V, [_O, _V, _V, _V, L]),
})


@_method
def expand(v: Value, axes: Axes) -> Value:
    """Repeat v along new axes, which come outermost, in their order.

    axes: new axes, "y x" or ["y", "x"], declared before
    dtypes: all; gradient: yes"""
    return _add("fth_expand_", v, _axes(axes))


@_method
def rename(v: Value, old: Axes, new: Axes) -> Value:
    """Other names for axes: rename(v, "a b", "c d").

    old: axes of v, "y x" or ["y", "x"]
    new: as many declared axes of the same sizes
    dtypes: all; gradient: yes"""
    return _add("fth_rename_", v, _axes(old), _axes(new))


@_method
def layout(v: Value, axes: Axes) -> Value:
    """The same axes in this order in memory.

    axes: all axes of v in the order that is wanted
    dtypes: all; gradient: yes"""
    return _add("fth_layout_", v, _axes(axes))


@_method
def merge(v: Value, axes: Axes, into: str) -> Value:
    """One axis of several: merge(v, "group chan", "patch"). split undoes it.

    axes: axes of v, neighbours in this order
    into: their product, declared before
    dtypes: all; gradient: yes"""
    return _add("fth_merge_", v, _axes(axes), _axis(into))


@_method
def mark(v: Value, triangle: str, row: str, col: str) -> Value:
    """Say that v is "lower" or "upper" triangular over (row, col).

    triangle: "lower" or "upper"
    row: axis of the rows
    col: axis of the columns
    dtypes: all; gradient: yes"""
    return _add("fth_mark_", v, _one_of(TRIANGLE, triangle, "mark: triangle"), _axis(row),
                _axis(col))


@_method
def stop_gradient(v: Value) -> Value:
    """The value itself; no gradient flows back through it.

    dtypes: all; gradient: yes"""
    return _add("fth_stop_gradient_", v)


@_method
def mean(v: Value, axes: Optional[Axes] = None) -> Value:
    """Mean: the sum, in the dtype of v, divided; cast integers, and f32 of which the sum is
    infinite, to f64 first.

    axes: axes of v, "y x" or ["y", "x"]; all where none are given
    dtypes: reals complex; gradient: yes"""
    return _add("fth_mean_", v, _some(v, axes))


@_method
def count(v: Value, axes: Optional[Axes] = None) -> Value:
    """How many elements are not zero, i64.

    axes: axes of v, "y x" or ["y", "x"]; all where none are given
    dtypes: all; gradient: yes"""
    return _add("fth_count_", v, _some(v, axes))


@_method
def variance(v: Value, axes: Optional[Axes] = None) -> Value:
    """Mean squared distance from the mean: divided by n, not n-1.

    axes: axes of v, "y x" or ["y", "x"]; all where none are given
    dtypes: reals; gradient: yes"""
    return _add("fth_variance_", v, _some(v, axes))


@_method
def histogram(v: Value, axis: str, bin_axis: str, lo: float, hi: float) -> Value:
    """Counts in equal bins of [lo, hi), i64 [.. bin_axis].

    axis: an axis of v; of several, merge them first
    bin_axis: axis of the bins: its size is how many there are
    lo: where the first bin begins
    hi: where the last bin ends; what lies outside is not counted, nor is hi itself, which NumPy
        counts
    dtypes: integers reals; gradient: no"""
    return _add("fth_histogram_", v, _axis(axis), _axis(bin_axis), lo, hi)


@_method
def gather(v: Value, axis: str, index: Value) -> Value:
    """out[..i..] = v[..index[i]..]

    axis: an axis of v
    index: i32, u32 or i64; its axes take the place of the axis, those that v has too are batches
    dtypes: all; gradient: yes"""
    return _add("fth_gather_", v, _axis(axis), index)


@_method
def column(v: Value, axis: str, at: int) -> Value:
    """Element `at` of an axis, without that axis.

    axis: an axis of v
    at: which element of the axis: from 0 to its size less one
    dtypes: all; gradient: yes"""
    return _add("fth_column_", v, _axis(axis), at)


@_method
def scatter_add(v: Value, axis: Axes, index: Value, into: str) -> Value:
    """out[..index[i]..] += v[..i..]

    axis: the axis of the index, or several of them, outermost first
    index: i32, u32 or i64: where each row goes
    into: axis of the sums, declared before
    dtypes: all; gradient: yes"""
    return _add("fth_scatter_add_", v, _axes(axis), index, _axis(into))


@_method
def compact(v: Value, axis: str, mask: Value, into: str) -> Value:
    """Rows of v where the mask holds; the size of `into` must be their count.

    axis: an axis of v
    mask: bool, over the axis
    into: an axis of the size that the result has, declared before
    dtypes: all; gradient: yes"""
    return _add("fth_compact_", v, _axis(axis), mask, _axis(into))


@_method
def spread(v: Value, entries: str) -> Value:
    """Entries take the value of the row that owns them.

    entries: an axis of Graph.axis_ragged
    dtypes: all; gradient: yes"""
    return _add("fth_spread_", v, _axis(entries))


@_method
def collect(v: Value, entries: str) -> Value:
    """Rows get the sum of the entries they own.

    entries: an axis of Graph.axis_ragged
    dtypes: all; gradient: yes"""
    return _add("fth_collect_", v, _axis(entries))


@_method
def slice_step(v: Value, axis: str, start: int, step: int, into: str) -> Value:
    """Every `step`th element from `start` on.

    axis: an axis of v
    start: the first element
    step: how far it is to the next
    into: an axis of as many elements as are wanted, declared before
    dtypes: all; gradient: yes"""
    return _add("fth_slice_step_", v, _axis(axis), start, step, _axis(into))


@_method
def window(v: Value, axis: str, lo: int, tap: str, border: str = "zero") -> Value:
    """Neighbours along an axis as a new one: out[.. x t] = v[x + t - lo].

    axis: an axis of v
    lo: how many elements before x the window begins
    tap: axis of the window: its size is how many elements it has
    border: what lies beyond the ends: "zero", "clamp", "reflect", "mirror" or "wrap"
    dtypes: all; gradient: yes"""
    return _add("fth_window_", v, _axis(axis), lo, _axis(tap),
                _one_of(BORDER, border, "window: border"))


@_method
def correlate(v: Value, axes: Axes, weights: Value, taps: Axes, border: str = "zero") -> Value:
    """Sum over the taps of v[x + t - n/2] weights[t], for each axis with its taps.

    axes: axes of v, "y x" or ["y", "x"]
    weights: a value over the taps
    taps: an axis of the weights for each of the axes
    border: what lies beyond the ends: "zero", "clamp", "reflect", "mirror" or "wrap"
    dtypes: all; gradient: yes"""
    return _add("fth_correlate_", v, _axes(axes), weights, _axes(taps),
                _one_of(BORDER, border, "correlate: border"))


@_method
def flip(v: Value, axis: str) -> Value:
    """The last element first.

    axis: an axis of v
    dtypes: all; gradient: yes"""
    return _add("fth_flip_", v, _axis(axis))


@_method
def roll(v: Value, axis: str, by: int) -> Value:
    """out[i + by] = v[i], around the end.

    axis: an axis of v
    by: how far; may be negative
    dtypes: all; gradient: yes"""
    return _add("fth_roll_", v, _axis(axis), by)


@_method
def searchsorted(sorted: Value, axis: str, v: Value, right: bool = False) -> Value:
    """How many along the axis, which ascends, come before each element of v, i64.

    sorted: what is searched
    axis: axis of `sorted`; others that both have are batches
    v: what is looked up, of the same dtype
    right: count those that are equal, too
    dtypes: bool integers reals; gradient: no"""
    return _add("fth_searchsorted_", sorted, _axis(axis), v, right)


@_method
def quantile(v: Value, axis: str, q: float) -> Value:
    """Between the sorted elements next to it, as numpy.quantile.

    axis: an axis of v
    q: from 0 to 1
    dtypes: integers reals; gradient: yes"""
    return _add("fth_quantile_", v, _axis(axis), q)


@_method
def upsample(v: Value, axis: str, factor: int, into: str) -> Value:
    """Repeat each element `factor` times.

    axis: an axis of v
    factor: how often each element is repeated
    into: an axis of the size that the result has, declared before
    dtypes: all; gradient: yes"""
    return _add("fth_upsample_", v, _axis(axis), factor, _axis(into))


@_method
def dot(a: Value, b: Value, axes: Axes) -> Value:
    """Sum of a*b over the axes; others that both have are batches.

    a: its own axes take the place of the first summed one in the result
    b: its axes are those of the result
    axes: axes that both have
    dtypes: reals complex; gradient: yes"""
    return _add("fth_dot_", a, b, _axes(axes))


@_method
def dot_triangle(a: Value, b: Value, axes: Axes, triangle: str, row: str, col: str) -> Value:
    """A dot of which only the "lower" or "upper" triangle over (row, col) is wanted.

    axes: axes that both have
    triangle: "lower" or "upper"
    row: axis of the rows
    col: axis of the columns
    dtypes: reals complex; gradient: yes"""
    return _add("fth_dot_triangle_", a, b, _axes(axes),
                _one_of(TRIANGLE, triangle, "dot_triangle: triangle"), _axis(row), _axis(col))


@_method
def cholesky(a: Value, row: str, col: str) -> Value:
    """The lower factor of positive definite matrices, marked as lower; only the lower triangle of a
    is read.

    row: axis of the rows
    col: axis of the columns
    dtypes: f32 f64 complex; gradient: yes"""
    return _add("fth_cholesky_", a, _axis(row), _axis(col))


# ---- end of what is made


def _rounds(v, x, what):
    """Whether x, for the value v of i64, is a whole number that C's double would round."""
    x = _scalar(x)
    return (_value(what, v).dtype == "i64" and isinstance(x, (int, np.integer))
            and -2 ** 63 <= int(x) < 2 ** 63 and int(float(int(x))) != int(x))


@_method
def clip(v: Value, lo: float, hi: float) -> Value:
    """min(max(v, lo), hi); an infinite end is none.

    lo: the least number; -math.inf: none
    hi: the largest number; math.inf: none. Of i64 any i64"""
    if not (_rounds(v, lo, "clip") or _rounds(v, hi, "clip")):
        return _add("fth_clip_", v, lo, hi)
    lo, hi = (int(x) if _rounds(v, x, "clip") else _real(x, "clip: an argument") for x in (lo, hi))
    if not lo <= hi:
        _refuse(f"clip: {v!r} cannot lie between {lo} and {hi}; the lower end comes first", "GRAPH_ATTR")
    v = v if lo == -math.inf else maximum(v, lo)
    return v if hi == math.inf else minimum(v, hi)


@_method
def pad(v: Value, axis: str, before: int, into: str, value: float = 0.0) -> Value:
    """Longer along an axis, by elements of one value.

    axis: an axis of v
    before: elements before the first; as many after the last as `into` has room for
    into: an axis of the size that the result has, declared before
    value: what they are; of i64 any i64"""
    if not _rounds(v, value, "pad"):
        return _add("fth_pad_", v, _axis(axis), before, _axis(into), value)
    return pad(v ^ value, axis, before, into) ^ value  # 0 ^ value, and the elements as they were


@_method
def cast(v: Value, dtype: DType) -> Value:
    """v with another dtype, "f32" or np.float32: the only way to change one. Real to integer truncates, and
    NaN or a number out of range fails the run; to bool it gives v != 0."""
    return _add("fth_cast_", v, _dtype_number(dtype))


@_method
def split(v: Value, axis: str, into: Optional[Axes] = None) -> Value:
    """Undo a merge: `axis` becomes the axes that were merged, or the axes `into` of the same sizes."""
    return _add("fth_split_", v, _axis(axis), _axes(into) if into else None)


@_method
def logsumexp(v: Value, axes: Optional[Axes] = None) -> Value:
    """log of the sum of exp(v) over `axes`, over all where none are given; nothing overflows."""
    return _reduce("logsumexp", v, axes)


def _extreme(largest, v, axis):
    what = "argmax" if largest else "argmin"
    if axis is None:
        names = _value(what, v).axes
        if len(names) != 1:
            _refuse(f"{what}: {v!r} has {len(names)} axes, and none was named",
                    "GRAPH_ATTR", 'name one; of all together: v.merge("y x", "pixel").argmax("pixel"), '
                    "with the new axis declared, gives NumPy's flat index")
        axis = names[0]
    return _add("fth_arg_", largest, v, _axis(axis))


@_method
def argmin(v: Value, axis: Optional[str] = None) -> Value:
    """Position of the smallest element along `axis`, i64; the first of equals, that of the first NaN if there
    is one. A value with one axis needs no name."""
    return _extreme(False, v, axis)


@_method
def argmax(v: Value, axis: Optional[str] = None) -> Value:
    """Position of the largest element along `axis`, i64; the first of equals, that of the first NaN if there
    is one. A value with one axis needs no name."""
    return _extreme(True, v, axis)


@_method
def scan(v: Value, axis: str, reduction: str = "sum", exclusive: bool = False,
         reverse: bool = False) -> Value:
    """Running `reduction` ("sum", "prod", "min" or "max") along `axis`; `exclusive` leaves each element itself
    out, `reverse` goes from the end. Gradients are of sums."""
    return _add("fth_scan_", _one_of(RED, reduction, "scan: reduction"), v, _axis(axis), exclusive,
                          reverse)


@_method
def cumsum(v: Value, axis: str) -> Value:
    """Running sum along `axis`."""
    return scan(v, axis)


def solve(a: Value, b: Value, row: str, col: str) -> Value:
    """x with a x = b, where a is triangular over (row, col) and marked so (`cholesky` and `mark` do that): b
    has the axis `row`, and x has `col` in its place."""
    return _add("fth_solve_", a, b, _axis(row), _axis(col), False)


def solve_t(a: Value, b: Value, row: str, col: str) -> Value:
    """x with the transpose of a (the conjugate transpose of complex ones), a triangular over (row, col): b has
    the axis `col`, and x has `row` in its place. solve and then solve_t with a Cholesky factor L apply
    the inverse of L L^H."""
    return _add("fth_solve_", a, b, _axis(row), _axis(col), True)


@_method
def eigh(a: Value, row: str, col: str) -> tuple[Value, Value]:
    """(values, vectors) of symmetric or Hermitian matrices over (row, col), of at most 64 rows; the lower
    triangle is read. Values ascend along `row`; vector `row` has its components along `col`, norm 1, and
    its largest component positive."""
    v = _add("fth_eigh_", a, _axis(row), _axis(col))
    return v, v.out(1)


@_method
def inverse(a: Value, row: str, col: str) -> tuple[Value, Value]:
    """(inverse, log |determinant|) of matrices over (row, col), of at most 64 rows."""
    v = _add("fth_inverse_", a, _axis(row), _axis(col))
    return v, v.out(1)


def concat(values: Iterable[Value], axes: Axes, into: str) -> Value:
    """`values` one behind the other along `axes`, one of each: concat([a, b], "m n", "mn") has a's axis m, then
    b's axis n, as `into`, whose size is the sum. One name serves all."""
    values, names = _listed("concat", values), _axes(axes).split()
    if len(names) == 1:
        names = names * len(values)
    if len(names) != len(values):
        raise Error(f"concat: {len(values)} values and {len(names)} axes", "GRAPH_ATTR")
    array = (Val * len(values))(*[v._as_parameter_ for v in values])
    texts = (S * len(values))(*names)
    return values[0].graph._build("fth_concat_", len(values), array, texts, _axis(into))


def _listed(what, values):
    if not isinstance(values, Iterable) or isinstance(values, (str, np.ndarray)):
        _refuse(f"{what}: expected a list of values, found {_shown(values)}", "GRAPH_VALUE", f"{what}([a, b], ..)")
    values = [_value(what, v) for v in values]
    if not values:
        _refuse(f"{what}: no values", "GRAPH_ATTR", "give at least one")
    return values


def stack(values: Iterable[Value], axis: str) -> Value:
    """stack([a, b], "layer"): `values` of the same axes along a new `axis`, the outermost."""
    values = _listed("stack", values)
    array = (Val * len(values))(*[v._as_parameter_ for v in values])
    return values[0].graph._build("fth_stack_", len(values), array, _axis(axis))


def slice_axis(v: Value, axis: str, start: int, into: str) -> Value:
    """As many elements along `axis` as the axis `into` has, from `start` on. As a method: v.slice."""
    return _add("fth_slice_", v, _axis(axis), start, _axis(into))


@_method
def sort(v: Value, axis: str, descending: bool = False) -> tuple[Value, Value]:
    """(sorted along `axis`, the order as i64): stable, from small to large or `descending`; NaN last."""
    out = _add("fth_sort_", v, _axis(axis), descending)
    return out, out.out(1)


@_method
def topk(v: Value, axis: str, into: str, largest: bool = True) -> tuple[Value, Value]:
    """(the largest or smallest along `axis`, in order; their positions as i64); the size of the axis `into`
    is how many. With largest=False the smallest. NaN comes last."""
    out = _add("fth_topk_", v, _axis(axis), _axis(into), largest)
    return out, out.out(1)


@_method
def collect_max(v: Value, entries: str) -> tuple[Value, Value]:
    """(largest entry of each row, its position along the axis `entries` as i64); -inf and -1 for a row
    without entries, NaN if any entry is."""
    out = _add("fth_collect_extreme_", True, v, _axis(entries))
    return out, out.out(1)


@_method
def collect_min(v: Value, entries: str) -> tuple[Value, Value]:
    """(smallest entry of each row, its position along the axis `entries` as i64); inf and -1 for a row
    without entries, NaN if any entry is."""
    out = _add("fth_collect_extreme_", False, v, _axis(entries))
    return out, out.out(1)


@_method
def scatter(v: Value, axis: Axes, index: Value, into: str, how: str = "set",
            fill: float = 0.0) -> Value:
    """out[..index[i]..] = v[..i..], the last i; with how="min" or "max" the smallest or largest of them. `axis`
    is that of `index`, or several, outermost first; the axis `into` takes its place. Rows begin as
    `fill`, which the dtype must hold and which takes part in a minimum or maximum; math.inf is the last
    number of integers, -math.inf the first. Of i64 it is any i64."""
    number = _one_of(SCATTER, how, "scatter: how")
    if not _rounds(v, fill, "scatter"):
        return _add("fth_scatter_", number, v, _axes(axis), index, _axis(into), fill)
    if how == "set":
        return scatter(v ^ fill, axis, index, into) ^ fill
    none, least = (math.inf, minimum) if how == "min" else (-math.inf, maximum)
    return least(scatter(v, axis, index, into, how, none), fill)


@_method
def median(v: Value, axis: str) -> Value:
    """Median along `axis`, between the two middle elements, as numpy.median; NaN if any is."""
    return _add("fth_quantile_", v, _axis(axis), 0.5)


@_method
def fft(v: Value, axes: Axes, into: Axes) -> Value:
    """Discrete Fourier transform over one to three `axes` of v, "x", "y x" or "z y x"; the axes `into`, of
    the same sizes, take their place. Of complex numbers: cast reals, or write rfft."""
    return _add("fth_fft_", FFT["forward"], v, _axes(axes), _axes(into))


@_method
def ifft(v: Value, axes: Axes, into: Axes) -> Value:
    """Inverse of fft, from `axes` to the axes `into`, divided by the number of points."""
    return _add("fth_fft_", FFT["inverse"], v, _axes(axes), _axes(into))


@_method
def rfft(v: Value, axes: Axes, into: Axes) -> Value:
    """Transform of reals over `axes`; the last axis of `into` has n//2 + 1 elements."""
    return _add("fth_fft_", FFT["real"], v, _axes(axes), _axes(into))


@_method
def irfft(v: Value, axes: Axes, into: Axes) -> Value:
    """Inverse of rfft, from `axes` to the axes `into`: the last of `axes` has n//2 + 1 elements for the n of
    `into`. Divided by the number of points."""
    return _add("fth_fft_", FFT["real_inverse"], v, _axes(axes), _axes(into))


def conv2d(v: Value, w: Value, y: str = "y", x: str = "x", chan: str = "chan", ky: str = "ky",
           kx: str = "kx", out_y: Optional[str] = None, out_x: Optional[str] = None, stride: int = 1,
           dilation: int = 1, pad_y: int = 0, pad_x: int = 0, tiled: bool = False) -> Value:
    """Convolve images v [b chan y x] with weights w [out chan ky kx]: [b out out_y out_x]. Axes have the names
    that are given; out_y and out_x, which say how large the result is, are y and x where they are not. `stride` and `dilation` are for
    both directions, pad_y and pad_x zeros before the first row and column; after the last there are
    as many as needed. With tiled=True a CPU may go by Winograd's way, which is faster for f32 and windows
    of 3 by 3."""
    c = Conv(*[_axis(name) for name in (y, x, out_y or y, out_x or x, chan, ky, kx)], *[_int(x, f"conv2d: {what}") for what, x in (
                 ("stride", stride), ("dilation", dilation), ("pad_y", pad_y), ("pad_x", pad_x))])
    return _add("fth_conv2d_tiled_" if tiled else "fth_conv2d_", v, w, C.byref(c))


@_method
def pool_mean(v: Value, axis: str, factor: int, into: str) -> Value:
    """Mean of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
    elements."""
    return _add("fth_pool_", RED["sum"], True, v, _axis(axis), factor, _axis(into))


@_method
def pool_sum(v: Value, axis: str, factor: int, into: str) -> Value:
    """Sum of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
    elements."""
    return _add("fth_pool_", RED["sum"], False, v, _axis(axis), factor, _axis(into))


@_method
def pool_max(v: Value, axis: str, factor: int, into: str) -> Value:
    """Maximum of blocks of `factor` elements along `axis`, which do not overlap; the axis `into` has size/factor
    elements."""
    return _add("fth_pool_", RED["max"], False, v, _axis(axis), factor, _axis(into))


def poisson(rate: Value, seed: Union[int, Value] = 0, iteration: Union[int, Value] = 0,
            stream: int = 0) -> Value:
    """One draw per element of `rate`, i64: a function of (seed, stream, iteration, index), of which seed and
    iteration may be scalars of the graph."""
    g = _value("poisson", rate).graph
    seed, iteration = (x if isinstance(x, Value) else g.const(_int(x, "a seed"), "i64")
                       for x in (seed, iteration))
    return g._build("fth_poisson_", rate, seed, iteration, stream)


def grad(loss: Value, wrt: Union[Value, Iterable[Value]]) -> Any:
    """Gradients of the real scalar `loss` with respect to `wrt`, a value or a list of values: a value or a list
    of values, which are planned like any other. For complex ones dL/dRe + i dL/dIm."""
    one = isinstance(wrt, Value)
    values = [wrt] if one else _listed("grad", wrt)
    g, n = _value("grad", loss).graph, len(values)
    ins = (Val * n)(*[v._as_parameter_ for v in values])
    outs = (Val * n)()
    with g._lock:
        status = _lib.fth_grad_(_site(), loss, n, ins, outs)
        if status != 0 or any(v.id == 0 for v in outs):
            raise g._last_error()
    found = [Value(g, v.id) for v in outs]
    return found[0] if one else found


def _parameter(what, x):
    if not isinstance(x, Param):
        _refuse(f"{what}: expected a parameter, found {_shown(x)}", "GRAPH_VALUE",
                "parameters are what g.param(name, array, axes) returns")
    return x


def assign(param: Param, value: Value) -> Value:
    """After every read of the parameter, put `value` there; give what it returns to plan(updates=...). A run
    that fails changes no parameter; `param` is assigned once per graph."""
    v = _add("fth_assign_", param, value)
    v.graph._assigns.add(v.id)
    return v


def _all_values(what, *given):
    for x in given:
        if not isinstance(x, Value):
            _refuse(f"{what}: expected a value, found {_shown(x)}", "GRAPH_VALUE",
                    'numbers that change are scalars of the graph: g.scalar("rate", 0.1), g.scalar("step", 1, "i64")')


def adam(param: Param, gradient: Value, rate: Value, step: Value, beta1: float = 0.9,
         beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0) -> list[Value]:
    """The three assigns of one Adam step of `param` by its `gradient`, for plan(updates=...). `rate` (f64) and
    `step` (i64, from 1) are scalars of the graph; the moments, with the factors beta1 and beta2, become
    parameters "<name>.m" and "<name>.v". `eps` is added to the root of the second; `decay` is that of AdamW."""
    g = _parameter("adam", param).graph
    _all_values("adam", gradient, rate, step)
    m, v = (g._carried(param, x) for x in ("m", "v"))
    out = (Val * 3)()
    opt = AdamStruct(*(_real(x, "adam: an argument") for x in (beta1, beta2, eps, decay)))
    with g._lock:
        status = _lib.fth_adam_(_site(), C.byref(opt), param, gradient, m, v, rate, step, out)
        if status != 0 or any(x.id == 0 for x in out):
            g._keep_carried(m, v)
            raise g._last_error()
    g._take_carried(m, v)
    g._assigns.update(x.id for x in out)
    return [Value(g, x.id) for x in out]


def optimizer(kind: str, param: Param, gradient: Value, rate: Value, beta1: Value, step: Value,
              product: Optional[Value] = None) -> list[Value]:
    """The assigns of one step of `param` by its `gradient`, of the kind "adam", "adamw", "nadam", "sgd" or
    "rmsprop". `rate` and `beta1` (f64; the momentum of sgd) and `step` (i64, from 1) are scalars of the
    graph, which may change from run to run; nadam needs the `product` of its momenta too. What is
    carried becomes the parameters "<name>.first" and "<name>.second"."""
    g, number = _parameter("optimizer", param).graph, _one_of(OPTIM, kind, "optimizer: kind")
    _all_values("optimizer", gradient, rate, beta1, step, *[product] * (product is not None))
    carries = _lib.fth_optim_carries(number)
    state = [g._carried(param, x) if carries & bit else None
             for bit, x in ((1, "first"), (2, "second"))]
    opt, out, none = _lib.fth_optim_default(number), (Val * 3)(), Val()
    if product is not None:
        opt.product = Val(g._p, product.id)
    values = [none if x is None else x for x in state]
    with g._lock:
        status = _lib.fth_optim_(_site(), C.byref(opt), param, gradient, *values, rate, beta1, step,
                                 out)
        if status != 0 or out[0].id == 0:
            g._keep_carried(*state)
            raise g._last_error()
    g._take_carried(*state)
    old = [param] + state
    return [assign(x, Value(g, v.id)) for x, v in zip(old, out) if x is not None]


def schedule(kind: str, step: int, rate: float, last: float = 0.0, steps: int = 1, warmup: int = 0,
             rise: float = 0.3) -> float:
    """The learning rate at a `step` (from 0), of the kind "constant", "exponential", "cosine", "linear" or
    "one_cycle": from `rate` to `last` in so many `steps`, after `warmup` steps from 0; one_cycle rises
    for the fraction `rise` of the steps."""
    s = ScheduleStruct(_one_of(SCHEDULE, kind, "schedule: kind"), _real(rate, "schedule: rate"),
                       _real(last, "schedule: last"), _int(steps, "schedule: steps", lo=1),
                       _int(warmup, "schedule: warmup", lo=0), _real(rise, "schedule: rise"))
    return _lib.fth_schedule_rate(C.byref(s), _int(step, "schedule: step", lo=0))


# ---- NumPy's functions of values: np.exp(v) builds v.exp() ---------------------------------------

# Those that mean the same. NumPy's floor_divide and remainder round down, and // and % of values do not.
_UFUNCS = {"subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow",
           "fmod": "mod", "absolute": "abs", "fabs": "abs", "negative": "neg", "square": "sqr",
           "reciprocal": "recip", "rint": "round", "conjugate": "conj", "minimum": "min", "maximum": "max",
           "arctan2": "atan2", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
           "greater": "gt", "greater_equal": "ge", "bitwise_and": "and", "bitwise_or": "or",
           "bitwise_xor": "xor", "invert": "not", "logical_and": "and", "logical_or": "or",
           "logical_xor": "xor", "logical_not": "not",
           **{name: name for name in "add sqrt exp expm1 log log1p sin cos tanh sign floor ceil isnan "
              "isfinite".split()}}
_LEFT = {"floor_divide": "idiv", "remainder": "mod"}  # of np.int64(7) // v, which is the operator
_BY_REDUCTION = {"add": "v.sum(axes)", "multiply": "v.prod(axes)", "minimum": "v.min(axes)",
                 "maximum": "v.max(axes)", "logical_and": "v.all(axes)", "logical_or": "v.any(axes)"}
# What to write for others, by the names of NumPy's functions.
_INSTEAD = {name: words for names, words in (
    ("floor_divide", "v // w rounds toward zero; (v / w).floor() of reals rounds down"),
    ("remainder mod", "v % w has the sign of v, as np.fmod; v - w * (v / w).floor() has that of w"),
    ("matmul dot vdot inner tensordot einsum vecdot matvec vecmat linalg.multi_dot",
     "products name what is summed: a.dot(b, axes)"),
    ("outer multiply.outer", 'a * b.expand("axis of a")'),
    ("log2", "v.log() * (1 / math.log(2))"), ("log10", "v.log() * (1 / math.log(10))"),
    ("exp2", "(v * math.log(2)).exp()"), ("tan", "v.sin() / v.cos()"),
    ("sinh", "(v.exp() - (-v).exp()) * 0.5"), ("cosh", "(v.exp() + (-v).exp()) * 0.5"),
    ("hypot", "(v ** 2 + w ** 2).sqrt()"), ("isinf", "v.abs() == math.inf"),
    ("trunc fix", "v.sign() * v.abs().floor()"), ("deg2rad radians", "v * (math.pi / 180)"),
    ("rad2deg degrees", "v * (180 / math.pi)"), ("logaddexp", "fathom.stack([v, w], axis).logsumexp(axis)"),
    ("fmin fmax", "fathom.minimum and maximum, which give NaN where either is"),
    ("left_shift", "v * 2 ** n of integers"), ("add.accumulate", "v.cumsum(axis)"),
    ("add.at", "v.scatter_add(axis, index, into)"),
    ("maximum.at minimum.at", 'v.scatter(axis, index, into, "max", -math.inf), or "min", math.inf'),
    ("add.reduceat", "v.collect(entries), with g.axis_ragged"),
    ("maximum.reduceat minimum.reduceat", "v.collect_max(entries), with g.axis_ragged"),
    ("concatenate append hstack vstack concat", "fathom.concat([a, b], axes, into)"),
    ("stack", "fathom.stack([a, b], axis)"),
    ("transpose swapaxes moveaxis permute_dims", "axes go by name, in any order; v.layout(axes) changes that in memory"),
    ("reshape ravel", "v.merge(axes, into) and v.split(axis, into)"),
    ("expand_dims broadcast_to tile", "v.expand(axes)"), ("repeat", "v.upsample(axis, factor, into)"),
    ("squeeze", "v.column(axis, 0)"), ("take take_along_axis", "v.gather(axis, index)"),
    ("save savez savez_compressed savetxt", 'g.plan(v, into="x.npy").run()'),
    ("histogram bincount", "v.histogram(axis, bin_axis, lo, hi)"), ("percentile", "v.quantile(axis, q / 100)"),
    ("argsort", "v.sort(axis)[1]"), ("partition argpartition", "v.topk(axis, into)"),
    ("convolve correlate", "v.correlate(axes, weights, taps)"), ("cumprod", 'v.scan(axis, "prod")'),
    ("diff", "v.slice(axis, 1, into) - v.slice(axis, 0, into)"),
    ("nan_to_num", "fathom.where(v.isnan(), 0, v)"),
    ("nansum nanmean nanmax nanmin", "fathom.where(v.isnan(), 0, v).sum(axes), with the number that fits"),
    ("zeros_like ones_like full_like empty_like", 'g.const(number, "f32").expand(axes)'),
    ("linalg.norm", "(v.abs() ** 2).sum(axes).sqrt()"), ("linalg.inv linalg.det linalg.slogdet", "v.inverse(row, col)"),
    ("linalg.eigh linalg.eigvalsh", "v.eigh(row, col)"),
    ("astype", 'v.cast("f64")'), ("T mT", "axes go by name, in any order; v.layout(axes) changes that in memory"),
    ("flatten", "v.merge(axes, into)"), ("std", "v.variance(axes).sqrt()"), ("var", "v.variance(axes)"),
    ("ndim", "len(v.axes)"), ("size", "math.prod(v.shape)"), ("tolist", "v.numpy().tolist()"),
    ("copy", "v itself: it never changes"),
    ("linalg.solve", "L = a.cholesky(row, col), then fathom.solve and solve_t"),
    ("fft.fft2 fft.fftn", "v.fft(axes, into)"), ("fft.ifft2 fft.ifftn", "v.ifft(axes, into)"),
    ("fft.rfft2 fft.rfftn", "v.rfft(axes, into)"), ("fft.irfft2 fft.irfftn", "v.irfft(axes, into)"),
) for name in names.split()}


def _no_equal(name):
    """The TypeError for a function of NumPy's that none of ours is."""
    last, instead = name.split(".")[-1], _INSTEAD.get(name)
    if instead is None and hasattr(Value, last) and last in __all__:
        instead = f"v.{last}(..): help(fathom.{last})"
    instead = instead or "what the engine has: help(fathom); v.numpy() runs it and gives an array"
    return TypeError(f"np.{name} does not take values of a graph; instead: {instead}")


def _numpy_ufunc(ufunc, method, inputs, options):
    name = ufunc.__name__
    if method != "__call__":
        if method == "reduce" and name in _BY_REDUCTION:
            raise TypeError(f"np.{name}.reduce does not take values of a graph; instead: {_BY_REDUCTION[name]}")
        raise _no_equal(f"{name}.{method}")
    if any(x is not None for x in options.values()):
        raise TypeError(f"np.{name} of a value takes no {next(iter(options))}=: it builds a value, and a run "
                        "puts its numbers into an array: g.plan(v, into=array).run()")
    if name == "positive":
        return inputs[0]
    op = _UFUNCS.get(name) or (_LEFT.get(name) if isinstance(inputs[0], np.generic) else None)
    if op is None:
        raise _no_equal(name)
    if name == "power" and isinstance(inputs[0], Value) and _is_two(inputs[1]):
        return _map("sqr", inputs[0])
    values = _lifted(f"np.{name}", *inputs)
    if name.startswith("logical_") and values[0].dtype != "bool":
        raise TypeError(f"np.{name} asks for truths, and {values[0]!r} has none; instead: the comparison, v != 0")
    return _map(op, *values)


def _np_clip(a, a_min=None, a_max=None, *, min=None, max=None):
    lo, hi = (x if x is not None else y for x, y in ((a_min, min), (a_max, max)))
    _value("np.clip", a)
    if isinstance(lo, Value) or isinstance(hi, Value):
        a = a if lo is None else maximum(a, lo)
        return a if hi is None else minimum(a, hi)
    return clip(a, -math.inf if lo is None else lo, math.inf if hi is None else hi)


def _np_round(a, decimals=0):
    if decimals != 0:
        raise TypeError("np.round of a value takes no decimals; instead: (v * 100.0).round() * 0.01")
    return _map("round", _value("np.round", a))


def _np_argmax(largest, a, axis):
    return _extreme(largest, _value("np.argmax" if largest else "np.argmin", a), axis)


# name: with the arguments of NumPy's that mean something here; axis= names axes.
_ARRAY_FUNCTIONS = {
    **{name: lambda a, axis=None, ours=ours: _reduce(ours, a, axis)
       for ours in ("sum", "prod", "min", "max", "any", "all") for name in (ours, f"a{ours}")},
    "mean": lambda a, axis=None: mean(a, axis), "var": lambda a, axis=None: variance(a, axis),
    "std": lambda a, axis=None: variance(a, axis).sqrt(),
    "count_nonzero": lambda a, axis=None: count(a, axis),
    "argmax": lambda a, axis=None: _np_argmax(True, a, axis),
    "argmin": lambda a, axis=None: _np_argmax(False, a, axis),
    "median": lambda a, axis: median(a, axis), "quantile": lambda a, q, axis: quantile(a, axis, q),
    "cumsum": lambda a, axis: cumsum(a, axis), "sort": lambda a, axis: sort(a, axis)[0],
    "flip": lambda m, axis: flip(m, axis), "roll": lambda a, shift, axis: roll(a, axis, shift),
    "where": lambda condition, x, y: where(condition, x, y), "clip": _np_clip,
    "round": _np_round, "around": _np_round, "round_": _np_round,
    "real": lambda val: real(val), "imag": lambda val: imag(val), "angle": lambda z: arg(z), "shape": lambda a: a.shape, "ndim": lambda a: len(a.shape),
    "size": lambda a: math.prod(a.shape),
}


def _numpy_function(function, args, options):
    module, name = function.__module__ or "", function.__name__
    if "." in module and not module.startswith("numpy._"):
        name = f"{module.split('.')[-1]}.{name}"
    ours = _ARRAY_FUNCTIONS.get(name)
    if ours is None:
        raise _no_equal(name)
    given = {key: x for key, x in options.items() if x is not None}
    try:
        inspect.signature(ours).bind(*args, **given)
    except TypeError as e:
        takes = ", ".join(p for p in inspect.signature(ours).parameters if p != "ours")
        raise TypeError(f"np.{name} of a value takes {takes}, with names of axes: {e}") from None
    return ours(*args, **given)


# ---- operations of your own, from shared objects (fathom/op_check.h) ----------------------------

class OpCheckOptions(C.Structure):
    _c_name_ = "fth_op_check_options"
    _fields_ = [("seed", U), ("cuts", I), ("threads", I), ("gradient", D), ("in", P * 48)]


class OpCheckReport(C.Structure):
    _c_name_ = "fth_op_check_report"
    _fields_ = [("calls", L), ("axes", I), ("joins", L), ("gradient_error", D)]


_FUNCTIONS.update({
    "fth_node_add_": (_V, [_G, _O, P, I, _PV, C.c_char_p, U]),
    "fth_axis_find": (I, [_G, S]),
    "fth_op_import": (I, [C.POINTER(P), P, S, _PE]),
    "fth_op_check": (I, [_V, C.POINTER(OpCheckOptions), C.POINTER(OpCheckReport), _PE]),
})


class Op:
    """An operation that C code made: Op("libmine.so", "second_difference"), where the `symbol` is what
    FTH_OP_EXPORT made (then its version is checked) or an fth_op. `where` is a path, or the address of
    an fth_op: Op(address)."""

    name: str

    def __init__(self, where: Union[Path, int], symbol: Optional[str] = None) -> None:
        err, out = Err(), P()
        if symbol is None:
            address, symbol = _int(where, "Op: an address", 65, 1), hex(where)
        else:
            path = os.fspath(where)
            if os.sep in path and not os.path.exists(path):
                _refuse(f"Op: there is no file '{path}'", "GRAPH_OP", "build it: cc -shared -fPIC .. -lfathom")
            if os.sep not in path and os.path.exists(path):
                _refuse(f"Op: '{path}' is searched for where libraries are, and not in this folder", "GRAPH_OP",
                        f"give a path: './{path}'")
            try:
                self._dll = C.CDLL(path)  # stays open: graphs keep addresses in it
            except OSError as e:
                _refuse(f"Op: '{path}' cannot be loaded: {e}", "GRAPH_OP",
                        "link it with libfathom, whose functions it calls")
            try:
                address = C.addressof(C.c_char.in_dll(self._dll, symbol))
            except ValueError:
                _refuse(f"Op: '{path}' has no symbol '{symbol}'", "GRAPH_OP",
                        f"export it: FTH_OP_EXPORT({symbol}, &record);")
        _check(_lib.fth_op_import(C.byref(out), address, _encoded(symbol), C.byref(err)), err)
        self._p, self.name = out.value, symbol

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


def axis_id(graph: Graph, name: str) -> int:
    """The number of the axis `name` of `graph`, as attributes of operations hold it (fth_axis_id)."""
    if not isinstance(graph, Graph):
        _refuse(f"axis_id: expected a graph, found {_shown(graph)}", "USAGE", "axis_id(graph, name)")
    with graph._lock:
        number = _lib.fth_axis_find(graph._p, _encoded(name))
    if number < 0:
        _refuse(f"there is no axis '{name}'", "AXIS_NAME")
    return number


def custom(op: Op, values: Union[Value, Iterable[Value]], attr: bytes = b"", outputs: int = 1) -> Any:
    """Add `op`, an operation of your own, to the graph of its operands `values`. `attr` are the bytes of
    its attribute (struct.pack, bytes of a ctypes.Structure); gives a value, or a tuple of so many
    `outputs`."""
    if not isinstance(op, Op):
        _refuse(f"custom: expected an Op, found {_shown(op)}", "GRAPH_OP", 'fathom.Op("libmine.so", "symbol")')
    values = _listed("custom", [values] if isinstance(values, Value) else values)
    try:
        g, attr = values[0].graph, bytes(memoryview(attr))
    except TypeError:
        _refuse(f"custom: expected the bytes of an attribute, found {_shown(attr)}", "GRAPH_ATTR",
                "struct.pack(..), or a ctypes.Structure")
    array = (Val * len(values))(*[v._as_parameter_ for v in values])
    first = g._build("fth_node_add_", op._p, len(values), array, attr or None, len(attr),
                     of_graph=True)
    g._ops = getattr(g, "_ops", set()) | {op}  # the graph calls it as long as it lives
    if outputs == 1:
        return first
    return (first,) + tuple(g._build("fth_out_", first, i) for i in range(1, outputs))


def op_check(op: Op, values: Union[Value, Iterable[Value]], attr: bytes = b"", inputs: Iterable[Any] = (),
             seed: int = 0, cuts: int = 0, threads: int = 0, gradient: float = 0.0) -> dict[str, Any]:
    """Try `op` on `values`, with its `attr`, in every way that a plan may use it; fathom.Error says what
    it got wrong. It is cut at so many places (`cuts`, drawn by `seed`) and run by so many `threads`; 0 is
    the default of each. `inputs` are arrays for the operands, None for random ones; `gradient` is how far
    gradients may be from differences, negative: they are not compared. Gives what was tried: calls, axes,
    joins, gradient_error."""
    values = _listed("op_check", [values] if isinstance(values, Value) else values)
    v = custom(op, values, attr)
    opt, report, err, kept = OpCheckOptions(seed, cuts, threads, gradient), OpCheckReport(), Err(), []
    pointers = getattr(opt, "in")
    for i, (array, value) in enumerate(zip(inputs, values)):
        if array is None:
            continue
        array = np.ascontiguousarray(array)
        if array.shape != value.shape or array.dtype != np.dtype(DTYPES[value.dtype][1]):
            _refuse(f"op_check: input {i} is {array.dtype} {list(array.shape)}, the operand "
                    f"{value.dtype} {list(value.shape)}", "USAGE")
        kept.append(array)
        pointers[i] = array.ctypes.data
    with v.graph._lock:
        status = _lib.fth_op_check(v, C.byref(opt), C.byref(report), C.byref(err))
    _check(status, err)
    return {name: getattr(report, name) for name, _ in OpCheckReport._fields_}


def free_memory() -> int:
    """Bytes that could be taken now without swapping."""
    return _lib.fth_mem_free_now()


def version() -> str:
    """The version of the library that is running."""
    return _text(_lib.fth_version())


# ---- diffraction images: the instrument bragg ---------------------------------------------------

_BRAGG = {
    "fth_bragg_create": (I, [C.POINTER(P), P, S, _PE]), "fth_bragg_destroy": (None, [P]),
    "fth_bragg_set": (I, [P, S, C.POINTER(S), I, _PE]), "fth_bragg_resolve": (I, [P, _PE]),
    "fth_bragg_size": (None, [P, C.POINTER(L), C.POINTER(L)]),
    "fth_bragg_render": (I, [P, P, _PE]),
    "fth_bragg_jacobian": (I, [P, C.POINTER(S), I, P, _PE]),
    "fth_bragg_param": (S, [I, C.POINTER(S)]),
}


def _words(value):
    """The values of one flag as they would be typed; None: it is not given."""
    if value is None or value is False:
        return None
    if value is True:
        return []
    if isinstance(value, (str, os.PathLike)):
        return [_path(value)]
    if isinstance(value, (list, tuple, np.ndarray)):
        return [w for v in value for w in _words(v)]
    if isinstance(value, (int, np.integer)):
        return [str(int(value)).encode()]
    return [repr(float(value)).encode()]


class _Experiment:
    def __init__(self, library, context, compat, quirks, flags):
        self._lib, self.context, self._p, err, out = library, context, None, Err(), P()
        _check(library.fth_bragg_create(C.byref(out), context._p, _encoded(compat), C.byref(err)),
               err)
        self._p = out.value
        self._life = _Life(self, context._life, library.fth_bragg_destroy, self._p)
        for name, on in quirks.items():
            self._set("quirk", f"{name}={'on' if on else 'off'}")
        for name, value in flags.items():
            self._set(name[:-1] if name.endswith("_") else name, value)
        _check(library.fth_bragg_resolve(self._p, C.byref(err)), err)
        slow, fast = L(), L()
        library.fth_bragg_size(self._p, C.byref(slow), C.byref(fast))
        self.shape = (slow.value, fast.value)

    def _set(self, name, value):
        words, err = _words(value), Err()
        if words is None:
            return
        _check(self._lib.fth_bragg_set(self._p, _encoded(name), (S * len(words))(*words),
                                       len(words), C.byref(err)), err)


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

    def __init__(self):
        self._library = None

    def __getattr__(self, name):
        if name not in _BRAGG:
            raise AttributeError(name)
        if self._library is None:
            path = os.path.join(os.path.dirname(_lib._path), "libfathom_instruments.so")
            try:
                self._library = C.CDLL(path)
            except OSError as e:
                raise ImportError(f"the instruments are not beside {_lib._path}: {e}") from None
        function = getattr(self._library, name)
        function.restype, function.argtypes = _BRAGG[name]
        setattr(self, name, function)
        return function

    def _open(self, compat, quirks, context, memory, threads, device, flags):
        if context is None:
            context = Context(memory=memory, threads=threads, device=device)
        return _Experiment(self, context, compat, quirks or {}, flags)

    def __call__(self, compat: str = "spec", quirks: Optional[Mapping[str, bool]] = None,
                 context: Optional[Context] = None, memory: Size = None, threads: int = 0,
                 device: Optional[str] = None, **flags: Any) -> np.ndarray:
        """Expected photons per pixel: float32 [slow, fast]."""
        e, err = self._open(compat, quirks, context, memory, threads, device, flags), Err()
        image = np.empty(e.shape, np.float32)
        with _signals:
            status = self.fth_bragg_render(e._p, image.ctypes.data, C.byref(err))
        _check(status, err)
        return image

    def jacobian(self, params: Union[str, Iterable[str]], compat: str = "spec",
                 quirks: Optional[Mapping[str, bool]] = None, context: Optional[Context] = None,
                 memory: Size = None, threads: int = 0, device: Optional[str] = None,
                 **flags: Any) -> np.ndarray:
        """Derivatives of the image by parameters such as "a", "mx" or "dist", each in the unit in
        which it is typed (see `params`): float64 [slow, fast, parameter]."""
        names = [params] if isinstance(params, str) else list(params)
        e, err = self._open(compat, quirks, context, memory, threads, device, flags), Err()
        out = np.empty(e.shape + (len(names),), np.float64)
        with _signals:
            status = self.fth_bragg_jacobian(e._p, (S * len(names))(*[_encoded(n) for n in names]),
                                             len(names), out.ctypes.data, C.byref(err))
        _check(status, err)
        return out

    @property
    def params(self) -> dict[str, str]:
        """{"a": "A", ...}: what an image can be differentiated by, and the units."""
        found, unit = {}, S()
        while True:
            name = self.fth_bragg_param(len(found), C.byref(unit))
            if name is None:
                return found
            found[_text(name)] = _text(unit.value)


bragg = _Bragg()


# ---- z-stacks: the instrument focus -------------------------------------------------------------

class _FocusArray(C.Structure):
    _fields_ = [("dtype", C.c_int32), ("n_axes", C.c_int32), ("size", L * 4), ("data", P)]


_FOCUS = {
    "fth_focus_open": (I, [C.POINTER(P), P, C.POINTER(S), I, C.POINTER(_FocusArray), C.POINTER(S), _PE]),
    "fth_focus_destroy": (None, [P]),
    "fth_focus_size": (None, [P, C.POINTER(L), C.POINTER(C.c_int32), C.POINTER(C.c_bool)]),
    "fth_focus_run": (I, [P, P, P, P, P, P, _PE]),
    "fth_focus_stat": (S, [I]),
}


class Focused:
    """What became of z-stacks: `image`, `index` (plane of each pixel, counted from 0), `depth` (um, or
    planes where the step is not known), `confidence`, each None where the method has none, and
    `metrics`, a dict of numbers. Several stacks have one more axis in front, and lists of numbers."""

    image: np.ndarray
    index: Any  # an array or None, as the next two
    depth: Any
    confidence: Any
    metrics: dict[str, Any]

    def __init__(self, image: np.ndarray, index: Optional[np.ndarray], depth: Optional[np.ndarray],
                 confidence: Optional[np.ndarray], metrics: dict[str, Any]) -> None:
        self.image, self.index, self.depth = image, index, depth
        self.confidence, self.metrics = confidence, metrics

    def __repr__(self) -> str:
        return f"Focused(image={self.image.dtype}{list(self.image.shape)})"


class _Exported:
    """Functions of an instrument, by a table {name: (result, arguments)}, opened when they are first called."""

    def __init__(self, types):
        self._types, self._functions = types, {}

    def _call(self, name):
        if name not in self._functions:
            bragg.fth_bragg_param  # opens the library of the instruments
            function = getattr(bragg._library, name)
            function.restype, function.argtypes = self._types[name]
            self._functions[name] = function
        return self._functions[name]


class _Focus(_Exported):
    """Fuse z-stacks into images that are sharp everywhere:

        sharp = fathom.focus(stack, method="log-smooth")
        sharp = fathom.focus("plate.nd2", method="cwt", times="0:1", channel="BF")

    A stack is an array z y x of uint8, uint16 or float32 (b z y x: several), or a path or list of paths.
    Every option of `fathom focus stack` is a keyword, dashes as underscores; a switch is True. The image
    is uint16, scaled; with scale="none" the fused values as they are. Memory, threads and device are as
    in Context."""

    def __init__(self):
        super().__init__(_FOCUS)

    def _open(self, stack, context, options):
        err, out, array, paths = Err(), P(), None, []
        if isinstance(stack, (str, os.PathLike)):
            paths = [_path(stack)]
        elif isinstance(stack, (list, tuple)) and stack and isinstance(stack[0], (str, os.PathLike)):
            paths = [_path(p) for p in stack]
        else:
            stack = np.asarray(stack)
            stack = np.ascontiguousarray(stack, stack.dtype.newbyteorder("="))  # big-endian files
            array = _FocusArray(_dtype_number(stack.dtype), stack.ndim, (L * 4)(*stack.shape[:4]),
                                stack.ctypes.data)
        words = []
        for name, value in options.items():
            text = _words(value)
            if text is not None:
                words += [name.replace("_", "-").encode(), b",".join(text)]
        _check(self._call("fth_focus_open")(C.byref(out), context._p, (S * len(paths))(*paths), len(paths),
                                            C.byref(array) if array else None,
                                            (S * (len(words) + 1))(*words, None), C.byref(err)), err)
        return out.value, stack

    def _names(self):
        names = []
        while True:
            name = self._call("fth_focus_stat")(len(names))
            if name is None:
                return names
            names.append(_text(name))

    def __call__(self, stack: Any, context: Optional[Context] = None, memory: Size = None,
                 threads: int = 0, device: Optional[str] = None, **options: Any) -> Focused:
        """The stack in focus: what the class says."""
        if context is None:
            context = Context(memory=memory, threads=threads, device=device)
        p, kept = self._open(stack, context, options)
        try:
            size, dtype, has, err = (L * 4)(), C.c_int32(), (C.c_bool * 3)(), Err()
            self._call("fth_focus_size")(p, size, C.byref(dtype), has)
            n, shape, names = size[0], (size[0], size[2], size[3]), self._names()
            image = np.empty(shape, _numpy_dtype(dtype.value))
            maps = [np.empty(shape, t) if there else None
                    for t, there in zip((np.uint16, np.float32, np.float32), has)]
            stats = np.empty((n, len(names)))
            with _signals:
                status = self._call("fth_focus_run")(p, image.ctypes.data,
                                                     *[None if m is None else m.ctypes.data for m in maps],
                                                     stats.ctypes.data, C.byref(err))
            _check(status, err)
        finally:
            self._call("fth_focus_destroy")(p)
            del kept
        if n == 1:
            return Focused(image[0], *[None if m is None else m[0] for m in maps],
                           dict(zip(names, stats[0].tolist())))
        return Focused(image, *maps, {name: stats[:, i].tolist() for i, name in enumerate(names)})


focus = _Focus()


# ---- ptychography: the instrument ptycho --------------------------------------------------------

_PTYCHO = {"fth_ptycho_run": (I, [P, S, C.POINTER(S), I, C.POINTER(S), S, _PE])}


class Reconstruction:
    """Object and probe of a scan: `object` [row, col], `probe` [mode, row, col] or [row, col], `positions`
    [scan, xy], `canvas_origin` (x, y of pixel (0, 0)), `error_history`; None where there is none. `arrays`
    has all that reconstruction.npz holds."""

    arrays: dict[str, np.ndarray]
    object: np.ndarray
    probe: Any  # an array or None, as all that follow
    positions: Any
    canvas_origin: Any
    error_history: Any

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.object = arrays["reconstructed_object"]
        self.probe = arrays.get("reconstructed_probe")
        self.positions, self.canvas_origin = arrays.get("positions"), arrays.get("canvas_origin")
        self.error_history = arrays.get("error_history")

    def __repr__(self) -> str:
        return f"Reconstruction(object={self.object.dtype}{list(self.object.shape)})"


class PtychoModel:
    """A trained network: `history` {"loss": [...], "val_loss": [...]}, and the file `path`, which goes with
    this object unless it was saved."""

    path: str
    history: dict[str, list[float]]

    def __init__(self, path: str, history: dict[str, list[float]]) -> None:
        self.path, self.history = path, history
        self._end = weakref.finalize(self, shutil.rmtree, os.path.dirname(path), True)

    def save(self, path: Path) -> Path:
        """Copy the file to `path`, which it returns."""
        shutil.copyfile(self.path, path)
        return path


class _Ptycho:
    """Ptychography, arrays in and arrays out:

        scan = fathom.ptycho.simulate(N=64, size=160, n_images=200)
        result = fathom.ptycho.solve(scan, algorithm="lsqml", iterations=60)
        metrics = fathom.ptycho.evaluate(result, scan)

    A scan is a path, or a dict of arrays with the names of an NPZ scan: diff3d, xcoords, ycoords, probeGuess.
    Every key of `fathom config docs ptycho` is a keyword, its dots as underscores. Memory, threads and device
    are as in Context. Arrays pass through files in a folder of their own, which is removed."""

    def __init__(self):
        self._function = None

    def _run(self, verb, words, options, context, folder):
        if self._function is None:
            bragg.fth_bragg_param  # opens the library of the instruments
            self._function = bragg._library.fth_ptycho_run
            self._function.restype, self._function.argtypes = _PTYCHO["fth_ptycho_run"]
        if context is None:
            engine = {k: options.pop(k) for k in ("memory", "threads", "device") if k in options}
            context = Context(**{"threads": 0, **engine})
        given = []
        for name, value in options.items():
            if value is None:
                continue
            if isinstance(value, (bool, np.bool_)):
                value = "true" if value else "false"
            elif isinstance(value, (list, tuple, np.ndarray)):
                value = ",".join(str(v) for v in value)
            given += [_encoded(name), _path(value) if isinstance(value, os.PathLike) else _encoded(str(value), "USAGE")]
        words = [_path(w) for w in words]
        text, err = os.path.join(folder, "printed.txt"), Err()
        with _signals:
            status = self._function(context._p, _encoded(verb), (S * len(words))(*words), len(words),
                                    (S * (len(given) + 1))(*given, None), _path(text), C.byref(err))
        _check(status, err)
        with open(text, encoding="utf-8") as f:
            return f.read()

    @staticmethod
    def _load(path):
        with np.load(path) as z:
            return {name: z[name] for name in z.files}

    @staticmethod
    def _put(what, path):
        """The file of a scan, an object or a reconstruction; arrays are written to `path`."""
        if isinstance(what, (str, os.PathLike)):
            return what
        if isinstance(what, Reconstruction):
            what = what.arrays
        if not isinstance(what, dict):
            what = {"object": np.asarray(what)}
        np.savez(path, **what)
        return path

    def simulate(self, context: Optional[Context] = None, **keys: Any) -> dict[str, np.ndarray]:
        """A made-up scan as a dict of arrays."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scan.npz")
            self._run("simulate", [path], keys, context, folder)
            return self._load(path)

    def solve(self, scan: Any, context: Optional[Context] = None, **keys: Any) -> Reconstruction:
        """Object and probe of a scan, iteratively: a Reconstruction."""
        with tempfile.TemporaryDirectory() as folder:
            path = self._put(scan, os.path.join(folder, "scan.npz"))
            self._run("solve", [path], {"pictures": False, **keys, "out": folder}, context, folder)
            return Reconstruction(self._load(os.path.join(folder, "reconstruction.npz")))

    def train(self, scan: Any, context: Optional[Context] = None, **keys: Any) -> PtychoModel:
        """A network that was trained on a scan: a PtychoModel."""
        folder = tempfile.mkdtemp()
        try:
            path = self._put(scan, os.path.join(folder, "scan.npz"))
            self._run("train", [path], {**keys, "out": folder}, context, folder)
            with open(os.path.join(folder, "training_history.json")) as f:
                return PtychoModel(os.path.join(folder, "model.safetensors"), _json.load(f))
        except BaseException:
            shutil.rmtree(folder, True)
            raise

    def infer(self, model: Union[PtychoModel, Path], scan: Any, context: Optional[Context] = None,
              **keys: Any) -> Reconstruction:
        """The object of a scan by a trained network, a PtychoModel or a path: a Reconstruction."""
        with tempfile.TemporaryDirectory() as folder:
            path = self._put(scan, os.path.join(folder, "scan.npz"))
            model = model.path if isinstance(model, PtychoModel) else model
            self._run("infer", [model, path], {"pictures": False, **keys, "out": folder}, context, folder)
            return Reconstruction(self._load(os.path.join(folder, "reconstruction.npz")))

    def evaluate(self, recon: Any, truth: Any, context: Optional[Context] = None,
                 **keys: Any) -> dict[str, Any]:
        """What metrics.json holds: {"mae": [amplitude, phase], ...}. Both are a Reconstruction, a scan, an
        array or a path."""
        with tempfile.TemporaryDirectory() as folder:
            words = [self._put(recon, os.path.join(folder, "recon.npz")),
                     self._put(truth, os.path.join(folder, "truth.npz"))]
            self._run("evaluate", words, {**keys, "out": folder}, context, folder)
            with open(os.path.join(folder, "metrics.json")) as f:
                return _json.load(f)

    def op(self, name: str, arrays: Optional[Mapping[str, Any]] = None,
           context: Optional[Context] = None, **keys: Any) -> dict[str, np.ndarray]:
        """The building block `name` on a dict of arrays; a dict of what it writes."""
        with tempfile.TemporaryDirectory() as folder:
            words = [] if not arrays else [self._put(dict(arrays), os.path.join(folder, "in.npz"))]
            out = os.path.join(folder, "out.npz")
            self._run("op", [name, *words, out], keys, context, folder)
            return self._load(out)


ptycho = _Ptycho()


# ---- Gaussian splats: the instrument splat ------------------------------------------------------

class _SplatCamera(C.Structure):
    _fields_ = [("width", L), ("height", L), ("lens", D * 4), ("w2c", D * 12), ("background", D * 3),
                ("most_alpha", D), ("model", S), ("distortion", D * 8), ("coefficients", C.c_int32),
                ("antialiased", C.c_int32), ("gut", C.c_int32)]


_SPLAT = {
    "fth_splat_load": (I, [C.POINTER(P), P, S, _PE]),
    "fth_splat_create": (I, [C.POINTER(P), P, L, C.c_int32, C.POINTER(P), _PE]),
    "fth_splat_destroy": (None, [P]),
    "fth_splat_size": (None, [P, C.POINTER(L), C.POINTER(C.c_int32)]),
    "fth_splat_array": (P, [P, C.c_int32]),
    "fth_splat_save": (I, [P, S, _PE]),
    "fth_splat_render": (I, [P, C.POINTER(_SplatCamera), P, P, P, _PE]),
}


class SplatModel:
    """Gaussians: `means`, `sh0`, `shN`, `scaling`, `rotation` and `opacity`, float32 and before activation,
    also as model["means"]; `degree` of the spherical harmonics. save(path) writes .ply, .splat, .spz, .sog or
    .html; render(camera, ...) is fathom.splat.render of it. They are read-only: another model is made by
    fathom.splat.model({**model, "opacity": changed})."""

    names = ("means", "sh0", "shN", "scaling", "rotation", "opacity")
    means: np.ndarray
    sh0: np.ndarray
    shN: np.ndarray
    scaling: np.ndarray
    rotation: np.ndarray
    opacity: np.ndarray
    degree: int

    def __init__(self, splat: Any, context: Context, p: int) -> None:
        self._splat, self._p, size, degree = splat, p, L(), C.c_int32()
        self._life = _Life(self, context._life, splat._call("fth_splat_destroy"), p)
        splat._call("fth_splat_size")(p, C.byref(size), C.byref(degree))
        self.degree, n = degree.value, size.value
        shapes = ((n, 3), (n, 3), (n, (self.degree + 1) ** 2 - 1, 3), (n, 3), (n, 4), (n,))
        for i, (name, shape) in enumerate(zip(self.names, shapes)):
            at = splat._call("fth_splat_array")(p, i)
            there = at is not None and math.prod(shape) > 0
            array = np.array(_over(at, shape, np.dtype(np.float32))) if there else np.zeros(shape, np.float32)
            array.flags.writeable = False  # a change would reach neither images nor files
            setattr(self, name, array)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.names and hasattr(self, name):
            _refuse(f"{name}: arrays of a model stay as they are; fathom.splat.model({{**model, {name!r}: ...}}) makes another",
                    "USAGE")
        object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> tuple[str, ...]:
        """Names of the arrays, as of a dict."""
        return self.names

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return f"SplatModel({len(self)} Gaussians of degree {self.degree})"

    def save(self, path: Path) -> Path:
        """Write `path` as .ply, .splat, .spz, .sog or .html, by its ending; the path."""
        err = Err()
        _check(self._splat._call("fth_splat_save")(self._p, _path(path), C.byref(err)), err)
        return path

    def render(self, camera: Mapping[str, Any], **options: Any) -> Any:
        """The image of a `camera`: fathom.splat.render of this model, with its options."""
        return self._splat.render(self, camera, **options)


class _Splat(_Exported):
    """3D Gaussian splatting:

        model = fathom.splat.load("model.ply")            # or .splat, .spz, .sog, or a checkpoint
        image = fathom.splat.render(model, {"width": 640, "height": 480, "fx": 600, "w2c": pose})

    A model is a path, what `load` gave, or a dict of arrays with the names of SplatModel."""

    def __init__(self):
        super().__init__(_SPLAT)

    def checkpoint(self, path: Path) -> dict[str, Any]:
        """All arrays of a checkpoint, or of that in the folder of a training, by their names, and its metadata as
        "__metadata__"."""
        kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
                 "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}
        if os.path.isdir(path):
            path = os.path.join(path, "checkpoints", "model.safetensors")
        with open(path, "rb") as f:
            n = int.from_bytes(f.read(8), "little")
            if n > os.path.getsize(path):
                _refuse(f"{path}, byte 0: expected the length of a header, found {n}", "FILE_FORMAT")
            header, found = _json.loads(f.read(n)), {}
            for name, item in header.items():
                if name == "__metadata__":
                    found[name] = item
                    continue
                lo, hi = item["data_offsets"]
                f.seek(8 + n + lo)
                found[name] = np.frombuffer(f.read(hi - lo), kinds[item["dtype"]]).reshape(item["shape"])
        return found

    def load(self, path: Path, context: Optional[Context] = None, memory: Size = None,
             threads: int = 0, device: Optional[str] = None) -> SplatModel:
        """The model in a file, .ply, .splat, .spz, .sog or a checkpoint; memory, threads and device are as in
        Context."""
        if context is None:
            context = Context(memory=memory, threads=threads, device=device)
        if os.fspath(path).endswith(".safetensors"):
            return self.model(self.checkpoint(path), context)
        out, err = P(), Err()
        _check(self._call("fth_splat_load")(C.byref(out), context._p, _path(path), C.byref(err)), err)
        return SplatModel(self, context, out.value)

    def model(self, arrays: Any, context: Optional[Context] = None, memory: Size = None,
              threads: int = 0, device: Optional[str] = None) -> SplatModel:
        """A model of arrays; shN may be missing, sh0 may be [g, 1, c]."""
        if context is None:
            context = Context(memory=memory, threads=threads, device=device)
        if not hasattr(arrays, "keys"):
            _refuse(f"expected a model: a path, what load gave, or arrays by name, found {type(arrays).__name__}", "USAGE")
        lacks = [k for k in SplatModel.names if k != "shN" and k not in arrays.keys()]
        if lacks:
            _refuse(f"expected the arrays {', '.join(SplatModel.names)} (shN may be missing), found no {', '.join(lacks)}", "USAGE")
        given = {k: np.ascontiguousarray(arrays[k], np.float32) for k in SplatModel.names
                 if k != "shN" or k in arrays.keys()}
        n = len(given["means"])
        k = given["shN"].size // (3 * n) if n and "shN" in given else 0
        degree = math.isqrt(k + 1) - 1
        counts = {"means": 3, "sh0": 3, "shN": 3 * k, "scaling": 3, "rotation": 4, "opacity": 1}
        for name, array in given.items():
            if array.size != n * counts[name] or (degree + 1) ** 2 != k + 1:
                _refuse(f"{name}: expected {n} rows of {counts[name]} numbers, found {list(array.shape)}", "USAGE")
        out, err = P(), Err()
        rows = (P * 6)(*[given[k].ctypes.data if k in given else None for k in SplatModel.names])
        _check(self._call("fth_splat_create")(C.byref(out), context._p, n, degree, rows, C.byref(err)), err)
        return SplatModel(self, context, out.value)

    def render(self, model: Any, camera: Mapping[str, Any], background: Sequence[float] = (0, 0, 0),
               alpha: bool = False, depth: bool = False, raster: str = "fast",
               context: Optional[Context] = None, memory: Size = None, threads: int = 0,
               device: Optional[str] = None, antialiased: bool = False, gut: bool = False) -> Any:
        """The image, float32 [i, j, c], the background in it, not clamped; with `alpha` or `depth` a tuple of it
        and these, [i, j]; depth is the sum of weight times depth. A camera is a dict: width, height, fx, fy (fx
        by itself), cx, cy (the middle), w2c: world to camera, 4x4 or 3x4, x right, y down, z forward; and with
        gut=True (3DGUT) model, a camera model of COLMAP such as "OPENCV" or "OPENCV_FISHEYE", and distortion,
        its coefficients in their order."""
        if isinstance(model, (str, os.PathLike)):
            model = self.load(model, context, memory, threads, device)
        elif not isinstance(model, SplatModel):
            model = self.model(model, context, memory, threads, device)
        if raster not in ("fast", "classic"):
            _refuse(f"raster: expected 'fast' or 'classic', found {raster!r}", "USAGE")
        needed, known = ("width", "height", "fx", "w2c"), ("fy", "cx", "cy", "model", "distortion")
        for key in (*[k for k in needed if k not in camera], *[k for k in camera if k not in needed + known]):
            _refuse(f"camera: expected {', '.join(needed)}, and {', '.join(known)} where they are needed, found "
                    f"{'a key' if key in camera else 'no'} {key!r}", "USAGE")
        width, height = int(camera["width"]), int(camera["height"])
        if (width, height) != (camera["width"], camera["height"]):
            _refuse(f"camera: expected a size in whole pixels, found {camera['width']} x {camera['height']}", "USAGE")
        pose = np.asarray(camera["w2c"], float)
        if pose.shape not in ((4, 4), (3, 4)):
            _refuse(f"camera: expected w2c of 4x4 or 3x4, found {list(pose.shape)}", "USAGE")
        fx = float(camera["fx"])
        lens = (fx, float(camera.get("fy", fx)), float(camera.get("cx", width / 2)), float(camera.get("cy", height / 2)))
        bends, name = [float(b) for b in camera.get("distortion", ())], camera.get("model")
        if len(bends) > 8 or bends and name is None:
            _refuse("camera: expected a model such as 'OPENCV' with its distortion of up to 8 numbers, found "
                    f"{len(bends)} numbers and model {name!r}", "USAGE")
        c = _SplatCamera(width, height, (D * 4)(*lens), (D * 12)(*pose[:3].ravel()), (D * 3)(*background),
                         0.999 if raster == "fast" else 0.99, None if name is None else _path(name),
                         (D * 8)(*bends), len(bends), bool(antialiased), bool(gut))
        if width < 1 or height < 1:
            _refuse(f"camera: expected a size, found {width} x {height}", "USAGE")
        image, err = np.empty((height, width, 3), np.float32), Err()
        maps = [np.empty((height, width), np.float32) if wanted else None for wanted in (alpha, depth)]
        with _signals:
            status = self._call("fth_splat_render")(model._p, C.byref(c), image.ctypes.data,
                                                    *[None if m is None else m.ctypes.data for m in maps], C.byref(err))
        _check(status, err)
        return (image, *[m for m in maps if m is not None]) if alpha or depth else image


splat = _Splat()


# ---- spatial transcriptomics: the instrument spatial --------------------------------------------

_TEXT_FN, _STOP_FN = C.CFUNCTYPE(None, P, S), C.CFUNCTYPE(B, P)


class _SpatialCall(C.Structure):
    _fields_ = [("config", S), ("stage", S), ("device", S), ("memory_bytes", U), ("device_memory_bytes", U),
                ("threads", C.c_int32), ("progress", _TEXT_FN), ("stop", _STOP_FN), ("say", _TEXT_FN),
                ("mistake", _TEXT_FN), ("user", P)]


_SPATIAL = {
    "fth_spatial_stage": (I, [C.POINTER(_SpatialCall), _PE]),
    "fth_spatial_project": (I, [P, S, S, S, _PE]),
    "fth_spatial_key": (S, [I, C.POINTER(B)]),
    "fth_spatial_model": (S, [S, I]),
}
_PIECE = 4 << 20  # bytes of counts that are looked at, or converted, at a time


def _pieces(array):
    step = max(1, _PIECE // max(1, array.dtype.itemsize))
    return ((lo, array[lo:lo + step]) for lo in range(0, len(array), step))


def _save_npz(path, members):
    """An .npz file of (name, dtype, shape, pieces), where no array need be in memory as a whole."""
    import zipfile
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for name, dtype, shape, pieces in members:
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                np.lib.format.write_array_header_1_0(f, {"descr": np.dtype(dtype).str, "fortran_order": False,
                                                         "shape": tuple(int(n) for n in shape)})
                for piece in pieces:
                    f.write(np.ascontiguousarray(piece, dtype).data)


class _Counts:
    """Counts of cells by genes as they lie in memory, checked and written in pieces of a few MiB. `copied`: bytes
    that had to be copied."""

    HINT = "the model is one of counts: fit before normalize_total and log1p, or name the layer of the counts with layer="
    _READ = {"b1": "?", "i1": "i4", "i2": "i4", "u4": "i8", "u8": "i8", "f2": "f4"}  # what the program reads it as

    def __init__(self, x, where):
        self.where, self.copied, self.dense, form = where, 0, None, getattr(x, "format", None)
        if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray):
            if x.ndim != 2:
                _refuse(f"{where}: expected counts [cell, gene], found the shape {x.shape}", "USAGE")
            self.dense, self.dtype = np.asarray(x), x.dtype  # not np.matrix, whose rows have two axes
        elif hasattr(x, "indptr") and hasattr(x, "indices") and form in ("csr", "csc"):
            if form == "csc":  # cells are read one after the other
                x = x.tocsr()
                self.copied = x.data.nbytes + x.indices.nbytes + x.indptr.nbytes
            self.data, self.indices, self.indptr, self.dtype = x.data, x.indices, x.indptr, x.data.dtype
        else:
            _refuse(f"{where}: expected a SciPy CSR or CSC matrix or a NumPy array, found {type(x).__module__}."
                    f"{type(x).__name__}", "USAGE", "convert it: scipy.sparse.csr_matrix(...); a file that is too large "
                    "for memory is opened with anndata.read_h5ad(path, backed='r')")
        self.shape = tuple(int(n) for n in x.shape)
        if self.dtype.kind not in "biuf" or self.dtype.itemsize > 8:
            _refuse(f"{where}: expected counts as integers or floats, found {self.dtype}", "USAGE")

    def _blocks(self):
        """(first cell, block of them) of a dense matrix."""
        step = max(1, _PIECE // max(1, self.shape[1] * self.dtype.itemsize))
        return ((lo, self.dense[lo:lo + step]) for lo in range(0, self.shape[0], step))

    def check(self, cells, genes):
        """Refuse what is not a count, and say where it is."""
        if self.dtype.kind in "bu":
            return
        if self.dense is not None:
            parts = ((lo * self.shape[1], block.reshape(-1)) for lo, block in self._blocks())
        else:
            parts = _pieces(self.data)
        for at, part in parts:
            bad = part < 0
            if self.dtype.kind == "f":
                bad |= part != np.floor(part)  # NaN too
                bad |= np.isinf(part)
            if not bad.any():
                continue
            k = int(bad.argmax())
            v, k = part[k], at + k
            if self.dense is not None:
                row, col = divmod(k, self.shape[1])
            else:
                row, col = int(np.searchsorted(self.indptr, k, "right")) - 1, int(self.indices[k])
            what = "a negative number" if v < 0 else "not finite" if not np.isfinite(v) else "not a whole number"
            _refuse(f"{self.where}: expected counts, whole numbers from 0, found {v} (cell {row}, '{cells[row]}', gene "
                    f"{col}, '{genes[col]}'), which is {what}", "USAGE", self.HINT)

    def save(self, path):
        """Y.npz, in CSR form; the bytes of the file."""
        data = self._READ.get(self.dtype.str[1:], self.dtype.newbyteorder("=").str[1:])
        if self.dense is None:
            indptr, entries = np.asarray(self.indptr), len(self.data)
            indices, index = (part for _, part in _pieces(self.indices)), np.dtype(self.indices.dtype.str[1:])
            values = (part for _, part in _pieces(self.data))
        else:
            indptr = np.concatenate([[0], *(np.count_nonzero(b, 1) for _, b in self._blocks())]).cumsum()
            entries, index = int(indptr[-1]), np.dtype("i4")
            indices = (np.nonzero(b)[1] for _, b in self._blocks())
            values = (b[np.nonzero(b)] for _, b in self._blocks())
        indptr = indptr.astype(np.int64, copy=False)
        _save_npz(path, [("indices", index, (entries,), indices), ("indptr", "i8", indptr.shape, [indptr]),
                         ("format", "S3", (), [np.bytes_(b"csr")]), ("shape", "i8", (2,), [np.array(self.shape)]),
                         ("data", data, (entries,), values)])
        return os.path.getsize(path)


def _labels(column, where):
    """(code of each cell, -1 where there is none; names) of a column of obs, numbered as in an h5ad file."""
    if hasattr(column, "cat"):
        return np.asarray(column.cat.codes, np.int64), [str(c) for c in column.cat.categories]
    values = np.asarray(column)
    if values.ndim != 1:
        _refuse(f"{where}: expected a label for each cell, found the shape {values.shape}", "USAGE")
    if values.dtype.kind in "biu":
        there, texts = np.ones(len(values), bool), values
    elif values.dtype.kind == "f":
        there, texts = ~np.isnan(values), values
    else:
        there = np.array([v is not None and v == v for v in values.tolist()], bool)
        texts = np.array([str(v) if ok else "" for v, ok in zip(values.tolist(), there)], dtype=str)
    names, codes = np.unique(texts[there], return_inverse=True)
    out = np.full(len(values), -1, np.int64)
    out[there] = codes
    return out, [str(n) for n in names.tolist()]


def _h5ad_value(v):
    """A value of JSON as anndata writes it: lists become arrays, what is None is left out."""
    if isinstance(v, dict):
        return {str(k).replace("/", "_"): _h5ad_value(x) for k, x in v.items() if x is not None}
    if isinstance(v, list):
        if all(isinstance(x, (int, float)) or x is None for x in v):
            return np.array([np.nan if x is None else x for x in v])
        return np.array([x if isinstance(x, str) else _json.dumps(x) for x in v], dtype=object)
    return v


def _setting(text):
    """A number where the text is one."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class SpatialProgress(NamedTuple):
    """Where a fit is: its `stage`, steps `done` of `total`, seconds that remain, `what` it does, and `numbers`
    such as the objective, by name."""
    stage: str
    done: int
    total: int
    remaining_s: float
    what: str
    numbers: dict[str, float]


def _unique_names(names):
    """As the library makes names of genes unique: repeats of x are the next free of x-1, x-2..."""
    names = [str(g) for g in names]
    taken, met, out = set(names), {}, []
    for name in names:
        k = met.get(name, -1) + 1
        if k > 0:
            while f"{name}-{k}" in taken:
                k += 1
            taken.add(f"{name}-{k}")
        met[name] = k
        out.append(f"{name}-{k}" if k > 0 else name)
    return out


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
    log         lines that the stages wrote
    """

    name: str
    output_dir: str
    model_path: str
    log: list[str]
    factors: np.ndarray
    scales: Optional[np.ndarray]
    loadings: np.ndarray
    gene_names: Optional[list[str]]
    elbo: Optional[np.ndarray]
    moran: np.ndarray
    rows: np.ndarray
    held_out: Optional[np.ndarray]
    size_factors: Optional[np.ndarray]
    dispersions: Optional[np.ndarray]
    metrics: dict[str, Any]
    settings: dict[str, Any]
    group_names: list[str]
    section_names: list[str]

    def __init__(self, spatial: Any, folder: str, log: Iterable[str] = ()) -> None:
        self._spatial, self.output_dir, self.name = spatial, os.path.dirname(folder), os.path.basename(folder)
        self.model_path, self.log = os.path.join(folder, "model.safetensors"), list(log)

        def array(name):
            path = os.path.join(folder, name)
            return np.load(path) if os.path.exists(path) else None
        self.factors, self.scales, self.loadings = (array(n) for n in ("factors.npy", "scales.npy", "loadings.npy"))
        self.held_out, self.elbo = array("held_out.npy"), array("elbo_history.npy")
        self.size_factors, self.dispersions = array("size_factors.npy"), None
        dispersions = os.path.join(folder, "dispersion.csv")
        if os.path.exists(dispersions):
            with open(dispersions, encoding="utf-8", newline="") as f:
                self.dispersions = np.array([float(row["theta"]) for row in _csv.DictReader(f)])
        if self.factors is None or self.loadings is None:
            _refuse(f"{folder}: expected the results of an analysis, found no factors.npy", "FILE_OPEN",
                    "run `fathom spatial analyze` first")
        with open(os.path.join(folder, "metrics.json"), encoding="utf-8") as f:
            self.metrics = _json.load(f)
        self.moran = np.array(self.metrics["moran_i"]["values"], float)
        self.rows = array(os.path.join("..", "preprocessed", "rows.npy"))
        if self.rows is None:
            self.rows = np.arange(len(self.factors))
        data, self.gene_names = os.path.join(folder, "..", "preprocessed", "metadata.json"), None
        if os.path.exists(data):
            with open(data, encoding="utf-8") as f:
                self.gene_names = [str(g) for g in _json.load(f)["gene_names"]]
        with open(self.model_path, "rb") as f:
            meta = _json.loads(f.read(int.from_bytes(f.read(8), "little")))["__metadata__"]
        self._frame = [float(meta[k]) if k in meta else default
                       for k, default in (("offset_x", 0.0), ("offset_y", 0.0), ("scale", 1.0))]
        self.group_names = _json.loads(meta.get("group_names", "[]"))
        self.section_names = _json.loads(meta.get("section_names", "[]"))
        self.settings = {k: _setting(v) for k, v in meta.items()
                         if "/" not in k and not k.startswith(("axes.", "xxh64.", "run."))}

    def __repr__(self) -> str:
        return (f"SpatialFit({self.name}: {len(self.factors)} cells, {len(self.loadings)} genes, "
                f"{self.factors.shape[1]} factors)")

    def predict(self, xy: Any, groups: Union[str, Iterable[str], None] = None, scales: bool = False,
                memory: Size = None, threads: int = 0, device: Optional[str] = None,
                section: Optional[str] = None) -> Any:
        """Factors at other places, float32 [place, factor]; with scales=True, a tuple of them and their scales.

        xy      positions [place, 2], in the unit of the object's
        groups  of models with groups: the name of the group of each place, or one name for all
        section of models of several sections: the name of the section of the places
        """
        xy = np.asarray(xy, float)
        if xy.ndim != 2 or xy.shape[1] != 2 or not np.isfinite(xy).all():
            _refuse(f"predict: expected finite positions [place, 2], found the shape {xy.shape}", "USAGE")
        if not self.settings.get("spatial"):
            _refuse(f"predict: {self.name} does not use positions, and has no factors where there are no counts", "USAGE",
                    "`fathom spatial project` fits the counts of other cells")
        names, codes = ["All"], np.zeros(len(xy), np.int64)
        if self.settings.get("groups"):
            names = self.group_names
            given = [groups] * len(xy) if isinstance(groups, str) else [] if groups is None else [str(g) for g in groups]
            unknown = [g for g in given if g not in names]
            if len(given) != len(xy) or unknown:
                _refuse(f"predict: expected a group for each of {len(xy)} places, found "
                        + (f"'{unknown[0]}'" if unknown else f"{len(given)}"), "USAGE",
                        f"groups of the model are {', '.join(names)}")
            codes = np.array([names.index(g) for g in given], np.int64)
        if len(xy) == 0:
            empty = np.zeros((0, self.factors.shape[1]), np.float32)
            return (empty, empty.copy()) if scales else empty
        if self.section_names and section not in self.section_names:
            _refuse(f"predict: expected the section of the places, found {section!r}", "USAGE",
                    f"sections of the model are {', '.join(self.section_names)}")
        (x0, y0, scale), n, more = self._frame, len(xy), {}
        if self.section_names:  # positions of the source: the library moves them to the section
            x0, y0, scale = 0.0, 0.0, 1.0
            box, far = [*xy.min(0).tolist(), *xy.max(0).tolist()], 10 * float(np.abs(xy).max()) + 1
            more = {"section_names": [section],
                    "sections": {"cells": [n], "offsets": [[0.0, 0.0]], "boxes": [box], "gap": far}}
        with tempfile.TemporaryDirectory() as folder:
            np.save(os.path.join(folder, "X.npy"), ((xy - [x0, y0]) * scale).astype(np.float32))
            np.save(os.path.join(folder, "C.npy"), codes)
            if more:
                np.save(os.path.join(folder, "S.npy"), np.zeros(n, np.int64))
            pointers = np.minimum(np.arange(n + 1), 1)  # no count plays a part, but a folder without any is refused
            np.savez(os.path.join(folder, "Y.npz"), data=np.ones(1, np.float32), indices=np.zeros(1, np.int32),
                     indptr=pointers, shape=np.array([n, 1]), format=b"csr")
            with open(os.path.join(folder, "metadata.json"), "w", encoding="utf-8") as f:
                _json.dump({"n_spots": n, "n_genes": 1, "n_groups": len(names), "gene_names": ["none"],
                            "spot_names": None, "group_names": names, "offset": [x0, y0], "scale": scale, **more}, f)
            out, err = os.path.join(folder, "out"), Err()
            context = Context(memory=memory, threads=threads, device=device)
            with _signals:
                status = self._spatial._call("fth_spatial_project")(
                    context._p, _path(self.model_path), _path(folder), _path(out), C.byref(err))
            _check(status, err)
            found = [np.load(os.path.join(out, name)) for name in ("factors.npy", "scales.npy")]
        return tuple(found) if scales else found[0]

    def figures(self, memory: Size = None, threads: int = 0, **keys: Any) -> list[str]:
        """Draw the figures of `fathom spatial figures`; the paths of the files. Keys are those of the section
        figures: which="all", dpi=300, formats=["svg"]."""
        config = os.path.join(self.output_dir, self.name + ".yaml")
        if not os.path.exists(config):
            _refuse(f"figures: expected {config}, which fit writes, found none", "FILE_OPEN",
                    "draw them with `fathom spatial figures -c CONFIG`")
        self._spatial._write_config(config, {**self._spatial._read_config(config),
                                             **self._spatial._settings(keys, "figures.")})
        self._spatial._stages(config, ["figures"], memory, None, threads, None, self.log)
        folder = os.path.join(self.output_dir, self.name, "figures")
        return sorted(os.path.join(folder, f) for f in os.listdir(folder))

    def save(self, folder: Path) -> Path:
        """Copy the results to `folder`, which fathom.spatial.read and the program open; `folder` itself."""
        folder = os.path.abspath(folder)
        if os.path.exists(folder) and os.path.samefile(folder, self.output_dir):
            return folder  # it is there already
        shutil.copytree(self.output_dir, folder, dirs_exist_ok=True,
                        ignore=lambda where, names: [n for n in names if n in ("source", "lock")])
        config = os.path.join(folder, self.name + ".yaml")
        if os.path.exists(config):
            self._spatial._write_config(config, {**self._spatial._read_config(config), "output_dir": folder})
        return folder


class _Spatial(_Exported):
    """Factor models of spatial transcriptomics:

        result = fathom.spatial.fit(adata, "mggp_svgp", n_components=10, groups="cell_type")
        adata.obsm["fathom_factors"], adata.varm["fathom_loadings"], adata.uns["fathom"]
        result.predict(xy), result.save("results"), fathom.spatial.read("results")

    docs/spatial-tutorial.md goes through it; docs/spatial.md has the models and the program."""

    def __init__(self):
        super().__init__(_SPATIAL)
        self._names = None

    # ---- configs

    def _keys(self):
        """{keyword: (key, whether it is a path)}: the last word of a key, and the whole with underscores. Of keys with one last word
        it is that which an argument may set."""
        if self._names is None:
            keys, path = [], B()
            while True:
                name = self._call("fth_spatial_key")(len(keys), C.byref(path))
                if name is None:
                    break
                keys.append((_text(name), path.value))
            last = {}
            for key in sorted(keys, key=lambda k: k[0] in self._OWN):
                last.setdefault(key[0].rsplit(".", 1)[-1], []).append(key)
            self._names = {word: of[0] for word, of in last.items()
                           if len(of) == 1 or of[0][0] not in self._OWN and of[1][0] in self._OWN}
            self._names.update((key.replace(".", "_"), (key, is_path)) for key, is_path in keys)
        return self._names

    # What the object, the model or another argument says.
    _OWN = {"name", "dataset", "seed", "training.device", "training.memory_budget"} \
        | {f"model.{k}" for k in ("spatial", "groups", "local", "prior", "n_components")} \
        | {f"preprocessing.{k}" for k in ("path", "h5ad_path", "labels_path", "positions_path", "coord_key",
                                          "coord_columns", "counts", "feature_types", "group_column", "region_column",
                                          "cell_type_column", "section_column", "sample_id", "image",
                                          "image_channels", "coordinate_system")}

    def _settings(self, keywords, section=""):
        """{key: value} of keywords; what is None is not given."""
        known, found = {w: k for w, k in self._keys().items() if k[0].startswith(section)}, {}
        for word, value in keywords.items():
            if word not in known:
                import difflib
                near = difflib.get_close_matches(word, known, 1)
                _refuse(f"spatial has no key '{word}'", "USAGE", (f"did you mean '{near[0]}'? " if near else "")
                        + "`fathom config docs spatial` lists all keys")
            key, is_path = known[word]
            if key in self._OWN:
                _refuse(f"'{word}' is not a key of fit: the object, the model or another argument says it", "USAGE")
            if isinstance(value, (np.generic, np.ndarray)):
                value = value.tolist()
            if value is not None:
                found[key] = os.path.abspath(value) if is_path else list(value) if isinstance(value, tuple) else value
        return found

    @staticmethod
    def _read_config(path):
        with open(path, encoding="utf-8") as f:
            lines = [line.rstrip("\n").split(": ", 1) for line in f if not line.startswith("#")]
        return {key: _json.loads(value) for key, value in lines}

    @staticmethod
    def _write_config(path, settings):
        """One key a line, its value as JSON, which is YAML too."""
        with open(path, "w", encoding="utf-8") as f:
            f.write("# written by fathom.spatial\n")
            for key, value in settings.items():
                f.write(f"{key}: {_json.dumps(value, ensure_ascii=False)}\n")
        return path

    def _base(self, model, n_components, seed):
        """What `fathom spatial info` proposes and `fathom spatial generate` makes of it."""
        settings = {"instrument": "spatial", "name": "adata", "seed": _int(seed, "seed", lo=0)}
        made = {}
        while (text := self._call("fth_spatial_model")(_encoded(str(model), "USAGE"), len(made))) is not None:
            key, value = _text(text).split("=", 1)
            made[key] = _setting(value)
        if not made:
            _refuse(f"spatial has no model {model!r}", "USAGE", "models are pnmf, svgp, mggp_svgp, lcgp and mggp_lcgp")
        settings.update(made)
        settings.update({"model.n_components": _int(n_components, "n_components", lo=1), "model.init": "nmf",
                         "model.loadings_mode": "multiplicative", "analyze.export": False})
        if made["model.spatial"]:
            settings["model.lengthscale"] = 8.0
        return settings

    # ---- the object

    @staticmethod
    def _lookup(adata, table, key, argument):
        held = getattr(adata, table, None)
        try:
            return held[key]
        except (KeyError, TypeError, AttributeError):
            has = ", ".join(f"'{k}'" for k in (held.keys() if hasattr(held, "keys") else ())) or "nothing"
            _refuse(f"adata.{table}: expected '{key}', found {has}", "USAGE", f"name it with {argument}=")

    @staticmethod
    def _image(adata, wanted):
        """Pixels of the tissue image in uns['spatial'], as scanpy and squidpy keep it, and its place; None: there is none."""
        held = getattr(adata, "uns", None) or {}
        held = held["spatial"] if "spatial" in held else {}
        found = {}
        for name in held if hasattr(held, "keys") else ():
            library = held[name]
            images = library.get("images") if hasattr(library, "get") else None
            size = next((s for s in ("hires", "lowres") if images and s in images), None)
            scales = library.get("scalefactors") or {} if size else {}
            if f"tissue_{size}_scalef" in scales:
                found[str(name)] = images[size], float(scales[f"tissue_{size}_scalef"]), scales.get("spot_diameter_fullres")
        if wanted is not None and wanted not in found:
            _refuse(f"adata.uns['spatial']: expected an image of the library '{wanted}', found one of "
                    f"{', '.join(map(repr, found)) or 'none'}", "USAGE", "name it with image_library=")
        if wanted is None and len(found) != 1:
            return None
        pixels, scale, spot = found[wanted] if wanted is not None else next(iter(found.values()))
        pixels = np.asarray(pixels)
        if pixels.ndim not in (2, 3) or not scale > 0:
            return None
        place = {"file": "image.npy", "low": [0, 0], "high": [pixels.shape[1] / scale, pixels.shape[0] / scale]}
        if spot is not None:
            place["spot_diameter"] = float(spot)
        return pixels.astype(np.float32) if pixels.dtype == np.float16 else pixels, place

    def _write_codes(self, adata, column, argument, n, path):
        """Labels of a column of obs as codes in a file; their names, None where no column is given."""
        if column is None:
            if os.path.exists(path):
                os.remove(path)
            return None
        codes, names = _labels(self._lookup(adata, "obs", column, argument), f"adata.obs['{column}']")
        if len(codes) != n:
            _refuse(f"adata.obs['{column}']: expected a label for each of {n} cells, found {len(codes)}", "USAGE")
        np.save(path, codes)
        return names

    def _write_source(self, config, adata, folder, spatial_key, layer, groups, section, log):
        """The object as arrays in `folder`, and the keys that read them."""
        os.makedirs(folder, exist_ok=True)
        where = "adata.X" if layer is None else f"adata.layers['{layer}']"
        counts = _Counts(adata.X if layer is None else self._lookup(adata, "layers", layer, "layer"), where)
        n, d = counts.shape
        genes = [str(g) for g in adata.var_names]
        cells = [str(c) for c in getattr(adata, "obs_names", range(n))]
        if len(genes) != d or len(cells) != n:
            _refuse(f"{where}: expected {len(cells)} cells and {len(genes)} genes, as the object has, found {n} and {d}",
                    "USAGE")
        xy = np.asarray(self._lookup(adata, "obsm", spatial_key, "spatial_key"))
        axes = config.pop("preprocessing.coord_axes", None)
        if axes is not None and xy.ndim == 2:
            xy = xy[:, list(axes)]
        if xy.ndim != 2 or xy.shape != (n, 2) or xy.dtype.kind not in "iuf":
            _refuse(f"adata.obsm['{spatial_key}']: expected positions of {n} cells on 2 axes, found {xy.dtype} "
                    f"{list(xy.shape)}", "USAGE", "coord_axes=[0, 1] says which of more columns are x and y")
        if not np.isfinite(xy).all():
            row = int(np.flatnonzero(~np.isfinite(xy).all(1))[0])
            _refuse(f"adata.obsm['{spatial_key}']: expected finite positions, found {xy[row].tolist()} (cell {row}, "
                    f"'{cells[row]}')", "USAGE", "take such cells out: adata = adata[...].copy()")
        counts.check(cells, genes)
        meta = {"gene_names": genes, "spot_names": cells,
                "group_names": self._write_codes(adata, groups, "groups", n, os.path.join(folder, "C.npy")) or ["All"]}
        sections = self._write_codes(adata, section, "section", n, os.path.join(folder, "S.npy"))
        if sections is not None:
            meta["section_names"] = sections
        np.save(os.path.join(folder, "X.npy"), xy.astype(np.float64 if xy.dtype.itemsize > 4 else np.float32))
        image = self._image(adata, config.pop("preprocessing.image_library", None))
        if image is not None:
            np.save(os.path.join(folder, "image.npy"), image[0])
            meta["image"] = image[1]
        elif os.path.exists(os.path.join(folder, "image.npy")):
            os.remove(os.path.join(folder, "image.npy"))
        written = counts.save(os.path.join(folder, "Y.npz"))
        with open(os.path.join(folder, "metadata.json"), "w", encoding="utf-8") as f:
            _json.dump({"n_spots": n, "n_genes": d, "n_groups": len(meta["group_names"]), **meta}, f, ensure_ascii=False)
        log.append(f"counts: {written} bytes written to {folder}, {counts.copied} bytes copied in memory")
        config.update({"dataset": "arrays", "preprocessing.path": folder})

    @staticmethod
    def _name_file(config, adata, spatial_key, layer, groups, section):
        """The keys that read the file of a backed object."""
        if getattr(adata, "is_view", False):
            _refuse("expected a backed object as it was opened, found a view of it: the file has all cells", "USAGE",
                    "load the part: adata = adata.to_memory(), or write it to a file of its own")
        config.update({"dataset": "anndata", "preprocessing.path": os.path.abspath(adata.filename),
                       "preprocessing.coord_key": spatial_key, "preprocessing.counts": layer or "X"})
        if groups is not None:
            config["preprocessing.group_column"] = groups
        if section is not None:
            config["preprocessing.section_column"] = section

    def _check_file(self, config, adata, spatial_key, groups):
        """Refuse to mix a backed object that was changed in memory with what its file has, and counts that are not
        whole numbers."""
        folder = os.path.join(config["output_dir"], "preprocessed")
        rows, xy, codes = (np.load(os.path.join(folder, name)) for name in ("rows.npy", "X.npy", "C.npy"))
        with open(os.path.join(folder, "metadata.json"), encoding="utf-8") as f:
            meta = _json.load(f)
        held = np.asarray(self._lookup(adata, "obsm", spatial_key, "spatial_key"), float)
        axes = config.get("preprocessing.coord_axes", [0, 1])
        same = held.ndim == 2 and len(held) == int(adata.shape[0]) > rows.max()
        if same:
            offset = np.array(meta["sections"]["offsets"])[np.load(os.path.join(folder, "S.npy"))] if "sections" in meta \
                else meta["offset"]
            far = np.abs((held[rows][:, axes] - offset) * meta["scale"] - xy).max()
            same = far <= 1e-3 * max(1.0, float(np.abs(xy).max()))
        if same and groups is not None:
            mine, names = _labels(self._lookup(adata, "obs", groups, "groups"), f"adata.obs['{groups}']")
            same = [meta["group_names"][c] for c in codes] == [names[c] if c >= 0 else None for c in mine[rows]]
        if not same:
            _refuse(f"{adata.filename}: expected the positions and groups of the object, found others: the object was "
                    "changed after it was opened", "USAGE", "write it to a file, and open that; or adata.to_memory()")
        import zipfile
        with zipfile.ZipFile(os.path.join(folder, "Y.npz")) as z, z.open("data.npy") as f:
            np.lib.format.read_magic(f)
            np.lib.format.read_array_header_1_0(f)
            while piece := f.read(_PIECE):
                values = np.frombuffer(piece, "<f4")
                bad = values != np.floor(values)
                if bad.any():
                    _refuse(f"{adata.filename}: expected counts, whole numbers from 0, found {values[bad.argmax()]}",
                            "USAGE", _Counts.HINT)

    # ---- stages

    def _stages(self, config, stages, memory, device, threads, progress, log):
        failed, mistakes, notices = [], [], []

        def tell(_user, line):
            try:
                p = _json.loads(line)
                if progress is None or "event" in p or failed:
                    return
                numbers = {k: v for k, v in p.items() if isinstance(v, float) and k not in ("t", "eta_s")}
                if _is_no(progress(SpatialProgress(p["stage"], p["iter"], p["total"], p["eta_s"], p.get("what", ""),
                                                   numbers))):
                    failed.append(None)
            except BaseException as e:
                failed.append(e)

        def say(_user, line):
            line = _text(line)
            log.append(line)
            if line.startswith(("note", "removed", "rebuilding")):  # "note: ...", "notice: ..."
                notices.append(line)
        call = _SpatialCall(_path(config), None, None if device in (None, "auto") else _encoded(str(device), "USAGE"),
                            _bytes(memory), 0, _int(threads, "threads", 32, 0), _TEXT_FN(tell),
                            _STOP_FN(lambda _user: bool(failed) or _signals.interrupted), _TEXT_FN(say),
                            _TEXT_FN(lambda _user, line: mistakes.append(_text(line))))
        for stage in stages:
            call.stage, err = stage.encode(), Err()
            with _signals:
                status = self._call("fth_spatial_stage")(C.byref(call), C.byref(err))
            while notices:
                warnings.warn(notices.pop(0), stacklevel=3)
            if failed and failed[0] is not None:
                raise failed[0]
            if status != 0 and mistakes:
                _refuse(_text(err.text) + "".join(f"\n  {m}" for m in mistakes), "CONFIG")
            _check(status, err)

    def fit(self, adata: Any, model: str = "svgp", n_components: int = 10, *, spatial_key: str = "spatial",
            layer: Optional[str] = None, groups: Optional[str] = None, section: Optional[str] = None, seed: int = 0,
            memory: Size = None, device: str = "auto", threads: int = 0,
            progress: Optional[Callable[[SpatialProgress], Any]] = None,
            key_added: str = "fathom", **keys: Any) -> SpatialFit:
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
        config = self._base(model, n_components, seed)
        if config.get("model.groups") and groups is None:
            _refuse(f"{model} needs groups", "USAGE", "name the column of obs that has the cell types with groups=")
        config.update(self._settings(keys))
        name, backed = config.get("model.model_name_override", model), bool(getattr(adata, "isbacked", False))
        folder, temporary = config.get("output_dir"), False
        if folder is None:
            folder, temporary = tempfile.mkdtemp(prefix="fathom-"), True
        folder, log, done = os.path.abspath(folder), [], False
        config["output_dir"] = folder
        path = os.path.join(folder, name + ".yaml")
        try:
            os.makedirs(folder, exist_ok=True)
            if backed:
                self._name_file(config, adata, spatial_key, layer, groups, section)
            else:
                self._write_source(config, adata, os.path.join(folder, "source"), spatial_key, layer, groups, section, log)
            self._write_config(path, config)
            for stage in ("preprocess", "train", "analyze"):
                self._stages(path, [stage], memory, device, threads, progress, log)
                if stage == "preprocess" and backed:
                    self._check_file(config, adata, spatial_key, groups)
            result = SpatialFit(self, os.path.join(folder, name), log)
            self._put(adata, result, key_added)
            done = True
        except BaseException as e:
            stopped = not isinstance(e, Exception) or getattr(e, "status", "") == "CANCELLED"
            if stopped and os.path.exists(os.path.join(folder, "preprocessed")):
                warnings.warn(f"stopped; the same call with output_dir={folder!r} resumes", stacklevel=2)
                temporary = False
            raise
        finally:
            if temporary and not done:
                shutil.rmtree(folder, True)
        if temporary:
            shutil.rmtree(os.path.join(folder, "source"), True)
            weakref.finalize(result, shutil.rmtree, folder, True)
        return result

    @staticmethod
    def _put(adata, r, key):
        n = int(adata.shape[0])
        kept = np.zeros(n, bool)
        kept[r.rows] = True

        def of_all(values, fill):
            if len(values) == n and (r.rows == np.arange(n)).all():
                return values
            out = np.full((n, *values.shape[1:]), fill, values.dtype)
            out[r.rows] = values
            return out
        adata.obsm[f"{key}_factors"] = of_all(r.factors, np.nan)
        if r.scales is not None:
            adata.obsm[f"{key}_scales"] = of_all(r.scales, np.nan)

        def of_genes(values):
            if len(values) == int(adata.shape[1]):
                return values
            place = {g: i for i, g in enumerate(_unique_names(adata.var_names))}  # some were dropped
            out = np.full((int(adata.shape[1]), *values.shape[1:]), np.nan, values.dtype)
            out[[place[g] for g in r.gene_names]] = values
            return out
        adata.varm[f"{key}_loadings"] = of_genes(r.loadings)
        if r.dispersions is not None:
            adata.var[f"{key}_dispersion"] = of_genes(r.dispersions)
        if r.size_factors is not None:
            adata.obs[f"{key}_size_factor"] = of_all(r.size_factors, np.nan)
        adata.obs[f"{key}_kept"] = kept
        if r.held_out is not None:
            adata.obs[f"{key}_held_out"] = of_all(r.held_out, False)
        adata.uns[key] = {"model": r.name, "settings": dict(r.settings), "elbo": r.elbo, "moran": r.moran,
                          "metrics": _h5ad_value(r.metrics), "version": version()}

    def read(self, path: Path) -> SpatialFit:
        """The results in the output directory of a fit, of `fathom run` or of SpatialFit.save, or in the folder of
        one model in it."""
        path = os.path.abspath(path)
        if not os.path.exists(os.path.join(path, "model.safetensors")):
            found = sorted(d for d in (os.listdir(path) if os.path.isdir(path) else [])
                           if os.path.exists(os.path.join(path, d, "model.safetensors")))
            if len(found) != 1:
                _refuse(f"{path}: expected the results of one model, found "
                        + (", ".join(found) or "no model.safetensors"), "FILE_OPEN",
                        "name the folder of the model" if found else None)
            path = os.path.join(path, found[0])
        return SpatialFit(self, path)


spatial = _Spatial()


# ---- what is public, and what docstrings say about dtypes and gradients --------------------------

# ---- made by tools/gen_python (make docs) from docs/operations.md and this file: change that
_FACTS = {
    "fma": "dtypes: integers reals complex; gradient: yes",
    "minimum": "dtypes: integers reals; gradient: yes",
    "maximum": "dtypes: integers reals; gradient: yes",
    "atan2": "dtypes: reals; gradient: yes",
    "where": "dtypes: all; gradient: yes",
    "complex_of": "dtypes: f32 f64; gradient: yes",
    "cast": "dtypes: bool integers reals; gradient: yes",
    "clip": "dtypes: integers reals; gradient: yes",
    "split": "dtypes: all; gradient: yes",
    "Value.sum": "dtypes: all; gradient: yes",
    "Value.prod": "dtypes: all; gradient: yes",
    "Value.min": "dtypes: integers reals; gradient: yes",
    "Value.max": "dtypes: integers reals; gradient: yes",
    "Value.any": "dtypes: bool; gradient: yes",
    "Value.all": "dtypes: bool; gradient: yes",
    "logsumexp": "dtypes: reals; gradient: yes",
    "argmax": "dtypes: bool integers reals; gradient: no",
    "argmin": "dtypes: bool integers reals; gradient: no",
    "cumsum": "dtypes: all; gradient: yes",
    "scan": "dtypes: all; gradient: yes",
    "scatter": "dtypes: all; gradient: yes",
    "collect_max": "dtypes: bool integers reals; gradient: yes",
    "collect_min": "dtypes: bool integers reals; gradient: yes",
    "concat": "dtypes: all; gradient: yes",
    "stack": "dtypes: all; gradient: yes",
    "slice_axis": "dtypes: all; gradient: yes",
    "pad": "dtypes: all; gradient: yes",
    "sort": "dtypes: bool integers reals; gradient: yes",
    "topk": "dtypes: bool integers reals; gradient: yes",
    "median": "dtypes: integers reals; gradient: yes",
    "pool_mean": "dtypes: reals complex; gradient: yes",
    "pool_sum": "dtypes: reals complex; gradient: yes",
    "pool_max": "dtypes: integers reals; gradient: yes",
    "solve": "dtypes: f32 f64 complex; gradient: yes",
    "solve_t": "dtypes: f32 f64 complex; gradient: yes",
    "eigh": "dtypes: f32 f64 complex; gradient: yes",
    "inverse": "dtypes: f32 f64 complex; gradient: yes",
    "fft": "dtypes: complex; gradient: yes",
    "ifft": "dtypes: complex; gradient: yes",
    "irfft": "dtypes: complex; gradient: yes",
    "rfft": "dtypes: f32 f64; gradient: yes",
    "conv2d": "dtypes: f32 f64; gradient: yes",
    "poisson": "dtypes: f32 f64; gradient: yes",
}
__all__ = ["Batches", "Context", "DTYPES", "Error", "Focused", "Frame", "Graph", "Input", "Op",
           "Param", "Place", "Plan", "Progress", "PtychoModel", "Reconstruction", "Scalar",
           "Source", "SpatialFit", "SpatialProgress", "SplatModel", "Tensor", "Trace", "Value",
           "abs", "abs2", "adam", "arg", "argmax", "argmin", "assign", "atan2", "axis_id", "bragg",
           "cast", "ceil", "cholesky", "clip", "collect", "collect_max", "collect_min", "column",
           "compact", "complex_of", "concat", "conj", "conv2d", "correlate", "cos", "count",
           "cumsum", "custom", "digamma", "dot", "dot_triangle", "eigh", "erf", "exp", "expand",
           "expm1", "fft", "flip", "floor", "fma", "focus", "free_memory", "gather", "grad",
           "histogram", "ifft", "imag", "inverse", "irfft", "isfinite", "isnan", "layout", "lgamma",
           "log", "log1p", "logical_not", "logsumexp", "mark", "maximum", "mean", "median", "merge",
           "minimum", "neg", "op_check", "optimizer", "pad", "poisson", "pool_max", "pool_mean",
           "pool_sum", "ptycho", "quantile", "real", "recip", "relu", "rename", "rfft", "roll",
           "round", "rsqrt", "scan", "scatter", "scatter_add", "schedule", "searchsorted",
           "sigmoid", "sign", "sin", "slice_axis", "slice_step", "softplus", "solve", "solve_t",
           "sort", "spatial", "splat", "split", "spread", "sqr", "sqrt", "stack", "stop_gradient",
           "tanh", "topk", "trigamma", "upsample", "variance", "version", "where", "window"]
# ---- end of what is made


def _add_facts():
    for name, fact in _FACTS.items():
        owner, _, last = name.rpartition(".")
        function = getattr(globals()[owner] if owner else sys.modules[__name__], last)
        if function.__doc__:  # python -OO has none
            function.__doc__ += "\n\n" + " " * (8 if owner else 4) + fact


_add_facts()


def __dir__():
    return __all__
