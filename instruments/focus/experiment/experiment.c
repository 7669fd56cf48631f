/* experiment.c - see experiment.h. */
#include "experiment.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const char *const fo_microscope_names[FO_MICROSCOPES] = {"YX1", "Keyence"};

/* Paths relative to the root; %s is the name of the experiment. */
typedef struct place {
    size_t member; /* of fo_experiment */
    const char *format;
} place;

#define AT(member) offsetof(fo_experiment, member)
static const place legacy_places[] = {
    {AT(images), "built_image_data/stitched_FF_images/%s"},
    {AT(tiles), "built_image_data/Keyence/FF_images/%s"},
    {AT(zstacks), "built_image_data/Keyence_stitched_z/%s"},
    {AT(metadata), "metadata/built_metadata_files/%s_metadata.csv"},
    {AT(run), "built_image_data/focus_runs/%s"},
    {0, NULL},
};
static const place v2_places[] = {
    {AT(images), "built_image_data/%s/stitched_ff_images"},
    {AT(tiles), "built_image_data/%s/ff_tiles"},
    {AT(zstacks), "built_image_data/%s/stitched_z"},
    {AT(metadata), "experiment_metadata/%s/scope_metadata.csv"},
    {AT(run), "built_image_data/focus_runs/%s/v2"},
    {0, NULL},
};
/* Folders of workbooks, the first one preferred. */
static const char *const plate_folders[] = {"metadata/well_metadata", "metadata/plate_metadata"};
enum { PLATE_FOLDERS = sizeof plate_folders / sizeof plate_folders[0] };

static fth_status under_root(const fo_experiment *e, const char *format, char path[FTH_PATH],
                             fth_err *err)
{
    char relative[FTH_PATH];
    const char *at = strstr(format, "%s");
    if (at)
        snprintf(relative, sizeof relative, "%.*s%s%s", (int)(at - format), format, e->name,
                 at + 2);
    else
        snprintf(relative, sizeof relative, "%s", format);
    return fth_path_join(path, e->root, relative, err);
}

/* ---- what is asked for ---- */

static bool find_microscope(fo_experiment *e, const char *name, fo_problems *problems)
{
    for (int i = 0; i < FO_MICROSCOPES; i++)
        if (strcasecmp(name, fo_microscope_names[i]) == 0) {
            e->microscope = (fo_microscope)i;
            return true;
        }
    fo_problems_add(problems, false, "give --microscope YX1 or --microscope Keyence",
                    "unknown microscope \"%s\"; expected YX1 or Keyence", name);
    return false;
}

/* A name becomes a part of paths. */
static bool take_name(fo_experiment *e, const char *name, fo_problems *problems)
{
    if (name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < sizeof e->name) {
        memcpy(e->name, name, strlen(name) + 1);
        return true;
    }
    fo_problems_add(
        problems, false, NULL,
        "\"%.100s\" cannot be the name of an experiment: expected a folder's name, without slashes",
        name);
    return false;
}

/* ---- raw data ---- */

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    return n > m && strcasecmp(text + n - m, ending) == 0;
}

/* A list of names in one line, as far as it goes. */
static void join(char *list, size_t bytes, const char *name)
{
    const size_t n = strlen(list);
    if (n + strlen(name) + 3 < bytes) snprintf(list + n, bytes - n, "%s%s", n ? ", " : "", name);
}

