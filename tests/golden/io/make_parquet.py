"""Parquet files of programs that are not ours: pyarrow 26.0.1 and polars 2.1.0, in an environment of their own.

    python3 -m venv /tmp/parquet && /tmp/parquet/bin/pip install pyarrow==26.0.1 polars==2.1.0
    /tmp/parquet/bin/python tests/golden/io/make_parquet.py

Row i of every table is given by `row`; tests/unit/io/test_parquet.c computes it again."""
import decimal
import pathlib

import polars
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
N = 150
TYPES = {"flag": pa.bool_(), "small": pa.int32(), "large": pa.int64(), "single": pa.float32(), "double": pa.float64(),
         "text": pa.string()}


def row(i):
    return {"flag": i % 3 == 0, "small": i * 7 - 500, "large": i * 10**10 - 3, "single": i / 4 - 3, "double": i / 8 - 3,
            "text": f"spot-{i % 17}" + "\u00e4" * (i % 4)}


def table(n, nulls, required=False):
    columns, fields = [], []
    for name, kind in TYPES.items():
        values = [None if nulls and (i + len(name)) % 5 == 0 else row(i)[name] for i in range(n)]
        columns.append(pa.array(values, kind))
        fields.append(pa.field(name, kind, nullable=not required))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def write(name, t, **how):
    how = {"row_group_size": 70, "data_page_size": 200, "write_batch_size": 20, "write_statistics": False, **how}
    pq.write_table(t, HERE / f"{name}.parquet", **how)


def main():
    delta = {"small": "DELTA_BINARY_PACKED", "large": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY",
             "flag": "RLE"}
    split = {"single": "BYTE_STREAM_SPLIT", "double": "BYTE_STREAM_SPLIT", "small": "BYTE_STREAM_SPLIT"}
    write("parquet_snappy", table(N, True), compression="snappy")
    write("parquet_required", table(N, False, True), compression="snappy", data_page_version="2.0")
    write("parquet_gzip", table(N, True), compression="gzip", data_page_version="2.0")
    write("parquet_delta", table(N, True), compression="zstd", use_dictionary=False, column_encoding=delta,
          data_page_version="2.0")
    write("parquet_split", table(N, True), compression="none", use_dictionary=False, column_encoding=split,
          write_page_checksum=True)
    write("parquet_lz4", table(N, False), compression="lz4", use_dictionary=False)
    write("parquet_empty", table(0, False))
    write("parquet_nulls", pa.table({k: pa.nulls(9, t) for k, t in TYPES.items()}), compression="snappy")
    write("parquet_brotli", table(5, False), compression="brotli")
    polars.DataFrame({k: polars.from_arrow(table(N, True)[k]) for k in TYPES}).write_parquet(
        HERE / "parquet_polars.parquet", compression="zstd", row_group_size=70, statistics=False)
    others = pa.table({
        "u32": pa.array([0, 2**32 - 1, None], pa.uint32()),
        "u64": pa.array([0, 2**63 - 1, None], pa.uint64()),
        "over": pa.array([0, 2**63, None], pa.uint64()),
        "price": pa.array([decimal.Decimal("1.25"), None, None], pa.decimal128(9, 2)),
        "fixed": pa.array([b"abcd", None, None], pa.binary(4)),
        "half": pa.array([1.5, None, None], pa.float16()),
        "list": pa.array([[1, 2], [], None], pa.list_(pa.int32())),
        "pair": pa.array([{"a": 1, "b": "x"}] * 3, pa.struct([("a", pa.int32()), ("b", pa.string())])),
        "day": pa.array([1, 2, None], pa.date32()),
        "last": pa.array(["a", "", "c"], pa.string())})
    write("parquet_types", others, compression="snappy")
    day = pa.table({"when": pa.array([0, 1, None], pa.timestamp("ns"))})
    write("parquet_int96", day, use_deprecated_int96_timestamps=True)


if __name__ == "__main__":
    main()
