/* avi.c - see avi.h. The lengths in the head are written when the last frame is. */
#include "avi.h"

#include "../images/bytes8.h"

#include <fathom/pictures.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HEAD = 224,     /* up to the list of frames and its name */
    MOVI = 212,     /* of that list */
    ENTRY = 16,     /* of the index */
    HAS_INDEX = 16, /* flags */
    KEY_FRAME = 16,
    QUALITY = 95,
    MOST_SIDE = 65500
};

typedef struct place {
    uint32_t at, bytes; /* from the name of the list on */
} place;

struct gs_avi {
    fth_mem *mem;
    fth_file_stream *stream;
    const char *path;
    int64_t width, height, per_second;
    uint8_t *picture;
    place *place;
    int64_t n, room;
    uint64_t at; /* end of the frames */
    uint32_t largest;
};

static uint8_t *put32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (8 * i));
    return to + 4;
}

static uint8_t *put_name(uint8_t *to, const char *name)
{
    memcpy(to, name, 4);
    return to + 4;
}

static uint8_t *put_chunk(uint8_t *to, const char *name, uint32_t bytes)
{
    return put32(put_name(to, name), bytes);
}

static uint8_t *put_list(uint8_t *to, const char *kind, uint32_t bytes, const char *name)
{
    return put_name(put_chunk(to, kind, bytes), name);
}

static void make_head(const gs_avi *v, uint8_t head[HEAD])
{
    const uint32_t width = (uint32_t)v->width, height = (uint32_t)v->height, n = (uint32_t)v->n,
                   rate = (uint32_t)v->per_second;
    const uint32_t all = (uint32_t)(v->at - 8 + (v->n > 0 ? 8 + ENTRY * (uint64_t)n : 8));
    uint8_t *p = head;
    memset(head, 0, HEAD);
    p = put_list(p, "RIFF", all, "AVI ");
    p = put_list(p, "LIST", 192, "hdrl");
    p = put_chunk(p, "avih", 56);
    put32(p, 1000000 / rate);
    put32(p + 12, HAS_INDEX);
    put32(p + 16, n);
    put32(p + 24, 1); /* streams */
    put32(p + 28, v->largest);
    put32(p + 32, width);
    put32(p + 36, height);
    p = put_list(p + 56, "LIST", 116, "strl");
    p = put_chunk(p, "strh", 56);
    put_name(p, "vids");
    put_name(p + 4, "MJPG");
    put32(p + 20, 1);
    put32(p + 24, rate);
    put32(p + 32, n);
    put32(p + 36, v->largest);
    put32(p + 40, UINT32_MAX); /* quality: not said */
    put32(p + 52, width | height << 16);
    p = put_chunk(p + 56, "strf", 40);
    put32(p, 40);
    put32(p + 4, width);
    put32(p + 8, height);
    put32(p + 12, 1 | 24 << 16); /* planes, bits */
    put_name(p + 16, "MJPG");
    put32(p + 20, 3 * width * height);
    p = put_list(p + 40, "LIST", (uint32_t)(v->at - MOVI - 8), "movi");
}

static fth_status write_bytes(gs_avi *v, const void *data, size_t bytes, fth_err *err)
{
    if (fwrite(data, 1, bytes, fth_file_stream_file(v->stream)) == bytes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: writing %zu bytes failed", v->path, bytes);
}

void gs_avi_abandon(gs_avi *v)
{
    if (!v) return;
    fth_file_stream_abandon(v->stream);
    if (v->picture) (void)fth_mem_release(v->mem, v->picture, NULL);
    if (v->place) (void)fth_mem_release(v->mem, v->place, NULL);
    (void)fth_mem_release(v->mem, v, NULL);
}

fth_status gs_avi_create(gs_avi **out, fth_mem *mem, const char *path, int64_t width,
                         int64_t height, int64_t per_second, fth_err *err)
{
    uint8_t head[HEAD];
    void *block = NULL, *picture = NULL;
    *out = NULL;
    if (width > MOST_SIDE || height > MOST_SIDE)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: expected at most %d px on a side of a video, found %" PRId64
                        " x %" PRId64,
                        path, MOST_SIDE, width, height);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof(gs_avi), "a video", &block, err));
    gs_avi *v = block;
    *v = (gs_avi){.mem = mem,
                  .path = path,
                  .width = width,
                  .height = height,
                  .per_second = per_second,
                  .at = HEAD};
    fth_status s =
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(3 * width * height), "a picture", &picture, err);
    v->picture = picture;
    if (s == FTH_OK) s = fth_file_stream_create(&v->stream, mem, path, err);
    make_head(v, head);
    if (s == FTH_OK) s = write_bytes(v, head, HEAD, err);
    if (s == FTH_OK)
        *out = v;
    else
        gs_avi_abandon(v);
    return s;
}

