/* outlook.c - see outlook.h. */
#include "outlook.h"

#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- storage ---- */

/* Reads pieces across the file for a tenth of a second: long enough to measure, short enough not to
 * notice. */
static double measure_file(fth_mem *mem, const char *path)
{
    enum { PIECE = 4 << 20, PIECES = 64 };
    fth_file *f = NULL;
    void *block = NULL;
    uint64_t got = 0;
    double seconds = 0;
    if (fth_file_open(&f, mem, path, NULL) != FTH_OK) return 0;
    const uint64_t all = fth_file_bytes(f), n = all < PIECE ? all : PIECE;
    if (n > 0 && fth_mem_take(mem, FTH_MEM_POOL, n, "piece", &block, NULL) == FTH_OK) {
        const double start = now();
        for (int i = 0; i < PIECES && seconds < 0.1; i++) {
            const uint64_t at = (all - n) / PIECES * (uint64_t)i;
            if (fth_file_read(f, at, n, block, "a piece", NULL) != FTH_OK) break;
            got += n;
            seconds = now() - start;
        }
    }
    fth_mem_release(mem, block, NULL);
    fth_file_close(f);
    return seconds > 0 ? (double)got / seconds : 0;
}

/* ---- a small stack ---- */

typedef struct small {
    int64_t planes, rows, columns;
    void *pixels;
} small;

static small small_of(const fo_input *in)
{
    const small most = {16, 192, 512, NULL};
    return (small){in->planes < most.planes ? in->planes : most.planes,
                   in->rows < most.rows ? in->rows : most.rows,
                   in->columns < most.columns ? in->columns : most.columns, NULL};
}

/* A slope with some noise, as images of a camera have. */
static void fill(const small *s, fth_dtype dtype)
{
    uint32_t state = 12345;
    for (int64_t i = 0; i < s->planes * s->rows * s->columns; i++) {
        state = 1664525u * state + 1013904223u;
        const uint32_t v = 1200 + (state >> 26) + (uint32_t)(i % s->columns) * 4;
        if (dtype == FTH_U8)
            ((uint8_t *)s->pixels)[i] = (uint8_t)(v >> 4);
        else if (dtype == FTH_U16)
            ((uint16_t *)s->pixels)[i] = (uint16_t)v;
        else
            ((float *)s->pixels)[i] = (float)v;
    }
}

/* Seconds of one stack. */
typedef struct speeds {
    double kernel, copy;
    bool on_device;
} speeds;

/* The second run is measured: the first one meets cold caches and kernels. */
static speeds run_twice(const fo_pipeline *p, const small *s, void *image)
{
    const fo_input *in = p->in;
    uint8_t *present = (uint8_t *)image + s->rows * s->columns * 4; /* behind the image */
    fo_fusion how = p->how;
    fth_run_report report = {0};
    memset(present, 1, (size_t)s->planes);
    if (how.scale == FO_SCALE_EXPERIMENT) how.scale = FO_SCALE_STACK;
    const fth_source pixels = {.kind = "memory",
                               .dtype = in->dtype,
                               .n_axes = 4,
                               .size = {1, s->planes, s->rows, s->columns},
                               .data = s->pixels},
                     planes = {.kind = "memory",
                               .dtype = FTH_U8,
                               .n_axes = 2,
                               .size = {1, s->planes},
                               .data = present};
    fth_graph *g = fth_graph_create(p->ctx);
    fth_axis(g, "stack", 1);
    fth_axis(g, "z", s->planes);
    fth_axis(g, "y", s->rows);
    fth_axis(g, "x", s->columns);
    const fo_fused f = fo_fuse(g, fth_input(g, "stacks", in->dtype, "stack z y x", pixels),
                               fth_input(g, "present", FTH_U8, "stack z", planes), &how);
    const fth_val out[] = {f.image, f.stats};
    double stats[FO_STATS];
    const fth_sink sink[] = {
        {.kind = "memory",
         .dtype = fth_val_dtype(f.image),
         .n_axes = 3,
         .size = {1, s->rows, s->columns},
         .data = image},
        {.kind = "memory", .dtype = FTH_F64, .n_axes = 2, .size = {1, FO_STATS}, .data = stats}};
    fth_plan *plan = fth_plan_make(g, out, 2, &(fth_limits){.sinks = sink}, NULL);
    bool ok = plan != NULL;
    for (int i = 0; ok && i < 2; i++) ok = fth_run(plan, sink, NULL, &report, NULL) == FTH_OK;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (!ok) return (speeds){0};
    return report.on_device ? (speeds){report.kernel_seconds, report.copy_seconds, true}
                            : (speeds){.kernel = report.seconds};
}

