/* test_focus_places.c - where tiles lie, as it is kept: stitch.csv row by row, and the usual places
 * that stand in for overlaps that say nothing.
 * seconds: 1 */
#include "instruments/focus/mosaics/mosaics.h"
#include "testing/io/files.h"

#include <math.h>

enum { N = 3, TILES = 3 };

/* Tiles that have no file. */
typedef struct desk {
    fo_mosaics m;
    fo_mosaic mosaic[N];
    fo_tile_place place[N * TILES], usual[TILES];
    bool hole[N][TILES];
    char table[1200], master[1200];
} desk;

static fth_status tile_path(void *user, int64_t mosaic, int tile, char path[FTH_PATH], fth_err *err)
{
    const desk *d = user;
    (void)err;
    snprintf(path, FTH_PATH, "%s", d->hole[mosaic][tile] ? "" : "there");
    return FTH_OK;
}

static void label(void *user, int64_t mosaic, int *well, int64_t *t, char *name, size_t bytes)
{
    (void)user;
    *well = (int)mosaic / 2; /* A01 at 0 and 1, A02 at 0 */
    *t = mosaic % 2;
    snprintf(name, bytes, "m%d", (int)mosaic);
}

static void begin(desk *d)
{
    *d = (desk){.m = {.mem = t_mem(1 << 22), .n = N}};
    snprintf(d->table, sizeof d->table, "%s/stitch.csv", t_temp_dir());
    snprintf(d->master, sizeof d->master, "%s/master_params.json", t_temp_dir());
    d->m.how.vertical = true;
    d->m.how.most_tiles = TILES;
    d->m.how.y = 100;
    d->m.how.x = 80;
    OK(fo_format_choose("jpg", "", "jpg", &d->m.how.format, NULL));
    d->m.names = (fo_mosaic_names){.tile = tile_path, .label = label, .user = d};
    d->m.mosaic = d->mosaic;
    d->m.place = d->place;
    d->m.usual = d->usual;
    d->m.table = d->table;
    d->m.master = d->master;
    for (int i = 0; i < N; i++) {
        d->mosaic[i] =
            (fo_mosaic){.tiles = TILES, .known = true, .sampled = true, .place = TILES * i};
        for (int k = 0; k < TILES; k++)
            d->place[TILES * i + k] = (fo_tile_place){
                .y = 90 * k + i, .x = k, .score = 0.5 + 0.1 * k, .source = FO_PLACE_ALIGNED};
    }
}

static void end(desk *d)
{
    remove(d->table);
    remove(d->master);
    OK(fth_mem_destroy(d->m.mem, NULL));
}

static void read_table(desk *d, const char *text)
{
    t_file_write(d->table, text, strlen(text));
    memset(d->place, 0, sizeof d->place);
    for (int i = 0; i < N; i++) d->mosaic[i].known = false;
    OK(fo_mosaics_load_places(&d->m, NULL));
}

#define HEAD "well,t,tile,y,x,score,source\n"

TEST(places_survive_a_table)
{
    desk d;
    begin(&d);
    d.hole[1][1] = true;
    d.mosaic[2].known = false;
    OK(fo_mosaics_save_places(&d.m, NULL));
    size_t bytes;
    char *text = (char *)t_file_read(d.table, &bytes);
    text[bytes] = 0;
    EQ_STR(text,
           HEAD "A01,0,0,0,0,0.5,aligned\nA01,0,1,90,1,0.6,aligned\nA01,0,2,180,2,0.7,aligned\n"
                "A01,1,0,1,0,0.5,aligned\nA01,1,2,181,2,0.7,aligned\n");
    read_table(&d, text);
    free(text);
    static const bool known[N] = {true, true, false};
    for (int i = 0; i < N; i++) EQ_I64(d.mosaic[i].known, known[i]);
    EQ_F64(d.place[2].y, 180);
    EQ_F64(d.place[TILES + 2].y, 181); /* behind the hole */
    EQ_F64(d.place[TILES + 2].score, 0.7);
    end(&d);
}

