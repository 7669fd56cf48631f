/* test_focus_plate.c - wells, the map of positions to wells, times of time points.
 * seconds: 1 */
#include "instruments/focus/plate/map.h"
#include "instruments/focus/plate/times.h"
#include "testing/io/files.h"

#include <math.h>

TEST(wells_have_names_by_rows)
{
    char name[FO_WELL_NAME];
    EQ_STR(fo_well_name(0, name), "A01");
    EQ_STR(fo_well_name(11, name), "A12");
    EQ_STR(fo_well_name(95, name), "H12");
    for (int w = 0; w < FO_WELLS; w++) EQ_I64(fo_well_parse(fo_well_name(w, name)), w);
    EQ_I64(fo_well_parse("b3"), 14);
    const char *bad[] = {"", "A", "A0", "A00", "A13", "I01", "@1", "A1x", "A-1", "A 1", "AA1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) EQ_I64(fo_well_parse(bad[i]), -1);
}

/* A plate on a stage: columns go down with x, rows up with y, all turned a little. */
static fo_stage_place place_of(int well)
{
    const double c = well % FO_COLUMNS * FO_WELL_PITCH_UM, r = well / FO_COLUMNS * FO_WELL_PITCH_UM;
    return (fo_stage_place){43000 - c + 0.01 * r, -31000 + r + 0.01 * c};
}

/* The serpentine that microscopes take: down the first column, up the second. */
static double series_of(int well)
{
    const int row = well / FO_COLUMNS, column = well % FO_COLUMNS;
    return 1 + column * FO_ROWS + (column % 2 ? FO_ROWS - 1 - row : row);
}

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    fo_map map;
    fo_stage_place position[FO_WELLS], reference[FO_WELLS];
    double sheet[FO_WELLS];
    fo_map_input in;
} bench;

static void start(bench *b)
{
    *b = (bench){.mem = t_mem(1 << 20)};
    for (int w = 0; w < FO_WELLS; w++) {
        b->reference[w] = place_of(w);
        b->sheet[w] = series_of(w);
        b->position[(int)series_of(w) - 1] = place_of(w);
    }
    b->in = (fo_map_input){.n = FO_WELLS, .position = b->position, .sheet = b->sheet};
}

static fth_status map(bench *b)
{
    fo_map_free(&b->map);
    fth_err_clear(&b->err);
    return fo_map_make(&b->map, b->mem, &b->in, &b->err);
}

static void end(bench *b)
{
    fo_map_free(&b->map);
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
}

TEST(a_sheet_maps_series_to_wells)
{
    bench b;
    start(&b);
    OKE(map(&b), &b.err);
    EQ_STR(fo_map_method_name(b.map.method), "series_number_map");
    EQ_I64(b.map.mapped, 96);
    EQ_I64(fth_texts_count(b.map.notes), 0);
    for (int w = 0; w < FO_WELLS; w++) EQ_I64(b.map.well[(int)series_of(w) - 1], w);
    b.sheet[0] = 97;           /* beyond the file */
    b.sheet[12] = b.sheet[24]; /* B01 comes first going down the column */
    b.sheet[1] = (double)NAN;
    b.sheet[2] = 1.5;
    OKE(map(&b), &b.err);
    EQ_I64(b.map.out_of_range, 2);
    EQ_I64(b.map.duplicates, 1);
    EQ_I64(b.map.mapped, 92);
    EQ_I64(b.map.well[(int)series_of(24) - 1], 12);
    HAS(fth_texts_get(b.map.notes, 0), "well A01: 97 is not a series of this file");
    HAS(fth_texts_get(b.map.notes, 1), "is at B01 and C01; B01 is used");
    end(&b);
}

TEST(places_map_to_the_nearest_well)
{
    bench b;
    start(&b);
    b.in.reference = b.reference;
    b.position[5].x_um += 4400; /* F01 */
    OKE(map(&b), &b.err);
    EQ_STR(fo_map_method_name(b.map.method), "xy");
    EQ_I64(b.map.mapped, 96);
    EQ_I64(b.map.well[5], 60);
    NEAR(b.map.distance_um[5], 4400, 1e-6);
    EQ_I64(b.map.rejected, 0);
    end(&b);
}

