/* test_focus_table.c - the plate's table from sheets and CSV, and the table of the images.
 * seconds: 1 */
#include "instruments/focus/plate/metadata.h"
#include "mem/inject.h"
#include "testing/io/files.h"

#include <math.h>

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    fo_plate plate;
} bench;

static bench start(void)
{
    return (bench){.mem = t_mem(1 << 22)};
}

static void end(bench *b)
{
    fo_plate_free(&b->plate);
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
}

static fth_status read_csv(bench *b, fo_layout layout, const char *text)
{
    const char *path = t_temp_path("plate.csv");
    t_file_write(path, text, strlen(text));
    fo_plate_free(&b->plate);
    fth_err_clear(&b->err);
    return fo_plate_read_csv(&b->plate, b->mem, layout, path, &b->err);
}

static void text_is(const char *path, const char *wanted)
{
    size_t n;
    char *text = (char *)t_file_read(path, &n);
    text[n] = 0;
    EQ_STR(text, wanted);
    free(text);
}

static const char small[] =
    "temperature,well,genotype,medium,start_age_hpf,colour,series_number_map\n"
    "28.5,A01,\"wik, ab\",E3,11,red,2\n"
    "30,B12,wt,,24h,,1\n"
    "30,C03,wt,E3,,,7\n";

TEST(a_legacy_table_has_its_seven_columns)
{
    bench b = start();
    OKE(read_csv(&b, FO_LAYOUT_LEGACY, small), &b.err);
    const char *wanted[] = {"medium",        "genotype",         "chem_perturbation",
                            "start_age_hpf", "embryos_per_well", "temperature",
                            "pair"};
    EQ_I64(b.plate.n_columns, 7);
    for (int i = 0; i < 7; i++) EQ_STR(b.plate.column[i].name, wanted[i]);
    EQ_STR(fo_plate_text(&b.plate, fo_plate_find(&b.plate, "genotype"), 0), "wik, ab");
    EQ_STR(fo_plate_text(&b.plate, fo_plate_find(&b.plate, "start_age_hpf"), 23), "24h");
    EQ_F64(fo_plate_find(&b.plate, "temperature")->number[0], 28.5);
    EQ_STR(fo_plate_text(&b.plate, fo_plate_find(&b.plate, "pair"), 0), "");
    IS_TRUE(b.plate.has_well[0] && b.plate.has_well[23]);
    IS_TRUE(!b.plate.has_well[26] && !b.plate.has_well[1]); /* no age; no row */
    IS_TRUE(b.plate.has_series);
    EQ_F64(b.plate.series[23], 1);
    IS_TRUE(isnan(b.plate.series[1]));
    EQ_PTR(fo_plate_find(&b.plate, "colour"), NULL);
    end(&b);
}

TEST(the_new_layout_takes_every_sheet_and_renames)
{
    bench b = start();
    fth_cell cell[FO_WELLS];
    OKE(fo_plate_create(&b.plate, b.mem, &b.err), &b.err);
    for (int w = 0; w < FO_WELLS; w++)
        cell[w] = (fth_cell){FTH_CELL_TEXT, w % 2 ? "nan" : "tri_1", (double)NAN};
    OKE(fo_plate_add_sheet(&b.plate, FO_LAYOUT_V2, "chem_perturbation", cell, &b.err), &b.err);
    for (int w = 0; w < FO_WELLS; w++)
        cell[w] = (fth_cell){w < 3 ? FTH_CELL_NUMBER : FTH_CELL_TEXT, "none", 11};
    OKE(fo_plate_add_sheet(&b.plate, FO_LAYOUT_V2, "start_age", cell, &b.err), &b.err);
    for (int w = 0; w < FO_WELLS; w++)
        cell[w] = (fth_cell){w ? FTH_CELL_NUMBER : FTH_CELL_EMPTY, "", 28.5 + 1.5 * (w > 1)};
    OKE(fo_plate_add_sheet(&b.plate, FO_LAYOUT_V2, "temp_c", cell, &b.err), &b.err);
    for (int w = 0; w < FO_WELLS; w++) cell[w] = (fth_cell){FTH_CELL_EMPTY, "", (double)NAN};
    OKE(fo_plate_add_sheet(&b.plate, FO_LAYOUT_V2, "notes", cell, &b.err), &b.err);
    IS(fo_plate_add_sheet(&b.plate, FO_LAYOUT_V2, "temperature", cell, &b.err), FTH_E_FILE_FORMAT);
    fth_err_clear(&b.err);
    OKE(fo_plate_finish(&b.plate, FO_LAYOUT_V2, "book.xlsx", &b.err), &b.err);
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("v2.csv"));
    OKE(fo_plate_save_v2(&b.plate, "20250912", path, &b.err), &b.err);
    text_is(path, "well_index,experiment_id,treatment,start_age_hpf,temperature,notes,well_id\n"
                  "A01,20250912,tri_1,11,,nan,20250912_A01\n"
                  "A02,20250912,none,11,28.5,nan,20250912_A02\n"
                  "A03,20250912,tri_1,11,30.0,nan,20250912_A03\n");
    end(&b);
}

