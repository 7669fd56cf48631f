/* keyence.c - the made-up plate as a Keyence writes it: a folder for each well and time, a TIFF
 * file for each plane of each tile, with the text of the microscope behind its pixels. */
#include "toy.h"

#include "../experiment/experiment.h"
#include "scene.h"

#include <fathom/pictures.h>

#include <inttypes.h>
#include <string.h>

enum {
    NM_PER_PX = 3770,
    PERIOD_S = 1900,
    BETWEEN_WELLS_S = 7,
    MOST_JITTER = 2, /* of the steps between tiles, in pixels */
    ACROSS = 1,      /* tiles lie in a line, to a pixel */
    TEXT = 1200
};
static const int64_t first_s = 63871286400; /* 2025-01-01, counted from the year 1 */

static int tiles_of(const fo_toy *toy)
{
    return toy->tiles > 0 ? toy->tiles : 3;
}

static bool is_vertical(const fo_toy *toy)
{
    const int year = fo_experiment_year(toy->exp);
    return year > 0 && year < 2024;
}

/* A number at random of (seed, well, tile), from 0. */
static int64_t pick(const fo_toy *toy, int64_t well, int tile, int what, int64_t n)
{
    const int64_t key[4] = {toy->seed, well, tile, what};
    return (int64_t)(fth_hash_bytes(key, sizeof key, 17) % (uint64_t)n);
}

/* Step by step from the upper left, each a little off. */
static void grid_offset(const fo_toy *toy, int64_t well, int tile, int64_t *y, int64_t *x)
{
    const int64_t r = tile / toy->grid_columns, c = tile % toy->grid_columns;
    *y = r * (toy->rows - toy->rows / 4) + pick(toy, well, tile, 0, 2 * MOST_JITTER + 1);
    *x = c * (toy->columns - toy->columns / 4) + pick(toy, well, tile, 1, 2 * MOST_JITTER + 1);
}

void fo_toy_offset(const fo_toy *toy, int64_t well, int tile, int64_t *y, int64_t *x)
{
    if (toy->grid_columns > 0) {
        grid_offset(toy, well, tile, y, x);
        return;
    }
    const bool vertical = is_vertical(toy);
    const int64_t side = vertical ? toy->rows : toy->columns;
    int64_t along = 0;
    for (int k = 1; k <= tile; k++)
        along += side - side / 4 + pick(toy, well, k, 0, 2 * MOST_JITTER + 1) - MOST_JITTER;
    const int64_t across = pick(toy, well, tile, 1, ACROSS + 1);
    *y = vertical ? along : across;
    *x = vertical ? across : along;
}

/* The scene has room for all tiles, wherever jitter puts them. */
void fo_toy_scene_size(const fo_toy *toy, int64_t *rows, int64_t *columns)
{
    const int n = tiles_of(toy), c = toy->grid_columns;
    if (c > 0) {
        *rows = toy->rows + ((n + c - 1) / c - 1) * (toy->rows - toy->rows / 4) + 2 * MOST_JITTER;
        *columns = toy->columns + (c - 1) * (toy->columns - toy->columns / 4) + 2 * MOST_JITTER;
        return;
    }
    const bool vertical = is_vertical(toy);
    const int64_t side = vertical ? toy->rows : toy->columns,
                  span = side + (n - 1) * (side - side / 4 + MOST_JITTER);
    *rows = vertical ? span : toy->rows + ACROSS;
    *columns = vertical ? toy->columns + ACROSS : span;
}

/* Everything while one specimen is written. */
typedef struct artist {
    const fo_toy *toy;
    fth_mem *mem;
    fo_scene scene;
    uint16_t *plane; /* of the whole scene */
    uint8_t *tile;
    int64_t well, t;
} artist;

uint8_t fo_toy_level(uint16_t v)
{
    const int level = v * 5 / 32;
    return (uint8_t)(level > 255 ? 255 : level);
}

static void cut(const artist *a, int tile)
{
    int64_t y, x;
    fo_toy_offset(a->toy, a->well, tile, &y, &x);
    for (int64_t i = 0; i < a->toy->rows; i++)
        for (int64_t j = 0; j < a->toy->columns; j++) {
            a->tile[i * a->toy->columns + j] =
                fo_toy_level(a->plane[(y + i) * a->scene.columns + x + j]);
        }
}

/* Sizes stand there three times: of the settings, in pixels, in nm. */
static int write_text(const artist *a, char text[TEXT])
{
    const fo_toy *toy = a->toy;
    const int64_t ticks =
        (first_s + a->t * PERIOD_S + a->well * BETWEEN_WELLS_S) * 10000000; /* of 100 ns */
    return snprintf(
        text, TEXT,
        "<Data><Root><A><Width Type=\"System.Int32\">1</Width><Height "
        "Type=\"System.Int32\">1</Height></A><S><Width Type=\"System.Int32\">%" PRId64
        "</Width><Height Type=\"System.Int32\">%" PRId64
        "</Height></S><C><Width Type=\"System.Int32\">%" PRId64
        "</Width><Height Type=\"System.Int32\">%" PRId64
        "</Height></C><ShootingDateTime Type=\"System.Int64\">%" PRId64
        "</ShootingDateTime><LensName Type=\"System.String\">PlanApo 4x</LensName><Observation "
        "Type=\"System.String\">Brightfield</Observation></Root></Data>",
        toy->columns, toy->rows, toy->columns * NM_PER_PX, toy->rows * NM_PER_PX, ticks);
}

