/* room.c - see room.h. */
#include "room.h"

#include <string.h>

enum { BLOCK = 4096 }; /* the last block of a file is partly empty */

/* ---- amounts ---- */

/* Bytes of a pixel of a JPEG: 0.35 at 75, and as a textured scene and a smooth one grew from there
 * (0.60 and 0.39 at 90, 0.78 at 95, 1.18 and 0.88 at 100). */
static double jpeg_bytes(int quality)
{
    return quality <= 75 ? 0.35 : quality <= 90 ? 0.6 : quality <= 95 ? 0.8 : 1.2;
}

fo_amount fo_amount_of_picture(const char *format, int quality, fth_dtype dtype, int64_t pixels)
{
    const double raw = (double)(pixels * fth_dtype_size(dtype));
    double likely = raw, most = raw; /* TIFF and .npy are not packed */
    if (strcmp(format, "jpg") == 0) {
        likely = jpeg_bytes(quality) * (double)pixels;
        most = 2.0 * (double)pixels; /* what its library allows for grey */
    } else if (strncmp(format, "png", 3) == 0) {
        likely = 0.8 * raw; /* scenes with the noise of a camera */
        most = 1.01 * raw;
    }
    return (fo_amount){(uint64_t)likely + BLOCK, (uint64_t)most + BLOCK};
}

fo_amount fo_amount_times(fo_amount each, int64_t n)
{
    return (fo_amount){each.likely * (uint64_t)n, each.most * (uint64_t)n};
}

/* ---- disks ---- */

/* The disk of a folder; files come folder by folder, so it is looked for once. */
static fth_status find_disk(fo_room *r, const char *path, fo_room_disk **out, fth_err *err)
{
    enum { MOST = sizeof r->disk / sizeof r->disk[0] };
    char folder[FTH_PATH];
    fth_path_disk_info info;
    FTH_TRY(fth_path_parent(folder, path, err));
    if (r->n == 0 || strcmp(folder, r->folder) != 0) {
        if (fth_path_disk(folder, &info, NULL) != FTH_OK) /* unknown: the write reports it */
            info = (fth_path_disk_info){.free_bytes = UINT64_MAX};
        memcpy(r->folder, folder, sizeof folder);
        r->last = 0;
        while (r->last < r->n && r->disk[r->last].id != info.id) r->last++;
        if (r->last == MOST) r->last--; /* more disks than folders that we write to */
        if (r->last == r->n) {
            fo_room_disk *disk = &r->disk[r->n++];
            *disk = (fo_room_disk){.id = info.id, .free_bytes = info.free_bytes};
            snprintf(disk->path, sizeof disk->path, "%s", folder);
        }
    }
    *out = &r->disk[r->last];
    return FTH_OK;
}

fth_status fo_room_add(fo_room *r, const char *path, fo_amount amount, fth_err *err)
{
    fo_room_disk *disk = NULL;
    fth_path_info old;
    FTH_TRY(find_disk(r, path, &disk, err));
    if (fth_path_stat(path, &old, NULL) != FTH_OK || old.kind != FTH_PATH_FILE) old.bytes = 0;
    disk->likely += (int64_t)amount.likely - (int64_t)old.bytes;
    disk->most += (int64_t)amount.most - (int64_t)old.bytes;
    return FTH_OK;
}

/* ---- checks ---- */

static bool is_above(int64_t bytes, uint64_t room)
{
    return bytes > 0 && (uint64_t)bytes > room;
}

static fth_status add_note(const fo_room_disk *d, fth_texts *notes, fth_err *err)
{
    char need[24], most[24], have[24], line[FTH_PATH + 200];
    if (!notes) return FTH_OK;
    const int n =
        snprintf(line, sizeof line, "%s: about %s will be written, at most %s, and %s are free",
                 d->path, fth_mem_format_size((uint64_t)(d->likely > 0 ? d->likely : 0), need, 24),
                 fth_mem_format_size((uint64_t)d->most, most, 24),
                 fth_mem_format_size(d->free_bytes, have, 24));
    return fth_texts_add(notes, line, (size_t)n, err);
}

static fth_status check_disk(const fo_room_disk *d, bool anyway, fth_texts *notes, fth_err *err)
{
    char need[24], have[24];
    if (!is_above(d->most, d->free_bytes)) return FTH_OK;
    if (anyway || !is_above(d->likely, d->free_bytes)) return add_note(d, notes, err);
    FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s%s will be written, and %s are free", d->path,
             d->likely < d->most ? "about " : "",
             fth_mem_format_size((uint64_t)d->likely, need, sizeof need),
             fth_mem_format_size(d->free_bytes, have, sizeof have));
    fth_err_hint(err, "free some space, or choose fewer; --ignore-space tries anyway");
    return FTH_E_FILE_WRITE;
}

fth_status fo_room_check(const fo_room *r, bool anyway, fth_texts *notes, fth_err *err)
{
    for (int i = 0; i < r->n; i++) FTH_TRY(check_disk(&r->disk[i], anyway, notes, err));
    return FTH_OK;
}

void fo_room_format(const fo_room *r, char *text, size_t bytes)
{
    const fo_room_disk *d = &r->disk[0];
    char need[24], have[24];
    snprintf(text, bytes, "%s of %s free",
             fth_mem_format_size((uint64_t)(d->likely > 0 ? d->likely : 0), need, sizeof need),
             fth_mem_format_size(d->free_bytes, have, sizeof have));
}