TEST(a_position_between_wells_shows_none)
{
    bench b;
    start(&b);
    b.in.reference = b.reference;
    b.position[0].x_um += 4600; /* A01, away from all others */
    b.position[3] = (fo_stage_place){(double)NAN, (double)NAN};
    OKE(map(&b), &b.err);
    EQ_I64(b.map.rejected, 2);
    EQ_I64(b.map.well[0], -1);
    NEAR(b.map.distance_um[0], 4600, 1e-6);
    HAS(fth_texts_get(b.map.notes, 0), "series 1: the nearest well, A01, is 4600 um away");
    b.position[0].x_um -= 100; /* exactly at the limit */
    OKE(map(&b), &b.err);
    EQ_I64(b.map.well[0], 0);
    end(&b);
}

TEST(two_positions_of_one_well_are_refused)
{
    bench b;
    start(&b);
    b.in.reference = b.reference;
    b.position[7] = b.position[6];
    IS(map(&b), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "series 7 and 8 are both mapped to well G01");
    b.in.allow_duplicates = true;
    OKE(map(&b), &b.err);
    EQ_I64(b.map.duplicates, 1);
    EQ_I64(b.map.mapped, 95); /* both would have the same images */
    EQ_I64(b.map.well[7], -1);
    b.position[6].x_um += 10;
    OKE(map(&b), &b.err);
    EQ_I64(b.map.well[6], -1);
    EQ_I64(b.map.well[7], 6 * FO_COLUMNS);
    HAS(fth_texts_get(b.map.notes, 0), "both mapped to well G01; series 8 is used");
    end(&b);
}

TEST(a_grid_is_fitted_where_no_table_is_given)
{
    bench b;
    start(&b);
    b.in.method = FO_MAP_XY;
    for (int w = 0; w < FO_WELLS; w++)
        if (w != 0 && w != 11 && w != 84) b.sheet[w] = (double)NAN; /* three corners are enough */
    OKE(map(&b), &b.err);
    EQ_I64(b.map.mapped, 96);
    EQ_I64(b.map.fitted, 1);
    for (int w = 0; w < FO_WELLS; w++) {
        EQ_I64(b.map.well[(int)series_of(w) - 1], w);
        NEAR(b.map.distance_um[w], 0, 1e-6);
    }
    b.sheet[84] = (double)NAN;
    b.sheet[5] = series_of(5); /* all in one row */
    IS(map(&b), FTH_E_FILE_KEY);
    HAS(b.err.text, "--ref-xy");
    end(&b);
}

TEST(methods_without_what_they_need_say_so)
{
    bench b;
    start(&b);
    b.in.sheet = NULL;
    IS(map(&b), FTH_E_FILE_KEY);
    HAS(b.err.text, "no sheet series_number_map");
    b.in.allow_implicit = true;
    OKE(map(&b), &b.err);
    EQ_STR(fo_map_method_name(b.map.method), "implicit");
    EQ_I64(b.map.well[13], 13);
    b.in.sheet = b.sheet;
    for (int w = 0; w < FO_WELLS; w++) b.sheet[w] = (double)NAN;
    IS(map(&b), FTH_E_FILE_KEY);
    HAS(b.err.text, "none of 96 positions could be mapped");
    end(&b);
}

TEST(wells_against_the_stage_are_noticed)
{
    bench b;
    start(&b);
    for (int w = 0; w < FO_WELLS; w++) b.position[w].x_um *= -1;
    OKE(map(&b), &b.err);
    EQ_I64(fth_texts_count(b.map.notes), 1);
    HAS(fth_texts_get(b.map.notes, 0), "columns decrease with x");
    for (int w = 0; w < FO_WELLS; w++) b.position[w].x_um *= -1;
    const fo_stage_place p = b.position[0];
    b.position[0] = b.position[1];
    b.position[1] = p;
    OKE(map(&b), &b.err);
    EQ_I64(fth_texts_count(b.map.notes), 1);
    end(&b);
}

