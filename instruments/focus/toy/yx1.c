/* yx1.c - the made-up plate as a Nikon spinning disk writes it: one ND2 file. */
#include "toy.h"

#include "../plate/well.h"
#include "scene.h"

#include <fathom/nd2.h>

#include <math.h>
#include <string.h>

#define UM_PER_PX 3.2347
#define Z_STEP_UM 50.0
#define PERIOD_MS 1.9e6

/* Positions go down the first column of the plate, up the second, and so on. */
int fo_toy_well(int64_t p)
{
    const int column = (int)(p / FO_ROWS), along = (int)(p % FO_ROWS);
    const int row = column % 2 ? FO_ROWS - 1 - along : along;
    return row * FO_COLUMNS + column;
}

typedef struct artist {
    const fo_toy *toy;
    fo_scene scene;
    int64_t t, p; /* of the scene; -1: none yet */
} artist;

static fth_status draw(void *user, int64_t t, int64_t p, int64_t z, void *pixels, bool *present,
                       fth_err *err)
{
    artist *a = user;
    (void)present;
    if (a->t != t || a->p != p)
        FTH_TRY(fo_scene_make_on(&a->scene, a->toy->ctx, (uint32_t)(a->toy->seed * 1000 + p),
                                 a->toy->times > 1 ? (double)t / (double)(a->toy->times - 1) : 0,
                                 err));
    a->t = t;
    a->p = p;
    return fo_scene_draw_on(&a->scene, a->toy->ctx, z, pixels, err);
}

/* A small plate is packed, to take little room; of a large one packing would take longer than all
 * the rest, and microscopes do not pack either. */
static bool is_small(const fo_toy *toy)
{
    const int64_t most = 32 << 20;
    return toy->wells * toy->times * toy->planes <= most / (2 * toy->rows * toy->columns);
}

static fth_status write_nd2(const fo_toy *toy, fth_mem *mem, const char *path, fth_err *err)
{
    static const char *const channels[] = {"BF"};
    fth_images_position position[FO_WELLS];
    char name[FO_WELLS][16];
    for (int64_t p = 0; p < toy->wells; p++) {
        const int well = fo_toy_well(p), row = well / FO_COLUMNS, column = well % FO_COLUMNS;
        snprintf(name[p], sizeof name[p], "P%03d", (int)p + 1);
        position[p] = (fth_images_position){name[p], 50000 - FO_WELL_PITCH_UM * column,
                                            -30000 + FO_WELL_PITCH_UM * row, 2000};
    }
    const fth_nd2_options opt = {
        .size = {toy->times, toy->wells, toy->planes, 1, toy->rows, toy->columns},
        .dtype = FTH_U16,
        .packed = is_small(toy),
        .significant_bits = 12,
        .um_per_px = UM_PER_PX,
        .z_step_um = Z_STEP_UM,
        .period_ms = PERIOD_MS,
        .unix_seconds = 1735689600, /* 2025-01-01 */
        .magnification = 4,
        .objective = "Toy 4x",
        .description = "made up by fathom focus toy",
        .channel = channels,
        .position = position};
    artist a = {.toy = toy, .t = -1, .p = -1};
    FTH_TRY(fo_scene_create(&a.scene, mem, toy->rows, toy->columns, toy->planes, err));
    const fth_status s = fth_nd2_write(mem, path, &opt, draw, &a, err);
    fo_scene_free(&a.scene);
    return s;
}

/* The plate's table: what is in each well, and which position shows it. */
static fth_status write_table(const fo_toy *toy, fth_mem *mem, const char *path, fth_err *err)
{
    static const char *const genotypes[] = {"wt", "tbx5a", "noto"};
    fth_lines t;
    char name[FO_WELL_NAME];
    fth_lines_begin(&t, mem);
    fth_lines_add(&t, "well,medium,genotype,chem_perturbation,start_age_hpf,embryos_per_well,"
                      "temperature,pair,series_number_map\n");
    for (int64_t p = 0; p < toy->wells; p++)
        fth_lines_add(&t, "%s,E3,%s,none,%d,1,28.5,%d,%d\n", fo_well_name(fo_toy_well(p), name),
                      genotypes[p % 3], 20 + (int)(p % 4), 1 + (int)(p / 2), (int)p + 1);
    return fth_lines_save(&t, path, err);
}

uint64_t fo_toy_bytes(const fo_toy *toy)
{
    if (toy->keyence) return fo_toy_keyence_bytes(toy);
    return fo_scene_bytes(toy->rows, toy->columns, toy->planes) +
           2 * (uint64_t)(toy->rows * toy->columns) * sizeof(uint16_t) +
           40 * (uint64_t)(toy->times * toy->wells * toy->planes) + (1 << 16);
}

fth_status fo_toy_make_yx1(const fo_toy *toy, fth_mem *mem, fth_err *err)
{
    char folder[FTH_PATH], path[FTH_PATH], name[FTH_PATH];
    snprintf(name, sizeof name, "raw_image_data/YX1/%.200s", toy->exp);
    FTH_TRY(fth_path_join(folder, toy->dir, name, err));
    FTH_TRY(fth_folder_make_all(mem, folder, err));
    snprintf(name, sizeof name, "%.200s.nd2", toy->exp);
    FTH_TRY(fth_path_join(path, folder, name, err));
    FTH_TRY(write_nd2(toy, mem, path, err));
    return fo_toy_save_plate(toy, mem, err);
}

fth_status fo_toy_make(const fo_toy *toy, fth_mem *mem, fth_err *err)
{
    return toy->keyence ? fo_toy_make_keyence(toy, mem, err) : fo_toy_make_yx1(toy, mem, err);
}

fth_status fo_toy_save_plate(const fo_toy *toy, fth_mem *mem, fth_err *err)
{
    char folder[FTH_PATH], path[FTH_PATH], name[FTH_PATH];
    FTH_TRY(fth_path_join(folder, toy->dir, "metadata/well_metadata", err));
    FTH_TRY(fth_folder_make_all(mem, folder, err));
    snprintf(name, sizeof name, "%.200s_well_metadata.csv", toy->exp);
    FTH_TRY(fth_path_join(path, folder, name, err));
    return write_table(toy, mem, path, err);
}