/* Rows that are not those of all tiles in their order say nothing. */
TEST(tables_that_do_not_fit)
{
#define ROW(tile, y) "A01,0," tile "," y ",0,0.5,aligned\n"
#define NEXT "A01,1,0,1,0,,model\nA01,1,1,2,0,,model\nA01,1,2,3,0,,model\n"
    static const struct {
        const char *text;
        bool known;
    } cases[] = {{HEAD ROW("0", "0") ROW("1", "90") ROW("2", "180") NEXT, true},
                 {HEAD ROW("0", "0") ROW("0", "90") ROW("2", "180") NEXT, false},
                 {HEAD ROW("0", "0") ROW("1", "90") NEXT, false},
                 {HEAD ROW("0", "0") ROW("1", "90") ROW("2", "180") ROW("3", "270") NEXT, false},
                 {HEAD ROW("0", "0") ROW("1", "-90") ROW("2", "180") NEXT, false},
                 {HEAD ROW("0", "0") ROW("1", "x") ROW("2", "180") NEXT, false}};
    desk d;
    begin(&d);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_table(&d, cases[i].text);
        if (d.mosaic[0].known != cases[i].known) FAIL("case %d", (int)i);
        IS_TRUE(d.mosaic[1].known); /* those behind it are read all the same */
        EQ_I64(d.place[TILES].source, FO_PLACE_MODEL);
        IS_TRUE(isnan(d.place[TILES].score));
        IS_TRUE(!d.mosaic[2].known);
    }
    end(&d);
}

/* Medians of mosaics whose tiles were all aligned; then they stand in where nothing is known. */
TEST(usual_places)
{
    desk d;
    begin(&d);
    d.place[TILES * 2 + 1] = (fo_tile_place){.y = 500, .x = 400, .source = FO_PLACE_MODEL};
    OK(fo_mosaics_make_master(&d.m, NULL));
    IS_TRUE(fo_mosaics_has_master(&d.m));
    EQ_F64(d.usual[1].y, 90.5); /* of 0 and 1: the third has a tile that was not aligned */
    EQ_F64(d.usual[2].y, 180.5);
    fo_mosaics_settle(&d.m, 2);
    for (int k = 0; k < TILES; k++) {
        EQ_F64(d.place[TILES * 2 + k].y, d.usual[k].y);
        EQ_I64(d.place[TILES * 2 + k].source, FO_PLACE_MASTER);
    }
    fo_mosaics_settle(&d.m, 0); /* its own overlaps agree */
    EQ_F64(d.place[1].y, 90);
    memset(d.usual, 0, sizeof d.usual);
    OK(fo_mosaics_load_master(&d.m, NULL)); /* the grid is a column */
    EQ_F64(d.usual[2].y, 180.5);

    /* of fewer tiles than usual, or with a place that nobody knows: it stays as it is */
    d.place[TILES * 2 + 1] = (fo_tile_place){.y = 500, .x = 400, .source = FO_PLACE_MODEL};
    d.mosaic[2].tiles = 2;
    fo_mosaics_settle(&d.m, 2);
    EQ_F64(d.place[TILES * 2 + 1].y, 500);
    d.mosaic[2].tiles = TILES;
    d.usual[0].source = FO_PLACE_NONE;
    fo_mosaics_settle(&d.m, 2);
    EQ_F64(d.place[TILES * 2 + 1].y, 500);

    /* samples of other numbers of tiles do not count */
    d.mosaic[1].tiles = 2;
    for (int k = 0; k < TILES; k++) d.place[k].y = 10 * k;
    OK(fo_mosaics_make_master(&d.m, NULL));
    EQ_F64(d.usual[2].y, 20);
    d.m.again = true;
    IS_TRUE(!fo_mosaics_has_master(&d.m));
    end(&d);
}

TEST_MAIN()
