/* zarr_meta_write.c - the description of an array that is to be written, as its metadata file. */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/zarr.h"

#include <inttypes.h>
#include <string.h>

enum { ZSTD_LEVEL = 3, GZIP_LEVEL = 6, BLOSC_LEVEL = 5 }; /* the defaults of these libraries */

/* ---- the description ---- */

static fth_status take_shape(fth__zarr_meta *m, const fth_zarr_array *array, fth_err *err)
{
    for (int a = 0; a < m->n_axes; a++) {
        const int64_t size = m->size[a], chunk = array->chunk[a], per = array->per_shard[a];
        if (chunk < 0 || per < 0)
            return FTH_FAIL(err, FTH_E_USAGE, "axis %d has a negative chunk or shard", a);
        m->chunk[a] = fth__max_i64(1, chunk == 0 ? size : fth__min_i64(chunk, size));
        const int64_t chunks = fth__max_i64(1, fth__ceil_div_i64(size, m->chunk[a]));
        m->file[a] = m->chunk[a] * fth__max_i64(1, fth__min_i64(per, chunks));
        FTH_ASSERT(m->chunk[a] > 0 && m->file[a] >= m->chunk[a] && m->file[a] % m->chunk[a] == 0);
        m->sharded = m->sharded || per > 1;
        m->order[a] = a;
        if (array->axis[a]) fth__str_copy(m->axis[a], sizeof m->axis[a], array->axis[a]);
    }
    if (m->sharded && m->format == 2)
        return FTH_FAIL(err, FTH_E_USAGE, "Zarr version 2 has no shards; write version 3");
    m->index_sum = m->sharded;
    return FTH_OK;
}

fth_status fth__zarr_meta_make(fth__zarr_meta *m, const fth_zarr_array *array, fth_err *err)
{
    static const fth__codec codecs[] = {
        [FTH_ZARR_ZSTD] = {.kind = FTH__CODEC_ZSTD, .level = ZSTD_LEVEL},
        [FTH_ZARR_GZIP] = {.kind = FTH__CODEC_GZIP, .level = GZIP_LEVEL},
        [FTH_ZARR_BLOSC] = {
            .kind = FTH__CODEC_BLOSC, .level = BLOSC_LEVEL, .shuffle = 1, .name = "lz4"}};
    *m = (fth__zarr_meta){.format = array->format ? array->format : 3,
                          .dtype = array->dtype,
                          .n_axes = array->n_axes,
                          .separator = '/'};
    m->prefix = m->format == 3;
    if (m->format != 2 && m->format != 3)
        return FTH_FAIL(err, FTH_E_USAGE, "Zarr version %d; 2 and 3 are written", m->format);
    FTH_TRY(fth__shape_check(m->dtype, m->n_axes, array->size, NULL, NULL, err));
    if (!fth__zarr_dtype_name(m->dtype, m->format)[0])
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "Zarr version %d has no name for %s", m->format,
                        fth_dtype_name(m->dtype));
    memcpy(m->size, array->size, sizeof m->size);
    FTH_TRY(take_shape(m, array, err));
    if (array->packing == FTH_ZARR_PLAIN) return FTH_OK;
    if ((unsigned)array->packing > FTH_ZARR_PLAIN)
        return FTH_FAIL(err, FTH_E_USAGE, "packing %d does not exist", (int)array->packing);
    m->codecs = (fth__codecs){.n = 1, .codec = {codecs[array->packing]}};
    m->codecs.codec[0].item = (int)fth_dtype_size(m->dtype);
    if (fth__codecs_most(&m->codecs, fth__zarr_chunk_bytes(m)) < UINT64_MAX) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE,
                    "chunks of %" PRIu64 " bytes are too large to be packed by %s",
                    fth__zarr_chunk_bytes(m), fth__codec_get(m->codecs.codec[0].kind)->name);
}

/* ---- the file ---- */

static void put_sizes(fth_json_writer *w, const char *key, int n, const int64_t *size)
{
    fth_json_open_row(w, key, '[');
    for (int a = 0; a < n; a++) fth_json_int(w, NULL, size[a]);
    fth_json_close(w);
}

static void put_fill(fth_json_writer *w, const fth__zarr_meta *m)
{
    if (fth_dtype_is_complex(m->dtype)) {
        fth_json_open_row(w, "fill_value", '[');
        fth_json_real(w, NULL, 0);
        fth_json_real(w, NULL, 0);
        fth_json_close(w);
    } else if (m->dtype == FTH_BOOL) {
        fth_json_bool(w, "fill_value", false);
    } else {
        fth_json_int(w, "fill_value", 0);
    }
}

static void open_codec(fth_json_writer *w, const char *name)
{
    fth_json_open_row(w, NULL, '{');
    fth_json_text(w, "name", name);
    fth_json_open(w, "configuration", '{');
}

