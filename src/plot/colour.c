/* colour.c - the colour maps, from their published definitions.
 *
 * A map is a table, a list of colours, or anchors between which each of red, green and blue goes
 * straight. Entry i of 256 stands for i / 255; a list of n colours has n equal steps.
 */
#include <fathom/plot.h>

#include "base/assert.h"

#include <string.h>

#define FTH_LISTED(name, ...) static const uint32_t listed_##name[256] = {__VA_ARGS__};
#include "plot/colour_maps.def"
#undef FTH_LISTED

typedef struct anchor {
    double at, value;
} anchor;

static const anchor ncar_r[] = {{0, 0},         {.3098, 0},     {.3725, .3993},
                                {.4235, .5003}, {.5333, 1},     {.7922, 1},
                                {.8471, .6218}, {.8980, .9235}, {1, .9961}};
static const anchor ncar_g[] = {{0, 0},         {.0510, .3722}, {.1059, 0},     {.1569, .7202},
                                {.1608, .7537}, {.1647, .7752}, {.2157, 1},     {.2588, .9804},
                                {.2706, .9804}, {.3176, 1},     {.3686, .8081}, {.4275, 1},
                                {.5216, 1},     {.6314, .7292}, {.6863, .2796}, {.7451, 0},
                                {.7922, 0},     {.8431, .1753}, {.8980, .5},    {1, .9725}};
static const anchor ncar_b[] = {
    {0, .5020}, {.0510, .0222}, {.1098, 1}, {.2039, 1}, {.2627, .6145}, {.3216, 0},
    {.4157, 0}, {.4745, .2342}, {.5333, 0}, {.5804, 0}, {.6314, .0549}, {.6902, 0},
    {.7373, 0}, {.7922, .9738}, {.8, 1},    {.8431, 1}, {.8980, .9341}, {1, .9961}};
static const anchor jet_r[] = {{0, 0}, {.35, 0}, {.66, 1}, {.89, 1}, {1, .5}};
static const anchor jet_g[] = {{0, 0}, {.125, 0}, {.375, 1}, {.64, 1}, {.91, 0}, {1, 0}};
static const anchor jet_b[] = {{0, .5}, {.11, 1}, {.34, 1}, {.65, 0}, {1, 0}};
static const anchor hsv_r[] = {{0, 1},       {.158730, 1}, {.174603, .96875}, {.333333, .03125},
                               {.349206, 0}, {.666667, 0}, {.682540, .03125}, {.841270, .96875},
                               {.857143, 1}, {1, 1}};
static const anchor hsv_g[] = {{0, 0},           {.158730, .9375}, {.174603, 1}, {.507937, 1},
                               {.666667, .0625}, {.682540, 0},     {1, 0}};
static const anchor hsv_b[] = {{0, 0},       {.333333, 0},     {.349206, .0625}, {.507937, 1},
                               {.841270, 1}, {.857143, .9375}, {1, .09375}};
static const anchor ramp[] = {{0, 0}, {1, 1}};
static const anchor bwr_r[] = {{0, 0}, {.5, 1}, {1, 1}};
static const anchor bwr_g[] = {{0, 0}, {.5, 1}, {1, 0}};
static const anchor bwr_b[] = {{0, 1}, {.5, 1}, {1, 0}};
/* ColorBrewer's nine classes. */
#define EIGHTHS(a, b, c, d, e, f, g, h, i)                                                         \
    {                                                                                              \
        {0, a / 255.}, {.125, b / 255.}, {.25, c / 255.}, {.375, d / 255.}, {.5, e / 255.},        \
            {.625, f / 255.}, {.75, g / 255.}, {.875, h / 255.},                                   \
        {                                                                                          \
            1, i / 255.                                                                            \
        }                                                                                          \
    }
static const anchor ylorrd_r[] = EIGHTHS(255, 255, 254, 254, 253, 252, 227, 189, 128);
static const anchor ylorrd_g[] = EIGHTHS(255, 237, 217, 178, 141, 78, 26, 0, 0);
static const anchor ylorrd_b[] = EIGHTHS(204, 160, 118, 76, 60, 42, 28, 38, 38);

static const uint32_t tab10[] = {0x1f77b4, 0xff7f0e, 0x2ca02c, 0xd62728, 0x9467bd,
                                 0x8c564b, 0xe377c2, 0x7f7f7f, 0xbcbd22, 0x17becf};
static const uint32_t tab20[] = {0x1f77b4, 0xaec7e8, 0xff7f0e, 0xffbb78, 0x2ca02c,
                                 0x98df8a, 0xd62728, 0xff9896, 0x9467bd, 0xc5b0d5,
                                 0x8c564b, 0xc49c94, 0xe377c2, 0xf7b6d2, 0x7f7f7f,
                                 0xc7c7c7, 0xbcbd22, 0xdbdb8d, 0x17becf, 0x9edae5};

/* Each of these is, in CIELAB, as far from all before it and from white as a colour of middle
 * lightness and chroma can be; the first nine are those of tab10 but for its grey. */
