"""Make the arrays of this folder with zarr-python 3.1 and numcodecs, from nothing but their shapes.

    python3 make.py [FOLDER]

Element i of an array, counted in row-major order, is (7919 i + 13) mod 65521, cut to the dtype; f32 and
complex ones are that number / 8. Chunk (0, ..., 0) of the arrays named *_holes is missing.
"""
import os
import pathlib
import sys

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

HERE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
HERE = HERE if HERE.is_dir() else HERE.parent
SHAPE, CHUNKS = (5, 7, 9), (2, 4, 5)


def data(shape, dtype):
    n = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64) * 7919 + 13
    v = (n % 65521).reshape(shape)
    return (v / 8).astype(dtype) if np.dtype(dtype).kind in "fc" else v.astype(dtype)


def v2(name, dtype="<u2", shape=SHAPE, chunks=CHUNKS, **options):
    a = zarr.create_array(str(HERE / name), shape=shape, chunks=chunks, dtype=dtype, zarr_format=2, overwrite=True, **options)
    a[...] = data(shape, dtype)


def v3(name, dtype="uint16", shape=SHAPE, chunks=CHUNKS, **options):
    a = zarr.create(store=str(HERE / name), shape=shape, chunks=chunks, dtype=dtype, zarr_format=3, overwrite=True, **options)
    a[...] = data(shape, dtype)


v2("v2_plain", compressors=None)
v2("v2_zlib", compressors=numcodecs.Zlib(level=5))
v2("v2_gzip_f", compressors=numcodecs.GZip(level=5), order="F", chunk_key_encoding={"name": "v2", "separator": "/"})
v2("v2_zstd_big", dtype=">u2", compressors=numcodecs.Zstd(level=3))
v2("v2_blosc_holes", compressors=numcodecs.Blosc(cname="lz4", clevel=5, shuffle=numcodecs.Blosc.SHUFFLE), fill_value=42)
os.remove(HERE / "v2_blosc_holes" / "0.0.0")
v2("v2_blosc_zstd_f32", dtype="<f4", compressors=numcodecs.Blosc(cname="zstd", clevel=5, shuffle=numcodecs.Blosc.BITSHUFFLE))
v3("v3_plain", codecs=[BytesCodec()])
v3("v3_zstd", codecs=[BytesCodec(), ZstdCodec(level=3, checksum=True)], dimension_names=["z", "y", "x"])
v3("v3_gzip_crc_t", codecs=[TransposeCodec(order=(2, 0, 1)), BytesCodec(endian="big"), GzipCodec(level=5), Crc32cCodec()])
v3("v3_blosc", dtype="uint8", codecs=[BytesCodec(), BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=1)])
v3("v3_shard_end", chunks=(4, 8, 10), codecs=[ShardingCodec(chunk_shape=CHUNKS, codecs=[BytesCodec(), ZstdCodec()])])
v3("v3_shard_start_c64", dtype="complex64", chunks=(4, 8, 10),
   codecs=[ShardingCodec(chunk_shape=CHUNKS, codecs=[BytesCodec(), BloscCodec(cname="lz4", typesize=8)], index_location="start")])
v3("v3_scalar", dtype="float32", shape=(), chunks=(), codecs=[BytesCodec(), ZstdCodec()])