static void close_codec(fth_json_writer *w)
{
    fth_json_close(w);
    fth_json_close(w);
}

static void put_settings(fth_json_writer *w, const fth__codec *c, bool v3)
{
    if (c->kind != FTH__CODEC_BLOSC) {
        fth_json_int(w, "level", c->level);
        if (c->kind == FTH__CODEC_ZSTD && v3) fth_json_bool(w, "checksum", c->checksum);
        return;
    }
    fth_json_text(w, "cname", c->name);
    fth_json_int(w, "clevel", c->level);
    if (v3) {
        fth_json_text(w, "shuffle", c->shuffle ? "shuffle" : "noshuffle");
        fth_json_int(w, "typesize", c->item);
    } else {
        fth_json_int(w, "shuffle", c->shuffle);
    }
    fth_json_int(w, "blocksize", 0);
}

static void put_bytes(fth_json_writer *w)
{
    open_codec(w, "bytes");
    fth_json_text(w, "endian", "little");
    close_codec(w);
}

static void put_codecs(fth_json_writer *w, const fth__zarr_meta *m)
{
    fth_json_open(w, "codecs", '[');
    put_bytes(w);
    for (int i = 0; i < m->codecs.n; i++) {
        open_codec(w, fth__codec_get(m->codecs.codec[i].kind)->name);
        put_settings(w, &m->codecs.codec[i], true);
        close_codec(w);
    }
    fth_json_close(w);
}

static void put_shards(fth_json_writer *w, const fth__zarr_meta *m)
{
    fth_json_open(w, "codecs", '[');
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "name", "sharding_indexed");
    fth_json_open(w, "configuration", '{');
    put_sizes(w, "chunk_shape", m->n_axes, m->chunk);
    put_codecs(w, m);
    fth_json_open(w, "index_codecs", '[');
    put_bytes(w);
    fth_json_open_row(w, NULL, '{');
    fth_json_text(w, "name", "crc32c");
    fth_json_close(w);
    fth_json_close(w);
    fth_json_text(w, "index_location", "end");
    close_codec(w);
    fth_json_close(w);
}

static void put_v3(fth_json_writer *w, const fth__zarr_meta *m)
{
    fth_json_int(w, "zarr_format", 3);
    fth_json_text(w, "node_type", "array");
    put_sizes(w, "shape", m->n_axes, m->size);
    fth_json_text(w, "data_type", fth__zarr_dtype_name(m->dtype, 3));
    fth_json_open(w, "chunk_grid", '{');
    fth_json_text(w, "name", "regular");
    fth_json_open(w, "configuration", '{');
    put_sizes(w, "chunk_shape", m->n_axes, m->file);
    close_codec(w);
    fth_json_open(w, "chunk_key_encoding", '{');
    fth_json_text(w, "name", "default");
    fth_json_open(w, "configuration", '{');
    fth_json_text(w, "separator", "/");
    close_codec(w);
    put_fill(w, m);
    if (m->sharded)
        put_shards(w, m);
    else
        put_codecs(w, m);
    if (m->n_axes > 0 && m->axis[0][0]) {
        fth_json_open_row(w, "dimension_names", '[');
        for (int a = 0; a < m->n_axes; a++) fth_json_text(w, NULL, m->axis[a]);
        fth_json_close(w);
    }
    fth_json_open_row(w, "attributes", '{');
    fth_json_close(w);
}

static void put_v2(fth_json_writer *w, const fth__zarr_meta *m)
{
    char dtype[16];
    snprintf(dtype, sizeof dtype, "%c%s", fth_dtype_size(m->dtype) > 1 ? '<' : '|',
             fth__zarr_dtype_name(m->dtype, 2));
    fth_json_int(w, "zarr_format", 2);
    put_sizes(w, "shape", m->n_axes, m->size);
    put_sizes(w, "chunks", m->n_axes, m->chunk);
    fth_json_text(w, "dtype", dtype);
    if (fth_dtype_is_complex(m->dtype))
        fth_json_null(w, "fill_value");
    else
        put_fill(w, m);
    fth_json_text(w, "order", "C");
    fth_json_null(w, "filters");
    fth_json_text(w, "dimension_separator", "/");
    if (m->codecs.n == 0) {
        fth_json_null(w, "compressor");
        return;
    }
    fth_json_open_row(w, "compressor", '{');
    fth_json_text(w, "id", fth__codec_get(m->codecs.codec[0].kind)->name);
    put_settings(w, &m->codecs.codec[0], false);
    fth_json_close(w);
}

fth_status fth__zarr_meta_save(const fth__zarr_meta *m, fth_mem *mem, const char *folder,
                               fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    fth_json_open(&w, NULL, '{');
    if (m->format == 3)
        put_v3(&w, m);
    else
        put_v2(&w, m);
    fth_json_close(&w);
    return fth__zarr_put_json(&w, folder, m->format == 3 ? "zarr.json" : ".zarray", err);
}