TEST(a_map_is_written_with_its_reasons)
{
    bench b;
    start(&b);
    b.in.n = 3;
    for (int w = 0; w < FO_WELLS; w++) b.sheet[w] = (double)NAN;
    b.sheet[1] = 1; /* A01 is before the first: no gap */
    b.sheet[3] = 3;
    OKE(map(&b), &b.err);
    char csv[FTH_PATH], json[FTH_PATH];
    snprintf(csv, sizeof csv, "%s", t_temp_path("series_well_mapping.csv"));
    snprintf(json, sizeof json, "%s", t_temp_path("mapping_provenance.json"));
    OKE(fo_map_save(&b.map, csv, json, &b.err), &b.err);
    size_t n;
    char *text = (char *)t_file_read(csv, &n);
    text[n] = 0;
    EQ_STR(text, "series_number,well_index,mapping_method\n1,A02,series_number_map\n3,A04,series_"
                 "number_map\n");
    free(text);
    fth_json *doc = NULL;
    OKE(fth_json_load(&doc, b.mem, json, &b.err), &b.err);
    const fth_json_value *v = fth_json_root(doc);
    EQ_STR(fth_json_get_text(v, "method", ""), "series_number_map");
    EQ_I64(fth_json_get_int(v, "mapped", -1), 2);
    EQ_I64(fth_json_count(fth_json_get(v, "gaps")), 1);
    EQ_STR(fth_json_get_text(fth_json_at(fth_json_get(v, "gaps"), 0), NULL, ""), "A03");
    fth_json_destroy(doc);
    end(&b);
}

/* Distances are those of positions that were taken. */
TEST(distances_of_positions_that_were_taken)
{
    bench b;
    start(&b);
    b.in.method = FO_MAP_XY;
    b.in.reference = b.reference;
    b.in.n = 3;
    for (int i = 0; i < 3; i++) b.position[i] = b.reference[i];
    b.position[0].x_um += 30;
    b.position[1].x_um += 10;
    b.position[2].y_um -= 4600; /* beside the plate */
    OKE(map(&b), &b.err);
    EQ_I64(b.map.rejected, 1);
    char csv[FTH_PATH], json[FTH_PATH];
    snprintf(csv, sizeof csv, "%s", t_temp_path("far.csv"));
    snprintf(json, sizeof json, "%s", t_temp_path("far.json"));
    OKE(fo_map_save(&b.map, csv, json, &b.err), &b.err);
    fth_json *doc = NULL;
    OKE(fth_json_load(&doc, b.mem, json, &b.err), &b.err);
    const fth_json_value *d = fth_json_get(fth_json_root(doc), "distance_um");
    NEAR(fth_json_get_real(d, "min", 0), 10, 1e-9);
    NEAR(fth_json_get_real(d, "max", 0), 30, 1e-9);
    NEAR(fth_json_get_real(d, "mean", 0), 20, 1e-9);
    fth_json_destroy(doc);
    end(&b);
}

/* Rows and columns that stand a little aside are still rows and columns. */
TEST(wells_of_an_uneven_stage_agree)
{
    bench b;
    start(&b);
    for (int i = 0; i < FO_WELLS; i++) {
        b.position[i].x_um += 40 * (i * 7 % 11);
        b.position[i].y_um += 40 * (i * 5 % 13);
    }
    OKE(map(&b), &b.err);
    EQ_I64(fth_texts_count(b.map.notes), 0);
    end(&b);
}