static fth_status find_nd2(fo_experiment *e, fth_mem *mem, const char *folder,
                           fo_problems *problems, fth_err *err)
{
    fth_texts *names = NULL;
    char all[400] = "";
    int64_t n = 0;
    FTH_TRY(fth_folder_list(&names, mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        const char *name = fth_texts_get(names, i);
        if (!ends_with(name, ".nd2") || name[0] == '.') continue;
        if (n++ == 0) s = fth_path_join(e->raw, folder, name, err);
        join(all, sizeof all, name);
    }
    fth_texts_free(names);
    if (n == 0)
        fo_problems_add(problems, true, NULL, "%s: no .nd2 file; expected exactly one", folder);
    if (n > 1)
        fo_problems_add(problems, true, "move all but one away",
                        "%s: %" PRId64 " .nd2 files; expected exactly one: %s", folder, n, all);
    return s;
}

static fth_status find_raw(fo_experiment *e, fth_mem *mem, fo_problems *problems, fth_err *err)
{
    char format[100], folder[FTH_PATH];
    snprintf(format, sizeof format, "raw_image_data/%s/%%s", fo_microscope_names[e->microscope]);
    FTH_TRY(under_root(e, format, folder, err));
    if (fth_path_kind_of(folder) != FTH_PATH_FOLDER) {
        fo_problems_add(problems, true, "check --data-root, --exp and --microscope",
                        "%s: no such folder; the raw data are expected there", folder);
        return FTH_OK;
    }
    if (e->microscope == FO_YX1) return find_nd2(e, mem, folder, problems, err);
    memcpy(e->raw, folder, sizeof folder);
    return FTH_OK;
}

/* ---- the plate's table ---- */

/* <exp>_well_metadata.xlsx or .csv, by its exact name. */
static fth_status find_exact(fo_experiment *e, bool *found, fth_err *err)
{
    static const char *const endings[] = {"xlsx", "csv"};
    *found = false;
    for (int i = 0; i < PLATE_FOLDERS * 2 && !*found; i++) {
        char format[100];
        snprintf(format, sizeof format, "%s/%%s_well_metadata.%s", plate_folders[i / 2],
                 endings[i % 2]);
        FTH_TRY(under_root(e, format, e->plate, err));
        *found = fth_path_kind_of(e->plate) == FTH_PATH_FILE;
    }
    return FTH_OK;
}

/* Workbooks whose names only begin so: how many, and which. */
static fth_status find_similar(fo_experiment *e, fth_mem *mem, char *all, size_t bytes, int64_t *n,
                               fth_err *err)
{
    char begin[300];
    snprintf(begin, sizeof begin, "%s_well_metadata", e->name);
    *n = 0;
    for (int i = 0; i < PLATE_FOLDERS; i++) {
        char folder[FTH_PATH], path[FTH_PATH];
        fth_texts *names = NULL;
        FTH_TRY(under_root(e, plate_folders[i], folder, err));
        if (fth_path_kind_of(folder) != FTH_PATH_FOLDER) continue;
        FTH_TRY(fth_folder_list(&names, mem, folder, err));
        fth_status s = FTH_OK;
        for (int64_t k = 0; s == FTH_OK && k < fth_texts_count(names); k++) {
            const char *name = fth_texts_get(names, k);
            if (strncmp(name, begin, strlen(begin)) != 0 || !ends_with(name, ".xlsx")) continue;
            s = fth_path_join(path, folder, name, err);
            if (s == FTH_OK && (*n)++ == 0) memcpy(e->plate, path, sizeof path);
            join(all, bytes, path);
        }
        fth_texts_free(names);
        FTH_TRY(s);
    }
    return FTH_OK;
}

static fth_status find_plate(fo_experiment *e, fth_mem *mem, fo_problems *problems,
                             fth_texts *notes, fth_err *err)
{
    char all[500] = "", note[FTH_PATH + 100];
    bool exact;
    int64_t n;
    FTH_TRY(find_exact(e, &exact, err));
    if (exact) return FTH_OK;
    FTH_TRY(find_similar(e, mem, all, sizeof all, &n, err));
    if (n == 0)
        fo_problems_add(problems, true,
                        "'fathom focus init-plate -o FILE' writes an empty workbook",
                        "no plate workbook: expected %s/%s/%s_well_metadata.xlsx or "
                        "%s/%s/%s_well_metadata.xlsx",
                        e->root, plate_folders[0], e->name, e->root, plate_folders[1], e->name);
    if (n > 1)
        fo_problems_add(problems, true, "rename the right one to EXP_well_metadata.xlsx",
                        "%" PRId64 " plate workbooks for %s, none of them with the exact name: %s",
                        n, e->name, all);
    if (n != 1) return FTH_OK;
    snprintf(note, sizeof note, "the plate workbook is %s, found by the beginning of its name",
             e->plate);
    return fth_texts_add(notes, note, strlen(note), err);
}

/* ---- all ---- */

static fth_status name_results(fo_experiment *e, const fo_experiment_options *opt, fth_err *err)
{
    snprintf(e->root, sizeof e->root, "%s", opt->root);
    for (const place *p = opt->layout == FO_LAYOUT_V2 ? v2_places : legacy_places; p->format; p++)
        FTH_TRY(under_root(e, p->format, (char *)e + p->member, err));
    if (opt->run_dir && opt->run_dir[0]) snprintf(e->run, sizeof e->run, "%s", opt->run_dir);
    return FTH_OK;
}

/* The root and the name: whether there is anything to look at. */
static bool take_place(fo_experiment *e, const fo_experiment_options *opt, fo_problems *problems)
{
    if (!take_name(e, opt->name, problems)) return false;
    if (fth_path_kind_of(opt->root) == FTH_PATH_FOLDER) return true;
    fo_problems_add(problems, true, "check --data-root", "%s: no such folder", opt->root);
    return false;
}

fth_status fo_experiment_find(fo_experiment *e, fth_mem *mem, const fo_experiment_options *opt,
                              fo_problems *problems, fth_texts *notes, fth_err *err)
{
    *e = (fo_experiment){.layout = opt->layout};
    const bool known = find_microscope(e, opt->microscope, problems);
    if (!take_place(e, opt, problems) || !known) return FTH_OK;
    FTH_TRY(name_results(e, opt, err));
    FTH_TRY(find_raw(e, mem, problems, err));
    return find_plate(e, mem, problems, notes, err);
}

fth_status fo_experiment_results(fo_experiment *e, const fo_experiment_options *opt, fth_err *err)
{
    fo_problems problems = {0};
    *e = (fo_experiment){.layout = opt->layout};
    if (!take_place(e, opt, &problems)) return fo_problems_end(&problems, err);
    return name_results(e, opt, err);
}

fth_status fo_experiment_image(const fo_experiment *e, const fo_image_name *name,
                               char path[FTH_PATH], fth_err *err)
{
    char file[300], well[FO_WELL_NAME];
    fo_well_name(name->well, well);
    if (e->layout == FO_LAYOUT_V2)
        snprintf(file, sizeof file, "%s/%.80s/%s_%.80s_t%04" PRId64 "%.20s", well, name->channel,
                 well, name->channel, name->t, name->ending);
    else if (e->microscope == FO_YX1)
        snprintf(file, sizeof file, "%s_t%04" PRId64 "_ch%02" PRId64 "_stitch%.20s", well, name->t,
                 name->c, name->ending);
    else
        snprintf(file, sizeof file, "%s_t%04" PRId64 "_stitch%.20s", well, name->t, name->ending);
    return fth_path_join(path, e->images, file, err);
}

fth_status fo_experiment_tile(const fo_experiment *e, int well, int64_t t, int64_t tile,
                              const char *ending, char path[FTH_PATH], fth_err *err)
{
    char file[100], name[FO_WELL_NAME];
    snprintf(file, sizeof file, "ff_%s_t%04" PRId64 "/im_p%04" PRId64 "%.20s",
             fo_well_name(well, name), t, tile, ending);
    return fth_path_join(path, e->tiles, file, err);
}

int fo_experiment_year(const char *name)
{
    int year = 0, n = 0;
    for (; n < 8 && name[n] >= '0' && name[n] <= '9'; n++)
        if (n < 4) year = 10 * year + name[n] - '0';
    return n >= 8 && year >= 1990 && year < 2100 ? year : 0;
}
