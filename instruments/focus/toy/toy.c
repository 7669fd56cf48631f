/* toy.c - the command: its flags, and what it tells; see toy.h. */
#include "toy.h"

#include "../plate/well.h"

#include <inttypes.h>
#include <string.h>

typedef struct flag_values {
    const char *(*value)(void *user, const char *flag);
    void *user;
    fth_err *err;
} flag_values;

static fth_status get_int(const flag_values *f, const char *flag, int64_t low, int64_t high,
                          int64_t *out)
{
    const char *text = f->value(f->user, flag);
    if (!text) return FTH_OK;
    if (fth_int_parse(text, out) && *out >= low && *out <= high) return FTH_OK;
    return FTH_FAIL(f->err, FTH_E_COMMAND,
                    "--%s: expected a number from %" PRId64 " to %" PRId64 ", found '%.60s'", flag,
                    low, high, text);
}

/* "96x80" */
static fth_status get_size(const flag_values *f, fo_toy *toy)
{
    enum { LOW = 16, HIGH = 8192 };
    const char *text = f->value(f->user, "size");
    char rows[24];
    if (!text) return FTH_OK;
    const size_t n = strcspn(text, "xX");
    snprintf(rows, sizeof rows, "%.*s", (int)(n < 20 ? n : 20), text);
    if (text[n] && fth_int_parse(rows, &toy->rows) && fth_int_parse(text + n + 1, &toy->columns) &&
        toy->rows >= LOW && toy->columns >= LOW && toy->rows <= HIGH && toy->columns <= HIGH)
        return FTH_OK;
    return FTH_FAIL(f->err, FTH_E_COMMAND,
                    "--size: expected YxX, each from %d to %d, found '%.60s'", LOW, HIGH, text);
}

static fth_status get_microscope(const flag_values *f, fo_toy *toy)
{
    const char *text = f->value(f->user, "microscope");
    if (!text || strcmp(text, "YX1") == 0) return FTH_OK;
    toy->keyence = strcmp(text, "Keyence") == 0;
    if (toy->keyence) { /* tiles as wide as they are, and some to overlap */
        toy->rows = 96;
        toy->columns = 128;
        return FTH_OK;
    }
    FTH_FAIL(f->err, FTH_E_COMMAND, "--microscope: expected YX1 or Keyence, found '%.60s'", text);
    const int near = fth_word_nearest("YX1 Keyence", text);
    if (near >= 0) fth_err_hint(f->err, "did you mean '%s'?", near ? "Keyence" : "YX1");
    return FTH_E_COMMAND;
}

static fth_status get_all(const flag_values *f, fo_toy *toy)
{
    FTH_TRY(get_microscope(f, toy));
    FTH_TRY(get_int(f, "wells", 1, FO_WELLS, &toy->wells));
    FTH_TRY(get_int(f, "times", 1, 10000, &toy->times));
    FTH_TRY(get_int(f, "planes", 1, 200, &toy->planes));
    FTH_TRY(get_int(f, "seed", 0, 1000000, &toy->seed));
    return get_size(f, toy);
}

static fth_status answer(fth_answer *a, const fo_toy *toy, fth_mem *mem, fth_err *err)
{
    char path[FTH_PATH], name[FTH_PATH];
    if (toy->keyence)
        snprintf(name, sizeof name, "raw_image_data/Keyence/%.200s", toy->exp);
    else
        snprintf(name, sizeof name, "raw_image_data/YX1/%.200s/%.200s.nd2", toy->exp, toy->exp);
    FTH_TRY(fth_path_join(path, toy->dir, name, err));
    if (!a->plan) FTH_TRY(fo_toy_make(toy, mem, err));
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1,
                    "t=%" PRId64 " p=%" PRId64 "%s z=%" PRId64 " y=%" PRId64 " x=%" PRId64 " %s",
                    toy->times, toy->wells, toy->keyence ? " m=3" : "", toy->planes, toy->rows,
                    toy->columns, toy->keyence ? "u8" : "u16");
    snprintf(name, sizeof name, "metadata/well_metadata/%.200s_well_metadata.csv", toy->exp);
    FTH_TRY(fth_path_join(path, toy->dir, name, err));
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "plate");
    if (a->plan) fth_answer_memory(a, fo_toy_bytes(toy), "one specimen and its blurred copies");
    if (a->json) {
        fth_json_writer *w = fth_answer_facts(a);
        fth_json_text(w, "data_root", toy->dir);
        fth_json_text(w, "exp", toy->exp);
        fth_json_int(w, "wells", toy->wells);
        fth_json_int(w, "times", toy->times);
        fth_json_int(w, "planes", toy->planes);
    }
    if (!a->plan)
        fprintf(a->notes,
                "%s: experiment %s, %" PRId64 " wells, %" PRId64 " time points, %" PRId64
                " planes of y=%" PRId64 " x=%" PRId64 "\n",
                toy->dir, toy->exp, toy->wells, toy->times, toy->planes, toy->rows, toy->columns);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    const char *dir = value(user, "output"), *exp = value(user, "exp");
    fo_toy toy = {.dir = dir ? dir : "toy",
                  .exp = exp ? exp : "20250101_toy",
                  .wells = 4,
                  .times = 2,
                  .planes = 5,
                  .rows = 64,
                  .columns = 48,
                  .seed = 1,
                  .ctx = ctx};
    FTH_TRY(get_all(&(flag_values){value, user, err}, &toy));
    if (strlen(toy.exp) > 150 || strchr(toy.exp, '/') || !toy.exp[0])
        return FTH_FAIL(err, FTH_E_COMMAND, "--exp: expected the name of a folder, found '%.60s'",
                        toy.exp);
    fth_answer a;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, answer(&a, &toy, fth_context_mem(ctx), err), err);
}

static const fth_flag flags[] = {
    {.name = "output",
     .value = FTH_FLAG_DIR,
     .letter = 'o',
     .doc = "root folder to write into; default: toy"},
    {.name = "exp", .value = FTH_FLAG_WORD, .doc = "name of the experiment; default: 20250101_toy"},
    {.name = "microscope",
     .value = FTH_FLAG_WORD,
     .doc = "microscope whose files to write: YX1 or Keyence; default: YX1"},
    {.name = "wells", .value = FTH_FLAG_COUNT, .doc = "wells, at most 96; default: 4"},
    {.name = "times", .value = FTH_FLAG_COUNT, .doc = "time points; default: 2"},
    {.name = "planes", .value = FTH_FLAG_COUNT, .doc = "planes of a stack; default: 5"},
    {.name = "size",
     .value = FTH_FLAG_WORD,
     .doc = "rows and columns, YxX; default: 64x48, 96x128 of a Keyence"},
    {0}};

const fth_verb fo_verb_toy = {
    .name = "toy",
    .args = "",
    .brief = "write a synthetic plate with known depth",
    .doc =
        "Writes a data folder with one experiment: raw files as the microscope writes them, and "
        "the plate's table. Every well holds a textured body whose surface is tilted, so that no "
        "plane shows all of it sharply. With --microscope Keyence each well has three tiles that "
        "overlap.\n"
        "\n"
        "Frames of a plate of up to 32 MiB are compressed; those of a larger one are plain, as "
        "microscopes write them. The same options and seed give the same bytes.",
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run};