static fth_status write_file(const artist *a, const char *path, fth_err *err)
{
    const fth_picture picture = {.dtype = FTH_U8,
                                 .height = a->toy->rows,
                                 .width = a->toy->columns,
                                 .channels = 1,
                                 .pixels = a->tile};
    const fth_picture_format format = {.kind = FTH_PICTURE_TIF};
    char text[TEXT];
    void *data = NULL, *all = NULL;
    uint64_t bytes = 0;
    const uint64_t more = (uint64_t)write_text(a, text);
    FTH_TRY(fth_picture_encode(a->mem, &picture, &format, &data, &bytes, err));
    fth_status s = fth_mem_take(a->mem, FTH_MEM_ANY, bytes + more, "file", &all, err);
    if (s == FTH_OK) {
        memcpy(all, data, bytes);
        memcpy((char *)all + bytes, text, more);
        s = fth_file_save(a->mem, path, all, bytes + more, err);
        fth_mem_release(a->mem, all, NULL);
    }
    fth_mem_release(a->mem, data, NULL);
    return s;
}

static fth_status write_time(artist *a, const char *folder, const char *tag, fth_err *err)
{
    const fo_toy *toy = a->toy;
    const double age = toy->times > 1 ? (double)a->t / (double)(toy->times - 1) : 0;
    FTH_TRY(
        fo_scene_make_on(&a->scene, toy->ctx, (uint32_t)(toy->seed * 1000 + a->well), age, err));
    for (int64_t z = 0; z < toy->planes; z++) {
        FTH_TRY(fo_scene_draw_on(&a->scene, toy->ctx, z, a->plane, err));
        for (int tile = 0; tile < tiles_of(toy); tile++) {
            char name[80], path[FTH_PATH];
            snprintf(name, sizeof name, "toy_%s_%05d_Z%03" PRId64 "_CH1.tif", tag, tile + 1, z + 1);
            FTH_TRY(fth_path_join(path, folder, name, err));
            cut(a, tile);
            FTH_TRY(write_file(a, path, err));
        }
    }
    return FTH_OK;
}

static fth_status write_well(artist *a, const char *experiment, fth_err *err)
{
    char tag[16], name[24], well[FTH_PATH], path[FTH_PATH], place[FO_WELL_NAME];
    snprintf(tag, sizeof tag, "XY%02d", (int)a->well + 1);
    FTH_TRY(fth_path_join(well, experiment, tag, err));
    FTH_TRY(fth_folder_make_all(a->mem, well, err));
    snprintf(name, sizeof name, "_%s", fo_well_name(fo_toy_well(a->well), place));
    FTH_TRY(fth_path_join(path, well, name, err));
    FTH_TRY(fth_file_save(a->mem, path, "", 0, err));
    for (a->t = 0; a->t < a->toy->times; a->t++) {
        snprintf(name, sizeof name, "T%04d", (int)a->t + 1);
        FTH_TRY(fth_path_join(path, well, name, err));
        FTH_TRY(fth_folder_make_all(a->mem, path, err));
        FTH_TRY(write_time(a, path, tag, err));
    }
    return FTH_OK;
}

static fth_status write_wells(artist *a, const char *experiment, fth_err *err)
{
    for (a->well = 0; a->well < a->toy->wells; a->well++) FTH_TRY(write_well(a, experiment, err));
    return FTH_OK;
}

uint64_t fo_toy_keyence_bytes(const fo_toy *toy)
{
    int64_t rows, columns;
    fo_toy_scene_size(toy, &rows, &columns);
    return fo_scene_bytes(rows, columns, toy->planes) +
           (uint64_t)(rows * columns) * sizeof(uint16_t) +
           5 * (uint64_t)(toy->rows * toy->columns) + (1 << 18);
}

fth_status fo_toy_make_keyence(const fo_toy *toy, fth_mem *mem, fth_err *err)
{
    char folder[FTH_PATH], name[FTH_PATH];
    artist a = {.toy = toy, .mem = mem};
    int64_t rows, columns;
    void *block = NULL;
    fo_toy_scene_size(toy, &rows, &columns);
    snprintf(name, sizeof name, "raw_image_data/Keyence/%.200s", toy->exp);
    FTH_TRY(fth_path_join(folder, toy->dir, name, err));
    FTH_TRY(fth_folder_make_all(mem, folder, err));
    FTH_TRY(fo_scene_create(&a.scene, mem, rows, columns, toy->planes, err));
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(rows * columns) * sizeof *a.plane,
                                "plane", &block, err);
    a.plane = block;
    block = NULL;
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(toy->rows * toy->columns), "tile", &block,
                         err);
    a.tile = block;
    if (s == FTH_OK) s = write_wells(&a, folder, err);
    if (a.tile) fth_mem_release(mem, a.tile, NULL);
    if (a.plane) fth_mem_release(mem, a.plane, NULL);
    fo_scene_free(&a.scene);
    return s == FTH_OK ? fo_toy_save_plate(toy, mem, err) : s;
}