TEST(a_table_of_wells_is_read_by_its_columns)
{
    bench b;
    start(&b);
    fo_stage_place place[FO_WELLS];
    const char *path = t_temp_path("reference.csv");
    const struct {
        const char *text, *error;
    } bad[] = {{"well,x_um\nA01,1\n", "no column \"y_um\""},
               {"", "the table is empty"},
               {"well,x_um,y_um\nA99,1,2\n", "row 2: \"A99\" is not a well"},
               {"well,x_um,y_um\nA01,1,2\nA01,3,4\n", "row 3: well A01 is listed twice"},
               {"well,x_um,y_um\nA01,one,2\n", "\"one\" and \"2\" are not coordinates"},
               {"well,x_um,y_um\nA01,1,inf\n", "are not coordinates"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        t_file_write(path, bad[i].text, strlen(bad[i].text));
        fth_err_clear(&b.err);
        EQ_I64(fth_status_get_info(fo_map_read_reference(place, b.mem, path, &b.err))->exit_code,
               3);
        HAS(b.err.text, bad[i].error);
    }
    const char good[] = "y_um,well,x_um\n-2.5,B02,1e3\n";
    t_file_write(path, good, sizeof good - 1);
    fth_err_clear(&b.err);
    OKE(fo_map_read_reference(place, b.mem, path, &b.err), &b.err);
    NEAR(place[13].x_um, 1000, 0);
    NEAR(place[13].y_um, -2.5, 0);
    EQ_I64(isnan(place[0].x_um), 1);
    end(&b);
}

/* ---- times ---- */

static void check_times(const double *given, const double *expected, int64_t n, bool compat)
{
    double seconds[8], work[8];
    memcpy(seconds, given, (size_t)n * sizeof *given);
    fo_times_complete(seconds, n, compat, false, work);
    for (int64_t i = 0; i < n; i++) NEAR(seconds[i], expected[i], 1e-9);
}

TEST(missing_times_are_filled_in)
{
    const double holes[] = {(double)NAN, 100, 200, (double)NAN, (double)NAN, 530, (double)NAN};
    /* intervals 100, 330: the median is 215 */
    check_times(holes, (double[]){-115, 100, 200, 310, 420, 530, 745}, 7, false);
    check_times(holes, (double[]){-115, 100, 200, 530, 745, 745, 745}, 7, true);
    check_times((double[]){(double)NAN, (double)NAN, (double)NAN}, (double[]){0, 1800, 3600}, 3,
                false);
    check_times((double[]){(double)NAN, 50, (double)NAN}, (double[]){-1750, 50, 1850}, 3, false);
    check_times((double[]){10, 5, 30}, (double[]){10, 10, 30}, 3, false); /* never back */
    check_times((double[]){7}, (double[]){7}, 1, false);
    check_times((double[]){10, 20, (double)NAN, (double)NAN}, (double[]){10, 20, 30, 40}, 4, false);
    check_times((double[]){(double)NAN, (double)NAN, 30, 40}, (double[]){10, 20, 30, 40}, 4, false);
}

TEST(a_jump_of_the_clock_is_found_and_taken_out)
{
    double work[8], t[6] = {0, 100, 201, 5300, 5400, 5501};
    fo_times_report r = fo_times_complete(t, 6, false, false, work);
    EQ_I64(r.jumps, 1);
    EQ_I64(r.first_jump, 3);
    NEAR(r.cycle_s, 101, 0);
    NEAR(t[5], 5501, 0);
    r = fo_times_complete(t, 6, false, true, work);
    NEAR(t[2], 201, 0);
    NEAR(t[3], 302, 0);
    NEAR(t[5], 503, 0);
    double twice[8] = {0, 100, 200, 2000, 2100, 2200, 9000, 9100}; /* two jumps add up */
    r = fo_times_complete(twice, 8, false, true, work);
    EQ_I64(r.jumps, 2);
    for (int i = 0; i < 8; i++) NEAR(twice[i], 100 * i, 1e-9);
    double steady[4] = {0, 100, 210, 500}; /* three times the cycle, but the cycle is not steady */
    EQ_I64(fo_times_complete(steady, 4, false, true, work).jumps, 1);
    double uneven[7] = {0,   100, 300, 600,
                        700, 900, 1400}; /* 2.5 cycles, as others are half of one */
    EQ_I64(fo_times_complete(uneven, 7, false, true, work).jumps, 0);
    double slow[5] = {0, 100, 260, 400, 690};
    EQ_I64(fo_times_complete(slow, 5, false, true, work).jumps, 0);
}