static fth_status note_place(gs_avi *v, uint32_t bytes, fth_err *err)
{
    if (v->n == v->room) {
        void *block = NULL;
        const int64_t room = v->room ? 2 * v->room : 256;
        FTH_TRY(fth_mem_take(v->mem, FTH_MEM_ANY, (uint64_t)room * sizeof(place), "frames", &block,
                             err));
        if (v->n > 0) memcpy(block, v->place, (size_t)v->n * sizeof(place));
        if (v->place) (void)fth_mem_release(v->mem, v->place, NULL);
        v->place = block;
        v->room = room;
    }
    v->place[v->n++] = (place){(uint32_t)(v->at - MOVI - 8), bytes};
    return FTH_OK;
}

/* A chunk of an even length. */
static fth_status add_jpeg(gs_avi *v, const void *data, uint64_t bytes, fth_err *err)
{
    uint8_t head[8];
    const uint64_t even = bytes + bytes % 2;
    if (v->at + even + ENTRY * ((uint64_t)v->n + 2) > INT32_MAX) {
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: expected a video below 2^31 bytes, found %" PRId64 " frames that fill it",
                 v->path, v->n);
        fth_err_hint(err, "render fewer frames, or smaller ones");
        return FTH_E_FILE_FEATURE;
    }
    FTH_TRY(note_place(v, (uint32_t)bytes, err));
    (void)put_chunk(head, "00dc", (uint32_t)bytes);
    FTH_TRY(write_bytes(v, head, sizeof head, err));
    FTH_TRY(write_bytes(v, data, bytes, err));
    if (even > bytes) FTH_TRY(write_bytes(v, "", 1, err));
    v->at += 8 + even;
    if (bytes > v->largest) v->largest = (uint32_t)bytes;
    return FTH_OK;
}

fth_status gs_avi_add(gs_avi *v, const float *rgb, fth_err *err)
{
    const fth_picture p = {.dtype = FTH_U8,
                           .height = v->height,
                           .width = v->width,
                           .channels = 3,
                           .pixels = v->picture};
    const fth_picture_format f = {.kind = FTH_PICTURE_JPG, .quality = QUALITY};
    void *data = NULL;
    uint64_t bytes = 0;
    gs_to_bytes(rgb, 3 * v->width * v->height, v->picture);
    FTH_TRY(fth_picture_encode(v->mem, &p, &f, &data, &bytes, err));
    const fth_status s = add_jpeg(v, data, bytes, err);
    (void)fth_mem_release(v->mem, data, NULL);
    return s;
}

static fth_status finish(gs_avi *v, fth_err *err)
{
    uint8_t head[HEAD], entry[ENTRY];
    (void)put_chunk(head, "idx1", (uint32_t)(ENTRY * v->n));
    FTH_TRY(write_bytes(v, head, 8, err));
    for (int64_t i = 0; i < v->n; i++) {
        uint8_t *p = put32(put_name(entry, "00dc"), KEY_FRAME);
        (void)put32(put32(p, v->place[i].at), v->place[i].bytes);
        FTH_TRY(write_bytes(v, entry, ENTRY, err));
    }
    make_head(v, head);
    if (fseek(fth_file_stream_file(v->stream), 0, SEEK_SET) != 0)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: cannot seek to its header", v->path);
    return write_bytes(v, head, HEAD, err);
}

fth_status gs_avi_commit(gs_avi *v, fth_err *err)
{
    fth_status s = finish(v, err);
    if (s == FTH_OK) {
        s = fth_file_stream_commit(v->stream, err);
        v->stream = NULL;
    }
    gs_avi_abandon(v);
    return s;
}