static const uint32_t distinct[] = {
    0x1f77b4, 0xff7f0e, 0x2ca02c, 0xd62728, 0x9467bd, 0x8c564b, 0xe377c2, 0xbcbd22,
    0x17becf, 0x004422, 0x99aa77, 0x00ddaa, 0xffbb77, 0x770044, 0x886600, 0xff8888,
    0x443355, 0xbbbbee, 0xdd2266, 0x2288ff, 0x551188, 0x446600, 0x770011, 0x447777,
    0xaadd77, 0x443300, 0x008855, 0xaa1188, 0xddaaaa, 0x114499, 0xcc6633, 0x996688,
    0xdd9911, 0x00bbff, 0xdd88ff, 0x99ddcc, 0xffbbff, 0x666644, 0xaa8855, 0x773300,
    0x55dd77, 0x8899ee, 0x004455, 0x552266, 0x5555cc, 0x999933, 0xbb5566, 0xff55aa};
enum { DISTINCT = sizeof distinct / sizeof distinct[0] };

typedef struct map {
    const char *name;
    const uint32_t *list; /* n colours */
    int n;
    const anchor *channel[3];
} map;

static const map maps[] = {
    [FTH_MAP_VIRIDIS] = {"viridis", listed_VIRIDIS, 256, {0}},
    [FTH_MAP_PLASMA] = {"plasma", listed_PLASMA, 256, {0}},
    [FTH_MAP_TURBO] = {"turbo", listed_TURBO, 256, {0}},
    [FTH_MAP_TWILIGHT] = {"twilight", listed_TWILIGHT, 256, {0}},
    [FTH_MAP_GRAY] = {"gray", NULL, 0, {ramp, ramp, ramp}},
    [FTH_MAP_BWR] = {"bwr", NULL, 0, {bwr_r, bwr_g, bwr_b}},
    [FTH_MAP_YLORRD] = {"YlOrRd", NULL, 0, {ylorrd_r, ylorrd_g, ylorrd_b}},
    [FTH_MAP_JET] = {"jet", NULL, 0, {jet_r, jet_g, jet_b}},
    [FTH_MAP_HSV] = {"hsv", NULL, 0, {hsv_r, hsv_g, hsv_b}},
    [FTH_MAP_GIST_NCAR] = {"gist_ncar", NULL, 0, {ncar_r, ncar_g, ncar_b}},
    [FTH_MAP_TAB10] = {"tab10", tab10, 10, {0}},
    [FTH_MAP_TAB20] = {"tab20", tab20, 20, {0}},
    [FTH_MAP_EMBER] = {"ember", listed_EMBER, 256, {0}},
    [FTH_MAP_BALANCE] = {"balance", listed_BALANCE, 256, {0}},
};
_Static_assert(sizeof maps / sizeof maps[0] == FTH_MAP_COUNT, "one row per map");

static const map *find(fth_colour_map m)
{
    return &maps[(unsigned)m < FTH_MAP_COUNT ? m : FTH_MAP_VIRIDIS];
}

/* One channel at x, 0..255. */
static uint32_t level(const anchor *a, double x)
{
    while (a[1].at < x) a++;
    const double v = a[0].value + (x - a[0].at) / (a[1].at - a[0].at) * (a[1].value - a[0].value);
    FTH_ASSERT(v >= 0 && v <= 1);
    return (uint32_t)(v * 255 + 0.5);
}

static fth_colour colour_at(const map *m, double x)
{
    FTH_ASSERT(x >= 0 && x <= 1); /* the last anchor of each channel is at 1 */
    if (m->list) {
        const int i = (int)(x * m->n);
        return 0xff000000u | m->list[i < m->n ? i : m->n - 1];
    }
    return 0xff000000u | level(m->channel[0], x) << 16 | level(m->channel[1], x) << 8 |
           level(m->channel[2], x);
}

const char *fth_colour_map_name(fth_colour_map m)
{
    return find(m)->name;
}

bool fth_colour_map_parse(const char *text, fth_colour_map *out)
{
    for (int i = 0; text && i < FTH_MAP_COUNT; i++)
        if (strcmp(text, maps[i].name) == 0) {
            *out = (fth_colour_map)i;
            return true;
        }
    return false;
}

fth_colour fth_colour_map_get(fth_colour_map which, int index)
{
    const int i = index < 0 ? 0 : index > 255 ? 255 : index;
    return colour_at(find(which), i / 255.0);
}

fth_colour fth_colour_category(int64_t i, int64_t n)
{
    if (n <= 0 || i < 0) return fth_rgb(127, 127, 127);
    if (n <= 10) return 0xff000000u | tab10[i % 10];
    if (n <= DISTINCT) return 0xff000000u | distinct[i % n];
    /* its last part fades into the white of the page */
    return colour_at(find(FTH_MAP_GIST_NCAR), 240.0 / 255 * (double)(i % n) / (double)(n - 1));
}