TEST(tables_with_mistakes_are_refused)
{
    const struct {
        const char *text;
        fth_status status;
        const char *error;
    } bad[] = {
        {"a,b\n1,2\n", FTH_E_FILE_KEY, "no column \"well\""},
        {"well,medium\nA01,E3\n", FTH_E_FILE_KEY,
         "no sheet or column genotype, start_age_hpf, temperature;"},
        {"well,medium\nA00,E3\n", FTH_E_FILE_FORMAT, "row 2: \"A00\" is not a well"},
        {"well,medium\nA01,E3\na1,E3\n", FTH_E_FILE_FORMAT, "row 3: well a1 is also in row 2"},
        {"well,medium,medium\nA01,E3,E3\n", FTH_E_FILE_FORMAT, "called \"medium\""},
    };
    bench b = start();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        IS(read_csv(&b, FO_LAYOUT_LEGACY, bad[i].text), bad[i].status);
        HAS(b.err.text, bad[i].error);
    }
    IS(read_csv(&b, FO_LAYOUT_V2, "well,medium\nA01,E3\n"), FTH_E_FILE_KEY);
    HAS(b.err.text, "no sheet or column start_age_hpf");
    end(&b);
}

TEST(every_allocation_of_a_table_may_fail)
{
    bench b = start();
    int64_t n = 1;
    for (;; n++) {
        const char *path = t_temp_path("plate.csv");
        t_file_write(path, small, sizeof small - 1);
        fth__mem_inject(b.mem, n, 0);
        const fth_status s = fo_plate_read_csv(&b.plate, b.mem, FO_LAYOUT_LEGACY, path, &b.err);
        fth__mem_inject(b.mem, 0, 0);
        fo_plate_free(&b.plate);
        if (s == FTH_OK) break;
        IS(s, FTH_E_NOMEM);
        fth_err_clear(&b.err);
    }
    IS_TRUE(n > 3);
    end(&b);
}

TEST(images_get_a_row_each)
{
    bench b = start();
    OKE(read_csv(&b, FO_LAYOUT_LEGACY, small), &b.err);
    const fo_metadata_row row[] = {{23, 1, 0, 100}, {23, 1, 1, 1900.25}, {0, 2, 0, 101.5}};
    fo_metadata m = {.experiment = "20250912",
                     .height_px = 2189,
                     .width_px = 1152,
                     .height_um = 2189 * 3.25,
                     .width_um = 1152 * 3.25,
                     .channel = 0,
                     .channel_name = "Brightfield",
                     .objective = "Plan, 4x",
                     .plate = &b.plate,
                     .row = row,
                     .n = 3};
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("metadata.csv"));
    OKE(fo_metadata_check(&m, &b.err), &b.err);
    OKE(fo_metadata_save(&m, b.mem, path, &b.err), &b.err);
    text_is(path,
            "well_id,well,nd2_series_num,microscope,time_int,Height (um),Width (um),Height "
            "(px),Width (px),BF Channel,"
            "Objective,Time "
            "(s),experiment_date,medium,genotype,chem_perturbation,start_age_hpf,embryos_per_well,"
            "temperature,pair,Time Rel (s)\n"
            "20250912_B12,B12,1,YX1,0,7114.25,3744.0,2189,1152,0,\"Plan, "
            "4x\",100.0,20250912,,wt,,24h,,30.0,,0.0\n"
            "20250912_B12,B12,1,YX1,1,7114.25,3744.0,2189,1152,0,\"Plan, "
            "4x\",1900.25,20250912,,wt,,24h,,30.0,,1800.25\n"
            "20250912_A01,A01,2,YX1,0,7114.25,3744.0,2189,1152,0,\"Plan, "
            "4x\",101.5,20250912,E3,\"wik, ab\",,11,,28.5,,1.5\n");
    m.keyence = true;
    m.n = 1;
    OKE(fo_metadata_save(&m, b.mem, path, &b.err), &b.err);
    text_is(path,
            "well_id,Time (s),Objective,Channel,Width (px),Height (px),Width (um),Height "
            "(um),well,time_string,time_int,"
            "experiment_date,medium,genotype,chem_perturbation,start_age_hpf,embryos_per_well,"
            "temperature,pair,Time Rel (s)\n"
            "20250912_B12,100.0,\"Plan, "
            "4x\",Brightfield,1152,2189,3744.0,7114.25,B12,T0000,0,20250912,,wt,,24h,,30.0,,0.0\n");
    const fo_metadata_row unknown[] = {{26, 1, 0, 0}, {0, 2, 0, 0}, {1, 3, 0, 0}};
    m.row = unknown;
    m.n = 3;
    IS(fo_metadata_check(&m, &b.err), FTH_E_FILE_KEY);
    HAS(b.err.text, "A02, C03;");
    end(&b);
}