/* Seconds of a pixel. */
static double measure_encoder(const fo_pipeline *p, const small *s, uint16_t *image)
{
    fth_mem *mem = p->in->mem;
    fth_picture_format format = {0};
    void *data = NULL;
    uint64_t bytes = 0;
    const int64_t n = s->rows * s->columns;
    const bool byte = p->writer.format.dtype == FTH_U8;
    if (p->how.scale == FO_SCALE_NONE ||
        fth_picture_format_parse(p->writer.format.name, &format, NULL) != FTH_OK ||
        format.kind == FTH_PICTURE_TIF32)
        return 0;
    format.quality = p->writer.format.quality;
    for (int64_t i = 0; byte && i < n; i++) ((uint8_t *)image)[i] = (uint8_t)(image[i] >> 8);
    const fth_picture picture = {.dtype = byte ? FTH_U8 : FTH_U16,
                                 .height = s->rows,
                                 .width = s->columns,
                                 .channels = 1,
                                 .pixels = image};
    const double start = now();
    const fth_status status = fth_picture_encode(mem, &picture, &format, &data, &bytes, NULL);
    const double seconds = now() - start;
    fth_mem_release(mem, data, NULL);
    return status == FTH_OK ? seconds / (double)n : 0;
}

/* Seconds of a stack on the device, and of a pixel in an encoder. */
static speeds measure(const fo_pipeline *p, double *encode)
{
    speeds found = {0};
    const fo_input *in = p->in;
    fth_mem *mem = in->mem;
    small s = small_of(in);
    void *image = NULL;
    const int64_t voxels = s.planes * s.rows * s.columns;
    const uint64_t bytes = (uint64_t)(s.rows * s.columns * 4 + s.planes);
    *encode = 0;
    if (fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)(voxels * fth_dtype_size(in->dtype)), "trial",
                     &s.pixels, NULL) == FTH_OK &&
        fth_mem_take(mem, FTH_MEM_POOL, bytes, "trial", &image, NULL) == FTH_OK) {
        fill(&s, in->dtype);
        const double ratio = (double)(in->planes * in->rows * in->columns) / (double)voxels;
        found = run_twice(p, &s, image);
        found.kernel *= ratio;
        found.copy *= ratio;
        *encode = measure_encoder(p, &s, image);
    }
    fth_mem_release(mem, image, NULL);
    fth_mem_release(mem, s.pixels, NULL);
    return found;
}

/* ---- all together ---- */

fo_outlook fo_outlook_find(const fo_pipeline *p, int64_t images, const char *raw, double read_rate)
{
    const fo_input *in = p->in;
    const double pixels = (double)(in->rows * in->columns);
    double encode;
    fo_outlook o = {.threads =
                        p->workers.encode > 0 ? p->workers.encode : fth_context_threads(p->ctx)};
    o.bytes = (uint64_t)(images * in->planes * in->rows * in->columns * fth_dtype_size(in->dtype));
    o.read_rate = raw[0] ? measure_file(in->mem, raw) : read_rate;
    const speeds stack = measure(p, &encode);
    o.storage_s = o.read_rate > 0 ? (double)o.bytes / o.read_rate : 0;
    o.kernel_s = stack.kernel * (double)images;
    o.copy_s = stack.copy * (double)images;
    o.copy_bytes = stack.on_device ? o.bytes : 0;
    o.encode_s = encode * pixels * (double)images / o.threads;
    const double seconds[] = {o.storage_s, o.copy_s, o.kernel_s, o.encode_s};
    static const char *const names[] = {"storage", "copies", "kernels", "encoding"};
    int longest = 0;
    for (int i = 1; i < 4; i++)
        if (seconds[i] > seconds[longest]) longest = i;
    o.bound = names[longest];
    return o;
}

/* "3.9 min" */
static const char *format_time(double s, char text[24])
{
    if (s <= 0)
        snprintf(text, 24, "-");
    else if (s < 120)
        snprintf(text, 24, "%.2g s", s);
    else if (s < 7200)
        snprintf(text, 24, "%.1f min", s / 60);
    else
        snprintf(text, 24, "%.1f h", s / 3600);
    return text;
}

/* "; kernels 4 s", with a mark where that is the longest. */
static void add_part(const fo_outlook *o, const char *name, const char *what, double seconds,
                     const char *more, char *text, size_t bytes)
{
    char time[24];
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "; %s %s%s%s", what, format_time(seconds, time), more,
             strcmp(o->bound, name) == 0 ? " <- bound" : "");
}

void fo_outlook_format(const fo_outlook *o, char *text, size_t bytes)
{
    char time[24], rate[40] = "", what[40], threads[40];
    if (o->read_rate > 0) snprintf(rate, sizeof rate, " at %.2g GB/s", 1e-9 * o->read_rate);
    snprintf(text, bytes, "storage %.4g GB%s = %s%s", 1e-9 * (double)o->bytes, rate,
             format_time(o->storage_s, time), strcmp(o->bound, "storage") == 0 ? " <- bound" : "");
    snprintf(what, sizeof what, "H2D %.4g GB =", 1e-9 * (double)o->copy_bytes);
    if (o->copy_bytes > 0) add_part(o, "copies", what, o->copy_s, "", text, bytes);
    add_part(o, "kernels", "kernels", o->kernel_s, "", text, bytes);
    snprintf(threads, sizeof threads, " on %d thread%s", o->threads, o->threads == 1 ? "" : "s");
    add_part(o, "encoding", "encoding", o->encode_s, threads, text, bytes);
}