/* ---- workbooks ---- */

static void same_files(const char *a, const char *b)
{
    size_t n, m;
    char *x = (char *)t_file_read(a, &n), *y = (char *)t_file_read(b, &m);
    x[n] = y[m] = 0;
    EQ_STR(x, y);
    free(x), free(y);
}

TEST(a_real_workbook_gives_the_tables_of_the_public_program)
{
    const char *data = getenv("FATHOM_DATA");
    if (!data) SKIP("FATHOM_DATA is not set: no real workbook to read");
    bench b = start();
    char book[FTH_PATH], plate[FTH_PATH], series[FTH_PATH], out[FTH_PATH];
    snprintf(book, sizeof book, "%s/focus/20250912_well_metadata.xlsx", data);
    snprintf(plate, sizeof plate, "%s/focus/20250912_plate_metadata_expected.csv", data);
    snprintf(series, sizeof series, "%s/focus/20250912_series_number_map_expected.csv", data);
    snprintf(out, sizeof out, "%s", t_temp_path("out.csv"));
    OKE(fo_plate_read(&b.plate, b.mem, FO_LAYOUT_V2, book, &b.err), &b.err);
    OKE(fo_plate_save_v2(&b.plate, "20250912", out, &b.err), &b.err);
    same_files(out, plate);
    OKE(fo_series_save_v2(b.mem, book, out, &b.err), &b.err);
    same_files(out, series);
    fo_plate_free(&b.plate);
    OKE(fo_plate_read(&b.plate, b.mem, FO_LAYOUT_LEGACY, book, &b.err), &b.err);
    EQ_I64(b.plate.n_columns, 7);
    EQ_F64(b.plate.series[1], 16);
    EQ_F64(b.plate.series[95], 89);
    EQ_STR(fo_plate_text(&b.plate, fo_plate_find(&b.plate, "start_age_hpf"), 5), "11");
    end(&b);
}

TEST(a_template_is_a_plate_without_wells)
{
    bench b = start();
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("template.xlsx"));
    OKE(fo_plate_save_template(b.mem, path, &b.err), &b.err);
    OKE(fo_plate_read(&b.plate, b.mem, FO_LAYOUT_LEGACY, path, &b.err), &b.err);
    EQ_I64(b.plate.n_columns, 7);
    IS_TRUE(b.plate.has_series);
    for (int w = 0; w < FO_WELLS; w++) {
        IS_TRUE(!b.plate.has_well[w]);
        IS_TRUE(isnan(b.plate.series[w]));
    }
    end(&b);
}

TEST(series_numbers_are_read_with_and_without_a_header)
{
    bench b = start();
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("series.xlsx"));
    for (int header = 0; header < 2; header++) {
        fth_cell cell[9 * 13], age[9 * 13];
        for (int i = 0; i < 9 * 13; i++) cell[i] = age[i] = (fth_cell){FTH_CELL_NUMBER, "", 11};
        for (int c = 1; c < 13; c++) age[c].number = c;
        for (int r = 0; r < 9; r++)
            for (int c = 1; c < 13; c++)
                cell[r * 13 + c].number = header && r == 0 ? c : 100 * (r - header) + c + 4;
        const fth_xlsx_sheet sheet[2] = {{"series_number_map", 8 + header, 13, cell},
                                         {"start_age_hpf", 9, 13, age}};
        OKE(fth_xlsx_save(b.mem, path, sheet, 2, &b.err), &b.err);
        OKE(fo_plate_read(&b.plate, b.mem, FO_LAYOUT_V2, path, &b.err), &b.err);
        EQ_F64(b.plate.series[0], 5);
        EQ_F64(b.plate.series[95], 716);
        fo_plate_free(&b.plate);
    }
    end(&b);
}
